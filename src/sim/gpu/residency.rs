//! Who had how many CTAs on which SM, in a bounded number of equal intervals.

use gpumodel_core::units::{Cycle, to_usize};

use crate::gpu::dispatch::Held;

/// At twice as many intervals neighbours are merged.
const INTERVALS: usize = 64;

/// Length of an interval at first.
const FIRST_SPAN: Cycle = 256;

/// CTAs on SMs over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Residency {
    /// Cycles of an interval.
    pub span: Cycle,
    /// By application and SM: CTAs times cycles in each interval; the last one may
    /// be cut short by the end of the run.
    pub cta_cycles: Vec<Vec<Vec<u64>>>,
}

/// The recorder.
#[derive(Debug)]
pub(crate) struct Recorder {
    residency: Residency,
    /// Up to here everything is noted.
    noted: Cycle,
}

impl Recorder {
    /// Nothing so far, of `apps` applications on `sms` SMs.
    pub(crate) fn new(apps: usize, sms: usize) -> Self {
        let cta_cycles = vec![vec![vec![0]; sms]; apps];
        Self { residency: Residency { span: FIRST_SPAN, cta_cycles }, noted: 0 }
    }

    /// Notes that an SM has had `held` of each application's CTAs since the last
    /// note; before these change.
    pub(crate) fn note(&mut self, now: Cycle, held: &[Vec<Held>]) {
        while self.noted < now {
            let place = to_usize(self.noted / self.residency.span);
            if place >= 2 * INTERVALS {
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

#[cfg(test)]
mod tests {
    use super::{Held, INTERVALS, Recorder};

    #[test]
    fn merging_keeps_sums_and_bounds_the_number() {
        let mut recorder = Recorder::new(2, 1);
        let held = |ctas| Held { ctas, warps: 0 };
        let mut sums = [0, 0];
        for step in 1..5_000_u64 {
            let ctas = u32::try_from(step % 3).unwrap();
            recorder.note(step * 97, &[vec![held(ctas)], vec![held(1)]]);
            sums = [sums[0] + u64::from(ctas) * 97, sums[1] + 97];
        }
        let residency = recorder.into_residency();
        for (rows, sum) in residency.cta_cycles.iter().zip(sums) {
            assert!(rows[0].len() <= 2 * INTERVALS);
            assert_eq!(rows[0].iter().sum::<u64>(), sum);
        }
        assert_eq!(residency.cta_cycles[1][0][0], residency.span);
    }
}
