//! Scripts that run a sweep under Slurm: job arrays over parts of the cells, and a job
//! after them that finishes what was lost and writes the tables.
//!
//! Every task works in the sweep's own folder, so nothing is to be fetched and a task
//! that is run again does only what is left.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::record::{CellEstimate, SweepEstimate, SweepFiles};
use crate::units::to_u64;

use super::error::SweepError;
use super::folder::write;
use super::room;

/// Times of cells may be off so much: requests are as many times the estimate.
const TIME_FACTOR: u64 = 4;

/// Seconds of a task beside its cells: stores are made, machines are read.
const TASK_SECONDS: u64 = 600;

/// Bytes of a process beside its cells.
const PROCESS_BYTES: u64 = 256 << 20;

/// Milliseconds in which a cell is read and its rows are written. Measured: 1 to 2 with a
/// local disk; one of a network takes longer.
const TABLE_MILLISECONDS: u64 = 20;

/// What scripts for Slurm are asked for.
#[derive(Clone, Debug)]
pub struct SlurmRequest {
    /// The program, as nodes find it.
    pub program: PathBuf,
    /// The plan, as nodes find it.
    pub plan: PathBuf,
    /// The folder of the sweep, on a file system that all nodes share.
    pub out: PathBuf,
    /// Words that go to every job, as `--models`.
    pub words: Vec<String>,
    /// Words that go to the tasks of arrays alone, as `--retry-failed`: the job after them
    /// leaves what has failed as it is.
    pub array_words: Vec<String>,
    /// Bytes that cells may take together in a task; `None`: what they need.
    pub memory_bytes: Option<u64>,
    /// Only a part of the plan's cells was asked for.
    pub part: bool,
    /// Cells of a task.
    pub chunk: usize,
    /// Cores of a task.
    pub threads: usize,
    /// Tasks of one array at most (`MaxArraySize` of the cluster).
    pub array: usize,
    /// Tasks at once at most; `None`: as many as the cluster gives.
    pub at_once: Option<usize>,
}

/// Writes the scripts into `slurm` of the sweep's folder; gives the one that submits
/// the others.
///
/// # Errors
/// When the folder cannot be written.
pub fn slurm_scripts(
    request: &SlurmRequest,
    estimate: &SweepEstimate,
) -> Result<PathBuf, SweepError> {
    let folder = SweepFiles::new(&request.out).root().join("slurm");
    std::fs::create_dir_all(&folder).map_err(SweepError::folder(&folder))?;
    let tasks: Vec<&[CellEstimate]> = estimate.cells.chunks(request.chunk).collect();
    let seconds = |task: &&[CellEstimate]| request.seconds(task, estimate.alone_milliseconds);
    let seconds = tasks.iter().map(seconds).max().unwrap_or(0);
    let mut submit = String::from("#!/bin/sh\n# Submits the sweep. Run it once.\nset -e\n");
    let mut before = Vec::new();
    for (number, tasks) in tasks.chunks(request.array).enumerate() {
        let name = format!("cells-{}.sh", number + 1);
        let path = folder.join(&name);
        write(&path, &request.array_script(&folder, tasks, seconds))?;
        let _ = writeln!(submit, "job{number}=$(sbatch --parsable {})", quoted(&path));
        before.push(format!("${{job{number}%%;*}}"));
    }
    let last = folder.join("tables.sh");
    write(&last, &request.last_script(&folder, estimate, seconds))?;
    let after = before.join(":");
    let _ = writeln!(submit, "sbatch --dependency=afterany:{after} {}", quoted(&last));
    let path = folder.join("submit.sh");
    write(&path, &submit)?;
    Ok(path)
}

impl SlurmRequest {
    /// Seconds that a task takes. Any task may have to run the applications of its cells
    /// alone, which take `alone` milliseconds at most.
    fn seconds(&self, task: &[CellEstimate], alone: u64) -> u64 {
        let sum = |of: fn(&CellEstimate) -> u64| task.iter().map(of).fold(0, u64::saturating_add);
        let alone = sum(|cell| cell.alone_milliseconds).min(alone);
        let all = sum(|cell| cell.core_milliseconds).saturating_add(alone);
        let longest = task.iter().map(|cell| cell.core_milliseconds).max().unwrap_or(0);
        (all / to_u64(self.threads)).max(longest).div_ceil(1000)
    }

    /// An array of `tasks`, the first of which begins with the first cell of the first.
    fn array_script(&self, folder: &Path, tasks: &[&[CellEstimate]], seconds: u64) -> String {
        let cells = || tasks.iter().copied().flatten();
        let bytes = cells().map(|cell| cell.memory_bytes).max().unwrap_or(0);
        let mut text = self.head(folder, "cells", seconds, bytes);
        let at_once = self.at_once.map_or_else(String::new, |most| format!("%{most}"));
        let _ = writeln!(text, "#SBATCH --array=0-{}{at_once}", tasks.len() - 1);
        let chunk = self.chunk;
        let (first, last) =
            (cells().map(|cell| cell.number).min(), cells().map(|c| c.number).max());
        let (first, last) = (first.unwrap_or(1), last.unwrap_or(1));
        let _ = writeln!(text, "first=$(( SLURM_ARRAY_TASK_ID * {chunk} + {first} ))");
        let _ = writeln!(text, "last=$(( first + {} ))", chunk - 1);
        let _ = writeln!(text, "[ \"$last\" -le {last} ] || last={last}");
        text + &self.command(&self.array_words, " --cells \"$first-$last\"")
    }

    /// What is left of the cells, then the tables: as long as the longest task, should one
    /// have been lost, beside the tables.
    fn last_script(&self, folder: &Path, estimate: &SweepEstimate, seconds: u64) -> String {
        let tables = to_u64(estimate.cells.len()).saturating_mul(TABLE_MILLISECONDS) / 1000;
        let seconds = seconds.saturating_add(tables);
        let text = self.head(folder, "tables", seconds, estimate.memory_bytes);
        let ends = estimate.cells.first().zip(estimate.cells.last()).filter(|_| self.part);
        let cells = ends.map(|(one, last)| format!(" --cells {}-{}", one.number, last.number));
        text + &self.command(&[], &cells.unwrap_or_default())
    }

    /// What a job asks for: `seconds` are those of its cells, `bytes` those of the largest
    /// one on one machine, of which it runs as many at once as it has threads.
    fn head(&self, folder: &Path, name: &str, seconds: u64, bytes: u64) -> String {
        let minutes = seconds.saturating_mul(TIME_FACTOR).saturating_add(TASK_SECONDS).div_ceil(60);
        let all = bytes.saturating_mul(to_u64(self.threads));
        let cells = self.memory_bytes.map_or(all, |most| all.min(most.max(bytes)));
        // A job takes a part of its memory for cells where nobody says how much.
        let megabytes = room::for_cells(cells).saturating_add(PROCESS_BYTES).div_ceil(1 << 20);
        // A percent sign begins what Slurm puts in.
        let log = folder.display().to_string().replace('%', "%%").replace('"', "\\\"");
        format!(
            "#!/bin/sh\n#SBATCH --job-name=gpumodel-{name}\n#SBATCH --output=\"{log}/{name}-%j.log\"\n\
             #SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task={}\n\
             #SBATCH --mem={megabytes}M\n#SBATCH --time={minutes}\n#SBATCH --requeue\n",
            self.threads
        )
    }

    fn command(&self, words: &[String], more: &str) -> String {
        let mut text = format!("exec {} sweep {}", quoted(&self.program), quoted(&self.plan));
        let _ = write!(text, " --out {} --resume", quoted(&self.out));
        let _ = write!(text, " --threads {}", self.threads);
        for word in self.words.iter().chain(words) {
            let _ = write!(text, " {}", quoted(Path::new(word)));
        }
        text + more + "\n"
    }
}

/// A word that a shell takes as it is.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{SlurmRequest, quoted, slurm_scripts};
    use crate::record::{CellEstimate, SweepEstimate};

    fn request(out: &Path) -> SlurmRequest {
        SlurmRequest {
            program: PathBuf::from("/opt/it's/gpumodel"),
            plan: PathBuf::from("/plans/plan.toml"),
            out: out.to_path_buf(),
            words: vec!["--models".into(), "own models".into()],
            array_words: vec!["--retry-failed".into()],
            memory_bytes: None,
            part: false,
            chunk: 3,
            threads: 2,
            array: 4,
            at_once: Some(5),
        }
    }

    fn estimate(cells: usize) -> SweepEstimate {
        let cell = |number| CellEstimate {
            number,
            core_milliseconds: 600_000,
            alone_milliseconds: 1_200_000,
            memory_bytes: 1 << 30,
            ..CellEstimate::default()
        };
        SweepEstimate {
            cells: (1..).map(cell).take(cells).collect(),
            alone_milliseconds: 1_800_000,
            memory_bytes: 1 << 30,
            ..SweepEstimate::default()
        }
    }

    #[test]
    fn tasks_cover_every_cell_once_within_the_limits() {
        let out = tempfile::tempdir().unwrap();
        let submit = slurm_scripts(&request(out.path()), &estimate(14)).unwrap();
        let read = |name: &str| fs::read_to_string(out.path().join("slurm").join(name)).unwrap();
        // 14 cells are 5 tasks of 3, in arrays of 4.
        let (one, two) = (read("cells-1.sh"), read("cells-2.sh"));
        assert!(one.contains("--array=0-3%5") && two.contains("--array=0-0%5"), "{one}{two}");
        assert!(two.contains("first=$(( SLURM_ARRAY_TASK_ID * 3 + 13 ))"), "{two}");
        // 1800 s of one core and as much for the applications alone on two, four times that
        // and ten minutes; two cells in 80 % of it and the process.
        assert!(one.contains("--time=130\n") && one.contains("--mem=2816M"), "{one}");
        assert!(one.contains("exec '/opt/it'\\''s/gpumodel' sweep '/plans/plan.toml'"), "{one}");
        assert!(one.contains("'--models' 'own models' '--retry-failed' --cells"), "{one}");
        let last = read("tables.sh");
        assert!(!last.contains("--cells") && !last.contains("--retry-failed"), "{last}");
        assert!(last.contains("--time=130\n") && last.contains("--mem=2816M"), "{last}");
        let submit = fs::read_to_string(submit).unwrap();
        assert!(submit.contains("afterany:${job0%%;*}:${job1%%;*} "), "{submit}");
    }

    #[test]
    fn a_shell_reads_the_ranges_as_meant() {
        let out = tempfile::tempdir().unwrap();
        let echo =
            SlurmRequest { program: PathBuf::from("echo"), part: true, ..request(out.path()) };
        let mut some = estimate(14);
        some.cells.iter_mut().for_each(|cell| cell.number += 20);
        slurm_scripts(&echo, &some).unwrap();
        let run = |script: &str, task: &str| {
            let mut shell = std::process::Command::new("sh");
            shell.arg(out.path().join("slurm").join(script)).env("SLURM_ARRAY_TASK_ID", task);
            String::from_utf8(shell.output().unwrap().stdout).unwrap()
        };
        assert!(run("cells-1.sh", "0").ends_with("--retry-failed --cells 21-23\n"));
        assert!(run("cells-1.sh", "3").ends_with("--cells 30-32\n"));
        assert!(run("cells-2.sh", "0").ends_with("--cells 33-34\n"));
        assert!(run("tables.sh", "").ends_with("--models own models --cells 21-34\n"));
        assert_eq!(quoted(Path::new("a'b")), "'a'\\''b'");
    }

    #[test]
    fn a_percent_sign_in_a_path_is_one_to_slurm() {
        let out = tempfile::tempdir().unwrap();
        let folder = out.path().join("50%A of \"it\"");
        slurm_scripts(&request(&folder), &estimate(1)).unwrap();
        let script = fs::read_to_string(folder.join("slurm/cells-1.sh")).unwrap();
        assert!(script.contains(r#"/50%%A of \"it\"/slurm/cells-%j.log""#), "{script}");
        assert!(script.contains("50%A of"), "as it is for the program: {script}");
    }

    #[test]
    fn memory_that_is_given_bounds_what_is_asked_for() {
        let out = tempfile::tempdir().unwrap();
        for (given, asked) in [(1536, 2176), (100, 1536), (4096, 2816)] {
            let given = SlurmRequest { memory_bytes: Some(given << 20), ..request(out.path()) };
            slurm_scripts(&given, &estimate(1)).unwrap();
            let script = fs::read_to_string(out.path().join("slurm/cells-1.sh")).unwrap();
            assert!(script.contains(&format!("--mem={asked}M")), "{script}");
        }
    }
}
