//! Does a sweep under a real Slurm give the same results as here, and does `--resume` submit
//! the missing cells?
//!
//! `.ci/slurm start` starts a Slurm of only this machine; `GPUMODEL_TEST_SLURM` names its
//! configuration. Without it these tests are skipped, so that they never use another
//! cluster.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpumodel::report::results::{FailedCell, SweepFiles};

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

/// A folder and a cluster, and what the sweep comes to without it.
struct Scene {
    place: Place,
    plan: String,
    conf: OsString,
    _alone: MutexGuard<'static, ()>,
}

/// `None`: no Slurm for tests exists.
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
        self.slurm("scontrol", &["update", "PartitionName=all", "State=UP"]);
        self.slurm("scancel", &["--me"]);
        self.wait();
    }
}

impl Scene {
    /// The output of a Slurm command.
    fn slurm(&self, program: &str, words: &[&str]) -> String {
        let output = Command::new(program).args(words).env("SLURM_CONF", &self.conf).output();
        let output = output.unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// Waits until no job is left.
    fn wait(&self) {
        let start = Instant::now();
        while !self.slurm("squeue", &["--noheader"]).trim().is_empty() {
            assert!(start.elapsed() < PATIENCE, "{}", self.slurm("squeue", &[]));
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn command(&self, options: &[&str]) -> Command {
        let words = ["sweep", &self.plan, "--out", "out", "--engine", "slurm"];
        let mut command = self.place.command(&[&words[..], options].concat());
        command.env("SLURM_CONF", &self.conf);
        command
    }

    /// Submits, and waits for the jobs: exit code and words of the submission.
    fn sweep(&self, options: &[&str]) -> (Option<i32>, String) {
        let output = self.command(options).output().unwrap();
        self.wait();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }

    /// Scripts that are written down as submitted, with the numbers of their jobs.
    fn jobs(&self) -> BTreeMap<String, u64> {
        let text = fs::read(self.place.path("out/slurm/jobs.json")).unwrap_or_default();
        let Ok(jobs) = serde_json::from_slice::<serde_json::Value>(&text) else {
            return BTreeMap::new();
        };
        let one = |one: &serde_json::Value| {
            (one["label"].as_str().unwrap().to_owned(), one["job"].as_u64().unwrap())
        };
        jobs["submissions"].as_array().unwrap().iter().map(one).collect()
    }

    fn script(&self, label: &str) -> String {
        let path = self.place.path("out/slurm").join(format!("{label}.sh"));
        fs::read_to_string(path).unwrap()
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

#[test]
fn a_sweep_under_slurm_gives_the_same_bytes() {
    let Some(scene) = scene(PLAN) else { return };
    let (code, said) = scene.sweep(&["--tasks", "3", "--at-once", "2"]);
    assert!(code == Some(0) && said.contains("submitted: 12 cells in 3 tasks"), "{said}");
    scene.same();
    let jobs = scene.jobs();
    assert_eq!(jobs.keys().collect::<Vec<_>>(), ["cells-1", "tables-2"]);
    for options in [&[][..], &["--resume"]] {
        let (code, said) = scene.sweep(options);
        assert!(code == Some(0) && said.contains("12 cells done, 0 failed, 0 left"), "{said}");
        assert_eq!(scene.jobs(), jobs, "there was nothing left to submit");
    }
    scene.same();
}

#[test]
fn missing_cells_are_reported_with_a_cause_and_submitted_again() {
    let Some(scene) = scene(PLAN) else { return };
    assert_eq!(scene.sweep(&[]).0, Some(0));
    let files = SweepFiles::new(&scene.place.path("out"));
    let cells = files.cells().unwrap();
    // One that failed, and one that ended without a word.
    let failed = FailedCell::new(cells[4].clone(), vec!["the disk is full".to_owned()]);
    fs::write(files.failure(&cells[4].key), failed.to_json()).unwrap();
    for at in [4, 8] {
        fs::remove_file(files.record(&cells[at].key)).unwrap();
    }
    let (code, said) = scene.sweep(&["--resume"]);
    assert!(code == Some(0) && said.contains("10 cells done, 1 failed, 1 left"), "{said}");
    assert!(said.contains("failed: ") && said.contains("the disk is full"), "{said}");
    assert!(said.contains("cells 9: no record and no cause: ended by the scheduler"), "{said}");
    assert!(said.contains("submitted: 2 cells in 1 tasks"), "{said}");
    assert!(scene.script("cells-3").contains("0) cells=5,9 ;;"), "{}", scene.script("cells-3"));
    scene.same();
}

#[test]
fn jobs_that_wait_are_left_to_run_and_cancelled_ones_go_again() {
    let Some(scene) = scene(PLAN) else { return };
    scene.slurm("scontrol", &["update", "PartitionName=all", "State=DOWN"]);
    let output = scene.command(&["--tasks", "2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let jobs = scene.jobs();
    let output = scene.command(&["--resume"]).output().unwrap();
    let refused = String::from_utf8(output.stderr).unwrap();
    let numbers = format!("out: jobs {}, {} queued", jobs["cells-1"], jobs["tables-2"]);
    assert!(output.status.code() == Some(2) && refused.contains(&numbers), "{refused}");
    assert_eq!(scene.jobs(), jobs);
    let cancel = said.lines().find_map(|line| line.strip_prefix("cancel: scancel ")).unwrap();
    scene.slurm("scancel", &[cancel]);
    scene.wait();
    scene.slurm("scontrol", &["update", "PartitionName=all", "State=UP"]);
    let (code, said) = scene.sweep(&["--tasks", "2", "--resume"]);
    assert_eq!(code, Some(0), "{said}");
    let why = format!("ended by the scheduler (task {}_0 CANCELLED)", jobs["cells-1"]);
    assert!(said.contains(&why) && said.contains("submitted: 12 cells in 2 tasks"), "{said}");
    scene.same();
}

#[test]
fn tasks_refuse_a_plan_whose_cells_have_changed() {
    let Some(scene) = scene(PLAN) else { return };
    scene.slurm("scontrol", &["update", "PartitionName=all", "State=DOWN"]);
    assert_eq!(scene.command(&[]).output().unwrap().status.code(), Some(0));
    let path = scene.place.path(&scene.plan);
    let text = fs::read_to_string(&path).unwrap().replace("[1, 2]", "[3, 1, 2]");
    fs::write(&path, text).unwrap();
    scene.slurm("scontrol", &["update", "PartitionName=all", "State=UP"]);
    scene.wait();
    let log = fs::read_to_string(scene.place.path("out/slurm/cells-1_0.log")).unwrap();
    assert!(log.contains("other cells than when the script of this job was written"), "{log}");
    assert_eq!(SweepFiles::new(&scene.place.path("out")).ended(), 0);
}

#[test]
fn a_refused_cell_is_reported_as_without_slurm() {
    let plan = "machines = ['warped-slicer']\nschemes = ['bp', 'even']\n\
                [mixes]\nlists = [['m', 's']]\n";
    let Some(scene) = scene(plan) else { return };
    assert_eq!(scene.sweep(&[]).0, Some(0));
    scene.same();
    let (code, said) = scene.sweep(&["--resume"]);
    assert!(code == Some(1) && said.contains("1 cells done, 1 failed, 0 left"), "{said}");
    assert!(said.contains("1 refused: ") && !said.contains("--retry-failed"), "{said}");
    let (code, said) = scene.sweep(&["--retry-failed"]);
    assert!(code == Some(0) && said.contains("submitted: 1 cells"), "{said}");
    scene.same();
}

#[test]
fn what_sbatch_refuses_is_shown_and_leaves_the_folder_free() {
    let Some(scene) = scene(PLAN) else { return };
    for (name, value, words) in [
        ("SBATCH_PARTITION", "nowhere", "Invalid partition name specified"),
        ("SBATCH_MEM_PER_NODE", "90000G", "Memory specification can not be satisfied"),
    ] {
        let output = scene.command(&[]).env(name, value).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains("error: sbatch: "), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(scene.jobs().len(), 0);
    }
}
