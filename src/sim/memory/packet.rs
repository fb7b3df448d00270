//! What travels between SMs, slices and channels.

use gpumodel_core::units::Cycle;

/// What a request needs from the L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Reads a sector.
    Read,
    /// Reads a sector of code.
    Code,
    /// Reads a sector of constants for an SM's constant cache.
    Constant,
    /// Writes bytes of a sector.
    Write,
    /// Writes bytes of a sector that was dirty in the L1; without an answer.
    WriteBack,
    /// Changes bytes of a sector and returns the old value.
    Atomic,
    /// Changes bytes of a sector.
    Reduction,
}

impl RequestKind {
    /// True when the request carries a sector's data.
    pub(crate) fn carries_data(self) -> bool {
        !matches!(self, Self::Read | Self::Code | Self::Constant)
    }

    /// True when the sector must be present to be changed.
    pub(crate) fn modifies(self) -> bool {
        matches!(self, Self::Atomic | Self::Reduction)
    }

    /// True when the answer carries a sector's data.
    pub(crate) fn answer_carries_data(self) -> bool {
        matches!(self, Self::Read | Self::Code | Self::Constant | Self::Atomic)
    }
}

/// The sender of a request, which receives its answer.
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
    /// The address before translation.
    pub(crate) virtual_address: u64,
    /// When the packet may leave its source; then, when it arrived at its slice.
    pub(crate) ready: Cycle,
    /// The memory operation, page walk or page copy that waits for it.
    pub(crate) operation: u32,
    /// The launch whose counters count it.
    pub(crate) kernel: u32,
    /// The written part of it, one bit for each 1/32.
    pub(crate) bytes: u32,
    /// Sectors of 32 bytes that are read or written.
    pub(crate) sectors: u16,
    /// Its source: an SM, or after the last SM the page walkers, then the page copies.
    pub(crate) sm: u16,
    /// Its destination.
    pub(crate) slice: u16,
    /// What it needs.
    pub(crate) kind: RequestKind,
    /// The answer fills the SM's L1.
    pub(crate) fills_l1: bool,
    /// Its sender.
    pub(crate) origin: Origin,
}

/// What waits for a memory operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Registers, by the warp's load slot.
    Slot(u8),
    /// Only the warp's end and its fences.
    Nothing,
    /// A group of asynchronous copies, by its number.
    Group(u32),
}

/// One memory instruction of one warp in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) warp: u16,
    pub(crate) target: Target,
    /// Sectors without an answer yet.
    pub(crate) remaining: u16,
    /// All of its sectors have been looked up.
    pub(crate) served: bool,
    /// When the last answer so far arrived.
    pub(crate) latest: Cycle,
}
