//! Facts of the L1, and a naive L1 that must agree access by access.

use proptest::prelude::*;

use super::l1::{L1, Read, Write, ways_left_by};
use crate::CacheCounts;
use crate::cache::naive::{Did, Naive, caches, sector_start, spec, written_bytes};
use crate::config::{
    AllocatePolicy, BankConflicts, Cache, L1Data, L1Spec, RequestGranularity, SharedSpec,
    WriteMiss, WritePolicy,
};
use crate::sm::coalesce::LOCAL_BASE;

fn with(cache: Cache) -> L1Spec {
    L1Spec {
        bank_bytes: 0,
        data: L1Data::Sector,
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
        scheduler_queue: 0,
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
        return_bytes: 0,
        packs_returns: false,
    }
}

/// An L1 at its largest size.
fn ready(spec: &L1Spec) -> L1 {
    let mut l1 = L1::new(spec, RequestGranularity::Sector);
    l1.prepare(0, &shared(0));
    l1
}

/// What became of a read of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Got {
    Hit,
    Merged,
    Miss,
    Refused,
}

/// What became of a write of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Put {
    Kept,
    Down,
    Fetch,
    Refused,
}

/// The outcome of which a sector is part.
fn outcome_of<T: Copy + std::fmt::Debug>(sector: u8, masks: [(u8, T); 4]) -> T {
    let mut parts = masks.into_iter().filter(|(mask, _)| mask & sector != 0);
    let (_, outcome) = parts.next().expect("every sector has an outcome");
    assert!(parts.next().is_none(), "it has one outcome");
    outcome
}

fn got(read: Read, sector: u8) -> Got {
    let Read { hit, merged, miss, refused } = read;
    let masks =
        [(hit, Got::Hit), (merged, Got::Merged), (miss, Got::Miss), (refused, Got::Refused)];
    outcome_of(sector, masks)
}

fn put(write: Write, sector: u8) -> Put {
    let Write { kept, down, fetch, refused } = write;
    let masks =
        [(kept, Put::Kept), (down, Put::Down), (fetch, Put::Fetch), (refused, Put::Refused)];
    outcome_of(sector, masks)
}

fn read(l1: &mut L1, address: u64) -> Got {
    let sector = l1.sector_bit(address);
    got(l1.read(address, sector, 0, &mut CacheCounts::default()), sector)
}

fn write(l1: &mut L1, address: u64, bytes: u32) -> Put {
    let sector = l1.sector_bit(address);
    put(l1.write((address, sector), bytes, 0, &mut CacheCounts::default()), sector)
}

fn fill(l1: &mut L1, address: u64) -> Vec<u32> {
    let mut released = Vec::new();
    l1.fill(address, l1.sector_bit(address), &mut released);
    released.into_iter().map(|(operation, _)| operation).collect()
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
    assert_eq!(read(&mut l1, 0x1000), Got::Miss);
    fill(&mut l1, 0x1000);
    l1.prepare(0, &shared(96 * 1024));
    assert_eq!(read(&mut l1, 0x1000), Got::Hit);
    l1.prepare(1, &shared(96 * 1024));
    assert_eq!(read(&mut l1, 0x1000), Got::Miss);
}

#[test]
fn a_merged_miss_makes_one_request_and_the_merge_limit_stalls() {
    let mut l1 = ready(&with(Cache { mshr_merge: 3, ..spec(4, 2) }));
    let outcomes = [0x100, 0x104, 0x11f, 0x108].map(|address| read(&mut l1, address & !31));
    assert_eq!(outcomes, [Got::Miss, Got::Merged, Got::Merged, Got::Refused]);
    assert_eq!(fill(&mut l1, 0x100).len(), 3);
    assert_eq!(read(&mut l1, 0x100), Got::Hit);
}

#[test]
fn a_full_table_of_misses_stalls_until_one_comes_back() {
    let mut l1 = ready(&with(Cache { mshr_entries: 2, ..spec(4, 2) }));
    assert_eq!([0, 128, 256].map(|a| read(&mut l1, a)), [Got::Miss, Got::Miss, Got::Refused]);
    fill(&mut l1, 128);
    assert_eq!(read(&mut l1, 256), Got::Miss);
}

#[test]
fn a_written_sector_stays_under_write_through_and_goes_under_write_evict() {
    for (policy, then) in
        [(WritePolicy::WriteThrough, Got::Hit), (WritePolicy::WriteEvict, Got::Miss)]
    {
        let around = WriteMiss::Around;
        let mut l1 = ready(&with(Cache { write: policy, write_miss: around, ..spec(4, 2) }));
        assert_eq!(read(&mut l1, 0x40), Got::Miss);
        fill(&mut l1, 0x40);
        assert_eq!(write(&mut l1, 0x40, 0xf), Put::Down);
        assert_eq!(read(&mut l1, 0x40), then, "{policy:?}");
    }
}

#[test]
fn what_is_dirty_leaves_once() {
    let mut l1 = ready(&with(spec(1, 2)));
    for _ in 0..3 {
        assert_eq!(write(&mut l1, 0x20, u32::MAX), Put::Kept);
        assert_eq!(write(&mut l1, 0x40, 0xff), Put::Kept);
    }
    assert_eq!(write(&mut l1, 0x80, u32::MAX), Put::Kept);
    assert!(!l1.has_leaving());
    assert_eq!(write(&mut l1, 0x100, u32::MAX), Put::Kept, "the first line makes room");
    let left: Vec<_> = std::iter::from_fn(|| l1.next_leaving()).collect();
    let left: Vec<_> = left.into_iter().map(|l| (l.address, l.bytes)).collect();
    assert_eq!(left, [(0x20, u32::MAX), (0x40, 0xff)]);
}

#[test]
fn a_sector_written_in_part_is_fetched_when_it_is_read_or_at_once() {
    let lazy = with(spec(4, 2));
    let mut l1 = ready(&lazy);
    assert_eq!(write(&mut l1, 0x40, 0xf), Put::Kept);
    assert_eq!(read(&mut l1, 0x40), Got::Miss);
    let mut l1 = ready(&with(Cache { write_miss: WriteMiss::Fetch, ..lazy.cache }));
    assert_eq!(write(&mut l1, 0x40, 0xf), Put::Fetch);
    assert_eq!(write(&mut l1, 0x60, u32::MAX), Put::Kept, "a whole sector needs no fetch");
    assert_eq!(read(&mut l1, 0x40), Got::Merged);
    fill(&mut l1, 0x40);
    assert_eq!(read(&mut l1, 0x40), Got::Hit);
}

/// A naive L1: lines, and a list of misses with the operations that wait.
struct Plain {
    cache: Naive,
    spec: L1Spec,
    ways: u32,
    waiting: Vec<(u64, Vec<u32>)>,
}

impl Plain {
    fn read(&mut self, address: u64, operation: u32) -> Got {
        if self.cache.sector(address).here {
            self.cache.counts.read_hits += 1;
            self.cache.use_line(address);
            return Got::Hit;
        }
        let limit = self.spec.cache.mshr_merge as usize;
        if let Some((_, waiters)) = self.waiting.iter_mut().find(|(a, _)| *a == address) {
            if waiters.len() == limit {
                return Got::Refused;
            }
            waiters.push(operation);
            self.cache.counts.read_merges += 1;
            return Got::Merged;
        }
        let reserves = self.spec.cache.allocate == AllocatePolicy::OnMiss;
        if !self.open(address, operation, reserves) {
            return Got::Refused;
        }
        self.cache.counts.read_misses += 1;
        Got::Miss
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

    fn write(&mut self, address: u64, bytes: u32, operation: u32) -> Put {
        match self.cache.write(address, bytes, address >= LOCAL_BASE) {
            Did::Kept => Put::Kept,
            Did::Down => Put::Down,
            Did::NoWay => Put::Refused,
            Did::Pending => {
                self.cache.counts.write_merges += 1;
                self.cache.change(address, |s| s.dirty = true);
                Put::Kept
            }
            Did::Fetch if self.open(address, operation, true) => {
                self.cache.counts.write_misses += 1;
                self.cache.change(address, |s| s.dirty = true);
                Put::Fetch
            }
            Did::Fetch => Put::Refused,
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
    /// Sectors of a line, one bit each.
    Read(u64, u8),
    Write(u64, u8, u32),
    /// Some outstanding misses of a line come back.
    Fill(usize, u8),
    /// All come back, and a kernel begins that leaves fewer ways.
    Kernel(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let line = (0..20_u64, any::<bool>())
        .prop_map(|(line, local)| line * 256 + if local { LOCAL_BASE } else { 0 });
    let write = (line.clone(), 1_u8.., written_bytes());
    let step = prop_oneof![
        8 => (line, 1_u8..).prop_map(|(line, sectors)| Step::Read(line, sectors)),
        6 => write.prop_map(|(line, sectors, bytes)| Step::Write(line, sectors, bytes)),
        6 => any::<(usize, u8)>().prop_map(|(which, sectors)| Step::Fill(which, sectors)),
        1 => (0..7_u32).prop_map(Step::Kernel),
    ];
    prop::collection::vec(step, 1..300)
}

/// Both L1s, which must not differ. The plain one takes the sectors of a line one after the
/// other; so does the fast one, unless its requests go by line.
struct Pair {
    fast: L1,
    by_line: bool,
    plain: Plain,
    counts: CacheCounts,
    way_bytes: u32,
}

impl Pair {
    fn new(spec: L1Spec, granularity: RequestGranularity) -> Self {
        let way_bytes = spec.cache.sets * spec.cache.line_bytes;
        let full = spec.cache.ways;
        let carve_outs_bytes = (0..=full).map(|ways| ways * way_bytes).collect();
        let spec = L1Spec { unified_bytes: full * way_bytes, carve_outs_bytes, ..spec };
        let cache = Naive::new(&spec.cache, spec.dirty_percent);
        let mut fast = L1::new(&spec, granularity);
        fast.prepare(0, &shared(0));
        Self {
            fast,
            by_line: granularity == RequestGranularity::Line,
            plain: Plain { cache, spec, ways: full, waiting: vec![] },
            counts: CacheCounts::default(),
            way_bytes,
        }
    }

    /// The addresses of the sectors of a line, of which a cache has one to eight.
    fn sectors(&self, line: u64, sectors: u8) -> Vec<u64> {
        let cache = &self.plain.spec.cache;
        let number = cache.line_bytes / cache.sector_bytes;
        let bytes = u64::from(cache.sector_bytes);
        let asked = (0..u64::from(number)).filter(|one| sectors >> one & 1 == 1);
        asked
            .map(|one| {
                line / u64::from(cache.line_bytes) * u64::from(cache.line_bytes) + one * bytes
            })
            .collect()
    }

    /// The sectors at `addresses`, all of one line, as the fast one is asked for them: together
    /// or one by one.
    fn requests(&self, addresses: &[u64]) -> Vec<(u64, u8)> {
        let bit = |address: &u64| (*address, self.fast.sector_bit(*address));
        let each: Vec<(u64, u8)> = addresses.iter().map(bit).collect();
        match (self.by_line, each.first()) {
            (true, Some(&(first, _))) => {
                vec![(first, each.iter().fold(0, |all, (_, sector)| all | sector))]
            }
            _ => each,
        }
    }

    fn step(&mut self, step: &Step, operation: u32) {
        match *step {
            Step::Read(line, sectors) => self.read(&self.sectors(line, sectors), operation),
            Step::Write(line, sectors, bytes) => {
                self.write(&self.sectors(line, sectors), bytes, operation);
            }
            Step::Fill(which, sectors) if !self.plain.waiting.is_empty() => {
                let (address, _) = self.plain.waiting[which % self.plain.waiting.len()];
                let line = sector_start(&self.plain.spec.cache, address);
                let wanted = sectors | self.fast.sector_bit(address);
                let waits = |address: &u64| self.plain.waiting.iter().any(|(a, _)| a == address);
                let came = self.sectors(line, wanted).into_iter().filter(waits).collect::<Vec<_>>();
                self.fill(&came);
            }
            Step::Fill(..) => {}
            Step::Kernel(taken) => {
                while let Some(&(address, _)) = self.plain.waiting.first() {
                    self.fill(&[address]);
                }
                let full = self.plain.spec.cache.ways;
                self.fast.prepare(taken * self.way_bytes, &shared(full * self.way_bytes));
                self.plain.prepare(full.saturating_sub(taken).max(1));
            }
        }
        self.compare();
    }

    fn read(&mut self, addresses: &[u64], operation: u32) {
        for (first, sectors) in self.requests(addresses) {
            let of_request = |address: &&u64| sectors & self.fast.sector_bit(**address) != 0;
            let addresses: Vec<u64> = addresses.iter().filter(of_request).copied().collect();
            let kept = addresses.iter().all(|address| {
                let now = self.plain.cache.sector(*address);
                now.here || now.coming
            });
            assert_eq!(self.fast.keeps(first, sectors), kept);
            let fast = self.fast.read(first, sectors, operation, &mut self.counts);
            for address in addresses {
                let fast = got(fast, self.fast.sector_bit(address));
                assert_eq!(fast, self.plain.read(address, operation));
            }
        }
    }

    fn write(&mut self, addresses: &[u64], bytes: u32, operation: u32) {
        for (first, sectors) in self.requests(addresses) {
            let absorbed = self.fast.absorbs(first, sectors);
            let fast = self.fast.write((first, sectors), bytes, operation, &mut self.counts);
            assert!(!absorbed || (fast.kept == sectors && !self.fast.has_leaving()));
            for &address in addresses {
                let sector = self.fast.sector_bit(address);
                if sectors & sector != 0 {
                    let plain = self.plain.write(address, bytes, operation);
                    assert_eq!(put(fast, sector), plain);
                }
            }
        }
    }

    fn fill(&mut self, addresses: &[u64]) {
        let mut released = Vec::new();
        for (first, sectors) in self.requests(addresses) {
            let mut came = Vec::new();
            self.fast.fill(first, sectors, &mut came);
            released.extend(
                came.into_iter()
                    .flat_map(|(operation, parts)| vec![operation; parts.count_ones() as usize]),
            );
        }
        let mut plain: Vec<u32> = addresses.iter().flat_map(|a| self.plain.fill(*a)).collect();
        if self.by_line {
            released.sort_unstable();
            plain.sort_unstable();
        }
        assert_eq!(released, plain);
        self.compare();
    }

    fn compare(&mut self) {
        assert_eq!(self.counts, self.plain.cache.counts);
        let leaving = std::iter::from_fn(|| self.fast.next_leaving());
        let left: Vec<(u64, u32)> = leaving.map(|l| (l.address, l.bytes)).collect();
        assert_eq!(left, std::mem::take(&mut self.plain.cache.written_back));
    }
}

/// Requests by line need lines of up to four sectors of 32 bytes.
fn granularity_for(cache: &Cache, by_line: bool) -> RequestGranularity {
    let fits = cache.sector_bytes == 32 && cache.line_bytes <= 128;
    if by_line && fits { RequestGranularity::Line } else { RequestGranularity::Sector }
}

proptest! {
    #[test]
    fn the_l1_does_what_a_plain_one_does(
        cache in caches(),
        by_line in any::<bool>(),
        local in any::<bool>(),
        dirty_percent in prop::sample::select(vec![0, 25, 100]),
        flushed_at_kernel_start in any::<bool>(),
        steps in steps(),
    ) {
        let local = local && cache.write == WritePolicy::WriteBack;
        let write = if local { WritePolicy::LocalWriteBack } else { cache.write };
        let granularity = granularity_for(&cache, by_line);
        let spec = L1Spec { dirty_percent, flushed_at_kernel_start, ..with(Cache { write, ..cache }) };
        let mut pair = Pair::new(spec, granularity);
        (0_u32..).zip(&steps).for_each(|(operation, step)| pair.step(step, operation));
    }
}
