//! A hash of this crate's source, by which a program and the runtime that it loads know each
//! other as of one build. The runtime's own folder is not in it: a change there would compile
//! this crate and all above it again.
#![allow(clippy::print_stdout, reason = "cargo reads its instructions from standard output")]

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    list(&root, &mut files);
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        fs::read(file).expect("the source can be read").hash(&mut hasher);
    }
    println!("cargo::rustc-env=GPUMODEL_TRACE_RUN_BUILD={:016x}", hasher.finish());
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is part of the source tree") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() && !path.ends_with("runtime") {
            list(&path, files);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.push(path);
        }
    }
}
