//! What can go wrong in a run that is not our bug.

use thiserror::Error;

use gpumodel_core::units::Cycle;

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
