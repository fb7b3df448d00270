//! What happened when: activity, CTAs on SMs, the lives of CTAs. Activity and CTAs are
//! summed over a bounded number of equal intervals.

use gpumodel_core::units::{Cycle, to_usize};

use crate::gpu::dispatch::Held;

/// Most intervals kept; at twice as many, neighbours are merged.
const TIMELINE_INTERVALS: usize = 256;

/// Length of an interval at first.
const TIMELINE_FIRST_SPAN: Cycle = 64;

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

/// Records activity.
#[derive(Debug)]
pub(crate) struct Timeline {
    span: Cycle,
    samples: Vec<Sample>,
    last: Totals,
    since: Cycle,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self { span: TIMELINE_FIRST_SPAN, samples: Vec::new(), last: Totals::default(), since: 0 }
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
        if self.samples.len() >= 2 * TIMELINE_INTERVALS {
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

/// At twice as many intervals neighbours are merged.
const RESIDENCY_INTERVALS: usize = 64;

/// Length of an interval at first.
const RESIDENCY_FIRST_SPAN: Cycle = 256;

/// CTAs on SMs over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Residency {
    /// Cycles of an interval.
    pub span: Cycle,
    /// By application and SM: CTAs times cycles in each interval; the last one may
    /// be cut short by the end of the run.
    pub cta_cycles: Vec<Vec<Vec<u64>>>,
}

/// Records the CTAs of each application on each SM.
#[derive(Debug)]
pub(crate) struct ResidencyRecorder {
    residency: Residency,
    /// Up to here everything is noted.
    noted: Cycle,
}

impl ResidencyRecorder {
    /// Nothing so far, of `apps` applications on `sms` SMs.
    pub(crate) fn new(apps: usize, sms: usize) -> Self {
        let cta_cycles = vec![vec![vec![0]; sms]; apps];
        Self { residency: Residency { span: RESIDENCY_FIRST_SPAN, cta_cycles }, noted: 0 }
    }

    /// Notes that an SM has had `held` of each application's CTAs since the last
    /// note; before these change.
    pub(crate) fn note(&mut self, now: Cycle, held: &[Vec<Held>]) {
        while self.noted < now {
            let place = to_usize(self.noted / self.residency.span);
            if place >= 2 * RESIDENCY_INTERVALS {
                self.merge_neighbours();
                continue;
            }
            let end = (self.noted / self.residency.span + 1) * self.residency.span;
            let cycles = end.min(now) - self.noted;
            for (rows, held) in self.residency.cta_cycles.iter_mut().zip(held) {
                for (row, held) in rows.iter_mut().zip(held) {
                    row.resize(place + 1, 0);
                    row[place] += u64::from(held.ctas) * cycles;
                }
            }
            self.noted += cycles;
        }
    }

    fn merge_neighbours(&mut self) {
        self.residency.span *= 2;
        for row in self.residency.cta_cycles.iter_mut().flatten() {
            *row = row.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    /// What was noted.
    pub(crate) fn into_residency(self) -> Residency {
        self.residency
    }
}

/// The life of one CTA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtaSpan {
    /// Its launch, in the numbering of the run.
    pub kernel: u32,
    /// Its position among the launch's CTAs that ran, in the order of their start.
    pub ordinal: u64,
    /// Where it ran.
    pub sm: u16,
    /// When it was handed out.
    pub start: Cycle,
    /// When its last warp ended.
    pub end: Cycle,
}

#[cfg(test)]
mod tests {
    use super::{
        Held, RESIDENCY_INTERVALS, ResidencyRecorder, TIMELINE_INTERVALS, Timeline, Totals,
    };

    #[test]
    fn activity_keeps_its_sums_in_a_bounded_number_of_intervals() {
        let mut timeline = Timeline::new();
        let mut totals = Totals::default();
        for step in 1..=10_000 {
            totals.warp_instructions += step % 7;
            totals.dram_sectors += 1;
            timeline.note(step * 64, totals);
        }
        let samples = timeline.into_samples();
        assert!(samples.len() < 2 * TIMELINE_INTERVALS);
        assert_eq!(
            samples.iter().map(|s| s.warp_instructions).sum::<u64>(),
            totals.warp_instructions
        );
        assert!(samples.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn residency_keeps_its_sums_in_a_bounded_number_of_intervals() {
        let mut recorder = ResidencyRecorder::new(2, 1);
        let held = |ctas| Held { ctas, warps: 0 };
        let mut sums = [0, 0];
        for step in 1..5_000_u64 {
            let ctas = u32::try_from(step % 3).unwrap();
            recorder.note(step * 97, &[vec![held(ctas)], vec![held(1)]]);
            sums = [sums[0] + u64::from(ctas) * 97, sums[1] + 97];
        }
        let residency = recorder.into_residency();
        for (rows, sum) in residency.cta_cycles.iter().zip(sums) {
            assert!(rows[0].len() <= 2 * RESIDENCY_INTERVALS);
            assert_eq!(rows[0].iter().sum::<u64>(), sum);
        }
        assert_eq!(residency.cta_cycles[1][0][0], residency.span);
    }
}
