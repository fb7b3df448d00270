//! Is every committed case of bad input refused with the expected words?
//!
//! `data/hostile` has one file per case, named after it; its `outcomes.txt` has the
//! output of each conversion.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::trace::{ConvertRequest, Silent, Store, convert};

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hostile")
}

/// The cases by name.
pub(crate) fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = entries.filter(|path| path.extension().is_none()).collect();
    cases.sort();
    cases
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
    let said = said.replace(&format!("{}/", folder().display()), "");
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
    for path in cases() {
        assert!(fs::metadata(&path).unwrap().len() < 600, "{}", path.display());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        writeln!(found, "{name}\n    {}", outcome(&path)).unwrap();
    }
    let expected = fs::read_to_string(folder().join("outcomes.txt")).unwrap_or_default();
    assert!(found == expected, "{found}");
}

#[test]
fn every_refusal_names_its_file_and_its_place() {
    for path in cases() {
        let said = outcome(&path);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let placed = said.contains(": expected ") && said.starts_with(&name);
        let other = said.contains("instruction(s)") || said.starts_with("nothing to convert");
        // A list may lead to the file that is wrong.
        let led = said.starts_with("kernel-list-itself:1: expected ");
        assert!(placed || other || led, "{name}: {said}");
    }
}
