//! Writing into the folder of a sweep: each file whole or not at all.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use gpumodel_core::units::{WholeFile, with_causes};
use gpumodel_report::results::{
    Analysis, CellRecord, FailedCell, RecordError, SweepFiles, SweepRecord,
};

use super::super::claims::{Claim, Claims};
use super::error::{Failure, SweepError};
use super::stock::Cell;
use super::{SweepWatch, leftovers, tables};

/// How often somebody looks again whether a claim is free.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// How often a folder that somebody removes is made.
const ATTEMPTS: u32 = 8;

/// Nobody needs to know of shorter waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// The folder of a sweep, with this process entered.
#[derive(Debug)]
pub(super) struct SweepFolder {
    pub(super) files: SweepFiles,
    claims: Claims,
    /// What processes still had claimed that were gone by the time this one came.
    abandoned: BTreeSet<String>,
}

impl SweepFolder {
    /// Makes what is missing, enters this process and removes what killed ones left, but for
    /// claims on what has not ended: who comes later is to know of them too.
    pub(super) fn open(root: &Path, expiry: Duration) -> Result<Self, SweepError> {
        let files = SweepFiles::new(root);
        let mut attempts = 1;
        let claims = loop {
            for folder in [files.records(), files.failures(), files.claims()] {
                fs::create_dir_all(&folder).map_err(SweepError::folder(&folder))?;
            }
            match Claims::enter(&files.claims(), expiry) {
                // Somebody who leaves with nothing begun has removed it meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound && attempts < ATTEMPTS => {
                    attempts += 1;
                }
                entered => break entered.map_err(SweepError::folder(files.claims()))?,
            }
        };
        let abandoned = claims.abandoned();
        leftovers::remove(&files, &claims, |key| !files.has_ended(key));
        Ok(Self { files, claims, abandoned })
    }

    /// Leaves a folder in which nothing was begun: empty folders go.
    pub(super) fn leave(self) {
        let Self { files, claims, .. } = self;
        drop(claims);
        let folders = [files.records(), files.failures(), files.claims()];
        for folder in folders.iter().map(PathBuf::as_path).chain([files.root()]) {
            // One that holds something stays.
            let _ = fs::remove_dir(folder);
        }
    }

    /// Removes what processes that are gone have left; claims on what has not ended only when
    /// all of `cells` have.
    pub(super) fn clean(&self, cells: &[Cell]) {
        let complete = LazyCell::new(|| self.complete(cells));
        let open = |key: &str| !self.files.has_ended(key) && !*complete;
        leftovers::remove(&self.files, &self.claims, open);
    }

    /// Whether a process ended while it had `key` claimed, and nobody had taken that over when
    /// this one came.
    pub(super) fn was_abandoned(&self, key: &str) -> bool {
        self.abandoned.contains(key)
    }

    /// Claims `key`; `None`: somebody else works on it.
    pub(super) fn take(&self, key: &str) -> Result<Option<Claim>, SweepError> {
        self.claims.take(key).map_err(SweepError::folder(self.files.claims()))
    }

    /// Tells others that this process holds so many bytes of memory, or is about to.
    pub(super) fn hold(&self, bytes: u64) {
        self.claims.hold(bytes);
    }

    /// The others of this machine, by their ids, with the bytes that each says it holds.
    pub(super) fn beside(&self) -> Vec<(u32, u64)> {
        self.claims.beside()
    }

    /// Waits until the claim `key` on the file `path` is this process's; says so where that
    /// takes long. An interrupt ends it.
    pub(super) fn wait(
        &self,
        key: &str,
        path: &Path,
        watch: &dyn SweepWatch,
    ) -> Result<Claim, SweepError> {
        let (begin, mut told) = (Instant::now(), false);
        loop {
            if let Some(claim) = self.take(key)? {
                return Ok(claim);
            }
            let holder = || self.holder(key);
            if watch.stopped() {
                let meanwhile = format!("{} had {}", holder(), path.display());
                return Err(SweepError::Stopped { meanwhile });
            }
            if !told && begin.elapsed() >= PATIENCE {
                watch.say(&format!("waiting for {}, which has {}", holder(), path.display()));
                told = true;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Who has claimed `key`, in words.
    pub(super) fn holder(&self, key: &str) -> String {
        let Some(owner) = self.claims.holder(key) else { return String::from("another process") };
        let (host, pid) = owner.host_and_pid();
        format!("process {pid} on {host}")
    }

    /// True when every one of `cells` has ended.
    pub(super) fn complete(&self, cells: &[Cell]) -> bool {
        cells.iter().all(|cell| self.files.has_ended(&cell.record.key))
    }

    /// Puts `cells` into the list, before others that are there and have ended.
    pub(super) fn list(&self, cells: &[Cell], watch: &dyn SweepWatch) -> Result<(), SweepError> {
        if self.listed(cells)? {
            return Ok(());
        }
        let _mine = self.wait("list", &self.files.list(), watch)?;
        let mut listed: Vec<CellRecord> = cells.iter().map(|cell| cell.record.clone()).collect();
        let keys: BTreeSet<&str> = cells.iter().map(|cell| cell.record.key.as_str()).collect();
        let before = if self.files.begun() { self.files.cells()? } else { Vec::new() };
        let other = |cell: &CellRecord| {
            !keys.contains(cell.key.as_str()) && self.files.has_ended(&cell.key)
        };
        listed.extend(before.into_iter().filter(other));
        write(&self.files.list(), &SweepRecord::new(listed).to_json())
    }

    /// Whether the list begins with `cells`.
    fn listed(&self, cells: &[Cell]) -> Result<bool, SweepError> {
        if !self.files.begun() {
            return Ok(false);
        }
        let listed = SweepRecord::read(&self.files.list())?.cells;
        let same = cells.iter().map(|cell| &cell.record).eq(listed.iter().take(cells.len()));
        Ok(same)
    }

    /// Forgets that `cells` have failed; gives the places of those that had.
    pub(super) fn forgive(
        &self,
        cells: &[Cell],
        watch: &dyn SweepWatch,
    ) -> Result<Vec<usize>, SweepError> {
        let mut forgiven = Vec::new();
        for (place, cell) in cells.iter().enumerate() {
            if self.forgive_one(&cell.record.key, watch)? {
                forgiven.push(place);
            }
        }
        Ok(forgiven)
    }

    /// Forgets that the cell `key` has failed; true when it had and nobody else was faster.
    fn forgive_one(&self, key: &str, watch: &dyn SweepWatch) -> Result<bool, SweepError> {
        let path = self.files.failure(key);
        // Who has it claimed forgives it too, or has just ended it: not for long.
        while path.is_file() && !watch.stopped() {
            if let Some(_mine) = self.take(key)? {
                return match fs::remove_file(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                    removed => removed.map(|()| true).map_err(SweepError::folder(&path)),
                };
            }
            std::thread::sleep(PAUSE);
        }
        Ok(false)
    }

    /// Removes the damaged files of cells whose `states` say that they have not ended, so
    /// that nobody takes them for records.
    pub(super) fn discard(
        &self,
        cells: &[Cell],
        states: &[Option<bool>],
    ) -> Result<(), SweepError> {
        for (cell, _) in cells.iter().zip(states).filter(|(_, state)| state.is_none()) {
            let key = &cell.record.key;
            for path in [self.files.record(key), self.files.failure(key)] {
                if path.is_file()
                    && let Some(_mine) = self.take(key)?
                    && self.state(cell).is_err()
                {
                    fs::remove_file(&path).map_err(SweepError::folder(&path))?;
                }
            }
        }
        Ok(())
    }

    /// By cell: its [`SweepFolder::state`]. A damaged file is said and counts for nothing.
    pub(super) fn states(&self, cells: &[Cell], watch: &dyn SweepWatch) -> Vec<Option<bool>> {
        states(&self.files, cells, watch)
    }

    /// How a cell ended, true for a record; `None`: it has not.
    ///
    /// # Errors
    /// When its file is damaged, or that of another cell.
    pub(super) fn state(&self, cell: &Cell) -> Result<Option<bool>, RecordError> {
        state(&self.files, cell)
    }

    /// Keeps the outcome of a cell; true when the cell has a record.
    pub(super) fn keep(
        &self,
        cell: &Cell,
        outcome: Result<Analysis, Failure>,
    ) -> Result<bool, SweepError> {
        let key = &cell.record.key;
        let (record, failure) = (self.files.record(key), self.files.failure(key));
        match outcome {
            Ok(analysis) => {
                write(&record, &analysis.to_json())?;
                // What was there was damaged.
                let _ = fs::remove_file(failure);
                Ok(true)
            }
            Err(Failure { errors, refused }) => {
                match self.state(cell) {
                    // Somebody took this process for gone, and was luckier.
                    Ok(Some(true)) => return Ok(true),
                    Ok(_) => {}
                    Err(_) => {
                        let _ = fs::remove_file(record);
                    }
                }
                let failed = FailedCell { refused, ..FailedCell::new(cell.record.clone(), errors) };
                write(&failure, &failed.to_json()).map(|()| false)
            }
        }
    }

    /// Writes the tables of all cells that have ended.
    pub(super) fn tables(&self, watch: &dyn SweepWatch) -> Result<(), SweepError> {
        let _mine = self.wait("tables", &self.files.table(tables::CELLS, "csv"), watch)?;
        tables::write(&self.files, |sentence| watch.say(sentence))
    }
}

/// How cells have ended in `files`, which others may be writing, true for a record. A
/// damaged file is said and counts for nothing.
pub(super) fn states(
    files: &SweepFiles,
    cells: &[Cell],
    watch: &dyn SweepWatch,
) -> Vec<Option<bool>> {
    let say = |error: RecordError| {
        let words = with_causes(&error).join(": ");
        watch.say(&format!("damaged, the cell runs again: {words}"));
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use gpumodel_report::results::FailedCell;

    use super::super::super::watch::Unwatched;
    use super::super::plan::Plan;
    use super::super::stock::Stock;
    use super::{Cell, Failure, SweepFolder};

    const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['even', 'left-over']\n\
        [apps]\na = 'synth:saxpy'\n[mixes]\nlists = [['a']]\n";

    const EXPIRY: Duration = Duration::from_secs(60);

    /// A plan's stock and cells, and the folder of a sweep of them.
    fn opened(root: &Path) -> (Stock, Vec<Cell>, SweepFolder) {
        let path = root.join("plan.toml");
        fs::write(&path, PLAN).unwrap();
        let stock = Stock::new(Plan::read(&path).unwrap(), None, root, EXPIRY, &Unwatched).unwrap();
        let cells = stock.cells().unwrap();
        (stock, cells, SweepFolder::open(&root.join("out"), EXPIRY).unwrap())
    }

    #[test]
    fn all_who_come_know_of_a_cell_that_ended_a_process_until_it_has_ended() {
        let place = tempfile::tempdir().unwrap();
        let (_, cells, folder) = opened(place.path());
        let [one, other] = [0, 1].map(|at: usize| cells[at].record.key.as_str());
        let keys = [one, other, "alone-7"];
        let claim = |key: &str| folder.files.claims().join(format!("{key}.claim"));
        let left = || keys.map(|key| claim(key).exists());
        keys.iter().for_each(|key| fs::write(claim(key), "far~b~1~7~1\n").unwrap());
        let open = || SweepFolder::open(folder.files.root(), EXPIRY).unwrap();
        let both = [open(), open()];
        for later in both {
            assert!(keys.iter().all(|key| later.was_abandoned(key)));
            // It is interrupted before it has come to them.
            later.clean(&cells);
        }
        assert_eq!(left(), [true; 3]);
        let failed = || Err(Failure { errors: vec!["no".to_owned()], refused: false });
        folder.keep(&cells[0], failed()).unwrap();
        open().clean(&cells);
        assert_eq!(left(), [false, true, true], "a cell that has ended needs no claim");
        folder.keep(&cells[1], failed()).unwrap();
        folder.clean(&cells);
        assert_eq!(left(), [false; 3]);
    }

    #[test]
    fn damaged_files_of_cells_that_have_not_ended_go_and_good_ones_stay() {
        let place = tempfile::tempdir().unwrap();
        let (_, cells, folder) = opened(place.path());
        let record = folder.files.record(&cells[0].record.key);
        fs::write(&record, "{").unwrap();
        let failure = folder.files.failure(&cells[1].record.key);
        let failed = FailedCell::new(cells[1].record.clone(), vec!["no".to_owned()]);
        fs::write(&failure, failed.to_json()).unwrap();
        // Somebody has ended it since it was looked at.
        folder.discard(&cells, &[None, None]).unwrap();
        assert_eq!((record.exists(), failure.exists()), (false, true));
    }

    #[test]
    fn a_failure_takes_the_place_of_a_damaged_record_and_not_of_a_good_one() {
        let place = tempfile::tempdir().unwrap();
        let (stock, cells, folder) = opened(place.path());
        let failed = || Err(Failure { errors: vec!["no".to_owned()], refused: false });
        let key = &cells[0].record.key;
        let (record, failure) = (folder.files.record(key), folder.files.failure(key));
        fs::write(&record, "{").unwrap();
        assert!(!folder.keep(&cells[0], failed()).unwrap());
        assert_eq!((record.exists(), failure.exists()), (false, true));
        assert!(folder.keep(&cells[0], Ok(stock.run(&cells[0]).unwrap())).unwrap());
        // Another process has ended it while this one was suspended.
        assert!(folder.keep(&cells[0], failed()).unwrap());
        assert_eq!((record.exists(), failure.exists()), (true, false));
    }

    #[test]
    fn a_failure_is_forgiven_once_whoever_asks_at_the_same_time() {
        let place = tempfile::tempdir().unwrap();
        let (_, cells, folder) = opened(place.path());
        for _ in 0..20 {
            for cell in &cells {
                let failed = FailedCell::new(cell.record.clone(), vec!["no".to_owned()]);
                fs::write(folder.files.failure(&cell.record.key), failed.to_json()).unwrap();
            }
            let forgiven: usize = std::thread::scope(|scope| {
                let ask = |_| scope.spawn(|| folder.forgive(&cells, &Unwatched).unwrap().len());
                let all: Vec<_> = (0..2).map(ask).collect();
                all.into_iter().map(|one| one.join().unwrap()).sum()
            });
            assert_eq!((forgiven, folder.files.failed().len()), (cells.len(), 0));
        }
    }
}
