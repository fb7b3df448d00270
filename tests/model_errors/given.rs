//! Do verbs take what users are likely to give them, or say what they would take?

use std::path::Path;

use assert_cmd::Command;

/// What the program says in `folder`, with its exit code.
fn said(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.current_dir(folder).env("GPUMODEL_CACHE", folder.join("cache")).args(words);
    let output = command.output().unwrap();
    let said = [&output.stdout[..], &output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn descriptions_in_place_of_traces_are_told_for_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    for (file, words) in [
        ("plans/findings.toml", "TOML, the plan of a sweep, which belongs to `gpumodel sweep "),
        ("gpus/v100.toml", "TOML, a machine, which belongs to `--machine "),
        ("workloads/saxpy.toml", "TOML, a workload model, which belongs to `synth:"),
    ] {
        let file = models.join(file).display().to_string();
        let (code, told) = said(folder.path(), &["analyze", &file, "--machine", "v100"]);
        assert!(code == Some(2) && told.contains(words), "{told}");
        assert!(told.contains(&format!("{file}:1: expected")), "{told}");
    }
}
