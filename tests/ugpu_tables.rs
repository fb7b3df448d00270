//! Do the tables of `reports/UGPU.md` say what their records say?
//!
//! `BLESS=1 cargo test --test all ugpu_tables` writes them anew from the archives of
//! `reports/records`, each the folder of `gpumodel sweep models/plans/NAME.toml`, some with
//! lists of chosen cells.

use std::fmt::Write as _;

use gpumodel::report::results::{CoRun, EnergyRecord, Measure};

use crate::archive::{hold_table, reports};
use crate::ugpu_study::{Archives, Mix, Study};

/// A table: records, or the list of those in their folder that count; place in the text; how
/// it is written.
type Table = (&'static str, &'static str, fn(&Study) -> String);

const TABLES: &[Table] = &[
    ("ugpu-pairs/ten.csv", "pairs", each_mix),
    ("ugpu-spread", "spread", each_mix),
    ("ugpu-pairs/ten.csv", "energy", energies),
    ("ugpu-pairs/partitions.csv", "overhead", overhead),
    ("ugpu-pairs/partitions.csv", "leaks", leaks),
    ("ugpu-leak", "translation", speeds),
    ("ugpu-pairs/partitions.csv", "partitions", each_memory_bound),
    ("ugpu-pairs/pages.csv", "pages", each_memory_bound),
    ("ugpu-pairs/searches.csv", "searches", each_memory_bound),
    ("ugpu-alike", "alike", each_kind),
    ("ugpu-many", "many", each_mix),
    ("ugpu-relaxed", "relaxed", each_run),
    ("ugpu-ai", "networks", each_mix),
    ("ugpu-qos", "promises", promises),
    ("ugpu-settings", "settings", each_run),
    ("ugpu-readings", "readings", each_run),
    ("ugpu-port", "port", each_run),
];

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
    let schemes = study.distinct(|run| &run.scheme);
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
    let schemes = study.distinct(|run| &run.scheme);
    let mixes = study.distinct(|run| &run.mix);
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
    let known: Vec<(&CoRun, f64)> = mixes
        .iter()
        .filter_map(|mix| Some((*mix.get(scheme)?, gain(mix, scheme, baseline)?)))
        .collect();
    let mean = |of: fn(&CoRun) -> f64| {
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
    let schemes = study.distinct(|run| &run.scheme);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let text = |runs: &Mix<'_>, scheme: &str| energy(runs, scheme, schemes[0]).map(percent);
    table(study, text) + &means(study, "mean", energy, mean)
}

/// What figure 12 shows: means over the mixes of `ugpu` over `bp`, and shares of one scheme.
fn overhead(study: &Study) -> String {
    let mixes = study.distinct(|run| &run.mix);
    let runs: Vec<Mix<'_>> = mixes.iter().map(|mix| study.of(mix)).collect();
    let values =
        |of: &dyn Fn(&Mix<'_>) -> Option<f64>| -> Vec<f64> { runs.iter().filter_map(of).collect() };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let over = |measure: Measure| {
        let ratios = values(&|mix| measure.ratio(mix.get("ugpu")?, mix.get("bp")?));
        percent(mean(&ratios))
    };
    let share = |measure: Measure, scheme: &str| {
        let shares = values(&|mix| measure.share(mix.get(scheme)?));
        let most = shares.iter().copied().fold(0.0, f64::max);
        format!("{:.1} %, at most {:.1}", mean(&shares) * 100.0, most * 100.0)
    };
    let grown = |of: fn(&CoRun) -> f64| {
        percent(mean(&values(&|mix| Some(of(mix.get("ugpu")?) / of(mix.get("bp")?)))))
    };
    let part = |of: fn(&EnergyRecord) -> f64, scheme: &str| {
        let energy = |mix: &Mix<'_>| mix.get(scheme)?.energy;
        let parts = values(&|mix| energy(mix).map(|energy| of(&energy) / energy.memory_joules()));
        let most = parts.iter().copied().fold(0.0, f64::max);
        format!("{:.0} %, at most {:.0}", mean(&parts) * 100.0, most * 100.0)
    };
    [
        ("energy of an instruction", over(Measure::Energy), "-7.1 %"),
        ("that of the GPU without its memory", over(Measure::GpuEnergy), "-13 %"),
        ("that of the memory", over(Measure::MemoryEnergy), "+38 %"),
        ("the memory's energy of a run", grown(memory_joules), "as above or this: not said"),
        ("its part that is static, under `bp`", part(|energy| energy.dram_static_joules, "bp"), ""),
        ("its part that is migrations", part(|energy| energy.migrations_joules, "ugpu"), ""),
        ("energy of what is read and written", grown(accesses_joules), ""),
        ("instructions of a run", grown(instructions), ""),
        ("the memory's part under `bp`", share(Measure::MemoryShare, "bp"), "11.6 %, at most 30.3"),
        ("SMs or pages moving, part of an epoch", share(Measure::Reallocation, "ugpu"), "8.9 %"),
        ("the same, worst epoch", share(Measure::WorstReallocation, "ugpu"), "at most 19.5 %"),
    ]
    .into_iter()
    .fold(header(&["of", "`ugpu`", "the paper"].map(String::from)), |lines, (of, own, paper)| {
        lines + &format!("| {of} | {own} | {paper} |\n")
    })
}

/// Energy of a thread instruction over that of the baseline.
fn energy(mix: &Mix<'_>, scheme: &str, baseline: &str) -> Option<f64> {
    let cost = |run: &CoRun| energy_of(run).total_joules() / instructions(run);
    Some(cost(mix.get(scheme)?) / cost(mix.get(baseline)?))
}

fn energy_of(run: &CoRun) -> &EnergyRecord {
    run.energy.as_ref().expect("runs of studies have their energy")
}

fn memory_joules(run: &CoRun) -> f64 {
    energy_of(run).memory_joules()
}

fn accesses_joules(run: &CoRun) -> f64 {
    energy_of(run).dram_joules
}

/// Thread instructions of all runs of all applications.
fn instructions(run: &CoRun) -> f64 {
    run.apps.iter().map(|app| app.all_thread_instructions).sum::<u64>() as f64
}

/// What compute-bound applications have of their speeds alone under the first scheme: the
/// least with who is beside, the mean, the most.
fn leaks(study: &Study) -> String {
    let first = study.distinct(|run| &run.scheme)[0];
    let columns = ["of", "least", "mean", "most"].map(String::from);
    COMPUTE_BOUND.iter().fold(header(&columns), |lines, name| {
        let runs = study.runs.iter().filter(|run| run.scheme == first);
        let own = runs.filter_map(|run| {
            let beside = run.mix.strip_suffix(name)?.strip_suffix(", ")?;
            Some((run.outcome.apps.last()?.normalized_progress, beside))
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
        let speeds = run.apps.iter().map(|app| format!("{:.3}", app.normalized_progress));
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
    let schemes = study.distinct(|run| &run.scheme);
    let mixes = study.distinct(|run| &run.mix);
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

/// STP, and what the application that was promised something has of its speed alone.
fn promises(study: &Study) -> String {
    table(study, |runs, scheme| {
        let run = runs.get(scheme)?;
        // Not every scheme's plan says who comes first.
        let high = runs.values().find_map(|run| run.chosen_priority_app()).expect("a promise");
        let progress = run.apps[high].normalized_progress;
        let word = if progress >= run.qos_target()? { "kept" } else { "broken" };
        Some(format!("{:.2}; {progress:.3}, {word}", run.stp))
    })
}

/// A row per mix and a column per scheme: what `text` says of the mix's runs.
fn table(study: &Study, text: impl Fn(&Mix<'_>, &str) -> Option<String>) -> String {
    let schemes = study.distinct(|run| &run.scheme);
    let names = schemes.iter().map(|scheme| format!("`{scheme}`"));
    let mut lines = header(&std::iter::once("mix".to_string()).chain(names).collect::<Vec<_>>());
    for name in study.distinct(|run| &run.mix) {
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
    if let [first, _] = &run.apps[..] {
        let _ = write!(text, "; {}, {}", first.sms, first.channels);
    }
    Some(text)
}

#[test]
fn the_tables_follow_from_their_records() {
    let mut archives = Archives::new();
    let path = reports().join("UGPU.md");
    for (records, name, write) in TABLES {
        hold_table(&path, name, &write(&archives.study(records)));
    }
}

#[test]
fn a_partition_from_profiles_is_above_the_one_found_at_run_time_in_the_mean() {
    let mut archives = Archives::new();
    for records in ["ugpu-pairs/ten.csv", "ugpu-pairs/partitions.csv"] {
        let study = archives.study(records);
        let mixes = study.distinct(|run| &run.mix);
        let over = |mix: &&str| gain(&study.of(mix), "ugpu-offline", "ugpu");
        let gains: Vec<f64> = mixes.iter().filter_map(over).collect();
        assert!(gains.len() >= 10, "{records}: {}", gains.len());
        assert!(geometric_mean(&gains) >= 1.0, "{records}: {gains:?}");
    }
}
