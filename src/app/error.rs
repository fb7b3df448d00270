//! What can go wrong between a request and its record.

use std::path::{Path, PathBuf};

use thiserror::Error;

use gpumodel_core::contract::LawBroken;
use gpumodel_core::units::Cycle;
use gpumodel_policy::BadChoice;
use gpumodel_policy::queue::Unmatched;
use gpumodel_report::paper::PaperError;
use gpumodel_sim::MachineError;
use gpumodel_sim::config::{MemoryError, SpecError};
use gpumodel_trace::TraceError;
use gpumodel_trace::workload::SynthError;

use crate::{QueueFileError, scheme};

/// Why a run gave no record.
#[derive(Debug, Error)]
pub enum RunError {
    /// A model file is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A paper's file cannot be read.
    #[error(transparent)]
    Paper(#[from] PaperError),
    /// A memory standard or an address mapping is wrong.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A trace or store is wrong.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A workload model is wrong.
    #[error(transparent)]
    Synth(#[from] SynthError),
    /// A workload model is asked for at a scale that is no number.
    #[error("synth:{app}: expected one number, as scale=0.5, found {found}")]
    Scale {
        /// As typed, without `synth:`.
        app: String,
        /// What stands there.
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
    /// A scheme gives an application no share while others begin anew and anew.
    #[error(
        "under scheme {scheme} application {app} never gets a share while others run again and \
         again: such a run has no end; give it one, as --until first-run,cycles=1000000 (in a \
         plan until = \"first-run,cycles=1000000\"), or leave the scheme out"
    )]
    Starved {
        /// Which scheme.
        scheme: String,
        /// Which application.
        app: String,
    },
    /// An application did not execute what its trace holds.
    #[error(
        "application {app} has executed {found} of the {expected} warp instructions of its \
         trace; this is a defect of the model, please report it"
    )]
    Instructions {
        /// Which application.
        app: String,
        /// Warp instructions of the trace.
        expected: u64,
        /// Those executed, without what was lost with CTAs that started again.
        found: u64,
    },
    /// A scheme's plan cannot be: what is asked of the scheme, or a defect of it.
    #[error("scheme {scheme} cannot run so")]
    Law {
        /// Which scheme.
        scheme: String,
        /// Which law.
        source: LawBroken,
    },
    /// A scheme gives channels on a machine where they cannot be owned.
    #[error("scheme {scheme} gives each application memory channels of its own")]
    NoChannels {
        /// Which scheme.
        scheme: String,
        /// Why that cannot be.
        source: LawBroken,
    },
    /// A scheme that does not exist, or a parameter that it does not take.
    #[error(transparent)]
    Scheme(#[from] BadChoice),
    /// The decisions of a record cannot be run again.
    #[error("scheme {typed}: {problem}; give it as replay:FILE.json or replay:FILE.json:run=N")]
    Replay {
        /// As typed.
        typed: String,
        /// What is wrong.
        problem: String,
    },
    /// The decisions of a record do not fit another machine.
    #[error(
        "scheme {scheme}: the decisions of the record do not fit here: run them on a machine with \
         as many SMs, CTA slots and channels as the record's"
    )]
    ReplayMisfit {
        /// As it is called.
        scheme: String,
        /// Which law they break here.
        source: LawBroken,
    },
    /// A scheme for one application was asked to run several.
    #[error(
        "scheme {scheme} runs one application, here are {apps}; `sequential` runs one after the \
         other, and each is analyzed alone in any case"
    )]
    SoloOnly {
        /// Which scheme.
        scheme: &'static str,
        /// Applications of the run.
        apps: usize,
    },
    /// A scheme for some number of applications was asked to run another.
    #[error(
        "scheme {scheme} divides the machine between {only} applications, here are {apps}; `bp` \
         divides it evenly between any number"
    )]
    AppCount {
        /// Which scheme.
        scheme: &'static str,
        /// Applications that it is for.
        only: usize,
        /// Applications of the run.
        apps: usize,
    },
    /// An application that is not among those of the run.
    #[error("there is no application {name} in this run; there are: {known}")]
    UnknownApp {
        /// As typed.
        name: String,
        /// Every name.
        known: String,
    },
    /// An application that is to come at two times.
    #[error("application {0} arrives twice; give --arrive {0}=CYCLE once")]
    ArrivesTwice(String),
    /// Targets without the window that sets them.
    #[error(
        "the end `targets` needs a window: each application runs alone for so many cycles, and \
         what it executes there is its target; add --window 2000000"
    )]
    NoWindow,
    /// A window in which an application does nothing that a target could be made of.
    #[error(
        "application {app} executes less than one warp instruction in its first {window} cycles \
         alone, so it has no target: a launch takes {launch} cycles, and then come the first \
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
    /// A window where co-runs are about the whole of each application.
    #[error(
        "a window belongs to --until targets or --until cycles=N: with `{0}` each application \
         is compared with its whole solo run"
    )]
    UnusedWindow(String),
    /// A queue file is wrong.
    #[error(transparent)]
    QueueFile(#[from] QueueFileError),
    /// A scheme that groups a queue was asked for without one.
    #[error(
        "scheme {0} says who of a queue runs with whom: add --queue FILE.toml, or name a scheme \
         for applications that all run together"
    )]
    NeedsQueue(&'static str),
    /// An option that has no meaning for queues.
    #[error(
        "{0} is for applications that all run together: the members of a group run until each \
         has finished once, and a queue's file says when they arrive"
    )]
    NotWithQueue(&'static str),
    /// More applications together than the machine has SMs.
    #[error("group_size is {group_size}, and the machine has {sms} SMs: one for each at least")]
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
    /// A queue is to hold applications of a class that none has.
    #[error(
        "the distribution {distribution} needs an application of class {class}, and on this \
         machine there is none: {classes}; add one to [apps], or name other distributions"
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
        /// The workload model that has this name; nothing where none has.
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
    /// No launch of an application was asked for.
    #[error("application {app}: {found}")]
    NoKernels {
        /// Which application.
        app: String,
        /// What was asked for, and what there is.
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
    /// A store is another one than when the sweep began.
    #[error(
        "the store {} of application {app} has changed since the sweep began: sweep again, and \
         its cells are made of what it holds now",
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
    /// Whether the same request would be refused again, by what it asks of machine, scheme
    /// and applications: nothing of files or memory.
    pub(super) fn refuses(&self) -> bool {
        match self {
            Self::Machine { source, .. } => matches!(
                source,
                MachineError::CtaTooLarge { .. }
                    | MachineError::Unsupported(_)
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

    /// A scheme's plan broke a law: its defect, or the machine's lack of what it shares.
    /// One that was recorded is of another machine.
    pub(super) fn law(scheme: &str, source: LawBroken) -> Self {
        let scheme = scheme.to_owned();
        match source {
            LawBroken::NoGroups => Self::NoChannels { scheme, source },
            source if scheme == scheme::REPLAY => Self::ReplayMisfit { scheme, source },
            source => Self::Law { scheme, source },
        }
    }
}

/// A file, with its line where that is known.
pub(super) fn at(path: &Path, line: Option<u32>) -> String {
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{}{line}", path.display())
}

/// A value that no file of its kind can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidValue {
    /// The keys that lead to it, of items of lists their places from 0.
    pub(super) keys: Vec<String>,
    /// Key, what was expected and what was found.
    pub(super) message: String,
}

impl InvalidValue {
    /// Something wrong with the value of `key`.
    pub(super) fn of(key: &str, message: impl Into<String>) -> Self {
        Self { keys: vec![key.to_owned()], message: message.into() }
    }

    /// The same, of the item at `place` of the list.
    pub(super) fn item(mut self, place: usize) -> Self {
        self.keys.push(place.to_string());
        self
    }

    /// The same, of the value of `key` in it.
    pub(super) fn within(mut self, key: &str) -> Self {
        self.keys.push(key.to_owned());
        self
    }
}
