//! Does a sweep run every cell of its plan once, as `analyze` would, even when another
//! process works in its folder, and report what it did? Does a merge?

mod plans;
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use gpumodel::report::results::{Analysis, SweepFiles};

use crate::sweep_place::{Place, bytes};

const PLAN: &str = r#"
machines = ["warped-slicer:l1.latency_cycles=20,30"]
schemes = ["left-over", "even", "profile-based:step=20"]
until = "targets"
window = 3000
arrive = { s = 200 }
[mixes]
lists = [["m", "s"], ["s", "m"]]
"#;

/// A plan whose cells under `bp` fail: its machine has no channels to give.
const FAILING: &str = r#"
machines = ["warped-slicer"]
schemes = ["bp", "even"]
[mixes]
lists = [["m", "s"]]
"#;

fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let header = reader.headers().unwrap().clone();
    let row = |row: csv::StringRecord| {
        header.iter().map(String::from).zip(row.iter().map(String::from)).collect()
    };
    reader.records().map(|one| row(one.unwrap())).collect()
}

#[test]
fn a_cell_equals_the_record_of_analyze() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let (code, said) = place.sweep(&plan, "out", &[]);
    assert_eq!(code, Some(0), "{said}");
    let files = SweepFiles::new(&place.path("out"));
    let cells = files.cells().unwrap();
    assert_eq!(cells.len(), 2 * 2 * 3);
    for cell in &cells {
        let record = files.outcome(&cell.key).unwrap().unwrap().unwrap();
        let settings: String =
            cell.parameters.iter().map(|(key, value)| format!(":{key}={value}")).collect();
        let mut command = Command::cargo_bin("gpumodel").unwrap();
        command.env("GPUMODEL_CACHE", place.path("other-cache")).arg("analyze");
        command.args(cell.apps.iter().map(|app| format!("{app}={}", place.app(app))));
        command.args(["--machine", &cell.machine, "--scheme", &(cell.scheme.clone() + &settings)]);
        command.args(["--until", "targets", "--window", "3000", "--arrive", "s=200"]);
        let latency = &cell.overrides["l1.latency_cycles"];
        command.args(["--set", &format!("l1.latency_cycles={latency}"), "--json", "-"]);
        let alone = Analysis::from_json(&command.output().unwrap().stdout, Path::new("a")).unwrap();
        assert_eq!(Analysis { cell: None, ..record }, alone, "{cell:?}");
    }
    let rows = table(&place.path("out/cells.csv"));
    let order: Vec<&str> = rows.iter().map(|row| row["key"].as_str()).collect();
    assert_eq!(order, cells.iter().map(|cell| cell.key.as_str()).collect::<Vec<_>>());
    assert_eq!(table(&place.path("out/apps.csv")).len(), 2 * rows.len());
}

#[test]
fn cells_are_computed_once_and_the_plan_may_grow() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let (code, _) = place.sweep(&plan, "out", &["--cells", "1-6"]);
    assert_eq!(code, Some(0));
    let first = bytes(&place.path("out/cells"));
    assert_eq!(first.len(), 6);
    assert_eq!(table(&place.path("out/cells.csv")).len(), 6, "of the part that is done");
    // Marks of the file system show whether a record was written again.
    let mark = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let records: Vec<PathBuf> = first.keys().cloned().collect();
    let before: Vec<_> = records.iter().map(mark).collect();
    let more = place.plan("more", &PLAN.replace("\"even\"", "\"even\", \"fcfs\""));
    for plan in [&plan, &more] {
        let (code, said) = place.sweep(plan, "out", &[]);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(records.iter().map(mark).collect::<Vec<_>>(), before);
    }
    assert_eq!(bytes(&place.path("out/cells")).len(), 2 * 2 * 4);
    // The plan before lacks four of them.
    let (code, said) = place.sweep(&plan, "out", &[]);
    let words = "out holds 4 cells that are not of this plan: name another folder, or add --force";
    assert!(code == Some(2) && said.contains(words), "{said}");
    for option in ["--force", "--resume"] {
        let (code, said) = place.sweep(&plan, "out", &[option]);
        assert!(code == Some(0) && said.contains("4 cells that are not of this plan"), "{said}");
    }
}

#[test]
fn one_source_may_have_several_names() {
    let place = Place::new();
    let names: String = (0..12).map(|n| format!("x{n} = 's'\ny{n} = 'synth:compute'\n")).collect();
    let text = format!(
        "machines = ['warped-slicer']\nschemes = ['even']\n[mixes]\n\
         lists = [['x0', 'x1', 'y0'], ['x2', 'y3']]\nall_pairs = true\n[apps]\n{names}"
    );
    fs::write(place.path("plan.toml"), text).unwrap();
    let (code, said) = place.sweep("plan.toml", "out", &["--cells", "1-2", "--threads", "8"]);
    assert!(
        code == Some(0) && said.contains("2 cells done, 0 failed, 0 left of cells 1-2"),
        "{said}"
    );
}

/// Keys of the plan `one` with separate model files: a standard and a mapping named by
/// their files, each with two contents under one name, and a folder of models.
fn keys_of_models(
    place: &Place,
    one: &str,
    key: impl Fn(&str, &str, &[&str]) -> String,
) -> Vec<String> {
    let mut keys = Vec::new();
    for (what, file, old, new) in [
        ("standard", "warped-slicer-gddr5.toml", "tWR = { value = 12,", "tWR = { value = 14,"),
        ("mapping", "mappings/warped-slicer.toml", "\"8, 9, 10\"", "\"9, 8, 10\""),
    ] {
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/memory").join(file);
        let text = fs::read_to_string(text).unwrap();
        let changed = text.replacen(old, new, 1);
        assert_ne!(changed, text);
        let machine = format!("'warped-slicer:dram.{what}=own/{what}.toml'");
        let plan = one.replacen("'warped-slicer'", &machine, 1);
        fs::create_dir_all(place.path("own")).unwrap();
        for (number, text) in [text, changed].into_iter().enumerate() {
            fs::write(place.path("own").join(format!("{what}.toml")), text).unwrap();
            keys.push(key(&format!("{what}{number}"), &plan, &[]));
        }
    }
    let gpus = place.path("models/gpus");
    fs::create_dir_all(&gpus).unwrap();
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/gpus/warped-slicer.toml");
    let text = fs::read_to_string(built_in).unwrap();
    let changed =
        text.replacen("latency_cycles = { value = 18,", "latency_cycles = { value = 19,", 1);
    assert_ne!(changed, text);
    fs::write(gpus.join("warped-slicer.toml"), changed).unwrap();
    keys.push(key("models-of-its-own", one, &["--models", "models"]));
    keys
}

#[test]
fn what_can_change_a_number_changes_the_key() {
    let place = Place::new();
    let key_with = |name: &str, text: &str, options: &[&str]| {
        let plan = place.plan(name, text);
        let (code, said) = place.sweep(&plan, name, &[&["--cells", "1"][..], options].concat());
        assert_eq!(code, Some(0), "{said}");
        SweepFiles::new(&place.path(name)).cells().unwrap()[0].key.clone()
    };
    let key = |name: &str, text: &str| key_with(name, text, &[]);
    let one = "machines = ['warped-slicer']\nschemes = ['profile-based:step=20']\n\
               [mixes]\nlists = [['m', 's']]\n";
    let mut keys = vec![key("a", one)];
    for (number, (old, new)) in [
        ("step=20", "step=25"),
        ("profile-based:step=20", "even"),
        ("'warped-slicer'", "'warped-slicer:l1.latency_cycles=29'"),
        ("[mixes]", "seeds = [1]\n[mixes]"),
        ("[mixes]", "until = 'first'\n[mixes]"),
        ("[mixes]", "until = 'cycles=3000'\n[mixes]"),
        ("[mixes]", "until = 'cycles=3000'\nwindow = 2000\n[mixes]"),
        ("[mixes]", "arrive = { s = 1 }\n[mixes]"),
        ("'m', 's'", "'s', 'm'"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = one.replacen(old, new, 1);
        assert_ne!(text, one);
        keys.push(key(&format!("b{number}"), &text));
    }
    // Another trace under the same name.
    fs::remove_dir_all(place.path("m")).unwrap();
    place.trace("m", "saxpy", 0.2);
    keys.push(key("c", one));
    assert_eq!(key("again", one), keys[keys.len() - 1]);
    keys.extend(keys_of_models(&place, one, key_with));
    let once: BTreeSet<&String> = keys.iter().collect();
    assert_eq!(once.len(), keys.len(), "{keys:?}");
}

/// Brings the stores of the place's traces into its cache.
fn convert(place: &Place) {
    for trace in ["m", "s"] {
        let (code, said) = place.run(&["inspect", trace]);
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
fn a_cell_that_fails_is_kept_with_its_error_and_the_rest_goes_on() {
    let place = Place::new();
    let plan = place.plan("plan", FAILING);
    convert(&place);
    let (code, said) = place.sweep(&plan, "out", &["--dry-run"]);
    assert!(code == Some(0) && said.contains("cell 1 cannot run: scheme bp gives"), "{said}");
    let (code, said) = place.sweep(&plan, "out", &[]);
    assert!(code == Some(1) && said.contains("1 cells done, 1 failed"), "{said}");
    assert!(said.contains("refused: ") && said.contains("under bp: scheme bp gives"), "{said}");
    // It would be refused again.
    assert!(said.contains("1 refused: ") && said.contains("change or remove their"), "{said}");
    assert!(!said.contains("--retry-failed"), "{said}");
    let rows = table(&place.path("out/cells.csv"));
    assert_eq!((rows[0]["status"].as_str(), rows[0]["stp"].as_str()), ("failed", ""));
    assert!(rows[0]["error"].contains("channels") && rows[1]["status"] == "done");
    assert_eq!(table(&place.path("out/apps.csv")).len(), 2, "those of the cell that is done");
    let failed = bytes(&place.path("out/failed"));
    // Left as it is, unless it is to be run again.
    let file = failed.keys().next().unwrap();
    let mark = || fs::metadata(file).unwrap().modified().unwrap();
    let before = mark();
    let (code, _) = place.sweep(&plan, "out", &[]);
    assert_eq!((code, mark()), (Some(1), before));
    let (code, _) = place.sweep(&plan, "out", &["--retry-failed"]);
    assert!(code == Some(1) && mark() > before);
    assert_eq!(bytes(&place.path("out/failed")), failed, "the same error");
}

#[test]
fn a_plan_that_cannot_be_run_leaves_nothing() {
    let place = Place::new();
    for (old, new, words) in [
        ("warped-slicer:l1", "warped-slice:l1", "plan.toml:2: machines: warped-slice\n  because: "),
        (
            "latency_cycles=20,30",
            "latency_cycle=20,30",
            "plan.toml:2: machines: warped-slicer\n  because: l1.latency_cycle=20: unknown key `l1.latency_cycle`; did you mean `l1.latency_cycles`?",
        ),
        ("'s', 'm'", "'s', 'x'", "plan.toml:8: mixes.lists, list 2: no application x"),
        (
            "[[\"m\", \"s\"]",
            "[[\"m\", \"none\"]",
            "plan.toml:13: apps.none\n  because: there is no file",
        ),
    ] {
        let text = PLAN.replace("\"s\", \"m\"", "'s', 'm'").replacen(old, new, 1);
        let plan = place.plan("plan", &text);
        for options in [&[][..], &["--dry-run"], &["--engine", "slurm", "--print"]] {
            let (code, said) = place.sweep(&plan, "out", options);
            assert!(code == Some(2) && said.contains(words), "{new}: {said}");
            assert!(!place.path("out").exists(), "{new}");
        }
    }
}

#[test]
fn missing_cells_are_refused_before_the_run() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    for (cells, words) in [
        ("1-13", "plan.toml: expected cells from 1 to 12, found 1-13"),
        ("13-13", "expected cells from 1 to 12"),
        ("3-2", "expected FIRST-LAST"),
        ("0-2", "expected FIRST-LAST"),
        ("one", "expected FIRST-LAST"),
    ] {
        for options in [&[][..], &["--dry-run"], &["--engine", "slurm", "--print"]] {
            let (code, said) = place.sweep(&plan, "out", &[&["--cells", cells], options].concat());
            assert!(code == Some(2) && said.contains(words), "{cells}: {said}");
            assert!(!place.path("out").exists(), "{cells}");
        }
    }
    // As many as the plan's product, but one machine appears twice.
    let twice = place.plan("twice", &PLAN.replace("=20,30", "=20,20"));
    let (code, said) = place.sweep(&twice, "out", &["--cells", "7-12"]);
    assert!(code == Some(2) && said.contains("from 1 to 6, found 7-12"), "{said}");
    assert!(!place.path("out").exists());
}

#[test]
fn a_dry_run_names_the_cells_and_writes_nothing() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let (code, said) = place.sweep(&plan, "out", &["--dry-run"]);
    assert!(code == Some(0) && said.contains("12 of these cells have no estimate: "), "{said}");
    assert!(said.contains("the sweep converts m, s first"), "{said}");
    assert!(said.contains("12 cells: no estimate of time and memory"), "{said}");
    assert!(!said.contains("MB") && !said.contains("about"), "{said}");
    assert!(!place.path("cache/stores").exists(), "nothing is converted");
    convert(&place);
    let (code, said) = place.sweep(&plan, "out", &["--dry-run"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        !said.contains("no estimate")
            && said.contains("12 cells: about")
            && said.contains("This rests on"),
        "{said}"
    );
    let reported = |words: &str| said.lines().filter(|line| line.contains(words)).count();
    assert_eq!((reported("left-over"), reported("s + m"), reported("=30")), (4, 6, 6), "{said}");
    let (_, some) = place.sweep(&plan, "out", &["--dry-run", "--cells", "8-9"]);
    let lines = |said: &str| said.lines().map(str::to_owned).collect::<Vec<_>>();
    let row = |said: &str, number: &str| {
        let mut rows = lines(said).into_iter();
        let row = rows.find(|row| row.split_whitespace().next() == Some(number)).unwrap();
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!((row(&some, "8"), row(&some, "9")), (row(&said, "8"), row(&said, "9")), "{some}");
    assert!(some.contains("2 cells: about"), "{some}");
    assert!(!place.path("out").exists());
}

#[test]
fn a_dry_run_lists_done_cells_and_predicts_from_their_times() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let (code, said) = place.sweep(&plan, "out", &["--cells", "3-6"]);
    assert_eq!(code, Some(0), "{said}");
    let before = place.content("out");
    let (code, said) = place.sweep(&plan, "out", &["--dry-run"]);
    assert!(code == Some(0) && said.contains("12 cells, 4 done, 0 failed, 8 left"), "{said}");
    assert!(said.contains("This rests on what 4 cells were measured to take"), "{said}");
    assert!(said.contains(" can help: the longest cell takes "), "{said}");
    let done = said.lines().filter(|line| line.ends_with("done"));
    let numbers: Vec<&str> = done.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(numbers, ["3", "4", "5", "6"], "{said}");
    assert_eq!(place.content("out"), before, "nothing is written");
}

#[test]
fn threads_and_the_memory_limit_change_no_byte() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    for (out, options) in
        [("one", ["--threads", "1"]), ("two", ["--threads", "2"]), ("little", ["--memory", "1M"])]
    {
        let (code, said) = place.sweep(&plan, out, &options);
        assert_eq!(code, Some(0), "{said}");
    }
    let names = |out: &str| place.content(out);
    assert_eq!(names("one"), names("two"));
    assert_eq!(names("one"), names("little"));
    let (code, said) = place.sweep(&plan, "none", &["--memory", "5"]);
    assert!(code == Some(2) && said.contains("expected at least 1M"), "{said}");
    assert!(!place.path("none").exists());
}

#[test]
fn parts_merge_to_the_whole_and_versions_do_not_mix() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    place.sweep(&plan, "whole", &[]);
    place.sweep(&plan, "a", &["--cells", "1-7"]);
    place.sweep(&plan, "b", &["--cells", "5-12"]);
    let (code, said) = place.run(&["merge", "a", "b", "--out", "joined"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(place.content("joined"), place.content("whole"));
    // As after a kill.
    let joined = SweepFiles::new(&place.path("joined"));
    fs::remove_file(joined.list()).unwrap();
    fs::remove_file(place.path("joined/apps.csv")).unwrap();
    let key = joined.done()[3].clone();
    fs::remove_file(joined.record(&key)).unwrap();
    for _ in 0..2 {
        let (code, said) = place.run(&["merge", "a", "b", "--out", "joined"]);
        assert!(code == Some(0) && said.contains("12 cells done, 0 failed"), "{said}");
        assert_eq!(place.content("joined"), place.content("whole"));
    }
    let (code, said) = place.run(&["merge", "a", "--out", "joined"]);
    assert!(code == Some(2) && said.contains("joined holds 12 cells"), "{said}");
    let (code, said) = place.run(&["merge", "a", "m", "--out", "x"]);
    assert!(code == Some(2) && said.contains("m: expected the folder of a sweep"), "{said}");
    // A record of another version.
    let files = SweepFiles::new(&place.path("b"));
    let cells = files.cells().unwrap();
    let build = cells[0].build.clone();
    for path in bytes(&place.path("b")).keys().filter(|path| path.extension().unwrap() == "json") {
        let text = fs::read_to_string(path).unwrap().replace(&build, "0.0.9+1");
        fs::write(path, text).unwrap();
    }
    let (code, said) = place.run(&["merge", "a", "b", "--out", "mixed"]);
    assert!(code == Some(2) && said.contains("0.0.9+1 in b"), "{said}");
    assert!(said.contains("--mixed-versions") && !place.path("mixed").exists(), "{said}");
    let (code, said) = place.sweep(&plan, "b", &["--resume"]);
    assert!(code == Some(2) && said.contains("0.0.9+1 in b, this is"), "{said}");
    // Other numbers in the same cell.
    let path = files.record(&cells[5].key);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"stp\": ", "\"stp\": 1", 1)).unwrap();
    let (code, said) = place.run(&["merge", "a", "b", "--out", "mixed", "--mixed-versions"]);
    assert!(code == Some(2) && said.contains("are records of the same cell and differ"), "{said}");
}

#[test]
fn a_folder_is_not_merged_into_itself() {
    let place = Place::new();
    let plan = place.plan("plan", FAILING);
    place.sweep(&plan, "a", &[]);
    let before = place.content("a");
    let (code, said) = place.run(&["merge", "a", "--out", "./a"]);
    assert!(code == Some(2) && said.contains("a: a folder cannot be merged into itself"), "{said}");
    assert_eq!(place.content("a"), before);
}

/// A merge says how much of the plan its folders have run.
#[test]
fn cells_that_no_folder_ran_remain() {
    let place = Place::new();
    let plan = "machines = ['warped-slicer']\nschemes = ['left-over', 'even', 'spatial']\n\
        seeds = [1, 2]\n[mixes]\nlists = [['m', 's']]\n";
    let plan = place.plan("plan", plan);
    assert_eq!(place.sweep(&plan, "a", &["--cells", "1-2"]).0, Some(0));
    assert_eq!(place.sweep(&plan, "b", &["--cells", "2-4"]).0, Some(0));
    let (code, said) = place.run(&["merge", "a", "b", "--out", "joined"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("joined: 4 cells done, 0 failed, 2 left"), "{said}");
    let (code, said) = place.sweep(&plan, "joined", &["--resume"]);
    assert!(code == Some(0) && said.contains("6 cells done, 0 failed, 0 left"), "{said}");
}
