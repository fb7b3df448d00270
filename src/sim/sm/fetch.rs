//! Instruction caches of one SM: inner caches next to the schedulers (L0), the
//! SM's outer cache (L1 or L1.5), and the lines in flight from the L2.
//!
//! A warp looks a whole step's lines up at once; only lines that are missing
//! cost more. A missing line is asked of the outer cache together with the lines
//! that follow it, and the first use of such a line asks for one more, as a
//! stream buffer does (Jouppi, ISCA'90).

use std::collections::VecDeque;

use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32, to_usize};

use crate::config;
use crate::counters::FetchCounts;
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::interval::{CodeLines, Step};
use crate::memory::packet::{Leg, Origin, Packet, RequestKind};
use crate::sm::line_cache::LineCache;
use crate::sm::lsu::constants::Constants;
use crate::sm::scheduler::NEVER;

/// First address of code: above all user memory, below what stands for local
/// memory.
const CODE_BASE: u64 = 0xf << 44;

/// A line in flight to an inner cache.
#[derive(Clone, Copy, Debug)]
struct Coming {
    line: u32,
    /// When it arrives; [`NEVER`] while the L2 has not answered.
    ready: Cycle,
    /// It was fetched ahead: no warp has asked for it yet.
    ahead: bool,
}

/// One inner cache.
#[derive(Debug)]
struct Inner {
    cache: LineCache,
    coming: Vec<Coming>,
    /// Lines that were fetched ahead and not used yet: the stream buffer, which
    /// holds as many lines as are fetched ahead.
    unused: VecDeque<u32>,
}

/// A line in flight from the L2.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    line: u32,
    /// Whose counters it feeds.
    kernel: u32,
    /// When its request may leave the SM.
    ready: Cycle,
    /// Sectors not yet asked for, and not yet there.
    unsent: u32,
    missing: u32,
}

/// A request of one sector of code, ready to be sent.
#[derive(Clone, Copy, Debug)]
struct CodeSector {
    line: u32,
    sector: u32,
    kernel: u32,
    ready: Cycle,
}

/// Instruction fetch of one SM.
#[derive(Debug)]
pub(super) struct Fetch {
    sm: u16,
    inner: Vec<Inner>,
    schedulers_per_inner: usize,
    outer: LineCache,
    /// Cycles from a request to the outer cache until the line arrives.
    latency: Cycle,
    interval: Cycle,
    free_at: Cycle,
    prefetch: u32,
    sectors: u32,
    limit: usize,
    /// Oldest first; those behind the first `limit` have not been sent.
    awaited: VecDeque<Awaited>,
    /// Warps that wait for a line, and when it arrives.
    sleepers: Vec<(u16, Coming)>,
    /// Cycles at which an event wakes warps or lets requests leave.
    alarms: Vec<Cycle>,
    /// Instructions that a warp issues per cycle at most.
    issue_width: u32,
    /// Where launches find their code in the outer cache: a bit for each line that has been
    /// asked for.
    asked: Option<Vec<u64>>,
}

impl Fetch {
    /// Empty caches for SM `sm` of `machine`, whose section is `spec`.
    pub(super) fn new(sm: u16, spec: &config::Fetch, machine: &config::Machine) -> Self {
        let inner = || Inner {
            cache: LineCache::new(spec.inner_bytes, spec.inner_ways, spec.line_bytes),
            coming: Vec::new(),
            unused: VecDeque::new(),
        };
        Self {
            sm,
            inner: (0..spec.inner_caches).map(|_| inner()).collect(),
            schedulers_per_inner: to_usize((machine.sm.schedulers / spec.inner_caches).max(1)),
            outer: LineCache::new(spec.outer_bytes, spec.outer_ways, spec.line_bytes),
            latency: u64::from(spec.outer_latency_cycles),
            interval: u64::from(spec.outer_interval_cycles),
            free_at: 0,
            prefetch: spec.prefetch_lines,
            sectors: spec.line_bytes / to_u32(SECTOR_BYTES),
            limit: to_usize(spec.outer_outstanding),
            awaited: VecDeque::new(),
            sleepers: Vec::new(),
            alarms: Vec::new(),
            issue_width: machine.sm.issue_width.max(1),
            asked: spec.starts_warm.then(Vec::new),
        }
    }

    /// The outer cache has a line of code from the start, until others take its place.
    fn put_in_at_first(&mut self, line: u32) {
        let Some(asked) = &mut self.asked else { return };
        let (word, bit) = (to_usize(line / 64), 1 << (line % 64));
        if asked.len() <= word {
            asked.resize(word + 1, 0);
        }
        if asked[word] & bit == 0 {
            asked[word] |= bit;
            self.outer.fill(line);
        }
    }

    /// What the warps of a scheduler see at cycle `now`: lines that have come are
    /// in their cache.
    pub(super) fn window<'a>(
        &'a mut self,
        scheduler: usize,
        kernel: u32,
        now: Cycle,
    ) -> Window<'a> {
        let place = scheduler / self.schedulers_per_inner;
        let prefetch = to_usize(self.prefetch);
        let Inner { cache, coming, unused } = &mut self.inner[place];
        coming.retain(|line| {
            if line.ready <= now {
                cache.fill(line.line);
                if line.ahead {
                    unused.push_back(line.line);
                }
            }
            line.ready > now
        });
        let over = unused.len().saturating_sub(prefetch);
        unused.drain(..over);
        Window { fetch: self, place, kernel, now }
    }

    /// The next sector to ask of the L2.
    fn next_sector(&self) -> Option<CodeSector> {
        let awaited = self.awaited.iter().take(self.limit).find(|line| line.unsent > 0)?;
        let Awaited { line, kernel, ready, unsent, .. } = *awaited;
        Some(CodeSector { line, sector: self.sectors - unsent, kernel, ready })
    }

    /// True when the outer cache has the line.
    pub(super) fn has(&self, line: u32) -> bool {
        self.outer.holds(line)
    }

    /// The sector that [`Fetch::next_sector`] gave has been sent.
    fn sent(&mut self) {
        if let Some(line) = self.awaited.iter_mut().find(|line| line.unsent > 0) {
            line.unsent -= 1;
        }
    }

    /// A sector of a line has come from the L2 at `done`. True when it was the
    /// last one and warps wait for the line.
    pub(super) fn arrived(&mut self, line: u32, done: Cycle) -> bool {
        let Some(place) = self.awaited.iter().position(|awaited| awaited.line == line) else {
            return false;
        };
        self.awaited[place].missing -= 1;
        if self.awaited[place].missing > 0 {
            return false;
        }
        self.awaited.remove(place);
        self.outer.fill(line);
        for coming in self.inner.iter_mut().flat_map(|inner| &mut inner.coming) {
            if coming.line == line {
                coming.ready = done;
            }
        }
        let mut waited = false;
        for (_, coming) in self.sleepers.iter_mut().filter(|(_, coming)| coming.line == line) {
            coming.ready = coming.ready.min(done);
            waited = true;
        }
        waited
    }

    /// A warp of a scheduler falls asleep until a line of code arrives: returns when, or `None`
    /// while the L2 has not answered.
    pub(super) fn sleep(
        &mut self,
        (warp, scheduler): (u16, usize),
        (kernel, line): (u32, u32),
        counts: &mut FetchCounts,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let now = shared_state.queue.now();
        let (profile, launch) = shared_state.profile_and_counts(kernel);
        let (end, counted) = (profile.lines().end(), launch.fetch);
        let ready = self.window(scheduler, kernel, now).miss(line, end, &mut launch.fetch);
        counts.grow(&counted, &launch.fetch);
        let coming = Coming { line, ready: ready.unwrap_or(NEVER), ahead: false };
        self.sleepers.push((warp, coming));
        ready
    }

    /// Schedules the event of a cycle that wakes warps or lets requests leave, once.
    pub(super) fn set_alarm(&mut self, cycle: Cycle, shared_state: &mut SharedState) {
        if !self.alarms.contains(&cycle) {
            self.alarms.push(cycle);
            shared_state.queue.schedule(cycle, Event::Fetch { sm: self.sm });
        }
    }

    /// A warp sleeps no longer.
    pub(super) fn forget(&mut self, warp: u16) {
        self.sleepers.retain(|&(sleeper, _)| sleeper != warp);
    }

    /// The event of cycle `now` has come: the warps whose lines are present are
    /// appended to `woken` in the order in which they fell asleep.
    pub(super) fn wake(&mut self, now: Cycle, woken: &mut Vec<u16>) {
        self.alarms.retain(|&alarm| alarm > now);
        let due = |sleeper: &mut (u16, Coming)| sleeper.1.ready <= now;
        woken.extend(self.sleepers.extract_if(.., due).map(|(warp, _)| warp));
    }
}

/// One inner cache at one moment, for the warps of one launch.
#[derive(Debug)]
pub(super) struct Window<'a> {
    fetch: &'a mut Fetch,
    place: usize,
    kernel: u32,
    now: Cycle,
}

impl Window<'_> {
    /// How far into `step`, of which `handed` instructions are already handed
    /// out, the lines are present; `delivered` counts as present, and so does a line
    /// that comes before the warp can, which has `before` instructions to issue
    /// first.
    pub(super) fn reach(
        &mut self,
        lines: &CodeLines,
        step: &Step,
        handed: u32,
        delivered: Option<u32>,
        before: u32,
        counts: &mut FetchCounts,
    ) -> u32 {
        let (begin, count) = (step.instruction + handed, step.slots - handed);
        let (first, last) = (lines.of(begin), lines.of(begin + count - 1));
        let Inner { cache, coming, .. } = &self.fetch.inner[self.place];
        let mut reached = count;
        if !cache.holds_all(first, last) {
            let width = self.fetch.issue_width;
            let needed = |place: u32| self.now + u64::from((before + place) / width);
            let comes =
                |place, line| coming.iter().any(|c| c.line == line && c.ready <= needed(place));
            reached = lines.run(begin, count, |place, line| {
                cache.holds(line) || delivered == Some(line) || comes(place, line)
            });
        }
        if reached > 0 {
            let last = lines.of(begin + reached - 1);
            counts.inner_lines += u64::from(last.saturating_sub(first)) + 1;
            self.used(first, last, lines.end(), counts);
        }
        handed + reached
    }

    /// Lines from `first` to `last` are used; those fetched ahead ask for the
    /// next one.
    fn used(&mut self, first: u32, last: u32, end: u32, counts: &mut FetchCounts) {
        let inner = &mut self.fetch.inner[self.place];
        inner.cache.touch(first, last);
        if inner.unused.is_empty() && inner.coming.is_empty() {
            return;
        }
        for line in first..=last {
            let Inner { coming, unused, .. } = &mut self.fetch.inner[self.place];
            let buffered = unused.iter().position(|&unused| unused == line);
            let streamed = coming.iter_mut().find(|coming| coming.line == line && coming.ahead);
            let ahead = buffered.is_some() || streamed.is_some();
            if let Some(coming) = streamed {
                coming.ahead = false;
            }
            if let Some(place) = buffered {
                unused.remove(place);
            }
            if ahead {
                self.ask(line.saturating_add(self.fetch.prefetch), true, end, counts);
            }
        }
    }

    /// A warp waits for `line`, which is not there: when it will be, or `None`
    /// while the L2 has not answered.
    pub(super) fn miss(&mut self, line: u32, end: u32, counts: &mut FetchCounts) -> Option<Cycle> {
        let comes = self.fetch.inner[self.place].coming.iter().any(|coming| coming.line == line);
        *(if comes { &mut counts.inner_merges } else { &mut counts.inner_misses }) += 1;
        self.ask(line, false, end, counts);
        for next in line + 1..=line.saturating_add(self.fetch.prefetch) {
            self.ask(next, true, end, counts);
        }
        let coming = self.fetch.inner[self.place].coming.iter().find(|coming| coming.line == line);
        coming.map(|coming| coming.ready).filter(|&ready| ready != NEVER)
    }

    /// Asks the outer cache for a line below `end` that is neither here nor coming.
    fn ask(&mut self, line: u32, ahead: bool, end: u32, counts: &mut FetchCounts) {
        let inner = &mut self.fetch.inner[self.place];
        if line >= end || inner.cache.holds(line) {
            return;
        }
        if let Some(coming) = inner.coming.iter_mut().find(|coming| coming.line == line) {
            coming.ahead &= ahead;
            return;
        }
        counts.outer_lines += 1;
        self.fetch.put_in_at_first(line);
        let ready = self.fetch.look_up(line, self.kernel, self.now, &mut counts.outer_misses);
        self.fetch.inner[self.place].coming.push(Coming { line, ready, ahead });
    }
}

impl Fetch {
    /// Looks a line up in the outer cache: when it is at the inner one, or
    /// [`NEVER`] where it must come from the L2, which counts as a miss when it
    /// is not in flight.
    pub(super) fn look_up(
        &mut self,
        line: u32,
        kernel: u32,
        now: Cycle,
        misses: &mut u64,
    ) -> Cycle {
        let begin = self.free_at.max(now);
        self.free_at = begin + self.interval;
        if self.outer.holds(line) {
            self.outer.touch(line, line);
            return begin + self.latency;
        }
        if self.awaited.iter().all(|awaited| awaited.line != line) {
            *misses += 1;
            self.awaited.push_back(Awaited {
                line,
                kernel,
                ready: begin + self.latency,
                unsent: self.sectors,
                missing: self.sectors,
            });
        }
        NEVER
    }

    /// Sends the requests for code that the network takes. Behind the code, the outer cache may
    /// have lines of `constants`.
    pub(super) fn send(&mut self, constants: Option<&Constants>, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        while let Some(sector) = self.next_sector() {
            if let Err(at) = shared_state.memory_system.port_room(self.sm, now) {
                if let Some(at) = at {
                    self.set_alarm(at, shared_state);
                }
                return;
            }
            self.sent();
            let code_end = shared_state.code_end();
            let constant = constants.and_then(|c| c.outer_address(sector.line, code_end));
            let packet = self.request(sector, constant, shared_state);
            shared_state.send(packet);
        }
    }

    /// The request of a sector: of code, or of constants that begin at an address.
    fn request(
        &self,
        sector: CodeSector,
        constant: Option<u64>,
        shared_state: &mut SharedState,
    ) -> Packet {
        let place = u64::from(sector.line) * u64::from(self.sectors) + u64::from(sector.sector);
        let code = CODE_BASE + place * SECTOR_BYTES;
        let within = u64::from(sector.sector) * SECTOR_BYTES;
        let asked = constant.map_or(code, |first| first + within);
        let address = constant.map_or(code, |_| shared_state.physical(asked));
        Packet {
            address,
            virtual_address: asked,
            ready: sector.ready.max(shared_state.queue.now()),
            operation: u32::MAX,
            kernel: sector.kernel,
            bytes: 0,
            sectors: 1,
            mask: 0,
            more_turns: 0,
            sm: self.sm,
            slice: shared_state.memory_system.slice_of(address),
            kind: if constant.is_some() { RequestKind::Constant } else { RequestKind::Code },
            fills_l1: false,
            origin: Origin::Sm,
            leg: Leg::Near,
        }
    }

    /// A sector of code has come.
    pub(super) fn on_code(&mut self, packet: &Packet, done: Cycle, shared_state: &mut SharedState) {
        let sector = (packet.address - CODE_BASE) / SECTOR_BYTES;
        let line = to_u32(sector / u64::from(self.sectors));
        if self.arrived(line, done) {
            self.set_alarm(done, shared_state);
        }
    }
}
