//! `gpumodel reproduce`: a paper's experiments against its published figures.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use gpumodel_core::units::{ByteCount, FolderPurpose, check_writable};
use gpumodel_report::figure::FIGURES;
use gpumodel_report::paper::{Reproduction, headlines, headlines_csv, write_reproduction};

use super::Outcome;
use super::interrupt::{Continuation, INTERRUPTED, continues, stop_gracefully};
use super::options::{ModelsArgument, cache_folder, memory, set_threads};
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
    #[arg(short = 'o', long, visible_alias = "output", value_name = "DIR")]
    report: PathBuf,
    /// Writes into a folder with other contents, which stay where no name is the same
    #[arg(long)]
    force: bool,
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
    #[command(flatten)]
    models: ModelsArgument,
    #[command(flatten)]
    csv: CsvArgument,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    set_threads(arguments.threads)?;
    let folder = &arguments.report;
    arguments.csv.check(&[], &[], &["rows"])?;
    FolderPurpose::Reproduction.check(folder, arguments.force)?;
    check_writable(folder).map_err(|e| format!("cannot write {}: {e}", folder.display()))?;
    let request = request(arguments);
    stop_gracefully();
    continues(Continuation::Resumes(String::from(RESUMES)));
    let found = match with_sweep_bars(|watch| reproduce(&request, watch)) {
        Ok(found) => found,
        Err(error @ ReproduceError::Stopped { .. }) => {
            writeln!(stdout(), "{error}; the same command resumes it")?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(error) => return Err(error.into()),
    };
    let mut stdout = stdout();
    if arguments.csv.is_stdout() {
        write_reproduction(&found, folder)?;
        arguments.csv.write_one(&headlines_csv(&found))?;
        return Ok(exit_code(&found));
    }
    stdout.write_all(headlines(&found, width()).as_bytes())?;
    write_reproduction(&found, folder)?;
    arguments.csv.write_one(&headlines_csv(&found))?;
    if found.left() > 0 {
        let left = found.left();
        writeln!(stdout, "not run yet: {left}; the same command without --so-far runs them")?;
    }
    writeln!(stdout, "report: {}", folder.join("index.html").display())?;
    Ok(exit_code(&found))
}

fn request(arguments: &Arguments) -> ReproduceRequest {
    ReproduceRequest {
        paper: arguments.paper.clone(),
        report: arguments.report.clone(),
        quick: arguments.quick,
        so_far: arguments.so_far,
        mixed_versions: arguments.mixed_versions,
        memory_bytes: arguments.memory.map(|memory| memory.0),
        models: arguments.models.folder.clone(),
        cache: cache_folder(),
        figures: FIGURES.iter().map(|figure| figure.name.to_owned()).collect(),
    }
}

/// How a reproduction goes on after an interrupt.
const RESUMES: &str = "the same command continues: cells that have ended do not run again";

fn exit_code(found: &Reproduction) -> ExitCode {
    let [_, same_sign, contradict, _, _] = found.counts();
    match same_sign + contradict + found.failed() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
