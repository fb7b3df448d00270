//! What is fixed for a run and known to a scheme before it starts.

use serde::{Deserialize, Serialize};

use crate::units::{AppId, Cycle};

/// The machine and the applications of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Streaming multiprocessors.
    pub sms: u16,
    /// Resident CTAs of one SM.
    pub max_ctas_per_sm: u32,
    /// Resident warps of one SM.
    pub max_warps_per_sm: u32,
    /// 32-bit registers of one SM.
    pub registers_per_sm: u32,
    /// Shared bytes of one SM.
    pub shared_bytes_per_sm: u32,
    /// Registers come to a warp in multiples of this.
    pub register_unit: u32,
    /// Shared bytes come to a CTA in multiples of this.
    pub shared_unit_bytes: u32,
    /// Shared bytes that every CTA takes in addition to its own.
    pub shared_reserved_bytes: u32,
    /// Memory channels.
    pub channels: u32,
    /// Channels that can only change hands together, as a page lies in all of one
    /// group. Empty: pages spread over all channels, or addresses are not translated,
    /// and no channel can be owned.
    pub channel_groups: Vec<Vec<u32>>,
    /// Bytes of memory behind one channel.
    pub channel_bytes: u64,
    /// Bytes of a page; 0 where addresses are not translated.
    pub page_bytes: u32,
    /// Whether TLBs learn of pages that move; false where all know every page.
    pub pages_follow: bool,
    /// SM clock.
    pub core_mhz: f64,
    /// Peak DRAM bandwidth of all channels.
    pub peak_dram_gb_per_s: f64,
    /// Peak L2 bandwidth of all slices.
    pub peak_l2_gb_per_s: f64,
    /// Bandwidth of the answers that reach one SM through its port of the crossbar, at
    /// most: what the port moves per cycle, headers included.
    pub peak_sm_port_gb_per_s: f64,
    /// Thread instructions that one SM issues per cycle at most.
    pub peak_ipc_per_sm: f64,
    /// Warp schedulers of one SM: each has one slot per cycle in the stall stacks.
    pub schedulers_per_sm: u32,
    /// The instances into which the machine can be divided; `None`: it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigFacts>,
    /// The applications in command-line order; index is the [`AppId`].
    pub apps: Vec<AppFacts>,
}

impl Facts {
    /// CTAs of a launch that an empty SM holds, by what one of them takes.
    #[must_use]
    pub fn fits(&self, kernel: &KernelFacts) -> u32 {
        let over = |have: u32, need: u32| have.checked_div(need).unwrap_or(u32::MAX);
        self.max_ctas_per_sm
            .min(over(self.max_warps_per_sm, kernel.warps_per_cta))
            .min(over(self.registers_per_sm, kernel.registers_per_cta))
            .min(over(self.shared_bytes_per_sm, kernel.shared_bytes_per_cta))
    }

    /// Cycles of the SM clock in so many seconds.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from a float stays within the range"
    )]
    pub fn cycles_in(&self, seconds: f64) -> Cycle {
        (seconds * self.core_mhz * 1e6).round() as Cycle
    }
}

/// Instances of a GPU that share nothing: own SMs, and own memory slices with their part of L2 and
/// channels (Multi-Instance GPU).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigFacts {
    /// Memory slices of the machine: equal, neighbouring parts of its channels.
    pub memory_slices: u32,
    /// The kinds of instances.
    pub profiles: Vec<MigProfile>,
}

/// One kind of instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigProfile {
    /// Its name: `3g.20gb`.
    pub name: String,
    /// SMs.
    pub sms: u16,
    /// Memory slices.
    pub memory_slices: u32,
    /// Instances at once, at most.
    pub instances: u32,
    /// Copy engines.
    pub copy_engines: u32,
    /// The memory slices at which an instance may begin.
    pub starts: Vec<u32>,
}

/// One application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppFacts {
    /// Its id.
    pub app: AppId,
    /// Its name.
    pub name: String,
    /// When its first command may begin.
    pub arrival: Cycle,
    /// Its launches in trace order.
    pub kernels: Vec<KernelFacts>,
}

/// What one launch needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// Kernel name.
    pub name: String,
    /// CTAs of the launch in its trace: the grid's, or fewer.
    pub ctas: u64,
    /// Threads of a CTA.
    pub threads_per_cta: u32,
    /// Warps of a CTA.
    pub warps_per_cta: u32,
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// Static and dynamic shared bytes of a CTA.
    pub shared_bytes: u32,
    /// Registers of a CTA after allocation granularity.
    pub registers_per_cta: u32,
    /// Shared bytes of a CTA after allocation granularity.
    pub shared_bytes_per_cta: u32,
    /// CTAs that one empty SM holds.
    pub ctas_per_sm: u32,
    /// Warp instructions of the whole launch.
    pub warp_instructions: u64,
}
