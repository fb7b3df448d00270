//! What becomes of cells whose tasks are killed or cancelled under a real Slurm, which keeps
//! no accounts?

use std::fs;

use super::{PLAN, Scene, end, scene, until};

impl Scene {
    /// Ends a task, as `12_3`, by signal 9, as a system does that has no memory left.
    fn kill(&self, task: &str) {
        self.slurm("scancel", &["--batch", "--signal=KILL", task]);
    }

    /// The memory that a script asks for, in megabytes.
    fn megabytes(&self, label: &str) -> u64 {
        let path = self.place.path("out/slurm").join(format!("{label}.sh"));
        let text = fs::read_to_string(path).unwrap();
        let asked = text.lines().find_map(|line| line.strip_prefix("#SBATCH --mem=")).unwrap();
        asked.strip_suffix('M').unwrap().parse().unwrap()
    }
}

#[test]
fn a_task_that_is_killed_is_submitted_again_with_more_memory() {
    let Some(scene) = scene(PLAN) else { return };
    scene.hold(1);
    let child = scene.begin(&["--chunk", "3"]);
    let job = scene.job("cells-1");
    scene.job("tables-1");
    scene.waits("cells-1_0.log");
    scene.kill(&format!("{job}_0"));
    scene.job("cells-2");
    scene.release();
    let (code, said) = end(child);
    assert!(code == Some(0) && said.contains("12 cells done"), "{said}");
    let lost = format!("lost, submitted again: cells 1 ({job}_0 FAILED by signal 9)");
    assert!(said.contains(&lost), "{said}");
    let script = fs::read_to_string(scene.place.path("out/slurm/cells-2.sh")).unwrap();
    assert!(script.contains("--array=0-0\n") && script.contains("0) cells=1-1 ;;"), "{script}");
    assert_eq!(scene.megabytes("cells-2"), 2 * scene.megabytes("cells-1"));
    scene.same();
}

#[test]
fn a_cell_that_ends_every_task_is_one_that_fails() {
    let Some(scene) = scene(PLAN) else { return };
    scene.hold(1);
    let child = scene.begin(&["--chunk", "3", "--resubmit", "1"]);
    for label in ["cells-1", "cells-2"] {
        let job = scene.job(label);
        scene.waits(&format!("{label}_0.log"));
        scene.kill(&format!("{job}_0"));
    }
    let tables = scene.job("tables-1");
    scene.waits("tables-1.log");
    scene.slurm("scancel", &[&tables.to_string()]);
    until(|| scene.state(&tables.to_string()) == "CANCELLED");
    scene.release();
    let (code, said) = end(child);
    assert!(code == Some(1) && said.contains("11 cells done, 1 failed, 0 left"), "{said}");
    assert!(said.contains("2 tasks of Slurm were to run it"), "{said}");
    assert!(said.contains("--retry-failed"), "{said}");
    assert!(scene.place.path("out/cells.csv").is_file());
    let (code, said) = scene.sweep(&["--retry-failed"]);
    assert!(code == Some(0) && said.contains("12 cells done"), "{said}");
    scene.same();
}

#[test]
fn a_task_that_somebody_cancels_is_left_alone_until_the_sweep_goes_on() {
    let Some(scene) = scene(PLAN) else { return };
    scene.hold(1);
    let child = scene.begin(&["--chunk", "3"]);
    let job = scene.job("cells-1");
    let tables = scene.job("tables-1").to_string();
    scene.waits("cells-1_0.log");
    scene.slurm("scancel", &[&tables]);
    scene.slurm("scancel", &[&format!("{job}_0")]);
    let (code, said) = end(child);
    assert!(code == Some(130) && said.contains("11 cells done, 0 failed, 1 left"), "{said}");
    let left = format!("cancelled by somebody, not submitted again: cells 1 ({job}_0 CANCELLED)");
    assert!(said.contains(&left) && said.contains("--engine slurm --resume"), "{said}");
    assert_eq!(scene.jobs().keys().collect::<Vec<_>>(), ["cells-1", "tables-1"]);
    scene.release();
    let (code, said) = scene.sweep(&["--resume"]);
    assert!(code == Some(0) && said.contains("12 cells done"), "{said}");
    scene.same();
}
