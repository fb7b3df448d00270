//! A naive slice, with which the fast one must agree request by request, by sector and by line.

use std::sync::Arc;

use proptest::prelude::*;

use super::slice::{Arrived, Outcome, Slice};
use crate::CacheCounts;
use crate::cache::naive::{Did, Naive, caches, written_bytes};
use crate::config::{
    AddressMap, AllocatePolicy, Cache, Machine, Mapping, Models, RequestGranularity, WritePolicy,
};
use crate::memory::packet::{Leg, Origin, Packet, RequestKind};

/// The outcome of a request without its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plainly {
    Answer,
    Merged,
    Fetch,
    Refused,
}

/// What became of one sector of those that a request asked for.
fn plainly(outcome: Outcome, asked: u8, sector: u8) -> Plainly {
    let Outcome { answered, fetched, refused, .. } = outcome;
    assert_eq!(answered & (fetched | refused) | fetched & refused, 0, "one outcome each");
    assert_eq!((answered | fetched | refused) & !asked, 0, "none that was not asked for");
    match sector {
        _ if answered & sector != 0 => Plainly::Answer,
        _ if fetched & sector != 0 => Plainly::Fetch,
        _ if refused & sector != 0 => Plainly::Refused,
        _ => Plainly::Merged,
    }
}

/// A simple slice: lines, and a list of misses with the requests that wait and whether they
/// write.
struct Plain {
    cache: Naive,
    spec: Cache,
    waiting: Vec<(u64, Vec<(u32, bool)>)>,
}

impl Plain {
    fn serve(&mut self, number: u32, packet: &Packet) -> Plainly {
        let here = self.cache.sector(packet.address).here;
        match packet.kind {
            RequestKind::Read | RequestKind::Code | RequestKind::Constant if here => {
                self.cache.counts.read_hits += 1;
                self.cache.use_line(packet.address);
                Plainly::Answer
            }
            RequestKind::Read | RequestKind::Code | RequestKind::Constant => {
                self.wait(packet.address, (number, false))
            }
            RequestKind::Atomic | RequestKind::Reduction if here => {
                self.cache.counts.write_hits += 1;
                self.cache.use_line(packet.address);
                self.change(packet.address, packet.bytes);
                Plainly::Answer
            }
            RequestKind::Atomic | RequestKind::Reduction => {
                self.wait(packet.address, (number, true))
            }
            RequestKind::Write | RequestKind::WriteBack => {
                match self.cache.write(packet.address, packet.bytes, false) {
                    Did::Kept => Plainly::Answer,
                    Did::Down => {
                        self.cache.written_back.push((packet.address, packet.bytes));
                        Plainly::Answer
                    }
                    Did::NoWay => Plainly::Refused,
                    Did::Pending | Did::Fetch => self.wait(packet.address, (number, true)),
                }
            }
        }
    }

    /// Changes a present sector, and memory where the policy writes it.
    fn change(&mut self, address: u64, bytes: u32) {
        let policy = self.spec.write;
        let (kept, evicts) = (policy == WritePolicy::WriteBack, policy == WritePolicy::WriteEvict);
        let present = self.cache.has_line(address);
        if present {
            self.cache.change(address, |s| (s.dirty, s.here) = (s.dirty || kept, !evicts));
        }
        if !kept || !present {
            self.cache.written_back.push((address, bytes));
        }
    }

    fn wait(&mut self, address: u64, waiter: (u32, bool)) -> Plainly {
        let limit = self.spec.mshr_merge as usize;
        if let Some((_, waiters)) = self.waiting.iter_mut().find(|(a, _)| *a == address) {
            if waiters.len() == limit {
                return Plainly::Refused;
            }
            waiters.push(waiter);
            let counts = &mut self.cache.counts;
            *(if waiter.1 { &mut counts.write_merges } else { &mut counts.read_merges }) += 1;
            return Plainly::Merged;
        }
        if self.waiting.len() == self.spec.mshr_entries as usize {
            return Plainly::Refused;
        }
        if self.spec.allocate == AllocatePolicy::OnMiss {
            if !self.cache.allocate(address) {
                return Plainly::Refused;
            }
            self.cache.change(address, |s| s.coming = true);
        }
        self.waiting.push((address, vec![waiter]));
        let counts = &mut self.cache.counts;
        *(if waiter.1 { &mut counts.write_misses } else { &mut counts.read_misses }) += 1;
        Plainly::Fetch
    }

    fn fill(&mut self, address: u64) -> Vec<u32> {
        if self.spec.allocate == AllocatePolicy::OnFill && !self.cache.has_line(address) {
            self.cache.allocate(address);
        }
        if self.cache.has_line(address) {
            self.cache.change(address, |s| (s.here, s.coming) = (true, false));
        }
        let place = self.waiting.iter().position(|(a, _)| *a == address).unwrap();
        let (_, waiters) = self.waiting.remove(place);
        if waiters.iter().any(|&(_, writes)| writes) {
            self.change(address, u32::MAX);
        }
        waiters.into_iter().map(|(number, _)| number).collect()
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// For sectors of a line, one bit each.
    Request(RequestKind, u64, u8, u32),
    /// The data of some outstanding misses of a line arrives.
    Fill(usize, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop::sample::select(vec![
        RequestKind::Read,
        RequestKind::Read,
        RequestKind::Write,
        RequestKind::WriteBack,
        RequestKind::Atomic,
        RequestKind::Reduction,
    ]);
    let request = (kind, 0..40_u64, 1_u8.., written_bytes())
        .prop_map(|(kind, line, sectors, bytes)| Step::Request(kind, line * 256, sectors, bytes));
    let fill = any::<(usize, u8)>().prop_map(|(which, sectors)| Step::Fill(which, sectors));
    prop::collection::vec(prop_oneof![3 => request, 1 => fill], 1..300)
}

fn machine(cache: Cache, by_line: bool) -> Machine {
    let mut machine = Models::builtin().machine("accelsim-qv100", &[]).unwrap().machine;
    if by_line {
        machine.interconnect.request_granularity = RequestGranularity::Line;
    }
    machine.l2.cache = cache;
    machine
}

/// Addresses that all lie in one slice.
fn whole() -> Arc<AddressMap> {
    Arc::new(
        Mapping::load("ampere", &gpumodel_models::builtin()).unwrap().for_machine(1, 1).unwrap(),
    )
}

fn packet(kind: RequestKind, address: u64, bytes: u32) -> Packet {
    Packet {
        address,
        virtual_address: address,
        ready: 0,
        operation: 0,
        kernel: 0,
        bytes,
        sectors: 1,
        mask: 0,
        more_turns: 0,
        sm: 0,
        slice: 0,
        kind,
        fills_l1: false,
        origin: Origin::Sm,
        leg: Leg::Near,
    }
}

/// A slice and a simple one, which takes the sectors of a request one after the other.
struct Pair {
    slice: Slice,
    plain: Plain,
    by_line: bool,
    counts: CacheCounts,
}

impl Pair {
    /// The addresses of sectors of a line.
    fn addresses(&self, line: u64, sectors: u8) -> Vec<u64> {
        let bytes = u64::from(self.plain.spec.sector_bytes);
        let number = u64::from(self.plain.spec.line_bytes) / bytes;
        let line = line / (number * bytes) * number * bytes;
        let asked = (0..number).filter(|one| sectors >> one & 1 == 1);
        asked.map(|one| line + one * bytes).collect()
    }

    /// Masks of the sectors at addresses of one line, as the slice is asked for them.
    fn requests(&self, addresses: &[u64]) -> Vec<(u64, u8)> {
        let bit = |address: &u64| (*address, self.slice.tags.sector_bit(*address));
        let each: Vec<(u64, u8)> = addresses.iter().map(bit).collect();
        match (self.by_line, each.first()) {
            (true, Some(&(first, _))) => {
                vec![(first, each.iter().fold(0, |all, (_, sector)| all | sector))]
            }
            _ => each,
        }
    }

    fn request(&mut self, number: u32, kind: RequestKind, addresses: &[u64], bytes: u32) {
        for (first, asked) in self.requests(addresses) {
            let packet = packet(kind, first, bytes);
            let now = u64::from(number);
            let outcome = self.slice.serve(number, &packet, asked, now, &mut self.counts);
            for &address in addresses {
                let sector = self.slice.tags.sector_bit(address);
                if asked & sector != 0 {
                    let packet = Packet { address, ..packet };
                    let plain = self.plain.serve(number, &packet);
                    assert_eq!(plainly(outcome, asked, sector), plain, "{packet:?}");
                }
            }
        }
    }

    /// Data arrives: the written back sectors of both are then compared in any order.
    fn fill(&mut self, number: u32, addresses: &[u64]) {
        let mut answered = Vec::new();
        for (first, sectors) in self.requests(addresses) {
            let mut answers = Vec::new();
            self.slice.fill(first, sectors, u64::from(number), &mut answers);
            answered.extend(answers.into_iter().flat_map(|Arrived { packet, sectors, .. }| {
                vec![packet; sectors.count_ones() as usize]
            }));
        }
        let mut plain: Vec<u32> = addresses.iter().flat_map(|a| self.plain.fill(*a)).collect();
        if self.by_line {
            answered.sort_unstable();
            plain.sort_unstable();
        }
        assert_eq!(answered, plain);
    }

    fn compare(&mut self, sorted: bool) {
        assert_eq!(self.counts, self.plain.cache.counts);
        let written = std::iter::from_fn(|| self.slice.next_write_back());
        let mut written: Vec<(u64, u32)> = written.map(|(l, _)| (l.address, l.bytes)).collect();
        let mut plain = std::mem::take(&mut self.plain.cache.written_back);
        if sorted {
            written.sort_unstable();
            plain.sort_unstable();
        }
        assert_eq!(written, plain);
    }
}

fn check(cache: Cache, by_line: bool, steps: &[Step]) {
    let plain = Plain { cache: Naive::new(&cache, 0), spec: cache.clone(), waiting: vec![] };
    let by_line = by_line && cache.sector_bytes == 32 && cache.line_bytes <= 128;
    let slice = Slice::new(&machine(cache, by_line), &whole(), 32);
    let mut pair = Pair { slice, plain, by_line, counts: CacheCounts::default() };
    for (number, step) in (0_u32..).zip(steps) {
        let waiting = &pair.plain.waiting;
        match *step {
            Step::Request(kind, line, sectors, bytes) => {
                pair.request(number, kind, &pair.addresses(line, sectors), bytes);
            }
            Step::Fill(which, sectors) if !waiting.is_empty() => {
                let (address, _) = waiting[which % waiting.len()];
                let wanted = sectors | pair.slice.tags.sector_bit(address);
                let waits = |one: &u64| waiting.iter().any(|(a, _)| a == one);
                let came = pair.addresses(address, wanted).into_iter().filter(waits);
                pair.fill(number, &came.collect::<Vec<_>>());
            }
            Step::Fill(..) => {}
        }
        pair.compare(pair.by_line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn the_slice_does_what_a_plain_one_does(
        cache in caches(),
        by_line in any::<bool>(),
        steps in steps(),
    ) {
        check(cache, by_line, &steps);
    }
}

#[test]
fn a_copy_stays_until_a_store_of_the_other_half_or_an_atomic_ends_it() {
    let plain = Models::builtin().machine("a100", &[]).unwrap().machine;
    let mut slice = Slice::new(&plain, &whole(), 32);
    let far = |kind| Packet { mask: 0b0110, leg: Leg::Far, ..packet(kind, 0x1020, u32::MAX) };
    let found = |slice: &mut Slice, kind| {
        let mut counts = CacheCounts::default();
        let outcome = slice.serve(0, &far(kind), 0b0110, 0, &mut counts);
        assert_eq!((outcome.refused, outcome.fetched), (0, 0));
        (outcome.answered, counts.accesses())
    };
    assert_eq!(found(&mut slice, RequestKind::Read), (0, 0), "the home counts what is not here");
    slice.keep_copy(0x1020, 0b0110, 0);
    assert_eq!(found(&mut slice, RequestKind::Read), (0b0110, 2));
    assert_eq!(found(&mut slice, RequestKind::Write), (0, 0));
    assert_eq!(found(&mut slice, RequestKind::Read), (0b0110, 2), "a store changes the copy");
    slice.end_copy(0x1020, 0b0010);
    assert_eq!(found(&mut slice, RequestKind::Read), (0b0100, 1));
    assert_eq!(found(&mut slice, RequestKind::Reduction), (0, 0));
    assert_eq!(found(&mut slice, RequestKind::Read), (0, 0));
}

#[test]
fn lanes_of_one_word_hold_the_slice_once_and_answers_wait_for_them() {
    let plain = Models::builtin().machine("rtx-2060", &[]).unwrap().machine;
    let mut slice = Slice::new(&plain, &whole(), 32);
    let atomic = Packet { mask: 0b0110, more_turns: 31, ..packet(RequestKind::Atomic, 0x1020, 0) };
    let mut counts = CacheCounts::default();
    // Misses: both sectors are fetched at once, the slice is busy for 33 look-ups.
    let missed = slice.serve(0, &atomic, 0b0110, 100, &mut counts);
    assert_eq!((missed.fetched, missed.at), (0b0110, 101));
    let other = packet(RequestKind::Read, 0x2000, 0);
    assert_eq!(slice.serve(1, &other, slice.sectors_of(&other), 100, &mut counts).at, 134);
    // Its second sector takes a turn alone, as its first one took those of the word.
    assert_eq!((atomic.part(0b0100).more_turns, atomic.part(0b0010).more_turns), (0, 31));
    let answered = slice.pass(&atomic, 0b0110, 200, &mut counts);
    assert_eq!(answered.at, 232, "the word's lanes come one after the other");
    assert_eq!(slice.pass(&other, 1, 200, &mut counts).at, 234);
}
