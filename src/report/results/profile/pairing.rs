//! Which launch of a record a launch of a profile is: in order, by name and extent.

use gpumodel_core::units::Dim3;

use super::super::KernelRecord;
use super::names::KernelName;
use super::{CountedLaunch, Extent, Profiled};

/// Pairs of launches that are weighed one by one; longer lists are walked once.
const WEIGHED: usize = 4_000_000;

/// A launch by what both sides know of it.
pub(super) struct Launch {
    name: KernelName,
    grid: Option<Extent>,
    block: Option<Extent>,
}

impl Launch {
    pub(super) fn profiled(launch: &Profiled) -> Self {
        Self { name: KernelName::of(&launch.kernel), grid: launch.grid, block: launch.block }
    }

    pub(super) fn counted(launch: &CountedLaunch) -> Self {
        Self {
            name: KernelName::of(&launch.name),
            grid: extent(launch.grid),
            block: extent(launch.block),
        }
    }

    pub(super) fn recorded(kernel: &KernelRecord) -> Self {
        Self {
            name: KernelName::of(&kernel.name),
            grid: extent(kernel.grid),
            block: extent(kernel.block),
        }
    }

    /// How much speaks for both being one launch; 0: they are not.
    fn likeness(&self, other: &Self) -> u32 {
        let same = |one: Option<Extent>, two: Option<Extent>| Some(one? == two?);
        let extents = [same(self.grid, other.grid), same(self.block, other.block)];
        if extents.contains(&Some(false)) {
            return 0;
        }
        let known = extents == [Some(true); 2];
        match self.name.likeness(&other.name) {
            // Other template arguments are another kernel, unless all else is equal and
            // the arguments may be spelt in another way.
            1 if known => 1,
            0 | 1 => 0,
            alike => 2 * alike,
        }
    }

    /// Whether both are launches of one kernel.
    pub(super) fn is_kernel(&self, other: &Self) -> bool {
        self.name.likeness(&other.name) == 2
    }

    /// Whether the names are alike and the extents are not.
    pub(super) fn is_resized(&self, other: &Self) -> bool {
        self.is_kernel(other) && self.likeness(other) == 0
    }
}

/// The extent, where it is known.
fn extent(dim: Dim3) -> Option<Extent> {
    let all = [dim.x, dim.y, dim.z];
    all.iter().all(|&part| part > 0).then_some(all)
}

/// For each launch of `ours`, its place in `theirs`: in the order of both, with the most alike
/// pairs in all.
pub(super) fn in_order(ours: &[Launch], theirs: &[Launch]) -> Vec<Option<usize>> {
    if ours.len().saturating_mul(theirs.len()) > WEIGHED {
        return walked(ours, theirs);
    }
    let width = theirs.len() + 1;
    // best[i][j]: the most that ours from i and theirs from j have in common.
    let mut best = vec![0_u32; (ours.len() + 1) * width];
    for i in (0..ours.len()).rev() {
        for j in (0..theirs.len()).rev() {
            let alike = ours[i].likeness(&theirs[j]);
            let both = if alike > 0 { alike + best[(i + 1) * width + j + 1] } else { 0 };
            best[i * width + j] = both.max(best[(i + 1) * width + j]).max(best[i * width + j + 1]);
        }
    }
    let mut found = vec![None; ours.len()];
    let (mut i, mut j) = (0, 0);
    while i < ours.len() && j < theirs.len() {
        let alike = ours[i].likeness(&theirs[j]);
        let here = best[i * width + j];
        if alike > 0 && here == alike + best[(i + 1) * width + j + 1] {
            found[i] = Some(j);
            (i, j) = (i + 1, j + 1);
        } else if here == best[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

/// Each launch of `ours` with the next of `theirs` that is alike.
fn walked(ours: &[Launch], theirs: &[Launch]) -> Vec<Option<usize>> {
    let mut next = 0;
    let mut find = |one: &Launch| {
        let window = theirs.get(next..)?.iter().take(10_000);
        let at = next + window.into_iter().position(|other| one.likeness(other) > 0)?;
        next = at + 1;
        Some(at)
    };
    ours.iter().map(&mut find).collect()
}
