//! What a run has to do for one application, and how far it has come.

use std::collections::VecDeque;

use gpumodel_core::units::{Cycle, KernelId};

use crate::config::{Machine, Quirks};
use crate::mmu::AppMemory;

/// One command of an application's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A host-to-device copy.
    Copy {
        /// First byte in device memory.
        destination: u64,
        /// Length.
        bytes: u64,
    },
    /// A launch into a stream.
    Launch {
        /// Which launch.
        kernel: KernelId,
        /// Its CUDA stream.
        stream: u64,
    },
}

/// Commands that are searched for one that may begin: the hardware's work queues hold
/// no more (CUDA programming guide, 128 resident grids).
const WINDOW: usize = 128;

/// The number that traces print for CUDA's default stream.
pub const DEFAULT_STREAM: u64 = 0;

/// The commands of one application that have not begun, by stream.
///
/// A launch begins when the one before it in its stream has ended and every
/// copy before it in the list is done. A copy waits for all launches before it
/// (a synchronous copy on the default stream). A launch in the legacy default stream does
/// so too, and all launches behind it wait for it: other streams are taken as blocking, as
/// those of `cudaStreamCreate`, since traces do not record `cudaStreamNonBlocking` (CUDA
/// Runtime API, stream synchronization behavior).
#[derive(Debug)]
pub(crate) struct Launches {
    commands: VecDeque<Command>,
    running: Vec<(KernelId, u64)>,
    rule: StreamRule,
}

/// Which launches of one application may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamRule {
    /// One kernel at a time, whatever the streams.
    Serial,
    /// Streams as CUDA has them, with the legacy default stream.
    Legacy,
    /// Every stream waits for itself alone, a default stream per thread among them.
    PerThread,
}

impl StreamRule {
    /// The rule of a machine.
    pub(crate) fn of(machine: &Machine) -> Self {
        let Quirks { serial_kernels, per_thread_default_stream, .. } = machine.quirks;
        match (serial_kernels, per_thread_default_stream) {
            (true, _) => Self::Serial,
            (false, true) => Self::PerThread,
            (false, false) => Self::Legacy,
        }
    }

    /// Whether a launch in `stream` runs alone.
    fn is_alone(self, stream: u64) -> bool {
        match self {
            Self::Serial => true,
            Self::Legacy => stream == DEFAULT_STREAM,
            Self::PerThread => false,
        }
    }
}

impl Launches {
    /// The list of one application.
    pub(crate) fn new(commands: impl IntoIterator<Item = Command>, rule: StreamRule) -> Self {
        Self { commands: commands.into_iter().collect(), running: Vec::new(), rule }
    }

    /// Takes the next command that may begin now.
    pub(crate) fn next(&mut self) -> Option<Command> {
        if self.running.iter().any(|&(_, stream)| self.rule.is_alone(stream)) {
            return None;
        }
        let mut busy: Vec<u64> = self.running.iter().map(|&(_, stream)| stream).collect();
        for place in 0..self.commands.len().min(WINDOW) {
            match self.commands[place] {
                Command::Copy { .. } => {
                    let first = place == 0 && self.running.is_empty();
                    return if first { self.commands.pop_front() } else { None };
                }
                Command::Launch { kernel, stream } => {
                    let alone = self.rule.is_alone(stream);
                    if !busy.contains(&stream) && (!alone || busy.is_empty()) {
                        self.commands.remove(place);
                        self.running.push((kernel, stream));
                        return Some(Command::Launch { kernel, stream });
                    }
                    if alone {
                        return None;
                    }
                    busy.push(stream);
                }
            }
        }
        None
    }

    /// Notes that a launch has ended.
    pub(crate) fn ended(&mut self, kernel: KernelId) {
        self.running.retain(|&(running, _)| running != kernel);
    }

    /// True when every command is done.
    pub(crate) fn is_done(&self) -> bool {
        self.commands.is_empty() && self.running.is_empty()
    }
}

/// What a run has to do for one application.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Its commands; launches are numbered over all applications.
    pub commands: Vec<Command>,
    /// When its first command may begin.
    pub arrival: Cycle,
    /// Warp instructions after which it is stopped and releases its share; `None`: it runs
    /// to its end.
    pub target: Option<f64>,
    /// It restarts each time it ends, until the run is over.
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
    /// Its launches that have begun and not ended.
    pub(crate) begun_launches: Vec<u32>,
    /// Since when it holds more than its share on some SM.
    pub(crate) vacating_since: Option<Cycle>,
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
        let outcome = AppOutcome { arrival: load.arrival, ..AppOutcome::default() };
        let launches = Launches::new(load.commands.iter().copied(), StreamRule::of(machine));
        let state = if load.absent { State::Finished } else { State::Coming };
        let reported = load.absent;
        Self {
            load,
            launches,
            state,
            outcome,
            begun: false,
            free_since: 0,
            begun_launches: Vec::new(),
            vacating_since: None,
            vacated_cycles: 0,
            rested_cycles: 0,
            reported,
        }
    }

    /// Its target of warp instructions, until its outcome stands.
    pub(crate) fn open_target(&self) -> Option<f64> {
        self.load.target.filter(|_| !self.reported)
    }

    /// Cycles up to `now` during which it held more than its share on some SM.
    pub(crate) fn vacating_cycles(&self, now: Cycle) -> Cycle {
        self.vacated_cycles + self.vacating_since.map_or(0, |since| now - since)
    }

    /// It begins its commands again.
    pub(crate) fn relaunch(&mut self, machine: &Machine) {
        let rule = StreamRule::of(machine);
        self.launches = Launches::new(self.load.commands.iter().copied(), rule);
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Launches, StreamRule};
    use gpumodel_core::units::KernelId;

    fn launch(kernel: u32, stream: u64) -> Command {
        Command::Launch { kernel: KernelId(kernel), stream }
    }

    #[test]
    fn streams_overlap_and_keep_their_own_order() {
        let list = [launch(0, 1), launch(1, 1), launch(2, 2)];
        let mut launches = Launches::new(list, StreamRule::Legacy);
        assert_eq!(launches.next(), Some(launch(0, 1)));
        assert_eq!(launches.next(), Some(launch(2, 2)));
        assert_eq!(launches.next(), None);
        launches.ended(KernelId(0));
        assert_eq!(launches.next(), Some(launch(1, 1)));
        launches.ended(KernelId(1));
        assert!(!launches.is_done());
        launches.ended(KernelId(2));
        assert!(launches.is_done());
    }

    #[test]
    fn a_copy_waits_for_what_is_before_it_and_holds_what_is_behind() {
        let copy = Command::Copy { destination: 0, bytes: 4 };
        let mut launches = Launches::new([launch(0, 0), copy, launch(1, 5)], StreamRule::Legacy);
        assert_eq!(launches.next(), Some(launch(0, 0)));
        assert_eq!(launches.next(), None);
        launches.ended(KernelId(0));
        assert_eq!(launches.next(), Some(copy));
        assert_eq!(launches.next(), Some(launch(1, 5)));
    }

    #[test]
    fn the_legacy_default_stream_waits_for_all_others_and_they_for_it() {
        let list = [launch(0, 1), launch(1, 2), launch(2, 0), launch(3, 1), launch(4, 3)];
        let mut launches = Launches::new(list, StreamRule::Legacy);
        assert_eq!([launches.next(), launches.next()], [Some(list[0]), Some(list[1])]);
        assert_eq!(launches.next(), None);
        launches.ended(KernelId(1));
        assert_eq!(launches.next(), None, "stream 1 still runs");
        launches.ended(KernelId(0));
        assert_eq!([launches.next(), launches.next()], [Some(list[2]), None]);
        launches.ended(KernelId(2));
        assert_eq!([launches.next(), launches.next()], [Some(list[3]), Some(list[4])]);
    }

    #[test]
    fn a_default_stream_per_thread_is_one_among_others() {
        let list = [launch(0, 1), launch(1, 0), launch(2, 0), launch(3, 2)];
        let mut launches = Launches::new(list, StreamRule::PerThread);
        let begun = [launches.next(), launches.next(), launches.next(), launches.next()];
        assert_eq!(begun, [Some(list[0]), Some(list[1]), Some(list[3]), None]);
    }

    #[test]
    fn a_serial_machine_runs_one_kernel_at_a_time() {
        let mut launches = Launches::new([launch(0, 1), launch(1, 2)], StreamRule::Serial);
        assert_eq!(launches.next(), Some(launch(0, 1)));
        assert_eq!(launches.next(), None);
    }
}
