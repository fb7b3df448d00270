//! Does a sweep under a real Slurm come to what it comes to here, whatever happens to its
//! jobs, its watch and its plan?
//!
//! `.ci/slurm start` starts a Slurm of this machine alone; `GPUMODEL_TEST_SLURM` names its
//! configuration. Without it these tests are skipped: a cluster that is there by chance is
//! left alone.

mod losses;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpumodel::report::results::SweepFiles;

use crate::sweep_place::Place;

const PLAN: &str = r#"
machines = ["warped-slicer"]
schemes = ["left-over", "even", "spatial"]
seeds = [1, 2]
[mixes]
lists = [["m", "s"], ["s", "m"]]
"#;

/// One test at a time: the machine is small, and so is the cluster.
static ALONE: Mutex<()> = Mutex::new(());

/// Nothing here takes so long, on any machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A process of another machine, in the words of claims.
const FAR: &str = "far~b~1~7~1";

/// A folder and a cluster, and what the sweep comes to without it.
struct Scene {
    place: Place,
    plan: String,
    conf: OsString,
    _alone: MutexGuard<'static, ()>,
}

/// `None`: there is no Slurm for tests.
fn scene(plan: &str) -> Option<Scene> {
    let Some(conf) = std::env::var_os("GPUMODEL_TEST_SLURM") else {
        crate::skip::skipped("no Slurm (.ci/slurm starts one)");
        return None;
    };
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let plan = place.plan("plan", plan);
    let (code, said) = place.sweep(&plan, "whole", &[]);
    assert!(code == Some(0) || code == Some(1), "{said}");
    Some(Scene { place, plan, conf, _alone: alone })
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.release();
        let _ = self.slurm("scancel", &["--me"]);
        let start = Instant::now();
        while !self.slurm("squeue", &["--noheader"]).trim().is_empty() && start.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Scene {
    /// What a command of Slurm says.
    fn slurm(&self, program: &str, words: &[&str]) -> String {
        let output = Command::new(program).args(words).env("SLURM_CONF", &self.conf).output();
        let output = output.unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    fn command(&self, options: &[&str]) -> Command {
        let words = ["sweep", &self.plan, "--out", "out", "--engine", "slurm", "--poll", "1"];
        let mut command = self.place.command(&[&words[..], options].concat());
        command.env("SLURM_CONF", &self.conf);
        command
    }

    fn begin(&self, options: &[&str]) -> Child {
        let mut command = self.command(options);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A whole watch: its exit code and what was said.
    fn sweep(&self, options: &[&str]) -> (Option<i32>, String) {
        end(self.begin(options))
    }

    /// Keeps a cell of the plan from being run by anybody, as if another machine did.
    fn hold(&self, number: usize) {
        let files = SweepFiles::new(&self.place.path("whole"));
        let key = files.cells().unwrap()[number - 1].key.clone();
        let claims = self.place.path("out/claims");
        fs::create_dir_all(&claims).unwrap();
        fs::write(claims.join(format!("{FAR}.owner")), "0 0").unwrap();
        fs::write(claims.join(format!("{key}.claim")), format!("{FAR}\n")).unwrap();
    }

    /// Lets everybody have what was held.
    fn release(&self) {
        let Ok(entries) = fs::read_dir(self.place.path("out/claims")) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if fs::read_to_string(&path).is_ok_and(|text| text == format!("{FAR}\n")) {
                fs::remove_file(&path).unwrap();
            }
        }
        let _ = fs::remove_file(self.place.path(&format!("out/claims/{FAR}.owner")));
    }

    /// Scripts that are written down as submitted, with the numbers of their jobs.
    fn jobs(&self) -> BTreeMap<String, u64> {
        let text = fs::read(self.place.path("out/slurm/jobs.json")).unwrap_or_default();
        let Ok(jobs) = serde_json::from_slice::<serde_json::Value>(&text) else {
            return BTreeMap::new();
        };
        let one = |one: &serde_json::Value| {
            Some((one["label"].as_str().unwrap().to_owned(), one["job"].as_u64()?))
        };
        jobs["submissions"].as_array().unwrap().iter().filter_map(one).collect()
    }

    /// The number of a job, once it is written down.
    fn job(&self, label: &str) -> u64 {
        until(|| self.jobs().contains_key(label));
        self.jobs()[label]
    }

    /// Waits until a task says that it waits for a cell that is held.
    fn waits(&self, log: &str) {
        let path = self.place.path("out/slurm").join(log);
        until(|| fs::read_to_string(&path).is_ok_and(|text| text.contains("waiting for cells")));
    }

    /// The state of a job or task, as `12_3`.
    fn state(&self, job: &str) -> String {
        let words = ["--noheader", "--states=all", "--format=%T", &format!("--jobs={job}")];
        self.slurm("squeue", &words).trim().to_owned()
    }

    /// By array or job and place: when it began and when it ended.
    fn times(&self) -> BTreeMap<(u64, String), (String, String)> {
        let words = ["--noheader", "--array", "--states=all", "--format=%F|%K|%S|%e"];
        let text = self.slurm("squeue", &words);
        let line = |line: &str| {
            let words: Vec<String> = line.split('|').map(str::to_owned).collect();
            ((words[0].parse().unwrap(), words[1].clone()), (words[2].clone(), words[3].clone()))
        };
        let mine: BTreeSet<u64> = self.jobs().into_values().collect();
        text.lines().map(line).filter(|(of, _)| mine.contains(&of.0)).collect()
    }

    /// Asserts that the folder is that of a sweep without Slurm.
    fn same(&self) {
        let content = |folder: &str| {
            let mut content = self.place.content(folder);
            content.retain(|path, _| !path.starts_with("slurm"));
            content
        };
        let (out, whole) = (content("out"), content("whole"));
        let names = |of: &BTreeMap<PathBuf, Vec<u8>>| of.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&out), names(&whole));
        assert!(out == whole, "other bytes");
    }
}

/// Waits for something that must come.
fn until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "nothing happens");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The exit code of a process and what it said; it must end.
fn end(mut child: Child) -> (Option<i32>, String) {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("no end: {}", said(child).1);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    said(child)
}

fn said(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_sweep_under_slurm_comes_to_the_same_bytes() {
    let Some(scene) = scene(PLAN) else { return };
    let (code, said) = scene.sweep(&["--chunk", "5"]);
    assert!(code == Some(0) && said.contains("out: 12 cells done, 0 failed, 0 left"), "{said}");
    assert!(!said.contains("lost"), "{said}");
    scene.same();
    let jobs = scene.jobs();
    assert_eq!(jobs.keys().collect::<Vec<_>>(), ["cells-1", "tables-1"]);
    let (code, said) = scene.sweep(&[]);
    assert!(
        code == Some(2) && said.contains("12 cells of an earlier sweep: add --resume"),
        "{said}"
    );
    let (code, said) = scene.sweep(&["--resume"]);
    assert!(code == Some(0) && said.contains("12 cells done"), "{said}");
    assert_eq!(scene.jobs(), jobs, "there was nothing left to submit");
    scene.same();
}

#[test]
fn chunks_arrays_and_tasks_at_once_are_as_asked() {
    let Some(scene) = scene(PLAN) else { return };
    let options = ["--chunk", "2", "--array-limit", "2", "--at-once", "1"];
    let (code, said) = scene.sweep(&options);
    assert_eq!(code, Some(0), "{said}");
    scene.same();
    let jobs = scene.jobs();
    let labels: Vec<&String> = jobs.keys().collect();
    assert_eq!(labels, ["cells-1", "cells-2", "cells-3", "tables-1"]);
    let times = scene.times();
    let time = |label: &str, place: &str| times[&(jobs[label], place.to_owned())].clone();
    for array in ["cells-1", "cells-2", "cells-3"] {
        let of = times.keys().filter(|(job, _)| *job == jobs[array]).count();
        let (one, other) = (time(array, "0"), time(array, "1"));
        assert_eq!(of, 2, "{times:?}");
        assert!(one.1 <= other.0 || other.1 <= one.0, "one at a time: {one:?} {other:?}");
        assert!(time("tables-1", "N/A").0 >= one.1.max(other.1), "the tables come last");
    }
}

#[test]
fn a_watch_that_is_killed_is_taken_up_without_submitting_twice() {
    let Some(scene) = scene(PLAN) else { return };
    scene.hold(1);
    let mut killed = scene.begin(&["--chunk", "4"]);
    scene.job("tables-1");
    scene.waits("cells-1_0.log");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let jobs = scene.jobs();
    let mut child = scene.begin(&["--chunk", "4", "--resume"]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let taken = lines.find(|line| line.as_ref().unwrap().contains("the watch is taken up"));
    assert!(taken.is_some());
    scene.release();
    let (code, said) = end(child);
    assert!(code == Some(0) && said.contains("12 cells done"), "{said}");
    assert_eq!(scene.jobs(), jobs);
    scene.same();
}

#[test]
fn tables_whose_job_is_lost_are_written_by_the_watch() {
    let Some(scene) = scene(PLAN) else { return };
    scene.hold(1);
    let child = scene.begin(&[]);
    let job = scene.job("tables-1");
    scene.slurm("scancel", &[&job.to_string()]);
    scene.release();
    let (code, said) = end(child);
    assert!(code == Some(0) && said.contains("the job of the tables was lost"), "{said}");
    scene.same();
}

#[test]
fn an_interrupt_leaves_the_jobs_and_says_how_to_go_on_and_how_to_cancel() {
    let Some(scene) = scene(PLAN) else { return };
    scene.hold(1);
    let child = scene.begin(&["--chunk", "6"]);
    scene.job("tables-1");
    scene.waits("cells-1_0.log");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let (code, said) = end(child);
    assert!(code == Some(130) && said.contains("not watched any more: 2 jobs"), "{said}");
    let watch = format!("watch: gpumodel sweep {} --out out --engine slurm --resume", scene.plan);
    assert!(said.contains(&watch), "{said}");
    let job = scene.job("cells-1");
    assert_eq!(scene.state(&format!("{job}_0")), "RUNNING");
    let cancel = said.lines().find_map(|line| line.strip_prefix("cancel: scancel ")).unwrap();
    scene.slurm("scancel", &[cancel]);
    let name = cancel.to_owned();
    until(|| scene.slurm("squeue", &["--noheader", &name]).trim().is_empty());
    scene.release();
    let (code, said) = scene.sweep(&["--chunk", "6", "--resume"]);
    assert!(code == Some(0) && said.contains("12 cells done"), "{said}");
    assert!(scene.jobs().contains_key("cells-2"), "what was cancelled is submitted anew");
    scene.same();
}

#[test]
fn a_cell_that_fails_is_told_as_without_slurm() {
    let plan = "machines = ['warped-slicer']\nschemes = ['bp', 'even']\n\
                [mixes]\nlists = [['m', 's']]\n";
    let Some(scene) = scene(plan) else { return };
    let (code, said) = scene.sweep(&[]);
    assert!(code == Some(1) && said.contains("1 cells done, 1 failed, 0 left"), "{said}");
    assert!(said.contains("1 refused: ") && !said.contains("--retry-failed"), "{said}");
    scene.same();
    let (code, said) = scene.sweep(&["--retry-failed"]);
    assert!(code == Some(1) && said.contains("1 cells done, 1 failed, 0 left"), "{said}");
    let script = fs::read_to_string(scene.place.path("out/slurm/cells-2.sh")).unwrap();
    assert!(script.contains("0) cells=1-1 ;;"), "only what had failed: {script}");
    scene.same();
}

#[test]
fn jobs_refuse_a_plan_that_has_other_cells_by_now() {
    let Some(scene) = scene(PLAN) else { return };
    scene.hold(1);
    let child = scene.begin(&["--chunk", "4", "--at-once", "1"]);
    scene.job("tables-1");
    scene.waits("cells-1_0.log");
    let path = scene.place.path(&scene.plan);
    let text = fs::read_to_string(&path).unwrap().replace("[1, 2]", "[3, 1, 2]");
    fs::write(&path, text).unwrap();
    scene.release();
    let (code, said) = end(child);
    assert!(code == Some(2) && said.contains("plan.toml: has other cells than"), "{said}");
    let log = scene.place.path("out/slurm/cells-1_1.log");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("other cells than when the script of this job was written"), "{log}");
    let (out, whole) = (scene.place.path("out"), scene.place.path("whole"));
    let whole = SweepFiles::new(&whole).done();
    let done = SweepFiles::new(&out).done();
    assert!(done.len() == 4 && done.iter().all(|key| whole.contains(key)), "{done:?}");
}

#[test]
fn what_sbatch_refuses_is_shown_and_leaves_the_folder_free() {
    let Some(scene) = scene(PLAN) else { return };
    for (name, value, words) in [
        ("SBATCH_PARTITION", "nowhere", "Invalid partition name specified"),
        ("SBATCH_MEM_PER_NODE", "90000G", "Memory specification can not be satisfied"),
    ] {
        // The second one is not told to --resume.
        let output = scene.command(&[]).env(name, value).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains("error: sbatch: "), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(scene.jobs().len(), 0);
    }
}

#[test]
fn a_machine_without_slurm_is_told_so_before_anything_is_begun() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let mut command = place.command(&["sweep", &plan, "--out", "out", "--engine", "slurm"]);
    let output = command.env("PATH", place.path("")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("sbatch cannot be run"), "{said}");
    assert!(said.contains("--print writes the scripts alone") && !place.path("out").exists());
}
