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
    /// A name of `--rename` or `--order` that cannot be.
    #[error("{name}{why}")]
    Category {
        /// The name.
        name: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// An option that changes nothing of this figure of these records.
    #[error("figure `{figure}`: {option} changes nothing: {why}")]
    Unchanged {
        /// Name of the figure.
        figure: &'static str,
        /// The option.
        option: &'static str,
        /// Why, and what to do.
        why: String,
    },
    /// A font family that a document cannot name.
    #[error("no font family is called {name:?}: a name has letters, digits, spaces and hyphens")]
    Font {
        /// What was asked for.
        name: String,
    },
    /// A figure is not written in the format that the name of its file asks for.
    #[error("{}: {why}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Why, and what to name it.
        why: String,
    },
    /// A figure does not fit into a format.
    #[error("the figure cannot be written so: {why}")]
    Export {
        /// What is the matter.
        why: String,
    },
    /// A file could not be written.
    #[error("cannot write {}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}
