//! The ways of every set in an order, oldest first: the basis of LRU and FIFO in data caches,
//! TLBs, instruction and constant caches.

use gpumodel_core::units::{to_u32, to_usize};

const NONE: u32 = u32::MAX;

/// Up to so many ways the order of a set is one word.
const PACKED_WAYS: usize = 16;

/// The order of the ways of each set; moving a way to an end needs no search through memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineOrder {
    ways: usize,
    /// By set, up to [`PACKED_WAYS`] ways.
    packed: Vec<Places>,
    /// Of each way, where a set has more ways than that.
    links: Vec<Link>,
    /// By set, with `links`: the oldest and the youngest way.
    ends: Vec<(u32, u32)>,
}

/// The places of a set's ways in four bits each, the oldest lowest.
#[derive(Clone, Copy, Debug)]
struct Places(u64);

impl Places {
    /// Each way at its place: the first is the oldest.
    const IN_ORDER: Self = Self(0xfedc_ba98_7654_3210);

    /// The lowest bit of each place.
    const ONES: u64 = 0x1111_1111_1111_1111;

    /// The bits below the entry of a place, which must be listed.
    #[inline]
    fn bits_below(self, place: usize) -> u32 {
        let others = self.0 ^ (place as u64 * Self::ONES);
        // The highest bit of the four that are zero, and of none below them.
        let found = others.wrapping_sub(Self::ONES) & !others & (Self::ONES << 3);
        found.trailing_zeros() & !3
    }

    /// The place that is `age`th from the oldest.
    #[inline]
    fn at(self, age: usize) -> usize {
        to_usize(to_u32(self.0 >> (4 * age) & 15))
    }

    /// Makes a place the youngest of the first `ways`.
    #[inline]
    fn move_to_youngest(&mut self, place: usize, ways: usize) {
        let (below, top) = (self.bits_below(place), 4 * (ways - 1));
        let listed = u64::MAX >> (60 - top);
        let older = (1 << below) - 1;
        let younger = (self.0 & listed) >> 4 & !older;
        self.0 = self.0 & (older | !listed) | younger | (place as u64) << top;
    }

    /// Makes a place the oldest.
    fn move_to_oldest(&mut self, place: usize) {
        let older = (1 << self.bits_below(place)) - 1;
        let younger = self.0 & !older & !(older << 4 | 15);
        self.0 = younger | (self.0 & older) << 4 | place as u64;
    }
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
        self.ways = to_usize(ways);
        self.packed.clear();
        self.links.clear();
        self.ends.clear();
        if self.ways <= PACKED_WAYS {
            self.packed.resize(to_usize(sets), Places::IN_ORDER);
            return;
        }
        let last = ways - 1;
        let link = |number: u32| {
            let (set, place) = (number / ways * ways, number % ways);
            Link {
                older: if place == 0 { NONE } else { set + place - 1 },
                younger: if place == last { NONE } else { set + place + 1 },
            }
        };
        self.links.extend((0..sets * ways).map(link));
        self.ends.extend((0..sets).map(|set| (set * ways, set * ways + last)));
    }

    /// Makes a way the youngest of its set.
    #[inline]
    pub(crate) fn move_to_youngest(&mut self, way: usize) {
        let set = way / self.ways;
        if let Some(places) = self.packed.get_mut(set) {
            places.move_to_youngest(way - set * self.ways, self.ways);
        } else {
            self.link_as_youngest(way, set);
        }
    }

    fn link_as_youngest(&mut self, way: usize, set: usize) {
        let number = to_u32(way);
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
        let set = way / self.ways;
        if let Some(places) = self.packed.get_mut(set) {
            return places.move_to_oldest(way - set * self.ways);
        }
        let number = to_u32(way);
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
        if let Some(places) = self.packed.get(set) {
            let mut ways = (0..self.ways).map(|age| set * self.ways + places.at(age));
            return ways.find(|&way| evictable(way));
        }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LineOrder, PACKED_WAYS};

    proptest! {
        #[test]
        fn any_moves_leave_the_order_of_a_list(
            ways in 1..2 * PACKED_WAYS,
            moves in prop::collection::vec((0..64_usize, any::<bool>()), 0..60),
        ) {
            let mut order = LineOrder::new(2, u32::try_from(ways).unwrap());
            // The second set; the first stays as it is.
            let mut list: Vec<usize> = (ways..2 * ways).collect();
            for (number, youngest) in moves {
                let way = ways + number % ways;
                list.retain(|&other| other != way);
                list.insert(if youngest { list.len() } else { 0 }, way);
                if youngest { order.move_to_youngest(way) } else { order.move_to_oldest(way) }
            }
            let mut left = list.clone();
            for oldest in list {
                prop_assert_eq!(order.oldest(1, |way| left.contains(&way)), Some(oldest));
                left.remove(0);
            }
            prop_assert_eq!(order.oldest(1, |_| false), None);
            prop_assert_eq!(order.oldest(0, |way| way + 1 == ways), Some(ways - 1));
        }
    }
}
