//! What can be wrong with a TOML file: where, what was expected and what was found.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::models::ModelFileError;

/// A file and a line in it, or a word of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    file: Arc<str>,
    line: u32,
}

impl Place {
    /// Line `line` (from 1) of `file`; line 0 means the file as a whole.
    #[must_use]
    pub fn new(file: impl Into<Arc<str>>, line: u32) -> Self {
        Self { file: file.into(), line }
    }

    /// The file as the user knows it: a path, `models/…` for a built-in file,
    /// or the `--set` word.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1; 0 when the whole file is meant.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// Why a TOML file could not be read.
#[derive(Debug, Error)]
pub enum TomlError {
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] ModelFileError),
    /// The text is no TOML.
    #[error("{place}: not TOML: {message}")]
    Syntax {
        /// Where reading stopped.
        place: Place,
        /// What the parser expected.
        message: String,
    },
    /// A key that the description does not have.
    #[error("{place}: unknown key `{key}`{}", hint(nearest.as_deref()))]
    UnknownKey {
        /// Where the key stands.
        place: Place,
        /// The dotted key.
        key: String,
        /// The known key that is spelt most alike.
        nearest: Option<String>,
    },
    /// A value of the wrong kind or out of its range.
    #[error("{place}: `{key}`: expected {expected}, found {found}{}", hint(nearest.as_deref()))]
    Value {
        /// Where the value stands.
        place: Place,
        /// The dotted key.
        key: String,
        /// What the description takes there.
        expected: String,
        /// What the file has.
        found: String,
        /// The known word that is spelt most alike.
        nearest: Option<String>,
    },
    /// A required key is missing.
    #[error("{place}: `{key}` is missing")]
    Missing {
        /// The section that lacks it.
        place: Place,
        /// The dotted key.
        key: String,
    },
    /// A number that does not say where it is from.
    #[error(
        "{place}: `{key}` must say where it is from: expected {{ value = …, and exactly one of \
         published, measured, fitted, assumed = \"source\" }}, found {found}"
    )]
    Source {
        /// Where the value stands.
        place: Place,
        /// The dotted key.
        key: String,
        /// What the file has.
        found: String,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
