//! One streaming multiprocessor: resident CTAs and warps, schedulers,
//! load/store unit, L1.

mod access;
mod barriers;
pub(crate) mod coalesce;
mod constant_loads;
mod constants;
mod context_transfer;
mod cta_resources;
mod fetch;
mod flow;
mod instructions;
mod issue_bandwidth;
mod issue_interval;
mod l1;
mod l1_bank_queue;
#[cfg(test)]
mod l1_tests;
mod line_cache;
mod lsu;
mod lsu_queue;
mod params;
mod path;
mod repeat;
mod reside;
mod scheduler;
mod shared_units;
mod stall_accounting;
mod tasks;
mod translate;
mod vacate;
mod warp;
mod write_back;

use std::collections::VecDeque;

use crate::config::{Machine, SmSpec};
use gpumodel_core::isa::{Access, Unit};
use gpumodel_core::units::{AppId, Cycle, to_usize};

use crate::counters::{SmCounts, StallStack};
use crate::gpu::shared_state::SharedState;
use crate::interval::OPERANDS;
use crate::memory::packet::Operation;
use crate::slab::Slab;
use barriers::Barrier;
use constants::Constants;
use context_transfer::ContextTransfer;
pub(crate) use cta_resources::Bounds;
use cta_resources::{CtaResources, Place};
pub use cta_resources::{Limit, Need};
use fetch::Fetch;
use issue_bandwidth::{ISSUE, PerResource, RESOURCES};
use l1::L1;
use l1_bank_queue::L1BankQueues;
use lsu_queue::LoadStore;
use params::Params;
pub(crate) use path::{Path, WorkerPath};
use scheduler::Scheduler;
use scheduler::policy::named;
use shared_units::SharedUnits;
pub(crate) use tasks::Duty;
use translate::Translator;
use vacate::Vacating;
pub(crate) use vacate::{Departure, Leave, Saved};
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
pub(crate) struct Sm {
    id: u16,
    params: Params,
    schedulers: Vec<Scheduler>,
    /// The schedulers' policy sees what the L1 does for warps.
    sees_l1: bool,
    shared_units: SharedUnits,
    /// By warp slot; empty before the first CTA.
    warps: Vec<Option<Warp>>,
    ctas: Vec<Option<Cta>>,
    room: CtaResources,
    l1: L1,
    load_store: LoadStore,
    banks: L1BankQueues,
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
    /// Intervals that have just completed: warp and cycles ahead.
    finished: Vec<(u16, f64)>,
    /// Operations released by a fill.
    released: Vec<u32>,
    /// Warps whose instructions have come.
    woken: Vec<u16>,
    /// CTAs that have left and are still to be reported.
    departed: Vec<Departure>,
    /// State of CTAs on its way to memory and back.
    moves: VecDeque<ContextTransfer>,
}

impl Sm {
    /// An empty SM number `id` of `machine`.
    pub(crate) fn new(id: u16, machine: &Machine) -> Self {
        let capacity = capacity(machine);
        #[allow(clippy::cast_possible_truncation, reason = "a small ratio")]
        let loss = (f64::from(machine.sm.knee_loss_percent) / 100.0) as f32;
        let SmSpec { policy, active_warps, .. } = machine.sm;
        let scheduler = || Scheduler::new(named(policy, active_warps), capacity).losing(loss);
        let schedulers: Vec<Scheduler> = (0..machine.sm.schedulers).map(|_| scheduler()).collect();
        Self {
            id,
            params: Params::new(machine),
            sees_l1: schedulers.iter().any(Scheduler::sees_l1),
            schedulers,
            shared_units: SharedUnits::new(machine),
            warps: Vec::new(),
            ctas: (0..machine.sm.max_ctas).map(|_| None).collect(),
            room: CtaResources::whole(machine),
            l1: L1::new(&machine.l1),
            load_store: LoadStore::new(machine.l1.queue),
            banks: L1BankQueues::new(machine.l1.banks.max(1)),
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
    pub(crate) fn free_warps(&self) -> u32 {
        self.room.free_warps()
    }

    /// True when a CTA has left since [`Sm::take_departed`] was called last.
    #[inline]
    pub(crate) fn has_departed(&self) -> bool {
        !self.departed.is_empty()
    }

    /// CTAs that have left since the last call.
    pub(crate) fn take_departed(&mut self, out: &mut Vec<Departure>) {
        out.append(&mut self.departed);
    }

    /// What it has counted so far.
    pub(crate) fn counts(&self) -> SmCounts {
        let mut counts = self.counts.clone();
        for scheduler in &self.schedulers {
            scheduler.stalls.iter().for_each(|app| add_stalls(&mut counts.stalls, app));
        }
        counts
    }

    /// Slot-cycles of one application by cause, up to the last closing of the books.
    pub(crate) fn stalls_of(&self, app: AppId) -> StallStack {
        let mut stalls = StallStack::default();
        let parts = self.schedulers.iter().filter_map(|one| one.stalls.get(app.index()));
        parts.for_each(|part| add_stalls(&mut stalls, part));
        stalls
    }

    /// Moves all schedulers' books to the present.
    pub(crate) fn account_stalls(&mut self, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        for scheduler in &mut self.schedulers {
            scheduler.book(now, &mut shared_state.counts);
        }
    }

    /// Moves all schedulers to the present.
    fn move_on(&mut self, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        for scheduler in &mut self.schedulers {
            scheduler.advance(now, &mut shared_state.counts);
        }
    }

    /// One line on what is resident, for the dump of a stuck run.
    pub(crate) fn describe(&self) -> Option<String> {
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
