//! What can go wrong in a run that is not our bug.

use std::fmt::{self, Display, Formatter};

use thiserror::Error;

use gpumodel_core::units::{Cycle, Dim3};

use crate::gpu::feed::FeedError;

/// Why a run ended without a result.
#[derive(Debug, Error)]
pub enum MachineError {
    /// The source of instructions failed.
    #[error("the trace could not be read on")]
    Feed(#[source] FeedError),
    /// A CTA does not fit an empty SM.
    #[error(
        "a CTA of kernel {kernel} needs {warps} warps, {registers} registers and {shared_bytes} \
         shared bytes; an SM of {machine} does not hold that ({limit})"
    )]
    CtaTooLarge {
        /// Kernel name.
        kernel: String,
        /// Machine name.
        machine: String,
        /// Warps of the CTA.
        warps: u32,
        /// Registers of the CTA after allocation granularity.
        registers: u32,
        /// Shared bytes of the CTA after allocation granularity.
        shared_bytes: u32,
        /// What does not suffice.
        limit: &'static str,
    },
    /// A plan asks for a mechanism that the machine does not have.
    #[error("the plan asks for {0}, which the machine does not model yet")]
    Unsupported(&'static str),
    /// The CTAs of a launch do not add up.
    #[error(
        "{started} of {ctas} CTAs of launch {launch} were started, {retired} retired and {lost} \
         were dropped; this is a defect of the model, please report it"
    )]
    Lost {
        /// The launch, by its place in the run.
        launch: usize,
        /// CTAs of the launch.
        ctas: u64,
        /// CTAs started, each counted once.
        started: u64,
        /// CTAs that came to their end.
        retired: u64,
        /// CTAs that were dropped for good.
        lost: u64,
    },
    /// An application gets no share while another one restarts again and again.
    #[error(
        "application number {} never gets a share while others run again and again: such a run \
         has no end; give it one, as --until first-run,cycles=1000000", app + 1
    )]
    Starved {
        /// Which application, by its place in the run.
        app: usize,
    },
    /// All warps of a CTA wait at barriers that no warp is left to meet.
    #[error("{0}")]
    LostArrival(Box<LostArrival>),
    /// Nothing moves any more.
    #[error(
        "nothing has moved since cycle {since}; this is a defect of the model, please report it\n{dump}"
    )]
    Stuck {
        /// The last cycle in which an instruction issued.
        since: Cycle,
        /// What is resident and queued.
        dump: String,
    },
}

/// A CTA that waits forever at barriers: arrivals that the instructions count on are missing
/// in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostArrival {
    /// The kernel's name.
    pub kernel: String,
    /// The CTA's position in the grid; `None`: it is a worker, which runs several.
    pub cta: Option<Dim3>,
    /// The barriers at which warps wait.
    pub barriers: Vec<LostBarrier>,
}

/// A barrier that cannot open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostBarrier {
    /// Its number; `None`: the trace does not have it, or it is an object or the cluster's.
    pub number: Option<u8>,
    /// It is the barrier of the CTA's cluster.
    pub cluster: bool,
    /// Registers of the CTA in place of a barrier: `arrived` are free per thread, `expected` wanted.
    pub registers: bool,
    /// Of a barrier object: its byte offset in shared memory and the bytes that are missing.
    pub object: Option<(u64, i64)>,
    /// Warps that have arrived.
    pub arrived: u32,
    /// Warps at whose arrival it opens.
    pub expected: u32,
    /// The warps that wait, counted from 0 in their CTA among those with instructions, with the
    /// PC of the instruction at which they wait.
    pub waiting: Vec<(usize, u64)>,
}

impl Display for LostArrival {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.cta {
            Some(cta) => write!(f, "CTA {cta}")?,
            None => f.write_str("a worker")?,
        }
        write!(f, " of kernel {} waits forever at ", self.kernel)?;
        for (place, barrier) in self.barriers.iter().enumerate() {
            f.write_str(if place > 0 { "; and at " } else { "" })?;
            barrier.fmt(f)?;
        }
        f.write_str(
            "; no other warp is left to arrive: a fault of the trace, which lacks instructions; \
             trace the kernel again",
        )
    }
}

impl Display for LostBarrier {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.registers {
            let (free, wanted) = (self.arrived, self.expected);
            write!(f, "USETMAXREG with {free} of {wanted} registers per thread free")?;
            return self.write_waiting(f);
        }
        match (self.object, self.number) {
            (Some((address, _)), _) => write!(f, "the barrier object at {address:#x}")?,
            (None, _) if self.cluster => f.write_str("the barrier of the cluster")?,
            (None, Some(number)) => write!(f, "barrier {number}")?,
            (None, None) => f.write_str("a barrier without number")?,
        }
        write!(f, " with {} of {} arrivals", self.arrived, self.expected)?;
        if let Some((_, bytes @ 1..)) = self.object {
            write!(f, " and {bytes} bytes missing")?;
        }
        self.write_waiting(f)
    }
}

impl LostBarrier {
    fn write_waiting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, (warp, pc)) in self.waiting.iter().enumerate() {
            write!(f, "{}warp {warp} at PC {pc:#06x}", if place > 0 { ", " } else { ": " })?;
        }
        Ok(())
    }
}
