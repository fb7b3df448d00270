//! The records of a sweep's cells as the records that `analyze` would have written.

use std::collections::{BTreeMap, BTreeSet};

use super::{Analysis, AppRecord, CoRun};

/// Cells of the same stores that differ in their scheme alone as one record, its co-runs in
/// the order of the cells; cells of several builds too, as long as no scheme comes twice:
/// then each build has a record of its own. Records that are no cells stay as they are.
#[must_use]
pub fn joined(records: Vec<Analysis>) -> Vec<Analysis> {
    let mut mixes: Vec<Analysis> = Vec::new();
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for mut record in records {
        let Some(words) = group(&record) else {
            mixes.push(record);
            continue;
        };
        let places = known.entry(words).or_default();
        let open = places.iter().copied().filter(|&place| !holds(&mixes[place], &record));
        let of_build = |place: &usize| build(&mixes[*place]) == build(&record);
        let place = open.clone().find(of_build).or_else(|| open.min());
        match place {
            Some(place) => mixes[place].coruns.append(&mut record.coruns),
            None => {
                places.push(mixes.len());
                mixes.push(record);
            }
        }
    }
    mixes
}

/// What cells of one group have in common; `None`: the record is of no cell.
fn group(record: &Analysis) -> Option<String> {
    let stores: Vec<&str> = record.solo.iter().map(|app| app.store_hash.as_str()).collect();
    let beside = record.cell.as_ref()?.beside();
    Some(format!("{beside:?} {} {stores:?}", record.machine.hash))
}

/// Whether a co-run of `record` is one of `mix` already.
fn holds(mix: &Analysis, record: &Analysis) -> bool {
    let same = |a: &CoRun, b: &CoRun| a.scheme == b.scheme && a.parameters == b.parameters;
    record.coruns.iter().any(|run| mix.coruns.iter().any(|known| same(known, run)))
}

/// The build of a record's first cell.
fn build(record: &Analysis) -> Option<&str> {
    record.cell.as_ref().map(|cell| cell.build.as_str())
}

/// Leaves in `records` each application alone on a machine once: the cells that it is in
/// all hold the same. Of other records those count as the same that took as many cycles.
pub fn alone_once(records: &mut [Analysis]) {
    let mut known = BTreeSet::new();
    for record in records.iter_mut() {
        let (machine, cell) = (record.machine.hash.clone(), record.cell.is_some());
        let mut new = |app: &AppRecord| {
            let cycles = (!cell).then_some(app.cycles);
            known.insert((machine.clone(), app.app.clone(), app.store_hash.clone(), cycles))
        };
        record.solo.retain(|app| new(app));
    }
}

#[cfg(test)]
mod tests {
    use super::{alone_once, joined};
    use crate::results::{Analysis, AppRecord, CellRecord, CoRun};

    #[test]
    fn an_application_of_several_cells_is_there_once_alone() {
        let app = |name: &&str| AppRecord { app: (*name).into(), ..AppRecord::default() };
        let cell = |apps: &[&str]| Analysis {
            cell: Some(CellRecord::default()),
            solo: apps.iter().map(app).collect(),
            ..Analysis::default()
        };
        let mut records = [cell(&["a", "b"]), cell(&["b", "c"]), cell(&["a", "c"])];
        alone_once(&mut records);
        let left: Vec<usize> = records.iter().map(|record| record.solo.len()).collect();
        assert_eq!(left, [2, 1, 0]);
        let record = |cycles| {
            let app = AppRecord { cycles, ..app(&"a") };
            Analysis { solo: vec![app], ..Analysis::default() }
        };
        let mut records = [record(5), record(6), record(5)];
        alone_once(&mut records);
        assert!(records.iter().map(|record| record.solo.len()).eq([1, 1, 0]));
    }

    #[test]
    fn builds_that_ran_the_same_scheme_stay_apart() {
        let cell = |build: &str, scheme: &str| Analysis {
            cell: Some(CellRecord {
                scheme: scheme.into(),
                build: build.into(),
                ..CellRecord::default()
            }),
            coruns: vec![CoRun {
                scheme: scheme.into(),
                antt: f64::from(build == "b"),
                ..CoRun::default()
            }],
            ..Analysis::default()
        };
        let cells = [("a", "even"), ("b", "even"), ("b", "spatial"), ("a", "fcfs"), ("c", "bp")];
        let records = joined(cells.map(|(build, scheme)| cell(build, scheme)).to_vec());
        let reported = |record: &Analysis| -> String {
            let word = |run: &CoRun| format!("{}{} ", run.scheme, run.antt);
            record.coruns.iter().map(word).collect()
        };
        let reported: Vec<String> = records.iter().map(reported).collect();
        assert_eq!(reported, ["even0 fcfs0 bp0 ", "even1 spatial1 "]);
    }

    #[test]
    fn cells_of_one_mix_are_one_record_with_all_schemes() {
        let cell = |app: &str, scheme: &str, seed| Analysis {
            cell: Some(CellRecord {
                key: format!("{app}{scheme}"),
                apps: vec![app.into(), "b".into()],
                scheme: scheme.into(),
                seed,
                build: format!("0.1.0+{scheme}"),
                ..CellRecord::default()
            }),
            coruns: vec![CoRun { scheme: scheme.into(), ..CoRun::default() }],
            ..Analysis::default()
        };
        let plain = Analysis::default();
        let records = joined(vec![
            cell("a", "even", 0),
            cell("c", "even", 0),
            plain.clone(),
            cell("a", "spatial", 0),
            plain,
            cell("a", "fcfs", 1),
        ]);
        let schemes = |record: &Analysis| -> Vec<String> {
            record.coruns.iter().map(|run| run.scheme.clone()).collect()
        };
        let reported: Vec<Vec<String>> = records.iter().map(schemes).collect();
        assert_eq!(reported[0], ["even", "spatial"], "in the order of the cells");
        assert_eq!((reported.len(), reported[1].len(), reported[4][0].as_str()), (5, 1, "fcfs"));
    }

    #[test]
    fn cells_of_other_stores_under_the_same_names_stay_apart() {
        let cell = |store: &str| Analysis {
            cell: Some(CellRecord { apps: vec!["a".into()], ..CellRecord::default() }),
            solo: vec![AppRecord {
                app: "a".into(),
                store_hash: store.into(),
                ..AppRecord::default()
            }],
            ..Analysis::default()
        };
        assert_eq!(joined(vec![cell("1"), cell("2"), cell("1")]).len(), 2);
    }
}
