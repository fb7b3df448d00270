//! The cycles of one port, each of which takes one packet.
//!
//! Reservations may lie ahead of the present and need not come in order: who
//! comes later may still take a cycle that others have left free.

/// Cycles of a word of the ring.
const WORD: u64 = 64;

/// Words of the ring: more cycles than full queues book ahead.
const WORDS: u64 = 64;

/// Taken cycles of a window that moves on with what is asked for.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// One bit per cycle; word `w` lies at `w` modulo the ring.
    taken: Box<[u64]>,
    /// The first word of the window; cycles before it count as taken.
    first: u64,
    /// All cycles of the window before this one are taken.
    solid: u64,
}

impl Slots {
    /// A port of which nothing is taken.
    pub(super) fn new() -> Self {
        let words = usize::try_from(WORDS).expect("a ring is small");
        Self { taken: vec![0; words].into(), first: 0, solid: 0 }
    }

    /// Takes the first free cycle at or after `from`.
    pub(super) fn take(&mut self, from: u64) -> u64 {
        let from = from.max(self.first * WORD);
        let skips = from <= self.solid;
        let from = from.max(self.solid);
        let mut word = from / WORD;
        let mut below = (1_u64 << (from % WORD)) - 1;
        loop {
            self.reach(word);
            let place = Self::place(word);
            let free = !(self.taken[place] | below);
            if free != 0 {
                let bit = free.trailing_zeros();
                self.taken[place] |= 1 << bit;
                let cycle = word * WORD + u64::from(bit);
                if skips {
                    self.solid = cycle + 1;
                }
                return cycle;
            }
            word += 1;
            below = 0;
        }
    }

    /// Moves the window on until it holds a word.
    fn reach(&mut self, word: u64) {
        if word < self.first + WORDS {
            return;
        }
        let first = word + 1 - WORDS;
        for old in self.first..first.min(self.first + WORDS) {
            self.taken[Self::place(old)] = 0;
        }
        self.first = first;
        self.solid = self.solid.max(first * WORD);
    }

    fn place(word: u64) -> usize {
        usize::try_from(word % WORDS).expect("a ring is small")
    }
}

#[cfg(test)]
mod tests {
    use super::{Slots, WORD, WORDS};

    #[test]
    fn a_cycle_takes_one_packet_and_a_gap_is_filled_later() {
        let mut slots = Slots::new();
        assert_eq!([slots.take(10), slots.take(10), slots.take(12)], [10, 11, 12]);
        assert_eq!([slots.take(3), slots.take(9), slots.take(9)], [3, 9, 13]);
    }

    #[test]
    fn a_full_stretch_is_passed_at_once_and_the_window_moves_on() {
        let mut slots = Slots::new();
        for cycle in 0..3 * WORD {
            assert_eq!(slots.take(0), cycle);
        }
        let far = WORDS * WORD * 5 + 7;
        assert_eq!([slots.take(far), slots.take(far)], [far, far + 1]);
        let oldest = slots.take(0);
        assert!(oldest < far && oldest >= far - WORDS * WORD, "{oldest}");
    }
}
