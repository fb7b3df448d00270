//! Output folders that appear whole or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::output::{UNFINISHED, folder_of, forget_unfinished, unfinished};

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
    /// Whatever the file system says.
    pub fn finish(self, names: &[String]) -> io::Result<()> {
        if !self.target.exists() {
            return fs::rename(&self.temporary, &self.target);
        }
        for name in names {
            fs::rename(self.temporary.join(name), self.target.join(name))?;
        }
        Ok(())
    }
}

impl Drop for WholeFolder {
    fn drop(&mut self) {
        // After a rename the temporary name is gone: nothing to remove.
        drop(self.made.take());
        forget_unfinished(&self.temporary);
    }
}

/// What lies in the folder `target`, in words; `None`: nothing does, or it is no folder.
#[must_use]
pub fn held(target: &Path) -> Option<String> {
    let entries = fs::read_dir(target).ok()?.flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    let first = names.first()?.to_string_lossy().into_owned();
    let more = names.len() - 1;
    Some(if more > 0 { format!("{first} and {more} more") } else { first })
}

#[cfg(test)]
mod tests {
    use super::{WholeFolder, held};

    #[test]
    fn what_lies_in_a_folder_is_told_by_its_first_name() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(held(folder.path()), None);
        assert_eq!(held(&folder.path().join("none")), None);
        std::fs::write(folder.path().join("b"), "").unwrap();
        assert_eq!(held(folder.path()).as_deref(), Some("b"));
        std::fs::write(folder.path().join("a"), "").unwrap();
        assert_eq!(held(folder.path()).as_deref(), Some("a and 1 more"));
        assert_eq!(held(&folder.path().join("a")), None, "a file");
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
