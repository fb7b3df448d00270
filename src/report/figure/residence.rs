//! How much of an SM the CTAs of each kernel take where as many are resident as fit:
//! one cluster of bars per kernel (ARCS 2018, Fig. 2).

use super::prelude::*;

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

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let (rows, left_out) = input.profiles(KERNELS, |kernel| kernel.residence.clone());
    let missing = format!("no kernel of the records says what its CTAs take of an SM; {NO_SOLO}");
    ensure(!rows.is_empty(), missing)?;
    let mut layout = input.layout("What resident CTAs take of an SM");
    layout.legend(&Entry::fills(&RESOURCES.map(|(_, name)| name)));
    let labelled = rows.len() <= LABELLED;
    let cluster = |row: &Profile| {
        let values = RESOURCES.map(|(key, _)| row.shares.get(key).map(|share| share * 100.0));
        Cluster::new(&row.label, values.into(), labelled)
    };
    let clusters: Vec<Cluster> = rows.iter().map(cluster).collect();
    Bars::new(&clusters, "% of an SM").reference(100.0).draw(&mut layout);
    layout.note("Of an SM that holds as many CTAs as fit.");
    layout.left_out(left_out, MORE_KERNELS);
    Ok(layout.finish(&input.footer()).with_csv(table(&rows)))
}

fn table(rows: &[Profile]) -> String {
    let line = |row: &Profile| {
        let [registers, shared, threads, slots] = RESOURCES.map(|(key, _)| row.shares.get(key));
        row![row.label, row.launches, registers, shared, threads, slots]
    };
    csv("kernel,launches,registers,shared,threads,cta_slots", rows.iter().map(line))
}
