//! Does what users of other tools ran into work here, or get a useful error?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::small_files::{small_files, unpack};

/// A row of the log.
#[derive(Debug, Deserialize)]
struct Trouble {
    number: u32,
    source: String,
    input: String,
    command: String,
    exit: i32,
    says: String,
    values: String,
    #[serde(rename = "got at first")]
    got: String,
    #[serde(rename = "mended by")]
    mended: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/troubles")
}

fn troubles() -> Vec<Trouble> {
    let mut rows = csv::Reader::from_path(folder().join("log.csv")).unwrap();
    rows.deserialize().collect::<Result<_, _>>().unwrap()
}

/// The inputs as files.
fn inputs() -> TempDir {
    let inputs = tempfile::tempdir().unwrap();
    unpack(&folder().join("inputs.txt"), inputs.path());
    inputs
}

fn run(trouble: &Trouble, inputs: &Path, cache: &Path) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("gpumodel"));
    command.current_dir(inputs).env("GPUMODEL_CACHE", cache);
    command.args(trouble.command.split(' ')).output().unwrap()
}

/// The parts of a field.
fn parts(field: &str) -> impl Iterator<Item = &str> {
    field.split(" | ").filter(|part| !part.is_empty())
}

/// Whether a value of the JSON is as a row says.
fn holds(json: &Value, said: &str) -> bool {
    if let Some(pointer) = said.strip_suffix('!') {
        return json.pointer(pointer).is_none();
    }
    let (least, (pointer, value)) = match said.split_once(">=") {
        Some(split) => (true, split),
        None => (false, said.split_once('=').unwrap()),
    };
    let (found, value) = (json.pointer(pointer).and_then(Value::as_f64), value.parse::<f64>());
    let (Some(found), Ok(value)) = (found, value) else { return false };
    if least { found >= value } else { (found - value).abs() < f64::EPSILON }
}

/// What does not hold of a row.
fn wrong(trouble: &Trouble, output: &Output) -> Vec<String> {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut wrong = Vec::new();
    if output.status.code() != Some(trouble.exit) {
        wrong.push(format!("it ended with {}: {err}", output.status));
    }
    let unsaid = parts(&trouble.says).filter(|said| !out.contains(said) && !err.contains(said));
    wrong.extend(unsaid.map(|said| format!("it does not say `{said}`: {err}")));
    let json: Value = serde_json::from_str(&out).unwrap_or_default();
    let other = parts(&trouble.values).filter(|said| !holds(&json, said));
    wrong.extend(other.map(|said| {
        let pointer = said.split(['>', '=', '!']).next().unwrap_or_default();
        format!("not `{said}`, but {:?}", json.pointer(pointer))
    }));
    wrong
}

#[test]
fn every_trouble_of_the_log_ends_as_it_says() {
    let (inputs, cache) = (inputs(), tempfile::tempdir().unwrap());
    let mut failed = Vec::new();
    for trouble in troubles() {
        for wrong in wrong(&trouble, &run(&trouble, inputs.path(), cache.path())) {
            failed.push(format!("{} {}: {wrong}", trouble.number, trouble.source));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_log_is_complete() {
    let (rows, inputs) = (troubles(), inputs());
    assert!(rows.len() >= 20, "{} rows", rows.len());
    for (row, number) in rows.iter().zip(1..) {
        assert_eq!(row.number, number, "{row:?}");
        assert!(row.source.contains('#') && inputs.path().join(&row.input).exists(), "{row:?}");
        assert!(!row.says.is_empty() || !row.values.is_empty(), "{row:?} checks nothing");
        assert_eq!(row.got == "right", row.mended.is_empty(), "{row:?}");
    }
    let text = fs::read_to_string(folder().join("inputs.txt")).unwrap();
    for (name, bytes) in small_files(&text) {
        assert!(bytes.len() <= 20_480, "{name}");
        assert!(rows.iter().any(|row| row.command.contains(name.split('/').next().unwrap())));
    }
}
