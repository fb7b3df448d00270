//! What processes that are gone have left in the folder of a sweep.

use std::fs;
use std::path::PathBuf;

use gpumodel_core::units::WholeFile;
use gpumodel_report::results::SweepFiles;

use super::super::claims::Claims;
use super::super::recall::is_key;
use super::tables::is_table;

/// Removes it: claims but for those whose keys `kept` takes, and what is not finished where
/// no other process works here.
pub(super) fn remove(files: &SweepFiles, claims: &Claims, kept: impl Fn(&str) -> bool) {
    // Who has made one of these has entered before: listed first, they are nobody's when
    // nobody is there then.
    let left = unfinished(files);
    if claims.tidy(kept) {
        for path in left {
            let _ = fs::remove_file(path);
        }
    }
}

/// Files of the sweep that are not finished. What else lies here is somebody's own.
fn unfinished(files: &SweepFiles) -> Vec<PathBuf> {
    let list = files.list();
    let of_root = |name: &str| is_table(name) || list.file_name().is_some_and(|list| list == name);
    let of_cell = |name: &str| name.strip_suffix(".json").is_some_and(is_key);
    let mut left = WholeFile::unfinished_in(files.root(), of_root);
    for folder in [files.records(), files.failures()] {
        left.extend(WholeFile::unfinished_in(&folder, of_cell));
    }
    left
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::super::folder::SweepFolder;

    #[test]
    fn what_is_called_otherwise_than_files_of_a_sweep_stays() {
        let expiry = Duration::from_secs(60);
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("out");
        drop(SweepFolder::open(&root, expiry).unwrap());
        fs::create_dir_all(root.join(".tmp").join("mine")).unwrap();
        fs::create_dir(root.join(".cells.csv.2.partial")).unwrap();
        let mine = [".x.partial", ".tmpA", ".notes.csv.1.partial", "cells/.a.json.1.partial"];
        let failure = format!("failed/.{:032x}.json.1.partial", 7);
        let left = [".cells.csv.1.partial", ".sweep.json.9.3.partial", failure.as_str()];
        for name in mine.iter().chain(&left) {
            fs::write(root.join(name), "half").unwrap();
        }
        SweepFolder::open(&root, expiry).unwrap().clean(&[]);
        for name in mine.iter().chain(&[".tmp/mine", ".cells.csv.2.partial"]) {
            assert!(root.join(name).exists(), "{name}");
        }
        for name in left {
            assert!(!root.join(name).exists(), "{name}");
        }
    }
}
