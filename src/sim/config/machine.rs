//! A machine description, resolved: inheritance merged, units converted,
//! checked. The fields are the keys of `models/gpus/*.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::cluster::Cluster;
use super::link::Link;
use super::memory::Layout;
use super::mig::Mig;
use super::translation::Translation;
pub use crate::sm::SchedulerPolicy;

/// One GPU, as the engine sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the machine: the file's stem unless it says otherwise.
    pub name: String,
    /// Name under which reference tables know it; defaults to `name`.
    pub reference_name: String,
    /// One sentence: which part this is.
    pub description: String,
    /// The opcode table, a stem in `models/isa`.
    pub isa: String,
    /// Clock domains.
    pub clocks: Clocks,
    /// Launching kernels and CTAs.
    pub dispatch: Dispatch,
    /// One streaming multiprocessor.
    pub sm: SmSpec,
    /// Execution units by name (see `isa::Unit`), per SM.
    pub units: BTreeMap<String, UnitSpec>,
    /// Shared memory.
    pub shared: SharedSpec,
    /// The L1 data cache of an SM.
    pub l1: L1Spec,
    /// Between SMs and L2 slices.
    pub interconnect: Interconnect,
    /// The L2.
    pub l2: L2Spec,
    /// Memory channels.
    pub dram: DramSpec,
    /// Address translation; absent: every address is physical and free.
    #[serde(default)]
    pub translation: Option<Translation>,
    /// Instruction caches; absent: every instruction is at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<Fetch>,
    /// Constant caches; absent: constant loads go the way of global ones where
    /// they carry addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<Constant>,
    /// How CTAs of a cluster work together; absent: they start and run as CTAs without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// The link to the host; absent: copies are over at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// The instances into which it can be divided; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<Mig>,
    /// Energy per event; absent: no energy is reported.
    #[serde(default)]
    pub energy: Option<Energy>,
    /// What this machine does differently from hardware; all off by default.
    #[serde(default)]
    pub quirks: Quirks,
}

impl Machine {
    /// Peak bandwidth of all memory channels in GB/s (10^9 bytes); `None` when
    /// only the memory standard knows the memory clock.
    #[must_use]
    pub fn peak_gb_per_s(&self) -> Option<f64> {
        let bytes = f64::from(self.dram.channels) * f64::from(self.dram.channel_bytes_per_clock);
        Some(bytes * self.clocks.dram_mhz? / 1000.0)
    }
}

/// Clock domains in MHz. The DRAM clock is the memory standard's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// SM clock.
    pub core_mhz: f64,
    /// Crossbar clock.
    pub interconnect_mhz: f64,
    /// L2 clock.
    pub l2_mhz: f64,
    /// Memory command clock; overrides the memory standard's where given.
    pub dram_mhz: Option<f64>,
}

/// Launching kernels and CTAs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dispatch {
    /// Streaming multiprocessors.
    pub sms: u16,
    /// Cycles from a launch command until its first CTA may start.
    pub kernel_launch_cycles: u64,
    /// CTAs that the whole GPU may start in one cycle; each SM starts at most one.
    pub ctas_per_cycle: u32,
    /// Cycles from a CTA's start until its warps may issue.
    pub cta_launch_cycles: u64,
    /// Cycles from one CTA that an SM sets up to the next, which waits in its place; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cta_interval_cycles: u32,
    /// Cycles from a kernel's last retired CTA until the next launch of its stream begins.
    pub kernel_retire_cycles: u64,
    /// Which SM gets the next CTA.
    pub order: CtaOrder,
    /// Host-to-device copies of the command list leave their lines in the L2.
    pub memcpy_fills_l2: bool,
}

/// Which SM gets the next CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CtaOrder {
    /// Round robin over SMs from the last one served, in the same order.
    RoundRobin,
    /// The SM with the most free warps; of equal ones the first by [`Cluster::dispatch_order`].
    MostRoom,
}

/// One streaming multiprocessor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmSpec {
    /// Resident warps.
    pub max_warps: u32,
    /// Resident CTAs.
    pub max_ctas: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Registers are handed out to a warp in multiples of this many.
    pub register_unit: u32,
    /// Warp schedulers (sub-cores).
    pub schedulers: u32,
    /// How a scheduler picks among ready warps.
    pub policy: SchedulerPolicy,
    /// Which scheduler gets the first warp of a CTA.
    #[serde(default, skip_serializing_if = "WarpPlacement::is_by_slot")]
    pub warp_placement: WarpPlacement,
    /// Warps that a scheduler with an active set (two-level) picks from; 0 for the other
    /// policies, which pick from all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active_warps: u32,
    /// A warp leaves the active ones at any wait of unknown length: for every load and for the
    /// results of units of variable latency (transcendentals, textures); false: at loads from
    /// beyond the SM's shared memory, at barriers and at its end alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_at_any_wait: bool,
    /// Cycles from the moment at which a warp may begin until its first
    /// instruction has been fetched and decoded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_issue_cycles: u32,
    /// Cycles from the port of the memory unit until the load/store unit has an
    /// instruction, where the latencies of caches and shared memory leave them out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_issue_cycles: u32,
    /// Cycles in the pipeline of a warp's last instruction, beyond the one in
    /// which it issues, before the warp's place is free.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub exit_cycles: u32,
    /// A warp ends without the answers to its stores and reductions, for which only its fences and
    /// the end of the launch wait; false: it waits for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub posted_stores: bool,
    /// Cycles from the last arrival at a barrier of a CTA to the next instruction of the warps
    /// that wait there; 0 counts as 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub barrier_cycles: u32,
    /// Cycles for which an arrival occupies the barriers of the SM, which take one at a time; 0:
    /// they take all at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub barrier_arrival_cycles: u32,
    /// Cycles by which a bulk copy to shared memory takes longer than a load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bulk_copy_cycles: u32,
    /// Instructions that a scheduler issues per cycle from one warp (2: dual issue).
    pub issue_width: u32,
    /// Warps whose instructions come unevenly wait for each other at the issue slot and the
    /// units, as customers of a closed queueing network; false: they fit together without loss.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contention: bool,
    /// Cycles added to every dependent issue distance beyond the unit's latency.
    pub dependent_issue_cycles: u32,
    /// Cycles by which a result of the integer unit comes later to the FP32 unit than to the
    /// integer unit, and the other way round.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cross_unit_cycles: u32,
    /// The same to the special functions' unit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sfu_operand_cycles: u32,
    /// The same to memory instructions: addresses and data.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_operand_cycles: u32,
    /// Register-file banks of one scheduler; 0: operand reads never conflict.
    pub register_banks: u32,
    /// Registers that one bank delivers per cycle.
    pub register_bank_ports: u32,
    /// What reads of the banks are counted.
    #[serde(default, skip_serializing_if = "OperandReads::are_all")]
    pub operand_reads: OperandReads,
    /// What is used of the compiler's control bits, where a trace has them.
    #[serde(default, skip_serializing_if = "ControlBitsUse::is_none")]
    pub control_bits: ControlBitsUse,
    /// Cycles from fetch to issue after a taken branch.
    pub branch_cycles: u32,
}

/// What is read from, and written to, the banks of the register file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperandReads {
    /// Every listed register, results included, as in the operand collectors of simulators.
    #[default]
    All,
    /// General registers. Results have ports of their own, and an operand that the warp's
    /// instruction before read in the same slot comes from the reuse cache: there the compiler
    /// marks it `.reuse`. Assumed: no other warp's instruction takes its entry in between.
    Reuse,
    /// The same, with results at the ports of the operands.
    ReuseOnePort,
}

impl OperandReads {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
    fn are_all(&self) -> bool {
        *self == Self::All
    }
}

/// What of the control bits of instructions takes the place of rules. The bits are those of the
/// architecture that the program was compiled for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlBitsUse {
    /// Nothing: all traces run by the same rules.
    #[default]
    Ignored,
    /// The marks `.reuse`, where [`OperandReads::Reuse`] assumes them.
    Reuse,
    /// These, and the stall counts: an instruction without a write barrier delays its warp by its
    /// stall count, and no reader of its results beyond that. Results of others, loads among
    /// them, are waited for by register. One that yields leaves the next cycle to other warps.
    /// Read barriers and wait masks have no effect.
    All,
}

impl ControlBitsUse {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
    fn is_none(&self) -> bool {
        *self == Self::Ignored
    }
}

/// Which scheduler gets the first warp of a CTA; the others follow in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarpPlacement {
    /// Warps take the lowest free slots; slot modulo schedulers is the scheduler.
    /// CTAs of four warps on four schedulers all begin at the first.
    #[default]
    Slots,
    /// Each CTA begins one scheduler on from the CTA before it.
    Rotating,
    /// Each CTA begins behind the last warp of the CTA before it, and half of the schedulers on
    /// where that had as many on each.
    Alternating,
}

impl WarpPlacement {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
    fn is_by_slot(&self) -> bool {
        *self == Self::Slots
    }
}

/// One kind of execution unit of an SM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitSpec {
    /// Units in the SM; fewer than schedulers means that schedulers share.
    pub count: u32,
    /// Cycles from issue until a dependent instruction may issue, where the
    /// opcode table has no figure.
    pub latency_cycles: u32,
    /// Cycles for which one warp instruction takes one unit's issue port, where
    /// the opcode table has no figure.
    pub initiation_cycles: u32,
    /// Overrides the opcode table's own figures with these (imported machines).
    #[serde(default)]
    pub overrides_isa: bool,
}

/// Shared memory of an SM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedSpec {
    /// Bytes that CTAs can share out.
    pub bytes: u32,
    /// Bytes are handed out to a CTA in multiples of this many.
    pub unit_bytes: u32,
    /// Bytes that the system takes from every CTA's allocation.
    pub reserved_bytes_per_cta: u32,
    /// Cycles from issue until the loaded value may be used, without conflicts.
    pub latency_cycles: u32,
    /// Banks.
    pub banks: u32,
    /// Bytes per bank and cycle.
    pub bank_bytes: u32,
    /// How conflicts are counted.
    pub conflicts: BankConflicts,
    /// Bytes of loads that come back to the registers per cycle, from shared memory and the L1:
    /// a register of a warp takes 128 whether its lanes want the same word or not. 0: no bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub return_bytes: u32,
    /// Two registers come back as one where each lane wants what its neighbour, or the lane
    /// behind that, wants too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packs_returns: bool,
}

/// How shared-memory bank conflicts are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BankConflicts {
    /// Every word of every lane; lanes that read the same word share its pass.
    AllWords,
    /// Only the first word of each lane.
    FirstWord,
}

/// The L1 data cache of an SM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L1Spec {
    /// Global loads use it; false: only local memory does (Kepler, Maxwell).
    pub caches_global: bool,
    /// Geometry at the largest size.
    pub cache: Cache,
    /// Bytes of the array shared with shared memory; 0: the L1 has its own.
    pub unified_bytes: u32,
    /// Selectable shared-memory sizes, ascending; empty: no carve-out.
    pub carve_outs_bytes: Vec<u32>,
    /// Load-to-use cycles on a hit.
    pub latency_cycles: u32,
    /// Banks: sectors looked up per cycle.
    pub banks: u32,
    /// Bytes that lie in one bank before the next; 0: any bank holds any sector, so
    /// that those of an instruction never meet in one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bank_bytes: u32,
    /// How the data of hits come out of the array.
    #[serde(default, skip_serializing_if = "L1Data::is_by_sector")]
    pub data: L1Data,
    /// Sectors that come from below, and results of shared memory, that are handed
    /// to registers per cycle; 0: as many as come.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub returns_per_cycle: u32,
    /// Tags (lines) looked up per cycle for one instruction.
    pub tags_per_cycle: u32,
    /// Share of dirty lines, in percent, below which dirty lines are not replaced first.
    pub dirty_percent: u32,
    /// Memory instructions that may queue in front of the load/store unit.
    pub queue: u32,
    /// Those of one scheduler's warps among them; 0: as many as the queue holds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scheduler_queue: u32,
    /// Contents are dropped at the start of every kernel.
    pub flushed_at_kernel_start: bool,
}

/// How the data of a load that hits the L1 come out of its array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum L1Data {
    /// As many sectors per cycle as there are banks, as in Accel-Sim.
    #[default]
    Sector,
    /// Word by word from the banks of shared memory, whose array it is: lanes that want different
    /// words of one bank take a cycle each, as they do there, and all lanes get at most a sector
    /// per bank of the L1 and cycle. Stores go by sector.
    Word,
}

impl L1Data {
    fn is_by_sector(&self) -> bool {
        *self == Self::Sector
    }
}

/// Between SMs and L2 slices: one crossbar per direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interconnect {
    /// Cycles (crossbar clock) for one packet through an empty crossbar.
    pub latency_cycles: u32,
    /// Bytes that a port moves per crossbar cycle; 0: one packet of any size.
    pub flit_bytes: u32,
    /// Bytes of a packet's header.
    pub header_bytes: u32,
    /// Packets that a source port holds.
    pub input_queue: u32,
    /// Packets that a destination port holds.
    pub output_queue: u32,
    /// SMs that share one port (a TPC or cluster).
    pub sms_per_port: u32,
    /// Flits that an SM's port moves per crossbar cycle, each way; a slice's port moves one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub sm_port_flits: u32,
    /// Who may cross in one cycle.
    #[serde(default, skip_serializing_if = "Allocation::is_independent")]
    pub allocation: Allocation,
    /// Which packets wait behind one whose slice has no place.
    #[serde(default, skip_serializing_if = "PortQueues::are_fifo")]
    pub port_queues: PortQueues,
    /// What one packet asks for.
    #[serde(default, skip_serializing_if = "RequestGranularity::is_sector")]
    pub request_granularity: RequestGranularity,
}

/// What one packet between an SM and the L2 asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestGranularity {
    /// A sector of the caches, as in Accel-Sim.
    #[default]
    Sector,
    /// All sectors of a line that a warp instruction asks for, where they lie in one slice. The
    /// answer has as many flits as its sectors need; queues count sectors.
    Line,
}

impl RequestGranularity {
    fn is_sector(&self) -> bool {
        *self == Self::Sector
    }
}

/// Which packets may cross in one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// A destination takes packets of several sources at once; they queue behind it.
    #[default]
    Independent,
    /// A destination takes one packet per cycle, its contenders in turn (iSLIP, McKeown 1999);
    /// a packet that must wait holds up those behind it in its source's queue.
    Matched,
}

impl Allocation {
    fn is_independent(&self) -> bool {
        *self == Self::Independent
    }
}

/// Which packets wait at an SM's port behind one whose slice has no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortQueues {
    /// All: the port has one queue (head-of-line blocking), as in Accel-Sim.
    #[default]
    Fifo,
    /// Those for the same slice: the port has a queue per slice (virtual output queues). A slice
    /// takes waiting packets of all ports in the order in which they came.
    VirtualOutput,
}

impl PortQueues {
    fn are_fifo(&self) -> bool {
        *self == Self::Fifo
    }
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// The L2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L2Spec {
    /// Slices over all channels; a multiple of the channel count.
    pub slices: u32,
    /// Geometry of one slice.
    pub cache: Cache,
    /// Core cycles from arrival at a slice until the look-up.
    pub latency_cycles: u32,
    /// Where the L2 lies in two halves that keep copies of what their SMs read: core cycles to
    /// the other half and back. 0: the L2 is one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub far_half_cycles: u32,
    /// Sector requests that a slice accepts per L2 cycle.
    pub accesses_per_cycle: u32,
    /// Lanes of an atomic that change one word in one look-up of its slice; more of them take as
    /// many look-ups. 0: all at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub atomic_lanes: u32,
    /// Requests that wait in front of a slice.
    pub input_queue: u32,
    /// Requests between a slice and its channel.
    pub dram_queue: u32,
    /// Answers between a slice and the crossbar.
    pub reply_queue: u32,
}

/// Memory channels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DramSpec {
    /// The memory standard, a stem in `models/memory`.
    pub standard: String,
    /// Channels of the whole GPU.
    pub channels: u32,
    /// Bytes that one channel moves per memory clock at its peak; the memory
    /// standard says the same in its own words.
    pub channel_bytes_per_clock: u32,
    /// Standard parameters that this machine sets itself.
    #[serde(default)]
    pub timing: BTreeMap<String, f64>,
    /// The address mapping, a stem in `models/memory/mappings`, or `layout`: that of `layout`.
    pub mapping: String,
    /// The machine's own address layout in the terms of GPGPU-Sim, where `mapping` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Core cycles between L2 and the controller, one way or both together.
    pub latency_cycles: u32,
    /// Entries of the controller's queue of one channel.
    pub queue: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The way of constant loads that carry addresses: an inner constant cache per
/// SM, then the outer cache of [`super::Fetch`] where both share it, then the
/// L2. Latencies in core cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Bytes of the inner cache.
    pub bytes: u32,
    /// Its ways.
    pub ways: u32,
    /// Bytes of its lines: a power of two, 32 to 128.
    pub line_bytes: u32,
    /// Cycles from the look-up of a word until its data arrives.
    pub latency_cycles: u32,
    /// Cycles that each distinct word of a load takes of the cache.
    pub word_cycles: u32,
    /// Lines that it may await from the L2 at a time.
    pub outstanding: u32,
    /// What misses is asked of the outer cache of `fetch`; false: of the L2.
    pub shares_outer: bool,
}

/// What events cost, in picojoules, and what time costs, in watts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// Leakage and constant power of the whole GPU without its memory.
    pub static_watts: f64,
    /// Background power of the memory.
    pub dram_static_watts: f64,
    /// One instruction of one thread, register file and shared memory included.
    pub thread_instruction_pj: f64,
    /// One 32-byte sector looked up in an L1.
    pub l1_sector_pj: f64,
    /// One 32-byte sector over the crossbar, one way.
    pub interconnect_sector_pj: f64,
    /// One 32-byte sector looked up in the L2.
    pub l2_sector_pj: f64,
    /// One 32-byte sector to or from memory, interface included.
    pub dram_sector_pj: f64,
    /// One row activation with its precharge.
    pub dram_activate_pj: f64,
    /// One 128-byte column out of a bank or into one, without the interface, where the
    /// memory copies pages itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram_migrate_pj: Option<f64>,
}

/// The way of instructions to the schedulers: inner caches next to them (L0),
/// an outer cache of the SM (L1 or L1.5), then the L2. Latencies in core cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Bytes of a line, at all levels of the SM.
    pub line_bytes: u32,
    /// Inner caches of an SM; the schedulers share them evenly.
    pub inner_caches: u32,
    /// Bytes of one inner cache.
    pub inner_bytes: u32,
    /// Its ways.
    pub inner_ways: u32,
    /// Bytes of the outer cache.
    pub outer_bytes: u32,
    /// Its ways.
    pub outer_ways: u32,
    /// Cycles from a miss of an inner cache until a line of the outer one arrives.
    pub outer_latency_cycles: u32,
    /// Cycles from one line that the outer cache delivers to the next.
    pub outer_interval_cycles: u32,
    /// Lines that the outer cache may await from the L2 at a time.
    pub outer_outstanding: u32,
    /// Lines that follow a line and are fetched with it.
    pub prefetch_lines: u32,
    /// The outer cache has the code of a launch from its start, as after an earlier run of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starts_warm: bool,
}

/// What a given machine does differently from hardware; each is off by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// A warp's instruction buffer holds this many and is refilled only when
    /// empty; 0: fetch never limits.
    pub instruction_buffer: u32,
    /// Cycles from the issue of the buffer's last instruction, beyond the next
    /// one, until the refilled buffer issues again.
    pub refetch_cycles: u32,
    /// Memory instructions that fill all operand collectors. Each scheduler has an equal part of
    /// them and of the load/store queue, as with `-gpgpu_sub_core_model 1`. A scheduler whose part
    /// is full issues memory instructions only, and one that waits for a collector holds up those
    /// behind it, of all schedulers. 0: collectors never limit.
    pub collector_queue: u32,
    /// Packets between the banks of an L1 whose banks work in order and the network, which takes
    /// one per cycle: without a place there, a sector that misses waits at the end of its bank's
    /// pipeline, and the lowest bank goes first; 0: no such queue.
    #[serde(skip_serializing_if = "is_zero")]
    pub miss_queue: u32,
    /// Only the registers that the trace lists carry dependencies: a wide load
    /// covers its first register alone.
    pub listed_registers_only: bool,
    /// Kernels run one at a time, whatever their streams.
    pub serial_kernels: bool,
    /// Stream 0 is a stream as the others, as programs have it that are compiled for a default
    /// stream per thread; else it is CUDA's legacy default stream, which waits for all others
    /// and they for it.
    pub per_thread_default_stream: bool,
    /// A grid smaller than the GPU's room is spread over all SMs.
    pub spreads_small_grids: bool,
    /// Registers and shared memory of an SM are counted: a CTA's need not lie in one
    /// piece.
    pub pools_storage: bool,
    /// Every barrier instruction waits at barrier 0 of the whole CTA.
    pub whole_cta_barriers: bool,
    /// Predicates carry no dependency.
    pub ignores_predicates: bool,
    /// Active lanes at address 0 access it; else they are a tracer's fault and access nothing.
    pub accesses_null: bool,
    /// DRAM is never refreshed.
    pub no_refresh: bool,
    /// Texture instructions take a fixed time and touch no memory.
    pub textures_are_latency: bool,
}
