//! Output files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Temporary files and folders of outputs that are not finished yet.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

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
        let target = &fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf());
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
        let hidden = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
        let temporary = target.with_file_name(hidden);
        let file = File::create(&temporary).map_err(|e| {
            io::Error::new(e.kind(), format!("cannot write {}: {e}", target.display()))
        })?;
        register_unfinished(&temporary);
        let writer = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(Self { writer, temporary, target: target.to_path_buf() })
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
        if let Some(mut writer) = self.writer.take() {
            writer.flush()?;
            writer.get_ref().sync_all()?;
        }
        fs::rename(&self.temporary, &self.target)
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

fn registry() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Remembers a temporary file or folder for [`remove_unfinished`].
pub(super) fn register_unfinished(temporary: &Path) {
    registry().push(temporary.to_path_buf());
}

/// Forgets a temporary file or folder that is finished or removed.
pub(super) fn forget_unfinished(temporary: &Path) {
    registry().retain(|path| path != temporary);
}

/// Removes the temporary files and folders of unfinished outputs: for an
/// interrupt handler that ends the program.
pub fn remove_unfinished() {
    for path in registry().drain(..) {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
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
