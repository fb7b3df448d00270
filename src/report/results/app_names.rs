//! Short names of applications, for tables and figures.

use std::collections::{BTreeMap, BTreeSet};

use super::Analysis;

/// The last component of a name, as `sgemm` of `silicon/sgemm`.
pub(crate) fn last_component(name: &str) -> &str {
    name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(name)
}

/// What to call the applications of some records: by the last component of their names, with
/// the rest behind it only where two would be the same, as `sgemm (silicon)`.
#[derive(Clone, Debug, Default)]
pub struct AppNames(BTreeMap<String, String>);

impl AppNames {
    /// The short names of every application of `records`.
    #[must_use]
    pub fn of(records: &[Analysis]) -> Self {
        Self::of_names(records.iter().flat_map(names))
    }

    /// The short names of applications called `names`.
    #[must_use]
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let whole: BTreeSet<&str> = names.into_iter().collect();
        let mut by_last: BTreeMap<&str, u32> = BTreeMap::new();
        for name in &whole {
            *by_last.entry(last_component(name)).or_default() += 1;
        }
        let short = |name: &str| match last_component(name) {
            last if by_last[last] == 1 => last.to_owned(),
            last => match name.rsplit_once('/') {
                Some((parent, _)) => format!("{last} ({parent})"),
                None => name.to_owned(),
            },
        };
        Self(whole.iter().map(|name| ((*name).to_owned(), short(name))).collect())
    }

    /// The short name of an application; of one that no record has its own name.
    #[must_use]
    pub fn short<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, String::as_str)
    }

    /// Gives the applications of `records` their short names, in sentences too.
    pub fn shorten(&self, records: &mut [Analysis]) {
        let mut rename = |name: &mut String| *name = self.short(name).to_owned();
        records.iter_mut().for_each(|record| each_name(record, &mut rename));
        let mut say = |text: &mut String| *text = self.in_sentence(text);
        records.iter_mut().for_each(|record| each_sentence(record, &mut say));
    }

    /// `text` with short names in place of whole ones.
    fn in_sentence(&self, text: &str) -> String {
        if !self.0.keys().any(|whole| text.contains(whole.as_str())) {
            return text.to_owned();
        }
        let mut said = String::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let starts = said.chars().next_back().is_none_or(|before| !in_name(before));
            let found = self.0.iter().filter(|(whole, _)| starts && stands_first(rest, whole));
            // The longest: one name may be the start of another.
            if let Some((whole, short)) = found.max_by_key(|(whole, _)| whole.len()) {
                said.push_str(short);
                rest = &rest[whole.len()..];
            } else {
                said.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
        said
    }
}

/// A copy of `record` with short names.
#[must_use]
pub fn with_short_names(record: &Analysis) -> Analysis {
    let mut short = record.clone();
    AppNames::of(std::slice::from_ref(record)).shorten(std::slice::from_mut(&mut short));
    short
}

/// The names of all applications of `record`, some several times.
fn names(record: &Analysis) -> impl Iterator<Item = &str> {
    let alone = record.solo.iter().map(|app| app.app.as_str());
    let together = record.coruns.iter().flat_map(|run| &run.apps).map(|app| app.app.as_str());
    let queued = record.queues.iter().flat_map(|run| &run.jobs).map(|job| job.app.as_str());
    alone.chain(together).chain(queued)
}

/// Calls `each` with every name of an application in `record`.
fn each_name(record: &mut Analysis, each: &mut dyn FnMut(&mut String)) {
    record.solo.iter_mut().for_each(|app| each(&mut app.app));
    for run in &mut record.coruns {
        run.apps.iter_mut().for_each(|app| each(&mut app.app));
        let curves = run.decisions.iter_mut().flat_map(|decision| &mut decision.curves);
        curves.for_each(|curve| each(&mut curve.app));
    }
    for run in &mut record.queues {
        run.jobs.iter_mut().for_each(|job| each(&mut job.app));
    }
    for found in &mut record.interference {
        found.apps.iter_mut().for_each(|app| each(&mut app.app));
        found.pairs.iter_mut().flat_map(|pair| &mut pair.apps).for_each(&mut *each);
    }
}

/// Whether a name may go on with `letter`.
fn in_name(letter: char) -> bool {
    letter.is_alphanumeric() || ['/', '_', '-'].contains(&letter)
}

/// Whether `text` starts with `name`, and with no longer one.
fn stands_first(text: &str, name: &str) -> bool {
    let rest = text.strip_prefix(name).filter(|_| !name.is_empty());
    rest.is_some_and(|rest| !rest.starts_with(in_name))
}

/// Calls `each` with every sentence of `record` that may name an application.
fn each_sentence(record: &mut Analysis, each: &mut dyn FnMut(&mut String)) {
    record.notes.iter_mut().for_each(&mut *each);
    for run in &mut record.coruns {
        run.notes.iter_mut().for_each(&mut *each);
        run.decisions.iter_mut().for_each(|decision| each(&mut decision.reason));
    }
}

#[cfg(test)]
mod tests {
    use super::{AppNames, with_short_names};
    use crate::results::{Analysis, AppRecord, CoRun, CoRunApp, DecisionRecord};

    fn record(apps: &[&str]) -> Analysis {
        let solo = apps.iter().map(|app| AppRecord { app: (*app).into(), ..AppRecord::default() });
        let together =
            apps.iter().map(|app| CoRunApp { app: (*app).into(), ..CoRunApp::default() });
        Analysis {
            solo: solo.collect(),
            coruns: vec![CoRun { apps: together.collect(), ..CoRun::default() }],
            ..Analysis::default()
        }
    }

    #[test]
    fn the_parent_stays_only_where_two_names_would_be_the_same() {
        let short = with_short_names(&record(&["silicon/sgemm", "rodinia/bfs", "rodinia/sgemm"]));
        let names: Vec<&str> = short.solo.iter().map(|app| app.app.as_str()).collect();
        assert_eq!(names, ["sgemm (silicon)", "bfs", "sgemm (rodinia)"]);
        let names: Vec<&str> = short.coruns[0].apps.iter().map(|app| app.app.as_str()).collect();
        assert_eq!(names, ["sgemm (silicon)", "bfs", "sgemm (rodinia)"]);
    }

    #[test]
    fn sentences_have_the_names_of_the_tables() {
        let mut long = record(&["apps/nn", "apps/nn-2", "a"]);
        long.notes = vec!["apps/nn-2: late; apps/nn: done".into(), "my/apps/nn: other".into()];
        long.coruns[0].notes = vec!["a: a part of apps/nn".into()];
        let reason = "1 of apps/nn, 2 of apps/nn-2; others".into();
        long.coruns[0].decisions = vec![DecisionRecord { reason, ..DecisionRecord::default() }];
        let short = with_short_names(&long);
        assert_eq!(short.notes, ["nn-2: late; nn: done", "my/apps/nn: other"]);
        assert_eq!(short.coruns[0].notes, ["a: a part of nn"]);
        assert_eq!(short.coruns[0].decisions[0].reason, "1 of nn, 2 of nn-2; others");
    }

    #[test]
    fn one_application_of_several_records_is_one() {
        let records = [record(&["silicon/sgemm"]), record(&["silicon/sgemm", "B"])];
        let names = AppNames::of(&records);
        assert_eq!([names.short("silicon/sgemm"), names.short("B")], ["sgemm", "B"]);
        assert_eq!(names.short("no/such"), "no/such");
    }
}
