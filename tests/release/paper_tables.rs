//! Does `reports/PAPERS.md` agree with the whole reproductions, and say why rows fail?
//!
//! `BLESS=1 cargo test --test release paper_tables` writes its tables from
//! `reports/whole/PAPER.csv`, which is the `headlines.csv` of `gpumodel reproduce PAPER`, and
//! the reasons from `models/papers/PAPER.toml`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::report_data::{hold_table, reports};

/// A line of `headlines.csv`.
#[derive(Debug, Deserialize)]
struct Line {
    scheme: String,
    over: String,
    set: String,
    measure: String,
    published_percent_low: f64,
    published_percent_high: f64,
    modelled_percent: f64,
    verdict: String,
    published: String,
}

impl Line {
    fn is_of(&self, other: &Self) -> bool {
        let words = |line: &Self| {
            let Self { scheme, over, set, measure, published, .. } = line;
            [scheme, over, set, measure, published].map(String::clone)
        };
        words(self) == words(other)
    }

    /// The printed gain or range.
    fn printed(&self) -> String {
        let (low, high) = (self.published_percent_low, self.published_percent_high);
        match low.total_cmp(&high) {
            std::cmp::Ordering::Equal => format!("{low:+} %"),
            _ => format!("{low} to {high} %"),
        }
    }
}

/// The headlines of a paper's file.
#[derive(Debug, Deserialize)]
struct Paper {
    headline: Vec<Reason>,
}

#[derive(Debug, Deserialize)]
struct Reason {
    scheme: String,
    #[serde(default)]
    over: String,
    set: String,
    measure: String,
    analysis: Option<String>,
    impossible: Option<String>,
}

/// The rows of a file, each with how many mixes it is of: the last line of those of the same
/// headline holds their mean.
fn rows(path: &Path) -> Vec<(Line, usize)> {
    let mut rows: Vec<(Line, usize)> = Vec::new();
    for line in csv::Reader::from_path(path).unwrap().deserialize() {
        let line: Line = line.unwrap();
        let last = rows.pop_if(|(last, _)| last.is_of(&line));
        rows.push((line, last.map_or(0, |(_, mixes)| mixes + 1)));
    }
    rows
}

fn table(name: &str) -> String {
    let path = reports().join("whole").join(format!("{name}.csv"));
    let paper = reports().join(format!("../models/papers/{name}.toml"));
    let paper: Paper = toml::from_str(&fs::read_to_string(paper).unwrap()).unwrap();
    let mut table = String::from(
        "| | over | of | mixes | by | paper | model | |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut reasons: Vec<(&String, Vec<String>)> = Vec::new();
    for (at, (row, mixes)) in rows(&path).iter().enumerate() {
        let Line { scheme, over, set, measure, modelled_percent, verdict, .. } = row;
        let over = if over.is_empty() { String::new() } else { format!("`{over}`") };
        let _ = writeln!(
            table,
            "| {}: `{scheme}` | {over} | {set} | {mixes} | {measure} | {} | {modelled_percent:+.1} % | {verdict} |",
            at + 1,
            row.printed(),
        );
        if ["same sign", "contradicts", "impossible", "no value"].contains(&verdict.as_str()) {
            let its = |reason: &&Reason| {
                (&reason.scheme, &reason.over, &reason.set, &reason.measure)
                    == (&row.scheme, &row.over, &row.set, &row.measure)
            };
            let row_of = paper.headline.iter().find(its);
            let reason = row_of.and_then(|its| its.impossible.as_ref().or(its.analysis.as_ref()));
            let reason = reason.unwrap_or_else(|| panic!("{name}: why does {row:?}"));
            let number = (at + 1).to_string();
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, rows)) => rows.push(number),
                None => reasons.push((reason, vec![number])),
            }
        }
    }
    table.push('\n');
    for (reason, rows) in reasons {
        let _ = writeln!(table, "- {}: {reason}", rows.join(", "));
    }
    table
}

#[test]
fn the_verdicts_are_those_that_reproduce_prints() {
    let read = |name: &str| fs::read_to_string(reports().join(name)).unwrap();
    let (printed, text) = (read("quick/report.md"), read("PAPERS.md"));
    let rule: Vec<&str> = printed.lines().filter(|line| line.starts_with("- ")).take(5).collect();
    for (line, verdict) in
        rule.iter().zip(["agrees", "same sign", "contradicts", "impossible", "error"])
    {
        assert!(line.starts_with(&format!("- {verdict}: ")), "{line}");
        assert!(text.lines().any(|own| own == *line), "PAPERS.md lacks: {line}");
    }
}

#[test]
fn the_tables_of_papers_give_reasons_for_failing_rows() {
    let folder = fs::read_dir(reports().join("whole")).unwrap();
    let mut names: Vec<String> = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(".csv")?.to_owned()))
        .collect();
    names.sort();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        hold_table(&reports().join("PAPERS.md"), &name, &table(&name));
    }
}
