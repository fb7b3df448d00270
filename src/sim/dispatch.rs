//! Handing CTAs to SMs: quotas of the plan, room on the SMs, launch rate.

use crate::config::{CtaOrder, Machine};
use gpumodel_core::contract::DispatchOrder;
use gpumodel_core::units::{AppId, Cycle, KernelId, to_u16, to_u64, to_usize};

use super::chip::Chip;
use super::error::MachineError;
use super::event::Event;
use super::feed::{Feed, Stream};
use super::grid::Grid;
use super::lines::Lines;
use super::rule::Rule;
use super::sm::{Departure, Saved, Sm};
use super::staff::Staff;

/// The dispatcher.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) grids: Vec<Grid>,
    /// Launches that have CTAs left, in the order in which they began.
    pub(super) active: Vec<u32>,
    order: CtaOrder,
    per_cycle: u32,
    /// Cycles from one hand-out to the next.
    pace: Cycle,
    lines: Lines,
    /// Cycles from a CTA's start until its warps issue.
    first_issue: Cycle,
    /// Launch for which each SM's L1 was prepared.
    prepared: Vec<Option<u32>>,
    /// CTAs whose state is in memory, in the order in which they left.
    saved: Vec<Saved>,
    /// By application and SM: CTAs and warps there.
    pub(super) held: Vec<Vec<Held>>,
}

/// What an application has of an SM.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) ctas: u32,
    pub(super) warps: u32,
}

impl Dispatcher {
    /// A dispatcher for the launches `grids`, none of which has begun.
    /// A part of a machine hands out every `pace` cycles what one cycle allows.
    pub(super) fn new(machine: &Machine, grids: Vec<Grid>, apps: usize, pace: Cycle) -> Self {
        let sms = usize::from(machine.dispatch.sms);
        Self {
            saved: Vec::new(),
            held: vec![vec![Held::default(); sms]; apps],
            grids,
            active: Vec::new(),
            order: machine.dispatch.order,
            per_cycle: machine.dispatch.ctas_per_cycle.max(1),
            pace,
            lines: Lines::new(apps, sms),
            first_issue: machine.dispatch.cta_launch_cycles.max(1)
                + u64::from(machine.sm.first_issue_cycles),
            prepared: vec![None; sms],
        }
    }

    /// Lines the applications up as a rule that comes into force divides the SMs, and asks
    /// for those to whom it gives something else than the one `before`. Who runs as
    /// workers may be launched on any SM, to find that it is not his.
    pub(super) fn follow(&mut self, rule: &Rule, before: Option<&Rule>, now: Cycle) {
        let mut staffed = vec![false; self.held.len()];
        for grid in self.grids.iter().filter(|grid| grid.staff.is_some()) {
            staffed[grid.app.index()] = true;
        }
        let may = |app: usize, sm| staffed[app] || rule.may_come(AppId(to_u16(app)), sm);
        if self.lines.follow(may) || self.lines.is_one() {
            return self.lines.ask_all(now);
        }
        for app in 0..self.held.len() {
            let id = AppId(to_u16(app));
            if before.is_none_or(|before| !rule.gives_as(before, id)) {
                self.lines.ask_for(app, now);
            }
        }
    }

    /// No CTA starts before `cycle`.
    pub(super) fn pause(&mut self, cycle: Cycle) {
        self.lines.pause(cycle);
    }

    /// A launch may start CTAs.
    pub(super) fn begin(&mut self, kernel: u32) {
        self.active.push(kernel);
    }

    /// Asks for CTAs at `cycle`, for everybody.
    pub(super) fn ask_all(&mut self, cycle: Cycle, chip: &mut Chip) {
        self.lines.ask_all(cycle);
        self.schedule(chip);
    }

    /// Asks for CTAs at `cycle`, for an application and those in its line.
    pub(super) fn ask(&mut self, app: AppId, cycle: Cycle, chip: &mut Chip) {
        self.lines.ask_for(app.index(), cycle);
        self.schedule(chip);
    }

    /// A CTA of a launch has left an SM, or a worker of it asks there: at `cycle` the
    /// launch may start others, and so may those who may come to that SM.
    /// [`Dispatcher::schedule`] is still to be called.
    pub(super) fn gone(&mut self, kernel: u32, sm: usize, cycle: Cycle) {
        self.lines.ask_for(self.grids[to_usize(kernel)].app.index(), cycle);
        self.lines.ask_at(sm, cycle);
    }

    /// Schedules what is asked for.
    pub(super) fn schedule(&mut self, chip: &mut Chip) {
        let Self { lines, active, grids, .. } = self;
        let of_app: Vec<Option<usize>> =
            active.iter().map(|&kernel| lines.of(grids[to_usize(kernel)].app.index())).collect();
        lines.schedule(
            |line| of_app.contains(&Some(line)),
            |line, at| chip.queue.schedule(at, Event::Dispatch { line: to_u16(line) }),
        );
    }

    /// Whether launch `kernel` has CTAs that could come to an SM.
    fn waits(&self, kernel: u32) -> bool {
        let grid = &self.grids[to_usize(kernel)];
        grid.staff.as_ref().map_or(grid.left() > 0 || grid.saved > 0, Staff::waits)
    }

    /// Hands out what one cycle allows: at most one CTA per SM. Lines that share the
    /// launch rate take turns whoever's event comes.
    ///
    /// # Errors
    /// When the source fails to open a CTA.
    pub(super) fn on_dispatch(
        &mut self,
        called: u16,
        feed: &dyn Feed,
        rule: &Rule,
        sms: &mut [Sm],
        streams: &mut Vec<Stream>,
        chip: &mut Chip,
    ) -> Result<(), MachineError> {
        let (now, called) = (chip.queue.now(), usize::from(called));
        if !self.lines.is_called(called, now) {
            return Ok(());
        }
        self.arrange(rule);
        let shared = to_usize(self.per_cycle) < sms.len();
        for line in self.lines.in_turn().filter(|&line| shared || line == called) {
            if self.lines.takes(line, now) {
                self.serve(line, feed, rule, sms, streams, chip)?;
            }
        }
        self.schedule(chip);
        Ok(())
    }

    /// Hands out CTAs of one line, as far as the others have left of what a cycle allows.
    fn serve(
        &mut self,
        line: usize,
        feed: &dyn Feed,
        rule: &Rule,
        sms: &mut [Sm],
        streams: &mut Vec<Stream>,
        chip: &mut Chip,
    ) -> Result<(), MachineError> {
        let (now, mut served) = (chip.queue.now(), false);
        for sm in self.sm_order(self.lines.next_sm(line), sms) {
            if self.lines.handed(now) == self.per_cycle {
                break;
            }
            let Some(kernel) = self.choose(sm, &sms[sm], rule) else { continue };
            if self.lines.of(self.grids[to_usize(kernel)].app.index()) == Some(line) {
                self.start(kernel, sm, feed, rule, &mut sms[sm], streams, chip)?;
                self.lines.served(line, sm, now);
                served = true;
            }
        }
        if served || self.lines.handed(now) == self.per_cycle {
            self.lines.again(line, served, now + self.pace);
        }
        Ok(())
    }

    /// Puts the active launches into the plan's order.
    fn arrange(&mut self, rule: &Rule) {
        let grids = &self.grids;
        let rank = |list: &[AppId], kernel: u32| {
            let app = grids[to_usize(kernel)].app;
            list.iter().position(|&a| a == app).unwrap_or(list.len())
        };
        match rule.order() {
            DispatchOrder::InOrder | DispatchOrder::RoundRobin => {}
            DispatchOrder::Priority(list) => self.active.sort_by_key(|&kernel| rank(list, kernel)),
        }
    }

    fn sm_order(&self, first: usize, sms: &[Sm]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..sms.len()).map(|k| (first + k) % sms.len()).collect();
        if self.order == CtaOrder::MostRoom {
            order.sort_by_key(|&sm| (std::cmp::Reverse(sms[sm].free_warps()), sm));
        }
        order
    }

    /// The launch that starts a CTA on an SM.
    fn choose(&self, sm: usize, state: &Sm, rule: &Rule) -> Option<u32> {
        if *rule.order() == DispatchOrder::RoundRobin {
            return self.in_turn(sm, state, rule);
        }
        for &kernel in self.active.iter().filter(|&&kernel| self.may(kernel, sm, rule)) {
            let grid = &self.grids[to_usize(kernel)];
            if state.holds(&grid.need, &rule.bounds(grid.app)) {
                return Some(kernel);
            }
            if rule.is_strict() {
                return None;
            }
        }
        None
    }

    /// The launch whose turn it is on an SM: of those that fit, the next after the
    /// one that started there last. By SM: turns of the whole machine would give
    /// one launch all even SMs.
    fn in_turn(&self, sm: usize, state: &Sm, rule: &Rule) -> Option<u32> {
        let fits = |&kernel: &u32| {
            let grid = &self.grids[to_usize(kernel)];
            self.may(kernel, sm, rule) && state.holds(&grid.need, &rule.bounds(grid.app))
        };
        let past = |kernel: u32| self.prepared[sm].is_some_and(|last| kernel <= last);
        self.active.iter().copied().filter(fits).min_by_key(|&kernel| (past(kernel), kernel))
    }

    /// Whether a launch has a CTA that the plan lets start on an SM.
    fn may(&self, kernel: u32, sm: usize, rule: &Rule) -> bool {
        let grid = &self.grids[to_usize(kernel)];
        let held = self.held[grid.app.index()][sm];
        if let Some(staff) = &grid.staff {
            return staff.may_come(sm);
        }
        rule.allows(grid.app, sm, held, &grid.need)
            && grid.on_sm[sm] < grid.spread
            && self.waits(kernel)
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one machine")]
    fn start(
        &mut self,
        kernel: u32,
        sm: usize,
        feed: &dyn Feed,
        rule: &Rule,
        state: &mut Sm,
        streams: &mut Vec<Stream>,
        chip: &mut Chip,
    ) -> Result<(), MachineError> {
        if self.prepared[sm] != Some(kernel) {
            state.prepare(self.shared_on(sm, kernel, rule));
            self.prepared[sm] = Some(kernel);
        }
        let grid = &mut self.grids[to_usize(kernel)];
        let bounds = rule.bounds(grid.app);
        let held = &mut self.held[grid.app.index()][sm];
        held.ctas += 1;
        held.warps += grid.need.warps;
        grid.came(sm, chip.queue.now());
        let begin = chip.queue.now() + self.first_issue;
        if let Some(staff) = &mut grid.staff {
            let number = staff.take_place(sm, rule.quota(grid.app, sm));
            let (worker, need) = (&staff.worker, grid.need);
            state.employ((kernel, worker), number, need, &bounds, begin, chip);
        } else if grid.saved > 0 {
            grid.saved -= 1;
            let place = self.saved.iter().position(|saved| saved.kernel == kernel);
            let saved = self.saved.remove(place.expect("a saved CTA is kept"));
            state.restore(saved, &bounds, chip);
        } else {
            streams.clear();
            let ordinal = grid.next_cta();
            feed.open(KernelId(kernel), ordinal, streams).map_err(MachineError::Feed)?;
            debug_assert!(to_u64(streams.len()) <= u64::from(grid.need.warps));
            state.admit((kernel, ordinal), grid.need, &bounds, streams, begin, chip);
        }
        if !self.waits(kernel) {
            self.active.retain(|&k| k != kernel);
        }
        Ok(())
    }

    /// Shared bytes that an SM is made ready for when `kernel` comes to it: its own
    /// and those of the other applications that may come too.
    fn shared_on(&self, sm: usize, kernel: u32, rule: &Rule) -> u32 {
        let own = &self.grids[to_usize(kernel)];
        let mut met = vec![own.app];
        let mut bytes = own.shared_per_sm;
        for &other in &self.active {
            let grid = &self.grids[to_usize(other)];
            if rule.quota(grid.app, sm) > 0 && !met.contains(&grid.app) {
                met.push(grid.app);
                bytes = bytes.saturating_add(grid.shared_per_sm);
            }
        }
        bytes.min(rule.whole().shared_bytes.end)
    }

    /// A CTA has left an SM.
    pub(super) fn departed(&mut self, sm: usize, departure: Departure, now: Cycle) {
        let kernel = departure.kernel();
        let grid = &mut self.grids[to_usize(kernel)];
        grid.went(sm, now);
        let held = &mut self.held[grid.app.index()][sm];
        held.ctas -= 1;
        held.warps -= grid.need.warps;
        match departure {
            Departure::Retired { .. } if grid.staff.is_some() => return,
            Departure::Retired { started, .. } => {
                grid.retired += 1;
                grid.lives += now - started;
                return;
            }
            Departure::Asks { .. } => return,
            Departure::Killed { ordinal, issued, again: true, .. } => {
                grid.again.push(ordinal);
                grid.dropped += issued;
            }
            Departure::Killed { blocks, .. } => {
                grid.lost += blocks;
                if let Some(staff) = &mut grid.staff {
                    staff.out -= blocks;
                }
                return;
            }
            Departure::Saved(saved) => {
                grid.saved += 1;
                self.saved.push(*saved);
            }
        }
        if !self.active.contains(&kernel) {
            self.active.push(kernel);
        }
    }

    /// Forgets all launches of an application.
    pub(super) fn cancel(&mut self, app: AppId) {
        let Self { grids, active, saved, .. } = self;
        let owns = |kernel: u32| grids[to_usize(kernel)].app == app;
        active.retain(|&kernel| !owns(kernel));
        saved.retain(|saved| !owns(saved.kernel));
        for grid in grids.iter_mut().filter(|grid| grid.app == app) {
            grid.lost += grid.saved + to_u64(grid.again.len());
            grid.saved = 0;
            grid.again.clear();
            grid.staff.iter_mut().for_each(Staff::close);
        }
    }
}
