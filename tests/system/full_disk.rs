//! Do `convert` and `sweep` report a full disk and leave no partial files?

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sweep_place::{Place, bytes};

const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['left-over', 'even', 'spatial']\n\
    seeds = [1, 2, 3, 4]\n[mixes]\nlists = [['m', 's'], ['s', 'm']]\n";

/// A trace whose store does not compress well.
const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/samples/gather");

/// The program with a disk of so many kilobytes at `small`; its files are then copied to `kept`.
fn on_small_disk(place: &Place, kilobytes: u32, words: &[&str]) -> Option<(Option<i32>, String)> {
    let _ = fs::create_dir(place.path("small"));
    let mount = format!("mount -t tmpfs -o size={kilobytes}k none small");
    let cache = if words[0] == "analyze" { "small/cache" } else { "cache" };
    let before = format!("{mount} && export GPUMODEL_CACHE={cache}");
    place.mounted(&before, words, "cp -a small/. kept")
}

/// Files that are not finished, and records that are not whole.
fn half_written(folder: &Path) -> Vec<String> {
    let whole = |name: &str, bytes: &[u8]| {
        let json = name.ends_with(".json");
        !json || serde_json::from_slice::<serde_json::Value>(bytes).is_ok()
    };
    let found = bytes(folder).into_iter().filter_map(|(path, bytes)| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        (name.starts_with('.') || !whole(&name, &bytes)).then_some(name)
    });
    found.collect()
}

#[test]
fn a_store_that_exceeds_the_disk_is_an_error_and_leaves_nothing() {
    let place = Place::new();
    fs::create_dir(place.path("kept")).unwrap();
    let words = ["convert", TRACE, "-o", "small/t.gpt"];
    let Some((code, said)) = on_small_disk(&place, 16, &words) else { return };
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("small/t.gpt") && said.contains("No space left"), "{said}");
    assert_eq!(place.content("kept").len(), 0, "{said}");
}

#[test]
fn a_sweep_that_exceeds_the_disk_is_an_error_and_resumes_elsewhere() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    assert_eq!(place.sweep(&plan, "whole", &[]).0, Some(0));
    // From too small for the list of cells to large enough for some records.
    for kilobytes in [8, 64, 512] {
        fs::create_dir(place.path("kept")).unwrap();
        let words = ["sweep", plan.as_str(), "--out", "small/out"];
        let Some((code, said)) = on_small_disk(&place, kilobytes, &words) else { return };
        assert_eq!(code, Some(2), "{kilobytes}: {said}");
        assert!(said.contains("error: cannot write into small/out"), "{said}");
        assert!(said.contains("No space left"), "{said}");
        assert_eq!(half_written(&place.path("kept")), Vec::<String>::new(), "{kilobytes}");
        let (code, said) = place.sweep(&plan, "kept/out", &["--resume"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(place.content("kept/out") == place.content("whole"), "{kilobytes}");
        fs::remove_dir_all(place.path("kept")).unwrap();
    }
}

#[test]
fn a_cache_folder_that_exceeds_the_disk_is_an_error() {
    let place = Place::new();
    fs::create_dir(place.path("kept")).unwrap();
    let words = ["analyze", TRACE, "--machine", "gtx-1080"];
    let Some((code, said)) = on_small_disk(&place, 16, &words) else { return };
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("small/cache") && said.contains("GPUMODEL_CACHE"), "{said}");
    assert!(said.contains("No space left"), "{said}");
    assert_eq!(half_written(&place.path("kept")), Vec::<String>::new());
}

#[test]
fn a_full_standard_output_is_reported_as_such() {
    for words in [
        &["machine", "list"][..],
        &["machine", "show", "v100", "--json", "-"],
        &["scheme", "list"],
        &["synth", "--list"],
        &["plot", "--list"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_gpumodel"));
        let output = program.args(words).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.starts_with("error: cannot write to standard output: No space"), "{said}");
    }
}
