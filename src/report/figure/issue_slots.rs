//! Issue-slot utilisation of each kernel, with the line that divides low from high
//! (ARCS 2018, Fig. 3).

use super::{Drawing, FigureInput, NO_SOLO, ReportError, empty};
use crate::chart::{Bars, Cluster, Fill};
use crate::profile::{Profile, profiles};
use crate::results::{KernelRecord, UnitShares};
use crate::values::{cell, csv};

/// Kernels that are drawn.
const KERNELS: usize = 60;

/// Kernels up to which values stand above the bars.
const LABELLED: usize = 19;

/// Less is low (ARCS 2018, section 4.4).
const HIGH: f64 = 0.5;

/// The one share of a profile.
const ISSUED: &str = "issued";

pub(super) fn draw(input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
    let (rows, left_out) = profiles(input.runs(), KERNELS, utilization);
    if rows.is_empty() {
        let missing =
            format!("no kernel of the records says how many issue slots it used; {NO_SOLO}");
        return Err(empty("issue-slots", &missing));
    }
    let mut sheet = input.sheet("Issue-slot utilisation");
    let cluster = |row: &Profile| Cluster {
        name: row.label.clone(),
        values: vec![Some(share(row) * 100.0)],
        labelled: rows.len() <= LABELLED,
        ends: Vec::new(),
        mean: false,
    };
    let clusters: Vec<Cluster> = rows.iter().map(cluster).collect();
    let (fills, title) = ([Fill::of(0)], "% of slots");
    Bars { clusters: &clusters, fills: &fills, title, reference: Some(HIGH * 100.0), most: 0.0 }
        .draw(&mut sheet);
    sheet.note("Slots in which an instruction issued at least; dashed: 50 %, where high begins.");
    if left_out > 0 {
        sheet.note(&format!("{left_out} more kernels, with fewer cycles, are not drawn."));
    }
    Ok(sheet.finish(&input.footer()).with_csv(table(&rows)))
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
        let (launches, cycles) = (row.launches.to_string(), row.cycles.to_string());
        [row.label.clone(), launches, cycles, cell(Some(share(row))), class.into()]
    };
    let header = ["kernel", "launches", "cycles", "issue_slot_utilization", "class"];
    csv(header, rows.iter().map(line).collect())
}
