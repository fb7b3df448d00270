//! Do the tables of `reports/UGPU.md` agree with their runs?
//!
//! `BLESS=1 cargo test --test release ugpu_tables` writes them from `reports/data/ugpu-joint.csv`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::report_data::{Run, distinct, hold_table, reports, rows};

/// Place in the text, how it is written.
type Table = (&'static str, fn(&Study) -> String);

const TABLES: &[Table] = &[("joint", each_mix), ("energy", energies)];

/// The runs of a study.
struct Study {
    runs: Vec<Labelled>,
}

struct Labelled {
    /// The applications, and how the machine is set.
    mix: String,
    /// The scheme, with the parameters in which its runs differ.
    scheme: String,
    run: Run,
}

/// The runs of a mix by scheme.
type Mix<'a> = BTreeMap<&'a str, &'a Run>;

impl Study {
    fn read(name: &str) -> Self {
        let runs: Vec<Run> = rows(name);
        let labels: Vec<String> = runs.iter().map(|run| run.label(&runs)).collect();
        let all: Vec<_> = runs.iter().map(|run| run.overrides.clone()).collect();
        let labelled = |(run, scheme): (Run, String)| {
            // What all runs have is no part of a name.
            let everywhere = |key, value| all.iter().all(|of| of.get(key) == Some(value));
            let own = run.overrides.iter().filter(|&(key, value)| !everywhere(key, value));
            let settings = own.map(|(key, value)| format!("; `{key}={value}`"));
            let mix = listed(&run.mix, " + ") + &settings.collect::<String>();
            Labelled { mix, scheme, run }
        };
        Self { runs: runs.into_iter().zip(labels).map(labelled).collect() }
    }

    fn mixes(&self) -> Vec<&str> {
        distinct(self.runs.iter().map(|run| run.mix.as_str()))
    }

    fn schemes(&self) -> Vec<&str> {
        distinct(self.runs.iter().map(|run| run.scheme.as_str()))
    }

    /// The runs of `mix`, by scheme.
    fn of(&self, mix: &str) -> Mix<'_> {
        let own = self.runs.iter().filter(|run| run.mix == mix);
        own.map(|run| (run.scheme.as_str(), &run.run)).collect()
    }
}

/// The applications of a mix as the tables write them.
fn listed(mix: &str, between: &str) -> String {
    mix.replace(between, ", ").to_uppercase()
}

/// STP of a run over that of the baseline; `None`: one of them was not run.
fn gain(mix: &Mix<'_>, scheme: &str, baseline: &str) -> Option<f64> {
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
/// the end.
fn each_run(study: &Study) -> String {
    let schemes = study.schemes();
    table(study, |runs, scheme| described(runs, scheme, schemes[0]))
}

/// The same, with a last row of geometric means.
fn each_mix(study: &Study) -> String {
    each_run(study) + &means(study, "mean gain", gain, geometric_mean)
}

/// Energy of a thread instruction over that under the first scheme; the last row has means.
fn energies(study: &Study) -> String {
    let schemes = study.schemes();
    let text = |runs: &Mix<'_>, scheme: &str| energy(runs, scheme, schemes[0]).map(percent);
    table(study, text) + &means(study, "mean", energy, mean)
}

/// Energy of a thread instruction over that of the baseline.
fn energy(mix: &Mix<'_>, scheme: &str, baseline: &str) -> Option<f64> {
    Some(energy_of_instruction(mix.get(scheme)?) / energy_of_instruction(mix.get(baseline)?))
}

fn energy_of_instruction(run: &Run) -> f64 {
    run.energy_joules / run.thread_instructions
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The last row: the mean over the mixes of what `value` says of a scheme, the baseline
/// being the first one.
fn means(
    study: &Study,
    name: &str,
    value: fn(&Mix<'_>, &str, &str) -> Option<f64>,
    mean: impl Fn(&[f64]) -> f64,
) -> String {
    let schemes = study.schemes();
    let mixes = study.mixes();
    let mut text = format!("| {name} |");
    for scheme in &schemes {
        let values = mixes.iter().filter_map(|mix| value(&study.of(mix), scheme, schemes[0]));
        let values: Vec<f64> = values.collect();
        let mean = match values.len() {
            _ if scheme == &schemes[0] => String::new(),
            0 => "not run".into(),
            number => format!("{} ({number})", percent(mean(&values))),
        };
        let _ = write!(text, " {mean} |");
    }
    text + "\n"
}

/// A row per mix and a column per scheme: what `text` says of the mix's runs.
fn table(study: &Study, text: impl Fn(&Mix<'_>, &str) -> Option<String>) -> String {
    let schemes = study.schemes();
    let names = schemes.iter().map(|scheme| format!("`{scheme}`"));
    let mut lines = header(&std::iter::once("mix".to_string()).chain(names).collect::<Vec<_>>());
    for name in study.mixes() {
        let runs = study.of(name);
        let _ = write!(lines, "| {name} |");
        for scheme in &schemes {
            let _ = write!(lines, " {} |", text(&runs, scheme).unwrap_or("not run".into()));
        }
        lines.push('\n');
    }
    lines
}

/// A run in words; `None`: it was not run.
fn described(runs: &Mix<'_>, scheme: &str, baseline: &str) -> Option<String> {
    let run = runs.get(scheme)?;
    let mut text = format!("{:.2} / {:.2}", run.stp, run.antt);
    let Some(gain) = gain(runs, scheme, baseline).filter(|_| scheme != baseline) else {
        return Some(text);
    };
    let _ = write!(text, "; {}", percent(gain));
    if let ([sms, _], [channels, _]) = (&run.sms[..], &run.channels[..]) {
        let _ = write!(text, "; {sms}, {channels}");
    }
    Some(text)
}

#[test]
fn the_tables_follow_from_their_runs() {
    let study = Study::read("ugpu-joint");
    for (name, write) in TABLES {
        hold_table(&reports().join("UGPU.md"), name, &write(&study));
    }
}

#[test]
fn a_partition_from_profiles_is_above_the_one_found_at_run_time_in_the_mean() {
    let study = Study::read("ugpu-joint");
    let mixes = study.mixes().into_iter();
    let gains: Vec<f64> =
        mixes.filter_map(|mix| gain(&study.of(mix), "ugpu-offline", "ugpu")).collect();
    assert!(gains.len() >= 10, "{}", gains.len());
    assert!(geometric_mean(&gains) >= 1.0, "{gains:?}");
}
