//! The file of a process that is here: rewritten now and then, so that others see that it is
//! alive, and whenever it is to hold more memory.

use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gpumodel_core::units::Passing;

use super::seconds;

/// A process rewrites its file so many times before others may take it for gone.
const BEATS: u32 = 6;

/// Who holds less memory than before says so not sooner than so long after it has last done
/// that: a process that looks again and again for work is not to write as often.
const REST: Duration = Duration::from_secs(1);

/// The file of this process, which goes with this value.
#[derive(Debug)]
pub(super) struct Beating {
    beat: Arc<Mutex<Beat>>,
    /// Ends the thread that rewrites the file.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Beat {
    file: Passing,
    number: u64,
    /// Bytes of memory that the process holds, or is about to.
    bytes: u64,
    /// What the file says of them.
    told: u64,
    /// When it last came to say less than before.
    less: Option<Instant>,
    /// [`REST`], but for tests.
    rest: Duration,
}

impl Beating {
    /// Makes the file `path`; others may take this process for gone when they have not heard
    /// of it for `expiry`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(super) fn begin(path: &Path, expiry: Duration) -> io::Result<Self> {
        let first = text(0, 0);
        let file = match Passing::create_new(path, &first)? {
            Some(file) => file,
            // Made, though the file system did not hear itself say so.
            None => Passing::adopt(path, &first)?,
        };
        let beat = Beat { file, number: 0, bytes: 0, told: 0, less: None, rest: REST };
        let beat = Arc::new(Mutex::new(beat));
        let (end, ended) = channel();
        let shared = Arc::clone(&beat);
        let thread = std::thread::spawn(move || {
            while ended.recv_timeout(expiry / BEATS) == Err(RecvTimeoutError::Timeout) {
                locked(&shared).write();
            }
        });
        Ok(Self { beat, end: Some(end), thread: Some(thread) })
    }

    /// This process holds `bytes` from now on: others hear at once of more, and of less
    /// once in a while.
    pub(super) fn hold(&self, bytes: u64) {
        let mut beat = locked(&self.beat);
        beat.bytes = bytes;
        let lately = beat.less.is_some_and(|less| less.elapsed() < beat.rest);
        if bytes > beat.told || (bytes < beat.told && !lately) {
            beat.write();
        }
    }
}

impl Drop for Beating {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It cannot panic; the file goes after it.
            let _ = thread.join();
        }
    }
}

impl Beat {
    /// Writes the file anew.
    fn write(&mut self) {
        self.number += 1;
        // A folder that cannot be written now may be later.
        if self.file.rewrite(&text(self.number, self.bytes)).is_ok() {
            if self.bytes < self.told {
                self.less = Some(Instant::now());
            }
            self.told = self.bytes;
        }
    }
}

fn locked(beat: &Mutex<Beat>) -> MutexGuard<'_, Beat> {
    // Numbers and a file: a panic leaves them whole.
    beat.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that was not there before, with the time for people and the bytes that are held.
fn text(number: u64, bytes: u64) -> Vec<u8> {
    format!("{number} {} {bytes}\n", seconds()).into_bytes()
}

/// The bytes that a process holds, by its file; none where that does not say it, as an older
/// program's.
pub(super) fn bytes(text: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(text);
    let word = text.strip_suffix('\n').and_then(|line| line.split(' ').nth(2));
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::{Beating, bytes, locked};

    /// Longer than a test takes.
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn what_is_held_is_read_and_nothing_from_a_file_that_does_not_say_it() {
        assert_eq!(bytes(b"3 1700000000 4096\n"), 4096);
        for other in [&b"3 1700000000\n"[..], b"", b"3 17", b"3 1700000000 40", b"3 9 x\n"] {
            assert_eq!(bytes(other), 0);
        }
    }

    #[test]
    fn who_looks_while_it_is_told_again_and_again_hears_of_what_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.owner");
        let beating = Beating::begin(&path, LONG).unwrap();
        beating.hold(1000);
        std::thread::scope(|scope| {
            let tell = scope.spawn(|| (1000..1500).for_each(|held| beating.hold(held)));
            while !tell.is_finished() {
                let said = bytes(&fs::read(&path).unwrap());
                assert!((1000..1500).contains(&said), "{said}");
            }
        });
    }

    #[test]
    fn others_hear_at_once_of_more_and_of_less_not_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.owner");
        let beating = Beating::begin(&path, LONG).unwrap();
        locked(&beating.beat).rest = LONG;
        let said = || bytes(&fs::read(&path).unwrap());
        assert_eq!(said(), 0);
        for (held, heard) in [(70, 70), (50, 50), (90, 90), (40, 90), (95, 95)] {
            beating.hold(held);
            assert_eq!(said(), heard);
        }
        drop(beating);
        assert!(!path.exists());
    }

    #[test]
    fn less_is_heard_of_with_the_next_beat() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.owner");
        let beating = Beating::begin(&path, Duration::from_millis(60)).unwrap();
        locked(&beating.beat).rest = LONG;
        for held in [70, 50, 70, 30] {
            beating.hold(held);
        }
        let begin = std::time::Instant::now();
        while bytes(&fs::read(&path).unwrap()) != 30 {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
