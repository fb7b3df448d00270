//! What the machine counts per kernel launch. Plain sums: they may be added over launches,
//! applications and intervals. The counters of samples are extrapolated to the whole launch.

use gpumodel_core::isa::Unit;
use gpumodel_core::units::{AppId, Cycle};

use crate::memory::packet::{Origin, Packet, RequestKind};

/// Causes of scheduler slot-cycles: those of Warped-Slicer's Fig. 1 and those that it leaves
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// An instruction issued.
    Issued,
    /// Warps wait, most of them for memory beyond their SM's shared one.
    LongMemoryLatency,
    /// Results of arithmetic or of shared memory are not ready.
    ShortRaw,
    /// A unit, the load/store queue or the active set of a two-level scheduler is busy.
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

/// Requests of one cache level in sectors of 32 bytes: a request for a whole line of four
/// counts as four.
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
    /// Writes to a pending sector.
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

    /// Adds the growth of other counters between two readings.
    #[inline]
    pub(crate) fn grow(&mut self, before: &Self, after: &Self) {
        let growth = after.values().into_iter().zip(before.values());
        self.values_mut().into_iter().zip(growth).for_each(|(own, (now, then))| *own += now - then);
    }

    /// Adds what was counted once for each of `sectors` sectors.
    #[inline]
    pub(crate) fn add(&mut self, counted: &Self, sectors: u8) {
        if sectors == 1 {
            let counted = counted.values();
            return self.values_mut().into_iter().zip(counted).for_each(|(own, n)| *own += n);
        }
        let sectors = u64::from(sectors);
        self.values_mut()
            .into_iter()
            .zip(counted.values())
            .for_each(|(own, n)| *own += n * sectors);
    }

    #[inline]
    fn values(&self) -> [u64; 6] {
        let Self { read_hits, read_merges, read_misses, .. } = *self;
        let Self { write_hits, write_merges, write_misses, .. } = *self;
        [read_hits, read_merges, read_misses, write_hits, write_merges, write_misses]
    }

    #[inline]
    fn values_mut(&mut self) -> [&mut u64; 6] {
        let Self { read_hits, read_merges, read_misses, write_hits, write_merges, write_misses } =
            self;
        [read_hits, read_merges, read_misses, write_hits, write_merges, write_misses]
    }

    /// Sector requests that read.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.read_hits + self.read_merges + self.read_misses
    }

    /// Requests whose sector was pending.
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
    /// Pages that were found.
    pub hits: u64,
    /// Pages with an outstanding miss.
    pub merges: u64,
    /// Pages that missed.
    pub misses: u64,
}

impl TlbCounts {
    /// All look-ups.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.hits + self.merges + self.misses
    }
}

/// Address translation for one launch. A miss that several launches wait for counts for the
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationCounts {
    /// The L1 TLBs; their misses are the accesses of the L2 TLB.
    pub l1: TlbCounts,
    /// The L2 TLB; its misses are page walks.
    pub l2: TlbCounts,
    /// Reads of walks at the L2 cache, not part of [`KernelCounts::l2`]. Their misses are part
    /// of [`KernelCounts::dram_reads`].
    pub reads: CacheCounts,
    /// Sectors of pages that moved over the crossbar, read and written at the L2 cache, not
    /// part of [`KernelCounts::l2`]. Their misses are part of [`KernelCounts::dram_reads`].
    pub copies: CacheCounts,
    /// Pages that were not in memory.
    pub faults: u64,
}

/// What instruction fetch did, from the schedulers to the L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchCounts {
    /// Lines looked up in inner caches, once per step of a warp.
    pub inner_lines: u64,
    /// Waits of a warp for a line that its inner cache lacked.
    pub inner_misses: u64,
    /// Waits for a pending line.
    pub inner_merges: u64,
    /// Lines looked up in the outer caches, prefetches included.
    pub outer_lines: u64,
    /// Lines among them that the outer caches requested from the L2.
    pub outer_misses: u64,
    /// Sectors of code requested from the L2.
    pub l2: CacheCounts,
}

impl FetchCounts {
    /// Adds the growth of other counters between two readings, except those of the L2.
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
    /// Lines that were pending.
    pub merges: u64,
    /// Lines that the outer caches requested from the L2.
    pub outer_misses: u64,
    /// Sectors of constants requested from the L2.
    pub l2: CacheCounts,
}

impl ConstantCounts {
    /// Adds the growth of other counters between two readings, except those of the L2.
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
    /// Its instruction caches; the slices count the sectors at the L2.
    pub fetch: FetchCounts,
    /// Its constant cache; the slices count the sectors at the L2.
    pub constant: ConstantCounts,
    /// Slot-cycles by cause while its schedulers held warps.
    pub stalls: StallStack,
}

/// Everything counted for one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelCounts {
    /// The application of the launch.
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
    /// CTAs flushed before their end: they start again, or their application was stopped.
    pub ctas_killed: u64,
    /// Warp instructions of killed CTAs, part of [`KernelCounts::warp_instructions`].
    pub lost_instructions: u64,
    /// Warp instructions.
    pub warp_instructions: u64,
    /// Warp instructions among them that were added for running as workers.
    pub added_instructions: u64,
    /// Workers started.
    pub workers: u64,
    /// Tasks of the workers.
    pub tasks: u64,
    /// Active lanes summed over warp instructions.
    pub thread_instructions: u64,
    /// Warp instructions by unit, in the order of [`Unit::ALL`].
    pub by_unit: [u64; Unit::ALL.len()],
    /// Cycles in which their issue ports were occupied, each opcode for its time, in that order.
    pub unit_cycles: [u64; Unit::ALL.len()],
    /// Warp instructions with an opcode that no table row knows.
    pub unknown_opcodes: u64,
    /// Barriers whose number or count the trace does not have.
    pub assumed_barriers: u64,
    /// Waits for groups of asynchronous copies whose number the trace does not have: they wait
    /// for all groups.
    pub assumed_waits: u64,
    /// Bytes of bulk copies whose pieces the trace has.
    pub bulk_bytes: u64,
    /// Bulk copies whose pieces the trace does not have, which move nothing.
    pub unknown_copies: u64,
    /// Bytes that barrier objects expected, as far as the trace has the values.
    pub expected_bytes: u64,
    /// Waits at barrier objects whose counts the trace does not have.
    pub assumed_object_waits: u64,
    /// Accesses through generic addresses.
    pub generic_accesses: u64,
    /// Warp instructions with active lanes at address 0 of global memory, which access nothing.
    pub null_accesses: u64,
    /// Active lanes at address 0 of global memory.
    pub null_lanes: u64,
    /// Passes over the banks of shared memory.
    pub shared_passes: u64,
    /// L1 sector requests.
    pub l1: CacheCounts,
    /// L2 sector requests.
    pub l2: CacheCounts,
    /// L2 sector requests among them that saved or restored the state of CTAs.
    pub state: CacheCounts,
    /// Address translation, where the machine has it.
    pub translation: TranslationCounts,
    /// Instruction fetch; 0 on a machine without instruction caches.
    pub fetch: FetchCounts,
    /// Constant loads; on a machine without constant caches only those without
    /// addresses.
    pub constant: ConstantCounts,
    /// Sectors moved by DRAM reads, code and constants included.
    pub dram_reads: u64,
    /// Sectors moved by DRAM writes.
    pub dram_writes: u64,
    /// DRAM accesses to an open row.
    pub row_hits: u64,
    /// DRAM accesses that needed an activate.
    pub row_misses: u64,
    /// Slot-cycles by cause on schedulers that held warps of the launch.
    pub stalls: StallStack,
    /// Slot-cycles of all schedulers of the GPU from the first CTA on.
    pub slot_cycles: f64,
    /// Slot-cycles among them in which the scheduler's SM held a CTA of the launch.
    pub held_slots: f64,
}

impl KernelCounts {
    /// Counts the last request as one for the state of a CTA; `before` are the L2's counters
    /// before it.
    pub(crate) fn count_state(&mut self, before: &CacheCounts) {
        let after = self.l2;
        self.state.grow(before, &after);
    }

    /// The counters of a request at its slice.
    pub(crate) fn slice_counts(&mut self, packet: &Packet) -> &mut CacheCounts {
        match packet.origin {
            Origin::Walk => &mut self.translation.reads,
            Origin::Copy => &mut self.translation.copies,
            Origin::Sm => match packet.kind {
                RequestKind::Code => &mut self.fetch.l2,
                RequestKind::Constant => &mut self.constant.l2,
                RequestKind::Read
                | RequestKind::Write
                | RequestKind::WriteBack
                | RequestKind::Atomic
                | RequestKind::Reduction => &mut self.l2,
            },
        }
    }

    /// Adds the counts of another run of the same launch, except its times.
    pub fn join(&mut self, other: &Self) {
        let mut other = other.clone();
        self.sums().into_iter().zip(other.sums()).for_each(|(own, more)| *own += *more);
        self.stalls.iter_mut().zip(other.stalls).for_each(|(own, more)| *own += more);
        self.slot_cycles += other.slot_cycles;
        self.held_slots += other.held_slots;
    }

    /// Divides the DRAM's accesses into row hits and misses in the same proportion as before.
    fn rescale_rows(&mut self) {
        let accesses = self.dram_reads + self.dram_writes;
        let before = self.row_hits + self.row_misses;
        #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
        let factor = if before == 0 { 0.0 } else { accesses as f64 / before as f64 };
        self.row_hits = product(self.row_hits, factor).min(accesses);
        self.row_misses = if before == 0 { 0 } else { accesses - self.row_hits };
    }

    /// Sets the instructions to those of the trace and corrects the mix.
    pub fn set_instructions(&mut self, warps: u64, threads: u64) {
        let mixed: u64 = self.by_unit.iter().sum();
        if let Some(largest) = self.by_unit.iter_mut().max() {
            *largest = (*largest + warps).saturating_sub(mixed);
        }
        self.warp_instructions = warps;
        self.thread_instructions = threads;
    }

    /// Turns the counters of `runs` samples that together have 1/`factor` of a launch's
    /// instructions into those of the whole launch. Counts that grow with the CTAs are
    /// multiplied; the L2's misses of code and constants, which all CTAs share, are counted
    /// once.
    pub fn extrapolate(&mut self, factor: f64, runs: u64) {
        let shared = self.fetch.l2.misses() + self.constant.l2.misses();
        let times = |count: &mut u64| *count = product(*count, factor);
        for cache in [&mut self.l1, &mut self.l2, &mut self.fetch.l2, &mut self.constant.l2] {
            cache.values_mut().into_iter().for_each(times);
        }
        for cache in [&mut self.fetch.l2, &mut self.constant.l2] {
            let misses = product(cache.read_misses, 1.0 / factor) / runs;
            cache.read_hits += cache.read_misses.saturating_sub(misses);
            cache.read_misses = misses;
        }
        self.growing().into_iter().for_each(times);
        self.by_unit.iter_mut().chain(&mut self.unit_cycles).for_each(times);
        let own = self.dram_reads.saturating_sub(shared);
        self.dram_reads = product(own, factor) + shared.min(self.dram_reads) / runs;
        self.rescale_rows();
    }

    /// The counts that grow with the CTAs, except those by unit, of the L1 and L2, and of reads
    /// from DRAM.
    fn growing(&mut self) -> [&mut u64; 24] {
        let fetch = &mut self.fetch;
        let constant = &mut self.constant;
        [
            &mut self.warp_instructions,
            &mut self.thread_instructions,
            &mut self.unknown_opcodes,
            &mut self.generic_accesses,
            &mut self.null_accesses,
            &mut self.null_lanes,
            &mut self.assumed_barriers,
            &mut self.assumed_waits,
            &mut self.bulk_bytes,
            &mut self.unknown_copies,
            &mut self.expected_bytes,
            &mut self.assumed_object_waits,
            &mut fetch.inner_lines,
            &mut fetch.inner_misses,
            &mut fetch.inner_merges,
            &mut fetch.outer_lines,
            &mut fetch.outer_misses,
            &mut constant.accesses,
            &mut constant.without_address,
            &mut constant.passes,
            &mut constant.misses,
            &mut constant.merges,
            &mut constant.outer_misses,
            &mut self.dram_writes,
        ]
    }
}

/// `factor` times a count.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are below 2^53 and factors positive"
)]
pub(crate) fn product(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).round() as u64
}

/// Counters that are sums over time.
pub(crate) trait Sums: Clone {
    /// Each of them.
    fn sums(&mut self) -> Vec<&mut u64>;

    /// Adds `factor` times what `now` has more than `before`.
    fn add_growth(&mut self, now: &Self, before: &Self, factor: f64) {
        let (mut now, mut before) = (now.clone(), before.clone());
        let growth = now.sums().into_iter().zip(before.sums());
        for (own, (now, before)) in self.sums().into_iter().zip(growth) {
            *own += product(*now - *before, factor);
        }
    }
}

/// Adds `factor` times the slot-cycles that `now` has more than `before`.
pub(crate) fn add_stalls(own: &mut StallStack, now: &StallStack, before: &StallStack, factor: f64) {
    let growth = now.iter().zip(before);
    own.iter_mut().zip(growth).for_each(|(own, (now, before))| *own += (now - before) * factor);
}

impl Sums for CacheCounts {
    fn sums(&mut self) -> Vec<&mut u64> {
        self.values_mut().into()
    }
}

impl Sums for TlbCounts {
    fn sums(&mut self) -> Vec<&mut u64> {
        let Self { hits, merges, misses } = self;
        vec![hits, merges, misses]
    }
}

impl Sums for FetchCounts {
    fn sums(&mut self) -> Vec<&mut u64> {
        let Self { inner_lines, inner_misses, inner_merges, outer_lines, outer_misses, l2 } = self;
        let mut sums = l2.sums();
        sums.extend([inner_lines, inner_misses, inner_merges, outer_lines, outer_misses]);
        sums
    }
}

impl Sums for ConstantCounts {
    fn sums(&mut self) -> Vec<&mut u64> {
        let Self { accesses, without_address, passes, misses, merges, outer_misses, l2 } = self;
        let mut sums = l2.sums();
        sums.extend([accesses, without_address, passes, misses, merges, outer_misses]);
        sums
    }
}

impl Sums for TranslationCounts {
    fn sums(&mut self) -> Vec<&mut u64> {
        let Self { l1, l2, reads, copies, faults } = self;
        let mut sums = vec![faults];
        [l1, l2].into_iter().for_each(|tlb| sums.extend(tlb.sums()));
        [reads, copies].into_iter().for_each(|cache| sums.extend(cache.sums()));
        sums
    }
}

impl Sums for SmCounts {
    fn sums(&mut self) -> Vec<&mut u64> {
        let Self { ctas, warp_instructions, l1, fetch, constant, stalls: _ } = self;
        let mut sums = vec![ctas, warp_instructions];
        sums.extend(l1.sums());
        sums.extend(fetch.sums());
        sums.extend(constant.sums());
        sums
    }
}

impl Sums for KernelCounts {
    fn sums(&mut self) -> Vec<&mut u64> {
        let mut sums = vec![
            &mut self.ctas_started,
            &mut self.ctas_retired,
            &mut self.ctas_killed,
            &mut self.lost_instructions,
            &mut self.warp_instructions,
            &mut self.added_instructions,
            &mut self.workers,
            &mut self.tasks,
            &mut self.thread_instructions,
            &mut self.unknown_opcodes,
            &mut self.assumed_barriers,
            &mut self.assumed_waits,
            &mut self.bulk_bytes,
            &mut self.unknown_copies,
            &mut self.expected_bytes,
            &mut self.assumed_object_waits,
            &mut self.generic_accesses,
            &mut self.null_accesses,
            &mut self.null_lanes,
            &mut self.shared_passes,
            &mut self.dram_reads,
            &mut self.dram_writes,
            &mut self.row_hits,
            &mut self.row_misses,
        ];
        sums.extend(&mut self.by_unit);
        sums.extend(&mut self.unit_cycles);
        let caches = [&mut self.l1, &mut self.l2, &mut self.state];
        caches.into_iter().for_each(|cache| sums.extend(cache.sums()));
        sums.extend(self.translation.sums());
        sums.extend(self.fetch.sums());
        sums.extend(self.constant.sums());
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::KernelCounts;

    #[test]
    fn counts_grow_but_code_is_fetched_once() {
        let mut counts =
            KernelCounts { warp_instructions: 10, dram_reads: 108, ..Default::default() };
        counts.l2.read_misses = 100;
        counts.fetch.l2.read_hits = 2;
        counts.fetch.l2.read_misses = 8;
        let other = counts.clone();
        counts.join(&other);
        counts.extrapolate(8.0, 2);
        assert_eq!(counts.warp_instructions, 160);
        assert_eq!(counts.l2.read_misses, 1600);
        assert_eq!(counts.fetch.l2.read_misses, 8);
        assert_eq!(counts.fetch.l2.accesses(), 160);
        assert_eq!(counts.dram_reads, 1608);
    }
}
