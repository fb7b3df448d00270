//! What keeps a reproduction from being made.

use std::path::PathBuf;

use thiserror::Error;

use crate::record::RecordError;
use crate::spec::SpecError;

use super::super::error::RunError;
use super::super::sweep::SweepError;

/// Why there is no reproduction.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// A model file is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No paper of that name has an evaluation.
    #[error("there is no paper {name}; there are: all, {known}")]
    NoPaper {
        /// As typed.
        name: String,
        /// Every name.
        known: String,
    },
    /// A paper's file compares by something that is not known.
    #[error(
        "papers/{paper}.toml: headline of {published}: measure: expected one of {known}, found \
         {found}"
    )]
    Measure {
        /// The stem of the file.
        paper: String,
        /// Where the value is printed.
        published: String,
        /// What stands there.
        found: String,
        /// Every name.
        known: String,
    },
    /// A part's sweep cannot be run.
    #[error("part {part}")]
    Sweep {
        /// Which.
        part: String,
        /// Why.
        source: Box<SweepError>,
    },
    /// A part's queue cannot be run.
    #[error("part {part}")]
    Queue {
        /// Which.
        part: String,
        /// Why.
        source: Box<RunError>,
    },
    /// A record of this reproduction cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The folder of the report cannot be written.
    #[error("cannot write into {}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It was interrupted: what has ended is kept.
    #[error("part {part} was interrupted with {left} cells left")]
    Stopped {
        /// Which.
        part: String,
        /// Cells that have not ended.
        left: usize,
    },
}
