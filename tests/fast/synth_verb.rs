//! Does `synth` write the requested trace and list the workloads?

use std::fs;
use std::path::Path;

use assert_cmd::Command;

use crate::common::workloads;

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gpumodel"))
}

#[test]
fn the_verb_writes_the_same_folder_however_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep/er");
    program().args(["synth", "saxpy", "--scale", "0.01", "-o"]).arg(&out).assert().success();
    let list = fs::read_to_string(out.join("kernelslist.g")).unwrap();
    assert_eq!(list.lines().last(), Some("kernel-1.traceg"));
    let path = workloads().join("saxpy.toml");
    let other = folder.path().join("other");
    program()
        .arg("synth")
        .arg(&path)
        .args(["--scale", "0.01", "-o"])
        .arg(&other)
        .assert()
        .success();
    let text = |folder: &Path| fs::read(folder.join("kernel-1.traceg")).unwrap();
    assert_eq!(text(&out), text(&other), "a name and its file are the same workload");
    let named = folder.path().join("named");
    let words = ["synth", "synth:saxpy", "--scale", "0.01", "-o"];
    program().args(words).arg(&named).assert().success();
    assert_eq!(text(&out), text(&named), "as other verbs name it");
}

#[test]
fn the_example_file_of_the_readme_runs() {
    let notes = fs::read_to_string(workloads().join("README.md")).unwrap();
    let (_, text) = notes.split_once("```toml\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my-gather.toml"), text).unwrap();
    let run = |words: &[&str]| {
        let mut program = program();
        program.current_dir(&folder).env("GPUMODEL_CACHE", folder.path()).args(words);
        String::from_utf8(program.assert().success().get_output().stdout.clone()).unwrap()
    };
    run(&["synth", "my-gather.toml", "-o", "my-gather"]);
    let said = run(&["analyze", "synth:my-gather.toml", "--machine", "v100"]);
    assert!(said.contains("1 launch, "), "{said}");
}

#[test]
fn a_mistyped_name_or_scale_is_refused_with_a_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    let failing = |name: &str, word: &str| {
        let target = folder.path().join("none");
        let failed = program().args(["synth", name, "-o"]).arg(&target).assert().code(2);
        let message = String::from_utf8(failed.get_output().stderr.clone()).unwrap();
        assert!(message.contains(word), "{message}");
        assert!(!target.exists());
    };
    failing("saxpi", "did you mean `saxpy`? `gpumodel synth --list` names all");
    failing("bfs", "did you mean `ws-bfs`, `ilp-bfs2`?");
    failing("synth:saxpi", "no workload `saxpi`");
    failing("synth:saxpy:scale=0.5", "as an option: synth saxpy --scale 0.5");
    failing("saxpy:scale=0.5", "as an option: synth saxpy --scale 0.5");
    for (scale, found) in [("0.5:0.7", "0.5:0.7"), ("", "nothing"), ("-1", "-1"), ("nan", "nan")] {
        let words = format!("expected one number above 0, found {found}; `synth` takes a scale");
        failing(&format!("synth:saxpy:scale={scale}"), &words);
        failing(&format!("saxpy:scale={scale}"), &words);
    }
    for typed in ["saxpy:0.5", "synth:saxpy:0.5", "saxpy:scal=0.5"] {
        failing(typed, "as an option: synth saxpy --scale 0.5");
    }
    failing("no/such.toml", "no/such.toml");
}

#[test]
fn a_full_folder_is_kept_and_an_empty_one_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    let write = |workload: &str, name: &str| {
        let mut synth = program();
        synth.current_dir(folder.path()).args(["synth", workload, "--scale", "0.01", "-o", name]);
        synth.assert()
    };
    let text = |name: &str| fs::read(folder.path().join(name).join("kernel-1.traceg")).unwrap();
    write("saxpy", "out").success();
    let before = text("out");
    fs::create_dir(folder.path().join("mine")).unwrap();
    fs::write(folder.path().join("mine/kernel-1.traceg"), &before).unwrap();
    let refused = write("gather", "mine").code(2).get_output().stderr.clone();
    let message = String::from_utf8(refused).unwrap();
    assert!(message.contains("mine holds kernel-1.traceg and is not traces of"), "{message}");
    assert_eq!(text("mine"), before);
    // The program's own is replaced, with nothing left of it.
    write("two-streams", "out").success();
    assert!(folder.path().join("out/kernel-4.traceg").is_file());
    write("saxpy", "out").success();
    assert_eq!(text("out"), before);
    assert!(!folder.path().join("out/kernel-4.traceg").exists());
    fs::create_dir(folder.path().join("empty")).unwrap();
    write("saxpy", "empty").success();
    assert_eq!(text("empty"), before);
}

#[test]
fn the_list_has_every_workload_in_columns_by_paper() {
    let listed = program().args(["synth", "--list"]).assert().success();
    let listed = String::from_utf8_lossy(&listed.get_output().stdout).into_owned();
    let (rows, headings): (Vec<&str>, Vec<&str>) =
        listed.lines().partition(|line| line.starts_with("  "));
    let expected = [
        "of no paper:",
        "kernels of arcs (machine k40c):",
        "kernels of ilp-smra (machine ilp-smra):",
        "kernels of slate (machine titan-xp):",
        "kernels of ugpu (machine ugpu):",
        "kernels of warped-slicer (machine warped-slicer):",
    ];
    assert_eq!(headings, expected);
    let models = gpumodel::models();
    let width =
        gpumodel::trace::workload::names(&models).into_iter().map(str::len).max().unwrap() + 2;
    let mut found = Vec::new();
    for line in rows {
        let (front, about) = line[2..].split_at(width);
        assert!(!about.starts_with(' '), "{line}");
        found.push(front.trim_end());
    }
    let mut known: Vec<&str> = gpumodel::trace::workload::names(&models);
    found.sort_unstable();
    known.sort_unstable();
    assert_eq!(found, known);
    let under = |heading: &str| -> Vec<&str> {
        let lines = listed.lines().skip_while(|line| *line != heading).skip(1);
        let rows = lines.take_while(|line| line.starts_with("  "));
        rows.map(|row| row.split_whitespace().next().unwrap()).collect()
    };
    let slate = ["black-scholes", "gaussian", "matrix-transpose", "quasirandom", "sgemm", "stream"];
    assert_eq!(under(expected[3]), slate);
    assert!(under(expected[0]).contains(&"stream-copy") && under(expected[1]).contains(&"tpacf"));
}

#[test]
fn the_list_has_the_models_of_a_users_paper_or_names_the_missing_ones() {
    let folder = tempfile::tempdir().unwrap();
    let [papers, models] = ["papers", "workloads"].map(|name| folder.path().join(name));
    fs::create_dir(&papers).unwrap();
    fs::create_dir(&models).unwrap();
    fs::copy(workloads().join("saxpy.toml"), models.join("mine.toml")).unwrap();
    let listed = |names: &str| {
        let text = format!("description = 'Mine'\nworkloads = [{names}]\n");
        fs::write(papers.join("own.toml"), text).unwrap();
        let mut synth = program();
        synth.args(["synth", "--list", "--models"]).arg(folder.path()).output().unwrap()
    };
    let output = listed("'mine', 'gather'");
    let text = String::from_utf8(output.stdout).unwrap();
    let (before, after) = text.split_once("kernels of own:\n  mine ").unwrap();
    assert!(after.lines().nth(1).unwrap().starts_with("  gather "), "{after}");
    assert!(!before.contains("\n  gather "), "{before}");
    let output = listed("'gathr'");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let words = "papers/own.toml: workloads: no workload `gathr`: did you mean `gather`";
    assert!(said.contains(words), "{said}");
}

#[cfg(unix)]
#[test]
fn the_script_finds_the_constant_that_made_a_value() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("mine.toml");
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/workloads/compute.toml");
    let text = std::fs::read_to_string(built_in).unwrap().replace("blocks = 640", "blocks = 4");
    std::fs::write(&model, text).unwrap();
    let fit = |constant: &str, column: &str, wanted: &str| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fit");
        let mut fit = std::process::Command::new(script);
        fit.arg(&model).args([constant, "1", "8", "v100", column, wanted]);
        let output = fit.env("GPUMODEL", env!("CARGO_BIN_EXE_gpumodel")).output().unwrap();
        let words = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code(), words(&output.stdout), words(&output.stderr))
    };
    // A first run says how many cycles there are with a value.
    let (_, _, steps) = fit("unrolled", "cycles", "0");
    let cycles: Vec<u64> =
        steps.lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert!(cycles.len() == 2 && cycles[0] < cycles[1], "both ends are above: {steps}");
    let wanted = (cycles[0] + cycles[1]) / 2;
    let (code, best, steps) = fit("unrolled", "cycles", &wanted.to_string());
    let tried: Vec<&str> = steps.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(code == Some(0) && tried[..3] == ["1", "8", "4"] && tried.len() == 5, "{steps}");
    let distance = |line: &str| line.split(' ').nth(1).unwrap().trim().parse::<u64>().unwrap();
    let least = steps.lines().map(|line| distance(line).abs_diff(wanted)).min();
    assert_eq!(Some(distance(&best).abs_diff(wanted)), least, "{best} of {steps}");
    let (code, _, said) = fit("unroled", "cycles", "1");
    assert!(code == Some(2) && said.contains("no constant unroled"), "{said}");
}
