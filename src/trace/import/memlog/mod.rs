//! Text of NVBit's `mem_trace`: accesses alone, of several launches in one file.
//!
//! The log names no registers and none of the instructions between accesses, so that
//! what is made of it is marked as memory-only. Other things it leaves open:
//! * A static instruction is a distinct opcode (and size and PC, where lines have
//!   them), numbered in order of appearance.
//! * There is no mask. Lanes that are off have address 0, so a lane with address 0 is
//!   taken as off, also in shared memory.
//! * `warp` is a hardware slot. In each CTA the slots are warps in ascending order;
//!   where they are more than the CTA has warps, those above follow in the first ones.
//!
//! Records are gathered as those of raw traces are, for all launches at once: a
//! log may mix them.

mod launches;
mod line;
mod parse;

use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::{LineFault, TraceError};
use crate::store::Command;
use crate::store::layout::MOST_STATICS;
use crate::store::records::{Block, Static};
use crate::store::writer::StoreWriter;
use gpumodel_core::isa::Launch;
use gpumodel_core::units::quoted;
use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};

use super::accelsim::RAW_BATCH;
use super::request::{ConvertRequest, Progress};
use super::source::{Source, TextBlock, read_ahead};
use super::warp_records::Merge;
use super::warp_records::{MemoryLimit, NOWHERE, RawBlock, WarpRecords};
use super::{Imported, Outcome};
use crate::filter::CtaSelector;
use crate::store::chunk_writer::{Kernel, MOST_CTA_INSTRUCTIONS};

use launches::{Launches, Logged};
use line::{MARK, SLOTS};
use parse::{Piece, parse};

/// Bytes between the PCs that static instructions without one are given.
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
    request: &ConvertRequest,
    writer: &mut StoreWriter,
    progress: &dyn Progress,
) -> Result<Outcome, TraceError> {
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
    let source = read_ahead(source, first, progress, &mut |blocks| log.take(blocks))?;
    log.end(source.text_bytes, source.file_bytes(), writer)
}

/// One log on its way.
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
                self.open(opening).map_err(|expected| in_file(more(line, expected)))?;
            }
            let place = self.launches.place(head).map_err(|expected| {
                let found = quoted(format!("CTA {}", head.cta).as_bytes());
                in_file(LineFault { line: head.line, expected, found })
            })?;
            records.places.push(place.unwrap_or(NOWHERE));
        }
        for (_, line, opening) in launches {
            self.open(opening).map_err(|expected| in_file(more(line, expected)))?;
        }
        let placed = piece.placed.into_iter();
        let statics = piece.statics.into_iter().zip(placed);
        records.batch.statics = Arc::new(
            statics
                .map(|(one, placed)| match placed {
                    true => one,
                    false => self.counted(one),
                })
                .collect(),
        );
        self.warps.piece(records)?;
        match self.warps.statics() <= MOST_STATICS {
            true => Ok(()),
            false => Err(in_file(more(0, "at most a million distinct instructions"))),
        }
    }

    fn open(&mut self, opening: line::Opening) -> Result<(), &'static str> {
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
        writer: &mut StoreWriter,
    ) -> Result<Outcome, TraceError> {
        self.check()?;
        let (statics, mut merge) = std::mem::take(&mut self.warps).merged()?;
        let all = self.launches.accesses();
        let mut imported = Imported { text_bytes, file_bytes, ..Imported::default() };
        let (mut kernels, mut left_out, mut shares) = (0, Vec::new(), [text_bytes, file_bytes]);
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
            let mut kernel = Kernel::new(writer, launch.grid);
            self.blocks(index, &statics, &mut merge, &mut kernel)?;
            imported.ctas += kernel.end(sizes.0, sizes.1)?;
            kernels += 1;
        }
        let warnings = self.warnings();
        Ok(Outcome::Several { kernels, imported, left_out, warnings })
    }

    /// Packs the thread blocks of a launch.
    fn blocks(
        &mut self,
        index: usize,
        statics: &Arc<Vec<Static>>,
        merge: &mut Merge,
        kernel: &mut Kernel<'_>,
    ) -> Result<(), TraceError> {
        loop {
            let (mut waiting, mut records) = (Vec::new(), 0);
            while records < RAW_BATCH
                && let Some(block) = self.block(index, merge)?
            {
                records += block.records;
                waiting.push(block);
            }
            if waiting.is_empty() {
                return Ok(());
            }
            let none = Arc::default();
            let spelled: Vec<Block> =
                waiting.into_par_iter().map(|block| block.block(statics, &none)).collect();
            for mut block in spelled {
                kernel.number(&mut block);
                kernel.push(block);
            }
            kernel.flush()?;
        }
    }

    /// The next thread block of a launch that is taken.
    fn block(&mut self, index: usize, merge: &mut Merge) -> Result<Option<RawBlock>, TraceError> {
        let Logged { first, pick, launch, .. } = &self.launches.all[index];
        let end = pick.end().min(launch.grid.count());
        while let Some((place, _)) = merge.peek() {
            let cta = place / SLOTS;
            if self.launches.of_cta(cta) != index {
                break;
            }
            if cta - first >= end {
                merge.next()?;
                continue;
            }
            let (block, slots) = gather(merge, cta, launch, launch.grid.position(cta - first))?;
            self.excess += u64::from(slots > launch.warps_per_cta());
            return Ok(Some(block));
        }
        Ok(None)
    }

    /// Something can be made of the log.
    fn check(&self) -> Result<(), TraceError> {
        let path = self.path.display();
        let text = match () {
            () if self.launches.all.is_empty() => {
                format!("{path}: a `mem_trace` log without a launch line")
            }
            () if self.pairs > 0 && self.launches.accesses() == 0 => format!(
                "{path}: no access of this log says its CTA, warp and opcode; {} line(s) are \
                 `0xDATA,0xADDRESS` alone, which no thread can be given",
                self.pairs
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
            (self.others, "line(s) are neither launch nor access and are left out"),
            (self.pairs, "line(s) are `0xDATA,0xADDRESS` alone and are left out"),
            (to_u64(empty), "launch(es) without an access"),
            (
                self.excess,
                "thread block(s) name more slots than they have warps: the rest follow in the first warps",
            ),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        warnings.extend(counts.map(|(count, what)| format!("{path}: {count} {what}")));
        warnings
    }
}

fn more(line: u64, expected: &str) -> LineFault {
    LineFault { line, expected: expected.to_owned(), found: "more".to_owned() }
}

/// `whole` times `count` over `all`.
fn part(whole: u64, count: u64, all: u64) -> u64 {
    let share = u128::from(whole) * u128::from(count) / u128::from(all.max(1));
    u64::try_from(share).unwrap_or(whole)
}

/// The records of the CTA with number `cta`, its slots as warps; how many slots.
fn gather(
    merge: &mut Merge,
    cta: u64,
    launch: &Launch,
    position: Dim3,
) -> Result<(RawBlock, u32), TraceError> {
    let mut warps = Vec::new();
    warps.resize_with(to_usize(launch.warps_per_cta()), Vec::new);
    let (mut records, mut slots, mut last) = (0, 0, None);
    while let Some((place, more)) = merge.peek()
        && place / SLOTS == cta
    {
        records += more;
        if records > MOST_CTA_INSTRUCTIONS {
            return Err(TraceError::Request(format!(
                "thread block {position} has more than {MOST_CTA_INSTRUCTIONS} accesses; log fewer"
            )));
        }
        slots += u32::from(last != Some(place));
        last = Some(place);
        let warp = to_usize((slots - 1) % launch.warps_per_cta());
        warps[warp].extend(merge.next()?.map(|(_, part)| part));
    }
    Ok((RawBlock { position, warps, records }, slots))
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
