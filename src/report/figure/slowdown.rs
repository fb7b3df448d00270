//! Slowdown of each application under each sharing scheme: one cluster of bars per
//! scheme, one bar per application.

use super::{Drawing, NO_CORUN, ReportError, Scene, empty};
use crate::record::{Analysis, CoRun};
use crate::report::chart::{Bars, Cluster, Entry, Fill, Sheet, Swatch};
use crate::report::mix::{mix_names, scheme_names};
use crate::report::values::{cell, csv};

/// Mixes that are drawn.
const MIXES: usize = 12;

pub(super) fn draw(scene: &Scene<'_>) -> Result<Drawing, ReportError> {
    let records = scene.mixes();
    if records.is_empty() {
        return Err(empty("slowdown", NO_CORUN));
    }
    let names = mix_names(&records);
    let mut sheet = Sheet::new("Slowdown of each application");
    if names.len() == 1 {
        sheet.legend(&entries(records[0]));
    }
    for (record, mix) in records.iter().zip(&names).take(MIXES) {
        if names.len() > 1 {
            sheet.note(mix);
            sheet.skip(3.0);
            sheet.legend(&entries(record));
        }
        let most = record.coruns.iter().map(|run| run.apps.len()).max().unwrap_or(0);
        let fills: Vec<Fill> = (0..most).map(Fill::of).collect();
        let clusters = clusters(record);
        let title = "slowdown";
        Bars { clusters: &clusters, fills: &fills, title, reference: Some(1.0) }.draw(&mut sheet);
    }
    if records.len() > MIXES {
        sheet.note(&format!("{} more mixes are not drawn.", records.len() - MIXES));
    }
    if records.iter().any(|record| record.coruns.iter().any(starves)) {
        sheet.note("∞: made no progress, or its times are not modelled.");
    }
    sheet.note("Solo IPC over shared IPC; 1 is as fast as alone.");
    Ok(sheet.finish(&scene.footer()).with_csv(table(&records, &names)))
}

fn starves(run: &CoRun) -> bool {
    run.apps.iter().any(|app| !app.slowdown.is_finite())
}

/// The applications of a record in their colours.
fn entries(record: &Analysis) -> Vec<Entry> {
    let apps = record.coruns.first().map(|run| run.apps.as_slice()).unwrap_or_default();
    let entry = |(i, name): (usize, &str)| Entry::new(Swatch::Fill(Fill::of(i)), name);
    apps.iter().map(|app| app.app.as_str()).enumerate().map(entry).collect()
}

fn clusters(record: &Analysis) -> Vec<Cluster> {
    let cluster = |(name, run): (String, &CoRun)| Cluster {
        name,
        values: run.apps.iter().map(|app| Some(app.slowdown)).collect(),
        labelled: true,
        ends: Vec::new(),
    };
    scheme_names(&record.coruns).into_iter().zip(&record.coruns).map(cluster).collect()
}

fn table(records: &[&Analysis], names: &[String]) -> String {
    let mut lines = Vec::new();
    for (record, mix) in records.iter().zip(names) {
        for (scheme, run) in scheme_names(&record.coruns).into_iter().zip(&record.coruns) {
            lines.extend(run.apps.iter().map(|app| {
                let progress = cell(Some(app.normalized_progress));
                let slowdown = cell(Some(app.slowdown));
                [mix.clone(), scheme.clone(), app.app.clone(), slowdown, progress]
            }));
        }
    }
    csv(["mix", "scheme", "app", "slowdown", "normalized_progress"], lines)
}
