//! CTAs on an SM: they come, as blocks or as workers that run one task of blocks after
//! the other, meet at barriers, and retire.
//!
//! Barriers are numbered, each with its own count of arrivals, of the whole CTA or of so
//! many warps. A barrier of the whole CTA opens when all warps that have not ended have
//! arrived (CUDA C++ Programming Guide, compute capability 7.x: all non-exited
//! threads); a counted one only by arrivals.

use std::sync::Arc;

use gpumodel_core::units::{Cycle, to_u16, to_u32, to_usize};

use crate::config::WarpPlacement;
use crate::gpu::clusters::Seat;
use crate::gpu::event_queue::Event;
use crate::gpu::feed::Stream;
use crate::gpu::shared_state::SharedState;
use crate::gpu::timeline::CtaSpan;
use crate::gpu::workers::Worker;
use crate::interval::BarrierOperands;
use crate::sm::barrier_objects::BarrierObjects;
use crate::sm::cta_resources::Place;
use crate::sm::vacate::Vacating;
use crate::sm::warp::{Blocked, Next, Warp};
use crate::sm::{Bounds, Departure, Need, Path, Sm, WorkerPath};

/// One resident CTA.
#[derive(Clone, Debug)]
pub(super) struct Cta {
    pub(super) kernel: u32,
    /// Which of the launch's CTAs it is, in order of their start.
    pub(super) ordinal: u64,
    /// It is a worker.
    pub(super) duty: Option<Duty>,
    pub(super) started: Cycle,
    /// Cycles that its state was in memory.
    pub(super) away: Cycle,
    pub(super) need: Need,
    pub(super) place: Place,
    /// Warp instructions of its warps that have ended.
    pub(super) issued: u64,
    /// It is about to leave before its end.
    pub(super) vacating: Option<Vacating>,
    /// Warps that have not ended.
    pub(super) live: u32,
    /// Its place in a cluster that runs.
    pub(super) seat: Option<Seat>,
    /// Barriers that its warps have met.
    pub(super) barriers: Vec<Barrier>,
    /// Barrier objects in its shared memory.
    pub(super) objects: BarrierObjects,
    pub(super) warps: Vec<u16>,
}

/// A CTA that comes to an SM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) kernel: u32,
    pub(crate) need: Need,
    /// The part of the SM from which it takes.
    pub(crate) bounds: &'a Bounds,
    /// When its warps may issue.
    pub(crate) begin: Cycle,
    /// Its place in a cluster that runs.
    pub(crate) seat: Option<Seat>,
}

/// What makes a CTA a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duty {
    /// Its number among the launch's workers on the SM.
    pub(crate) number: u32,
    /// Tasks that it has taken.
    pub(crate) tasks: u64,
    /// Blocks of the present one.
    pub(crate) blocks: u64,
}

/// One barrier of a CTA at which warps have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    /// Which one.
    pub(super) place: u8,
    /// Arrivals since it opened last.
    pub(super) arrived: u32,
    /// Warps that must arrive; 0: all of the CTA.
    pub(super) warps: u32,
    /// Warps that have arrived and gone on.
    ahead: u32,
}

impl Barrier {
    /// The barrier that the operands name, made when it is met first.
    fn find(barriers: &mut Vec<Self>, operands: BarrierOperands) -> &mut Self {
        let place = barriers.iter().position(|barrier| barrier.place == operands.place);
        let place = place.unwrap_or_else(|| {
            barriers.push(Self { place: operands.place, arrived: 0, warps: 0, ahead: 0 });
            barriers.len() - 1
        });
        barriers[place].warps = u32::from(operands.warps);
        &mut barriers[place]
    }
}

impl Sm {
    /// True when a CTA fits now, within `bounds` of the SM.
    pub(crate) fn holds(&self, need: &Need, bounds: &Bounds) -> bool {
        self.resources.place(need, bounds).is_some()
    }

    /// CTAs of `need` that fit now within `bounds` of the SM, at most `most`.
    pub(crate) fn takes(&self, need: &Need, bounds: &Bounds, most: u32) -> u32 {
        let mut resources = self.resources.clone();
        let more = |_: &u32| {
            let place = resources.place(need, bounds);
            place.inspect(|&place| resources.take(need, place)).is_some()
        };
        to_u32((0..most).take_while(more).count())
    }

    /// Makes the SM ready for a kernel whose CTAs use `shared_bytes` together:
    /// an SM without CTAs chooses its carve-out again and flushes its L1.
    pub(crate) fn prepare(&mut self, shared_bytes: u32) {
        let idle = self.ctas.iter().all(Option::is_none);
        if idle {
            self.lsu.l1.prepare(shared_bytes, &self.params.shared);
        }
    }

    /// Takes CTA `ordinal` of a launch in.
    ///
    /// The caller has asked [`Sm::holds`].
    pub(crate) fn admit(
        &mut self,
        arrival: &Arrival<'_>,
        ordinal: u64,
        streams: &mut Vec<Stream>,
        shared_state: &mut SharedState,
    ) {
        shared_state.counts[to_usize(arrival.kernel)].ctas_started += 1;
        let paths = streams.drain(..).map(Path::Plain);
        self.place_cta(arrival, (ordinal, None), paths, shared_state);
    }

    /// Takes a CTA with these warps in.
    fn place_cta(
        &mut self,
        &Arrival { kernel, need, bounds, begin, seat }: &Arrival<'_>,
        (ordinal, duty): (u64, Option<Duty>),
        paths: impl Iterator<Item = Path>,
        shared_state: &mut SharedState,
    ) {
        let place = self.resources.place(&need, bounds).expect("the dispatcher has asked for room");
        self.resources.take(&need, place);
        self.counts.ctas += 1;
        if self.lsu.l1.has_leaving() {
            self.lsu.l1.kernel = kernel;
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
        let slot = self.free_cta();
        let warps = self.assign_slots(kernel, to_u16(slot), paths, shared_state);
        let live = to_u32(warps.len());
        for &warp in &warps {
            self.warp(warp).waking = true;
            shared_state.queue.schedule(begin, Event::Wake { sm: self.id, warp });
        }
        self.ctas[slot] = Some(Cta {
            kernel,
            ordinal,
            duty,
            started: shared_state.queue.now(),
            away: 0,
            need,
            place,
            issued: 0,
            vacating: None,
            live,
            seat,
            barriers: Vec::new(),
            objects: BarrierObjects::default(),
            warps,
        });
        if let Some(seat) = seat {
            shared_state.clusters.seat(seat, (self.id, to_u16(slot)), live);
        }
        if live == 0 {
            self.retire(slot, shared_state);
        }
    }

    /// Gives the warps of a CTA slots; those without instructions take none.
    fn assign_slots(
        &mut self,
        kernel: u32,
        cta: u16,
        paths: impl Iterator<Item = Path>,
        shared_state: &mut SharedState,
    ) -> Vec<u16> {
        let mut warps = Vec::with_capacity(paths.size_hint().0);
        self.make_slots();
        let first = self.first_scheduler();
        for (turn, path) in paths.enumerate() {
            let slot = self.free_slot(first.map(|first| first + turn));
            self.started += 1;
            let (profile, counts) = shared_state.profile_and_counts(kernel);
            let warp = Warp::start(path, (kernel, cta), self.started, profile, counts);
            if let Some(mut warp) = warp {
                warp.log = shared_state.hot.as_ref().map(|_| Box::default());
                self.warps[slot] = Some(warp);
                warps.push(to_u16(slot));
            }
        }
        warps
    }

    /// Makes the warp slots of an SM that has had no CTA yet.
    pub(super) fn make_slots(&mut self) {
        if self.warps.is_empty() {
            self.warps.resize_with(to_usize(self.params.max_warps), || None);
        }
    }

    /// The lowest free CTA slot.
    pub(super) fn free_cta(&self) -> usize {
        self.ctas.iter().position(Option::is_none).expect("the room counts CTA slots")
    }

    /// The scheduler that the CTA just counted begins at, where it matters.
    fn first_scheduler(&self) -> Option<usize> {
        let rotates = self.params.placement == WarpPlacement::Rotating;
        rotates.then(|| to_usize(self.counts.ctas - 1) % self.issue.schedulers.len())
    }

    /// The lowest free warp slot, of the given scheduler (modulo their number) if
    /// it has one, else of the next that does.
    pub(super) fn free_slot(&self, scheduler: Option<usize>) -> usize {
        let count = self.issue.schedulers.len();
        let free = |&slot: &usize| self.warps[slot].is_none();
        let slots = 0..self.warps.len();
        let found = match scheduler {
            None => slots.clone().find(free),
            Some(wanted) => (wanted..wanted + count)
                .find_map(|s| slots.clone().skip(s % count).step_by(count).find(free)),
        };
        found.expect("the room counts warp slots")
    }

    /// A warp has ended and its accesses are done.
    pub(super) fn end_warp(&mut self, warp: u16, shared_state: &mut SharedState) {
        self.charge(warp, shared_state);
        let scheduler = self.issue.scheduler_of(warp);
        self.issue.schedulers[scheduler].leave(warp, false);
        let ended = self.warps[usize::from(warp)].take().expect("only resident warps end");
        let place = usize::from(ended.cta);
        self.withdraw(&ended);
        let cta = self.ctas[place].as_mut().expect("a warp's CTA is resident");
        cta.live -= 1;
        cta.issued += ended.issued;
        let (seat, live) = (cta.seat, cta.live);
        if let Some(seat) = seat {
            self.leave_cluster_barrier(seat, &ended, shared_state);
        }
        if live == 0 {
            self.retire(place, shared_state);
        } else {
            self.open_barriers(place, shared_state);
            self.release_objects(place, shared_state);
            self.leave_if_quiet(place, shared_state);
        }
    }

    fn retire(&mut self, place: usize, shared_state: &mut SharedState) {
        let cta = self.ctas[place].take().expect("only resident CTAs retire");
        if let Some(seat) = cta.seat {
            shared_state.leave_cluster(seat);
        }
        self.resources.give_back(&cta.need, cta.place);
        let (kernel, started) = (cta.kernel, cta.started + cta.away);
        self.departed.push(Departure::Retired { kernel, started });
        shared_state.counts[to_usize(kernel)].ctas_retired += u64::from(cta.duty.is_none());
        if let Some(spans) = &mut shared_state.spans {
            let (kernel, ordinal, start) = (cta.kernel, cta.ordinal, cta.started);
            spans.push(CtaSpan {
                kernel,
                ordinal,
                sm: self.id,
                start,
                end: shared_state.queue.now(),
            });
        }
    }

    /// Takes a worker with this number in; one without finds out that it is not wanted. The
    /// caller has asked [`Sm::holds`].
    pub(crate) fn admit_worker(
        &mut self,
        arrival: &Arrival<'_>,
        worker: &Arc<Worker>,
        number: Option<u32>,
        shared_state: &mut SharedState,
    ) {
        let counts = &mut shared_state.counts[to_usize(arrival.kernel)];
        counts.workers += 1;
        let ordinal = counts.workers;
        let at = (arrival.kernel, self.id);
        let paths = (0..arrival.need.warps).map(|warp| {
            Path::Worker(Box::new(WorkerPath::new(worker, at, warp == 0, number.is_none())))
        });
        let duty = Duty { number: number.unwrap_or(0), ..Duty::default() };
        self.place_cta(arrival, (ordinal, Some(duty)), paths, shared_state);
    }

    /// The warps of a worker wait for a task.
    pub(super) fn request_task(&mut self, slot: usize) {
        if let Some(cta) = &self.ctas[slot] {
            self.departed.push(Departure::Asks { kernel: cta.kernel, slot });
        }
    }

    /// The duty of the worker in a slot.
    pub(crate) fn duty(&mut self, slot: usize) -> Option<&mut Duty> {
        self.ctas[slot].as_mut().and_then(|cta| cta.duty.as_mut())
    }

    /// Gives a worker a block: to each of its warps its stream.
    pub(crate) fn hand(&mut self, slot: usize, streams: &mut Vec<Stream>) {
        let warps = self.ctas[slot].as_ref().map_or(0, |cta| cta.warps.len());
        debug_assert_eq!(streams.len(), warps, "a worker has as many warps as a block");
        for (index, stream) in streams.drain(..).enumerate() {
            let member = self.ctas[slot].as_ref().and_then(|cta| cta.warps.get(index)).copied();
            if let Some(warp) = member.and_then(|warp| self.warps[usize::from(warp)].as_mut()) {
                warp.stream.push(stream);
            }
        }
    }

    /// A warp has issued a barrier instruction, `ahead` cycles before now.
    pub(super) fn arrive_at_barrier(
        &mut self,
        warp: u16,
        operands: BarrierOperands,
        ahead: f64,
        shared_state: &mut SharedState,
    ) {
        if operands.place == BarrierOperands::CLUSTER {
            return self.step_at_cluster_barrier(warp, operands.waits, ahead, shared_state);
        }
        if operands.waits {
            self.block(warp, Blocked::Barrier(operands.place));
        }
        let begin = self.barriers_free.max(shared_state.queue.now());
        self.barriers_free = begin + self.params.barrier_arrival;
        let resident = self.warp(warp);
        let (kernel, cta) = (resident.kernel, usize::from(resident.cta));
        let passes = !operands.waits && operands.warps == 0;
        let again = passes && resident.arrive(operands.place);
        shared_state.counts[gpumodel_core::units::to_usize(kernel)].assumed_barriers +=
            u64::from(operands.assumed);
        if let Some(cta) = self.ctas[cta].as_mut().filter(|_| !again) {
            let barrier = Barrier::find(&mut cta.barriers, operands);
            barrier.arrived += 1;
            barrier.ahead += u32::from(passes);
        }
        self.open_barriers(cta, shared_state);
        if operands.waits {
            self.release_objects(cta, shared_state);
        } else {
            self.pass(warp, ahead, shared_state);
        }
    }

    /// A warp has ended: it no longer counts where it had arrived without waiting.
    pub(super) fn withdraw(&mut self, ended: &Warp) {
        let Some(cta) = self.ctas[usize::from(ended.cta)].as_mut() else { return };
        for barrier in &mut cta.barriers {
            if barrier.warps == 0 && ended.has_arrived(barrier.place) {
                barrier.arrived -= 1;
                barrier.ahead -= 1;
            }
        }
    }

    /// Opens what barriers of a CTA can open.
    pub(super) fn open_barriers(&mut self, cta: usize, shared_state: &mut SharedState) {
        let count = self.ctas[cta].as_ref().map_or(0, |cta| cta.barriers.len());
        for place in 0..count {
            self.open_barrier(cta, place, shared_state);
        }
    }

    /// Lets the waiting warps go when all have arrived that must.
    fn open_barrier(&mut self, place: usize, barrier: usize, shared_state: &mut SharedState) {
        let Some(cta) = self.ctas[place].as_ref() else { return };
        let Barrier { place: name, arrived, warps, ahead } = cta.barriers[barrier];
        if arrived == 0 || arrived < self.awaited(place, name, warps) {
            return;
        }
        let left = if warps > 0 { arrived - warps } else { 0 };
        let arrival = self.barriers_free.saturating_sub(self.params.barrier_arrival);
        let next = arrival.max(shared_state.queue.now()) + self.params.barrier_cycles;
        for index in 0..self.ctas[place].as_ref().map_or(0, |cta| cta.warps.len()) {
            let Some((slot, warp)) = self.member(place, index) else { continue };
            let waits = warp.blocked == Blocked::Barrier(name);
            let stopped = warp.blocked == Blocked::Stopped;
            let stopped = stopped && matches!(warp.next, Next::Barrier(at) if at == name);
            if ahead > 0 {
                self.warp(slot).depart(name);
            }
            if stopped {
                self.warp(slot).next = Next::Settled;
            }
            if waits {
                self.wake_at(slot, next, shared_state);
            }
        }
        if name == BarrierOperands::TASK {
            self.request_task(place);
        }
        if let Some(cta) = self.ctas[place].as_mut() {
            cta.barriers[barrier] = Barrier { arrived: left, ahead: 0, ..cta.barriers[barrier] };
        }
    }

    /// Arrivals that a barrier opens at: warps that have issued their last
    /// instruction count as ended, and at barriers of a block those that have done
    /// their part of it.
    pub(super) fn awaited(&self, place: usize, name: u8, warps: u32) -> u32 {
        if warps > 0 {
            return warps;
        }
        let Some(cta) = self.ctas[place].as_ref() else { return 0 };
        let members = (0..cta.warps.len()).filter_map(|index| self.member(place, index));
        let done = |warp: &Warp| {
            name != BarrierOperands::TASK && warp.blocked == Blocked::Barrier(BarrierOperands::TASK)
        };
        let gone =
            members.filter(|(_, warp)| done(warp) || warp.has_ended() && !warp.has_arrived(name));
        cta.live - to_u32(gone.count())
    }

    /// A warp of a CTA by its place in it, unless it has ended.
    pub(super) fn member(&self, place: usize, index: usize) -> Option<(u16, &Warp)> {
        let slot = self.ctas[place].as_ref()?.warps[index];
        let warp = self.warps[usize::from(slot)].as_ref()?;
        (usize::from(warp.cta) == place).then_some((slot, warp))
    }
}
