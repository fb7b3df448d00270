//! Answers that many runs need: each is found out once, and kept between runs.
//!
//! They lie on a shelf in the cache folder; those used last are held in memory as well.
//! Several processes with one cache folder claim what they find out, so that others wait
//! for the answer instead of finding it out again.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_128;

use super::answers::Answers;
use super::cached;
use super::claims::{Claims, Owner};
use super::error::RunError;
use super::profiles::Profiles;
use super::shelf::Shelf;
use super::stopwatch::waited;

/// Bytes that are kept between runs.
const MOST_BYTES: u64 = 256 << 20;

/// Bytes that are held in memory: those that the cells of an hour need, by far.
const HELD_BYTES: usize = 64 << 20;

/// How often somebody looks whether another process has the answer.
const PAUSE: Duration = Duration::from_millis(50);

/// The build of the program: what another one has kept is not taken for this one's.
pub(super) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("GPUMODEL_BUILD"));

/// Answers by their questions, and profiles of code.
#[derive(Debug)]
pub(super) struct Recall {
    held: Mutex<Answers>,
    shelf: Shelf,
    profiles: Profiles,
    cache: PathBuf,
    expiry: Duration,
    /// `None`: claims cannot be written, so everybody finds everything out.
    claims: OnceLock<Option<Claims>>,
}

impl Recall {
    /// What is kept in the folder `cache`. Other processes take this one for gone when it
    /// has not been heard of for `expiry`.
    pub(super) fn new(cache: &Path, expiry: Duration) -> Self {
        Self {
            held: Mutex::new(Answers::new(HELD_BYTES)),
            shelf: Shelf::new(cache.join("sweeps"), "json", MOST_BYTES),
            profiles: Profiles::new(cache),
            cache: cache.to_path_buf(),
            expiry,
            claims: OnceLock::new(),
        }
    }

    /// The profiles of the same folder.
    pub(super) fn profiles(&self) -> Profiles {
        self.profiles.clone()
    }

    /// The answer to the question that `words` are. Where nobody knows it, `work` finds
    /// it out; who asks meanwhile waits, so `work` must not wait for others.
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
        let found = self.learn(key, work);
        *text = found.as_ref().ok().and_then(|answer| serde_json::to_string(answer).ok());
        let bytes = text.as_ref().map(String::len);
        drop(text);
        lock(&self.held).put(key, bytes);
        found
    }

    /// The answer from the shelf; where it is not there, whoever claims the question
    /// finds it out.
    fn learn<T: Serialize + DeserializeOwned>(
        &self,
        key: u128,
        work: impl FnOnce() -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let name = format!("{key:032x}");
        let mut first = None;
        let claim = loop {
            if let Some(answer) = self.shelf.find(key) {
                return Ok(answer);
            }
            let Some(claims) = self.claims() else { break None };
            match claims.take(&name) {
                Ok(None) if waits(&mut first, claims.holder(&name)) => {
                    waited(|| std::thread::sleep(PAUSE));
                }
                Ok(claim) => break claim,
                Err(_) => break None,
            }
        };
        // It may have come between the look at the shelf and the claim.
        if claim.is_some()
            && let Some(answer) = self.shelf.find(key)
        {
            return Ok(answer);
        }
        let answer = work()?;
        self.shelf.keep(key, &answer);
        Ok(answer)
    }

    /// The claims; who enters first removes what is nobody's any more.
    fn claims(&self) -> Option<&Claims> {
        let enter = || {
            let working = self.cache.join("working");
            std::fs::create_dir_all(&working).ok()?;
            let claims = Claims::enter(&working, self.expiry).ok()?;
            if claims.tidy(|_| false) {
                self.shelf.clean();
                self.profiles.clean();
                cached::clean(&self.cache);
            }
            Some(claims)
        };
        self.claims.get_or_init(enter).as_ref()
    }

    /// Removes what killed processes have left in the cache folder, where no other works
    /// there and that was not done before.
    pub(super) fn clean(&self) {
        let _ = self.claims();
    }
}

/// Whether to wait for who has claimed a question: for the first one. Where that one is
/// gone and left no answer, perhaps none can be kept: all would wait in a row.
fn waits(first: &mut Option<Owner>, holder: Option<Owner>) -> bool {
    let Some(holder) = holder else { return true };
    *first.get_or_insert_with(|| holder.clone()) == holder
}

/// Whether `name` is the number of a [`key`] as files are called by it.
pub(super) fn is_key(name: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.len() == 32 && name.bytes().all(digit)
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
    use std::time::Duration;

    use super::{Owner, Recall, key, waits};

    const LONG: Duration = Duration::from_secs(600);

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
        let recall = Recall::new(cache.path(), LONG);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(ask(&recall), (0.1 + 0.2, vec![u64::MAX])));
            }
        });
        assert_eq!(ask(&Recall::new(cache.path(), LONG)).1, [u64::MAX]);
        assert_eq!(asked.into_inner(), 1);
    }

    #[test]
    fn who_comes_while_another_process_finds_out_waits_for_the_answer() {
        let cache = tempfile::tempdir().unwrap();
        // Another machine has claimed the question, and is heard of.
        let (words, far) = ([String::from("how long")], "far~b~1~1~1");
        let working = cache.path().join("working");
        std::fs::create_dir_all(&working).unwrap();
        std::fs::write(working.join(format!("{far}.owner")), "0 0").unwrap();
        let claim = working.join(format!("{:032x}.claim", key(&words)));
        std::fs::write(&claim, format!("{far}\n")).unwrap();
        let recall = Recall::new(cache.path(), LONG);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| recall.find(&words, || Ok(1)).unwrap());
            std::thread::sleep(Duration::from_millis(200));
            assert!(!asked.is_finished());
            recall.shelf.keep(key(&words), &2);
            assert_eq!(asked.join().unwrap(), 2);
        });
        drop(recall);
        assert_eq!(std::fs::read_dir(&working).unwrap().count(), 2, "those of the other");
    }

    #[test]
    fn what_killed_processes_have_left_in_the_cache_goes() {
        let cache = tempfile::tempdir().unwrap();
        let at = |name: &str| cache.path().join(name);
        let (key, dead) = ("0123456789abcdef0123456789abcdef", "far~b~1~1~1");
        std::fs::create_dir_all(at("sweeps")).unwrap();
        std::fs::create_dir_all(at("working")).unwrap();
        let left = [
            format!(".{key}.gpt.7.partial"),
            format!(".{key}.notes.7.1.partial"),
            String::from("sweeps/.kept-a.partial"),
            format!("working/{dead}.claim"),
        ];
        let others = [
            format!("{key}.gpt"),
            String::from(".mine.gpt.7.partial"),
            format!(".{key}.7.partial"),
        ];
        for name in left.iter().chain(&others) {
            std::fs::write(at(name), "half").unwrap();
        }
        Recall::new(cache.path(), LONG).clean();
        assert_eq!(left.iter().find(|name| at(name).exists()), None);
        assert_eq!(others.iter().find(|name| !at(name).exists()), None);
        // Another process is here, and perhaps it writes.
        std::fs::write(at(&format!("working/{dead}.owner")), "0 0").unwrap();
        std::fs::write(at(&left[0]), "half").unwrap();
        Recall::new(cache.path(), LONG).clean();
        assert!(at(&left[0]).exists());
    }

    #[test]
    fn nobody_waits_for_one_after_the_other() {
        let owner = |name: &str| Some(Owner::named(name));
        let mut first = None;
        for (holder, wait) in [
            (None, true),
            (owner("a"), true),
            (owner("a"), true),
            (None, true),
            (owner("b"), false),
        ] {
            assert_eq!(waits(&mut first, holder.clone()), wait, "{holder:?}");
        }
    }

    #[test]
    fn words_are_kept_apart() {
        let of = |words: &[&str]| key(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_ne!(of(&["a", "b"]), of(&["a\n1 b"]));
        assert_ne!(of(&["ab"]), of(&["a", "b"]));
    }
}
