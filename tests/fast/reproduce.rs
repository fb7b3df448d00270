//! Does a reproduction run what a paper's file says, judge it by the rule, and resume where
//! it stopped?

use std::fs;
use std::path::Path;

use gpumodel::report::paper::{Reproduction, Verdict};

use crate::sweep_place::Place;

const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['sequential', 'even']\n\
    [apps]\nc = 'synth:compute:scale=0.1'\ns = 'synth:saxpy:scale=0.1'\n\
    [mixes]\nlists = [['c', 's'], ['s', 'c']]\n";

const QUEUE: &str = "group_size = 2\norder = ['c', 's', 's', 'c']\n\
    [apps]\nc = 'synth:compute:scale=0.1'\ns = 'synth:saxpy:scale=0.1'\n";

const PAPER: &str = r#"
description = "A paper"
[[part]]
name = "pairs"
title = "Pairs"
covers = "Two pairs."
plan = "own"
[[part.figure]]
name = "makespan"
shows = "figure 1"
baseline = "sequential"
[[part.figure]]
name = "reallocation"
shows = "figure 2"
[[part]]
name = "queue"
title = "A queue"
covers = "One queue."
queue = "own"
machine = "warped-slicer"
schemes = ["even-queue", "profile-based"]
[sets.pairs]
part = "pairs"
[sets.queue]
part = "queue"
[[silent]]
what = "What | is"
taken = "this"
sensitivity = "none"
[solo]
published = "table 1"
[solo.app.compute]
label = "C"
warp_instructions = 5
at_rate = 2
"#;

fn row(over: &str, set: &str, measure: &str, percent: &str) -> String {
    let scheme = if set == "queue" { "profile-based" } else { "even" };
    format!(
        "[[headline]]\npublished = 'F'\nscheme = '{scheme}'\nover = '{over}'\nset = '{set}'\n\
         measure = '{measure}'\npercent = {percent}\n"
    )
}

/// A folder of models with a paper of two parts and the rows `rows`.
fn models(place: &Place, rows: &[String]) {
    for (path, text) in [
        ("plans/own.toml", PLAN),
        ("mixes/own.toml", QUEUE),
        ("papers/own.toml", &(PAPER.to_owned() + &rows.concat())),
    ] {
        let path = place.path("models").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn reproduce(place: &Place, paper: &str, options: &[&str]) -> (Option<i32>, String) {
    let words = ["reproduce", paper, "--report", "out", "--models", "models"];
    place.run(&[&words[..], options].concat())
}

fn read(place: &Place) -> Reproduction {
    Reproduction::read(&place.path("out/reproduction.json")).unwrap()
}

#[test]
fn rows_are_judged_by_what_the_parts_give() {
    let place = Place::new();
    let rows = [
        row("sequential", "pairs", "makespan", "[-90.0, 900.0]"),
        row("even-queue", "queue", "throughput", "[-90.0, 900.0]"),
    ];
    models(&place, &rows);
    let (code, said) = reproduce(&place, "own", &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("rows: agree: 2, same sign: 0, contradict: 0, impossible: 0, not run: 0"),
        "{said}"
    );
    let found = read(&place);
    let [pairs, queue] = &found.papers[0].rows[..] else { panic!("{found:?}") };
    // Both orders of two applications are one mix.
    assert_eq!((pairs.mixes.len(), queue.mixes.len()), (1, 1));
    // Two mixes under two schemes, and a header.
    let cells = fs::read_to_string(place.path("out/parts/own-pairs/cells.csv")).unwrap();
    assert_eq!(cells.lines().count(), 5);
    let report = fs::read_to_string(place.path("out/report.md")).unwrap();
    assert!(report.contains("![makespan, figure 1](own-pairs-makespan.svg)"), "{report}");
    assert!(report.contains("reallocation, figure 2: not drawn"), "{report}");
    assert!(report.contains("What \\| is"), "{report}");
    // The printed solo value, ours and the difference.
    assert!(report.contains("table 1.\n\n| value | of | paper | model |"), "{report}");
    let line =
        report.lines().find(|line| line.starts_with("| warp instructions | C, rate 2 | 5 |"));
    assert!(line.is_some_and(|line| line.ends_with(" % |")), "{report}");
    for name in ["own-pairs-makespan.svg", "index.html", "headlines.csv"] {
        assert!(place.path("out").join(name).is_file(), "{name}");
    }
}

#[test]
fn a_row_that_fails_is_reported_and_nothing_runs_twice() {
    let place = Place::new();
    let rows = [
        row("sequential", "pairs", "makespan", "900.0"),
        row("sequential:k=9", "pairs", "stp", "1.0"),
    ];
    models(&place, &rows);
    let (code, said) = reproduce(&place, "own", &["--threads", "1"]);
    assert_eq!(code, Some(1), "{said}");
    let found = read(&place);
    let verdicts: Vec<Verdict> = found.papers[0].rows.iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, [Verdict::SameSign, Verdict::Fail]);
    assert_eq!(found.papers[0].rows[1].reasons, ["1 mixes of the set have no value"]);
    assert!(found.papers[0].rows[0].reasons[0].ends_with("300.0 allowed"), "{found:?}");
    // The report of another paper does not replace this one.
    let (code, said) = reproduce(&place, "slate", &["--so-far"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("out holds a report on own, which this one would replace"), "{said}");
    // Again: from existing records, on any number of threads, byte for byte.
    let first = place.content("out");
    let times = |folder: &Path| -> Vec<_> {
        let cells = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        cells.map(|cell| (cell.path(), cell.metadata().unwrap().modified().unwrap())).collect()
    };
    let cells = place.path("out/parts/own-pairs/cells");
    let before = times(&cells);
    assert_eq!(reproduce(&place, "own", &["--threads", "2"]).0, Some(1));
    assert_eq!(times(&cells), before);
    assert!(place.content("out") == first);
}

#[test]
fn so_far_reports_existing_runs_and_runs_nothing() {
    let place = Place::new();
    models(&place, &[row("sequential", "pairs", "makespan", "[-90.0, 900.0]")]);
    let so_far = |expected: &[&str]| {
        let (code, said) = reproduce(&place, "own", &["--so-far"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(expected.iter().all(|expected| said.contains(expected)), "{said}");
        fs::read_to_string(place.path("out/report.md")).unwrap()
    };
    let report = so_far(&["not run: 1", "not run yet: 5; the same command without --so-far"]);
    assert!(report.contains("Two pairs. Records: 0. Not run yet: 4."), "{report}");
    let plan = "out/parts/own-pairs/own.toml";
    let swept = ["sweep", plan, "--out", "out/parts/own-pairs", "--cells", "1-2"];
    let (code, said) = place.run(&swept);
    assert_eq!(code, Some(0), "{said}");
    let report = so_far(&["rows: agree: 1", "not run yet: 3;"]);
    assert!(report.contains("Two pairs. Records: 2. Not run yet: 2."), "{report}");
    assert!(report.contains("One queue. Records: 0. Not run yet: 1."), "{report}");
    assert_eq!(reproduce(&place, "own", &[]).0, Some(0));
    let report = so_far(&["rows: agree: 1"]);
    assert!(!report.contains("Not run yet") && !report.contains("so far"), "{report}");
    // An unreadable record does not count, as in a run.
    let cells = fs::read_dir(place.path("out/parts/own-pairs/cells")).unwrap();
    let record = cells.map(|entry| entry.unwrap().path()).max().unwrap();
    fs::write(record, "{").unwrap();
    let report = so_far(&["damaged, the cell runs again", "not run yet: 1;"]);
    assert!(report.contains("What has been run so far; not run yet: 1. "), "{report}");
}

#[test]
fn records_of_another_build_are_not_reused_by_default() {
    let place = Place::new();
    models(&place, &[row("sequential", "pairs", "makespan", "[-90.0, 900.0]")]);
    assert_eq!(reproduce(&place, "own", &[]).0, Some(0));
    let list = place.path("out/parts/own-pairs/sweep.json");
    let build = read(&place).build;
    let text = fs::read_to_string(&list).unwrap().replace(&build, "0.0.9+1");
    fs::write(&list, text).unwrap();
    let (code, said) = reproduce(&place, "wn", &["--so-far"]);
    assert!(code == Some(2) && said.contains("no paper wn (did you mean own?)"), "{said}");
    for option in [&[][..], &["--so-far"]] {
        let (code, said) = reproduce(&place, "own", option);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("0.0.9+1 in out") && said.contains("--mixed-versions"), "{said}");
    }
    assert_eq!(reproduce(&place, "own", &["--mixed-versions"]).0, Some(0));
}

#[test]
fn a_short_version_leaves_out_what_has_none() {
    let place = Place::new();
    models(&place, &[row("sequential", "pairs", "stp", "1.0")]);
    let (code, said) = reproduce(&place, "own", &["--quick"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("rows: agree: 0, same sign: 0, contradict: 0, impossible: 0, not run: 1"),
        "{said}"
    );
}

#[test]
fn a_printed_mean_is_marked_where_the_whole_of_its_mixes_has_run() {
    let place = Place::new();
    let part = "[[part]]\nname = 'marked'\ntitle = 'Marked'\ncovers = 'all'\nplan = 'own'\n\
        quick = 'own'\n[[part.figure]]\nname = 'normalized'\nshows = 'figure 3'\n\
        baseline = 'sequential'\nmetric = 'makespan'\n[sets.marked]\npart = 'marked'\n";
    let printed = row("sequential", "marked", "makespan", "[-90.0, 900.0]");
    models(&place, &[part.to_owned(), printed]);
    let marked = |options: &[&str]| {
        let (code, said) = reproduce(&place, "own", options);
        assert_eq!(code, Some(0), "{said}");
        let svg = fs::read_to_string(place.path("out/own-marked-normalized-makespan.svg")).unwrap();
        let reported = svg.contains("Marks at GMEAN");
        let parts = read(&place).papers.remove(0).parts;
        let part = parts.iter().find(|part| part.name == "marked").unwrap();
        (reported, part.figures[0].published_percent.get("even").copied())
    };
    assert_eq!(marked(&["--quick"]), (false, None));
    assert_eq!(marked(&[]), (true, Some([-90.0, 900.0])));
}

#[test]
fn an_impossible_reproduction_is_refused() {
    let place = Place::new();
    models(&place, &[row("sequential", "pairs", "speed", "1.0")]);
    let (code, said) = reproduce(&place, "ours", &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("no paper ours; the papers are: all, arcs, "), "{said}");
    for (typed, meant) in [("ws", "warped-slicer"), ("slate2", "slate"), ("all2", "all")] {
        let (code, said) = reproduce(&place, typed, &[]);
        let hint = format!("no paper {typed} (did you mean {meant}?)");
        assert!(code == Some(2) && said.contains(&hint), "{said}");
    }
    let (code, said) = reproduce(&place, "own", &[]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("headline of F: measure: expected one of stp, ")
            && said.contains("found speed"),
        "{said}"
    );
    models(&place, &[]);
    fs::write(place.path("models/plans/own.toml"), PLAN.replace("saxpy", "saxpi")).unwrap();
    let (code, said) = reproduce(&place, "own", &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("part pairs") && said.contains("saxpi"), "{said}");
}

#[test]
fn a_file_that_is_no_report_is_kept() {
    let place = Place::new();
    models(&place, &[row("sequential", "pairs", "stp", "1.0")]);
    let refused = |found: &str| {
        let (code, said) = reproduce(&place, "own", &["--quick"]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(&format!("out holds {found} and is not a reproduction")), "{said}");
    };
    fs::create_dir_all(place.path("out/parts")).unwrap();
    fs::write(place.path("out/report.md"), "mine").unwrap();
    refused("parts and 1 more");
    assert_eq!(fs::read_to_string(place.path("out/report.md")).unwrap(), "mine");
    fs::remove_dir(place.path("out/parts")).unwrap();
    fs::rename(place.path("out/report.md"), place.path("out/notes")).unwrap();
    refused("notes");
    // Parts are of a reproduction where one is a sweep.
    fs::create_dir_all(place.path("out/parts")).unwrap();
    refused("notes and 1 more");
    fs::create_dir_all(place.path("out/parts/own-pairs")).unwrap();
    refused("notes and 1 more");
    fs::write(place.path("out/parts/own-pairs/Cargo.toml"), "[package]\n").unwrap();
    refused("notes and 1 more");
    fs::remove_dir_all(place.path("out")).unwrap();
    fs::create_dir(place.path("out")).unwrap();
    // An empty one and that of an earlier reproduction are taken.
    let taken = || {
        let (code, said) = reproduce(&place, "own", &["--quick"]);
        assert_eq!(code, Some(0), "{said}");
    };
    taken();
    taken();
    // Merged cells have a list and no plan yet.
    fs::remove_dir_all(place.path("out")).unwrap();
    fs::create_dir_all(place.path("out/parts/own-pairs")).unwrap();
    let list = "{\"schema\": \"gpumodel.sweep/1\", \"cells\": []}";
    fs::write(place.path("out/parts/own-pairs/sweep.json"), list).unwrap();
    taken();
}

#[test]
fn a_paper_s_file_is_checked_before_anything_runs() {
    let place = Place::new();
    let wrong = |text: &str, expected: &str| {
        models(&place, &[text.to_owned()]);
        let (code, said) = reproduce(&place, "own", &[]);
        assert_eq!(code, Some(2), "{said}");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&format!("papers/own.toml: {expected}")), "{said}");
    };
    let part = "[[part]]\nname = 'p'\ntitle = 'P'\ncovers = 'all'\nplan = 'own'\n";
    wrong(
        &format!("{part}[[part.figure]]\nname = 'makespn'\nshows = 'F'\n"),
        "part p: there is no figure makespn (did you mean makespan?)",
    );
    wrong(&part.replace("'own'", "'ownn'"), "part p");
    wrong(
        &row("sequental", "pairs", "stp", "1.0"),
        "headline of F: over: the part does not run sequental (did you mean sequential?)",
    );
    wrong(
        &row("sequential", "pairs", "reallocation", "1.0"),
        "headline of F: over: expected none, as reallocation is of one scheme",
    );
    wrong(
        "[sets.few]\npart = 'pairs'\nmixes = [['c', 't']]\n",
        "sets.few: the plan has no application t",
    );
    wrong("[sets.few]\npart = 'pairs'\nmixes = [['c']]\n", "sets.few: the plan has no mix of c");
    assert!(!place.path("out/reproduction.json").exists());
}

#[test]
fn tables_and_figures_of_one_mix_are_checked_before_anything_runs() {
    let place = Place::new();
    let wrong = |text: &str, expected: &str| {
        models(&place, &[text.to_owned()]);
        let (code, said) = reproduce(&place, "own", &[]);
        assert_eq!(code, Some(2), "{said}");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&format!("own.toml: {expected}")), "{said}");
    };
    let compared = |scheme: &str, measure: &str| {
        format!(
            "[solo.compared.warp_instructions]\nscheme = '{scheme}'\nover = 'sequential'\n\
             set = 'pairs'\nmeasure = '{measure}'\n"
        )
    };
    let at = "solo.compared.warp_instructions";
    wrong(&compared("even", "speed"), &format!("{at}: measure: expected one of stp, "));
    wrong(&compared("evn", "stp"), &format!("{at}: scheme: the part does not run evn"));
    wrong("[more]\nrows = 3\n", "more: missing field `published`");
    let part = "[[part]]\nname = 'p'\ntitle = 'P'\ncovers = 'all'\nplan = 'own'\n";
    wrong(
        &format!("{part}[[part.figure]]\nname = 'curves'\nshows = 'F'\nmix = ['c', 't']\n"),
        "part p: figure curves: the plan has no application t",
    );
    assert!(!place.path("out/reproduction.json").exists());
}
