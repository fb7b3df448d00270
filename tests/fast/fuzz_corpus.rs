//! Do the readers still pass on the fuzzer's corpus, and is the corpus small?
//!
//! The targets of `fuzz` are built here unchanged, without the fuzzer.

#![allow(
    clippy::all,
    clippy::pedantic,
    dead_code,
    unfulfilled_lint_expectations,
    unreachable_pub,
    unused_attributes,
    unused_imports,
    reason = "they are programs in a separate workspace, which `tests/fuzz/run` builds"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// The function that the fuzzer calls with each input.
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:block) => {
        pub(super) fn target($bytes: &[u8]) $body
    };
}
pub(crate) use fuzz_target;

#[path = "../fuzz/src/lib.rs"]
pub(crate) mod shared;

#[path = "../fuzz/src/bin/import.rs"]
mod import;
#[path = "../fuzz/src/bin/list.rs"]
mod list;
#[path = "../fuzz/src/bin/machine.rs"]
mod machine;
#[path = "../fuzz/src/bin/memlog.rs"]
mod memlog;
#[path = "../fuzz/src/bin/plan.rs"]
mod plan;
#[path = "../fuzz/src/bin/record.rs"]
mod record;
#[path = "../fuzz/src/bin/requests.rs"]
mod requests;
#[path = "../fuzz/src/bin/scheme.rs"]
mod scheme;
#[path = "../fuzz/src/bin/store.rs"]
mod store;
#[path = "../fuzz/src/bin/trace.rs"]
mod trace;
#[path = "../fuzz/src/bin/tracez.rs"]
mod tracez;
#[path = "../fuzz/src/bin/workload.rs"]
mod workload;

/// The targets by name.
const TARGETS: [(&str, fn(&[u8])); 12] = [
    ("import", import::target),
    ("list", list::target),
    ("machine", machine::target),
    ("memlog", memlog::target),
    ("plan", plan::target),
    ("record", record::target),
    ("requests", requests::target),
    ("scheme", scheme::target),
    ("store", store::target),
    ("trace", trace::target),
    ("tracez", tracez::target),
    ("workload", workload::target),
];

/// Inputs of a target at most.
const MOST: usize = 60;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus")
}

/// The committed inputs of a target, by name.
fn inputs(target: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let file = File::open(corpus().join(format!("{target}.tar.xz"))).unwrap();
    let mut archive = tar::Archive::new(liblzma::read::XzDecoder::new(file));
    let input = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().into_owned(), bytes)
    };
    archive.entries().unwrap().map(input).collect()
}

#[test]
fn every_target_has_a_small_corpus() {
    let files = fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(files, BTreeSet::from(TARGETS.map(|(name, _)| format!("{name}.tar.xz"))));
    for (name, _) in TARGETS {
        let count = inputs(name).len();
        assert!((1..=MOST).contains(&count), "{name}: {count} inputs: tests/fuzz/minimise");
    }
}

/// Gives the inputs of the targets from `first` to `last` by name to them.
fn replay(first: &str, last: &str) {
    for (name, target) in TARGETS.into_iter().filter(|(name, _)| (first..=last).contains(name)) {
        let inputs = inputs(name);
        let wrong = |input: &Vec<u8>| catch_unwind(|| target(input)).is_err();
        let wrong: Vec<&PathBuf> =
            inputs.iter().filter(|&(_, input)| wrong(input)).map(|(path, _)| path).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}

#[test]
fn the_corpus_passes_from_import_to_plan() {
    replay("import", "plan");
}

#[test]
fn the_corpus_passes_from_record_to_scheme() {
    replay("record", "scheme");
}

#[test]
fn the_corpus_passes_from_store_to_workload() {
    replay("store", "workload");
}
