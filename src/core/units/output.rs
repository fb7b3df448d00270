//! Output files and folders that appear whole or not at all, and temporary folders.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::{NamedTempFile, TempDir};

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
        let file = made.map_err(|error| unwritten(target, &error))?;
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
    /// Whatever the file system says, with the name of the target; the temporary file is then
    /// removed.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let persisted = writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.as_file().sync_all().map(|()| file))
            .and_then(|file| Ok(file.persist(&self.target)?));
        persisted.map_err(|error| unwritten(&self.target, &error))?;
        sync_folder(&self.target);
        Ok(())
    }

    /// Writes `bytes` as the whole content of `target`; into it, where it is a
    /// device, a pipe or an open file of this process ([`is_stream`]).
    ///
    /// # Errors
    /// Whatever the file system says, with the name of the target.
    pub fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
        if is_stream(target) {
            return OpenStream::open(target)?.write_all(bytes);
        }
        let mut file = Self::create(target)?;
        file.write_all(bytes)?;
        file.finish()
    }
}

/// A device, a pipe or a name of an open file, into which bytes go at once; its errors name it.
#[derive(Debug)]
pub struct OpenStream {
    stream: File,
    target: PathBuf,
}

impl OpenStream {
    /// Opens `target`, an output for which [`is_stream`] holds.
    ///
    /// # Errors
    /// Whatever the file system says, with the name of the target.
    pub fn open(target: &Path) -> io::Result<Self> {
        let opened = OpenOptions::new().append(true).open(target);
        let stream = opened.map_err(|error| unwritten(target, &error))?;
        Ok(Self { stream, target: target.to_path_buf() })
    }
}

impl Write for OpenStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes).map_err(|error| unwritten(&self.target, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush().map_err(|error| unwritten(&self.target, &error))
    }
}

/// Whether bytes go into what lies at `target` instead of replacing it: a device, a pipe, or
/// a name of an open file, as `/dev/fd/3`.
#[must_use]
pub fn is_stream(target: &Path) -> bool {
    let open = ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"];
    let named = cfg!(unix) && open.iter().any(|name| target.starts_with(name));
    fs::metadata(target).is_ok_and(|there| !there.is_dir() && (named || !there.is_file()))
}

/// The error of an output that cannot be written, with its name and without that of a
/// temporary file.
fn unwritten(target: &Path, error: &io::Error) -> io::Error {
    let said = error.to_string();
    let said = said.split(" at path \"").next().unwrap_or_default();
    io::Error::new(error.kind(), format!("cannot write {}: {said}", target.display()))
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer().write(bytes);
        written.map_err(|error| unwritten(&self.target, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.writer().flush();
        flushed.map_err(|error| unwritten(&self.target, &error))
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
fn folder_of(target: &Path) -> &Path {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Brings the name of a file that has just got it to the disk: what was said to be written
/// survives a power cut. File systems that cannot do this are left as they are.
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
fn unfinished<T>(make: impl FnOnce() -> io::Result<(PathBuf, T)>) -> io::Result<T> {
    let mut registry = registry();
    let (temporary, made) = make()?;
    registry.push(temporary);
    Ok(made)
}

/// Forgets a temporary file or folder that is finished or removed.
fn forget_unfinished(temporary: &Path) {
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

/// An output folder that is filled under a temporary name next to its target.
///
/// [`WholeFolder::finish`] gives it its name; dropping it without that removes
/// it. An interrupted program removes it through
/// [`remove_unfinished`](super::remove_unfinished).
#[derive(Debug)]
pub struct WholeFolder {
    temporary: PathBuf,
    /// Removes it.
    made: Option<TempDir>,
    target: PathBuf,
}

impl WholeFolder {
    /// Makes the temporary folder, and the parents of `target` where missing.
    ///
    /// # Errors
    /// Whatever the file system says; also when `target` is a file.
    pub fn create(target: &Path) -> io::Result<Self> {
        let fail = |kind, what: &str| {
            Err(io::Error::new(kind, format!("cannot write {}: {what}", target.display())))
        };
        let Some(name) = target.file_name() else {
            return fail(io::ErrorKind::InvalidInput, "it is no folder name");
        };
        if target.exists() && !target.is_dir() {
            return fail(io::ErrorKind::AlreadyExists, "it is a file, not a folder");
        }
        let made = unfinished(|| {
            let parent = folder_of(target);
            fs::create_dir_all(parent)?;
            let prefix = format!(".{}.", name.to_string_lossy());
            let mut builder = tempfile::Builder::new();
            let made = builder.prefix(&prefix).suffix(UNFINISHED).tempdir_in(parent)?;
            Ok((made.path().to_path_buf(), made))
        });
        match made {
            Ok(made) => {
                let temporary = made.path().to_path_buf();
                Ok(Self { temporary, made: Some(made), target: target.to_path_buf() })
            }
            Err(error) => fail(error.kind(), &error.to_string()),
        }
    }

    /// The temporary folder to write into.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the folder its name. Where the target exists already, its files of
    /// the same names are replaced one by one, in the order of `names`, and
    /// others are left alone.
    ///
    /// # Errors
    /// Whatever the file system says, with the name of the file or folder.
    pub fn finish(self, names: &[String]) -> io::Result<()> {
        let renamed =
            |from: &Path, to: &Path| fs::rename(from, to).map_err(|error| unwritten(to, &error));
        if !self.target.exists() {
            return renamed(&self.temporary, &self.target);
        }
        names
            .iter()
            .try_for_each(|name| renamed(&self.temporary.join(name), &self.target.join(name)))
    }
}

impl Drop for WholeFolder {
    fn drop(&mut self) {
        // After a rename the temporary name is gone: nothing to remove.
        drop(self.made.take());
        forget_unfinished(&self.temporary);
    }
}

/// A temporary folder that is removed with this value, or by
/// [`remove_unfinished`](super::remove_unfinished) when the program is
/// interrupted.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Removes it.
    made: Option<TempDir>,
}

impl Scratch {
    /// A new folder in `parent`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let make = || tempfile::tempdir_in(parent).map(|made| (made.path().to_path_buf(), made));
        let made = unfinished(make)?;
        Ok(Self { path: made.path().to_path_buf(), made: Some(made) })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An interrupt meanwhile removes what is left.
        drop(self.made.take());
        forget_unfinished(&self.path);
    }
}

/// Checks before long work that files can be written into `folder`, or
/// into the nearest folder above it that exists. Leaves nothing behind.
///
/// # Errors
/// Whatever the file system says.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|one| one.exists()).unwrap_or(Path::new("."));
    tempfile::tempfile_in(there).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{WholeFile, WholeFolder};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_error_names_the_file_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("none/out.txt");
        let said = WholeFile::create(&target).unwrap_err().to_string();
        let begins = format!("cannot write {}: ", target.display());
        assert!(said.starts_with(&begins) && !said.contains(".partial"), "{said}");
        assert_eq!(said.matches("none").count(), 1, "{said}");
    }

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

    #[test]
    fn a_dropped_folder_leaves_nothing_and_a_finished_one_keeps_its_neighbours() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("out");
        let half = WholeFolder::create(&target).unwrap();
        std::fs::write(half.path().join("a"), "half").unwrap();
        drop(half);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        for text in ["first", "second"] {
            let whole = WholeFolder::create(&target).unwrap();
            std::fs::write(whole.path().join("a"), text).unwrap();
            whole.finish(&["a".to_owned()]).unwrap();
            assert_eq!(std::fs::read_to_string(target.join("a")).unwrap(), text);
            std::fs::write(target.join("neighbour"), "kept").unwrap();
        }
        assert_eq!(std::fs::read_to_string(target.join("neighbour")).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
