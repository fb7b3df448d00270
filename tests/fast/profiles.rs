//! Do profiles in the cache folder change only time?

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// A kernel of much code: waits for 200 loads, one after the other.
const LONG: &str = r#"
description = "200 loads, each waited for"
behaviour = "as many intervals as loads"
source = "own design of the gpumodel authors"
[buffers]
x = { bytes = 65536 }
[[kernel]]
name = "long"
grid = [4]
block = [64]
code = [
  { copies = "u", count = 200, body = [
      "R8 = LDG.E.SYS R2 [x + 4 * global + 256 * u]",
      "R9 = FFMA R8, R9, R9",
  ] },
  "EXIT",
]
"#;

/// The record of that kernel on a machine, with `cache` as cache folder.
fn record(cache: &Path, machine: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.toml");
    fs::write(&file, LONG).unwrap();
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.env("GPUMODEL_CACHE", cache);
    command.args(["analyze", "--machine", machine, "--json", "-"]);
    let app = format!("long=synth:{}", file.display());
    let output = command.arg(app).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The kept profiles, by name.
fn kept(cache: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(cache.join("profiles")) else { return vec![] };
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn kept_damaged_and_missing_profiles_give_the_same_record() {
    for machine in ["v100", "accelsim-qv100"] {
        let cache = tempfile::tempdir().unwrap();
        let fresh = record(cache.path(), machine);
        let files = kept(cache.path());
        assert!(!files.is_empty(), "{machine}: it is worth a file");
        assert!(record(cache.path(), machine) == fresh, "{machine}: with kept profiles");
        assert!(kept(cache.path()) == files, "what was known is written again");
        for (path, bytes) in &files {
            let mut damaged = bytes.clone();
            let middle = bytes.len() / 2;
            damaged[middle] ^= 1;
            fs::write(path, damaged).unwrap();
        }
        assert!(record(cache.path(), machine) == fresh, "{machine}: with damaged profiles");
        assert!(kept(cache.path()) == files, "damaged files are not written again");
    }
}

#[test]
fn a_file_in_place_of_the_cache_folder_costs_only_time() {
    let cache = tempfile::tempdir().unwrap();
    let fresh = record(cache.path(), "v100");
    let (blocked, profiles) = (tempfile::tempdir().unwrap(), "profiles");
    fs::write(blocked.path().join(profiles), "not a folder").unwrap();
    assert!(record(blocked.path(), "v100") == fresh);
    assert_eq!(fs::read(blocked.path().join(profiles)).unwrap(), b"not a folder");
}
