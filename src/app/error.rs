//! Errors of runs, and of values in plans and queues.

use std::path::{Path, PathBuf};

use thiserror::Error;

use gpumodel_core::contract::LawBroken;
use gpumodel_core::units::Cycle;
use gpumodel_policy::BadChoice;
use gpumodel_policy::queue::Unmatched;
use gpumodel_report::paper::PaperError;
use gpumodel_sim::MachineError;
use gpumodel_sim::config::SpecError;
use gpumodel_trace::TraceError;
use gpumodel_trace::workload::WorkloadError;

use crate::{QueueFileError, scheme};

/// Why a run has no record.
#[derive(Debug, Error)]
pub enum RunError {
    /// A model file is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A paper's file cannot be read.
    #[error(transparent)]
    Paper(#[from] PaperError),
    /// A trace or store is invalid.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A workload model is invalid.
    #[error(transparent)]
    Synth(#[from] WorkloadError),
    /// The scale of a workload model is no number.
    #[error("synth:{app}: expected one number, as scale=0.5, found {found}")]
    Scale {
        /// The argument, without `synth:`.
        app: String,
        /// The scale that was found.
        found: String,
    },
    /// The machine could not run an application.
    #[error("application {app} did not run to its end")]
    Machine {
        /// Which application.
        app: String,
        /// Why.
        source: MachineError,
    },
    /// A scheme gives an application no share while the others relaunch forever.
    #[error(
        "under scheme {scheme} application {app} never gets a share while others relaunch: the run \
         has no end; set one, as --until first-run,cycles=1000000 (in a plan \
         until = \"first-run,cycles=1000000\"), or leave the scheme out"
    )]
    Starved {
        /// Which scheme.
        scheme: String,
        /// Which application.
        app: String,
    },
    /// An application did not execute exactly its trace.
    #[error(
        "application {app} has executed {found} of the {expected} warp instructions of its \
         trace; this is a defect of the model, please report it"
    )]
    Instructions {
        /// Which application.
        app: String,
        /// Warp instructions of the trace.
        expected: u64,
        /// Warp instructions executed, without those of killed CTAs.
        found: u64,
    },
    /// A scheme's plan is invalid, by its parameters or by a defect of the scheme.
    #[error("scheme {scheme} cannot run")]
    Law {
        /// Which scheme.
        scheme: String,
        /// Which law.
        source: LawBroken,
    },
    /// A scheme assigns channels on a machine where applications cannot own them.
    #[error("scheme {scheme} gives each application its own memory channels")]
    NoChannels {
        /// Which scheme.
        scheme: String,
        /// Why that cannot be.
        source: LawBroken,
    },
    /// A scheme that does not exist, or a parameter that it does not take.
    #[error(transparent)]
    Scheme(#[from] BadChoice),
    /// The decisions of a record cannot be replayed.
    #[error("scheme {typed}: {problem}; give it as replay:FILE.json or replay:FILE.json:run=N")]
    Replay {
        /// The argument.
        typed: String,
        /// The problem.
        problem: String,
    },
    /// The decisions of a record do not fit this machine.
    #[error(
        "scheme {scheme}: the decisions of the record do not fit here: run them on a machine with \
         as many SMs, CTA slots and channels as the record's"
    )]
    ReplayMisfit {
        /// The name of the scheme.
        scheme: String,
        /// Which law they break here.
        source: LawBroken,
    },
    /// A scheme for one application got several.
    #[error(
        "scheme {scheme} runs one application, found {apps}; `sequential` runs them one after the \
         other, and each also runs alone"
    )]
    SoloOnly {
        /// Which scheme.
        scheme: &'static str,
        /// Applications of the run.
        apps: usize,
    },
    /// A scheme for a fixed number of applications got another number.
    #[error(
        "scheme {scheme} divides the machine between {only} applications, found {apps}; `bp` \
         divides it evenly between any number"
    )]
    AppCount {
        /// Which scheme.
        scheme: &'static str,
        /// Applications that it needs.
        only: usize,
        /// Applications of the run.
        apps: usize,
    },
    /// An application that is not in the run.
    #[error("no application {name} in this run; the applications are: {known}")]
    UnknownApp {
        /// As typed.
        name: String,
        /// Every name.
        known: String,
    },
    /// Two arrivals of one application.
    #[error("application {0} arrives twice; give --arrive {0}=CYCLE once")]
    ArrivesTwice(String),
    /// Targets without the window that sets them.
    #[error(
        "the end `targets` needs a window: what each application executes alone in so many cycles \
         is its target; add --window 2000000"
    )]
    NoWindow,
    /// A window in which an application executes less than one instruction.
    #[error(
        "application {app} executes less than one warp instruction in its first {window} cycles \
         alone, so it has no target: a launch takes {launch} cycles, followed by the first \
         reads of code; give a longer window, as --window 2000000"
    )]
    EmptyWindow {
        /// Which application.
        app: String,
        /// Cycles of the window.
        window: Cycle,
        /// Cycles that a launch takes on the machine.
        launch: Cycle,
    },
    /// A window with an end of co-runs that does not use it.
    #[error(
        "a window belongs to --until targets or --until cycles=N: with `{0}` each application \
         is compared with its whole solo run"
    )]
    UnusedWindow(String),
    /// A queue file is invalid.
    #[error(transparent)]
    QueueFile(#[from] QueueFileError),
    /// A scheme for queues without a queue.
    #[error(
        "scheme {0} forms groups of a queue: add --queue FILE.toml, or name a scheme for \
         applications that all run together"
    )]
    NeedsQueue(&'static str),
    /// An option that does not apply to queues.
    #[error(
        "{0} is for applications that all run together: the members of a group run until each \
         has finished once, and a queue's file says when they arrive"
    )]
    NotWithQueue(&'static str),
    /// Samples of a machine whose copies or page faults take time.
    #[error(
        "--sample leaves out most of a run, and copies and page faults that take time (--copies, \
         --managed, or link.copies and link.managed of the machine) are of the whole: run it \
         without --sample"
    )]
    SampledLink,
    /// More applications together than the machine has SMs.
    #[error(
        "group_size is {group_size}, but the machine has only {sms} SMs: at least one for each"
    )]
    TooFewSms {
        /// Applications together.
        group_size: usize,
        /// SMs of the machine.
        sms: u16,
    },
    /// A queue cannot be grouped.
    #[error("queue {queue} under {scheme}")]
    Queue {
        /// Which queue.
        queue: String,
        /// Under which scheme.
        scheme: String,
        /// Why.
        source: Box<Unmatched>,
    },
    /// A queue needs applications of a class that no application has.
    #[error(
        "the distribution {distribution} needs an application of class {class}, and on this \
         machine none has it: {classes}; add one to [apps], or name other distributions"
    )]
    NoClass {
        /// Which distribution.
        distribution: String,
        /// Which class.
        class: &'static str,
        /// Every application with its class.
        classes: String,
    },
    /// An application of a queue has no times.
    #[error(
        "application {0} is a log of accesses without times; a queue needs whole traces: leave \
         it out"
    )]
    NoTimes(String),
    /// An application that is neither a file nor a folder.
    #[error(
        "there is no file or folder {path}{hint}; expected a store, a trace, a list, a folder of \
         traces or synth:WORKLOAD"
    )]
    NoApp {
        /// As typed.
        path: PathBuf,
        /// The workload model of this name; empty if there is none.
        hint: String,
    },
    /// An application that a file names cannot be used.
    #[error("{location}: apps.{app}")]
    FileApp {
        /// File and line.
        location: String,
        /// Its name there.
        app: String,
        /// Why.
        source: Box<RunError>,
    },
    /// The filter selects no launch of an application.
    #[error("application {app}: {found}")]
    NoKernels {
        /// Which application.
        app: String,
        /// The filter, and the launches of the application.
        found: String,
    },
    /// Two applications of the same name.
    #[error("two applications are called {name}; give one of them another name with NAME={path}")]
    SameName {
        /// The name.
        name: String,
        /// The second one's path.
        path: PathBuf,
    },
    /// A store has changed since the sweep began.
    #[error(
        "the store {} of application {app} has changed since the sweep began: start the sweep again \
         to use its new contents",
        path.display()
    )]
    StoreChanged {
        /// Which application.
        app: String,
        /// Its store.
        path: PathBuf,
    },
    /// The user's cache folder cannot be used.
    #[error(
        "cannot keep converted traces in {path}; set GPUMODEL_CACHE to a folder that can be written"
    )]
    Cache {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl RunError {
    /// Whether the same request would fail again: the cause is its machine, scheme or
    /// applications, not a file or memory.
    pub(super) fn refuses(&self) -> bool {
        match self {
            Self::Machine { source, .. } => matches!(
                source,
                MachineError::CtaTooLarge { .. }
                    | MachineError::Unsupported(_)
                    | MachineError::LostArrival(_)
                    | MachineError::Starved { .. }
            ),
            Self::Law { .. }
            | Self::NoChannels { .. }
            | Self::ReplayMisfit { .. }
            | Self::Starved { .. }
            | Self::Scheme(_)
            | Self::SoloOnly { .. }
            | Self::AppCount { .. }
            | Self::EmptyWindow { .. }
            | Self::NoWindow
            | Self::UnusedWindow(_) => true,
            _ => false,
        }
    }

    /// The error of a plan that breaks a law: a defect of the scheme, channels that the machine
    /// does not divide, or a replay of another machine's decisions.
    pub(super) fn law(scheme: &str, source: LawBroken) -> Self {
        let scheme = scheme.to_owned();
        match source {
            LawBroken::NoGroups => Self::NoChannels { scheme, source },
            source if scheme == scheme::REPLAY => Self::ReplayMisfit { scheme, source },
            source => Self::Law { scheme, source },
        }
    }
}

/// A file, with the line if known.
pub(super) fn location(path: &Path, line: Option<u32>) -> String {
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{}{line}", path.display())
}

/// An invalid value in a plan or a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidValue {
    /// The path of keys to the value; items of lists by their index.
    pub(super) keys: Vec<String>,
    /// Key, what was expected and what was found.
    pub(super) message: String,
}

impl InvalidValue {
    /// An error about the value of `key`.
    pub(super) fn of(key: &str, message: impl Into<String>) -> Self {
        Self { keys: vec![key.to_owned()], message: message.into() }
    }

    /// The same about the item at `index` of the list.
    pub(super) fn item(mut self, index: usize) -> Self {
        self.keys.push(index.to_string());
        self
    }

    /// The same about the value of `key` in it.
    pub(super) fn within(mut self, key: &str) -> Self {
        self.keys.push(key.to_owned());
        self
    }
}
