//! The ports of a crossbar: those of GPCs, through which the answers of the L2 go to their SMs, and
//! those that take turns.
//!
//! A [`Switch`] is one direction of a crossbar with a queue per input, whose outputs take one packet
//! per cycle and their contenders in turn: iSLIP with one iteration (McKeown, IEEE/ACM Transactions
//! on Networking, 1999), as GPGPU-Sim's `xbar_router::iSLIP_Advance` has it. There too an input may
//! send a second packet in a cycle, to an output of a higher number.

use std::collections::VecDeque;

use super::kilohertz;
use crate::bits::bits;
use crate::config::Machine;
use gpumodel_core::units::{SECTOR_BYTES, to_u16};

/// Bits of a fraction of a time of the crossbar.
const FRACTION: u32 = 16;

/// What the SMs of a GPC get together, where that is limited.
#[derive(Debug)]
pub(super) struct GpcPorts {
    /// The GPC of each SM.
    of: Vec<u16>,
    /// By GPC, when its port is free, in 1/2^`FRACTION` of the crossbar's times.
    free_at: Vec<u64>,
    /// What a sector takes of a port, in the same.
    sector: u64,
}

impl GpcPorts {
    /// Those of `machine`, where they limit anything; times are in 1/2^`shift` core cycles.
    pub(super) fn new(machine: &Machine, shift: u32) -> Option<Self> {
        let cluster = machine.cluster.as_ref()?;
        let bytes = u64::from(cluster.gpc_bytes_per_l2_cycle);
        let sms = machine.dispatch.sms;
        let core = (SECTOR_BYTES * kilohertz(machine.clocks.core_mhz)) << (shift + FRACTION);
        (bytes > 0).then(|| Self {
            of: (0..sms).map(|sm| cluster.gpc_of(sm, sms)).collect(),
            free_at: vec![0; usize::from(cluster.gpcs)],
            sector: core / (bytes * kilohertz(machine.clocks.l2_mhz).max(1)),
        })
    }

    /// When sectors for an SM that come at `at` have the port of its GPC.
    pub(super) fn pass(&mut self, sm: u16, sectors: u64, at: u64) -> u64 {
        // Page walkers have no GPC.
        let Some(&gpc) = self.of.get(usize::from(sm)) else { return at };
        let free_at = &mut self.free_at[usize::from(gpc)];
        let start = (at << FRACTION).max(*free_at);
        *free_at = start + sectors * self.sector;
        start.div_ceil(1 << FRACTION)
    }
}

/// A packet in the queue of its input.
#[derive(Debug)]
struct Queued<T> {
    /// The first cycle of the switch in which it may cross.
    ready: u64,
    output: u16,
    item: T,
}

/// A set of ports.
#[derive(Clone, Debug)]
struct PortSet(Vec<u64>);

impl PortSet {
    /// An empty set of ports below `ports`.
    fn new(ports: usize) -> Self {
        Self(vec![0; ports.div_ceil(64)])
    }

    #[inline]
    fn add(&mut self, port: u16) {
        self.0[usize::from(port / 64)] |= 1 << (port % 64);
    }

    #[inline]
    fn remove(&mut self, port: u16) {
        self.0[usize::from(port / 64)] &= !(1 << (port % 64));
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The lowest port of the set from `from` on.
    #[inline]
    fn from(&self, from: u16) -> Option<u16> {
        let first = usize::from(from / 64);
        let word = self.0.get(first)? & (u64::MAX << (from % 64));
        let rest = self.0[first + 1..].iter().copied();
        let mut words = std::iter::once(word).chain(rest).enumerate();
        let (at, word) = words.find(|&(_, word)| word != 0)?;
        Some(to_u16(first + at) * 64 + to_u16(word.trailing_zeros() as usize))
    }
}

/// A switch whose packets are `T`.
#[derive(Debug)]
pub(super) struct Switch<T> {
    inputs: Vec<VecDeque<Queued<T>>>,
    /// By output: inputs whose first packet is ready and for it.
    contenders: Vec<PortSet>,
    /// Inputs whose first packet is not ready yet.
    early: PortSet,
    /// A packet of those is ready from this cycle on, or later.
    earliest: u64,
    /// Outputs with contenders and a place behind them.
    active: PortSet,
    /// Outputs with contenders that found no place behind them.
    full: PortSet,
    /// By output: the input that it prefers.
    turns: Vec<u16>,
    /// All cycles before this one are over.
    cycle: u64,
}

impl<T> Switch<T> {
    /// An empty switch.
    pub(super) fn new(inputs: usize, outputs: usize) -> Self {
        Self {
            inputs: (0..inputs).map(|_| VecDeque::new()).collect(),
            contenders: vec![PortSet::new(inputs); outputs],
            early: PortSet::new(inputs),
            earliest: u64::MAX,
            active: PortSet::new(outputs),
            full: PortSet::new(outputs),
            turns: vec![0; outputs],
            cycle: 0,
        }
    }

    /// Packets at an input, those included that have not reached it.
    pub(super) fn queued(&self, input: u16) -> usize {
        self.inputs[usize::from(input)].len()
    }

    /// Whether `limit` packets at an input could cross in `cycle` or before.
    pub(super) fn is_full(&self, input: u16, cycle: u64, limit: usize) -> bool {
        let queue = &self.inputs[usize::from(input)];
        let early = || queue.iter().rev().take_while(|queued| queued.ready > cycle).count();
        queue.len() >= limit && queue.len() - early() >= limit
    }

    /// Packets in it.
    pub(super) fn len(&self) -> usize {
        self.inputs.iter().map(VecDeque::len).sum()
    }

    /// Puts a packet into the queue of its input, which it reaches at cycle `ready`: behind all
    /// that reach it before.
    pub(super) fn push(&mut self, input: u16, output: u16, ready: u64, item: T) {
        let is_early = self.early.from(input) == Some(input);
        let queue = &mut self.inputs[usize::from(input)];
        let first = usize::from(!queue.is_empty() && !is_early);
        let later = queue.iter().skip(first).rev().take_while(|other| other.ready > ready).count();
        queue.insert(queue.len() - later, Queued { ready, output, item });
        if first == 0 {
            self.early.add(input);
            self.earliest = self.earliest.min(ready);
        }
    }

    /// The next cycle in which a packet may cross; `None`: not before a place is free, or another
    /// packet comes.
    pub(super) fn due(&self) -> Option<u64> {
        if !self.active.is_empty() {
            return Some(self.cycle);
        }
        (self.earliest != u64::MAX).then(|| self.earliest.max(self.cycle))
    }

    /// There is a place behind an output again.
    pub(super) fn has_place(&mut self, output: u16) {
        if self.full.from(output) == Some(output) {
            self.full.remove(output);
            self.active.add(output);
        }
    }

    /// Passes the packets that cross in `cycle` to `take`, with their inputs and outputs; those
    /// of outputs without `place` stay.
    pub(super) fn step(
        &mut self,
        cycle: u64,
        mut place: impl FnMut(u16) -> bool,
        mut take: impl FnMut(u16, u16, T),
    ) {
        self.cycle = cycle + 1;
        self.wake(cycle);
        let mut next = self.active.from(0);
        while let Some(output) = next {
            if place(output) {
                let (input, item) = self.grant(output, cycle);
                take(input, output, item);
            } else {
                self.active.remove(output);
                self.full.add(output);
            }
            next = self.active.from(output + 1);
        }
    }

    /// Lets the first packets that are ready contend.
    fn wake(&mut self, cycle: u64) {
        if self.earliest > cycle {
            return;
        }
        self.earliest = u64::MAX;
        for word in 0..self.early.0.len() {
            for bit in bits(self.early.0[word]) {
                self.offer(to_u16(word * 64 + bit), cycle);
            }
        }
    }

    /// Lets the first packet of an input contend, once it is ready.
    fn offer(&mut self, input: u16, cycle: u64) {
        let Some(first) = self.inputs[usize::from(input)].front() else {
            return self.early.remove(input);
        };
        if first.ready > cycle {
            self.early.add(input);
            self.earliest = self.earliest.min(first.ready);
            return;
        }
        let output = first.output;
        self.early.remove(input);
        self.contenders[usize::from(output)].add(input);
        if self.full.from(output) != Some(output) {
            self.active.add(output);
        }
    }

    /// Takes the packet of the contender whose turn it is.
    fn grant(&mut self, output: u16, cycle: u64) -> (u16, T) {
        let number = usize::from(output);
        let contenders = &mut self.contenders[number];
        let input = contenders.from(self.turns[number]).or_else(|| contenders.from(0));
        let input = input.expect("an active output has a contender");
        contenders.remove(input);
        if contenders.is_empty() {
            self.active.remove(output);
        }
        self.turns[number] = (input + 1) % to_u16(self.inputs.len());
        let queued = self.inputs[usize::from(input)].pop_front().expect("a contender has a packet");
        self.offer(input, cycle);
        (input, queued.item)
    }
}

#[cfg(test)]
mod tests {
    use super::{GpcPorts, Switch};
    use crate::config::Models;

    /// Steps through cycles up to the last packet: the cycle, input and output of each.
    fn run(switch: &mut Switch<()>) -> Vec<(u64, u16, u16)> {
        let mut crossed = Vec::new();
        while let Some(cycle) = switch.due() {
            switch.step(cycle, |_| true, |input, output, ()| crossed.push((cycle, input, output)));
        }
        crossed
    }

    #[test]
    fn contenders_of_an_output_take_turns_and_hold_up_what_is_behind() {
        let mut switch = Switch::new(3, 6);
        for input in [0, 1] {
            switch.push(input, 4, 0, ());
            switch.push(input, 4, 0, ());
        }
        switch.push(1, 2, 0, ());
        switch.push(2, 2, 7, ());
        let crossed = run(&mut switch);
        assert_eq!(crossed, [(0, 0, 4), (1, 1, 4), (2, 0, 4), (3, 1, 4), (4, 1, 2), (7, 2, 2)]);
        assert_eq!(switch.len(), 0);
    }

    #[test]
    fn an_input_sends_to_a_higher_output_in_the_same_cycle() {
        let mut switch = Switch::new(1, 70);
        for output in [3, 68, 5] {
            switch.push(0, output, 0, ());
        }
        assert_eq!(run(&mut switch), [(0, 0, 3), (0, 0, 68), (1, 0, 5)]);
    }

    #[test]
    fn a_packet_waits_for_a_place_and_for_those_that_came_before() {
        let mut switch = Switch::new(1, 2);
        switch.push(0, 1, 5, ());
        switch.push(0, 0, 3, ());
        assert_eq!(switch.due(), Some(3));
        switch.step(3, |_| false, |_, _, ()| panic!("no place"));
        assert_eq!(switch.due(), None, "a free place wakes it");
        switch.has_place(0);
        assert_eq!(run(&mut switch), [(4, 0, 0), (5, 0, 1)]);
        switch.push(0, 1, 9, ());
        assert!(switch.is_full(0, 9, 1) && !switch.is_full(0, 8, 1) && !switch.is_full(0, 9, 2));
    }

    #[test]
    fn the_sms_of_a_gpc_share_its_port() {
        let mut machine = Models::builtin().machine("h100", &[]).unwrap().machine;
        let bytes = |machine: &mut crate::config::Machine, bytes| {
            machine.cluster.as_mut().unwrap().gpc_bytes_per_l2_cycle = bytes;
        };
        machine.clocks.l2_mhz = machine.clocks.core_mhz;
        bytes(&mut machine, 0);
        assert!(GpcPorts::new(&machine, 8).is_none());
        bytes(&mut machine, 256);
        let mut ports = GpcPorts::new(&machine, 8).unwrap();
        // Lines of 128 bytes take half a cycle each; the last four SMs lie in other GPCs.
        let mut starts = |sms: [u16; 4]| sms.map(|sm| ports.pass(sm, 4, 1000 << 8));
        assert_eq!(starts([0, 1, 2, 3]), [0, 1, 2, 3].map(|n| (1000 << 8) + n * 128));
        assert_eq!(starts([20, 40, 60, 80]), [1000 << 8; 4]);
        assert_eq!(starts([132; 4]), [1000 << 8; 4], "page walkers");
        machine.clocks.l2_mhz = machine.clocks.core_mhz / 2.0;
        bytes(&mut machine, 1096);
        let mut ports = GpcPorts::new(&machine, 8).unwrap();
        let last = (0..=548).map(|_| ports.pass(0, 4, 0)).last();
        assert_eq!(last, Some(128 << 8), "548 lines of 128 bytes");
    }
}
