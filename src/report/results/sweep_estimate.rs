//! What a sweep is going to take.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::CellRecord;

/// The cells of a plan with what they are thought to take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepEstimate {
    /// Those that were asked for, in order.
    pub cells: Vec<CellEstimate>,
    /// Seconds of one core, the applications alone included.
    pub core_seconds: u64,
    /// Milliseconds of one core for the applications alone, each once per machine.
    pub alone_milliseconds: u64,
    /// Cells at once at most.
    pub threads: u64,
    /// Seconds until the end, on so many threads.
    pub seconds: u64,
    /// Bytes of the largest cell.
    pub memory_bytes: u64,
    /// What this rests on.
    pub basis: String,
    /// By other build of the program: of how many of the cells the folder of the sweep holds
    /// a record that it has made, and none of this build.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_builds: BTreeMap<String, u64>,
}

impl SweepEstimate {
    /// The cells that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &CellEstimate> {
        self.cells.iter().filter(|one| one.ended.is_none())
    }

    /// Seconds of one core for the longest cell that has not ended.
    #[must_use]
    pub fn longest_seconds(&self) -> u64 {
        self.open().map(|one| one.core_milliseconds).max().unwrap_or(0).div_ceil(1000)
    }

    /// Nodes of [`SweepEstimate::threads`] each beyond which more make the sweep no shorter:
    /// its longest cell then takes as long as all others side by side.
    #[must_use]
    pub fn useful_nodes(&self) -> u64 {
        let cores = self.core_seconds.div_ceil(self.longest_seconds().max(1));
        cores.div_ceil(self.threads.max(1)).max(1)
    }
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellEstimate {
    /// Its number among all cells of the plan, from 1.
    pub number: u64,
    /// Which cell.
    pub cell: CellRecord,
    /// Runs of the machine: one, and those that the scheme asks for before it.
    pub runs: u64,
    /// Milliseconds of one core, without the applications alone.
    pub core_milliseconds: u64,
    /// Milliseconds of one core for its applications alone, where nobody knows them yet.
    pub alone_milliseconds: u64,
    /// Bytes.
    pub memory_bytes: u64,
    /// How it has ended in the folder of the sweep, true for a record; `None`: it has not, or
    /// nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
    /// Why it cannot run, where that shows already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}
