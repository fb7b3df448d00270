//! How long work tells how far it is.

use gpumodel_trace::{Progress, Silent};

/// Somebody who watches an analysis. Called from several threads.
pub trait Watch: Sync {
    /// Told about converting: bytes of trace text.
    fn converting(&self) -> &dyn Progress;

    /// Told about running: warp instructions.
    fn running(&self) -> &dyn Progress;
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn converting(&self) -> &dyn Progress {
        &Silent
    }

    fn running(&self) -> &dyn Progress {
        &Silent
    }
}
