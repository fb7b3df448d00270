//! What somebody wants of Slurm.

use std::path::PathBuf;
use std::time::Duration;

use gpumodel_core::units::{to_u64, to_usize};
use gpumodel_report::results::SweepEstimate;

/// A task of so many seconds is worth a place in a cluster's queue.
const USUAL_SECONDS: u64 = 1800;

/// How a sweep is to be run under Slurm.
#[derive(Clone, Debug)]
pub struct SlurmRequest {
    /// The program, as nodes find it.
    pub program: PathBuf,
    /// The plan, as nodes find it.
    pub plan: PathBuf,
    /// The folder of the sweep, on a file system that all nodes share.
    pub out: PathBuf,
    /// Words that go to every job, as `--models`.
    pub words: Vec<String>,
    /// Words that go to the tasks of arrays alone in scripts that somebody else submits, as
    /// `--retry-failed`: the job after them leaves what has failed as it is.
    pub array_words: Vec<String>,
    /// Bytes that cells may take together in a task; `None`: what they need.
    pub memory_bytes: Option<u64>,
    /// Only a part of the plan's cells was asked for.
    pub part: bool,
    /// Cells of a task; `None`: those of about half an hour by the estimate.
    pub chunk: Option<usize>,
    /// Cores of a task.
    pub threads: usize,
    /// Tasks of one array at most (`MaxArraySize` of the cluster).
    pub array: usize,
    /// Tasks of one array at once at most; `None`: as many as the cluster gives.
    pub at_once: Option<usize>,
    /// How long the watch rests between two questions.
    pub poll: Duration,
    /// How often a cell that was lost is submitted again at most.
    pub resubmit: u32,
}

impl SlurmRequest {
    /// Cells of a task.
    pub(super) fn chunk(&self, estimate: &SweepEstimate) -> usize {
        let (cells, threads) = (to_u64(estimate.cells.len()), to_u64(self.threads));
        let usual = USUAL_SECONDS * threads * cells / estimate.core_seconds.max(1);
        let chunk = self.chunk.unwrap_or_else(|| to_usize(usual.max(1)));
        chunk.min(estimate.cells.len().max(1))
    }
}
