//! Answers held in memory: those used last, within a bound.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// An answer as JSON, once it is there; whoever finds it out has it locked.
pub(super) type Place = Arc<Mutex<Option<String>>>;

/// Answers by the numbers of their questions.
#[derive(Debug)]
pub(super) struct Answers {
    places: BTreeMap<u128, Entry>,
    most_bytes: usize,
    bytes: usize,
    /// Counts uses.
    now: u64,
}

#[derive(Debug, Default)]
struct Entry {
    place: Place,
    /// 0: there is no answer yet.
    bytes: usize,
    /// When it was used last.
    used: u64,
}

impl Answers {
    /// None, and at most so many bytes of them.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { places: BTreeMap::new(), most_bytes, bytes: 0, now: 0 }
    }

    /// Where the answer to the question `key` is, or will be.
    pub(super) fn place(&mut self, key: u128) -> Place {
        self.now += 1;
        let entry = self.places.entry(key).or_default();
        entry.used = self.now;
        Arc::clone(&entry.place)
    }

    /// The answer to `key` has come and has so many bytes; `None`: it has not. Where all
    /// are more than the bound, those that nobody used for longest go; who has their
    /// places keeps them.
    pub(super) fn put(&mut self, key: u128, bytes: Option<usize>) {
        let Some(entry) = self.places.get_mut(&key) else { return };
        let Some(bytes) = bytes else {
            self.bytes -= entry.bytes;
            self.places.remove(&key);
            return;
        };
        self.bytes = self.bytes - entry.bytes + bytes;
        entry.bytes = bytes;
        while self.bytes > self.most_bytes {
            let there = self.places.iter().filter(|(_, entry)| entry.bytes > 0);
            let Some(oldest) = there.min_by_key(|(_, entry)| entry.used).map(|(&key, _)| key)
            else {
                return;
            };
            self.bytes -= self.places.remove(&oldest).map_or(0, |entry| entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Answers;

    #[test]
    fn those_used_last_are_held_within_the_bound() {
        let mut answers = Answers::new(100);
        let held = |answers: &Answers| answers.places.keys().copied().collect::<Vec<_>>();
        let working = answers.place(9);
        for key in 0..4 {
            answers.place(key);
            answers.put(key, Some(30));
            answers.place(0);
        }
        assert_eq!(held(&answers), [0, 2, 3, 9], "1 was not used since; nobody knows 9 yet");
        assert!(Arc::ptr_eq(&working, &answers.place(9)));
        answers.put(9, Some(500));
        assert_eq!((held(&answers), answers.bytes), (vec![], 0), "too large for all");
        answers.place(5);
        answers.put(5, None);
        assert_eq!(held(&answers), [], "no answer, no place");
    }
}
