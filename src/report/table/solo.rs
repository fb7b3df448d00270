//! Each application alone: totals, then one line per kernel; and what the schedulers of SMs with a
//! warp waited for.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Cell, Column, NONE, THREAD_IPC, Table};
use crate::format::{brief, percent, rate, sectors};
use crate::kernels::{Group, NO_CTA, active_stack, cause_words, causes, groups, no_cta, top_stall};
use crate::notes;
use crate::results::{Analysis, AppRecord, KernelRecord};

/// Kernels with their own line; the rest are one.
const ROWS: usize = 24;

/// What columns of stalls mean.
pub(super) const STALL_WORDS: &str = "top stall: of the slot-cycles of SMs with a warp; no CTA: \
                                      slot-cycles of SMs without one";

/// The solo runs of `analysis` as text: per application its totals and one line
/// per kernel name, longest-running first. Empty without solo runs.
#[must_use]
pub fn solo(analysis: &Analysis, width: Option<usize>) -> String {
    let mut text = String::new();
    for app in &analysis.solo {
        heading(&mut text, analysis, app);
        if !app.kernels.is_empty() {
            text += &kernel_table(analysis, app, ROWS, 1).without(&[TOP_SHARE]).terminal(width);
        }
        text.push('\n');
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
    for said in notes::solo(app) {
        let _ = writeln!(text, "  {}", brief(&said, 400));
    }
    optional(text, app);
}

/// What only some machines have.
fn optional(text: &mut String, app: &AppRecord) {
    let link = app.link.iter().flat_map(|link| [link.copies(), link.faults()]).flatten();
    for said in link {
        let _ = writeln!(text, "  {said}");
    }
    if let Some(fetch) = app.instruction_cache.filter(|fetch| fetch.inner_accesses > 0) {
        let _ = writeln!(
            text,
            "  instruction caches: {} lines read, {} of them waited for, {} from the L2",
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

/// The column of the top stall's share, which only CSV has by itself.
pub(crate) const TOP_SHARE: &str = "top stall share";

/// The top stall of `stack` with its share.
pub(super) fn top_cell(stack: &BTreeMap<String, f64>) -> Cell {
    match top_stall(stack) {
        Some((cause, share)) => Cell::Noted(cause, percent(Some(share))),
        None => NONE.into(),
    }
}

/// A kernel or a launch in a table.
struct Row<'a> {
    launch: Option<&'a KernelRecord>,
    group: Group,
    core_mhz: f64,
    /// Decimals of its DRAM bandwidth.
    places: usize,
}

impl Row<'_> {
    fn stalls(&self) -> &BTreeMap<String, f64> {
        &self.group.sum.stall_fractions
    }
}

/// The names of kernels and launches, what `own` says of them, and what is said of both.
fn columns<'a>(own: &[Column<Row<'a>>]) -> Vec<Column<Row<'a>>> {
    let name: Column<Row<'_>> =
        ("kernel", |row| Cell::Titled(row.group.label.clone(), row.group.sum.name.clone()));
    let measures: [Column<Row<'_>>; 9] = [
        ("cycles", |row| Cell::Count(row.group.sum.cycles)),
        (THREAD_IPC, |row| Cell::number(row.group.ipc(), 2)),
        ("max occupancy", |row| Cell::Share(Some(row.group.sum.occupancy))),
        ("L1 hit", |row| Cell::Share(row.group.sum.l1.hit_rate())),
        ("L2 hit", |row| Cell::Share(row.group.sum.l2.hit_rate())),
        ("DRAM GB/s", |row| Cell::number(row.group.dram_gb_per_s(row.core_mhz), row.places)),
        (NO_CTA, |row| Cell::Share(no_cta(row.stalls()))),
        (TOP_SHARE, |row| Cell::Share(top_stall(row.stalls()).map(|(_, share)| share))),
        ("top stall", |row| top_cell(row.stalls())),
    ];
    [&[name], own, &measures].concat()
}

/// The kernels of `app`, the longest-running `most` of them, with DRAM bandwidths of `places`
/// decimals.
pub(crate) fn kernel_table(
    analysis: &Analysis,
    app: &AppRecord,
    most: usize,
    places: usize,
) -> Table {
    let launches: Column<Row<'_>> = ("launches", |row| row.group.launches.to_string().into());
    let core_mhz = analysis.machine.core_mhz;
    let row = |group| Row { launch: None, group, core_mhz, places };
    let rows = groups(&[(analysis, app)], most).into_iter().map(row);
    let table = Table::new(&columns(&[launches]), rows).left(&[0, 10]);
    table.dropping(&["max occupancy", "launches", "L2 hit", "L1 hit"])
}

/// Every launch of `app`.
pub(crate) fn launch_table(app: &AppRecord, core_mhz: f64) -> Table {
    let launch: [Column<Row<'_>>; 5] = [
        ("id", |row| row.launch.map(|launch| launch.id).into()),
        ("stream", |row| row.launch.map(|launch| launch.stream).into()),
        ("grid", |row| row.launch.map(|launch| launch.grid).into()),
        ("block", |row| row.launch.map(|launch| launch.block).into()),
        ("start", |row| Cell::count(row.launch.map(|launch| launch.start_cycle))),
    ];
    let launches = app.kernels.iter().zip(Group::each(app));
    let row = |(launch, group)| Row { launch: Some(launch), group, core_mhz, places: 2 };
    Table::new(&columns(&launch), launches.map(row)).without(&[TOP_SHARE])
}

/// The kernels of each of `runs`, of each the longest-running `most`: the share of slot-cycles
/// of SMs without a warp, then how those of the other SMs divide between issue and the causes of
/// stalls.
pub(crate) fn stall_table(runs: &[(&Analysis, &AppRecord)], most: usize) -> Table {
    let all: Vec<(&Analysis, &AppRecord, Group)> = runs
        .iter()
        .flat_map(|&(record, app)| {
            groups(&[(record, app)], most).into_iter().map(move |group| (record, app, group))
        })
        .collect();
    let stacks = all.iter().map(|(.., group)| &group.sum.stall_fractions);
    let mut names: Vec<String> = causes(stacks).into_iter().map(|(name, _)| name).collect();
    names.retain(|name| cause_words(name) != NO_CTA);
    let row = |(record, app, group): &(&Analysis, &AppRecord, Group)| {
        let stack = &group.sum.stall_fractions;
        let active = active_stack(stack);
        let share = |cause: &String| Cell::Share(active.get(cause.as_str()).copied());
        let kernel = Cell::Titled(group.label.clone(), group.sum.name.clone());
        let first = [record.machine.name.as_str().into(), app.app.as_str().into(), kernel];
        let shares = names.iter().map(share);
        first.into_iter().chain([Cell::Share(no_cta(stack))]).chain(shares).collect()
    };
    let first = ["machine", "application", "kernel", NO_CTA].map(str::to_owned);
    let header = first.into_iter().chain(names.iter().map(|name| cause_words(name)));
    Table::of_cells(header, all.iter().map(row))
}
