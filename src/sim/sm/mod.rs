//! One streaming multiprocessor: its parts, and what others ask of it.
//!
//! Each part has its own state: [`Warps`] holds the warps and their issue stage, [`CtaTable`] the
//! CTAs and their barriers, [`Lsu`] the load/store unit with L1, constant cache and TLB, [`Fetch`]
//! the instruction caches, [`ContextTransfers`] the states of CTAs on their way to memory and back.
//! A part that needs another one gets it as an argument, and returns what must happen next.
//!
//! The SM itself leads from one part to the next: `warp_progress` takes warps from event to event,
//! `memory_events` acts on events of the load/store unit, of instruction fetch and of the memory,
//! `vacate` lets CTAs leave before their end and come back.

mod barrier_objects;
mod barriers;
mod cluster;
pub(crate) mod coalesce;
mod context_transfer;
mod cta;
mod cta_resources;
mod cta_table;
mod fetch;
pub(crate) mod hot;
mod line_cache;
mod lost_arrival;
mod lsu;
mod memory_events;
mod params;
mod repeat;
mod scheduler;
mod vacate;
mod warp;
mod warp_path;
mod warp_progress;
mod warps;

use std::sync::Arc;

use gpumodel_core::units::{AppId, to_u32, to_usize};

use crate::config::Machine;
use crate::counters::{CacheCounts, SmCounts, StallStack, TlbCounts};
use crate::gpu::clusters::MessageKind;
use crate::gpu::feed::Stream;
use crate::gpu::shared_state::SharedState;
use crate::gpu::workers::Worker;
use barrier_objects::BarrierObjects;
pub use coalesce::{access_sectors, bank_conflicts};
use context_transfer::ContextTransfers;
use cta::Cta;
pub(crate) use cta::{Arrival, Duty};
pub(crate) use cta_resources::Bounds;
pub use cta_resources::{Limit, Need};
use cta_table::CtaTable;
use fetch::Fetch;
pub(crate) use lost_arrival::WaitingCta;
use lsu::Lsu;
pub(crate) use lsu::queue::Freed;
use params::Params;
pub use scheduler::policy::SchedulerPolicy;
pub(crate) use vacate::{Departure, Leave, Saved};
pub(crate) use warp_path::{Path, WorkerPath};
use warps::Warps;

/// One SM.
#[derive(Debug)]
pub(crate) struct Sm {
    id: u16,
    params: Params,
    warps: Warps,
    ctas: CtaTable,
    lsu: Lsu,
    /// Instruction caches, where the machine has them.
    fetch: Option<Fetch>,
    transfers: ContextTransfers,
    counts: SmCounts,
    /// Intervals that have just completed: warp and cycles ahead.
    finished: Vec<(u16, f64)>,
    /// Warps whose instructions have come.
    woken: Vec<u16>,
    /// Operations released by a fill of the L1, with their sectors.
    released: Vec<(u32, u8)>,
    /// Operations released by a line of constants.
    released_words: Vec<u32>,
}

impl Sm {
    /// An empty SM number `id` of `machine`, in front of a memory system that keeps aligned
    /// blocks of `block_bytes` in one slice.
    pub(crate) fn new(id: u16, machine: &Machine, block_bytes: u64) -> Self {
        let warps = Warps::new(id, machine);
        Self {
            id,
            params: Params::new(machine),
            lsu: Lsu::new(id, machine, block_bytes, warps.issue.sees_l1),
            warps,
            ctas: CtaTable::new(id, machine),
            fetch: machine.fetch.as_ref().map(|spec| Fetch::new(id, spec, machine)),
            transfers: ContextTransfers::default(),
            counts: SmCounts::default(),
            finished: Vec::new(),
            woken: Vec::new(),
            released: Vec::new(),
            released_words: Vec::new(),
        }
    }

    /// Free warp slots, for the dispatcher.
    pub(crate) fn free_warps(&self) -> u32 {
        self.ctas.free_warps()
    }

    /// True when a CTA fits now, within `bounds` of the SM.
    pub(crate) fn holds(&self, need: &Need, bounds: &Bounds) -> bool {
        self.ctas.holds(need, bounds)
    }

    /// CTAs of `need` that fit now within `bounds` of the SM, at most `most`.
    pub(crate) fn takes(&self, need: &Need, bounds: &Bounds, most: u32) -> u32 {
        self.ctas.takes(need, bounds, most)
    }

    /// Makes the SM ready for a kernel whose CTAs use `shared_bytes` together:
    /// an SM without CTAs chooses its carve-out again and flushes its L1.
    pub(crate) fn prepare(&mut self, shared_bytes: u32) {
        if self.ctas.all().next().is_none() {
            self.lsu.prepare(shared_bytes);
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

    /// Takes a CTA with these warps in.
    fn place_cta(
        &mut self,
        &Arrival { kernel, need, bounds, begin, seat }: &Arrival<'_>,
        (ordinal, duty): (u64, Option<Duty>),
        paths: impl Iterator<Item = Path>,
        shared_state: &mut SharedState,
    ) {
        let now = shared_state.queue.now();
        let (slot, place) = self.ctas.reserve(&need, bounds);
        if self.lsu.data.l1.has_leaving() {
            self.lsu.data.l1.kernel = kernel;
            self.lsu.schedule_service(now, shared_state);
        }
        let warps = self.warps.start((kernel, slot), paths, shared_state);
        self.counts.ctas += 1;
        for &warp in &warps {
            self.warps.wake_at(warp, begin, shared_state);
        }
        let live = to_u32(warps.len());
        let cta = Cta {
            kernel,
            slot,
            ordinal,
            duty,
            started: now,
            away: 0,
            need,
            place,
            issued: 0,
            vacating: None,
            live,
            seat,
            barriers: Vec::new(),
            objects: BarrierObjects::default(),
            spare_registers: 0,
            warps,
        };
        self.ctas.seat(cta, shared_state);
        if live == 0 {
            self.ctas.retire(usize::from(slot), shared_state);
        }
    }

    /// The duty of the worker in a slot.
    pub(crate) fn duty(&mut self, slot: usize) -> Option<&mut Duty> {
        self.ctas.get_mut(slot).and_then(|cta| cta.duty.as_mut())
    }

    /// Gives a worker a block: to each of its warps its stream.
    pub(crate) fn hand(&mut self, slot: usize, streams: &mut Vec<Stream>) {
        if let Some(cta) = self.ctas.get(slot) {
            cta.hand(streams, &mut self.warps);
        }
    }

    /// True when a CTA has left since [`Sm::take_departed`] was called last.
    #[inline]
    pub(crate) fn has_departed(&self) -> bool {
        !self.ctas.departed.is_empty()
    }

    /// CTAs that have left since the last call.
    pub(crate) fn take_departed(&mut self, out: &mut Vec<Departure>) {
        out.append(&mut self.ctas.departed);
    }

    /// Lets the warps of a CTA go that wait at its cluster's barrier and may pass.
    pub(crate) fn pass_cluster_barrier(&mut self, slot: u16, shared_state: &mut SharedState) {
        self.ctas.pass_cluster_barrier(slot, &mut self.warps, shared_state);
    }

    /// A message from another CTA of a cluster arrives.
    pub(crate) fn receive(
        &mut self,
        slot: usize,
        kind: MessageKind,
        shared_state: &mut SharedState,
    ) {
        self.ctas.receive(slot, kind, &mut self.warps, shared_state);
    }

    /// True when all warps of a CTA wait and no copy is in flight that could end a phase.
    pub(crate) fn stands_still(&self, slot: usize) -> bool {
        self.ctas.get(slot).is_some_and(|cta| cta.stands_still(&self.warps))
    }

    /// Lets the warps of a CTA go that wait at barrier objects: the trace lacks what would end the
    /// phases.
    pub(crate) fn let_objects_go(&mut self, slot: usize, shared_state: &mut SharedState) {
        if let Some(cta) = self.ctas.get_mut(slot) {
            cta.let_objects_go(&mut self.warps, shared_state);
        }
    }

    /// The first CTA that the trace keeps waiting forever.
    pub(crate) fn waiting_cta(&self, shared_state: &mut SharedState) -> Option<WaitingCta> {
        self.ctas.all().find_map(|cta| WaitingCta::find(cta, &self.warps, shared_state))
    }

    /// Sends evicted sectors while the port takes them.
    ///
    /// # Errors
    /// The cycle at which it will, or `None` when the SM will be woken.
    pub(crate) fn send_evicted(
        &mut self,
        shared_state: &mut SharedState,
    ) -> Result<(), Option<u64>> {
        self.lsu.data.send_evicted(shared_state)
    }

    /// Its TLB is flushed: the pages of all waiting instructions are looked up again.
    pub(crate) fn forget_pages(&mut self) {
        self.lsu.forget_pages();
    }

    /// Asks for nothing more until [`Sm::ask_again`]: whether all is answered already.
    pub(crate) fn rest(&mut self) -> bool {
        self.lsu.queue.resting = true;
        self.is_quiet()
    }

    /// True when everything that was asked of memory is answered.
    pub(crate) fn is_quiet(&self) -> bool {
        self.lsu.data.in_flight == 0
    }

    /// Flushes the L1 and continues behind [`Sm::rest`].
    pub(crate) fn ask_again(&mut self, shared_state: &mut SharedState) {
        self.lsu.ask_again(shared_state);
    }

    /// Attributes stalls to instructions, from the first CTA on.
    pub(crate) fn attribute_stalls(&mut self) {
        self.warps.issue.schedulers.iter_mut().for_each(|scheduler| scheduler.account_by_warp());
    }

    /// Charges what all resident warps have lost.
    pub(crate) fn charge_all(&mut self, shared_state: &mut SharedState) {
        self.warps.charge_all(shared_state);
    }

    /// What it has counted so far.
    pub(crate) fn counts(&self) -> SmCounts {
        let mut counts = self.counts.clone();
        self.warps.issue.add_stalls(None, &mut counts.stalls);
        counts.l1.grow(&CacheCounts::default(), &self.lsu.data.held_counts);
        counts
    }

    /// Look-ups of this SM in its TLB, where it has one.
    pub(crate) fn tlb_counts(&self) -> Option<TlbCounts> {
        self.lsu.tlb_counts()
    }

    /// Slot-cycles of one application by cause, up to the last accounting.
    pub(crate) fn stalls_of(&self, app: AppId) -> StallStack {
        let mut stalls = StallStack::default();
        self.warps.issue.add_stalls(Some(app), &mut stalls);
        stalls
    }

    /// Those of them that a full load/store queue or active set takes.
    pub(crate) fn blocked_of(&self, app: AppId) -> f64 {
        self.warps.issue.blocked(app)
    }

    /// Accounts the slot-cycles of all schedulers up to now.
    pub(crate) fn account_stalls(&mut self, shared_state: &mut SharedState) {
        self.warps.issue.account(shared_state);
    }

    /// One line on what is resident, for the dump of a stuck run.
    pub(crate) fn describe(&self) -> Option<String> {
        let ctas = self.ctas.all().count();
        let waits: Vec<String> = self
            .warps
            .all()
            .map(|(slot, warp)| format!("{slot}:{:?}", warp.blocked))
            .take(8)
            .collect();
        let stalled = self.lsu.queue.stalled;
        let held = self.lsu.data.held();
        (ctas > 0).then(|| {
            format!(
                "SM {}: {ctas} CTAs, load/store waits for {stalled:?}, {held} sectors held up \
                 in banks, warps {}",
                self.id,
                waits.join(" ")
            )
        })
    }
}
