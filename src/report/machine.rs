//! What to call machines in figures, with what was set of them in words, and the panels of
//! figures that show several.

use std::collections::{BTreeMap, BTreeSet};

use super::chart::Layout;
use super::mix::{MixLabels, apart, mix_labels_of};
use crate::group_by;
use crate::results::Analysis;

/// Parts of keys that are written otherwise in words.
const WORDS: [(&str, &str); 19] = [
    ("l0", "L0"),
    ("l1", "L1"),
    ("l2", "L2"),
    ("sm", "SM"),
    ("sms", "SMs"),
    ("dram", "DRAM"),
    ("mmu", "MMU"),
    ("tlb", "TLB"),
    ("alu", "ALU"),
    ("sfu", "SFU"),
    ("int", "INT"),
    ("fp32", "FP32"),
    ("fp64", "FP64"),
    ("cta", "CTA"),
    ("ctas", "CTAs"),
    ("mshrs", "MSHRs"),
    ("mhz", "MHz"),
    ("us", "µs"),
    ("gbps", "GB/s"),
];

/// Last parts of keys that are units.
const UNITS: [&str; 7] = ["cycles", "bytes", "sectors", "mhz", "ns", "us", "gbps"];

/// A setting in words: `l1.latency_cycles` of `20` is `L1 latency 20 cycles`.
pub(crate) fn spelt(key: &str, value: &str) -> String {
    let mut parts: Vec<&str> = key.split(['.', '_']).collect();
    let unit = parts.pop_if(|last| UNITS.contains(last));
    let words = parts.into_iter().map(word).chain([value.to_string()]);
    words.chain(unit.map(word)).collect::<Vec<_>>().join(" ")
}

/// A part of a key in words: `l1` is `L1`.
pub(crate) fn word(part: &str) -> String {
    let known = WORDS.iter().find(|(plain, _)| *plain == part);
    known.map_or(part, |(_, word)| word).to_string()
}

/// What is written behind the name of each of `records`: ` on MACHINE` where they are of several
/// machines, then what was set of the machine and not of all of its name, as `words` has it.
pub(crate) fn tails(records: &[&Analysis], words: fn(&str, &str) -> String) -> Vec<String> {
    let machines: BTreeSet<&str> = records.iter().map(|one| one.machine.name.as_str()).collect();
    let mut alike: BTreeMap<&str, Vec<&Analysis>> = BTreeMap::new();
    for record in records {
        alike.entry(&record.machine.name).or_default().push(record);
    }
    let of = |record: &&Analysis| {
        let name = record.machine.name.as_str();
        let differs = |(key, value): &(&String, &String)| {
            alike[name].iter().any(|other| other.overrides.get(*key) != Some(*value))
        };
        let set = record.overrides.iter().filter(differs);
        let on = if machines.len() > 1 { format!(" on {name}") } else { String::new() };
        on + &set.map(|(key, value)| words(key, value)).collect::<String>()
    };
    records.iter().map(of).collect()
}

/// The same with settings spelt out.
pub(crate) fn machine_tails(records: &[&Analysis]) -> Vec<String> {
    tails(records, |key, value| format!(", {}", spelt(key, value)))
}

/// Mixes that are drawn in one panel, and the names that they have there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachinePanel {
    /// The machine; empty where there is one panel.
    pub(crate) title: String,
    /// The places of its mixes.
    pub(crate) places: Vec<usize>,
    /// One for each place.
    pub(crate) labels: Vec<String>,
    /// All are of one machine, so that a mean over them says something.
    pub(crate) alike: bool,
}

impl MachinePanel {
    /// Writes the machine above the panel, where there are several.
    pub(crate) fn head(&self, layout: &mut Layout) {
        if !self.title.is_empty() {
            layout.skip(4.0);
            layout.note(&format!("{}:", self.title));
            layout.skip(3.0);
        }
    }

    /// What the mean of its mixes is called in tables, which is a mean of this `kind`.
    pub(crate) fn mean_name(&self, kind: &str) -> String {
        if self.title.is_empty() { kind.into() } else { format!("{kind} on {}", self.title) }
    }
}

/// The panels of a figure of mixes that are called `names` and have a record each, and what is
/// to be said below them: one panel for each machine, all in one where every machine has one
/// mix.
pub(crate) fn machine_panels(
    records: &[&Analysis],
    names: &[String],
) -> (Vec<MachinePanel>, Vec<String>) {
    let key = |(place, record): (usize, &&Analysis)| {
        let machine = &record.machine;
        ((machine.name.clone(), machine.hash.clone(), record.overrides.clone()), place)
    };
    let machines = group_by(records.iter().enumerate().map(key));
    let MixLabels { labels, notes } = mix_labels_of(records, names);
    if machines.len() < 2 || machines.iter().all(|(_, places)| places.len() < 2) {
        let (title, alike) = (String::new(), machines.len() < 2);
        let places = (0..records.len()).collect();
        return (vec![MachinePanel { title, places, labels, alike }], notes);
    }
    let firsts: Vec<&Analysis> = machines.iter().map(|(_, places)| records[places[0]]).collect();
    let title = |first: &&Analysis| {
        let differs = |(key, value): &(&String, &String)| {
            firsts.iter().any(|other| other.overrides.get(*key) != Some(*value))
        };
        let set = first.overrides.iter().filter(differs);
        let words = set.map(|(key, value)| format!(", {}", spelt(key, value)));
        first.machine.name.clone() + &words.collect::<String>()
    };
    let titles = firsts.iter().map(title);
    let panel = |(title, (_, places)): (String, (_, Vec<usize>))| {
        let labels = apart(places.iter().map(|&place| names[place].clone()).collect());
        MachinePanel { title, places, labels, alike: true }
    };
    let titles = apart(titles.collect());
    (titles.into_iter().zip(machines).map(panel).collect(), notes)
}

#[cfg(test)]
mod tests {
    use super::{machine_panels, machine_tails, spelt};
    use crate::results::{Analysis, MachineRecord};

    fn on(machine: &str, set: &[(&str, &str)]) -> Analysis {
        Analysis {
            machine: MachineRecord { name: machine.into(), ..MachineRecord::default() },
            overrides: set.iter().map(|&(key, value)| (key.into(), value.into())).collect(),
            ..Analysis::default()
        }
    }

    #[test]
    fn settings_are_spelt_out() {
        assert_eq!(spelt("l1.latency_cycles", "20"), "L1 latency 20 cycles");
        assert_eq!(spelt("sm.max_ctas", "4"), "SM max CTAs 4");
        assert_eq!(spelt("translation.page_bytes", "4096"), "translation page 4096 bytes");
    }

    #[test]
    fn labels_of_machines_have_what_differs() {
        let records =
            [on("v100", &[("l1.latency_cycles", "20")]), on("v100", &[]), on("a100", &[])];
        let refs: Vec<&Analysis> = records.iter().collect();
        let tails = [" on v100, L1 latency 20 cycles", " on v100", " on a100"];
        assert_eq!(machine_tails(&refs), tails);
        assert_eq!(machine_tails(&refs[..2]), [", L1 latency 20 cycles", ""]);
    }

    #[test]
    fn a_machine_has_a_panel_and_no_mean_spans_two() {
        let set = [("l1.latency_cycles", "20")];
        let records = [on("m", &[]), on("m", &set), on("m", &[]), on("m", &set)];
        let refs: Vec<&Analysis> = records.iter().collect();
        let names = ["a", "a", "b", "b"].map(String::from);
        let (panels, _) = machine_panels(&refs, &names);
        let titles: Vec<&str> = panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["m", "m, L1 latency 20 cycles"]);
        assert_eq!((&panels[1].places[..], panels[1].alike), (&[1, 3][..], true));
        assert_eq!(panels[1].labels, ["a", "b"]);
        let (one, _) = machine_panels(&refs[..2], &names[..2]);
        assert_eq!((one.len(), one[0].alike), (1, false), "a mix on two machines");
        let (one, _) = machine_panels(&[refs[0], refs[2]], &names[1..3]);
        assert_eq!((one.len(), one[0].alike), (1, true), "two mixes on a machine");
    }
}
