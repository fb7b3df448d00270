//! A plain L2 slice beside the real one, access by access.

use std::sync::Arc;

use proptest::prelude::*;

use super::slice::{Outcome, Slice};
use crate::CacheCounts;
use crate::cache::naive::{Did, Naive, caches, sector_start, written_bytes};
use crate::config::{AddressMap, AllocatePolicy, Cache, Machine, Mapping, Models, WritePolicy};
use crate::memory::packet::{Origin, Packet, RequestKind};

/// What became of a request, without its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plainly {
    Answer,
    Merged,
    Fetch,
    Refused,
}

impl From<Outcome> for Plainly {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answer(_) => Self::Answer,
            Outcome::Merged => Self::Merged,
            Outcome::Fetch(_) => Self::Fetch,
            Outcome::Refused => Self::Refused,
        }
    }
}

/// The slice in plain words: lines, and a list of misses with who waits, and
/// whether it writes.
struct Plain {
    cache: Naive,
    spec: Cache,
    waiting: Vec<(u64, Vec<(u32, bool)>)>,
}

impl Plain {
    fn serve(&mut self, number: u32, packet: &Packet) -> Plainly {
        let here = self.cache.sector(packet.address).here;
        match packet.ask {
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
                        self.cache.left.push((packet.address, packet.bytes));
                        Plainly::Answer
                    }
                    Did::NoWay => Plainly::Refused,
                    Did::Joins | Did::Fetch => self.wait(packet.address, (number, true)),
                }
            }
        }
    }

    /// Changes a sector that is there, and memory where the policy writes it.
    fn change(&mut self, address: u64, bytes: u32) {
        let policy = self.spec.write;
        let (kept, evicted) = (policy == WritePolicy::WriteBack, policy == WritePolicy::WriteEvict);
        let there = self.cache.has_line(address);
        if there {
            self.cache.change(address, |s| (s.dirty, s.here) = (s.dirty || kept, !evicted));
        }
        if !kept || !there {
            self.cache.left.push((address, bytes));
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
            if !self.cache.take_line(address) {
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
            self.cache.take_line(address);
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
    RequestKind(RequestKind, u64, u32),
    /// One of the outstanding misses comes back.
    Fill(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let address = (0..40_u64, 0..8_u64).prop_map(|(line, sector)| line * 256 + sector * 32);
    let ask = prop::sample::select(vec![
        RequestKind::Read,
        RequestKind::Read,
        RequestKind::Write,
        RequestKind::WriteBack,
        RequestKind::Atomic,
        RequestKind::Reduction,
    ]);
    let step = prop_oneof![
        3 => (ask, address, written_bytes()).prop_map(|(ask, address, bytes)| Step::RequestKind(ask, address, bytes)),
        1 => any::<usize>().prop_map(Step::Fill),
    ];
    prop::collection::vec(step, 1..300)
}

fn machine(cache: Cache) -> Machine {
    let mut machine = Models::builtin().machine("accelsim-qv100", &[]).unwrap().machine;
    machine.l2.cache = cache;
    machine
}

/// Addresses that all lie in one slice.
fn whole() -> Arc<AddressMap> {
    Arc::new(
        Mapping::load("volta", &gpumodel_models::builtin()).unwrap().for_machine(1, 1).unwrap(),
    )
}

fn packet(ask: RequestKind, address: u64, bytes: u32) -> Packet {
    Packet {
        address,
        asked: address,
        ready: 0,
        operation: 0,
        kernel: 0,
        bytes,
        sectors: 1,
        sm: 0,
        slice: 0,
        ask,
        fills_l1: false,
        origin: Origin::Sm,
    }
}

fn check(cache: Cache, steps: &[Step]) {
    let mut plain = Plain { cache: Naive::new(&cache, 0), spec: cache.clone(), waiting: vec![] };
    let mut slice = Slice::new(&machine(cache.clone()), &whole(), 32);
    let mut counts = CacheCounts::default();
    for (number, step) in (0_u32..).zip(steps) {
        match *step {
            Step::RequestKind(ask, address, bytes) => {
                let packet = packet(ask, sector_start(&cache, address), bytes);
                let outcome = slice.serve(number, &packet, u64::from(number), &mut counts);
                assert_eq!(Plainly::from(outcome), plain.serve(number, &packet), "{packet:?}");
            }
            Step::Fill(which) if !plain.waiting.is_empty() => {
                let (address, _) = plain.waiting[which % plain.waiting.len()];
                let mut answers = Vec::new();
                slice.fill(address, u64::from(number), &mut answers);
                let answered: Vec<u32> = answers.into_iter().map(|(number, _)| number).collect();
                assert_eq!(answered, plain.fill(address));
            }
            Step::Fill(_) => {}
        }
        assert_eq!(counts, plain.cache.counts);
        let leaving = std::iter::from_fn(|| slice.next_leaving());
        let left: Vec<(u64, u32)> = leaving.map(|(l, _)| (l.address, l.bytes)).collect();
        assert_eq!(left, std::mem::take(&mut plain.cache.left));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn the_slice_does_what_a_plain_one_does(cache in caches(), steps in steps()) {
        check(cache, &steps);
    }
}
