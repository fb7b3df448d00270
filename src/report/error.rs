//! What can be wrong with a request to show a record.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A figure or report that could not be made.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The records hold nothing that the figure shows.
    #[error("figure `{figure}`: {missing}")]
    Empty {
        /// Name of the figure.
        figure: &'static str,
        /// What is missing and what to do next.
        missing: String,
    },
    /// No figure has that name.
    #[error("no figure `{name}`{hint}; expected one of {known} (see `gpumodel plot --list`)")]
    UnknownFigure {
        /// The name asked for.
        name: String,
        /// The name that is spelt most alike, in words; may be empty.
        hint: String,
        /// The names there are.
        known: String,
    },
    /// A choice that the figure does not show.
    #[error("figure `{figure}` takes no {option}: leave it out, or draw one of {known}")]
    Unused {
        /// Name of the figure.
        figure: &'static str,
        /// The option that makes the choice.
        option: &'static str,
        /// The figures that it is for.
        known: String,
    },
    /// No record holds that application.
    #[error("no application `{name}` in the records; expected one of {known}")]
    UnknownApp {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] crate::results::RecordError),
    /// A file could not be written.
    #[error("cannot write {}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}
