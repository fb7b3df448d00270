//! What can be wrong with a memory file, told to the user.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a memory standard or an address mapping could not be read.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// The file system refused.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// The file is larger than any memory file.
    #[error("{}: {bytes} bytes, a memory file has at most {limit}; is this the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The largest size that is read.
        limit: u64,
    },
    /// No shipped file and no path of that name.
    #[error("no `{name}` in models/{folder}{}; known: {known}", hint(nearest.as_deref()))]
    NoFile {
        /// The folder under `models/`.
        folder: &'static str,
        /// The name that was asked for.
        name: String,
        /// The known name that is spelt most alike.
        nearest: Option<String>,
        /// Every known name.
        known: String,
    },
    /// The text is no TOML.
    #[error("{place}: not TOML: {message}")]
    Syntax {
        /// File and line.
        place: String,
        /// What the parser expected.
        message: String,
    },
    /// A key that the description does not have.
    #[error("{place}: unknown key `{key}`{}", hint(nearest.as_deref()))]
    UnknownKey {
        /// File and line, or the words `--set`.
        place: String,
        /// The key.
        key: String,
        /// The known key that is spelt most alike.
        nearest: Option<String>,
    },
    /// A value of the wrong kind or out of its range, or a missing one.
    #[error("{place}: `{key}`: expected {expected}, found {found}")]
    Value {
        /// File and line, or the words `--set`.
        place: String,
        /// The key.
        key: String,
        /// What the description takes there.
        expected: String,
        /// What the file has.
        found: String,
    },
    /// A number that does not say where it is from.
    #[error(
        "{place}: `{key}` must say where it is from: expected {{ value = …, and exactly one of \
         published, measured, fitted, assumed = \"source\" }}, found {found}"
    )]
    Source {
        /// File and line.
        place: String,
        /// The key.
        key: String,
        /// What the file has.
        found: String,
    },
    /// `base` leads back to a file that is already being read.
    #[error("{place}: `base` goes round in a circle: {chain}")]
    BaseLoop {
        /// The file that closes the circle.
        place: String,
        /// The names in order.
        chain: String,
    },
    /// The description is readable but no memory can be like this.
    #[error("{name} is not a consistent memory: {problem}")]
    Inconsistent {
        /// The standard or mapping.
        name: String,
        /// What does not fit, and what to do.
        problem: String,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
