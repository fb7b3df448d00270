//! Slowdown of each application under each sharing scheme: one cluster of bars per
//! scheme, one bar per application.

use super::prelude::*;

/// Mixes that are drawn.
const MIXES: usize = 12;
/// Mixes up to which one stands above the other.
const STACKED: usize = 4;
/// Applications whose bars have room in one of two columns.
const SIDE_BY_SIDE: usize = 14;

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let records = input.mixes()?;
    let named = mix_labels(&records);
    let mut layout = input.layout("Slowdown of each application");
    panels(&mut layout, &records[..records.len().min(MIXES)], &named.labels);
    named.notes.iter().for_each(|note| layout.note(note));
    layout.left_out(records.len().saturating_sub(MIXES), "mixes are not drawn");
    if records.iter().any(|record| record.coruns.iter().any(starves)) {
        layout.note("∞: made no progress, or its times are not modelled.");
    }
    layout.note("Solo IPC over shared IPC; 1 is as fast as alone.");
    Ok(layout.finish(&input.footer()).with_csv(table(&records, &mix_names(&records))))
}

/// A panel for each of `records`, with its label where there are several.
fn panels(layout: &mut Layout, records: &[&Analysis], labels: &[String]) {
    let most = records.iter().map(|record| most(record)).max().unwrap_or(0);
    let highest = records.iter().map(|record| highest(&clusters(record, true)));
    let top = highest.fold(0.0, f64::max);
    let side_by_side = records.len() > STACKED && most <= SIDE_BY_SIDE && !layout.narrow();
    let columns = if side_by_side { 2 } else { 1 };
    layout.side_by_side(columns, records.len(), |layout, place| {
        let record = records[place];
        if records.len() > 1 {
            layout.note(&labels[place]);
            layout.skip(3.0);
        }
        layout.legend(&entries(record));
        // In a column, values stand above the bars where there is room.
        let clusters = clusters(record, columns == 1);
        Bars::new(&clusters, "slowdown").reference(1.0).most(top).draw(layout);
    });
}

/// Applications of a record's largest run.
fn most(record: &Analysis) -> usize {
    record.coruns.iter().map(|run| run.apps.len()).max().unwrap_or(0)
}

fn starves(run: &CoRun) -> bool {
    run.apps.iter().any(|app| !app.slowdown.is_finite())
}

/// The applications of a record in their colours.
fn entries(record: &Analysis) -> Vec<Entry> {
    let apps = record.coruns.first().map(|run| run.apps.as_slice()).unwrap_or_default();
    Entry::fills(&apps.iter().map(|app| app.app.as_str()).collect::<Vec<_>>())
}

fn clusters(record: &Analysis, labelled: bool) -> Vec<Cluster> {
    let cluster = |(name, run): (String, &CoRun)| {
        let slowdowns = run.apps.iter().map(|app| Some(app.slowdown));
        Cluster::new(&name, slowdowns.collect(), labelled)
    };
    scheme_names(&record.coruns).into_iter().zip(&record.coruns).map(cluster).collect()
}

fn table(records: &[&Analysis], names: &[String]) -> String {
    let mut lines = Vec::new();
    for (record, mix) in records.iter().zip(names) {
        for (scheme, run) in scheme_names(&record.coruns).into_iter().zip(&record.coruns) {
            lines.extend(
                run.apps
                    .iter()
                    .map(|app| row![mix, scheme, app.app, app.slowdown, app.normalized_progress]),
            );
        }
    }
    csv("mix,scheme,app,slowdown,normalized_progress", lines)
}
