//! How close are Warped-Slicer's samples to solo runs?
//!
//! `cargo test --test release sampling -- --nocapture` prints the table of
//! `reports/SAMPLING.md`.

use std::collections::BTreeMap;
use std::path::Path;

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::report::results::{Analysis, CoRun, CurveRecord};
use gpumodel::trace::workload::{Compression, Workload, write_folder};
use gpumodel::trace::{ConvertRequest, Silent, convert};

const PAIRS: [[&str; 2]; 3] =
    [["steady", "stream"], ["saturating", "cached"], ["stream", "cached"]];

/// The compared values of `scaling`.
const SCALINGS: [&str; 3] = ["printed", "inverse", "off"];

/// A kernel of `tests/data/shapes` with a grid that outlasts the runs.
fn store(folder: &Path, name: &str) -> AppName {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shapes");
    let short = std::fs::read_to_string(data.join(format!("{name}.toml"))).unwrap();
    let file = folder.join(format!("{name}.toml"));
    std::fs::write(&file, short.replacen("blocks = 384", "blocks = 1500", 1)).unwrap();
    let workload = Workload::load(file.to_str().unwrap(), &gpumodel::models()).unwrap();
    let (text, path) = (folder.join(name), folder.join(format!("{name}.gpt")));
    write_folder(&workload, &text, Compression::None, &mut |_| {}).unwrap();
    let request =
        ConvertRequest { inputs: vec![text], output: path.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).unwrap();
    AppName { name: name.to_owned(), path }
}

/// The pair under every scaling and under profiles of solo runs.
fn run(folder: &Path, pair: [&str; 2]) -> Analysis {
    let apps = pair.map(|name| store(folder, name)).to_vec();
    let sampled = SCALINGS.map(|scaling| format!("warped-slicer:phi=latency:scaling={scaling}"));
    let mut schemes = sampled.to_vec();
    schemes.push(String::from("warped-slicer:profile=offline"));
    let request = AnalyzeRequest {
        schemes,
        until: "cycles=26000".parse().unwrap(),
        ..AnalyzeRequest::new(apps, "warped-slicer-1400", Path::new("/no/such/folder"))
    };
    analyze(&request, &Unwatched).unwrap()
}

/// The curves of the first decision that has any.
fn curves(run: &CoRun) -> &[CurveRecord] {
    &run.decisions.iter().find(|decision| !decision.curves.is_empty()).unwrap().curves
}

/// Mean distance of two normalised curves, in points.
fn distance(one: &CurveRecord, other: &CurveRecord) -> f64 {
    let pairs = one.normalized.iter().zip(&other.normalized);
    let apart = pairs.filter_map(|(a, b)| Some((a.as_ref()? - b.as_ref()?).abs()));
    let apart: Vec<f64> = apart.collect();
    assert!(apart.len() >= 8, "every count was sampled");
    100.0 * apart.iter().sum::<f64>() / f64::from(u32::try_from(apart.len()).unwrap())
}

fn split(curves: &[CurveRecord]) -> String {
    let [one, other] = curves else { panic!("two applications") };
    match (one.chosen, other.chosen) {
        (0, 0) => String::from("spatial"),
        (one, other) => format!("{one} + {other}"),
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is what the test is run for")]
fn samples_scaled_as_printed_are_further_off_than_plain_ones() {
    let mut sums: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    println!("| pair | scaling | split | distance of the first, of the second |");
    for pair in PAIRS {
        let folder = tempfile::tempdir().unwrap();
        let analysis = run(folder.path(), pair);
        let (alone, sampled) = analysis.coruns.split_last().unwrap();
        let alone = curves(alone);
        println!("| {} + {} | full runs alone | {} | |", pair[0], pair[1], split(alone));
        for (&scaling, run) in SCALINGS.iter().zip(sampled) {
            let found = curves(run);
            let apart = [0, 1].map(|app| distance(&found[app], &alone[app]));
            println!("| | {scaling} | {} | {:.1}, {:.1} |", split(found), apart[0], apart[1]);
            for (app, apart) in pair.iter().zip(apart) {
                sums.entry((scaling, *app)).or_default().push(apart);
            }
        }
    }
    let mean = |scaling, app| {
        let all = &sums[&(scaling, app)];
        all.iter().sum::<f64>() / f64::from(u32::try_from(all.len()).unwrap())
    };
    for app in ["steady", "saturating"] {
        assert!(SCALINGS.iter().all(|scaling| mean(scaling, app) < 1.0), "{app} needs no memory");
    }
    for app in ["stream", "cached"] {
        let [printed, inverse, off] = SCALINGS.map(|scaling| mean(scaling, app));
        assert!(printed > off.max(inverse) && off < 30.0, "{app}: {printed} {inverse} {off}");
    }
}
