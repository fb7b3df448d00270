//! How many sector requests go through the whole memory path per second of CPU
//! time, from the load/store unit to the pins and back?
//!
//! `cargo bench --bench memory`; items are sectors.

mod traffic;

use divan::Bencher;
use divan::counter::ItemsCount;
use traffic::{Pattern, Traffic, machine};

fn main() {
    divan::main();
}

const MACHINES: [&str; 3] = ["accelsim-qv100", "gv100", "ugpu"];

fn measure(bencher: Bencher<'_, '_>, name: &str, pattern: Pattern, ctas: u32, turns: u64) {
    let resolved = machine(name);
    let traffic = Traffic::new(&resolved, pattern, ctas, turns);
    bencher.counter(ItemsCount::new(traffic.sectors())).bench(|| traffic.run(&resolved));
}

/// Streams over a region that the L2 holds.
#[divan::bench(args = MACHINES, sample_count = 5)]
fn l2_hits(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Pattern::Stream { span: 1 << 20 }, 320, 20);
}

/// Streams that never come back.
#[divan::bench(args = MACHINES, sample_count = 5)]
fn dram_stream(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Pattern::Stream { span: 1 << 40 }, 320, 20);
}

/// Random sectors of a gigabyte.
#[divan::bench(args = MACHINES, sample_count = 5)]
fn dram_random(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Pattern::Scatter { span: 1 << 30 }, 320, 2);
}
