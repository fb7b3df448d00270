//! The table of all schemes.

use super::{
    Cuda, Even, Fcfs, LeftOver, Oracle, Parameter, ProfileBased, Pt, Scheme, Sequential, Settings,
    Sim, Slate, Smra, Solo, Spatial, WarpedSlicer, cuda, oracle, profile_based, pt, sim, slate,
    smra, solo, spatial, ugpu, warped_slicer,
};

/// One row of the table of schemes.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    /// Where it is from.
    pub paper: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What a user may set.
    pub parameters: &'static [Parameter],
    /// How many applications it is for; `None`: any number.
    pub apps: Option<usize>,
    /// It gives applications memory channels of their own, and runs only on machines
    /// where those can be owned.
    pub channels: bool,
    /// Makes it with settings of these parameters.
    pub make: fn(&Settings) -> Box<dyn Scheme>,
}

impl Row {
    /// Whether it runs `apps` applications to their ends.
    #[must_use]
    pub fn serves(&self, apps: usize) -> bool {
        self.apps.is_none_or(|only| only == apps)
    }
}

const TENANCY: &str = "Adaptive simultaneous multi-tenancy (ARCS 2018)";

const SLATE: &str = "Slate (IPDPS 2019)";

const WARPED_SLICER: &str = "Warped-Slicer (ISCA 2016)";

const UGPU: &str = "UGPU (ISCA 2025)";

const CD_SEARCH: &str = "CD-Search (ICS 2018), as in UGPU";

/// Every scheme.
pub const TABLE: &[Row] = &[
    Row {
        name: "solo",
        paper: "none: the baseline of every other scheme",
        summary: "one application has the whole machine",
        parameters: solo::PARAMETERS,
        apps: Some(1),
        channels: false,
        make: Solo::make,
    },
    Row {
        name: "sequential",
        paper: WARPED_SLICER,
        summary: "one application after the other, each on the whole machine",
        parameters: &[],
        apps: None,
        channels: false,
        make: Sequential::make,
    },
    Row {
        name: "left-over",
        paper: WARPED_SLICER,
        summary: "CTAs strictly in launch order: the next launch has what is left over",
        parameters: &[],
        apps: None,
        channels: false,
        make: LeftOver::make,
    },
    Row {
        name: "fcfs",
        paper: WARPED_SLICER,
        summary: "CTAs of all applications in turn, each to an SM where it fits",
        parameters: &[],
        apps: None,
        channels: false,
        make: Fcfs::make,
    },
    Row {
        name: "even",
        paper: WARPED_SLICER,
        summary: "an equal part of every SM for each application",
        parameters: &[],
        apps: None,
        channels: false,
        make: Even::make,
    },
    Row {
        name: "spatial",
        paper: "Adriaens et al. (HPCA 2012), as in Warped-Slicer",
        summary: "an equal number of SMs for each application",
        parameters: spatial::PARAMETERS,
        apps: None,
        channels: false,
        make: Spatial::make,
    },
    Row {
        name: "warped-slicer",
        paper: WARPED_SLICER,
        summary: "every SM sliced by sampled speeds, so that the slowest application is as fast as possible",
        parameters: warped_slicer::PARAMETERS,
        apps: None,
        channels: false,
        make: WarpedSlicer::make,
    },
    Row {
        name: "oracle",
        paper: WARPED_SLICER,
        summary: "the fastest of all CTA combinations, left-over and spatial",
        parameters: oracle::PARAMETERS,
        apps: None,
        channels: false,
        make: Oracle::make,
    },
    Row {
        name: "smra",
        paper: "ILP-SMRA, Algorithm 1",
        summary: "own SMs for each, moved at run time from memory-bound to compute-bound applications",
        parameters: smra::PARAMETERS,
        apps: None,
        channels: false,
        make: Smra::make,
    },
    Row {
        name: "profile-based",
        paper: "Adriaens et al. (HPCA 2012), as in ILP-SMRA",
        summary: "own SMs for each application, as many as its solo runs need",
        parameters: profile_based::PARAMETERS,
        apps: None,
        channels: false,
        make: ProfileBased::make,
    },
    Row {
        name: "pt",
        paper: TENANCY,
        summary: "kernels as persistent workers, as many as fit, first come first served",
        parameters: pt::PARAMETERS,
        apps: None,
        channels: false,
        make: Pt::make,
    },
    Row {
        name: "sim",
        paper: TENANCY,
        summary: "persistent workers whose number per SM a host service adapts as kernels start and end",
        parameters: sim::PARAMETERS,
        apps: None,
        channels: false,
        make: Sim::make,
    },
    Row {
        name: "cuda",
        paper: SLATE,
        summary: "processes in turns, each on the whole machine for a time slice",
        parameters: cuda::PARAMETERS,
        apps: None,
        channels: false,
        make: Cuda::make,
    },
    Row {
        name: "mps-leftover",
        paper: SLATE,
        summary: "the Multi-Process Service as Slate describes it: left-over, whatever the process",
        parameters: &[],
        apps: None,
        channels: false,
        make: LeftOver::make,
    },
    Row {
        name: "slate",
        paper: SLATE,
        summary: "kernels as persistent workers on own SMs, paired with kernels of a matching class",
        parameters: slate::PARAMETERS,
        apps: None,
        channels: false,
        make: Slate::make,
    },
    Row {
        name: "bp",
        paper: UGPU,
        summary: "an equal, private part of SMs and memory channels for each application",
        parameters: ugpu::BALANCED,
        apps: None,
        channels: true,
        make: ugpu::bp,
    },
    Row {
        name: "bp-bs",
        paper: UGPU,
        summary: "three quarters of SMs and channels for the first of two, a quarter for the second",
        parameters: ugpu::UNEQUAL,
        apps: Some(2),
        channels: true,
        make: ugpu::bp_bs,
    },
    Row {
        name: "bp-sb",
        paper: UGPU,
        summary: "a quarter of SMs and channels for the first of two, three quarters for the second",
        parameters: ugpu::UNEQUAL,
        apps: Some(2),
        channels: true,
        make: ugpu::bp_sb,
    },
    Row {
        name: "ugpu-offline",
        paper: UGPU,
        summary: "own SMs and channels for each application, as many as its solo run needs",
        parameters: ugpu::OFFLINE,
        apps: None,
        channels: true,
        make: ugpu::ugpu_offline,
    },
    Row {
        name: "ugpu-ori",
        paper: UGPU,
        summary: "as ugpu, all pages of an affected application moved by reads and writes",
        parameters: ugpu::PARAMETERS,
        apps: None,
        channels: true,
        make: ugpu::ugpu_ori,
    },
    Row {
        name: "ugpu-soft",
        paper: UGPU,
        summary: "as ugpu, pages moved by reads and writes",
        parameters: ugpu::PARAMETERS,
        apps: None,
        channels: true,
        make: ugpu::ugpu_soft,
    },
    Row {
        name: "ugpu",
        paper: UGPU,
        summary: "SMs moved to compute-bound, channels to memory-bound applications, pages by PageMove",
        parameters: ugpu::PARAMETERS,
        apps: None,
        channels: true,
        make: ugpu::ugpu,
    },
    Row {
        name: "cd-search",
        paper: CD_SEARCH,
        summary: "own SMs for each application, moved while throughput rises; shared memory channels",
        parameters: ugpu::SEARCH,
        apps: None,
        channels: false,
        make: ugpu::cd_search,
    },
    Row {
        name: "bp-cd-search",
        paper: CD_SEARCH,
        summary: "as cd-search, with a fixed, equal number of own channels for each application",
        parameters: ugpu::SEARCH,
        apps: None,
        channels: true,
        make: ugpu::bp_cd_search,
    },
    Row {
        name: "mps-share",
        paper: UGPU,
        summary: "own SMs for each application; shared memory channels",
        parameters: ugpu::SHARED,
        apps: None,
        channels: false,
        make: ugpu::mps_share,
    },
    Row {
        name: "qos-bp",
        paper: UGPU,
        summary: "as bp, three quarters for the high-priority application",
        parameters: ugpu::QOS,
        apps: None,
        channels: true,
        make: ugpu::qos_bp,
    },
    Row {
        name: "qos-mps-share",
        paper: UGPU,
        summary: "as mps-share, three quarters of the SMs for the high-priority application",
        parameters: ugpu::QOS,
        apps: None,
        channels: false,
        make: ugpu::qos_mps_share,
    },
    Row {
        name: "qos-ugpu",
        paper: UGPU,
        summary: "as ugpu, the high-priority application keeps three quarters of its solo speed",
        parameters: ugpu::QOS_TARGET,
        apps: None,
        channels: true,
        make: ugpu::qos_ugpu,
    },
];

/// The row of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}
