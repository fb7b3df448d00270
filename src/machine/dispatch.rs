//! Handing CTAs to SMs: quotas of the plan, room on the SMs, launch rate.

use crate::epoch::{DispatchOrder, Plan};
use crate::spec::{CtaOrder, Machine};
use crate::units::{AppId, Cycle, KernelId, to_u64, to_usize};

use super::chip::Chip;
use super::error::MachineError;
use super::event::Event;
use super::feed::Feed;
use super::sm::{Need, Sm};

/// One launch as the dispatcher sees it.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) app: AppId,
    pub(super) need: Need,
    /// CTAs of the source.
    pub(super) ctas: u64,
    /// CTAs handed out.
    pub(super) started: u64,
    /// CTAs retired.
    pub(super) retired: u64,
    /// Most CTAs on one SM, beside quotas.
    pub(super) per_sm: u32,
    /// Shared bytes that its CTAs use on a full SM.
    pub(super) shared_per_sm: u32,
    /// Its CTAs on each SM.
    on_sm: Vec<u32>,
    /// By SM: since when it holds CTAs.
    since: Vec<Cycle>,
    /// Cycles in which SMs held CTAs, summed over SMs.
    pub(super) held: Cycle,
}

impl Grid {
    /// A launch of `ctas` CTAs that need `need` each, `fits` of them on an SM.
    pub(super) fn new(app: AppId, need: Need, ctas: u64, fits: u32, machine: &Machine) -> Self {
        let sms = u64::from(machine.dispatch.sms);
        let spread = u32::try_from(ctas.div_ceil(sms)).unwrap_or(u32::MAX).max(1);
        let per_sm = if machine.quirks.spreads_small_grids { fits.min(spread) } else { fits };
        Self {
            app,
            need,
            ctas,
            started: 0,
            retired: 0,
            per_sm,
            shared_per_sm: need.shared_bytes.saturating_mul(per_sm),
            on_sm: vec![0; usize::from(machine.dispatch.sms)],
            since: vec![0; usize::from(machine.dispatch.sms)],
            held: 0,
        }
    }

    /// Notes that a CTA has come to an SM.
    fn came(&mut self, sm: usize, now: Cycle) {
        if self.on_sm[sm] == 0 {
            self.since[sm] = now;
        }
        self.on_sm[sm] += 1;
        self.started += 1;
    }

    /// Notes that a CTA has left an SM.
    pub(super) fn left(&mut self, sm: usize, now: Cycle) {
        self.on_sm[sm] -= 1;
        self.retired += 1;
        if self.on_sm[sm] == 0 {
            self.held += now - self.since[sm];
        }
    }
}

/// The dispatcher.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) grids: Vec<Grid>,
    /// Launches that have CTAs left, in the order in which they began.
    active: Vec<u32>,
    order: CtaOrder,
    per_cycle: u32,
    /// Cycles from one hand-out to the next.
    pace: Cycle,
    /// From when on CTAs may be handed out.
    ready: Cycle,
    /// Cycles from a CTA's start until its warps issue.
    first_issue: Cycle,
    next_sm: usize,
    /// Launch for which each SM's L1 was prepared.
    prepared: Vec<Option<u32>>,
    /// An event is scheduled for this cycle.
    scheduled: Option<Cycle>,
}

impl Dispatcher {
    /// A dispatcher for the launches `grids`, none of which has begun.
    /// A part of a machine hands out every `pace` cycles what one cycle allows.
    pub(super) fn new(machine: &Machine, grids: Vec<Grid>, pace: Cycle) -> Self {
        Self {
            grids,
            active: Vec::new(),
            order: machine.dispatch.order,
            per_cycle: machine.dispatch.ctas_per_cycle.max(1),
            pace,
            ready: 0,
            first_issue: machine.dispatch.cta_launch_cycles.max(1)
                + u64::from(machine.sm.first_issue_cycles),
            next_sm: 0,
            prepared: vec![None; usize::from(machine.dispatch.sms)],
            scheduled: None,
        }
    }

    /// A launch may start CTAs.
    pub(super) fn begin(&mut self, kernel: u32) {
        self.active.push(kernel);
    }

    /// Asks for a dispatch event at `cycle`.
    pub(super) fn schedule(&mut self, cycle: Cycle, chip: &mut Chip) {
        let cycle = cycle.max(self.ready);
        if self.active.is_empty() || self.scheduled.is_some_and(|at| at <= cycle) {
            return;
        }
        self.scheduled = Some(cycle);
        chip.queue.schedule(cycle, Event::Dispatch);
    }

    /// Hands out what one cycle allows: at most one CTA per SM.
    ///
    /// # Errors
    /// When the source fails to open a CTA.
    pub(super) fn on_dispatch<F: Feed>(
        &mut self,
        feed: &F,
        plan: &Plan,
        sms: &mut [Sm<F::Warp>],
        streams: &mut Vec<F::Warp>,
        chip: &mut Chip,
    ) -> Result<(), MachineError> {
        let now = chip.queue.now();
        if self.scheduled != Some(now) {
            return Ok(());
        }
        self.scheduled = None;
        self.arrange(plan.order());
        let mut handed = 0;
        for sm in self.sm_order(sms) {
            if handed == self.per_cycle {
                break;
            }
            let Some(kernel) = self.choose(sm, &sms[sm], plan) else { continue };
            self.start(kernel, sm, feed, &mut sms[sm], streams, chip)?;
            self.next_sm = (sm + 1) % sms.len();
            handed += 1;
        }
        if handed > 0 {
            self.ready = now + self.pace;
            self.schedule(self.ready, chip);
        }
        Ok(())
    }

    /// Puts the active launches into the plan's order.
    fn arrange(&mut self, order: &DispatchOrder) {
        match order {
            DispatchOrder::InOrder => {}
            DispatchOrder::RoundRobin => {
                let turn = usize::from(self.active.len() > 1);
                self.active.rotate_left(turn);
            }
            DispatchOrder::Priority(list) => {
                let grids = &self.grids;
                let rank = |kernel: &u32| {
                    let app = grids[to_usize(*kernel)].app;
                    list.iter().position(|&a| a == app).unwrap_or(list.len())
                };
                self.active.sort_by_key(rank);
            }
        }
    }

    fn sm_order<S: super::feed::WarpStream>(&self, sms: &[Sm<S>]) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..sms.len()).map(|k| (self.next_sm + k) % sms.len()).collect();
        if self.order == CtaOrder::MostRoom {
            order.sort_by_key(|&sm| (std::cmp::Reverse(sms[sm].free_warps()), sm));
        }
        order
    }

    fn choose<S: super::feed::WarpStream>(
        &self,
        sm: usize,
        state: &Sm<S>,
        plan: &Plan,
    ) -> Option<u32> {
        self.active.iter().copied().find(|&kernel| {
            let grid = &self.grids[to_usize(kernel)];
            let quota = plan.quota(grid.app, sm).min(grid.per_sm);
            grid.started < grid.ctas && grid.on_sm[sm] < quota && state.holds(&grid.need)
        })
    }

    fn start<F: Feed>(
        &mut self,
        kernel: u32,
        sm: usize,
        feed: &F,
        state: &mut Sm<F::Warp>,
        streams: &mut Vec<F::Warp>,
        chip: &mut Chip,
    ) -> Result<(), MachineError> {
        let grid = &mut self.grids[to_usize(kernel)];
        streams.clear();
        feed.open(KernelId(kernel), grid.started, streams).map_err(MachineError::Feed)?;
        debug_assert!(to_u64(streams.len()) <= u64::from(grid.need.warps));
        grid.came(sm, chip.queue.now());
        let done = grid.started == grid.ctas;
        if self.prepared[sm] != Some(kernel) {
            state.prepare(grid.shared_per_sm);
            self.prepared[sm] = Some(kernel);
        }
        let begin = chip.queue.now() + self.first_issue;
        state.admit(kernel, grid.need, streams, begin, chip);
        if done {
            self.active.retain(|&k| k != kernel);
        }
        Ok(())
    }
}
