//! CTAs that leave an SM before their end, and those that come back.
//!
//! A CTA that is to leave issues nothing more; it leaves when what its warps have
//! in flight is done. A flushed one is gone then. A switched one first writes its
//! state to memory and, wherever it comes back, reads it before its warps continue,
//! through load/store unit, crossbar, L2 and DRAM as any other access.
//!
//! State moves as one 128-byte line per memory instruction of the switch, in the
//! load/store queue before all warps, past the L1.

use gpumodel_core::units::{Cycle, to_u16, to_u32, to_u64, to_usize};

use crate::gpu::shared_state::SharedState;
use crate::interval::BarrierOperands;
use crate::memory::packet::{Operation, RequestKind, Target};
use crate::mmu::address_space::STATE_BASE;
use crate::sm::barrier_objects::BarrierObjects;
use crate::sm::coalesce::{LINE_BYTES, LineRequest};
use crate::sm::cta::{Barrier, Cta};
use crate::sm::cta_resources::Bounds;
use crate::sm::lsu::queue::{Entry, Route};
use crate::sm::warp::{Blocked, Next, Warp};
use crate::sm::{Need, Sm};

/// How a CTA leaves before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It is dropped and starts again somewhere.
    Flush,
    /// It is dropped for good.
    Halt,
    /// Its state is saved.
    Switch,
}

/// How far a CTA that leaves or comes back is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vacating {
    /// Its accesses are being finished.
    Stopping(Leave),
    /// Its state goes to memory.
    Saving,
    /// Its state comes from memory.
    Restoring,
}

/// A CTA that has left an SM.
#[derive(Debug)]
pub(crate) enum Departure {
    /// It has ended; it had come at this cycle, had it never been away.
    Retired { kernel: u32, started: Cycle },
    /// It was dropped, with so many warp instructions issued and so many blocks not done;
    /// `again`: it has to start again.
    Killed { kernel: u32, ordinal: u64, issued: f64, again: bool, blocks: u64 },
    /// Its state is in memory.
    Saved(Box<Saved>),
    /// It has not left: a worker in this slot has done its task and wants another.
    Asks { kernel: u32, slot: usize },
}

impl Departure {
    /// The launch whose CTA it was.
    pub(crate) fn kernel(&self) -> u32 {
        match self {
            Self::Retired { kernel, .. }
            | Self::Killed { kernel, .. }
            | Self::Asks { kernel, .. } => *kernel,
            Self::Saved(saved) => saved.kernel,
        }
    }
}

/// A CTA whose state is in memory.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) kernel: u32,
    ordinal: u64,
    started: Cycle,
    /// Cycles that it had been away before, and since when it is now.
    away: Cycle,
    since: Cycle,
    need: Need,
    issued: u64,
    /// Its barriers and barrier objects.
    held: (Vec<Barrier>, BarrierObjects),
    warps: Vec<Warp>,
}

/// CTAs of one launch whose states have different places.
const PLACES: u64 = 1 << 16;

/// Bytes of a register.
const REGISTER_BYTES: u64 = 4;

/// Lines of one CTA that are still to be moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextTransfer {
    /// The CTA's slot.
    pub(super) cta: usize,
    /// The warp in whose name they move.
    warp: u16,
    kernel: u32,
    /// The next line.
    line: u64,
    left: u32,
    ask: RequestKind,
}

/// Lines of the state of a CTA of which `live` warps have not ended: their registers,
/// and the CTA's shared memory.
pub(super) fn lines(need: &Need, live: u32) -> u32 {
    let registers = u64::from(need.registers) * u64::from(live) / u64::from(need.warps.max(1));
    let bytes = registers * REGISTER_BYTES + u64::from(need.shared_bytes);
    to_u32(bytes.div_ceil(LINE_BYTES))
}

/// The first line of the state of CTA `ordinal` of a launch, in the address space
/// with this tag.
fn first_line(need: &Need, ordinal: u64, tag: u64) -> u64 {
    let span = to_u64(lines(need, need.warps)) * LINE_BYTES;
    (STATE_BASE + ordinal % PLACES * span) ^ tag
}

impl Sm {
    /// The resident CTAs that are not about to leave: slot, launch, when they came, had
    /// they never been away.
    pub(crate) fn residents(&self) -> impl Iterator<Item = (usize, u32, Cycle)> {
        let stays =
            |cta: &&Cta| !matches!(cta.vacating, Some(Vacating::Stopping(_) | Vacating::Saving));
        let ctas = self.ctas.iter().enumerate();
        ctas.filter_map(move |(slot, cta)| {
            let cta = cta.as_ref().filter(stays)?;
            Some((slot, cta.kernel, cta.started + cta.away))
        })
    }

    /// The CTAs that are being stopped or saved, by slot and launch.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = (usize, u32)> {
        let ctas = self.ctas.iter().enumerate();
        ctas.filter_map(|(slot, cta)| {
            let cta = cta.as_ref()?;
            let leaves = matches!(cta.vacating, Some(Vacating::Stopping(_) | Vacating::Saving));
            leaves.then_some((slot, cta.kernel))
        })
    }

    /// True while a CTA leaves before its end or comes back.
    pub(crate) fn is_switching(&self) -> bool {
        self.ctas.iter().flatten().any(|cta| cta.vacating.is_some())
    }

    /// Lets a CTA leave before its end. One that is leaving already is only
    /// stopped for good.
    pub(crate) fn stop(&mut self, slot: usize, leave: Leave, shared_state: &mut SharedState) {
        let Some(cta) = self.ctas[slot].as_mut() else { return };
        let on_its_way = matches!(cta.vacating, Some(Vacating::Stopping(_) | Vacating::Saving));
        if on_its_way && leave != Leave::Halt {
            return;
        }
        cta.vacating = Some(Vacating::Stopping(leave));
        if let Some(seat) = cta.seat.take() {
            shared_state.break_cluster(seat);
        }
        self.stop_moving(slot);
        for warp in self.members(slot) {
            self.stop_warp(warp, shared_state);
        }
        self.leave_if_quiet(slot, shared_state);
    }

    /// The warps of a CTA that have not ended.
    fn members(&self, slot: usize) -> Vec<u16> {
        let count = self.ctas[slot].as_ref().map_or(0, |cta| cta.warps.len());
        (0..count).filter_map(|index| Some(self.member(slot, index)?.0)).collect()
    }

    fn stop_warp(&mut self, warp: u16, shared_state: &mut SharedState) {
        let index = self.issue.scheduler_of(warp);
        self.issue.advance(index, shared_state);
        let (blocked, waking) = (self.warp(warp).blocked, self.warp(warp).waking);
        if blocked == Blocked::No {
            self.charge(warp, shared_state);
        }
        let next = match blocked {
            Blocked::Stopped | Blocked::Draining | Blocked::Leaving => return,
            Blocked::No => match self.issue.schedulers[index].take_out(warp) {
                Some((running, claim)) => Next::Rest(running, claim),
                None => Next::IssueInterval,
            },
            Blocked::Queue => {
                self.lsu.queue.blocked.retain(|&blocked| blocked != warp);
                Next::Meet
            }
            Blocked::Fetch => {
                if let Some(fetch) = &mut self.fetch {
                    fetch.forget(warp);
                }
                Next::IssueInterval
            }
            Blocked::Barrier(barrier) if !waking && barrier != BarrierOperands::CLUSTER => {
                Next::Barrier(barrier)
            }
            Blocked::Object if !waking => Next::Meet,
            Blocked::Barrier(_)
            | Blocked::Load(_)
            | Blocked::Fence
            | Blocked::Groups(_)
            | Blocked::Object
            | Blocked::Result => Next::Settled,
        };
        if blocked != Blocked::No {
            self.unblock(warp, shared_state);
        }
        self.warp(warp).next = next;
        self.block(warp, Blocked::Stopped);
        self.issue.settle(index, shared_state);
    }

    /// Goes on with a CTA that leaves or comes back once nothing of it is in flight.
    pub(super) fn leave_if_quiet(&mut self, slot: usize, shared_state: &mut SharedState) {
        let Some(vacating) = self.ctas[slot].as_ref().and_then(|cta| cta.vacating) else { return };
        let members = self.members(slot);
        let quiet = |&warp: &u16| {
            let state = self.warps[usize::from(warp)].as_ref();
            let stopped = |warp: &Warp| warp.blocked == Blocked::Stopped;
            state.is_some_and(|warp| stopped(warp) && warp.outstanding == 0 && !warp.waking)
        };
        if self.moves(slot) || members.is_empty() || !members.iter().all(quiet) {
            return;
        }
        match vacating {
            Vacating::Stopping(Leave::Switch) => self.begin_saving(slot, members[0], shared_state),
            Vacating::Stopping(leave) => self.drop_cta(slot, leave, shared_state),
            Vacating::Saving => self.finish_saving(slot, shared_state),
            Vacating::Restoring => self.resume_warps(slot, &members, shared_state),
        }
    }

    fn begin_saving(&mut self, slot: usize, warp: u16, shared_state: &mut SharedState) {
        self.set_vacating(slot, Some(Vacating::Saving));
        self.begin_moving(slot, warp, RequestKind::Write, shared_state);
    }

    fn set_vacating(&mut self, slot: usize, vacating: Option<Vacating>) {
        if let Some(cta) = self.ctas[slot].as_mut() {
            cta.vacating = vacating;
        }
    }

    fn begin_moving(
        &mut self,
        slot: usize,
        warp: u16,
        ask: RequestKind,
        shared_state: &mut SharedState,
    ) {
        let tag = shared_state.windows(self.warp(warp).kernel).tag;
        if self.begin_move(slot, warp, ask, tag) {
            self.schedule_service(shared_state.queue.now(), shared_state);
        } else {
            self.leave_if_quiet(slot, shared_state);
        }
    }

    fn drop_cta(&mut self, slot: usize, leave: Leave, shared_state: &mut SharedState) {
        let (cta, warps) = self.take_away(slot, shared_state);
        let counts = &mut shared_state.counts[to_usize(cta.kernel)];
        counts.ctas_killed += 1;
        let lost = cta.issued + warps.iter().map(|warp| warp.issued).sum::<u64>();
        counts.lost_instructions += lost;
        let rests = warps.iter().map(|warp| warp.next.unissued());
        #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
        let issued = lost as f64 - rests.sum::<f64>();
        let (kernel, ordinal, again) = (cta.kernel, cta.ordinal, leave == Leave::Flush);
        let blocks = cta.duty.map_or(1, |duty| duty.blocks);
        self.departed.push(Departure::Killed { kernel, ordinal, issued, again, blocks });
    }

    fn finish_saving(&mut self, slot: usize, shared_state: &mut SharedState) {
        let (cta, warps) = self.take_away(slot, shared_state);
        let Cta { kernel, ordinal, started, away, need, issued, barriers, objects, .. } = cta;
        let since = shared_state.queue.now();
        let held = (barriers, objects);
        let saved = Saved { kernel, ordinal, started, away, since, need, issued, held, warps };
        self.departed.push(Departure::Saved(Box::new(saved)));
    }

    /// Takes a quiet CTA and its warps from the SM.
    fn take_away(&mut self, slot: usize, shared_state: &mut SharedState) -> (Cta, Vec<Warp>) {
        self.issue.advance_all(shared_state);
        let members = self.members(slot);
        let cta = self.ctas[slot].take().expect("a CTA that leaves is resident");
        for &warp in &members {
            self.unblock(warp, shared_state);
        }
        let warps = members.iter().filter_map(|&warp| self.warps[usize::from(warp)].take());
        let warps = warps.collect();
        self.resources.give_back(&cta.need, cta.place);
        (cta, warps)
    }

    /// Takes a saved CTA back in: its warps continue when its state is here. The caller
    /// has asked [`Sm::holds`].
    pub(crate) fn restore(
        &mut self,
        saved: Saved,
        bounds: &Bounds,
        shared_state: &mut SharedState,
    ) {
        let Saved { kernel, ordinal, started, away, since, need, issued, held, warps } = saved;
        let away = away + (shared_state.queue.now() - since);
        let place = self.resources.place(&need, bounds).expect("the dispatcher has asked for room");
        self.resources.take(&need, place);
        let slot = self.free_cta();
        self.make_slots();
        let live = to_u32(warps.len());
        let mut slots = Vec::with_capacity(warps.len());
        for mut warp in warps {
            let free = self.free_slot(None);
            self.started += 1;
            (warp.cta, warp.age) = (to_u16(slot), self.started);
            self.warps[free] = Some(warp);
            slots.push(to_u16(free));
        }
        let vacating = Some(Vacating::Restoring);
        let warps = slots.clone();
        self.ctas[slot] = Some(Cta {
            kernel,
            ordinal,
            duty: None,
            started,
            away,
            need,
            place,
            issued,
            vacating,
            live,
            seat: None,
            barriers: held.0,
            objects: held.1,
            warps,
        });
        for &warp in &slots {
            let index = self.issue.scheduler_of(warp);
            self.issue.advance(index, shared_state);
            self.block(warp, Blocked::Stopped);
            self.issue.settle(index, shared_state);
        }
        self.begin_moving(slot, slots[0], RequestKind::Read, shared_state);
    }

    /// The warps of a CTA whose state is back continue where they stopped.
    fn resume_warps(&mut self, slot: usize, members: &[u16], shared_state: &mut SharedState) {
        self.set_vacating(slot, None);
        for &warp in members {
            let index = self.issue.scheduler_of(warp);
            self.issue.advance(index, shared_state);
            self.unblock(warp, shared_state);
            let resident = self.warp(warp);
            resident.lead = 0;
            let age = resident.age;
            match std::mem::take(&mut resident.next) {
                Next::IssueInterval => self.begin_interval(warp, 0.0, shared_state),
                Next::Rest(running, claim) => {
                    self.issue.schedulers[index].go_on(running.of(warp), claim.aged(age));
                }
                Next::Meet => self.go_on(warp, 0.0, shared_state),
                Next::Settled => {
                    let profile = shared_state.profile(self.warp(warp).kernel);
                    let state = self.warps[usize::from(warp)].as_mut();
                    state.expect("a restored warp is resident").resume(profile, true);
                    self.begin_interval(warp, 0.0, shared_state);
                }
                Next::Barrier(barrier) => self.block(warp, Blocked::Barrier(barrier)),
            }
            self.issue.settle(index, shared_state);
        }
    }

    /// Begins to move a CTA's state, in the name of its warp `warp`; false where it
    /// has none.
    pub(super) fn begin_move(&mut self, cta: usize, warp: u16, ask: RequestKind, tag: u64) -> bool {
        let Some(moved) = self.ctas[cta].as_ref() else { return false };
        let left = lines(&moved.need, moved.live);
        let line = first_line(&moved.need, moved.ordinal, tag) / LINE_BYTES;
        if left > 0 {
            self.transfers.push_back(ContextTransfer {
                cta,
                warp,
                kernel: moved.kernel,
                line,
                left,
                ask,
            });
            while self.lsu.queue.has_room() && self.push_move() {}
        }
        left > 0
    }

    /// Queues the next line that moves, if there is one; the queue has room.
    pub(super) fn push_move(&mut self) -> bool {
        let Some(&ContextTransfer { warp, kernel, line, ask, .. }) = self.transfers.front() else {
            return false;
        };
        let mut lines = self.lsu.queue.list();
        let bytes = [u32::MAX; 4];
        lines.push(LineRequest { line, sectors: 0xf, translated: false, bytes });
        let target = Target::Nothing;
        let whole = Operation::new(warp, target, 0);
        let operation = self.lsu.operations.insert(whole);
        self.warp(warp).outstanding += 1;
        // What is late is served when the unit is free.
        let issued = Cycle::MAX;
        self.lsu.queue.push(Entry::new(operation, kernel, Route::Direct(ask), lines, issued));
        let first = &mut self.transfers[0];
        first.line += 1;
        first.left -= 1;
        if first.left == 0 {
            self.transfers.pop_front();
        }
        true
    }

    /// True while lines of a CTA are still to be queued.
    pub(super) fn moves(&self, cta: usize) -> bool {
        self.transfers.iter().any(|one| one.cta == cta)
    }

    /// Forgets the lines of a CTA that have not been queued.
    pub(super) fn stop_moving(&mut self, cta: usize) {
        self.transfers.retain(|one| one.cta != cta);
    }
}

#[cfg(test)]
mod tests {
    use super::{Need, lines};

    #[test]
    fn state_is_the_registers_of_live_warps_and_shared_memory() {
        let need = Need { warps: 4, registers: 4096, shared_bytes: 1000 };
        assert_eq!(lines(&need, 4), 128 + 8);
        assert_eq!(lines(&need, 1), 32 + 8);
    }
}
