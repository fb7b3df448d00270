//! The ways of every set in an order, oldest first: the basis of LRU and FIFO in data caches,
//! TLBs, instruction and constant caches.

use gpumodel_core::units::{to_u32, to_usize};

const NONE: u32 = u32::MAX;

/// A linked list of the ways of each set; moving a way to an end needs no search.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineOrder {
    ways: usize,
    links: Vec<Link>,
    /// By set: the oldest and the youngest way.
    ends: Vec<(u32, u32)>,
}

/// The neighbours of a way in its set's list.
#[derive(Clone, Copy, Debug)]
struct Link {
    older: u32,
    younger: u32,
}

impl LineOrder {
    /// `sets` sets of `ways` ways, the first way of each the oldest.
    pub(crate) fn new(sets: u32, ways: u32) -> Self {
        let mut order = Self::default();
        order.reset(sets, ways);
        order
    }

    /// `sets` sets of `ways` ways, the first way of each the oldest.
    pub(crate) fn reset(&mut self, sets: u32, ways: u32) {
        let last = ways - 1;
        let link = |number: u32| {
            let (set, place) = (number / ways * ways, number % ways);
            Link {
                older: if place == 0 { NONE } else { set + place - 1 },
                younger: if place == last { NONE } else { set + place + 1 },
            }
        };
        self.ways = to_usize(ways);
        self.links.clear();
        self.links.extend((0..sets * ways).map(link));
        self.ends.clear();
        self.ends.extend((0..sets).map(|set| (set * ways, set * ways + last)));
    }

    /// Makes a way the youngest of its set.
    #[inline]
    pub(crate) fn move_to_youngest(&mut self, way: usize) {
        let number = to_u32(way);
        let set = way / self.ways;
        let (oldest, youngest) = self.ends[set];
        if youngest == number {
            return;
        }
        let Link { older, younger } = self.links[way];
        self.links[to_usize(younger)].older = older;
        if oldest == number {
            self.ends[set].0 = younger;
        } else {
            self.links[to_usize(older)].younger = younger;
        }
        self.links[to_usize(youngest)].younger = number;
        self.ends[set].1 = number;
        self.links[way] = Link { older: youngest, younger: NONE };
    }

    /// Makes a way the oldest of its set.
    pub(crate) fn move_to_oldest(&mut self, way: usize) {
        let number = to_u32(way);
        let set = way / self.ways;
        let (oldest, youngest) = self.ends[set];
        if oldest == number {
            return;
        }
        let Link { older, younger } = self.links[way];
        self.links[to_usize(older)].younger = younger;
        if youngest == number {
            self.ends[set].1 = older;
        } else {
            self.links[to_usize(younger)].older = older;
        }
        self.links[to_usize(oldest)].older = number;
        self.ends[set].0 = number;
        self.links[way] = Link { older: NONE, younger: oldest };
    }

    /// The oldest way of a set among the `evictable` ones.
    #[inline]
    pub(crate) fn oldest(&self, set: usize, evictable: impl Fn(usize) -> bool) -> Option<usize> {
        let mut way = self.ends[set].0;
        while way != NONE {
            if evictable(to_usize(way)) {
                return Some(to_usize(way));
            }
            way = self.links[to_usize(way)].younger;
        }
        None
    }
}
