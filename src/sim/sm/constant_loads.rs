//! Constant loads at the load/store unit: one distinct word per cycle.

use gpumodel_core::units::{Cycle, to_usize};

use super::Sm;
use super::constants::Found;
use super::lsu_queue::Entry;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Origin, Packet, RequestKind};

impl Sm {
    /// Looks the words of a constant load up from cycle `now` on: the cycles that
    /// they take of the unit, or `None` when it must go on later. A line that has
    /// to come does not hold up the words behind it.
    pub(super) fn serve_constants(
        &mut self,
        entry: &mut Entry,
        now: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let constants = self.constants.as_mut().expect("the path leads to a constant cache");
        constants.settle(now);
        let latency = constants.latency;
        let (mut place, mut passes) = (0, 0);
        for request in &entry.lines {
            let constants = self.constants.as_ref().expect("as above");
            for (address, words) in constants.parts(request) {
                place += 1;
                if place <= entry.served {
                    continue;
                }
                let lookup = now + passes;
                let ready = self.constant_line(entry, address, lookup, shared_state)?;
                passes += words;
                entry.served = place;
                shared_state.counts[to_usize(entry.kernel)].constant.passes += words;
                let operation = self.operations.get_mut(entry.operation);
                let known = ready.unwrap_or(0).max(lookup + words - 1);
                operation.latest = operation.latest.max(known + latency);
                operation.remaining += u16::from(ready.is_none());
            }
        }
        shared_state.counts[to_usize(entry.kernel)].constant.accesses += 1;
        Some(passes.max(1))
    }

    /// Looks one line up, and asks for it where it is missing: when it is there,
    /// `Some(None)` when the L2 will answer, `None` when the entry must wait.
    fn constant_line(
        &mut self,
        entry: &Entry,
        address: u64,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<Option<Cycle>> {
        let constants = self.constants.as_mut().expect("the path leads to a constant cache");
        let line = constants.line_of(address);
        match constants.find(line, lookup) {
            Found::At(ready) => {
                let late = u64::from(ready > lookup);
                shared_state.counts[to_usize(entry.kernel)].constant.merges += late;
                return Some(Some(ready));
            }
            Found::Nowhere => {
                if !constants.has_room() {
                    self.load_store.stalled = true;
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
        self.constants.as_mut().expect("as above").wait(line, entry.operation);
        Some(None)
    }

    /// A line is missing: asks the outer cache for it where that is shared. When
    /// it has it, when the line is there.
    fn ask_constants(
        &mut self,
        kernel: u32,
        line: u32,
        lookup: Cycle,
        shared_state: &mut SharedState,
    ) -> Option<Cycle> {
        let constants = self.constants.as_mut().expect("the path leads to a constant cache");
        let outer = constants.outer_line(line, shared_state.code_end());
        let counts = &mut shared_state.counts[to_usize(kernel)].constant;
        counts.misses += 1;
        let Some((outer, fetch)) = outer.zip(self.fetch.as_mut()) else {
            constants.expect(line, None);
            return None;
        };
        let ready = fetch.look_up(outer, kernel, lookup, &mut counts.outer_misses);
        constants.expect(line, Some(ready));
        if ready != super::scheduler::NEVER {
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
            let constants = self.constants.as_mut().expect("the path leads to a constant cache");
            let Found::Awaited { unsent: 1.. } = constants.find(line, lookup) else {
                return Some(());
            };
            if let Err(at) = self.port_room(shared_state) {
                self.wait_for_port(Err(at), shared_state);
                return None;
            }
            let constants = self.constants.as_mut().expect("as above");
            let asked = constants.take_sector(line)?;
            let address = shared_state.physical(asked);
            shared_state.send(Packet {
                address,
                asked,
                ready: lookup + 1,
                operation: u32::MAX,
                kernel,
                bytes: 0,
                sectors: 1,
                sm: self.id,
                slice: shared_state.memory_system.slice_of(address),
                ask: RequestKind::Constant,
                fills_l1: false,
                origin: Origin::Sm,
            });
        }
    }

    /// A sector of constants has come.
    pub(super) fn on_constant(
        &mut self,
        packet: &Packet,
        done: Cycle,
        shared_state: &mut SharedState,
    ) {
        let constants = self.constants.as_mut().expect("what it asked for comes to it");
        let line = constants.line_of(packet.asked);
        let outer = constants.outer_line(line, shared_state.code_end());
        if let Some((outer, fetch)) = outer.zip(self.fetch.as_mut()) {
            fetch.arrived(outer, done);
            if !fetch.has(outer) {
                return;
            }
        }
        let mut released = std::mem::take(&mut self.released);
        constants.arrived(packet.asked, done, &mut released);
        let ready = done + constants.latency;
        for &operation in &released {
            self.answered(operation, ready, shared_state);
        }
        released.clear();
        self.released = released;
    }
}
