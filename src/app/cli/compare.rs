//! `gpumodel compare`: records against a reference table.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use gpumodel_report::figure::{Figure, FigureInput, Format};
use gpumodel_report::results::{
    Comparison, ReferenceTable, alone_once, refuse_ambiguous_apps, refuse_duplicate_rows,
};
use gpumodel_report::table;

use super::Outcome;
use super::output::{is_stdout, write_bytes, write_text};
use super::records::{Records, read_all, sources};
use super::tables::{CsvArgument, width};

/// Compares records with a reference table: cycles, hit rates and DRAM bytes with their errors.
#[derive(Debug, Args)]
#[command(after_help = "\
A row of the table matches a record if its `machine` is the record's machine
and its `trace` the application's name, or the last component of it. Tables are CSV with the columns
  machine,trace,launches,kernels,cycles,...   runs of a cycle simulator
  machine,trace,launch,name,cycles,...        single launches of one
  machine,trace,kernel,elapsed_cycles,...     hardware counters, means per launch of the
                                              kernels whose name is or contains this one;
                                              a column `launches` names launches as above
A `kernel` in a row of any of them makes the row about the launches of that kernel.
Cycles are compared without launch latency, except `elapsed_cycles`.

The table may also be a profile of a card, whose launches are found in the records by order,
kernel name, grid and block:
  ncu --set full --page raw --csv --log-file card.csv ./program    (or the details page)
  nsys stats --report cuda_gpu_trace --format csv report.nsys-rep > card.csv
                                                     (or the report cuda_gpu_kern_sum)

EXAMPLES:
  gpumodel compare bfs.json lud.json --reference results.csv
  gpumodel compare *.json --reference silicon.csv --json errors.json -o errors.pdf
  gpumodel compare program.json --reference card.csv -o card.svg")]
pub(crate) struct Arguments {
    /// Records that `gpumodel analyze --json` wrote, folders of its --report, folders of
    /// `gpumodel sweep`, or tables in such a folder, as its cells.csv
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<PathBuf>,
    /// The reference table, or a profile of Nsight Compute or Nsight Systems as CSV
    #[arg(long, value_name = "FILE.csv")]
    reference: PathBuf,
    /// Launch latency per launch that the table's cycles include; default: that of the
    /// record's machine
    #[arg(long, value_name = "CYCLES")]
    launch_cycles: Option<u64>,
    /// Writes the comparison as JSON; `-` is standard output, without the tables
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draws the correlation plot: SVG, or PDF or PNG by the extension of FILE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgument,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let format = arguments.output.as_deref().map(Format::of).transpose()?;
    let mut inputs = sources(&arguments.records);
    inputs.push(arguments.reference.clone());
    let outputs = [("--json", arguments.json.as_deref()), ("-o", arguments.output.as_deref())];
    arguments.csv.check(&inputs, &outputs, &["rows", "errors"])?;
    let Records { all: mut records, from } = read_all(&arguments.records)?;
    alone_once(&mut records);
    let reference = ReferenceTable::read_for(&arguments.reference, &records)?;
    refuse_ambiguous_apps(&records, &reference)?;
    refuse_duplicate_rows(&records, &from, &reference)?;
    let comparison = Comparison::new(&records, &reference, arguments.launch_cycles);
    comparison.answered(&reference)?;
    comparison.launches_fit(&reference)?;
    if !arguments.json.as_deref().is_some_and(is_stdout) && !arguments.csv.is_stdout() {
        write_text(Path::new("-"), &table::comparison(&comparison, width()))?;
    }
    if let Some((path, format)) = arguments.output.as_deref().zip(format) {
        let input = FigureInput::new(&records).with(&comparison);
        let drawing = Figure::named("correlation")?.draw(&input)?;
        write_bytes(path, &drawing.encode(format)?)?;
    }
    if let Some(path) = &arguments.json {
        write_text(path, &comparison.to_json())?;
    }
    arguments.csv.write(&table::comparison_tables(&comparison))?;
    Ok(ExitCode::SUCCESS)
}
