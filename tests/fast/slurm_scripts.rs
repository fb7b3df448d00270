//! Do the scripts that `sweep --engine slurm --print` writes for somebody else to submit do
//! what the sweep does, and refuse what has changed since?

use std::fs;

use crate::sweep_place::Place;

const PLAN: &str = r#"
machines = ["warped-slicer:l1.latency_cycles=20,30"]
schemes = ["left-over", "even", "spatial"]
[mixes]
lists = [["m", "s"], ["s", "m"]]
"#;

#[test]
fn scripts_pass_on_what_changes_the_work() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let options = ["--engine", "slurm", "--print", "--chunk", "2", "--cells", "6-8", "--memory"];
    let more = ["2G", "--mixed-versions", "--retry-failed", "--stale-after", "9"];
    let (code, said) = place.sweep(&plan, "out", &[&options[..], &more].concat());
    assert_eq!(code, Some(0), "{said}");
    let folder = place.path("out/slurm/cells-6-8");
    let script = |name| fs::read_to_string(folder.join(name)).unwrap();
    let (array, last) = (script("cells-1.sh"), script("tables.sh"));
    // Those of another part lie elsewhere.
    let other = ["--engine", "slurm", "--print", "--cells", "1-5"];
    let (code, said) = place.sweep(&plan, "out", &other);
    assert!(code == Some(0) && said.contains("out/slurm/cells-1-5/submit.sh"), "{said}");
    assert_eq!((script("cells-1.sh"), script("tables.sh")), (array.clone(), last.clone()));
    for script in [&array, &last] {
        assert!(script.contains("'--mixed-versions' '--memory' '2147483648'"), "{script}");
        assert!(script.contains("'--stale-after' '9'"), "{script}");
        let cache = format!("'--cache' '{}'", place.path("cache").display());
        assert!(script.contains(&cache), "{script}");
    }
    assert!(array.contains("--array=0-1\n") && array.contains("* 2 + 6 ))"), "{array}");
    assert!(array.contains("last=8\n") && array.contains("'--retry-failed'"), "{array}");
    assert!(last.contains("--cells 6-8 --tables\n") && !last.contains("--retry-failed"), "{last}");
}

#[cfg(unix)]
#[test]
fn scripts_come_to_the_same_tables() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let options = ["--engine", "slurm", "--print", "--chunk", "5", "--array-limit", "2"];
    let (code, said) = place.sweep(&plan, "out", &options);
    assert!(code == Some(0) && said.contains("slurm/submit.sh"), "{said}");
    // A cluster in a few words: every task of an array, one after the other.
    let sbatch = "#!/bin/sh\nfor script; do :; done\n\
        last=$(sed -n 's/.*--array=0-\\([0-9]*\\).*/\\1/p' \"$script\")\n\
        for task in $(seq 0 \"${last:-0}\"); do\n\
        SLURM_ARRAY_TASK_ID=$task sh \"$script\" >&2 || exit 1\ndone\necho 7\n";
    fs::create_dir(place.path("bin")).unwrap();
    fs::write(place.path("bin/sbatch"), sbatch).unwrap();
    let line = "chmod +x bin/sbatch && PATH=\"$PWD/bin:$PATH\" sh out/slurm/submit.sh";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", line]).current_dir(place.path("")).env("GPUMODEL_CACHE", place.path("cache"));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::remove_dir_all(place.path("out/slurm")).unwrap();
    assert_eq!(place.sweep(&plan, "whole", &[]).0, Some(0));
    assert!(place.content("out") == place.content("whole"));
}

#[cfg(unix)]
#[test]
fn a_script_refuses_a_plan_that_has_other_cells_by_now() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let options = ["--engine", "slurm", "--print", "--chunk", "3", "--cells", "4-12"];
    let (code, said) = place.sweep(&plan, "out", &options);
    assert_eq!(code, Some(0), "{said}");
    let run = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.arg(place.path("out/slurm/cells-4-12").join(script));
        // As where the site gives jobs no variables of who submits them.
        shell.env("SLURM_ARRAY_TASK_ID", "1").env("HOME", place.path("home"));
        shell.env_remove("GPUMODEL_CACHE").env_remove("XDG_CACHE_HOME");
        let output = shell.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    place.plan("plan", &PLAN.replace("20,30", "30,20"));
    for script in ["cells-1.sh", "tables.sh"] {
        let (code, said) = run(script);
        assert!(code == Some(2) && said.contains("plan.toml: has other cells than when"), "{said}");
        assert!(said.contains("write and submit the scripts anew"), "{said}");
    }
    assert!(!place.path("out/sweep.json").exists());
    // The cells of the task alone, by the plan that they are of.
    place.plan("plan", PLAN);
    assert_eq!(run("cells-1.sh").0, Some(0));
    assert!(!place.path("out/cells.csv").exists(), "the job after the array writes it");
    assert_eq!(fs::read_dir(place.path("out/cells")).unwrap().count(), 3);
    assert_eq!(run("tables.sh").0, Some(0));
    let rows = fs::read_to_string(place.path("out/cells.csv")).unwrap();
    assert_eq!(rows.lines().count(), 10);
    assert!(!place.path("home").exists(), "jobs use the cache of who wrote the scripts");
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
fn what_is_for_slurm_alone_is_refused_without_it() {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    for typed in [
        &["--print"][..],
        &["--chunk", "5"],
        &["--array-limit", "1000"],
        &["--at-once", "1"],
        &["--poll", "10"],
        &["--resubmit", "3"],
    ] {
        for more in [&[][..], &["--dry-run"], &["--engine", "local"]] {
            let (code, said) = place.sweep(&plan, "out", &[typed, more].concat());
            let words = format!("error: {} is for jobs of Slurm: add --engine slurm", typed[0]);
            assert!(code == Some(2) && said.contains(&words), "{typed:?}: {said}");
            assert!(!place.path("out").exists(), "{typed:?}");
        }
    }
}
