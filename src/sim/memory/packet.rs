//! What travels between SMs, slices and channels.

use gpumodel_core::units::{Cycle, SECTOR_BYTES};

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

/// Where a request is on its way to its home, the slice that its address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    /// Going to that slice, or coming from it.
    Near,
    /// That slice lies in the other half of the L2: going to the slice of its SM's half, there,
    /// or coming from it.
    Far,
    /// At that slice, from the other half.
    Home,
}

/// A request of one sector of the caches (a line where they have whole ones), or of several
/// sectors of one line, and, on the way back, its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Byte address in memory of the sector, or of the lowest one.
    pub(crate) address: u64,
    /// The address before translation.
    pub(crate) virtual_address: u64,
    /// When the packet may leave its source; then, when it arrived at its slice.
    pub(crate) ready: Cycle,
    /// The memory operation, page walk or page copy that waits for it.
    pub(crate) operation: u32,
    /// The launch whose counters count it.
    pub(crate) kernel: u32,
    /// The written part of each sector of the caches, one bit for each 1/32.
    pub(crate) bytes: u32,
    /// Sectors of 32 bytes of each sector of the caches that are read or written.
    pub(crate) sectors: u8,
    /// Where requests go by line: its sectors of the line, one bit each; else 0.
    pub(crate) mask: u8,
    /// Look-ups of its slice beyond one for each of its sectors.
    pub(crate) more_turns: u8,
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
    /// Its way between the halves of the L2.
    pub(crate) leg: Leg,
}

impl Packet {
    /// Sectors of the caches that it asks for.
    #[inline]
    pub(crate) fn units(&self) -> u32 {
        self.mask.count_ones().max(1)
    }

    /// Sectors of 32 bytes that it reads or writes.
    #[inline]
    pub(crate) fn sectors_moved(&self) -> u32 {
        u32::from(self.sectors) * self.units()
    }

    /// The same request for some of its sectors, which are all where it goes by sector.
    #[inline]
    pub(crate) fn part(&self, mask: u8) -> Self {
        if self.mask == 0 || self.mask == mask { *self } else { self.with_mask(mask) }
    }

    /// The same request for fewer sectors of its line.
    #[inline]
    pub(crate) fn with_mask(self, mask: u8) -> Self {
        let lower = u64::from(mask.trailing_zeros()) * SECTOR_BYTES;
        let inside = u64::from(self.mask.trailing_zeros()) * SECTOR_BYTES;
        let (address, virtual_address) =
            (self.address - inside + lower, self.virtual_address - inside + lower);
        // They are taken with its lowest sector.
        let lowest = mask.trailing_zeros() == self.mask.trailing_zeros();
        let more_turns = if lowest { self.more_turns } else { 0 };
        Self { mask, address, virtual_address, more_turns, ..self }
    }
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
    /// A barrier object of the CTA, by its place, which counts so many bytes.
    Object { place: u16, bytes: u32, multicast: u16 },
    /// The end of a launch: its warp has ended.
    Launch(u32),
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
    /// Its warp's end does not wait for its answers.
    pub(crate) posted: bool,
    /// When the last answer so far arrived.
    pub(crate) latest: Cycle,
}

impl Operation {
    /// One of a warp that issues at a cycle, of which nothing has been served.
    pub(crate) fn new(warp: u16, target: Target, issued: Cycle) -> Self {
        Self { warp, target, remaining: 0, served: false, posted: false, latest: issued }
    }
}
