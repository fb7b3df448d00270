//! What a run leaves.

use crate::units::Cycle;

use super::counters::{CacheCounts, KernelCounts, SmCounts, TlbCounts};
use super::dram::ChannelCounters;
use super::profile::ProfileImage;
use super::span::CtaSpan;
use super::timeline::Sample;

/// What a run leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The last cycle.
    pub cycles: Cycle,
    /// By launch.
    pub kernels: Vec<KernelCounts>,
    /// When each application finished.
    pub app_ends: Vec<Cycle>,
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
    /// Every CTA in the order of their ends, where the run is a part of a whole.
    pub spans: Vec<CtaSpan>,
    /// Reads of data, of sectors that somebody outside the run has in the L2.
    pub passed: u64,
}
