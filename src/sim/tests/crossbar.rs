//! Facts of the crossbar on the whole machine: flits, clocks, directions, queues, and requests by
//! line, compared with those by sector.

use std::fs;

use crate::config::Resolved;
use crate::counters::KernelCounts;
use crate::testkit::{Line, Script, kernel_cycles, memory, named, scattered, sectored};

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

/// A machine with sectored caches whose requests go by `granularity`, with some keys set.
fn asking_by(granularity: &str, set: &[(&str, &str)]) -> Resolved {
    named("v100", &[&[("interconnect.request_granularity", granularity)], set].concat())
}

/// A file with a mapping that changes channels every two to the power of `shift` bytes.
fn mapping(folder: &tempfile::TempDir, shift: u32) -> String {
    let path = folder.path().join(format!("at-{shift}.toml"));
    let text = format!(
        "[interleave]\nshift = {{ value = {shift}, assumed = \"x\" }}\n\
         [fields]\ncolumn = {{ value = \"5-8, 12\", assumed = \"x\" }}\n\
         pseudo_channel = {{ value = \"9\", assumed = \"x\" }}\n\
         bank_group = {{ value = \"10-11\", assumed = \"x\" }}\n\
         bank = {{ value = \"13-14\", assumed = \"x\" }}\n\
         row = {{ value = \"15-\", assumed = \"x\" }}\n\
         slice = {{ value = \"8\", assumed = \"x\" }}\n"
    );
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Loads and stores of lines, of parts of lines, of every other sector and of words anywhere.
fn traffic() -> Vec<Line> {
    let at = |step: i64| {
        move |cta: u64, warp: u64, turn: u64| (((cta * 64 + turn) * 8 + warp) * 8192, step)
    };
    let anywhere = |cta: u64, warp: u64, turn: u64, lane: u64| {
        let number = ((cta * 64 + turn) * 8 + warp) * 32 + lane;
        (1 << 33) + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) * 4
    };
    vec![
        memory("LDG.E", Some(2), Some(1), at(4)),
        memory("LDG.E", Some(3), Some(1), at(20)),
        memory("LDG.E.STRONG.GPU", Some(4), Some(1), at(64)),
        scattered("LDG.E", Some(5), Some(1), anywhere),
        memory("STG.E", Some(6), Some(2), at(12)),
        memory("STG.E", Some(7), Some(3), at(4)),
        scattered("RED.E.ADD", None, Some(5), anywhere),
    ]
}

fn run(resolved: &Resolved) -> (u64, KernelCounts) {
    let outcome = Script::new(resolved, &traffic(), 6, 40, 256).run(resolved);
    (kernel_cycles(&outcome), outcome.kernels[0].clone())
}

#[test]
fn a_line_asks_for_the_sectors_that_its_parts_ask_for_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    for shift in [5, 6, 7, 8] {
        let path = mapping(&folder, shift);
        let runs = ["sector", "line"].map(|one| run(&asking_by(one, &[("dram.mapping", &path)])));
        let [(by_sector, sectors), (by_line, lines)] = &runs;
        for (name, count) in [
            ("L1 accesses", [sectors, lines].map(|one| one.l1.accesses())),
            ("L2 accesses", [sectors, lines].map(|one| one.l2.accesses())),
        ] {
            assert_eq!(count[0], count[1], "{name}, channels of {} bytes", 1 << shift);
        }
        // Which lines are evicted before they are read again depends on times.
        let reads = lines.dram_reads as f64 / sectors.dram_reads as f64;
        assert!((reads - 1.0).abs() < 0.002, "channels of {} bytes: {reads}", 1 << shift);
        let cycles = *by_line as f64 / *by_sector as f64;
        assert!((0.85..1.1).contains(&cycles), "channels of {} bytes: {cycles}", 1 << shift);
    }
}

/// SM cycles that each line takes of one SM's port, when 32 warps load lines that the L2 has.
fn cycles_per_line(resolved: &Resolved) -> f64 {
    let load = |k: u16| {
        let at = move |_, warp, _| ((u64::from(k) * 32 + warp) * 128, 4);
        memory("LDG.E.STRONG.GPU", Some(k), Some(1), at)
    };
    let lines: Vec<Line> = (2..6).map(load).collect();
    let run = |turns| kernel_cycles(&Script::new(resolved, &lines, turns, 1, 1024).run(resolved));
    (run(24) - run(8)) as f64 / (16.0 * 32.0 * 4.0)
}

#[test]
fn a_line_comes_back_in_one_packet_with_one_header() {
    for (flit, header) in [("32", "0"), ("32", "32"), ("64", "8")] {
        let set = [("interconnect.flit_bytes", flit), ("interconnect.header_bytes", header)];
        let resolved = asking_by("line", &set);
        let interconnect = &resolved.machine.interconnect;
        let flits = (interconnect.header_bytes + 128).div_ceil(interconnect.flit_bytes);
        let found = cycles_per_line(&resolved);
        assert!((found / f64::from(flits) - 1.0).abs() < 0.05, "{flit}, {header}: {found}");
    }
}
