//! Does `reports/FINDINGS.md` agree with its runs?
//!
//! `BLESS=1 cargo test --test release findings` writes its tables from `reports/data/findings.csv`.

use std::fmt::Write as _;
use std::fs;

use crate::report_data::{Run, distinct, hold_table, reports, rows};

/// STP / ANTT / fairness / energy of each scheme and mix of a machine, the best in bold.
fn table(machine: &str, runs: &[Run]) -> String {
    let own = runs.iter().filter(|run| run.machine == machine);
    let own: Vec<(String, &Run)> = own.map(|run| (run.label(runs), run)).collect();
    let mixes = distinct(own.iter().map(|(_, run)| &run.mix));
    let names: Vec<&str> = mixes.iter().map(|mix| mix.as_str()).collect();
    let mut text = format!("| scheme | {} |\n|---|", names.join(" | "));
    text.push_str(&"---|".repeat(mixes.len()));
    for scheme in distinct(own.iter().map(|(label, _)| label)) {
        let _ = write!(text, "\n| `{scheme}` |");
        for mix in &mixes {
            let all: Vec<&Run> =
                own.iter().map(|(_, run)| *run).filter(|run| run.mix == **mix).collect();
            let run = own.iter().find(|(label, run)| label == scheme && run.mix == **mix);
            let shown = run.map_or("not run".into(), |(_, run)| values(run, &all));
            let _ = write!(text, " {shown} |");
        }
    }
    text.push('\n');
    text
}

/// STP / ANTT / fairness / energy of a run, bold where none of `all` is better.
fn values(run: &Run, all: &[&Run]) -> String {
    let shown = [
        bold(format!("{:.2}", run.stp), run, all, |run| run.stp),
        bold(format!("{:.2}", run.antt), run, all, |run| -run.antt),
        bold(format!("{:.2}", run.fairness_min_speedup), run, all, |run| run.fairness_min_speedup),
        bold(format!("{:.3}", nanojoules(run)), run, all, |run| -nanojoules(run)),
    ];
    shown.join(" / ")
}

/// Nanojoules of a thread instruction.
fn nanojoules(run: &Run) -> f64 {
    run.energy_joules * 1e9 / run.thread_instructions
}

/// The number, bold where no other run is better.
fn bold(shown: String, run: &Run, all: &[&Run], better: fn(&Run) -> f64) -> String {
    let best = all.iter().all(|other| better(other) <= better(run));
    if best { format!("**{shown}**") } else { shown }
}

#[test]
fn the_findings_name_the_build_of_every_cell() {
    let runs: Vec<Run> = rows("findings");
    let text = fs::read_to_string(reports().join("FINDINGS.md")).unwrap();
    let builds = distinct(runs.iter().map(|run| &run.build));
    let unnamed: Vec<&&String> =
        builds.iter().filter(|build| !text.contains(&format!("`{build}`"))).collect();
    assert!(unnamed.is_empty(), "say which cells are of {unnamed:?}, and of which day it is");
    let one = format!("All {} cells are of one build", runs.len());
    assert_eq!(text.contains(&one), builds.len() == 1, "{} of {builds:?}", runs.len());
}

#[test]
fn the_findings_follow_from_their_runs() {
    let runs: Vec<Run> = rows("findings");
    let path = reports().join("FINDINGS.md");
    let machines = distinct(runs.iter().map(|run| &run.machine));
    assert_eq!(machines.len(), 2, "a machine as UGPU's, and one like an H100");
    for machine in machines {
        hold_table(&path, machine, &table(machine, &runs));
    }
}
