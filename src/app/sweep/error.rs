//! Why a sweep cannot run, and why a cell has no record.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use gpumodel_core::toml::TomlError;
use gpumodel_core::units::with_causes;
use gpumodel_report::results::RecordError;
use gpumodel_sim::config::SpecError;

use crate::error::location;
use crate::{RunError, SlurmError};

/// Why a sweep or a merge was refused, or had to stop.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The plan is no TOML, or has unknown keys.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The plan is invalid.
    #[error(transparent)]
    Toml(#[from] Box<TomlError>),
    /// An invalid value.
    #[error("{}: {message}", location(path, *line))]
    Plan {
        /// The plan.
        path: PathBuf,
        /// The line, from 1; `None`: the error is about the whole plan.
        line: Option<u32>,
        /// Key, what was expected and what was found.
        message: String,
    },
    /// An application or a machine of the plan cannot be used.
    #[error("{}: {key}", location(path, *line))]
    Part {
        /// The plan.
        path: PathBuf,
        /// The line, as of [`SweepError::Plan`].
        line: Option<u32>,
        /// The key.
        key: String,
        /// Why.
        source: Box<RunError>,
    },
    /// Several applications of the plan cannot be used.
    #[error("{}: {} applications cannot be used{}", path.display(), invalid.len(), listed(invalid))]
    Apps {
        /// The plan.
        path: PathBuf,
        /// Why, for each in the order of the plan.
        invalid: Vec<SweepError>,
    },
    /// The cells of the plan have changed since the script of a job was written, which names them
    /// by number.
    #[error(
        "{}: has other cells than when the script of this job was written: the plan, a trace, a \
         machine or the program has changed; nothing was run: undo the change, or write and \
         submit the scripts again", plan.display()
    )]
    PlanChanged {
        /// The plan.
        plan: PathBuf,
    },
    /// Slurm refuses or does not answer.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    /// The folder holds cells of another plan, and no option accepts them.
    #[error(
        "{} holds {cells} cells that are not of this plan: name another folder, or add --force \
         to keep them there and continue",
        folder.display()
    )]
    OtherPlan {
        /// The folder.
        folder: PathBuf,
        /// Cells of other plans there, done or failed.
        cells: usize,
    },
    /// The output folder of a merge holds other cells.
    #[error(
        "{} holds {cells} cells that are not those of the folders to be joined: name another folder",
        folder.display()
    )]
    OtherContents {
        /// The folder.
        folder: PathBuf,
        /// Cells there, done or failed.
        cells: usize,
    },
    /// An interrupt before the first cell.
    #[error("interrupted while {meanwhile}")]
    Stopped {
        /// What was done meanwhile.
        meanwhile: String,
    },
    /// A file of the sweep's folder cannot be read or written. Existing files are unchanged: the
    /// same command continues the sweep.
    #[error("cannot write into {}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of a sweep's folder is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A folder that is to be merged holds no sweep.
    #[error("{}: expected the folder of a sweep, with a file sweep.json", folder.display())]
    NoSweep {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder that is to be merged is the one that is to be written.
    #[error("{}: a folder cannot be merged into itself; name a new one with --out", folder.display())]
    IntoItself {
        /// The folder.
        folder: PathBuf,
    },
    /// Cells of several builds of the program.
    #[error(
        "cells of several versions: {versions}; numbers of different versions should not share a \
         table: run them again with one version, or add --mixed-versions"
    )]
    Mixed {
        /// Each version with a folder that has it.
        versions: String,
    },
    /// Two records of one cell with different numbers.
    #[error(
        "{} and {} are records of the same cell and differ: one of them was changed by hand, or \
         this is a defect of the program",
        one.display(),
        other.display()
    )]
    Differ {
        /// A record.
        one: PathBuf,
        /// Another one.
        other: PathBuf,
    },
}

/// Errors with their causes, one per line.
fn listed(errors: &[SweepError]) -> String {
    errors.iter().map(|error| format!("\n  {}", with_causes(error).join(": "))).collect()
}

impl SweepError {
    /// An error of the file system at `path`.
    pub(super) fn folder(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Folder { path, source }
    }
}

/// Why a cell has no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellFailure {
    /// The error, then its causes.
    pub(super) errors: Vec<String>,
    /// The cell would fail again in every run.
    pub(super) refused: bool,
}

impl From<RunError> for CellFailure {
    fn from(error: RunError) -> Self {
        Self { errors: with_causes(&error), refused: error.refuses() }
    }
}
