//! Does `synth` write what is asked for, and list what there is?

use std::fs;
use std::path::Path;

use assert_cmd::Command;

use crate::workloads::workloads;

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
fn the_file_that_the_notes_show_runs() {
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
fn a_name_or_a_scale_typed_wrong_is_answered_with_what_was_meant() {
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
fn a_folder_that_holds_something_is_spared_and_an_empty_one_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    let write = |workload: &str, name: &str| {
        let mut synth = program();
        synth.current_dir(folder.path()).args(["synth", workload, "--scale", "0.01", "-o", name]);
        synth.assert()
    };
    let text = |name: &str| fs::read(folder.path().join(name).join("kernel-1.traceg")).unwrap();
    write("saxpy", "out").success();
    let before = text("out");
    let refused = write("gather", "out").code(2).get_output().stderr.clone();
    let message = String::from_utf8(refused).unwrap();
    assert!(message.contains("out holds kernel-1.traceg and 1 more: name a folder"), "{message}");
    assert_eq!(text("out"), before);
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
    let width = gpumodel::trace::workload::names(&gpumodel::models())
        .into_iter()
        .map(str::len)
        .max()
        .unwrap()
        + 2;
    let mut found = Vec::new();
    for line in rows {
        let (front, about) = line[2..].split_at(width);
        assert!(!about.starts_with(' '), "{line}");
        found.push(front.trim_end());
    }
    let models = gpumodel::models();
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
fn the_list_has_the_models_of_a_users_paper_or_says_which_it_lacks() {
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

#[test]
fn a_fit_finds_the_constant_with_which_the_value_was_made() {
    let cache = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut program = program();
        program.env("GPUMODEL_CACHE", cache.path()).args(arguments).assert()
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let fit = |constant: &str, target: &str| {
        let fitted = ["--fit", constant, "--machine", "v100", "--to", target];
        run(&[&["synth", "compute", "--scale", "0.01"], &fitted[..]].concat())
    };
    // A longer loop: 16 turns of the file's four multiply-adds for each of four chains.
    let turns = |unrolled: u64| 16 * 4 * unrolled;
    let whole = ["analyze", "synth:compute:scale=0.01", "--machine", "v100", "--json", "-"];
    let record: serde_json::Value =
        serde_json::from_slice(&run(&whole).success().get_output().stdout).unwrap();
    let done = record["solo"][0]["warp_instructions"].as_u64().unwrap();
    let warps = 6 * 4;
    let wanted = done + warps * (turns(6) - turns(4));
    let kept = || std::fs::read_dir(cache.path()).unwrap().count();
    let before = kept();
    let found = fit("unrolled=1..8", &format!("warp_instructions={wanted}")).success();
    let said = text(&found.get_output().stdout);
    let last = format!("unrolled = 6, which has {wanted}.000000");
    assert!(said.lines().last().unwrap().ends_with(&last), "{said}");
    let values: Vec<&str> =
        said.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(values[..values.len() - 1], ["1", "8", "4", "6", "5"], "{said}");
    assert_eq!(kept(), before, "no store is kept");
}

#[test]
fn a_fit_that_cannot_be_made_is_refused_before_its_table() {
    let fit = |constant: &str, target: &str| {
        let fitted = ["--fit", constant, "--machine", "v100", "--to", target];
        program().args([&["synth", "compute", "--scale", "0.01"], &fitted[..]].concat()).assert()
    };
    for (constant, target, words) in [
        (
            "unroled=1..8",
            "ipc=3",
            "no constant `unroled` (did you mean unrolled?); expected one of block, chains, \
             unrolled, blocks",
        ),
        ("unrolled=1..8", "ipcs=3", "no run alone has `ipcs` (did you mean ipc?)"),
        ("unrolled=8..1", "ipc=3", "expected LOW at most HIGH"),
        ("unrolled=0..1", "ipc=3", "`count` is 0, expected 1 to 4096 copies"),
    ] {
        let refused = fit(constant, target).code(2);
        let said = String::from_utf8_lossy(&refused.get_output().stderr);
        assert!(said.contains(words), "{said}");
        assert!(refused.get_output().stdout.is_empty(), "no table of a request that is wrong");
    }
}

#[test]
fn a_fit_that_comes_near_nothing_says_why_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let fit = |constant: &str, target: &str| {
        let fitted = ["--fit", constant, "--machine", "v100", "--to", target];
        let (mut program, words) = (program(), [&["synth", "saxpy"], &fitted[..]].concat());
        let output = program.env("GPUMODEL_CACHE", folder.path()).args(words).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said.lines().last().unwrap_or_default().to_owned())
    };
    let ends = "is outside of what blocks = 2 and 4 give: 2.000000 and 4.000000";
    let same = "blocks does not change block: 2 and 4 both give 256.000000";
    for (constant, target, code, last) in [
        ("blocks=2..4", "ctas=3", 0, "nearest to ctas = 3: blocks = 3, which has 3.000000"),
        ("blocks=2..4", "ctas=3000", 1, &format!("3000 {ends}")),
        ("blocks=2..4", "ctas=1", 1, &format!("1 {ends}")),
        ("blocks=2..4", "ctas=4.2", 0, &format!("4.2 {ends}")),
        ("blocks=1..2", "ctas=1.5", 1, "no value that was run comes within 10 % of 1.5"),
        ("blocks=2..4", "block=128", 1, same),
        ("blocks=2..4", "block=256", 0, same),
        ("blocks=2..2", "ctas=3", 1, "no value that was run comes within 10 % of 3"),
    ] {
        assert_eq!(fit(constant, target), (Some(code), last.to_owned()), "{constant} {target}");
    }
}

#[test]
fn a_fit_names_its_columns_and_refuses_a_machine_before_it_runs() {
    let help = program().args(["synth", "--help"]).assert().success();
    let help = String::from_utf8_lossy(&help.get_output().stdout).into_owned();
    for column in gpumodel::report::paper::solo_columns() {
        assert!(help.contains(column), "{column}: {help}");
    }
    let words = ["synth", "saxpy", "--fit", "blocks=2..4", "--machine", "v10", "--to", "ctas=3"];
    let refused = program().args(words).assert().code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("v100") && refused.get_output().stdout.is_empty(), "{said}");
}
