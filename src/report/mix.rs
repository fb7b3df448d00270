//! What to call mixes of applications, their machines and the schemes that they ran under.

use std::collections::{BTreeMap, BTreeSet};

use super::machine::{MachinePanel, machine_panels, spelt, tails};
use super::results::last_component;
use crate::results::{Analysis, CoRun};
use crate::{distinct, group_by};

/// What stands behind the name of each of `records`: ` on MACHINE` where they are of several
/// machines, then ` key=value` for what was set of the machine and not of all records of
/// it. Empty where nothing differs.
pub(crate) fn machine_words(records: &[&Analysis]) -> Vec<String> {
    tails(records, |key, value| format!(" {key}={value}"))
}

/// The applications that run together in `record`, by their short names.
pub(crate) fn mix_name(record: &Analysis) -> String {
    let apps = record.coruns.first().map(|run| run.apps.as_slice()).unwrap_or_default();
    apps.iter().map(|app| last_component(&app.app)).collect::<Vec<_>>().join("+")
}

/// The mixes of `records`, with what differs of the machines where the same applications
/// ran on several.
pub(crate) fn mix_names(records: &[&Analysis]) -> Vec<String> {
    let mut names: Vec<String> = records.iter().map(|record| mix_name(record)).collect();
    for (_, places) in group_by(names.clone().into_iter().zip(0..)) {
        let same: Vec<&Analysis> = places.iter().map(|&place: &usize| records[place]).collect();
        for (place, words) in places.into_iter().zip(machine_words(&same)) {
            names[place] += &words;
        }
    }
    apart(names)
}

/// One name for each of `runs`: the scheme, where it ran several times with the
/// parameters in which its runs differ.
pub(crate) fn scheme_names(runs: &[CoRun]) -> Vec<String> {
    names(runs.iter().map(|run| (run.scheme.as_str(), &run.parameters)).collect())
}

/// One name for each of `schemes`, given with their parameters, as [`scheme_names`].
pub(crate) fn names(schemes: Vec<(&str, &BTreeMap<String, String>)>) -> Vec<String> {
    let name = |&(scheme, parameters): &(&str, &BTreeMap<String, String>)| {
        let same = || schemes.iter().filter(|other| other.0 == scheme);
        let differs = |key: &String| same().any(|o| o.1.get(key) != parameters.get(key));
        let reported = parameters.iter().filter(|(key, _)| differs(key));
        let words = reported.map(|(key, value)| format!(":{key}={value}"));
        scheme.to_string() + &words.collect::<String>()
    };
    apart(schemes.iter().map(name).collect())
}

/// Numbers names that come again.
pub(crate) fn apart(names: Vec<String>) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut number = |name: String| {
        let mut unique = name.clone();
        let mut count = 2;
        while !used.insert(unique.clone()) {
            unique = format!("{name} [{count}]");
            count += 1;
        }
        unique
    };
    names.into_iter().map(&mut number).collect()
}

/// A machine without settings, where nothing else tells it from the others.
const PLAIN: &str = "as it is";

/// The labels of mixes side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MixLabels {
    /// One for each record.
    pub(crate) labels: Vec<String>,
    /// Sentences: what all records share and labels leave out.
    pub(crate) notes: Vec<String>,
}

/// Labels for the mixes of `records`.
pub(crate) fn mix_labels(records: &[&Analysis]) -> MixLabels {
    mix_labels_of(records, &records.iter().map(|record| mix_name(record)).collect::<Vec<_>>())
}

/// Labels for mixes that are called `names`.
pub(crate) fn mix_labels_of(records: &[&Analysis], names: &[String]) -> MixLabels {
    let shared = Shared::of(records, names);
    let labels = records.iter().zip(names).map(|(record, name)| shared.label(record, name));
    MixLabels { labels: apart(labels.collect()), notes: shared.notes() }
}

/// What records share, and the settings of their machines in which they differ.
struct Shared<'a> {
    /// The mix, where something else tells the records apart.
    mix: Option<String>,
    machine: Option<&'a str>,
    set: Vec<(&'a str, &'a str)>,
    differ: Vec<&'a str>,
}

impl<'a> Shared<'a> {
    fn of(records: &[&'a Analysis], names: &[String]) -> Self {
        let mixes: BTreeSet<&String> = names.iter().collect();
        let machines: BTreeSet<&'a str> =
            records.iter().map(|record| record.machine.name.as_str()).collect();
        let keys = records.iter().flat_map(|record| record.overrides.keys());
        let keys: BTreeSet<&'a str> = keys.map(String::as_str).collect();
        let (mut set, mut differ) = (Vec::new(), Vec::new());
        for key in keys {
            let mut values = records.iter().map(|record| record.overrides.get(key));
            let first = values.next().flatten();
            match first.filter(|_| values.all(|value| value == first)) {
                Some(value) => set.push((key, value.as_str())),
                None => differ.push(key),
            }
        }
        if records.len() < 2 {
            set.clear();
        }
        let reported = machines.len() > 1 || !differ.is_empty();
        let one = |count: usize| count == 1;
        Self {
            mix: mixes.first().filter(|_| reported && one(mixes.len())).map(|mix| (*mix).clone()),
            machine: machines.first().copied().filter(|_| one(machines.len())),
            set,
            differ,
        }
    }

    /// What tells `record`, of the mix `name`, from the others.
    fn label(&self, record: &Analysis, name: &str) -> String {
        let mix = if self.mix.is_some() { "" } else { name };
        let machine = if self.machine.is_some() { "" } else { record.machine.name.as_str() };
        let on = if mix.is_empty() || machine.is_empty() { "" } else { " on " };
        let whose = format!("{mix}{on}{machine}");
        let set =
            self.differ.iter().filter_map(|&key| Some(spelt(key, record.overrides.get(key)?)));
        let all: Vec<String> =
            Some(whose).filter(|w| !w.is_empty()).into_iter().chain(set).collect();
        if all.is_empty() { PLAIN.into() } else { all.join(", ") }
    }

    fn notes(&self) -> Vec<String> {
        let mut shared: Vec<String> = self.mix.clone().into_iter().collect();
        if self.mix.is_some() || !self.set.is_empty() {
            shared.extend(self.machine.map(|machine| format!("on {machine}")));
        }
        if !self.set.is_empty() {
            let set: Vec<String> = self.set.iter().map(|(key, value)| spelt(key, value)).collect();
            shared.push(format!("with {}", set.join(", ")));
        }
        if shared.is_empty() { Vec::new() } else { vec![format!("All: {}.", shared.join(" "))] }
    }
}

/// Runs of several applications together: a row per mix, a column per scheme.
#[derive(Clone, Debug)]
pub(crate) struct MixesByScheme<'a> {
    /// Every scheme of all machines, in the order in which they first come.
    pub(crate) schemes: Vec<String>,
    /// Every record with such a run, in record order.
    pub(crate) mixes: Vec<Mix<'a>>,
    /// Where they are drawn.
    pub(crate) panel: MachinePanel,
}

/// One mix.
#[derive(Clone, Debug)]
pub(crate) struct Mix<'a> {
    /// What to call it.
    pub(crate) name: String,
    /// What to call it in its panel.
    pub(crate) label: String,
    /// Its run under each scheme of the grid; `None`: there is none.
    pub(crate) runs: Vec<Option<&'a CoRun>>,
}

impl<'a> MixesByScheme<'a> {
    /// The runs of `records` in which several applications share the machine, by machine.
    pub(crate) fn by_machine(records: &'a [Analysis]) -> Vec<Self> {
        let shared = |run: &CoRun| run.apps.len() > 1;
        let records: Vec<&Analysis> =
            records.iter().filter(|record| record.coruns.iter().any(shared)).collect();
        let named = |record: &&'a Analysis| -> Vec<(String, &'a CoRun)> {
            let all = scheme_names(&record.coruns).into_iter().zip(&record.coruns);
            all.filter(|(_, run)| shared(run)).collect()
        };
        let rows: Vec<Vec<(String, &CoRun)>> = records.iter().map(named).collect();
        let schemes = distinct(rows.iter().flatten().map(|(scheme, _)| scheme.clone()));
        let short: Vec<String> = records.iter().map(|record| mix_name(record)).collect();
        let names = mix_names(&records);
        let mix = |(&place, label): (&usize, &String)| {
            let run =
                |scheme| rows[place].iter().find(|(own, _)| own == scheme).map(|(_, run)| *run);
            let runs = schemes.iter().map(run).collect();
            Mix { name: names[place].clone(), label: label.clone(), runs }
        };
        let of = |panel: MachinePanel| {
            let mixes = panel.places.iter().zip(&panel.labels).map(mix).collect();
            Self { schemes: schemes.clone(), mixes, panel }
        };
        machine_panels(&records, &short).0.into_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{MixLabels, MixesByScheme, machine_words, mix_labels, mix_names, scheme_names};
    use crate::results::{Analysis, CoRun, CoRunApp, MachineRecord};

    fn record(machine: &str, set: &[(&str, &str)]) -> Analysis {
        Analysis {
            machine: MachineRecord { name: machine.into(), ..MachineRecord::default() },
            overrides: set.iter().map(|&(key, value)| (key.into(), value.into())).collect(),
            ..Analysis::default()
        }
    }

    fn words(records: &[Analysis]) -> Vec<String> {
        machine_words(&records.iter().collect::<Vec<_>>())
    }

    #[test]
    fn labels_of_machines_have_what_differs() {
        let swept = [
            record("m", &[("dram.channels", "8"), ("sm.count", "4")]),
            record("m", &[("dram.channels", "16"), ("sm.count", "4")]),
            record("m", &[("sm.count", "4")]),
        ];
        assert_eq!(words(&swept), [" dram.channels=8", " dram.channels=16", ""]);
        assert_eq!(words(&swept[..1]), [""]);
        let several = [record("m", &[("a.b", "1")]), record("n", &[]), record("m", &[])];
        assert_eq!(words(&several), [" on m a.b=1", " on n", " on m"]);
    }

    #[test]
    fn a_mix_on_one_machine_set_otherwise_says_how() {
        let record = |app: &str, channels: &str| Analysis {
            overrides: [("dram.channels".into(), channels.into())].into(),
            coruns: vec![CoRun {
                apps: vec![CoRunApp { app: app.into(), ..CoRunApp::default() }],
                ..CoRun::default()
            }],
            ..Analysis::default()
        };
        let records = [record("x/a", "8"), record("x/a", "16"), record("b", "8")];
        let names = mix_names(&records.iter().collect::<Vec<_>>());
        assert_eq!(names, ["a dram.channels=8", "a dram.channels=16", "b"]);
    }

    #[test]
    fn runs_of_one_scheme_are_told_apart_by_what_differs() {
        let run = |scheme: &str, window: &str| CoRun {
            scheme: scheme.into(),
            parameters: [("window", window), ("k", "2")]
                .map(|(key, value)| (key.into(), value.into()))
                .into(),
            ..CoRun::default()
        };
        let names = scheme_names(&[run("a", "5"), run("b", "5"), run("a", "9"), run("a", "9")]);
        assert_eq!(names, ["a:window=5", "b", "a:window=9", "a:window=9 [2]"]);
    }

    fn mix_on(app: &str, machine: &str, set: &[(&str, &str)]) -> Analysis {
        let apps = vec![CoRunApp { app: app.into(), ..CoRunApp::default() }];
        Analysis {
            machine: MachineRecord { name: machine.into(), ..MachineRecord::default() },
            overrides: set.iter().map(|&(key, value)| (key.into(), value.into())).collect(),
            coruns: vec![CoRun { apps, ..CoRun::default() }],
            ..Analysis::default()
        }
    }

    /// Labels, a slash, and notes.
    fn reported(records: &[Analysis]) -> String {
        let MixLabels { labels, notes } = mix_labels(&records.iter().collect::<Vec<_>>());
        format!("{} / {}", labels.join(" | "), notes.join(" "))
    }

    #[test]
    fn what_all_share_is_said_once() {
        let alike = [mix_on("x/a", "m", &[]), mix_on("b", "m", &[])];
        assert_eq!(reported(&alike), "a | b / ");
        let set = [("l1.latency_cycles", "20")];
        let alike = [mix_on("a", "m", &set), mix_on("b", "m", &set), mix_on("b", "m", &set)];
        assert_eq!(reported(&alike), "a | b | b [2] / All: on m with L1 latency 20 cycles.");
        assert_eq!(reported(&alike[..1]), "a / ");
    }

    #[test]
    fn labels_are_what_differs() {
        let set = |value| [("l1.latency_cycles", value), ("sm.count", "4")];
        let swept = [mix_on("a", "m", &set("20")), mix_on("a", "m", &set("30"))];
        let expected = "L1 latency 20 cycles | L1 latency 30 cycles / All: a on m with SM count 4.";
        assert_eq!(reported(&swept), expected);
        let several = [mix_on("a", "m", &set("20")[..1]), mix_on("b", "n", &[])];
        let expected = "a on m, L1 latency 20 cycles | b on n / ";
        assert_eq!(reported(&several), expected);
        let two = [mix_on("a", "m", &[]), mix_on("a", "m", &set("20"))];
        let expected = "as it is | L1 latency 20 cycles, SM count 4 / All: a on m.";
        assert_eq!(reported(&two), expected);
        let machines = [mix_on("a", "m", &[]), mix_on("a", "n", &[])];
        assert_eq!(reported(&machines), "m | n / All: a.");
    }

    #[test]
    fn a_mix_lacks_the_schemes_that_it_did_not_run_under() {
        let app = |name: &&str| CoRunApp { app: (*name).into(), ..CoRunApp::default() };
        let run = |scheme: &str, apps: &[&str]| CoRun {
            scheme: scheme.into(),
            apps: apps.iter().map(app).collect(),
            ..CoRun::default()
        };
        let record = |coruns| Analysis { coruns, ..Analysis::default() };
        let records = [
            record(vec![run("bp", &["x/a", "b"]), run("solo", &["a"])]),
            record(vec![run("solo", &["a"])]),
            record(vec![run("ugpu", &["a", "c"]), run("bp", &["a", "c"])]),
        ];
        let [table] = &MixesByScheme::by_machine(&records)[..] else { panic!("one machine") };
        assert_eq!(table.schemes, ["bp", "ugpu"]);
        let names: Vec<&str> = table.mixes.iter().map(|mix| mix.name.as_str()).collect();
        assert_eq!(names, ["a+b", "a+c"]);
        assert!(table.mixes[0].runs[0].is_some() && table.mixes[0].runs[1].is_none());
        assert_eq!(table.mixes[1].runs[1].map(|run| run.scheme.as_str()), Some("ugpu"));
    }
}
