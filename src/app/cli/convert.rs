//! `gpumodel convert`: traces to a store.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpumodel_core::units::{ByteCount, FolderPurpose, Scratch, counted, to_u64};
use gpumodel_trace::{ConvertReport, ConvertRequest, Store, TraceError, convert, export};

use super::options::{FilterArguments, memory};
use super::output::{alert, folder_of, replace_traces};
use super::progress::with_bar;
use super::{Outcome, message};
use crate::app::skipped;

/// Converts NVBit-style traces to one memory-mapped store.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel convert traces/bfs -o bfs.gpt\n  \
    gpumodel convert kernelslist.g -o app.gpt --kernels 1-12,40\n  \
    gpumodel convert kernel-1.traceg.xz kernel-2.trace -o two.gpt --names 'gemm|conv'\n  \
    gpumodel convert kernelslist.g -o part.gpt --names 'gemm<float' --ctas first:160\n  \
    gpumodel convert huge.trace -o huge.gpt --memory 2G\n  \
    gpumodel convert app.gpt --to traceg -o app-text\n\n\
    Formats and compressions (xz, gzip, bzip2, zstd) are recognised from the content of a file.")]
pub(crate) struct Arguments {
    /// Trace folder (its kernelslist.g, else its raw lists, else its trace files), command
    /// list, or trace files (text, `.tracez`, `mem_trace` logs); with `--to traceg` also a store
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The store to write, or the folder of --to traceg: a new or empty one, or one that this
    /// program wrote for the same purpose
    #[arg(short, long, value_name = "OUT.gpt")]
    output: PathBuf,
    /// What to write: a store, or a folder of grouped traces and their list
    #[arg(long, value_enum, default_value_t = OutputFormat::Store)]
    to: OutputFormat,
    #[command(flatten)]
    filter: FilterArguments,
    /// Skips damaged trace files: they are counted, and the store says so
    #[arg(long)]
    skip_damaged: bool,
    /// Writes into a folder with other contents, which stay where no name is the same
    #[arg(long)]
    force: bool,
    /// Memory for the records of a raw trace, as 512M or 2G; the rest goes to a temporary file
    /// next to the output [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<ByteCount>,
}

/// What a conversion writes.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OutputFormat {
    Store,
    Traceg,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Arguments { inputs, output, filter, memory, to, force, skip_damaged } = arguments;
    let request = ConvertRequest { inputs, output, filter: filter.into(), memory, skip_damaged };
    match to {
        OutputFormat::Store if request.inputs.iter().any(|input| Store::recognise(input)) => {
            return Err("an input is already a store; `--to traceg` writes one as text".into());
        }
        OutputFormat::Store => {
            let held = source(&request.output);
            report(&converted(&request)?);
            replaced(&request.output, held);
        }
        OutputFormat::Traceg => {
            FolderPurpose::Traces.check(&request.output, force)?;
            to_text(&request)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the store at `path` was made from, where there is one that remembers it.
fn source(path: &Path) -> Option<String> {
    let store = Some(path).filter(|path| Store::recognise(path)).map(Store::open)?.ok()?;
    store.source_name().map(str::to_owned)
}

/// Notes that the store at `path` was that of another application, `held`.
fn replaced(path: &Path, held: Option<String>) {
    if let Some(held) = held.filter(|held| source(path).as_ref() != Some(held)) {
        message(format_args!("note: {} held {held}; it is replaced", path.display()));
    }
}

fn converted(request: &ConvertRequest) -> Result<ConvertReport, TraceError> {
    with_bar(|progress| convert(request, progress))
}

/// Writes text, through a temporary store unless the input is one.
fn to_text(request: &ConvertRequest) -> Outcome<()> {
    let scratch = Scratch::create(folder_of(&request.output))?;
    let store = match &request.inputs[..] {
        [input] if Store::recognise(input) => {
            let mut store = Store::open(input)?;
            warn(&store.narrow(&request.filter)?);
            store
        }
        _ => {
            let temporary = scratch.path().join("temporary.gpt");
            report(&converted(&ConvertRequest { output: temporary.clone(), ..request.clone() })?);
            Store::open(&temporary)?
        }
    };
    let kernels = replace_traces(&request.output, || export(&store, request))?;
    let kernels = counted(to_u64(kernels), "kernel");
    message(format_args!("{kernels} as text in {}", request.output.display()));
    Ok(())
}

fn warn(warnings: &[String]) {
    warnings.iter().for_each(|warning| alert(format_args!("warning: {warning}")));
}

fn report(done: &ConvertReport) {
    warn(&done.warnings);
    if done.skipped > 0 {
        alert(format_args!("warning: {}", skipped(done.skipped)));
    }
    let ConvertReport { kernels, left_out, text_bytes, source_bytes, store_bytes, .. } = done;
    let kernels = counted(to_u64(*kernels), "kernel");
    message(format_args!(
        "{kernels}, {left_out} left out: {text_bytes} bytes of text, {source_bytes} as stored, \
         {store_bytes} in the store"
    ));
}
