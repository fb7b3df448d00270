//! What to call mixes of applications and the schemes that they ran under.

use std::collections::{BTreeMap, BTreeSet};

use super::group::short_app;
use super::machine::machine_words;
use crate::results::{Analysis, CoRun};

/// The applications that run together in `record`, by their short names.
pub(crate) fn mix_name(record: &Analysis) -> String {
    let apps = record.coruns.first().map(|run| run.apps.as_slice()).unwrap_or_default();
    apps.iter().map(|app| short_app(&app.app)).collect::<Vec<_>>().join("+")
}

/// The mixes of `records`, with what differs of the machines where the same applications
/// ran on several.
pub(crate) fn mix_names(records: &[&Analysis]) -> Vec<String> {
    let mut names: Vec<String> = records.iter().map(|record| mix_name(record)).collect();
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, name) in names.iter().enumerate() {
        places.entry(name.clone()).or_default().push(place);
    }
    for own in places.values() {
        let same: Vec<&Analysis> = own.iter().map(|&place| records[place]).collect();
        for (&place, words) in own.iter().zip(machine_words(&same)) {
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

#[cfg(test)]
mod tests {
    use super::{mix_names, scheme_names};
    use crate::results::{Analysis, CoRun, CoRunApp};

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
}
