//! Handing CTAs to SMs: quotas of the plan, room on the SMs, launch rate.

use crate::epoch::DispatchOrder;
use crate::spec::{CtaOrder, Machine};
use crate::units::{AppId, Cycle, KernelId, to_u64, to_usize};

use super::chip::Chip;
use super::error::MachineError;
use super::event::Event;
use super::feed::{Feed, WarpStream};
use super::grid::Grid;
use super::lines::Lines;
use super::rule::Rule;
use super::sm::{Departure, Saved, Sm};
use super::staff::Staff;

/// The dispatcher.
#[derive(Debug)]
pub(super) struct Dispatcher<S> {
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
    /// An event is scheduled for this cycle.
    scheduled: Option<Cycle>,
    /// CTAs whose state is in memory, in the order in which they left.
    saved: Vec<Saved<S>>,
    /// By application and SM: CTAs and warps there.
    pub(super) held: Vec<Vec<Held>>,
}

/// What an application has of an SM.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) ctas: u32,
    pub(super) warps: u32,
}

impl<S: WarpStream> Dispatcher<S> {
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
            scheduled: None,
        }
    }

    /// Lines the applications up as the rule in force divides the SMs.
    pub(super) fn follow(&mut self, rule: &Rule) {
        self.lines.follow(rule);
    }

    /// No CTA starts before `cycle`.
    pub(super) fn pause(&mut self, cycle: Cycle) {
        self.lines.pause(cycle);
    }

    /// A launch may start CTAs.
    pub(super) fn begin(&mut self, kernel: u32) {
        self.active.push(kernel);
    }

    /// Anybody may want CTAs at `cycle`.
    pub(super) fn ask_all(&mut self, cycle: Cycle, chip: &mut Chip) {
        self.lines.ask_all(cycle);
        self.schedule(chip);
    }

    /// An application may want CTAs at `cycle`.
    pub(super) fn ask(&mut self, app: AppId, cycle: Cycle, chip: &mut Chip) {
        self.lines.ask(self.lines.of(app), cycle);
        self.schedule(chip);
    }

    /// A CTA of a launch has left an SM: the launch may want others at `cycle`, and so may
    /// who can come there. [`Dispatcher::schedule`] is still to be called.
    pub(super) fn gone(&mut self, kernel: u32, sm: usize, cycle: Cycle) {
        self.lines.ask(line_of(&self.lines, &self.grids, kernel), cycle);
        self.lines.ask_at(sm, cycle);
    }

    /// Schedules the next hand-out that somebody has asked for.
    pub(super) fn schedule(&mut self, chip: &mut Chip) {
        let Self { lines, active, grids, .. } = self;
        let lined: Vec<usize> =
            active.iter().map(|&kernel| line_of(lines, grids, kernel)).collect();
        let Some(cycle) = lines.next(|line| lined.contains(&line)) else { return };
        if self.scheduled.is_none_or(|at| at > cycle) {
            self.scheduled = Some(cycle);
            chip.queue.schedule(cycle, Event::Dispatch);
        }
    }

    /// Whether launch `kernel` has CTAs that could come to an SM.
    fn waits(&self, kernel: u32) -> bool {
        let grid = &self.grids[to_usize(kernel)];
        grid.staff.as_ref().map_or(grid.left() > 0 || grid.saved > 0, Staff::waits)
    }

    /// Hands out what one cycle allows: at most one CTA per SM.
    ///
    /// # Errors
    /// When the source fails to open a CTA.
    pub(super) fn on_dispatch<F: Feed<Warp = S>>(
        &mut self,
        feed: &F,
        rule: &Rule,
        sms: &mut [Sm<S>],
        streams: &mut Vec<S>,
        chip: &mut Chip,
    ) -> Result<(), MachineError> {
        let now = chip.queue.now();
        if self.scheduled != Some(now) {
            return Ok(());
        }
        self.scheduled = None;
        self.arrange(rule);
        let mut left = self.per_cycle;
        for line in self.lines.in_turn() {
            if self.lines.takes(line, now) {
                self.serve(line, &mut left, feed, rule, sms, streams, chip)?;
            }
        }
        self.schedule(chip);
        Ok(())
    }

    /// Hands out CTAs of one line, at most `left` of them.
    #[allow(clippy::too_many_arguments, reason = "the parts of one machine")]
    fn serve<F: Feed<Warp = S>>(
        &mut self,
        line: usize,
        left: &mut u32,
        feed: &F,
        rule: &Rule,
        sms: &mut [Sm<S>],
        streams: &mut Vec<S>,
        chip: &mut Chip,
    ) -> Result<(), MachineError> {
        let again = chip.queue.now() + self.pace;
        let before = *left;
        for sm in self.sm_order(self.lines.next_sm(line), sms) {
            if *left == 0 {
                break;
            }
            let Some(kernel) = self.choose(sm, &sms[sm], rule) else { continue };
            if line_of(&self.lines, &self.grids, kernel) == line {
                self.start(kernel, sm, feed, rule, &mut sms[sm], streams, chip)?;
                self.lines.served(line, sm);
                *left -= 1;
            }
        }
        if *left < before {
            self.lines.rest(line, again);
        } else if *left == 0 {
            self.lines.ask(line, again);
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

    fn sm_order(&self, first: usize, sms: &[Sm<S>]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..sms.len()).map(|k| (first + k) % sms.len()).collect();
        if self.order == CtaOrder::MostRoom {
            order.sort_by_key(|&sm| (std::cmp::Reverse(sms[sm].free_warps()), sm));
        }
        order
    }

    /// The launch that starts a CTA on an SM.
    fn choose(&self, sm: usize, state: &Sm<S>, rule: &Rule) -> Option<u32> {
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
    fn in_turn(&self, sm: usize, state: &Sm<S>, rule: &Rule) -> Option<u32> {
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
    fn start<F: Feed<Warp = S>>(
        &mut self,
        kernel: u32,
        sm: usize,
        feed: &F,
        rule: &Rule,
        state: &mut Sm<S>,
        streams: &mut Vec<S>,
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
    pub(super) fn departed(&mut self, sm: usize, departure: Departure<S>, now: Cycle) {
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

/// The line in which the application of a launch waits.
fn line_of(lines: &Lines, grids: &[Grid], kernel: u32) -> usize {
    lines.of(grids[to_usize(kernel)].app)
}
