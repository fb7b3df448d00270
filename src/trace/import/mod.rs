//! Foreign traces to a store. To add a format: one file, and one row in
//! [`FORMATS`].
//!
//! Formats and compressions are found from the content, never from names.

mod accelsim;
mod declared;
mod list;
mod memlog;
mod request;
mod source;
mod source_name;
mod tracez;
mod unrecognised;
mod warp_records;

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel_core::isa::Launch;
use gpumodel_core::units::{counted, to_u64};

use crate::async_fields::has_values;
use crate::error::TraceError;
use crate::store::writer::StoreWriter;
use crate::store::{Command, Store};

use list::{Plan, Step};
use source::{Source, TextBlock};

pub use declared::convert_workload;
pub(crate) use declared::header_of;
pub use list::sources;
pub use request::{ConvertReport, ConvertRequest, Progress, SharedProgress, Silent};
pub use source_name::source_name;
pub use tracez::expand;

/// A conversion under way.
struct Conversion<'a> {
    request: &'a ConvertRequest,
    progress: &'a dyn Progress,
    writer: StoreWriter,
    report: ConvertReport,
    /// Launches that the request leaves out.
    left_out: Vec<Launch>,
    /// Thread blocks that are taken.
    ctas: u64,
}

/// What one file adds to the report.
#[derive(Clone, Copy, Debug, Default)]
struct Imported {
    text_bytes: u64,
    file_bytes: u64,
    /// Lines with unknown tails, and unknown lines of thread blocks.
    tails: u64,
    /// Lines that are kept as text from their sources on.
    open: u64,
    notes: u64,
    /// Thread blocks with an instruction.
    ctas: u64,
}

impl Imported {
    /// Counts the lines of `piece` that are kept as text.
    fn note(&mut self, piece: &accelsim::parse::Piece) {
        let (open, tails) = (to_u64(piece.batch.open()), piece.batch.tails.iter());
        let bare = tails.filter(|(_, text)| is_value(piece.batch.texts.get(*text))).count();
        self.tails += to_u64(piece.batch.tails.len() - bare) - open;
        self.open += open;
    }
}

/// True of what version 6 of the tracer prints for register values, or for none.
fn is_value(tail: &[u8]) -> bool {
    let mut words = tail.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    has_values(tail) || words.all(|word| word == b"NoVal")
}

/// Imports one trace file, whose first block was read.
type Import = fn(Source, TextBlock, &mut Conversion<'_>) -> Result<(), TraceError>;

/// A family of trace files.
struct Format {
    /// What an error calls it.
    name: &'static str,
    /// True for the decompressed start of such a file.
    recognise: fn(&[u8]) -> bool,
    import: Import,
}

/// The formats that are understood, tried in order.
const FORMATS: &[Format] = &[
    Format {
        name: "an Accel-Sim trace, which starts with `-kernel name = …`",
        recognise: |start| accelsim::recognise(start) && !tracez::recognise(start),
        import: accelsim::import,
    },
    Format {
        name: "a `.tracez`, which starts with the same and has a NUL byte after its header",
        recognise: tracez::recognise,
        import: tracez::import,
    },
    Format {
        name: "a log of NVBit's `mem_trace`, with lines that start with `MEMTRACE: `",
        recognise: memlog::recognise,
        import: memlog::import,
    },
];

/// Converts the traces of `request` to one store.
///
/// Memory is bounded by the largest thread block, not by the text; raw traces
/// gather records up to the request's `memory` and keep what is beyond that in
/// a temporary file next to the output. The store's bytes depend neither on that
/// nor on the number of threads. On an error nothing is left behind.
///
/// # Errors
/// [`TraceError`], with file and line, for anything that cannot be read, is not
/// what the formats say, or leaves nothing to convert.
pub fn convert(
    request: &ConvertRequest,
    progress: &dyn Progress,
) -> Result<ConvertReport, TraceError> {
    let plan = Plan::new(&request.inputs)?;
    check_output(&request.output, &plan)?;
    let size = |path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    progress.begin(plan.traces().map(size).sum());
    let mut conversion = Conversion {
        request,
        progress,
        writer: StoreWriter::create(&request.output)?.named(name_of(&request.inputs)),
        report: ConvertReport { warnings: plan.warnings, ..ConvertReport::default() },
        left_out: Vec::new(),
        ctas: 0,
    };
    for step in &plan.steps {
        match step {
            Step::Copy(copy) => conversion.writer.command(Command::Copy(*copy)),
            Step::Trace(path) if request.skip_damaged => conversion.import_or_skip(path)?,
            Step::Trace(path) => conversion.import(path)?,
        }
    }
    conversion.writer.skipped(conversion.report.skipped);
    let Conversion { writer, mut report, left_out, ctas, .. } = conversion;
    report.left_out = left_out.len();
    if report.kernels == 0 || (ctas == 0 && request.filter.ctas.is_some()) {
        return Err(nothing(request, &report, left_out));
    }
    report.warnings.extend(request.filter.missing(&writer.ids()));
    report.store_bytes = writer.finish()?;
    Ok(report)
}

impl Conversion<'_> {
    /// Imports the trace file at `path`; one that is damaged leaves a warning alone.
    fn import_or_skip(&mut self, path: &Path) -> Result<(), TraceError> {
        let (checkpoint, ctas) = (self.writer.checkpoint(), self.ctas);
        let (report, left_out) = (self.report.clone(), self.left_out.len());
        let Err(error) = self.import(path) else { return Ok(()) };
        if !error.is_damage() {
            return Err(error);
        }
        self.writer.roll_back(checkpoint)?;
        self.ctas = ctas;
        self.left_out.truncate(left_out);
        self.report = report;
        self.report.skipped += 1;
        self.report.warnings.push(format!("damaged and skipped: {}", error.whole()));
        Ok(())
    }

    fn import(&mut self, path: &Path) -> Result<(), TraceError> {
        let mut source = Source::open(path)?;
        let first = source.block()?;
        let first = first.unwrap_or(TextBlock { bytes: Vec::new(), first_line: 1 });
        let format = FORMATS.iter().find(|format| (format.recognise)(&first.bytes));
        let Some(format) = format else { return Err(unrecognised::error(source.path(), &first)) };
        let cut = source.cut();
        (format.import)(source, first, self).map_err(|error| cut.explain(error))
    }

    /// Adds a remark about the file at `path`.
    fn remark(&mut self, path: &Path, remark: Option<String>) {
        self.report.warnings.extend(remark.map(|text| format!("{}: {text}", path.display())));
    }

    /// Adds what came of the file at `path`, of one launch.
    fn add(&mut self, path: &Path, imported: &Imported) {
        self.ctas += imported.ctas;
        self.report.add(path, imported);
    }
}

/// The name of the only input; several have none in common.
fn name_of(inputs: &[PathBuf]) -> Option<String> {
    let [input] = inputs else { return None };
    Some(source_name(input))
}

/// Refuses an output that is one of the files of `plan`, or exists and is no store:
/// a name typed wrong must not cost a trace.
fn check_output(output: &Path, plan: &Plan) -> Result<(), TraceError> {
    let Ok(there) = output.canonicalize() else { return Ok(()) };
    let same = |path: &Path| path.canonicalize().is_ok_and(|path| path == there);
    let found = fs::metadata(output).map_err(|error| TraceError::io("read", output, error))?;
    let why = if plan.traces().chain(&plan.lists).any(|path| same(path)) {
        "is one of the files to convert"
    } else if found.is_file() && found.len() > 0 && !Store::recognise(output) {
        "exists and is no store"
    } else {
        return Ok(());
    };
    let text = format!("{}: {why}; give the output another name", output.display());
    Err(TraceError::Request(text))
}

/// The error of a conversion that takes no CTA and leaves launches out.
fn nothing(request: &ConvertRequest, report: &ConvertReport, left_out: Vec<Launch>) -> TraceError {
    if report.kernels > 0 {
        let filter = &request.filter;
        let text = format!("nothing is taken by {filter}; no such CTA has an instruction");
        return TraceError::Request(text);
    }
    if left_out.is_empty() {
        let names: Vec<String> =
            request.inputs.iter().map(|input| input.display().to_string()).collect();
        let names = names.join(" ");
        let why: String = report.warnings.iter().map(|warning| format!("; {warning}")).collect();
        return TraceError::Request(format!("nothing to convert: no kernel in {names}{why}"));
    }
    TraceError::Request(request.filter.nothing(left_out))
}

impl ConvertReport {
    fn add(&mut self, path: &Path, imported: &Imported) {
        self.kernels += 1;
        self.text_bytes += imported.text_bytes;
        self.source_bytes += imported.file_bytes;
        let warnings = [
            (imported.tails, "line", "with unknown fields at the end, kept as they stand"),
            (
                imported.open,
                "line",
                "of bulk copies or multiplies of warp groups: fields kept as text",
            ),
            (imported.notes, "thread block", "with further lines, kept as they stand"),
        ];
        let path = path.display();
        if imported.ctas == 0 {
            self.warnings.push(format!("{path}: no instruction in the whole file"));
        }
        let warnings = warnings.into_iter().filter(|(count, ..)| *count > 0);
        let warning = |(count, thing, what)| format!("{path}: {} {what}", counted(count, thing));
        self.warnings.extend(warnings.map(warning));
    }
}
