//! Lists the data files of this folder so that the library carries them: a new machine,
//! opcode table or memory standard is one file and no list to edit.
#![allow(clippy::print_stdout, reason = "cargo reads its instructions from standard output")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Kinds of data file that are carried; notes next to them are not.
const CARRIED: [&str; 2] = ["toml", "csv"];

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=.");
    let mut found = Vec::new();
    collect(&root, "", &mut found);
    // What lies next to the folders describes this crate.
    found.retain(|path| path.contains('/'));
    found.sort();
    let mut table = String::from("&[\n");
    for path in found {
        writeln!(
            table,
            "({path:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{path}\"))),"
        )
        .expect("a String takes everything");
    }
    table.push_str("]\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("models.rs"), table).expect("the build folder can be written");
}

/// Adds the carried files below `folder` as paths with `/` that begin with `prefix`.
fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    let entries = fs::read_dir(folder).expect("the folder is part of the source tree");
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
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
