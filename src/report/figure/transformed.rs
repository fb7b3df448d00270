//! What the form of persistent workers costs: time and registers of each application
//! over those as written (ARCS 2018, Fig. 8); one panel per machine, as no mean spans two.

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
    /// What to call it, with its machine where there are several.
    label: String,
    run: SoloRun<'a>,
    workers: &'a WorkersRecord,
    solo_cycles: u64,
}

/// The applications of one machine, and their geometric means of times and of registers.
struct Part<'a> {
    panel: MachinePanel,
    rows: Vec<&'a Row<'a>>,
    means: [Option<f64>; 2],
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
    let records: Vec<&Analysis> = rows.iter().map(|row| row.run.record).collect();
    let names = rows.iter().map(|row| last_component(&row.run.app.app).to_owned());
    let (panels, notes) = machine_panels(&records, &names.collect::<Vec<_>>());
    let parts: Vec<Part<'_>> = panels.into_iter().map(|panel| Part::of(panel, &rows)).collect();
    let mut layout = input.layout("Kernels as persistent workers over themselves as written");
    layout.legend(&Entry::fills(&["time", "registers"]));
    let room = APPS / parts.len();
    let drawn: Vec<Vec<Cluster>> = parts.iter().map(|part| part.clusters(room)).collect();
    let most = highest(drawn.iter().flatten());
    for (part, clusters) in parts.iter().zip(&drawn) {
        part.panel.head(&mut layout);
        Bars::new(clusters, "ratio").reference(1.0).most(most).draw(&mut layout);
    }
    notes.iter().for_each(|note| layout.note(note));
    let schemes = distinct(rows.iter().map(|row| row.run.run.scheme.as_str())).join(", ");
    layout
        .note(&format!("Each alone, under {schemes} with as many workers as fit; less is better."));
    let left = parts.iter().map(|part| part.rows.len().saturating_sub(room));
    layout.left_out(left.sum(), "applications are in the mean and not drawn");
    Ok(layout.finish(&input.footer()).with_csv(table(&rows, &parts)))
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

impl<'a> Part<'a> {
    fn of(panel: MachinePanel, rows: &'a [Row<'a>]) -> Self {
        let rows: Vec<&Row<'_>> = panel.places.iter().map(|&place| &rows[place]).collect();
        let mean = |of: fn(&Row<'_>) -> Option<f64>| {
            geometric_mean(&rows.iter().filter_map(|row| of(row)).collect::<Vec<f64>>())
        };
        let means = [mean(|row| row.time()), mean(|row| row.registers())];
        Self { panel, rows, means }
    }

    /// The first `most` of its applications, and the mean of all where there are several.
    fn clusters(&self, most: usize) -> Vec<Cluster> {
        let labelled = self.rows.len() <= LABELLED;
        let cluster = |(row, label): (&&Row<'_>, &String)| {
            Cluster::new(label, vec![row.time(), row.registers()], labelled)
        };
        let several = self.rows.len() > 1 && self.panel.alike;
        let mean = several.then(|| Cluster::mean("GMEAN", self.means.into()));
        let drawn = self.rows.iter().zip(&self.panel.labels).take(most).map(cluster);
        drawn.chain(mean).collect()
    }
}

fn table(rows: &[Row<'_>], parts: &[Part<'_>]) -> String {
    let line = |row: &Row<'_>| {
        let (cycles, solo, time) = (row.run.app.cycles, row.solo_cycles, row.time());
        let (form, written) = (row.workers.registers, row.workers.registers_as_written);
        row![row.label, cycles, solo, time, form, written, row.registers()]
    };
    let mean = |part: &Part<'_>| {
        let [time, registers] = part.means;
        row![part.panel.mean_name("GMEAN"), "", "", time, "", "", registers]
    };
    let means = parts.iter().filter(|part| part.panel.alike).map(mean);
    let lines = rows.iter().map(line).chain(means);
    csv("app,cycles,solo_cycles,time,registers,registers_as_written,register_ratio", lines)
}
