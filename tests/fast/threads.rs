//! Are result and error the same on any number of threads?

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

const THREADS: [&str; 3] = ["1", "2", "4"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `analyze` with stores kept in `cache`.
fn analyze(cache: &Path, threads: &str, words: &[&str]) -> Output {
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.env("GPUMODEL_CACHE", cache).current_dir(root());
    command.arg("analyze").args(words).args(["--threads", threads]).output().unwrap()
}

#[test]
fn parallel_applications_give_the_record_of_sequential_ones() {
    let cache = tempfile::tempdir().unwrap();
    let samples = ["matmul-tiled", "two-streams", "saxpy", "histogram", "reduce", "compute"];
    let samples = samples.map(|name| format!("traces/samples/{name}"));
    for machine in ["v100", "accelsim-rtx3070"] {
        let mut words = vec!["--machine", machine, "--json", "-", "synth:gather:scale=0.2"];
        words.extend(samples.iter().map(String::as_str));
        let outputs = THREADS.map(|threads| analyze(cache.path(), threads, &words));
        assert!(outputs[0].status.success());
        for (output, threads) in outputs.iter().zip(THREADS) {
            assert!(output.stdout == outputs[0].stdout, "{machine} on {threads} threads");
        }
    }
}

/// A store whose instructions are damaged, which only shows when they are needed.
fn damaged(folder: &Path, name: &str) -> PathBuf {
    let store = folder.join(name);
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.args(["convert", "traces/samples/reduce", "-o"]).arg(&store).current_dir(root());
    command.assert().success();
    let mut bytes = std::fs::read(&store).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0x40;
    std::fs::write(&store, bytes).unwrap();
    store
}

#[test]
fn the_reported_error_is_the_first_failing_applications() {
    let folder = tempfile::tempdir().unwrap();
    // The large application keeps a thread busy while later ones have failed.
    let (first, second) = (damaged(folder.path(), "one.gpt"), damaged(folder.path(), "two.gpt"));
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    let (first, second) = (format!("one={first}"), format!("two={second}"));
    let words = ["--machine", "v100", "traces/samples/matmul-tiled", &first, &second];
    for threads in THREADS {
        let output = analyze(folder.path(), threads, &words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("one.gpt") && !said.contains("two.gpt"), "{threads}: {said}");
    }
}
