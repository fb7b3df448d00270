//! Foreign traces to a store: the request, the progress and the report of a conversion. To add a
//! format: one file, and one row in [`FORMATS`].
//!
//! Formats and compressions are found from the content, never from names. Files of no trace
//! format are refused with what they are, as far as their keys or first bytes say.

mod accelsim;
mod declared;
mod list;
mod memlog;
mod source;
mod source_name;
mod tracez;
mod warp_records;

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel_core::isa::Launch;
use gpumodel_core::units::{ByteCount, counted, quoted, to_u64};
use toml::de::DeTable;

use crate::async_fields::has_values;
use crate::error::TraceError;
use crate::filter::Filter;
use crate::store::writer::StoreWriter;
use crate::store::{Command, Store};

use list::{Plan, Step};
use source::{Source, TextBlock};

pub use declared::convert_workload;
pub(crate) use declared::header_of;
pub use list::sources;
pub use source_name::source_name;
pub use tracez::expand;

/// Records of a raw trace that are held in memory unless a request says otherwise.
const USUAL_MEMORY: usize = 256 << 20;

/// A conversion to one store.
#[derive(Clone, Debug, Default)]
pub struct ConvertRequest {
    /// Trace folders, command lists or trace files; their commands follow each
    /// other in the store.
    pub inputs: Vec<PathBuf>,
    /// The store to write.
    pub output: PathBuf,
    /// The launches and CTAs to take.
    pub filter: Filter,
    /// How much of a raw trace's gathered records memory holds; what is beyond
    /// that goes to a temporary file in the folder of `output`. `None`: 256 MiB.
    /// The rest of the program takes some 100 MiB more, and 20 MiB per thread.
    pub memory: Option<ByteCount>,
    /// A trace file that is damaged is left out and counted, in the report and in the store,
    /// instead of ending the conversion.
    pub skip_damaged: bool,
}

impl ConvertRequest {
    /// Bytes of gathered records in memory.
    fn memory(&self) -> usize {
        self.memory
            .map_or(USUAL_MEMORY, |ByteCount(bytes)| usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

/// Is called as a conversion, or other work that is counted, proceeds.
pub trait Progress: Sync {
    /// Work begins: the source files have `bytes` bytes in all, as they are stored.
    fn begin(&self, bytes: u64);
    /// Files of `bytes` bytes in all are read in addition.
    fn more(&self, bytes: u64);
    /// Work begins whose size is an estimate.
    fn begin_about(&self, size: u64);
    /// `bytes` more of them were read.
    fn advance(&self, bytes: u64);
}

/// The progress of one of several conversions that run at once: they add up.
#[derive(Clone, Copy)]
pub struct SharedProgress<'a>(pub &'a dyn Progress);

impl Progress for SharedProgress<'_> {
    fn begin(&self, bytes: u64) {
        self.0.more(bytes);
    }

    fn more(&self, bytes: u64) {
        self.0.more(bytes);
    }

    fn begin_about(&self, _: u64) {}

    fn advance(&self, bytes: u64) {
        self.0.advance(bytes);
    }
}

/// Progress that is not shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: u64) {}
    fn more(&self, _: u64) {}
    fn begin_about(&self, _: u64) {}
    fn advance(&self, _: u64) {}
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertReport {
    /// What the user should know, one sentence each.
    pub warnings: Vec<String>,
    /// Launches in the store, and those that the filters left out.
    pub kernels: usize,
    /// See [`ConvertReport::kernels`].
    pub left_out: usize,
    /// Damaged trace files that were skipped.
    pub skipped: u64,
    /// Bytes of decompressed trace text.
    pub text_bytes: u64,
    /// Bytes of the trace files as they are stored.
    pub source_bytes: u64,
    /// Bytes of the store.
    pub store_bytes: u64,
}

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
    /// How names of its files end, before an ending of compression: what is a trace in a folder.
    endings: &'static [&'static str],
    /// True for the decompressed start of such a file, and of no file of another format.
    recognise: fn(&[u8]) -> bool,
    import: Import,
}

/// The formats that are understood. Of several traces of one kernel, that whose ending comes last
/// here is taken.
const FORMATS: &[Format] = &[
    Format {
        name: "an Accel-Sim trace, which starts with `-kernel name = …`",
        endings: &[".trace", ".traceg"],
        recognise: |start| accelsim::recognise(start) && !tracez::recognise(start),
        import: accelsim::import,
    },
    Format {
        name: "a `.tracez`, which starts with the same and has a NUL byte after its header",
        endings: &[".tracez"],
        recognise: tracez::recognise,
        import: tracez::import,
    },
    Format {
        name: "a log of NVBit's `mem_trace`, with lines that start with `MEMTRACE: `",
        endings: &[],
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
        let Some(format) = format else { return Err(unrecognised(source.path(), &first)) };
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

/// TOML files that may be given in place of traces. Per kind of file: keys of which it has one at
/// its top, and the option that takes it.
const KINDS: &[(&[&str], &str, &str)] = &[
    (&["mixes", "schemes"], "the plan of a sweep", "gpumodel sweep FILE --out DIR"),
    (&["group_size"], "a queue", "gpumodel analyze --queue FILE"),
    (&["kernels", "kernel", "behaviour"], "a workload model", "synth:FILE in place of a trace"),
    (&["base", "isa", "sm", "clocks", "l1", "l2", "dram"], "a machine", "--machine FILE"),
];

/// The error of a file at `path` that is of no format; `first` is its beginning.
fn unrecognised(path: &Path, first: &TextBlock) -> TraceError {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let start = first.bytes.trim_ascii().split(|&byte| byte == b'\n').next();
    let found = quoted(start.unwrap_or_default().trim_ascii_end());
    TraceError::Text {
        path: path.to_path_buf(),
        line: first.first_line,
        expected: names.join("; or "),
        found: match description(&first.bytes, path).or_else(|| empty(path, first)) {
            Some(words) => format!("{found}: {words}"),
            None => found,
        },
    }
}

/// Why the file at `path` has no text, if it has none.
fn empty(path: &Path, first: &TextBlock) -> Option<String> {
    if !first.bytes.trim_ascii().is_empty() {
        return None;
    }
    let packed = fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
    Some(String::from(match (first.bytes.is_empty(), packed) {
        (false, _) => "the file has blank lines alone",
        (true, true) => "what the file packs is empty",
        (true, false) => "the file is empty",
    }))
}

/// What `text`, the beginning of the file at `path`, is in place of a trace, and what takes
/// it; `None`: it is no TOML.
fn description(text: &[u8], path: &Path) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let table = DeTable::parse(text).ok()?;
    let has = |keys: &[&str]| keys.iter().any(|key| table.get_ref().contains_key(*key));
    if table.get_ref().is_empty() {
        return None;
    }
    let kind = KINDS.iter().find(|(keys, ..)| has(keys));
    Some(match kind {
        Some((_, kind, taker)) => {
            let taker = taker.replace("FILE", &path.display().to_string());
            format!("TOML, {kind}, which belongs to `{taker}`")
        }
        None => String::from("TOML, which is no trace"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{FORMATS, description};

    /// A row of `FORMATS` that took the start of another's files would depend on its place.
    #[test]
    fn the_start_of_a_trace_is_of_one_format() {
        let starts: [&[u8]; 3] =
            [b"\n-kernel name = x\n#text\n", b"-kernel name = x\n\0\x01", b"x\nMEMTRACE: CTX 1\n"];
        assert_eq!(starts.len(), FORMATS.len(), "a start of each format");
        for (index, start) in starts.into_iter().enumerate() {
            let taken: Vec<bool> = FORMATS.iter().map(|format| (format.recognise)(start)).collect();
            let own: Vec<bool> = (0..FORMATS.len()).map(|row| row == index).collect();
            assert_eq!(taken, own, "{}", FORMATS[index].name);
        }
    }

    #[test]
    fn shipped_descriptions_are_recognised() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
        for (folder, words) in [
            ("plans", "the plan of a sweep"),
            ("mixes", "a queue"),
            ("workloads", "`synth:x.toml in place of a trace`"),
            ("gpus", "`--machine x.toml`"),
        ] {
            for entry in std::fs::read_dir(models.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|ending| ending == "toml") {
                    let said =
                        description(&std::fs::read(&path).unwrap(), Path::new("x.toml")).unwrap();
                    assert!(said.contains(words), "{}: {said}", path.display());
                }
            }
        }
    }

    #[test]
    fn other_files_are_described_as_far_as_known() {
        let said = |text: &str| description(text.as_bytes(), Path::new("x"));
        assert_eq!(said("a = 1\n").as_deref(), Some("TOML, which is no trace"));
        assert_eq!((said(""), said("# note\n"), said("-kernel\n")), (None, None, None));
    }
}
