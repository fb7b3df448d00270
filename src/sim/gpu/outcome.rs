//! What a run leaves.

use gpumodel_core::units::Cycle;

use crate::counters::{CacheCounts, KernelCounts, SmCounts, TlbCounts};
use crate::dram::ChannelCounters;
use crate::gpu::app::{AppMoved, AppOutcome};
use crate::gpu::timeline::{CtaSpan, Residency, Sample};
use crate::hot::InstructionCounts;
use crate::interval::ProfileImage;

/// What a run leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The last cycle.
    pub cycles: Cycle,
    /// By launch; of an application that was launched again, its first run, without writes that
    /// were under way at its end.
    pub kernels: Vec<KernelCounts>,
    /// By launch, all runs of all applications up to the end.
    pub totals: Vec<KernelCounts>,
    /// By launch: CTAs on SMs times cycles, over all runs.
    pub cta_cycles: Vec<u64>,
    /// What became of each application.
    pub apps: Vec<AppOutcome>,
    /// What each application's changes of SMs and channels have cost up to the end of
    /// the run.
    pub moved: Vec<AppMoved>,
    /// CTAs of each application on each SM over time; of a run with several applications.
    pub residency: Option<Residency>,
    /// Activity over time.
    pub timeline: Vec<Sample>,
    /// Look-ups in each SM's TLB; empty where addresses are physical.
    pub tlbs: Vec<TlbCounts>,
    /// By SM.
    pub sms: Vec<SmCounts>,
    /// Requests of each L2 slice, page walks, instruction fetch and constants among
    /// them.
    pub slices: Vec<CacheCounts>,
    /// By memory channel; accesses, which may be wider than sectors.
    pub channels: Vec<ChannelCounters>,
    /// What was found of each code, for a later run; empty when nothing was new.
    pub profiles: Vec<ProfileImage>,
    /// By launch and instruction of its code; empty unless
    /// [`Gpu::with_hot_spots`](crate::Gpu::with_hot_spots), and for launches that ran nothing.
    pub hot: Vec<Vec<InstructionCounts>>,
    /// Every CTA that retired in the order of their ends, where the run is a part of a whole or
    /// [`Gpu::with_cta_spans`](crate::Gpu::with_cta_spans).
    pub spans: Vec<CtaSpan>,
    /// Sectors of reads of data that launches outside the run have in the L2.
    pub passed: u64,
}
