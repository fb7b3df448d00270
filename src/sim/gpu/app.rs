//! What a run has to do for one application, and how far it has come.

use std::collections::VecDeque;

use gpumodel_core::memory_copy::MemoryCopy;
use gpumodel_core::units::{Cycle, KernelId};

use crate::config::{Machine, Quirks};
use crate::gpu::fast_forward::Passed;
use crate::gpu::link::LinkUse;
use crate::mmu::AppMemory;

/// One command of an application's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A copy between host and device, or within the device.
    Copy(MemoryCopy),
    /// A launch into a stream.
    Launch {
        /// Which launch.
        kernel: KernelId,
        /// Its CUDA stream.
        stream: u64,
    },
}

impl Command {
    /// The copy that it is.
    #[must_use]
    pub fn copy(&self) -> Option<&MemoryCopy> {
        match self {
            Self::Copy(copy) => Some(copy),
            Self::Launch { .. } => None,
        }
    }
}

/// Commands that are searched for one that may begin: the hardware's work queues hold
/// no more (CUDA programming guide, 128 resident grids).
const WINDOW: usize = 128;

/// The number that traces print for CUDA's default stream. The handle of the legacy stream
/// (`cudaStreamLegacy`, 1) is that of another stream: programs that name it are rare.
pub const DEFAULT_STREAM: u64 = 0;

/// The commands of one application that have not begun, by stream.
///
/// A launch or an asynchronous copy begins when the one before it in its stream has ended and
/// every synchronous copy before it in the list is done. A synchronous copy waits for all before
/// it and holds all behind it, as one on the legacy default stream does. A launch in the legacy default stream does
/// so too, and all launches behind it wait for it: other streams are taken as blocking, as
/// those of `cudaStreamCreate`, since traces do not record `cudaStreamNonBlocking` (CUDA
/// Runtime API, stream synchronization behavior).
#[derive(Debug)]
pub(crate) struct Launches {
    commands: VecDeque<Command>,
    running: Vec<(Begun, Place)>,
    rule: StreamRule,
    /// Copies that have begun end later, by [`Launches::copied`]; false: they end at once.
    times_copies: bool,
    /// The number of the next copy that begins.
    next_copy: u32,
}

/// What has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Launch(KernelId),
    Copy(u32),
}

/// Where it was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Stream(u64),
    /// The host waits for it.
    Host,
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
    /// The list of one application, whose copies end at once.
    pub(crate) fn new(commands: impl IntoIterator<Item = Command>, rule: StreamRule) -> Self {
        let commands = commands.into_iter().collect();
        Self { commands, running: Vec::new(), rule, times_copies: false, next_copy: 0 }
    }

    /// The same, whose copies may end later.
    pub(crate) fn timing_copies(self, times_copies: bool) -> Self {
        Self { times_copies, ..self }
    }

    /// Takes the next command that may begin now.
    pub(crate) fn next(&mut self) -> Option<Command> {
        let holds = |&(_, place): &(Begun, Place)| match place {
            Place::Stream(stream) => self.rule.is_alone(stream),
            Place::Host => true,
        };
        if self.running.iter().any(holds) {
            return None;
        }
        let mut busy: Vec<u64> =
            self.running.iter().filter_map(|(_, place)| place.stream()).collect();
        for place in 0..self.commands.len().min(WINDOW) {
            let stream = match self.commands[place] {
                Command::Copy(MemoryCopy { stream: None, .. }) => {
                    let first = place == 0 && self.running.is_empty();
                    return if first { self.begin(0, Place::Host) } else { None };
                }
                Command::Copy(MemoryCopy { stream: Some(stream), .. })
                | Command::Launch { stream, .. } => stream,
            };
            let alone = self.rule.is_alone(stream);
            if !busy.contains(&stream) && (!alone || busy.is_empty()) {
                return self.begin(place, Place::Stream(stream));
            }
            if alone {
                return None;
            }
            busy.push(stream);
        }
        None
    }

    /// Takes the command at `index` of the list.
    fn begin(&mut self, index: usize, place: Place) -> Option<Command> {
        let command = self.commands.remove(index)?;
        match command {
            Command::Launch { kernel, .. } => self.running.push((Begun::Launch(kernel), place)),
            Command::Copy(_) if self.times_copies => {
                self.running.push((Begun::Copy(self.next_copy), place));
                self.next_copy += 1;
            }
            Command::Copy(_) => {}
        }
        Some(command)
    }

    /// The number of the copy that began last.
    pub(crate) fn last_copy(&self) -> u32 {
        self.next_copy - 1
    }

    /// Notes that a launch has ended.
    pub(crate) fn ended(&mut self, kernel: KernelId) {
        self.running.retain(|&(running, _)| running != Begun::Launch(kernel));
    }

    /// Notes that a copy has ended.
    pub(crate) fn copied(&mut self, number: u32) {
        self.running.retain(|&(running, _)| running != Begun::Copy(number));
    }

    /// Whether a copy is under way.
    pub(crate) fn is_copying(&self) -> bool {
        self.running.iter().any(|(begun, _)| matches!(begun, Begun::Copy(_)))
    }

    /// True when every command is done.
    pub(crate) fn is_done(&self) -> bool {
        self.commands.is_empty() && self.running.is_empty()
    }
}

impl Place {
    fn stream(self) -> Option<u64> {
        match self {
            Self::Stream(stream) => Some(stream),
            Self::Host => None,
        }
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
    /// What it has had of the link to the host, up to [`AppOutcome::end`].
    pub link: LinkUse,
    /// What was passed over up to [`AppOutcome::end`], of a fast-forwarded run.
    pub passed: Option<Passed>,
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
    /// It has begun a launch.
    pub(crate) begun: bool,
    /// Its runs up to when another one last copied instead of running.
    pub(crate) runs_beside_copies: u64,
    /// What begins now has waited for a copy.
    pub(crate) after_copy: bool,
    /// When it came or its last launch ended: its next call may go out.
    pub(crate) free_since: Cycle,
    /// Its launches that have begun and not ended.
    pub(crate) begun_launches: Vec<u32>,
    /// Since when it holds more than its share on some SM.
    pub(crate) vacating_since: Option<Cycle>,
    /// Cycles during which it held more than its share, up to when it last did not.
    pub(crate) vacated_cycles: Cycle,
    /// Its outcome stands: what it does further is not reported.
    pub(crate) reported: bool,
}

impl Running {
    /// An application that is still to come.
    pub(crate) fn new(load: Load, machine: &Machine) -> Self {
        let outcome = AppOutcome { arrival: load.arrival, ..AppOutcome::default() };
        let launches = launches(&load, machine);
        let state = if load.absent { State::Finished } else { State::Coming };
        let reported = load.absent;
        Self {
            load,
            launches,
            state,
            outcome,
            begun: false,
            runs_beside_copies: 0,
            after_copy: false,
            free_since: 0,
            begun_launches: Vec::new(),
            vacating_since: None,
            vacated_cycles: 0,
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
        self.launches = launches(&self.load, machine);
    }
}

/// The list of an application's commands on a machine.
fn launches(load: &Load, machine: &Machine) -> Launches {
    let times = machine.link.as_ref().is_some_and(|link| link.copies);
    let commands = load.commands.iter().copied();
    Launches::new(commands, StreamRule::of(machine)).timing_copies(times)
}

#[cfg(test)]
mod tests {
    use super::{Command, Launches, MemoryCopy, StreamRule};
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
        let copy = Command::Copy(MemoryCopy::to_device(0, 4));
        let mut launches = Launches::new([launch(0, 0), copy, launch(1, 5)], StreamRule::Legacy);
        assert_eq!(launches.next(), Some(launch(0, 0)));
        assert_eq!(launches.next(), None);
        launches.ended(KernelId(0));
        assert_eq!(launches.next(), Some(copy));
        assert_eq!(launches.next(), Some(launch(1, 5)));
    }

    #[test]
    fn a_copy_that_takes_time_holds_its_stream_and_the_host_where_it_waits() {
        let copy = |stream| Command::Copy(MemoryCopy { stream, ..MemoryCopy::to_device(0, 4) });
        let list = [copy(Some(1)), launch(0, 1), launch(1, 2), copy(None), launch(2, 3)];
        let mut launches = Launches::new(list, StreamRule::Legacy).timing_copies(true);
        assert_eq!((launches.next(), launches.last_copy()), (Some(list[0]), 0));
        assert_eq!([launches.next(), launches.next()], [Some(list[2]), None]);
        launches.copied(0);
        assert_eq!([launches.next(), launches.next()], [Some(list[1]), None]);
        launches.ended(KernelId(0));
        launches.ended(KernelId(1));
        assert_eq!([launches.next(), launches.next()], [Some(list[3]), None]);
        launches.copied(1);
        assert_eq!(launches.next(), Some(list[4]));
        // Without time a copy is over as it begins.
        let mut launches = Launches::new(list, StreamRule::Legacy);
        assert_eq!([launches.next(), launches.next()], [Some(list[0]), Some(list[1])]);
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
