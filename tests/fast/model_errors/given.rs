//! Do verbs accept likely arguments, or say what they expect?

use std::fs;
use std::path::Path;

use assert_cmd::Command;

use crate::synth::small;

/// The program's output in `folder`, with its exit code.
fn said(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.current_dir(folder).env("GPUMODEL_CACHE", folder.join("cache")).args(words);
    let output = command.output().unwrap();
    let said = [&output.stdout[..], &output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn the_folder_of_a_report_is_plotted_as_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let at = |words: &[&str]| said(folder.path(), words);
    let analyze = ["analyze", "synth:saxpy:scale=0.05", "--machine", "v100", "--report", "out"];
    assert_eq!(at(&analyze).0, Some(0));
    let plot = |record: &str, svg: &str| at(&["plot", record, "--figure", "stalls", "-o", svg]);
    assert_eq!((plot("out", "a.svg").0, plot("out/record.json", "b.svg").0), (Some(0), Some(0)));
    let text = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(text("a.svg"), text("b.svg"));
    fs::create_dir(folder.path().join("none")).unwrap();
    let (code, said) = plot("none", "c.svg");
    assert!(
        code == Some(2) && said.contains("none: expected a folder of `gpumodel sweep`"),
        "{said}"
    );
}

#[test]
fn a_scheme_is_shown_by_its_name() {
    let here = Path::new(".");
    for verb in ["list", "show"] {
        let (code, text) = said(here, &["scheme", verb, "warped-slicer"]);
        assert!(code == Some(0) && text.contains("warped-slicer:window"), "{text}");
        assert!(!text.contains("left-over"), "{text}");
    }
    let (_, text) = said(here, &["scheme", "list"]);
    let rows = text.lines().filter(|line| line.contains("UGPU (ISCA 2025)")).count();
    assert!(rows > 10 && !text.contains("warped-slicer:window"), "a line each: {text}");
    let (code, text) = said(here, &["scheme", "list", "warped-slicr"]);
    assert!(code == Some(2) && text.contains("did you mean warped-slicer?"), "{text}");
}

#[test]
fn a_store_shows_kernels_by_their_plain_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |words: &[&str]| said(folder.path(), words);
    assert_eq!(at(&["synth", "saxpy", "--scale", "0.05", "-o", "t"]).0, Some(0));
    assert_eq!(at(&["convert", "t", "-o", "a.gpt"]).0, Some(0));
    let (_, table) = at(&["inspect", "a.gpt"]);
    assert!(table.contains("\n  saxpy ") && !table.contains("_Z5saxpy"), "{table}");
    let (_, json) = at(&["inspect", "a.gpt", "--json", "-"]);
    assert!(json.contains("\"name\": \"_Z5saxpy"), "as traced: {json}");
}

#[test]
fn a_malformed_scale_is_refused_with_the_valid_range() {
    let folder = tempfile::tempdir().unwrap();
    let (one, above) = ("expected one number, as scale=0.5, found ", "expected a number above 0");
    for (scale, words) in [
        ("", format!("{one}nothing")),
        ("half", format!("{one}half")),
        ("0.5:0.7", format!("{one}0.5:0.7")),
        ("0", format!("scale 0.0, {above}")),
        ("-1", format!("scale -1.0, {above}")),
        ("nan", format!("scale NaN, {above}")),
        ("inf", format!("scale inf, {above}")),
        ("1e99", format!("scale 1e99, {above}, at most 1000000")),
    ] {
        let app = format!("synth:saxpy:scale={scale}");
        let (code, reported) = said(folder.path(), &["analyze", &app, "--machine", "v100"]);
        assert!(code == Some(2) && reported.contains(&words), "{app}: {reported}");
        // The same as the option of the verb that writes a folder.
        if words.starts_with("scale ") {
            let synth = ["synth", "saxpy", "--scale", scale, "-o", "t"];
            let (code, reported) = said(folder.path(), &synth);
            assert!(code == Some(2) && reported.contains(&words), "{scale}: {reported}");
        }
    }
    assert!(!folder.path().join("t").exists());
}

#[test]
fn a_model_named_without_synth_or_scale_is_suggested() {
    let folder = tempfile::tempdir().unwrap();
    for (app, words) in [
        ("synth:ugpu-fwt:scal=0.1", "did you mean `ugpu-fwt:scale=0.1`?"),
        ("synth:saxpy:0.5", "did you mean `saxpy:scale=0.5`?"),
        ("synth:saxpi:0.5", "did you mean `saxpy:scale=0.5`?"),
        ("synth:saxpy:half", "did you mean `saxpy`?"),
        ("ugpu-fwt", "no file or folder ugpu-fwt (did you mean synth:ugpu-fwt?)"),
        ("A=saxpy:scale=0.5", "(did you mean synth:saxpy:scale=0.5?)"),
        ("none", "no file or folder none; expected a store"),
    ] {
        let (code, reported) = said(folder.path(), &["analyze", app, "--machine", "v100"]);
        assert!(code == Some(2) && reported.contains(words), "{app}: {reported}");
    }
}

#[test]
fn a_scale_without_effect_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    for (scale, least) in [("0.0001", true), ("0.0000001", true), ("0.01", false)] {
        let words = format!("scale {scale}: every scaled constant is at its least, 1");
        let app = format!("synth:saxpy:scale={scale}");
        let analyze = ["analyze", &app, "--machine", "v100", "--json", "-"];
        // Twice: a cached store gets the note, too.
        for (code, reported) in [said(folder.path(), &analyze), said(folder.path(), &analyze)] {
            assert_eq!((code, reported.contains(&words)), (Some(0), least), "{reported}");
        }
        let out = folder.path().join(scale).display().to_string();
        let (code, reported) =
            said(folder.path(), &["synth", "saxpy", "--scale", scale, "-o", &out]);
        assert_eq!((code, reported.contains(&words)), (Some(0), least), "{reported}");
    }
}

#[test]
fn an_opcode_that_no_table_lists_is_counted_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let model = small("\"FFMAA.X\", \"FADD\", \"EXIT\",");
    fs::write(folder.path().join("own.toml"), model).unwrap();
    let (code, said) = said(folder.path(), &["synth", "own.toml", "-o", "t"]);
    assert_eq!(code, Some(0), "{said}");
    let words = "FFMAA.X is in no opcode table (did you mean FFMA?): its 4 warp instructions are \
                 taken as fp32";
    assert!(said.contains(words) && said.matches("warning").count() == 1, "{said}");
}

#[test]
fn descriptions_in_place_of_traces_are_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    for (file, words) in [
        ("plans/findings.toml", "TOML, the plan of a sweep, which belongs to `gpumodel sweep "),
        ("gpus/v100.toml", "TOML, a machine, which belongs to `--machine "),
        ("workloads/saxpy.toml", "TOML, a workload model, which belongs to `synth:"),
    ] {
        let file = models.join(file).display().to_string();
        let (code, reported) = said(folder.path(), &["analyze", &file, "--machine", "v100"]);
        assert!(code == Some(2) && reported.contains(words), "{reported}");
        assert!(reported.contains(&format!("{file}:1: expected")), "{reported}");
    }
}

#[test]
fn a_cause_is_printed_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    let plot = ["plot", "no.json", "--figure", "stalls", "-o", "a.svg"];
    for words in [
        &plot[..],
        &["compare", "no.json", "--reference", "r.csv"],
        &["dram", "--spec", "hbm3", "--requests", "d"],
        &["dram", "--spec", "./no.toml", "--requests", "r.txt"],
    ] {
        let (code, said) = said(folder.path(), words);
        assert_eq!(code, Some(2), "{said}");
        let (error, cause) = said.trim_end().split_once("\n  because: ").unwrap();
        assert!(error.starts_with("error: cannot read "), "{said}");
        assert!(!cause.contains("because") && !error.contains(cause), "{said}");
    }
}

#[test]
fn figures_are_not_written_under_names_of_other_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let record = crate::shown::data("record.json").display().to_string();
    let table = crate::shown::data("runs.csv").display().to_string();
    for words in [
        &["plot", &record, "--figure", "stalls", "-o", "a.eps"][..],
        &["compare", &record, "--reference", &table, "-o", "a.eps"],
    ] {
        let (code, said) = said(folder.path(), words);
        let way = "a.eps: figures are written as SVG, PDF or PNG; name it a.pdf";
        assert!(code == Some(2) && said.contains(way), "{said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{said}");
    }
}
