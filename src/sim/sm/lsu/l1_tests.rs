//! Facts of the L1, and a naive L1 that must agree access by access.

use proptest::prelude::*;

use super::l1::{L1, Read, Write, ways_left_by};
use crate::CacheCounts;
use crate::cache::naive::{Did, Naive, caches, sector_start, spec, written_bytes};
use crate::config::{
    AllocatePolicy, BankConflicts, Cache, L1Spec, SharedSpec, WriteMiss, WritePolicy,
};
use crate::sm::coalesce::LOCAL_BASE;

fn with(cache: Cache) -> L1Spec {
    L1Spec {
        bank_bytes: 0,
        returns_per_cycle: 0,
        caches_global: true,
        cache,
        unified_bytes: 0,
        carve_outs_bytes: vec![],
        latency_cycles: 28,
        banks: 4,
        tags_per_cycle: 4,
        dirty_percent: 0,
        queue: 8,
        flushed_at_kernel_start: true,
    }
}

/// An L1 that shares its array: 128 KB at most.
fn unified() -> L1Spec {
    let kilobytes = [0, 8, 16, 32, 64, 96];
    L1Spec {
        unified_bytes: 128 * 1024,
        carve_outs_bytes: kilobytes.map(|size| size * 1024).to_vec(),
        ..with(spec(4, 256))
    }
}

fn shared(bytes: u32) -> SharedSpec {
    SharedSpec {
        bytes,
        unit_bytes: 256,
        reserved_bytes_per_cta: 0,
        latency_cycles: 1,
        banks: 32,
        bank_bytes: 4,
        conflicts: BankConflicts::AllWords,
    }
}

/// An L1 at its largest size.
fn ready(spec: &L1Spec) -> L1 {
    let mut l1 = L1::new(spec);
    l1.prepare(0, &shared(0));
    l1
}

fn read(l1: &mut L1, address: u64) -> Read {
    l1.read(address, 0, &mut CacheCounts::default())
}

fn write(l1: &mut L1, address: u64, bytes: u32) -> Write {
    l1.write(address, bytes, 0, &mut CacheCounts::default())
}

#[test]
fn the_carve_out_takes_the_smallest_size_that_holds_the_kernel() {
    for (shared_bytes, ways) in [
        (0, 256),
        (1, 240),
        (8 * 1024, 240),
        (8 * 1024 + 1, 224),
        (16 * 1024, 224),
        (40 * 1024, 128),
        (64 * 1024, 128),
        (64 * 1024 + 1, 64),
        (96 * 1024, 64),
    ] {
        assert_eq!(ways_left_by(&unified(), shared_bytes), ways, "{shared_bytes} bytes");
    }
    assert_eq!(ways_left_by(&with(spec(4, 2)), 96 * 1024), 2, "an array of its own");
}

#[test]
fn an_l1_that_is_not_flushed_keeps_its_lines_while_its_size_stays() {
    let mut l1 = ready(&L1Spec { flushed_at_kernel_start: false, ..unified() });
    assert_eq!(read(&mut l1, 0x1000), Read::Miss);
    l1.fill(0x1000, &mut Vec::new());
    l1.prepare(0, &shared(96 * 1024));
    assert_eq!(read(&mut l1, 0x1000), Read::Hit);
    l1.prepare(1, &shared(96 * 1024));
    assert_eq!(read(&mut l1, 0x1000), Read::Miss);
}

#[test]
fn a_merged_miss_makes_one_request_and_the_merge_limit_stalls() {
    let mut l1 = ready(&with(Cache { mshr_merge: 3, ..spec(4, 2) }));
    let outcomes = [0x100, 0x104, 0x11f, 0x108].map(|address| read(&mut l1, address & !31));
    assert_eq!(outcomes, [Read::Miss, Read::Merged, Read::Merged, Read::Refused]);
    let mut released = Vec::new();
    l1.fill(0x100, &mut released);
    assert_eq!(released.len(), 3);
    assert_eq!(read(&mut l1, 0x100), Read::Hit);
}

#[test]
fn a_full_table_of_misses_stalls_until_one_comes_back() {
    let mut l1 = ready(&with(Cache { mshr_entries: 2, ..spec(4, 2) }));
    assert_eq!([0, 128, 256].map(|a| read(&mut l1, a)), [Read::Miss, Read::Miss, Read::Refused]);
    l1.fill(128, &mut Vec::new());
    assert_eq!(read(&mut l1, 256), Read::Miss);
}

#[test]
fn a_written_sector_stays_under_write_through_and_goes_under_write_evict() {
    for (policy, then) in
        [(WritePolicy::WriteThrough, Read::Hit), (WritePolicy::WriteEvict, Read::Miss)]
    {
        let around = WriteMiss::Around;
        let mut l1 = ready(&with(Cache { write: policy, write_miss: around, ..spec(4, 2) }));
        assert_eq!(read(&mut l1, 0x40), Read::Miss);
        l1.fill(0x40, &mut Vec::new());
        assert_eq!(write(&mut l1, 0x40, 0xf), Write::Down);
        assert_eq!(read(&mut l1, 0x40), then, "{policy:?}");
    }
}

#[test]
fn what_is_dirty_leaves_once() {
    let mut l1 = ready(&with(spec(1, 2)));
    for _ in 0..3 {
        assert_eq!(write(&mut l1, 0x20, u32::MAX), Write::Kept);
        assert_eq!(write(&mut l1, 0x40, 0xff), Write::Kept);
    }
    assert_eq!(write(&mut l1, 0x80, u32::MAX), Write::Kept);
    assert!(!l1.has_leaving());
    assert_eq!(write(&mut l1, 0x100, u32::MAX), Write::Kept, "the first line makes room");
    let left: Vec<_> = std::iter::from_fn(|| l1.next_leaving()).collect();
    let left: Vec<_> = left.into_iter().map(|l| (l.address, l.bytes)).collect();
    assert_eq!(left, [(0x20, u32::MAX), (0x40, 0xff)]);
}

#[test]
fn a_sector_written_in_part_is_fetched_when_it_is_read_or_at_once() {
    let lazy = with(spec(4, 2));
    let mut l1 = ready(&lazy);
    assert_eq!(write(&mut l1, 0x40, 0xf), Write::Kept);
    assert_eq!(read(&mut l1, 0x40), Read::Miss);
    let mut l1 = ready(&with(Cache { write_miss: WriteMiss::Fetch, ..lazy.cache }));
    assert_eq!(write(&mut l1, 0x40, 0xf), Write::Fetch);
    assert_eq!(write(&mut l1, 0x60, u32::MAX), Write::Kept, "a whole sector needs no fetch");
    assert_eq!(read(&mut l1, 0x40), Read::Merged);
    l1.fill(0x40, &mut Vec::new());
    assert_eq!(read(&mut l1, 0x40), Read::Hit);
}

/// A naive L1: lines, and a list of misses with the operations that wait.
struct Plain {
    cache: Naive,
    spec: L1Spec,
    ways: u32,
    waiting: Vec<(u64, Vec<u32>)>,
}

impl Plain {
    fn read(&mut self, address: u64, operation: u32) -> Read {
        if self.cache.sector(address).here {
            self.cache.counts.read_hits += 1;
            self.cache.use_line(address);
            return Read::Hit;
        }
        let limit = self.spec.cache.mshr_merge as usize;
        if let Some((_, waiters)) = self.waiting.iter_mut().find(|(a, _)| *a == address) {
            if waiters.len() == limit {
                return Read::Refused;
            }
            waiters.push(operation);
            self.cache.counts.read_merges += 1;
            return Read::Merged;
        }
        let reserves = self.spec.cache.allocate == AllocatePolicy::OnMiss;
        if !self.open(address, operation, reserves) {
            return Read::Refused;
        }
        self.cache.counts.read_misses += 1;
        Read::Miss
    }

    fn open(&mut self, address: u64, operation: u32, reserves: bool) -> bool {
        if self.waiting.len() == self.spec.cache.mshr_entries as usize {
            return false;
        }
        if reserves && !self.cache.allocate(address) {
            return false;
        }
        if reserves {
            self.cache.change(address, |s| s.coming = true);
        }
        self.waiting.push((address, vec![operation]));
        true
    }

    fn write(&mut self, address: u64, bytes: u32, operation: u32) -> Write {
        match self.cache.write(address, bytes, address >= LOCAL_BASE) {
            Did::Kept => Write::Kept,
            Did::Down => Write::Down,
            Did::NoWay => Write::Refused,
            Did::Pending => {
                self.cache.counts.write_merges += 1;
                self.cache.change(address, |s| s.dirty = true);
                Write::Kept
            }
            Did::Fetch if self.open(address, operation, true) => {
                self.cache.counts.write_misses += 1;
                self.cache.change(address, |s| s.dirty = true);
                Write::Fetch
            }
            Did::Fetch => Write::Refused,
        }
    }

    fn fill(&mut self, address: u64) -> Vec<u32> {
        if self.spec.cache.allocate == AllocatePolicy::OnFill && !self.cache.has_line(address) {
            self.cache.allocate(address);
        }
        if self.cache.has_line(address) {
            self.cache.change(address, |s| (s.here, s.coming) = (true, false));
        }
        let place = self.waiting.iter().position(|(a, _)| *a == address).unwrap();
        self.waiting.remove(place).1
    }

    fn prepare(&mut self, ways: u32) {
        if self.spec.flushed_at_kernel_start || ways != self.ways {
            self.cache.flush(LOCAL_BASE);
            self.cache.resize(ways);
            self.ways = ways;
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Read(u64),
    Write(u64, u32),
    /// One of the outstanding misses comes back.
    Fill(usize),
    /// All come back, and a kernel begins that leaves fewer ways.
    Kernel(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let address = (0..20_u64, 0..8_u64, any::<bool>()).prop_map(|(line, sector, local)| {
        line * 256 + sector * 32 + if local { LOCAL_BASE } else { 0 }
    });
    let step = prop_oneof![
        8 => address.clone().prop_map(Step::Read),
        6 => (address, written_bytes()).prop_map(|(address, bytes)| Step::Write(address, bytes)),
        6 => any::<usize>().prop_map(Step::Fill),
        1 => (0..7_u32).prop_map(Step::Kernel),
    ];
    prop::collection::vec(step, 1..300)
}

/// Both L1s, which must not differ.
struct Pair {
    fast: L1,
    plain: Plain,
    counts: CacheCounts,
    way_bytes: u32,
}

impl Pair {
    fn new(spec: L1Spec) -> Self {
        let way_bytes = spec.cache.sets * spec.cache.line_bytes;
        let full = spec.cache.ways;
        let carve_outs_bytes = (0..=full).map(|ways| ways * way_bytes).collect();
        let spec = L1Spec { unified_bytes: full * way_bytes, carve_outs_bytes, ..spec };
        let cache = Naive::new(&spec.cache, spec.dirty_percent);
        Self {
            fast: ready(&spec),
            plain: Plain { cache, spec, ways: full, waiting: vec![] },
            counts: CacheCounts::default(),
            way_bytes,
        }
    }

    fn step(&mut self, step: &Step, operation: u32) {
        match *step {
            Step::Read(address) => {
                let address = sector_start(&self.plain.spec.cache, address);
                let now = self.plain.cache.sector(address);
                assert_eq!(self.fast.keeps(address), now.here || now.coming);
                let fast = self.fast.read(address, operation, &mut self.counts);
                assert_eq!(fast, self.plain.read(address, operation));
            }
            Step::Write(address, bytes) => {
                let address = sector_start(&self.plain.spec.cache, address);
                let absorbed = self.fast.absorbs(address);
                let fast = self.fast.write(address, bytes, operation, &mut self.counts);
                assert_eq!(fast, self.plain.write(address, bytes, operation));
                assert!(!absorbed || (fast == Write::Kept && !self.fast.has_leaving()));
            }
            Step::Fill(which) if !self.plain.waiting.is_empty() => {
                let which = which % self.plain.waiting.len();
                self.fill(self.plain.waiting[which].0);
            }
            Step::Fill(_) => {}
            Step::Kernel(taken) => {
                while let Some(&(address, _)) = self.plain.waiting.first() {
                    self.fill(address);
                }
                let full = self.plain.spec.cache.ways;
                self.fast.prepare(taken * self.way_bytes, &shared(full * self.way_bytes));
                self.plain.prepare(full.saturating_sub(taken).max(1));
            }
        }
        self.compare();
    }

    fn fill(&mut self, address: u64) {
        let mut released = Vec::new();
        self.fast.fill(address, &mut released);
        assert_eq!(released, self.plain.fill(address));
        self.compare();
    }

    fn compare(&mut self) {
        assert_eq!(self.counts, self.plain.cache.counts);
        let leaving = std::iter::from_fn(|| self.fast.next_leaving());
        let left: Vec<(u64, u32)> = leaving.map(|l| (l.address, l.bytes)).collect();
        assert_eq!(left, std::mem::take(&mut self.plain.cache.written_back));
    }
}

proptest! {
    #[test]
    fn the_l1_does_what_a_plain_one_does(
        cache in caches(),
        local in any::<bool>(),
        dirty_percent in prop::sample::select(vec![0, 25, 100]),
        flushed_at_kernel_start in any::<bool>(),
        steps in steps(),
    ) {
        let local = local && cache.write == WritePolicy::WriteBack;
        let write = if local { WritePolicy::LocalWriteBack } else { cache.write };
        let spec = L1Spec { dirty_percent, flushed_at_kernel_start, ..with(Cache { write, ..cache }) };
        let mut pair = Pair::new(spec);
        (0_u32..).zip(&steps).for_each(|(operation, step)| pair.step(step, operation));
    }
}
