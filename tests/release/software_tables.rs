//! Do the pairs in `reports/SOFTWARE.md` agree with their runs?
//!
//! `BLESS=1 cargo test --test release software_tables` writes them from
//! `reports/data/slate-pairs.csv` and `arcs-pairs.csv`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::report_data::{Run, hold_table, reports, rows};

/// The gain that Slate prints over MPS, by pair (section V.E).
const SLATE: [(&str, &str); 5] = [
    ("BS + RG", "+31 % (kernels)"),
    ("GS + GS2", "+24 %"),
    ("GS + RG", "+35 %, the best"),
    ("BS + MM", "-2 %"),
    ("mean", "+11 %, +18 % over CUDA, MPS +6 % over CUDA"),
];

/// Kernels of ARCS 2018 that issue in less than half of their slots.
const LOW: [&str; 3] = ["FD", "PF", "TP"];

/// By mix, names joined by ` + `, and by scheme: its run.
type Runs = BTreeMap<String, BTreeMap<String, Run>>;

fn runs(name: &str) -> Runs {
    let mut runs = Runs::new();
    for run in rows::<Run>(name) {
        runs.entry(run.mix.clone()).or_default().insert(run.scheme.clone(), run);
    }
    runs
}

/// How much faster `scheme` ends than `over` in a mix; 0 is as fast.
fn gain(mix: &BTreeMap<String, Run>, scheme: &str, over: &str) -> f64 {
    mix[over].makespan_cycles / mix[scheme].makespan_cycles - 1.0
}

#[allow(clippy::cast_precision_loss, reason = "few values")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn percent(gain: f64) -> String {
    format!("{:+.0} %", gain * 100.0)
}

/// The gains of a mix, or the means of several: of `slate` over both, and of MPS over CUDA.
fn gains(of: &[&BTreeMap<String, Run>]) -> String {
    let over = [("slate", "mps-leftover"), ("slate", "cuda"), ("mps-leftover", "cuda")];
    let gain = |(scheme, over)| {
        percent(mean(&of.iter().map(|mix| gain(mix, scheme, over)).collect::<Vec<_>>()))
    };
    over.map(gain).join(" | ")
}

#[test]
fn the_pairs_of_slate_follow_from_their_runs() {
    let runs = runs("slate-pairs");
    assert_eq!(runs.len(), 15);
    let paper = |name: &str| SLATE.iter().find(|(of, _)| *of == name).map_or("", |(_, said)| said);
    let mut table = String::from(
        "| pair | runs them | over `mps-leftover` | over `cuda` | `mps-leftover` over `cuda` | \
         the paper, over MPS |\n|---|---|---|---|---|---|\n",
    );
    for (name, mix) in &runs {
        let together = mix["slate"].first_reason.ends_with("they go together");
        let how = if together { "together" } else { "in turns" };
        assert_eq!(together, name.contains("RG"), "as in the paper: {name}");
        let _ = writeln!(table, "| {name} | {how} | {} | {} |", gains(&[mix]), paper(name));
    }
    let all: Vec<_> = runs.values().collect();
    let _ = writeln!(table, "| mean | | {} | {} |", gains(&all), paper("mean"));
    let others: Vec<_> = runs.iter().filter(|(name, _)| !name.contains("TR")).collect();
    let of = gains(&others.iter().map(|(_, mix)| *mix).collect::<Vec<_>>());
    let _ = writeln!(table, "| mean without the transpose, ten pairs | | {of} | |");
    hold_table(&reports().join("SOFTWARE.md"), "slate-pairs", &table);
}

/// Both orders of each pair, the one whose first name comes first in the alphabet first.
fn pairs(runs: &Runs) -> Vec<(String, [&BTreeMap<String, Run>; 2])> {
    let turned = |name: &str| {
        let (first, second) = name.split_once(" + ").unwrap();
        (first < second).then(|| format!("{second} + {first}"))
    };
    let both = |(name, mix)| Some((String::clone(name), [mix, &runs[&turned(name)?]]));
    runs.iter().filter_map(both).collect()
}

/// Rows of the pairs among `pairs` that hold a kernel of [`LOW`], or none, and their means.
fn group(pairs: &[(String, [&BTreeMap<String, Run>; 2])], low: bool) -> String {
    let is_low = |name: &String| name.split(" + ").any(|app| LOW.contains(&app));
    let mut rows = String::new();
    let mut sums: [Vec<f64>; 2] = Default::default();
    let mut turnarounds: [Vec<f64>; 2] = Default::default();
    for (name, orders) in pairs.iter().filter(|(name, _)| is_low(name) == low) {
        let _ = write!(rows, "| {name} ");
        let mut means = Vec::new();
        for (at, scheme) in ["pt", "sim"].into_iter().enumerate() {
            let gains = orders.map(|mix| gain(mix, scheme, "sequential"));
            let _ =
                write!(rows, "| {} ", gains.map(|gain| format!("{:.2}", 1.0 + gain)).join(", "));
            means.push(percent(mean(&gains)));
            sums[at].extend(gains);
            turnarounds[at].extend(orders.map(|mix| mix[scheme].antt));
        }
        let _ = writeln!(rows, "| {} |", means.join(", "));
    }
    let (name, paper) = match low {
        true => ("low ISU", "the paper: +5.3, +9.8 %; ANTT of `sim` 49.2 % worse"),
        false => ("high ISU", "the paper: -0.5, +0.3 %; ANTT of `sim` 78.7 % worse"),
    };
    let sums = sums.map(|gains| format!("{:+.1} %", mean(&gains) * 100.0)).join(", ");
    let turnarounds = turnarounds.map(|antt| format!("{:.2}", mean(&antt))).join(", ");
    let _ = writeln!(rows, "| **mean, {name}** | | ANTT {turnarounds} | **{sums}** ({paper}) |");
    rows
}

#[test]
fn the_pairs_of_tenancy_follow_from_their_runs() {
    let runs = runs("arcs-pairs");
    let pairs = pairs(&runs);
    assert_eq!((runs.len(), pairs.len()), (42, 21));
    let head = "| pair | `pt`: first, second comes first | `sim`: the same | mean of `pt`, `sim` \
                |\n|---|---|---|---|\n";
    let table = format!("{head}{}{}", group(&pairs, true), group(&pairs, false));
    hold_table(&reports().join("SOFTWARE.md"), "arcs-pairs", &table);
}
