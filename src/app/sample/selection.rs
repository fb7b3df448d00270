//! Selects what a sample runs: launches, sets of SMs, and CTAs by strata of equal work.

use std::collections::BTreeMap;

use gpumodel_core::isa::{Effect, Space};
use gpumodel_core::units::{to_u32, to_u64, to_usize};
use gpumodel_feed::StoreFeed;
use gpumodel_sim::{Need, Program};
use gpumodel_trace::{Store, TraceError};

use super::Scale;
use crate::SampleRequest;

/// The most sets of SMs that are drawn for one launch.
pub(super) const SETS: usize = 4;

/// A row of SMs is near to the whole launch if its distance is at most so many times that of
/// the nearest row.
const NEAR: f64 = 1.25;

/// Sets of SMs of the whole machine, drawn for a launch. A set takes the CTAs that its SMs
/// would get in round-robin order.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    /// By SM of the whole machine: its set; [`SETS`] for none.
    set_of: Vec<u8>,
    /// Sets drawn.
    pub(super) sets: usize,
}

impl Draw {
    /// Draws disjoint sets of `part` SMs out of `whole`, in whole ports of `port` SMs. Each set
    /// is a row of neighbours among the free SMs, since CTAs that share lines and rows of memory
    /// run on neighbouring SMs. From a random SM on, it is the first row whose CTAs are nearly
    /// as similar to the launch's, in number per SM, strata and instructions, as those of the
    /// most similar row.
    pub(super) fn new(strata: &Strata, whole: u32, part: u32, port: u32, seed: u64) -> Self {
        let (whole, part, port) = (to_usize(whole), to_usize(part), to_usize(port.max(1)));
        let mix = SmLoads::of_sms(strata, whole);
        let mut random = SplitMix64(seed);
        let mut free: Vec<usize> = (0..whole / port).collect();
        let mut set_of = vec![byte(SETS); whole];
        let mut sets = 0;
        while sets < SETS && free.len() * port >= part {
            let first = random.below(free.len());
            free.rotate_left(first);
            let rows: Vec<Vec<usize>> = (0..free.len())
                .map(|at| free.iter().cycle().skip(at).take(part / port).copied().collect())
                .collect();
            let far =
                |row: &Vec<usize>| mix.distance(row.iter().flat_map(|&p| p * port..(p + 1) * port));
            let far: Vec<f64> = rows.iter().map(far).collect();
            let least = far.iter().copied().fold(f64::INFINITY, f64::min);
            let near = far.iter().position(|&far| far <= least * NEAR).unwrap_or(0);
            let ports = &rows[near];
            for &p in ports {
                set_of[p * port..(p + 1) * port].fill(byte(sets));
            }
            free.retain(|p| !ports.contains(p));
            free.sort_unstable();
            sets += 1;
        }
        Self { set_of, sets }
    }

    /// The set of the CTA `ordinal`; [`SETS`] for none.
    #[inline]
    pub(super) fn set(&self, ordinal: u64) -> u8 {
        self.set_of[to_usize(ordinal % to_u64(self.set_of.len()))]
    }

    /// The CTAs of a set among `ctas`, in order.
    pub(super) fn chosen(&self, set: usize, ctas: u64) -> Vec<u64> {
        (0..ctas).filter(|&ordinal| self.set(ordinal) == byte(set)).collect()
    }
}

fn byte(set: usize) -> u8 {
    u8::try_from(set).expect("there are few sets")
}

/// The CTAs and instructions that each SM would get.
struct SmLoads {
    /// By SM: CTAs by stratum, then all CTAs, then instructions.
    by_sm: Vec<Vec<f64>>,
    /// The mean over all SMs.
    mean: Vec<f64>,
}

impl SmLoads {
    fn of_sms(strata: &Strata, whole: usize) -> Self {
        let columns = strata.sizes.len() + 2;
        let mut by_sm = vec![vec![0.0; columns]; whole];
        let work = strata.total_work().max(1) as f64 / strata.ctas().max(1) as f64;
        for (ordinal, (&stratum, &own)) in strata.of.iter().zip(&strata.work).enumerate() {
            let row = &mut by_sm[ordinal % whole];
            row[to_usize(stratum)] += 1.0;
            row[columns - 2] += 1.0;
            row[columns - 1] += own as f64 / work;
        }
        let mean = |column| by_sm.iter().map(|row: &Vec<f64>| row[column]).sum::<f64>();
        let mean = (0..columns).map(|column| mean(column) / whole as f64).collect();
        Self { by_sm, mean }
    }

    /// Distance of the mean over `sms` from the mean over all SMs: summed over columns, in CTAs
    /// per SM.
    fn distance(&self, sms: impl Iterator<Item = usize>) -> f64 {
        let mut sums = vec![0.0; self.mean.len()];
        let mut count = 0.0;
        for sm in sms {
            sums.iter_mut().zip(&self.by_sm[sm]).for_each(|(sum, own)| *sum += own);
            count += 1.0;
        }
        sums.iter().zip(&self.mean).map(|(sum, mean)| (sum / count - mean).abs()).sum()
    }
}

/// The `SplitMix64` generator (Steele et al. 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, count: usize) -> usize {
        to_usize(self.next() % to_u64(count))
    }
}

/// A shape of fewer than one CTA in this many is rare: it shares a stratum with rare shapes of
/// about as many instructions.
const RARE: usize = 64;

/// CTAs whose warps take the same paths are one stratum; those with rare paths are grouped by
/// their number of instructions. If all CTAs are resident at once, those on SMs with one more
/// CTA than others are separate strata.
#[derive(Clone, Debug, Default)]
pub(super) struct Strata {
    /// By CTA in store order: its stratum.
    pub(super) of: Vec<u32>,
    /// By CTA: its warp instructions.
    pub(super) work: Vec<u64>,
    /// By stratum: its CTAs.
    pub(super) sizes: Vec<u64>,
}

/// Identifies a stratum.
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
    fn total_work(&self) -> u64 {
        self.work.iter().sum()
    }
}

/// The class of a CTA with a rare path.
fn rare(work: u64) -> Key {
    let exponent = work.max(1).ilog2();
    // The three bits after the leading one.
    let eighth = if exponent >= 3 { work >> (exponent - 3) & 7 } else { 0 };
    Key::Work(exponent * 8 + to_u32(eighth))
}

/// A launch to be sampled.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) strata: Strata,
    pub(super) draw: Draw,
    /// CTAs that are resident on an SM.
    pub(super) per_sm: u32,
}

/// How a launch runs.
#[derive(Debug)]
pub(super) enum Choice {
    /// Whole, for this reason.
    Whole(&'static str),
    /// By samples.
    Sample(Box<Sampling>),
}

impl Choice {
    /// The choice for the launch at `index` of `feed`.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    pub(super) fn of(
        feed: &StoreFeed<'_>,
        index: usize,
        scale: &Scale,
        request: SampleRequest,
        seed: u64,
    ) -> Result<Self, TraceError> {
        let program = &feed.programs()[index];
        if program.ctas < u64::from(scale.whole_sms) {
            return Ok(Self::Whole("fewer CTAs than SMs"));
        }
        if feed.warp_instructions(index) < request.fewest_instructions {
            return Ok(Self::Whole("too few instructions to be worth sampling"));
        }
        if has_global_atomics(program) {
            return Ok(Self::Whole("contention of atomics does not show in a part of them"));
        }
        let sms = u64::from(scale.whole_sms);
        let fits = u64::from(Need::of(&program.launch, &scale.machine).fits(&scale.machine).0);
        let strata = Strata::of(feed.store(), feed.kernel(index), sms, fits)?;
        let port = scale.machine.interconnect.sms_per_port;
        let draw = Draw::new(&strata, scale.whole_sms, scale.sms(), port, seed);
        let per_sm = u32::try_from(fits.min(strata.ctas().div_ceil(sms))).unwrap_or(u32::MAX);
        if tail_excess(&strata, &draw, per_sm, scale.whole_sms) > request.half_width {
            return Ok(Self::Whole("single CTAs are so long that no sample predicts the end"));
        }
        Ok(Self::Sample(Box::new(Sampling { strata, draw, per_sm })))
    }
}

fn has_global_atomics(program: &Program) -> bool {
    program.code.instructions.iter().any(|instruction| {
        matches!(
            program.opcodes[to_usize(instruction.opcode)].effect,
            Effect::Atomic(Space::Global | Space::Generic)
                | Effect::Reduction(Space::Global | Space::Generic)
        )
    })
}

/// The share of the run by which a CTA outside all sets may end later than those in one.
fn tail_excess(strata: &Strata, draw: &Draw, per_sm: u32, sms: u32) -> f64 {
    let (mut longest, mut drawn) = (0, 0);
    for (ordinal, &work) in strata.work.iter().enumerate() {
        longest = longest.max(work);
        if usize::from(draw.set(to_u64(ordinal))) < SETS {
            drawn = drawn.max(work);
        }
    }
    let beyond = (longest - drawn) as f64;
    beyond * f64::from(per_sm) * f64::from(sms) / strata.total_work().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::{Draw, SETS, Strata};

    /// 80 SMs of which the even ones get one path and the odd ones another.
    #[test]
    fn sets_are_disjoint_and_have_the_mix_of_the_whole() {
        let ctas: Vec<(u64, u64)> = (0..1000).map(|cta| (cta % 2, 10 + 90 * (cta % 2))).collect();
        let strata = Strata::new(&ctas);
        let draw = Draw::new(&strata, 80, 4, 1, 7);
        assert_eq!(draw.sets, SETS);
        let mut state = 0;
        for set in 0..SETS {
            let chosen = draw.chosen(set, 1000);
            let odd = chosen.iter().filter(|&cta| cta % 2 == 1).count();
            assert_eq!(odd * 2, chosen.len());
            assert_eq!(chosen.len(), 50, "half of the SMs get 13 CTAs, the others 12");
            state += chosen.len();
        }
        let left = (0..1000).filter(|&cta| usize::from(draw.set(cta)) == SETS).count();
        assert_eq!(state + left, 1000);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_one_another() {
        let strata = Strata::new(&[(1, 10); 640]);
        let draw = |seed| Draw::new(&strata, 80, 5, 1, seed).chosen(0, 640);
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

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
