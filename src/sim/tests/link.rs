//! Facts of the link to the host: copies, and pages of managed memory.

use gpumodel_core::contract::PlanDraft;
use gpumodel_core::memory_copy::{CopyDirection, MemoryCopy};
use gpumodel_core::units::KernelId;

use crate::config::Resolved;
use crate::testkit::named;
use crate::testkit::{Line, Script, Scripts, line, memory, plan};
use crate::{Command, LinkUse, Load, Outcome};

/// A V100 at 1 GHz with 10 GB/s to the device, 5 GB/s to the host and 2 us of latency: a byte
/// takes a tenth and a fifth of a cycle, the latency 2000 cycles.
fn linked(set: &[(&str, &str)]) -> Resolved {
    let mut all = vec![
        ("clocks.core_mhz", "1000.0"),
        ("link.copies", "true"),
        ("link.host_to_device_gb_per_s", "10.0"),
        ("link.device_to_host_gb_per_s", "5.0"),
        ("link.latency_us", "2.0"),
    ];
    all.extend(set);
    named("v100", &all)
}

const LATENCY: u64 = 2000;

fn copy(direction: CopyDirection, bytes: u64, stream: Option<u64>) -> Command {
    Command::Copy(MemoryCopy { direction, address: 0x10_0000, bytes, stream })
}

fn to_device(bytes: u64, stream: Option<u64>) -> Command {
    copy(CopyDirection::HostToDevice, bytes, stream)
}

fn to_host(bytes: u64, stream: Option<u64>) -> Command {
    copy(CopyDirection::DeviceToHost, bytes, stream)
}

fn launch(kernel: u32, stream: u64) -> Command {
    Command::Launch { kernel: KernelId(kernel), stream }
}

/// A run of `commands`, whose launches are of small kernels of one application.
fn run(resolved: &Resolved, commands: &[Command]) -> Outcome {
    run_lines(resolved, commands, &[line("FADD", Some(1), Some(1))])
}

fn run_lines(resolved: &Resolved, commands: &[Command], lines: &[Line]) -> Outcome {
    let launches = commands.iter().filter(|one| matches!(one, Command::Launch { .. })).count();
    let scripts = (0..launches).map(|_| Script::new(resolved, lines, 1, 1, 32)).collect();
    let fixture = Scripts::new(scripts).of_one_app(commands.to_vec());
    fixture.under(resolved, &plan(resolved, &[8], PlanDraft::default()))
}

#[test]
fn a_copy_takes_its_latency_and_its_bytes() {
    let resolved = linked(&[]);
    for bytes in [0, 1, 10, 1_000_000, 123_456_789] {
        let outcome = run(&resolved, &[to_device(bytes, None), launch(0, 0)]);
        let cycles = LATENCY + bytes.div_ceil(10);
        assert_eq!(outcome.kernels[0].start, cycles, "{bytes} bytes");
        let used = outcome.apps[0].link;
        assert_eq!((used.copies[0], used.bytes[0], used.copy_cycles), (1, bytes, cycles));
    }
    let back = run(&resolved, &[launch(0, 0), to_host(1_000_000, None)]);
    assert_eq!(back.cycles, back.kernels[0].end + LATENCY + 200_000, "its end is the last copy's");
}

#[test]
fn copies_of_one_direction_share_its_engine_and_others_have_their_own() {
    let resolved = linked(&[]);
    let cycles = |second| {
        let list = [launch(0, 9), to_device(1_000_000, Some(1)), second];
        run(&resolved, &list).apps[0].link.copy_cycles
    };
    // Their latencies overlap.
    assert_eq!(cycles(to_device(1_000_000, Some(2))), LATENCY + 200_000);
    assert_eq!(cycles(to_host(500_000, Some(2))), LATENCY + 100_000);
    assert_eq!(cycles(to_host(1_000_000, Some(2))), LATENCY + 200_000);
    // In one stream one waits for the other, latency and all.
    assert_eq!(cycles(to_host(500_000, Some(1))), 2 * LATENCY + 200_000);
}

#[test]
fn applications_share_the_engines() {
    let resolved = linked(&[]);
    let script = || Script::new(&resolved, &[line("FADD", Some(1), Some(1))], 1, 1, 32);
    let fixture = Scripts::new(vec![script(), script()]);
    let copying = |load: &mut Load| load.commands.insert(0, to_device(1_000_000, None));
    let fixture = fixture.with(0, copying).with(1, copying);
    let outcome = fixture.under(&resolved, &plan(&resolved, &[8, 8], PlanDraft::default()));
    let starts = [outcome.kernels[0].start, outcome.kernels[1].start];
    assert_eq!(starts, [LATENCY + 100_000, LATENCY + 200_000]);
}

#[test]
fn who_copies_does_not_starve_while_others_run_again_and_again() {
    let resolved = linked(&[]);
    let script = || Script::new(&resolved, &[line("FADD", Some(1), Some(1))], 1, 1, 32);
    let copying = |load: &mut Load| load.commands.insert(0, to_device(10_000_000, None));
    let again = |load: &mut Load| load.relaunches = true;
    let fixture = Scripts::new(vec![script(), script()]).with(0, copying);
    let fixture = fixture.with(0, again).with(1, again);
    let outcome = fixture.under(&resolved, &plan(&resolved, &[8, 8], PlanDraft::default()));
    assert!(outcome.apps[1].runs > 64, "{} runs", outcome.apps[1].runs);
    assert_eq!(outcome.kernels[0].start, LATENCY + 1_000_000);
}

#[test]
fn a_launch_waits_for_the_copy_of_its_stream_alone() {
    let resolved = linked(&[]);
    let copy = to_device(1_000_000, Some(1));
    let outcome = run(&resolved, &[copy, launch(0, 1), launch(1, 2)]);
    assert_eq!([outcome.kernels[0].start, outcome.kernels[1].start], [LATENCY + 100_000, 0]);
    // And a copy for the launch of its stream; the legacy default stream waits for both.
    let outcome = run(&resolved, &[launch(0, 1), copy, launch(1, 2), launch(2, 0)]);
    let copied = outcome.kernels[0].end + LATENCY + 100_000;
    assert_eq!([outcome.kernels[1].start, outcome.kernels[2].start], [0, copied]);
    let own = linked(&[("quirks.per_thread_default_stream", "true")]);
    assert_eq!(run(&own, &[copy, launch(0, 1), launch(1, 0)]).kernels[1].start, 0);
}

#[test]
fn a_copy_within_the_device_reads_and_writes_at_a_share_of_the_peak() {
    let resolved = linked(&[("link.device_copy_percent", "50.0")]);
    let bytes = 100_000_000;
    let outcome = run(&resolved, &[copy(CopyDirection::DeviceToDevice, bytes, None), launch(0, 0)]);
    let (standard, _) = crate::testkit::memory_of(&resolved);
    let machine = &resolved.machine;
    let peak = standard.peak_bytes_per_clock()
        * f64::from(machine.dram.channels)
        * machine.clocks.dram_mhz.unwrap()
        / 1000.0;
    let moved = f64::from(u32::try_from(2 * bytes).unwrap()) / (peak / 2.0);
    let took = f64::from(u32::try_from(outcome.kernels[0].start - LATENCY).unwrap());
    assert!((took - moved).abs() <= 1.0, "{took} cycles, {moved} expected");
}

#[test]
fn without_the_option_copies_are_over_at_once() {
    let resolved = linked(&[("link.copies", "false")]);
    let list = [to_device(1_000_000, None), launch(0, 0), to_host(1_000_000, Some(1))];
    let outcome = run(&resolved, &list);
    let bare = run(&named("v100", &[("clocks.core_mhz", "1000.0")]), &list[1..2]);
    assert_eq!((outcome.cycles, outcome.kernels[0].start), (bare.cycles, 0));
    assert_eq!(outcome.apps[0].link, LinkUse::default());
}

/// Bytes of a page that faults.
const PAGE: u64 = 1 << 16;

/// Cycles that it takes over the link.
const PAGE_CYCLES: u64 = PAGE.div_ceil(10);

fn managed() -> Resolved {
    linked(&[
        ("link.copies", "false"),
        ("link.managed", "all"),
        ("link.fault_us", "20.0"),
        ("link.fault_bytes", "65536"),
    ])
}

/// Loads of `lines`, one behind the other, of the word at a number times `stride`.
fn loads(stride: u64) -> Vec<Line> {
    let load = memory("LDG.E", Some(2), Some(2), move |_, _, turn| (0x10_0000 + turn * stride, 0));
    vec![load, load]
}

#[test]
fn the_first_touch_of_a_managed_page_brings_it() {
    let (resolved, plain) = (managed(), linked(&[("link.copies", "false")]));
    let cycles = |resolved: &Resolved, lines: &[Line]| {
        let outcome = run_lines(resolved, &[launch(0, 0)], lines);
        (outcome.cycles, outcome.apps[0].link)
    };
    let (one, base) = (loads(0), cycles(&plain, &loads(0)).0);
    let (took, used) = cycles(&resolved, &one);
    // The code comes from memory meanwhile.
    let (added, all) = (took - base, 20_000 + PAGE_CYCLES);
    assert!((all - 500..=all).contains(&added), "one page, though touched twice: {added}");
    assert_eq!((used.faults, used.fault_bytes, used.fault_cycles), (1, PAGE, 20_000 + PAGE_CYCLES));
    assert_eq!(used.copies, [0; 3]);
}

#[test]
fn a_copy_brings_its_pages_and_a_write_faults_too() {
    let resolved = managed();
    let store = memory("STG.E", None, Some(2), |cta, warp, _| (0x10_0000 + cta + warp, 4));
    let faults = |commands: &[Command], lines: &[Line]| {
        run_lines(&resolved, commands, lines).apps[0].link.faults
    };
    assert_eq!(faults(&[launch(0, 0)], &[store]), 1);
    assert_eq!(faults(&[to_device(4, None), launch(0, 0)], &[store]), 0);
    assert_eq!(faults(&[launch(0, 0), launch(1, 0)], &[store]), 1, "it stays");
}

#[test]
fn faults_wait_together_and_their_pages_come_one_by_one() {
    let resolved = managed();
    // A warp's lanes touch 32 pages.
    let load = memory("LDG.E", Some(2), None, |_, _, _| (0x10_0000, 1 << 16));
    let use_it = line("FADD", Some(3), Some(2));
    let outcome = run_lines(&resolved, &[launch(0, 0)], &[load, use_it]);
    let used = outcome.apps[0].link;
    assert_eq!(used.faults, 32);
    let least = 20_000 + 32 * PAGE_CYCLES;
    assert!((least..least + 100).contains(&used.fault_cycles), "{}", used.fault_cycles);
}
