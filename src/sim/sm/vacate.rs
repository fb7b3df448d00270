//! CTAs that leave an SM before their end, and those that come back.
//!
//! A CTA that is to leave issues nothing more; it leaves when what its warps have
//! in flight is done. A flushed one is gone then. A switched one first writes its
//! state to memory and, wherever it comes back, reads it before its warps continue,
//! through load/store unit, crossbar, L2 and DRAM as any other access.

use gpumodel_core::units::{Cycle, to_u32, to_usize};

use crate::gpu::shared_state::SharedState;
use crate::interval::BarrierOperands;
use crate::memory::packet::RequestKind;
use crate::sm::barrier_objects::BarrierObjects;
use crate::sm::barriers::Barrier;
use crate::sm::cta::Cta;
use crate::sm::cta_resources::Bounds;
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
    /// None: the last store of the CTAs that have ended has been answered.
    Stored { kernel: u32 },
}

impl Departure {
    /// The launch whose CTA it was.
    pub(crate) fn kernel(&self) -> u32 {
        match self {
            Self::Retired { kernel, .. }
            | Self::Killed { kernel, .. }
            | Self::Asks { kernel, .. }
            | Self::Stored { kernel } => *kernel,
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
    /// Its barriers, barrier objects and spare registers.
    held: (Vec<Barrier>, BarrierObjects, u32),
    warps: Vec<Warp>,
}

impl Sm {
    /// The resident CTAs that are not about to leave: slot, launch, when they came, had
    /// they never been away.
    pub(crate) fn residents(&self) -> impl Iterator<Item = (usize, u32, Cycle)> {
        let stays = self.ctas.all().filter(|cta| !cta.leaves());
        stays.map(|cta| (usize::from(cta.slot), cta.kernel, cta.started + cta.away))
    }

    /// The CTAs that are being stopped or saved, by slot and launch.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = (usize, u32)> {
        let leaving = self.ctas.all().filter(|cta| cta.leaves());
        leaving.map(|cta| (usize::from(cta.slot), cta.kernel))
    }

    /// True while a CTA leaves before its end or comes back.
    pub(crate) fn is_switching(&self) -> bool {
        self.ctas.all().any(|cta| cta.vacating.is_some())
    }

    /// Lets a CTA leave before its end. One that is leaving already is only
    /// stopped for good.
    pub(crate) fn stop(&mut self, slot: usize, leave: Leave, shared_state: &mut SharedState) {
        let Some(cta) = self.ctas.get_mut(slot) else { return };
        if cta.leaves() && leave != Leave::Halt {
            return;
        }
        cta.vacating = Some(Vacating::Stopping(leave));
        if let Some(seat) = cta.seat.take() {
            shared_state.break_cluster(seat);
        }
        self.transfers.stop(slot);
        for warp in self.members(slot) {
            self.stop_warp(warp, shared_state);
        }
        self.leave_if_quiet(slot, shared_state);
    }

    /// The warps of a CTA that have not ended.
    fn members(&self, slot: usize) -> Vec<u16> {
        let cta = self.ctas.get(slot);
        cta.map_or_else(Vec::new, |cta| cta.members(&self.warps).map(|(warp, _)| warp).collect())
    }

    fn stop_warp(&mut self, warp: u16, shared_state: &mut SharedState) {
        let index = self.warps.issue.scheduler_of(warp);
        self.warps.issue.advance(index, shared_state);
        let &mut Warp { blocked, waking, .. } = self.warps.resident(warp);
        if blocked == Blocked::No {
            self.warps.charge(warp, shared_state);
        }
        let next = match blocked {
            Blocked::Stopped | Blocked::Draining | Blocked::Leaving => return,
            Blocked::No => match self.warps.issue.schedulers[index].take_out(warp) {
                Some((running, claim)) => Next::Rest(running, claim),
                None => Next::IssueInterval,
            },
            Blocked::Queue => {
                self.lsu.queue.unblock(warp);
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
            Blocked::Object | Blocked::Registers(_) if !waking => Next::Meet,
            Blocked::Barrier(_)
            | Blocked::Load(_)
            | Blocked::Fence
            | Blocked::Groups(_)
            | Blocked::Object
            | Blocked::Registers(_)
            | Blocked::Result => Next::Settled,
        };
        if blocked != Blocked::No {
            self.warps.unblock(warp, shared_state);
        }
        self.warps.resident(warp).next = next;
        self.warps.block(warp, Blocked::Stopped);
        self.warps.issue.settle(index, shared_state);
    }

    /// Goes on with a CTA that leaves or comes back once nothing of it is in flight.
    pub(super) fn leave_if_quiet(&mut self, slot: usize, shared_state: &mut SharedState) {
        let Some(vacating) = self.ctas.get(slot).and_then(|cta| cta.vacating) else { return };
        let members = self.members(slot);
        let quiet = |&warp: &u16| {
            let state = self.warps.get(warp);
            let stopped = |warp: &Warp| warp.blocked == Blocked::Stopped;
            state.is_some_and(|warp| stopped(warp) && warp.outstanding == 0 && !warp.waking)
        };
        if self.transfers.concern(slot) || members.is_empty() || !members.iter().all(quiet) {
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
        if let Some(cta) = self.ctas.get_mut(slot) {
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
        let cta = self.ctas.get(slot).expect("only the state of a resident CTA moves");
        let tag = shared_state.windows(cta.kernel).tag;
        if self.transfers.begin(cta, (warp, ask), tag, &mut self.lsu, &mut self.warps) {
            self.lsu.schedule_service(shared_state.queue.now(), shared_state);
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
        self.ctas.departed.push(Departure::Killed { kernel, ordinal, issued, again, blocks });
    }

    fn finish_saving(&mut self, slot: usize, shared_state: &mut SharedState) {
        let (cta, warps) = self.take_away(slot, shared_state);
        let Cta { kernel, ordinal, started, away, need, issued, .. } = cta;
        let since = shared_state.queue.now();
        let held = (cta.barriers, cta.objects, cta.spare_registers);
        let saved = Saved { kernel, ordinal, started, away, since, need, issued, held, warps };
        self.ctas.departed.push(Departure::Saved(Box::new(saved)));
    }

    /// Takes a quiet CTA and its warps from the SM.
    fn take_away(&mut self, slot: usize, shared_state: &mut SharedState) -> (Cta, Vec<Warp>) {
        self.warps.issue.advance_all(shared_state);
        let members = self.members(slot);
        let cta = self.ctas.remove(slot);
        for &warp in &members {
            self.warps.unblock(warp, shared_state);
        }
        (cta, members.iter().filter_map(|&warp| self.warps.remove(warp)).collect())
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
        let (slot, place) = self.ctas.reserve(&need, bounds);
        self.warps.make_slots();
        let warps: Vec<u16> =
            warps.into_iter().map(|warp| self.warps.restore(warp, slot)).collect();
        let cta = Cta {
            kernel,
            slot,
            ordinal,
            duty: None,
            started,
            away: away + (shared_state.queue.now() - since),
            need,
            place,
            issued,
            vacating: Some(Vacating::Restoring),
            live: to_u32(warps.len()),
            seat: None,
            barriers: held.0,
            objects: held.1,
            spare_registers: held.2,
            warps: warps.clone(),
        };
        self.ctas.seat(cta, shared_state);
        for &warp in &warps {
            let index = self.warps.issue.scheduler_of(warp);
            self.warps.issue.advance(index, shared_state);
            self.warps.block(warp, Blocked::Stopped);
            self.warps.issue.settle(index, shared_state);
        }
        self.begin_moving(usize::from(slot), warps[0], RequestKind::Read, shared_state);
    }

    /// The warps of a CTA whose state is back continue where they stopped.
    fn resume_warps(&mut self, slot: usize, members: &[u16], shared_state: &mut SharedState) {
        self.set_vacating(slot, None);
        for &warp in members {
            let index = self.warps.issue.scheduler_of(warp);
            self.warps.issue.advance(index, shared_state);
            self.warps.unblock(warp, shared_state);
            let resident = self.warps.resident(warp);
            resident.lead = 0;
            let age = resident.age;
            match std::mem::take(&mut resident.next) {
                Next::IssueInterval => self.begin_interval(warp, 0.0, shared_state),
                Next::Rest(running, claim) => {
                    self.warps.issue.schedulers[index].go_on(running.of(warp), claim.aged(age));
                }
                Next::Meet => self.go_on(warp, 0.0, shared_state),
                Next::Settled => {
                    self.warps.resume(warp, true, shared_state);
                    self.begin_interval(warp, 0.0, shared_state);
                }
                Next::Barrier(barrier) => self.warps.block(warp, Blocked::Barrier(barrier)),
            }
            self.warps.issue.settle(index, shared_state);
        }
    }
}
