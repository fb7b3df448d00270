//! Slowdown of each application under each sharing scheme: one cluster of bars per
//! scheme, one bar per application.

use super::prelude::*;

/// Mixes that are drawn.
const MIXES: usize = 12;
/// Mixes up to which one stands above the other.
const STACKED: usize = 4;
/// Applications whose bars have room in one of two columns.
const SIDE_BY_SIDE: usize = 14;
/// Height of the bars of one of many mixes.
const STRIP: f64 = 56.0;

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let records = input.mixes()?;
    let named = mix_labels(&records);
    let mut layout = input.layout("Slowdown of each application");
    let drawn = &records[..records.len().min(MIXES)];
    if records.len() > STACKED {
        strips(input, &mut layout, drawn, &named.labels);
    } else {
        panels(input, &mut layout, drawn, &named.labels);
    }
    named.notes.iter().for_each(|note| layout.note(note));
    layout.left_out(records.len() - drawn.len(), "mixes are not drawn");
    if records.iter().any(|record| record.coruns.iter().any(starves)) {
        layout.note("∞: made no progress, or its times are not modelled.");
    }
    layout.note("Solo IPC over shared IPC; 1 is as fast as alone.");
    Ok(layout.finish(&input.footer()).with_csv(table(&records, &mix_names(&records))))
}

/// The largest slowdown of all `records`.
fn top(input: &FigureInput<'_>, records: &[&Analysis]) -> f64 {
    records.iter().map(|record| highest(&clusters(input, record, true))).fold(0.0, f64::max)
}

/// A panel for each of `records`, with its label where there are several.
fn panels(input: &FigureInput<'_>, layout: &mut Layout, records: &[&Analysis], labels: &[String]) {
    for (record, label) in records.iter().zip(labels) {
        if records.len() > 1 {
            layout.note(label);
            layout.skip(3.0);
        }
        layout.legend(&Entry::fills(&apps(input, record)));
        let clusters = clusters(input, record, true);
        let most = top(input, records);
        Bars::new(&clusters, "slowdown").reference(1.0).most(most).draw(layout);
    }
}

/// A low panel, where there is little room without values, for each of many `records`, under one legend; where all have the
/// same schemes, these are named below the last ones.
fn strips(input: &FigureInput<'_>, layout: &mut Layout, records: &[&Analysis], labels: &[String]) {
    let most = records.iter().map(|record| apps(input, record).len()).max().unwrap_or(0);
    let all = distinct(records.iter().map(|record| apps(input, record)));
    if let [apps] = &all[..] {
        layout.legend(&Entry::fills(apps));
    } else {
        layout.legend(&Entry::fills(&(1..=most).map(ordinal).collect::<Vec<_>>()));
    }
    let schemes = |record: &&Analysis| scheme_names(&record.coruns);
    let alike = distinct(records.iter().map(schemes)).len() == 1;
    let columns = if most <= SIDE_BY_SIDE && !layout.narrow() { 2 } else { 1 };
    let top = top(input, records);
    layout.side_by_side(columns, records.len(), |layout, place| {
        layout.note(&labels[place]);
        let last = place + columns >= records.len();
        let clusters = clusters(input, records[place], false);
        let bars = Bars::new(&clusters, "slowdown").reference(1.0).most(top);
        bars.high(STRIP).nameless(alike && !last).silent(layout.narrow()).draw(layout);
    });
}

fn starves(run: &CoRun) -> bool {
    run.apps.iter().any(|app| !app.slowdown.is_finite())
}

/// The applications of a record's largest run.
fn apps<'r>(input: &FigureInput<'_>, record: &'r Analysis) -> Vec<&'r str> {
    let largest = record.coruns.iter().max_by_key(|run| run.apps.len());
    largest.into_iter().flat_map(|run| input.in_order(run)).map(|app| app.app.as_str()).collect()
}

/// What the application at a place of its mix is called, from 1 on.
fn ordinal(place: usize) -> String {
    match place {
        1 => "first of the mix".into(),
        2 => "second".into(),
        3 => "third".into(),
        place => format!("{place}th"),
    }
}

fn clusters(input: &FigureInput<'_>, record: &Analysis, labelled: bool) -> Vec<Cluster> {
    let cluster = |(name, run): (String, &CoRun)| {
        let slowdowns = input.in_order(run).into_iter().map(|app| Some(app.slowdown));
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
