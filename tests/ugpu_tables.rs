//! Do the tables of `reports/UGPU.md` say what their records say?
//!
//! `BLESS=1 cargo test --test all ugpu_tables` writes them anew from the archives of
//! `reports/records`, each the folder of `gpumodel sweep models/plans/NAME.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use gpumodel::record::{Analysis, CellRecord, CoRun, SweepFiles};

use crate::archive::{reports, unpacked};

/// A table: records and place in the text, how it is written.
type Table = (&'static str, fn(&Study) -> String);

const TABLES: &[Table] = &[("ugpu-ten", each_pair)];

/// Runs of the cells that have ended, in the order of the plan.
struct Study {
    runs: Vec<(CellRecord, CoRun)>,
}

impl Study {
    fn read(folder: &Path) -> Self {
        let files = SweepFiles::new(folder);
        let run = |cell: CellRecord| {
            let path = files.record(&cell.key);
            let coruns = path.is_file().then(|| Analysis::read(&path).unwrap().coruns);
            Some((cell, coruns?.remove(0)))
        };
        Self { runs: files.cells().unwrap().into_iter().filter_map(run).collect() }
    }

    /// Mixes or schemes: what `name` gives of the cells, each once, as they first come.
    fn distinct(&self, name: fn(&CellRecord) -> String) -> Vec<String> {
        let mut names = Vec::new();
        for (cell, _) in &self.runs {
            let name = name(cell);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The runs of which `name` says `own`, by scheme.
    fn of(&self, name: fn(&CellRecord) -> String, own: &str) -> BTreeMap<&str, &CoRun> {
        let chosen = self.runs.iter().filter(|(cell, _)| name(cell) == own);
        chosen.map(|(cell, run)| (cell.scheme.as_str(), run)).collect()
    }
}

fn mix(cell: &CellRecord) -> String {
    cell.apps.join(", ").to_uppercase()
}

fn scheme(cell: &CellRecord) -> String {
    cell.scheme.clone()
}

/// STP of a run over that of the baseline; `None`: one of them was not run.
fn gain(mix: &BTreeMap<&str, &CoRun>, scheme: &str, baseline: &str) -> Option<f64> {
    Some(mix.get(scheme)?.stp / mix.get(baseline)?.stp)
}

fn percent(ratio: f64) -> String {
    format!("{:+.0} %", (ratio - 1.0) * 100.0)
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// The first lines of a table.
fn header(columns: &[String]) -> String {
    format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()))
}

/// STP, ANTT, gain over the first scheme, and of pairs what the first application has at
/// the end; the last row has means.
fn each_pair(study: &Study) -> String {
    let schemes = study.distinct(scheme);
    let baseline = &schemes[0];
    let names = schemes.iter().map(|scheme| format!("`{scheme}`"));
    let mut text = header(&std::iter::once("mix".to_string()).chain(names).collect::<Vec<_>>());
    let mixes = study.distinct(mix);
    for name in &mixes {
        let runs = study.of(mix, name);
        let _ = write!(text, "| {name} |");
        for scheme in &schemes {
            let cell = runs.get(scheme.as_str()).map(|run| {
                let gain = gain(&runs, scheme, baseline).filter(|_| scheme != baseline);
                described(run, gain)
            });
            let _ = write!(text, " {} |", cell.unwrap_or_else(|| "not run".into()));
        }
        text.push('\n');
    }
    text.push_str("| mean gain |");
    for scheme in &schemes {
        let gains = mixes.iter().filter_map(|name| gain(&study.of(mix, name), scheme, baseline));
        let gains: Vec<f64> = gains.collect();
        let mean = match gains.len() {
            _ if scheme == baseline => String::new(),
            0 => "not run".into(),
            number => format!("{} ({number})", percent(geometric_mean(&gains))),
        };
        let _ = write!(text, " {mean} |");
    }
    text + "\n"
}

fn described(run: &CoRun, gain: Option<f64>) -> String {
    let mut text = format!("{:.2} / {:.2}", run.stp, run.antt);
    let Some(gain) = gain else { return text };
    let _ = write!(text, "; {}", percent(gain));
    if let [first, _] = &run.apps[..] {
        let _ = write!(text, "; {}, {}", first.sms, first.channels);
    }
    text
}

#[test]
fn the_tables_follow_from_their_records() {
    let scratch = tempfile::tempdir().unwrap();
    let path = reports().join("UGPU.md");
    let mut text = fs::read_to_string(&path).unwrap();
    for (name, write) in TABLES {
        let study = Study::read(&unpacked(name, scratch.path()));
        let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- end {name} -->"));
        let begin = text.find(&open).expect("a place for the table") + open.len();
        let end = text.find(&close).expect("its end");
        let table = write(&study);
        if std::env::var_os("BLESS").is_some() {
            text.replace_range(begin..end, &table);
            fs::write(&path, &text).unwrap();
        } else {
            assert_eq!(&text[begin..end], table, "BLESS=1 writes {name} anew");
        }
    }
}
