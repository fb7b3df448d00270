//! Model files: those that the program carries, overridden by a folder.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::units::to_u64;

/// The largest model file that is read.
const FILE_LIMIT: u64 = 4 << 20;

/// Folders below the overriding folder that are looked into.
const DEPTH_LIMIT: u32 = 4;

/// Every model file by its path below `models/`, as `gpus/v100.toml`.
#[derive(Clone, Debug)]
pub struct ModelFiles {
    files: BTreeMap<String, ModelText>,
}

/// The text of one model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelText {
    /// The file as the user knows it: `models/…` for a carried one, else its path.
    pub origin: String,
    /// Its content.
    pub text: Cow<'static, str>,
}

/// Why a model file could not be read.
#[derive(Debug, Error)]
pub enum ModelFileError {
    /// The file system refused.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// The file is larger than any model file.
    #[error("{}: {bytes} bytes, a model file has at most {limit}; is this the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The largest size that is read.
        limit: u64,
    },
}

impl ModelFiles {
    /// The files of a table: path below `models/`, and text.
    #[must_use]
    pub fn new(files: &[(&str, &'static str)]) -> Self {
        let files = files.iter().map(|&(path, text)| {
            let origin = format!("models/{path}");
            (path.to_owned(), ModelText { origin, text: Cow::Borrowed(text) })
        });
        Self { files: files.collect() }
    }

    /// The same, and over them those of `folder`, laid out in the same way: a file of the
    /// same name wins, a new name adds.
    ///
    /// # Errors
    /// Those of [`read_text`].
    pub fn with_folder(mut self, folder: &Path) -> Result<Self, ModelFileError> {
        self.add_folder(folder, "", 0)?;
        Ok(self)
    }

    /// Every file: its path in the folder of models, and its text.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), &*text.text))
    }

    /// The stems of the `.toml` files in `models/<folder>`, in order.
    pub fn names(&self, folder: &str) -> Vec<&str> {
        let stem = |path: &'_ str| -> Option<(usize, usize)> {
            let rest = path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".toml")?;
            let start = folder.len() + 1;
            (!rest.contains('/')).then_some((start, start + rest.len()))
        };
        let stems = self.files.keys().filter_map(|path| stem(path).map(|(a, b)| &path[a..b]));
        let mut names: Vec<&str> = stems.collect();
        names.sort_unstable();
        names
    }

    /// A file by its path below `models/`, as `papers/ugpu.csv`.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&ModelText> {
        self.files.get(path)
    }

    /// The text of `models/<folder>/<name>.toml`.
    #[must_use]
    pub fn named(&self, folder: &str, name: &str) -> Option<&ModelText> {
        self.file(&format!("{folder}/{name}.toml"))
    }

    fn add_folder(
        &mut self,
        folder: &Path,
        prefix: &str,
        depth: u32,
    ) -> Result<(), ModelFileError> {
        let refuse = |source| ModelFileError::Read { path: folder.to_path_buf(), source };
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(refuse)? {
            paths.push(entry.map_err(refuse)?.path());
        }
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && depth < DEPTH_LIMIT {
                self.add_folder(&path, &format!("{prefix}{name}/"), depth + 1)?;
            } else if path.extension().is_some_and(|e| e == "toml" || e == "csv") {
                let text = ModelText {
                    origin: path.display().to_string(),
                    text: Cow::Owned(read_text(&path)?),
                };
                self.files.insert(format!("{prefix}{name}"), text);
            }
        }
        Ok(())
    }
}

/// Reads a text file of bounded size.
///
/// # Errors
/// [`ModelFileError::Read`], also for bytes that are no UTF-8, with the first one's line, and
/// [`ModelFileError::TooLarge`].
pub fn read_text(path: &Path) -> Result<String, ModelFileError> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count();
        let why = format!("line {line} is no UTF-8 text; is this the right file?");
        let source = io::Error::new(io::ErrorKind::InvalidData, why);
        ModelFileError::Read { path: path.into(), source }
    })
}

/// The same for text of other programs: bytes that are no UTF-8 are replaced.
///
/// # Errors
/// [`ModelFileError::Read`] and [`ModelFileError::TooLarge`].
pub fn read_text_lossy(path: &Path) -> Result<String, ModelFileError> {
    Ok(String::from_utf8_lossy(&read_bytes(path)?).into_owned())
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, ModelFileError> {
    let refuse = |source| ModelFileError::Read { path: PathBuf::from(path), source };
    let file = fs::File::open(path).map_err(refuse)?;
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(refuse)?;
    let size = to_u64(bytes.len());
    if size > FILE_LIMIT {
        return Err(ModelFileError::TooLarge { path: path.into(), bytes: size, limit: FILE_LIMIT });
    }
    Ok(bytes)
}
