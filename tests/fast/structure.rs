//! Does each crate depend only on those below it, and do files stay short? Does every
//! file of tests open with its question, and run?

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crate and those of ours that it may depend on; cargo keeps everything else out.
const CRATES: &[(&str, &[&str])] = &[
    ("app", &["core", "feed", "models", "policy", "report", "sim", "trace", "trace-run"]),
    ("core", &[]),
    ("feed", &["core", "sim", "trace"]),
    ("policy", &["core"]),
    ("report", &["core"]),
    ("sim", &["core"]),
    ("trace", &["core"]),
    ("trace_run", &["core", "trace"]),
];

/// Longest source file, in lines.
const FILE_LINES: usize = 700;

fn sources(room: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![room.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn crates_depend_only_on_lower_crates() {
    for entry in fs::read_dir(src()).unwrap().map(Result::unwrap) {
        let manifest = entry.path().join("Cargo.toml");
        if !manifest.exists() {
            continue;
        }
        let name = entry.file_name().into_string().unwrap();
        let listed = CRATES.iter().find(|row| row.0 == name);
        let (_, allowed) = listed.unwrap_or_else(|| panic!("{name} is not in the table"));
        let text: toml::Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
        let own = text["dependencies"].as_table().into_iter().flat_map(toml::Table::keys);
        let own: BTreeSet<&str> = own.filter_map(|key| key.strip_prefix("gpumodel-")).collect();
        assert_eq!(own, allowed.iter().copied().collect(), "{name}");
    }
}

#[test]
fn files_stay_short() {
    let long: Vec<String> = sources(&src())
        .into_iter()
        .filter_map(|file| {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            (lines > FILE_LINES).then(|| format!("{} has {lines} lines", file.display()))
        })
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_file_of_tests_opens_with_its_question_and_runs() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut wrong = Vec::new();
    for tier in ["fast", "system", "release"] {
        let main = fs::read_to_string(tests.join(tier).join("main.rs")).unwrap();
        for entry in fs::read_dir(tests.join(tier)).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let Some(stem) = name.strip_suffix(".rs").filter(|stem| *stem != "main") else {
                continue;
            };
            let text = fs::read_to_string(entry.path()).unwrap();
            let opening: Vec<&str> =
                text.lines().map_while(|line| line.strip_prefix("//!")).collect();
            let asks = opening.concat().contains('?') || !text.contains("#[test]");
            let runs = main.lines().any(|line| line == format!("mod {stem};"));
            if !asks || !runs {
                wrong.push(format!("{tier}/{name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "without a question, or not in main.rs: {wrong:?}");
}
