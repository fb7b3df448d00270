//! Answers that many runs need: each is computed once by a process, and kept between runs.
//!
//! They lie in the cache folder; those used last are held in memory as well. Of several
//! processes with one cache folder two may compute the same answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_128;

use super::profiles::Profiles;
use super::times::waited;
use super::{DiskCache, Kind};
use crate::RunError;

/// Bytes that are held in memory: those that the cells of an hour need, by far.
const MAX_BYTES_IN_MEMORY: usize = 64 << 20;

/// The build of the program: what another one has kept is not taken for this one's.
pub(crate) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("GPUMODEL_BUILD"));

/// Answers by their questions, and profiles of code.
#[derive(Debug)]
pub(crate) struct ResultCache {
    held: Mutex<LruResults>,
    cache: DiskCache,
    profiles: Profiles,
}

impl ResultCache {
    /// What is kept in the folder `cache`.
    pub(crate) fn new(cache: &Path) -> Self {
        let (held, profiles) =
            (Mutex::new(LruResults::new(MAX_BYTES_IN_MEMORY)), Profiles::new(cache));
        Self { held, cache: DiskCache::new(cache), profiles }
    }

    /// The profiles of the same folder.
    pub(crate) fn profiles(&self) -> Profiles {
        self.profiles.clone()
    }

    /// The answer to the question that `words` are. Where it is not known, `work` computes it;
    /// another thread that asks meanwhile waits, so `work` must not wait for others.
    pub(crate) fn find<T: Serialize + DeserializeOwned>(
        &self,
        key_parts: &[String],
        work: impl FnOnce() -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let key = key(key_parts);
        let slot = lock(&self.held).slot(key);
        let mut text = waited(|| lock(&slot));
        if let Some(answer) = text.as_ref().and_then(|text| serde_json::from_str(text).ok()) {
            return Ok(answer);
        }
        let found = match self.cache.get_json(Kind::LruResults, key) {
            Some(answer) => Ok(answer),
            None => work().inspect(|answer| self.cache.put_json(Kind::LruResults, key, answer)),
        };
        *text = found.as_ref().ok().and_then(|answer| serde_json::to_string(answer).ok());
        let bytes = text.as_ref().map(String::len);
        drop(text);
        lock(&self.held).put(key, bytes);
        found
    }
}

/// The number that stands for `words` in this build.
pub(crate) fn key(key_parts: &[String]) -> u128 {
    key_of(BUILD, key_parts)
}

/// What another build called it.
pub(crate) fn key_of(build: &str, key_parts: &[String]) -> u128 {
    let mut text = String::from(build);
    for word in key_parts {
        // Lengths keep words apart.
        text += &format!("\n{} {word}", word.len());
    }
    xxh3_128(text.as_bytes())
}

/// What a thread that panicked has left is whole: values are put there at once.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An answer as JSON, once it is there; whoever finds it out has it locked.
pub(crate) type Slot = Arc<Mutex<Option<String>>>;

/// Answers by the numbers of their questions.
#[derive(Debug)]
pub(crate) struct LruResults {
    slots: BTreeMap<u128, Entry>,
    most_bytes: usize,
    bytes: usize,
    /// Counts uses.
    now: u64,
}

#[derive(Debug, Default)]
struct Entry {
    slot: Slot,
    /// 0: there is no answer yet.
    bytes: usize,
    /// When it was used last.
    used: u64,
}

impl LruResults {
    /// None, and at most so many bytes of them.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self { slots: BTreeMap::new(), most_bytes, bytes: 0, now: 0 }
    }

    /// Where the answer to the question `key` is, or will be.
    pub(crate) fn slot(&mut self, key: u128) -> Slot {
        self.now += 1;
        let entry = self.slots.entry(key).or_default();
        entry.used = self.now;
        Arc::clone(&entry.slot)
    }

    /// The answer to `key` has come and has so many bytes; `None`: it has not. Where all
    /// are more than the bound, those that nobody used for longest go; who has their
    /// places keeps them.
    pub(crate) fn put(&mut self, key: u128, bytes: Option<usize>) {
        let Some(entry) = self.slots.get_mut(&key) else { return };
        let Some(bytes) = bytes else {
            self.bytes -= entry.bytes;
            self.slots.remove(&key);
            return;
        };
        self.bytes = self.bytes - entry.bytes + bytes;
        entry.bytes = bytes;
        while self.bytes > self.most_bytes {
            let there = self.slots.iter().filter(|(_, entry)| entry.bytes > 0);
            let Some(oldest) = there.min_by_key(|(_, entry)| entry.used).map(|(&key, _)| key)
            else {
                return;
            };
            self.bytes -= self.slots.remove(&oldest).map_or(0, |entry| entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{LruResults, ResultCache, key};

    #[test]
    fn a_question_is_worked_on_once_also_by_those_who_come_later() {
        let cache = tempfile::tempdir().unwrap();
        let asked = AtomicU32::new(0);
        let key_parts = [String::from("how long"), String::from("a")];
        let ask = |results: &ResultCache| {
            let work = || {
                asked.fetch_add(1, Ordering::Relaxed);
                Ok((0.1 + 0.2, vec![u64::MAX]))
            };
            results.find(&key_parts, work).unwrap()
        };
        let results = ResultCache::new(cache.path());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(ask(&results), (0.1 + 0.2, vec![u64::MAX])));
            }
        });
        assert_eq!(ask(&ResultCache::new(cache.path())).1, [u64::MAX]);
        assert_eq!(asked.into_inner(), 1);
    }

    #[test]
    fn words_are_kept_apart() {
        let of = |key_parts: &[&str]| {
            key(&key_parts.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_ne!(of(&["a", "b"]), of(&["a\n1 b"]));
        assert_ne!(of(&["ab"]), of(&["a", "b"]));
    }

    #[test]
    fn those_used_last_are_held_within_the_bound() {
        let mut answers = LruResults::new(100);
        let held = |answers: &LruResults| answers.slots.keys().copied().collect::<Vec<_>>();
        let working = answers.slot(9);
        for key in 0..4 {
            answers.slot(key);
            answers.put(key, Some(30));
            answers.slot(0);
        }
        assert_eq!(held(&answers), [0, 2, 3, 9], "1 was not used since; nobody knows 9 yet");
        assert!(Arc::ptr_eq(&working, &answers.slot(9)));
        answers.put(9, Some(500));
        assert_eq!((held(&answers), answers.bytes), (vec![], 0), "too large for all");
        answers.slot(5);
        answers.put(5, None);
        assert_eq!(held(&answers), [], "no answer, no place");
    }
}
