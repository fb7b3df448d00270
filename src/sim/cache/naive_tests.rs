//! Does the fast tag array do what the plain one does, access by access?

use proptest::prelude::*;

use super::naive::{Naive, caches, spec};
use super::{Found, TagArray};
use crate::config::{Cache, ReplacementPolicy, SetHash};

/// One access of a pattern.
#[derive(Clone, Debug)]
enum Access {
    /// Uses a line, or takes a way for it and its sector.
    Use { address: u64, soils: bool },
    /// The same, and the sector comes later.
    Expect { address: u64 },
    /// All that is expected comes.
    FillAll,
    /// Writes dirty sectors down and changes the number of ways.
    Resize { ways: u32 },
}

fn accesses() -> impl Strategy<Value = Vec<Access>> {
    let address = (0..60_u64, 0..8_u64).prop_map(|(line, sector)| line * 256 + sector * 32);
    let one = prop_oneof![
        12 => (address.clone(), any::<bool>()).prop_map(|(address, soils)| Access::Use { address, soils }),
        3 => address.prop_map(|address| Access::Expect { address }),
        2 => Just(Access::FillAll),
        1 => (1..=6_u32).prop_map(|ways| Access::Resize { ways }),
    ];
    prop::collection::vec(one, 1..400)
}

/// The two side by side.
struct Pair {
    fast: TagArray,
    plain: Naive,
    largest: u32,
    expected: Vec<u64>,
}

impl Pair {
    fn new(cache: &Cache, guard: u32) -> Self {
        let (fast, plain) = (TagArray::new(cache, guard), Naive::new(cache, guard));
        Self { fast, plain, largest: cache.ways, expected: vec![] }
    }

    fn apply(&mut self, access: &Access) {
        match *access {
            Access::Use { address, soils } => self.touch(address, soils, false),
            Access::Expect { address } => self.touch(address, false, true),
            Access::FillAll => self.fill_all(),
            Access::Resize { ways } => {
                self.fill_all();
                self.fast.flush(|_| false);
                self.plain.flush(u64::MAX);
                self.fast.resize(ways.min(self.largest));
                self.plain.resize(ways.min(self.largest));
            }
        }
        let left = std::mem::take(&mut self.plain.left);
        let leaving: Vec<(u64, u32)> =
            std::iter::from_fn(|| self.fast.next_leaving()).map(|l| (l.address, l.bytes)).collect();
        assert_eq!(leaving, left);
    }

    fn touch(&mut self, address: u64, soils: bool, later: bool) {
        let (line, sector) = (self.fast.line_of(address), self.fast.sector_of(address));
        let (found, way) = self.fast.lookup(line, sector);
        let plain = self.plain.sector(address);
        let should = match (plain.here, plain.coming, self.plain.has_line(address)) {
            (true, _, _) => Found::Hit,
            (_, true, _) => Found::Pending,
            (_, _, true) => Found::SectorMiss,
            _ => Found::LineMiss,
        };
        assert_eq!(found, should, "address {address:#x}");
        let way = way.or_else(|| self.fast.allocate(line));
        assert_eq!(way.is_some(), self.plain.take_line(address));
        let Some(way) = way else { return };
        self.fast.touch(way);
        if later && !plain.here && !plain.coming {
            self.fast.expect(way, sector);
            self.plain.change(address, |s| s.coming = true);
            self.expected.push(address);
        } else if !plain.coming {
            self.fast.validate(way, sector);
            self.plain.change(address, |s| s.here = true);
        }
        if soils {
            self.fast.soil(way, sector);
            self.plain.change(address, |s| s.dirty = true);
        }
    }

    fn fill_all(&mut self) {
        for address in self.expected.drain(..) {
            self.fast.fill(self.fast.line_of(address), self.fast.sector_of(address));
            self.plain.change(address, |s| (s.here, s.coming) = (true, false));
        }
    }
}

proptest! {
    #[test]
    fn the_tag_array_does_what_a_plain_one_does(
        cache in caches(),
        guard in prop::sample::select(vec![0, 0, 25, 50, 100]),
        accesses in accesses(),
    ) {
        let mut pair = Pair::new(&cache, guard);
        accesses.iter().for_each(|access| pair.apply(access));
    }
}

/// Lines that the plain cache puts into set 3 of 16.
fn lines_of_a_set(hash: SetHash, count: usize) -> Vec<u64> {
    let set = |line: u64| match hash {
        SetHash::Linear => line % 16,
        // Line 3 and its fellows: the upper bits undo the lower ones.
        SetHash::Xor => (line ^ (line >> 4)) % 16,
        SetHash::Ipoly => {
            // x^4 + x + 1 divides line - 3 exactly when the rest is 3.
            (0..64).rev().fold(0, |rest: u64, bit| {
                let rest = rest << 1 | line >> bit & 1;
                if rest >= 16 { rest ^ 0b1_0011 } else { rest }
            })
        }
    };
    (0_u64..).filter(|&line| set(line) == 3).take(count).collect()
}

/// Hits of `rounds` rounds over `lines`, after one that brings them in.
fn hits(cache: &Cache, lines: &[u64], rounds: usize) -> usize {
    let mut tags = TagArray::new(cache, 0);
    let mut hits = 0;
    for round in 0..=rounds {
        for &line in lines {
            let (found, way) = tags.lookup(line, 0);
            let way = way.or_else(|| tags.allocate(line)).unwrap();
            tags.validate(way, 0);
            tags.touch(way);
            hits += usize::from(round > 0 && found == Found::Hit);
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
        let cache =
            |replacement| hits(&Cache { hash, replacement, ..spec(16, 8) }, &lines, 1000) as f64;
        assert_eq!(cache(ReplacementPolicy::Lru), 0.0);
        // Each access evicts one of eight lines at most: well over half stay
        // until their turn comes again.
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
