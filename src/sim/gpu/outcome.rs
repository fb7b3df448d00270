//! What a run leaves: its counters, after what is still on its way to memory has arrived there.
//! The run's cycles are fixed before that; dirty lines stay where they are.

use crate::counters::{CacheCounts, KernelCounts, SmCounts, TlbCounts};
use crate::dram::ChannelCounters;
use crate::gpu::app::{AppMoved, AppOutcome};
use crate::gpu::event_queue::{Event, MemoryEvent};
use crate::gpu::grid::Grid;
use crate::gpu::hardware::Hardware;
use crate::gpu::progress::PATIENCE;
use crate::gpu::shared_state::SharedState;
use crate::gpu::timeline::{CtaSpan, Residency, Sample};
use crate::interval::ProfileImage;
use crate::sm::Sm;
use crate::sm::hot::InstructionCounts;
use gpumodel_core::units::{Cycle, to_u16};

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

/// What a run has on its way to memory at its end is drained, so that a launch has the same
/// traffic whatever follows. A run that cuts launches off stands as it is: what they have in
/// flight is not theirs yet.
#[derive(Debug)]
pub(crate) struct Drain<'d> {
    sms: &'d mut [Sm],
    shared_state: &'d mut SharedState,
}

impl<'d> Drain<'d> {
    /// Drains a run that is over, unless it cuts launches off.
    pub(crate) fn run(hardware: &'d mut Hardware<'_>) {
        let Hardware { sms, shared_state, dispatcher, .. } = hardware;
        if dispatcher.grids.iter().all(Grid::is_over) {
            Self { sms, shared_state }.until_empty();
        }
    }

    fn until_empty(&mut self) {
        let end = self.shared_state.queue.now();
        (0..self.sms.len()).for_each(|sm| self.send_evicted(sm));
        while self.shared_state.is_draining() && self.shared_state.queue.now() - end < PATIENCE {
            let Some(event) = self.shared_state.queue.next() else { break };
            self.on_event(event);
        }
    }

    /// Handles an event of the memory; SMs only send what their L1s have evicted.
    fn on_event(&mut self, event: Event) {
        match event {
            Event::Memory(event) => self.on_memory(event),
            Event::Reply { packet } => {
                let now = self.shared_state.queue.now();
                self.shared_state.memory_system.on_reply(packet, now);
            }
            Event::LoadStore { sm } => self.send_evicted(usize::from(sm)),
            Event::PageBrought { place } => self.shared_state.bring_page(place),
            Event::Scheduler { .. }
            | Event::Wake { .. }
            | Event::Fetch { .. }
            | Event::LookUp { .. }
            | Event::Walk { .. }
            | Event::PageMove { .. }
            | Event::PageCopied { .. }
            | Event::Dispatch { .. }
            | Event::Launch { .. }
            | Event::Begin { .. }
            | Event::Instance { .. }
            | Event::ClusterOpen { .. }
            | Event::ClusterMessage { .. }
            | Event::ClusterCheck { .. }
            | Event::Copied { .. }
            | Event::Arrival { .. }
            | Event::Effect { .. }
            | Event::Alarm { .. }
            | Event::IpcCheck { .. }
            | Event::SliceEnd { .. }
            | Event::TargetCheck
            | Event::Window
            | Event::End => {}
        }
    }

    fn on_memory(&mut self, event: MemoryEvent) {
        let SharedState { queue, counts, memory_system, .. } = &mut *self.shared_state;
        memory_system.on_event(event, queue, counts);
        let mut woken = Vec::new();
        memory_system.take_woken(&mut woken);
        for sm in woken {
            self.send_evicted(usize::from(sm));
        }
    }

    /// Lets an SM send what its L1 has evicted, now and when its port has room again.
    fn send_evicted(&mut self, sm: usize) {
        if let Err(Some(at)) = self.sms[sm].send_evicted(self.shared_state) {
            self.shared_state.queue.schedule(at, Event::LoadStore { sm: to_u16(sm) });
        }
    }
}
