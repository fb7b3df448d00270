//! `gpumodel sweep`: mixes x machines x schemes x seeds as a plan says.

mod slurm;

use std::error::Error;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpumodel_core::units::{ByteCount, shown};
use gpumodel_report::results::{FailedCell, SweepFiles};
use gpumodel_report::table;

use crate::cli::Outcome;
use crate::cli::interrupt::{INTERRUPTED, stop_gracefully};
use crate::cli::options::{cache_folder, memory};
use crate::cli::output::stdout;
use crate::cli::progress::with_sweep_bars;
use crate::{SweepError, SweepProgress, SweepRequest, sweep, sweep_estimate, sweep_tables};
use slurm::SlurmArguments;

/// Runs a plan: mixes x machines x schemes with their parameters x seeds
///
/// Each of these is a cell; its record is what `analyze` would write. Applications alone,
/// and what schemes ask for before they start, are found out once and kept in the cache
/// folder. A cell that fails is kept with its error, and the rest goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "PLAN (TOML):\n  \
    machines = [\"v100\", \"warped-slicer:l1.latency_cycles=20,40\"]   names or files; lists multiply out\n  \
    schemes = [\"left-over\", \"warped-slicer:window=5000,10000\"]     as --scheme of analyze; so do these\n  \
    until = \"targets\"                                               as of analyze [all]\n  \
    window = 2000000\n  \
    arrive = { lud = 50000 }                                         wherever lud runs\n  \
    spacing = 5000                                                   each so long after who is before it in the mix [0]; arrive goes first\n  \
    seeds = [0]                                                      kept in the record [0]\n\n  \
    [apps]                                                           paths from the plan's folder on\n  \
    bfs = \"traces/bfs\"\n  \
    lud = \"lud.gpt\"\n  \
    copy = \"synth:stream-copy\"                                       or synth:stream-copy:scale=0.1\n\n  \
    [mixes]\n  \
    lists = [[\"bfs\", \"lud\", \"copy\"], [\"copy\", \"bfs\"]]            in this order on the machine\n  \
    all_pairs = true\n  \
    random = [{ size = 3, count = 1, seed = 7 }]                     all differ\n\n\
    FILES in DIR:\n  \
    cells/KEY.json    a record per cell, for plot and compare; KEY is the hash of everything\n                    \
    that can change its numbers\n  \
    failed/KEY.json   why a cell has none\n  \
    cells.csv, .jsonl a row per cell: STP, ANTT, ...; .parquet as well where the program\n                    \
    was built with --features parquet\n  \
    apps.csv, .jsonl  a row per cell and application, likewise; reports/COLUMNS.md of the\n                    \
    source explains every column: caches and DRAM are counted in sectors of\n                    \
    32 bytes\n  \
    sweep.json        the cells in order\n  \
    slurm             scripts, logs and the list of jobs (jobs.json) of --engine slurm\n\n\
    A record appears whole or not at all, so a sweep that was ended, also by kill -9, goes on\n\
    with --resume. Several processes, also of several machines, may work in one DIR: give each\n\
    its part with --cells. Two that run the same cell write the same bytes.\n\
    Interrupt once to finish what runs, twice to stop at once.\n\n\
    SLURM: --engine slurm submits job arrays of slices of the cells, and a job after them that\n\
    writes the tables; it does not wait for them. DIR, PLAN, what the plan names and the cache\n\
    folder (GPUMODEL_CACHE) must be where all nodes see them. When the jobs have ended, the same\n\
    command with --resume says which cells have no record and why, and submits exactly those.\n\
    Partition, account and the like come from sbatch's own variables, as SBATCH_PARTITION or\n\
    SBATCH_ACCOUNT; what these say of memory and time goes before the estimate.\n\n\
    EXIT CODES: 0 all cells have a record, or jobs were submitted; 1 some failed; 2 a wrong\n\
    plan, DIR cannot be written, or Slurm refuses; 130 interrupted.\n\n\
    EXAMPLES:\n  \
    gpumodel sweep plan.toml --out evaluation --dry-run\n  \
    gpumodel sweep plan.toml --out evaluation\n  \
    gpumodel sweep plan.toml --out evaluation --resume\n  \
    gpumodel sweep plan.toml --out evaluation --retry-failed --memory 8G --threads 4\n  \
    gpumodel sweep plan.toml --out evaluation --engine slurm --threads 4\n  \
    gpumodel sweep plan.toml --out evaluation --engine slurm --resume\n  \
    gpumodel sweep plan.toml --out evaluation --engine slurm --print --threads 4\n  \
    gpumodel plot evaluation --figure normalized --metric stp -o stp.svg")]
pub(crate) struct Arguments {
    /// The plan
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// The folder of the sweep
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Goes on in a folder that holds cells: those that have ended are left as they are
    #[arg(long)]
    resume: bool,
    /// Goes on, and runs the cells again that failed
    #[arg(long)]
    retry_failed: bool,
    /// Goes on in a folder with cells of another version of the program, which are not run
    /// again; the tables say which is of which
    #[arg(long)]
    mixed_versions: bool,
    /// Names the cells and says which of them have ended in DIR; estimates time and memory of
    /// the others, by the cells that have run so far, and the nodes that can be of use; runs
    /// none. Prepares traces that have not been yet, as the run would: that is kept
    #[arg(long)]
    dry_run: bool,
    /// Cells at once at most [default: all cores; with --engine slurm, in a job: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Memory that cells may take together by their estimates, as 512M or 8G, and at most 80 %
    /// of what is free; one cell runs in any case [default: what is free alone]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<ByteCount>,
    /// Refuses a plan that has other cells than when a job was submitted
    #[arg(long, value_name = "HASH", hide = true)]
    plan_hash: Option<String>,
    /// The cache folder, for jobs that are not given the variable
    #[arg(long, value_name = "DIR", hide = true)]
    cache: Option<PathBuf>,
    /// Writes the tables of DIR and runs nothing: the job after others
    #[arg(long, hide = true)]
    tables_only: bool,
    /// Only these cells, by their numbers in --dry-run, which are those in the whole plan
    #[arg(long, value_name = "FIRST-LAST,...", value_parser = cells)]
    cells: Option<Cells>,
    /// A folder of model files that go before the built-in ones
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
    /// Where cells run
    #[arg(long, value_enum, default_value_t = Engine::Local)]
    engine: Engine,
    #[command(flatten)]
    slurm: SlurmArguments,
}

/// What runs the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// This machine
    Local,
    /// Jobs of Slurm, which are submitted
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
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    let request = SweepRequest {
        plan: arguments.plan.clone(),
        out: arguments.out.clone(),
        resume: arguments.resume,
        retry_failed: arguments.retry_failed,
        mixed_versions: arguments.mixed_versions,
        memory_bytes: arguments.memory.map(|memory| memory.0),
        plan_hash: arguments.plan_hash.clone(),
        part: arguments.cells.as_ref().map(|cells| cells.0.clone()),
        models: arguments.models.clone(),
        cache: arguments.cache.clone().unwrap_or_else(cache_folder),
    };
    if arguments.dry_run {
        return dry(&request);
    }
    if arguments.tables_only {
        let end = with_sweep_bars(|watch| sweep_tables(&request.out, watch))?;
        return tell(arguments, end);
    }
    if arguments.engine == Engine::Slurm {
        return slurm::run(arguments, &request);
    }
    stop_gracefully();
    match with_sweep_bars(|watch| sweep(&request, watch)) {
        Ok(end) => tell(arguments, end),
        Err(error @ SweepError::Stopped { .. }) => stopped(arguments, &error),
        Err(error) => Err(error.into()),
    }
}

/// Prints what the cells will take.
fn dry(request: &SweepRequest) -> Outcome {
    let threads = rayon::current_num_threads();
    let said = table::planned(&with_sweep_bars(|watch| sweep_estimate(request, threads, watch))?);
    stdout().write_all(said.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Says that an interrupt ended the sweep before it ran.
fn stopped(arguments: &Arguments, error: &SweepError) -> Outcome {
    let mut stdout = stdout();
    writeln!(stdout, "{error}")?;
    writeln!(stdout, "{}", go_on(arguments))?;
    Ok(ExitCode::from(INTERRUPTED))
}

/// Says how the sweep ended.
fn tell(arguments: &Arguments, end: SweepProgress) -> Outcome {
    let SweepProgress { done, failed, left } = end;
    let out = arguments.out.display();
    let mut stdout = stdout();
    let of = arguments.cells.as_ref().map(|cells| format!(" of cells {cells}"));
    let of = of.unwrap_or_default();
    writeln!(stdout, "{out}: {done} cells done, {failed} failed, {left} left{of}")?;
    if failed > 0 {
        let all = failures(&arguments.out)?;
        stdout.write_all(table::failures(&all).as_bytes())?;
        let refused = all.iter().filter(|one| one.refused).count();
        if refused > 0 {
            let plan = arguments.plan.display();
            writeln!(
                stdout,
                "{refused} refused: running them again gives the same; fix the plan: leave their \
                 schemes, machines or settings out of {plan}, or change them"
            )?;
        }
        if all.len() > refused || all.is_empty() {
            writeln!(stdout, "run them again: {} --retry-failed", again(arguments))?;
        }
    }
    if left > 0 {
        writeln!(stdout, "{}", go_on(arguments))?;
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn go_on(arguments: &Arguments) -> String {
    format!("go on: {} --resume", again(arguments))
}

/// The command with what says which cells are run, and where.
fn again(arguments: &Arguments) -> String {
    let (plan, out) = (typed(&arguments.plan), typed(&arguments.out));
    let mut text = format!("gpumodel sweep {plan} --out {out}{}", arguments.engine.words());
    if let Some(cells) = &arguments.cells {
        text += &format!(" --cells {cells}");
    }
    if let Some(models) = &arguments.models {
        text += &format!(" --models {}", typed(models));
    }
    if arguments.mixed_versions {
        text += " --mixed-versions";
    }
    if let Some(threads) = arguments.threads {
        text += &format!(" --threads {threads}");
    }
    if let Some(memory) = arguments.memory {
        text += &format!(" --memory {}", memory.0);
    }
    text
}

/// A path as a shell takes it.
fn typed(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl Engine {
    /// How it is asked for, where it is not the usual one.
    fn words(self) -> &'static str {
        match self {
            Self::Local => "",
            Self::Slurm => " --engine slurm",
        }
    }
}

/// Every failure in a sweep's folder, in order; damaged files have been said.
pub(super) fn failures(
    folder: &std::path::Path,
) -> Result<Vec<FailedCell>, Box<dyn Error + Send + Sync>> {
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
