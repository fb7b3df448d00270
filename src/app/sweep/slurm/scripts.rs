//! The scripts of a sweep under Slurm: those that somebody else submits, and those that
//! the watch does.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gpumodel_core::units::to_u64;
use gpumodel_report::results::{CellEstimate, SweepEstimate};

use super::super::error::SweepError;
use super::super::folder::write;
use super::ask::Ask;
use super::request::SlurmRequest;

/// Milliseconds in which a cell is read and its rows are written. Measured: 1 to 2 with a
/// local disk; one of a network takes longer.
const TABLE_MILLISECONDS: u64 = 20;

/// The cells of a task.
pub(super) type Task<'a> = &'a [&'a CellEstimate];

/// What a script that the watch submits is called, and what its jobs insist on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label<'a> {
    /// What the job is called.
    pub(super) name: &'a str,
    /// Name of the script, without its ending.
    pub(super) script: &'a str,
    /// Hash of the plan's cells.
    pub(super) plan_hash: &'a str,
}

/// Writes the scripts into `slurm` of the sweep's folder, those of a part of the cells into
/// a folder of its own there; gives the one that submits the others.
///
/// # Errors
/// When the folder cannot be written.
pub fn slurm_scripts(
    request: &SlurmRequest,
    estimate: &SweepEstimate,
) -> Result<PathBuf, SweepError> {
    let mut folder = super::folder(&request.out);
    let ends = estimate.cells.first().zip(estimate.cells.last()).filter(|_| request.part);
    if let Some((first, last)) = ends {
        folder.push(format!("cells-{}-{}", first.number, last.number));
    }
    std::fs::create_dir_all(&folder).map_err(SweepError::folder(&folder))?;
    let cells: Vec<&CellEstimate> = estimate.cells.iter().collect();
    let chunk = request.chunk(estimate);
    let tasks: Vec<Task<'_>> = cells.chunks(chunk).collect();
    let ask = request.ask_of(&tasks, estimate);
    let mut submit = String::from("#!/bin/sh\n# Submits the sweep. Run it once.\nset -e\n");
    let mut before = Vec::new();
    for (number, tasks) in tasks.chunks(request.array).enumerate() {
        let name = format!("cells-{}.sh", number + 1);
        let path = folder.join(&name);
        let text = request.array_script(&folder, tasks, (chunk, ask), &estimate.plan_hash);
        write(&path, &text)?;
        let _ = writeln!(submit, "job{number}=$(sbatch --parsable {})", quoted(&path));
        before.push(format!("${{job{number}%%;*}}"));
    }
    let last = folder.join("tables.sh");
    write(&last, &request.last_script(&folder, estimate))?;
    let after = before.join(":");
    let _ = writeln!(submit, "sbatch --dependency=afterany:{after} {}", quoted(&last));
    let path = folder.join("submit.sh");
    write(&path, &submit)?;
    Ok(path)
}

impl SlurmRequest {
    /// An array of `tasks`, the first of which begins with the first cell of the first.
    fn array_script(
        &self,
        folder: &Path,
        tasks: &[Task<'_>],
        (chunk, ask): (usize, Ask),
        plan_hash: &str,
    ) -> String {
        let cells = || tasks.iter().copied().flatten();
        let mut text = self.head(("gpumodel-cells", &log(folder, "cells-%j")), ask);
        let _ = writeln!(text, "#SBATCH --array={}", self.places(tasks));
        let (first, last) =
            (cells().map(|cell| cell.number).min(), cells().map(|c| c.number).max());
        let (first, last) = (first.unwrap_or(1), last.unwrap_or(1));
        let _ = writeln!(text, "first=$(( SLURM_ARRAY_TASK_ID * {chunk} + {first} ))");
        let _ = writeln!(text, "last=$(( first + {} ))", chunk - 1);
        let _ = writeln!(text, "[ \"$last\" -le {last} ] || last={last}");
        let words = [&self.array_words[..], &insisting(plan_hash)].concat();
        format!("{text}exec {}\n", self.command(&words, " --cells \"$first-$last\""))
    }

    /// The array of `tasks` that the watch submits: any cells, each task by its range.
    pub(super) fn tasks_script(
        &self,
        folder: &Path,
        label: Label<'_>,
        tasks: &[Task<'_>],
        ask: Ask,
    ) -> String {
        let log = log(folder, &format!("{}_%a", label.script));
        let mut text = self.watched_head(label, &log, ask);
        let _ = writeln!(text, "#SBATCH --array={}", self.places(tasks));
        let _ = writeln!(text, "case \"$SLURM_ARRAY_TASK_ID\" in");
        for (place, task) in tasks.iter().enumerate() {
            let (first, last) = range(task);
            let _ = writeln!(text, "{place}) cells={first}-{last} ;;");
        }
        let _ = writeln!(text, "esac");
        // What a task that cannot be launched never comes to say.
        let _ = writeln!(text, "echo \"cells $cells begin\"");
        let words = insisting(label.plan_hash);
        format!("{text}exec {}\n", self.command(&words, " --cells \"$cells\""))
    }

    /// Places of an array of `tasks`.
    fn places(&self, tasks: &[Task<'_>]) -> String {
        let at_once = self.at_once.map_or_else(String::new, |most| format!("%{most}"));
        format!("0-{}{at_once}", tasks.len() - 1)
    }

    /// What the job asks for that runs what is left of the cells and writes the tables.
    pub(super) fn ask_last(&self, estimate: &SweepEstimate) -> Ask {
        let cells: Vec<&CellEstimate> = estimate.cells.iter().collect();
        let tasks: Vec<Task<'_>> = cells.chunks(self.chunk(estimate)).collect();
        let seconds = self.longest(&tasks, estimate).saturating_add(table_seconds(estimate));
        self.ask(seconds, estimate.memory_bytes)
    }

    /// What is left of the cells, then the tables.
    fn last_script(&self, folder: &Path, estimate: &SweepEstimate) -> String {
        let log = log(folder, "tables-%j");
        let text = self.head(("gpumodel-tables", &log), self.ask_last(estimate));
        let words = insisting(&estimate.plan_hash);
        let tables = if self.part { " --tables" } else { "" };
        format!("{text}exec {}{tables}\n", self.command(&words, &self.cells(estimate)))
    }

    /// The same, as the watch submits it. Its exit code goes into the file `end`, whatever
    /// Slurm remembers of it.
    pub(super) fn tables_script(
        &self,
        folder: &Path,
        label: Label<'_>,
        (estimate, ask): (&SweepEstimate, Ask),
        end: &Path,
    ) -> String {
        let text = self.watched_head(label, &log(folder, label.script), ask);
        let command = self.command(&insisting(label.plan_hash), &self.cells(estimate));
        format!("{text}{command}\ncode=$?\necho \"$code\" > {}\nexit \"$code\"\n", quoted(end))
    }

    /// The words that name the cells that were asked for, where those are not all.
    fn cells(&self, estimate: &SweepEstimate) -> String {
        let ends = estimate.cells.first().zip(estimate.cells.last()).filter(|_| self.part);
        let cells = ends.map(|(one, last)| format!(" --cells {}-{}", one.number, last.number));
        cells.unwrap_or_default()
    }

    /// What a job of the watch asks for.
    fn watched_head(&self, label: Label<'_>, log: &str, ask: Ask) -> String {
        // A task that is begun again goes on in its log.
        self.head((label.name, log), ask) + "#SBATCH --open-mode=append\n"
    }

    fn head(&self, (name, log): (&str, &str), ask: Ask) -> String {
        format!(
            "#!/bin/sh\n#SBATCH --job-name={name}\n#SBATCH --output=\"{log}\"\n\
             #SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task={}\n\
             #SBATCH --mem={}M\n#SBATCH --time={}\n#SBATCH --requeue\n",
            self.threads, ask.megabytes, ask.minutes
        )
    }

    fn command(&self, words: &[String], more: &str) -> String {
        let mut text = format!("{} sweep {}", quoted(&self.program), quoted(&self.plan));
        let _ = write!(text, " --out {} --resume", quoted(&self.out));
        let _ = write!(text, " --threads {}", self.threads);
        for word in self.words.iter().chain(words) {
            let _ = write!(text, " {}", quoted(Path::new(word)));
        }
        text + more
    }
}

/// The words by which a job refuses a plan that has other cells by now.
fn insisting(plan_hash: &str) -> [String; 2] {
    [String::from("--plan-hash"), plan_hash.to_owned()]
}

/// First and last cell of a task, by their numbers in the plan.
pub(super) fn range(task: Task<'_>) -> (u64, u64) {
    let ends = task.first().zip(task.last());
    ends.map_or((1, 0), |(first, last)| (first.number, last.number))
}

/// Seconds in which the tables are written.
fn table_seconds(estimate: &SweepEstimate) -> u64 {
    to_u64(estimate.cells.len()).saturating_mul(TABLE_MILLISECONDS) / 1000
}

/// A log as Slurm takes it: `name` may hold what it puts in.
fn log(folder: &Path, name: &str) -> String {
    // A percent sign begins what Slurm puts in.
    let folder = folder.display().to_string().replace('%', "%%").replace('"', "\\\"");
    format!("{folder}/{name}.log")
}

/// A word that a shell takes as it is.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use super::{Ask, Label, SlurmRequest, Task, quoted, slurm_scripts};
    use gpumodel_report::results::{CellEstimate, SweepEstimate};

    fn request(out: &Path) -> SlurmRequest {
        SlurmRequest {
            program: PathBuf::from("/opt/it's/gpumodel"),
            plan: PathBuf::from("/plans/plan.toml"),
            out: out.to_path_buf(),
            words: vec!["--models".into(), "own models".into()],
            array_words: vec!["--retry-failed".into()],
            memory_bytes: None,
            part: false,
            chunk: Some(3),
            threads: 2,
            array: 4,
            at_once: Some(5),
            poll: Duration::from_secs(1),
            resubmit: 3,
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
            plan_hash: String::from("7f"),
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
        assert!(one.contains("'own models' '--retry-failed' '--plan-hash' '7f' --cells"), "{one}");
        let last = read("tables.sh");
        assert!(!last.contains("--cells") && !last.contains("--retry-failed"), "{last}");
        assert!(last.ends_with("'own models' '--plan-hash' '7f'\n"), "{last}");
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
            let folder = out.path().join("slurm/cells-21-34");
            shell.arg(folder.join(script)).env("SLURM_ARRAY_TASK_ID", task);
            String::from_utf8(shell.output().unwrap().stdout).unwrap()
        };
        assert!(run("cells-1.sh", "0").ends_with("--retry-failed --plan-hash 7f --cells 21-23\n"));
        assert!(run("cells-1.sh", "3").ends_with("--cells 30-32\n"));
        assert!(run("cells-2.sh", "0").ends_with("--cells 33-34\n"));
        assert!(run("tables.sh", "").ends_with("--plan-hash 7f --cells 21-34 --tables\n"));
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

    #[test]
    fn a_shell_reads_the_tasks_of_any_cells_as_meant() {
        let out = tempfile::tempdir().unwrap();
        let echo = SlurmRequest { program: PathBuf::from("echo"), ..request(out.path()) };
        let all = estimate(14);
        let cells: Vec<&CellEstimate> = [1, 2, 6, 8, 9, 13].map(|at| &all.cells[at]).to_vec();
        let tasks: Vec<Task<'_>> = cells.chunks(2).collect();
        let label = Label { name: "gpumodel-7", script: "cells-4", plan_hash: "7f" };
        let ask = Ask { megabytes: 700, minutes: 11 };
        let text = echo.tasks_script(out.path(), label, &tasks, ask);
        assert!(text.contains("--mem=700M\n#SBATCH --time=11\n"), "{text}");
        assert!(text.contains("--job-name=gpumodel-7\n"), "{text}");
        assert!(text.contains("/cells-4_%a.log\"\n") && text.contains("--array=0-2%5\n"), "{text}");
        let path = out.path().join("script");
        let run = |text: &str, task: &str| {
            fs::write(&path, text).unwrap();
            let mut shell = std::process::Command::new("sh");
            let output = shell.arg(&path).env("SLURM_ARRAY_TASK_ID", task).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(run(&text, "0").starts_with("cells 2-3 begin\n"), "{text}");
        assert!(run(&text, "0").ends_with("--models own models --plan-hash 7f --cells 2-3\n"));
        assert!(run(&text, "1").ends_with("--cells 7-9\n"));
        assert!(run(&text, "2").ends_with("--cells 10-14\n"));
        let end = out.path().join("it's.end");
        let text = echo.tables_script(out.path(), label, (&all, ask), &end);
        assert!(run(&text, "").ends_with("--plan-hash 7f\n"));
        assert_eq!(fs::read_to_string(end).unwrap(), "0\n");
    }
}
