//! Facts of the crossbar on the whole machine: flits, clocks, directions, queues.

use crate::config::Resolved;
use crate::testkit::scripted::{Line, Script, kernel_cycles, memory, named, sectored};

/// SM cycles per packet that `opcode`'s packets take of one SM's port, when 32
/// warps send one line each per turn.
fn cycles_per_packet(resolved: &Resolved, lines: &[Line]) -> f64 {
    let run = |turns| kernel_cycles(&Script::new(resolved, lines, turns, 1, 1024).run(resolved));
    let packets = 16 * 32 * 4 * lines.len();
    (run(24) - run(8)) as f64 / packets as f64
}

/// Independent accesses of one line of a few, all in the L2 after the first turn.
fn accesses(opcode: &'static str, registers: std::ops::Range<u16>) -> Vec<Line> {
    let access = |k: u16| {
        memory(opcode, Some(k), Some(1), move |_, warp, _| ((u64::from(k) * 32 + warp) * 128, 4))
    };
    registers.map(access).collect()
}

fn loads() -> Vec<Line> {
    accesses("LDG.E.STRONG.GPU", 2..6)
}

fn stores() -> Vec<Line> {
    accesses("STG.E", 6..10)
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 0.03, "{what}: {found} is not {expected}");
}

#[test]
fn an_answer_takes_its_flits_of_port_time() {
    // A sector with its header is cut into flits; the port moves one per cycle.
    for flit in [8_u32, 16, 32, 40, 64] {
        let bytes = flit.to_string();
        let resolved = sectored("ugpu", &[("interconnect.flit_bytes", &bytes)]);
        let length = resolved.machine.interconnect.header_bytes + 32;
        let expected = f64::from(length.div_ceil(flit));
        assert_near(cycles_per_packet(&resolved, &loads()), expected, &bytes);
    }
}

#[test]
fn a_whole_line_takes_its_flits_in_one_packet() {
    for flit in [16_u32, 32, 64] {
        let bytes = flit.to_string();
        let resolved = named("ugpu", &[("interconnect.flit_bytes", &bytes)]);
        let length = resolved.machine.interconnect.header_bytes + 128;
        let expected = f64::from(length.div_ceil(flit)) / 4.0;
        assert_near(cycles_per_packet(&resolved, &loads()), expected, &bytes);
        assert_near(cycles_per_packet(&resolved, &stores()), expected, &bytes);
    }
}

#[test]
fn a_request_that_carries_data_takes_its_flits_too() {
    for flit in [8_u32, 16, 32] {
        let bytes = flit.to_string();
        let resolved = sectored("ugpu", &[("interconnect.flit_bytes", &bytes)]);
        let length = resolved.machine.interconnect.header_bytes + 32;
        let expected = f64::from(length.div_ceil(flit));
        assert_near(cycles_per_packet(&resolved, &stores()), expected, &bytes);
    }
}

#[test]
fn a_packet_that_is_not_cut_takes_one_cycle_whatever_its_header() {
    for header in ["0", "8", "200"] {
        let resolved = sectored(
            "ugpu",
            &[("interconnect.flit_bytes", "0"), ("interconnect.header_bytes", header)],
        );
        assert_near(cycles_per_packet(&resolved, &loads()), 1.0, header);
        assert_near(cycles_per_packet(&resolved, &stores()), 1.0, header);
    }
}

#[test]
fn flits_move_in_the_crossbars_own_clock() {
    let slow = sectored("ugpu", &[("clocks.interconnect_mhz", "700")]);
    let length = slow.machine.interconnect.header_bytes + 32;
    let flits = f64::from(length.div_ceil(slow.machine.interconnect.flit_bytes));
    let ratio = slow.machine.clocks.core_mhz / slow.machine.clocks.interconnect_mhz;
    assert_near(cycles_per_packet(&slow, &loads()), flits * ratio, "half the clock");
}

#[test]
fn the_directions_do_not_share_a_port() {
    // Answers of loads and data of stores: each direction is as full as alone but for
    // the other's headers, one flit each.
    let resolved = sectored("ugpu", &[("interconnect.flit_bytes", "8")]);
    let header = f64::from(resolved.machine.interconnect.header_bytes.div_ceil(8));
    let data = f64::from((resolved.machine.interconnect.header_bytes + 32).div_ceil(8));
    let mix: Vec<Line> = loads().into_iter().zip(stores()).flat_map(|(l, s)| [l, s]).collect();
    let found = 2.0 * cycles_per_packet(&resolved, &mix);
    assert!((data..1.15 * (data + header)).contains(&found), "{found} for {data} and {header}");
}

#[test]
fn sms_that_share_a_port_share_its_time() {
    let run = |per_port| {
        let resolved = sectored("ugpu", &[("interconnect.sms_per_port", per_port)]);
        let run =
            |turns| kernel_cycles(&Script::new(&resolved, &loads(), turns, 2, 1024).run(&resolved));
        (run(24) - run(8)) as f64
    };
    // Two CTAs on two SMs, through two ports or through one.
    assert_near(run("2") / run("1"), 2.0, "one port for two");
}

#[test]
fn full_queues_hold_packets_back_and_lose_none() {
    let narrow = [
        ("interconnect.input_queue", "1"),
        ("interconnect.output_queue", "1"),
        ("l2.input_queue", "1"),
        ("l2.dram_queue", "1"),
        ("l2.reply_queue", "1"),
    ];
    let lines: Vec<Line> = (0..4_u16)
        .map(|k| {
            memory("LDG.E", Some(2 + k), None, move |cta, warp, turn| {
                (((turn * 4 + u64::from(k)) * 1024 + cta * 8 + warp) * 128, 4)
            })
        })
        .collect();
    let run = |set: &[(&str, &str)]| {
        let resolved = sectored("ugpu", set);
        Script::new(&resolved, &lines, 4, 128, 256).run(&resolved)
    };
    let (tight, roomy) = (run(&narrow), run(&[]));
    let counts = &tight.kernels[0];
    assert_eq!(counts.l1.read_misses, 4 * 4 * 128 * 8 * 4);
    assert_eq!(counts.l2.reads(), counts.l1.read_misses);
    assert_eq!(counts.dram_reads, roomy.kernels[0].dram_reads);
    assert!(kernel_cycles(&tight) > kernel_cycles(&roomy));
}
