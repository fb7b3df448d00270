//! Does `gpumodel dram` behave as its command line promises?

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn verb(folder: &Path, requests: &str, words: &[&str]) -> Command {
    fs::write(folder.join("requests.txt"), requests).unwrap();
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.current_dir(folder).args(["dram", "--requests", "requests.txt"]).args(words);
    command
}

fn json(folder: &Path, requests: &str, words: &[&str]) -> Value {
    let output = verb(folder, requests, words).args(["--json", "-"]).assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

fn refused(requests: &str, words: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let words = [words, &["--commands", "commands.csv", "--json", "out.json"]].concat();
    let output = verb(folder.path(), requests, &words).assert().code(2);
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["requests.txt"], "no partial output");
    String::from_utf8(output.get_output().stderr.clone()).unwrap()
}

const SPEC: [&str; 2] = ["--spec", "ugpu-hbm"];

#[test]
fn addresses_and_coordinates_name_the_same_accesses() {
    let folder = tempfile::tempdir().unwrap();
    let by_address = json(folder.path(), "# two accesses\n0 0x40 R 64\n0 4096 W\n", &SPEC);
    let words = [&SPEC[..], &["--format", "coordinates"]].concat();
    let lines = "0 0 R 0 0 0 0 2\n0 0 R 0 0 0 0 3\n1 0 W 0 2 0 0 0\n";
    assert_eq!(by_address, json(folder.path(), lines, &words));
    assert_eq!((&by_address["requests"], &by_address["accesses"]), (&2.into(), &3.into()));
    assert_eq!(by_address["schema"], "gpumodel.dram/1");
    // ACT 1, RD 15 and 17, data 15 clocks later.
    assert_eq!(by_address["last_read_done_cycle"], 32);
}

#[test]
fn commands_are_listed_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let words = [&SPEC[..], &["--set", "act_clocks=2", "--commands", "commands.csv"]].concat();
    verb(folder.path(), "0 0x40 R\n", &words).assert().success();
    let text = fs::read_to_string(folder.path().join("commands.csv")).unwrap();
    let expected =
        "cycle,channel,pc,bg,bank,cmd,row,column\n1,0,0,0,0,ACT,0,0\n16,0,0,0,0,RD,0,2\n";
    assert_eq!(text, expected);
}

#[test]
fn commands_go_to_standard_output_and_to_devices() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        |path: &str| verb(folder.path(), "0 0x40 R\n", &SPEC).args(["--commands", path]).assert();
    for path in ["-", "/dev/stdout"] {
        let output = run(path).success();
        let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let header = "cycle,channel,pc,bg,bank,cmd,row,column";
        assert!(lines[0] == header && lines.len() == 3, "nothing else: {text}");
    }
    let output = run("/dev/null").success();
    assert!(String::from_utf8_lossy(&output.get_output().stdout).contains("activates"));
    if Path::new("/dev/full").exists() {
        let said = String::from_utf8(run("/dev/full").code(2).get_output().stderr.clone()).unwrap();
        assert!(said.contains("cannot write /dev/full: "), "{said}");
    }
    let words = [&SPEC[..], &["--commands", "-", "--json", "/dev/stdout"]].concat();
    let both = verb(folder.path(), "0 0x40 R\n", &words).assert().code(2);
    let said = String::from_utf8_lossy(&both.get_output().stderr).into_owned();
    assert!(said.contains("standard output takes one of them"), "{said}");
}

#[test]
fn every_promised_key_can_be_set() {
    let folder = tempfile::tempdir().unwrap();
    for word in [
        "act_clocks=2",
        "row_hit_first=0",
        "hit_cap=4",
        "read_queue=8",
        "write_queue=8",
        "unified_queue=1",
        "write_high=0.5",
        "write_low=0.1",
        "write_idle=500",
        "posted_writes=1",
        "forward=0",
        "merge=1",
        "refresh=all-bank",
        "page_policy=closed",
        "tRCDRD=20",
        "clock_mhz=500",
    ] {
        let words = [&SPEC[..], &["--set", word]].concat();
        let record = json(folder.path(), "0 0 R\n0 0 W\n5 0 W\n", &words);
        let key = word.split('=').next().unwrap();
        assert!(record["overrides"][key].is_string(), "{word} is recorded");
    }
}

#[test]
fn watermarks_of_zero_starve_no_request() {
    let folder = tempfile::tempdir().unwrap();
    for spec in ["ugpu-hbm", "hbm2", "warped-slicer-gddr5"] {
        let words = ["--spec", spec, "--set", "write_high=0", "--set", "write_low=0"];
        let record = json(folder.path(), "0 0 R\n0 0x1000 W\n9 0x2000 R\n9 0x3000 W\n", &words);
        assert_eq!(record["requests"], 4, "{spec}");
        assert!(record["last_read_done_cycle"].as_u64().unwrap() > 9, "{spec}");
    }
}

#[test]
fn a_few_writes_wait_until_reads_have_been_absent_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let written_at = |idle: &str| {
        let words = [&SPEC[..], &["--set", idle, "--commands", "commands.csv"]].concat();
        json(folder.path(), "0 0x40 W\n300 0x4000 R\n", &words);
        let text = fs::read_to_string(folder.path().join("commands.csv")).unwrap();
        let line = text.lines().find(|line| line.contains(",WR,")).unwrap();
        line.split(',').next().unwrap().parse::<u64>().unwrap()
    };
    assert!(written_at("write_idle=0") < 100);
    assert!((200..300).contains(&written_at("write_idle=200")), "before the read");
    let late = written_at("write_idle=500");
    assert!((800..1000).contains(&late), "500 clocks after the read: {late}");
}

#[test]
fn a_year_of_silence_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let words = [&SPEC[..], &["--set", "refresh=all-bank"]].concat();
    let record = json(folder.path(), "0 0 R\n1000000000000000 0 R\n", &words);
    assert_eq!(record["refreshes"].as_u64().unwrap(), 1_000_000_000_000_000 / 1716);
}

#[test]
fn a_year_of_silence_does_not_fill_the_list() {
    let words = [&SPEC[..], &["--set", "refresh=all-bank"]].concat();
    let error = refused("0 0 R\n# late\n1000000000000000 0 R\n", &words);
    assert!(error.contains("requests.txt:3: expected a CYCLE within 4294967296 clocks"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let listed = [&words[..], &["--commands", "commands.csv"]].concat();
    let requests = "0 0 R\n400000000 0 R\n";
    let record = json(folder.path(), requests, &listed);
    assert_eq!(record["refreshes"].as_u64().unwrap(), 400_000_000 / 1716);
    let text = fs::read_to_string(folder.path().join("commands.csv")).unwrap();
    let refreshes = text.lines().filter(|line| line.contains("REFab")).count();
    assert_eq!(refreshes, 400_000_000 / 1716, "written in strides, each once");
    assert_eq!(record, json(folder.path(), requests, &words), "a list changes nothing");
    // Without refreshes nothing is sent meanwhile, and no stride of it is looked at.
    let never = [&SPEC[..], &["--set", "refresh=none", "--commands", "commands.csv"]].concat();
    let record = json(folder.path(), "0 0 R\n1125899906842000 0 R\n", &never);
    assert_eq!((&record["refreshes"], &record["requests"]), (&0.into(), &2.into()));
}

#[test]
fn posted_writes_take_no_more_than_the_whole_bus() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--spec", "gddr5", "--set", "posted_writes=true"];
    let record = json(folder.path(), "0 64 W\n", &words);
    assert_eq!((&record["cycles"], &record["writes"]), (&1.into(), &1.into()));
    let used = record["bandwidth_utilization"].as_f64().unwrap();
    assert!(used > 0.0 && used < 0.5, "one write behind an ACT: {used}");
}

#[test]
fn an_empty_file_is_no_work() {
    let folder = tempfile::tempdir().unwrap();
    let record = json(folder.path(), "# nothing\n\n", &SPEC);
    assert_eq!((&record["requests"], &record["cycles"]), (&0.into(), &0.into()));
}

#[test]
fn wrong_lines_are_named() {
    for (requests, words) in [
        ("0 0 R\n1 x R\n", ["requests.txt:2", "ADDRESS", "`x`"]),
        ("0 0 Q\n", ["requests.txt:1", "R or W", "`Q`"]),
        ("0 0\n", ["requests.txt:1", "R or W", "end of the line"]),
        ("0 0 R 64 7\n", ["requests.txt:1", "end of the line", "`7`"]),
        ("0 0 R 1\n0 0 R 0\n", ["requests.txt:2", "BYTES (a number from 1 to 1048576)", "`0`"]),
        ("0 0 R 1048577\n", ["requests.txt:1", "BYTES", "`1048577`"]),
        ("99999999999999999999 0 R\n", ["requests.txt:1", "CYCLE", "99999999999999999999"]),
    ] {
        let error = refused(requests, &SPEC);
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    let words = [&SPEC[..], &["--format", "coordinates"]].concat();
    let error = refused("0 0 R 0 4 0 0 0\n", &words);
    assert!(error.contains("BG (a number below 4)"), "{error}");
    let error = refused("0 0 R\n", &["--spec", "ugpu-hbm", "--set", "tRCDRX=1"]);
    assert!(error.contains("did you mean `tRCDRD`"), "{error}");
    let error = refused(&"9".repeat(10_000), &SPEC);
    assert!(error.contains("more than 4096 bytes"), "{error}");
}
