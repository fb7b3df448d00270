//! Trace records between parsing and packing: flat arrays per parsed piece of
//! text, and CTAs as ranges of them.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpumodel_core::isa::{Access, AddressMode, ControlBits, MOST_IMMEDIATES, Register};
use gpumodel_core::units::{Dim3, to_u32, to_u64, to_usize};

use super::varint::low_byte;

/// A static instruction as parsed, its opcode still text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Static {
    pub(crate) pc: u64,
    pub(crate) opcode: Box<str>,
    pub(crate) destinations: Box<[Register]>,
    pub(crate) sources: Box<[Register]>,
    pub(crate) width: u8,
    pub(crate) immediates: Box<[i64]>,
    pub(crate) line: Option<u32>,
    pub(crate) control: Option<ControlBits>,
}

/// One dynamic instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Index into the batch's statics; above them, for packing, the kernel's.
    pub(crate) number: u32,
    pub(crate) mask: u32,
}

/// The addresses of one dynamic memory instruction. `List` and `Delta` have
/// their differences in the batch, one per further active lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressList {
    pub(crate) mode: AddressMode,
    pub(crate) base: u64,
    /// For `Stride` the step; else 0.
    pub(crate) stride: i64,
    /// Index of the first difference.
    pub(crate) deltas: u32,
    pub(crate) delta_count: u8,
}

impl AddressList {
    /// The addresses of `access`; differences go to `deltas`.
    pub(crate) fn of(access: &Access, deltas: &mut Vec<i64>) -> Self {
        let (first, mut last) = (deltas.len(), access.base);
        if access.mode != AddressMode::Stride {
            for (_, address) in access.active().skip(1) {
                deltas.push(address.wrapping_sub(last).cast_signed());
                last = address;
            }
        }
        let delta_count = low_byte(to_u64(deltas.len() - first));
        let Access { mode, base, stride, .. } = *access;
        Self { mode, base, stride, deltas: to_u32(first), delta_count }
    }
}

/// Records of one piece of text, in its order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) statics: Arc<Vec<Static>>,
    /// Statics in order of first appearance.
    pub(crate) order: Vec<u32>,
    pub(crate) records: Vec<Record>,
    /// One per record whose static has a width.
    pub(crate) accesses: Vec<AddressList>,
    pub(crate) deltas: Vec<i64>,
    /// Record index, ascending, and number of its line's tail in `texts`.
    pub(crate) tails: Vec<(u32, u32)>,
    pub(crate) texts: Texts,
    /// Where its memory goes when it is not needed any more.
    spares: Option<Arc<Spares>>,
}

/// The memory of batches that are gone, empty: taking it again costs less than asking the
/// system for pages.
#[derive(Debug, Default)]
pub(crate) struct Spares(Mutex<Vec<Batch>>);

impl Spares {
    fn all(&self) -> MutexGuard<'_, Vec<Batch>> {
        // Only pushed to and popped from: whole even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty batch whose memory comes back here.
    pub(crate) fn batch(self: &Arc<Self>) -> Batch {
        let mut batch = self.all().pop().unwrap_or_default();
        batch.spares = Some(Arc::clone(self));
        batch
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let Some(spares) = self.spares.take() else { return };
        let mut empty = std::mem::take(self);
        empty.statics = Arc::default();
        empty.order.clear();
        empty.records.clear();
        empty.accesses.clear();
        empty.deltas.clear();
        empty.tails.clear();
        empty.texts.clear();
        spares.all().push(empty);
    }
}

/// The tails of lines, each from the first unknown field on; equal ones may be kept twice.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// Appends `text`; returns its number.
    pub(crate) fn push(&mut self, text: &[u8]) -> u32 {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        to_u32(self.ends.len() - 1)
    }

    /// The text of that number.
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        let number = to_usize(number);
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

impl Batch {
    /// No records yet, of `statics`.
    pub(crate) fn of(statics: &Arc<Vec<Static>>) -> Self {
        Self {
            statics: Arc::clone(statics),
            order: Vec::new(),
            records: Vec::new(),
            accesses: Vec::new(),
            deltas: Vec::new(),
            tails: Vec::new(),
            texts: Texts::default(),
            spares: None,
        }
    }

    /// How many records are kept as text from their sources on.
    pub(crate) fn open(&self) -> usize {
        let open: Vec<bool> =
            self.statics.iter().map(|one| one.immediates.len() > MOST_IMMEDIATES).collect();
        let is_open = |at: u32| open[to_usize(self.records[to_usize(at)].number)];
        match open.contains(&true) {
            true => self.tails.iter().filter(|(at, _)| is_open(*at)).count(),
            false => 0,
        }
    }

    /// Bytes held by its records, about.
    pub(crate) fn bytes(&self) -> usize {
        let tails = size_of_val(&*self.tails) + self.texts.bytes.len();
        let flat = size_of_val(&*self.records) + size_of_val(&*self.accesses);
        flat + size_of_val(&*self.deltas) + size_of_val(&*self.texts.ends) + tails
    }

    /// The differences of `access`.
    pub(crate) fn deltas(&self, access: &AddressList) -> &[i64] {
        let from = to_usize(access.deltas);
        &self.deltas[from..from + usize::from(access.delta_count)]
    }
}

/// A range of a batch that belongs to one warp.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) batch: Arc<Batch>,
    /// From the batch's statics to the kernel's.
    pub(crate) numbers: Arc<Vec<u32>>,
    pub(crate) records: Range<usize>,
    /// Index of the first access of the range.
    pub(crate) access: usize,
}

/// One CTA: per warp its pieces in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) position: Dim3,
    pub(crate) warps: Vec<Vec<Piece>>,
    /// Further lines of its frame, verbatim, LF between.
    pub(crate) note: Vec<u8>,
}

impl Block {
    /// It says nothing: no instruction and no note.
    pub(crate) fn is_empty(&self) -> bool {
        self.instructions() == 0 && self.note.is_empty()
    }

    /// Warp instructions.
    pub(crate) fn instructions(&self) -> usize {
        self.warps.iter().flatten().map(|piece| piece.records.len()).sum()
    }
}
