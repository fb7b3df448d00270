//! What the form of persistent workers costs: time and registers of each application
//! over those as written (ARCS 2018, Fig. 8).

use super::{Drawing, FigureInput, ReportError, empty};
use crate::chart::{Bars, Cluster, Entry, Fill, Swatch};
use crate::number::{float, ratio};
use crate::results::WorkersRecord;
use crate::results::statistics::geometric_mean;
use crate::solo_run::{SoloRun, Subject, subjects};
use crate::values::{cell, csv};

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

pub(super) fn draw(input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
    let rows = rows(input);
    if rows.is_empty() {
        return Err(empty("transformed", MISSING));
    }
    let mut sheet = input.sheet("Kernels as persistent workers over themselves as written");
    let fills = [Fill::of(0), Fill::of(1)];
    sheet.legend(&[
        Entry::new(Swatch::Fill(fills[0]), "time"),
        Entry::new(Swatch::Fill(fills[1]), "registers"),
    ]);
    let means = means(&rows);
    let title = "normalised";
    let clusters = clusters(&rows, means);
    Bars { clusters: &clusters, fills: &fills, title, reference: Some(1.0), most: 0.0 }
        .draw(&mut sheet);
    let mut schemes: Vec<&str> = rows.iter().map(|row| row.run.run.scheme.as_str()).collect();
    schemes.dedup();
    let schemes = schemes.join(", ");
    sheet
        .note(&format!("Each alone, under {schemes} with as many workers as fit; less is better."));
    if rows.len() > APPS {
        let left = rows.len() - APPS;
        sheet.note(&format!("{left} more applications are in the mean and not drawn."));
    }
    Ok(sheet.finish(&input.footer()).with_csv(table(&rows, means)))
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
    subjects(&input.alone()).into_iter().filter_map(row).collect()
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
    let cluster = |(name, values): (&str, [Option<f64>; 2])| Cluster {
        name: name.into(),
        values: values.into(),
        labelled,
        ends: Vec::new(),
        mean: false,
    };
    let drawn =
        rows.iter().take(APPS).map(|row| (row.label.as_str(), [row.time(), row.registers()]));
    let mut clusters: Vec<Cluster> = drawn.map(cluster).collect();
    if rows.len() > 1 {
        clusters.push(Cluster { labelled: true, mean: true, ..cluster(("GMEAN", means)) });
    }
    clusters
}

fn table(rows: &[Row<'_>], [time, registers]: [Option<f64>; 2]) -> String {
    let line = |row: &Row<'_>| {
        let (cycles, solo) = (row.run.app.cycles.to_string(), row.solo_cycles.to_string());
        let (form, written) = (row.workers.registers, row.workers.registers_as_written);
        let (form, written) = (form.to_string(), written.to_string());
        [row.label.clone(), cycles, solo, cell(row.time()), form, written, cell(row.registers())]
    };
    let mut lines: Vec<[String; 7]> = rows.iter().map(line).collect();
    let none = String::new;
    lines.push(["GMEAN".into(), none(), none(), cell(time), none(), none(), cell(registers)]);
    let header = [
        "app",
        "cycles",
        "solo_cycles",
        "time",
        "registers",
        "registers_as_written",
        "register_ratio",
    ];
    csv(header, lines)
}
