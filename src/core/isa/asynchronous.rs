//! What asynchronous instructions of Hopper carry beyond registers and lane addresses: bulk
//! copies and barrier objects in shared memory.

/// A bulk copy between global and shared memory, as far as the trace has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkCopy {
    /// Shared-memory address of the barrier object that counts its bytes; `None`: not in the
    /// trace.
    pub barrier: Option<u64>,
    /// Bytes that it counts there: those of its box, out of bounds included.
    pub bytes: u64,
    /// Global addresses of its pieces.
    pub pieces: Vec<u64>,
    /// Bytes of each piece.
    pub piece_bytes: u64,
    /// CTAs of the cluster that get the bytes, one bit per rank; 0: the CTA that asks.
    pub multicast: u16,
}

/// What a step at a barrier object (PTX ISA, `mbarrier`) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectStep {
    /// Sets the number of arrivals of a phase.
    Init,
    /// Arrives, and expects bytes by its register.
    ArriveExpect,
    /// Arrives.
    Arrive,
    /// Arrives as often as its register says.
    ArriveTimes,
    /// Arrives so, once where the register is 0, and is not expected in later phases.
    Leave,
    /// Expects bytes by its register.
    Expect,
    /// Takes bytes by its register as come.
    Complete,
    /// Arrives when the asynchronous copies so far are done.
    ArriveAfterCopies,
    /// Waits for the end of the phase whose parity its register has.
    Wait,
}

/// What a trace has of one asynchronous instruction beyond its lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsyncFields {
    /// Of a bulk copy.
    Copy(BulkCopy),
    /// The values of the source registers in the lowest active lane, in the order of the
    /// operands.
    Values(Vec<u64>),
}
