//! Can stores of every released version still be read, record by record?
//!
//! `traces/golden` has, per version of the format, a small trace as text and the
//! store that the program of that version made from it. To add a version:
//! write the text, run this test with `BLESS=1`, commit both; never bless an old
//! version again.

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::trace::Store;

use crate::rendering::{compare_all, converted};

/// Every released version; the last one is what this program writes.
const VERSIONS: &[&str] = &["v1"];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/golden").join(name)
}

#[test]
fn every_golden_store_equals_its_text() {
    let scratch = tempfile::tempdir().unwrap();
    for version in VERSIONS {
        let text = golden(&format!("{version}.traceg"));
        let path = golden(&format!("{version}.gpt"));
        let fresh = converted(&text, scratch.path());
        if Some(version) == VERSIONS.last() && std::env::var_os("BLESS").is_some() {
            fs::copy(fresh.path(), &path).unwrap();
        }
        let store = Store::open(&path).unwrap();
        store.verify().unwrap();
        compare_all(&store, 0, &fs::read_to_string(&text).unwrap());
        assert_eq!(store.content_hash(), fresh.content_hash());
    }
}

#[test]
fn inspect_says_what_the_golden_store_holds() {
    let json = assert_cmd::Command::cargo_bin("gpumodel")
        .unwrap()
        .args(["inspect", "--verify", "--json", "-"])
        .arg(golden("v1.gpt"))
        .output()
        .unwrap();
    assert_eq!(json.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let kernel = &json["kernels"][0];
    assert_eq!(kernel["grid"], serde_json::json!([2, 1, 1]));
    assert_eq!([&kernel["warp_instructions"], &kernel["thread_instructions"]], [7, 165]);
    assert_eq!([&kernel["memory_instructions"], &kernel["registers"]], [3, 8]);
    // Lines 0x7f0000000000, …1000 (lanes at +0 and +8), …0f80 (lane at -16 from
    // there), …0100 and …0300; pages …0000 and …1000.
    assert_eq!(kernel["footprint"]["lines_128_bytes"], 5);
    assert_eq!(kernel["footprint"]["pages_4096_bytes"], 2);
    assert_eq!(kernel["mix"][0], serde_json::json!({"opcode": "EXIT", "warp_instructions": 3}));
}

#[test]
fn verify_ends_with_1_on_damage() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("damaged.gpt");
    let mut bytes = fs::read(golden("v1.gpt")).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let mut inspect = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
    let output = inspect.arg("inspect").arg("--verify").arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("byte 80: expected the block's checksum"), "{text}");
}

#[test]
fn the_program_writes_a_store_back_as_text() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("text");
    let convert = |arguments: &[&str]| {
        let mut program = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
        let program = program.arg("convert").arg(golden("v1.gpt")).arg("-o").arg(&folder);
        program.args(arguments).output().unwrap().status.code()
    };
    // A store is no trace.
    assert_eq!(convert(&[]), Some(2));
    assert_eq!(convert(&["--to", "traceg"]), Some(0));
    // Its own folder is replaced, another one is spared.
    assert_eq!(convert(&["--to", "traceg"]), Some(0));
    fs::remove_file(folder.join("gpumodel.tag")).unwrap();
    assert_eq!(convert(&["--to", "traceg"]), Some(2));
    assert_eq!(convert(&["--to", "traceg", "--force"]), Some(0));
    assert_eq!(fs::read_to_string(folder.join("kernelslist.g")).unwrap(), "kernel-1.traceg\n");
    let golden = Store::open(&golden("v1.gpt")).unwrap();
    assert_eq!(converted(&folder, scratch.path()).content_hash(), golden.content_hash());
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
}
