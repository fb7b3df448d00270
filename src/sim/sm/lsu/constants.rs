//! The constant cache of one SM, the lines in flight to it, and constant loads at the
//! load/store unit, which take a fixed time for each distinct word.
//!
//! A line in flight from the L2 is known to all that wait for it; one
//! that the outer cache has comes at a known cycle.

use crate::config::Machine;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Leg, Origin, Packet, RequestKind};
use crate::sm::Sm;
use crate::sm::coalesce::{LINE_BYTES, LineRequest};
use crate::sm::line_cache::LineCache;
use crate::sm::lsu::queue::{Entry, Stall};
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
pub(in crate::sm) enum Found {
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
    cache: LineCache,
    line_bytes: u64,
    /// Cycles from the look-up of a word until its data arrives.
    pub(in crate::sm) latency: Cycle,
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
    /// Operations released by a line.
    released: Vec<u32>,
}

impl Constants {
    /// The empty cache of an SM of `machine`; `None` without one.
    pub(in crate::sm) fn new(machine: &Machine) -> Option<Box<Self>> {
        let spec = machine.constant.as_ref()?;
        let outer = machine.fetch.as_ref().filter(|_| spec.shares_outer);
        Some(Box::new(Self {
            cache: LineCache::new(spec.bytes, spec.ways, spec.line_bytes),
            line_bytes: u64::from(spec.line_bytes),
            latency: u64::from(spec.latency_cycles),
            word_cycles: u64::from(spec.word_cycles),
            outstanding: to_usize(spec.outstanding),
            outer_line_bytes: outer.map(|fetch| u64::from(fetch.line_bytes)),
            blocks: Vec::new(),
            coming: Vec::new(),
            waiting: Vec::new(),
            released: Vec::new(),
        }))
    }

    /// Lines that have come by `now` are in the cache.
    pub(in crate::sm) fn settle(&mut self, now: Cycle) {
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
    pub(in crate::sm) fn line_of(&mut self, address: u64) -> u32 {
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
    pub(in crate::sm) fn outer_line(&self, line: u32, code_end: u32) -> Option<u32> {
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
    pub(in crate::sm) fn find(&mut self, line: u32, lookup: Cycle) -> Found {
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
    pub(in crate::sm) fn has_room(&self) -> bool {
        self.coming.iter().filter(|coming| coming.ready == NEVER).count() < self.outstanding
    }

    /// Expects a line, from the outer cache at `ready` ([`NEVER`]: when the L2
    /// has answered it), or without one in sectors that are now to be asked for.
    pub(in crate::sm) fn expect(&mut self, line: u32, ready: Option<Cycle>) {
        let sectors = to_u32(self.line_bytes / SECTOR_BYTES);
        let (ready, own) = ready.map_or((NEVER, sectors), |ready| (ready, 0));
        self.coming.push(Coming { line, ready, unsent: own, missing: own });
    }

    /// Takes the address of the next sector of `line` to ask of the L2.
    pub(in crate::sm) fn take_sector(&mut self, line: u32) -> Option<u64> {
        let first = self.address_of(line);
        let sectors = to_u32(self.line_bytes / SECTOR_BYTES);
        let coming = self.coming.iter_mut().find(|coming| coming.line == line)?;
        let sector = sectors - coming.unsent;
        coming.unsent = coming.unsent.checked_sub(1)?;
        Some(first + u64::from(sector) * SECTOR_BYTES)
    }

    /// Lets an operation wait for an awaited line.
    pub(in crate::sm) fn wait(&mut self, line: u32, operation: u32) {
        self.waiting.push((line, operation));
    }

    /// A sector has come at `done`; with it, from a shared outer cache, all lines
    /// of the outer line. Operations that waited are appended to `out`.
    pub(in crate::sm) fn arrived(&mut self, address: u64, done: Cycle, out: &mut Vec<u32>) {
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
    pub(in crate::sm) fn parts(
        &self,
        request: &LineRequest,
    ) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (bytes, request) = (self.line_bytes, *request);
        let per_line = to_usize(to_u32(bytes / SECTOR_BYTES));
        (0..LINE_BYTES / bytes).filter_map(move |part| {
            let first = to_usize(to_u32(part)) * per_line;
            let words = request.bytes[first..first + per_line].iter().map(|&b| words_of(b)).sum();
            (words > 0).then_some((request.line * LINE_BYTES + part * bytes, words))
        })
    }
}

/// How many 4-byte words of a sector are touched, one bit per byte.
fn words_of(bytes: u32) -> u64 {
    let pairs = bytes | bytes >> 1;
    u64::from(((pairs | pairs >> 2) & 0x1111_1111).count_ones())
}

impl Sm {
    /// Looks the words of a constant load up from cycle `now` on: the cycles that
    /// they take of the unit, or `None` when it must continue later. A line that has
    /// to come does not hold up the words behind it.
    pub(in crate::sm) fn serve_constants(
        &mut self,
        entry: &mut Entry,
        now: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let constants = self.lsu.constants.as_mut().expect("the route leads to a constant cache");
        constants.settle(now);
        let (latency, word_cycles) = (constants.latency, constants.word_cycles);
        let (mut place, mut cycles) = (0, 0);
        for request in &entry.lines {
            let constants = self.lsu.constants.as_ref().expect("as above");
            for (address, words) in constants.parts(request) {
                place += 1;
                if place <= entry.served {
                    continue;
                }
                let lookup = now + cycles;
                let ready = self.constant_line(entry, address, lookup, shared_state)?;
                cycles += words * word_cycles;
                entry.served = place;
                shared_state.counts[to_usize(entry.kernel)].constant.passes += words;
                let operation = self.lsu.operations.get_mut(entry.operation);
                let known = ready.unwrap_or(0).max(lookup + (words - 1) * word_cycles);
                operation.latest = operation.latest.max(known + latency);
                operation.remaining += u16::from(ready.is_none());
            }
        }
        shared_state.counts[to_usize(entry.kernel)].constant.accesses += 1;
        Some(cycles.max(1))
    }

    /// Looks one line up, and asks for it where it is missing: when it arrives,
    /// `Some(None)` when the L2 will answer, `None` when the entry must wait.
    fn constant_line(
        &mut self,
        entry: &Entry,
        address: u64,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<Option<Cycle>> {
        let constants = self.lsu.constants.as_mut().expect("the route leads to a constant cache");
        let line = constants.line_of(address);
        match constants.find(line, lookup) {
            Found::At(ready) => {
                let late = u64::from(ready > lookup);
                shared_state.counts[to_usize(entry.kernel)].constant.merges += late;
                return Some(Some(ready));
            }
            Found::Nowhere => {
                if !constants.has_room() {
                    self.lsu.queue.stalled = Some(Stall::Constant);
                    return None;
                }
                if let Some(ready) = self.ask_constants(entry.kernel, line, lookup, shared_state) {
                    return Some(Some(ready));
                }
            }
            Found::Awaited { unsent: 0 } => {
                shared_state.counts[to_usize(entry.kernel)].constant.merges += 1;
            }
            Found::Awaited { .. } => {}
        }
        self.send_constants(entry.kernel, line, lookup, shared_state)?;
        self.lsu.constants.as_mut().expect("as above").wait(line, entry.operation);
        Some(None)
    }

    /// A line is missing: asks the outer cache for it where that is shared. When
    /// it has it, when the line is present.
    fn ask_constants(
        &mut self,
        kernel: u32,
        line: u32,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let constants = self.lsu.constants.as_mut().expect("the route leads to a constant cache");
        let outer = constants.outer_line(line, shared_state.code_end());
        let counts = &mut shared_state.counts[to_usize(kernel)].constant;
        counts.misses += 1;
        let Some((outer, fetch)) = outer.zip(self.fetch.as_mut()) else {
            constants.expect(line, None);
            return None;
        };
        let ready = fetch.look_up(outer, kernel, lookup, &mut counts.outer_misses);
        constants.expect(line, Some(ready));
        if ready != crate::sm::scheduler::NEVER {
            return Some(ready);
        }
        self.send_code(shared_state);
        None
    }

    /// Sends the sectors of a line that no outer cache asks for; `None` when the
    /// port is full.
    fn send_constants(
        &mut self,
        kernel: u32,
        line: u32,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<()> {
        loop {
            let constants =
                self.lsu.constants.as_mut().expect("the route leads to a constant cache");
            let Found::Awaited { unsent: 1.. } = constants.find(line, lookup) else {
                return Some(());
            };
            if let Err(at) = self.port_room(shared_state) {
                self.wait_for_port(Err(at), shared_state);
                return None;
            }
            let constants = self.lsu.constants.as_mut().expect("as above");
            let asked = constants.take_sector(line)?;
            let address = shared_state.physical(asked);
            shared_state.send(Packet {
                address,
                virtual_address: asked,
                ready: lookup + 1,
                operation: u32::MAX,
                kernel,
                bytes: 0,
                sectors: 1,
                mask: 0,
                sm: self.id,
                slice: shared_state.memory_system.slice_of(address),
                kind: RequestKind::Constant,
                fills_l1: false,
                origin: Origin::Sm,
                leg: Leg::Near,
            });
        }
    }

    /// A sector of constants has come.
    pub(in crate::sm) fn on_constant(
        &mut self,
        packet: &Packet,
        done: Cycle,
        shared_state: &mut SharedState,
    ) {
        let constants = self.lsu.constants.as_mut().expect("what it asked for comes to it");
        let line = constants.line_of(packet.virtual_address);
        let outer = constants.outer_line(line, shared_state.code_end());
        if let Some((outer, fetch)) = outer.zip(self.fetch.as_mut()) {
            fetch.arrived(outer, done);
            if !fetch.has(outer) {
                return;
            }
        }
        let mut released = std::mem::take(&mut constants.released);
        constants.arrived(packet.virtual_address, done, &mut released);
        let ready = done + constants.latency;
        for &operation in &released {
            self.answered(operation, 1, ready, shared_state);
        }
        released.clear();
        if let Some(constants) = &mut self.lsu.constants {
            constants.released = released;
        }
    }
}
