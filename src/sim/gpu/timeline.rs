//! Activity over time in a bounded number of equal intervals.

use gpumodel_core::units::Cycle;

/// Most intervals kept; at twice as many, neighbours are merged.
const INTERVALS: usize = 256;

/// Length of an interval at first.
const FIRST_SPAN: Cycle = 64;

/// Sums over one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// First cycle.
    pub start: Cycle,
    /// One past the last cycle.
    pub end: Cycle,
    /// Warp instructions.
    pub warp_instructions: u64,
    /// DRAM sectors.
    pub dram_sectors: u64,
    /// Resident CTAs times cycles.
    pub cta_cycles: u64,
}

/// Cumulative counts at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) warp_instructions: u64,
    pub(crate) dram_sectors: u64,
    pub(crate) resident_ctas: u64,
}

/// The recorder.
#[derive(Debug)]
pub(crate) struct Timeline {
    span: Cycle,
    samples: Vec<Sample>,
    last: Totals,
    since: Cycle,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self { span: FIRST_SPAN, samples: Vec::new(), last: Totals::default(), since: 0 }
    }

    /// The cycle from which on [`Timeline::note`] wants to be called.
    pub(crate) fn due(&self) -> Cycle {
        self.since + self.span
    }

    /// Notes the totals at `now`; what came since the last note is one interval.
    pub(crate) fn note(&mut self, now: Cycle, totals: Totals) {
        if now <= self.since {
            return;
        }
        self.samples.push(Sample {
            start: self.since,
            end: now,
            warp_instructions: totals.warp_instructions - self.last.warp_instructions,
            dram_sectors: totals.dram_sectors - self.last.dram_sectors,
            cta_cycles: self.last.resident_ctas * (now - self.since),
        });
        self.since = now;
        self.last = totals;
        if self.samples.len() >= 2 * INTERVALS {
            self.merge_neighbours();
        }
    }

    fn merge_neighbours(&mut self) {
        self.span *= 2;
        let merged = self.samples.chunks(2).map(|pair| {
            let sum = |field: fn(&Sample) -> u64| pair.iter().map(field).sum();
            Sample {
                start: pair[0].start,
                end: pair[pair.len() - 1].end,
                warp_instructions: sum(|s| s.warp_instructions),
                dram_sectors: sum(|s| s.dram_sectors),
                cta_cycles: sum(|s| s.cta_cycles),
            }
        });
        self.samples = merged.collect();
    }

    /// The intervals so far.
    pub(crate) fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::{INTERVALS, Timeline, Totals};

    #[test]
    fn merging_keeps_sums_and_bounds_the_number() {
        let mut timeline = Timeline::new();
        let mut totals = Totals::default();
        for step in 1..=10_000 {
            totals.warp_instructions += step % 7;
            totals.dram_sectors += 1;
            timeline.note(step * 64, totals);
        }
        let samples = timeline.into_samples();
        assert!(samples.len() < 2 * INTERVALS);
        assert_eq!(
            samples.iter().map(|s| s.warp_instructions).sum::<u64>(),
            totals.warp_instructions
        );
        assert!(samples.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}
