//! Traces of the Accel-Sim tracer, grouped or raw, of every version.
//!
//! One thread decompresses; blocks of text are parsed in parallel, put together
//! in file order, packed in parallel, and written in file order: the bytes of
//! the store do not depend on the number of threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::prelude::*;

use crate::trace::error::{TraceError, quoted};
use crate::trace::layout::MOST_STATICS;
use crate::trace::store::Command;
use crate::trace::writer::StoreWriter;
use crate::units::to_u64;

use super::grouped::{Frames, Numbered};
use super::header::{self, Header};
use super::kernel::Kernel;
use super::line;
use super::piece::{Dialect, Piece, parse};
use super::raw::Warps;
use super::request::{Filter, Progress};
use super::source::{Source, TextBlock};
use super::text::Fault;

/// Blocks that wait between the reader and the parsers, per thread.
const WAITING: usize = 1;
/// Most fields before a line's own: one published fixture of version 6 has 11.
const MOST_LEADING: usize = 11;
/// Blocks of a raw trace that are packed at once, in warp instructions.
const RAW_BATCH: usize = 1 << 19;

/// What one file adds to the report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Imported {
    pub(super) text_bytes: u64,
    pub(super) file_bytes: u64,
    /// Lines with unknown tails, and unknown lines of thread blocks.
    pub(super) tails: u64,
    /// Lines that are kept as text from their sources on.
    pub(super) open: u64,
    pub(super) notes: u64,
    /// Thread blocks with an instruction.
    pub(super) ctas: u64,
}

/// True when the start of `text` is a trace of this family.
pub(super) fn recognise(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"-kernel")
}

/// Imports the trace in `source`, whose first block was read; `None` when
/// `filter` leaves the kernel out.
pub(super) fn import(
    source: Source,
    first: TextBlock,
    filter: &Filter,
    writer: &mut StoreWriter,
    progress: &dyn Progress,
) -> Result<Option<Imported>, TraceError> {
    let path = source.path().to_path_buf();
    let header = header::read(&first.bytes);
    let header = header.map_err(|fault| fault.in_file(&path, first.first_line))?;
    if !filter.takes(&header.launch) {
        return Ok(None);
    }
    let body = &first.bytes[header.bytes..];
    let dialect = dialect(body, &header).map_err(|f| f.in_file(&path, first.first_line))?;
    let mut import = Import::new(&path, dialect, &header, writer);
    let rest = TextBlock { bytes: body.to_vec(), first_line: first.first_line + header.lines };
    import.all(source, rest, progress)?;
    import.end().map(Some)
}

/// The form of the lines, from the first ones after the header.
pub(super) fn dialect(body: &[u8], header: &Header) -> Result<Dialect, Fault> {
    let mut lines = body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let raw = lines
        .clone()
        .find(|line| !line.is_empty() && **line != *b"#")
        .is_some_and(|line| !line.starts_with(b"#"));
    let instruction =
        lines.find(|l| l.first().is_some_and(u8::is_ascii_hexdigit) && !l.contains(&b'='));
    let leading = instruction.and_then(|line| leading(line, header.line_info)).unwrap_or(0);
    if raw && leading < 4 {
        let expected = "`#BEGIN_TB`, or raw lines of CTA x, y, z, warp, PC and mask".to_owned();
        let found = quoted(instruction.unwrap_or_default());
        return Err(Fault { line: header.lines, expected, found });
    }
    let leading = if leading < 4 { 0 } else { leading };
    let (grid, warps_per_cta) = (header.launch.grid, header.launch.warps_per_cta());
    Ok(Dialect { leading, line_info: header.line_info, raw, grid, warps_per_cta })
}

/// Fields before those of `line` that every version has: the fewest, none or the
/// four of CTA and warp at least, after which it reads as an instruction. The
/// tracer's `TOOL_TRACE_CORE` adds SM and warp slot to the four, and nothing in the
/// file says so.
fn leading(line: &[u8], line_info: bool) -> Option<usize> {
    let starts = line.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(starts).take(1 + MOST_LEADING).enumerate();
    let mut possible = starts.filter(|(fields, _)| *fields == 0 || *fields >= 4);
    let found = possible.find(|&(_, start)| line::parse(&line[start..], line_info).is_ok());
    found.map(|(fields, _)| fields)
}

/// One file on its way.
pub(super) struct Import<'w> {
    path: PathBuf,
    dialect: Dialect,
    kernel: Kernel<'w>,
    frames: Frames,
    warps: Warps,
    pub(super) imported: Imported,
    last_line: u64,
}

type Message = Result<(TextBlock, u64), TraceError>;

impl<'w> Import<'w> {
    /// Starts the kernel of `header` in `writer`.
    pub(super) fn new(
        path: &Path,
        dialect: Dialect,
        header: &Header,
        writer: &'w mut StoreWriter,
    ) -> Self {
        let launch = &header.launch;
        let index = writer.kernel(launch, &header.text);
        writer.command(Command::Kernel(index));
        Self {
            path: path.to_path_buf(),
            dialect,
            kernel: Kernel::new(writer, launch.grid),
            frames: Frames::new(dialect),
            warps: Warps::new(header.tracer),
            imported: Imported::default(),
            last_line: 1,
        }
    }

    /// Reads, parses and takes everything.
    fn all(
        &mut self,
        mut source: Source,
        first: TextBlock,
        progress: &dyn Progress,
    ) -> Result<(), TraceError> {
        let threads = rayon::current_num_threads();
        self.take(&[first])?;
        if !source.ended() {
            source = std::thread::scope(|scope| {
                let (send, receive) = sync_channel::<Message>(threads * WAITING);
                let reader = scope.spawn(move || {
                    loop {
                        let message = match source.block() {
                            Ok(None) => return source,
                            Ok(Some(block)) => Ok((block, source.advanced())),
                            Err(error) => Err(error),
                        };
                        let over = message.is_err();
                        // A closed channel means that parsing failed.
                        if send.send(message).is_err() || over {
                            return source;
                        }
                    }
                });
                let taken = self.receive(&receive, threads, progress);
                drop(receive);
                let source = reader.join().expect("reading does not panic");
                taken.map(|()| source)
            })?;
        }
        progress.advance(source.advanced());
        self.imported.text_bytes = source.text_bytes;
        self.imported.file_bytes = source.file_bytes;
        Ok(())
    }

    fn receive(
        &mut self,
        blocks: &Receiver<Message>,
        threads: usize,
        progress: &dyn Progress,
    ) -> Result<(), TraceError> {
        loop {
            let group: Result<Vec<(TextBlock, u64)>, TraceError> =
                blocks.iter().take(threads).collect();
            let (group, read): (Vec<TextBlock>, Vec<u64>) = group?.into_iter().unzip();
            if group.is_empty() {
                return Ok(());
            }
            self.take(&group)?;
            progress.advance(read.iter().sum());
        }
    }

    /// Parses `blocks` in parallel and takes them in order.
    fn take(&mut self, blocks: &[TextBlock]) -> Result<(), TraceError> {
        let dialect = self.dialect;
        let pieces: Vec<Result<Piece, Fault>> =
            blocks.par_iter().map(|block| parse(&block.bytes, &dialect)).collect();
        for (piece, block) in pieces.into_iter().zip(blocks) {
            let first = block.first_line;
            let taken = piece.and_then(|piece| {
                self.last_line = first + piece.lines;
                self.piece(piece)
            });
            taken.map_err(|fault| fault.in_file(&self.path, first))?;
        }
        self.flush()
    }

    /// Packs and writes what is complete.
    pub(super) fn flush(&mut self) -> Result<(), TraceError> {
        self.kernel.flush()
    }

    /// Takes the next piece.
    pub(super) fn piece(&mut self, piece: Piece) -> Result<(), Fault> {
        let open = to_u64(piece.batch.open());
        self.imported.tails += to_u64(piece.batch.tails.len()) - open;
        self.imported.open += open;
        let fault = |line, expected: &str, found: &str| Fault {
            line,
            expected: expected.to_owned(),
            found: found.to_owned(),
        };
        if self.dialect.raw {
            if let Some(mark) = piece.marks.first() {
                let found = format!("{:?}", mark.mark);
                return Err(fault(mark.line, "only instruction lines in a raw trace", &found));
            }
            self.warps.piece(&piece);
            let few = self.warps.statics() <= MOST_STATICS;
            return few
                .then_some(())
                .ok_or_else(|| fault(0, "at most a million distinct instructions", "more"));
        }
        let numbers = self.kernel.numbers(&piece.batch);
        let numbers =
            numbers.ok_or_else(|| fault(0, "at most a million distinct instructions", "more"))?;
        let numbered = Numbered { batch: Arc::new(piece.batch), numbers };
        let (kernel, notes) = (&mut self.kernel, &mut self.imported.notes);
        self.frames.piece(&numbered, &piece.marks, |block| {
            *notes += u64::from(!block.note.is_empty());
            kernel.push(block);
        })
    }

    /// Writes what is left.
    pub(super) fn end(mut self) -> Result<Imported, TraceError> {
        self.frames.end().map_err(|fault| fault.in_file(&self.path, self.last_line))?;
        let mut waiting = 0;
        let Dialect { grid, warps_per_cta, .. } = self.dialect;
        let blocks = self.warps.blocks(grid, warps_per_cta);
        let numbers = self.kernel.numbers(&blocks.statics());
        let numbers = numbers.expect("no more statics than the pieces had");
        for block in blocks {
            waiting += block.instructions();
            self.kernel.push(block.numbered(&numbers));
            if waiting > RAW_BATCH {
                self.kernel.flush()?;
                waiting = 0;
            }
        }
        let Imported { text_bytes, file_bytes, .. } = self.imported;
        let ctas = self.kernel.end(text_bytes, file_bytes)?;
        Ok(Imported { ctas, ..self.imported })
    }
}
