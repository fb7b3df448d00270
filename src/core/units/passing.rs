//! Files that say something for a while and then go.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{NamedTempFile, PersistError};

use super::output::{UNFINISHED, forget_unfinished, unfinished, uninterrupted};

/// A small file that is there while this value is, or until
/// [`remove_unfinished`](super::remove_unfinished) when the program is interrupted.
#[derive(Debug)]
pub struct Passing {
    path: PathBuf,
    /// What it holds as long as it is this program's; `None`: it is in any case.
    bytes: Option<Vec<u8>>,
}

impl Passing {
    /// Makes the file `path` with `bytes`, unless there is one already: of several
    /// programs that ask at once, one gets it. Whoever sees the file sees all of it.
    ///
    /// `None`: there is one already.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn create_new(path: &Path, bytes: &[u8]) -> io::Result<Option<Self>> {
        let put = || put_through(path, bytes, |file, path| file.persist_noclobber(path));
        match unfinished(|| Ok((path.to_path_buf(), put()?))) {
            Ok(()) => Ok(Some(Self { path: path.to_path_buf(), bytes: Some(bytes.to_vec()) })),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes over the file `path`, which is there, holds `bytes` and is this program's.
    ///
    /// # Errors
    /// None that is known.
    pub fn adopt(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let adopted = Self { path: path.to_path_buf(), bytes: Some(bytes.to_vec()) };
        unfinished(|| Ok((path.to_path_buf(), adopted)))
    }

    /// Puts a file with other bytes in its place, also where somebody has removed it or put
    /// another there. Whoever reads meanwhile sees all of them, or all of what was there.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn rewrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes = None;
        uninterrupted(|| put_through(&self.path, bytes, |file, path| file.persist(path)))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// How often a file that somebody clears away is written.
const ATTEMPTS: u32 = 16;

/// [`put`], also where somebody takes the file under its own name for a leftover and
/// removes it before it has the right one.
fn put_through(
    path: &Path,
    bytes: &[u8],
    name: impl Fn(NamedTempFile, &Path) -> Result<File, PersistError>,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let cleared = |error: &io::Error| error.kind() == ErrorKind::NotFound && folder.is_dir();
    for attempt in 1..ATTEMPTS {
        match put(path, bytes, &name) {
            // Longer each time: who clears away again and again does not stay in step.
            Err(error) if cleared(&error) => {
                std::thread::sleep(Duration::from_millis(attempt.into()));
            }
            done => return done,
        }
    }
    put(path, bytes, &name)
}

/// Writes a new file under a name of its own, then gives it the right one by `name`.
fn put(
    path: &Path,
    bytes: &[u8],
    name: impl Fn(NamedTempFile, &Path) -> Result<File, PersistError>,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".").suffix(UNFINISHED).tempfile_in(folder)?;
    file.write_all(bytes)?;
    name(file, path)?;
    Ok(())
}

impl Drop for Passing {
    fn drop(&mut self) {
        // Somebody may have taken it for abandoned, removed it and made another.
        let same = |bytes: &Vec<u8>| fs::read(&self.path).is_ok_and(|found| found == *bytes);
        if self.bytes.as_ref().is_none_or(same) {
            let _ = fs::remove_file(&self.path);
        }
        forget_unfinished(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Passing, UNFINISHED};
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    #[test]
    fn who_clears_away_what_is_not_finished_keeps_nobody_from_writing() {
        let folder = tempfile::tempdir().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    for entry in fs::read_dir(folder.path()).unwrap().flatten() {
                        if entry.path().to_string_lossy().ends_with(UNFINISHED) {
                            let _ = fs::remove_file(entry.path());
                        }
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            let made = (0..500).map(|n| folder.path().join(n.to_string()));
            let made: Vec<_> = made.map(|path| Passing::create_new(&path, b"me")).collect();
            done.store(true, Relaxed);
            let missing = made.iter().find(|one| !matches!(one, Ok(Some(_))));
            assert!(missing.is_none(), "{missing:?}");
        });
    }

    #[test]
    fn whoever_reads_a_file_that_is_written_anew_sees_all_of_one_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine");
        let texts = ["short\n".to_owned(), "long ".repeat(1000) + "\n"];
        let mut mine = Passing::create_new(&path, texts[0].as_bytes()).unwrap().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                while !done.load(Relaxed) {
                    let read = fs::read_to_string(&path).unwrap();
                    assert!(texts.contains(&read), "{} bytes", read.len());
                }
            });
            for text in texts.iter().cycle().take(500) {
                mine.rewrite(text.as_bytes()).unwrap();
            }
            done.store(true, Relaxed);
            read.join().unwrap();
        });
        fs::remove_file(&path).unwrap();
        mine.rewrite(b"again").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"again");
        drop(mine);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_of_many_gets_it_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine");
        let asked: Vec<Option<Passing>> = std::thread::scope(|scope| {
            let ask = |_| scope.spawn(|| Passing::create_new(&path, b"me").unwrap());
            let all: Vec<_> = (0..8).map(ask).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(asked.iter().flatten().count(), 1);
        assert_eq!(fs::read(&path).unwrap(), b"me");
        drop(asked);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
