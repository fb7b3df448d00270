//! Does the table of pairs in `reports/UGPU.md` say what its records say?
//!
//! `BLESS=1 cargo test --test all ugpu_pairs` writes it anew from
//! `reports/records/ugpu-ten.tar.xz`, which holds the folder of
//! `gpumodel sweep models/plans/ugpu-ten.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use gpumodel::record::{Analysis, CoRun, SweepFiles};

use crate::archive::{reports, unpacked};

const SCHEMES: [&str; 6] = ["bp", "ugpu-offline", "ugpu", "ugpu-soft", "ugpu-ori", "bp-cd-search"];

/// What gains are of.
const BASELINE: &str = SCHEMES[0];

/// Runs by mix, in the order of the plan, and by scheme.
type Runs = Vec<(String, BTreeMap<String, CoRun>)>;

fn runs(folder: &Path) -> Runs {
    let files = SweepFiles::new(folder);
    let mut runs: Runs = Vec::new();
    for cell in files.cells().unwrap() {
        let mix = cell.apps.join(", ").to_uppercase();
        if runs.last().is_none_or(|(last, _)| *last != mix) {
            runs.push((mix, BTreeMap::new()));
        }
        let path = files.record(&cell.key);
        if path.is_file() {
            let run = Analysis::read(&path).unwrap().coruns.remove(0);
            runs.last_mut().unwrap().1.insert(cell.scheme, run);
        }
    }
    runs
}

/// STP of a run over that of the baseline; `None`: one of them was not run.
fn gain(mix: &BTreeMap<String, CoRun>, scheme: &str) -> Option<f64> {
    Some(mix.get(scheme)?.stp / mix.get(BASELINE)?.stp)
}

fn percent(ratio: f64) -> String {
    format!("{:+.0} %", (ratio - 1.0) * 100.0)
}

/// STP, gain, ANTT and what the first application has at the end, by mix and scheme.
fn table(runs: &Runs) -> String {
    let names = SCHEMES.map(|scheme| format!("`{scheme}`")).join(" | ");
    let mut text = format!("| pair | {names} |\n|---|{}\n", "---|".repeat(SCHEMES.len()));
    for (mix, schemes) in runs {
        let _ = write!(text, "| {mix} |");
        for scheme in SCHEMES {
            let Some(run) = schemes.get(scheme) else {
                text.push_str(" not run |");
                continue;
            };
            let _ = write!(text, " {:.2} / {:.2}", run.stp, run.antt);
            if let Some(gain) = gain(schemes, scheme).filter(|_| scheme != BASELINE) {
                let first = &run.apps[0];
                let _ = write!(text, "; {}; {}, {}", percent(gain), first.sms, first.channels);
            }
            text.push_str(" |");
        }
        text.push('\n');
    }
    text.push_str("| mean gain |");
    for scheme in SCHEMES {
        let gains: Vec<f64> = runs.iter().filter_map(|(_, mix)| gain(mix, scheme)).collect();
        let mean = (gains.iter().map(|gain| gain.ln()).sum::<f64>() / gains.len() as f64).exp();
        let _ = match gains.len() {
            _ if scheme == BASELINE => write!(text, " |"),
            0 => write!(text, " not run |"),
            number => write!(text, " {} ({number}) |", percent(mean)),
        };
    }
    text + "\n"
}

#[test]
fn the_pairs_follow_from_their_records() {
    let scratch = tempfile::tempdir().unwrap();
    let runs = runs(&unpacked("ugpu-ten", scratch.path()));
    assert_eq!(runs.len(), 10);
    let path = reports().join("UGPU.md");
    let mut text = fs::read_to_string(&path).unwrap();
    let (open, close) = ("<!-- ten -->\n", "<!-- end ten -->");
    let begin = text.find(open).expect("a place for the table") + open.len();
    let end = text.find(close).expect("its end");
    let table = table(&runs);
    if std::env::var_os("BLESS").is_some() {
        text.replace_range(begin..end, &table);
        fs::write(path, text).unwrap();
    } else {
        assert_eq!(&text[begin..end], table, "BLESS=1 writes it anew");
    }
}
