//! Handing CTAs to SMs: quotas of the plan, room on the SMs, launch rate.

use crate::config::{CtaOrder, Machine};
use gpumodel_core::contract::DispatchOrder;
use gpumodel_core::units::{AppId, Cycle, KernelId, to_u16, to_u64, to_usize};

use crate::gpu::clusters::Seat;
use crate::gpu::dispatch_groups::DispatchGroups;
use crate::gpu::error::MachineError;
use crate::gpu::event_queue::Event;
use crate::gpu::feed::{Feed, Stream};
use crate::gpu::grid::Grid;
use crate::gpu::plan_control::{ActivePlan, PlanControl};
use crate::gpu::shared_state::SharedState;
use crate::gpu::workers::WorkerPool;
use crate::sm::{Arrival, Departure, Saved, Sm};

/// The dispatcher.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    pub(crate) grids: Vec<Grid>,
    /// Launches that have CTAs left, in the order in which they began.
    pub(crate) active: Vec<u32>,
    order: CtaOrder,
    per_cycle: u32,
    /// Cycles from one hand-out to the next.
    pace: Cycle,
    dispatch_groups: DispatchGroups,
    /// Cycles from a CTA's start until its warps issue.
    first_issue: Cycle,
    /// Cycles for which an SM sets up a CTA, one at a time.
    set_up: Cycle,
    /// By SM: until when it sets up those that came before.
    sets_up_until: Vec<Cycle>,
    /// Launch for which each SM's L1 was prepared.
    prepared: Vec<Option<u32>>,
    /// CTAs whose state is in memory, in the order in which they left.
    saved: Vec<Saved>,
    /// By application and SM: CTAs and warps there.
    pub(crate) held: Vec<Vec<Held>>,
    /// By SM: its GPC.
    gpc_of: Vec<u16>,
    /// The SMs in the order in which CTAs come to an empty machine.
    in_order: Vec<usize>,
    /// By SM: its place in that order.
    place_of: Vec<usize>,
}

/// What handing out CTAs needs of the machine.
pub(crate) struct HandOut<'a> {
    pub(crate) feed: &'a dyn Feed,
    pub(crate) active_plan: &'a ActivePlan,
    pub(crate) sms: &'a mut [Sm],
    /// Scratch for the streams of a CTA's warps.
    pub(crate) streams: &'a mut Vec<Stream>,
    pub(crate) shared_state: &'a mut SharedState,
}

/// What an application has of an SM.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) ctas: u32,
    pub(crate) warps: u32,
}

impl Dispatcher {
    /// A dispatcher for the launches `grids`, none of which has begun.
    /// A part of a machine hands out every `pace` cycles what one cycle allows.
    pub(crate) fn new(machine: &Machine, grids: Vec<Grid>, apps: usize, pace: Cycle) -> Self {
        let sms = usize::from(machine.dispatch.sms);
        let in_order: Vec<usize> = match &machine.cluster {
            Some(spec) => {
                spec.dispatch_order(machine.dispatch.sms).into_iter().map(usize::from).collect()
            }
            None => (0..sms).collect(),
        };
        let mut place_of = vec![0; sms];
        for (place, &sm) in in_order.iter().enumerate() {
            place_of[sm] = place;
        }
        Self {
            in_order,
            place_of,
            saved: Vec::new(),
            held: vec![vec![Held::default(); sms]; apps],
            grids,
            active: Vec::new(),
            order: machine.dispatch.order,
            per_cycle: machine.dispatch.ctas_per_cycle.max(1),
            pace,
            dispatch_groups: DispatchGroups::new(apps, sms),
            first_issue: machine.dispatch.cta_launch_cycles.max(1)
                + u64::from(machine.sm.first_issue_cycles),
            set_up: u64::from(machine.dispatch.cta_interval_cycles),
            sets_up_until: vec![0; sms],
            prepared: vec![None; sms],
            gpc_of: (0..machine.dispatch.sms)
                .map(|sm| {
                    let cluster = machine.cluster.as_ref();
                    cluster.map_or(0, |spec| spec.gpc_of(sm, machine.dispatch.sms))
                })
                .collect(),
        }
    }

    /// Divides the applications into groups as a plan that comes into force divides the SMs, and
    /// asks for those whose share differs from that of the plan `before`. Workers may be
    /// launched on any SM, to find that they are not wanted there.
    pub(crate) fn follow(
        &mut self,
        active_plan: &ActivePlan,
        before: Option<&ActivePlan>,
        now: Cycle,
    ) {
        let mut has_workers = vec![false; self.held.len()];
        for grid in self.grids.iter().filter(|grid| grid.worker_pool.is_some()) {
            has_workers[grid.app.index()] = true;
        }
        let may = |app: usize, sm| has_workers[app] || active_plan.may_come(AppId(to_u16(app)), sm);
        if self.dispatch_groups.follow(may) || self.dispatch_groups.is_one() {
            return self.dispatch_groups.ask_all(now);
        }
        for app in 0..self.held.len() {
            let id = AppId(to_u16(app));
            if before.is_none_or(|before| !active_plan.gives_as(before, id)) {
                self.dispatch_groups.ask_for(app, now);
            }
        }
    }

    /// The launches of an application.
    pub(crate) fn kernels_of(&self, app: usize) -> Vec<usize> {
        let grids = self.grids.iter().enumerate();
        grids.filter(|(_, grid)| grid.app.index() == app).map(|(kernel, _)| kernel).collect()
    }

    /// No CTA starts before `cycle`.
    pub(crate) fn pause(&mut self, cycle: Cycle) {
        self.dispatch_groups.pause(cycle);
    }

    /// A launch may start CTAs.
    pub(crate) fn begin(&mut self, kernel: u32) {
        self.active.push(kernel);
    }

    /// Asks for CTAs at `cycle`, for all applications.
    pub(crate) fn ask_all(&mut self, cycle: Cycle, shared_state: &mut SharedState) {
        self.dispatch_groups.ask_all(cycle);
        self.schedule(shared_state);
    }

    /// Asks for CTAs at `cycle`, for an application and those in its group.
    pub(crate) fn ask(&mut self, app: AppId, cycle: Cycle, shared_state: &mut SharedState) {
        self.dispatch_groups.ask_for(app.index(), cycle);
        self.schedule(shared_state);
    }

    /// A CTA of a launch has left an SM, or a worker of it asks there: at `cycle` the
    /// launch may start others, and so may those that may come to that SM.
    /// [`Dispatcher::schedule`] is still to be called.
    pub(crate) fn ask_after_departure(&mut self, kernel: u32, sm: usize, cycle: Cycle) {
        self.dispatch_groups.ask_for(self.grids[to_usize(kernel)].app.index(), cycle);
        self.dispatch_groups.ask_at(sm, cycle);
    }

    /// Schedules what is asked for.
    pub(crate) fn schedule(&mut self, shared_state: &mut SharedState) {
        let Self { dispatch_groups, active, grids, .. } = self;
        let of_app: Vec<Option<usize>> = active
            .iter()
            .map(|&kernel| dispatch_groups.of(grids[to_usize(kernel)].app.index()))
            .collect();
        dispatch_groups.schedule(
            |group| of_app.contains(&Some(group)),
            |group, at| shared_state.queue.schedule(at, Event::Dispatch { group: to_u16(group) }),
        );
    }

    /// Whether launch `kernel` has CTAs that could come to an SM.
    fn waits(&self, kernel: u32) -> bool {
        let grid = &self.grids[to_usize(kernel)];
        grid.worker_pool.as_ref().map_or(grid.left() > 0 || grid.saved > 0, WorkerPool::waits)
    }

    /// Hands out what one cycle allows: at most one CTA per SM. Groups that share the
    /// launch rate take turns, whichever event comes.
    ///
    /// # Errors
    /// When the source fails to open a CTA.
    pub(crate) fn on_dispatch(
        &mut self,
        called: u16,
        machine: &mut HandOut<'_>,
    ) -> Result<(), MachineError> {
        let (now, called) = (machine.shared_state.queue.now(), usize::from(called));
        if !self.dispatch_groups.is_called(called, now) {
            return Ok(());
        }
        self.arrange(machine.active_plan);
        let shared = to_usize(self.per_cycle) < machine.sms.len();
        for group in self.dispatch_groups.in_turn().filter(|&group| shared || group == called) {
            if self.dispatch_groups.takes(group, now) {
                self.serve(group, machine)?;
            }
        }
        self.schedule(machine.shared_state);
        Ok(())
    }

    /// Hands out CTAs of one group, as far as the others have left of what a cycle allows.
    fn serve(&mut self, group: usize, machine: &mut HandOut<'_>) -> Result<(), MachineError> {
        let (now, mut served) = (machine.shared_state.queue.now(), false);
        for sm in self.sm_order(self.dispatch_groups.next_sm(group), machine.sms) {
            if self.dispatch_groups.handed(now) >= self.per_cycle {
                break;
            }
            let chosen = self.choose(sm, &machine.sms[sm], machine.active_plan);
            let Some(kernel) = chosen else { continue };
            if self.dispatch_groups.of(self.grids[to_usize(kernel)].app.index()) == Some(group) {
                let started = self.start_cluster(kernel, sm, machine)?;
                let next = self.in_order[(self.place_of[sm] + 1) % self.in_order.len()];
                (0..started).for_each(|_| self.dispatch_groups.served(group, next, now));
                served |= started > 0;
            }
        }
        let handed = self.dispatch_groups.handed(now);
        if served || handed >= self.per_cycle {
            // A cluster starts at once and takes the time of its CTAs.
            let cycles = u64::from(handed.div_ceil(self.per_cycle)).max(1);
            self.dispatch_groups.again(group, served, now + cycles * self.pace);
        }
        Ok(())
    }

    /// Starts a CTA of a launch on an SM, with all of its cluster on SMs of the same GPC; returns
    /// how many have started: none where these have no room. Where the plan in force never gives
    /// the launch room for a cluster, its CTAs start one by one.
    fn start_cluster(
        &mut self,
        kernel: u32,
        sm: usize,
        machine: &mut HandOut<'_>,
    ) -> Result<u32, MachineError> {
        let size = self.grids[to_usize(kernel)].next_cluster();
        if size == 1 || !self.has_clusters(kernel, size, machine.active_plan) {
            self.start(kernel, sm, None, machine)?;
            return Ok(1);
        }
        let Some(places) = self.places(kernel, (sm, size), machine) else { return Ok(0) };
        let cluster = machine.shared_state.clusters.begin(size);
        for (rank, sm) in (0..).zip(places) {
            self.start(kernel, sm, Some(Seat { cluster, rank }), machine)?;
        }
        Ok(size)
    }

    /// Whether some GPC has room for a cluster of a launch when nothing else is there.
    fn has_clusters(&self, kernel: u32, size: u32, active_plan: &ActivePlan) -> bool {
        let grid = &self.grids[to_usize(kernel)];
        let gpcs = self.gpc_of.iter().max().map_or(0, |&last| usize::from(last) + 1);
        let mut room = vec![0_u32; gpcs];
        for (sm, &gpc) in self.gpc_of.iter().enumerate() {
            let ctas = active_plan.quota(grid.app, sm).min(grid.fits).min(grid.spread);
            room[usize::from(gpc)] = room[usize::from(gpc)].saturating_add(ctas);
        }
        room.into_iter().any(|room| room >= size)
    }

    /// SMs of the GPC of `sm` that take the CTAs of a cluster now, by rank: one each, from `sm` on,
    /// before any takes a second one.
    fn places(
        &self,
        kernel: u32,
        (sm, size): (usize, u32),
        machine: &HandOut<'_>,
    ) -> Option<Vec<usize>> {
        let sms = self.gpc_of.len();
        let around = (0..sms).map(|k| (sm + k) % sms);
        let of_gpc: Vec<usize> = around.filter(|&k| self.gpc_of[k] == self.gpc_of[sm]).collect();
        let room: Vec<u32> =
            of_gpc.iter().map(|&sm| self.room(kernel, (sm, size), machine)).collect();
        let rounds = (0..size).flat_map(|round| {
            of_gpc.iter().zip(&room).filter(move |(_, room)| **room > round).map(|(&sm, _)| sm)
        });
        let places: Vec<usize> = rounds.take(to_usize(size)).collect();
        (places.len() == to_usize(size)).then_some(places)
    }

    /// CTAs of a launch that an SM takes now, at most `most`.
    fn room(&self, kernel: u32, (sm, most): (usize, u32), machine: &HandOut<'_>) -> u32 {
        let grid = &self.grids[to_usize(kernel)];
        let bounds = machine.active_plan.bounds(grid.app);
        let mut held = self.held[grid.app.index()][sm];
        let mut within = 0;
        while within < most
            && machine.active_plan.allows(grid.app, sm, held, &grid.need)
            && grid.on_sm[sm] + within < grid.spread
        {
            held.ctas += 1;
            held.warps += grid.need.warps;
            within += 1;
        }
        machine.sms[sm].takes(&grid.need, &bounds, within)
    }

    /// Puts the active launches into the plan's order.
    fn arrange(&mut self, active_plan: &ActivePlan) {
        let grids = &self.grids;
        let rank = |list: &[AppId], kernel: u32| {
            let app = grids[to_usize(kernel)].app;
            list.iter().position(|&a| a == app).unwrap_or(list.len())
        };
        match active_plan.order() {
            DispatchOrder::InOrder | DispatchOrder::RoundRobin => {}
            DispatchOrder::Priority(list) => self.active.sort_by_key(|&kernel| rank(list, kernel)),
        }
    }

    fn sm_order(&self, first: usize, sms: &[Sm]) -> Vec<usize> {
        let mut order = self.in_order.clone();
        order.rotate_left(self.place_of[first]);
        if self.order == CtaOrder::MostRoom {
            order.sort_by_key(|&sm| (std::cmp::Reverse(sms[sm].free_warps()), self.place_of[sm]));
        }
        order
    }

    /// The launch that starts a CTA on an SM.
    fn choose(&self, sm: usize, state: &Sm, active_plan: &ActivePlan) -> Option<u32> {
        if *active_plan.order() == DispatchOrder::RoundRobin {
            return self.in_turn(sm, state, active_plan);
        }
        for &kernel in self.active.iter().filter(|&&kernel| self.may(kernel, sm, active_plan)) {
            let grid = &self.grids[to_usize(kernel)];
            if state.holds(&grid.need, &active_plan.bounds(grid.app)) {
                return Some(kernel);
            }
            if active_plan.is_strict() {
                return None;
            }
        }
        None
    }

    /// The launch whose turn it is on an SM: of those that fit, the next after the
    /// one that started there last. By SM: turns of the whole machine would give
    /// one launch all even SMs.
    fn in_turn(&self, sm: usize, state: &Sm, active_plan: &ActivePlan) -> Option<u32> {
        let fits = |&kernel: &u32| {
            let grid = &self.grids[to_usize(kernel)];
            self.may(kernel, sm, active_plan)
                && state.holds(&grid.need, &active_plan.bounds(grid.app))
        };
        let past = |kernel: u32| self.prepared[sm].is_some_and(|last| kernel <= last);
        self.active.iter().copied().filter(fits).min_by_key(|&kernel| (past(kernel), kernel))
    }

    /// Whether a launch has a CTA that the plan lets start on an SM.
    fn may(&self, kernel: u32, sm: usize, active_plan: &ActivePlan) -> bool {
        let grid = &self.grids[to_usize(kernel)];
        let held = self.held[grid.app.index()][sm];
        if let Some(worker_pool) = &grid.worker_pool {
            return worker_pool.may_come(sm);
        }
        active_plan.allows(grid.app, sm, held, &grid.need)
            && grid.on_sm[sm] < grid.spread
            && self.waits(kernel)
    }

    fn start(
        &mut self,
        kernel: u32,
        sm: usize,
        seat: Option<Seat>,
        machine: &mut HandOut<'_>,
    ) -> Result<(), MachineError> {
        let HandOut { feed, active_plan, sms, streams, shared_state } = machine;
        let state = &mut sms[sm];
        if self.prepared[sm] != Some(kernel) {
            state.prepare(self.shared_on(sm, kernel, active_plan));
            self.prepared[sm] = Some(kernel);
        }
        let grid = &mut self.grids[to_usize(kernel)];
        let bounds = active_plan.bounds(grid.app);
        let held = &mut self.held[grid.app.index()][sm];
        held.ctas += 1;
        held.warps += grid.need.warps;
        grid.came(sm, shared_state.elapsed());
        let turn = shared_state.queue.now().max(self.sets_up_until[sm]);
        self.sets_up_until[sm] = turn + self.set_up;
        let begin = turn + self.first_issue;
        let arrival = Arrival { kernel, need: grid.need, bounds: &bounds, begin, seat };
        if let Some(worker_pool) = &mut grid.worker_pool {
            let number = worker_pool.take_place(sm, active_plan.quota(grid.app, sm));
            state.admit_worker(&arrival, &worker_pool.worker, number, shared_state);
        } else if grid.saved > 0 {
            grid.saved -= 1;
            let place = self.saved.iter().position(|saved| saved.kernel == kernel);
            let saved = self.saved.remove(place.expect("a saved CTA is kept"));
            state.restore(saved, &bounds, shared_state);
        } else {
            streams.clear();
            let ordinal = grid.next_cta();
            feed.open(KernelId(kernel), ordinal, streams).map_err(MachineError::Feed)?;
            debug_assert!(to_u64(streams.len()) <= u64::from(grid.need.warps));
            state.admit(&arrival, ordinal, streams, shared_state);
        }
        if !self.waits(kernel) {
            self.active.retain(|&k| k != kernel);
        }
        Ok(())
    }

    /// Shared bytes that an SM is made ready for when `kernel` comes to it: its own
    /// and those of the other applications that may come too.
    fn shared_on(&self, sm: usize, kernel: u32, active_plan: &ActivePlan) -> u32 {
        let own = &self.grids[to_usize(kernel)];
        let mut met = vec![own.app];
        let mut bytes = own.shared_per_sm;
        for &other in &self.active {
            let grid = &self.grids[to_usize(other)];
            if active_plan.quota(grid.app, sm) > 0 && !met.contains(&grid.app) {
                met.push(grid.app);
                bytes = bytes.saturating_add(grid.shared_per_sm);
            }
        }
        bytes.min(active_plan.whole().shared_bytes.end)
    }

    /// A CTA has left an SM.
    pub(crate) fn departed(&mut self, sm: usize, departure: Departure, shared: &SharedState) {
        let kernel = departure.kernel();
        let grid = &mut self.grids[to_usize(kernel)];
        grid.went(sm, shared.elapsed());
        let held = &mut self.held[grid.app.index()][sm];
        held.ctas -= 1;
        held.warps -= grid.need.warps;
        match departure {
            Departure::Retired { .. } if grid.worker_pool.is_some() => return,
            Departure::Retired { started, .. } => {
                grid.retired += 1;
                grid.lives += shared.queue.now() - started;
                return;
            }
            Departure::Asks { .. } | Departure::Stored { .. } => return,
            Departure::Killed { ordinal, issued, again: true, .. } => {
                grid.again.push(ordinal);
                grid.dropped += issued;
            }
            Departure::Killed { blocks, .. } => {
                grid.lost += blocks;
                if let Some(worker_pool) = &mut grid.worker_pool {
                    worker_pool.out -= blocks;
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

    /// A further instance of a launch may start its workers, where it still comes now.
    pub(crate) fn restart_workers(
        &mut self,
        kernel: u32,
        control: &PlanControl,
        shared_state: &mut SharedState,
    ) {
        let now = shared_state.queue.now();
        let grid = &mut self.grids[to_usize(kernel)];
        if !grid.worker_pool.as_ref().is_some_and(|worker_pool| worker_pool.comes(now)) {
            return;
        }
        grid.launch_workers(control, shared_state.mmu.as_mut());
        let app = grid.app;
        if !self.active.contains(&kernel) {
            self.begin(kernel);
        }
        self.ask(app, now, shared_state);
    }

    /// No worker comes to a launch any more.
    pub(crate) fn close_workers(&mut self, kernel: u32) {
        if let Some(worker_pool) = &mut self.grids[to_usize(kernel)].worker_pool {
            worker_pool.close();
            self.active.retain(|&active| active != kernel);
        }
    }

    /// Forgets all launches of an application.
    pub(crate) fn cancel(&mut self, app: AppId) {
        let Self { grids, active, saved, .. } = self;
        let owns = |kernel: u32| grids[to_usize(kernel)].app == app;
        active.retain(|&kernel| !owns(kernel));
        saved.retain(|saved| !owns(saved.kernel));
        for grid in grids.iter_mut().filter(|grid| grid.app == app) {
            grid.lost += grid.saved + to_u64(grid.again.len());
            grid.saved = 0;
            grid.again.clear();
            grid.worker_pool.iter_mut().for_each(WorkerPool::close);
        }
    }
}
