//! What tells the machines of records from each other, in names of figures.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::Analysis;

/// What stands behind the name of each of `records`: ` on MACHINE` where they are of several
/// machines, then ` key=value` for what was set of the machine and not of all records of
/// it. Empty where nothing differs.
pub(crate) fn machine_words(records: &[&Analysis]) -> Vec<String> {
    let machines: BTreeSet<&str> = records.iter().map(|one| one.machine.name.as_str()).collect();
    let mut alike: BTreeMap<&str, Vec<&Analysis>> = BTreeMap::new();
    for record in records {
        alike.entry(&record.machine.name).or_default().push(record);
    }
    let words = |record: &&Analysis| {
        let name = record.machine.name.as_str();
        let on = if machines.len() > 1 { format!(" on {name}") } else { String::new() };
        let differs = |(key, value): &(&String, &String)| {
            alike[name].iter().any(|other| other.overrides.get(*key) != Some(*value))
        };
        let set = record.overrides.iter().filter(differs);
        on + &set.map(|(key, value)| format!(" {key}={value}")).collect::<String>()
    };
    records.iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::machine_words;
    use crate::results::{Analysis, MachineRecord};

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
    fn machines_are_told_by_what_differs_between_them() {
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
}
