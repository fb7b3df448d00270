//! Text of NVBit's `mem_trace`: accesses only, of several launches in one file.
//!
//! The log names no registers and none of the instructions between accesses, so that
//! launches are marked as memory-only. Other assumptions:
//! * A static instruction is a distinct opcode (and size and PC, where lines have
//!   them), numbered in order of appearance.
//! * There is no mask. Lanes that are off have address 0, so a lane with address 0 is
//!   taken as off, also in shared memory.
//! * `warp` is a hardware slot. In each CTA the slots are warps in ascending order;
//!   slots beyond the CTA's warps are added to the first warps.
//!
//! Records are gathered as those of raw traces are, for all launches at once: a
//! log may mix them.

mod launches;
mod parse;

use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::{LineFault, TraceError};
use crate::store::Command;
use crate::store::layout::MOST_STATICS;
use crate::store::records::Static;
use gpumodel_core::units::{counted, quoted, to_u32, to_u64, to_usize};

use super::Conversion;
use super::ConvertRequest;
use super::source::{Source, TextBlock, read_ahead};
use super::warp_records::{self, MemoryLimit, Merge, NOWHERE, RawBlock, WarpRecords};
use crate::filter::CtaSelector;
use crate::store::chunk_writer::KernelWriter;

use launches::{Launches, Logged};
use parse::{MARK, Opening, Piece, SLOTS, parse};

/// Bytes between the PCs of static instructions whose lines have none.
const PC_STEP: u64 = 0x10;

/// True when a line in `text` is one of the tool.
pub(super) fn recognise(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').any(|line| line.starts_with(MARK))
}

/// Imports the log in `source`, whose first block was read: those of its launches that
/// the request takes.
pub(super) fn import(
    source: Source,
    first: TextBlock,
    conversion: &mut Conversion<'_>,
) -> Result<(), TraceError> {
    let request = conversion.request;
    let limit = MemoryLimit::new(&request.output, request.memory());
    let mut log = Log {
        path: source.path().to_path_buf(),
        request,
        launches: Launches::default(),
        warps: WarpRecords::new(0, to_u32(SLOTS), limit, CtaSelector::default()),
        counters: FxHashMap::default(),
        others: 0,
        pairs: 0,
        excess: 0,
    };
    let source = read_ahead(source, first, conversion.progress, &mut |blocks| log.take(blocks))?;
    log.end(source.text_bytes, source.file_bytes(), conversion)
}

/// The import of one log.
struct Log<'r> {
    path: PathBuf,
    request: &'r ConvertRequest,
    launches: Launches,
    warps: WarpRecords,
    /// The PCs of static instructions without one.
    counters: FxHashMap<Static, u64>,
    others: u64,
    pairs: u64,
    /// CTAs with more slots than warps.
    excess: u64,
}

impl Log<'_> {
    /// Parses `blocks` in parallel and takes them in order.
    fn take(&mut self, blocks: &[TextBlock]) -> Result<(), TraceError> {
        let pieces: Vec<Result<Piece, LineFault>> =
            blocks.par_iter().map(|block| parse(&block.bytes)).collect();
        for (piece, block) in pieces.into_iter().zip(blocks) {
            let path = self.path.clone();
            let in_file = |fault: LineFault| fault.in_file(&path, block.first_line);
            self.piece(piece.map_err(in_file)?, &in_file)?;
        }
        Ok(())
    }

    fn piece(
        &mut self,
        mut piece: Piece,
        in_file: &dyn Fn(LineFault) -> TraceError,
    ) -> Result<(), TraceError> {
        self.others += piece.others;
        self.pairs += piece.pairs;
        let records = &mut piece.records;
        let mut launches = piece.launches.into_iter().peekable();
        for (index, head) in piece.heads.iter().enumerate() {
            while let Some((_, line, opening)) = launches.next_if(|next| next.0 <= index) {
                self.open(opening)
                    .map_err(|expected| in_file(LineFault::new(line, expected, "more")))?;
            }
            let place = self.launches.place(head).map_err(|expected| {
                let found = quoted(format!("CTA {}", head.cta).as_bytes());
                in_file(LineFault::new(head.line, expected, found))
            })?;
            records.places.push(place.unwrap_or(NOWHERE));
        }
        for (_, line, opening) in launches {
            self.open(opening)
                .map_err(|expected| in_file(LineFault::new(line, expected, "more")))?;
        }
        let placed = piece.placed.into_iter();
        let statics = piece.statics.into_iter().zip(placed);
        let statics = statics.map(|(one, placed)| if placed { one } else { self.counted(one) });
        records.batch.statics = Arc::new(statics.collect());
        records.batch.order = (0..to_u32(records.batch.statics.len())).collect();
        self.warps.piece(records)?;
        match self.warps.statics() <= MOST_STATICS {
            true => Ok(()),
            false => {
                Err(in_file(LineFault::new(0, "at most a million distinct instructions", "more")))
            }
        }
    }

    fn open(&mut self, opening: Opening) -> Result<(), &'static str> {
        let filter = &self.request.filter;
        self.launches.open(
            opening,
            |launch| filter.takes(launch),
            CtaSelector::new(filter.ctas.clone()),
        )
    }

    /// `one` with a PC by the order of appearance in the log.
    fn counted(&mut self, mut one: Static) -> Static {
        let next = to_u64(self.counters.len()) * PC_STEP;
        one.pc = *self.counters.entry(one.clone()).or_insert(next);
        one
    }

    /// Writes all launches.
    fn end(
        mut self,
        text_bytes: u64,
        file_bytes: u64,
        conversion: &mut Conversion<'_>,
    ) -> Result<(), TraceError> {
        self.check()?;
        let (statics, mut merge) = std::mem::take(&mut self.warps).merged()?;
        let all = self.launches.accesses();
        let Conversion { writer, report, left_out, ctas, .. } = conversion;
        report.text_bytes += text_bytes;
        report.source_bytes += file_bytes;
        let mut shares = [text_bytes, file_bytes];
        for index in 0..self.launches.all.len() {
            let one = &self.launches.all[index];
            let launch = one.launch.clone();
            if !one.taken {
                left_out.push(launch);
                continue;
            }
            // Of the log's bytes each launch has its accesses' share, the last one the rest.
            let last = !self.launches.all[index + 1..].iter().any(|one| one.taken);
            let share = |whole, left: &mut u64| {
                let part = if last { *left } else { part(whole, one.accesses, all).min(*left) };
                *left -= part;
                part
            };
            let [text, file] = &mut shares;
            let sizes = (share(text_bytes, text), share(file_bytes, file));
            let number = writer.kernel(&launch, &one.text);
            writer.command(Command::Kernel(number));
            writer.memory_only(number);
            let mut kernel = KernelWriter::new(writer, launch.grid);
            warp_records::pack(&mut kernel, &statics, None, || self.block(index, &mut merge))?;
            *ctas += kernel.end(sizes.0, sizes.1)?;
            report.kernels += 1;
        }
        report.warnings.extend(self.warnings());
        Ok(())
    }

    /// The next thread block of a launch that is taken.
    fn block(&mut self, index: usize, merge: &mut Merge) -> Result<Option<RawBlock>, TraceError> {
        let Logged { first, selector, launch, .. } = &self.launches.all[index];
        let end = selector.end().min(launch.grid.count());
        while let Some((place, _)) = merge.peek() {
            let cta = place / SLOTS;
            if self.launches.of_cta(cta) != index {
                break;
            }
            if cta - first >= end {
                merge.next()?;
                continue;
            }
            let (position, warps) = (launch.grid.position(cta - first), launch.warps_per_cta());
            let places = cta * SLOTS..(cta + 1) * SLOTS;
            let (mut slots, mut last) = (0, None);
            let warp_of = |place| {
                slots += u32::from(last.replace(place) != Some(place));
                to_usize((slots - 1) % warps)
            };
            let block = RawBlock::take(merge, position, warps, places, usize::MAX, warp_of)?;
            self.excess += u64::from(slots > warps);
            return Ok(Some(block));
        }
        Ok(None)
    }

    /// Fails when the log has no launch or no access.
    fn check(&self) -> Result<(), TraceError> {
        let path = self.path.display();
        let text = match () {
            () if self.launches.all.is_empty() => {
                format!("{path}: a `mem_trace` log without a launch line")
            }
            () if self.pairs > 0 && self.launches.accesses() == 0 => format!(
                "{path}: no access of this log says its CTA, warp and opcode; it has {} of \
                 `0xDATA,0xADDRESS` alone, which belong to no thread",
                counted(self.pairs, "line")
            ),
            () => return Ok(()),
        };
        Err(TraceError::Request(text))
    }

    fn warnings(&self) -> Vec<String> {
        let path = self.path.display();
        let mut warnings = vec![format!(
            "{path}: a `mem_trace` log has accesses alone: memory-only, caches and DRAM are \
             modelled, IPC is not; a lane with address 0 is taken as off, a warp is a slot of its SM"
        )];
        let taken = self.launches.all.iter().filter(|one| one.taken);
        let empty = taken.filter(|one| one.accesses == 0).count();
        let counts = [
            (self.others, "line", "left out: neither launch nor access"),
            (self.pairs, "line", "left out: `0xDATA,0xADDRESS` alone"),
            (to_u64(empty), "launch", "without an access"),
            (
                self.excess,
                "thread block",
                "with more slots than warps: the rest follow in the first warps",
            ),
        ];
        let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
        let warning = |(count, thing, what)| format!("{path}: {} {what}", counted(count, thing));
        warnings.extend(counts.map(warning));
        warnings
    }
}

/// `whole` times `count` over `all`.
fn part(whole: u64, count: u64, all: u64) -> u64 {
    let share = u128::from(whole) * u128::from(count) / u128::from(all.max(1));
    u64::try_from(share).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::{part, recognise};

    #[test]
    fn a_log_is_known_by_a_line_of_the_tool() {
        assert!(recognise(b"app says hello\nMEMTRACE: CTX 0x1 - LAUNCH"));
        assert!(!recognise(b"the tool writes MEMTRACE: CTX\n"));
    }

    #[test]
    fn parts_of_a_whole_never_overflow() {
        assert_eq!(part(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
        assert_eq!((part(10, 1, 3), part(10, 0, 0)), (3, 0));
    }
}
