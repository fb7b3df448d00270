//! Results that many runs need: a process computes each once, and keeps it for later runs.
//!
//! They lie in the cache folder, results of this process in memory as well. Two processes
//! with one cache folder may compute the same result.

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

/// Bytes of results in memory; the cells of an hour need far less.
const MAX_BYTES_IN_MEMORY: usize = 64 << 20;

/// The build of the program, which is part of every key.
pub(crate) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("GPUMODEL_BUILD"));

/// Results by key, and profiles of code.
#[derive(Debug)]
pub(crate) struct ResultCache {
    memory: Mutex<MemoryCache>,
    disk: DiskCache,
    profiles: Profiles,
}

impl ResultCache {
    /// The results in the folder `cache`.
    pub(crate) fn new(cache: &Path) -> Self {
        let (disk, profiles) = (DiskCache::new(cache), Profiles::new(cache));
        Self { memory: Mutex::default(), disk, profiles }
    }

    /// The profiles in the same folder.
    pub(crate) fn profiles(&self) -> Profiles {
        self.profiles.clone()
    }

    /// The result under the key of `key_parts`, computed by `work` if it is not known. Other
    /// threads that need it wait meanwhile, so `work` must not wait for them.
    pub(crate) fn get_or_compute<T: Serialize + DeserializeOwned>(
        &self,
        key_parts: &[String],
        work: impl FnOnce() -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let key = key(key_parts);
        let slot = lock(&self.memory).slot(key);
        let mut text = waited(|| lock(&slot));
        if let Some(result) = text.as_ref().and_then(|text| serde_json::from_str(text).ok()) {
            return Ok(result);
        }
        let result = match self.disk.get_json(Kind::Results, key) {
            Some(result) => result,
            None => work().inspect(|result| self.disk.put_json(Kind::Results, key, result))?,
        };
        *text = serde_json::to_string(&result).ok();
        let bytes = text.as_ref().map_or(0, String::len);
        drop(text);
        lock(&self.memory).add(bytes);
        Ok(result)
    }
}

/// The hash of `key_parts` and this build.
pub(crate) fn key(key_parts: &[String]) -> u128 {
    key_of(BUILD, key_parts)
}

/// The hash of `key_parts` and another build.
pub(crate) fn key_of(build: &str, key_parts: &[String]) -> u128 {
    let mut text = String::from(build);
    for part in key_parts {
        // Their lengths separate the parts.
        text += &format!("\n{} {part}", part.len());
    }
    xxh3_128(text.as_bytes())
}

/// Locks a value that is whole even after a panic: it is only set at once.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A result as JSON; locked while it is computed.
type Slot = Arc<Mutex<Option<String>>>;

/// Results in memory.
#[derive(Debug, Default)]
struct MemoryCache {
    slots: BTreeMap<u128, Slot>,
    bytes: usize,
}

impl MemoryCache {
    fn slot(&mut self, key: u128) -> Slot {
        Arc::clone(self.slots.entry(key).or_default())
    }

    /// Counts a new result. Beyond the bound all results are dropped from memory, but for
    /// those that are being computed.
    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES_IN_MEMORY {
            self.slots.retain(|_, slot| slot.try_lock().map_or(true, |text| text.is_none()));
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{MAX_BYTES_IN_MEMORY, MemoryCache, ResultCache, key};

    #[test]
    fn a_result_is_computed_once_and_found_by_later_runs() {
        let cache = tempfile::tempdir().unwrap();
        let asked = AtomicU32::new(0);
        let key_parts = [String::from("how long"), String::from("a")];
        let ask = |results: &ResultCache| {
            let work = || {
                asked.fetch_add(1, Ordering::Relaxed);
                Ok((0.1 + 0.2, vec![u64::MAX]))
            };
            results.get_or_compute(&key_parts, work).unwrap()
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
    fn parts_of_a_key_are_separate() {
        let of = |key_parts: &[&str]| {
            key(&key_parts.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_ne!(of(&["a", "b"]), of(&["a\n1 b"]));
        assert_ne!(of(&["ab"]), of(&["a", "b"]));
    }

    #[test]
    fn memory_is_bounded_and_keeps_what_is_being_computed() {
        let mut memory = MemoryCache::default();
        let working = memory.slot(9);
        for key in 0..4 {
            *memory.slot(key).lock().unwrap() = Some(String::from("5"));
            memory.add(MAX_BYTES_IN_MEMORY / 3);
        }
        assert!(memory.slots.keys().eq(&[9]), "{:?}", memory.slots.keys());
        assert!(Arc::ptr_eq(&working, &memory.slot(9)));
    }
}
