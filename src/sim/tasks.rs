//! Launches that run as workers: who comes, who gets which task, who leaves.
//!
//! A worker's fate is decided when the barrier behind its access to the queue opens:
//! what the queue and the flag hold by then is what it has read. In the code the flag
//! is read one access to the queue earlier.

use gpumodel_core::contract::{Resize, Wake, WakeOn};
use gpumodel_core::units::{Cycle, KernelId, to_usize};

use super::error::MachineError;
use super::event::Event;
use super::gpu::Gpu;
use super::space;
use super::worker;

impl Gpu<'_> {
    /// Cycles that an application takes before it launches `kernel`, its first one or
    /// a later one.
    pub(super) fn calls(&self, kernel: u32, first: bool) -> Cycle {
        let staff = self.dispatcher.grids[to_usize(kernel)].staff.as_ref();
        staff.map_or(0, |staff| {
            let compile = if first { staff.worker.compile_cycles } else { 0 };
            staff.worker.call_cycles + compile
        })
    }

    /// Whether the application of a launch that has ended asks before it launches again:
    /// the plan says who may, and the answer to the launch's end brings one.
    pub(super) fn asks_first(&self, kernel: u32) -> bool {
        let wakes = |rule: &super::rule::Rule| rule.plan().wake().contains(&WakeOn::KernelEnd);
        let asked = self.rule.as_ref().is_some_and(wakes);
        asked && self.dispatcher.grids[to_usize(kernel)].staff.is_some()
    }

    /// By SM: the workers of a launch that the plan wants.
    fn quotas(&self, kernel: u32) -> Vec<u32> {
        let app = self.dispatcher.grids[to_usize(kernel)].app;
        let quota = |sm| self.rule.as_ref().map_or(0, |rule| rule.quota(app, sm));
        (0..self.sms.len()).map(quota).collect()
    }

    /// Brings an instance of a launch, where it runs as workers. Its words are in memory:
    /// the host has written them.
    pub(super) fn staff(&mut self, kernel: u32) {
        let quotas = self.quotas(kernel);
        let grid = &mut self.dispatcher.grids[to_usize(kernel)];
        let left = grid.left();
        let Some(staff) = &mut grid.staff else { return };
        staff.launch(&quotas, left);
        if let Some(mmu) = &mut self.chip.mmu {
            let (first, bytes) = worker::words(kernel);
            mmu.copy_in(first ^ space::tag(grid.app.0), bytes);
        }
    }

    /// A further instance of a launch may start its workers.
    pub(super) fn staff_anew(&mut self, kernel: u32) {
        let now = self.chip.queue.now();
        let staff = self.dispatcher.grids[to_usize(kernel)].staff.as_ref();
        if staff.is_none_or(|staff| staff.coming != Some(now)) {
            return;
        }
        self.staff(kernel);
        if !self.dispatcher.active.contains(&kernel) {
            self.dispatcher.begin(kernel);
        }
        let app = self.dispatcher.grids[to_usize(kernel)].app;
        self.dispatcher.ask(app, self.chip.queue.now(), &mut self.chip);
        self.note_gone(kernel);
    }

    /// Nobody comes to a launch any more.
    pub(super) fn dismiss_all(&mut self, kernel: u32) {
        if let Some(staff) = &mut self.dispatcher.grids[to_usize(kernel)].staff {
            staff.close();
            self.dispatcher.active.retain(|&active| active != kernel);
        }
    }

    /// A new plan is in force: launches of further instances, or those on other SMs.
    pub(super) fn follow_with_staff(&mut self) {
        for app in 0..self.apps.len() {
            for place in 0..self.gauge.begun[app].len() {
                let kernel = self.gauge.begun[app][place];
                let quotas = self.quotas(kernel);
                let grid = &mut self.dispatcher.grids[to_usize(kernel)];
                let (resident, left) = (grid.resident(), grid.left());
                let Some(staff) = &mut grid.staff else { continue };
                if staff.follow(&quotas, resident, left) {
                    self.schedule_instance(kernel);
                }
            }
        }
    }

    fn schedule_instance(&mut self, kernel: u32) {
        let Some(staff) = &mut self.dispatcher.grids[to_usize(kernel)].staff else { return };
        let latency = match staff.worker.resize {
            Resize::InPlace => self.machine.dispatch.kernel_launch_cycles,
            Resize::Relaunch { cycles } => cycles,
        };
        let at = self.chip.queue.now() + latency;
        staff.coming = Some(at);
        self.chip.queue.schedule(at, Event::Instance { kernel });
    }

    /// Launches a kernel anew whose workers have all left for that.
    pub(super) fn note_gone(&mut self, kernel: u32) {
        let shared = self.quotas(kernel).iter().any(|&quota| quota > 0);
        let grid = &self.dispatcher.grids[to_usize(kernel)];
        let (resident, left) = (grid.resident(), grid.left());
        if grid.staff.as_ref().is_some_and(|staff| staff.is_gone(resident, left, shared)) {
            self.schedule_instance(kernel);
        }
    }

    /// A worker has done its task: it gets another one or leaves.
    pub(super) fn answer(&mut self, sm: usize, kernel: u32, slot: usize) {
        let Some(duty) = self.sms[sm].duty(slot) else { return };
        let done = std::mem::take(&mut duty.blocks);
        let asks = *duty;
        let grid = &mut self.dispatcher.grids[to_usize(kernel)];
        let (app, left) = (grid.app, grid.left());
        let quota = self.rule.as_ref().map_or(0, |rule| rule.quota(app, sm));
        let Some(staff) = &mut grid.staff else { return };
        grid.retired += done;
        staff.out -= done;
        self.chip.counts[to_usize(kernel)].ctas_retired += done;
        if left == 0 || staff.sends_away(&asks, quota) {
            staff.goes(sm, asks.number);
            return;
        }
        let blocks = staff.task(left);
        staff.out += blocks;
        let counts = &mut self.chip.counts[to_usize(kernel)];
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
