//! The folder of a sweep: records, failures and tables, each file written whole or not at all; and
//! cells of other builds of the program in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rayon::prelude::*;

use gpumodel_core::units::{FolderPurpose, WholeFile, remove_if_only_marked, with_causes};
use gpumodel_report::results::{
    Analysis, CellRecord, FailedCell, RecordError, SweepFiles, SweepRecord, Tidy,
};

use super::{Cell, CellFailure, SweepInputs};
use crate::cache::results::BUILD;
use crate::{SweepError, SweepWatch};

/// The folder of a sweep.
#[derive(Debug)]
pub(super) struct SweepFolder {
    pub(super) files: SweepFiles,
}

impl SweepFolder {
    /// Opens the folder and creates what is missing.
    pub(super) fn open(root: &Path) -> Result<Self, SweepError> {
        FolderPurpose::Sweep.mark(root).map_err(SweepError::folder(root))?;
        let files = SweepFiles::new(root);
        for folder in [files.records(), files.failures()] {
            fs::create_dir_all(&folder).map_err(SweepError::folder(&folder))?;
        }
        Ok(Self { files })
    }

    /// Removes the folders that are empty, after a sweep that did not begin.
    pub(super) fn remove_if_empty(&self) {
        for folder in [self.files.records(), self.files.failures()] {
            // A folder that is not empty stays.
            let _ = fs::remove_dir(folder);
        }
        remove_if_only_marked(self.files.root());
    }

    /// Writes the list: `cells`, then listed others that have ended.
    pub(super) fn list(&self, cells: &[Cell]) -> Result<(), SweepError> {
        let before = if self.files.begun() { self.files.cells()? } else { Vec::new() };
        let own = || cells.iter().map(|cell| &cell.record);
        if self.files.begun() && own().eq(before.iter().take(cells.len())) {
            return Ok(());
        }
        let keys: BTreeSet<&str> = own().map(|cell| cell.key.as_str()).collect();
        let mut listed: Vec<CellRecord> = own().cloned().collect();
        let other = |cell: &CellRecord| {
            !keys.contains(cell.key.as_str()) && self.files.has_ended(&cell.key)
        };
        listed.extend(before.into_iter().filter(other));
        write(&self.files.list(), &SweepRecord::new(listed).to_json())
    }

    /// Removes the failures of `cells`.
    pub(super) fn clear_failures(&self, cells: &[Cell]) -> Result<(), SweepError> {
        for cell in cells {
            let path = self.files.failure(&cell.record.key);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(SweepError::Folder { path, source: error });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The [`SweepFolder::state`] of each cell. A damaged file is reported and ignored.
    pub(super) fn states(&self, cells: &[Cell], watch: &dyn SweepWatch) -> Vec<Option<bool>> {
        states(&self.files, cells, watch)
    }

    /// How a cell ended: true with a record, false with a failure, `None` not yet.
    ///
    /// # Errors
    /// When its file is damaged or belongs to another cell.
    pub(super) fn state(&self, cell: &Cell) -> Result<Option<bool>, RecordError> {
        state(&self.files, cell)
    }

    /// Writes the outcome of a cell; true if the cell has a record.
    pub(super) fn keep(
        &self,
        cell: &Cell,
        outcome: Result<Analysis, CellFailure>,
    ) -> Result<bool, SweepError> {
        let key = &cell.record.key;
        let (record, failure) = (self.files.record(key), self.files.failure(key));
        let state = self.state(cell);
        if let Ok(Some(true)) = state {
            // Another process has written the same bytes.
            return Ok(true);
        }
        match outcome {
            Ok(analysis) => {
                write(&record, &analysis.to_json())?;
                // An earlier failure is obsolete.
                let _ = fs::remove_file(failure);
                Ok(true)
            }
            Err(CellFailure { errors, refused }) => {
                if state.is_err() {
                    let _ = fs::remove_file(record);
                }
                let failed = FailedCell { refused, ..FailedCell::new(cell.record.clone(), errors) };
                write(&failure, &failed.to_json()).map(|()| false)
            }
        }
    }

    /// Writes the tables of all cells that have ended.
    pub(super) fn tables(&self, watch: &dyn SweepWatch) -> Result<(), SweepError> {
        write_tables(&self.files, |sentence| watch.say(sentence))
    }
}

/// How cells have ended in `files`: true with a record, false with a failure. Other processes
/// may write meanwhile. A damaged file is reported and ignored.
pub(super) fn states(
    files: &SweepFiles,
    cells: &[Cell],
    watch: &dyn SweepWatch,
) -> Vec<Option<bool>> {
    let say = |error: RecordError| {
        let causes = with_causes(&error).join(": ");
        watch.say(&format!("damaged, the cell runs again: {causes}"));
    };
    let state = |cell| state(files, cell).map_err(say).ok().flatten();
    cells.par_iter().map(state).collect()
}

fn state(files: &SweepFiles, cell: &Cell) -> Result<Option<bool>, RecordError> {
    let key = &cell.record.key;
    let Some(outcome) = files.outcome(key)? else { return Ok(None) };
    let (good, found, path) = match outcome {
        Ok(record) => (true, record.cell, files.record(key)),
        Err(failed) => (false, Some(failed.cell), files.failure(key)),
    };
    if found.as_ref() == Some(&cell.record) {
        return Ok(Some(good));
    }
    Err(RecordError::Sweep { path, message: String::from("expected its cell, found another") })
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), SweepError> {
    WholeFile::write(path, text.as_bytes()).map_err(SweepError::folder(path))
}

/// The names of the tables.
const CELLS: &str = "cells";
const APPS: &str = "apps";

/// Writes the tables of the sweep in `files`, row by row, and reports what cannot be read. Other
/// processes that end cells meanwhile write them, too: the last one writes all rows.
pub(super) fn write_tables(files: &SweepFiles, say: impl Fn(&str)) -> Result<(), SweepError> {
    loop {
        let ended = (files.done(), files.failed());
        write_once(files, &say)?;
        if ended == (files.done(), files.failed()) {
            return Ok(());
        }
    }
}

fn write_once(files: &SweepFiles, say: &impl Fn(&str)) -> Result<(), SweepError> {
    let failed = || SweepError::folder(files.root());
    let opened = |name| move |ending: &str| WholeFile::create(&files.table(name, ending));
    let mut cells = Tidy::of_cells(opened(CELLS)).map_err(failed())?;
    let mut apps = Tidy::of_apps(opened(APPS)).map_err(failed())?;
    let left_out = |error: &RecordError| {
        say(&format!("damaged, left out of the tables: {}", with_causes(error).join(": ")));
    };
    let listing = files.listing()?;
    listing.damaged.iter().for_each(left_out);
    for cell in listing.cells {
        let pushed = match files.outcome(&cell.key) {
            Ok(None) => continue,
            Err(error) => {
                left_out(&error);
                continue;
            }
            Ok(Some(outcome)) => cells.push_cell(&cell, &outcome).and_then(|()| match &outcome {
                Ok(record) => apps.push_apps(&cell, record),
                Err(_) => Ok(()),
            }),
        };
        pushed.map_err(failed())?;
    }
    let end = |table: Tidy<WholeFile>| table.finish()?.into_iter().try_for_each(WholeFile::finish);
    [cells, apps].into_iter().try_for_each(end).map_err(failed())
}

/// Refuses a folder with cells of another build.
pub(super) fn refuse_others(files: &SweepFiles) -> Result<(), SweepError> {
    let listed = if files.begun() { SweepRecord::read(&files.list())?.cells } else { Vec::new() };
    match listed.iter().find(|cell| cell.build != BUILD) {
        None => Ok(()),
        Some(cell) => Err(SweepError::Mixed {
            versions: format!("{} in {}, this is {BUILD}", cell.build, files.root().display()),
        }),
    }
}

/// Replaces cells of the plan by those that another build has run, unless this build has run
/// them.
pub(super) fn adopt(
    inputs: &SweepInputs,
    cells: &mut [Cell],
    files: &SweepFiles,
) -> Result<(), SweepError> {
    let listed = if files.begun() { files.cells()? } else { Vec::new() };
    let others: BTreeMap<(&str, &str), &CellRecord> = listed
        .iter()
        .filter(|cell| cell.build != BUILD)
        .map(|cell| ((cell.build.as_str(), cell.program.as_str()), cell))
        .collect();
    let there = |key: &str| files.record(key).is_file();
    for cell in cells.iter_mut().filter(|cell| !there(&cell.record.key)) {
        let named = others.values().map(|other| inputs.by_build_of(cell, other));
        if let Some(record) = named.into_iter().find(|record| there(&record.key)) {
            cell.record = record;
        }
    }
    Ok(())
}

/// The number of `cells` that [`adopt`] would take from each other build.
pub(super) fn others(
    inputs: &SweepInputs,
    cells: &[Cell],
    files: &SweepFiles,
) -> Result<BTreeMap<String, u64>, SweepError> {
    let mut taken = cells.to_vec();
    adopt(inputs, &mut taken, files)?;
    let mut counts = BTreeMap::new();
    for (one, _) in taken.into_iter().zip(cells).filter(|(one, own)| one != *own) {
        *counts.entry(one.record.build).or_insert(0) += 1;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{
        BUILD, Cell, CellFailure, CellRecord, SweepFiles, SweepFolder, SweepRecord, adopt, others,
        refuse_others,
    };
    use crate::Unwatched;
    use crate::sweep::inputs::SweepInputs;
    use crate::sweep::plan::Plan;

    const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['even', 'left-over']\n\
        [apps]\na = 'synth:saxpy'\n[mixes]\nlists = [['a']]\n";

    /// A plan's stock and cells, and the folder of a sweep of them.
    fn opened(root: &Path) -> (SweepInputs, Vec<Cell>, SweepFolder) {
        let path = root.join("plan.toml");
        fs::write(&path, PLAN).unwrap();
        let inputs = SweepInputs::new(Plan::read(&path).unwrap(), None, root, &Unwatched).unwrap();
        let cells = inputs.cells().unwrap();
        (inputs, cells, SweepFolder::open(&root.join("out")).unwrap())
    }

    #[test]
    fn a_failure_takes_the_place_of_a_damaged_record_and_not_of_a_good_one() {
        let place = tempfile::tempdir().unwrap();
        let (inputs, cells, folder) = opened(place.path());
        let failed = || Err(CellFailure { errors: vec!["no".to_owned()], refused: false });
        let key = &cells[0].record.key;
        let (record, failure) = (folder.files.record(key), folder.files.failure(key));
        fs::write(&record, "{").unwrap();
        assert!(!folder.keep(&cells[0], failed()).unwrap());
        assert_eq!((record.exists(), failure.exists()), (false, true));
        assert!(folder.keep(&cells[0], Ok(inputs.run(&cells[0]).unwrap())).unwrap());
        // Another process has ended it meanwhile.
        assert!(folder.keep(&cells[0], failed()).unwrap());
        assert_eq!((record.exists(), failure.exists()), (true, false));
        folder.clear_failures(&cells).unwrap();
        assert_eq!((record.exists(), folder.files.failed().len()), (true, 0));
    }

    #[test]
    fn a_cell_that_another_build_has_run_is_taken_and_one_of_this_build_goes_before() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (folder.path(), folder.path().join("plan.toml"));
        fs::write(&path, PLAN).unwrap();
        let plan = Plan::read(&path).unwrap();
        let inputs = SweepInputs::new(plan, None, root, &Unwatched).unwrap();
        let mut cells = inputs.cells().unwrap();
        let own: Vec<CellRecord> = cells.iter().map(|cell| cell.record.clone()).collect();
        let foreign = CellRecord { build: "0.0.9+1".to_owned(), ..own[0].clone() };
        let other = inputs.by_build_of(&cells[0], &foreign);
        assert_eq!(inputs.by_build_of(&cells[0], &own[0]), own[0]);
        assert_ne!(other.key, own[0].key);
        let files = SweepFiles::new(&root.join("out"));
        adopt(&inputs, &mut cells, &files).unwrap();
        fs::create_dir_all(files.records()).unwrap();
        fs::write(files.list(), SweepRecord::new(vec![other.clone()]).to_json()).unwrap();
        // Begun, not run.
        adopt(&inputs, &mut cells, &files).unwrap();
        assert!(cells.iter().map(|cell| &cell.record).eq(&own));
        assert!(others(&inputs, &cells, &files).unwrap().is_empty());
        fs::write(files.record(&other.key), "").unwrap();
        let one = [(String::from("0.0.9+1"), 1)];
        assert_eq!(others(&inputs, &cells, &files).unwrap(), one.into());
        adopt(&inputs, &mut cells, &files).unwrap();
        assert_eq!((&cells[0].record, &cells[1].record), (&other, &own[1]));
        assert!(others(&inputs, &cells, &files).unwrap().is_empty(), "taken already");
        assert!(refuse_others(&files).unwrap_err().to_string().contains(BUILD));
        let mut cells = inputs.cells().unwrap();
        fs::write(files.record(&own[0].key), "").unwrap();
        adopt(&inputs, &mut cells, &files).unwrap();
        assert_eq!(cells[0].record, own[0]);
    }
}
