//! What travels between SMs, slices and channels.

use gpumodel_core::units::Cycle;

/// What a request asks of the L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
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

impl RequestKind {
    /// True when the request carries a sector's data.
    pub(crate) fn carries_data(self) -> bool {
        !matches!(self, Self::Read | Self::Code | Self::Constant)
    }

    /// True when the sector must be there to be changed.
    pub(crate) fn modifies(self) -> bool {
        matches!(self, Self::Atomic | Self::Reduction)
    }

    /// True when the answer carries a sector's data.
    pub(crate) fn answer_carries_data(self) -> bool {
        matches!(self, Self::Read | Self::Code | Self::Constant | Self::Atomic)
    }
}

/// Who sends a request and takes its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
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
pub(crate) struct Packet {
    /// Byte address of the sector in memory.
    pub(crate) address: u64,
    /// The address under which its SM knows it: before translation.
    pub(crate) asked: u64,
    /// When the packet may leave its source; then, when it arrived at its slice.
    pub(crate) ready: Cycle,
    /// The memory operation, page walk or page copy that waits for it.
    pub(crate) operation: u32,
    /// Whose counters it feeds.
    pub(crate) kernel: u32,
    /// What is written of it, one bit for each 1/32.
    pub(crate) bytes: u32,
    /// Sectors of 32 bytes that are asked for or written.
    pub(crate) sectors: u16,
    /// Where it comes from: an SM, or behind the last one the page walkers, then the page copies.
    pub(crate) sm: u16,
    /// Where it goes.
    pub(crate) slice: u16,
    /// What it asks.
    pub(crate) ask: RequestKind,
    /// The answer fills the SM's L1.
    pub(crate) fills_l1: bool,
    /// Who sent it.
    pub(crate) origin: Origin,
}

/// What waits for a memory operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Registers, by the warp's load slot.
    Slot(u8),
    /// Nothing but the warp's end and its fences.
    Nothing,
    /// A group of asynchronous copies, by its running number.
    Group(u32),
}

/// One memory instruction of one warp in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) warp: u16,
    pub(crate) target: Target,
    /// Sectors whose answers are still to come.
    pub(crate) remaining: u16,
    /// All of its sectors have been looked up.
    pub(crate) served: bool,
    /// When the last answer so far came.
    pub(crate) latest: Cycle,
}
