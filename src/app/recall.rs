//! Answers that many runs need: each is computed once by a process, and kept between runs.
//!
//! They lie in the cache folder; those used last are held in memory as well. Of several
//! processes with one cache folder two may compute the same answer.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_128;

use super::answers::Answers;
use super::disk_cache::{DiskCache, Kind};
use super::error::RunError;
use super::profiles::Profiles;
use super::stopwatch::waited;

/// Bytes that are held in memory: those that the cells of an hour need, by far.
const HELD_BYTES: usize = 64 << 20;

/// The build of the program: what another one has kept is not taken for this one's.
pub(super) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("GPUMODEL_BUILD"));

/// Answers by their questions, and profiles of code.
#[derive(Debug)]
pub(super) struct Recall {
    held: Mutex<Answers>,
    cache: DiskCache,
    profiles: Profiles,
}

impl Recall {
    /// What is kept in the folder `cache`.
    pub(super) fn new(cache: &Path) -> Self {
        let (held, profiles) = (Mutex::new(Answers::new(HELD_BYTES)), Profiles::new(cache));
        Self { held, cache: DiskCache::new(cache), profiles }
    }

    /// The profiles of the same folder.
    pub(super) fn profiles(&self) -> Profiles {
        self.profiles.clone()
    }

    /// The answer to the question that `words` are. Where it is not known, `work` computes it;
    /// another thread that asks meanwhile waits, so `work` must not wait for others.
    pub(super) fn find<T: Serialize + DeserializeOwned>(
        &self,
        words: &[String],
        work: impl FnOnce() -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let key = key(words);
        let place = lock(&self.held).place(key);
        let mut text = waited(|| lock(&place));
        if let Some(answer) = text.as_ref().and_then(|text| serde_json::from_str(text).ok()) {
            return Ok(answer);
        }
        let found = match self.cache.find(Kind::Answers, key) {
            Some(answer) => Ok(answer),
            None => work().inspect(|answer| self.cache.keep(Kind::Answers, key, answer)),
        };
        *text = found.as_ref().ok().and_then(|answer| serde_json::to_string(answer).ok());
        let bytes = text.as_ref().map(String::len);
        drop(text);
        lock(&self.held).put(key, bytes);
        found
    }
}

/// The number that stands for `words` in this build.
pub(super) fn key(words: &[String]) -> u128 {
    key_of(BUILD, words)
}

/// What another build called it.
pub(super) fn key_of(build: &str, words: &[String]) -> u128 {
    let mut text = String::from(build);
    for word in words {
        // Lengths keep words apart.
        text += &format!("\n{} {word}", word.len());
    }
    xxh3_128(text.as_bytes())
}

/// What a thread that panicked has left is whole: values are put there at once.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{Recall, key};

    #[test]
    fn a_question_is_worked_on_once_also_by_those_who_come_later() {
        let cache = tempfile::tempdir().unwrap();
        let asked = AtomicU32::new(0);
        let words = [String::from("how long"), String::from("a")];
        let ask = |recall: &Recall| {
            let work = || {
                asked.fetch_add(1, Ordering::Relaxed);
                Ok((0.1 + 0.2, vec![u64::MAX]))
            };
            recall.find(&words, work).unwrap()
        };
        let recall = Recall::new(cache.path());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(ask(&recall), (0.1 + 0.2, vec![u64::MAX])));
            }
        });
        assert_eq!(ask(&Recall::new(cache.path())).1, [u64::MAX]);
        assert_eq!(asked.into_inner(), 1);
    }

    #[test]
    fn words_are_kept_apart() {
        let of = |words: &[&str]| key(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_ne!(of(&["a", "b"]), of(&["a\n1 b"]));
        assert_ne!(of(&["ab"]), of(&["a", "b"]));
    }
}
