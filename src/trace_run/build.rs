//! A hash of this crate's source, by which a program and the runtime that it loads know each
//! other as of one build. The runtime's own folder is not in it: a change there would compile
//! this crate and all above it again.
#![allow(clippy::print_stdout, reason = "cargo reads its instructions from standard output")]

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    list(&root, &mut files);
    files.sort();
    // FNV-1a: no crate is needed here.
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = files.iter().fold(0xcbf2_9ce4_8422_2325, |hash, file| {
        println!("cargo::rerun-if-changed={}", file.display());
        fs::read(file).expect("the source can be read").iter().fold(hash, step)
    });
    println!("cargo::rustc-env=GPUMODEL_TRACE_RUN_BUILD={hash:016x}");
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
