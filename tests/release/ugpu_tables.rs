//! Do the tables of `reports/UGPU.md` agree with their runs?
//!
//! `BLESS=1 cargo test --test release ugpu_tables` writes them from the tables `ugpu-*.csv` of
//! `reports/data`, and the parts of an epoch in which something moves from
//! `reports/data/ugpu-former-headlines.csv`, of the readings before 2026-11-28.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::report_data::{Run, distinct, hold_table, reports, rows};

/// Runs, place in the text, how it is written.
type Table = (&'static str, &'static str, fn(&Study) -> String);

const TABLES: &[Table] = &[
    ("ugpu-ten", "pairs", each_mix),
    ("ugpu-joint", "joint", each_mix),
    ("ugpu-ten", "energy", energies),
    ("ugpu-partitions", "overhead", overhead),
    ("ugpu-partitions", "leaks", leaks),
    ("ugpu-leak", "translation", speeds),
    ("ugpu-partitions", "partitions", each_memory_bound),
    ("ugpu-pages", "pages", each_memory_bound),
    ("ugpu-searches", "searches", each_memory_bound),
    ("ugpu-alike", "alike", each_kind),
    ("ugpu-many", "many", each_mix),
    ("ugpu-relaxed", "relaxed", each_run),
    ("ugpu-ai", "networks", each_mix),
    ("ugpu-settings", "settings", each_run),
    ("ugpu-readings", "readings", each_run),
    ("ugpu-port", "port", each_run),
];

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
        let labelled = |(run, scheme): (Run, String)| {
            let settings = run.overrides.iter().map(|(key, value)| format!("; `{key}={value}`"));
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

/// The compute-bound applications of the paper's table 2.
const COMPUTE_BOUND: &[&str] = &["DXTC", "HOTSPOT", "PF", "CP", "MRIQ"];

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

/// A row per first application, then one of all mixes.
fn each_memory_bound(study: &Study) -> String {
    each_group(study, |mix| mix.split(',').next().expect("an application"))
}

/// A row per kind of pair, then one of all.
fn each_kind(study: &Study) -> String {
    each_group(study, |mix| {
        let compute = mix.split(", ").all(|app| COMPUTE_BOUND.contains(&app));
        if compute { "compute-bound" } else { "memory-bound" }
    })
}

/// A row per group of mixes, then one of all: means of STP and of ANTT, and the geometric
/// mean, the least and the largest of the gains over the first scheme.
fn each_group(study: &Study, group: fn(&str) -> &str) -> String {
    let schemes = study.schemes();
    let mixes = study.mixes();
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for mix in &mixes {
        match groups.iter_mut().find(|(name, _)| *name == group(mix)) {
            Some((_, members)) => members.push(mix),
            None => groups.push((group(mix), vec![mix])),
        }
    }
    groups.push(("all", mixes.clone()));
    let names = schemes.iter().map(|scheme| format!("`{scheme}`"));
    let columns = ["of", "pairs"].map(String::from).into_iter().chain(names);
    let mut lines = header(&columns.collect::<Vec<_>>());
    for (name, members) in groups {
        let runs: Vec<Mix<'_>> = members.iter().map(|mix| study.of(mix)).collect();
        let _ = write!(lines, "| {name} | {} |", runs.len());
        for scheme in &schemes {
            let text = spread(&runs, scheme, schemes[0]).unwrap_or("not run".into());
            let _ = write!(lines, " {text} |");
        }
        lines.push('\n');
    }
    lines
}

/// What those of a group of mixes have under a scheme that were run under it and under the
/// baseline; `None`: none was.
fn spread(mixes: &[Mix<'_>], scheme: &str, baseline: &str) -> Option<String> {
    let known: Vec<(&Run, f64)> = mixes
        .iter()
        .filter_map(|mix| Some((*mix.get(scheme)?, gain(mix, scheme, baseline)?)))
        .collect();
    let mean = |of: fn(&Run) -> f64| {
        known.iter().map(|(run, _)| of(run)).sum::<f64>() / known.len() as f64
    };
    let gains: Vec<f64> = known.iter().map(|(_, gain)| *gain).collect();
    let least = gains.iter().copied().reduce(f64::min)?;
    let most = gains.iter().copied().reduce(f64::max)?;
    let mut text = format!("{:.2} / {:.2}", mean(|run| run.stp), mean(|run| run.antt));
    if scheme != baseline {
        let (mean, least, most) = (percent(geometric_mean(&gains)), percent(least), percent(most));
        let _ = write!(text, "; {mean} ({least} to {most})");
    }
    if known.len() < mixes.len() {
        let _ = write!(text, "; {} of {}", known.len(), mixes.len());
    }
    Some(text)
}

/// Energy of a thread instruction over that under the first scheme; the last row has means.
fn energies(study: &Study) -> String {
    let schemes = study.schemes();
    let text = |runs: &Mix<'_>, scheme: &str| energy(runs, scheme, schemes[0]).map(percent);
    table(study, text) + &means(study, "mean", energy, mean)
}

/// Figure 12: means over the mixes of `ugpu` over `bp`, and shares of one scheme.
fn overhead(study: &Study) -> String {
    let mixes: Vec<Mix<'_>> = study.mixes().into_iter().map(|mix| study.of(mix)).collect();
    let over = |of: fn(&Run) -> f64| {
        let ratios: Vec<f64> = mixes.iter().map(|mix| of(mix["ugpu"]) / of(mix["bp"])).collect();
        percent(mean(&ratios))
    };
    let share = |of: fn(&Run) -> f64, scheme: &str| -> Vec<f64> {
        mixes.iter().map(|mix| 100.0 * of(mix[scheme])).collect()
    };
    let fixed = share(|run| run.dram_static_joules / run.memory_joules(), "bp");
    let moved = share(|run| run.migrations_joules / run.memory_joules(), "ugpu");
    let memory = share(|run| run.memory_joules() / run.energy_joules, "bp");
    let of_gpu = |run: &Run| (run.energy_joules - run.memory_joules()) / run.thread_instructions;
    let of_memory = |run: &Run| run.memory_joules() / run.thread_instructions;
    [
        ("energy of an instruction", over(energy_of_instruction), "-7.1 %"),
        ("that of the GPU without its memory", over(of_gpu), "-13 %"),
        ("that of the memory", over(of_memory), "+38 %"),
        ("the memory's energy of a run", over(Run::memory_joules), "as above or this: not said"),
        ("its part that is static, under `bp`", at_most(&fixed, 0), ""),
        ("its part that is migrations", at_most(&moved, 0), ""),
        ("energy of what is read and written", over(|run| run.dram_joules), ""),
        ("instructions of a run", over(|run| run.thread_instructions), ""),
        ("the memory's part under `bp`", at_most(&memory, 1), "11.6 %, at most 30.3"),
        ("SMs or pages moving, part of an epoch", at_most(&of_epochs("reallocation"), 1), "8.9 %"),
        ("the same, worst epoch", at_most(&of_epochs("worst-reallocation"), 1), "at most 19.5 %"),
    ]
    .into_iter()
    .fold(header(&["of", "`ugpu`", "the paper"].map(String::from)), |lines, (of, own, paper)| {
        lines + &format!("| {of} | {own} | {paper} |\n")
    })
}

/// Mean and maximum of percentages.
fn at_most(percents: &[f64], places: usize) -> String {
    let most = percents.iter().copied().fold(0.0, f64::max);
    format!("{:.places$} %, at most {most:.places$}", mean(percents))
}

/// Percent of an epoch of each pair, as the reproduction measures it.
fn of_epochs(measure: &str) -> Vec<f64> {
    /// A line of `headlines.csv`.
    #[derive(Deserialize)]
    struct Line {
        measure: String,
        mix: String,
        modelled_percent: f64,
    }
    let lines = csv::Reader::from_path(reports().join("data/ugpu-former-headlines.csv")).unwrap();
    let lines = lines.into_deserialize().map(|line| -> Line { line.unwrap() });
    let pairs = lines.filter(|line| line.measure == measure && line.mix.contains(" + "));
    pairs.map(|line| line.modelled_percent).collect()
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

/// The share of their solo speed that compute-bound applications have under the first
/// scheme: the least with its partner, the mean, the most.
fn leaks(study: &Study) -> String {
    let first = study.schemes()[0];
    let columns = ["of", "least", "mean", "most"].map(String::from);
    COMPUTE_BOUND.iter().fold(header(&columns), |lines, name| {
        let runs = study.runs.iter().filter(|run| run.scheme == first);
        let own = runs.filter_map(|run| {
            let partner = run.mix.strip_suffix(name)?.strip_suffix(", ")?;
            Some((*run.run.normalized_progress.last()?, partner))
        });
        let mut speeds: Vec<(f64, &str)> = own.collect();
        speeds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean = speeds.iter().map(|(speed, _)| speed).sum::<f64>() / speeds.len() as f64;
        let [(least, worst), .., (most, best)] = speeds[..] else { panic!("{name}: few pairs") };
        let row = format!("{least:.2}, {worst} | {mean:.2} | {most:.2}, {best}");
        lines + &format!("| {name} | {row} |\n")
    })
}

/// STP, and what each application has of its speed alone.
fn speeds(study: &Study) -> String {
    table(study, |runs, scheme| {
        let run = runs.get(scheme)?;
        let speeds = run.normalized_progress.iter().map(|speed| format!("{speed:.3}"));
        Some(format!("{:.2}; {}", run.stp, speeds.collect::<Vec<_>>().join(", ")))
    })
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

/// A row of the own table of the figure `qos`.
#[derive(Deserialize)]
struct Promise {
    mix: String,
    scheme: String,
    progress: Option<f64>,
    met: Option<bool>,
    stp: f64,
}

/// STP, and what the application that was promised something has of its speed alone.
fn promises() -> String {
    let mut found: Vec<Promise> = rows("ugpu-qos");
    found.retain(|row| row.met.is_some());
    let schemes = distinct(found.iter().map(|row| &row.scheme));
    let names = schemes.iter().map(|scheme| format!("`{scheme}`"));
    let mut lines = header(&std::iter::once("mix".to_string()).chain(names).collect::<Vec<_>>());
    for mix in distinct(found.iter().map(|row| &row.mix)) {
        let _ = write!(lines, "| {} |", listed(mix, "+"));
        for row in found.iter().filter(|row| row.mix == *mix) {
            let word = if row.met == Some(true) { "kept" } else { "broken" };
            let _ = write!(lines, " {:.2}; {:.3}, {word} |", row.stp, row.progress.unwrap());
        }
        lines.push('\n');
    }
    lines
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
    let path = reports().join("UGPU.md");
    for (runs, name, write) in TABLES {
        hold_table(&path, name, &write(&Study::read(runs)));
    }
    hold_table(&path, "promises", &promises());
}

#[test]
fn a_partition_from_profiles_is_above_the_one_found_at_run_time_in_the_mean() {
    for runs in ["ugpu-ten", "ugpu-partitions"] {
        let study = Study::read(runs);
        let mixes = study.mixes().into_iter();
        let gains = mixes.filter_map(|mix| gain(&study.of(mix), "ugpu-offline", "ugpu"));
        let gains: Vec<f64> = gains.collect();
        assert!(gains.len() >= 10, "{runs}: {}", gains.len());
        assert!(geometric_mean(&gains) >= 1.0, "{runs}: {gains:?}");
    }
}
