//! The folder of a sweep: records, failures and tables, each file written whole or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rayon::prelude::*;

use gpumodel_core::units::{FolderPurpose, WholeFile, remove_if_only_marked, with_causes};
use gpumodel_report::results::{
    Analysis, CellRecord, FailedCell, RecordError, SweepFiles, SweepRecord, Tidy,
};

use super::Cell;
use super::error::CellFailure;
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Cell, CellFailure, SweepFolder};
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
}
