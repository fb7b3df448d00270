//! Is every committed case of bad input refused with the expected words?
//!
//! `data/hostile.txt` has one file per case, named after it; `data/hostile-outcomes.txt` has
//! the output of each conversion.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::trace::{ConvertRequest, Silent, Store, convert};
use tempfile::TempDir;

use crate::common::small_files::{small_files, unpack};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// The cases, with their names.
pub(crate) fn cases() -> Vec<(String, Vec<u8>)> {
    small_files(&fs::read_to_string(data("hostile.txt")).unwrap())
}

/// The cases as files.
struct Cases(TempDir);

impl Cases {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        unpack(&data("hostile.txt"), folder.path());
        Self(folder)
    }

    /// Each case with its file, by name.
    fn paths(&self) -> Vec<(String, PathBuf)> {
        let name = |(name, _): (String, Vec<u8>)| (name.clone(), self.0.path().join(name));
        cases().into_iter().map(name).collect()
    }
}

/// The output of a conversion of the file, warnings last; paths are only names.
fn outcome(path: &Path) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("out.gpt");
    let inputs = vec![path.to_path_buf()];
    let request = ConvertRequest { inputs, output: output.clone(), ..ConvertRequest::default() };
    let said = match convert(&request, &Silent) {
        Ok(report) => {
            let store = Store::open(&output).unwrap();
            store.verify().unwrap();
            let count: u64 = (0..report.kernels).map(|k| store.kernel(k).warp_instructions()).sum();
            format!("{count} instruction(s) {}", report.warnings.join(" "))
        }
        Err(error) => {
            assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "{}", path.display());
            error.to_string()
        }
    };
    let folder = path.parent().unwrap();
    let said = said.replace(&format!("{}/", folder.display()), "");
    // The list of all formats is longer with every new one.
    let places = (said.find("expected an Accel-Sim trace, which"), said.find(", found"));
    match places {
        (Some(from), Some(to)) => format!("{}expected a trace{}", &said[..from], &said[to..]),
        _ => said.trim_end().to_owned(),
    }
}

#[test]
fn every_case_ends_as_it_is_written() {
    let mut found = String::new();
    for (name, path) in Cases::new().paths() {
        assert!(fs::metadata(&path).unwrap().len() < 600, "{name}");
        writeln!(found, "{name}\n    {}", outcome(&path)).unwrap();
    }
    let expected = fs::read_to_string(data("hostile-outcomes.txt")).unwrap_or_default();
    assert!(found == expected, "{found}");
}

#[test]
fn every_refusal_names_its_file_and_its_place() {
    for (name, path) in Cases::new().paths() {
        let said = outcome(&path);
        let placed = said.contains(": expected ") && said.starts_with(&name);
        let other = said.contains("instruction(s)") || said.starts_with("nothing to convert");
        // A list may lead to the file that is wrong.
        let led = said.starts_with("kernel-list-itself:1: expected ");
        assert!(placed || other || led, "{name}: {said}");
    }
}
