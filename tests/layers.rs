//! Do imports point down? The table of rooms, and a scan of `crate::` paths. Is every file
//! of tests in its table?

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Room and the rooms it may import.
const TABLE: &[(&str, &[&str])] = &[
    ("cli", &["run", "report", "synth", "trace", "spec", "record", "units"]),
    ("report", &["record", "units"]),
    ("run", &["machine", "scheme", "synth", "trace", "spec", "epoch", "record", "isa", "units"]),
    ("machine", &["spec", "epoch", "isa", "units"]),
    ("scheme", &["epoch", "units"]),
    ("spec", &["isa", "units"]),
    ("trace", &["isa", "units"]),
    ("synth", &["isa", "units"]),
    ("epoch", &["units"]),
    ("record", &["units"]),
    ("isa", &["units"]),
    ("units", &[]),
];

/// Longest source file, in lines.
const FILE_LINES: usize = 400;

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

/// Every room named after `crate::` in `text`, also in grouped imports.
fn imported(text: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for rest in text.split("crate::").skip(1) {
        let group =
            rest.strip_prefix('{').map_or(rest, |inner| inner.split('}').next().unwrap_or(""));
        let names: Vec<&str> =
            if rest.starts_with('{') { group.split(',').collect() } else { vec![rest] };
        for name in names {
            let word: String =
                name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            rooms.insert(word);
        }
    }
    rooms
}

#[test]
fn imports_point_down() {
    let mut wrong = Vec::new();
    for &(room, allowed) in TABLE {
        for file in sources(&src().join(room)) {
            let text = fs::read_to_string(&file).unwrap();
            for target in imported(&text) {
                let known = TABLE.iter().any(|&(name, _)| name == target);
                if known && target != room && !allowed.contains(&target.as_str()) {
                    wrong.push(format!("{} imports {target}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "new arrows between rooms:\n{}", wrong.join("\n"));
}

#[test]
fn every_room_is_in_the_table() {
    for entry in fs::read_dir(src()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let listed = TABLE.iter().any(|&(room, _)| room == name);
        assert!(listed || name == "lib.rs" || name == "main.rs", "{name} is in no floor");
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
fn every_file_of_tests_has_a_row() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let text = fs::read_to_string(tests.join("README.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.ends_with(" |"));
    let word = |c: char| !(c.is_alphanumeric() || "_./".contains(c));
    let words: Vec<&str> = rows.flat_map(|row| row.split(word)).collect();
    let main = fs::read_to_string(tests.join("main.rs")).unwrap();
    let mut wrong = Vec::new();
    let mut idle = Vec::new();
    for entry in fs::read_dir(&tests).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name.strip_suffix(".rs").filter(|stem| *stem != "main") else {
            continue;
        };
        let times = words.iter().filter(|&&word| word == name).count();
        if times != 1 {
            wrong.push(format!("{name}: {times} times"));
        }
        if !main.lines().any(|line| line == format!("mod {stem};")) {
            idle.push(name);
        }
    }
    assert!(wrong.is_empty(), "tests/README.md has files more or less than once: {wrong:?}");
    assert!(idle.is_empty(), "tests/main.rs does not name {idle:?}, so they never run");
}
