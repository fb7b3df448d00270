//! Loops of arithmetic: repetitions of a segment without events are taken
//! together, so that a loop costs the logarithm of its length.
//!
//! The dependency state in which a repetition begins comes again after a few of
//! them; what was gathered in between is what every further round will gather.

use gpumodel_core::isa::Unit;

use crate::counters::{FetchCounts, KernelCounts};
use crate::gpu::feed::WarpStream;
use crate::interval::{Profile, StepEnd, StretchEnd};
use crate::sm::scheduler::issue_interval::IssueInterval;
use crate::sm::warp::{LONGEST_BURST, Warp};

/// Repetitions form one interval up to this part of what the warp has issued before,
/// and to this many instructions: counters are ahead of time by a small part of it.
const PART: u64 = 16;
const MOST: u32 = 1 << 16;

/// Repetitions after which a state that has not come again is not waited for.
const LONGEST_ROUND: u32 = 8;

/// What had been gathered when a repetition began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    stretch: u32,
    /// Repetitions since then.
    repetitions: u32,
    interval: IssueInterval,
    by_unit: [u64; Unit::ALL.len()],
    unit_cycles: [u64; Unit::ALL.len()],
    unknown: u64,
    constants: u64,
    fetch: FetchCounts,
    /// Parts of the warp's log.
    logged: usize,
}

impl Mark {
    fn new(warp: &Warp, interval: &IssueInterval, counts: &KernelCounts) -> Self {
        Self {
            stretch: warp.stretch,
            repetitions: 0,
            interval: *interval,
            by_unit: counts.by_unit,
            unit_cycles: counts.unit_cycles,
            unknown: counts.unknown_opcodes,
            constants: counts.constant.without_address,
            fetch: counts.fetch,
            logged: warp.log.as_ref().map_or(0, |log| log.len()),
        }
    }

    /// Whether all code since then was where it is looked for first.
    fn found_its_code(&self, fetch: &FetchCounts) -> bool {
        FetchCounts { inner_lines: fetch.inner_lines, ..self.fetch } == *fetch
    }

    /// Gathers what has been gathered since then `times` more times.
    fn repeat(&self, times: u32, interval: &mut IssueInterval, counts: &mut KernelCounts) {
        interval.add_since(&self.interval, times);
        let more = |sum: &mut u64, before: u64| *sum += u64::from(times) * (*sum - before);
        for (sum, &before) in counts.by_unit.iter_mut().zip(&self.by_unit) {
            more(sum, before);
        }
        for (sum, &before) in counts.unit_cycles.iter_mut().zip(&self.unit_cycles) {
            more(sum, before);
        }
        more(&mut counts.unknown_opcodes, self.unknown);
        more(&mut counts.constant.without_address, self.constants);
        more(&mut counts.fetch.inner_lines, self.fetch.inner_lines);
    }
}

impl Warp {
    /// A segment begins that may be a repetition; `mark` is that of an earlier one
    /// in the same interval. Takes further rounds together where the state is the
    /// same again. Gives the mark for the next repetition.
    pub(super) fn repeat(
        &mut self,
        mark: Option<Mark>,
        profile: &Profile,
        interval: &mut IssueInterval,
        counts: &mut KernelCounts,
    ) -> Option<Mark> {
        let ahead = self.stream.repeats();
        if ahead == 0 {
            return None;
        }
        let stretch = profile.stretch(self.stretch);
        let plain = stretch.end == StretchEnd::Segment
            && stretch.count > 0
            && profile.step(stretch.first).end == StepEnd::Stretch;
        if !plain {
            return None;
        }
        if let Some(mut mark) = mark {
            mark.repetitions += 1;
            if mark.stretch != self.stretch && mark.repetitions < LONGEST_ROUND {
                return Some(mark);
            }
            if mark.stretch == self.stretch && mark.found_its_code(&counts.fetch) {
                let round = interval.slots - mark.interval.slots;
                let times = self.rounds(ahead / u64::from(mark.repetitions), interval.slots, round);
                mark.repeat(times, interval, counts);
                if let Some(log) = &mut self.log {
                    log.repeat(mark.logged, times);
                }
                let passed = u64::from(times) * u64::from(mark.repetitions);
                counts.thread_instructions += self.stream.pass(passed, round / mark.repetitions);
            }
        }
        Some(Mark::new(self, interval, counts))
    }

    /// How many of the `ahead` rounds of `round` instructions go into an interval that
    /// has `slots` already.
    fn rounds(&self, ahead: u64, slots: u32, round: u32) -> u32 {
        let part = u32::try_from(self.issued / PART).unwrap_or(u32::MAX);
        let room = part.min(MOST).max(LONGEST_BURST.saturating_sub(slots));
        let times = room.div_ceil(round);
        u32::try_from(ahead).map_or(times, |ahead| times.min(ahead))
    }
}
