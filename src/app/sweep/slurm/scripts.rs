//! The scripts of jobs: slices of cells, and their memory and time.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use gpumodel_core::units::{to_u64, to_usize};
use gpumodel_report::results::CellEstimate;

use crate::sweep::run;

/// The default length of a task.
const USUAL_SECONDS: u64 = 1800;

/// Jobs request so many times the estimated time, since estimates may be off as much.
const TIME_FACTOR: u64 = 4;

/// Seconds of a task in addition to its cells, for stores and machines.
const TASK_SECONDS: u64 = 600;

/// Bytes of a process in addition to its cells.
const PROCESS_BYTES: u64 = 256 << 20;

/// Milliseconds to read a cell and write its rows. Measured: 1 to 2 on a local disk; a network
/// disk takes longer.
const TABLE_MILLISECONDS: u64 = 20;

/// The Slurm options of a sweep.
#[derive(Clone, Debug)]
pub struct SlurmRequest {
    /// The path of the program on all nodes.
    pub program: PathBuf,
    /// The path of the plan on all nodes.
    pub plan: PathBuf,
    /// The folder of the sweep, on a file system that all nodes share.
    pub out: PathBuf,
    /// Further arguments of every task, as `--models`.
    pub extra_arguments: Vec<String>,
    /// Memory for all cells that run at once in a task; `None`: what they need.
    pub memory_bytes: Option<u64>,
    /// The number of tasks, at most one per cell; `None`: of about half an hour each.
    pub tasks: Option<usize>,
    /// Cores of a task.
    pub threads: usize,
    /// The most tasks of an array that run at once; `None`: as many as the cluster allows.
    pub at_once: Option<usize>,
    /// Factor of the memory of cells that ran out of it.
    pub mem_factor: u64,
    /// Factor of the time of cells that ran out of it.
    pub time_factor: u64,
    /// Write the scripts, and submit nothing.
    pub print: bool,
}

/// Memory and time of a task.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub(super) struct Resources {
    pub(super) megabytes: u64,
    pub(super) minutes: u64,
}

impl Resources {
    /// The larger value of each.
    pub(super) fn at_least(self, other: Self) -> Self {
        let (megabytes, minutes) = (other.megabytes, other.minutes);
        Self { megabytes: self.megabytes.max(megabytes), minutes: self.minutes.max(minutes) }
    }
}

/// The cells of a task.
pub(super) type Slice<'a> = Vec<&'a CellEstimate>;

/// Divides `cells` into at most `count` slices, in order, so that those of one mix stay together.
/// By the estimate, a slice takes at most the mean of all plus the longest cell.
pub(super) fn slices<'a>(cells: &[&'a CellEstimate], count: usize) -> Vec<Slice<'a>> {
    let cost = |cell: &CellEstimate| u128::from(cell.core_milliseconds.max(1));
    let count = count.clamp(1, cells.len().max(1));
    let whole: u128 = cells.iter().map(|cell| cost(cell)).sum();
    let mut slices = vec![Slice::new(); count];
    let mut before = 0;
    for cell in cells {
        // The slice that contains the middle of the cell.
        let middle = 2 * before + cost(cell);
        let index = middle * u128::from(to_u64(count)) / (2 * whole);
        slices[usize::try_from(index).unwrap_or(0).min(count - 1)].push(cell);
        before += cost(cell);
    }
    slices.retain(|slice| !slice.is_empty());
    slices
}

/// The numbers of cells in the plan, as ranges.
pub(super) fn ranges(slice: &[&CellEstimate]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for cell in slice {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cell.number => *last = cell.number,
            _ => ranges.push((cell.number, cell.number)),
        }
    }
    ranges
}

/// Ranges as `--cells` takes them.
pub(super) fn list(ranges: &[(u64, u64)]) -> String {
    let word = |&(first, last): &(u64, u64)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(word).collect::<Vec<_>>().join(",")
}

/// Names and paths in the script of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobLabel<'a> {
    /// The folder of scripts and logs.
    pub(super) folder: &'a Path,
    /// The name of the job.
    pub(super) name: &'a str,
    /// The name of the script, without extension.
    pub(super) script: &'a str,
    /// The hash of the plan's cells.
    pub(super) plan_hash: &'a str,
}

impl SlurmRequest {
    /// The number of slices for `cells`, which are some of those that take `whole` milliseconds.
    pub(super) fn count(&self, cells: &[&CellEstimate], whole: u64) -> usize {
        let own = cells.iter().map(|cell| cell.core_milliseconds.max(1)).sum::<u64>();
        let usual = own.div_ceil(USUAL_SECONDS * 1000 * to_u64(self.threads));
        let part = |tasks: usize| to_u64(tasks).saturating_mul(own).div_ceil(whole.max(1));
        to_usize(u32::try_from(self.tasks.map_or(usual, part)).unwrap_or(u32::MAX))
    }

    /// The resources of each of `slices`. Each may include the solo runs of its applications,
    /// which take at most `alone` milliseconds.
    pub(super) fn resources(&self, slices: &[Slice<'_>], alone: u64) -> Resources {
        let seconds = |slice: &Slice<'_>| {
            let sum = |of: fn(&CellEstimate) -> u64| slice.iter().map(|c| of(c)).sum::<u64>();
            let all =
                sum(|cell| cell.core_milliseconds) + sum(|cell| cell.alone_milliseconds).min(alone);
            let longest = slice.iter().map(|cell| cell.core_milliseconds).max().unwrap_or(0);
            (all / to_u64(self.threads)).max(longest).div_ceil(1000)
        };
        let seconds = slices.iter().map(seconds).max().unwrap_or(0);
        let seconds = seconds.saturating_mul(TIME_FACTOR).saturating_add(TASK_SECONDS);
        let bytes = run::for_cells(self.budget(slices)).saturating_add(PROCESS_BYTES);
        Resources { megabytes: bytes.div_ceil(1 << 20), minutes: seconds.div_ceil(60) }
    }

    /// Memory for the cells of a task: as many at once as threads, and at least one.
    fn budget(&self, slices: &[Slice<'_>]) -> u64 {
        let bytes = slices.iter().flatten().map(|cell| cell.memory_bytes).max().unwrap_or(0);
        let all = bytes.saturating_mul(to_u64(self.threads));
        self.memory_bytes.map_or(all, |most| all.min(most.max(bytes)))
    }

    /// The resources of the job that writes the tables of `cells` cells.
    pub(super) fn ask_tables(cells: usize) -> Resources {
        let seconds = to_u64(cells) * TABLE_MILLISECONDS / 1000 * TIME_FACTOR + TASK_SECONDS;
        Resources { megabytes: 2 * (PROCESS_BYTES >> 20), minutes: seconds.div_ceil(60) }
    }

    /// The script of an array of `slices`. Cells that failed before run again.
    pub(super) fn array(
        &self,
        label: JobLabel<'_>,
        slices: &[Slice<'_>],
        resources: Resources,
    ) -> String {
        let mut text = head(label, "_%a", (self.threads, resources));
        let at_once = self.at_once.map_or_else(String::new, |most| format!("%{most}"));
        let _ = writeln!(text, "#SBATCH --array=0-{}{at_once}", slices.len() - 1);
        let _ = writeln!(text, "case \"$SLURM_ARRAY_TASK_ID\" in");
        for (index, slice) in slices.iter().enumerate() {
            let _ = writeln!(text, "{index}) cells={} ;;", list(&ranges(slice)));
        }
        let (program, plan) = (quoted(&self.program), quoted(&self.plan));
        let _ = write!(text, "esac\nexec {program} sweep {plan} --out {}", quoted(&self.out));
        let _ = write!(text, " --resume --threads {}", self.threads);
        let _ = write!(text, " --memory {}", self.budget(slices).max(1 << 20));
        for word in &self.extra_arguments {
            let _ = write!(text, " {}", quoted(Path::new(word)));
        }
        if slices.iter().flatten().any(|cell| cell.ended == Some(false)) {
            text += " --retry-failed";
        }
        let _ = writeln!(text, " --plan-hash {} --cells \"$cells\"", label.plan_hash);
        text
    }

    /// The script of the last job, which writes the tables.
    pub(super) fn tables(&self, label: JobLabel<'_>, resources: Resources) -> String {
        let (program, plan) = (quoted(&self.program), quoted(&self.plan));
        let out = quoted(&self.out);
        let text = head(label, "", (1, resources));
        format!("{text}exec {program} sweep {plan} --out {out} --tables-only\n")
    }
}

/// The directives of a job.
fn head(label: JobLabel<'_>, log: &str, (threads, resources): (usize, Resources)) -> String {
    // Slurm replaces patterns that start with a percent sign.
    let folder = label.folder.display().to_string().replace('%', "%%").replace('"', "\\\"");
    format!(
        "#!/bin/sh\n#SBATCH --job-name={}\n#SBATCH --output=\"{folder}/{}{log}.log\"\n\
         #SBATCH --open-mode=append\n#SBATCH --requeue\n\
         #SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task={threads}\n\
         #SBATCH --mem={}M\n#SBATCH --time={}\n",
        label.name, label.script, resources.megabytes, resources.minutes
    )
}

/// A path as a quoted shell word.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use gpumodel_report::results::CellEstimate;

    use super::{JobLabel, Resources, Slice, SlurmRequest, slices};

    fn request() -> SlurmRequest {
        SlurmRequest {
            program: PathBuf::from("/opt/it's/gpumodel"),
            plan: PathBuf::from("/plans/plan.toml"),
            out: PathBuf::from("/out"),
            extra_arguments: vec!["--models".into(), "own models".into()],
            memory_bytes: None,
            tasks: None,
            threads: 2,
            at_once: Some(5),
            mem_factor: 2,
            time_factor: 2,
            print: false,
        }
    }

    /// Cells that take so many milliseconds each.
    fn cells(milliseconds: &[u64]) -> Vec<CellEstimate> {
        let cell = |(number, &core_milliseconds): (u64, &u64)| CellEstimate {
            number,
            core_milliseconds,
            alone_milliseconds: 1_200_000,
            memory_bytes: 1 << 30,
            ..CellEstimate::default()
        };
        (1..).zip(milliseconds).map(cell).collect()
    }

    fn label(folder: &Path) -> JobLabel<'_> {
        JobLabel { folder, name: "gpumodel-7", script: "cells-4", plan_hash: "7f" }
    }

    /// Three slices of 14 cells.
    fn some(all: &[CellEstimate]) -> Vec<Slice<'_>> {
        let of = |indices: &[usize]| indices.iter().map(|&at| &all[at]).collect();
        [&[1, 2, 6][..], &[8], &[9, 10, 13]].map(of).to_vec()
    }

    proptest! {
        #[test]
        fn slices_cover_every_cell_once_and_are_balanced(
            milliseconds in prop::collection::vec(0_u64..100_000, 1..200),
            count in 1_usize..50,
        ) {
            let cells = cells(&milliseconds);
            let some: Vec<&CellEstimate> = cells.iter().filter(|one| one.number % 3 > 0).collect();
            let slices = slices(&some, count);
            let covered: Vec<u64> = slices.iter().flatten().map(|cell| cell.number).collect();
            prop_assert_eq!(covered, some.iter().map(|cell| cell.number).collect::<Vec<_>>());
            prop_assert!(slices.len() <= count && slices.iter().all(|slice| !slice.is_empty()));
            let cost = |slice: &[&CellEstimate]| {
                slice.iter().map(|cell| cell.core_milliseconds.max(1)).sum::<u64>()
            };
            let longest = some.iter().map(|cell| cell.core_milliseconds.max(1)).max().unwrap_or(0);
            let mean = cost(&some).div_ceil(u64::try_from(count.min(some.len())).unwrap());
            for slice in &slices {
                prop_assert!(cost(slice) <= mean + longest);
            }
        }
    }

    #[test]
    fn tasks_are_of_half_an_hour_or_as_many_as_asked_for() {
        // 14 cells of 10 minutes on 2 threads are 70 minutes.
        let all = cells(&[600_000; 14]);
        let all: Vec<&CellEstimate> = all.iter().collect();
        let whole = 14 * 600_000;
        assert_eq!(request().count(&all, whole), 3);
        let given = SlurmRequest { tasks: Some(7), ..request() };
        assert_eq!((given.count(&all, whole), given.count(&all[..4], whole)), (7, 2));
    }

    #[test]
    fn memory_and_time_follow_from_the_estimate() {
        let all = cells(&[600_000; 3]);
        let slice: Vec<Slice<'_>> = vec![all.iter().collect()];
        // 1800 s of one core and as much for the applications alone on two, four times that
        // and ten minutes; two cells in 80 % of it and the process.
        let resources = Resources { megabytes: 2816, minutes: 130 };
        assert_eq!(request().resources(&slice, 1_800_000), resources);
        for (given, megabytes) in [(1536, 2176), (100, 1536), (4096, 2816)] {
            let given = SlurmRequest { memory_bytes: Some(given << 20), ..request() };
            assert_eq!(given.resources(&slice, 0).megabytes, megabytes);
        }
    }

    #[test]
    fn an_array_asks_for_what_it_needs_and_a_shell_reads_its_cells_as_meant() {
        let out = tempfile::tempdir().unwrap();
        let folder = out.path().join("50%A of \"it\"");
        let mut all = cells(&[1; 14]);
        let array = |program: &str, all: &[CellEstimate]| {
            let request = SlurmRequest { program: PathBuf::from(program), ..request() };
            request.array(label(&folder), &some(all), Resources { megabytes: 700, minutes: 11 })
        };
        let text = array("/opt/it's/gpumodel", &all);
        for line in [
            "--job-name=gpumodel-7",
            "--requeue",
            "--open-mode=append",
            "--nodes=1",
            "--ntasks=1",
            "--cpus-per-task=2",
            "--mem=700M",
            "--time=11",
            "--array=0-2%5",
        ] {
            assert!(text.contains(&format!("\n#SBATCH {line}\n")), "{line}: {text}");
        }
        assert!(text.contains(r#"/50%%A of \"it\"/cells-4_%a.log""#), "{text}");
        assert!(text.contains("exec '/opt/it'\\''s/gpumodel' sweep '/plans/plan.toml'"), "{text}");
        assert!(!text.contains("--retry-failed"), "{text}");
        all[8].ended = Some(false);
        let text = array("echo", &all);
        let run = |task: &str| {
            let path = out.path().join("script");
            fs::write(&path, &text).unwrap();
            let mut shell = std::process::Command::new("sh");
            let output = shell.arg(&path).env("SLURM_ARRAY_TASK_ID", task).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let words = "--memory 2147483648 --models own models --retry-failed --plan-hash 7f --cells";
        assert!(run("0").ends_with(&format!("{words} 2-3,7\n")), "{}", run("0"));
        assert!(run("1").ends_with("--cells 9\n") && run("2").ends_with("--cells 10-11,14\n"));
    }

    #[test]
    fn the_job_of_the_tables_runs_no_cell() {
        let resources = SlurmRequest::ask_tables(200_000);
        assert_eq!(resources, Resources { megabytes: 512, minutes: 277 });
        let text = request().tables(label(Path::new("/f")), resources);
        assert!(text.contains("--mem=512M\n#SBATCH --time=277\n"), "{text}");
        assert!(text.contains("--output=\"/f/cells-4.log\"\n"), "{text}");
        assert!(text.ends_with("sweep '/plans/plan.toml' --out '/out' --tables-only\n"), "{text}");
    }
}
