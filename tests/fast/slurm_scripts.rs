//! Does `sweep --engine slurm` write and submit what the sweep needs, each cell once, and after a
//! loss the missing ones? A small shell script replaces the cluster.

use std::fs;

use gpumodel::report::results::{FailedCell, SweepFiles};

use crate::sweep_place::Place;

const PLAN: &str = r#"
machines = ["warped-slicer:l1.latency_cycles=20,30"]
schemes = ["left-over", "even", "spatial"]
[mixes]
lists = [["m", "s"], ["s", "m"]]
"#;

/// Runs every task of an array, one after the other, where there is a file `run`; else only
/// gives a number.
const SBATCH: &str = "#!/bin/sh\n[ \"$1\" = --version ] && exit\necho \"$*\" >> calls\n\
    [ -e refuse ] && { echo 'sbatch: error: not today' >&2; exit 1; }\n\
    for script; do :; done\n\
    last=$(sed -n 's/.*--array=0-\\([0-9]*\\).*/\\1/p' \"$script\")\n\
    [ -e run ] && for task in $(seq 0 \"${last:-0}\"); do\n\
    SLURM_ARRAY_TASK_ID=$task sh \"$script\" >> log 2>&1\ndone\nwc -l < calls\n";

/// A cluster in a few words, in the folder `bin` of a place.
#[cfg(unix)]
struct Cluster<'a>(&'a Place);

#[cfg(unix)]
impl<'a> Cluster<'a> {
    fn new(place: &'a Place) -> Self {
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir(place.path("bin")).unwrap();
        for (name, text) in [
            ("sbatch", SBATCH),
            ("squeue", "#!/bin/sh\n[ ! -e queue ] || cat queue\n"),
            ("sacct", "#!/bin/sh\ncat accounts\n"),
            ("scontrol", "#!/bin/sh\necho 'MaxArraySize            = 5'\n"),
        ] {
            let path = place.path("bin").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        Self(place)
    }

    /// The sweep as this cluster runs it.
    fn sweep(&self, plan: &str, options: &[&str]) -> (Option<i32>, String) {
        let words = ["sweep", plan, "--out", "out", "--engine", "slurm"];
        let mut command = self.0.command(&[&words[..], options].concat());
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.0.path("bin").display()));
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path(name), text).unwrap();
    }

    /// Submissions with arguments before the script, from the last call on.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.path("calls")).unwrap_or_default();
        let name = |line: &str| {
            let (words, script) = line.rsplit_once(' ').unwrap();
            format!("{words} {}", script.rsplit('/').next().unwrap())
        };
        text.lines().map(name).collect()
    }

    fn script(&self, label: &str) -> String {
        let path = self.0.path("out/slurm").join(format!("{label}.sh"));
        fs::read_to_string(path).unwrap()
    }

    /// A script's request, as `mem` or `time`.
    fn asked(&self, label: &str, what: &str) -> u64 {
        let (text, begin) = (self.script(label), format!("#SBATCH --{what}="));
        let line = text.lines().find_map(|line| line.strip_prefix(&begin)).unwrap();
        line.trim_end_matches('M').parse().unwrap()
    }

    /// The cells of the tasks of a script.
    fn tasks(&self, label: &str) -> Vec<String> {
        let text = self.script(label);
        let task = |line: &str| Some(line.split_once(") cells=")?.1.split(' ').next()?.to_owned());
        text.lines().filter_map(task).collect()
    }

    /// Asserts that the folder is that of a sweep without a cluster.
    fn same(&self, plan: &str) {
        let _ = fs::remove_dir_all(self.0.path("whole"));
        assert_eq!(self.0.sweep(plan, "whole", &[]).0, Some(0));
        let mut out = self.0.content("out");
        out.retain(|path, _| !path.starts_with("slurm"));
        assert!(out == self.0.content("whole"), "{:?}", out.keys());
    }
}

#[cfg(unix)]
#[test]
fn every_cell_is_submitted_once_in_arrays_that_the_cluster_takes() {
    let place = Place::new();
    let (plan, cluster) = (place.plan("plan", PLAN), Cluster::new(&place));
    let (code, said) = cluster.sweep(&plan, &["--tasks", "12", "--at-once", "3"]);
    assert!(code == Some(0) && said.contains("submitted: 12 cells in "), "{said}");
    assert!(said.contains("when they have ended, submit what is missing: gpumodel "), "{said}");
    let calls = cluster.calls();
    let (tables, arrays) = calls.split_last().unwrap();
    let ids: Vec<String> = (1..calls.len()).map(|job| job.to_string()).collect();
    let after = format!("--parsable --dependency=afterany:{} tables-", ids.join(":"));
    assert!(tables.starts_with(&after), "{calls:?}");
    let mut cells = Vec::new();
    for number in 1..=arrays.len() {
        let label = format!("cells-{number}");
        let tasks = cluster.tasks(&label);
        assert!(!tasks.is_empty() && tasks.len() <= 5, "{tasks:?}");
        let array = format!("#SBATCH --array=0-{}%3\n", tasks.len() - 1);
        assert!(cluster.script(&label).contains(&array), "{}", cluster.script(&label));
        for task in tasks {
            let (first, last) = task.split_once('-').unwrap_or((&task, &task));
            cells.extend(first.parse::<u32>().unwrap()..=last.parse().unwrap());
        }
    }
    assert_eq!(cells, (1..=12).collect::<Vec<_>>());
    assert!(arrays.len() > 1, "{calls:?}");
    let jobs = fs::read_to_string(place.path("out/slurm/jobs.json")).unwrap();
    let jobs: serde_json::Value = serde_json::from_str(&jobs).unwrap();
    assert_eq!(jobs["submissions"].as_array().unwrap().len(), calls.len());
}

#[cfg(unix)]
#[test]
fn cells_that_ran_out_of_memory_or_time_ask_for_more_of_it() {
    let place = Place::new();
    let (plan, cluster) = (place.plan("plan", PLAN), Cluster::new(&place));
    assert_eq!(cluster.sweep(&plan, &["--tasks", "4"]).0, Some(0));
    let tasks = cluster.tasks("cells-1");
    assert!(tasks.len() > 2, "{tasks:?}");
    let before = fs::read(place.path("out/slurm/jobs.json")).unwrap();
    cluster.write("queue", "1|0|COMPLETED\n1|1|RUNNING\n2|N/A|PENDING\n");
    for options in [&[][..], &["--resume"]] {
        let (code, said) = cluster.sweep(&plan, options);
        assert!(code == Some(2) && said.contains("out: jobs 1, 2 queued or running"), "{said}");
    }
    assert!(fs::read(place.path("out/slurm/jobs.json")).unwrap() == before);
    cluster.write("queue", "");
    cluster.write("accounts", "1_0|OUT_OF_MEMORY\n1_1|TIMEOUT\n1_2|NODE_FAIL\n2|COMPLETED\n");
    let (memory, time) = (cluster.asked("cells-1", "mem"), cluster.asked("cells-1", "time"));
    let options = ["--tasks", "4", "--mem-factor", "3"];
    let (code, said) = cluster.sweep(&plan, &options);
    assert_eq!(code, Some(0), "{said}");
    let out_of = |cells: &str, words: &str| {
        assert!(said.contains(&format!("cells {cells}: {words}")), "{said}");
    };
    out_of(&tasks[0], &format!("task 1_0 ran out of memory: requests {}M now", 3 * memory));
    out_of(&tasks[1], &format!("task 1_1 ran out of time: requests {} minutes now", 2 * time));
    out_of(&tasks[2], "no record and no cause: ended by the scheduler (task 1_2 NODE_FAIL)");
    // By what they need: nothing special, more time, more memory.
    let labels = ["cells-3", "cells-4", "cells-5"];
    let asked = |what| labels.map(|label| cluster.asked(label, what));
    let cells = labels.map(|label| cluster.tasks(label).join(","));
    assert_eq!(
        (asked("mem"), asked("time")),
        ([memory, memory, 3 * memory], [time, 2 * time, time])
    );
    assert!(cells[1].starts_with(tasks[1].split('-').next().unwrap()), "{cells:?} {tasks:?}");
    assert!(cells[2].starts_with("1"), "{cells:?}");
}

#[cfg(unix)]
#[test]
fn missing_cells_are_submitted_again_and_give_the_same_tables() {
    let place = Place::new();
    let (plan, cluster) = (place.plan("plan", PLAN), Cluster::new(&place));
    cluster.write("run", "");
    assert_eq!(cluster.sweep(&plan, &["--tasks", "3"]).0, Some(0));
    cluster.same(&plan);
    let files = SweepFiles::new(&place.path("out"));
    let cells = files.cells().unwrap();
    let failed = FailedCell::new(cells[4].clone(), vec!["the disk is full".to_owned()]);
    fs::write(files.failure(&cells[4].key), failed.to_json()).unwrap();
    for at in [4, 8] {
        fs::remove_file(files.record(&cells[at].key)).unwrap();
    }
    let (code, said) = cluster.sweep(&plan, &["--resume", "--tasks", "1"]);
    assert!(code == Some(0) && said.contains("10 cells done, 1 failed, 1 left"), "{said}");
    assert!(said.contains("failed: ") && said.contains("the disk is full"), "{said}");
    assert!(said.contains("cells 9: no record and no cause: ended by the scheduler\n"), "{said}");
    assert_eq!(cluster.tasks("cells-3"), ["5,9"]);
    cluster.same(&plan);
    let calls = cluster.calls();
    let (code, said) = cluster.sweep(&plan, &["--resume"]);
    assert!(code == Some(0) && said.contains("12 cells done, 0 failed, 0 left"), "{said}");
    assert_eq!(cluster.calls(), calls, "nothing is missing");
}

#[cfg(unix)]
#[test]
fn a_submission_that_fails_halfway_lists_the_submitted_jobs() {
    let place = Place::new();
    let (plan, cluster) = (place.plan("plan", PLAN), Cluster::new(&place));
    cluster.write("refuse", "");
    let (code, said) = cluster.sweep(&plan, &[]);
    assert!(code == Some(2) && said.contains("error: sbatch: not today"), "{said}");
    assert!(!place.path("out/cells").exists() && !place.path("out/sweep.json").exists());
    fs::remove_file(place.path("refuse")).unwrap();
    fs::remove_file(place.path("calls")).unwrap();
    // The first job makes the next ones be refused.
    let sbatch = SBATCH.replace("for script;", "touch refuse\nfor script;");
    fs::write(place.path("bin/sbatch"), sbatch).unwrap();
    let (code, said) = cluster.sweep(&plan, &["--tasks", "12"]);
    assert!(
        code == Some(2) && said.contains("submitted so far: job 1; cancel with scancel --name="),
        "{said}"
    );
    assert!(said.contains("sbatch: not today"), "{said}");
    let jobs = fs::read_to_string(place.path("out/slurm/jobs.json")).unwrap();
    assert!(jobs.contains("\"cells-1\"") && !jobs.contains("\"cells-2\""), "{jobs}");
}

#[test]
fn a_machine_without_slurm_is_refused_before_the_run() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let mut command = place.command(&["sweep", &plan, "--out", "out", "--engine", "slurm"]);
    let output = command.env("PATH", place.path("")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("sbatch cannot be run"), "{said}");
    assert!(said.contains("--print writes the scripts alone") && !place.path("out").exists());
}

#[test]
fn scripts_pass_on_the_options_that_change_the_work() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let options = ["--engine", "slurm", "--print", "--tasks", "1", "--cells", "6-8,10"];
    let more = ["--memory", "2G", "--mixed-versions", "--threads", "40"];
    let (code, said) = place.sweep(&plan, "out", &[&options[..], &more].concat());
    assert!(code == Some(0) && said.contains("4 cells in 1 tasks\nsubmit: sh "), "{said}");
    let script = |name| fs::read_to_string(place.path("out/slurm").join(name)).unwrap();
    let (array, last) = (script("cells-1.sh"), script("tables.sh"));
    assert!(array.contains("0) cells=6-8,10 ;;") && array.contains(" --threads 40 "), "{array}");
    assert!(array.contains(" --memory 2147483648 '--mixed-versions'"), "{array}");
    let cache = format!("'--cache' '{}'", place.path("cache").display());
    assert!(array.contains(&cache), "{array}");
    assert!(last.ends_with(" --tables-only\n"), "{last}");
    assert!(!place.path("out/sweep.json").exists() && !place.path("out/slurm/jobs.json").exists());
}

#[cfg(unix)]
#[test]
fn scripts_give_the_same_tables() {
    let place = Place::new();
    let (plan, cluster) = (place.plan("plan", PLAN), Cluster::new(&place));
    cluster.write("run", "");
    let (code, said) = cluster.sweep(&plan, &["--print", "--tasks", "3"]);
    assert!(code == Some(0) && said.contains("slurm/submit.sh"), "{said}");
    let line = "PATH=\"$PWD/bin:$PATH\" sh out/slurm/submit.sh";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", line]).current_dir(place.path("")).env("GPUMODEL_CACHE", place.path("cache"));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    cluster.same(&plan);
}

#[cfg(unix)]
#[test]
fn a_script_refuses_a_plan_whose_cells_have_changed() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let options = ["--engine", "slurm", "--print", "--tasks", "1", "--cells", "4-6"];
    let (code, said) = place.sweep(&plan, "out", &options);
    assert_eq!(code, Some(0), "{said}");
    let run = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.arg(place.path("out/slurm").join(script));
        // As at a site whose jobs do not inherit the submitter's variables.
        shell.env("SLURM_ARRAY_TASK_ID", "0").env("HOME", place.path("home"));
        shell.env_remove("GPUMODEL_CACHE").env_remove("XDG_CACHE_HOME");
        let output = shell.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    place.plan("plan", &PLAN.replace("20,30", "30,20"));
    let (code, said) = run("cells-1.sh");
    assert!(code == Some(2) && said.contains("plan.toml: has other cells than when"), "{said}");
    assert!(said.contains("write and submit the scripts again"), "{said}");
    assert!(!place.path("out/sweep.json").exists());
    // Only the cells of the task, by their plan.
    place.plan("plan", PLAN);
    assert_eq!(run("cells-1.sh").0, Some(0));
    assert!(!place.path("out/cells.csv").exists(), "the job after the array writes it");
    assert_eq!(fs::read_dir(place.path("out/cells")).unwrap().count(), 3);
    assert_eq!(run("tables.sh").0, Some(130), "the others are left");
    let rows = fs::read_to_string(place.path("out/cells.csv")).unwrap();
    assert_eq!(rows.lines().count(), 4);
    assert!(!place.path("home").exists(), "jobs use the cache of the scripts' author");
}

#[cfg(unix)]
#[test]
fn the_line_that_submits_is_one_for_a_shell() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let (code, said) = place.sweep(&plan, "it's out", &["--engine", "slurm", "--print"]);
    assert_eq!(code, Some(0), "{said}");
    let line = said.lines().find_map(|line| line.strip_prefix("submit: ")).unwrap();
    let mut shell = std::process::Command::new("sh");
    let output = shell.args(["-c", &format!("set -- {line}; cat \"$2\"")]).output().unwrap();
    let script = String::from_utf8(output.stdout).unwrap();
    assert!(script.contains("sbatch --parsable"), "{line}: {script}");
}

#[test]
fn options_for_slurm_are_refused_without_it() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    for typed in [
        &["--print"][..],
        &["--tasks", "5"],
        &["--at-once", "1"],
        &["--mem-factor", "2"],
        &["--time-factor", "3"],
    ] {
        for more in [&[][..], &["--dry-run"], &["--engine", "local"]] {
            let (code, said) = place.sweep(&plan, "out", &[typed, more].concat());
            let words = format!("error: {} is for Slurm jobs: add --engine slurm", typed[0]);
            assert!(code == Some(2) && said.contains(&words), "{typed:?}: {said}");
            assert!(!place.path("out").exists(), "{typed:?}");
        }
    }
}
