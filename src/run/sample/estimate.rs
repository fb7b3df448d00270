//! From the lives of a sample's CTAs to the launch: cycles and their interval.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::machine::CtaSpan;
use crate::units::{Cycle, to_u64, to_usize};

use super::strata::Strata;

/// How sure intervals are.
pub(super) const CONFIDENCE: f64 = 0.95;

/// One run of a sample.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    /// The CTAs that ran, in the order of their start.
    pub(super) chosen: Vec<u64>,
    /// Their lives.
    pub(super) spans: Vec<CtaSpan>,
    /// Cycles from the first CTA's start to the last one's end.
    pub(super) cycles: Cycle,
}

/// What samples say of the whole launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// Cycles from the first CTA's start to the last one's end.
    pub(super) cycles: f64,
    /// Half of the interval's width over `cycles`; infinite when the samples are
    /// too few to say.
    pub(super) half_width: f64,
}

impl Estimate {
    /// The estimate from runs of samples; `per_sm` CTAs are resident on an SM.
    ///
    /// Cycles are those of the runs, times the mean life of a CTA in the launch's
    /// mix of strata over that in the sample's mix. The interval is Student's over
    /// batches of as many CTAs as are resident on an SM: what a batch's lives are
    /// beside the means of their strata, less what the sample leaves of the launch
    /// to chance. Where the busiest SMs end apart, that is added as a variance.
    pub(super) fn of(strata: &Strata, runs: &[Sampled], per_sm: u32) -> Self {
        let lives = Lives::of(strata, runs);
        let whole = lives.mean(strata.sizes.iter().copied());
        let adjusted = |run: &Sampled| {
            let mut counts = vec![0_u64; strata.sizes.len()];
            run.chosen.iter().for_each(|&cta| counts[stratum(strata, cta)] += 1);
            float(run.cycles) * whole / lives.mean(counts.into_iter())
        };
        let cycles = runs.iter().map(adjusted).sum::<f64>() / float(to_u64(runs.len().max(1)));
        let batches = batches(strata, runs, &lives, to_usize(per_sm.max(1)));
        let ran: u64 = runs.iter().map(|run| to_u64(run.chosen.len())).sum();
        let left = 1.0 - float(ran) / float(strata.ctas().max(1));
        let sampling = interval(&batches) * left.max(0.0).sqrt() / whole;
        let tail = runs.iter().map(apart).fold(0.0, f64::max) / cycles.max(1.0);
        Self { cycles, half_width: sampling.hypot(tail) }
    }
}

fn stratum(strata: &Strata, cta: u64) -> usize {
    to_usize(strata.of[to_usize(cta)])
}

/// Mean lives by stratum.
struct Lives(Vec<f64>);

impl Lives {
    /// A stratum without a CTA in any run lives as its instructions suggest.
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

    /// The mean life in a mix of strata, at least one cycle.
    fn mean(&self, counts: impl Iterator<Item = u64>) -> f64 {
        let (mut sum, mut all) = (0.0, 0.0);
        for (life, count) in self.0.iter().zip(counts) {
            sum += life * float(count);
            all += float(count);
        }
        if all > 0.0 { (sum / all).max(1.0) } else { 1.0 }
    }
}

/// Means over batches of what lives are beyond their strata's means.
fn batches(strata: &Strata, runs: &[Sampled], lives: &Lives, size: usize) -> Vec<f64> {
    let mut means = Vec::new();
    for run in runs {
        let mut spans = run.spans.clone();
        spans.sort_unstable_by_key(|span| (span.sm, span.ordinal));
        for on_sm in spans.chunk_by(|a, b| a.sm == b.sm) {
            for batch in on_sm.chunks(size) {
                let beyond = |span: &CtaSpan| {
                    let cta = run.chosen[to_usize(span.ordinal)];
                    float(span.end - span.start) - lives.0[stratum(strata, cta)]
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

/// How far apart the SMs with the most CTAs end.
fn apart(run: &Sampled) -> f64 {
    let sms = run.spans.iter().map(|span| usize::from(span.sm) + 1).max().unwrap_or(0);
    let mut ends = vec![(0_u64, 0_u64); sms];
    for span in &run.spans {
        let end = &mut ends[usize::from(span.sm)];
        *end = (end.0 + 1, end.1.max(span.end));
    }
    let most = ends.iter().map(|end| end.0).max().unwrap_or(0);
    let last: Vec<f64> = ends.iter().filter(|e| e.0 == most).map(|e| float(e.1)).collect();
    deviation(&last)
}

#[allow(clippy::cast_precision_loss, reason = "counts and cycles are below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::{Estimate, Sampled};
    use crate::machine::CtaSpan;
    use crate::run::sample::strata::Strata;

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
        Sampled { chosen, spans, cycles: at[0].max(at[1]) }
    }

    #[test]
    fn equal_ctas_leave_nothing_open() {
        let strata = Strata::new(&[(1, 10); 100]);
        let estimate = Estimate::of(&strata, &[run((0..10).collect(), |_| 50)], 1);
        assert_eq!(estimate, Estimate { cycles: 250.0, half_width: 0.0 });
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
        assert!((Estimate::of(&strata, &[one], 1).cycles - cycles).abs() < 1e-9);
    }

    #[test]
    fn scatter_widens_the_interval_and_more_runs_narrow_it() {
        let strata = Strata::new(&[(1, 10); 400]);
        let life = |cta: u64| 100 + cta * 37 % 60;
        let runs: Vec<Sampled> =
            (0..4).map(|set| run((0..20).map(|k| set + 4 * k).collect(), life)).collect();
        let one = Estimate::of(&strata, &runs[..1], 1);
        let four = Estimate::of(&strata, &runs, 1);
        assert!(one.half_width > four.half_width && four.half_width > 0.0, "{one:?} {four:?}");
    }

    #[test]
    fn a_single_batch_says_nothing() {
        let strata = Strata::new(&[(1, 10); 4]);
        assert!(Estimate::of(&strata, &[run(vec![0], |_| 5)], 8).half_width.is_infinite());
    }
}
