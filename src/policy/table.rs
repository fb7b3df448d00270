//! The table of all schemes: one row each.

use gpumodel_core::contract::Migration;
use gpumodel_core::units::AppId;

use super::profile_based::{self, ProfileBased};
use super::warped_slicer::{self, WarpedSlicer};
use super::{
    Parameter, Scheme, Settings, cuda, even, fcfs, green_contexts, left_over, mig, mps, oracle, pt,
    sequential, sim, slate, smra, solo, spatial, time_slicing, ugpu,
};

/// One row of the table of schemes.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    /// The paper or system that it is from.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What a user may set.
    pub parameters: &'static [Parameter],
    /// The only number of applications that it runs; `None`: any number.
    pub apps: Option<usize>,
    /// Applications own memory channels under it, so the machine must have groups of
    /// channels that can be owned.
    pub channels: bool,
    /// Applications own instances under it, so the machine must have a section `[mig]`.
    pub instances: bool,
    /// Makes it with settings of these parameters.
    pub make: fn(&Settings) -> Box<dyn Scheme>,
}

impl Row {
    /// A scheme for any number of applications that share the memory channels.
    const fn new(
        name: &'static str,
        paper: &'static str,
        make: fn(&Settings) -> Box<dyn Scheme>,
        parameters: &'static [Parameter],
    ) -> Self {
        Self {
            name,
            paper,
            summary: "",
            parameters,
            apps: None,
            channels: false,
            instances: false,
            make,
        }
    }

    const fn does(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    const fn only_for(self, apps: usize) -> Self {
        Self { apps: Some(apps), ..self }
    }

    const fn owns_channels(self) -> Self {
        Self { channels: true, ..self }
    }

    const fn owns_instances(self) -> Self {
        Self { instances: true, ..self }
    }

    /// Whether it runs `apps` applications to their ends.
    #[must_use]
    pub fn serves(&self, apps: usize) -> bool {
        self.apps.is_none_or(|only| only == apps)
    }
}

const BASELINE: &str = "none: the baseline of every other scheme";

const SPATIAL: &str = "Adriaens et al. (HPCA 2012), as in Warped-Slicer";

const PROFILE_BASED: &str = "Adriaens et al. (HPCA 2012), as in ILP-SMRA";

const TENANCY: &str = "Adaptive simultaneous multi-tenancy (ARCS 2018)";

const SLATE: &str = "Slate (IPDPS 2019)";

const NVIDIA: &str = "NVIDIA's CUDA and driver";

const WARPED_SLICER: &str = "Warped-Slicer (ISCA 2016)";

const UGPU: &str = "UGPU (ISCA 2025)";

const CD_SEARCH: &str = "CD-Search (ICS 2018), as in UGPU";

/// Every scheme.
pub const TABLE: &[Row] = &[
    Row::new("solo", BASELINE, solo::Solo::make, solo::PARAMETERS)
        .does("one application has the whole machine")
        .only_for(1),
    Row::new("sequential", WARPED_SLICER, |_| Box::new(sequential::Sequential), &[])
        .does("one application after the other, each on the whole machine"),
    Row::new("left-over", WARPED_SLICER, |_| Box::new(left_over::LeftOver), &[])
        .does("CTAs in launch order: the next launch has what is left over"),
    Row::new("fcfs", WARPED_SLICER, |_| Box::new(fcfs::Fcfs), &[])
        .does("CTAs of all applications in turn, each to an SM where it fits"),
    Row::new("even", WARPED_SLICER, |_| Box::new(even::Even), &[])
        .does("an equal part of every SM for each application"),
    Row::new("spatial", SPATIAL, spatial::Spatial::make, spatial::PARAMETERS)
        .does("an equal number of SMs for each application"),
    Row::new("warped-slicer", WARPED_SLICER, WarpedSlicer::make, warped_slicer::PARAMETERS)
        .does("every SM sliced by sampled speeds, for the slowest application"),
    Row::new("oracle", WARPED_SLICER, oracle::Oracle::make, oracle::PARAMETERS)
        .does("the fastest of all CTA combinations, left-over and spatial"),
    Row::new("smra", "ILP-SMRA, Algorithm 1", smra::Smra::make, smra::PARAMETERS)
        .does("own SMs, moved at run time from memory-bound to compute-bound"),
    Row::new("profile-based", PROFILE_BASED, ProfileBased::make, profile_based::PARAMETERS)
        .does("own SMs for each application, as many as its solo runs need"),
    Row::new("pt", TENANCY, pt::Pt::make, pt::PARAMETERS)
        .does("persistent workers, as many as fit, first come first served"),
    Row::new("sim", TENANCY, sim::Sim::make, sim::PARAMETERS)
        .does("persistent workers, more or fewer as kernels start and end"),
    Row::new("cuda", SLATE, cuda::Cuda::make, cuda::PARAMETERS)
        .does("processes in turns, each on the whole machine for a time slice"),
    Row::new("mps-leftover", SLATE, |_| Box::new(left_over::LeftOver), &[])
        .does("the Multi-Process Service as Slate describes it: left-over"),
    Row::new("slate", SLATE, slate::Slate::make, slate::PARAMETERS)
        .does("persistent workers on own SMs, in pairs of matching classes"),
    Row::new("bp", UGPU, ugpu::bp, ugpu::BALANCED)
        .does("an equal, private part of SMs and channels for each")
        .owns_channels(),
    Row::new("bp-bs", UGPU, |set| ugpu::bp_unequal(set, AppId(0)), ugpu::UNEQUAL)
        .does("three quarters of SMs and channels for the first of two")
        .only_for(2)
        .owns_channels(),
    Row::new("bp-sb", UGPU, |set| ugpu::bp_unequal(set, AppId(1)), ugpu::UNEQUAL)
        .does("a quarter of SMs and channels for the first of two")
        .only_for(2)
        .owns_channels(),
    Row::new("ugpu-offline", UGPU, ugpu::ugpu_offline, ugpu::OFFLINE)
        .does("own SMs and channels, as many as the solo run of each needs")
        .owns_channels(),
    Row::new("ugpu-ori", UGPU, |set| ugpu::ugpu(set, Migration::Traditional), ugpu::PARAMETERS)
        .does("as ugpu, all pages of an application moved by reads and writes")
        .owns_channels(),
    Row::new("ugpu-soft", UGPU, |set| ugpu::ugpu(set, Migration::Software), ugpu::PARAMETERS)
        .does("as ugpu, pages moved by reads and writes")
        .owns_channels(),
    Row::new("ugpu", UGPU, |set| ugpu::ugpu(set, Migration::PageMove), ugpu::PARAMETERS)
        .does("SMs to compute-bound, channels to memory-bound, by PageMove")
        .owns_channels(),
    Row::new("cd-search", CD_SEARCH, |set| ugpu::cd_search(set, false), ugpu::SEARCH)
        .does("own SMs, moved while throughput rises; shared memory channels"),
    Row::new("bp-cd-search", CD_SEARCH, |set| ugpu::cd_search(set, true), ugpu::SEARCH)
        .does("as cd-search, with an equal, fixed number of channels for each")
        .owns_channels(),
    Row::new("mps-share", UGPU, ugpu::mps_share, ugpu::SHARED)
        .does("own SMs for each application; shared memory channels"),
    Row::new("qos-bp", UGPU, |set| ugpu::qos_fixed(set, true), ugpu::QOS)
        .does("as bp, three quarters for the high-priority application")
        .owns_channels(),
    Row::new("qos-mps-share", UGPU, |set| ugpu::qos_fixed(set, false), ugpu::QOS)
        .does("as mps-share, three quarters of the SMs for high priority"),
    Row::new("qos-ugpu", UGPU, ugpu::qos_ugpu, ugpu::QOS_TARGET)
        .does("as ugpu, high priority keeps three quarters of its solo speed")
        .owns_channels(),
    Row::new("mig", NVIDIA, mig::Mig::make, mig::PARAMETERS)
        .does("an instance for each application: own SMs, L2 and channels")
        .owns_instances(),
    Row::new("mps", NVIDIA, mps::Mps::make, mps::PARAMETERS)
        .does("processes at once on shared SMs, a limit of SMs for each"),
    Row::new(
        "green-contexts",
        NVIDIA,
        green_contexts::GreenContexts::make,
        green_contexts::PARAMETERS,
    )
    .does("own SMs for each application, as many as set; shared memory"),
    Row::new("time-slicing", NVIDIA, time_slicing::make, time_slicing::PARAMETERS)
        .does("processes in turns, each on the whole machine for a quantum"),
];

/// The row of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}
