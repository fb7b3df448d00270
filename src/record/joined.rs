//! The records of a sweep's cells as the records that `analyze` would have written.

use std::collections::{BTreeMap, BTreeSet};

use super::{Analysis, AppRecord, CellRecord};

/// Cells of the same stores that differ in their scheme or build alone as one record, its co-runs in
/// the order of the cells. Records that are no cells stay as they are.
#[must_use]
pub fn joined(records: Vec<Analysis>) -> Vec<Analysis> {
    let mut mixes: Vec<Analysis> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for mut record in records {
        let stores: Vec<&str> = record.solo.iter().map(|app| app.store_hash.as_str()).collect();
        let words =
            |cell: &CellRecord| format!("{:?} {} {stores:?}", cell.beside(), record.machine.hash);
        let Some(words) = record.cell.as_ref().map(words) else {
            mixes.push(record);
            continue;
        };
        match known.get(&words) {
            Some(&place) => mixes[place].coruns.append(&mut record.coruns),
            None => {
                known.insert(words, mixes.len());
                mixes.push(record);
            }
        }
    }
    mixes
}

/// Leaves of the cells among `records` each application alone on a machine once: the
/// cells that it is in all hold the same.
pub fn alone_once(records: &mut [Analysis]) {
    let mut known = BTreeSet::new();
    for record in records.iter_mut().filter(|record| record.cell.is_some()) {
        let machine = record.machine.hash.clone();
        let mut new = |app: &AppRecord| {
            known.insert((machine.clone(), app.app.clone(), app.store_hash.clone()))
        };
        record.solo.retain(|app| new(app));
    }
}

#[cfg(test)]
mod tests {
    use super::{alone_once, joined};
    use crate::record::AppRecord;

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
    }
    use crate::record::{Analysis, CellRecord, CoRun};

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
        let told: Vec<Vec<String>> = records.iter().map(schemes).collect();
        assert_eq!(told[0], ["even", "spatial"], "in the order of the cells");
        assert_eq!((told.len(), told[1].len(), told[4][0].as_str()), (5, 1, "fcfs"));
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
