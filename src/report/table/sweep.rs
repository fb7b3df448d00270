//! Sweeps: what a plan asks for, what went wrong, and what the schemes gained over all mixes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use gpumodel_core::units::{counted, to_u64};

use super::{Cell, Column, NONE, Table, wrapped};
use crate::distinct;
use crate::format::{brief, bytes, duration, float};
use crate::mix::names;
use crate::results::{CellEstimate, CellRecord, FailedCell, SchemeMeans, SweepEstimate};

/// Failed cells that are named at most.
const FAILURES: usize = 10;

/// The cells of a plan as text, one per line, then how many there are, what those that have
/// not ended are thought to take and what that rests on.
#[must_use]
pub fn planned(estimate: &SweepEstimate, width: Option<usize>) -> String {
    let cells = &estimate.cells;
    let mut said = planned_table(estimate).terminal(width) + "\n";
    refusals(&mut said, cells);
    other_builds(&mut said, &estimate.other_builds);
    totals(&mut said, estimate);
    wrapped(&said, width)
}

/// Says what the cells that have not ended take together, as far as they have an estimate.
fn totals(said: &mut String, estimate: &SweepEstimate) {
    let cells = in_words(&estimate.cells);
    let unknown = estimate.open().filter(|one| !one.is_estimated()).count();
    let known = estimate.open().count() - unknown;
    if unknown > 0 && known == 0 {
        let _ = writeln!(said, "{cells}: no estimate of time and memory");
        return;
    }
    let part = match (unknown, known) {
        (0, _) => String::new(),
        (_, 1) => String::from(" for the one with an estimate"),
        (_, some) => format!(" for the {some} with an estimate"),
    };
    let _ = writeln!(
        said,
        "{cells}: about {} of one core{part}, {} on {}; up to {} each",
        duration(estimate.core_seconds),
        duration(estimate.seconds),
        threads(estimate),
        bytes(float(estimate.memory_bytes)),
    );
    let nodes = counted(estimate.useful_nodes(), "node");
    let _ = writeln!(
        said,
        "No more than {nodes} of {} can help: the longest cell takes {} of one core.\n\
         This rests on {}.",
        threads(estimate),
        duration(estimate.longest_seconds()),
        estimate.basis
    );
}

/// The cells of a plan, one per row.
#[must_use]
pub fn planned_table(estimate: &SweepEstimate) -> Table {
    let cells = &estimate.cells;
    let schemes =
        names(cells.iter().map(|one| (&*one.cell.scheme, &one.cell.parameters)).collect());
    let columns: [Column<(&CellEstimate, &String)>; 9] = [
        ("cell", |(one, _)| one.number.to_string().into()),
        ("machine", |(one, _)| Cell::Cut(machine(&one.cell), 48)),
        ("mix", |(one, _)| Cell::Cut(one.cell.mix(), 48)),
        ("scheme", |(_, scheme)| Cell::Cut(unnumbered(scheme).to_owned(), 60)),
        ("seed", |(one, _)| one.cell.seed.to_string().into()),
        ("runs", |(one, _)| estimated(one, || one.runs.to_string().into())),
        ("core time", |(one, _)| {
            let seconds = one.core_milliseconds.div_ceil(1000);
            let value = float(one.core_milliseconds) / 1000.0;
            estimated(one, || Cell::Shown(value, duration(seconds)))
        }),
        ("memory", |(one, _)| {
            let value = float(one.memory_bytes);
            estimated(one, || Cell::Shown(value, bytes(value)))
        }),
        ("state", |(one, _)| state(one).to_owned().into()),
    ];
    let table = Table::new(&columns, cells.iter().zip(&schemes)).left(&[1, 2, 3, 8]);
    table.dropping(&["memory", "runs", "seed"])
}

/// `cell` of a cell that has an estimate, else none.
fn estimated(one: &CellEstimate, cell: impl FnOnce() -> Cell) -> Cell {
    if one.is_estimated() { cell() } else { NONE.into() }
}

/// How many cells there are, and how many are to be run where some have ended.
fn in_words(cells: &[CellEstimate]) -> String {
    let count = |state| cells.iter().filter(|one| one.ended == state).count();
    let (done, failed, open) = (count(Some(true)), count(Some(false)), count(None));
    match cells.len() {
        all if all == open => counted(to_u64(all), "cell"),
        all => {
            format!("{}, {done} done, {failed} failed, {open} left", counted(to_u64(all), "cell"))
        }
    }
}

/// The threads of a node, counted.
fn threads(estimate: &SweepEstimate) -> String {
    counted(estimate.threads, "thread")
}

/// Says which cells cannot run, the first ones, and which have no estimate.
fn refusals(said: &mut String, cells: &[CellEstimate]) {
    let refused = |one: &CellEstimate| {
        Some(format!("cell {} cannot run: {}", one.number, brief(one.refused.as_ref()?, 400)))
    };
    let all: Vec<String> = cells.iter().filter_map(refused).collect();
    for line in all.iter().take(FAILURES) {
        let _ = writeln!(said, "{line}");
    }
    if all.len() > FAILURES {
        let _ = writeln!(said, "and {} more cells cannot run", all.len() - FAILURES);
    }
    unconverted(said, cells);
}

/// Says of which applications there is no store yet, and how many cells have no estimate.
fn unconverted(said: &mut String, cells: &[CellEstimate]) {
    let open: Vec<_> = cells.iter().filter(|one| !one.unconverted.is_empty()).collect();
    let names: BTreeSet<&str> =
        open.iter().flat_map(|one| &one.unconverted).map(String::as_str).collect();
    if !names.is_empty() {
        let names = brief(&names.into_iter().collect::<Vec<_>>().join(", "), 400);
        let _ = writeln!(
            said,
            "{} of these cells have no estimate: the sweep converts {names} first",
            open.len()
        );
    }
}

/// Says of how many cells other builds have made records, and how these are taken.
fn other_builds(said: &mut String, builds: &BTreeMap<String, u64>) {
    let names = builds.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let names = brief(&names, 400);
    let line = match builds.values().sum::<u64>() {
        0 => return,
        1 => format!("1 of these cells has a record of another build ({names})"),
        some => format!("{some} of these cells have records of other builds ({names})"),
    };
    let _ = writeln!(said, "{line}: --resume --mixed-versions takes what is there");
}

fn state(one: &CellEstimate) -> &'static str {
    match one.ended {
        Some(true) => "done",
        Some(false) => "failed",
        None => "to run",
    }
}

/// The machine of a cell with what is set of it.
fn machine(cell: &CellRecord) -> String {
    let set = cell.overrides.iter().map(|(key, value)| format!(":{key}={value}"));
    cell.machine.clone() + &set.collect::<String>()
}

/// A scheme's name without the number that tells cells apart.
fn unnumbered(name: &str) -> &str {
    name.split_once(" [").map_or(name, |(name, _)| name)
}

/// Cells that failed or were refused, with why: the first ones.
#[must_use]
pub fn failures(failed: &[FailedCell], width: Option<usize>) -> String {
    let mut text = String::new();
    for one in failed.iter().take(FAILURES) {
        let cell = &one.cell;
        let why = one.errors.join(": ");
        let what = format!("{} on {} under {}", cell.mix(), machine(cell), cell.scheme);
        let how = if one.refused { "refused" } else { "failed" };
        let _ = writeln!(text, "{how}: {}: {}", brief(&what, 120), brief(&why, 400));
    }
    if failed.len() > FAILURES {
        let _ = writeln!(text, "failed: {} more", failed.len() - FAILURES);
    }
    wrapped(&text, width)
}

type Row<'a> = (&'a SchemeMeans, String);

/// STP and ANTT of each scheme as text, their means over mixes; of several machines each by
/// itself. Empty without schemes.
#[must_use]
pub fn means(all: &[SchemeMeans], width: Option<usize>) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = means_table(all);
    if distinct(all.iter().map(|one| &one.machine)).len() == 1 {
        table = table.without(&["machine"]);
    }
    let mut text = format!("\n{}", table.terminal(width));
    if all.iter().any(|one| one.mixes != all[0].mixes) {
        text += "  schemes have records of different mixes: their means do not compare\n";
    }
    wrapped(&text, width)
}

/// A row for each scheme and machine.
#[must_use]
pub fn means_table(all: &[SchemeMeans]) -> Table {
    let names = names(distinct(all.iter().map(|one| (&*one.scheme, &one.parameters))));
    let known = distinct(all.iter().map(|one| (&one.scheme, &one.parameters)));
    let named = all.iter().map(|one| {
        let at = known.iter().position(|&known| known == (&one.scheme, &one.parameters));
        (one, at.map(|at| names[at].clone()).unwrap_or_default())
    });
    let columns: [Column<Row<'_>>; 7] = [
        ("machine", |(one, _)| Cell::Cut(one.machine.clone(), 48)),
        ("scheme", |(_, scheme)| Cell::Scheme(scheme.clone())),
        ("cells", |(one, _)| one.mixes.values().sum::<usize>().to_string().into()),
        ("STP mean", |(one, _)| Cell::number(one.stp.arithmetic, 3)),
        ("STP geomean", |(one, _)| Cell::number(one.stp.geometric, 3)),
        ("ANTT mean", |(one, _)| Cell::number(one.antt.arithmetic, 3)),
        ("ANTT geomean", |(one, _)| Cell::number(one.antt.geometric, 3)),
    ];
    Table::new(&columns, named).left(&[0, 1])
}

#[cfg(test)]
mod tests {
    use super::{failures, means, planned};
    use crate::results::{CellEstimate, CellRecord, FailedCell, Means, SchemeMeans, SweepEstimate};

    #[test]
    fn cells_have_a_number_and_what_differs() {
        let one = |number, window: &str, seed| CellEstimate {
            number,
            cell: CellRecord {
                apps: vec!["a".into(), "b".into()],
                scheme: "w".into(),
                parameters: [("window".into(), window.into()), ("k".into(), "2".into())].into(),
                seed,
                ..CellRecord::default()
            },
            runs: 3,
            core_milliseconds: 600_000,
            memory_bytes: 64_000_000,
            ended: (number == 9).then_some(true),
            refused: (seed == 1).then(|| String::from("no channels")),
            ..CellEstimate::default()
        };
        let cells = vec![one(7, "5", 0), one(8, "5", 1), one(9, "9", 0)];
        let text = planned(&SweepEstimate { cells, ..SweepEstimate::default() }, None);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].trim_start().starts_with("8 "), "{text}");
        assert!(lines[2].contains("a + b") && lines[2].contains("w:window=5 "), "{text}");
        assert!(lines[3].contains("w:window=9") && lines[3].contains("10 min"), "{text}");
        assert!(lines[2].ends_with("to run") && lines[3].ends_with("done"), "{text}");
        assert!(
            text.contains("cell 8 cannot run: no channels\n3 cells, 1 done, 0 failed, 2 left: "),
            "{text}"
        );
    }

    #[test]
    fn only_cells_with_an_estimate_have_times() {
        let one = |number, unconverted: &[&str]| CellEstimate {
            number,
            core_milliseconds: 600_000,
            memory_bytes: 71_000_000,
            unconverted: unconverted.iter().map(ToString::to_string).collect(),
            ..CellEstimate::default()
        };
        let shown = |cells: Vec<CellEstimate>| {
            planned(&SweepEstimate { cells, core_seconds: 600, ..SweepEstimate::default() }, None)
        };
        let none = shown(vec![one(1, &["a"]), one(2, &["b"])]);
        assert!(none.contains("2 cells: no estimate of time and memory"), "{none}");
        assert!(!none.contains("71 MB") && !none.contains("10 min"), "{none}");
        let some = shown(vec![one(1, &["a"]), one(2, &[])]);
        assert!(some.contains("2 cells: about 10 min of one core for the one with an"), "{some}");
        assert_eq!(some.matches("71 MB").count(), 1, "of the second cell: {some}");
    }

    #[test]
    fn nodes_that_are_of_use_are_bounded_by_the_longest_cell() {
        let one = |core_milliseconds, ended| CellEstimate {
            core_milliseconds,
            ended,
            ..CellEstimate::default()
        };
        // 100 s in all, the longest open cell 10 s, 4 threads a node: 10 cores are 3 nodes.
        let cells = vec![one(10_000, None), one(5000, None), one(90_000, Some(true))];
        let estimate =
            SweepEstimate { cells, core_seconds: 100, threads: 4, ..SweepEstimate::default() };
        let text = planned(&estimate, None);
        let words =
            "No more than 3 nodes of 4 threads can help: the longest cell takes 10 s of one";
        assert!(text.contains(words), "{text}");
        assert!(planned(&SweepEstimate::default(), None).contains("No more than 1 node of"));
    }

    #[test]
    fn records_of_other_builds_are_counted_and_their_builds_named() {
        let reported = |builds: &[(&str, u64)]| {
            let other_builds = builds.iter().map(|&(name, count)| (name.to_owned(), count));
            let other_builds = other_builds.collect();
            planned(&SweepEstimate { other_builds, ..SweepEstimate::default() }, None)
        };
        assert!(!reported(&[]).contains("build"));
        let one = reported(&[("0.0.9+1", 1)]);
        assert!(
            one.contains("1 of these cells has a record of another build (0.0.9+1): "),
            "{one}"
        );
        let many = reported(&[("0.0.8+2", 40), ("0.0.9+1", 20)]);
        let words = "60 of these cells have records of other builds (0.0.8+2, 0.0.9+1): \
                     --resume --mixed-versions takes";
        assert!(many.contains(words), "{many}");
    }

    #[test]
    fn many_failures_are_counted() {
        let failed = vec![FailedCell::new(CellRecord::default(), vec!["no".into()]); 12];
        assert_eq!(failures(&failed, None).lines().count(), 11);
        assert!(failures(&failed, None).ends_with("failed: 2 more\n"));
        let refused = FailedCell { refused: true, ..failed[0].clone() };
        assert!(failures(&[refused], None).starts_with("refused: "));
    }

    fn one(scheme: &str, mix: &str, stp: f64) -> SchemeMeans {
        SchemeMeans {
            machine: "v100".into(),
            scheme: scheme.into(),
            mixes: [(mix.to_owned(), 1)].into(),
            stp: Means { arithmetic: Some(stp), geometric: Some(stp) },
            ..SchemeMeans::default()
        }
    }

    #[test]
    fn every_scheme_has_a_line_and_different_mixes_are_said() {
        let text = means(&[one("even", "a + b", 1.25), one("ws", "a + b", 1.5)], None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(!text.contains("v100") && !text.contains("compare"), "{text}");
        assert!(lines[3].contains("ws") && lines[3].contains("1.500"), "{text}");
        assert!(lines[3].ends_with('–'), "{text}");
        let text = means(&[one("even", "a + b", 1.25), one("ws", "a", 1.5)], None);
        assert!(text.ends_with("do not compare\n"), "{text}");
        assert!(means(&[], None).is_empty());
    }
}
