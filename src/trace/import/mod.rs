//! Foreign traces to a store. To add a format: one file, and one row in
//! [`FORMATS`].
//!
//! Formats and compressions are found from the content, never from names.

mod accelsim;
mod container;
mod expand;
mod grouped;
mod header;
mod kernel;
mod line;
mod list;
mod memo;
mod piece;
mod raw;
mod request;
mod source;
mod text;
mod tracez;

use std::fs;
use std::path::Path;

use super::error::{TraceError, quoted};
use super::store::Command;
use super::writer::StoreWriter;

use accelsim::Imported;
use list::{Plan, Step};
pub(super) use request::Filter;
use source::{Source, TextBlock};

pub use request::{ConvertReport, ConvertRequest, KernelIds, Progress, Silent};
pub use tracez::expand;

/// Imports one trace file; `None` when the filter leaves its kernel out.
type Import = fn(
    Source,
    TextBlock,
    &Filter,
    &mut StoreWriter,
    &dyn Progress,
) -> Result<Option<Imported>, TraceError>;

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
        name: "a `.tracez`, which starts with the same and has a NUL byte after its header",
        recognise: tracez::recognise,
        import: tracez::import,
    },
    Format {
        name: "an Accel-Sim trace, which starts with `-kernel name = …`",
        recognise: accelsim::recognise,
        import: accelsim::import,
    },
];

/// Converts the traces of `request` to one store.
///
/// Memory is bounded by the largest thread block (for raw traces by all their
/// records in short form), not by the text. The store's bytes do not depend on
/// the number of threads. On an error nothing is left behind.
///
/// # Errors
/// [`TraceError`], with file and line, for anything that cannot be read, is not
/// what the formats say, or leaves nothing to convert.
pub fn convert(
    request: &ConvertRequest,
    progress: &dyn Progress,
) -> Result<ConvertReport, TraceError> {
    let filter = Filter::new(request)?;
    let plan = Plan::new(&request.inputs)?;
    progress.begin(plan.steps.iter().map(size).sum());
    let mut writer = StoreWriter::create(&request.output)?;
    let mut report = ConvertReport { warnings: plan.warnings, ..ConvertReport::default() };
    for step in &plan.steps {
        match step {
            Step::Copy { destination, bytes } => {
                let (destination, bytes) = (*destination, *bytes);
                writer.command(Command::MemcpyHtoD { destination, bytes });
            }
            Step::Trace(path) => match import(path, &filter, &mut writer, progress)? {
                Some(imported) => report.add(path, &imported),
                None => report.left_out += 1,
            },
        }
    }
    if report.kernels == 0 {
        let left_out = report.left_out;
        let text = format!("nothing to convert: no kernel was chosen, {left_out} left out");
        return Err(TraceError::Request(text));
    }
    report.store_bytes = writer.finish()?;
    Ok(report)
}

fn size(step: &Step) -> u64 {
    match step {
        Step::Copy { .. } => 0,
        Step::Trace(path) => fs::metadata(path).map_or(0, |metadata| metadata.len()),
    }
}

fn import(
    path: &Path,
    filter: &Filter,
    writer: &mut StoreWriter,
    progress: &dyn Progress,
) -> Result<Option<Imported>, TraceError> {
    let mut source = Source::open(path)?;
    let first = source.block()?;
    let first = first.unwrap_or(TextBlock { bytes: Vec::new(), first_line: 1 });
    let format = FORMATS.iter().find(|format| (format.recognise)(&first.bytes));
    let Some(format) = format else {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        let start = first.bytes.trim_ascii().split(|&byte| byte == b'\n').next();
        return Err(TraceError::Text {
            path: path.to_path_buf(),
            line: first.first_line,
            expected: names.join(" or "),
            found: quoted(start.unwrap_or_default().trim_ascii_end()),
        });
    };
    (format.import)(source, first, filter, writer, progress)
}

impl ConvertReport {
    fn add(&mut self, path: &Path, imported: &Imported) {
        self.kernels += 1;
        self.text_bytes += imported.text_bytes;
        self.source_bytes += imported.file_bytes;
        let path = path.display();
        if imported.tails > 0 {
            self.warnings.push(format!(
                "{path}: {} line(s) end in fields that are not known; kept as they stand",
                imported.tails
            ));
        }
        if imported.open > 0 {
            self.warnings.push(format!(
                "{path}: {} line(s) have TMA addresses (modes 3 and 4) or are of `GMMA`: kept as \
                 text, not modelled",
                imported.open
            ));
        }
        if imported.ctas == 0 {
            self.warnings.push(format!("{path}: no instruction in the whole file"));
        }
        if imported.notes > 0 {
            self.warnings.push(format!(
                "{path}: {} thread block(s) have further lines; kept as they stand",
                imported.notes
            ));
        }
    }
}
