//! Do raw traces larger than memory give the same stores, without leftover files?

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::core::units::ByteCount;
use gpumodel::trace::{ConvertRequest, Silent, Store, TraceError, convert, export};
use proptest::prelude::*;

use crate::rendering::{reference, text};
use crate::trace_generated::{copies, kernel, raw};

/// The store of `input` as bytes, with `memory` bytes for records.
fn stored(input: &Path, output: &Path, memory: Option<u64>) -> Vec<u8> {
    let request = ConvertRequest {
        inputs: vec![input.to_path_buf()],
        output: output.to_path_buf(),
        memory: memory.map(ByteCount),
        ..ConvertRequest::default()
    };
    convert(&request, &Silent).unwrap();
    fs::read(output).unwrap()
}

/// Stores of `text` with all the memory, little and none.
fn stores(text: &str) -> [Vec<u8>; 4] {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("kernel-1.trace");
    fs::write(&input, text).unwrap();
    let output = folder.path().join("out.gpt");
    let stores = [None, Some(2000), Some(300), Some(0)].map(|m| stored(&input, &output, m));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "something was left");
    stores
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_memory_limit_does_not_change_the_store(kernel in kernel()) {
        prop_assume!(kernel.ctas.iter().flatten().any(|warp| !warp.is_empty()));
        let [usual, some, little, none] = stores(&raw(&kernel));
        prop_assert!(usual == some && usual == little && usual == none);
    }
}

#[test]
fn pairs_are_distinguished_across_runs() {
    for version in [4, 5] {
        let [usual, some, little, none] = stores(&copies("", version, " 0"));
        assert!(usual == some && usual == little && usual == none);
    }
}

/// The raw and the grouped file of a folder.
fn twins(folder: &Path) -> [PathBuf; 2] {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        names.filter(|path| path.to_string_lossy().contains("kernel-1")).collect();
    files.sort_by_key(|path| path.to_string_lossy().contains(".traceg"));
    files.try_into().unwrap()
}

#[test]
fn real_raw_traces_without_memory_are_their_grouped_twins() {
    let Some(reference) = reference() else { return };
    let memories =
        [("decoder_sm89_raw_and_grouped", 1 << 12), ("two_streams_sm75_raw_and_grouped", 1 << 18)];
    for (name, memory) in memories {
        let [raw, grouped] = twins(&reference.join("real").join(name));
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let spilled = stored(&raw, &at("spilled.gpt"), Some(memory));
        assert!(spilled == stored(&raw, &at("usual.gpt"), None), "{name}");
        stored(&grouped, &at("grouped.gpt"), None);
        let hash = |name: &str| Store::open(&at(name)).unwrap().content_hash();
        assert_eq!(hash("spilled.gpt"), hash("grouped.gpt"), "{name}");
        let request = ConvertRequest { output: at("text"), ..ConvertRequest::default() };
        export(&Store::open(&at("spilled.gpt")).unwrap(), &request).unwrap();
        let written = text(&at("text").join("kernel-1.traceg"));
        assert!(written == text(&grouped), "{name}: the tracer's own file, byte by byte");
    }
}

#[test]
fn a_folder_that_takes_no_temporary_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("kernel-1.trace");
    fs::write(&input, copies("", 5, " 0")).unwrap();
    let request = ConvertRequest {
        inputs: vec![input],
        output: folder.path().join("missing/out.gpt"),
        memory: Some(ByteCount(0)),
        ..ConvertRequest::default()
    };
    let error = convert(&request, &Silent).unwrap_err();
    assert!(matches!(error, TraceError::Output(_)), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_thread_block_that_is_cut_mid_line_is_named_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("kernel-1.trace");
    let mut text = copies("", 5, " 0");
    text.push_str("0 0 0 0 0030 ffffffff 1");
    fs::write(&input, text).unwrap();
    let mut program = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
    let output = folder.path().join("out.gpt");
    let program = program.arg("convert").arg(&input).arg("-o").arg(&output);
    let said = program.args(["--memory", "1M"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("kernel-1.trace:16:"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
