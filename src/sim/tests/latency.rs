//! Unloaded latencies of the whole machine: a dependent chain of one-lane loads
//! costs the sum that the machine file states.

use crate::config::{Command, Location, Machine, Resolved};
use crate::testkit::{Script, address_of, gap, kernel_cycles, memory, memory_of, named};

const CACHED: &str = "LDG.E";

/// A load past the L1.
const STRONG: &str = "LDG.E.STRONG.GPU";

const MACHINES: [&str; 8] = [
    "accelsim-qv100",
    "accelsim-rtx3070",
    "v100",
    "a100",
    "h100",
    "warped-slicer-1400",
    "ugpu",
    "titan-xp",
];

/// Cycles of a chain of dependent one-lane loads from `addresses`, in order.
fn chain(resolved: &Resolved, opcode: &'static str, addresses: &[u64]) -> u64 {
    let turns = u32::try_from(addresses.len()).unwrap();
    let addresses = addresses.to_vec();
    let at = move |_, _, turn| (addresses[usize::try_from(turn).unwrap()], 0);
    let load = [memory(opcode, Some(2), Some(2), at)];
    kernel_cycles(&Script::new(resolved, &load, turns, 1, 32).with_mask(1).run(resolved))
}

/// Cycles of each load of a chain but the first `known`.
fn steps(resolved: &Resolved, opcode: &'static str, addresses: &[u64], known: usize) -> Vec<u64> {
    let ends: Vec<u64> =
        (known..=addresses.len()).map(|n| chain(resolved, opcode, &addresses[..n])).collect();
    ends.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Cycles before the way of a load begins: where schedulers share a port, that of
/// the port or of the bank that reads and writes the chain's register, and those
/// until the load/store unit has the load.
fn issue(machine: &Machine) -> u64 {
    let unit = &machine.units["memory"];
    let bank = 2_u32.div_ceil(machine.sm.register_bank_ports);
    let shared = unit.count < machine.sm.schedulers;
    let port = if shared { unit.initiation_cycles.max(bank) } else { 0 };
    u64::from(port + machine.sm.memory_issue_cycles)
}

/// Crossbar cycles of a packet of `bytes` and its header, through empty ports.
fn crossing(machine: &Machine, bytes: u32) -> u64 {
    let spec = &machine.interconnect;
    let length = spec.header_bytes + bytes;
    let flits = if spec.flit_bytes == 0 { 1 } else { length.div_ceil(spec.flit_bytes).max(1) };
    u64::from(flits + spec.latency_cycles)
}

/// The same out of its port: the last flit follows the first by as many cycles
/// as there are others.
fn leaving(machine: &Machine, bytes: u32) -> u64 {
    let spec = &machine.interconnect;
    crossing(machine, bytes) - u64::from(spec.latency_cycles) - 1
}

/// Whether SMs, crossbar and L2 have one clock: no rounding between them.
fn one_clock(machine: &Machine) -> bool {
    let clocks = &machine.clocks;
    [clocks.interconnect_mhz, clocks.l2_mhz].iter().all(|&mhz| mhz == clocks.core_mhz)
}

/// Cycles from the look-up of the L1 to the L2's answer of so many bytes, both ways and the
/// slice, whose look-up takes one cycle beyond its latency.
fn beyond_l1(machine: &Machine, bytes: u32) -> u64 {
    let there = crossing(machine, 0);
    let back = crossing(machine, bytes) + leaving(machine, bytes);
    there + u64::from(machine.l2.latency_cycles) + 1 + back
}

/// The machines with one clock outside the DRAM.
fn machines() -> impl Iterator<Item = Resolved> {
    let all = MACHINES.iter().map(|name| named(name, &[("quirks.no_refresh", "true")]));
    all.map(|mut resolved| {
        let core = resolved.machine.clocks.core_mhz;
        if !one_clock(&resolved.machine) {
            resolved.machine.clocks.interconnect_mhz = core;
            resolved.machine.clocks.l2_mhz = core;
        }
        resolved
    })
}

#[test]
fn an_l1_hit_costs_issue_and_the_l1s_latency() {
    for resolved in machines().filter(|r| r.machine.l1.caches_global) {
        let machine = &resolved.machine;
        let expected = issue(machine) + u64::from(machine.l1.latency_cycles);
        assert_eq!(steps(&resolved, CACHED, &[0x1000; 12], 10), [expected; 2], "{}", machine.name);
    }
}

#[test]
fn a_shared_load_costs_issue_and_the_shared_memorys_latency() {
    for resolved in machines() {
        let machine = &resolved.machine;
        let expected = issue(machine) + u64::from(machine.shared.latency_cycles);
        assert_eq!(steps(&resolved, "LDS", &[0x100; 12], 10), [expected; 2], "{}", machine.name);
    }
}

#[test]
fn a_load_past_the_l1_costs_a_cycle_the_crossbar_both_ways_and_the_l2() {
    for resolved in machines() {
        let machine = &resolved.machine;
        let expected = issue(machine) + 1 + beyond_l1(machine, 32);
        assert_eq!(steps(&resolved, STRONG, &[0x1000; 12], 10), [expected; 2], "{}", machine.name);
    }
}

#[test]
fn an_l1_miss_that_hits_the_l2_costs_both() {
    for resolved in machines().filter(|r| r.machine.l1.caches_global) {
        let machine = &resolved.machine;
        // Twice as many lines as the L1 holds, in a circle: each is evicted before it is read
        // again, and stays in the L2.
        let lines = 2 * u64::from(machine.l1.cache.sets * machine.l1.cache.ways);
        let circle: Vec<u64> = (0..lines + 12).map(|k| k % lines * 128).collect();
        let beyond = beyond_l1(machine, machine.l1.cache.sector_bytes);
        let expected = issue(machine) + u64::from(machine.l1.latency_cycles) + beyond;
        let found = steps(&resolved, CACHED, &circle, circle.len() - 2);
        assert_eq!(found, [expected; 2], "{}", machine.name);
    }
}

/// Cycles of each change of one word by one lane, one after the other.
fn changes(resolved: &Resolved, opcode: &'static str, result: Option<u16>) -> Vec<u64> {
    let change = [memory(opcode, result, Some(2), |_, _, _| (0x1000, 0))];
    let run = |turns| {
        kernel_cycles(&Script::new(resolved, &change, turns, 1, 32).with_mask(1).run(resolved))
    };
    (10..12).map(|turns| run(turns + 1) - run(turns)).collect()
}

#[test]
fn an_atomic_waits_for_its_round_trip_and_a_reduction_for_the_port_alone() {
    for resolved in machines() {
        let machine = &resolved.machine;
        let there = crossing(machine, 32);
        let back = crossing(machine, 32) + leaving(machine, 32);
        let trip = 1 + there + u64::from(machine.l2.latency_cycles) + 1 + back;
        let atomic = changes(&resolved, "ATOMG.E.ADD.STRONG.GPU", Some(2));
        assert_eq!(atomic, [issue(machine) + trip; 2], "{}", machine.name);
        // Nothing of the trip is left: at most the unit's share or the flits.
        let flits = there - u64::from(machine.interconnect.latency_cycles);
        let unit = issue(machine).max(u64::from(machine.units["memory"].initiation_cycles));
        let reduction = changes(&resolved, "RED.E.ADD.STRONG.GPU", None);
        let most = unit.max(flits);
        assert!(
            reduction.iter().all(|n| (1..=most).contains(n)),
            "{}: {reduction:?}",
            machine.name
        );
    }
}

#[test]
fn l2_hits_take_the_published_cycles() {
    // L2 hits, of the near half where there are two: te42kyfo/gpu-benches (V100, A100, H100
    // PCIe); sjfeng1999/gpu-arch-microbenchmark (RTX 2070, for TU106); Jia et al. 2019 (P4, for
    // GP10x).
    for (name, hit) in
        [("v100", 215), ("a100", 211), ("h100-pcie", 266), ("rtx-2060", 236), ("gtx-1080", 216)]
    {
        let machine = named(name, &[]).machine;
        let first = if machine.l1.caches_global { machine.l1.latency_cycles } else { 1 };
        let clocks = &machine.clocks;
        assert!((clocks.interconnect_mhz - clocks.core_mhz).abs() < 1e-9);
        assert_eq!(u64::from(first) + beyond_l1(&machine, 32), hit, "{name}");
    }
}

/// What a chain of misses finds in the banks, with the addresses and the clocks
/// from acceptance by the controller to the last data beat: one until the first
/// command, then the commands.
fn bank_chains(resolved: &Resolved) -> [(&'static str, Vec<u64>, u64); 3] {
    let (standard, mapping) = memory_of(resolved);
    let at = |channel, bank_group, bank, row, column| {
        let place = Location { channel, bank_group, bank, row, column, ..Location::default() };
        address_of(&mapping, place)
    };
    let banks = 1..standard.banks_per_group.min(4);
    let closed = banks.flat_map(|bank| (0..4).map(move |group| at(1, group, bank, 3, 0)));
    let conflict = (0..12).map(|row| at(1, 0, 0, 3 + row, 0));
    // A line of several accesses is there with its last one.
    let accesses = (resolved.machine.l2.cache.sector_bytes / standard.bytes_per_access).max(1);
    let open = (0..12).map(|line| at(1, 0, 0, 3, line * accesses));
    let between = u64::from(accesses - 1) * gap(&standard, Command::Read, Command::Read);
    let read = u64::from(standard.read_clocks) + between;
    let activate = gap(&standard, Command::Activate, Command::Read);
    let close = gap(&standard, Command::Precharge, Command::Activate);
    [
        ("closed", closed.collect(), 1 + activate + read),
        ("open", open.collect(), 1 + read),
        ("conflict", conflict.collect(), 1 + close + activate + read),
    ]
}

/// Cycles of a DRAM access except the clocks of the device: those of an L2 hit, of the path to
/// the controller, and one of the slice for the answer.
fn outside_dram(machine: &Machine) -> u64 {
    issue(machine) + 1 + beyond_l1(machine, 32) + u64::from(machine.dram.latency_cycles) + 1
}

#[test]
fn a_dram_access_costs_its_commands() {
    for mut resolved in machines() {
        resolved.machine.clocks.dram_mhz = Some(resolved.machine.clocks.core_mhz);
        for (what, addresses, clocks) in bank_chains(&resolved) {
            let expected = outside_dram(&resolved.machine) + clocks;
            let found = steps(&resolved, STRONG, &addresses[..6], 2);
            assert_eq!(found, [expected; 4], "{what} {}", resolved.machine.name);
        }
    }
}

#[test]
fn a_separate_dram_clock_adds_only_its_edges() {
    // A request is accepted at the last edge before the end of the cycle in which it
    // arrives, so up to a clock before that end, and answered in the first whole cycle
    // after its data.
    for resolved in machines() {
        let machine = &resolved.machine;
        let (standard, _) = memory_of(&resolved);
        let mhz = machine.clocks.dram_mhz.unwrap_or(standard.clock_khz as f64 / 1000.0);
        let ratio = machine.clocks.core_mhz / mhz;
        for (what, addresses, clocks) in bank_chains(&resolved) {
            for found in steps(&resolved, STRONG, &addresses[..8], 2) {
                let device = (found - outside_dram(machine)) as f64;
                let low = 1.0 + (clocks - 1) as f64 * ratio;
                let high = 2.0 + clocks as f64 * ratio;
                assert!((low..=high).contains(&device), "{what} {}: {device}", machine.name);
            }
        }
    }
}
