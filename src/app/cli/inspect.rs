//! `gpumodel inspect`: the contents of a store.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use gpumodel_core::memory_copy::CopyDirection;
use gpumodel_core::units::{Dim3, to_u64};
use gpumodel_report::plain_name;
use gpumodel_report::results::AppNames;
use gpumodel_report::table::{Cell, Column, Table, wrapped};
use gpumodel_trace::{Command, Filter, KernelSummary, Store, TraceError, TraceStatistics, sources};

use super::Outcome;
use super::options::{FilterArguments, ModelsArgument, cache_folder};
use super::output::{alert, stdout, write_json};
use super::progress::with_bar;
use super::tables::{CsvArgument, width};
use crate::app::skipped;
use crate::{App, AppName, RunError};

/// The tables, by name.
const TABLES: [&str; 2] = ["kernels", "opcodes"];

/// Shows each application's kernels, instruction mix, footprint, sizes and hash.
///
/// A trace or a workload model is converted first, and its store is kept in the cache folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel inspect bfs.gpt\n  \
    gpumodel inspect bfs.gpt --verify\n  \
    gpumodel inspect traces/bfs\n  \
    gpumodel inspect synth:saxpy traces/bfs\n  \
    gpumodel inspect app.gpt --names 'gemm|conv' --ctas first:160\n  \
    gpumodel inspect bfs.gpt --json - | jq .kernels[0].mix\n\n\
    The footprint counts distinct 128-byte lines and 4 KiB pages of global memory\n\
    that active lanes touch. Sizes and hash are those of the whole store. Exit code 1: --verify found damage.")]
pub(crate) struct Arguments {
    /// Stores, or whatever `analyze` takes: a trace, a list, a folder, `synth:WORKLOAD`
    #[arg(value_name = "APP", required = true)]
    apps: Vec<OsString>,
    /// Check every checksum and the content hash of a store
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    models: ModelsArgument,
    /// Write everything as JSON, of several applications as a list; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgument,
    #[command(flatten)]
    filter: FilterArguments,
    /// Skips damaged files of traces, and says how many they are
    #[arg(long)]
    skip_damaged: bool,
    /// Opcodes to show in the table
    #[arg(long, value_name = "N", default_value_t = 12)]
    top: usize,
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    program: String,
    store: String,
    store_hash: String,
    verified: bool,
    text_bytes: u64,
    source_bytes: u64,
    store_bytes: u64,
    /// `None`, as the next, for a store of a workload model, which has no text.
    store_over_text: Option<f64>,
    store_over_source: Option<f64>,
    memcpy_h2d: u64,
    memcpy_h2d_bytes: u64,
    memcpy_d2h: u64,
    memcpy_d2h_bytes: u64,
    memcpy_d2d: u64,
    memcpy_d2d_bytes: u64,
    warp_instructions: u64,
    thread_instructions: u64,
    unmodelled_instructions: u64,
    /// Launches whose code has control bits.
    control_bits_kernels: u64,
    /// Launches of which only the accesses are known.
    memory_only_kernels: u64,
    /// Damaged files of the trace that were skipped.
    skipped_files: u64,
    footprint: Footprint,
    mix: Vec<MixRow>,
    kernels: Vec<KernelRow>,
}

#[derive(Debug, Serialize)]
struct Footprint {
    lines_128_bytes: u64,
    pages_4096_bytes: u64,
}

#[derive(Debug, Serialize)]
struct MixRow {
    opcode: String,
    warp_instructions: u64,
}

#[derive(Debug, Serialize)]
struct KernelRow {
    name: String,
    id: u32,
    grid: Dim3,
    block: Dim3,
    registers: u32,
    shared_bytes: u32,
    stream: u64,
    binary_version: u32,
    ctas: u64,
    grid_ctas: u64,
    /// Positions in the grid, first and last of each range; only if CTAs are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    cta_ranges: Option<Vec<[u64; 2]>>,
    warp_instructions: u64,
    thread_instructions: u64,
    memory_instructions: u64,
    text_bytes: u64,
    source_bytes: u64,
    store_bytes: u64,
    decoded_bytes: u64,
    unmodelled_instructions: u64,
    /// The code has stall counts, barriers and reuse marks.
    control_bits: bool,
    /// Only the accesses of the launch are known.
    memory_only: bool,
    footprint: Footprint,
    mix: Vec<MixRow>,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let apps: Vec<AppName> = arguments.apps.iter().map(AppName::parse).collect();
    let files = |app: &AppName| {
        sources(std::slice::from_ref(&app.path)).unwrap_or_else(|_| vec![app.path.clone()])
    };
    let inputs: Vec<PathBuf> = apps.iter().flat_map(files).collect();
    arguments.csv.check(&inputs, &[("--json", arguments.json.as_deref())], &TABLES)?;
    let names = AppNames::of_names(apps.iter().map(|app| &*app.name));
    let filter = Filter::from(arguments.filter.clone());
    let (mut documents, mut damaged) = (Vec::new(), false);
    for app in &apps {
        let name = names.short(&app.name).to_owned();
        match open(&arguments, app, &filter) {
            Ok(store) => documents.push((name, document(&store, &filter, arguments.verify)?)),
            Err(RunError::Trace(error @ TraceError::Store { .. })) if arguments.verify => {
                alert(format_args!("damaged: {error}"));
                damaged = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
    output(&arguments, &documents)?;
    Ok(if damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Shows and writes what is known of the applications, each with its name.
fn output(arguments: &Arguments, documents: &[(String, Document)]) -> io::Result<()> {
    let one = arguments.apps.len() == 1;
    match (&arguments.json, documents) {
        // The only one is damaged, as has been said.
        (_, []) if one => return Ok(()),
        (Some(path), [(_, document)]) if one => write_json(path, document)?,
        (Some(path), _) => {
            write_json(path, &documents.iter().map(|(_, document)| document).collect::<Vec<_>>())?;
        }
        (None, _) if arguments.csv.is_stdout() => (),
        (None, [named]) if one => show(named, arguments.top)?,
        (None, _) => {
            for (place, named) in documents.iter().enumerate() {
                writeln!(stdout(), "{}{}:", if place == 0 { "" } else { "\n" }, named.0)?;
                show(named, arguments.top)?;
            }
        }
    }
    let opcodes = opcode_table(documents, usize::MAX);
    arguments.csv.write(&[(TABLES[0], kernel_table(documents)), (TABLES[1], opcodes)])
}

/// The store of an application, of which the CTAs are those that the filter selects.
fn open(arguments: &Arguments, typed: &AppName, filter: &Filter) -> Result<Store, RunError> {
    let mut app = if arguments.verify {
        let store = Store::open(&typed.path)?;
        store.verify()?;
        App { name: typed.name.clone(), store, warnings: Vec::new() }
    } else {
        let folders = (arguments.models.folder.as_deref(), &*cache_folder());
        let skip = arguments.skip_damaged;
        with_bar(|progress| App::open_skipping(skip, typed, folders, progress))?
    };
    app.narrow(filter)?;
    app.warnings.iter().for_each(|warning| alert(format_args!("warning: {warning}")));
    Ok(app.store)
}

/// What is known of the launches of `store` that the filter selects.
fn document(store: &Store, filter: &Filter, verified: bool) -> Result<Document, TraceError> {
    let (kernels, all) = kernel_rows(store, filter)?;
    let sum = |of: fn(&KernelRow) -> u64| kernels.iter().map(of).sum::<u64>();
    let [to_device, to_host, within] = CopyDirection::ALL.map(|way| copies(store, way));
    // Sizes are those of the whole store.
    let whole = |of: fn(&KernelSummary<'_>) -> u64| {
        (0..store.kernel_count()).map(|index| of(&store.kernel(index))).sum::<u64>()
    };
    let (text_bytes, source_bytes) = (whole(|k| k.text_bytes()), whole(|k| k.source_bytes()));
    Ok(Document {
        schema: "gpumodel.inspect/1",
        program: concat!("gpumodel ", env!("CARGO_PKG_VERSION")).to_owned(),
        store: store.path().display().to_string(),
        store_hash: store.content_hash(),
        verified,
        text_bytes,
        source_bytes,
        store_bytes: store.file_bytes(),
        store_over_text: ratio(store.file_bytes(), text_bytes),
        store_over_source: ratio(store.file_bytes(), source_bytes),
        memcpy_h2d: to_device.0,
        memcpy_h2d_bytes: to_device.1,
        memcpy_d2h: to_host.0,
        memcpy_d2h_bytes: to_host.1,
        memcpy_d2d: within.0,
        memcpy_d2d_bytes: within.1,
        warp_instructions: sum(|k| k.warp_instructions),
        thread_instructions: sum(|k| k.thread_instructions),
        unmodelled_instructions: all.open,
        control_bits_kernels: sum(|k| u64::from(k.control_bits)),
        skipped_files: store.skipped_files(),
        memory_only_kernels: sum(|k| u64::from(k.memory_only)),
        footprint: footprint(&all),
        mix: mix(&all),
        kernels,
    })
}

/// The launches of `store` that the filter selects, and the statistics of all of them.
fn kernel_rows(
    store: &Store,
    filter: &Filter,
) -> Result<(Vec<KernelRow>, TraceStatistics), TraceError> {
    let mut all = TraceStatistics::default();
    let mut kernels = Vec::new();
    let selected = |index: &usize| filter.takes(&store.kernel(*index).launch());
    for index in (0..store.kernel_count()).filter(selected) {
        let mut statistics = TraceStatistics::default();
        statistics.add(store, index)?;
        let summary = store.kernel(index);
        let partial = summary.cta_count() < summary.launch().grid.count();
        let ranges = if partial { Some(store.cta_ranges(index)?) } else { None };
        let control_bits = store.code(index)?.has_control_bits();
        kernels.push(KernelRow { control_bits, ..kernel_row(&summary, &statistics, ranges) });
        all.merge(statistics);
    }
    Ok((kernels, all))
}

/// How many copies of a direction there are, and their bytes.
fn copies(store: &Store, direction: CopyDirection) -> (u64, u64) {
    let bytes = |command| match command {
        Command::Copy(copy) => (copy.direction == direction).then_some(copy.bytes),
        Command::Kernel(_) => None,
    };
    let bytes: Vec<u64> = store.commands().filter_map(bytes).collect();
    (to_u64(bytes.len()), bytes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes)))
}

fn kernel_row(
    kernel: &KernelSummary<'_>,
    statistics: &TraceStatistics,
    cta_ranges: Option<Vec<[u64; 2]>>,
) -> KernelRow {
    let launch = kernel.launch();
    KernelRow {
        name: launch.name,
        id: launch.id,
        grid: launch.grid,
        block: launch.block,
        registers: launch.registers,
        shared_bytes: launch.shared_bytes,
        stream: launch.stream,
        binary_version: launch.binary_version,
        ctas: kernel.cta_count(),
        grid_ctas: launch.grid.count(),
        cta_ranges,
        warp_instructions: kernel.warp_instructions(),
        thread_instructions: kernel.thread_instructions(),
        memory_instructions: kernel.memory_instructions(),
        text_bytes: kernel.text_bytes(),
        source_bytes: kernel.source_bytes(),
        store_bytes: kernel.compressed_bytes(),
        decoded_bytes: kernel.decoded_bytes(),
        unmodelled_instructions: statistics.open,
        control_bits: false,
        memory_only: kernel.memory_only(),
        footprint: footprint(statistics),
        mix: mix(statistics),
    }
}

fn footprint(statistics: &TraceStatistics) -> Footprint {
    Footprint { lines_128_bytes: statistics.lines(), pages_4096_bytes: statistics.pages() }
}

fn mix(statistics: &TraceStatistics) -> Vec<MixRow> {
    let row = |(opcode, warp_instructions): (&str, u64)| MixRow {
        opcode: opcode.to_owned(),
        warp_instructions,
    };
    statistics.ranked().into_iter().map(row).collect()
}

/// `part` over `whole`; `None` where `whole` is 0.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| crate::ratio(part, whole))
}

/// The column of an application's name in CSV files.
const APPLICATION: &str = "application";

/// The kernels of each application, one row each.
fn kernel_table(documents: &[(String, Document)]) -> Table {
    let columns: [Column<(&str, &KernelRow)>; 14] = [
        (APPLICATION, |(app, _)| (*app).into()),
        ("kernel", |(_, kernel)| Cell::Titled(plain_name(&kernel.name), kernel.name.clone())),
        ("id", |(_, kernel)| Cell::Count(kernel.id.into())),
        ("grid", |(_, kernel)| kernel.grid.to_string().into()),
        ("block", |(_, kernel)| kernel.block.to_string().into()),
        ("regs", |(_, kernel)| Cell::Count(kernel.registers.into())),
        ("shared", |(_, kernel)| Cell::Count(kernel.shared_bytes.into())),
        ("stream", |(_, kernel)| Cell::Count(kernel.stream)),
        ("CTAs", |(_, kernel)| ctas(kernel).into()),
        ("warp instr", |(_, kernel)| Cell::Count(kernel.warp_instructions)),
        ("thread instr", |(_, kernel)| Cell::Count(kernel.thread_instructions)),
        ("memory", |(_, kernel)| Cell::Count(kernel.memory_instructions)),
        ("lines 128 B", |(_, kernel)| Cell::Count(kernel.footprint.lines_128_bytes)),
        ("store", |(_, kernel)| Cell::Count(kernel.store_bytes)),
    ];
    let rows = documents.iter().flat_map(|(app, document)| {
        document.kernels.iter().map(move |kernel| (app.as_str(), kernel))
    });
    let table = Table::new(&columns, rows).left(&[0, 1]);
    table.dropping(&["stream", "store", "memory", "shared", "thread instr", "regs"])
}

/// The `top` opcodes with most warp instructions of each application.
fn opcode_table(documents: &[(String, Document)], top: usize) -> Table {
    let columns: [Column<(&str, &MixRow, u64)>; 4] = [
        (APPLICATION, |(app, ..)| (*app).into()),
        ("opcode", |(_, row, _)| row.opcode.clone().into()),
        ("warp instr", |(_, row, _)| Cell::Count(row.warp_instructions)),
        ("share", |(_, row, all)| Cell::Share(ratio(row.warp_instructions, *all))),
    ];
    let rows = documents.iter().flat_map(|(app, document)| {
        let all = document.warp_instructions;
        document.mix.iter().take(top).map(move |row| (app.as_str(), row, all))
    });
    Table::new(&columns, rows).left(&[0, 1])
}

/// The number of CTAs, and that of the grid if some are missing.
fn ctas(kernel: &KernelRow) -> String {
    match kernel.ctas < kernel.grid_ctas {
        true => format!("{} of {}", kernel.ctas, kernel.grid_ctas),
        false => kernel.ctas.to_string(),
    }
}

/// Shows one application.
fn show(named: &(String, Document), top: usize) -> io::Result<()> {
    let one = std::slice::from_ref(named);
    let kernels = kernel_table(one).without(&[APPLICATION]).terminal(width());
    let opcodes = opcode_table(one, top).without(&[APPLICATION]).terminal(width());
    let mut out = stdout();
    let mut rest = Vec::new();
    sizes(&named.1, &mut rest)?;
    let rest = wrapped(&String::from_utf8_lossy(&rest), width());
    write!(out, "{kernels}\n{opcodes}\n{rest}")
}

fn sizes(document: &Document, out: &mut impl Write) -> io::Result<()> {
    let Document { store_bytes, text_bytes, source_bytes, footprint, .. } = document;
    writeln!(
        out,
        "footprint  {} lines of 128 bytes, {} pages of 4 KiB (global memory)",
        footprint.lines_128_bytes, footprint.pages_4096_bytes
    )?;
    copy_lines(document, out)?;
    let compared = match (document.store_over_text, document.store_over_source) {
        (Some(of_text), Some(of_source)) => format!(
            ": {} % of the text ({text_bytes}), {} x the trace files ({source_bytes})",
            hundredths(100.0 * of_text),
            hundredths(of_source)
        ),
        _ => String::from(", made without text, from a program or a workload model"),
    };
    writeln!(out, "size       {store_bytes} bytes{compared}")?;
    if document.unmodelled_instructions > 0 {
        writeln!(
            out,
            "as text    {} warp instructions: bulk copies and GMMA, whose fields are read when they run",
            document.unmodelled_instructions
        )?;
    }
    if document.control_bits_kernels > 0 {
        writeln!(
            out,
            "control    {} of {} kernels have control bits: stall counts, barriers, reuse marks",
            document.control_bits_kernels,
            document.kernels.len()
        )?;
    }
    accesses(document, out)?;
    writeln!(out, "hash       {}", document.store_hash)?;
    if document.verified {
        writeln!(out, "verified   every checksum and the content hash")?;
    }
    Ok(())
}

/// Writes how many copies the commands have, and of how many bytes.
fn copy_lines(document: &Document, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "copies     {} to the device, {} bytes",
        document.memcpy_h2d, document.memcpy_h2d_bytes
    )?;
    let further = [
        ("to the host", document.memcpy_d2h, document.memcpy_d2h_bytes),
        ("within the device", document.memcpy_d2d, document.memcpy_d2d_bytes),
    ];
    for (way, copies, bytes) in further.into_iter().filter(|row| row.1 > 0) {
        writeln!(out, "copies     {copies} {way}, {bytes} bytes")?;
    }
    Ok(())
}

/// `value` to the hundredth; less than that is not shown as 0.
fn hundredths(value: f64) -> String {
    if value > 0.0 && value < 0.01 { "< 0.01".to_owned() } else { format!("{value:.2}") }
}

/// Writes how many kernels have only accesses, and how many files were skipped.
fn accesses(document: &Document, out: &mut impl Write) -> io::Result<()> {
    if document.memory_only_kernels > 0 {
        writeln!(
            out,
            "accesses   {} of {} kernels are memory-only, from a log: no other instructions, no \
             registers, warps are slots of an SM; IPC cannot be modelled",
            document.memory_only_kernels,
            document.kernels.len()
        )?;
    }
    if document.skipped_files > 0 {
        writeln!(out, "skipped    {}", skipped(document.skipped_files))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::hundredths;

    #[test]
    fn what_is_there_is_not_shown_as_nothing() {
        assert_eq!([0.0, 0.001, 0.014, 12.3].map(hundredths), ["0.00", "< 0.01", "0.01", "12.30"]);
    }
}
