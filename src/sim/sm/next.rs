//! How a warp that was stopped goes on.

use super::issue_bandwidth::{Claim, ISSUE};
use super::issue_interval::Running;

/// How a stopped warp goes on when its CTA is back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Next {
    /// It begins its next interval.
    #[default]
    IssueInterval,
    /// The rest of the interval that it was in.
    Rest(Running, Claim),
    /// What it met at the end of its interval, which it had to wait with.
    Meet,
    /// It had waited for something that is there by now.
    Settled,
    /// It still waits at a barrier.
    Barrier(u8),
}

impl Next {
    /// Instructions of its interval that have not issued.
    pub(super) fn unissued(&self) -> f64 {
        match self {
            Self::Rest(running, claim) => running.left.max(0.0) * f64::from(claim.density[ISSUE]),
            _ => 0.0,
        }
    }
}
