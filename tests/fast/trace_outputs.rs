//! Is a trace safe from a mistyped output name, and is a trace found after it was
//! compressed in place?

use std::fs;
use std::path::Path;

use gpumodel::trace::{ConvertRequest, Silent, Store, TraceError, convert};

use crate::sweep_place::bytes;

const TEXT: &str = include_str!("../../traces/golden/v1.traceg");

fn to(input: &Path, output: &Path) -> Result<Store, TraceError> {
    let inputs = vec![input.to_path_buf()];
    convert(
        &ConvertRequest { inputs, output: output.to_path_buf(), ..Default::default() },
        &Silent,
    )?;
    Store::open(output)
}

#[test]
fn an_existing_trace_list_or_other_file_is_not_overwritten() {
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

/// A folder with an input of every kind.
fn inputs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (from, name) in [
        ("tests/data/report/record.json", "r.json"),
        ("tests/data/report/runs.csv", "x.csv"),
        ("tests/data/accelsim-small/gpgpusim.config", "g.config"),
        ("models/gpus/v100.toml", "m.toml"),
    ] {
        fs::copy(root.join(from), at(name)).unwrap();
    }
    fs::write(at("d.txt"), "0 0x40 R\n").unwrap();
    fs::create_dir(at("t")).unwrap();
    fs::write(at("t/kernel-3.traceg"), TEXT).unwrap();
    fs::write(at("t/kernelslist.g"), "kernel-3.traceg\n").unwrap();
    folder
}

#[test]
fn outputs_do_not_replace_what_they_are_made_of() {
    let folder = inputs();
    let before = bytes(folder.path());
    let with = |front: &[&'static str], back: &[&'static str]| [front, back].concat();
    let run = |words: &[&str]| {
        let mut program = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
        let output = program.current_dir(folder.path()).args(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let plot = ["plot", "r.json", "--figure"];
    let compare = ["compare", "r.json", "--reference", "x.csv"];
    let dram = ["dram", "--spec", "hbm3", "--requests", "d.txt"];
    for words in [
        with(&plot, &["stalls", "-o", "r.json"]),
        with(&plot, &["correlation", "--reference", "x.csv", "-o", "y.svg", "--csv", "./x.csv"]),
        with(&compare, &["--json", "t/../r.json"]),
        with(&compare, &["-o", "x.csv"]),
        with(&dram, &["--commands", "d.txt"]),
        with(&dram, &["--json", "d.txt"]),
        with(&["machine", "import"], &["g.config", "-o", "g.config"]),
        with(&["machine", "show"], &["m.toml", "--json", "m.toml"]),
        with(&["analyze"], &["synth:saxpy", "-m", "m.toml", "--json", "m.toml"]),
        with(&["analyze"], &["t", "-m", "v100", "--json", "t/kernel-3.traceg"]),
    ] {
        let (code, said) = run(&words);
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(said.contains("is read by this command, and -"), "{words:?}: {said}");
        assert!(bytes(folder.path()) == before, "{words:?}");
    }
    // A folder of the name of a machine or a model is no input: twice into the same one.
    for folder in ["v100", "saxpy"] {
        let words = ["analyze", "synth:saxpy:scale=0.01", "-m", "v100", "--report", folder];
        for turn in ["first", "second"] {
            let (code, said) = run(&words);
            assert_eq!(code, Some(0), "{folder}, {turn}: {said}");
        }
    }
    let (code, said) = run(&with(&compare, &["--json", "e", "-o", "./e"]));
    assert!(code == Some(2) && said.contains("would be written by --json and by -o"), "{said}");
}

#[test]
fn a_store_of_another_application_is_replaced_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    for app in ["bfs", "lud"] {
        fs::create_dir(folder.path().join(app)).unwrap();
        fs::write(folder.path().join(app).join("kernel-3.traceg"), TEXT).unwrap();
    }
    let convert = |input: &str| {
        let mut command = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
        command.current_dir(folder.path()).args(["convert", input, "-o", "x.gpt"]);
        String::from_utf8(command.assert().success().get_output().stderr.clone()).unwrap()
    };
    assert!(!convert("lud").contains("note: "));
    assert!(!convert("lud").contains("note: "), "of the same application");
    let said = convert("bfs");
    let held = said.lines().find(|line| line.starts_with("note: ")).unwrap();
    assert!(held.starts_with("note: x.gpt held "), "{held}");
    assert!(held.ends_with("lud; it is replaced"), "{held}");
}

#[test]
fn a_list_finds_traces_compressed_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("kernelslist.g"), "kernel-3.traceg\n").unwrap();
    let packed = zstd::encode_all(TEXT.as_bytes(), 1).unwrap();
    fs::write(at("kernel-3.traceg.zst"), packed).unwrap();
    assert_eq!(to(&at("."), &at("a.gpt")).unwrap().kernel_count(), 1);
}

#[test]
fn a_list_without_a_kernel_names_the_skipped_lines() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("kernelslist.g"), "# mine\nsub/notes\n").unwrap();
    let said = to(&at("."), &at("a.gpt")).unwrap_err().to_string();
    assert!(
        said.contains("left out 2 lines with neither") && said.contains("first line 1"),
        "{said}"
    );
}
