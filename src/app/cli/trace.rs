//! `gpumodel trace`: a CUDA program, run without a GPU, to a store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpumodel_core::units::{FolderPurpose, Scratch, counted, to_u64};
use gpumodel_report::results::{CountedLaunch, CounterCheck, CounterRow};
use gpumodel_report::table::{Cell, Column, Table};
use gpumodel_trace::{ConvertRequest, Filter, Store, export, source_name};
use gpumodel_trace_run::request::Request;
use gpumodel_trace_run::{Outcome as Run, Session, nvdisasm};

use super::options::{FilterArguments, ModelsArgument};
use super::output::{alert, folder_of, replace_traces, write_text};
use super::tables::width;
use super::{Outcome, message};
use crate::memory::Memory;
use crate::trace_counters::count;
use crate::trace_device::device;

/// Runs a CUDA program without a GPU and records its launches.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    nvcc -arch=sm_80 -cudart shared app.cu -o app\n  \
    gpumodel trace -o app.gpt -- ./app 1024\n  \
    gpumodel trace -o app.gpt --device h100 --names 'gemm' -- ./app 1024\n  \
    gpumodel trace -o app-text --to traceg -- ./app\n  \
    gpumodel trace -o app.gpt --check card.csv -- ./app\n\n\
    `gpumodel guide programs` says how programs are compiled and what is supported.")]
pub(crate) struct Arguments {
    /// The store to write, or the folder of --to traceg
    #[arg(short, long, value_name = "OUT.gpt")]
    output: PathBuf,
    /// What to write: a store, or a folder of grouped traces and their list
    #[arg(long, value_enum, default_value_t = OutputFormat::Store)]
    to: OutputFormat,
    /// The machine whose properties the program sees
    #[arg(long, value_name = "M", default_value = "a100")]
    device: PathBuf,
    #[command(flatten)]
    models: ModelsArgument,
    #[command(flatten)]
    filter: FilterArguments,
    /// The nvdisasm of the toolkit that compiled the program [default: on PATH, next to nvcc]
    #[arg(long, value_name = "FILE")]
    nvdisasm: Option<PathBuf>,
    /// Writes into a folder with other contents, which stay where no name is the same
    #[arg(long)]
    force: bool,
    /// Compares instructions, accesses, sectors and bank conflicts with a card's, from
    /// `ncu --csv --page raw` of the same program; exit code 1: some differ by more than --tolerance
    #[arg(long, value_name = "NCU.csv")]
    check: Option<PathBuf>,
    /// By how many percent a counter of --check may differ
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5, requires = "check")]
    tolerance: f64,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// What is written.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OutputFormat {
    Store,
    Traceg,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let output = &arguments.output;
    if matches!(arguments.to, OutputFormat::Traceg) {
        FolderPurpose::Traces.check(output, arguments.force)?;
    }
    let models = arguments.models.load()?;
    let machine = models.machine(arguments.device.as_os_str(), &[])?;
    let memory = Memory::load(&machine.machine, &models)?;
    let scratch = Scratch::create(folder_of(output))?;
    let folder = std::path::absolute(scratch.path())?;
    let (program, rest) = arguments.program.split_first().ok_or("no program")?;
    let filter = Filter::from(arguments.filter);
    if arguments.check.is_some() && filter.ctas.is_some() {
        return Err("--check counts whole launches; leave --ctas out".into());
    }
    let word = |name| filter.words().into_iter().find(|(key, _)| *key == name).map(|(_, v)| v);
    let request = Request {
        output: folder.join("trace.gpt"),
        source: source_name(Path::new(program)),
        nvdisasm: nvdisasm(arguments.nvdisasm.as_deref())?,
        device: device(&machine.machine, &memory.standard),
        kernels: word("kernels"),
        names: word("names"),
        ctas: word("ctas"),
    };
    let run = Session { program, arguments: rest, folder: &folder }.run(&request)?;
    let card = arguments.check.as_deref();
    let counted = card.map(|_| count(&Store::open(&request.output)?, &machine.machine.shared));
    let counted = counted.transpose()?;
    let store = keep(arguments.to, output, &request.output)?;
    let code = report(&run, &store);
    match card.zip(counted) {
        Some((card, counted)) if !agrees(card, &counted, arguments.tolerance)? => {
            Ok(ExitCode::from(1))
        }
        _ => Ok(code),
    }
}

/// Moves or writes what was traced to where the user wants it; returns that place.
fn keep(to: OutputFormat, output: &Path, traced: &Path) -> Outcome<String> {
    match to {
        OutputFormat::Store => std::fs::rename(traced, output)?,
        OutputFormat::Traceg => text(output, traced)?,
    }
    Ok(output.display().to_string())
}

/// Shows the counters of `launches` next to those of the profile `card`; whether all differ by
/// `tolerance` percent at most.
fn agrees(card: &Path, launches: &[CountedLaunch], tolerance: f64) -> Outcome<bool> {
    let check = CounterCheck::read(card, launches)?;
    let columns: [Column<&CounterRow>; 6] = [
        ("kernel", |row| row.kernel.clone().into()),
        ("launch", |row| match row.launch {
            0 => "mean".into(),
            launch => launch.to_string().into(),
        }),
        ("counter", |row| row.counter.name().into()),
        ("run", |row| Cell::Number(row.run, 0)),
        ("card", |row| Cell::Number(row.card, 0)),
        ("error", |row| Cell::Shown(row.error(), format!("{:+.2}%", 100.0 * row.error()))),
    ];
    let table = Table::new(&columns, &check.rows).left(&[0, 2]);
    write_text(Path::new("-"), &table.terminal(width()))?;
    if !check.missing.is_empty() {
        let count = counted(to_u64(check.missing.len()), "launch");
        alert(format_args!("warning: the run lacks {count} of the card's: {}", check.missing[0]));
    }
    let wrong = check.rows.iter().filter(|row| row.error().abs() > tolerance / 100.0).count();
    if wrong > 0 {
        let all = check.rows.len();
        alert(format_args!("{wrong} of {all} counters differ by more than {tolerance}%"));
    }
    Ok(wrong == 0)
}

/// Writes the store at `store` as text.
fn text(output: &Path, store: &Path) -> Outcome<()> {
    let store = Store::open(store)?;
    let request = ConvertRequest { output: output.to_path_buf(), ..ConvertRequest::default() };
    replace_traces(output, || export(&store, &request))?;
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn report(run: &Run, store: &str) -> ExitCode {
    let answer = &run.answer;
    let speed = answer.instructions as f64 / answer.seconds.max(1e-9) / 1e6;
    message(format_args!(
        "{}, {} recorded: {} warp instructions in {:.2} s ({speed:.1} million per \
         second), in {store}",
        counted(answer.launches, "launch"),
        answer.recorded,
        answer.instructions,
        answer.seconds
    ));
    if run.status.success() {
        return ExitCode::SUCCESS;
    }
    alert(format_args!("warning: the program itself failed ({})", run.status));
    ExitCode::from(1)
}
