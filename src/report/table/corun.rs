//! Applications together: one line per scheme, then one per application.

use std::fmt::Write as _;

use super::{Cell, Column, THREAD_IPC, Table};
use crate::document::Block;
use crate::format::{brief, energy, grouped, held};
use crate::mix::scheme_names;
use crate::notes::coruns;
use crate::results::{Analysis, CoRun, CoRunApp, DecisionRecord, MigrationRecord};

/// Letters of the longest text that is shown whole in one line.
const WHOLE: usize = 400;
/// Letters of an application's name in a terminal.
const APP: usize = 22;
/// Decisions of a scheme up to which a page lists them.
const DECISIONS: usize = 200;

/// A co-run with what its scheme is called.
pub(super) type Named<'a> = (&'a String, &'a CoRun);
/// An application of one.
type NamedApp<'a> = (&'a String, &'a CoRunApp);

/// The co-runs of `analysis` as text: a line per scheme with throughput,
/// turnaround, fairness, makespan and energy, then a line per scheme and
/// application, what moved where channels were owned, with what each scheme began,
/// and what the figures lean on. Empty without co-runs.
#[must_use]
pub fn corun(analysis: &Analysis, width: Option<usize>) -> String {
    if analysis.coruns.is_empty() {
        return String::new();
    }
    let names = scheme_names(&analysis.coruns);
    let runs = named(&names, &analysis.coruns);
    let mut hidden = vec!["CTAs/SM at the end", "L1 hit"];
    if !divided(&analysis.coruns) {
        hidden.push("mean channels");
    }
    let mut text =
        schemes(&runs).terminal(width) + "\n" + &apps(&runs).without(&hidden).terminal(width);
    if let Some(moved) = moved(&runs) {
        text += &format!("\n{}", moved.terminal(width));
    }
    for (name, first) in begins(&runs) {
        let (name, first) = (brief(name, WHOLE), brief(first, WHOLE));
        let _ = writeln!(text, "first decision of {name}: {first}");
    }
    let short: Vec<String> = names.iter().map(|name| brief(name, WHOLE)).collect();
    for (note, schemes) in coruns(&short, &analysis.coruns) {
        let _ = writeln!(text, "note: {schemes}: {}", brief(&note, WHOLE));
    }
    text
}

/// `runs` with their names.
pub(super) fn named<'a>(names: &'a [String], runs: &'a [CoRun]) -> Vec<Named<'a>> {
    names.iter().zip(runs).collect()
}

/// The same on a page, with what their machines did and with their decisions.
pub(crate) fn corun_blocks(runs: &[CoRun]) -> Vec<Block> {
    let names = scheme_names(runs);
    let named = named(&names, runs);
    let mut blocks = vec![Block::Table(schemes(&named))];
    if runs.iter().any(|run| run.utilization.is_some()) {
        blocks.push(Block::Table(machines(&named)));
    }
    blocks.push(Block::Table(apps(&named)));
    if let Some(moved) = moved(&named) {
        blocks.push(Block::Table(moved));
        blocks.push(Block::Text(MOVED.into()));
    }
    let begins = begins(&named);
    let begins =
        begins.map(|(name, first)| (format!("first decision of {name}"), first.to_owned()));
    blocks.push(Block::Facts(begins.collect()));
    for (note, schemes) in coruns(&names, runs) {
        blocks.push(Block::Text(format!("{schemes}: {}.", note.trim_end_matches('.'))));
    }
    blocks.extend(named.iter().filter_map(|(name, run)| decisions(name, run)));
    blocks
}

/// Schemes with the reasons of their first decisions.
fn begins<'a>(runs: &'a [Named<'a>]) -> impl Iterator<Item = (&'a str, &'a str)> {
    runs.iter().filter_map(|(name, run)| Some((name.as_str(), &*run.decisions.first()?.reason)))
}

/// Whether applications have had channels of their own.
fn divided(runs: &[CoRun]) -> bool {
    let apps = || runs.iter().flat_map(|run| &run.apps).filter(|app| app.channels > 0);
    let most = apps().map(|app| app.channels).max();
    apps().any(|app| app.migration.is_some() || Some(app.channels) < most)
}

pub(super) fn schemes(runs: &[Named<'_>]) -> Table {
    fn makespan(run: &CoRun) -> Option<u64> {
        (run.makespan_cycles > 0).then_some(run.makespan_cycles)
    }
    let columns: [Column<Named<'_>>; 10] = [
        ("scheme", |(name, _)| Cell::Scheme((*name).clone())),
        ("STP", |(_, run)| Cell::Number(run.stp, 3)),
        ("ANTT", |(_, run)| Cell::Number(run.antt, 3)),
        ("harmonic", |(_, run)| Cell::Number(run.harmonic_speedup, 3)),
        ("fairness", |(_, run)| Cell::Number(run.fairness_min_speedup, 3)),
        (THREAD_IPC, |(_, run)| Cell::Number(run.ipc_throughput, 2)),
        ("makespan", |(_, run)| Cell::count(makespan(run))),
        ("speedup", |(_, run)| Cell::number(makespan(run).map(|_| run.makespan_speedup), 3)),
        ("energy", |(_, run)| Cell::Shown(run.energy_joules, energy(run.energy_joules))),
        ("decisions", |(_, run)| run.decisions.len().to_string().into()),
    ];
    Table::new(&columns, runs.iter().copied()).dropping(&["decisions", "harmonic", THREAD_IPC])
}

/// What the machine did as a whole.
fn machines(runs: &[Named<'_>]) -> Table {
    let columns: [Column<Named<'_>>; 10] = [
        ("scheme", |(name, _)| Cell::Scheme((*name).clone())),
        ("ALU", |(_, run)| Cell::Share(run.utilization.map(|busy| busy.alu))),
        ("SFU", |(_, run)| Cell::Share(run.utilization.map(|busy| busy.sfu))),
        ("LD/ST", |(_, run)| Cell::Share(run.utilization.map(|busy| busy.load_store))),
        ("registers", |(_, run)| Cell::Share(run.utilization.map(|busy| busy.registers))),
        ("shared memory", |(_, run)| Cell::Share(run.utilization.map(|busy| busy.shared))),
        ("L1 hit", |(_, run)| Cell::Share(run.l1.hit_rate())),
        ("L2 hit", |(_, run)| Cell::Share(run.l2.hit_rate())),
        ("DRAM bandwidth", |(_, run)| Cell::Share(Some(run.dram.bandwidth_utilization))),
        ("CTAs killed", |(_, run)| Cell::Count(run.killed_ctas)),
    ];
    Table::new(&columns, runs.iter().copied())
}

pub(super) fn apps(runs: &[Named<'_>]) -> Table {
    fn timed(app: &CoRunApp, value: f64, places: usize) -> Cell {
        Cell::number((!app.memory_only).then_some(value), places)
    }
    let columns: [Column<NamedApp<'_>>; 12] = [
        ("scheme", |(name, _)| Cell::Scheme((*name).clone())),
        ("application", |(_, app)| Cell::Cut(app.app.clone(), APP)),
        ("cycles", |(_, app)| Cell::Count(app.cycles)),
        (THREAD_IPC, |(_, app)| timed(app, app.ipc, 2)),
        ("slowdown", |(_, app)| timed(app, app.slowdown, 3)),
        ("progress", |(_, app)| timed(app, app.normalized_progress, 3)),
        ("mean SMs", |(_, app)| held(app.mean_sms, app.sms).into()),
        ("CTAs/SM at the end", |(_, app)| app.ctas_per_sm.to_string().into()),
        ("mean channels", |(_, app)| held(app.mean_channels, app.channels).into()),
        ("L1 hit", |(_, app)| Cell::Share(app.l1.hit_rate())),
        ("MPKI (warp)", |(_, app)| Cell::Number(app.mpki_warp, 2)),
        ("DRAM share", |(_, app)| Cell::Share(Some(app.dram_share))),
    ];
    let rows = runs.iter().flat_map(|(name, run)| run.apps.iter().map(|a| (*name, a)));
    let table = Table::new(&columns, rows).left(&[0, 1]);
    table.dropping(&["MPKI (warp)", "progress", "mean channels", "L1 hit", "CTAs/SM at the end"])
}

/// What the columns of [`moved`] are.
const MOVED: &str = "A page counts each time that it moves; SMs rest while channels change hands, \
                     and are vacated while they hold more CTAs than their share.";

/// What it cost applications that SMs and channels changed hands.
pub(super) fn moves(runs: &[Named<'_>]) -> Table {
    type Moved<'a> = (&'a String, &'a CoRunApp, MigrationRecord);
    let columns: [Column<Moved<'_>>; 7] = [
        ("scheme", |(name, ..)| Cell::Scheme((*name).clone())),
        ("application", |(_, app, _)| Cell::Cut(app.app.clone(), APP)),
        ("pages", |(.., moved)| Cell::Count(moved.pages)),
        ("pages moved", |(.., moved)| Cell::Count(moved.pages_moved)),
        ("cycles moving", |(.., moved)| Cell::Count(moved.moving_cycles)),
        ("cycles resting", |(.., moved)| Cell::Count(moved.resting_cycles)),
        ("cycles vacating", |(.., moved)| Cell::Count(moved.vacating_cycles)),
    ];
    let runs = runs.iter().filter(|(_, run)| run.moved_anything());
    let apps = runs.flat_map(|(name, run)| run.apps.iter().map(|app| (*name, app)));
    let table = Table::new(&columns, apps.filter_map(|(name, a)| Some((name, a, a.migration?))));
    table.left(&[0, 1])
}

/// The same; nothing where none did.
fn moved(runs: &[Named<'_>]) -> Option<Table> {
    Some(moves(runs)).filter(|table| !table.is_empty())
}

/// Every decision of a scheme; nothing where there is one or are too many.
fn decisions(name: &str, run: &CoRun) -> Option<Block> {
    let columns: [Column<&DecisionRecord>; 3] = [
        ("cycle", |decision| grouped(decision.cycle).into()),
        ("asked because", |decision| match decision.is_timed() {
            true => String::from("the time that it named").into(),
            false => decision.wake.clone().into(),
        }),
        ("reason", |decision| decision.reason.clone().into()),
    ];
    let listed = (2..=DECISIONS).contains(&run.decisions.len());
    let table = || vec![Block::Table(Table::new(&columns, &run.decisions))];
    listed.then(|| Block::Folded(format!("Decisions of {name}"), table()))
}
