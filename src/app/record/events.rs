//! The lives of CTAs, as records list them.

use gpumodel_core::units::{to_u32, to_u64, to_usize};
use gpumodel_report::results::{CtaRecord, RunEvents};
use gpumodel_sim::Outcome;

/// The CTAs of a run whose machine kept them; `of` gives a launch's application and its place
/// there.
pub(crate) fn ctas(outcome: &Outcome, of: impl Fn(usize) -> (usize, usize)) -> RunEvents {
    let record = |span: &gpumodel_sim::CtaSpan| {
        let (app, launch) = of(to_usize(span.kernel));
        CtaRecord {
            start_cycle: span.start,
            end_cycle: span.end,
            sm: u32::from(span.sm),
            app_index: to_u32(app),
            launch: to_u32(launch + 1),
            ordinal: span.ordinal,
        }
    };
    let mut ctas: Vec<CtaRecord> = outcome.spans.iter().map(record).collect();
    ctas.sort_unstable();
    let ctas_left_out = to_u64(ctas.len().saturating_sub(RunEvents::CTAS));
    ctas.truncate(RunEvents::CTAS);
    RunEvents { ctas, ctas_left_out, ..RunEvents::default() }
}
