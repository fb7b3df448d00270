//! One launch as the dispatcher sees it.

use crate::config::Machine;
use gpumodel_core::isa::Launch;
use gpumodel_core::units::{AppId, Cycle, Dim3, KernelId, to_u32, to_usize};

use crate::gpu::clusters::MOST_CTAS;
use crate::gpu::dispatch::HandOut;
use crate::gpu::error::MachineError;
use crate::gpu::event_queue::{Event, EventQueue};
use crate::gpu::plan_control::PlanControl;
use crate::gpu::workers::WorkerPool;
use crate::mmu::{Mmu, address_space};
use crate::sm::Need;

/// The order in which the CTAs of a launch with clusters start: cluster by cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterOrder {
    grid: Dim3,
    cluster: Dim3,
}

impl ClusterOrder {
    /// That of a launch of which the source has all `ctas`; `None`: it has no clusters, or parts
    /// of them only.
    pub(crate) fn of(launch: &Launch, ctas: u64) -> Option<Self> {
        let (grid, cluster) = (launch.grid, launch.cluster);
        let whole = |all: u32, part: u32| part > 0 && all.is_multiple_of(part);
        let divides =
            whole(grid.x, cluster.x) && whole(grid.y, cluster.y) && whole(grid.z, cluster.z);
        let size = launch.cluster_ctas();
        let real = (2..=MOST_CTAS).contains(&size);
        (real && divides && ctas == grid.count()).then_some(Self { grid, cluster })
    }

    /// CTAs of a cluster.
    fn size(&self) -> u32 {
        to_u32(self.cluster.count())
    }

    /// The CTA that starts after `before` others, in the order of the grid.
    fn ordinal(&self, before: u64) -> u64 {
        let Self { grid, cluster } = *self;
        let (number, rank) = (before / cluster.count(), before % cluster.count());
        let clusters = Dim3::new(grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z);
        let (first, place) = (clusters.position(number), cluster.position(rank));
        let at = |first: u32, size: u32, place: u32| first * size + place;
        let position = Dim3::new(
            at(first.x, cluster.x, place.x),
            at(first.y, cluster.y, place.y),
            at(first.z, cluster.z, place.z),
        );
        position.linear(grid)
    }
}

/// One launch as the dispatcher sees it.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) app: AppId,
    pub(crate) need: Need,
    /// CTAs of the source.
    pub(crate) ctas: u64,
    /// CTAs handed out, each counted once.
    pub(crate) started: u64,
    /// CTAs retired.
    pub(crate) retired: u64,
    /// CTAs that were dropped before their end, for good.
    pub(crate) lost: u64,
    /// Dropped ones that are to start again.
    pub(crate) again: Vec<u64>,
    /// Warp instructions that those had issued, and that issue again.
    pub(crate) dropped: f64,
    /// CTAs whose state is in memory.
    pub(crate) saved: u64,
    /// Its CTAs are workers, which run the source's.
    pub(crate) worker_pool: Option<WorkerPool>,
    /// CTAs on one SM at most where the machine spreads small grids; quotas are apart.
    pub(crate) spread: u32,
    /// Shared bytes that its CTAs use on a full SM.
    pub(crate) shared_per_sm: u32,
    /// Its clusters, where CTAs start by cluster.
    pub(crate) clusters: Option<ClusterOrder>,
    /// CTAs that an empty SM holds.
    pub(crate) fits: u32,
    /// Its CTAs on each SM.
    pub(crate) on_sm: Vec<u32>,
    /// By SM: since when it holds CTAs.
    since: Vec<Cycle>,
    /// Cycles in which SMs held CTAs, summed over SMs.
    pub(crate) held: Cycle,
    /// Lives of its CTAs that have ended, summed.
    pub(crate) lives: Cycle,
    /// CTAs on SMs, and since when so many.
    resident: (u64, Cycle),
    /// CTAs on SMs times cycles, up to the last change.
    cta_cycles: Cycle,
}

impl Grid {
    /// A launch of `ctas` CTAs that need `need` each, `fits` of them on an SM.
    pub(crate) fn new(app: AppId, need: Need, ctas: u64, fits: u32, machine: &Machine) -> Self {
        let sms = u64::from(machine.dispatch.sms);
        let even = u32::try_from(ctas.div_ceil(sms)).unwrap_or(u32::MAX).max(1);
        let spread = if machine.quirks.spreads_small_grids { even } else { u32::MAX };
        Self {
            app,
            need,
            ctas,
            started: 0,
            retired: 0,
            lost: 0,
            again: Vec::new(),
            dropped: 0.0,
            saved: 0,
            worker_pool: None,
            spread,
            shared_per_sm: need.shared_bytes.saturating_mul(fits.min(spread)),
            clusters: None,
            fits,
            on_sm: vec![0; usize::from(machine.dispatch.sms)],
            since: vec![0; usize::from(machine.dispatch.sms)],
            held: 0,
            lives: 0,
            resident: (0, 0),
            cta_cycles: 0,
        }
    }

    /// The next CTA to start, which counts as started.
    pub(crate) fn next_cta(&mut self) -> u64 {
        self.again.pop().unwrap_or_else(|| self.next_new_cta())
    }

    /// The next CTA that has not started before, which counts as started.
    pub(crate) fn next_new_cta(&mut self) -> u64 {
        self.started += 1;
        self.clusters.as_ref().map_or(self.started - 1, |all| all.ordinal(self.started - 1))
    }

    /// CTAs of the cluster that is to start next; 1: a CTA by itself.
    pub(crate) fn next_cluster(&self) -> u32 {
        let size = self.clusters.as_ref().map_or(1, ClusterOrder::size);
        let whole = self.again.is_empty() && self.saved == 0 && self.worker_pool.is_none();
        let begins = self.started.is_multiple_of(u64::from(size));
        if whole && begins && self.left() > 0 { size } else { 1 }
    }

    /// CTAs that are to start, or to start again.
    pub(crate) fn left(&self) -> u64 {
        let again = gpumodel_core::units::to_u64(self.again.len());
        self.ctas - self.started + again
    }

    /// CTAs on SMs.
    pub(crate) fn resident(&self) -> u64 {
        self.resident.0
    }

    /// CTAs on SMs times cycles, up to `now`.
    pub(crate) fn cta_cycles(&self, now: Cycle) -> Cycle {
        let (ctas, since) = self.resident;
        self.cta_cycles + ctas * (now - since)
    }

    fn count(&mut self, now: Cycle) -> &mut u64 {
        self.cta_cycles = self.cta_cycles(now);
        self.resident.1 = now;
        &mut self.resident.0
    }

    /// Notes that a CTA has come to an SM.
    pub(crate) fn came(&mut self, sm: usize, now: Cycle) {
        if self.on_sm[sm] == 0 {
            self.since[sm] = now;
        }
        self.on_sm[sm] += 1;
        *self.count(now) += 1;
    }

    /// Notes that a CTA has left an SM.
    pub(crate) fn went(&mut self, sm: usize, now: Cycle) {
        self.on_sm[sm] -= 1;
        *self.count(now) -= 1;
        if self.on_sm[sm] == 0 {
            self.held += now - self.since[sm];
        }
    }

    /// The mean life of its CTAs, once one has ended.
    pub(crate) fn mean_life(&self) -> Option<Cycle> {
        self.lives.checked_div(self.retired)
    }

    /// True when all its CTAs have ended and no worker is resident or still to come.
    pub(crate) fn is_over(&self) -> bool {
        let stays = |worker_pool: &WorkerPool| self.resident() > 0 || worker_pool.expects();
        self.retired == self.ctas && !self.worker_pool.as_ref().is_some_and(stays)
    }

    /// Cycles that an application takes before it makes the launch, its first one or a later one.
    pub(crate) fn call_cycles(&self, first: bool) -> Cycle {
        self.worker_pool.as_ref().map_or(0, |worker_pool| worker_pool.call_cycles(first))
    }

    /// Launches an instance of its workers, where its CTAs are such.
    pub(crate) fn launch_workers(&mut self, control: &PlanControl, mmu: Option<&mut Mmu>) {
        let app = self.app;
        let Some((worker_pool, quotas, (_, left))) = self.workers(control) else { return };
        let (first, bytes) = worker_pool.launch(&quotas, left);
        if let Some(mmu) = mmu {
            mmu.copy_in(first ^ address_space::tag(app.0), bytes);
        }
    }

    /// A new plan is in force: its workers may need a further instance.
    pub(crate) fn follow(&mut self, control: &PlanControl, queue: &mut EventQueue<Event>) {
        if let Some((worker_pool, quotas, rest)) = self.workers(control) {
            worker_pool.follow(&quotas, rest, queue);
        }
    }

    /// A worker has left: the launch may be made again on other SMs.
    pub(crate) fn note_gone(&mut self, control: &PlanControl, queue: &mut EventQueue<Event>) {
        if let Some((worker_pool, quotas, rest)) = self.workers(control) {
            worker_pool.note_gone(&quotas, rest, queue);
        }
    }

    /// Its workers, by SM how many of them the plan wants, how many are resident, and how many
    /// blocks are left.
    fn workers(
        &mut self,
        control: &PlanControl,
    ) -> Option<(&mut WorkerPool, Vec<u32>, (u64, u64))> {
        let rest = (self.resident(), self.left());
        let worker_pool = self.worker_pool.as_mut()?;
        let quotas = (0..self.on_sm.len()).map(|sm| control.quota(self.app, sm)).collect();
        Some((worker_pool, quotas, rest))
    }

    /// The worker in a slot of an SM has done its task: it gets another one, or leaves. True
    /// when it has got the last one. This is launch `kernel`.
    ///
    /// # Errors
    /// When the source fails to open a block.
    pub(crate) fn next_task(
        &mut self,
        kernel: u32,
        (sm, slot): (usize, usize),
        machine: &mut HandOut<'_>,
    ) -> Result<bool, MachineError> {
        let HandOut { feed, active_plan, sms, streams, shared_state } = machine;
        let (left, quota) = (self.left(), active_plan.quota(self.app, sm));
        let counts = &mut shared_state.counts[to_usize(kernel)];
        let Some(duty) = sms[sm].duty(slot) else { return Ok(false) };
        let done = std::mem::take(&mut duty.blocks);
        let Some(worker_pool) = &mut self.worker_pool else { return Ok(false) };
        self.retired += done;
        worker_pool.out -= done;
        counts.ctas_retired += done;
        if left == 0 || worker_pool.sends_away(duty, quota) {
            worker_pool.goes(sm, duty.number);
            return Ok(false);
        }
        let blocks = worker_pool.task(left);
        worker_pool.out += blocks;
        counts.tasks += 1;
        counts.ctas_started += blocks;
        duty.blocks = blocks;
        duty.tasks += 1;
        for _ in 0..blocks {
            streams.clear();
            let opened = feed.open(KernelId(kernel), self.next_cta(), streams);
            opened.map_err(MachineError::Feed)?;
            sms[sm].hand(slot, streams);
        }
        Ok(left == blocks)
    }

    /// The launch restarts.
    pub(crate) fn rewind(&mut self) {
        (self.started, self.retired) = (0, 0);
    }

    /// True when each CTA that was started has retired, is resident or away, is to
    /// start again or was dropped.
    pub(crate) fn adds_up(&self) -> bool {
        let again = gpumodel_core::units::to_u64(self.again.len());
        let under_way =
            self.worker_pool.as_ref().map_or(self.resident(), |worker_pool| worker_pool.out);
        self.started == self.retired + under_way + self.saved + again + self.lost
    }
}
