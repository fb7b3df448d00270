//! The workloads that come with the program, by the paper whose kernels they are.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use crate::synth::{self, Workload};

use super::Outcome;
use super::output::stdout;

/// What the names of a paper's kernels begin with, what their sources name, and the heading.
const PAPERS: &[(&str, &str, &str)] = &[
    ("", "Slate", "kernels of Slate (machine titan-xp)"),
    ("", "ARCS 2018", "kernels of the ARCS 2018 paper (machine k40c)"),
    ("ws-", "", "kernels of Warped-Slicer (machine warped-slicer)"),
    ("ilp-", "", "kernels of ILP-SMRA (machine ilp-smra)"),
    ("ugpu-", "", "kernels of UGPU (machine ugpu)"),
];

/// The heading of those of no paper.
const OTHERS: &str = "of no paper";

/// Lists names and descriptions; files of the folder `models` go before the program's own.
pub(super) fn list(models: Option<&Path>) -> Outcome {
    let width = synth::names().map(str::len).max().unwrap_or(0) + 2;
    let mut rows = Vec::new();
    for name in synth::names() {
        let workload = Workload::load(name, models)?;
        let line = format!("  {name:<width$}{}", workload.description());
        rows.push((heading(name, workload.source()), line));
    }
    let mut out = stdout();
    for shown in std::iter::once(OTHERS).chain(PAPERS.iter().map(|paper| paper.2)) {
        writeln!(out, "{shown}:")?;
        for (_, line) in rows.iter().filter(|(heading, _)| *heading == shown) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The heading under which a workload stands.
fn heading(name: &str, source: &str) -> &'static str {
    let own =
        PAPERS.iter().find(|(begin, word, _)| name.starts_with(*begin) && source.contains(*word));
    own.map_or(OTHERS, |paper| paper.2)
}
