//! Trace records between parsing and packing: flat arrays per parsed piece of
//! text, and CTAs as ranges of them.

use std::ops::Range;
use std::sync::Arc;

use gpumodel_core::isa::{AddressMode, MOST_IMMEDIATES, Register};
use gpumodel_core::units::{Dim3, to_usize};

/// A static instruction as parsed, its opcode still text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Static {
    pub(super) pc: u64,
    pub(super) opcode: Box<str>,
    pub(super) destinations: Box<[Register]>,
    pub(super) sources: Box<[Register]>,
    pub(super) width: u8,
    pub(super) immediates: Box<[i64]>,
    pub(super) line: Option<u32>,
}

/// One dynamic instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Index into the batch's statics; above them, for packing, the kernel's.
    pub(super) number: u32,
    pub(super) mask: u32,
}

/// The addresses of one dynamic memory instruction. `List` and `Delta` have
/// their differences in the batch, one per further active lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) mode: AddressMode,
    pub(super) base: u64,
    /// For `Stride` the step; else 0.
    pub(super) stride: i64,
    /// Index of the first difference.
    pub(super) deltas: u32,
    pub(super) delta_count: u8,
}

/// Records of one piece of text, in its order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) statics: Arc<Vec<Static>>,
    /// Statics in order of first appearance.
    pub(super) order: Vec<u32>,
    pub(super) records: Vec<Record>,
    /// One per record whose static has a width.
    pub(super) accesses: Vec<Lines>,
    pub(super) deltas: Vec<i64>,
    /// Record index and line tail, ascending.
    pub(super) tails: Vec<(u32, Box<[u8]>)>,
}

impl Batch {
    /// How many records are kept as text from their sources on.
    pub(super) fn open(&self) -> usize {
        let open: Vec<bool> =
            self.statics.iter().map(|one| one.immediates.len() > MOST_IMMEDIATES).collect();
        let is_open = |at: u32| open[to_usize(self.records[to_usize(at)].number)];
        match open.contains(&true) {
            true => self.tails.iter().filter(|(at, _)| is_open(*at)).count(),
            false => 0,
        }
    }

    /// Bytes held by its records, about.
    pub(super) fn bytes(&self) -> usize {
        let tails = self.tails.iter().map(|tail| size_of_val(tail) + tail.1.len());
        let flat = size_of_val(&*self.records) + size_of_val(&*self.accesses);
        flat + size_of_val(&*self.deltas) + tails.sum::<usize>()
    }

    /// The differences of `access`.
    pub(super) fn deltas(&self, access: &Lines) -> &[i64] {
        let from = gpumodel_core::units::to_usize(access.deltas);
        &self.deltas[from..from + usize::from(access.delta_count)]
    }
}

/// A range of a batch that belongs to one warp.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) batch: Arc<Batch>,
    /// From the batch's statics to the kernel's.
    pub(super) numbers: Arc<Vec<u32>>,
    pub(super) records: Range<usize>,
    /// Index of the first access of the range.
    pub(super) access: usize,
}

/// One CTA: per warp its pieces in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) position: Dim3,
    pub(super) warps: Vec<Vec<Piece>>,
    /// Further lines of its frame, verbatim, LF between.
    pub(super) note: Vec<u8>,
}

impl Block {
    /// It says nothing: no instruction and no note.
    pub(super) fn is_empty(&self) -> bool {
        self.instructions() == 0 && self.note.is_empty()
    }

    /// Warp instructions.
    pub(super) fn instructions(&self) -> usize {
        self.warps.iter().flatten().map(|piece| piece.records.len()).sum()
    }
}
