//! What can go wrong between a sweep and Slurm.

use std::io;
use std::path::PathBuf;

use thiserror::Error as ThisError;

/// Why a sweep could not be submitted, or its watch had to end. Jobs are never cancelled.
#[derive(Debug, ThisError)]
pub enum SlurmError {
    /// A command cannot be started.
    #[error(
        "{command} cannot be run: expected the commands of Slurm here, as on the login node \
         of a cluster; --print writes the scripts alone"
    )]
    Missing {
        /// Which.
        command: String,
        /// What the system says.
        source: io::Error,
    },
    /// A command ended with an error.
    #[error("{command}: {said}")]
    Refused {
        /// Which, with its words.
        command: String,
        /// What it said.
        said: String,
    },
    /// An answer that is none.
    #[error("{command}: expected {expected}, found {found:?}")]
    Unreadable {
        /// Which, with its words.
        command: String,
        /// What it should have said.
        expected: &'static str,
        /// What it said.
        found: String,
    },
    /// Slurm has not answered for long.
    #[error(
        "Slurm has not answered for {seconds} s; its jobs may go on: --resume takes up the watch"
    )]
    Silent {
        /// For how long.
        seconds: u64,
        /// The last answer.
        source: Box<SlurmError>,
    },
    /// The list of jobs is damaged.
    #[error(
        "{}: {message}; if no job of this sweep is in the queue any more, remove the file",
        path.display()
    )]
    Jobs {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The plan has other cells than when jobs that still live were submitted.
    #[error(
        "{}: has other cells than those that its jobs were submitted for (the plan, a trace, \
         a machine or the program has changed); they refuse to run: cancel them with \
         scancel --name={name}, then --resume; or put back what was changed", plan.display()
    )]
    Edited {
        /// The plan.
        plan: PathBuf,
        /// What the jobs are called.
        name: String,
    },
}

/// What a command says when it does not know whether it was heard.
const UNHEARD: [&str; 6] =
    ["timed out", "timeout", "unable to contact", "connect", "communication", "zero bytes"];

impl SlurmError {
    /// Whether what was asked for may have been done nonetheless.
    pub(super) fn unclear(&self) -> bool {
        match self {
            Self::Refused { said, .. } => {
                let said = said.to_lowercase();
                UNHEARD.iter().any(|words| said.contains(words))
            }
            Self::Unreadable { .. } => true,
            _ => false,
        }
    }
}
