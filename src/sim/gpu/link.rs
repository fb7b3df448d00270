//! The link to the host in a run: copy engines, and the pages of managed memory.
//!
//! A copy, or a page that faults, waits for its latency and then for the engine of its
//! direction, which moves one after another.

use std::collections::BTreeMap;

use gpumodel_core::memory_copy::{CopyDirection, MemoryCopy};
use gpumodel_core::units::Cycle;
use rustc_hash::FxHashMap;

use crate::config::{Link, Machine, ManagedMemory, MemoryStandard};
use crate::gpu::event_queue::{Event, EventQueue};
use crate::memory::packet::{Packet, RequestKind};
use crate::mmu::address_space::is_footprint;
use crate::mmu::page_table::PageRanges;
use crate::slab::Slab;

/// What an application has had of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Copies that have ended, by direction in the order of [`CopyDirection::ALL`].
    pub copies: [u64; 3],
    /// Their bytes.
    pub bytes: [u64; 3],
    /// Cycles during which a copy was under way, waits for its engine among them.
    pub copy_cycles: Cycle,
    /// Pages that have come because a kernel touched them.
    pub faults: u64,
    /// Their bytes.
    pub fault_bytes: u64,
    /// Cycles during which such a page was awaited.
    pub fault_cycles: Cycle,
}

/// Cycles during which something of an application was under way.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    open: u32,
    since: Cycle,
    cycles: Cycle,
}

impl Busy {
    fn begin(&mut self, now: Cycle) {
        if self.open == 0 {
            self.since = now;
        }
        self.open += 1;
    }

    fn end(&mut self, now: Cycle) {
        self.open -= 1;
        if self.open == 0 {
            self.cycles += now - self.since;
        }
    }

    fn until(&self, now: Cycle) -> Cycle {
        self.cycles + if self.open > 0 { now - self.since } else { 0 }
    }
}

/// What one application has had, up to now.
#[derive(Clone, Copy, Debug, Default)]
struct AppUse {
    counts: LinkUse,
    copying: Busy,
    faulting: Busy,
}

/// An engine of one direction.
#[derive(Clone, Copy, Debug)]
struct Engine {
    bytes_per_cycle: f64,
    free_at: Cycle,
}

impl Engine {
    /// When `bytes` bytes that may move from `ready` on have moved.
    fn take(&mut self, ready: Cycle, bytes: u64) -> Cycle {
        let cycles = whole(float(bytes) / self.bytes_per_cycle);
        self.free_at = self.free_at.max(ready).saturating_add(cycles).min(1 << 60);
        self.free_at
    }
}

#[allow(clippy::cast_precision_loss, reason = "copies are far below 2^53 bytes")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

/// Cycles, a part of one as a whole one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "durations are positive; one beyond 2^64 cycles saturates"
)]
fn whole(cycles: f64) -> Cycle {
    (cycles.ceil() as Cycle).min(1 << 56)
}

/// A copy under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyInFlight {
    pub(crate) app: usize,
    /// Its number among the copies of its application's list.
    pub(crate) number: u32,
    pub(crate) copy: MemoryCopy,
}

/// A page that a kernel has touched and that is not yet there.
#[derive(Debug)]
struct Awaited {
    page: u64,
    app: usize,
    packets: Vec<Packet>,
}

/// The pages of managed memory.
#[derive(Debug)]
struct ManagedPages {
    page_bits: u32,
    /// Cycles of a fault before its page moves.
    latency: Cycle,
    present: PageRanges,
    /// By page its place in `awaited`.
    places: FxHashMap<u64, u32>,
    /// By place; a place is used once.
    awaited: BTreeMap<u32, Awaited>,
    next: u32,
}

impl ManagedPages {
    fn new(page_bytes: u32, latency: Cycle) -> Self {
        Self {
            page_bits: page_bytes.trailing_zeros(),
            latency,
            present: PageRanges::default(),
            places: FxHashMap::default(),
            awaited: BTreeMap::new(),
            next: 0,
        }
    }

    fn bytes(&self) -> u64 {
        1 << self.page_bits
    }
}

/// The link of a run on a machine where it takes time.
#[derive(Debug)]
pub(crate) struct HostLink {
    /// Copies take time.
    pub(crate) times_copies: bool,
    engines: [Engine; 3],
    latency: Cycle,
    in_flight: Slab<CopyInFlight>,
    by_app: Vec<AppUse>,
    pages: Option<ManagedPages>,
}

impl HostLink {
    /// The link of `machine` with `apps` applications; `None` where nothing of it takes time.
    pub(crate) fn new(machine: &Machine, standard: &MemoryStandard, apps: usize) -> Option<Self> {
        let link = machine.link.as_ref()?;
        let managed = link.managed == ManagedMemory::All;
        if !link.copies && !managed {
            return None;
        }
        let cycles = |us: f64| whole(us * machine.clocks.core_mhz);
        let engine = |gb_per_s: f64| Engine {
            bytes_per_cycle: gb_per_s * 1000.0 / machine.clocks.core_mhz,
            free_at: 0,
        };
        let pages = managed.then(|| ManagedPages::new(link.fault_bytes, cycles(link.fault_us)));
        Some(Self {
            times_copies: link.copies,
            engines: [
                engine(link.host_to_device_gb_per_s),
                engine(link.device_to_host_gb_per_s),
                engine(device_gb_per_s(machine, standard, link)),
            ],
            latency: cycles(link.latency_us),
            in_flight: Slab::new(),
            by_app: vec![AppUse::default(); apps],
            pages,
        })
    }

    /// Begins a copy of an application.
    pub(crate) fn begin(&mut self, begun: CopyInFlight, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        self.by_app[begun.app].copying.begin(now);
        let engine = &mut self.engines[begun.copy.direction as usize];
        let end = engine.take(now + self.latency, begun.copy.bytes);
        let copy = self.in_flight.insert(begun);
        queue.schedule(end, Event::Copied { copy });
    }

    /// A copy has ended at cycle `now`.
    pub(crate) fn end(&mut self, copy: u32, now: Cycle) -> CopyInFlight {
        let ended = self.in_flight.remove(copy);
        let (app, way) = (&mut self.by_app[ended.app], ended.copy.direction as usize);
        app.copying.end(now);
        app.counts.copies[way] += 1;
        app.counts.bytes[way] += ended.copy.bytes;
        ended
    }

    /// A copy has put `bytes` bytes into memory: their pages are there.
    pub(crate) fn bring(&mut self, first: u64, bytes: u64) {
        if let Some((pages, more)) = self.pages.as_mut().zip(bytes.checked_sub(1)) {
            let last = first.saturating_add(more);
            pages.present.bring(first >> pages.page_bits, last >> pages.page_bits);
        }
    }

    /// Keeps a request whose page is not there until it has come; hands others back.
    pub(crate) fn hold(
        &mut self,
        packet: Packet,
        app: usize,
        queue: &mut EventQueue<Event>,
    ) -> Option<Packet> {
        let Some(pages) = &mut self.pages else { return Some(packet) };
        let code = matches!(packet.kind, RequestKind::Code | RequestKind::Constant);
        let page = packet.virtual_address >> pages.page_bits;
        if code || !is_footprint(packet.virtual_address) || pages.present.holds(page) {
            return Some(packet);
        }
        if let Some(awaited) = pages.places.get(&page).and_then(|at| pages.awaited.get_mut(at)) {
            awaited.packets.push(packet);
            return None;
        }
        let place = pages.next;
        pages.next += 1;
        pages.places.insert(page, place);
        pages.awaited.insert(place, Awaited { page, app, packets: vec![packet] });
        let (now, bytes) = (queue.now(), pages.bytes());
        self.by_app[app].faulting.begin(now);
        let to_device = &mut self.engines[CopyDirection::HostToDevice as usize];
        queue.schedule(to_device.take(now + pages.latency, bytes), Event::PageBrought { place });
        None
    }

    /// A page has come at cycle `now`: the requests that waited for it.
    pub(crate) fn brought(&mut self, place: u32, now: Cycle) -> Vec<Packet> {
        let Some(pages) = &mut self.pages else { return Vec::new() };
        let Some(awaited) = pages.awaited.remove(&place) else { return Vec::new() };
        pages.places.remove(&awaited.page);
        pages.present.bring(awaited.page, awaited.page);
        let app = &mut self.by_app[awaited.app];
        app.faulting.end(now);
        app.counts.faults += 1;
        app.counts.fault_bytes += pages.bytes();
        let ready = |packet: Packet| Packet { ready: packet.ready.max(now), ..packet };
        awaited.packets.into_iter().map(ready).collect()
    }

    /// What an application has had up to cycle `now`.
    pub(crate) fn used(&self, app: usize, now: Cycle) -> LinkUse {
        let AppUse { counts, copying, faulting } = self.by_app[app];
        LinkUse { copy_cycles: copying.until(now), fault_cycles: faulting.until(now), ..counts }
    }

    /// Whether a copy or a page is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.len() > 0 || self.awaits_pages()
    }

    /// Whether a page is under way.
    pub(crate) fn awaits_pages(&self) -> bool {
        self.pages.as_ref().is_some_and(|pages| !pages.awaited.is_empty())
    }
}

/// What copies within the device move: they read and write each byte.
fn device_gb_per_s(machine: &Machine, standard: &MemoryStandard, link: &Link) -> f64 {
    let mhz = machine.clocks.dram_mhz.unwrap_or(float(standard.clock_khz) / 1000.0);
    let bytes = standard.peak_bytes_per_clock() * f64::from(machine.dram.channels);
    bytes * mhz / 1000.0 * link.device_copy_percent / 100.0 / 2.0
}
