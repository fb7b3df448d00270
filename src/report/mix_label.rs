//! Labels of the mixes of one figure: what differs between them. What does not is said
//! once, below.

use std::collections::BTreeSet;

use super::mix::{apart, mix_name};
use crate::results::Analysis;

/// A machine without settings, where nothing else tells it from the others.
const PLAIN: &str = "as it is";

/// The labels of mixes side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MixLabels {
    /// One for each record.
    pub(crate) labels: Vec<String>,
    /// Sentences: what all records share and labels leave out, and what labels leave to
    /// be said.
    pub(crate) notes: Vec<String>,
}

/// Labels for the mixes of `records`.
pub(crate) fn mix_labels(records: &[&Analysis]) -> MixLabels {
    let shared = Shared::of(records);
    let labels = records.iter().map(|record| shared.label(record)).collect();
    MixLabels { labels: apart(labels), notes: shared.notes() }
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
    fn of(records: &[&'a Analysis]) -> Self {
        let mixes: BTreeSet<String> = records.iter().map(|record| mix_name(record)).collect();
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
            mix: mixes.first().filter(|_| reported && one(mixes.len())).cloned(),
            machine: machines.first().copied().filter(|_| one(machines.len())),
            set,
            differ,
        }
    }

    /// What tells `record` from the others; of a single setting that differs, its value.
    fn label(&self, record: &Analysis) -> String {
        let mix = if self.mix.is_some() { String::new() } else { mix_name(record) };
        let machine = if self.machine.is_some() { "" } else { record.machine.name.as_str() };
        let mut label = match (mix.is_empty(), machine.is_empty()) {
            (false, false) => format!("{mix} on {machine}"),
            _ => mix + machine,
        };
        for &key in &self.differ {
            let Some(value) = record.overrides.get(key) else { continue };
            let alone = self.differ.len() == 1;
            if !label.is_empty() {
                label += if alone { ", " } else { " " };
            }
            let name = self.short(key);
            let reported = if alone { value.clone() } else { format!("{name}={value}") };
            label += &reported;
        }
        if label.is_empty() { PLAIN.into() } else { label }
    }

    /// The last part of a key that differs, where no other ends so.
    fn short(&self, key: &'a str) -> &'a str {
        let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
        let name = last(key);
        if self.differ.iter().filter(|&&other| last(other) == name).count() > 1 {
            key
        } else {
            name
        }
    }

    /// What short names stand for, where labels have some.
    fn meant(&self) -> Option<String> {
        let reported = |&key: &&'a str| {
            let name = self.short(key);
            (name != key).then(|| format!("{name}: {key}"))
        };
        let meant: Vec<String> = self.differ.iter().filter_map(reported).collect();
        (self.differ.len() > 1 && !meant.is_empty())
            .then(|| format!("In labels, {}.", meant.join(", ")))
    }

    fn notes(&self) -> Vec<String> {
        let mut shared: Vec<String> = self.mix.clone().into_iter().collect();
        if self.mix.is_some() || !self.set.is_empty() {
            shared.extend(self.machine.map(|machine| format!("on {machine}")));
        }
        if !self.set.is_empty() {
            let set: Vec<String> =
                self.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
            shared.push(format!("with {}", set.join(", ")));
        }
        let mut notes = Vec::new();
        if !shared.is_empty() {
            notes.push(format!("All: {}.", shared.join(" ")));
        }
        if let [key] = self.differ[..] {
            let bare = self.mix.is_some() && self.machine.is_some();
            let place = if bare { "Labels" } else { "Behind a comma" };
            notes.push(format!("{place}: {key}, where it is set."));
        }
        notes.extend(self.meant());
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::{MixLabels, mix_labels};
    use crate::results::{Analysis, CoRun, CoRunApp, MachineRecord};

    fn record(app: &str, machine: &str, set: &[(&str, &str)]) -> Analysis {
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
        let alike = [record("x/a", "m", &[]), record("b", "m", &[])];
        assert_eq!(reported(&alike), "a | b / ");
        let set = [("l1.latency_cycles", "20")];
        let alike = [record("a", "m", &set), record("b", "m", &set), record("b", "m", &set)];
        assert_eq!(reported(&alike), "a | b | b [2] / All: on m with l1.latency_cycles=20.");
        assert_eq!(reported(&alike[..1]), "a / ");
    }

    #[test]
    fn labels_are_what_differs() {
        let set = |value| [("l1.latency_cycles", value), ("sm.count", "4")];
        let swept = [record("a", "m", &set("20")), record("a", "m", &set("30"))];
        let expected =
            "20 | 30 / All: a on m with sm.count=4. Labels: l1.latency_cycles, where it is set.";
        assert_eq!(reported(&swept), expected);
        let several = [record("a", "m", &set("20")[..1]), record("b", "n", &[])];
        let expected = "a on m, 20 | b on n / Behind a comma: l1.latency_cycles, where it is set.";
        assert_eq!(reported(&several), expected);
        let two = [record("a", "m", &[]), record("a", "m", &set("20"))];
        let expected = "as it is | latency_cycles=20 count=4 / All: a on m. \
            In labels, latency_cycles: l1.latency_cycles, count: sm.count.";
        assert_eq!(reported(&two), expected);
        let ends = [("l1.latency_cycles", "20"), ("l2.latency_cycles", "90")];
        let alike = [record("a", "m", &[]), record("a", "m", &ends)];
        let expected = "as it is | l1.latency_cycles=20 l2.latency_cycles=90 / All: a on m.";
        assert_eq!(reported(&alike), expected);
        let machines = [record("a", "m", &[]), record("a", "n", &[])];
        assert_eq!(reported(&machines), "m | n / All: a.");
    }
}
