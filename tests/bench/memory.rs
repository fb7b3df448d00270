//! How many sector requests go through the whole memory path per second of CPU
//! time, from the load/store unit to the pins and back? And how much sooner on several threads?
//!
//! `cargo bench --bench memory`; items are sectors. Loads bypass the L1.

mod traffic;

use divan::Bencher;
use divan::counter::ItemsCount;
use rayon::ThreadPoolBuilder;
use traffic::{Pattern, Traffic, machine};

fn main() {
    divan::main();
}

/// `+line`: with requests by line.
const MACHINES: [&str; 5] = ["accelsim-qv100", "v100", "gv100", "gv100+line", "ugpu"];

/// Bytes that the L2 of every machine holds.
const RESIDENT: u64 = 1 << 20;

/// Bytes that no run reaches the end of.
const ENDLESS: u64 = 1 << 40;

fn measure(bencher: Bencher<'_, '_>, name: &str, pattern: Pattern, turns: u64) {
    measure_on(bencher, 1, name, (pattern, turns));
}

fn measure_on(
    bencher: Bencher<'_, '_>,
    threads: usize,
    name: &str,
    (pattern, turns): (Pattern, u64),
) {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
    let resolved = machine(name);
    let traffic = Traffic::new(&resolved, pattern, 80, turns);
    let sectors = ItemsCount::new(traffic.sectors());
    bencher.counter(sectors).bench(|| pool.install(|| traffic.run(&resolved)));
}

/// Streams of 16 bytes per lane over a region that the L2 holds.
#[divan::bench(args = MACHINES, sample_count = 5)]
fn l2_hits(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Pattern::Stream { width: 16, span: RESIDENT }, 20);
}

/// The same with 4 bytes per lane: four times the instructions per sector.
#[divan::bench(args = MACHINES, sample_count = 5)]
fn l2_hits_narrow(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Pattern::Stream { width: 4, span: RESIDENT }, 80);
}

/// Streams that never come back.
#[divan::bench(args = MACHINES, sample_count = 5)]
fn dram_stream(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Pattern::Stream { width: 4, span: ENDLESS }, 40);
}

/// Random sectors of a gigabyte.
#[divan::bench(args = MACHINES, sample_count = 5)]
fn dram_random(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Pattern::Scatter { span: 1 << 30 }, 8);
}

/// The same by number of threads: controllers go ahead of the machine.
#[divan::bench(args = [1, 2, 4], sample_count = 5)]
fn dram_random_on_threads(bencher: Bencher<'_, '_>, threads: usize) {
    measure_on(bencher, threads, "v100", (Pattern::Scatter { span: 1 << 30 }, 8));
}

/// Streams that never come back, by number of threads.
#[divan::bench(args = [1, 2, 4], sample_count = 5)]
fn dram_stream_on_threads(bencher: Bencher<'_, '_>, threads: usize) {
    measure_on(bencher, threads, "v100", (Pattern::Stream { width: 4, span: ENDLESS }, 40));
}
