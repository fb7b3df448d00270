//! Traces of the Accel-Sim tracer, grouped or raw, of every version.
//!
//! One thread decompresses; blocks of text are parsed in parallel, put together
//! in file order, packed in parallel, and written in file order: the bytes of
//! the store do not depend on the number of threads.

mod digits;
mod grouped;
pub(super) mod header;
mod line;
mod line_cache;
pub(super) mod parse;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{LineFault, TraceError};
use crate::store::Command;
use crate::store::layout::MOST_STATICS;
use gpumodel_core::units::quoted;

use super::source::{Source, TextBlock, read_ahead};
use super::warp_records::{self, MemoryLimit, WarpRecords};
use super::{Conversion, Imported, Progress};
use crate::filter::CtaSelector;
use crate::store::chunk_writer::KernelWriter;
use grouped::{Frames, Numbered};
use header::Header;
use parse::{Dialect, Piece, TextParser};

/// Most fields before a line's own: one published fixture of version 6 has 11.
const MOST_LEADING: usize = 11;
/// True when the start of `text` is a trace of this family.
pub(crate) fn recognise(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"-kernel")
}

/// Imports the trace in `source`, whose first block was read, if the request takes it.
pub(crate) fn import(
    source: Source,
    mut first: TextBlock,
    conversion: &mut Conversion<'_>,
) -> Result<(), TraceError> {
    let path = source.path().to_path_buf();
    let header = header::read(&first.bytes);
    let header = header.map_err(|fault| fault.in_file(&path, first.first_line))?;
    if !conversion.request.filter.takes(&header.launch) {
        conversion.left_out.push(header.launch);
        return Ok(());
    }
    conversion.remark(&path, header.version_remark());
    let progress = conversion.progress;
    let body = &first.bytes[header.bytes..];
    let dialect = dialect(body, &header).map_err(|f| f.in_file(&path, first.first_line))?;
    let mut import = Import::new(&path, dialect, &header, conversion);
    first.bytes.drain(..header.bytes);
    first.first_line += header.lines;
    import.all(source, first, progress)?;
    let imported = import.end()?;
    conversion.add(&path, &imported);
    Ok(())
}

/// The form of the lines, from the first ones after the header.
pub(crate) fn dialect(body: &[u8], header: &Header) -> Result<Dialect, LineFault> {
    let lines = body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let raw = lines
        .clone()
        .find(|line| !line.is_empty() && **line != *b"#")
        .is_some_and(|line| !line.starts_with(b"#"));
    let mut possible = lines.filter(|line| line.first().is_some_and(u8::is_ascii_hexdigit));
    let mut lines = possible.clone().filter(|line| !is_setting(line));
    let leading = possible.find_map(|line| leading(line, header.line_info)).unwrap_or(0);
    if raw && leading < 4 {
        let expected = "`#BEGIN_TB`, or raw lines of CTA x, y, z, warp, PC and mask";
        let found = quoted(lines.next().unwrap_or_default());
        return Err(LineFault::new(header.lines, expected, found));
    }
    let leading = if leading < 4 { 0 } else { leading };
    let (grid, warps_per_cta) = (header.launch.grid, header.launch.warps_per_cta());
    Ok(Dialect { leading, line_info: header.line_info, raw, grid, warps_per_cta })
}

/// True of `key = value`; what an instruction ends in may have an `=` of its own.
fn is_setting(line: &[u8]) -> bool {
    line.windows(3).any(|three| three == b" = ")
}

/// Fields before those of `line` that every version has: the fewest, none or the
/// four of CTA and warp at least, after which it reads as an instruction. The
/// tracer's `TOOL_TRACE_CORE` adds SM and warp slot to the four, and nothing in the
/// file says so.
fn leading(line: &[u8], line_info: bool) -> Option<usize> {
    let starts = line.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(starts).take(1 + MOST_LEADING).enumerate();
    let number = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let numbered = line.split(|byte| *byte == b' ').take(4).all(number);
    let mut possible = starts.filter(|(fields, _)| *fields == 0 || *fields >= 4 && numbered);
    let found = possible.find(|&(_, start)| line::parse(&line[start..], line_info).is_ok());
    found.map(|(fields, _)| fields)
}

/// A raw trace has no frame.
fn only_lines(piece: &Piece) -> Result<(), LineFault> {
    let Some(mark) = piece.marks.first() else { return Ok(()) };
    let expected = "only instruction lines in a raw trace";
    Err(LineFault::new(mark.line, expected, format!("{:?}", mark.mark)))
}

/// Fails unless `few`: there are too many distinct instructions.
fn check_statics(few: bool) -> Result<(), LineFault> {
    let expected = "at most a million distinct instructions";
    few.then_some(()).ok_or_else(|| LineFault::new(0, expected, "more"))
}

/// The import of one file.
pub(crate) struct Import<'w> {
    path: PathBuf,
    parser: TextParser,
    kernel: KernelWriter<'w>,
    frames: Frames,
    warps: WarpRecords,
    selector: CtaSelector,
    pub(crate) imported: Imported,
    last_line: u64,
}

impl<'w> Import<'w> {
    /// Starts the kernel of `header` in `writer`.
    pub(crate) fn new(
        path: &Path,
        dialect: Dialect,
        header: &Header,
        conversion: &'w mut Conversion<'_>,
    ) -> Self {
        let (launch, request) = (&header.launch, conversion.request);
        let writer = &mut conversion.writer;
        let index = writer.kernel(launch, &header.text);
        writer.command(Command::Kernel(index));
        let limit = MemoryLimit::new(&request.output, request.memory());
        let selector = || CtaSelector::new(request.filter.ctas.clone());
        Self {
            path: path.to_path_buf(),
            parser: TextParser::new(dialect),
            kernel: KernelWriter::new(writer, launch.grid),
            frames: Frames::new(dialect),
            warps: WarpRecords::new(header.tracer, launch.warps_per_cta(), limit, selector()),
            selector: selector(),
            imported: Imported::default(),
            last_line: 1,
        }
    }

    /// Reads, parses and takes everything.
    fn all(
        &mut self,
        source: Source,
        first: TextBlock,
        progress: &dyn Progress,
    ) -> Result<(), TraceError> {
        let source = read_ahead(source, first, progress, &mut |blocks| self.take(blocks))?;
        self.imported.text_bytes = source.text_bytes;
        self.imported.file_bytes = source.file_bytes();
        Ok(())
    }

    /// Parses `blocks` in parallel and takes them in order.
    fn take(&mut self, blocks: &[TextBlock]) -> Result<(), TraceError> {
        let parser = &self.parser;
        let pieces: Vec<Result<Piece, LineFault>> =
            blocks.par_iter().map(|block| parser.parse(&block.bytes)).collect();
        for (piece, block) in pieces.into_iter().zip(blocks) {
            let first = block.first_line;
            let in_file = |fault: LineFault| fault.in_file(&self.path, first);
            let piece = piece.map_err(in_file)?;
            self.last_line = first + piece.lines;
            if self.parser.dialect.raw {
                self.imported.note(&piece);
                only_lines(&piece).map_err(in_file)?;
                self.warps.piece(&piece)?;
                check_statics(self.warps.statics() <= MOST_STATICS).map_err(in_file)?;
            } else {
                self.grouped(piece).map_err(|fault| fault.in_file(&self.path, first))?;
            }
        }
        self.flush()
    }

    /// Packs and writes what is complete.
    pub(crate) fn flush(&mut self) -> Result<(), TraceError> {
        self.kernel.flush()
    }

    /// Takes the next piece of a grouped trace.
    pub(crate) fn grouped(&mut self, piece: Piece) -> Result<(), LineFault> {
        self.imported.note(&piece);
        let some = !self.selector.all();
        // Of some blocks only their own instructions are numbered.
        let numbers = if some { Some(Arc::default()) } else { self.kernel.numbers(&piece.batch) };
        check_statics(numbers.is_some())?;
        let numbers = numbers.unwrap_or_default();
        let numbered = Numbered { batch: Arc::new(piece.batch), numbers };
        let mut blocks = Vec::new();
        self.frames.piece(&numbered, &piece.marks, |block| blocks.push(block))?;
        for mut block in blocks {
            if let Some(place) = parse::place_in_cluster(&block.note) {
                self.kernel.in_cluster(place);
            }
            if some {
                let linear = block.position.linear(self.parser.dialect.grid);
                if block.is_empty() || !self.selector.block(linear) {
                    continue;
                }
                self.kernel.number(&mut block);
                check_statics(self.kernel.statics() <= MOST_STATICS)?;
            }
            self.imported.notes += u64::from(!block.note.is_empty());
            self.kernel.push(block);
        }
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn end(mut self) -> Result<Imported, TraceError> {
        self.frames.end().map_err(|fault| fault.in_file(&self.path, self.last_line))?;
        self.raw()?;
        let Imported { text_bytes, file_bytes, .. } = self.imported;
        let ctas = self.kernel.end(text_bytes, file_bytes)?;
        Ok(Imported { ctas, ..self.imported })
    }

    /// Takes the blocks of a raw trace, which has been read to its end.
    fn raw(&mut self) -> Result<(), TraceError> {
        let grid = self.parser.dialect.grid;
        let named = |error| match error {
            TraceError::Request(text) => {
                TraceError::Request(format!("{}: {text}", self.path.display()))
            }
            other => other,
        };
        let mut blocks = std::mem::take(&mut self.warps).blocks(grid)?;
        let numbers = self.kernel.numbers(&blocks.statics);
        let numbers = numbers.expect("no more statics than the pieces had");
        let statics = Arc::clone(&blocks.statics.statics);
        let next = || blocks.next().map_err(named);
        warp_records::pack(&mut self.kernel, &statics, Some(&numbers), next)
    }
}
