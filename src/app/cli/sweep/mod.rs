//! `gpumodel sweep`: runs the mixes x machines x schemes x seeds of a plan.

mod slurm;

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpumodel_core::units::{ByteCount, FolderPurpose, shown};
use gpumodel_report::results::{FailedCell, SchemeMeans, SweepFiles, scheme_means};
use gpumodel_report::table;

use crate::cli::Outcome;
use crate::cli::interrupt::{Continuation, INTERRUPTED, continues, stop_gracefully};
use crate::cli::options::{ModelsArgument, cache_folder, memory, set_threads};
use crate::cli::output::stdout;
use crate::cli::progress::with_sweep_bars;
use crate::cli::tables::{CsvArgument, width};
use crate::{SweepError, SweepProgress, SweepRequest, sweep, sweep_estimate, sweep_tables};
use slurm::SlurmArguments;

/// Runs a plan: mixes x machines x schemes with their parameters x seeds
///
/// Each combination is a cell; its record is the one that `analyze` would write. Solo runs and
/// the probes of schemes run once and are kept in the cache folder. A cell that fails is kept
/// with its error, and the other cells still run.
#[derive(Debug, clap::Args)]
#[command(after_help = "PLAN (TOML):\n  \
    machines = [\"v100\", \"warped-slicer:l1.latency_cycles=20,40\"]   names or files; lists multiply out\n  \
    schemes = [\"left-over\", \"warped-slicer:window=5000,10000\"]     as --scheme of analyze; so do these\n  \
    until = \"targets\"                                               as of analyze [all]\n  \
    window = 2000000\n  \
    arrive = { lud = 50000 }                                         the cycle at which lud arrives\n  \
    spacing = 5000                                                   cycles between arrivals within a mix [0]; arrive takes precedence\n  \
    seeds = [0]                                                      kept in the record [0]\n\n  \
    [apps]                                                           paths relative to the plan's folder\n  \
    bfs = \"traces/bfs\"\n  \
    lud = \"lud.gpt\"\n  \
    copy = \"synth:stream-copy\"                                       or synth:stream-copy:scale=0.1\n\n  \
    [mixes]\n  \
    lists = [[\"bfs\", \"lud\", \"copy\"], [\"copy\", \"bfs\"]]            in this order on the machine\n  \
    all_pairs = true\n  \
    random = [{ size = 3, count = 1, seed = 7 }]                     distinct mixes\n\n\
    FILES in DIR:\n  \
    cells/KEY.json    a record per cell, for plot and compare; KEY is the hash of everything\n                    \
    that can change its numbers\n  \
    failed/KEY.json   why a cell has none\n  \
    cells.csv, .jsonl a row per cell: STP, ANTT, ...\n  \
    apps.csv, .jsonl  a row per cell and application; reports/COLUMNS.md of the\n                    \
    source explains every column: caches and DRAM are counted in sectors of\n                    \
    32 bytes\n  \
    sweep.json        the cells in order\n  \
    slurm             scripts, logs and the list of jobs (jobs.json) of --engine slurm\n\n\
    A record is written whole or not at all: the same command continues a sweep that was ended,\n\
    also by kill -9. So does one of a plan that has grown; a folder with cells of another plan is\n\
    refused, unless --force or --resume keeps them there. Several processes, also on several\n\
    machines, may work in one DIR: give each its part with --cells. Two that run the same cell\n\
    write the same bytes.\n\
    Interrupt once to finish what runs, twice to stop at once.\n\n\
    SLURM: --engine slurm submits job arrays of slices of the cells, and a job after them that\n\
    writes the tables; it does not wait for them. All nodes must see DIR, PLAN, the files that\n\
    the plan names and the cache folder (GPUMODEL_CACHE). When the jobs have ended, the same\n\
    command says which cells have no record and why, and submits exactly those.\n\
    Partition, account and the like come from sbatch's own variables, as SBATCH_PARTITION or\n\
    SBATCH_ACCOUNT; their memory and time take precedence over the estimate.\n\n\
    EXIT CODES: 0 all cells have a record, or jobs were submitted; 1 some failed; 2 an invalid\n\
    plan, DIR cannot be written, or Slurm refuses; 130 interrupted.\n\n\
    EXAMPLES:\n  \
    gpumodel sweep plan.toml --out evaluation --dry-run\n  \
    gpumodel sweep plan.toml --out evaluation              again: continues\n  \
    gpumodel sweep plan.toml --out evaluation --retry-failed --memory 8G --threads 4\n  \
    gpumodel sweep plan.toml --out evaluation --engine slurm --threads 4\n  \
    gpumodel sweep plan.toml --out evaluation --engine slurm --print --threads 4\n  \
    gpumodel plot evaluation --figure normalized --metric stp -o stp.svg")]
pub(crate) struct Arguments {
    /// The plan
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// The folder of the sweep: new, empty, or of an earlier one of this plan, which continues:
    /// cells that have ended do not run again
    #[arg(short = 'o', long, visible_alias = "output", value_name = "DIR")]
    out: PathBuf,
    /// Writes into a folder with other contents, also cells of another plan, which stay where
    /// no name is the same
    #[arg(long)]
    force: bool,
    /// Continues also in a folder with cells that are not of this plan: they stay, also in the
    /// tables
    #[arg(long)]
    resume: bool,
    /// Continues, and runs the failed cells again
    #[arg(long)]
    retry_failed: bool,
    /// Continues in a folder with cells of another version of the program, which do not run
    /// again; the tables name the version of each
    #[arg(long)]
    mixed_versions: bool,
    /// Lists the cells and which of them have ended in DIR; estimates time and memory of the
    /// others from the cells that have run so far, and the number of useful nodes. Runs none and
    /// converts nothing: cells of traces that are not in the cache folder have no estimate
    #[arg(long)]
    dry_run: bool,
    /// Most cells that run at once [default: all cores; with --engine slurm, in a job: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Memory for all cells that run at once, by their estimates, as 512M or 8G, and at most
    /// 80 % of the free memory; one cell always runs [default: 80 % of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<ByteCount>,
    /// Refuses a plan whose cells have changed since a job was submitted
    #[arg(long, value_name = "HASH", hide = true)]
    plan_hash: Option<String>,
    /// The cache folder, for jobs that do not get the variable
    #[arg(long, value_name = "DIR", hide = true)]
    cache: Option<PathBuf>,
    /// Writes the tables of DIR and runs nothing: the last job of a sweep
    #[arg(long, hide = true)]
    tables_only: bool,
    /// Only these cells, by their numbers in the plan, as --dry-run lists them
    #[arg(long, value_name = "FIRST-LAST,...", value_parser = cells)]
    cells: Option<Cells>,
    #[command(flatten)]
    models: ModelsArgument,
    /// Where cells run
    #[arg(long, value_enum, default_value_t = Engine::Local)]
    engine: Engine,
    #[command(flatten)]
    slurm: SlurmArguments,
    #[command(flatten)]
    csv: CsvArgument,
}

/// What runs the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// This machine
    Local,
    /// Slurm jobs
    Slurm,
}

/// Cells of a plan, as ranges of their numbers.
#[derive(Clone, Debug)]
struct Cells(Vec<(usize, usize)>);

impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |(first, last): &(usize, usize)| format!("{first}-{last}");
        f.write_str(&self.0.iter().map(word).collect::<Vec<_>>().join(","))
    }
}

fn cells(typed: &str) -> Result<Cells, String> {
    let range = |word: &str| {
        let invalid = || format!("expected FIRST-LAST, as 1-100 or 1-20,25, found {}", shown(word));
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let range = (first.parse().map_err(|_| invalid())?, last.parse().map_err(|_| invalid())?);
        if range.0 >= 1 && range.0 <= range.1 { Ok(range) } else { Err(invalid()) }
    };
    typed.split(',').map(range).collect::<Result<_, _>>().map(Cells)
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.engine == Engine::Local {
        arguments.slurm.refuse()?;
    }
    arguments.csv.check(std::slice::from_ref(&arguments.plan), &[], &["means"])?;
    set_threads(arguments.threads)?;
    let request = SweepRequest {
        plan: arguments.plan.clone(),
        out: arguments.out.clone(),
        resume: arguments.resume || arguments.force,
        retry_failed: arguments.retry_failed,
        mixed_versions: arguments.mixed_versions,
        memory_bytes: arguments.memory.map(|memory| memory.0),
        plan_hash: arguments.plan_hash.clone(),
        part: arguments.cells.as_ref().map(|cells| cells.0.clone()),
        models: arguments.models.folder.clone(),
        cache: arguments.cache.clone().unwrap_or_else(cache_folder),
    };
    if arguments.dry_run {
        return dry_run(arguments, &request);
    }
    FolderPurpose::Sweep.check(&request.out, arguments.force)?;
    if arguments.tables_only {
        let end = with_sweep_bars(|watch| sweep_tables(&request.out, watch))?;
        return report(arguments, end);
    }
    if arguments.engine == Engine::Slurm {
        return slurm::run(arguments, &request);
    }
    stop_gracefully();
    // A job is not continued by hand.
    if request.plan_hash.is_none() {
        continues(Continuation::Resumes(resume_command(arguments)));
    }
    match with_sweep_bars(|watch| sweep(&request, watch)) {
        Ok(end) => report(arguments, end),
        Err(error @ SweepError::Stopped { .. }) => stopped(arguments, &error),
        Err(error) => Err(error.into()),
    }
}

/// Prints the estimate of the cells.
fn dry_run(arguments: &Arguments, request: &SweepRequest) -> Outcome {
    let estimate = sweep_estimate(request, rayon::current_num_threads())?;
    arguments.csv.show(&table::planned(&estimate, width()))?;
    arguments.csv.write(&[("cells", table::planned_table(&estimate))])?;
    Ok(ExitCode::SUCCESS)
}

/// Reports an interrupt before the first cell ran.
fn stopped(arguments: &Arguments, error: &SweepError) -> Outcome {
    let mut stdout = stdout();
    writeln!(stdout, "{error}")?;
    writeln!(stdout, "{}", resume_command(arguments))?;
    Ok(ExitCode::from(INTERRUPTED))
}

/// Reports how the sweep ended.
fn report(arguments: &Arguments, end: SweepProgress) -> Outcome {
    let SweepProgress { done, failed, left } = end;
    let out = arguments.out.display();
    let part = arguments.cells.as_ref().map(|cells| format!(" of cells {cells}"));
    let part = part.unwrap_or_default();
    let mut said = format!("{out}: {done} cells done, {failed} failed, {left} left{part}\n");
    if failed > 0 {
        said += &failed_words(arguments)?;
    }
    let means = means(&arguments.out)?;
    said += &table::means(&means, width());
    if left > 0 {
        said += &format!("{}\n", resume_command(arguments));
    }
    arguments.csv.show(&said)?;
    arguments.csv.write(&[("means", table::means_table(&means))])?;
    Ok(match (left, failed) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::FAILURE,
        (_, _) => ExitCode::from(INTERRUPTED),
    })
}

/// Which cells failed, and what to do about them.
fn failed_words(arguments: &Arguments) -> Outcome<String> {
    let all = failures(&arguments.out)?;
    let mut said = table::failures(&all, width());
    let refused = all.iter().filter(|one| one.refused).count();
    if refused > 0 {
        let plan = arguments.plan.display();
        said += &format!(
            "{refused} refused: running them again gives the same result; change or remove their \
             schemes, machines or settings in {plan}\n"
        );
    }
    if all.len() > refused || all.is_empty() {
        said += &format!("run them again: {} --retry-failed\n", command(arguments));
    }
    Ok(said)
}

fn resume_command(arguments: &Arguments) -> String {
    let others = arguments.resume || arguments.retry_failed;
    let option = if others { " --resume" } else { "" };
    format!("the same command continues: {}{option}", command(arguments))
}

/// The command with the options that choose the cells and where they run.
fn command(arguments: &Arguments) -> String {
    let (plan, out) = (shell_word(&arguments.plan), shell_word(&arguments.out));
    let mut text = format!("gpumodel sweep {plan} --out {out}{}", arguments.engine.option());
    if let Some(cells) = &arguments.cells {
        text += &format!(" --cells {cells}");
    }
    if let Some(models) = &arguments.models.folder {
        text += &format!(" --models {}", shell_word(models));
    }
    if arguments.mixed_versions {
        text += " --mixed-versions";
    }
    if arguments.force {
        text += " --force";
    }
    if let Some(threads) = arguments.threads {
        text += &format!(" --threads {threads}");
    }
    if let Some(memory) = arguments.memory {
        text += &format!(" --memory {}", memory.0);
    }
    text
}

/// A path, quoted for a shell if needed.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl Engine {
    /// The option that selects it; empty for the default.
    fn option(self) -> &'static str {
        match self {
            Self::Local => "",
            Self::Slurm => " --engine slurm",
        }
    }
}

/// STP and ANTT of the schemes in the tables of a sweep's folder; nothing where it has no tables,
/// as after a part of the cells.
pub(super) fn means(folder: &Path) -> Outcome<Vec<SchemeMeans>> {
    let path = folder.join("cells.csv");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let named = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let cells = fs::read(&path).map_err(|error| named(&error))?;
    Ok(scheme_means(&cells).map_err(|error| named(&error))?)
}

/// The failures in a sweep's folder, in order, without damaged files, which are reported
/// elsewhere.
pub(super) fn failures(folder: &Path) -> Outcome<Vec<FailedCell>> {
    let files = SweepFiles::new(folder);
    let mut failed = Vec::new();
    for cell in files.cells()? {
        let path = files.failure(&cell.key);
        if path.is_file() && !files.record(&cell.key).is_file() {
            failed.extend(FailedCell::read(&path));
        }
    }
    Ok(failed)
}
