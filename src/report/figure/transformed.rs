//! What the form of persistent workers costs: time and registers of each application
//! over those as written (ARCS 2018, Fig. 8).

use super::prelude::*;
use crate::results::WorkersRecord;

/// Applications that are drawn; the means are over all.
const APPS: usize = 30;

/// Applications up to which values stand above the bars.
const LABELLED: usize = 14;

/// What is missing where nothing ran as workers.
const MISSING: &str = "no application ran alone as persistent workers and as written; run `gpumodel analyze APP --scheme pt --json FILE`";

/// One application: its form over itself as written.
struct Row<'a> {
    label: String,
    run: SoloRun<'a>,
    workers: &'a WorkersRecord,
    solo_cycles: u64,
}

impl Row<'_> {
    fn time(&self) -> Option<f64> {
        ratio(float(self.run.app.cycles), float(self.solo_cycles))
    }

    fn registers(&self) -> Option<f64> {
        ratio(float(self.workers.registers), float(self.workers.registers_as_written))
    }
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let rows = rows(input);
    ensure(!rows.is_empty(), MISSING)?;
    let mut layout = input.layout("Kernels as persistent workers over themselves as written");
    layout.legend(&Entry::fills(&["time", "registers"]));
    let means = means(&rows);
    Bars::new(&clusters(&rows, means), "normalised").reference(1.0).draw(&mut layout);
    let schemes = distinct(rows.iter().map(|row| row.run.run.scheme.as_str())).join(", ");
    layout
        .note(&format!("Each alone, under {schemes} with as many workers as fit; less is better."));
    layout.left_out(rows.len().saturating_sub(APPS), "applications are in the mean and not drawn");
    Ok(layout.finish(&input.footer()).with_csv(table(&rows, means)))
}

/// The first run of each application with as many workers as fit.
fn rows<'a>(input: &FigureInput<'a>) -> Vec<Row<'a>> {
    let all = |run: &&SoloRun<'_>| {
        let few = run.setting("ctas").is_some_and(|ctas| ctas > 0);
        run.app.workers.is_some() && !few
    };
    let row = |subject: Subject<'a>| {
        let run = *subject.runs.iter().find(all)?;
        let (workers, solo) = (run.app.workers.as_ref()?, run.solo()?);
        Some(Row { label: subject.label, run, workers, solo_cycles: solo.cycles })
    };
    subjects(&input.whole_solo_runs()).into_iter().filter_map(row).collect()
}

/// The geometric mean of times and of registers.
fn means(rows: &[Row<'_>]) -> [Option<f64>; 2] {
    let mean = |of: fn(&Row<'_>) -> Option<f64>| {
        geometric_mean(&rows.iter().filter_map(of).collect::<Vec<f64>>())
    };
    [mean(|row| row.time()), mean(|row| row.registers())]
}

fn clusters(rows: &[Row<'_>], means: [Option<f64>; 2]) -> Vec<Cluster> {
    let labelled = rows.len() <= LABELLED;
    let cluster =
        |row: &Row<'_>| Cluster::new(&row.label, vec![row.time(), row.registers()], labelled);
    let mean = (rows.len() > 1).then(|| Cluster::mean("GMEAN", means.into()));
    rows.iter().take(APPS).map(cluster).chain(mean).collect()
}

fn table(rows: &[Row<'_>], [time, registers]: [Option<f64>; 2]) -> String {
    let line = |row: &Row<'_>| {
        let (cycles, solo, time) = (row.run.app.cycles, row.solo_cycles, row.time());
        let (form, written) = (row.workers.registers, row.workers.registers_as_written);
        row![row.label, cycles, solo, time, form, written, row.registers()]
    };
    let mean = row!["GMEAN", "", "", time, "", "", registers];
    let lines = rows.iter().map(line).chain([mean]);
    csv("app,cycles,solo_cycles,time,registers,registers_as_written,register_ratio", lines)
}
