//! A simple cache as an oracle for the fast one: lines with time stamps, searched one by
//! one. The tests at the end compare the tag array with it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::CacheCounts;
use crate::config::{AllocatePolicy, Cache, ReplacementPolicy, SetHash, WriteMiss, WritePolicy};
use gpumodel_core::units::{to_u64, to_usize};

/// A write-back LRU cache of 128-byte lines, for tests that change one thing.
pub(crate) fn spec(sets: u32, ways: u32) -> Cache {
    Cache {
        sets,
        ways,
        line_bytes: 128,
        sector_bytes: 32,
        hash: SetHash::Linear,
        mshr_entries: 4,
        mshr_merge: 4,
        write: WritePolicy::WriteBack,
        write_miss: WriteMiss::Lazy,
        allocate: AllocatePolicy::OnMiss,
        replacement: ReplacementPolicy::Lru,
        dirty_ways_percent: None,
        fetchless_writes_hit: false,
    }
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Did {
    Kept,
    Down,
    /// Its sector is pending and will be changed.
    Pending,
    /// Its sector must be fetched first.
    Fetch,
    NoWay,
}

/// One sector of a line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sector {
    pub(crate) here: bool,
    pub(crate) coming: bool,
    pub(crate) dirty: bool,
    pub(crate) written: u32,
}

#[derive(Clone, Debug)]
struct Held {
    line: u64,
    filled: u64,
    used: u64,
    sectors: [Sector; 8],
}

/// The cache.
#[derive(Debug)]
pub(crate) struct Naive {
    spec: Cache,
    guard_percent: u32,
    sets: Vec<Vec<Option<Held>>>,
    /// By set and range of ways: the pointer leads to the upper half.
    pointers: BTreeMap<(usize, usize, usize), bool>,
    clock: u64,
    draws: u64,
    /// Written to the next level: byte address and bytes.
    pub(crate) written_back: Vec<(u64, u32)>,
    pub(crate) counts: CacheCounts,
}

impl Naive {
    pub(crate) fn new(spec: &Cache, guard_percent: u32) -> Self {
        let mut naive = Self {
            spec: spec.clone(),
            guard_percent,
            sets: vec![],
            pointers: BTreeMap::new(),
            clock: 0,
            draws: 0,
            written_back: vec![],
            counts: CacheCounts::default(),
        };
        naive.resize(spec.ways);
        naive
    }

    /// Removes all lines and changes the number of ways.
    pub(crate) fn resize(&mut self, ways: u32) {
        self.sets = vec![vec![None; ways as usize]; self.spec.sets as usize];
        self.pointers.clear();
    }

    /// Writes dirty sectors back except those of lines from `dead` on.
    pub(crate) fn flush(&mut self, dead: u64) {
        let ways = self.sets.first().map_or(0, Vec::len);
        let all = (0..ways).flat_map(|way| self.sets.iter().map(move |set| set[way].clone()));
        for held in all.flatten().collect::<Vec<_>>() {
            if held.line * u64::from(self.spec.line_bytes) < dead {
                self.write_back(&held);
            }
        }
    }

    fn write_back(&mut self, held: &Held) {
        for (place, sector) in held.sectors.iter().enumerate().filter(|(_, s)| s.dirty) {
            let inside = u64::from(self.spec.sector_bytes) * place as u64;
            let address = held.line * u64::from(self.spec.line_bytes) + inside;
            self.written_back.push((address, if sector.here { u32::MAX } else { sector.written }));
        }
    }

    fn place(&self, address: u64) -> (u64, usize) {
        let line_bytes = u64::from(self.spec.line_bytes);
        (address / line_bytes, to_usize(address % line_bytes / u64::from(self.spec.sector_bytes)))
    }

    fn held(&mut self, line: u64) -> Option<&mut Held> {
        self.sets.iter_mut().flatten().flatten().find(|held| held.line == line)
    }

    /// The state of a sector; all false where its line is absent.
    pub(crate) fn sector(&self, address: u64) -> Sector {
        let (line, sector) = self.place(address);
        let held = self.sets.iter().flatten().flatten().find(|held| held.line == line);
        held.map_or_else(Sector::default, |held| held.sectors[sector])
    }

    pub(crate) fn has_line(&mut self, address: u64) -> bool {
        let (line, _) = self.place(address);
        self.held(line).is_some()
    }

    pub(crate) fn change(&mut self, address: u64, change: impl Fn(&mut Sector)) {
        let (line, sector) = self.place(address);
        change(&mut self.held(line).unwrap().sectors[sector]);
    }

    /// Notes a use of the line.
    pub(crate) fn use_line(&mut self, address: u64) {
        let (line, _) = self.place(address);
        self.clock += 1;
        let now = self.clock;
        self.held(line).unwrap().used = now;
        let set = self.set_of(line);
        let way = self.sets[set]
            .iter()
            .position(|held| held.as_ref().is_some_and(|held| held.line == line));
        let (way, mut low) = (way.unwrap(), 0);
        let mut high = self.sets[set].len().next_power_of_two();
        while high - low > 1 {
            let middle = (low + high) / 2;
            self.pointers.insert((set, low, high), way < middle);
            if way < middle { high = middle } else { low = middle }
        }
    }

    fn set_of(&self, line: u64) -> usize {
        let sets = u64::from(self.spec.sets);
        let set = match self.spec.hash {
            SetHash::Linear => line % sets,
            SetHash::Xor => (line ^ (line / sets)) % sets,
            SetHash::Ipoly => remainder(line, sets),
            SetHash::Fermi => {
                let address = line * u64::from(self.spec.line_bytes);
                let upper = [13, 14, 15, 17, 19].map(|bit| address >> bit & 1);
                let upper = (0..).zip(upper).fold(0, |all, (at, bit)| all | bit << at);
                ((line % 32) ^ upper) + if sets == 64 { (address >> 12 & 1) * 32 } else { 0 }
            }
        };
        to_usize(set)
    }

    /// Gives the line a way, if it has none; false when no way may be evicted.
    pub(crate) fn allocate(&mut self, address: u64) -> bool {
        let (line, _) = self.place(address);
        if self.held(line).is_none() {
            let set = self.set_of(line);
            let Some(way) = self.way_for(set) else { return false };
            if let Some(old) = self.sets[set][way].take() {
                self.write_back(&old);
            }
            let now = self.clock + 1;
            let held = Held { line, filled: now, used: now, sectors: Default::default() };
            self.sets[set][way] = Some(held);
        }
        self.use_line(address);
        true
    }

    fn way_for(&mut self, set: usize) -> Option<usize> {
        if let Some(empty) = self.sets[set].iter().position(Option::is_none) {
            return Some(empty);
        }
        let any = |held: &Held, test: fn(&Sector) -> bool| held.sectors.iter().any(test);
        let lines = self.sets.iter().flatten();
        let dirty = lines.clone().flatten().filter(|held| any(held, |s| s.dirty)).count();
        let few = dirty * 100 < self.guard_percent as usize * lines.count();
        let ways: Vec<&Held> = self.sets[set].iter().flatten().collect();
        let settled: Vec<bool> = ways.iter().map(|held| !any(held, |s| s.coming)).collect();
        let clean = ways.iter().zip(&settled).map(|(h, &s)| s && !any(h, |s| s.dirty)).collect();
        let spared = if few { self.choose(set, clean) } else { None };
        spared.or_else(|| self.choose(set, settled))
    }

    /// The policy's choice among the ways of a full set that may be evicted.
    fn choose(&mut self, set: usize, evictable: Vec<bool>) -> Option<usize> {
        let ways = evictable.len();
        let oldest = |age: fn(&Held) -> u64| {
            let age = |way: &usize| age(self.sets[set][*way].as_ref().unwrap());
            (0..ways).filter(|&way| evictable[way]).min_by_key(age)
        };
        // A new policy needs its plain rule here: the cache is compared with it.
        match self.spec.replacement {
            ReplacementPolicy::Lru => oldest(|held| held.used),
            ReplacementPolicy::Fifo => oldest(|held| held.filled),
            ReplacementPolicy::TreeLru => self.follow(set, 0, ways.next_power_of_two(), &evictable),
            ReplacementPolicy::Random => {
                let start = to_usize(self.draw() % to_u64(ways));
                (start..start + ways).map(|way| way % ways).find(|&way| evictable[way])
            }
        }
    }

    /// Where the pointers of the ways from `low` to before `high` lead.
    fn follow(&self, set: usize, low: usize, high: usize, evictable: &[bool]) -> Option<usize> {
        if !(low..high).any(|way| evictable.get(way) == Some(&true)) {
            return None;
        }
        if high - low == 1 {
            return Some(low);
        }
        let middle = (low + high) / 2;
        let (lower, upper) =
            (self.follow(set, low, middle, evictable), self.follow(set, middle, high, evictable));
        match self.pointers.get(&(set, low, high)) {
            Some(true) => upper.or(lower),
            _ => lower.or(upper),
        }
    }

    /// splitmix64 from 0.
    fn draw(&mut self) -> u64 {
        self.draws += 1;
        let z = self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A write of `bytes`, as the policies say. The caller counts writes that wait for their
    /// sector.
    pub(crate) fn write(&mut self, address: u64, bytes: u32, local: bool) -> Did {
        let kept = match self.spec.write {
            WritePolicy::WriteBack => true,
            WritePolicy::LocalWriteBack => local,
            _ => false,
        };
        let around = self.spec.write == WritePolicy::LocalWriteBack && !local;
        let miss = if around { WriteMiss::Around } else { self.spec.write_miss };
        let stored = if kept { Did::Kept } else { Did::Down };
        let now = self.sector(address);
        if now.here {
            self.counts.write_hits += 1;
            self.use_line(address);
            let through = self.spec.write == WritePolicy::WriteThrough;
            self.change(address, |s| (s.dirty, s.here) = (kept, kept || through));
            return stored;
        }
        if now.coming {
            self.counts.write_merges += u64::from(!kept);
            return if kept { Did::Pending } else { Did::Down };
        }
        if miss == WriteMiss::ThroughAndFetch || miss == WriteMiss::Fetch && bytes != u32::MAX {
            return Did::Fetch;
        }
        let allocates = miss != WriteMiss::Around;
        let allocated = allocates && self.allocate(address);
        if allocates && !allocated && kept {
            return Did::NoWay;
        }
        self.counts.write_hits += u64::from(now.written != 0);
        self.counts.write_misses += u64::from(now.written == 0);
        if !allocated {
            return Did::Down;
        }
        self.change(address, |s| {
            s.dirty = kept;
            s.written |= bytes;
            s.here = s.written == u32::MAX;
        });
        stored
    }
}

/// The remainder of a polynomial over GF(2) by a primitive one of the degree of
/// the sets' number (Lidl & Niederreiter, table F), by long division.
fn remainder(line: u64, sets: u64) -> u64 {
    let divisor = match sets {
        1 => 0b1,
        2 => 0b11,
        4 => 0b111,
        8 => 0b1011,
        16 => 0b1_0011,
        32 => 0b10_0101,
        64 => 0b100_0011,
        _ => panic!("no polynomial for {sets} sets"),
    };
    (0..64).rev().fold(0, |rest: u64, bit| {
        let rest = rest << 1 | line >> bit & 1;
        if rest >= sets { rest ^ divisor } else { rest }
    })
}

/// The policies that may be combined, without those for local memory.
pub(crate) const POLICIES: [(WritePolicy, WriteMiss, AllocatePolicy); 11] = {
    use AllocatePolicy::{OnFill, OnMiss};
    use WriteMiss::{Around, Fetch, Lazy};
    use WritePolicy::{WriteBack, WriteEvict, WriteThrough};
    [
        (WriteThrough, Around, OnMiss),
        (WriteThrough, Around, OnFill),
        (WriteThrough, Lazy, OnMiss),
        (WriteThrough, Lazy, OnFill),
        (WriteEvict, Around, OnMiss),
        (WriteEvict, Around, OnFill),
        (WriteBack, Around, OnMiss),
        (WriteBack, Around, OnFill),
        (WriteBack, Lazy, OnMiss),
        (WriteBack, Lazy, OnFill),
        (WriteBack, Fetch, OnMiss),
    ]
};

/// Any small cache: sets that are no power of two, lines of 1 to 8 sectors or whole
/// ones, few entries.
pub(crate) fn caches() -> impl Strategy<Value = Cache> {
    let geometry = (
        prop::sample::select(vec![1_u32, 2, 3, 4, 6, 8, 16]),
        1..=6_u32,
        prop::sample::select(vec![(32_u32, 32_u32), (64, 32), (128, 32), (256, 32), (128, 128)]),
        prop::sample::select(vec![SetHash::Linear, SetHash::Xor, SetHash::Ipoly, SetHash::Fermi]),
    );
    let replacement = prop::sample::select(ReplacementPolicy::ALL);
    let policies = prop::sample::select(POLICIES.to_vec());
    (geometry, replacement, policies, 1..5_u32, 1..4_u32).prop_map(
        |(
            (sets, ways, (line_bytes, sector_bytes), hash),
            replacement,
            policies,
            mshr_entries,
            mshr_merge,
        )| {
            let (sets, hash) = match hash {
                SetHash::Fermi => (if ways > 3 { 64 } else { 32 }, hash),
                _ if sets.is_power_of_two() => (sets, hash),
                _ => (sets, SetHash::Linear),
            };
            let (write, write_miss, allocate) = policies;
            Cache {
                sets,
                ways,
                line_bytes,
                sector_bytes,
                hash,
                mshr_entries,
                mshr_merge,
                write,
                write_miss,
                allocate,
                replacement,
                ..spec(1, 1)
            }
        },
    )
}

/// The first byte of the sector of `spec` in which an address lies.
pub(crate) fn sector_start(spec: &Cache, address: u64) -> u64 {
    address / u64::from(spec.sector_bytes) * u64::from(spec.sector_bytes)
}

/// Bytes of a sector that an access may touch: a part, another part, or all.
pub(crate) fn written_bytes() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0xff, 0xffff, 0xffff_0000, u32::MAX])
}

mod tests {
    use proptest::prelude::*;

    use super::{Naive, caches, remainder, spec};
    use crate::cache::{Found, TagArray};
    use crate::config::{Cache, ReplacementPolicy, SetHash};

    /// One access of a pattern.
    #[derive(Clone, Debug)]
    enum Access {
        /// Uses a line, or allocates a way for it and its sector.
        Use { address: u64, writes: bool },
        /// The same, and the sector arrives later.
        Miss { address: u64 },
        /// All pending sectors arrive.
        FillAll,
        /// Writes dirty sectors back and changes the number of ways.
        Resize { ways: u32 },
    }

    fn accesses() -> impl Strategy<Value = Vec<Access>> {
        let address = (0..60_u64, 0..8_u64).prop_map(|(line, sector)| line * 256 + sector * 32);
        let both = (address.clone(), any::<bool>());
        let one = prop_oneof![
            12 => both.prop_map(|(address, writes)| Access::Use { address, writes }),
            3 => address.prop_map(|address| Access::Miss { address }),
            2 => Just(Access::FillAll),
            1 => (1..=6_u32).prop_map(|ways| Access::Resize { ways }),
        ];
        prop::collection::vec(one, 1..400)
    }

    /// The two caches, which must agree.
    struct Pair {
        fast: TagArray,
        plain: Naive,
        largest: u32,
        pending: Vec<u64>,
    }

    impl Pair {
        fn new(cache: &Cache, guard: u32) -> Self {
            let (fast, plain) = (TagArray::new(cache, guard), Naive::new(cache, guard));
            Self { fast, plain, largest: cache.ways, pending: vec![] }
        }

        fn apply(&mut self, access: &Access) {
            match *access {
                Access::Use { address, writes } => self.touch(address, writes, false),
                Access::Miss { address } => self.touch(address, false, true),
                Access::FillAll => self.fill_all(),
                Access::Resize { ways } => {
                    self.fill_all();
                    self.fast.flush(|_| false);
                    self.plain.flush(u64::MAX);
                    self.fast.resize(ways.min(self.largest));
                    self.plain.resize(ways.min(self.largest));
                }
            }
            let written = std::iter::from_fn(|| self.fast.next_write_back());
            let written: Vec<(u64, u32)> = written.map(|w| (w.address, w.bytes)).collect();
            assert_eq!(written, std::mem::take(&mut self.plain.written_back));
        }

        fn touch(&mut self, address: u64, writes: bool, later: bool) {
            let (line, sector) = (self.fast.line_of(address), self.fast.sector_bit(address));
            let Found { way, hit, pending } = self.fast.lookup(line, sector);
            let plain = self.plain.sector(address);
            let found = (hit == sector, pending == sector, way.is_some());
            let should = (plain.here, plain.coming && !plain.here, self.plain.has_line(address));
            assert_eq!(found, should, "address {address:#x}");
            let way = way.or_else(|| self.fast.allocate(line));
            assert_eq!(way.is_some(), self.plain.allocate(address));
            let Some(way) = way else { return };
            self.fast.touch(way);
            if later && !plain.here && !plain.coming {
                self.fast.mark_pending(way, sector);
                self.plain.change(address, |s| s.coming = true);
                self.pending.push(address);
            } else if !plain.coming {
                self.fast.validate(way, sector);
                self.plain.change(address, |s| s.here = true);
            }
            if writes {
                self.fast.mark_dirty(way, sector);
                self.plain.change(address, |s| s.dirty = true);
            }
        }

        fn fill_all(&mut self) {
            for address in self.pending.drain(..) {
                self.fast.fill(self.fast.line_of(address), self.fast.sector_bit(address));
                self.plain.change(address, |s| (s.here, s.coming) = (true, false));
            }
        }
    }

    proptest! {
        #[test]
        fn the_tag_array_agrees_with_the_naive_cache(
            cache in caches(),
            guard in prop::sample::select(vec![0, 0, 25, 50, 100]),
            accesses in accesses(),
        ) {
            let mut pair = Pair::new(&cache, guard);
            accesses.iter().for_each(|access| pair.apply(access));
        }
    }

    /// Lines that belong to set 3 of 16.
    fn lines_of_a_set(hash: SetHash, count: usize) -> Vec<u64> {
        let set = |line: u64| match hash {
            SetHash::Linear => line % 16,
            SetHash::Xor => (line ^ (line >> 4)) % 16,
            SetHash::Ipoly => remainder(line, 16),
            SetHash::Fermi => unreachable!("16 sets"),
        };
        (0_u64..).filter(|&line| set(line) == 3).take(count).collect()
    }

    /// Hits of `rounds` rounds over `lines` after a first one that fetches them.
    fn hits(cache: &Cache, lines: &[u64], rounds: usize) -> usize {
        let mut tags = TagArray::new(cache, 0);
        let mut hits = 0;
        for round in 0..=rounds {
            for &line in lines {
                let Found { way, hit, .. } = tags.lookup(line, 1);
                let way = way.or_else(|| tags.allocate(line)).unwrap();
                tags.validate(way, 1);
                tags.touch(way);
                hits += usize::from(round > 0 && hit == 1);
            }
        }
        hits
    }

    #[test]
    fn lines_of_one_set_all_stay_or_all_leave() {
        for hash in [SetHash::Linear, SetHash::Xor, SetHash::Ipoly] {
            for ways in [1, 2, 4, 6] {
                for replacement in [ReplacementPolicy::Lru, ReplacementPolicy::Fifo] {
                    let cache = Cache { hash, replacement, ..spec(16, ways) };
                    let lines = lines_of_a_set(hash, ways as usize + 1);
                    let fits = hits(&cache, &lines[1..], 50);
                    assert_eq!(fits, 50 * ways as usize, "{hash:?}, {ways} lines in {ways} ways");
                    assert_eq!(hits(&cache, &lines, 50), 0, "{hash:?}, one more line");
                }
            }
        }
    }

    #[test]
    fn one_line_too_many_thrashes_less_when_any_line_may_leave() {
        for hash in [SetHash::Linear, SetHash::Xor, SetHash::Ipoly] {
            let lines = lines_of_a_set(hash, 9);
            let cache = |replacement| {
                hits(&Cache { hash, replacement, ..spec(16, 8) }, &lines, 1000) as f64
            };
            assert_eq!(cache(ReplacementPolicy::Lru), 0.0);
            // Each access evicts one of eight lines at most: well over half are still present
            // when they are used again.
            let random = cache(ReplacementPolicy::Random) / 9000.0;
            assert!((0.6..0.9).contains(&random), "{hash:?}: hit rate {random}");
            let tree = cache(ReplacementPolicy::TreeLru) / 9000.0;
            assert!(tree < random, "{hash:?}: hit rate {tree}");
        }
    }

    #[test]
    fn the_same_random_lines_leave_in_every_run() {
        let cache = Cache { replacement: ReplacementPolicy::Random, ..spec(1, 4) };
        let lines: Vec<u64> = (0..6).collect();
        let once = hits(&cache, &lines, 100);
        assert_eq!(once, hits(&cache, &lines, 100));
    }
}
