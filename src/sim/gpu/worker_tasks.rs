//! Launches that run as workers: who comes, who gets which task, who leaves.
//!
//! A worker's fate is decided when the barrier behind its access to the queue opens:
//! what the queue and the flag hold by then is what it has read. In the code the flag
//! is read one access to the queue earlier.

use gpumodel_core::contract::{Resize, Wake, WakeOn};
use gpumodel_core::units::{Cycle, KernelId, to_usize};

use crate::gpu::Gpu;
use crate::gpu::error::MachineError;
use crate::gpu::event::Event;
use crate::gpu::worker;
use crate::mmu::address_space;

impl Gpu<'_> {
    /// Cycles that an application takes before it launches `kernel`, its first one or
    /// a later one.
    pub(crate) fn calls(&self, kernel: u32, first: bool) -> Cycle {
        let worker_pool = self.dispatcher.grids[to_usize(kernel)].worker_pool.as_ref();
        worker_pool.map_or(0, |worker_pool| {
            let compile = if first { worker_pool.worker.compile_cycles } else { 0 };
            worker_pool.worker.call_cycles + compile
        })
    }

    /// Whether the application of a launch that has ended asks before it launches again:
    /// the plan says who may, and the answer to the launch's end brings one.
    pub(crate) fn asks_first(&self, kernel: u32) -> bool {
        let wakes = |active_plan: &crate::gpu::active_plan::ActivePlan| {
            active_plan.plan().wake().contains(&WakeOn::KernelEnd)
        };
        let asked = self.active_plan.as_ref().is_some_and(wakes);
        asked && self.dispatcher.grids[to_usize(kernel)].worker_pool.is_some()
    }

    /// By SM: the workers of a launch that the plan wants.
    fn quotas(&self, kernel: u32) -> Vec<u32> {
        let app = self.dispatcher.grids[to_usize(kernel)].app;
        let quota =
            |sm| self.active_plan.as_ref().map_or(0, |active_plan| active_plan.quota(app, sm));
        (0..self.sms.len()).map(quota).collect()
    }

    /// Brings an instance of a launch, where it runs as workers. Its words are in memory:
    /// the host has written them.
    pub(crate) fn worker_pool(&mut self, kernel: u32) {
        let quotas = self.quotas(kernel);
        let grid = &mut self.dispatcher.grids[to_usize(kernel)];
        let left = grid.left();
        let Some(worker_pool) = &mut grid.worker_pool else { return };
        worker_pool.launch(&quotas, left);
        if let Some(mmu) = &mut self.shared_state.mmu {
            let (first, bytes) = worker::words(kernel);
            mmu.copy_in(first ^ address_space::tag(grid.app.0), bytes);
        }
    }

    /// A further instance of a launch may start its workers.
    pub(crate) fn restart_workers(&mut self, kernel: u32) {
        let now = self.shared_state.queue.now();
        let worker_pool = self.dispatcher.grids[to_usize(kernel)].worker_pool.as_ref();
        if worker_pool.is_none_or(|worker_pool| worker_pool.coming != Some(now)) {
            return;
        }
        self.worker_pool(kernel);
        if !self.dispatcher.active.contains(&kernel) {
            self.dispatcher.begin(kernel);
        }
        let app = self.dispatcher.grids[to_usize(kernel)].app;
        self.dispatcher.ask(app, self.shared_state.queue.now(), &mut self.shared_state);
        self.note_gone(kernel);
    }

    /// Nobody comes to a launch any more.
    pub(crate) fn dismiss_all(&mut self, kernel: u32) {
        if let Some(worker_pool) = &mut self.dispatcher.grids[to_usize(kernel)].worker_pool {
            worker_pool.close();
            self.dispatcher.active.retain(|&active| active != kernel);
        }
    }

    /// A new plan is in force: launches of further instances, or those on other SMs.
    pub(crate) fn follow_with_workers(&mut self) {
        for app in 0..self.apps.len() {
            for place in 0..self.decision_counters.begun[app].len() {
                let kernel = self.decision_counters.begun[app][place];
                let quotas = self.quotas(kernel);
                let grid = &mut self.dispatcher.grids[to_usize(kernel)];
                let (resident, left) = (grid.resident(), grid.left());
                let Some(worker_pool) = &mut grid.worker_pool else { continue };
                if worker_pool.follow(&quotas, resident, left) {
                    self.schedule_instance(kernel);
                }
            }
        }
    }

    fn schedule_instance(&mut self, kernel: u32) {
        let Some(worker_pool) = &mut self.dispatcher.grids[to_usize(kernel)].worker_pool else {
            return;
        };
        let latency = match worker_pool.worker.resize {
            Resize::InPlace => self.machine.dispatch.kernel_launch_cycles,
            Resize::Relaunch { cycles } => cycles,
        };
        let at = self.shared_state.queue.now() + latency;
        worker_pool.coming = Some(at);
        self.shared_state.queue.schedule(at, Event::Instance { kernel });
    }

    /// Launches a kernel anew whose workers have all left for that.
    pub(crate) fn note_gone(&mut self, kernel: u32) {
        let shared = self.quotas(kernel).iter().any(|&quota| quota > 0);
        let grid = &self.dispatcher.grids[to_usize(kernel)];
        let (resident, left) = (grid.resident(), grid.left());
        if grid
            .worker_pool
            .as_ref()
            .is_some_and(|worker_pool| worker_pool.is_gone(resident, left, shared))
        {
            self.schedule_instance(kernel);
        }
    }

    /// A worker has done its task: it gets another one or leaves.
    pub(crate) fn answer(&mut self, sm: usize, kernel: u32, slot: usize) {
        let Some(duty) = self.sms[sm].duty(slot) else { return };
        let done = std::mem::take(&mut duty.blocks);
        let asks = *duty;
        let grid = &mut self.dispatcher.grids[to_usize(kernel)];
        let (app, left) = (grid.app, grid.left());
        let quota = self.active_plan.as_ref().map_or(0, |active_plan| active_plan.quota(app, sm));
        let Some(worker_pool) = &mut grid.worker_pool else { return };
        grid.retired += done;
        worker_pool.out -= done;
        self.shared_state.counts[to_usize(kernel)].ctas_retired += done;
        if left == 0 || worker_pool.sends_away(&asks, quota) {
            worker_pool.goes(sm, asks.number);
            return;
        }
        let blocks = worker_pool.task(left);
        worker_pool.out += blocks;
        let counts = &mut self.shared_state.counts[to_usize(kernel)];
        counts.tasks += 1;
        counts.ctas_started += blocks;
        if let Some(duty) = self.sms[sm].duty(slot) {
            duty.blocks = blocks;
            duty.tasks += 1;
        }
        if let Err(error) = self.hand(sm, kernel, slot, blocks) {
            self.failed = Some(error);
        }
        if left == blocks {
            self.wake_on(&WakeOn::LastTaskStarted, Wake::LastTaskStarted(app));
        }
    }

    fn hand(
        &mut self,
        sm: usize,
        kernel: u32,
        slot: usize,
        blocks: u64,
    ) -> Result<(), MachineError> {
        for _ in 0..blocks {
            self.streams.clear();
            let ordinal = self.dispatcher.grids[to_usize(kernel)].next_cta();
            let streams = &mut self.streams;
            self.feed.open(KernelId(kernel), ordinal, streams).map_err(MachineError::Feed)?;
            self.sms[sm].hand(slot, streams);
        }
        Ok(())
    }
}
