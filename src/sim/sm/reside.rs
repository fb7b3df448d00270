//! CTAs coming to an SM and leaving it.

use crate::config::WarpPlacement;
use gpumodel_core::units::{Cycle, to_u16, to_u32, to_usize};

use super::warp::Warp;
use super::{Bounds, Cta, Departure, Duty, Need, Path, Sm};
use crate::gpu::event_queue::Event;
use crate::gpu::feed::Stream;
use crate::gpu::shared_state::SharedState;
use crate::gpu::timeline::CtaSpan;

impl Sm {
    /// True when a CTA fits now, within `bounds` of the SM.
    pub(crate) fn holds(&self, need: &Need, bounds: &Bounds) -> bool {
        self.room.place(need, bounds).is_some()
    }

    /// Makes the SM ready for a kernel whose CTAs use `shared_bytes` together:
    /// an SM without CTAs chooses its carve-out anew and flushes its L1.
    pub(crate) fn prepare(&mut self, shared_bytes: u32) {
        let idle = self.ctas.iter().all(Option::is_none);
        if idle {
            self.l1.prepare(shared_bytes, &self.params.shared);
        }
    }

    /// Takes CTA `ordinal` of a launch in; its warps issue from `begin` on.
    ///
    /// The caller has asked [`Sm::holds`].
    pub(crate) fn admit(
        &mut self,
        (kernel, ordinal): (u32, u64),
        need: Need,
        bounds: &Bounds,
        streams: &mut Vec<Stream>,
        begin: Cycle,
        shared_state: &mut SharedState,
    ) {
        shared_state.counts[to_usize(kernel)].ctas_started += 1;
        let paths = streams.drain(..).map(Path::Plain);
        self.take_in((kernel, ordinal, None), need, bounds, paths, begin, shared_state);
    }

    /// Takes a CTA with these warps in.
    pub(super) fn take_in(
        &mut self,
        (kernel, ordinal, duty): (u32, u64, Option<Duty>),
        need: Need,
        bounds: &Bounds,
        paths: impl Iterator<Item = Path>,
        begin: Cycle,
        shared_state: &mut SharedState,
    ) {
        let lies = self.room.place(&need, bounds).expect("the dispatcher has asked for room");
        self.room.take(&need, lies);
        self.counts.ctas += 1;
        if self.l1.has_leaving() {
            self.l1.kernel = kernel;
            self.schedule_service(shared_state.queue.now(), shared_state);
        }
        let place = self.free_cta();
        let warps = self.seat(kernel, to_u16(place), paths, shared_state);
        let live = to_u32(warps.len());
        for &warp in &warps {
            self.warp(warp).waking = true;
            shared_state.queue.schedule(begin, Event::Wake { sm: self.id, warp });
        }
        self.ctas[place] = Some(Cta {
            kernel,
            ordinal,
            duty,
            started: shared_state.queue.now(),
            away: 0,
            need,
            place: lies,
            issued: 0,
            vacating: None,
            live,
            barriers: Vec::new(),
            warps,
        });
        if live == 0 {
            self.retire(place, shared_state);
        }
    }

    /// Gives the warps of a CTA slots; those without instructions take none.
    fn seat(
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
            if let Some(warp) = Warp::start(path, (kernel, cta), self.started, profile, counts) {
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
        rotates.then(|| to_usize(self.counts.ctas - 1) % self.schedulers.len())
    }

    /// The lowest free warp slot, of the given scheduler (modulo their number) if
    /// it has one, else of the next that does.
    pub(super) fn free_slot(&self, scheduler: Option<usize>) -> usize {
        let count = self.schedulers.len();
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
        let scheduler = self.scheduler_of(warp);
        self.schedulers[scheduler].leave(warp);
        let ended = self.warps[usize::from(warp)].take().expect("only resident warps end");
        let place = usize::from(ended.cta);
        self.withdraw(&ended);
        let cta = self.ctas[place].as_mut().expect("a warp's CTA is resident");
        cta.live -= 1;
        cta.issued += ended.issued;
        if cta.live == 0 {
            self.retire(place, shared_state);
        } else {
            self.open_barriers(place, shared_state);
            self.leave_if_quiet(place, shared_state);
        }
    }

    fn retire(&mut self, place: usize, shared_state: &mut SharedState) {
        let cta = self.ctas[place].take().expect("only resident CTAs retire");
        self.room.give_back(&cta.need, cta.place);
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
}
