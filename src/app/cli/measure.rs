//! `gpumodel machine measure`: microbenchmarks in the model next to published values.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use gpumodel_core::units::{FolderPurpose, WholeFile};
use gpumodel_report::benchmark_files;
use gpumodel_report::table;

use super::Outcome;
use super::options::{ModelsArgument, set_threads, setting};
use super::output::{check_file, is_stdout, message, stdout, write_json};
use super::tables::{CsvArgument, width};
use crate::{MeasureRequest, benchmarks, measure};

#[derive(Debug, Args)]
#[command(after_help = "\
Published values are a table `benchmark,at,value,source`, as models/measured/v100-pcie.csv; a
point of it that the benchmark does not usually run is run as well.

EXAMPLES:
  gpumodel machine measure v100-pcie
  gpumodel machine measure a100 --published --report a100-measured
  gpumodel machine measure my-gpu.toml --measured my-card.csv --only load-latency,stream-read")]
pub(crate) struct Arguments {
    /// A name from `machine list`, or a file.
    #[arg(required_unless_present = "list")]
    machine: Option<OsString>,
    /// Lists the benchmarks and exits
    #[arg(long)]
    list: bool,
    /// Override a key for this run, as l1.latency_cycles=30.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    overrides: Vec<(String, String)>,
    /// Run these benchmarks alone
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Published values of the card; default: those that come with the program
    #[arg(long, value_name = "FILE.csv")]
    measured: Option<PathBuf>,
    /// Run only the points that have a published value
    #[arg(long)]
    published: bool,
    /// Write a page, figures and values into DIR
    #[arg(short = 'o', long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Replace the contents of a folder that is no report of this command
    #[arg(long, requires = "report")]
    force: bool,
    /// Write the values as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgument,
    #[command(flatten)]
    models: ModelsArgument,
    /// Number of threads (default: one per core); results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    if arguments.list {
        return list();
    }
    let inputs: Vec<PathBuf> = arguments
        .measured
        .iter()
        .cloned()
        .chain(arguments.machine.as_ref().map(PathBuf::from).filter(|path| path.is_file()))
        .collect();
    let json = arguments.json.as_deref();
    arguments.csv.check(&inputs, &[("--json", json)], &["values", "errors"])?;
    if let Some(folder) = &arguments.report {
        FolderPurpose::Benchmarks.check(folder, arguments.force)?;
    }
    json.map_or(Ok(()), check_file)?;
    set_threads(arguments.threads)?;
    let request = MeasureRequest {
        machine: arguments.machine.unwrap_or_default(),
        overrides: arguments.overrides,
        models: arguments.models.folder,
        only: arguments.only,
        measured: arguments.measured,
        published_only: arguments.published,
    };
    let measurements = measure(&request)?;
    if !json.is_some_and(is_stdout) && !arguments.csv.is_stdout() {
        write!(stdout(), "{}", table::benchmarks(&measurements, width()))?;
    }
    if let Some(path) = json {
        write_json(path, &measurements)?;
    }
    arguments.csv.write(&table::benchmark_tables(&measurements))?;
    if let Some(folder) = &arguments.report {
        write_report(folder, &benchmark_files(&measurements))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the files of a report, in place of those of an earlier one.
fn write_report(folder: &Path, files: &[(String, String)]) -> std::io::Result<()> {
    FolderPurpose::Benchmarks.mark(folder)?;
    for (name, text) in files {
        WholeFile::write(&folder.join(name), text.as_bytes())?;
    }
    let names: BTreeSet<String> = files.iter().map(|(name, _)| name.clone()).collect();
    FolderPurpose::Benchmarks.replace(folder, &names)?;
    message(format_args!("wrote {}", folder.join("index.html").display()));
    Ok(())
}

fn list() -> Outcome {
    let mut out = stdout();
    for (name, about) in benchmarks() {
        writeln!(out, "{name:<18}{about}")?;
    }
    Ok(ExitCode::SUCCESS)
}
