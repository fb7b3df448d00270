//! The constant cache of one SM, the lines in flight to it, and constant loads at the
//! load/store unit, which take a fixed time for each distinct word.
//!
//! A line in flight from the L2 is known to all that wait for it; one
//! that the outer cache has comes at a known cycle.

use crate::config::Machine;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Leg, Operation, Origin, Packet, RequestKind};
use crate::sm::coalesce::{LINE_BYTES, LineRequest};
use crate::sm::fetch::Fetch;
use crate::sm::line_cache::LineCache;
use crate::sm::lsu::l1_pipeline::{L1Pipeline, Wait};
use crate::sm::lsu::queue::Entry;
use crate::sm::scheduler::NEVER;
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32, to_u64, to_usize};

/// Blocks that are distinguished.
const MOST_BLOCKS: usize = 256;

/// Bytes of the blocks in which addresses become line numbers: as large as a
/// constant bank, so that the lines of a bank follow each other.
const BLOCK_BYTES: u64 = 1 << 16;

/// A line in flight.
#[derive(Clone, Copy, Debug)]
struct Coming {
    line: u32,
    /// When it arrives; [`NEVER`] while the L2 has not answered.
    ready: Cycle,
    /// Sectors still to be asked of the L2, and still to come, where no outer
    /// cache does that.
    unsent: u32,
    missing: u32,
}

/// What is known of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It arrives at this cycle, which may be past.
    At(Cycle),
    /// The L2 will answer; this many sectors are still to be asked for.
    Awaited { unsent: u32 },
    /// It is neither here nor coming.
    Nowhere,
}

/// The inner constant cache.
#[derive(Debug)]
pub(in crate::sm) struct Constants {
    sm: u16,
    cache: LineCache,
    line_bytes: u64,
    /// Cycles from the look-up of a word until its data arrives.
    latency: Cycle,
    /// Cycles of a word.
    word_cycles: Cycle,
    outstanding: usize,
    /// Bytes of a line of the outer cache, where it is shared.
    outer_line_bytes: Option<u64>,
    /// First addresses of the blocks met so far, in the order of their numbers.
    blocks: Vec<u64>,
    coming: Vec<Coming>,
    /// Lines and operations that wait for them, in the order in which they asked.
    waiting: Vec<(u32, u32)>,
}

/// What lies between a constant cache and the L2.
#[derive(Debug)]
pub(in crate::sm) struct ConstantWay<'a> {
    /// The outer cache of code, which may be shared.
    pub(in crate::sm) fetch: Option<&'a mut Fetch>,
    /// The SM's port.
    pub(in crate::sm) port: &'a mut L1Pipeline,
}

impl Constants {
    /// The empty cache of SM `sm` of `machine`; `None` without one.
    pub(in crate::sm) fn new(sm: u16, machine: &Machine) -> Option<Box<Self>> {
        let spec = machine.constant.as_ref()?;
        let outer = machine.fetch.as_ref().filter(|_| spec.shares_outer);
        Some(Box::new(Self {
            sm,
            cache: LineCache::new(spec.bytes, spec.ways, spec.line_bytes),
            line_bytes: u64::from(spec.line_bytes),
            latency: u64::from(spec.latency_cycles),
            word_cycles: u64::from(spec.word_cycles),
            outstanding: to_usize(spec.outstanding),
            outer_line_bytes: outer.map(|fetch| u64::from(fetch.line_bytes)),
            blocks: Vec::new(),
            coming: Vec::new(),
            waiting: Vec::new(),
        }))
    }

    /// Lines that have come by `now` are in the cache.
    fn settle(&mut self, now: Cycle) {
        let cache = &mut self.cache;
        self.coming.retain(|coming| {
            if coming.ready <= now {
                cache.fill(coming.line);
            }
            coming.ready > now
        });
    }

    /// The number of the line of an address. Once there are [`MOST_BLOCKS`], far
    /// more than a kernel has banks, further ones count as one of those.
    fn line_of(&mut self, address: u64) -> u32 {
        let first = address - address % BLOCK_BYTES;
        let known = self.blocks.iter().position(|&block| block == first);
        let block = known.unwrap_or_else(|| {
            if self.blocks.len() == MOST_BLOCKS {
                return to_usize(to_u32(address / BLOCK_BYTES % MOST_BLOCKS as u64));
            }
            self.blocks.push(first);
            self.blocks.len() - 1
        });
        to_u32((to_u64(block) * BLOCK_BYTES + address % BLOCK_BYTES) / self.line_bytes)
    }

    /// Address of the first byte of a line.
    fn address_of(&self, line: u32) -> u64 {
        let place = u64::from(line) * self.line_bytes;
        let block = usize::try_from(place / BLOCK_BYTES).expect("a place in a list");
        self.blocks[block] + place % BLOCK_BYTES
    }

    /// The line of the outer cache that holds `line`, behind all code, which ends
    /// at `code_end`; `None` where the outer cache is not shared.
    fn outer_line(&self, line: u32, code_end: u32) -> Option<u32> {
        let bytes = self.outer_line_bytes?;
        let place = to_u32(u64::from(line) * self.line_bytes / bytes);
        Some(self.first_outer(code_end)? + place)
    }

    /// Where the line `outer` of the outer cache begins, when it holds constants.
    pub(in crate::sm) fn outer_address(&self, outer: u32, code_end: u32) -> Option<u64> {
        let place = outer.checked_sub(self.first_outer(code_end)?)?;
        let line = u64::from(place) * self.outer_line_bytes? / self.line_bytes;
        Some(self.address_of(to_u32(line)))
    }

    /// The first line of constants in the outer cache: where a block begins.
    fn first_outer(&self, code_end: u32) -> Option<u32> {
        let bytes = self.outer_line_bytes?;
        Some(code_end.next_multiple_of(to_u32((BLOCK_BYTES / bytes).max(1))))
    }

    /// Looks a line up at `lookup`.
    fn find(&mut self, line: u32, lookup: Cycle) -> Found {
        if self.cache.holds(line) {
            self.cache.touch(line, line);
            return Found::At(lookup);
        }
        match self.coming.iter().find(|coming| coming.line == line) {
            None => Found::Nowhere,
            Some(coming) if coming.ready == NEVER => Found::Awaited { unsent: coming.unsent },
            Some(coming) => Found::At(coming.ready.max(lookup)),
        }
    }

    /// True when one more line may be awaited from the L2.
    fn has_room(&self) -> bool {
        self.coming.iter().filter(|coming| coming.ready == NEVER).count() < self.outstanding
    }

    /// Expects a line, from the outer cache at `ready` ([`NEVER`]: when the L2
    /// has answered it), or without one in sectors that are now to be asked for.
    fn expect(&mut self, line: u32, ready: Option<Cycle>) {
        let sectors = to_u32(self.line_bytes / SECTOR_BYTES);
        let (ready, own) = ready.map_or((NEVER, sectors), |ready| (ready, 0));
        self.coming.push(Coming { line, ready, unsent: own, missing: own });
    }

    /// Takes the address of the next sector of `line` to ask of the L2.
    fn take_sector(&mut self, line: u32) -> Option<u64> {
        let first = self.address_of(line);
        let sectors = to_u32(self.line_bytes / SECTOR_BYTES);
        let coming = self.coming.iter_mut().find(|coming| coming.line == line)?;
        let sector = sectors - coming.unsent;
        coming.unsent = coming.unsent.checked_sub(1)?;
        Some(first + u64::from(sector) * SECTOR_BYTES)
    }

    /// A sector has come at `done`; with it, from a shared outer cache, all lines
    /// of the outer line. Operations that waited are appended to `out`.
    fn arrived(&mut self, address: u64, done: Cycle, out: &mut Vec<u32>) {
        let span = self.outer_line_bytes.unwrap_or(self.line_bytes);
        let first = self.line_of(address - address % span);
        let last = first + to_u32(span / self.line_bytes) - 1;
        let waiting = &mut self.waiting;
        let lines = self.coming.iter_mut().filter(|c| (first..=last).contains(&c.line));
        for coming in lines.filter(|c| c.ready == NEVER) {
            coming.missing = coming.missing.saturating_sub(1);
            if coming.missing == 0 {
                coming.ready = done;
                let line = coming.line;
                out.extend(waiting.extract_if(.., |(on, _)| *on == line).map(|(_, o)| o));
            }
        }
    }

    /// The lines that one request touches: an address in each, and how many
    /// distinct words.
    fn parts(&self, request: &LineRequest) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (bytes, request) = (self.line_bytes, *request);
        let per_line = to_usize(to_u32(bytes / SECTOR_BYTES));
        (0..LINE_BYTES / bytes).filter_map(move |part| {
            let first = to_usize(to_u32(part)) * per_line;
            let words = request.bytes[first..first + per_line].iter().map(|&b| words_of(b)).sum();
            (words > 0).then_some((request.line * LINE_BYTES + part * bytes, words))
        })
    }

    /// Looks the words of a constant load up from cycle `now` on: the cycles that they take of the
    /// unit. A line that has to come does not hold up the words behind it.
    ///
    /// # Errors
    /// What the load must wait for before it continues.
    pub(in crate::sm) fn serve(
        &mut self,
        entry: &mut Entry,
        operation: &mut Operation,
        now: Cycle,
        way: &mut ConstantWay<'_>,
        shared_state: &mut SharedState,
    ) -> Result<Cycle, Wait> {
        self.settle(now);
        let (mut place, mut cycles) = (0, 0);
        for request in &entry.lines {
            for (address, words) in self.parts(request) {
                place += 1;
                if place <= entry.served {
                    continue;
                }
                let lookup = now + cycles;
                let ready = self.look_up(entry, address, lookup, way, shared_state)?;
                cycles += words * self.word_cycles;
                entry.served = place;
                shared_state.counts[to_usize(entry.kernel)].constant.passes += words;
                let known = ready.unwrap_or(0).max(lookup + (words - 1) * self.word_cycles);
                operation.latest = operation.latest.max(known + self.latency);
                operation.remaining += u16::from(ready.is_none());
            }
        }
        shared_state.counts[to_usize(entry.kernel)].constant.accesses += 1;
        Ok(cycles.max(1))
    }

    /// Looks one line up, and asks for it where it is missing: when it arrives, or `None` when the
    /// L2 will answer.
    ///
    /// # Errors
    /// What the load must wait for.
    fn look_up(
        &mut self,
        entry: &Entry,
        address: u64,
        lookup: Cycle,
        way: &mut ConstantWay<'_>,
        shared_state: &mut SharedState,
    ) -> Result<Option<Cycle>, Wait> {
        let kernel = to_usize(entry.kernel);
        let line = self.line_of(address);
        match self.find(line, lookup) {
            Found::At(ready) => {
                shared_state.counts[kernel].constant.merges += u64::from(ready > lookup);
                return Ok(Some(ready));
            }
            Found::Nowhere if !self.has_room() => return Err(Wait::Constant),
            Found::Nowhere => {
                let fetch = way.fetch.as_deref_mut();
                if let Some(ready) = self.ask(entry.kernel, line, lookup, fetch, shared_state) {
                    return Ok(Some(ready));
                }
            }
            Found::Awaited { unsent: 0 } => shared_state.counts[kernel].constant.merges += 1,
            Found::Awaited { .. } => {}
        }
        self.send(entry.kernel, line, lookup, way.port, shared_state)?;
        self.waiting.push((line, entry.operation));
        Ok(None)
    }

    /// A line is missing: asks the outer cache for it where that is shared. When
    /// it has it, when the line is present.
    fn ask(
        &mut self,
        kernel: u32,
        line: u32,
        lookup: Cycle,
        fetch: Option<&mut Fetch>,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let outer = self.outer_line(line, shared_state.code_end());
        let counts = &mut shared_state.counts[to_usize(kernel)].constant;
        counts.misses += 1;
        let Some((outer, fetch)) = outer.zip(fetch) else {
            self.expect(line, None);
            return None;
        };
        let ready = fetch.look_up(outer, kernel, lookup, &mut counts.outer_misses);
        self.expect(line, Some(ready));
        if ready != NEVER {
            return Some(ready);
        }
        fetch.send(Some(self), shared_state);
        None
    }

    /// Sends the sectors of a line that no outer cache asks for.
    ///
    /// # Errors
    /// The port is full.
    fn send(
        &mut self,
        kernel: u32,
        line: u32,
        lookup: Cycle,
        port: &mut L1Pipeline,
        shared_state: &mut SharedState,
    ) -> Result<(), Wait> {
        while let Found::Awaited { unsent: 1.. } = self.find(line, lookup) {
            port.port_room(shared_state).map_err(Wait::Port)?;
            let Some(asked) = self.take_sector(line) else { break };
            let address = shared_state.physical(asked);
            let slice = shared_state.memory_system.slice_of(address);
            shared_state.send(Packet {
                address,
                virtual_address: asked,
                ready: lookup + 1,
                operation: u32::MAX,
                kernel,
                bytes: 0,
                sectors: 1,
                mask: 0,
                more_turns: 0,
                sm: self.sm,
                slice,
                kind: RequestKind::Constant,
                fills_l1: false,
                origin: Origin::Sm,
                leg: Leg::Near,
            });
        }
        Ok(())
    }

    /// A sector of constants has come at `done`. Operations that waited are appended to `out`;
    /// returns when these have their words.
    pub(in crate::sm) fn on_sector(
        &mut self,
        packet: &Packet,
        done: Cycle,
        fetch: Option<&mut Fetch>,
        code_end: u32,
        out: &mut Vec<u32>,
    ) -> Cycle {
        let line = self.line_of(packet.virtual_address);
        if let Some((outer, fetch)) = self.outer_line(line, code_end).zip(fetch) {
            fetch.arrived(outer, done);
            if !fetch.has(outer) {
                return done;
            }
        }
        self.arrived(packet.virtual_address, done, out);
        done + self.latency
    }
}

/// How many 4-byte words of a sector are touched, one bit per byte.
fn words_of(bytes: u32) -> u64 {
    let pairs = bytes | bytes >> 1;
    u64::from(((pairs | pairs >> 2) & 0x1111_1111).count_ones())
}
