//! One crossbar per direction: a port per SM (or group of SMs), one for the page walkers of
//! machines that translate addresses, and one per slice.
//!
//! A packet occupies its source port for its flits, crosses after the latency, and occupies
//! its destination port for its flits. Places in front of a slice are credits: a packet
//! leaves its source only with a credit. Without one it blocks the packets behind it (head of
//! line), or only those for the same slice (virtual output queues). Answers are always accepted;
//! where the SMs of a GPC share a port, they pass it one after the other. Where packets are
//! matched, destinations take their contenders in turn, one per cycle ([`Switch`]).

use std::collections::VecDeque;

use crate::config::{Allocation, Machine, PortQueues, RequestGranularity};
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u16, to_u32, to_usize};

use super::fixed_point;
use super::ports::{GpcPorts, Switch};
use crate::memory::packet::Packet;

/// Fixed-point shift of port times: 1/256 SM cycle.
const SHIFT: u32 = 8;

/// Whether a packet leaves its source port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// It arrives at this cycle.
    At(Cycle),
    /// It waits at its port.
    Waits,
}

/// One port of the SM side.
#[derive(Debug, Default)]
struct Source {
    free_at: u64,
    /// When the last packet so far reaches the port: in the L1 it occupies no place of the
    /// port's queue.
    reached_at: u64,
    /// Port time that the last packet takes to reach the port.
    transit: u64,
    /// Packets that cannot leave yet, by value: reading a long queue by number would touch
    /// memory far apart. Unused with virtual output queues.
    waiting: VecDeque<Packet>,
    /// Sectors that the packets of the port that cannot leave yet ask for.
    waiting_sectors: u32,
    /// SMs that found the port full.
    refused: Vec<u16>,
}

/// Places in front of one slice, one per sector: with one, a packet of several may leave.
#[derive(Debug)]
struct Destination {
    credits: i64,
    /// Source ports whose first packet waits for a place here, oldest first.
    blocked: VecDeque<u16>,
    /// With virtual output queues, the packets that wait for a place here, oldest first.
    waiting: VecDeque<Packet>,
}

/// Both directions where ports take turns; answers by their numbers.
#[derive(Debug)]
struct Turns {
    requests: Switch<Packet>,
    answers: Switch<u32>,
}

impl Turns {
    fn new(ports: usize, slices: usize) -> Self {
        Self { requests: Switch::new(ports, slices), answers: Switch::new(slices, ports) }
    }
}

/// Both directions.
#[derive(Debug)]
pub(super) struct Crossbar {
    sources: Vec<Source>,
    destinations: Vec<Destination>,
    /// By slice: when its port takes the next answer; in cycles of the crossbar where ports take
    /// turns.
    answers: Vec<u64>,
    ejects: Vec<u64>,
    gpcs: Option<GpcPorts>,
    /// `None` unless ports are matched cycle by cycle.
    turns: Option<Turns>,
    /// The port of each SM.
    ports: Vec<u16>,
    latency: u64,
    /// Port time of a flit at a slice, and at an SM.
    flit_time: u64,
    sm_flit_time: u64,
    /// Port time of a packet by the sectors that it carries: at a slice, and at an SM.
    packet_times: [u64; 5],
    sm_packet_times: [u64; 5],
    /// Packets that cannot leave wait by slice.
    by_slice: bool,
    input_queue: u64,
    /// Port time that may be reserved ahead at an answer port: its queue.
    answer_limit: u64,
    /// Requests go by line; else by sector.
    by_line: bool,
}

impl Crossbar {
    /// The crossbars of `machine`, empty.
    pub(super) fn new(machine: &Machine) -> Self {
        let spec = &machine.interconnect;
        let sms_per_port = to_u16(spec.sms_per_port.max(1));
        // Page walkers and page copies have separate ports after the SMs'.
        let others = machine.translation.as_ref().map_or(0, |spec| 1 + spec.migration_ports);
        let ports = to_usize(u32::from(machine.dispatch.sms.div_ceil(sms_per_port)) + others);
        let clocks = &machine.clocks;
        let slices = 0..machine.l2.slices;
        let credits = spec.output_queue + machine.l2.input_queue + pipeline(machine);
        let flit_time = fixed_point(1, clocks.interconnect_mhz, clocks.core_mhz);
        let sm_flit_time = (flit_time / u64::from(spec.sm_port_flits)).max(1);
        let flits_of = |sectors| {
            u64::from(flits(spec.header_bytes + sectors * to_u32(SECTOR_BYTES), spec.flit_bytes))
        };
        Self {
            sources: (0..ports).map(|_| Source::default()).collect(),
            destinations: slices
                .map(|_| Destination {
                    credits: i64::from(credits.max(1)),
                    blocked: VecDeque::new(),
                    waiting: VecDeque::new(),
                })
                .collect(),
            answers: vec![0; to_usize(machine.l2.slices)],
            ejects: vec![0; ports],
            gpcs: GpcPorts::new(machine, SHIFT),
            turns: (spec.allocation == Allocation::Matched)
                .then(|| Turns::new(ports, to_usize(machine.l2.slices))),
            ports: (0..to_u16(ports) * sms_per_port).map(|sm| sm / sms_per_port).collect(),
            latency: fixed_point(spec.latency_cycles, clocks.interconnect_mhz, clocks.core_mhz),
            flit_time,
            sm_flit_time,
            by_slice: spec.port_queues == PortQueues::VirtualOutput,
            answer_limit: u64::from(machine.l2.reply_queue + spec.input_queue) * flit_time,
            packet_times: [0, 1, 2, 3, 4].map(|sectors| flits_of(sectors) * flit_time),
            sm_packet_times: [0, 1, 2, 3, 4].map(|sectors| flits_of(sectors) * sm_flit_time),
            input_queue: u64::from(spec.input_queue.max(1)),
            by_line: spec.request_granularity == RequestGranularity::Line,
        }
    }

    #[inline]
    fn port_of(&self, sm: u16) -> u16 {
        self.ports[usize::from(sm)]
    }

    /// Whether an SM's port accepts another packet.
    ///
    /// # Errors
    /// The cycle at which it will, or `None` when [`Crossbar::release`] will wake the SM.
    pub(super) fn room(&mut self, sm: u16, now: Cycle) -> Result<(), Option<Cycle>> {
        let port = self.port_of(sm);
        let limit = self.input_queue * self.sm_flit_time;
        let queued = to_usize(self.input_queue);
        let full = self.turns.as_ref().is_some_and(|turns| {
            turns.requests.is_full(port, (now << SHIFT) / self.flit_time, queued)
        });
        let source = &mut self.sources[usize::from(port)];
        if full || u64::from(source.waiting_sectors) >= self.input_queue {
            if !source.refused.contains(&sm) {
                source.refused.push(sm);
            }
            return Err(None);
        }
        // A packet sent now meets only the backlog that remains when it reaches the port.
        let reaches = (now << SHIFT) + source.transit;
        let backlog = source.free_at.saturating_sub(source.reached_at.max(reaches));
        if backlog > limit {
            let over = source.free_at - limit - reaches;
            return Err(Some(now + (over >> SHIFT) + 1));
        }
        Ok(())
    }

    /// Puts a packet into its source port.
    #[inline]
    pub(super) fn send(&mut self, packet: &Packet, now: Cycle) -> Departure {
        let port = self.port_of(packet.sm);
        if let Some(turns) = &mut self.turns {
            let ready = (packet.ready << SHIFT).div_ceil(self.flit_time);
            turns.requests.push(port, packet.slice, ready, *packet);
            return Departure::Waits;
        }
        let source = &mut self.sources[usize::from(port)];
        source.transit = packet.ready.saturating_sub(now) << SHIFT;
        let destination = &mut self.destinations[usize::from(packet.slice)];
        if self.by_slice {
            if destination.waiting.is_empty() && destination.credits > 0 {
                return Departure::At(self.depart(port, packet, packet.ready));
            }
            destination.waiting.push_back(*packet);
            source.waiting_sectors += packet.units();
            return Departure::Waits;
        }
        let first = source.waiting.is_empty();
        if !first || destination.credits <= 0 {
            source.waiting.push_back(*packet);
            source.waiting_sectors += packet.units();
            if first {
                destination.blocked.push_back(port);
            }
            return Departure::Waits;
        }
        Departure::At(self.depart(port, packet, packet.ready))
    }

    /// When a packet that leaves its port arrives.
    fn depart(&mut self, port: u16, packet: &Packet, ready: Cycle) -> Cycle {
        self.destinations[usize::from(packet.slice)].credits -= i64::from(packet.units());
        let sectors = if packet.kind.carries_data() { packet.sectors_moved() } else { 0 };
        let time = self.sm_packet_times[to_usize(sectors)];
        let source = &mut self.sources[usize::from(port)];
        let ready = ready << SHIFT;
        source.reached_at = source.reached_at.max(ready);
        let start = ready.max(source.free_at);
        source.free_at = start + time;
        ceil(start + time + self.latency)
    }

    /// Requests that wait for their turn.
    pub(super) fn waiting_for_turns(&self) -> usize {
        self.turns.as_ref().map_or(0, |turns| turns.requests.len())
    }

    /// The next cycle from `now` on at which packets cross whose ports take turns; `None`: none
    /// waits, or all for a place.
    pub(super) fn next_turn(&self, now: Cycle) -> Option<Cycle> {
        let turns = self.turns.as_ref()?;
        let due = [turns.requests.due(), turns.answers.due()].into_iter().flatten().min()?;
        // A place may have become free long after the last turn.
        Some(ceil(due.max(first_turn(now, self.flit_time)) * self.flit_time))
    }

    /// Lets packets cross, up to cycle `now`, whose ports take turns. Requests are appended to
    /// `departed` with their arrival, answers to `answered`, SMs that may send again to `woken`.
    pub(super) fn take_turns(
        &mut self,
        now: Cycle,
        departed: &mut Vec<(Packet, Cycle)>,
        answered: &mut Vec<(u32, Cycle)>,
        woken: &mut Vec<u16>,
    ) {
        let Self { turns, destinations, sources, flit_time, latency, .. } = self;
        let Some(turns) = turns else { return };
        let (flit_time, latency) = (*flit_time, *latency);
        let floor = first_turn(now, flit_time);
        let last = (now << SHIFT) / flit_time;
        let arrival = |cycle: u64| ceil((cycle + 1) * flit_time + latency);
        while let Some(cycle) = turns.requests.due().map(|due| due.max(floor))
            && cycle <= last
        {
            // Each output takes one packet per cycle.
            let places = |output: u16| destinations[usize::from(output)].credits > 0;
            let first = departed.len();
            turns.requests.step(cycle, places, |input: u16, _, packet| {
                woken.append(&mut sources[usize::from(input)].refused);
                departed.push((packet, arrival(cycle)));
            });
            for (packet, _) in &departed[first..] {
                destinations[usize::from(packet.slice)].credits -= 1;
            }
        }
        while let Some(cycle) = turns.answers.due().map(|due| due.max(floor))
            && cycle <= last
        {
            let take = |_, _, number| answered.push((number, arrival(cycle)));
            turns.answers.step(cycle, |_| true, take);
        }
    }

    /// Places of so many sectors in front of `slice` are free again. Packets that leave now are
    /// appended to `departed` with their arrival, SMs that may try again to `woken`.
    pub(super) fn release(
        &mut self,
        slice: u16,
        sectors: u32,
        now: Cycle,
        departed: &mut Vec<(Packet, Cycle)>,
        woken: &mut Vec<u16>,
    ) {
        let destination = &mut self.destinations[usize::from(slice)];
        destination.credits += i64::from(sectors);
        if let Some(turns) = &mut self.turns {
            if destination.credits > 0 {
                turns.requests.has_place(slice);
            }
            return;
        }
        while self.destinations[usize::from(slice)].credits > 0
            && let Some(port) = self.destinations[usize::from(slice)].blocked.pop_front()
        {
            self.unblock(port, now, departed);
            woken.append(&mut self.sources[usize::from(port)].refused);
        }
        while self.destinations[usize::from(slice)].credits > 0
            && let Some(packet) = self.destinations[usize::from(slice)].waiting.pop_front()
        {
            let port = self.port_of(packet.sm);
            let source = &mut self.sources[usize::from(port)];
            source.waiting_sectors -= packet.units();
            woken.append(&mut source.refused);
            departed.push((packet, self.depart(port, &packet, packet.ready.max(now))));
        }
    }

    /// Lets the packets that wait at a port leave until one has no place.
    fn unblock(&mut self, port: u16, now: Cycle, departed: &mut Vec<(Packet, Cycle)>) {
        while let Some(&packet) = self.sources[usize::from(port)].waiting.front() {
            let destination = &mut self.destinations[usize::from(packet.slice)];
            if destination.credits <= 0 {
                destination.blocked.push_back(port);
                break;
            }
            let source = &mut self.sources[usize::from(port)];
            source.waiting.pop_front();
            source.waiting_sectors -= packet.units();
            departed.push((packet, self.depart(port, &packet, packet.ready.max(now))));
        }
    }

    /// Sends an answer, the packet of a number, that is ready at cycle `at` and returns when it
    /// arrives at its SM; `None`: it waits for its turn.
    pub(super) fn answer(&mut self, number: u32, packet: &Packet, at: Cycle) -> Option<Cycle> {
        let port = self.port_of(packet.sm);
        if let Some(turns) = &mut self.turns {
            // A slice hands over one answer per cycle.
            let free_at = &mut self.answers[usize::from(packet.slice)];
            let ready = (at << SHIFT).div_ceil(self.flit_time).max(*free_at);
            *free_at = ready + 1;
            turns.answers.push(packet.slice, port, ready, number);
            return None;
        }
        let time = self.packet_times[answered_sectors(packet)];
        let free_at = &mut self.answers[usize::from(packet.slice)];
        let start = (at << SHIFT).max(*free_at);
        *free_at = start + time;
        Some(ceil(start + time + self.latency))
    }

    /// Whether a slice's answer port accepts another answer.
    ///
    /// # Errors
    /// The cycle at which it will, at the earliest where ports take turns.
    pub(super) fn answer_room(&self, slice: u16, now: Cycle) -> Result<(), Cycle> {
        let backlog = match &self.turns {
            Some(turns) => turns.answers.queued(slice) as u64 * self.flit_time,
            None => self.answers[usize::from(slice)].saturating_sub(now << SHIFT),
        };
        let over = backlog.saturating_sub(self.answer_limit);
        if over > 0 { Err(now + (over >> SHIFT) + 1) } else { Ok(()) }
    }

    /// Receives an answer at its SM's port and returns when its last flit is in.
    pub(super) fn eject(&mut self, packet: &Packet, now: Cycle) -> Cycle {
        let sectors = answered_sectors(packet);
        let (time, flit) = (self.sm_packet_times[sectors], self.sm_flit_time);
        let port = self.port_of(packet.sm);
        let mut at = now << SHIFT;
        if let Some(gpcs) = &mut self.gpcs {
            at = gpcs.pass(packet.sm, sectors as u64, at);
        }
        let free_at = &mut self.ejects[usize::from(port)];
        if self.by_line {
            // The first flit goes on while the others come.
            let start = at.saturating_sub(time - flit).max(*free_at);
            *free_at = start + time;
            return ceil(start + time - flit).max(now);
        }
        let start = at.max(*free_at);
        *free_at = start + time;
        // The last flit of an answer that finds the port free has just arrived.
        ceil(start + time - flit)
    }
}

/// Sectors in a slice's pipeline, which occupy no place of its queue.
fn pipeline(machine: &Machine) -> u32 {
    machine.l2.latency_cycles * machine.l2.accesses_per_cycle.max(1)
}

/// Sectors of 32 bytes that the answer to a request carries.
fn answered_sectors(packet: &Packet) -> usize {
    let sectors = if packet.kind.answer_carries_data() { packet.sectors_moved() } else { 0 };
    to_usize(sectors)
}

fn ceil(fixed: u64) -> Cycle {
    fixed.div_ceil(1 << SHIFT)
}

/// The first cycle of the crossbar that begins after core cycle `now` - 1.
fn first_turn(now: Cycle, flit_time: u64) -> u64 {
    now.checked_sub(1).map_or(0, |before| (before << SHIFT) / flit_time + 1)
}

/// A length in flits; at least 1, and 1 when packets are not cut.
fn flits(bytes: u32, flit_bytes: u32) -> u32 {
    bytes.checked_div(flit_bytes).map_or(1, |_| bytes.div_ceil(flit_bytes).max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::{Crossbar, Departure};
    use crate::config::{Allocation, Machine, Models, PortQueues, RequestGranularity};
    use crate::memory::packet::{Leg, Origin, Packet, RequestKind};
    use gpumodel_core::units::{Cycle, to_u16};

    /// A machine with one place in front of each slice and a flit per packet.
    fn machine() -> Machine {
        let mut machine = Models::builtin().machine("accelsim-qv100", &[]).unwrap().machine;
        machine.interconnect.output_queue = 0;
        machine.interconnect.flit_bytes = 0;
        machine.interconnect.allocation = Allocation::Independent;
        machine.l2.input_queue = 1;
        machine.l2.latency_cycles = 0;
        machine
    }

    fn packet(sm: u16, slice: u16) -> Packet {
        Packet {
            address: 0,
            virtual_address: 0,
            ready: 0,
            operation: 0,
            kernel: 0,
            bytes: 0,
            sectors: 1,
            mask: 0,
            more_turns: 0,
            sm,
            slice,
            kind: RequestKind::Read,
            fills_l1: false,
            origin: Origin::Sm,
            leg: Leg::Near,
        }
    }

    /// Frees a place in front of `slice`: the SMs and slices of the packets that leave.
    fn release(crossbar: &mut Crossbar, slice: u16, now: Cycle) -> Vec<(u16, u16)> {
        let (mut departed, mut woken) = (Vec::new(), Vec::new());
        crossbar.release(slice, 1, now, &mut departed, &mut woken);
        departed.iter().map(|(packet, _)| (packet.sm, packet.slice)).collect()
    }

    /// The SMs in whose order packets of `queues[sm]` each reach slice 0, one per cycle.
    fn order(queues: &[usize]) -> Vec<u16> {
        let mut crossbar = Crossbar::new(&machine());
        let mut served = VecDeque::new();
        for (sm, &packets) in queues.iter().enumerate() {
            let sm = to_u16(sm);
            for _ in 0..packets {
                if let Departure::At(_) = crossbar.send(&packet(sm, 0), 0) {
                    served.push_back(sm);
                }
            }
        }
        let packets: usize = queues.iter().sum();
        for cycle in 1..packets {
            let left = release(&mut crossbar, 0, cycle as Cycle);
            assert_eq!(left.len(), 1, "a place takes a packet");
            served.push_back(left[0].0);
        }
        served.into()
    }

    #[test]
    fn ports_that_send_to_one_slice_alternate() {
        for ports in [2_usize, 8, 80] {
            let order = order(&vec![16; ports]);
            // In any stretch of the run shares differ by one packet at most, but for the
            // first packet, which found the slice free.
            let mut served = vec![0_usize; ports];
            for &sm in &order[1..] {
                served[usize::from(sm)] += 1;
                let busy = || served.iter().enumerate().map(|(sm, &n)| n + usize::from(sm == 0));
                let (most, least) = (busy().max().unwrap(), busy().min().unwrap());
                assert!(most - least <= 2, "{ports} ports: {served:?}");
            }
            served[0] += 1;
            assert_eq!(served, vec![16; ports]);
        }
    }

    #[test]
    fn a_long_queue_does_not_starve_a_short_one() {
        // SM 0 has queued 64 packets before SM 1 comes with 4: it gets every other place.
        let order = order(&[64, 4]);
        let places: Vec<usize> = (0..order.len()).filter(|&place| order[place] == 1).collect();
        assert_eq!(places, [2, 4, 6, 8]);
    }

    #[test]
    fn a_packet_for_a_full_slice_holds_up_those_behind_it_at_its_port_only() {
        let mut crossbar = Crossbar::new(&machine());
        assert!(matches!(crossbar.send(&packet(2, 0), 0), Departure::At(_)), "fills slice 0");
        assert_eq!(crossbar.send(&packet(0, 0), 0), Departure::Waits, "slice 0 is full");
        assert_eq!(
            crossbar.send(&packet(0, 1), 0),
            Departure::Waits,
            "behind the head of its port"
        );
        assert!(matches!(crossbar.send(&packet(1, 1), 0), Departure::At(_)), "another port");
        assert_eq!(release(&mut crossbar, 1, 10), [], "the head still waits for slice 0");
        assert_eq!(release(&mut crossbar, 0, 20), [(0, 0), (0, 1)], "both follow at once");
        assert!(
            matches!(crossbar.send(&packet(0, 2), 0), Departure::At(_)),
            "the port is free again"
        );
    }

    #[test]
    fn with_a_queue_per_slice_a_packet_for_a_full_slice_holds_up_those_for_it_only() {
        let mut machine = machine();
        machine.interconnect.allocation = Allocation::Independent;
        machine.interconnect.port_queues = PortQueues::VirtualOutput;
        let mut crossbar = Crossbar::new(&machine);
        assert!(matches!(crossbar.send(&packet(2, 0), 0), Departure::At(_)), "fills slice 0");
        assert_eq!(crossbar.send(&packet(0, 0), 0), Departure::Waits, "slice 0 is full");
        assert!(matches!(crossbar.send(&packet(0, 1), 0), Departure::At(_)), "slice 1 is not");
        assert_eq!(crossbar.send(&packet(1, 0), 0), Departure::Waits, "behind SM 0");
        assert_eq!(release(&mut crossbar, 0, 20), [(0, 0)], "in the order in which they came");
        assert_eq!(release(&mut crossbar, 0, 30), [(1, 0)]);
        assert_eq!(release(&mut crossbar, 0, 40), []);
        assert!(matches!(crossbar.send(&packet(3, 0), 50), Departure::At(_)), "a place is free");
    }

    #[test]
    fn a_port_of_four_flits_takes_a_line_per_cycle() {
        let mut machine = machine();
        machine.interconnect.allocation = Allocation::Independent;
        machine.interconnect.output_queue = 1000;
        machine.interconnect.flit_bytes = 32;
        machine.interconnect.header_bytes = 0;
        machine.interconnect.sm_port_flits = 4;
        machine.interconnect.request_granularity = RequestGranularity::Line;
        let mut crossbar = Crossbar::new(&machine);
        let line = |slice| Packet { mask: 0xf, ..packet(0, slice) };
        let arrivals: Vec<Cycle> =
            (0..4).map(|slice| crossbar.answer(0, &line(slice), 100).unwrap()).collect();
        assert!(arrivals.iter().all(|&at| at == arrivals[0]), "four slices send at once");
        let ends: Vec<Cycle> =
            (0..4).map(|slice| crossbar.eject(&line(slice), arrivals[0])).collect();
        let first = ends[0];
        assert_eq!(ends, [first, first + 1, first + 2, first + 3], "a line per cycle");
    }

    /// Lets all packets cross whose ports take turns: SM, slice and arrival of each.
    fn turns(crossbar: &mut Crossbar) -> Vec<(u16, u16, Cycle)> {
        let (mut departed, mut answered, mut woken) = (Vec::new(), Vec::new(), Vec::new());
        let mut now = 0;
        while let Some(at) = crossbar.next_turn(now) {
            assert!(at > now || now == 0, "time goes on: {at} after {now}");
            now = at;
            crossbar.take_turns(now, &mut departed, &mut answered, &mut woken);
        }
        let requests = departed.iter().map(|&(packet, at)| (packet.sm, packet.slice, at));
        requests.chain(answered.iter().map(|&(number, at)| (to_u16(number), 0, at))).collect()
    }

    #[test]
    fn matched_ports_take_one_packet_per_cycle_in_turn() {
        let mut machine = machine();
        machine.interconnect.output_queue = 64;
        machine.interconnect.allocation = Allocation::Matched;
        let mut crossbar = Crossbar::new(&machine);
        for (sm, slice) in [(0, 0), (0, 0), (1, 0), (1, 5), (2, 5)] {
            assert_eq!(crossbar.send(&packet(sm, slice), 0), Departure::Waits);
        }
        let found = turns(&mut crossbar);
        let first = found[0].2;
        // SM 1 sends to slices 0 and 5 in one cycle, the second.
        let order = [(0, 0, 0), (2, 5, 0), (1, 0, 1), (1, 5, 1), (0, 0, 2)];
        assert_eq!(found, order.map(|(sm, slice, at)| (sm, slice, first + at)));
        for (number, sm, slice) in [(0, 0, 0), (1, 0, 1), (2, 7, 1)] {
            assert_eq!(crossbar.answer(number, &packet(sm, slice), 50), None);
        }
        let order = [(0, 0, 51), (1, 0, 52), (2, 0, 52)];
        let lag = first - 1;
        assert_eq!(turns(&mut crossbar), order.map(|(number, of, at)| (number, of, at + lag)));
    }

    #[test]
    fn matched_packets_wait_for_a_place_in_front_of_their_slice() {
        // Of the core's clock, a slower one, and a faster one.
        for part in [1.0, 0.6, 1.7] {
            let mut machine = machine();
            machine.interconnect.allocation = Allocation::Matched;
            machine.clocks.interconnect_mhz = part * machine.clocks.core_mhz;
            let mut crossbar = Crossbar::new(&machine);
            for sm in [0, 1] {
                crossbar.send(&packet(sm, 3), 0);
            }
            assert_eq!(turns(&mut crossbar).len(), 1, "one place");
            for free in (100..200).step_by(10) {
                assert_eq!(release(&mut crossbar, 3, free), []);
                let at = crossbar.next_turn(free).unwrap();
                assert!((free..free + 2).contains(&at), "{free} {at} {part}");
                let (mut departed, mut answered, mut woken) = (Vec::new(), Vec::new(), Vec::new());
                crossbar.take_turns(at, &mut departed, &mut answered, &mut woken);
                let (sent, arrives) = departed[0];
                assert!(sent.sm == 1 && arrives > free, "{departed:?}");
                crossbar.send(&packet(sent.sm, 3), at);
            }
        }
    }

    #[test]
    fn what_is_on_its_way_through_the_l1_takes_no_place_at_the_port() {
        let mut machine = machine();
        machine.interconnect.output_queue = 1000;
        machine.interconnect.input_queue = 8;
        let mut crossbar = Crossbar::new(&machine);
        let flit = machine.clocks.core_mhz / machine.clocks.interconnect_mhz;
        assert!((flit - 1.0).abs() < 1e-9, "a flit per cycle");
        // A look-up per cycle, each of which leaves the L1 100 cycles later.
        let mut send = |ready, now| {
            let room = crossbar.room(0, now);
            crossbar.send(&Packet { ready, ..packet(0, 0) }, now);
            room
        };
        for now in 0..300 {
            assert_eq!(send(now + 100, now), Ok(()), "cycle {now}");
        }
        // Packets that reach the port together queue there: eight, and the one that leaves.
        let full = (0..20).position(|_| send(400, 300).is_err());
        assert_eq!(full, Some(9));
    }

    /// A crossbar whose ports queue eight packets and take one per cycle.
    fn short_queues() -> Crossbar {
        let mut machine = machine();
        machine.interconnect.output_queue = 10_000;
        machine.interconnect.input_queue = 8;
        Crossbar::new(&machine)
    }

    #[test]
    fn a_port_stays_busy_behind_a_long_l1() {
        let mut crossbar = short_queues();
        let (mut now, mut sent, mut last) = (0, 0, 0);
        // Up to four sectors per look-up, each of which leaves the L1 100 cycles later.
        for _ in 0..1500 {
            for sector in 0..4 {
                match crossbar.room(0, now) {
                    Ok(()) => {
                        let looked_up = Packet { ready: now + 100, ..packet(0, 0) };
                        let Departure::At(at) = crossbar.send(&looked_up, now) else {
                            panic!("waits")
                        };
                        (sent, last) = (sent + 1, at);
                    }
                    Err(at) if sector == 0 => now = at.expect("no packet waits for a place") - 1,
                    Err(_) => break,
                }
            }
            now += 1;
        }
        assert!(sent > 1000, "{sent} packets");
        assert!(last < sent + 150, "{sent} packets took {last} cycles");
    }

    #[test]
    fn what_goes_past_the_l1_does_not_bring_back_what_is_still_in_it() {
        let mut crossbar = short_queues();
        for now in 0..50 {
            assert_eq!(crossbar.room(0, now), Ok(()), "cycle {now}");
            // Every tenth request goes past the L1.
            let ready = if now % 10 == 9 { now + 1 } else { now + 100 };
            crossbar.send(&Packet { ready, ..packet(0, 0) }, now);
        }
    }
}
