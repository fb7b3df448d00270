//! What is said of an application alone, a sentence each: what it took of the machine, what it
//! assumes, how much of it was run.

use std::collections::BTreeMap;

use gpumodel_core::units::to_u64;

use super::number::{energy, float, grouped, percent};
use crate::results::AppRecord;

/// Energy, and how busy units and stores were; `None` where the record says neither.
pub(super) fn effort(app: &AppRecord) -> Option<String> {
    let joules = app.energy_joules.map(|joules| format!("energy {}", energy(joules)));
    let busy = app.utilization.map(|busy| {
        let shares = [
            ("ALU", busy.alu),
            ("SFU", busy.sfu),
            ("LD/ST", busy.load_store),
            ("registers", busy.registers),
            ("shared memory", busy.shared),
        ];
        let words = shares.map(|(name, share)| format!("{name} {}", percent(Some(share))));
        format!("in use: {}", words.join(", "))
    });
    let said: Vec<String> = [joules, busy].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Share of the instructions from which on an assumption is named.
const NAMED: f64 = 0.01;

/// What at least a hundredth of the warp instructions of `app` leans on, most
/// first; `None` without such.
pub(super) fn leaning(app: &AppRecord) -> Option<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for open in app.kernels.iter().flat_map(|kernel| &kernel.assumptions) {
        *sums.entry(&open.what).or_default() += open.instructions;
    }
    let all = float(app.warp_instructions.max(1));
    let mut named: Vec<(&str, f64)> =
        sums.into_iter().map(|(what, count)| (what, float(count) / all)).collect();
    named.retain(|(_, share)| *share >= NAMED);
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> =
        named.iter().map(|(what, share)| format!("{what} {}", percent(Some(*share)))).collect();
    (!words.is_empty()).then(|| format!("leans on: {}", words.join(", ")))
}

/// What was sampled of `app`, with the interval of its cycles; `None` when every
/// CTA ran. Intervals of launches add as those of independent estimates do.
pub(super) fn sentence(app: &AppRecord) -> Option<String> {
    let sampled = app.kernels.iter().filter_map(|kernel| kernel.sample.as_ref());
    let (mut launches, mut ran, mut all, mut squares, mut confidence) = (0, 0, 0, 0.0, 0.0);
    for sample in sampled.filter(|sample| sample.ctas_run < sample.ctas) {
        launches += 1;
        ran += sample.ctas_run;
        all += sample.ctas;
        squares += (float(sample.cycles_high - sample.cycles_low) / 2.0).powi(2);
        confidence = sample.confidence;
    }
    (launches > 0).then(|| {
        let plural = if launches == 1 { "" } else { "es" };
        format!(
            "sampled: {} of {} CTAs of {launches} launch{plural}, the rest extrapolated; the cycles are within {:.1} % ({:.0} % interval; {} launches ran whole)",
            grouped(ran),
            grouped(all),
            100.0 * squares.sqrt() / float(app.cycles.max(1)),
            100.0 * confidence,
            to_u64(app.kernels.len()) - launches,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::effort;
    use crate::results::{AppRecord, UtilizationRecord};

    #[test]
    fn only_what_is_recorded_is_said() {
        let mut app = AppRecord::default();
        assert_eq!(effort(&app), None);
        app.energy_joules = Some(0.004_86);
        assert_eq!(effort(&app).unwrap(), "energy 4.86 mJ");
        app.utilization = Some(UtilizationRecord { alu: 0.5, ..UtilizationRecord::default() });
        let said = effort(&app).unwrap();
        assert!(said.starts_with("energy 4.86 mJ; in use: ALU 50 %, SFU 0 %,"), "{said}");
    }
}

#[cfg(test)]
mod assumption_tests {
    use super::leaning;
    use crate::results::{AppRecord, AssumptionRecord, KernelRecord};

    #[test]
    fn what_few_instructions_lean_on_is_left_to_the_record() {
        let open = |what: &str, instructions| AssumptionRecord {
            what: what.to_owned(),
            instructions,
            ..AssumptionRecord::default()
        };
        let kernel = |instructions| KernelRecord {
            assumptions: vec![open("a", instructions), open("b", 2)],
            ..KernelRecord::default()
        };
        let kernels = vec![kernel(60), kernel(40)];
        let app = AppRecord { warp_instructions: 1000, kernels, ..AppRecord::default() };
        assert_eq!(leaning(&app).unwrap(), "leans on: a 10 %");
        assert_eq!(leaning(&AppRecord::default()), None);
    }
}

#[cfg(test)]
mod sample_tests {
    use super::sentence;
    use crate::results::{AppRecord, KernelRecord, SampleRecord};

    #[test]
    fn it_speaks_only_of_what_was_sampled() {
        let sample = SampleRecord {
            ctas_run: 64,
            ctas: 1024,
            confidence: 0.95,
            cycles_low: 980,
            cycles_high: 1020,
            ..SampleRecord::default()
        };
        let kernels = vec![
            KernelRecord { sample: Some(sample), ..KernelRecord::default() },
            KernelRecord::default(),
        ];
        let app = AppRecord { cycles: 2000, kernels, ..AppRecord::default() };
        let said = sentence(&app).unwrap();
        assert!(said.starts_with("sampled: 64 of 1\u{a0}024 CTAs of 1 launch,"), "{said}");
        assert!(said.contains("within 1.0 % (95 % interval;"), "{said}");
        assert_eq!(sentence(&AppRecord::default()), None);
    }
}
