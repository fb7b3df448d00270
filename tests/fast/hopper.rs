//! Do bulk copies move their bytes, and do waits at barrier objects end when these have come?
//! The traces are written here, in the format of Accel-Sim 2.0.

use std::fmt::Write;
use std::fs;

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::report::results::AppRecord;

use crate::common::program::{gpumodel, stderr};

/// A launch of one CTA whose warps have these lines, PCs left to this function.
fn trace(warps: &[Vec<String>]) -> String {
    cluster_trace(&[warps])
}

/// A launch of one cluster of CTAs, each with its warps' lines.
fn cluster_trace(ctas: &[&[Vec<String>]]) -> String {
    let warps = ctas[0].len();
    let mut text = format!(
        "-kernel name = copies\n-kernel id = 1\n-grid dim = ({},1,1)\n-block dim = ({},1,1)\n\
         -shmem = 65536\n-nregs = 32\n-binary version = 90\n-cuda stream id = 0\n\
         -shmem base_addr = 0x00007f0000000000\n-local mem base_addr = 0x00007f1000000000\n\
         -nvbit version = 1.8\n-accelsim tracer version = 6\n-enable lineinfo = 0\n\
         #traces format = PC mask dest_num opcode src_num mem_width immediate\n\n",
        ctas.len(),
        32 * warps
    );
    for (cta, warps) in ctas.iter().enumerate() {
        write!(text, "#BEGIN_TB\n\nthread block = {cta},0,0\n").unwrap();
        if ctas.len() > 1 {
            write!(text, "cluster id = 0,0,0\ncluster cta = {cta},0,0\ncluster rank = {cta}\n")
                .unwrap();
        }
        for (warp, lines) in warps.iter().enumerate() {
            let first = 0x1000 * (4 * cta + warp);
            write!(text, "\nwarp = {warp}\ninsts = {}\n", lines.len() + 1).unwrap();
            for (place, line) in lines.iter().enumerate() {
                writeln!(text, "{:04x} {line}", first + 16 * place).unwrap();
            }
            writeln!(text, "{:04x} ffffffff 0 EXIT 0 0 0 0 NoVal", first + 0xff0).unwrap();
        }
        text += "\n#END_TB\n\n";
    }
    text
}

/// The value of `SYNCS.EXCH.64` for so many arrivals.
fn made_for(arrivals: u64) -> String {
    format!(
        "00000001 0 SYNCS.EXCH.64 2 UR4 UR6 8 2 0x400 0 0 Val 1 0x400 1 {:#x}",
        (0x10_0000 - arrivals) << 1
    )
}

fn expects(bytes: u64) -> String {
    format!("00000001 0 SYNCS.ARRIVE.TRANS64 2 R3 R4 8 2 0x400 0 0 Val 1 0x400 1 {bytes:#x}")
}

/// A copy of so many rows of 128 bytes, `first` behind the start of the buffer.
fn copies(first: u64, rows: u64) -> String {
    let base = 0x7f28_0000_0000_u64 + first;
    let differences = " 128".repeat(usize::try_from(rows - 1).unwrap());
    format!(
        "00000001 0 UTMALDG.2D 2 UR8 UR4 16 0x400 0 {} 0 4 {base:#x} {rows}{differences} 0 0 NoVal",
        rows * 128
    )
}

fn waits_for(parity: u64) -> String {
    format!(
        "ffffffff 0 SYNCS.PHASECHK.TRANS64.TRYWAIT 2 R3 R4 8 1 0x400 0 0 0 Val 1 0x400 1 {parity:#x}"
    )
}

/// One warp that makes an object, expects the bytes of some copies, and waits for them.
fn loads(copies_of: &[String], bytes: u64) -> Vec<String> {
    let mut lines = vec![made_for(1), expects(bytes)];
    lines.extend(copies_of.iter().cloned());
    lines.push(waits_for(0));
    lines
}

fn solo(warps: &[Vec<String>]) -> AppRecord {
    of_trace(&trace(warps))
}

fn of_trace(text: &str) -> AppRecord {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kernelslist.g"), "kernel-1.traceg\n").unwrap();
    fs::write(folder.path().join("kernel-1.traceg"), text).unwrap();
    let request = AnalyzeRequest::new(
        vec![AppName::parse(folder.path().to_str().unwrap())],
        "h100",
        &folder.path().join("cache"),
    );
    analyze(&request, &Unwatched).unwrap().solo.remove(0)
}

fn cycles(warps: &[Vec<String>]) -> f64 {
    solo(warps).cycles as f64
}

/// Luo et al. 2024 (arXiv 2402.13499), H800: a bulk load takes 754 cycles from DRAM and 369
/// from the L2.
#[test]
fn a_bulk_load_takes_as_long_as_on_the_card() {
    let chain = |rounds: u64, step: u64| {
        let mut lines = vec![made_for(1)];
        for round in 0..rounds {
            lines.extend([expects(128), copies(round * step, 1), waits_for(round & 1)]);
        }
        cycles(&[lines])
    };
    let dram = (chain(40, 1 << 16) - chain(20, 1 << 16)) / 20.0;
    let l2 = (chain(40, 0) - chain(20, 0)) / 20.0;
    assert!((dram / 754.0 - 1.0).abs() < 0.05, "DRAM {dram}");
    assert!((l2 / 369.0 - 1.0).abs() < 0.08, "L2 {l2}");
}

#[test]
fn a_copy_moves_the_bytes_of_its_box_once() {
    let found = solo(&[loads(&[copies(0, 64), copies(8192, 64)], 16384)]);
    assert_eq!(found.l2.accesses, 16384 / 32, "sectors");
    let small = cycles(&[loads(&[copies(0, 1)], 128)]);
    let large = cycles(&[loads(&[copies(0, 128)], 16384)]);
    assert!(large > small + 100.0, "{large} for 16 KB, {small} for 128 bytes");
}

#[test]
fn all_warps_wait_for_the_phase_and_work_beside_it() {
    let producer = loads(&[copies(0, 64)], 8192);
    let consumer = || vec![waits_for(0), "ffffffff 1 R1 FADD 2 R1 R1 0 0 0 NoVal".to_owned()];
    let together = cycles(&[producer.clone(), consumer(), consumer()]);
    let alone = cycles(&[producer]);
    assert!((together - alone).abs() < 80.0, "{together} against {alone}");
}

#[test]
fn a_phase_that_cannot_end_is_a_fault_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kernelslist.g"), "kernel-1.traceg\n").unwrap();
    let lost = trace(&[loads(&[copies(0, 1)], 256)]);
    fs::write(folder.path().join("kernel-1.traceg"), lost).unwrap();
    let run = gpumodel(&["analyze", folder.path().to_str().unwrap(), "-m", "h100"]);
    let text = stderr(&run.failure().code(2));
    for part in ["barrier object at 0x400", "128 bytes missing", "warp 0", "fault of the trace"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// The lines of a CTA of rank `rank`, whose shared addresses have the rank in the bits from 24 on.
fn of_rank(rank: u64, lines: &[String]) -> Vec<String> {
    let address = format!("{:#x}", rank << 24 | 0x400);
    lines.iter().map(|line| line.replace("0x400", &address)).collect()
}

/// A copy of 8 KB for both CTAs of a cluster, of which only the first asks.
#[test]
fn a_multicast_brings_its_bytes_to_all_ctas_once() {
    let copy = copies(0, 64).replace("0x400 0 8192", "0x400 1 0x3 8192");
    assert!(copy.contains("0x400 1 0x3"), "{copy}");
    let asks = of_rank(0, &loads(&[copy], 8192));
    let waits = of_rank(1, &loads(&[], 8192));
    let both = of_trace(&cluster_trace(&[&[asks], &[waits]]));
    assert_eq!(both.l2.accesses, 8192 / 32, "sectors");
    let alone = solo(&[loads(&[copies(0, 64)], 8192)]);
    assert!(both.cycles.abs_diff(alone.cycles) < 60, "{} for {}", both.cycles, alone.cycles);
    assert_eq!(both.kernels[0].assumptions, alone.kernels[0].assumptions);
}

/// The first CTA waits at its object for an arrival of the second, which comes late.
#[test]
fn an_arrival_at_another_ctas_object_is_a_message() {
    const ARRIVES: &str =
        "00000001 0 SYNCS.ARRIVE.TRANS64.RED.A1T0 2 R3 R4 8 2 0x400 0 0 Val 1 0x400 1 0x1";
    let waits = vec![made_for(1), waits_for(0)];
    let adds = |count: usize| vec!["ffffffff 1 R1 FADD 2 R1 R1 0 0 0 NoVal".to_owned(); count];
    let of = |first: &[String], count: usize| {
        let late = [adds(count), vec![ARRIVES.to_owned()]].concat();
        of_trace(&cluster_trace(&[&[of_rank(0, first)], &[late]])).cycles
    };
    let (waited, alone) = (of(&waits, 250), of(&adds(1), 250));
    // Half of the way there and back, 22 cycles of the barrier, and the exit of the first CTA, whose
    // code comes from the DRAM.
    assert!((100..1000).contains(&(waited - alone)), "{waited} where the second takes {alone}");
    assert!(waited > of(&waits, 50) + 800, "200 additions of 4 cycles: {waited}");
    let lost = of_trace(&cluster_trace(&[std::slice::from_ref(&waits), &[adds(50)]]));
    let what: Vec<&str> = lost.kernels[0].assumptions.iter().map(|a| a.what.as_str()).collect();
    assert!(what.iter().any(|what| what.contains("barrier object")), "{what:?}");
}

#[test]
fn copies_without_addresses_are_told_and_hold_nobody_up() {
    let bare = "00000001 0 UTMALDG.2D 2 UR8 UR4 0 0 0 NoVal".to_owned();
    let found = solo(&[loads(&[bare], 4096)]);
    let what: Vec<&str> = found.kernels[0].assumptions.iter().map(|a| a.what.as_str()).collect();
    assert!(what.contains(&"bulk copy without its addresses"), "{what:?}");
}

#[test]
fn a_dependent_chain_takes_as_long_beside_another_one() {
    const CHAIN: &str = "ffffffff 1 R2 MUFU.RCP 1 R2 0 0 0 NoVal";
    const OTHER: &str = "ffffffff 1 R3 MUFU.RCP 1 R4 0 0 0 NoVal";
    let of = |lines: &[&str]| {
        let lines: Vec<String> = (0..400).flat_map(|_| lines).map(ToString::to_string).collect();
        cycles(&[lines])
    };
    let (alone, both) = (of(&[CHAIN]), of(&[CHAIN, OTHER]));
    assert!(both > alone - 50.0, "{both} with independent ones, {alone} without");
}

fn declared(app: &str, machine: &str) -> AppRecord {
    let folder = tempfile::tempdir().unwrap();
    let request = AnalyzeRequest::new(vec![AppName::parse(app)], machine, folder.path());
    analyze(&request, &Unwatched).unwrap().solo.remove(0)
}

/// A step of 128 by 256 by 64 is 1024 cycles of four tensor cores with 512 multiply-adds, and
/// each CTA of a cluster brings 128 rows of A, and 128 of the 256 of B for both.
#[test]
fn a_declared_pipeline_keeps_the_tensor_cores_busy() {
    let tile = |depth: u32| {
        let size = format!("rows=256:columns=256:depth={depth}:band=1:workers=2");
        declared(&format!("synth:gemm-wgmma:{size}"), "h100")
    };
    let (short, long) = (tile(1024), tile(2048));
    let step = (long.cycles - short.cycles) as f64 / 16.0;
    assert!((1024.0..1100.0).contains(&step), "{step} cycles");
    assert_eq!(long.l2.reads - short.l2.reads, 2 * 16 * 256 * 128 / 32, "sectors");
    // Of its 132 SMs two multiply: each instruction counts with its own 128 cycles.
    let kernel = &long.kernels[0];
    let busy = kernel.activity.as_ref().unwrap()["tensor"] * 132.0 / 2.0 * kernel.cycles as f64;
    assert!((0.9..1.1).contains(&(busy / (32.0 * 1024.0))), "{busy} cycles of multiplies");
}

/// A group's products of queries and keys run on while its warps wait for the values. A block of
/// 176 keys has 8 times 88 and 11 times 64 cycles of them for each of two groups, and softmax;
/// where each wait held its warp up until the tensor core was free, it took 5630.
#[test]
fn multiplies_of_a_group_do_not_hold_up_the_next_wait() {
    let run = |length: u32| {
        let size = format!("length={length}:heads=1:batch=1");
        declared(&format!("synth:attention-wgmma:{size}"), "h100").cycles as f64
    };
    let block = (run(4224) - run(2112)) / 12.0;
    assert!((2816.0..4700.0).contains(&block), "{block} cycles");
}

/// Hostile fields end in an error or a run, and move no more than a copy may.
#[test]
fn absurd_copies_and_objects_are_bounded() {
    let pieces = " 262144".repeat(255);
    let outside = format!(
        "00000001 0 UTMALDG.2D 2 UR8 UR4 262144 0x400 0 64 64 4 0x7f0000000000 256{pieces} 0 0 NoVal"
    );
    let found = solo(&[vec![outside]]);
    assert_eq!(found.l2.reads, 0, "all of it is out of bounds");
    let many =
        "00000001 0 SYNCS.ARRIVE.TRANS64.ART0 2 R3 R4 8 2 0x400 0 0 Val 1 0x400 1 0xffffffff";
    let lines = [vec![made_for(1)], vec![many.to_owned(); 3], vec![waits_for(0)]].concat();
    assert_eq!(solo(&[lines]).kernels.len(), 1);
}
