//! What the machine counts, per kernel launch. Plain sums: adding over
//! launches, applications or intervals is always right.

use gpumodel_core::isa::Unit;
use gpumodel_core::units::{AppId, Cycle};

use crate::memory::packet::{Origin, Packet, RequestKind};

/// Causes of scheduler slot-cycles: Warped-Slicer Fig. 1's and those that it
/// leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// An instruction issued.
    Issued,
    /// Every warp waits for memory, most of all.
    LongMemoryLatency,
    /// Results of arithmetic are not ready.
    ShortRaw,
    /// A unit, the load/store queue or the active set of a two-level scheduler is
    /// taken.
    ExecutionResource,
    /// Branch, fetch or instruction buffer.
    InstructionBufferEmpty,
    /// Waiting for the CTA's other warps.
    Barrier,
    /// No warp on the scheduler.
    Idle,
}

impl Cause {
    /// Every cause, in the order in which stacks are drawn.
    pub const ALL: [Self; 7] = [
        Self::Issued,
        Self::LongMemoryLatency,
        Self::ShortRaw,
        Self::ExecutionResource,
        Self::InstructionBufferEmpty,
        Self::Barrier,
        Self::Idle,
    ];

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Issued => "issued",
            Self::LongMemoryLatency => "long_memory_latency",
            Self::ShortRaw => "short_raw",
            Self::ExecutionResource => "execution_resource",
            Self::InstructionBufferEmpty => "instruction_buffer_empty",
            Self::Barrier => "barrier",
            Self::Idle => "idle",
        }
    }
}

/// Slot-cycles by [`Cause`].
pub type StallStack = [f64; Cause::ALL.len()];

/// Requests of one cache level, in sectors of 32 bytes: what asks for a whole line
/// of four counts as four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Reads that found their sector.
    pub read_hits: u64,
    /// Reads that joined an outstanding miss.
    pub read_merges: u64,
    /// Reads that missed.
    pub read_misses: u64,
    /// Writes that found their sector.
    pub write_hits: u64,
    /// Writes to a sector on its way.
    pub write_merges: u64,
    /// Writes that missed.
    pub write_misses: u64,
}

impl CacheCounts {
    /// All sector requests.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads() + self.write_hits + self.write_merges + self.write_misses
    }

    /// Adds what lies between two readings of other counters.
    #[inline]
    pub(crate) fn grow(&mut self, before: &Self, after: &Self) {
        self.read_hits += after.read_hits - before.read_hits;
        self.read_merges += after.read_merges - before.read_merges;
        self.read_misses += after.read_misses - before.read_misses;
        self.write_hits += after.write_hits - before.write_hits;
        self.write_merges += after.write_merges - before.write_merges;
        self.write_misses += after.write_misses - before.write_misses;
    }

    /// Adds what was counted once for each of `sectors` sectors.
    #[inline]
    pub(crate) fn add(&mut self, counted: &Self, sectors: u16) {
        let sectors = u64::from(sectors);
        self.read_hits += counted.read_hits * sectors;
        self.read_merges += counted.read_merges * sectors;
        self.read_misses += counted.read_misses * sectors;
        self.write_hits += counted.write_hits * sectors;
        self.write_merges += counted.write_merges * sectors;
        self.write_misses += counted.write_misses * sectors;
    }

    /// Reads among them.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.read_hits + self.read_merges + self.read_misses
    }

    /// Requests whose sector was on its way already.
    #[must_use]
    pub fn merges(&self) -> u64 {
        self.read_merges + self.write_merges
    }

    /// Requests that missed.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.read_misses + self.write_misses
    }
}

/// Look-ups in a TLB, one per page and memory instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlbCounts {
    /// Pages that were there.
    pub hits: u64,
    /// Pages that were on their way already.
    pub merges: u64,
    /// Pages that were asked for further down.
    pub misses: u64,
}

impl TlbCounts {
    /// All look-ups.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.hits + self.merges + self.misses
    }
}

/// Address translation for one launch. What several launches wait for is booked
/// for the one that asked first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationCounts {
    /// The L1 TLBs; their misses are the accesses of the L2 TLB.
    pub l1: TlbCounts,
    /// The L2 TLB; its misses are page walks.
    pub l2: TlbCounts,
    /// What walks read through the L2 cache, beside [`KernelCounts::l2`]. What
    /// misses there is among [`KernelCounts::dram_reads`].
    pub reads: CacheCounts,
    /// Sectors of pages that moved over the crossbar, read and written at the L2
    /// cache, beside [`KernelCounts::l2`]. What misses there is among
    /// [`KernelCounts::dram_reads`].
    pub copies: CacheCounts,
    /// Pages that were not in memory.
    pub faults: u64,
}

impl TranslationCounts {
    /// Adds what was counted elsewhere.
    pub(crate) fn join(&mut self, other: &Self) {
        for (own, more) in [(&mut self.l1, &other.l1), (&mut self.l2, &other.l2)] {
            own.hits += more.hits;
            own.merges += more.merges;
            own.misses += more.misses;
        }
        self.reads.grow(&CacheCounts::default(), &other.reads);
        self.copies.grow(&CacheCounts::default(), &other.copies);
        self.faults += other.faults;
    }
}

/// What instruction fetch did, from the schedulers to the L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchCounts {
    /// Lines looked up in inner caches, once per step of a warp.
    pub inner_lines: u64,
    /// Waits of a warp for a line that its inner cache lacked.
    pub inner_misses: u64,
    /// Waits for a line that was on its way already.
    pub inner_merges: u64,
    /// Lines asked of the outer caches, prefetches included.
    pub outer_lines: u64,
    /// Lines among them that the outer caches asked of the L2.
    pub outer_misses: u64,
    /// Sectors of code asked of the L2.
    pub l2: CacheCounts,
}

impl FetchCounts {
    /// Adds what lies between two readings of other counters, but for the L2's.
    pub(crate) fn grow(&mut self, before: &Self, after: &Self) {
        self.inner_lines += after.inner_lines - before.inner_lines;
        self.inner_misses += after.inner_misses - before.inner_misses;
        self.inner_merges += after.inner_merges - before.inner_merges;
        self.outer_lines += after.outer_lines - before.outer_lines;
        self.outer_misses += after.outer_misses - before.outer_misses;
    }
}

/// What constant loads did, from the SMs to the L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstantCounts {
    /// Warp instructions that carried addresses.
    pub accesses: u64,
    /// Warp instructions without addresses: they take a fixed latency.
    pub without_address: u64,
    /// Distinct words looked up, one per cycle.
    pub passes: u64,
    /// Lines that the inner caches lacked.
    pub misses: u64,
    /// Lines that were on their way already.
    pub merges: u64,
    /// Lines that the outer caches asked of the L2.
    pub outer_misses: u64,
    /// Sectors of constants asked of the L2.
    pub l2: CacheCounts,
}

impl ConstantCounts {
    /// Adds what lies between two readings of other counters, but for the L2's.
    pub(crate) fn grow(&mut self, before: &Self, after: &Self) {
        self.accesses += after.accesses - before.accesses;
        self.without_address += after.without_address - before.without_address;
        self.passes += after.passes - before.passes;
        self.misses += after.misses - before.misses;
        self.merges += after.merges - before.merges;
        self.outer_misses += after.outer_misses - before.outer_misses;
    }
}

/// What one SM counts, over all launches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SmCounts {
    /// CTAs started.
    pub ctas: u64,
    /// Warp instructions.
    pub warp_instructions: u64,
    /// Its L1's sector requests.
    pub l1: CacheCounts,
    /// Its instruction caches; the sectors at the L2 are the slices'.
    pub fetch: FetchCounts,
    /// Its constant cache; the sectors at the L2 are the slices'.
    pub constant: ConstantCounts,
    /// Slot-cycles by cause while its schedulers held warps.
    pub stalls: StallStack,
}

/// Everything counted for one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelCounts {
    /// Whose launch it is.
    pub app: AppId,
    /// When its launch began.
    pub start: Cycle,
    /// When its first CTA could start.
    pub first_cta: Cycle,
    /// When its last CTA retired; 0 while it runs.
    pub end: Cycle,
    /// CTAs started.
    pub ctas_started: u64,
    /// CTAs retired.
    pub ctas_retired: u64,
    /// CTAs that were flushed before their end: they start again, or their
    /// application was stopped.
    pub ctas_killed: u64,
    /// Warp instructions of killed CTAs, among [`KernelCounts::warp_instructions`].
    pub lost_instructions: u64,
    /// Warp instructions.
    pub warp_instructions: u64,
    /// Those among them that running as workers has added.
    pub added_instructions: u64,
    /// Workers that came.
    pub workers: u64,
    /// Tasks that they took.
    pub tasks: u64,
    /// Active lanes summed over warp instructions.
    pub thread_instructions: u64,
    /// Warp instructions by unit, in the order of [`Unit::ALL`].
    pub by_unit: [u64; Unit::ALL.len()],
    /// Warp instructions with an opcode that no table row knows.
    pub unknown_opcodes: u64,
    /// Barriers whose number or count the trace does not tell.
    pub assumed_barriers: u64,
    /// Waits for groups of asynchronous copies whose number the trace does not
    /// tell: all groups are waited for.
    pub assumed_waits: u64,
    /// Accesses through generic addresses.
    pub generic_accesses: u64,
    /// Passes over the banks of shared memory.
    pub shared_passes: u64,
    /// L1 sector requests.
    pub l1: CacheCounts,
    /// L2 sector requests.
    pub l2: CacheCounts,
    /// Those among [`KernelCounts::l2`] that saved or restored the state of CTAs.
    pub state: CacheCounts,
    /// Address translation, where the machine has it.
    pub translation: TranslationCounts,
    /// Instruction fetch; nothing on a machine without instruction caches.
    pub fetch: FetchCounts,
    /// Constant loads; on a machine without constant caches only those without
    /// addresses.
    pub constant: ConstantCounts,
    /// Sectors read from DRAM: all that the accesses moved, code and constants included.
    pub dram_reads: u64,
    /// Sectors written to DRAM: all that the accesses moved.
    pub dram_writes: u64,
    /// DRAM accesses to an open row.
    pub row_hits: u64,
    /// DRAM accesses that needed an activate.
    pub row_misses: u64,
    /// Slot-cycles by cause on schedulers that held warps of the launch.
    pub stalls: StallStack,
    /// Slot-cycles of all schedulers of the GPU from the first CTA on.
    pub slot_cycles: f64,
    /// Those of them in which the scheduler's SM held a CTA of the launch.
    pub held_slots: f64,
}

impl KernelCounts {
    /// The last request was for the state of a CTA; `before` are the L2's counters
    /// before it.
    pub(crate) fn note_state(&mut self, before: &CacheCounts) {
        let after = self.l2;
        self.state.grow(before, &after);
    }

    /// The counters that a request feeds at its slice.
    pub(crate) fn slice_counts(&mut self, packet: &Packet) -> &mut CacheCounts {
        match packet.origin {
            Origin::Sm => self.l2_of(packet.ask),
            Origin::Walk => &mut self.translation.reads,
            Origin::Copy => &mut self.translation.copies,
        }
    }

    /// The L2 counters that a request feeds: code and constants have their own.
    fn l2_of(&mut self, ask: RequestKind) -> &mut CacheCounts {
        match ask {
            RequestKind::Code => &mut self.fetch.l2,
            RequestKind::Constant => &mut self.constant.l2,
            _ => &mut self.l2,
        }
    }
}
