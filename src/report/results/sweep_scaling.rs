//! What a sweep is thought to take on many nodes.

use std::fmt;

/// Estimates by numbers of nodes, with what they rest on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepScaling {
    /// Cells that were asked for.
    pub cells: u64,
    /// Those of them whose time is known.
    pub measured_cells: u64,
    /// Applications alone, each once per machine.
    pub shared_runs: u64,
    /// Those of them whose time is known.
    pub measured_shared_runs: u64,
    /// The middle of the distribution of cells, of one thread.
    pub median_seconds: f64,
    /// What 95 % of the cells stay below.
    pub high_seconds: f64,
    /// Claiming a cell and keeping its record, on average.
    pub overhead_seconds: f64,
    /// Cells at once on a node.
    pub threads: u32,
    /// Seed of the draws.
    pub seed: u64,
    /// By number of nodes, as asked for.
    pub nodes: Vec<NodesEstimate>,
}

/// The estimate for one number of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodesEstimate {
    /// How many.
    pub nodes: u32,
    /// Until all cells have ended.
    pub seconds: f64,
    /// How many times as fast as one node.
    pub speedup: f64,
    /// Speed-up per node.
    pub efficiency: f64,
    /// What keeps it from ending earlier.
    pub bottleneck: Bottleneck,
}

/// What keeps a sweep from ending earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// Each slot has work until the end: more nodes help.
    CellsPerSlot,
    /// One cell.
    LongestCell,
    /// An application alone that cells wait for.
    SharedRuns,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CellsPerSlot => "cells per slot",
            Self::LongestCell => "the longest cell",
            Self::SharedRuns => "shared runs alone",
        })
    }
}
