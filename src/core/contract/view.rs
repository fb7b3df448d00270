//! What a scheme sees when it is asked.

use serde::{Deserialize, Serialize};

use crate::units::{AppId, Cycle};

/// Why a scheme is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// The cycle that the last plan named has come.
    At(Cycle),
    /// An application arrived.
    Arrival(AppId),
    /// A launch may start its first CTA.
    KernelBegin(AppId),
    /// A launch retired its last CTA.
    KernelEnd(AppId),
    /// An application finished its last launch.
    AppEnd(AppId),
    /// The last task of a persistent kernel was started.
    LastTaskStarted(AppId),
    /// A vacating SM holds no CTA of the application any more.
    CtaDrained(AppId),
    /// An application's IPC left the band that the last plan named.
    IpcShift(AppId),
}

/// One decision's picture of the run; counters are since the last decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The cycle of the decision.
    pub now: Cycle,
    /// Why it is asked.
    pub wake: Wake,
    /// The cycle of the last decision.
    pub since: Cycle,
    /// One entry per application, by [`AppId`].
    pub apps: Vec<AppView>,
    /// Applications that have arrived and hold no share, in arrival order.
    pub queue: Vec<AppId>,
    /// Owner of each memory channel; `None`: shared by all, or without an owner.
    pub channel_owner: Vec<Option<AppId>>,
}

/// What some memory channels have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelUse {
    /// Bytes read and written over their pins.
    pub bytes: u64,
    /// Cycles in which requests waited at them, summed over the channels.
    pub waiting_cycles: Cycle,
    /// All cycles, summed over the channels.
    pub cycles: Cycle,
}

impl ChannelUse {
    /// What was done since `before`, of the same channels.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            waiting_cycles: self.waiting_cycles - before.waiting_cycles,
            cycles: self.cycles - before.cycles,
        }
    }
}

impl std::ops::AddAssign for ChannelUse {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.waiting_cycles += other.waiting_cycles;
        self.cycles += other.cycles;
    }
}

impl std::iter::Sum for ChannelUse {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// One application in a [`View`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppView {
    /// Has arrived and not finished.
    pub active: bool,
    /// Has finished; with [`AppView::active`] false and this false it is still to come.
    pub finished: bool,
    /// Its launches that have begun and not ended, by their index in
    /// [`super::AppFacts::kernels`], in the order in which they began.
    pub running: Vec<usize>,
    /// CTAs resident on each SM.
    pub ctas_by_sm: Vec<u32>,
    /// CTAs of the running launches that have not started.
    pub ctas_left: u64,
    /// Warp instructions on each SM, by the issue slots that they took: not ahead of
    /// time as plain counters, which note a whole burst when it begins.
    pub warp_instructions_by_sm: Vec<f64>,
    /// Thread instructions over all SMs: the warp instructions of
    /// [`AppView::warp_instructions_by_sm`] at the application's mean of active lanes.
    pub thread_instructions: u64,
    /// Long-memory-latency slot-cycles on each SM.
    pub memory_stall_slots_by_sm: Vec<f64>,
    /// Slot-cycles on each SM in which accesses that cannot move on keep the load/store queue
    /// full; without those of stretches that were passed over. With a two-level scheduler also
    /// those of its full active set.
    pub load_store_stall_slots_by_sm: Vec<f64>,
    /// Sector requests to L1 and misses.
    pub l1: (u64, u64),
    /// Sector requests to L2 and misses, without those that save and restore the state
    /// of CTAs: the program does not ask for these.
    pub l2: (u64, u64),
    /// Those of the hits whose sector was in flight already.
    pub l2_merged: u64,
    /// Bytes over the DRAM pins.
    pub dram_bytes: u64,
    /// What the channels that serve it have done, for whomever: those that it owns, or all.
    pub channels: ChannelUse,
    /// Pages of its data in memory so far: copied from the host or touched, since the beginning of the run; 0 on machines
    /// whose channels cannot be owned.
    pub pages: u64,
    /// Pages of it that have moved.
    pub pages_moved: u64,
    /// Cycles of the run during which pages of it were under way.
    pub moving_cycles: Cycle,
    /// Cycles of the run during which it held more CTAs than its share on some SM.
    pub vacating_cycles: Cycle,
}
