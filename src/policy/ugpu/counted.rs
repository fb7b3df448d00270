//! What has been counted since an epoch began, whatever has woken the scheme since.

use gpumodel_core::contract::View;
use gpumodel_core::units::{AppId, Cycle};

use super::demand::Traffic;

/// The counters of an epoch so far. Those of a view begin anew at every decision, also
/// at one in the middle of an epoch that changes nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// Cycles in which they were counted.
    pub(super) cycles: Cycle,
    /// By [`AppId`].
    apps: Vec<Traffic>,
}

impl Counted {
    /// Takes in what a view has counted.
    pub(super) fn add(&mut self, view: &View) {
        self.cycles += view.now - view.since;
        self.apps.resize(view.apps.len(), Traffic::default());
        for (sum, seen) in self.apps.iter_mut().zip(&view.apps) {
            sum.add(&seen.into());
        }
    }

    /// An epoch begins.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// What an application has asked of the memory. Eq. 1 and 2 take it per instruction
    /// and per request, so the length of the epoch is in neither.
    pub(super) fn traffic(&self, app: AppId) -> Traffic {
        self.apps.get(app.index()).copied().unwrap_or_default()
    }
}
