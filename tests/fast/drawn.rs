//! What every figure of one record is drawn from.

use gpumodel::report::ReportError;
use gpumodel::report::figure::{Drawing, Figure, FigureInput, Source};
use gpumodel::report::results::{Analysis, Comparison, ReferenceTable};

use crate::shown::data;
use crate::shown_mixes::mixes;
use crate::shown_queue::{TWENTY, queued};
use crate::shown_slices::{sliced, surfaces};
use crate::shown_study::{apart, hosted, pairs};

/// What the figure `name` of `record` is drawn from: other records where it holds nothing
/// that the figure shows.
pub(crate) fn shown(name: &str, record: &Analysis) -> Result<Vec<Analysis>, ReportError> {
    let queues = Figure::named(name)?.source == Source::Queues && record.queues.is_empty();
    Ok(match name {
        "occupancy" => swept(record),
        _ if queues => vec![queued(TWENTY)],
        "makespan" => pairs(3, false),
        "app-time" => hosted(3, false),
        "sorted" | "reallocation" | "qos" | "energy" => mixes(3, false),
        "slice-speed" => sliced(3, false),
        "slice-surface" => surfaces(3, false),
        "sm-scaling" | "ctas" | "transformed" | "task-size" => apart(3, false),
        _ => vec![record.clone()],
    })
}

/// Those of `records` of which the figure `name` shows one.
pub(crate) fn input<'a>(
    name: &str,
    records: &'a [Analysis],
) -> Result<FigureInput<'a>, ReportError> {
    let input = FigureInput::new(records);
    if name == "timeline" { input.only(&records[0].solo[0].app) } else { Ok(input) }
}

/// `records` against the committed reference table.
pub(crate) fn compared(records: &[Analysis]) -> Comparison {
    Comparison::new(records, &ReferenceTable::read(&data("runs.csv")).unwrap(), None)
}

/// The figure `name` of `record`.
pub(crate) fn draw(name: &str, record: &Analysis) -> Result<Drawing, ReportError> {
    let records = shown(name, record)?;
    let comparison = compared(&records);
    Figure::named(name)?.draw(&input(name, &records)?.with(&comparison))
}

/// `record` again on a machine that takes one to four CTAs per SM. Speed grows with
/// the first three and falls with the fourth.
fn swept(record: &Analysis) -> Vec<Analysis> {
    let run = |ctas: u32| {
        let mut run = record.clone();
        run.overrides.insert("sm.max_ctas".into(), ctas.to_string());
        for kernel in run.solo.iter_mut().flat_map(|app| &mut app.kernels) {
            kernel.ctas_per_sm = ctas;
            let speed = [1, 2, 4, 3][usize::try_from(ctas - 1).unwrap()];
            kernel.thread_instructions = kernel.thread_instructions.saturating_mul(speed);
        }
        run
    };
    (1..=4).map(run).collect()
}
