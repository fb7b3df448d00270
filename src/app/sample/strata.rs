//! The CTAs of a launch in classes of equal work.

use std::collections::BTreeMap;

use gpumodel_core::units::{to_u32, to_u64, to_usize};
use gpumodel_trace::{Store, TraceError};

/// A shape of fewer than one CTA in this many is rare: it is put together with
/// others of about as many instructions.
const RARE: usize = 64;

/// CTAs whose warps take the same paths are one stratum; those with rare paths are
/// strata by their number of instructions. Where all CTAs are resident at once,
/// those on SMs with one CTA more than others are strata of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct Strata {
    /// By CTA in store order: its stratum.
    pub(super) of: Vec<u32>,
    /// By CTA: its warp instructions.
    pub(super) work: Vec<u64>,
    /// By stratum: its CTAs.
    pub(super) sizes: Vec<u64>,
}

/// What tells strata apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Shape(u64),
    /// Eight times the binary logarithm of the instructions, rounded down.
    Work(u32),
}

impl Strata {
    /// The strata of launch `kernel` of `store` on `sms` SMs, each with room for
    /// `fits` of its CTAs.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    pub(super) fn of(
        store: &Store,
        kernel: usize,
        sms: u64,
        fits: u64,
    ) -> Result<Self, TraceError> {
        let count = store.kernel(kernel).cta_count();
        let at_once = count.div_ceil(sms) <= fits;
        let mut ctas = Vec::new();
        for ordinal in 0..count {
            let cta = store.cta(kernel, ordinal)?;
            let work = (0..cta.warp_count()).map(|warp| cta.warp_instructions(warp)).sum();
            let crowded = at_once && ordinal % sms < count % sms;
            ctas.push((cta.shape() ^ u64::from(crowded), work));
        }
        Ok(Self::new(&ctas))
    }

    /// The strata of CTAs with these shapes and numbers of instructions.
    pub(super) fn new(ctas: &[(u64, u64)]) -> Self {
        let mut shapes: BTreeMap<u64, usize> = BTreeMap::new();
        for (shape, _) in ctas {
            *shapes.entry(*shape).or_default() += 1;
        }
        let key = |&(shape, work): &(u64, u64)| {
            if shapes[&shape] * RARE >= ctas.len() { Key::Shape(shape) } else { rare(work) }
        };
        let mut numbers: BTreeMap<Key, u32> = BTreeMap::new();
        let mut strata = Self::default();
        for cta in ctas {
            let next = to_u32(numbers.len());
            let number = *numbers.entry(key(cta)).or_insert(next);
            if number == next {
                strata.sizes.push(0);
            }
            strata.sizes[to_usize(number)] += 1;
            strata.of.push(number);
            strata.work.push(cta.1);
        }
        strata
    }

    /// CTAs of the launch.
    pub(super) fn ctas(&self) -> u64 {
        to_u64(self.of.len())
    }

    /// Warp instructions of the launch.
    pub(super) fn total_work(&self) -> u64 {
        self.work.iter().sum()
    }
}

/// The class of a CTA with a rare path.
fn rare(work: u64) -> Key {
    let exponent = work.max(1).ilog2();
    // The three bits behind the leading one.
    let eighth = if exponent >= 3 { work >> (exponent - 3) & 7 } else { 0 };
    Key::Work(exponent * 8 + to_u32(eighth))
}

#[cfg(test)]
mod tests {
    use super::Strata;

    #[test]
    fn common_paths_are_strata_and_rare_ones_go_by_their_work() {
        let mut ctas = vec![(1, 100); 200];
        ctas.extend([(2, 50); 100]);
        ctas.extend((0..4).map(|rare| (10 + rare, 1000 + rare)));
        ctas.push((20, 9000));
        let strata = Strata::new(&ctas);
        assert_eq!(strata.sizes, [200, 100, 4, 1]);
        assert_eq!(strata.of[200], 1);
        assert_eq!(strata.total_work(), 200 * 100 + 100 * 50 + 4 * 1000 + 6 + 9000);
    }
}
