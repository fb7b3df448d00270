//! `gpumodel convert`: traces to a store.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

use crate::trace::{ConvertReport, ConvertRequest, KernelIds, Progress, Silent, convert};

use super::Outcome;

/// Converts NVBit-style traces to one memory-mapped store.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel convert traces/bfs -o bfs.gpt\n  \
    gpumodel convert kernelslist.g -o app.gpt --kernels 1-12,40\n  \
    gpumodel convert kernel-1.traceg.xz kernel-2.trace -o two.gpt --names 'gemm|conv'\n\n\
    Formats and compressions (xz, gzip, zstd) are found from the content of a file.")]
pub(crate) struct Arguments {
    /// Trace folder (its kernelslist.g, else its raw lists, else its trace
    /// files), command list, or trace files
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The store to write
    #[arg(short, long, value_name = "OUT.gpt")]
    output: PathBuf,
    /// Only launches with these ids, as `1-12,40`
    #[arg(long, value_name = "IDS")]
    kernels: Option<KernelIds>,
    /// Only launches whose name matches this regular expression somewhere
    #[arg(long, value_name = "REGEX")]
    names: Option<String>,
}

/// A progress bar on standard error.
struct Bar(ProgressBar);

impl Progress for Bar {
    fn begin(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Arguments { inputs, output, kernels, names } = arguments;
    let request = ConvertRequest { inputs, output, kernels, names };
    let report = if io::stderr().is_terminal() {
        let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {eta}")?;
        let bar = Bar(ProgressBar::new(0).with_style(style));
        let report = convert(&request, &bar);
        bar.0.finish_and_clear();
        report
    } else {
        convert(&request, &Silent)
    };
    tell(&report?);
    Ok(ExitCode::SUCCESS)
}

#[allow(clippy::print_stderr)]
fn tell(report: &ConvertReport) {
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    let ConvertReport { kernels, left_out, text_bytes, source_bytes, store_bytes, .. } = report;
    eprintln!(
        "{kernels} kernel(s), {left_out} left out: {text_bytes} bytes of text, {source_bytes} as \
         stored, {store_bytes} in the store"
    );
}
