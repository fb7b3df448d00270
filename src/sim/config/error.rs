//! What can be wrong with a model file, told to the user: where it is, what
//! was expected, what was found and, for a name, which known one is nearest.

use std::fmt;
use std::sync::Arc;

use gpumodel_core::models::ModelFileError;
use thiserror::Error;

use super::check::Problem;

/// A file and a line in it, or a word of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    file: Arc<str>,
    line: u32,
}

impl Place {
    /// Line `line` (from 1) of `file`; line 0 means the file as a whole.
    #[must_use]
    pub fn new(file: Arc<str>, line: u32) -> Self {
        Self { file, line }
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

/// Why a model could not be read.
#[derive(Debug, Error)]
pub enum SpecError {
    /// A file could not be read.
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
    #[error("{place}: unknown key `{key}`{}", hint_of_key(place, nearest.as_deref()))]
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
    /// A key that must be there and is not.
    #[error("{place}: `{key}` is missing; see models/README.md for what belongs there")]
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
    /// `base` leads back to a file that is already being read.
    #[error("{place}: `base` goes round in a circle: {chain}")]
    BaseLoop {
        /// The `base` key that closes the circle.
        place: Place,
        /// The names in order.
        chain: String,
    },
    /// No model of that name.
    #[error("no `{name}` in models/{folder}{}; known: {known}", hint(nearest.as_deref()))]
    NoModel {
        /// The folder under `models/`.
        folder: &'static str,
        /// The name that was asked for.
        name: String,
        /// The known name that is spelt most alike.
        nearest: Option<String>,
        /// Every known name.
        known: String,
    },
    /// A file names a model that there is not.
    #[error("{place}: `{key}`: {missing}")]
    NamesNoModel {
        /// Where the name stands.
        place: Place,
        /// The dotted key.
        key: &'static str,
        /// [`SpecError::NoModel`].
        missing: Box<SpecError>,
    },
    /// A line of a foreign configuration that is no option.
    #[error("{place}: {message}")]
    Option {
        /// Where the line stands.
        place: Place,
        /// What was expected and found.
        message: String,
    },
    /// A foreign configuration without an option that the machine needs.
    #[error("{files}: no `{key}` ({meaning}); is this a gpgpusim.config?")]
    MissingOption {
        /// The files that were read.
        files: String,
        /// The option.
        key: String,
        /// What it says.
        meaning: &'static str,
    },
    /// An override that names no key.
    #[error("{word}: expected SECTION.KEY=VALUE, as in l1.latency_cycles=30")]
    Override {
        /// The word as it was typed.
        word: String,
    },
    /// The description is readable but no machine can be like this.
    #[error("{machine} is not a consistent machine:{}", listed(problems))]
    Inconsistent {
        /// The machine.
        machine: String,
        /// Every check that failed.
        problems: Vec<Problem>,
    },
}

impl SpecError {
    /// A model that there is not, with the place that names it; others stay.
    pub(super) fn named_at(self, place: &Place, key: &'static str) -> Self {
        match self {
            Self::NoModel { .. } => {
                Self::NamesNoModel { place: place.clone(), key, missing: Box::new(self) }
            }
            other => other,
        }
    }
}

/// What helps with an unknown key: an override has no lines around it that show others.
fn hint_of_key(place: &Place, nearest: Option<&str>) -> String {
    match nearest {
        None if place.line == 0 => {
            String::from("; `gpumodel machine show NAME` lists the keys of a machine")
        }
        nearest => hint(nearest),
    }
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n  {problem}")).collect()
}
