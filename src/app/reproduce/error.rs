//! What keeps a reproduction from being made.

use std::path::PathBuf;

use thiserror::Error;

use gpumodel_report::paper::PaperError;
use gpumodel_report::results::RecordError;
use gpumodel_sim::config::SpecError;

use super::super::error::RunError;
use super::super::sweep::SweepError;

/// Why there is no reproduction.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// A model file is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A paper's file cannot be read.
    #[error(transparent)]
    File(#[from] PaperError),
    /// No paper of that name has an evaluation.
    #[error("there is no paper {name}{hint}; there are: all, {known}")]
    NoPaper {
        /// As typed.
        name: String,
        /// The name that is spelt most alike, in words; may be empty.
        hint: String,
        /// Every name.
        known: String,
    },
    /// A paper's file asks for what is not known or not run.
    #[error("papers/{paper}.toml: {message}")]
    Paper {
        /// The stem of the file.
        paper: String,
        /// Where in it, and what is wrong.
        message: String,
    },
    /// A part's plan or queue cannot be read.
    #[error("papers/{paper}.toml: part {part}")]
    Part {
        /// The stem of the file.
        paper: String,
        /// Which part.
        part: String,
        /// Why.
        source: Box<SpecError>,
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
    /// The folder has the report of a paper that this one would leave out.
    #[error(
        "{} holds a report on {}, which this one would replace: name another folder, or \
         reproduce all papers",
        folder.display(),
        others.join(", ")
    )]
    Replaces {
        /// The folder.
        folder: PathBuf,
        /// The papers.
        others: Vec<String>,
    },
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
