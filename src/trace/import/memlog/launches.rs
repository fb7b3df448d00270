//! The launches of a log, and which one an access belongs to.
//!
//! A tool counts launches from 0 and prints the count with every access. Older ones
//! (1.5.5) print a launch's own line after counting it, so that it says one more than
//! its accesses; newer ones before. The first launch line of the log decides: when it
//! says 0, or the first access says the number of the last launch, numbers agree; when
//! the first access says one less than the first or the last launch, they are one
//! apart. Of launches with equal numbers and context (logs put together) an access
//! belongs to the last one before it.

use rustc_hash::FxHashMap;

use gpumodel_core::isa::Launch;
use gpumodel_core::units::to_u32;

use super::parse::{Head, Opening, SLOTS};
use crate::filter::CtaSelector;

/// Most CTAs of all launches together: their slots are numbered in 64 bits.
const MOST: u64 = u64::MAX / SLOTS / 2;
/// Most launches: a bound on memory.
const MOST_LAUNCHES: usize = 1 << 24;

/// One launch.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) launch: Launch,
    /// Its line.
    pub(super) text: String,
    /// The request takes it.
    pub(super) taken: bool,
    pub(super) selector: CtaSelector,
    /// The number of its first CTA.
    pub(super) first: u64,
    /// Accesses that are taken.
    pub(super) accesses: u64,
}

/// The launches so far.
#[derive(Debug, Default)]
pub(super) struct Launches {
    pub(super) all: Vec<Logged>,
    /// From context and printed number to the index of the last such launch.
    numbers: FxHashMap<(u64, u64), usize>,
    /// Printed numbers of the first and the last launch.
    ends: Option<(u64, u64)>,
    /// By how much the number in a launch line exceeds that of its accesses, once known.
    ahead: Option<u64>,
    /// The launch of the last access.
    recent: Option<(u64, u64, usize)>,
    next: u64,
}

impl Launches {
    /// Adds the launch of `opening`: launches are numbered from 1 as they come.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn open(
        &mut self,
        opening: Opening,
        taken: impl Fn(&Launch) -> bool,
        selector: CtaSelector,
    ) -> Result<(), &'static str> {
        let Opening { context, id, mut launch, text } = opening;
        let first = self.next;
        self.next = first.saturating_add(launch.grid.count());
        if self.next > MOST || self.all.len() >= MOST_LAUNCHES {
            return Err("no more launches and CTAs than a log can have");
        }
        launch.id = to_u32(self.all.len() + 1);
        self.numbers.insert((context, id), self.all.len());
        self.ends = Some((self.ends.map_or(id, |(first, _)| first), id));
        self.recent = None;
        let taken = taken(&launch);
        self.all.push(Logged { launch, text, taken, selector, first, accesses: 0 });
        Ok(())
    }

    /// The place of an access: CTA number times [`SLOTS`] plus slot; `None` when it is
    /// not taken.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn place(&mut self, head: &Head) -> Result<Option<u64>, String> {
        let index = self.launch(head.context, head.id)?;
        let one = &mut self.all[index];
        let grid = one.launch.grid;
        if !head.cta.inside(grid) {
            return Err(format!("a CTA inside the launch's grid {grid}"));
        }
        let linear = head.cta.linear(grid);
        if !one.taken || !one.selector.record(linear) {
            return Ok(None);
        }
        one.accesses += 1;
        Ok(Some((one.first + linear) * SLOTS + head.slot))
    }

    fn launch(&mut self, context: u64, id: u64) -> Result<usize, String> {
        if let Some((_, _, index)) = self.recent.filter(|last| (last.0, last.1) == (context, id)) {
            return Ok(index);
        }
        let ahead = self.ahead(id);
        let index = id.checked_add(ahead).and_then(|id| self.numbers.get(&(context, id)));
        let index = *index.ok_or_else(|| {
            format!("the launch line of `grid_launch_id {id}` of context 0x{context:x} before it")
        })?;
        self.recent = Some((context, id, index));
        Ok(index)
    }

    /// By how much the number in launch lines exceeds `id`, that of an access.
    fn ahead(&mut self, id: u64) -> u64 {
        if let Some(ahead) = self.ahead {
            return ahead;
        }
        let Some((first, last)) = self.ends else { return 0 };
        let next = id.saturating_add(1);
        let apart = first != 0 && id != last && (next == last || next == first);
        *self.ahead.insert(u64::from(apart))
    }

    /// The index of the launch with the CTA of this number.
    pub(super) fn of_cta(&self, cta: u64) -> usize {
        self.all.partition_point(|one| one.first <= cta) - 1
    }

    /// Accesses that are taken, of all launches.
    pub(super) fn accesses(&self) -> u64 {
        self.all.iter().map(|one| one.accesses).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Head, Opening, SLOTS};
    use super::Launches;
    use crate::filter::CtaSelector;
    use gpumodel_core::isa::Launch;
    use gpumodel_core::units::Dim3;

    fn opened(ids: &[u64]) -> Launches {
        let mut launches = Launches::default();
        ids.iter().for_each(|&id| open(&mut launches, id));
        launches
    }

    fn open(launches: &mut Launches, id: u64) {
        let grid = Dim3::new(4, 1, 1);
        let launch = Launch { grid, block: grid, ..Launch::default() };
        let opening = Opening { context: 9, id, launch, text: String::new() };
        launches.open(opening, |_| true, CtaSelector::default()).unwrap();
    }

    /// The index of the launch of an access.
    fn of(launches: &mut Launches, id: u64) -> Option<usize> {
        let head = Head { context: 9, id, cta: Dim3::new(1, 0, 0), slot: 3, line: 0 };
        let place = launches.place(&head).ok()??;
        assert_eq!(place % (4 * SLOTS), SLOTS + 3);
        Some(launches.of_cta(place / SLOTS))
    }

    #[test]
    fn numbers_before_and_after_counting_are_told_apart() {
        // Launch lines before the first access, its number, and the launch it is of.
        let cases: [(&[u64], u64, Option<usize>); 8] = [
            (&[0], 0, Some(0)),
            (&[1], 0, Some(0)),
            (&[0, 1, 2], 1, Some(1)),
            (&[1, 2, 3], 0, Some(0)),
            (&[1, 2], 1, Some(1)),
            (&[5], 4, Some(0)),
            (&[5], 5, Some(0)),
            (&[5], 7, None),
        ];
        for (ids, id, index) in cases {
            assert_eq!(of(&mut opened(ids), id), index, "{ids:?} {id}");
        }
    }

    #[test]
    fn logs_put_together_have_launches_of_their_own() {
        let mut launches = opened(&[1, 2]);
        assert_eq!([of(&mut launches, 0), of(&mut launches, 1)], [Some(0), Some(1)]);
        open(&mut launches, 1);
        assert_eq!([of(&mut launches, 0), of(&mut launches, 1)], [Some(2), Some(1)]);
        let outside = Head { context: 9, id: 0, cta: Dim3::new(4, 0, 0), slot: 0, line: 0 };
        assert!(launches.place(&outside).unwrap_err().contains("grid"));
        let foreign = Head { context: 8, id: 0, cta: Dim3::new(0, 0, 0), slot: 0, line: 0 };
        assert!(launches.place(&foreign).unwrap_err().contains("launch line"));
    }
}
