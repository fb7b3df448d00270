//! One crossbar per direction: a port per SM (or group of SMs), one
//! for the page walkers where there are any, and one per slice.
//!
//! A packet takes its source port for its flits, crosses after the latency, and
//! takes its destination port for its flits. Places in front of a slice are
//! credits: a packet leaves its source only when it has one, and blocks those
//! behind it (head of line) while it has none. Answers are always taken.

use std::collections::VecDeque;

use crate::config::{Allocation, Machine};
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u16, to_u32};

use super::slots::Slots;
use super::{fixed_point, flits};
use crate::memory::packet::{Packet, RequestKind};

/// Fixed-point shift of port times: 1/256 SM cycle.
const SHIFT: u32 = 8;

/// What became of a packet at its source port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// It arrives at this cycle.
    At(Cycle),
    /// It waits at its port.
    Waits,
}

/// One port of the SM side.
#[derive(Debug, Default)]
struct Source {
    free_at: u64,
    /// When the last of the packets so far reaches the port: on its way through the
    /// L1 it takes no place of the port's queue.
    reached_at: u64,
    /// Port time that the packet that came last takes to reach the port.
    way: u64,
    /// Packets that cannot leave yet, by value: a long queue read through by
    /// number would touch memory far apart.
    waiting: VecDeque<Packet>,
    /// SMs that found the port full.
    refused: Vec<u16>,
}

/// Places in front of one slice.
#[derive(Debug)]
struct Destination {
    credits: u32,
    /// Source ports whose head waits for a place here, oldest first.
    blocked: VecDeque<u16>,
}

/// Cycles of the destination ports of both directions: each takes one packet, and
/// a packet holds up those behind it until it finds one.
#[derive(Debug)]
struct Matching {
    slices: Vec<Slots>,
    sms: Vec<Slots>,
    /// Port time between the look-up of a packet that went through an L1 and its
    /// departure. Contention is counted at the look-up, which all packets pass in
    /// the order in which they are sent.
    lead: u64,
}

/// Both directions.
#[derive(Debug)]
pub(super) struct Crossbar {
    sources: Vec<Source>,
    destinations: Vec<Destination>,
    answers: Vec<u64>,
    ejects: Vec<u64>,
    /// Where ports are matched cycle by cycle.
    matching: Option<Matching>,
    /// The port of each SM.
    ports: Vec<u16>,
    latency: u64,
    flit_time: u64,
    /// Port time of a packet by the sectors that it carries.
    packet_times: [u64; 5],
    input_queue: u64,
    /// Most that an answer port may be booked ahead: its queue.
    answer_limit: u64,
}

impl Crossbar {
    /// The crossbars of `machine`, empty.
    pub(super) fn new(machine: &Machine) -> Self {
        let spec = &machine.interconnect;
        let sms_per_port = to_u16(spec.sms_per_port.max(1));
        // Page walkers and page copies have ports of their own behind the SMs'.
        let others = machine.translation.as_ref().map_or(0, |spec| 1 + spec.migration_ports);
        let ports = u32::from(machine.dispatch.sms.div_ceil(sms_per_port)) + others;
        let ports = gpumodel_core::units::to_usize(ports);
        let clocks = &machine.clocks;
        let slices = 0..machine.l2.slices;
        // What a slice's pipeline holds takes no place of its queue.
        let credits = spec.output_queue + machine.l2.input_queue + machine.l2.latency_cycles;
        let flit_time = fixed_point(1, clocks.interconnect_mhz, clocks.core_mhz);
        Self {
            sources: (0..ports).map(|_| Source::default()).collect(),
            destinations: slices
                .map(|_| Destination { credits: credits.max(1), blocked: VecDeque::new() })
                .collect(),
            answers: vec![0; gpumodel_core::units::to_usize(machine.l2.slices)],
            ejects: vec![0; ports],
            matching: (spec.allocation == Allocation::Matched).then(|| Matching {
                slices: vec![Slots::new(); gpumodel_core::units::to_usize(machine.l2.slices)],
                sms: vec![Slots::new(); ports],
                lead: u64::from(machine.l1.latency_cycles) << SHIFT,
            }),
            ports: (0..to_u16(ports) * sms_per_port).map(|sm| sm / sms_per_port).collect(),
            latency: fixed_point(spec.latency_cycles, clocks.interconnect_mhz, clocks.core_mhz),
            flit_time,
            answer_limit: u64::from(machine.l2.reply_queue + spec.input_queue) * flit_time,
            packet_times: [0, 1, 2, 3, 4].map(|sectors| {
                let bytes = spec.header_bytes + sectors * to_u32(SECTOR_BYTES);
                u64::from(flits(bytes, spec.flit_bytes)) * flit_time
            }),
            input_queue: u64::from(spec.input_queue.max(1)),
        }
    }

    #[inline]
    fn port_of(&self, sm: u16) -> u16 {
        self.ports[usize::from(sm)]
    }

    /// Whether an SM's port takes another packet.
    ///
    /// # Errors
    /// The cycle at which it will, or `None` when the SM is told by
    /// [`Crossbar::release`].
    pub(super) fn room(&mut self, sm: u16, now: Cycle) -> Result<(), Option<Cycle>> {
        let port = self.port_of(sm);
        let limit = self.input_queue * self.flit_time;
        let source = &mut self.sources[usize::from(port)];
        if source.waiting.len() as u64 >= self.input_queue {
            if !source.refused.contains(&sm) {
                source.refused.push(sm);
            }
            return Err(None);
        }
        // What is sent now finds at the port what is left when it gets there.
        let reaches = (now << SHIFT) + source.way;
        let backlog = source.free_at.saturating_sub(source.reached_at.max(reaches));
        if backlog > limit {
            let over = source.free_at - limit - reaches;
            return Err(Some(now + (over >> SHIFT) + 1));
        }
        Ok(())
    }

    /// Takes a packet into its source port.
    pub(super) fn send(&mut self, packet: &Packet, now: Cycle) -> Leave {
        let port = self.port_of(packet.sm);
        let source = &mut self.sources[usize::from(port)];
        if self.matching.is_none() {
            source.way = packet.ready.saturating_sub(now) << SHIFT;
        }
        let destination = &mut self.destinations[usize::from(packet.slice)];
        if !source.waiting.is_empty() {
            source.waiting.push_back(*packet);
            return Leave::Waits;
        }
        if destination.credits == 0 {
            source.waiting.push_back(*packet);
            destination.blocked.push_back(port);
            return Leave::Waits;
        }
        Leave::At(self.depart(port, packet, packet.ready, false))
    }

    /// A packet leaves its port: when it arrives. `late` when it has waited for a place.
    fn depart(&mut self, port: u16, packet: &Packet, ready: Cycle, late: bool) -> Cycle {
        self.destinations[usize::from(packet.slice)].credits -= 1;
        let sectors = if packet.ask.carries_data() { packet.sectors } else { 0 };
        let time = self.packet_times[usize::from(sectors)];
        let source = &mut self.sources[usize::from(port)];
        let (free_at, ready) = (&mut source.free_at, ready << SHIFT);
        let Some(matching) = &mut self.matching else {
            source.reached_at = source.reached_at.max(ready);
            let start = ready.max(*free_at);
            *free_at = start + time;
            return ceil(start + time + self.latency);
        };
        let ahead =
            packet.fills_l1 || matches!(packet.ask, RequestKind::Write | RequestKind::WriteBack);
        let lead = if ahead && !late { matching.lead.min(ready) } else { 0 };
        let from = (ready - lead).max(*free_at).div_ceil(self.flit_time);
        let start = matching.slices[usize::from(packet.slice)].take(from) * self.flit_time;
        *free_at = start + time;
        ceil(start + lead + time + self.latency)
    }

    /// A place in front of `slice` is free again. Packets that leave now are
    /// appended to `left` with their arrival, SMs that may try again to `woken`.
    pub(super) fn release(
        &mut self,
        slice: u16,
        now: Cycle,
        left: &mut Vec<(Packet, Cycle)>,
        woken: &mut Vec<u16>,
    ) {
        self.destinations[usize::from(slice)].credits += 1;
        let Some(port) = self.destinations[usize::from(slice)].blocked.pop_front() else { return };
        while let Some(&packet) = self.sources[usize::from(port)].waiting.front() {
            let destination = &mut self.destinations[usize::from(packet.slice)];
            if destination.credits == 0 {
                destination.blocked.push_back(port);
                break;
            }
            self.sources[usize::from(port)].waiting.pop_front();
            left.push((packet, self.depart(port, &packet, packet.ready.max(now), true)));
        }
        woken.append(&mut self.sources[usize::from(port)].refused);
    }

    /// Sends an answer that is ready at cycle `at`: when it arrives at its SM.
    pub(super) fn answer(&mut self, packet: &Packet, at: Cycle) -> Cycle {
        let time = self.answer_time(packet);
        let port = usize::from(self.port_of(packet.sm));
        let free_at = &mut self.answers[usize::from(packet.slice)];
        let mut start = (at << SHIFT).max(*free_at);
        if let Some(matching) = &mut self.matching {
            start = matching.sms[port].take(start.div_ceil(self.flit_time)) * self.flit_time;
        }
        *free_at = start + time;
        ceil(start + time + self.latency)
    }

    /// Whether a slice's answer port takes another answer.
    ///
    /// # Errors
    /// The cycle at which it will.
    pub(super) fn answer_room(&self, slice: u16, now: Cycle) -> Result<(), Cycle> {
        let backlog = self.answers[usize::from(slice)].saturating_sub(now << SHIFT);
        let over = backlog.saturating_sub(self.answer_limit);
        if over > 0 { Err(now + (over >> SHIFT) + 1) } else { Ok(()) }
    }

    /// Takes an answer out at its SM's port: when its last flit is in.
    pub(super) fn eject(&mut self, packet: &Packet, now: Cycle) -> Cycle {
        let time = self.answer_time(packet);
        let port = self.port_of(packet.sm);
        let free_at = &mut self.ejects[usize::from(port)];
        let start = (now << SHIFT).max(*free_at);
        *free_at = start + time;
        // The last flit of an answer that finds the port free has just arrived.
        ceil(start + time - self.flit_time)
    }

    fn answer_time(&self, packet: &Packet) -> u64 {
        let sectors = if packet.ask.answer_carries_data() { packet.sectors } else { 0 };
        self.packet_times[usize::from(sectors)]
    }
}

fn ceil(fixed: u64) -> Cycle {
    fixed.div_ceil(1 << SHIFT)
}
