//! One launch as the dispatcher sees it.

use crate::config::Machine;
use gpumodel_core::units::{AppId, Cycle};

use crate::gpu::workers::WorkerPool;
use crate::sm::Need;

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
        self.again.pop().unwrap_or_else(|| {
            self.started += 1;
            self.started - 1
        })
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
