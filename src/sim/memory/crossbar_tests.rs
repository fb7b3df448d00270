//! Who goes first where ports want one slice: the crossbar alone.

use std::collections::VecDeque;

use super::crossbar::{Crossbar, Leave};
use crate::config::{Allocation, Machine, Models};
use crate::memory::packet::{Origin, Packet, RequestKind};
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
        asked: 0,
        ready: 0,
        operation: 0,
        kernel: 0,
        bytes: 0,
        sectors: 1,
        sm,
        slice,
        ask: RequestKind::Read,
        fills_l1: false,
        origin: Origin::Sm,
    }
}

/// Frees a place in front of `slice`: the SMs and slices of the packets that leave.
fn release(crossbar: &mut Crossbar, slice: u16, now: Cycle) -> Vec<(u16, u16)> {
    let (mut left, mut woken) = (Vec::new(), Vec::new());
    crossbar.release(slice, now, &mut left, &mut woken);
    left.iter().map(|(packet, _)| (packet.sm, packet.slice)).collect()
}

/// The SMs in whose order packets of `queues[sm]` each reach slice 0, one per turn.
fn order(queues: &[usize]) -> Vec<u16> {
    let mut crossbar = Crossbar::new(&machine());
    let mut served = VecDeque::new();
    for (sm, &packets) in queues.iter().enumerate() {
        let sm = to_u16(sm);
        for _ in 0..packets {
            if let Leave::At(_) = crossbar.send(&packet(sm, 0), 0) {
                served.push_back(sm);
            }
        }
    }
    let packets: usize = queues.iter().sum();
    for turn in 1..packets {
        let left = release(&mut crossbar, 0, turn as Cycle);
        assert_eq!(left.len(), 1, "a place takes a packet");
        served.push_back(left[0].0);
    }
    served.into()
}

#[test]
fn ports_that_want_one_slice_take_turns() {
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
    // SM 0 has queued 64 packets before SM 1 comes with 4: it gets every other turn.
    let order = order(&[64, 4]);
    let places: Vec<usize> = (0..order.len()).filter(|&turn| order[turn] == 1).collect();
    assert_eq!(places, [2, 4, 6, 8]);
}

#[test]
fn a_packet_for_a_full_slice_holds_up_those_behind_it_at_its_port_only() {
    let mut crossbar = Crossbar::new(&machine());
    assert!(matches!(crossbar.send(&packet(2, 0), 0), Leave::At(_)), "fills slice 0");
    assert_eq!(crossbar.send(&packet(0, 0), 0), Leave::Waits, "slice 0 is full");
    assert_eq!(crossbar.send(&packet(0, 1), 0), Leave::Waits, "behind the head of its port");
    assert!(matches!(crossbar.send(&packet(1, 1), 0), Leave::At(_)), "a port of its own");
    assert_eq!(release(&mut crossbar, 1, 10), [], "the head still waits for slice 0");
    assert_eq!(release(&mut crossbar, 0, 20), [(0, 0), (0, 1)], "both follow at once");
    assert!(matches!(crossbar.send(&packet(0, 2), 0), Leave::At(_)), "the port is free again");
}

#[test]
fn matched_ports_take_one_packet_per_cycle_and_hold_up_those_behind() {
    let mut machine = machine();
    machine.interconnect.output_queue = 64;
    machine.interconnect.allocation = Allocation::Matched;
    let mut crossbar = Crossbar::new(&machine);
    let mut arrival = |sm, slice| match crossbar.send(&packet(sm, slice), 0) {
        Leave::At(cycle) => cycle,
        Leave::Waits => panic!("there are places"),
    };
    let first = arrival(0, 0);
    assert_eq!(arrival(1, 0), first + 1, "the slice takes one per cycle");
    assert_eq!(arrival(1, 5), first + 2, "a free slice, behind a packet that waited");
    assert_eq!(arrival(2, 5), first, "the cycle that the other left free");
    let back = |crossbar: &mut Crossbar, sm, slice| crossbar.answer(&packet(sm, slice), 50);
    let first = back(&mut crossbar, 0, 0);
    assert_eq!(back(&mut crossbar, 0, 1), first + 1, "an SM takes one answer per cycle");
    assert_eq!(back(&mut crossbar, 7, 1), first + 2, "behind one that waited");
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
                    let Leave::At(at) = crossbar.send(&looked_up, now) else { panic!("waits") };
                    (sent, last) = (sent + 1, at);
                }
                Err(at) if sector == 0 => now = at.expect("nobody waits for a place") - 1,
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
