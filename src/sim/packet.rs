//! What travels between SMs, slices and channels.

use gpumodel_core::units::Cycle;

/// What a request asks of the L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// A sector.
    Read,
    /// A sector of code.
    Code,
    /// A sector of constants, for an SM's constant cache.
    Constant,
    /// To write bytes of a sector.
    Write,
    /// To write bytes of a sector that was dirty above; nobody is answered.
    WriteBack,
    /// To change bytes of a sector and answer with the old value.
    Atomic,
    /// To change bytes of a sector.
    Reduction,
}

impl Ask {
    /// True when the request carries a sector's data.
    pub(super) fn carries_data(self) -> bool {
        !matches!(self, Self::Read | Self::Code | Self::Constant)
    }

    /// True when the sector must be there to be changed.
    pub(super) fn modifies(self) -> bool {
        matches!(self, Self::Atomic | Self::Reduction)
    }

    /// True when the answer carries a sector's data.
    pub(super) fn answer_carries_data(self) -> bool {
        matches!(self, Self::Read | Self::Code | Self::Constant | Self::Atomic)
    }
}

/// Who sends a request and takes its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// An SM, for a memory operation.
    Sm,
    /// A page walk, which reads a table.
    Walk,
    /// A page that is copied.
    Copy,
}

/// A request of one sector of the caches (a line where they have whole ones) and, on
/// the way back, its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Byte address of the sector in memory.
    pub(super) address: u64,
    /// The address under which its SM knows it: before translation.
    pub(super) asked: u64,
    /// When the packet may leave its source; then, when it arrived at its slice.
    pub(super) ready: Cycle,
    /// The memory operation, page walk or page copy that waits for it.
    pub(super) operation: u32,
    /// Whose counters it feeds.
    pub(super) kernel: u32,
    /// What is written of it, one bit for each 1/32.
    pub(super) bytes: u32,
    /// Sectors of 32 bytes that are asked for or written.
    pub(super) sectors: u16,
    /// Where it comes from: an SM, or behind the last one the page walkers, then the page copies.
    pub(super) sm: u16,
    /// Where it goes.
    pub(super) slice: u16,
    /// What it asks.
    pub(super) ask: Ask,
    /// The answer fills the SM's L1.
    pub(super) fills_l1: bool,
    /// Who sent it.
    pub(super) origin: Origin,
}

/// What waits for a memory operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Registers, by the warp's load slot.
    Slot(u8),
    /// Nothing but the warp's end and its fences.
    Nothing,
    /// A group of asynchronous copies, by its running number.
    Group(u32),
}

/// One memory instruction of one warp in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) warp: u16,
    pub(super) target: Target,
    /// Sectors whose answers are still to come.
    pub(super) remaining: u16,
    /// All of its sectors have been looked up.
    pub(super) served: bool,
    /// When the last answer so far came.
    pub(super) latest: Cycle,
}
