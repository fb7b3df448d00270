//! Lists the files under `models/` so that the library carries them: a new
//! machine, opcode table or memory standard is one file and no list to edit.
#![allow(clippy::print_stdout, reason = "cargo reads its instructions from standard output")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Kinds of data file that are carried; notes beside them are not.
const CARRIED: [&str; 2] = ["toml", "csv"];

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=models");
    println!("cargo::rustc-env=GPUMODEL_SOURCE={:016x}", hash(&root, &WALKED));
    println!("cargo::rustc-env=GPUMODEL_BUILD={:016x}", hash(&root, &["src", "Cargo.lock"]));
    let mut found = Vec::new();
    collect(&root.join("models"), "", &mut found);
    found.sort();
    let mut table = String::from("&[\n");
    for path in found {
        writeln!(
            table,
            "({path:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/models/{path}\"))),"
        )
        .expect("a String takes everything");
    }
    table.push_str("]\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("models.rs"), table).expect("the build folder can be written");
}

/// Folders of `src` whose code decides what an interval profile holds.
const WALKED: [&str; 4] = ["src/isa", "src/machine/profile", "src/spec", "src/trace"];

/// A number that changes with the files in these folders: what a build with others
/// has kept is not taken for this one's.
fn hash(root: &Path, folders: &[&str]) -> u64 {
    let mut files = Vec::new();
    for folder in folders {
        println!("cargo::rerun-if-changed={folder}");
        let path = root.join(folder);
        if path.is_dir() { list(&path, &mut files) } else { files.push(path) }
    }
    files.sort();
    // FNV-1a: no crate is needed here.
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let add = |hash: u64, file: &PathBuf| {
        // A packaged crate may come without a lock file.
        fs::read(file).unwrap_or_default().iter().fold(hash, step)
    };
    files.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Adds all files below `folder`.
fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("src/ is part of the source tree") {
        let path = entry.expect("src/ can be listed").path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}

/// Adds the carried files below `folder` as paths from `models/`, with `/`.
fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    let entries = fs::read_dir(folder).expect("models/ is part of the source tree");
    for entry in entries {
        let path = entry.expect("models/ can be listed").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), found);
        } else if CARRIED.iter().any(|kind| path.extension().is_some_and(|e| e == *kind)) {
            found.push(format!("{prefix}{name}"));
        }
    }
}
