//! Does a sweep lose no data and leave no files when it is killed, interrupted, shared
//! between processes or stopped by a full disk? Does a kill of `convert` anywhere lose no data
//! and damage no store?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpumodel::report::results::SweepFiles;

use crate::sweep_place::Place;

const PLAN: &str = r#"
machines = ["warped-slicer"]
schemes = ["left-over", "even", "warped-slicer:window=300:warmup=300", "oracle:most=3"]
seeds = [1, 2]
[mixes]
lists = [['m', 's'], ['m', 'g'], ['s', 'g']]
"#;

/// Small cells that are killed often: of schemes that ask for nothing, for a profile, and
/// for answers that cells share.
const KILLED: &str = r#"
machines = ["warped-slicer"]
schemes = ["left-over", "warped-slicer:window=300:warmup=300", "oracle:most=3"]
[mixes]
lists = [['m', 's'], ['s', 'm']]
"#;

/// Cells that are refused at once: the machine has no channels to give.
const REFUSED: &str = r#"
machines = ["warped-slicer"]
schemes = ["bp"]
seeds = [SEEDS]
[mixes]
lists = [['m', 's']]
"#;

/// How often a sweep is killed; `GPUMODEL_KILLS` for more.
fn kills() -> u32 {
    std::env::var("GPUMODEL_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(50)
}

/// How often a conversion is killed.
const CONVERSIONS: u32 = 50;

/// Kills in one folder, at most, before the sweep is let come to its end.
const IN_A_ROW: u32 = 5;

/// A sweep in a separate process.
fn begin(place: &Place, plan: &str, out: &str, options: &[&str]) -> Child {
    let mut command = place.command(&["sweep", plan, "--out", out]);
    command.args(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Its exit code and what it said; it must end in time.
fn end(mut child: Child) -> (Option<i32>, String) {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(240) {
            child.kill().unwrap();
            panic!("no end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// Whether a file has the name of an unfinished one.
fn hidden(path: &Path) -> bool {
    path.file_name().unwrap().to_string_lossy().starts_with('.')
}

/// Files below `folder` that are not finished.
fn left(place: &Place, folder: &str) -> Vec<PathBuf> {
    place.content(folder).into_keys().filter(|path| hidden(path)).collect()
}

/// Waits until `done` says so; false: the process has ended before.
fn wait(child: &mut Child, done: impl Fn() -> bool) -> bool {
    while !done() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

/// Numbers from 0 on, below `bound`, without a pattern.
fn draw(seed: u32, bound: u64) -> u64 {
    let mixed = u64::from(seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) % bound
}

/// Moments spread evenly over `whole`, however many there are: parts of the golden ratio.
fn moment(number: u32, whole: Duration) -> Duration {
    whole.mul_f64((f64::from(number) * 0.618_033_988_749_895).fract())
}

#[test]
fn a_killed_sweep_resumes_to_the_same_bytes() {
    let place = Place::new();
    let plan = place.plan("plan", KILLED);
    let start = Instant::now();
    let (code, said) = end(begin(&place, &plan, "whole", &[]));
    assert_eq!(code, Some(0), "{said}");
    let whole = start.elapsed();
    let expected = place.content("whole");
    let (mut killed, mut begun, mut halves) = (0, 0, 0);
    while killed < kills() {
        assert!(begun < 20 * kills(), "{killed} of {begun} were killed");
        // Every second series starts without the cache of earlier ones.
        if begun % 2 == 0 {
            let _ = fs::remove_dir_all(place.path("cache"));
        }
        for _ in 0..IN_A_ROW {
            begun += 1;
            let mut child = begin(&place, &plan, "out", &[]);
            std::thread::sleep(moment(begun, whole));
            let alive = child.try_wait().unwrap().is_none();
            child.kill().unwrap();
            child.wait().unwrap();
            killed += u32::from(alive);
            if !alive || killed >= kills() {
                break;
            }
        }
        halves += u32::from(!place.path("out/cells.csv").exists());
        let (code, said) = end(begin(&place, &plan, "out", &[]));
        assert_eq!(code, Some(0), "{said}");
        // A process that is killed leaves what it was writing under a hidden name.
        let mut found = place.content("out");
        found.retain(|path, _| !hidden(path));
        assert!(found == expected, "after {killed} kills");
        fs::remove_dir_all(place.path("out")).unwrap();
    }
    assert!(halves > 0, "no sweep was killed before its end");
}

#[test]
fn two_processes_in_one_folder_give_the_same_bytes() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    assert_eq!(end(begin(&place, &plan, "whole", &["--threads", "1"])).0, Some(0));
    let _ = fs::remove_dir_all(place.path("cache"));
    let options = ["--resume", "--threads", "1"];
    let mut killed = begin(&place, &plan, "out", &options);
    let files = SweepFiles::new(&place.path("out"));
    assert!(wait(&mut killed, || files.ended() > 0), "the first cell");
    let others = [begin(&place, &plan, "out", &options), begin(&place, &plan, "out", &options)];
    killed.kill().unwrap();
    killed.wait().unwrap();
    for other in others {
        let (code, said) = end(other);
        assert!(code == Some(0) && said.contains("24 cells done, 0 failed, 0 left"), "{said}");
        assert!(!said.contains("damaged"), "{said}");
    }
    let mut found = place.content("out");
    found.retain(|path, _| !hidden(path));
    assert!(found == place.content("whole"));
}

#[test]
fn processes_with_a_part_each_give_the_same_bytes() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    assert_eq!(end(begin(&place, &plan, "whole", &[])).0, Some(0));
    let part = |cells| begin(&place, &plan, "out", &["--resume", "--cells", cells]);
    for child in ["1-8", "9-20,24", "21-23"].map(part) {
        let (code, said) = end(child);
        assert!(code == Some(0) && said.contains("0 failed, 0 left of cells"), "{said}");
    }
    assert!(place.content("out") == place.content("whole"), "the tables have all rows, too");
}

#[test]
fn two_processes_run_the_same_failed_cells_again() {
    let place = Place::new();
    let seeds: Vec<String> = (0..40).map(|seed| seed.to_string()).collect();
    let plan = place.plan("plan", &REFUSED.replace("SEEDS", &seeds.join(", ")));
    let (code, said) = end(begin(&place, &plan, "out", &[]));
    assert!(code == Some(1) && said.contains("0 cells done, 40 failed, 0 left"), "{said}");
    let failed = place.content("out");
    for _ in 0..6 {
        let both = [0; 2].map(|_| begin(&place, &plan, "out", &["--retry-failed"]));
        for one in both {
            let (code, said) = end(one);
            assert!(code == Some(1) && said.contains("0 cells done, 40 failed, 0 left"), "{said}");
            assert!(!said.contains("damaged"), "{said}");
        }
        assert!(place.content("out") == failed);
        assert_eq!(left(&place, "out"), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_first_interrupt_finishes_running_cells_and_a_second_aborts_them() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    for (out, twice) in [("once", false), ("twice", true)] {
        let files = SweepFiles::new(&place.path(out));
        let mut child = begin(&place, &plan, out, &["--threads", "1"]);
        assert!(wait(&mut child, || files.ended() > 0), "the first cell");
        signal(&child, "-INT");
        if twice {
            std::thread::sleep(Duration::from_millis(20));
            let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        }
        let (code, said) = end(child);
        assert_eq!(code, Some(130), "{said}");
        assert_eq!(left(&place, out), Vec::<PathBuf>::new(), "{out}");
        if !twice {
            let how = format!("the same command continues: gpumodel sweep {plan} --out once");
            let how = how + " --threads 1";
            // In advance, and at the end.
            assert!(said.contains("phase 2 of 3: cells"), "{said}");
            assert!(said.contains(&format!("after an interrupt, {how}\n")), "{said}");
            assert!(said.contains(&format!("\n{how}\n")), "{said}");
            assert!(place.path("once/cells.csv").is_file());
        }
        let (code, said) = end(begin(&place, &plan, out, &[]));
        assert!(code == Some(0) && said.contains("24 cells done"), "{said}");
    }
    assert!(place.content("once") == place.content("twice"));
}

#[test]
fn a_full_disk_stops_the_sweep_and_leaves_only_whole_records() {
    let place = Place::new();
    // A workload model is a large trace for a while.
    let plan = place.plan("plan", &PLAN.replace(", ['m', 'g'], ['s', 'g']", ""));
    // In blocks of 512 bytes: the list of cells fits, a record does not.
    let line = "trap '' XFSZ; ulimit -f 120; exec \"$0\" \"$@\"";
    let program = place.command(&[]).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).arg(program).args(["sweep", &plan, "--out", "out"]);
    shell.current_dir(place.path("")).env("GPUMODEL_CACHE", place.path("cache"));
    let output = shell.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("error: cannot write into") && said.contains("because: "), "{said}");
    assert_eq!(left(&place, "out"), Vec::<PathBuf>::new());
    let (code, said) = end(begin(&place, &plan, "out", &["--resume"]));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(end(begin(&place, &plan, "whole", &[])).0, Some(0));
    assert!(place.content("out") == place.content("whole"));
}

#[test]
fn an_unwritable_target_is_refused_before_the_run() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    fs::write(place.path("file"), "mine").unwrap();
    for out in ["file", "file/below", "/proc/nowhere"] {
        let (code, said) = place.sweep(&plan, out, &[]);
        assert!(code == Some(2) && said.contains("cannot write into"), "{out}: {said}");
    }
    assert_eq!(fs::read_to_string(place.path("file")).unwrap(), "mine");
}

#[test]
fn a_damaged_record_is_made_again_and_a_damaged_list_is_reported() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    assert_eq!(end(begin(&place, &plan, "out", &["--cells", "1-3"])).0, Some(0));
    let files = SweepFiles::new(&place.path("out"));
    let record = files.record(&files.cells().unwrap()[1].key);
    let whole = fs::read(&record).unwrap();
    fs::write(&record, &whole[..whole.len() / 2]).unwrap();
    let (code, said) = place.sweep(&plan, "out", &["--resume", "--cells", "1-3"]);
    assert!(code == Some(0) && said.contains("3 cells done"), "{said}");
    assert!(said.contains("damaged, the cell runs again: out/cells/"), "{said}");
    assert!(fs::read(&record).unwrap() == whole);
    // Files of unknown cells stay, and the rest continues.
    for junk in [files.record("0bad"), files.failure("1bad")] {
        fs::write(junk, &whole[..whole.len() / 2]).unwrap();
    }
    fs::write(files.record("2bad"), &whole).unwrap();
    let before = files.cells().unwrap().len();
    let (code, said) = place.sweep(&plan, "out", &["--resume"]);
    assert!(code == Some(0) && said.contains(&format!("{before} cells done")), "{said}");
    assert!(said.contains("damaged, left out of the tables: out/cells/0bad.json"), "{said}");
    assert!(said.contains("damaged, left out of the tables: out/failed/1bad.json"), "{said}");
    assert!(said.contains("expected the cell 2bad, found another"), "{said}");
    let rows = fs::read_to_string(place.path("out/cells.csv")).unwrap();
    assert_eq!(rows.lines().count(), before + 1);
    let plot = ["plot", "out", "--figure", "normalized", "--metric", "stp", "-o", "x.svg"];
    let (code, said) = place.run(&plot);
    assert!(code == Some(0) && said.contains("warning: left out: out/cells/0bad.json"), "{said}");
    let list = fs::read(files.list()).unwrap();
    for damaged in ["{\"schema\": \"other\", \"cells\": []}", "{\"schema\": ", ""] {
        fs::write(files.list(), damaged).unwrap();
        let (code, said) = place.sweep(&plan, "out", &["--resume"]);
        assert!(code == Some(2) && said.contains("sweep.json: not a file of"), "{said}");
        assert!(said.contains("; delete it, and what wrote the folder makes it again"), "{said}");
    }
    fs::remove_file(files.list()).unwrap();
    let (code, said) = place.sweep(&plan, "out", &["--resume"]);
    assert!(code == Some(0) && said.contains(&format!("{before} cells done")), "{said}");
    assert!(fs::read(files.list()).unwrap() == list, "as it was");
}

#[test]
fn a_killed_conversion_gives_the_same_bytes_the_next_time() {
    let place = Place::new();
    place.trace("t", "saxpy", 1.0);
    fs::create_dir(place.path("out")).unwrap();
    let convert = |output: &str| {
        let mut command = place.command(&["convert", "t", "-o", output]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let start = Instant::now();
    assert!(convert("whole.gpt").status().unwrap().success());
    let whole = u64::try_from(start.elapsed().as_millis()).unwrap().max(1);
    let expected = fs::read(place.path("whole.gpt")).unwrap();
    let names = || {
        let entries = fs::read_dir(place.path("out")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let (mut killed, mut half, mut seed) = (0, 0, 0);
    while killed < CONVERSIONS {
        seed += 1;
        assert!(seed < 10 * CONVERSIONS, "{killed} of {seed} were killed");
        let mut child = convert("out/t.gpt").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(draw(seed, whole)));
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        // A store under its name is whole; a partial one has another name.
        if let Ok(store) = fs::read(place.path("out/t.gpt")) {
            assert!(store == expected, "seed {seed}");
        }
        half += u32::from(names().iter().any(|name| name != "t.gpt"));
        // The next run may be killed as well.
        if seed % 3 == 0 {
            assert!(convert("out/t.gpt").status().unwrap().success());
            assert!(fs::read(place.path("out/t.gpt")).unwrap() == expected, "seed {seed}");
            fs::remove_dir_all(place.path("out")).unwrap();
            fs::create_dir(place.path("out")).unwrap();
        }
    }
    assert!(half > CONVERSIONS / 10, "{half} of {CONVERSIONS} were killed while they wrote");
}
