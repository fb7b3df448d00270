//! Output files that appear whole or not at all.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What names of files and folders that are not finished end with.
pub const UNFINISHED: &str = ".partial";

/// Temporary files and folders of outputs that are not finished yet.
static REGISTRY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A buffered output file under a temporary name in the target's own folder.
///
/// [`WholeFile::finish`] renames it to its target; dropping it without that
/// removes it. [`remove_unfinished`] removes those of an interrupted program.
#[derive(Debug)]
pub struct WholeFile {
    writer: Option<BufWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl WholeFile {
    /// Opens a temporary file beside `target`, or beside the file that a link there
    /// leads to.
    ///
    /// # Errors
    /// Whatever the file system says, and a target that is a folder, a device or a
    /// pipe; the message names the target.
    pub fn create(target: &Path) -> io::Result<Self> {
        let target = &real(target);
        if fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            let what = if target.is_dir() { "a folder" } else { "no regular file" };
            let message = format!("cannot write {}: it is {what}", target.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let name = target.file_name().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} is no file name", target.display()),
            )
        })?;
        let name = name.to_string_lossy();
        let made = unfinished(|| {
            let (path, file) = temporary(target, &name)?;
            Ok((path.clone(), (path, file)))
        });
        let (temporary, file) = made.map_err(|e| {
            io::Error::new(e.kind(), format!("cannot write {}: {e}", target.display()))
        })?;
        let writer = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(Self { writer, temporary, target: target.to_path_buf() })
    }

    /// Removes the temporary files that programs have left beside `target` which were
    /// killed while they wrote it.
    pub fn remove_abandoned(target: &Path) {
        let target = real(target);
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self::remove_abandoned_in(folder_of(&target), |found| found == name);
    }

    /// The same in `folder`, for all targets whose names `own` takes.
    pub fn remove_abandoned_in(folder: &Path, own: impl Fn(&str) -> bool) {
        Self::unfinished_in(folder, own).iter().for_each(|path| remove_unlocked(path));
    }

    /// The temporary files of targets in `folder` whose names `own` takes, and nothing that
    /// is called otherwise than this program calls them.
    pub fn unfinished_in(folder: &Path, own: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let passing = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let named = name.to_str().is_some_and(|name| targets(name).any(&own));
            named && entry.file_type().is_ok_and(|kind| kind.is_file())
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(passing).map(|entry| entry.path()).collect()
    }

    /// The file itself, for seeking back to a header; flush first.
    ///
    /// # Panics
    /// Never: the writer is only taken by [`WholeFile::finish`], which consumes `self`.
    pub fn writer(&mut self) -> &mut BufWriter<File> {
        self.writer.as_mut().expect("the writer lives until finish")
    }

    /// Flushes, syncs and gives the file its name.
    ///
    /// # Errors
    /// Whatever the file system says; the temporary file is then removed.
    pub fn finish(mut self) -> io::Result<()> {
        // Locked until it has its name: nobody takes it for abandoned before.
        let mut writer = self.writer.take();
        if let Some(writer) = &mut writer {
            writer.flush()?;
            writer.get_ref().sync_all()?;
        }
        fs::rename(&self.temporary, &self.target)?;
        drop(writer);
        sync_folder(&self.target);
        Ok(())
    }

    /// Writes `bytes` as the whole content of `target`; into it, where it is a
    /// device or a pipe.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
        if fs::metadata(target).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            return OpenOptions::new().write(true).open(target)?.write_all(bytes);
        }
        let mut file = Self::create(target)?;
        file.write_all(bytes)?;
        file.finish()
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        drop(self.writer.take());
        // After a successful rename the temporary name is gone: nothing to remove.
        let _ = fs::remove_file(&self.temporary);
        forget_unfinished(&self.temporary);
    }
}

/// The folder in which a file lies.
fn folder_of(target: &Path) -> &Path {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Brings the name of a file that has just got it to the disk: what was said to be written
/// is there after a power cut too. Not all file systems can, and then it is as it is.
fn sync_folder(target: &Path) {
    let _ = File::open(folder_of(target)).and_then(|folder| folder.sync_all());
}

/// The names of files that a temporary file called `temporary` may be for; none where it is
/// called otherwise than [`temporary`] does.
fn targets(temporary: &str) -> impl Iterator<Item = &str> {
    let front = temporary.strip_prefix('.').and_then(|rest| rest.strip_suffix(UNFINISHED));
    // The process, and perhaps how often it had to try.
    let once = front.and_then(without_number);
    let twice = once.and_then(without_number);
    [once, twice].into_iter().flatten().filter(|name| !name.is_empty())
}

/// What stands before a last `.NUMBER`.
fn without_number(name: &str) -> Option<&str> {
    let (front, number) = name.rsplit_once('.')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some(front)
}

/// Removes a file that nobody has locked, so that nobody writes it.
pub fn remove_unlocked(path: &Path) {
    if let Ok(file) = OpenOptions::new().write(true).open(path)
        && file.try_lock().is_ok()
    {
        let _ = fs::remove_file(path);
    }
}

/// The file that `target` is, or that a link there leads to.
fn real(target: &Path) -> PathBuf {
    fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf())
}

/// An empty file beside `target` that no other program writes: it is locked as long as it
/// is open, where the file system has locks.
fn temporary(target: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    for attempt in 0..100 {
        let again = if attempt == 0 { String::new() } else { format!(".{attempt}") };
        let hidden = format!(".{name}.{}{again}{UNFINISHED}", std::process::id());
        let path = target.with_file_name(hidden);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        let held = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        // Who removes abandoned files may have been faster.
        if !held && path.exists() {
            file.set_len(0)?;
            return Ok((path, file));
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "its temporary files are in use"))
}

fn registry() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    REGISTRY.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Makes a temporary file or folder and remembers its path for [`remove_unfinished`],
/// which does not come in between.
pub(super) fn unfinished<T>(make: impl FnOnce() -> io::Result<(PathBuf, T)>) -> io::Result<T> {
    let mut registry = registry();
    let (temporary, made) = make()?;
    registry.push(temporary);
    Ok(made)
}

/// Does `work`, into which [`remove_unfinished`] does not come.
pub(super) fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _registry = registry();
    work()
}

/// Forgets a temporary file or folder that is finished or removed.
pub(super) fn forget_unfinished(temporary: &Path) {
    registry().retain(|path| path != temporary);
}

/// Removes the temporary files and folders of unfinished outputs: for an interrupt
/// handler that then ends the program. Whoever begins another output meanwhile waits
/// for that end.
pub fn remove_unfinished() {
    let mut registry = registry();
    for path in registry.drain(..) {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
    std::mem::forget(registry);
}

#[cfg(test)]
mod tests {
    use super::WholeFile;
    use std::io::Write;

    #[test]
    fn a_dropped_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.txt");
        let mut file = WholeFile::create(&target).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        WholeFile::write(&target, b"whole").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_program_has_left_is_removed_and_what_is_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.txt");
        let mut one = WholeFile::create(&target).unwrap();
        let mut other = WholeFile::create(&target).unwrap();
        for name in [".out.txt.1.partial", ".out.txt.1.2.partial", ".other.txt.1.partial"] {
            std::fs::write(folder.path().join(name), "half").unwrap();
        }
        WholeFile::remove_abandoned(&target);
        one.write_all(b"one").unwrap();
        other.write_all(b"other").unwrap();
        one.finish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"one");
        other.finish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"other");
        let left = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name());
        assert_eq!(
            left.filter(|name| name != "out.txt").collect::<Vec<_>>(),
            [".other.txt.1.partial"]
        );
    }

    #[test]
    fn nothing_is_taken_for_a_leftover_that_is_called_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".a.csv.7.partial", ".a.csv.7.2.partial"] {
            std::fs::write(at(name), "half").unwrap();
        }
        std::fs::create_dir(at(".a.csv.8.partial")).unwrap();
        let others =
            [".x.partial", ".a.csv.partial", "a.csv.7.partial", ".a.csv.x.partial", ".7.partial"];
        others.iter().for_each(|name| std::fs::write(at(name), "mine").unwrap());
        let mut found = WholeFile::unfinished_in(folder.path(), |name| name == "a.csv");
        found.sort();
        assert_eq!(found, [at(".a.csv.7.2.partial"), at(".a.csv.7.partial")]);
        assert!(WholeFile::unfinished_in(&at("none"), |_| true).is_empty());
    }

    #[test]
    fn a_folder_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let refused = WholeFile::write(folder.path(), b"text").unwrap_err().to_string();
        assert!(refused.ends_with("it is a folder"), "{refused}");
    }

    #[cfg(unix)]
    #[test]
    fn devices_stay_devices_and_links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("device");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        WholeFile::write(&device, b"gone").unwrap();
        assert!(std::fs::symlink_metadata(&device).unwrap().is_symlink());
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, b"old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        WholeFile::write(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
