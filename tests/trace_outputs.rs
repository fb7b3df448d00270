//! Does a name typed wrong cost a trace, and is a trace found that was compressed
//! where it lay?

use std::fs;
use std::path::Path;

use gpumodel::trace::{ConvertRequest, Silent, Store, TraceError, convert};

const TEXT: &str = include_str!("../traces/golden/v1.traceg");

fn to(input: &Path, output: &Path) -> Result<Store, TraceError> {
    let inputs = vec![input.to_path_buf()];
    convert(
        &ConvertRequest { inputs, output: output.to_path_buf(), ..Default::default() },
        &Silent,
    )?;
    Store::open(output)
}

#[test]
fn an_output_that_is_a_trace_a_list_or_something_else_is_spared() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("kernel-3.traceg"), TEXT).unwrap();
    fs::write(at("kernelslist.g"), "kernel-3.traceg\n").unwrap();
    fs::write(at("note.txt"), "mine").unwrap();
    for (input, output, why) in [
        ("kernel-3.traceg", "kernel-3.traceg", "one of the files"),
        (".", "kernelslist.g", "one of the files"),
        (".", "./kernel-3.traceg", "one of the files"),
        (".", "note.txt", "no store"),
    ] {
        let before = fs::read(at(output)).unwrap();
        let said = to(&at(input), &at(output)).unwrap_err().to_string();
        assert!(said.contains(why) && said.contains("another name"), "{said}");
        assert_eq!(fs::read(at(output)).unwrap(), before);
    }
    // A store is written over, as a build's output is.
    to(&at("."), &at("a.gpt")).unwrap();
    to(&at("."), &at("a.gpt")).unwrap();
}

#[test]
fn documents_do_not_replace_stores() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a.gpt");
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/golden/v1.traceg");
    to(&trace, &store).unwrap();
    let before = fs::read(&store).unwrap();
    let store = store.to_str().unwrap();
    for words in [
        &["inspect", store, "--json", store][..],
        &["analyze", store, "-m", "v100", "--json", store][..],
    ] {
        let mut program = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
        let output = program.args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("is a store"));
    }
    assert_eq!(fs::read(store).unwrap(), before);
}

#[test]
fn a_list_finds_what_was_compressed_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("kernelslist.g"), "kernel-3.traceg\n").unwrap();
    let packed = zstd::encode_all(TEXT.as_bytes(), 1).unwrap();
    fs::write(at("kernel-3.traceg.zst"), packed).unwrap();
    assert_eq!(to(&at("."), &at("a.gpt")).unwrap().kernel_count(), 1);
}

#[test]
fn a_list_without_a_kernel_says_which_lines_were_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("kernelslist.g"), "# mine\nsub/kernel-1.traceg\n").unwrap();
    let said = to(&at("."), &at("a.gpt")).unwrap_err().to_string();
    assert!(said.contains("2 line(s) are neither") && said.contains("line 1"), "{said}");
}
