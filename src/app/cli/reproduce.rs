//! `gpumodel reproduce`: a paper's experiments against its published figures.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpumodel_core::toml::Node;
use gpumodel_core::units::{ByteCount, check_writable, held};
use gpumodel_report::figure::FIGURES;
use gpumodel_report::paper::{Reproduction, headlines, headlines_csv, write_reproduction};
use gpumodel_report::results::SweepFiles;

use super::Outcome;
use super::interrupt::{INTERRUPTED, stop_gracefully};
use super::options::{cache_folder, memory, set_threads};
use super::output::stdout;
use super::progress::with_sweep_bars;
use super::tables::{CsvArgument, width};
use crate::{ReproduceError, ReproduceRequest, reproduce};

/// Runs a paper's evaluation and compares the results with its published values
///
/// Machines, workload models, mixes and schemes are those of models/papers and
/// models/plans. All files go to one folder; the same command resumes an interrupted one,
/// also with several processes at once.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "PAPER: arcs, ilp-smra, slate, ugpu, warped-slicer, your own in papers/ of --models, or all\n\n\
    FILES in DIR:\n  \
    index.html, report.md   every row, table and figure, what papers leave open, why rows fail\n  \
    PAPER-PART-FIGURE.svg   the figures\n  \
    headlines.csv           a line for each row and mix\n  \
    reproduction.json       the same for programs\n  \
    parts/[quick-]PAPER-PART/  plan and records of each part: `gpumodel sweep`, `plot` and\n                             \
    `merge` take it; of a queue its record\n\n\
    EXIT CODES: 0 all rows that were run agree; 1 some do not, or a run failed; 2 bad usage, or\n\
    DIR cannot be written; 130 interrupted.\n\n\
    EXAMPLES:\n  \
    gpumodel reproduce slate --quick --report out      a few mixes with short runs\n  \
    gpumodel reproduce slate --report slate            the whole evaluation\n  \
    gpumodel reproduce slate --report slate --so-far   a report of the results so far\n  \
    gpumodel reproduce all --report papers --threads 32"
)]
pub(crate) struct Arguments {
    /// Which paper
    #[arg(value_name = "PAPER|all")]
    paper: String,
    /// The folder of the report, with the runs in it: new, empty, or of an earlier reproduction
    #[arg(long, value_name = "DIR")]
    report: PathBuf,
    /// A representative part with shorter runs
    #[arg(long)]
    quick: bool,
    /// Reports the results so far and runs nothing, while other processes run the rest or after
    /// an interrupt; applications that are not in the cache folder are converted first
    #[arg(long)]
    so_far: bool,
    /// Uses the results of other versions of the program in that folder; the report says how
    /// many. Queues are run again
    #[arg(long)]
    mixed_versions: bool,
    /// Most cells that run at once [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Memory for all cells that run at once, by their estimates, as 512M or 8G
    /// [default: 80 % of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<ByteCount>,
    /// A folder of model files that take precedence over the built-in ones, laid out as
    /// `models/`
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgument,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    set_threads(arguments.threads)?;
    let folder = &arguments.report;
    arguments.csv.check(&[], &[], &["rows"])?;
    check_folder(folder)?;
    check_writable(folder).map_err(|e| format!("cannot write {}: {e}", folder.display()))?;
    let request = ReproduceRequest {
        paper: arguments.paper.clone(),
        report: folder.clone(),
        quick: arguments.quick,
        so_far: arguments.so_far,
        mixed_versions: arguments.mixed_versions,
        memory_bytes: arguments.memory.map(|memory| memory.0),
        models: arguments.models.clone(),
        cache: cache_folder(),
        figures: FIGURES.iter().map(|figure| figure.name.to_owned()).collect(),
    };
    stop_gracefully();
    let found = match with_sweep_bars(|watch| reproduce(&request, watch)) {
        Ok(found) => found,
        Err(error @ ReproduceError::Stopped { .. }) => {
            writeln!(stdout(), "{error}; the same command resumes it")?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(error) => return Err(error.into()),
    };
    write_reproduction(&found, folder)?;
    arguments.csv.write_one(&headlines_csv(&found))?;
    if arguments.csv.is_stdout() {
        return Ok(exit_code(&found));
    }
    let mut stdout = stdout();
    stdout.write_all(headlines(&found, width()).as_bytes())?;
    if found.left() > 0 {
        let left = found.left();
        writeln!(stdout, "not run yet: {left}; the same command without --so-far runs them")?;
    }
    writeln!(stdout, "report: {}", folder.join("index.html").display())?;
    Ok(exit_code(&found))
}

fn exit_code(found: &Reproduction) -> ExitCode {
    let [_, same_sign, contradict, _] = found.counts();
    match same_sign + contradict + found.failed() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Refuses a folder with other contents, which the report would mix with or replace.
fn check_folder(folder: &Path) -> Result<(), String> {
    let Some(held) = held(folder) else { return Ok(()) };
    // An interrupted reproduction has parts but no report; the record of a report is written
    // before its text.
    let text = ["headlines.csv", "report.md", "index.html"];
    let written = text.into_iter().find(|name| folder.join(name).exists());
    let begun = written.is_none() && has_part(folder);
    if begun || folder.join("reproduction.json").is_file() {
        return Ok(());
    }
    let (folder, found) = (folder.display(), written.map_or(held, str::to_owned));
    Err(format!(
        "{folder} holds {found} and no reproduction: name a folder that does not exist or is \
         empty, or that of an earlier reproduction"
    ))
}

/// Whether `folder` holds a part of a reproduction: its plan or queue is written before it
/// runs; a merged part has a list of cells.
fn has_part(folder: &Path) -> bool {
    let within = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let names_apps = |file: &Path| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let plan = Node::read("plan", &text).ok();
        plan.as_ref().and_then(Node::entries).is_some_and(|plan| plan.contains_key("apps"))
    };
    let plan = |file: &Path| file.extension().is_some_and(|end| end == "toml") && names_apps(file);
    let part = |part: &Path| {
        SweepFiles::new(part).begun() || within(part).any(|entry| plan(&entry.path()))
    };
    within(&folder.join("parts")).any(|entry| part(&entry.path()))
}
