//! How much of an application was run, in one sentence.

use crate::results::AppRecord;
use gpumodel_core::units::to_u64;

use super::number::{float, grouped};

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
