//! What a run has to do for one application, and how far that is.

use crate::config::Machine;
use gpumodel_core::units::Cycle;

use crate::gpu::launches::{Command, Launches};
use crate::mmu::AppMemory;

/// What a run has to do for one application.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Its commands; launches are numbered over all applications.
    pub commands: Vec<Command>,
    /// When its first command may begin.
    pub arrival: Cycle,
    /// Warp instructions after which it is stopped and gives up what it holds;
    /// `None`: it runs to its end.
    pub target: Option<f64>,
    /// It begins anew each time that it has ended, until the run is over.
    pub relaunches: bool,
    /// It takes no part in the run.
    pub absent: bool,
}

impl From<Vec<Command>> for Load {
    fn from(commands: Vec<Command>) -> Self {
        Self { commands, ..Self::default() }
    }
}

/// When a run is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// As soon as one application has finished, not when all have.
    pub first: bool,
    /// At this cycle at the latest.
    pub at: Option<Cycle>,
}

/// What became of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AppOutcome {
    /// When it arrived.
    pub arrival: Cycle,
    /// The end of its first run, when its target was reached, or the end of the
    /// whole run.
    pub end: Cycle,
    /// It came to its end or to its target.
    pub finished: bool,
    /// Runs that came to their end.
    pub runs: u64,
    /// Warp instructions up to [`AppOutcome::end`], by the issue slots that they
    /// took, without those of CTAs that were dropped to start again.
    pub progress: f64,
    /// Its pages and what moving them has cost, up to [`AppOutcome::end`].
    pub memory: AppMemory,
    /// Cycles during which its SMs asked for nothing, as channels changed hands, up to
    /// [`AppOutcome::end`].
    pub resting_cycles: Cycle,
    /// Cycles during which it held more CTAs than its share somewhere.
    pub vacating_cycles: Cycle,
}

/// What an application's changes of SMs and channels have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppMoved {
    /// Pages that have moved.
    pub pages: u64,
    /// Cycles during which pages were under way.
    pub moving_cycles: Cycle,
    /// Cycles during which it held more CTAs than its share somewhere.
    pub vacating_cycles: Cycle,
}

impl AppOutcome {
    /// Cycles from its arrival to its end; 0 where the run was over before it came.
    #[must_use]
    pub fn cycles(&self) -> Cycle {
        self.end.saturating_sub(self.arrival)
    }
}

/// Where an application is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not arrived.
    Coming,
    /// It runs or waits for its turn.
    Active,
    /// It has finished and holds nothing.
    Finished,
}

/// One application of a run.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) load: Load,
    pub(crate) launches: Launches,
    pub(crate) state: State,
    pub(crate) outcome: AppOutcome,
    /// It has begun a command.
    pub(crate) begun: bool,
    /// When it came or its last launch ended: its next call may go out.
    pub(crate) free_since: Cycle,
    /// Cycles during which it held more than its share, up to when it last did not.
    pub(crate) vacated_cycles: Cycle,
    /// Cycles during which its SMs rested as channels changed hands, up to when they
    /// last went on.
    pub(crate) rested_cycles: Cycle,
    /// Its outcome stands: what it does further is not reported.
    pub(crate) reported: bool,
}

impl Running {
    /// An application that is still to come.
    pub(crate) fn new(load: Load, machine: &Machine) -> Self {
        let serial = machine.quirks.serial_kernels;
        let outcome = AppOutcome { arrival: load.arrival, ..AppOutcome::default() };
        let launches = Launches::new(load.commands.iter().copied(), serial);
        let state = if load.absent { State::Finished } else { State::Coming };
        let reported = load.absent;
        Self {
            load,
            launches,
            state,
            outcome,
            begun: false,
            free_since: 0,
            vacated_cycles: 0,
            rested_cycles: 0,
            reported,
        }
    }

    /// It begins its commands anew.
    pub(crate) fn relaunch(&mut self, serial: bool) {
        self.launches = Launches::new(self.load.commands.iter().copied(), serial);
    }
}
