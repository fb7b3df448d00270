//! Do the gains in `reports/ILP_SMRA.md` and the times of tasks in `reports/SOFTWARE.md`
//! agree with the figures' tables?
//!
//! `BLESS=1 cargo test --test release study_tables` writes them from `reports/data/queues.csv`,
//! `queues-job-ipc.csv` and `tasks.csv`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::report_data::{hold_table, reports, rows};

/// The gains that ILP-SMRA prints over `even-queue`, by scheme (figures 3a and 4a).
const GAINS: [(&str, &str); 3] = [
    ("ilp", "+19 %, +23 %"),
    ("ilp-smra", "+36 %, +44 %"),
    ("profile-based", "+26 %, not printed"),
];

/// The values of Slate's figure 5 and table III, by benchmark.
const TASKS: [(&str, &str); 5] = [
    ("gaussian", "task 10 halves the time of task 1, and is 28 to 31 % faster than CUDA"),
    ("black-scholes", "2 % faster with 1, 5 % slower with 10"),
    ("quasirandom", "faster"),
    ("sgemm", "faster"),
    ("matrix-transpose", "faster"),
];

/// A row of a figure's own table by the names of its columns.
type Row = BTreeMap<String, String>;

/// The number in `column` of the row that holds these words in these columns.
fn number(rows: &[Row], words: [(&str, &str); 2], column: &str) -> f64 {
    let row = rows.iter().find(|row| words.iter().all(|(name, word)| row[*name] == *word));
    row.unwrap_or_else(|| panic!("no row with {words:?}"))[column].parse().unwrap()
}

#[test]
fn gains_of_queues_follow_from_their_figure() {
    let (throughput, ipc) = (rows("queues"), rows("queues-job-ipc"));
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
fn times_of_tasks_follow_from_their_figure() {
    let rows = rows("tasks");
    let mut table = String::from("| | task of 1 | task of 10 | the paper |\n|---|---|---|---|\n");
    for (app, paper) in TASKS {
        let time = |task| number(&rows, [("app", app), ("task_blocks", task)], "normalized");
        let _ = writeln!(table, "| `{app}` | {:.2} | {:.2} | {paper} |", time("1"), time("10"));
    }
    hold_table(&reports().join("SOFTWARE.md"), "tasks", &table);
}
