//! Do the gains in `reports/ILP_SMRA.md` and the times of tasks in `reports/SOFTWARE.md` say
//! what their records say?
//!
//! `BLESS=1 cargo test --test all study_tables` writes them anew from the archives `queues`
//! and `software` of `reports/records`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use assert_cmd::Command;

use crate::archive::{hold_table, records_in, reports, unpacked};

/// By scheme what ILP-SMRA prints over `even-queue`, figures 3a and 4a.
const GAINS: [(&str, &str); 3] = [
    ("ilp", "+19 %, +23 %"),
    ("ilp-smra", "+36 %, +44 %"),
    ("profile-based", "+26 %, not printed"),
];

/// By benchmark what Slate's figure 5 and table III show.
const TASKS: [(&str, &str); 5] = [
    ("gaussian", "task 10 halves the time of task 1, and is 28 to 31 % faster than CUDA"),
    ("black-scholes", "2 % faster with 1, 5 % slower with 10"),
    ("quasirandom", "faster"),
    ("sgemm", "faster"),
    ("matrix-transpose", "faster"),
];

/// A row of a figure's own table by the names of its columns.
type Row = BTreeMap<String, String>;

/// The own table of the figure `words` of the records in `path`.
fn figure(path: &Path, words: &[&str]) -> Vec<Row> {
    let scratch = tempfile::tempdir().unwrap();
    let (drawn, table) = (scratch.path().join("x.svg"), scratch.path().join("x.csv"));
    let mut plot = Command::cargo_bin("gpumodel").unwrap();
    plot.arg("plot").args(records_in(path)).arg("--figure").args(words);
    plot.arg("-o").arg(drawn).arg("--csv").arg(&table).assert().success();
    csv::Reader::from_path(table).unwrap().deserialize().map(Result::unwrap).collect()
}

/// The number in `column` of the row that holds these words in these columns.
fn number(rows: &[Row], words: [(&str, &str); 2], column: &str) -> f64 {
    let row = rows.iter().find(|row| words.iter().all(|(name, word)| row[*name] == *word));
    row.unwrap_or_else(|| panic!("no row with {words:?}"))[column].parse().unwrap()
}

#[test]
fn gains_of_queues_follow_from_their_records() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = unpacked("queues", scratch.path());
    let throughput = figure(&folder, &["queues"]);
    let ipc = figure(&folder, &["queues", "--metric", "job-ipc"]);
    let mut table = String::from(
        "| over `even-queue`, average of the five distributions | throughput | IPC of each job's \
         application | the paper (Fig. 3a, 4a) |\n|---|---|---|---|\n",
    );
    for (scheme, paper) in GAINS {
        let percent = |rows: &[Row], column| {
            let ratio = number(rows, [("queues", "average"), ("scheme", scheme)], column);
            format!("{:+.1}", (ratio - 1.0) * 100.0)
        };
        let [mean, low, high] = ["normalized", "low", "high"].map(|end| percent(&throughput, end));
        let own = percent(&ipc, "normalized");
        let _ = writeln!(table, "| `{scheme}` | {mean} % ({low} to {high}) | {own} % | {paper} |");
    }
    hold_table(&reports().join("ILP_SMRA.md"), "gains", &table);
}

#[test]
fn times_of_tasks_follow_from_their_records() {
    let scratch = tempfile::tempdir().unwrap();
    let rows = figure(&unpacked("software", scratch.path()).join("tasks"), &["task-size"]);
    let mut table = String::from("| | task of 1 | task of 10 | the paper |\n|---|---|---|---|\n");
    for (app, paper) in TASKS {
        let time = |task| number(&rows, [("app", app), ("task_blocks", task)], "normalized");
        let _ = writeln!(table, "| `{app}` | {:.2} | {:.2} | {paper} |", time("1"), time("10"));
    }
    hold_table(&reports().join("SOFTWARE.md"), "tasks", &table);
}
