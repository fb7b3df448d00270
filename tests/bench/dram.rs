//! How many accesses does one channel serve per second of CPU time?
//!
//! `cargo bench --bench dram`; items are native accesses. Requests are made
//! before, so only the channel is measured.
#![allow(missing_docs)]

use std::collections::BTreeMap;

use divan::Bencher;
use divan::counter::ItemsCount;
use gpumodel::sim::config::{Mapping, MemoryStandard};
use gpumodel::sim::dram::{Channel, ControllerOptions, Done, Request};

const ACCESSES: u32 = 100_000;
const STANDARDS: [&str; 4] = ["ugpu-hbm", "hbm2-pc", "v100-hbm2", "warped-slicer-gddr5"];

fn main() {
    divan::main();
}

/// A permutation-free pseudo-random sequence.
fn random(state: &mut u64) -> u32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    u32::try_from(*state >> 33).expect("31 bits")
}

/// Bank groups change with every access, rows last.
fn stream(standard: &MemoryStandard) -> Vec<Request> {
    let place = |token: u32| {
        let mut rest = token;
        let mut take = |count: u32| {
            let part = rest % count;
            rest /= count;
            part
        };
        let pseudo_channel = take(standard.pseudo_channels);
        let bank_group = take(standard.bank_groups);
        let column = take(standard.columns);
        let bank = take(standard.banks_per_group);
        let row = take(standard.rows);
        Request { token, write: false, pseudo_channel, bank_group, bank, row, column }
    };
    (0..ACCESSES).map(place).collect()
}

/// Everything at random, every third access writes.
fn scattered(standard: &MemoryStandard) -> Vec<Request> {
    let mut state = 1;
    let place = |token: u32| Request {
        token,
        write: random(&mut state).is_multiple_of(3),
        pseudo_channel: random(&mut state) % standard.pseudo_channels,
        bank_group: random(&mut state) % standard.bank_groups,
        bank: random(&mut state) % standard.banks_per_group,
        row: random(&mut state) % standard.rows,
        column: random(&mut state) % standard.columns,
    };
    (0..ACCESSES).map(place).collect()
}

/// Offers a request every `gap` clocks, or as fast as the queue takes them.
fn serve(standard: &MemoryStandard, options: &ControllerOptions, requests: &[Request], gap: u64) {
    let mut channel = Channel::new(standard, options);
    let mut done: Vec<Done> = Vec::with_capacity(256);
    let (mut clock, mut arrival) = (0, 0);
    let mut waiting = requests.iter().copied().peekable();
    while waiting.peek().is_some() || !channel.is_idle() {
        channel.advance(clock, &mut done);
        done.clear();
        while let Some(request) = waiting.next_if(|r| arrival <= clock && channel.room(r.write)) {
            channel.push(clock, request);
            arrival += gap;
        }
        let next = channel.next_event().unwrap_or(u64::MAX);
        let ahead = if arrival > clock && waiting.peek().is_some() { arrival } else { u64::MAX };
        clock = next.min(ahead);
    }
}

fn load(name: &str) -> MemoryStandard {
    MemoryStandard::load(name, &gpumodel::models(), &BTreeMap::new()).expect("a shipped standard")
}

fn measure(
    bencher: Bencher<'_, '_>,
    name: &str,
    make: fn(&MemoryStandard) -> Vec<Request>,
    gap: u64,
) {
    let standard = load(name);
    let requests = make(&standard);
    bencher
        .counter(ItemsCount::new(ACCESSES))
        .bench(|| serve(&standard, &standard.controller, &requests, gap));
}

#[divan::bench(args = STANDARDS, sample_count = 10)]
fn saturated_stream(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, stream, 0);
}

#[divan::bench(args = STANDARDS, sample_count = 10)]
fn saturated_random(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, scattered, 0);
}

#[divan::bench(args = STANDARDS, sample_count = 10)]
fn light_random(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, scattered, 20);
}

#[divan::bench(args = ["accelsim-qv100", "volta", "ampere", "ugpu"], sample_count = 20)]
fn locate(bencher: Bencher<'_, '_>, name: &str) {
    let channels = if name == "ampere" { 40 } else { 32 };
    let mapping = Mapping::load(name, &gpumodel::models()).expect("a shipped mapping");
    let map = mapping.for_machine(channels, 2).expect("a machine of that size");
    bencher.counter(ItemsCount::new(ACCESSES)).bench(|| {
        (0..u64::from(ACCESSES)).fold(0, |sum, i| sum ^ map.locate(i * 4096 + (i << 7)).row)
    });
}
