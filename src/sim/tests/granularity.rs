//! Facts of requests by line, compared with those by sector.

use std::fs;

use crate::config::Resolved;
use crate::counters::KernelCounts;
use crate::testkit::scripted::{Line, Script, kernel_cycles, memory, named, scattered};

/// A machine with sectored caches whose requests go by `granularity`, with some keys set.
fn machine(granularity: &str, set: &[(&str, &str)]) -> Resolved {
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
        let runs = ["sector", "line"].map(|one| run(&machine(one, &[("dram.mapping", &path)])));
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
        let resolved = machine("line", &set);
        let interconnect = &resolved.machine.interconnect;
        let flits = (interconnect.header_bytes + 128).div_ceil(interconnect.flit_bytes);
        let found = cycles_per_line(&resolved);
        assert!((found / f64::from(flits) - 1.0).abs() < 0.05, "{flit}, {header}: {found}");
    }
}
