//! A kernel's code as a machine of segments and jumps: what [`WarpStream`]
//! walks.
//!
//! [`WarpStream`]: super::WarpStream

use std::sync::Arc;

use gpumodel_core::isa::Code;
use gpumodel_core::units::Dim3;

use super::expression::Expression;

/// Which of the active lanes execute an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    /// All.
    Active,
    /// Those in which the expression is not 0.
    Holds(Expression),
    /// Those in which it is 0: a branch around a body.
    Fails(Expression),
    /// Those in which a count is not above 0: a branch around a loop.
    NoTrips(Expression),
    /// Those that run the innermost loop again: a branch back.
    Again,
}

/// Where an address may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bounds {
    /// In the buffer at this base, which alone is named; in any where none or several are.
    Buffers(Option<u64>),
    /// In the CTA's shared memory.
    Shared,
    /// In the thread's local memory.
    Local,
}

/// What a static instruction does beyond what [`Code`] says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Action {
    /// The lanes that execute it.
    pub(super) guard: Guard,
    /// Byte address of a lane, for memory instructions, and where it may lie.
    pub(super) address: Option<(Bounds, Expression)>,
    /// Ends its lanes.
    pub(super) exits: bool,
    /// Byte of the instruction in the workload file.
    pub(super) at: usize,
}

/// One move of a warp. Targets are indices into [`Program::moves`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Run a segment with the active lanes, if there are any.
    Segment(u32),
    /// Keep the lanes, go on with those in which the condition holds; with
    /// none of them go to `otherwise`.
    Enter {
        /// Not 0 where the lane goes in.
        condition: Expression,
        /// The [`Move::Otherwise`] or [`Move::Leave`] of this branch.
        otherwise: usize,
    },
    /// Go on with the kept lanes in which the condition fails; with none of
    /// them go to `end`.
    Otherwise {
        /// The branch's condition.
        condition: Expression,
        /// The [`Move::Leave`] of this branch.
        end: usize,
    },
    /// Take the kept lanes back.
    Leave,
    /// Keep the lanes and start a loop with those that run it at all; with none
    /// of them go to `end`.
    Start {
        /// Times, per lane.
        count: Expression,
        /// The [`Move::Leave`] of this loop.
        end: usize,
    },
    /// Run the loop's body from `body` again with the lanes that want to.
    Back {
        /// The first move of the body.
        body: usize,
    },
}

/// A kernel, ready to be walked by any warp of any CTA.
#[derive(Debug)]
pub(super) struct Program {
    /// Instructions and segments.
    pub(super) code: Arc<Code>,
    /// One per instruction of the code.
    pub(super) actions: Vec<Action>,
    /// What a warp does, from the first on.
    pub(super) moves: Vec<Move>,
    /// Grid.
    pub(super) grid: Dim3,
    /// CTA.
    pub(super) block: Dim3,
}

/// Most times that a lane runs a loop; counts above are cut to this.
pub(super) const TRIPS: i64 = 1 << 24;

/// Deepest nesting of loops.
pub(super) const LOOPS: usize = 8;
