//! What an opcode does to the machine: which unit runs it and what it touches.

use super::access::ObjectStep;

/// The execution unit that an instruction occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// 32-bit integer, logic, moves, conversions on the integer pipe.
    Int,
    /// 32-bit floating point.
    Fp32,
    /// 64-bit floating point.
    Fp64,
    /// 16-bit packed floating point.
    Half,
    /// Transcendentals and slow conversions (`MUFU`, `F2F` and friends).
    Sfu,
    /// Matrix units.
    Tensor,
    /// Branches and control transfer.
    Branch,
    /// Texture units.
    Texture,
    /// The uniform datapath.
    Uniform,
    /// The load/store path: everything with an address.
    Memory,
    /// Issue slot only (`NOP`, `DEPBAR`, `EXIT` where no unit is used).
    Control,
}

impl Unit {
    /// Every unit, in the order in which tables print them.
    pub const ALL: [Self; 11] = [
        Self::Int,
        Self::Fp32,
        Self::Fp64,
        Self::Half,
        Self::Sfu,
        Self::Tensor,
        Self::Branch,
        Self::Texture,
        Self::Uniform,
        Self::Memory,
        Self::Control,
    ];

    /// The name in model files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Fp32 => "fp32",
            Self::Fp64 => "fp64",
            Self::Half => "half",
            Self::Sfu => "sfu",
            Self::Tensor => "tensor",
            Self::Branch => "branch",
            Self::Texture => "texture",
            Self::Uniform => "uniform",
            Self::Memory => "memory",
            Self::Control => "control",
        }
    }

    /// The unit of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// Position in [`Unit::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The memory space an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Device memory.
    Global,
    /// The CTA's shared memory; addresses are byte offsets.
    Shared,
    /// Per-thread memory; addresses are per-thread offsets that the hardware
    /// interleaves by lane.
    Local,
    /// The constant bank.
    Constant,
    /// Textures and surfaces.
    Texture,
    /// Decided per address by the kernel's shared and local windows.
    Generic,
}

/// What an instruction does beyond computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// Register to register.
    Compute,
    /// Reads memory into registers.
    Load(Space),
    /// Writes memory.
    Store(Space),
    /// Read-modify-write that returns the old value.
    Atomic(Space),
    /// Read-modify-write without a result.
    Reduction(Space),
    /// Global to shared without registers (`LDGSTS`); completion is awaited by
    /// [`Effect::AsyncWait`].
    AsyncCopy,
    /// Closes a group of the async copies so far (`LDGDEPBAR`).
    AsyncCommit,
    /// Waits until at most the immediate's number of async groups is pending
    /// (`DEPBAR`); without open groups it waits for nothing.
    AsyncWait,
    /// Bulk copy from global to shared memory (`UTMALDG`, `UBLKCP.S.G`), past the L1; a barrier
    /// object counts its bytes.
    BulkLoad,
    /// Bulk copy from shared to global memory (`UTMASTG`, `UBLKCP.G.S`), awaited as an
    /// asynchronous copy.
    BulkStore,
    /// Bulk reduction into global memory (`UTMAREDG`, `UBLKRED`), awaited so too.
    BulkReduction,
    /// A step at a barrier object in shared memory (`SYNCS`).
    Object(ObjectStep),
    /// Arrives at a barrier of the CTA and waits for the other warps.
    Barrier,
    /// Arrives at a barrier of the CTA and continues.
    Arrive,
    /// Arrives at the barrier of the cluster and continues.
    ClusterArrive,
    /// Waits until all warps of the cluster have arrived at its barrier.
    ClusterWait,
    /// Memory fence.
    Fence,
    /// Matrix multiply of a warp group (`HGMMA`): overlaps with what its warp issues next; the
    /// accumulators are ready at [`Effect::MatrixWait`].
    MatrixGroup,
    /// Waits until at most the immediate's number of groups of multiplies is under way
    /// (`WARPGROUP.DEPBAR`).
    MatrixWait,
    /// Sets the registers per thread of its warp to the immediate (`USETMAXREG`): those that it
    /// gives back go to its CTA, and it waits for those that it lacks.
    SetRegisters,
    /// Ends the warp when no lane is left.
    Exit,
    /// May change the program counter.
    Branch,
}

impl Effect {
    /// The memory space touched, if any.
    #[must_use]
    pub const fn space(self) -> Option<Space> {
        match self {
            Self::Load(space)
            | Self::Store(space)
            | Self::Atomic(space)
            | Self::Reduction(space) => Some(space),
            Self::AsyncCopy => Some(Space::Global),
            Self::Object(_) => Some(Space::Shared),
            _ => None,
        }
    }

    /// True for bulk copies, whose addresses are no lane's.
    #[must_use]
    pub const fn is_bulk(self) -> bool {
        matches!(self, Self::BulkLoad | Self::BulkStore | Self::BulkReduction)
    }

    /// True when registers wait for an answer of the memory system.
    #[must_use]
    pub const fn returns_data(self) -> bool {
        matches!(self, Self::Load(_) | Self::Atomic(_))
    }
}

/// One opcode of one kernel as a machine sees it: class and timing.
///
/// Resolved once per kernel and machine from the dotted SASS text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode {
    /// The unit that runs it.
    pub unit: Unit,
    /// What it does.
    pub effect: Effect,
    /// Cycles from issue until a dependent instruction may issue. For memory
    /// instructions: the part that is spent before the memory system.
    pub latency_cycles: u32,
    /// Cycles for which the unit's issue port is taken by one warp instruction.
    pub initiation_cycles: u32,
    /// Consecutive 32-bit registers that each general destination stands for
    /// (traces name only the first): 2 for 64-bit results, 4 for 128-bit.
    pub registers_per_destination: u8,
    /// Bypasses the L1 (`.STRONG.GPU`, `.STRONG.SYS`, atomics).
    pub bypasses_l1: bool,
    /// Cycles from its issue before the warp may issue again, whatever depends on
    /// it; 0 and 1 hold up nothing.
    pub hold_cycles: u32,
    /// Its result is a predicate, which traces do not list.
    pub writes_predicate: bool,
    /// It waits for the predicate written last, which traces do not list.
    pub reads_predicate: bool,
    /// Cycles for which its unit is taken where it reads its first operand from shared memory:
    /// of a matrix multiply of a warp group; 0 elsewhere.
    pub shared_operand_cycles: u32,
    /// How the table knows it.
    pub listing: Listing,
}

impl Opcode {
    /// False where only a rule on the first letters classified it.
    #[must_use]
    pub fn known(&self) -> bool {
        self.listing != Listing::Prefix
    }
}

/// How a table knows an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// An instruction of the architecture.
    Own,
    /// An instruction of another architecture: what it does is known, its timing is that of its
    /// work on the units of this one.
    OtherArchitecture,
    /// Only a rule on the first letters classified it.
    Prefix,
}

/// Single-precision operations of one lane of an instruction, by its SASS name: as
/// nvprof's `flop_count_sp` counts, additions and multiplications once, multiply-adds
/// twice, nothing else (profiler user's guide, metrics reference).
#[must_use]
pub fn flops(name: &str) -> u32 {
    match name.split('.').next().unwrap_or_default() {
        "FFMA" | "FFMA32I" => 2,
        "FADD" | "FADD32I" | "FMUL" | "FMUL32I" => 1,
        _ => 0,
    }
}
