//! Estimates a launch's cycles, with an interval, from the lifetimes of a sample's CTAs.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use gpumodel_core::units::{Cycle, to_u64, to_usize};
use gpumodel_sim::CtaSpan;

use super::selection::Strata;
use crate::float;

/// The confidence of intervals.
pub(super) const CONFIDENCE: f64 = 0.95;

/// One run of a sample.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    /// The CTAs that ran, in the order of their start.
    pub(super) chosen: Vec<u64>,
    /// Their lifetimes.
    pub(super) spans: Vec<CtaSpan>,
    /// Cycles from the first CTA's start to the last one's end.
    pub(super) cycles: Cycle,
    /// Reads of sectors that CTAs outside the run bring.
    pub(super) outside_reads: u64,
}

/// The estimate for the whole launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// Cycles from the first CTA's start to the last one's end.
    pub(super) cycles: f64,
    /// Half of the interval's width over `cycles`; infinite if there are too few samples.
    pub(super) half_width: f64,
    /// The same for the end of the last SM if SMs took further CTAs as they became free: more
    /// sets do not narrow it.
    pub(super) tail: f64,
}

impl Estimate {
    /// The estimate from runs of samples; `per_sm` CTAs are resident on an SM, and
    /// the whole machine has `times` as many SMs.
    ///
    /// Cycles are those of the runs, plus the expected difference between the last end of all
    /// SMs and of a part's, times the mean lifetime of a CTA in the launch's mix of strata over
    /// that in the sample's mix. The interval is Student's over batches of as many CTAs as are
    /// resident on an SM: deviations of lifetimes from the means of their strata, with the
    /// finite population correction. The spread of end times of SMs with equally many CTAs is
    /// added as a variance.
    pub(super) fn of(strata: &Strata, runs: &[Sampled], per_sm: u32, times: f64) -> Self {
        let lifetimes = MeanLifetimes::of(strata, runs);
        let whole = lifetimes.mean(strata.sizes.iter().copied());
        let adjusted = |run: &Sampled| {
            let mut counts = vec![0_u64; strata.sizes.len()];
            run.chosen.iter().for_each(|&cta| counts[stratum(strata, cta)] += 1);
            let ends = EndTimes::of(run, per_sm);
            (float(run.cycles) + ends.extra_cycles(times)) * whole
                / lifetimes.mean(counts.into_iter())
        };
        let cycles = runs.iter().map(adjusted).sum::<f64>() / float(to_u64(runs.len().max(1)));
        let batches = batches(strata, runs, &lifetimes, to_usize(per_sm.max(1)));
        let results: u64 = runs.iter().map(|run| to_u64(run.chosen.len())).sum();
        let left = 1.0 - float(results) / float(strata.ctas().max(1));
        let sampling = interval(&batches) * left.max(0.0).sqrt() / whole;
        let widest = |refilled: bool| {
            let ends = runs.iter().map(|run| EndTimes::of(run, per_sm));
            let deviation =
                ends.filter(|ends| ends.refilled == refilled).map(|ends| ends.deviation);
            deviation.fold(0.0, f64::max) / cycles.max(1.0)
        };
        Self { cycles, half_width: sampling.hypot(widest(false)), tail: widest(true) }
    }
}

fn stratum(strata: &Strata, cta: u64) -> usize {
    to_usize(strata.of[to_usize(cta)])
}

/// Mean lifetimes by stratum.
struct MeanLifetimes(Vec<f64>);

impl MeanLifetimes {
    /// A stratum without a CTA in any run gets a lifetime in proportion to its instructions.
    fn of(strata: &Strata, runs: &[Sampled]) -> Self {
        let mut sums = vec![(0.0, 0_u64); strata.sizes.len()];
        let (mut life, mut work) = (0.0, 0.0);
        for run in runs {
            for span in &run.spans {
                let cta = run.chosen[to_usize(span.ordinal)];
                let sum = &mut sums[stratum(strata, cta)];
                sum.0 += float(span.end - span.start);
                sum.1 += 1;
                life += float(span.end - span.start);
                work += float(strata.work[to_usize(cta)]);
            }
        }
        let mut works = vec![0.0; strata.sizes.len()];
        for (&number, &own) in strata.of.iter().zip(&strata.work) {
            works[to_usize(number)] += float(own);
        }
        let guess =
            |number: usize| works[number] / float(strata.sizes[number]) * life / work.max(1.0);
        let mean = |(number, &(sum, count)): (usize, &(f64, u64))| {
            if count > 0 { sum / float(count) } else { guess(number) }
        };
        Self(sums.iter().enumerate().map(mean).collect())
    }

    /// The mean lifetime in a mix of strata, at least one cycle.
    fn mean(&self, counts: impl Iterator<Item = u64>) -> f64 {
        let (mut sum, mut all) = (0.0, 0.0);
        for (life, count) in self.0.iter().zip(counts) {
            sum += life * float(count);
            all += float(count);
        }
        if all > 0.0 { (sum / all).max(1.0) } else { 1.0 }
    }
}

/// Means over batches of the deviations of lifetimes from their strata's means.
fn batches(strata: &Strata, runs: &[Sampled], lifetimes: &MeanLifetimes, size: usize) -> Vec<f64> {
    let mut means = Vec::new();
    for run in runs {
        let mut spans = run.spans.clone();
        spans.sort_unstable_by_key(|span| (span.sm, span.ordinal));
        for on_sm in spans.chunk_by(|a, b| a.sm == b.sm) {
            for batch in on_sm.chunks(size) {
                let beyond = |span: &CtaSpan| {
                    let cta = run.chosen[to_usize(span.ordinal)];
                    float(span.end - span.start) - lifetimes.0[stratum(strata, cta)]
                };
                means.push(batch.iter().map(beyond).sum::<f64>() / float(to_u64(batch.len())));
            }
        }
    }
    means
}

/// Half of Student's interval of a mean.
fn interval(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::INFINITY;
    }
    let freedom = float(to_u64(values.len() - 1));
    let student = StudentsT::new(0.0, 1.0, freedom).expect("the degrees of freedom are positive");
    let t = student.inverse_cdf(f64::midpoint(1.0, CONFIDENCE));
    t * deviation(values) / float(to_u64(values.len())).sqrt()
}

fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / float(to_u64(values.len()));
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / float(to_u64(values.len() - 1))).sqrt()
}

/// The end times of the SMs on which the launch's end depends.
struct EndTimes {
    sms: f64,
    /// Standard deviation in cycles.
    deviation: f64,
    /// SMs took further CTAs as they became free.
    refilled: bool,
}

impl EndTimes {
    /// Those of all SMs if they took further CTAs as they became free; if all CTAs were resident
    /// at once, those of the SMs with the most CTAs.
    fn of(run: &Sampled, per_sm: u32) -> Self {
        let sms = run.spans.iter().map(|span| usize::from(span.sm) + 1).max().unwrap_or(0);
        let mut ends = vec![(0_u64, 0_u64); sms];
        for span in &run.spans {
            let end = &mut ends[usize::from(span.sm)];
            *end = (end.0 + 1, end.1.max(span.end));
        }
        let most = ends.iter().map(|end| end.0).max().unwrap_or(0);
        let refilled = most > u64::from(per_sm);
        let least = if refilled { 1 } else { most };
        let last: Vec<f64> = ends.iter().filter(|e| e.0 >= least).map(|e| float(e.1)).collect();
        Self { sms: float(to_u64(last.len())), deviation: deviation(&last), refilled }
    }

    /// Expected cycles by which the last of `times` as many SMs ends later: from the expected
    /// largest of normal values, or of uniform ones if SMs took further CTAs as they became free,
    /// since these end within a CTA's lifetime.
    fn extra_cycles(&self, times: f64) -> f64 {
        let largest = if self.refilled { largest_uniform } else { largest };
        self.deviation * (largest(self.sms * times) - largest(self.sms))
    }
}

/// The expected largest of `count` values in standard deviations beyond their mean
/// (Blom 1958).
fn largest(count: f64) -> f64 {
    let normal = Normal::standard();
    normal.inverse_cdf((count.max(1.0) - 0.375) / (count.max(1.0) + 0.25))
}

/// The same of values uniform over an interval.
fn largest_uniform(count: f64) -> f64 {
    let count = count.max(1.0);
    12.0_f64.sqrt() * (count / (count + 1.0) - 0.5)
}

/// The systematic error of a part of the machine, relative to the cycles: half of an interval,
/// in addition to the sampling error. Fitted to seven launches on a GV100 with 80 SMs, run on
/// parts of five.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bias {
    /// Waiting accesses collide more on many channels than on few; as many wait as in front of
    /// an equally busy server.
    pub(super) contention: f64,
}

impl Bias {
    /// For every launch: code that all SMs fetch at once, CTAs in lockstep.
    const ALWAYS: f64 = 0.02;
    /// Per waiting access.
    const WAITING: f64 = 0.17;

    /// For a launch that takes the share `busy` of the DRAM's bandwidth.
    pub(super) fn of(busy: f64) -> Self {
        let busy = busy.clamp(0.0, 0.99);
        Self { contention: Self::WAITING * busy * busy / (1.0 - busy) }
    }

    /// Half of the interval's width.
    pub(super) fn half_width(self) -> f64 {
        Self::ALWAYS + self.contention
    }
}

#[cfg(test)]
mod tests {
    use gpumodel_sim::CtaSpan;

    use super::{Bias, Estimate, Sampled, Strata};

    /// One run on two SMs, one CTA after the other; `life` by CTA.
    fn run(chosen: Vec<u64>, life: impl Fn(u64) -> u64) -> Sampled {
        let mut at = [0, 0];
        let mut spans = Vec::new();
        for (ordinal, &cta) in chosen.iter().enumerate() {
            let sm = ordinal % 2;
            let (start, end) = (at[sm], at[sm] + life(cta));
            at[sm] = end;
            spans.push(CtaSpan {
                kernel: 0,
                ordinal: ordinal as u64,
                sm: u16::from(sm == 1),
                start,
                end,
            });
        }
        Sampled { chosen, spans, cycles: at[0].max(at[1]), outside_reads: 0 }
    }

    #[test]
    fn equal_ctas_leave_nothing_open() {
        let strata = Strata::new(&[(1, 10); 100]);
        let estimate = Estimate::of(&strata, &[run((0..10).collect(), |_| 50)], 1, 16.0);
        assert_eq!(estimate, Estimate { cycles: 250.0, half_width: 0.0, tail: 0.0 });
    }

    #[test]
    fn a_sample_with_too_many_long_ctas_is_weighted_right() {
        // A quarter of the launch has a long path; half of the sample has.
        let ctas: Vec<(u64, u64)> = (0..100).map(|cta| (u64::from(cta % 4 == 0), 10)).collect();
        let strata = Strata::new(&ctas);
        let chosen = vec![0, 1, 4, 5, 8, 9, 12, 13];
        let one = run(chosen, |cta| if cta % 4 == 0 { 100 } else { 20 });
        let (sample, whole) = (60.0, 40.0);
        let cycles = one.cycles as f64 * whole / sample;
        assert!((Estimate::of(&strata, &[one], 1, 1.0).cycles - cycles).abs() < 1e-9);
    }

    #[test]
    fn scatter_widens_the_interval_and_more_runs_narrow_it() {
        let strata = Strata::new(&[(1, 10); 400]);
        let life = |cta: u64| 100 + cta * 37 % 60;
        let runs: Vec<Sampled> =
            (0..4).map(|set| run((0..20).map(|k| set + 4 * k).collect(), life)).collect();
        let one = Estimate::of(&strata, &runs[..1], 1, 1.0);
        let four = Estimate::of(&strata, &runs, 1, 1.0);
        assert!(one.half_width > four.half_width && four.half_width > 0.0, "{one:?} {four:?}");
    }

    #[test]
    fn a_single_batch_says_nothing() {
        let strata = Strata::new(&[(1, 10); 4]);
        assert!(Estimate::of(&strata, &[run(vec![0], |_| 5)], 8, 1.0).half_width.is_infinite());
    }

    #[test]
    fn the_last_of_many_sms_ends_later_than_the_last_of_two() {
        let strata = Strata::new(&[(1, 10); 400]);
        let one = run((0..20).collect(), |cta| 100 + 10 * (cta % 2));
        let cycles = |times| Estimate::of(&strata, std::slice::from_ref(&one), 1, times).cycles;
        assert!((cycles(1.0) - 1100.0).abs() < 1e-9);
        // Ends 1000 and 1100 deviate by 70.7; evenly strewn, the largest of 2 is
        // 0.577 of that beyond the mean, the largest of 32 is 1.627.
        assert!((cycles(16.0) - 1100.0 - 70.7 * 1.05).abs() < 1.0, "{}", cycles(16.0));
        let run = Sampled {
            spans: one.spans[..2].to_vec(),
            chosen: vec![0, 1],
            cycles: 110,
            outside_reads: 0,
        };
        let at_once = Estimate::of(&strata, &[run], 1, 16.0).cycles;
        // Of normal values 0.59 and 2.07 of the 7.07 between them.
        assert!((at_once - 110.0 - 7.07 * 1.48).abs() < 0.2, "{at_once}");
    }

    #[test]
    fn a_busy_memory_widens_the_bias() {
        assert!((Bias::of(0.0).half_width() - Bias::ALWAYS).abs() < 1e-12);
        assert!(Bias::of(0.6).contention > 4.0 * Bias::of(0.35).contention);
        assert!(Bias::of(1.0).contention.is_finite());
    }
}
