//! Records that a reference table cannot be compared with as they are: several that answer one
//! row would count twice, and one name may stand for several applications.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::slice;

use super::{Analysis, AppRecord, Comparison, RecordError, ReferenceTable};

/// Characters of a hash that stand in a name.
const SHOWN: usize = 8;

/// By name of an application that is several: the hash of each store, with the first cell
/// that it is in. Records that are no cells do not count: who lists them knows them.
type StoresByApp = BTreeMap<String, BTreeMap<String, String>>;

fn stores_by_app(records: &[Analysis]) -> StoresByApp {
    let mut stores = StoresByApp::new();
    for record in records {
        let Some(cell) = &record.cell else { continue };
        for app in &record.solo {
            let known = stores.entry(app.app.clone()).or_default();
            known.entry(app.store_hash.clone()).or_insert_with(|| cell.key.clone());
        }
    }
    stores.retain(|_, hashes| hashes.len() > 1);
    stores
}

/// Puts the beginning of the store's hash after the names of applications that are several
/// in the cells among `records`.
pub fn disambiguate_apps(records: &mut [Analysis]) {
    let known = stores_by_app(records);
    if known.is_empty() {
        return;
    }
    for record in records.iter_mut().filter(|record| record.cell.is_some()) {
        let of = |app: &AppRecord| {
            let hash: String = app.store_hash.chars().take(SHOWN).collect();
            known.contains_key(&app.app).then(|| (app.app.clone(), format!("{} ({hash})", app.app)))
        };
        let names: BTreeMap<String, String> = record.solo.iter().filter_map(of).collect();
        let solo = record.solo.iter_mut().map(|app| &mut app.app);
        let together = record.coruns.iter_mut().flat_map(|run| &mut run.apps);
        for name in solo.chain(together.map(|app| &mut app.app)) {
            if let Some(reported) = names.get(name) {
                name.clone_from(reported);
            }
        }
    }
}

/// Refuses to put applications of one name that are several in the cells among `records`
/// beside rows of `table` about that name.
///
/// # Errors
/// [`RecordError::AmbiguousApps`] with two of the cells.
pub fn refuse_ambiguous_apps(
    records: &[Analysis],
    table: &ReferenceTable,
) -> Result<(), RecordError> {
    let asked: BTreeSet<&str> = table.rows.iter().map(|row| row.trace.as_str()).collect();
    let several =
        stores_by_app(records).into_iter().find(|(name, _)| asked.contains(name.as_str()));
    match several {
        None => Ok(()),
        Some((app, stores)) => {
            let stores = stores.into_iter().take(2).map(|(hash, cell)| format!("{hash} in {cell}"));
            let stores = stores.collect::<Vec<_>>().join(", ");
            Err(RecordError::AmbiguousApp { app, stores })
        }
    }
}

/// Refuses `records` of one machine as it is set that answer the same row of `table`;
/// `from` says what each of them was read from. The same machine otherwise set is another.
///
/// # Errors
/// [`RecordError::DuplicateRow`] with the two and the row.
pub fn refuse_duplicate_rows(
    records: &[Analysis],
    from: &[PathBuf],
    table: &ReferenceTable,
) -> Result<(), RecordError> {
    let mut answered = BTreeMap::new();
    for (record, other) in records.iter().zip(from) {
        let machine = &record.machine;
        for row in Comparison::new(slice::from_ref(record), table, None).rows {
            let key = (row.line, machine.name.as_str(), machine.hash.as_str());
            if let Some(one) = answered.insert(key, other) {
                return Err(RecordError::DuplicateRow {
                    table: table.path.clone(),
                    line: row.line,
                    row: format!("{} {}", row.machine, row.trace),
                    both: Box::new([one.clone(), other.clone()]),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::disambiguate_apps;
    use crate::results::{Analysis, AppRecord, CellRecord, CoRun, CoRunApp};

    fn record(cell: bool, stores: [(&str, &str); 2]) -> Analysis {
        let solo = stores.map(|(app, hash)| AppRecord {
            app: app.into(),
            store_hash: hash.into(),
            ..AppRecord::default()
        });
        let apps = stores.map(|(app, _)| CoRunApp { app: app.into(), ..CoRunApp::default() });
        Analysis {
            cell: cell.then(CellRecord::default),
            solo: solo.into(),
            coruns: vec![CoRun { apps: apps.into(), ..CoRun::default() }],
            ..Analysis::default()
        }
    }

    #[test]
    fn only_names_that_are_several_in_cells_are_told_apart() {
        let mut records = [
            record(true, [("a", "123456789"), ("b", "x")]),
            record(true, [("a", "923456789"), ("b", "x")]),
            record(false, [("a", "523456789"), ("b", "y")]),
        ];
        disambiguate_apps(&mut records);
        let names = |record: &Analysis| -> Vec<String> {
            let alone = record.solo.iter().map(|app| app.app.clone());
            alone.chain(record.coruns[0].apps.iter().map(|app| app.app.clone())).collect()
        };
        assert_eq!(names(&records[0]), ["a (12345678)", "b", "a (12345678)", "b"]);
        assert_eq!(names(&records[1]), ["a (92345678)", "b", "a (92345678)", "b"]);
        assert_eq!(names(&records[2]), ["a", "b", "a", "b"]);
    }
}
