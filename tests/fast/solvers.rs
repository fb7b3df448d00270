//! Do the solvers equal an exhaustive search over splits?

use gpumodel::policy::solve::{
    Amount, Curve, Demand, Sample, Split, Unsolved, exact, water_filling,
};
use proptest::prelude::*;

/// A small SM, so that every resource is scarce in some case.
const SM: Amount =
    Amount { registers: 64, shared_bytes: 48, threads: 1024, warps: 32, cta_slots: 8 };

/// The same with room for 32 CTAs.
const WIDE: Amount = Amount { registers: 128, warps: 64, cta_slots: 32, ..SM };

/// A kernel with any speeds, zeros and equals among them.
fn any_demand(most: usize) -> impl Strategy<Value = Demand> {
    let speed = prop_oneof![
        (0_u32..12).prop_map(f64::from),
        (0_u32..1000).prop_map(|n| f64::from(n) / 7.0),
    ];
    let speeds = proptest::collection::vec(speed, 1..=most);
    let need = (1_u64..20, 0_u64..12, 1_u64..5);
    (need, speeds, any::<bool>()).prop_map(|(need, mut speeds, rising)| {
        if rising {
            speeds.sort_by(f64::total_cmp);
        }
        let (registers, shared_bytes, warps) = need;
        let need = Amount { registers, shared_bytes, threads: 32 * warps, warps, cta_slots: 1 };
        let samples = (1..).zip(speeds).map(|(ctas, speed)| Sample { ctas, speed });
        Demand { need, curve: Curve::new(&samples.collect::<Vec<_>>()).unwrap() }
    })
}

/// Performance of a demand with exactly so many CTAs, from its samples.
fn performance(demand: &Demand, ctas: u32) -> f64 {
    let samples = demand.curve.samples();
    let best = samples.iter().map(|sample| sample.speed).fold(0.0, f64::max);
    let speed = samples.iter().find(|sample| sample.ctas == ctas).unwrap().speed;
    if best > 0.0 { speed / best } else { 0.0 }
}

fn fits(total: Amount, demands: &[Demand], ctas: &[u32]) -> bool {
    (0..Amount::RESOURCES).all(|resource| {
        let of = |(demand, &ctas): (&Demand, &u32)| demand.need.parts()[resource] * u64::from(ctas);
        demands.iter().zip(ctas).map(of).sum::<u64>() <= total.parts()[resource]
    })
}

/// The best (minimum, sum) over all splits, the minimum first.
fn best_of_all(total: Amount, demands: &[Demand]) -> Option<(f64, f64)> {
    let most: Vec<u32> = demands.iter().map(|d| d.curve.samples().last().unwrap().ctas).collect();
    let mut ctas = vec![1; demands.len()];
    let mut best: Option<(f64, f64)> = None;
    loop {
        if fits(total, demands, &ctas) {
            let all: Vec<f64> =
                demands.iter().zip(&ctas).map(|(d, &n)| performance(d, n)).collect();
            let found = (all.iter().copied().fold(1.0, f64::min), all.iter().sum());
            if best.is_none_or(|best| found > best) {
                best = Some(found);
            }
        }
        let Some(next) = (0..ctas.len()).find(|&i| ctas[i] < most[i]) else { return best };
        ctas[..next].fill(1);
        ctas[next] += 1;
    }
}

/// Does the split say the truth about itself?
fn lawful(total: Amount, demands: &[Demand], split: &Split) -> Result<(), TestCaseError> {
    prop_assert!(fits(total, demands, &split.ctas), "{split:?} does not fit");
    for (place, demand) in demands.iter().enumerate() {
        prop_assert_eq!(split.performance[place], performance(demand, split.ctas[place]));
    }
    Ok(())
}

fn agree(total: Amount, demands: &[Demand]) -> Result<(), TestCaseError> {
    let Some((minimum, sum)) = best_of_all(total, demands) else {
        prop_assert_eq!(exact(total, demands), Err(Unsolved::DoesNotFit));
        prop_assert_eq!(water_filling(total, demands), Err(Unsolved::DoesNotFit));
        return Ok(());
    };
    let solved = exact(total, demands).unwrap();
    lawful(total, demands, &solved)?;
    prop_assert_eq!(solved.minimum(), minimum);
    prop_assert!((solved.sum() - sum).abs() < 1e-6, "sum {} of {sum}", solved.sum());
    let filled = water_filling(total, demands).unwrap();
    lawful(total, demands, &filled.split)?;
    prop_assert_eq!(filled.split.minimum(), minimum, "Algorithm 1 reaches the best minimum");
    prop_assert!(filled.split.sum() <= sum + 1e-9);
    let steps: usize = demands.iter().map(|demand| demand.curve.steps().len()).sum();
    prop_assert!(filled.picks as usize <= steps, "{} picks of {steps} steps", filled.picks);
    Ok(())
}

/// After Algorithm 1 no kernel can take the next step: it leaves nothing useful
/// unused.
fn saturated(total: Amount, demands: &[Demand]) -> Result<(), TestCaseError> {
    let Ok(filled) = water_filling(total, demands) else { return Ok(()) };
    for (place, demand) in demands.iter().enumerate() {
        let mut ctas = filled.split.ctas.clone();
        let next = demand.curve.steps().iter().find(|step| step.ctas > ctas[place]);
        if let Some(next) = next {
            ctas[place] = next.ctas;
            prop_assert!(!fits(total, demands, &ctas), "kernel {place} could still grow");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn two_to_four_kernels_of_eight_ctas(
        demands in proptest::collection::vec(any_demand(8), 2..=4),
    ) {
        agree(SM, &demands)?;
        saturated(SM, &demands)?;
    }

    #[test]
    fn two_and_three_kernels_of_thirty_two_ctas(
        demands in proptest::collection::vec(any_demand(32), 2..=3),
    ) {
        agree(WIDE, &demands)?;
        saturated(WIDE, &demands)?;
    }
}
