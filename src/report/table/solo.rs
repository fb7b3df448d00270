//! Each application alone: totals, then one line per kernel.

use std::fmt::Write as _;

use super::{brief, decimal, plain};
use crate::format::{percent, rate, sectors};
use crate::kernels::{Group, groups, top_cause};
use crate::notes::{effort, leaning, sentence};
use crate::results::{Analysis, AppRecord};

const ROWS: usize = 24;

/// The solo runs of `analysis` as text: per application its totals and one line
/// per kernel name, longest-running first. Empty without solo runs.
#[must_use]
pub fn solo(analysis: &Analysis) -> String {
    let mut text = String::new();
    for app in &analysis.solo {
        heading(&mut text, analysis, app);
        let groups = groups(&[(analysis, app)], ROWS);
        if !groups.is_empty() {
            let rows = groups.iter().map(|g| row(g, analysis.machine.core_mhz)).collect();
            text += &plain(COLUMNS, rows);
        }
        text.push('\n');
    }
    for note in &analysis.notes {
        let _ = writeln!(text, "note: {}", brief(note, 400));
    }
    text
}

fn heading(text: &mut String, analysis: &Analysis, app: &AppRecord) {
    let launches = app.kernels.len();
    let plural = if launches == 1 { "" } else { "es" };
    let _ = writeln!(
        text,
        "{} on {}: {} cycles ({} of them launch latency), {launches} launch{plural}, {}",
        brief(&app.app, 60),
        brief(&analysis.machine.name, 40),
        app.cycles,
        app.launch_cycles,
        rate(app)
    );
    let _ = writeln!(
        text,
        "  L1 hits {}, L2 hits {}, DRAM {} read and {} written",
        percent(app.l1.hit_rate()),
        percent(app.l2.hit_rate()),
        sectors(app.dram.read_sectors),
        sectors(app.dram.write_sectors),
    );
    for said in [effort(app), sentence(app), leaning(app)].into_iter().flatten() {
        let _ = writeln!(text, "  {}", brief(&said, 400));
    }
    beside(text, app);
}

/// What only some machines have.
fn beside(text: &mut String, app: &AppRecord) {
    if let Some(fetch) = app.instruction_cache.filter(|fetch| fetch.inner_accesses > 0) {
        let _ = writeln!(
            text,
            "  code: {} lines looked up, {} waited for, {} read from the L2",
            fetch.inner_accesses,
            fetch.inner_misses + fetch.inner_merged,
            fetch.outer_misses,
        );
    }
    if let Some(constant) = app.constant_cache.filter(|constant| constant.accesses > 0) {
        let _ = writeln!(
            text,
            "  constants: {} loads in {} passes, {} lines missed",
            constant.accesses, constant.passes, constant.misses,
        );
    }
    let Some(t) = &app.translation else { return };
    let plural = |count| if count == 1 { "" } else { "s" };
    let _ = writeln!(
        text,
        "  L1 TLB hits {}, L2 TLB hits {}, {} page walk{} with {} reads, {} page fault{}",
        percent(t.l1_tlb.hit_rate()),
        percent(t.l2_tlb.hit_rate()),
        t.walks,
        plural(t.walks),
        t.walk_reads,
        t.faults,
        plural(t.faults),
    );
}

const COLUMNS: [&str; 9] = [
    "kernel",
    "launches",
    "cycles",
    "thread IPC",
    "max occupancy",
    "L1 hit",
    "L2 hit",
    "DRAM GB/s",
    "top stall",
];

fn row(group: &Group, core_mhz: f64) -> [String; COLUMNS.len()] {
    let stall = top_cause(&group.stalls).map_or_else(
        || "–".into(),
        |(cause, share)| format!("{} {}", cause.replace('_', " "), percent(Some(share))),
    );
    [
        brief(&group.label, 36),
        group.launches.to_string(),
        group.cycles.to_string(),
        decimal(group.ipc(), 2),
        percent(Some(group.occupancy)),
        percent(group.l1.hit_rate()),
        percent(group.l2.hit_rate()),
        decimal(group.dram_gb_per_s(core_mhz), 1),
        stall,
    ]
}
