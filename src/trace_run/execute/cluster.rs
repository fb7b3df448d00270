//! Clusters: CTAs that run together, read each other's shared memory, and have a barrier.
//!
//! The CTAs of a cluster take turns. While one runs, it holds the shared memories of the
//! others; it gives them back before the next one's turn.

use super::cta::{Cta, CtaState, PATIENCE, Slice};
use super::grid::Grid;
use super::warp::{Wait, Warp};
use crate::RunError;

/// Warp instructions of a CTA before the next one of its cluster has its turn.
const TURN: u64 = 1 << 16;

/// What a CTA knows of its cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterState {
    /// Its number in the cluster.
    pub(crate) rank: u32,
    /// Shared memories of the others, by number, while it runs.
    pub(super) peers: Vec<Vec<u8>>,
}

impl CtaState {
    /// The shared memory of the CTA of that number in the cluster.
    pub(crate) fn shared_of(&mut self, rank: u32) -> Option<&mut [u8]> {
        if rank == self.cluster.rank {
            return Some(&mut self.shared);
        }
        self.cluster.peers.get_mut(usize::try_from(rank).ok()?).map(Vec::as_mut_slice)
    }
}

/// Runs the CTAs of a cluster, ordered by their number in it, to their end.
///
/// # Errors
/// When an instruction cannot be executed, or all warps wait for ever.
pub(super) fn run(ctas: &mut [Cta], grid: &Grid<'_>) -> Result<(), RunError> {
    let mut patience = PATIENCE;
    loop {
        let before = executed(ctas);
        let mut all_done = true;
        for index in 0..ctas.len() {
            let done = turn(ctas, index, grid)?;
            all_done &= done == Slice::Done;
        }
        if all_done {
            return Ok(());
        }
        let released = release(ctas);
        if released || executed(ctas) > before {
            continue;
        }
        let gave_up = ctas.iter_mut().fold(false, |any, cta| cta.give_up() | any);
        patience -= 1;
        if patience == 0 || !gave_up {
            return Err(ctas[0].stuck(grid, "the cluster"));
        }
    }
}

fn executed(ctas: &[Cta]) -> u64 {
    ctas.iter().map(Cta::executed).sum()
}

/// One turn of a CTA.
fn turn(ctas: &mut [Cta], index: usize, grid: &Grid<'_>) -> Result<Slice, RunError> {
    let lend = |cta: &mut Cta| std::mem::take(&mut cta.state.shared);
    let mut memories: Vec<Vec<u8>> = ctas.iter_mut().map(lend).collect();
    let state = &mut ctas[index].state;
    state.shared = std::mem::take(&mut memories[index]);
    state.cluster.peers = memories;
    let done = ctas[index].run(grid, TURN)?;
    let state = &mut ctas[index].state;
    let mut memories = std::mem::take(&mut state.cluster.peers);
    memories[index] = std::mem::take(&mut state.shared);
    for (cta, memory) in ctas.iter_mut().zip(memories) {
        cta.state.shared = memory;
    }
    Ok(done)
}

/// Completes the barrier of the cluster when all threads that have not ended have arrived.
fn release(ctas: &mut [Cta]) -> bool {
    let missing = |warp: &Warp| warp.alive & !warp.at_cluster != 0;
    let mut warps = ctas.iter().flat_map(|cta| &cta.warps);
    let none = !warps.clone().any(|warp| warp.alive & warp.at_cluster != 0);
    if none || warps.any(missing) {
        return false;
    }
    for cta in ctas {
        for warp in &mut cta.warps {
            warp.at_cluster = 0;
            for split in warp.splits.iter_mut().filter(|split| split.wait == Wait::Cluster) {
                split.wait = Wait::Ready;
            }
            warp.merge();
        }
    }
    true
}
