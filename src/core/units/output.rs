//! Output files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::NamedTempFile;

/// What names of files and folders that are not finished end with.
pub(super) const UNFINISHED: &str = ".partial";

/// Temporary files and folders of outputs that are not finished yet.
static REGISTRY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A buffered output file under a temporary name in the target's own folder.
///
/// [`WholeFile::finish`] renames it to its target; dropping it without that
/// removes it. [`remove_unfinished`] removes those of an interrupted program.
#[derive(Debug)]
pub struct WholeFile {
    writer: Option<BufWriter<NamedTempFile>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl WholeFile {
    /// Opens a temporary file next to `target`, or next to the file that a link there
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
        let made = unfinished(|| {
            let prefix = format!(".{}.", name.to_string_lossy());
            let mut builder = tempfile::Builder::new();
            builder.prefix(&prefix).suffix(UNFINISHED);
            // As any new file.
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            let file = builder.tempfile_in(folder_of(target))?;
            Ok((file.path().to_path_buf(), file))
        });
        let file = made.map_err(|e| {
            io::Error::new(e.kind(), format!("cannot write {}: {e}", target.display()))
        })?;
        let temporary = file.path().to_path_buf();
        let writer = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(Self { writer, temporary, target: target.to_path_buf() })
    }

    /// The file itself, for seeking back to a header; flush first.
    ///
    /// # Panics
    /// Never: the writer is only taken by [`WholeFile::finish`], which consumes `self`.
    pub fn writer(&mut self) -> &mut BufWriter<NamedTempFile> {
        self.writer.as_mut().expect("the writer lives until finish")
    }

    /// Flushes, syncs and gives the file its name.
    ///
    /// # Errors
    /// Whatever the file system says; the temporary file is then removed.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(&self.target)?;
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
        // Removes the file, unless it has its name by now.
        drop(self.writer.take());
        forget_unfinished(&self.temporary);
    }
}

/// The folder in which a file lies.
pub(super) fn folder_of(target: &Path) -> &Path {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Brings the name of a file that has just got it to the disk: what was said to be written
/// is there after a power cut too. Not all file systems can, and then it is as it is.
fn sync_folder(target: &Path) {
    let _ = File::open(folder_of(target)).and_then(|folder| folder.sync_all());
}

/// The file that `target` is, or that a link there leads to.
fn real(target: &Path) -> PathBuf {
    fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf())
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
    fn of_two_who_write_one_file_each_writes_it_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.txt");
        let mut one = WholeFile::create(&target).unwrap();
        let mut other = WholeFile::create(&target).unwrap();
        one.write_all(b"one").unwrap();
        other.write_all(b"other").unwrap();
        one.finish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"one");
        other.finish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"other");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_what_is_written_as_any_new_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (plain, whole) = (folder.path().join("plain"), folder.path().join("whole"));
        std::fs::write(&plain, "").unwrap();
        WholeFile::write(&whole, b"").unwrap();
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&whole), mode(&plain));
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
