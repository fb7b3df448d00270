//! How much of an SM the CTAs of each kernel take where as many are resident as fit:
//! one cluster of bars per kernel (ARCS 2018, Fig. 2).

use super::{Drawing, FigureInput, NO_SOLO, ReportError, empty};
use crate::chart::{Bars, Cluster, Entry, Fill, Swatch};
use crate::profile::{Profile, profiles};
use crate::values::{cell, csv};

/// Kernels that are drawn.
const KERNELS: usize = 24;

/// Kernels up to which values stand above the bars.
const LABELLED: usize = 12;

/// Resources as the record and as the legend calls them.
const RESOURCES: [(&str, &str); 4] = [
    ("registers", "registers"),
    ("shared", "shared memory"),
    ("threads", "threads"),
    ("cta_slots", "CTA slots"),
];

pub(super) fn draw(input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
    let (rows, left_out) = profiles(input.runs(), KERNELS, |kernel| kernel.residence.clone());
    if rows.is_empty() {
        let missing =
            format!("no kernel of the records says what its CTAs take of an SM; {NO_SOLO}");
        return Err(empty("residence", &missing));
    }
    let mut sheet = input.sheet("What resident CTAs take of an SM");
    let fills: Vec<Fill> = (0..RESOURCES.len()).map(Fill::of).collect();
    let entry = |((_, name), fill): (&(&str, &str), &Fill)| Entry::new(Swatch::Fill(*fill), *name);
    sheet.legend(&RESOURCES.iter().zip(&fills).map(entry).collect::<Vec<_>>());
    let cluster = |row: &Profile| Cluster {
        name: row.label.clone(),
        values: RESOURCES.map(|(key, _)| row.shares.get(key).map(|share| share * 100.0)).into(),
        labelled: rows.len() <= LABELLED,
        ends: Vec::new(),
        mean: false,
    };
    let clusters: Vec<Cluster> = rows.iter().map(cluster).collect();
    let title = "% of an SM";
    Bars { clusters: &clusters, fills: &fills, title, reference: Some(100.0), most: 0.0 }
        .draw(&mut sheet);
    sheet.note("Of an SM that holds as many CTAs as fit.");
    if left_out > 0 {
        sheet.note(&format!("{left_out} more kernels, with fewer cycles, are not drawn."));
    }
    Ok(sheet.finish(&input.footer()).with_csv(table(&rows)))
}

fn table(rows: &[Profile]) -> String {
    let line = |row: &Profile| {
        let [registers, shared, threads, slots] =
            RESOURCES.map(|(key, _)| cell(row.shares.get(key).copied()));
        [row.label.clone(), row.launches.to_string(), registers, shared, threads, slots]
    };
    let header = ["kernel", "launches", "registers", "shared", "threads", "cta_slots"];
    csv(header, rows.iter().map(line).collect())
}
