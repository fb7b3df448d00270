//! What can be wrong with a workload, in words for its author.

use std::io;
use std::path::PathBuf;

use gpumodel_core::toml::{Place, TomlError};
use thiserror::Error;

/// A workload that cannot be loaded, run or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A name that is neither known nor a path.
    #[error("no workload `{name}`: {hint}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The nearest name, and what is known.
        hint: String,
    },
    /// The file cannot be read, is not TOML, or has other keys or values than a workload.
    #[error(transparent)]
    Toml(Box<TomlError>),
    /// The file says something that no workload can mean, or that its scale does not allow.
    #[error("{place}: {what}")]
    Invalid {
        /// Where.
        place: Place,
        /// What was found and what was expected.
        what: String,
    },
    /// The trace folder cannot be written.
    #[error("cannot write the trace folder {}", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<TomlError> for WorkloadError {
    fn from(error: TomlError) -> Self {
        Self::Toml(Box::new(error))
    }
}

impl WorkloadError {
    /// [`WorkloadError::Invalid`].
    pub(super) fn invalid(place: &Place, what: impl Into<String>) -> Self {
        Self::Invalid { place: place.clone(), what: what.into() }
    }

    /// [`WorkloadError::Invalid`] at `place`, of what is wrong there.
    pub(super) fn at(place: &Place) -> impl Fn(String) -> Self {
        |what| Self::invalid(place, what)
    }
}
