//! One streaming multiprocessor: resident CTAs and warps, schedulers,
//! load/store unit, L1.

mod access;
mod active_set;
mod barriers;
mod burst;
mod bursts;
mod constant_loads;
mod constants;
mod fetch;
mod flow;
mod held;
mod instructions;
mod l1;
#[cfg(test)]
mod l1_tests;
mod lead;
mod ledger;
mod line_cache;
mod load_store;
mod mover;
mod need;
mod next;
mod params;
mod path;
mod repeat;
mod reside;
mod room;
mod scheduler;
mod serve;
mod share;
mod shared_units;
mod tasks;
mod translate;
mod turns;
mod vacate;
mod warp;
mod write_back;

use std::collections::VecDeque;

use crate::config::{Machine, SmSpec};
use gpumodel_core::isa::{Access, Unit};
use gpumodel_core::units::{AppId, Cycle, to_usize};

use super::chip::Chip;
use super::counters::{SmCounts, StallStack};
use super::packet::Operation;
use super::profile::OPERANDS;
use super::slab::Slab;
use barriers::Barrier;
use constants::Constants;
use fetch::Fetch;
use held::Banks;
use l1::L1;
use load_store::LoadStore;
use mover::Move;
pub use need::{Limit, Need};
use params::Params;
pub(super) use path::{Errand, Path};
pub(super) use room::Bounds;
use room::{Place, Room};
use scheduler::Scheduler;
use share::{ISSUE, PerResource, RESOURCES};
use shared_units::SharedUnits;
pub(super) use tasks::Duty;
use translate::Translator;
use vacate::Vacating;
pub(super) use vacate::{Departure, Leave, Saved};
use warp::Warp;

/// One resident CTA.
#[derive(Clone, Debug)]
struct Cta {
    kernel: u32,
    /// Which of the launch's CTAs it is, in order of their start.
    ordinal: u64,
    /// It is a worker.
    duty: Option<Duty>,
    started: Cycle,
    /// Cycles that its state was in memory.
    away: Cycle,
    need: Need,
    place: Place,
    /// Warp instructions of its warps that have ended.
    issued: u64,
    /// It is about to leave before its end.
    vacating: Option<Vacating>,
    /// Warps that have not ended.
    live: u32,
    /// Barriers that its warps have met.
    barriers: Vec<Barrier>,
    warps: Vec<u16>,
}

/// One SM.
#[derive(Debug)]
pub(super) struct Sm {
    id: u16,
    params: Params,
    schedulers: Vec<Scheduler>,
    shared_units: SharedUnits,
    /// By warp slot; empty before the first CTA.
    warps: Vec<Option<Warp>>,
    ctas: Vec<Option<Cta>>,
    room: Room,
    l1: L1,
    load_store: LoadStore,
    banks: Banks,
    /// Absent on machines without translation.
    translator: Option<Box<Translator>>,
    /// Instruction caches, where the machine has them.
    fetch: Option<Fetch>,
    /// The constant cache, where the machine has one.
    constants: Option<Box<Constants>>,
    operations: Slab<Operation>,
    counts: SmCounts,
    /// Memory instructions have all operand collectors.
    issue_held: bool,
    started: u64,
    access: Access,
    /// Bursts that have just completed: warp and cycles ahead.
    finished: Vec<(u16, f64)>,
    /// Operations released by a fill.
    released: Vec<u32>,
    /// Warps whose instructions have come.
    woken: Vec<u16>,
    /// CTAs that have left and are still to be reported.
    departed: Vec<Departure>,
    /// State of CTAs on its way to memory and back.
    moves: VecDeque<Move>,
}

impl Sm {
    /// An empty SM number `id` of `machine`.
    pub(super) fn new(id: u16, machine: &Machine) -> Self {
        let capacity = capacity(machine);
        #[allow(clippy::cast_possible_truncation, reason = "a small ratio")]
        let loss = (f64::from(machine.sm.knee_loss_percent) / 100.0) as f32;
        let SmSpec { policy, active_warps, .. } = machine.sm;
        let scheduler = || Scheduler::new(policy, active_warps, capacity).losing(loss);
        Self {
            id,
            params: Params::new(machine),
            schedulers: (0..machine.sm.schedulers).map(|_| scheduler()).collect(),
            shared_units: SharedUnits::new(machine),
            warps: Vec::new(),
            ctas: (0..machine.sm.max_ctas).map(|_| None).collect(),
            room: Room::whole(machine),
            l1: L1::new(&machine.l1),
            load_store: LoadStore::new(machine.l1.queue),
            banks: Banks::new(machine.l1.banks.max(1)),
            translator: Translator::new(machine),
            fetch: machine.fetch.as_ref().map(|spec| Fetch::new(spec, machine)),
            constants: Constants::new(machine),
            operations: Slab::new(),
            counts: SmCounts::default(),
            issue_held: false,
            started: 0,
            access: Access::default(),
            finished: Vec::new(),
            released: Vec::new(),
            woken: Vec::new(),
            departed: Vec::new(),
            moves: VecDeque::new(),
        }
    }

    /// The scheduler of a warp slot.
    fn scheduler_of(&self, warp: u16) -> usize {
        usize::from(warp) % self.schedulers.len()
    }

    fn warp(&mut self, warp: u16) -> &mut Warp {
        self.warps[usize::from(warp)].as_mut().expect("an event names a resident warp")
    }

    /// Free room, for the dispatcher.
    pub(super) fn free_warps(&self) -> u32 {
        self.room.free_warps()
    }

    /// True when a CTA has left since [`Sm::take_departed`] was called last.
    #[inline]
    pub(super) fn has_departed(&self) -> bool {
        !self.departed.is_empty()
    }

    /// CTAs that have left since the last call.
    pub(super) fn take_departed(&mut self, out: &mut Vec<Departure>) {
        out.append(&mut self.departed);
    }

    /// What it has counted so far.
    pub(super) fn counts(&self) -> SmCounts {
        let mut counts = self.counts.clone();
        for scheduler in &self.schedulers {
            scheduler.stalls.iter().for_each(|app| add_stalls(&mut counts.stalls, app));
        }
        counts
    }

    /// Slot-cycles of one application by cause, up to the last closing of the books.
    pub(super) fn stalls_of(&self, app: AppId) -> StallStack {
        let mut stalls = StallStack::default();
        let parts = self.schedulers.iter().filter_map(|one| one.stalls.get(app.index()));
        parts.for_each(|part| add_stalls(&mut stalls, part));
        stalls
    }

    /// Moves all schedulers' books to the present.
    pub(super) fn close_books(&mut self, chip: &mut Chip) {
        let now = chip.queue.now();
        for scheduler in &mut self.schedulers {
            scheduler.book(now, &mut chip.counts);
        }
    }

    /// Moves all schedulers to the present.
    fn move_on(&mut self, chip: &mut Chip) {
        let now = chip.queue.now();
        for scheduler in &mut self.schedulers {
            scheduler.advance(now, &mut chip.counts);
        }
    }

    /// One line on what is resident, for the dump of a stuck run.
    pub(super) fn describe(&self) -> Option<String> {
        let ctas = self.ctas.iter().flatten().count();
        let waits: Vec<String> = self
            .warps
            .iter()
            .enumerate()
            .filter_map(|(slot, warp)| Some(format!("{slot}:{:?}", warp.as_ref()?.blocked)))
            .take(8)
            .collect();
        let stalled = self.load_store.stalled;
        (ctas > 0).then(|| {
            format!(
                "SM {}: {ctas} CTAs, load/store stalled: {stalled}, warps {}",
                self.id,
                waits.join(" ")
            )
        })
    }
}

fn add_stalls(sum: &mut StallStack, part: &StallStack) {
    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
}

/// What one scheduler takes of each resource per cycle: its part of the units,
/// all of those that are fewer than schedulers (see [`shared_units`]).
fn capacity(machine: &Machine) -> PerResource {
    let mut capacity = [f32::INFINITY; RESOURCES];
    let schedulers = f64::from(machine.sm.schedulers.max(1));
    for unit in Unit::ALL {
        if let Some(spec) = machine.units.get(unit.name()) {
            let count = f64::from(spec.count);
            let part = if count < schedulers { count } else { count / schedulers };
            #[allow(clippy::cast_possible_truncation, reason = "a small ratio")]
            let part = part as f32;
            capacity[unit.index()] = part;
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "an issue width is 1 or 2")]
    let width = machine.sm.issue_width.max(1) as f32;
    capacity[OPERANDS] = 1.0;
    capacity[ISSUE] = width;
    debug_assert!(to_usize(machine.sm.schedulers) <= 64);
    capacity
}
