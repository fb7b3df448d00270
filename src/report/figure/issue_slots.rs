//! Issue-slot utilisation of each kernel, with the line that divides low from high
//! (ARCS 2018, Fig. 3).

use super::prelude::*;
use crate::results::UnitShares;

/// Kernels that are drawn.
const KERNELS: usize = 60;

/// Kernels up to which values stand above the bars.
const LABELLED: usize = 19;

/// Less is low (ARCS 2018, section 4.4).
const HIGH: f64 = 0.5;

/// The one share of a profile.
const ISSUED: &str = "issued";

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let (rows, left_out) = input.profiles(KERNELS, utilization);
    let missing = format!("no kernel of the records says how many issue slots it used; {NO_SOLO}");
    ensure(!rows.is_empty(), missing)?;
    let mut layout = input.layout("Issue-slot utilisation");
    let labelled = rows.len() <= LABELLED;
    let cluster =
        |row: &Profile| Cluster::new(&row.label, vec![Some(share(row) * 100.0)], labelled);
    let clusters: Vec<Cluster> = rows.iter().map(cluster).collect();
    Bars::new(&clusters, "% of slots").reference(HIGH * 100.0).draw(&mut layout);
    layout.note("Share of issue slots in which an instruction was issued; from the dashed line on, 50 %, it is high.");
    layout.left_out(left_out, MORE_KERNELS);
    Ok(layout.finish(&input.footer()).with_csv(table(&rows)))
}

fn utilization(kernel: &KernelRecord) -> Option<UnitShares> {
    let share = kernel.issue_slot_utilization.filter(|_| !kernel.memory_only)?;
    Some([(ISSUED.to_string(), share)].into())
}

fn share(row: &Profile) -> f64 {
    row.shares.get(ISSUED).copied().unwrap_or(0.0)
}

fn table(rows: &[Profile]) -> String {
    let line = |row: &Profile| {
        let class = if share(row) < HIGH { "low" } else { "high" };
        row![row.label, row.launches, row.cycles, share(row), class]
    };
    csv("kernel,launches,cycles,issue_slot_utilization,class", rows.iter().map(line))
}
