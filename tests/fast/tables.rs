//! Do the tables of every verb fit the terminal, sum up what was run, and come as CSV?

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::sweep_place::Place;

/// The standard output of the program in a terminal of so many columns.
fn shown(place: &Place, columns: usize, words: &[&str]) -> String {
    let output = place.command(words).env("COLUMNS", columns.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(path).unwrap().into_deserialize().map(Result::unwrap).collect()
}

#[test]
fn applications_on_machines_end_in_one_table_and_have_a_record_each() {
    let place = Place::new();
    let words = ["analyze", "m", "s", "-m", "v100,rtx-2060", "--json", "r.json", "--csv", "t.csv"];
    let text = shown(&place, 80, &[&words[..], &["--report", "out"]].concat());
    let (_, summary) = text.split_once("Each application alone:\n").unwrap();
    let machines = |name: &str| summary.lines().filter(|line| line.contains(name)).count();
    assert_eq!((machines("v100"), machines("rtx-2060")), (2, 2), "{summary}");
    for machine in ["v100", "rtx-2060"] {
        let record = fs::read_to_string(place.path(&format!("r-{machine}.json"))).unwrap();
        assert!(record.contains(&format!("\"name\": \"{machine}\"")), "{machine}");
        assert!(place.path("out").join(machine).join("index.html").is_file(), "{machine}");
    }
    let rows = rows(&place.path("t.csv"));
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let share = |name: &str| row[name].parse::<f64>().unwrap();
        assert!((0.0..=1.0).contains(&share("share_of_peak")), "{row:?}");
        // Small traces leave SMs empty, which is no stall.
        assert!(share("no_cta") > 0.0 && row["top_stall"] != "idle", "{row:?}");
    }
    assert!(place.path("t-kernels.csv").is_file() && place.path("t-stalls.csv").is_file());
}

#[test]
fn several_machines_are_refused_one_output() {
    let place = Place::new();
    for (words, why) in [
        (&["-m", "v100,rtx-2060", "--json", "-"][..], "2 machines have one each"),
        (&["-m", "v100", "-m", "v100"], "two machines are called v100"),
        (&["-m", "v100", "--json", "-", "--csv", "-"], "standard output takes one of them"),
        (&["-m", "v100,v10"], "v10"),
    ] {
        let (code, said) = place.run(&[&["analyze", "m"][..], words].concat());
        assert!(code == Some(2) && said.contains(why), "{said}");
    }
}

#[test]
fn tables_are_as_wide_as_the_terminal() {
    let place = Place::new();
    let scheme = "left-over,even,warped-slicer:warmup=500:window=500";
    let together = ["analyze", "m", "s", "-m", "warped-slicer", "--scheme", scheme];
    assert_eq!(place.run(&["convert", "m", "-o", "m.gpt"]).0, Some(0));
    for words in [
        &together[..],
        &["analyze", "m", "s", "-m", "v100", "--hot", "3"],
        &["inspect", "m.gpt"],
        &["scheme", "list"],
        &["scheme", "show", "ugpu"],
        &["machine", "list"],
        &["machine", "show", "v100"],
        &["plot", "--list"],
        &["synth", "--list"],
        &["guide"],
    ] {
        for columns in [80, 120] {
            let text = shown(&place, columns, words);
            let wide = text.lines().find(|line| line.chars().count() > columns);
            // A hash is one word.
            assert!(wide.is_none_or(|line| line.starts_with("hash")), "{words:?}: {wide:?}");
            let alone = |line: &&str| ["%", "–"].contains(&line.trim());
            assert_eq!(text.lines().find(alone), None, "{words:?}");
        }
    }
}

#[test]
fn every_table_comes_as_csv_with_every_digit() {
    let place = Place::new();
    assert_eq!(place.run(&["convert", "m", "-o", "m.gpt"]).0, Some(0));
    fs::write(place.path("requests.txt"), "0 0x0 R\n4 0x40 W\n").unwrap();
    for (words, column, count) in [
        (&["inspect", "m.gpt"][..], "warp_instr", 1),
        (&["scheme", "list"], "does", 31),
        (&["machine", "list"], "mhz", 21),
        (&["machine", "show", "v100"], "source", 100),
        (&["synth", "--list"], "paper", 20),
        (&["plot", "--list"], "shows", 30),
        (&["guide"], "topic", 12),
        (&["dram", "--spec", "hbm2", "--requests", "requests.txt"], "value", 10),
    ] {
        let (code, said) = place.run(&[words, &["--csv", "x.csv"]].concat());
        assert_eq!(code, Some(0), "{said}");
        let rows = rows(&place.path("x.csv"));
        assert!(rows.len() >= count && rows[0].contains_key(column), "{words:?}: {}", rows.len());
    }
    for words in [&["synth", "saxpy", "-o", "new"][..], &["guide", "tutorial"]] {
        let (code, said) = place.run(&[words, &["--csv", "x.csv"]].concat());
        assert!(code == Some(2) && said.contains("--csv is for the list of"), "{said}");
    }
    let (_, csv) = place.run(&["inspect", "m.gpt", "--csv", "-"]);
    assert!(csv.starts_with("application,kernel,id,grid,") && csv.lines().count() == 2, "{csv}");
}

#[test]
fn the_list_of_schemes_has_one_whole_line_each() {
    let text = shown(&Place::new(), 80, &["scheme", "list"]);
    let rows = text.lines().skip(1).take_while(|line| !line.contains("left out")).count();
    assert_eq!(rows, 35, "{text}");
    assert!(!text.contains('…'), "{text}");
}

#[test]
fn failed_checks_of_a_machine_are_rows() {
    let place = Place::new();
    let text = "base = \"v100\"\ndescription = \"No SMs\"\n[dispatch]\nsms = 0\n";
    fs::write(place.path("bad.toml"), text).unwrap();
    for (machine, valid) in [("v100", true), ("bad.toml", false)] {
        let (code, said) = place.run(&["machine", "check", machine, "--csv", "x.csv"]);
        assert_eq!(code, Some(i32::from(!valid)), "{said}");
        assert_eq!(rows(&place.path("x.csv")).is_empty(), valid, "{said}");
    }
    let (code, said) = place.run(&["machine", "check", "bad.toml", "--csv", "bad.toml"]);
    assert!(code == Some(2) && said.contains("--csv would replace it"), "{said}");
}

/// The names of the columns of the tables in a text: words with two spaces or more between.
fn headers(text: &str) -> Vec<&str> {
    let head = |line: &&str| line.starts_with("  ") && line.contains("IPC") && !line.contains(": ");
    let heads = text.lines().filter(head);
    heads.flat_map(|line| line.split("  ")).map(str::trim).collect()
}

#[test]
fn a_table_has_one_ipc_and_names_it() {
    let place = Place::new();
    let queue = "group_size = 2\norder = ['m', 's', 'm']\n[apps]\nm = 'm'\ns = 's'\n";
    fs::write(place.path("queue.toml"), queue).unwrap();
    for (words, tables) in [
        (&["analyze", "m", "s", "-m", "v100", "--scheme", "even"][..], 5),
        (&["analyze", "--queue", "queue.toml", "-m", "v100", "--scheme", "even-queue"], 3),
    ] {
        let text = shown(&place, 200, words);
        let named: Vec<&str> =
            headers(&text).into_iter().filter(|one| one.contains("IPC")).collect();
        assert_eq!(named, vec!["thread IPC"; tables], "{text}");
    }
}

#[test]
fn columns_of_co_runs_in_csv_say_their_units_and_rates_have_one_name() {
    let place = Place::new();
    let words = ["analyze", "m", "s", "-m", "v100", "--scheme", "even", "--csv", "t.csv", "-q"];
    assert_eq!(place.run(&words).0, Some(0));
    let scheme = &rows(&place.path("t-schemes.csv"))[0];
    assert!(scheme["energy_j"].parse::<f64>().unwrap() > 0.0, "{scheme:?}");
    assert!(!scheme.contains_key("energy"), "{scheme:?}");
    for table in ["applications", "kernels"] {
        let row = &rows(&place.path(&format!("t-{table}.csv")))[0];
        assert!(row.contains_key("l1_hit") && !row.contains_key("l1_hits"), "{row:?}");
    }
}

#[test]
fn a_scheme_in_the_place_of_a_verb_leads_to_show() {
    let place = Place::new();
    for (typed, words) in [
        ("spatail", "as `gpumodel scheme show SCHEME` (did you mean spatial?)"),
        ("spatial", "as `gpumodel scheme show spatial`"),
        ("lst", "expected `list` or `show` (did you mean list?)"),
    ] {
        let (code, said) = place.run(&["scheme", typed]);
        assert!(code == Some(2) && said.contains(words), "{typed}: {said}");
    }
}

#[test]
fn hot_spots_come_as_csv_with_the_other_tables() {
    let place = Place::new();
    let words = ["analyze", "m", "s", "-m", "v100", "--hot", "2", "--csv", "t.csv", "-q"];
    assert_eq!(place.run(&words).0, Some(0));
    let hot = rows(&place.path("t-hot.csv"));
    let of = |app: &str| hot.iter().filter(|row| row["application"].ends_with(app)).count();
    assert!(of("/m") >= 2 && of("/s") >= 2, "{hot:?}");
    for row in &hot {
        let share: f64 = row["stalls"].parse().unwrap();
        assert!((0.0..=1.0).contains(&share) && row["pc"].starts_with("0x"), "{row:?}");
    }
    fs::remove_file(place.path("t-hot.csv")).unwrap();
    assert_eq!(place.run(&[&words[..5], &words[7..]].concat()).0, Some(0));
    assert!(!place.path("t-hot.csv").exists(), "without --hot");
}

#[test]
fn every_table_of_a_queue_comes_as_csv() {
    let place = Place::new();
    let queue = "group_size = 2\norder = ['m', 's', 'm', 's']\n[apps]\nm = 'm'\ns = 's'\n";
    fs::write(place.path("queue.toml"), queue).unwrap();
    let scheme = ["--scheme", "even-queue,ilp"];
    let words = ["analyze", "--queue", "queue.toml", "-m", "v100", "--csv", "q.csv"];
    let (code, said) = place.run(&[&words[..], &scheme].concat());
    assert_eq!(code, Some(0), "{said}");
    let table = |name: &str| rows(&place.path(&format!("q-{name}.csv")));
    assert_eq!(table("queues").len(), 2);
    let groups = table("groups");
    assert!(groups.iter().any(|row| row["scheme"] == "ilp" && row["group"] == "1"), "{groups:?}");
    assert_eq!(table("classes").len(), 2);
    let (classes, slowdowns) = (said.contains("Slow-down by classes"), table("slowdowns"));
    assert!(classes && slowdowns.iter().all(|row| row["slowdown"].parse::<f64>().is_ok()));
    assert!(table("patterns").iter().all(|row| row["scheme"] == "ilp"));
}

#[test]
fn a_device_gets_the_first_table_and_standard_output_nothing_else() {
    let place = Place::new();
    let analyze = ["analyze", "m", "-m", "v100", "-q", "--csv"];
    let out = |path: &str| place.run(&[&analyze[..], &[path]].concat());
    assert_eq!(out("/dev/stdout"), out("-"));
    assert!(out("-").1.starts_with("application,machine,cycles,"));
    assert_eq!(out("/dev/null").0, Some(0));
    assert!(!Path::new("/dev/null-kernels").exists());
}

#[test]
fn a_sweep_ends_with_the_means_of_its_schemes() {
    let place = Place::new();
    let plan = "machines = ['warped-slicer']\nschemes = ['left-over', 'even']\n\
                [mixes]\nlists = [['m', 's'], ['s', 'm']]\n";
    let plan = place.plan("plan", plan);
    let (code, said) = place.sweep(&plan, "out", &[]);
    assert_eq!(code, Some(0), "{said}");
    let cells = rows(&place.path("out/cells.csv"));
    let own = cells.iter().filter(|cell| cell["scheme"] == "even");
    let stp: Vec<f64> = own.map(|cell| cell["stp"].parse().unwrap()).collect();
    let mean = format!("{:.3}", (stp[0] + stp[1]) / 2.0);
    let line = |text: &str| text.lines().find(|line| line.starts_with("  even ")).map(String::from);
    let line_of_sweep = line(&said).unwrap();
    assert!(line_of_sweep.contains(&format!(" 2     {mean} ")), "{said}: {mean}");
    let (code, said) = place.run(&["merge", "out", "--out", "all", "--csv", "means.csv"]);
    let means = self::rows(&place.path("means.csv"));
    let even = means.iter().find(|row| row["scheme"] == "even").unwrap();
    assert!((even["stp_mean"].parse::<f64>().unwrap() - (stp[0] + stp[1]) / 2.0).abs() < 1e-9);
    let (_, csv) = place.sweep(&plan, "none", &["--dry-run", "--csv", "-", "-q"]);
    assert!(csv.starts_with("cell,machine,mix,scheme,") && csv.lines().count() == 5, "{csv}");
    assert_eq!((code, line(&said)), (Some(0), Some(line_of_sweep)), "{said}");
}
