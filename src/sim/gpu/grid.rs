//! One launch as the dispatcher sees it.

use crate::config::Machine;
use gpumodel_core::isa::Launch;
use gpumodel_core::units::{AppId, Cycle, Dim3, to_u32};

use crate::gpu::clusters::MOST_CTAS;
use crate::gpu::workers::WorkerPool;
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
    /// Its CTAs are workers, who run the source's.
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
