//! Hashes of the source, by which results that another build has kept are not taken for
//! this build's; the version with the commit, for `--version` alone; and a list of the guide's
//! pages on schemes.
#![allow(clippy::print_stdout, reason = "cargo reads its instructions from standard output")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders whose code decides what an interval profile holds.
const PROFILED: [&str; 4] = ["core/isa", "sim/interval", "sim/config", "trace"];

/// Crates whose code decides what a run gives.
const RUN: [&str; 7] = ["app", "core", "feed", "policy", "report", "sim", "trace"];

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    // Of a packaged crate the others are not here: its version is what tells it.
    let source = root.parent().expect("a crate lies in a folder");
    println!("cargo::rustc-env=GPUMODEL_SOURCE={:016x}", hash(source, &PROFILED));
    println!("cargo::rustc-env=GPUMODEL_BUILD={:016x}", hash(source, &RUN));
    let version = std::env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    let commit = commit(&root).map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=GPUMODEL_VERSION={version}{commit}");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    let pages = pages(&root.join("guide/schemes"));
    fs::write(out.join("pages.rs"), pages).expect("the build folder can be written");
}

/// The commit of the checkout that tracks this crate, and its day; `None` elsewhere, as in a
/// packaged crate. Runs again when a commit or a branch is made the current one.
fn commit(root: &Path) -> Option<String> {
    git(root, &["ls-files", "--error-unmatch", "build.rs"])?;
    for name in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(root, &["rev-parse", "--git-path", name])?);
        if path.is_file() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(root, &["log", "-1", "--format=%h %cs", "--abbrev=10"])
}

/// What git prints; `None` where it fails or is missing.
fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(words).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| printed.trim().to_owned())
}

/// An array of `Page`s in Rust, one for each file in `folder`, so that a page is a file and no
/// row of a list.
fn pages(folder: &Path) -> String {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    list(folder, &mut files);
    files.sort();
    let mut pages = String::from("&[\n");
    for file in files {
        let name = file.file_stem().expect("a file has a name").to_string_lossy();
        writeln!(pages, "Page {{ name: {name:?}, text: include_str!({file:?}) }},")
            .expect("a String takes everything");
    }
    pages + "]\n"
}

/// A number that changes with the files in these folders.
fn hash(root: &Path, folders: &[&str]) -> u64 {
    let mut files = Vec::new();
    for folder in folders {
        let path = root.join(folder);
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            list(&path, &mut files);
        }
    }
    // The guide's texts decide nothing.
    files.retain(|file| file.extension().is_none_or(|kind| kind != "md"));
    files.sort();
    // FNV-1a: no crate is needed here.
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let add = |hash: u64, file: &PathBuf| {
        fs::read(file).expect("the source can be read").iter().fold(hash, step)
    };
    files.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Adds all files below `folder`.
fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is part of the source tree") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}
