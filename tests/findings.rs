//! Does `reports/FINDINGS.md` say what its records say?
//!
//! `BLESS=1 cargo test --test all findings` writes its tables anew from
//! `reports/records/findings.tar.xz`, which holds the folder of
//! `gpumodel sweep models/plans/findings.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use gpumodel::report::results::{Analysis, CoRun, SweepFiles, SweepRecord};

use crate::archive::{hold_table, reports, unpacked};

/// What a cell came to.
struct Cell {
    machine: String,
    mix: String,
    scheme: String,
    parameters: BTreeMap<String, String>,
    stp: f64,
    antt: f64,
    fairness: f64,
    /// Nanojoules of a thread instruction, of all runs of all applications.
    nanojoules: f64,
    /// Of the program that ran it.
    build: String,
}

/// The cells that have been run.
fn cells(folder: &Path) -> Vec<Cell> {
    let files = SweepFiles::new(folder);
    let listed = SweepRecord::read(&files.list()).unwrap().cells;
    let cell = |cell: &gpumodel::report::results::CellRecord| {
        let path = files.record(&cell.key);
        if !path.is_file() {
            return None;
        }
        let record = Analysis::read(&path).unwrap();
        let run = &record.coruns[0];
        Some(Cell {
            machine: cell.machine.clone(),
            mix: cell.mix(),
            scheme: cell.scheme.clone(),
            parameters: cell.parameters.clone(),
            stp: run.stp,
            antt: run.antt,
            fairness: run.fairness_min_speedup,
            nanojoules: run.energy_joules * 1e9 / instructions(run) as f64,
            build: record.cell.as_ref().unwrap().build.clone(),
        })
    };
    listed.iter().filter_map(cell).collect()
}

fn instructions(run: &CoRun) -> u64 {
    run.apps.iter().map(|app| app.all_thread_instructions).sum()
}

/// Texts in their order, each once.
fn each<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(text) {
            found.push(text.clone());
        }
    }
    found
}

/// The scheme with those parameters by which it differs from others of its name.
fn label(cell: &Cell, cells: &[Cell]) -> String {
    let same = |other: &&Cell| {
        (&other.machine, &other.mix, &other.scheme) == (&cell.machine, &cell.mix, &cell.scheme)
    };
    let others: Vec<&Cell> = cells.iter().filter(same).collect();
    let own = cell.parameters.iter().filter(|(name, value)| {
        others.iter().any(|other| other.parameters.get(*name) != Some(*value))
    });
    own.fold(cell.scheme.clone(), |label, (name, value)| format!("{label}:{name}={value}"))
}

/// STP / ANTT / fairness / energy of each scheme and mix of a machine, the best in bold.
fn table(machine: &str, cells: &[Cell]) -> String {
    let of: Vec<(String, &Cell)> = cells
        .iter()
        .filter(|cell| cell.machine == machine)
        .map(|cell| (label(cell, cells), cell))
        .collect();
    let mixes = each(of.iter().map(|(_, cell)| &cell.mix));
    let mut text = format!("| scheme | {} |\n|---|", mixes.join(" | "));
    text.push_str(&"---|".repeat(mixes.len()));
    for scheme in each(of.iter().map(|(label, _)| label)) {
        let _ = write!(text, "\n| `{scheme}` |");
        for mix in &mixes {
            let all = of.iter().filter(|(_, cell)| cell.mix == *mix);
            let all: Vec<&Cell> = all.map(|(_, cell)| *cell).collect();
            let at = of.iter().find(|(label, cell)| *label == scheme && cell.mix == *mix);
            let Some((_, cell)) = at else {
                text.push_str(" not run |");
                continue;
            };
            let shown = [
                bold(format!("{:.2}", cell.stp), cell, &all, |cell| cell.stp),
                bold(format!("{:.2}", cell.antt), cell, &all, |cell| -cell.antt),
                bold(format!("{:.2}", cell.fairness), cell, &all, |cell| cell.fairness),
                bold(format!("{:.3}", cell.nanojoules), cell, &all, |cell| -cell.nanojoules),
            ];
            let _ = write!(text, " {} |", shown.join(" / "));
        }
    }
    text.push('\n');
    text
}

/// The number, bold where no other cell is better.
fn bold(shown: String, cell: &Cell, all: &[&Cell], better: fn(&Cell) -> f64) -> String {
    let best = all.iter().all(|other| better(other) <= better(cell));
    if best { format!("**{shown}**") } else { shown }
}

#[test]
fn the_findings_name_the_build_of_every_cell() {
    let scratch = tempfile::tempdir().unwrap();
    let cells = cells(&unpacked("findings", scratch.path()));
    let text = fs::read_to_string(reports().join("FINDINGS.md")).unwrap();
    let builds = each(cells.iter().map(|cell| &cell.build));
    let unnamed: Vec<&String> =
        builds.iter().filter(|build| !text.contains(&format!("`{build}`"))).collect();
    assert!(unnamed.is_empty(), "say which cells are of {unnamed:?}, and of which day it is");
    let one = format!("All {} cells are of one build", cells.len());
    assert_eq!(text.contains(&one), builds.len() == 1, "{} of {builds:?}", cells.len());
}

#[test]
fn the_findings_follow_from_their_records() {
    let scratch = tempfile::tempdir().unwrap();
    let cells = cells(&unpacked("findings", scratch.path()));
    let path = reports().join("FINDINGS.md");
    let machines = each(cells.iter().map(|cell| &cell.machine));
    assert_eq!(machines.len(), 2, "a machine as UGPU's, and one like an H100");
    for machine in machines {
        hold_table(&path, &machine, &table(&machine, &cells));
    }
}
