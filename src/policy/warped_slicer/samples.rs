//! From counters of SMs to a kernel's curve: eq. 3 and 4.

use std::collections::BTreeMap;

use gpumodel_core::contract;
use gpumodel_core::units::AppId;

use super::super::solve::{self, Sample};
use super::rules::Scaling;

/// One SM during one sampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) app: AppId,
    /// CTAs that it held.
    pub(super) ctas: u32,
    /// Warp instructions per cycle.
    pub(super) ipc: f64,
    /// Share of scheduler slots lost to long memory latency, 0 to 1 (phi).
    pub(super) memory_stalls: f64,
}

/// What is known of one kernel: speeds with 1, 2, ... CTAs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// As sampled.
    ipc: Vec<Option<f64>>,
    /// As the scheme thinks it would be if all SMs held that many CTAs.
    scaled: Vec<Option<f64>>,
}

/// The curves of `apps` from all SMs of all samplings; each sampling by itself has
/// its mean number of CTAs per SM, over all of its SMs (eq. 4).
pub(super) fn curves(samplings: &[Vec<Seen>], scaling: Scaling) -> BTreeMap<AppId, Known> {
    let mut sums: BTreeMap<AppId, BTreeMap<u32, (f64, f64, f64)>> = BTreeMap::new();
    for sampling in samplings {
        let held: Vec<&Seen> = sampling.iter().filter(|seen| seen.ctas > 0).collect();
        let mean = mean(&held);
        for seen in held {
            let factor = scaling.factor(seen.ctas, mean, seen.memory_stalls);
            let sum = sums.entry(seen.app).or_default().entry(seen.ctas).or_default();
            *sum = (sum.0 + seen.ipc, sum.1 + seen.ipc * factor, sum.2 + 1.0);
        }
    }
    sums.into_iter().map(|(app, counts)| (app, Known::mean(&counts))).collect()
}

/// CTAs per SM.
fn mean(held: &[&Seen]) -> f64 {
    let count = held.iter().map(|_| 1.0).sum::<f64>();
    held.iter().map(|seen| f64::from(seen.ctas)).sum::<f64>() / count
}

impl Known {
    /// From the sums of plain and scaled speeds and how many each sums.
    fn mean(counts: &BTreeMap<u32, (f64, f64, f64)>) -> Self {
        let most = counts.last_key_value().map_or(0, |(&most, _)| most);
        let of = |part: &dyn Fn(&(f64, f64, f64)) -> f64| {
            (1..=most).map(|ctas| counts.get(&ctas).map(|sum| part(sum) / sum.2)).collect()
        };
        Self { ipc: of(&|sum| sum.0), scaled: of(&|sum| sum.1) }
    }

    /// Of speeds that need no scaling.
    pub(super) fn plain(ipc: Vec<Option<f64>>) -> Self {
        Self { scaled: ipc.clone(), ipc }
    }

    /// The curve; `None` where nothing was sampled. Where one CTA was not sampled
    /// its speed is the fewest's, divided: splits begin with one.
    pub(super) fn curve(&self) -> Option<solve::Curve> {
        let all = (1..).zip(&self.scaled);
        let mut samples: Vec<Sample> =
            all.filter_map(|(ctas, speed)| speed.map(|speed| Sample { ctas, speed })).collect();
        let first = *samples.first()?;
        if first.ctas > 1 {
            samples.insert(0, Sample { ctas: 1, speed: first.speed / f64::from(first.ctas) });
        }
        solve::Curve::new(&samples).ok()
    }

    /// The curve as a plan keeps it.
    pub(super) fn evidence(&self, app: AppId, chosen: u32) -> contract::Curve {
        let best = self.scaled.iter().flatten().fold(0.0_f64, |best, &speed| best.max(speed));
        let against = |speed: &f64| if best > 0.0 { speed / best } else { 0.0 };
        let normalized = self.scaled.iter().map(|speed| speed.as_ref().map(against)).collect();
        contract::Curve { app, ipc: self.ipc.clone(), normalized, chosen }
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Scaling, Seen, curves};
    use gpumodel_core::units::AppId;

    fn seen(ctas: u32, ipc: f64, memory_stalls: f64) -> Seen {
        Seen { app: AppId(0), ctas, ipc, memory_stalls }
    }

    fn close(found: &[Option<f64>], expected: &[f64]) {
        let found: Vec<f64> = found.iter().map(|speed| speed.unwrap()).collect();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
        }
    }

    #[test]
    fn who_had_fewer_ctas_than_the_mean_had_too_much_bandwidth() {
        // CTA_avg = 2: psi = -1/2, 0, 1/2.
        let sampling = [vec![seen(1, 1.0, 1.0), seen(2, 1.0, 1.0), seen(3, 1.0, 1.0)]];
        close(&curves(&sampling, Scaling::Printed)[&AppId(0)].scaled, &[0.5, 1.0, 1.5]);
        close(&curves(&sampling, Scaling::Off)[&AppId(0)].scaled, &[1.0, 1.0, 1.0]);
        let inverse = &curves(&sampling, Scaling::Inverse)[&AppId(0)].scaled;
        close(inverse, &[2.0, 1.0, 2.0 / 3.0]);
    }

    #[test]
    fn without_memory_stalls_nothing_is_scaled() {
        let sampling = vec![seen(1, 1.0, 0.0), seen(3, 2.0, 0.5)];
        close(
            &curves(&[sampling.clone(), vec![seen(2, 1.5, 1.0)]], Scaling::Printed)[&AppId(0)]
                .scaled,
            &[1.0, 1.5, 2.5],
        );
        close(
            &curves(&[sampling, vec![seen(2, 1.5, 1.0)]], Scaling::Printed)[&AppId(0)].ipc,
            &[1.0, 1.5, 2.0],
        );
    }

    #[test]
    fn the_mean_is_over_the_sms_of_all_kernels() {
        let other = Seen { app: AppId(1), ..seen(7, 1.0, 0.0) };
        let found = curves(&[vec![seen(1, 1.0, 1.0), other]], Scaling::Printed);
        close(&found[&AppId(0)].scaled, &[0.25]);
        assert_eq!(found[&AppId(1)].scaled.len(), 7);
    }

    #[test]
    fn equal_counts_are_averaged_and_gaps_stay_gaps() {
        let known = &curves(
            &[vec![seen(2, 1.0, 0.0), seen(2, 2.0, 0.0), seen(0, 9.0, 0.0)]],
            Scaling::Printed,
        );
        assert_eq!(known[&AppId(0)].ipc, [None, Some(1.5)]);
        let curve = known[&AppId(0)].curve().unwrap();
        assert_eq!(curve.samples()[0].speed, 0.75, "one CTA as half of two");
        let evidence = known[&AppId(0)].evidence(AppId(0), 2);
        assert_eq!(evidence.normalized, [None, Some(1.0)]);
        assert_eq!(Known::default().curve(), None);
    }
}
