//! How many cells have ended, from what lies in the folder.

use std::collections::BTreeMap;

use gpumodel_report::results::SweepFiles;

use super::super::{SweepEnd, SweepWatch};

/// The cells of a sweep, as far as they have ended.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    files: &'a SweepFiles,
    places: BTreeMap<&'a str, usize>,
    /// By cell: true for a record, false for a failure.
    states: Vec<Option<bool>>,
}

impl<'a> Tally<'a> {
    /// The cells with `keys`, of which `states` is known.
    pub(super) fn new(files: &'a SweepFiles, keys: &[&'a str], states: Vec<Option<bool>>) -> Self {
        let places = keys.iter().enumerate().map(|(place, &key)| (key, place)).collect();
        Self { files, places, states }
    }

    /// Looks which cells have ended since, and tells `watch`.
    pub(super) fn count(&mut self, watch: &dyn SweepWatch) {
        let ended = [(self.files.done(), true), (self.files.failed(), false)];
        for (keys, good) in ended {
            for key in keys {
                if let Some(&place) = self.places.get(key.as_str())
                    && self.states[place].is_none()
                {
                    self.states[place] = Some(good);
                    watch.ended(good);
                }
            }
        }
    }

    /// The places of cells that have not ended, in order.
    pub(super) fn open(&self) -> Vec<usize> {
        (0..self.states.len()).filter(|&place| self.states[place].is_none()).collect()
    }

    /// How many have ended how.
    pub(super) fn end(&self) -> SweepEnd {
        let count = |wanted| self.states.iter().filter(|&&state| state == wanted).count();
        SweepEnd { done: count(Some(true)), failed: count(Some(false)), left: count(None) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::fakes::Listener;
    use super::{SweepEnd, Tally};
    use gpumodel_report::results::SweepFiles;

    #[test]
    fn every_cell_counts_once_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let files = SweepFiles::new(folder.path());
        fs::create_dir_all(files.records()).unwrap();
        fs::create_dir_all(files.failures()).unwrap();
        let watch = Listener::default();
        let mut tally =
            Tally::new(&files, &["a", "b", "c", "d"], vec![None, Some(true), None, None]);
        for path in [files.record("a"), files.record("b"), files.failure("d"), files.record("x")] {
            fs::write(path, "").unwrap();
        }
        // A cell that is written anew has both for a moment.
        fs::write(files.failure("a"), "").unwrap();
        tally.count(&watch);
        tally.count(&watch);
        assert_eq!(tally.end(), SweepEnd { done: 2, failed: 1, left: 1 });
        assert_eq!((tally.open(), watch.ended()), (vec![2], vec![true, false]));
    }
}
