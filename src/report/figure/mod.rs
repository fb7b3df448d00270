//! The figures: one file each, and one row each in [`FIGURES`].
//!
//! A figure takes a [`FigureInput`] and gives a [`Drawing`], or says what is missing:
//! there is no empty plot.

mod activity;
mod app_time;
mod choice;
mod correlation;
mod ctas;
mod curves;
mod energy;
mod input;
mod interference;
mod issue_slots;
mod makespan;
mod normalized;
mod occupancy;
mod qos;
mod queue_timeline;
mod queues;
mod reallocation;
mod residence;
mod residency;
mod roofline;
mod schedule;
mod schemes;
mod shared_stalls;
mod sharing;
mod slice_speed;
mod slice_surface;
mod slowdown;
mod sm_scaling;
mod sm_share;
mod sorted;
mod stalls;
mod task_size;
mod timeline;
mod traffic;
mod transformed;

pub use super::chart::{Area, Drawing, Width};
pub use choice::Choice;
pub use input::FigureInput;

use super::ReportError;
use gpumodel_core::units::did_you_mean;

/// A figure that can be asked for by name.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for `plot --list`.
    pub about: &'static str,
    /// What it is drawn from.
    pub source: Source,
    /// What can be chosen of it.
    takes: &'static [Choice],
    draw: fn(&FigureInput<'_>) -> Result<Drawing, ReportError>,
}

/// What a figure is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Solo runs, any number together.
    Apps,
    /// One solo run.
    OneApp,
    /// Co-runs.
    CoRuns,
    /// Queues.
    Queues,
    /// Solo runs of the same applications on a machine with changing limits.
    Sweep,
    /// Records beside a reference table.
    Reference,
    /// Several runs of a study: no part of the report of one.
    Study,
    /// Solo runs of a study: no part of the report of one.
    StudyApps,
}

impl Source {
    /// Whether a figure shows applications alone, each of them once.
    #[must_use]
    pub fn alone(self) -> bool {
        matches!(self, Self::Apps | Self::OneApp | Self::Reference | Self::StudyApps)
    }
}

/// Every figure, in printing order.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "stalls",
        about: "where scheduler slots go, one stacked bar per kernel",
        source: Source::Apps,
        takes: &[Choice::App],
        draw: stalls::draw,
    },
    Figure {
        name: "roofline",
        about: "instructions per second against instructions per sector, with the machine's roofs",
        source: Source::Apps,
        takes: &[Choice::App],
        draw: roofline::draw,
    },
    Figure {
        name: "traffic",
        about: "bytes through L1, L2 and DRAM per kernel, with hit rates",
        source: Source::Apps,
        takes: &[Choice::App],
        draw: traffic::draw,
    },
    Figure {
        name: "residence",
        about: "registers, shared memory, threads and CTA slots of an SM that each kernel takes",
        source: Source::Apps,
        takes: &[Choice::App],
        draw: residence::draw,
    },
    Figure {
        name: "issue-slots",
        about: "issue-slot utilisation of each kernel, with the line between low and high",
        source: Source::Apps,
        takes: &[Choice::App],
        draw: issue_slots::draw,
    },
    Figure {
        name: "timeline",
        about: "kernels by stream over time, with instructions per cycle and DRAM bandwidth",
        source: Source::OneApp,
        takes: &[Choice::App],
        draw: timeline::draw,
    },
    Figure {
        name: "schemes",
        about: "throughput, turnaround and fairness of the sharing schemes side by side",
        source: Source::CoRuns,
        takes: &[],
        draw: schemes::draw,
    },
    Figure {
        name: "sharing",
        about: "when each application ran under each sharing scheme",
        source: Source::CoRuns,
        takes: &[],
        draw: sharing::draw,
    },
    Figure {
        name: "normalized",
        about: "schemes over a baseline scheme, one group of bars per mix, with the geometric mean",
        source: Source::CoRuns,
        takes: &[Choice::Baseline, Choice::Metric],
        draw: normalized::draw,
    },
    Figure {
        name: "slowdown",
        about: "slowdown of each application under each sharing scheme",
        source: Source::CoRuns,
        takes: &[],
        draw: slowdown::draw,
    },
    Figure {
        name: "shared-stalls",
        about: "where scheduler slots go, each application alone and under each sharing scheme",
        source: Source::CoRuns,
        takes: &[],
        draw: shared_stalls::draw,
    },
    Figure {
        name: "curves",
        about: "speed of each application against its CTAs per SM as a scheme saw it, with its choice",
        source: Source::CoRuns,
        takes: &[],
        draw: curves::draw,
    },
    Figure {
        name: "residency",
        about: "which application's CTAs were on which SM over time",
        source: Source::CoRuns,
        takes: &[],
        draw: residency::draw,
    },
    Figure {
        name: "interference",
        about: "how much longer each class of applications takes next to each other class, as found and as published",
        source: Source::Queues,
        takes: &[],
        draw: interference::draw,
    },
    Figure {
        name: "queues",
        about: "schemes over a baseline scheme on queues, one group of bars per distribution of classes",
        source: Source::Queues,
        takes: &[Choice::Baseline, Choice::Metric],
        draw: queues::draw,
    },
    Figure {
        name: "schedule",
        about: "which applications of a queue ran together and when, under each scheme",
        source: Source::Queues,
        takes: &[Choice::Queue],
        draw: schedule::draw,
    },
    Figure {
        name: "sm-share",
        about: "SMs of each application of a queue over time, under each scheme",
        source: Source::Queues,
        takes: &[Choice::Queue],
        draw: sm_share::draw,
    },
    Figure {
        name: "occupancy",
        about: "speed of each kernel against CTAs per SM (needs runs with several sm.max_ctas)",
        source: Source::Sweep,
        takes: &[Choice::App],
        draw: occupancy::draw,
    },
    Figure {
        name: "activity",
        about: "how busy units and memory are during each kernel, from 0 to 10",
        source: Source::StudyApps,
        takes: &[Choice::App],
        draw: activity::draw,
    },
    Figure {
        name: "sm-scaling",
        about: "bandwidth and speed of each application against its SMs, and where it saturates",
        source: Source::Study,
        takes: &[Choice::App],
        draw: sm_scaling::draw,
    },
    Figure {
        name: "ctas",
        about: "time of each application against its CTAs per SM, with the points that pay for nothing",
        source: Source::Study,
        takes: &[Choice::App],
        draw: ctas::draw,
    },
    Figure {
        name: "transformed",
        about: "time and registers of persistent workers over the kernels as written",
        source: Source::Study,
        takes: &[Choice::App],
        draw: transformed::draw,
    },
    Figure {
        name: "task-size",
        about: "kernel time against the thread blocks of a task",
        source: Source::Study,
        takes: &[Choice::App],
        draw: task_size::draw,
    },
    Figure {
        name: "app-time",
        about: "kernel, communication, compilation and waiting time of each application by scheme",
        source: Source::Study,
        takes: &[Choice::App],
        draw: app_time::draw,
    },
    Figure {
        name: "makespan",
        about: "makespans of mixes over a baseline scheme's, orders of arrival averaged",
        source: Source::Study,
        takes: &[Choice::Baseline],
        draw: makespan::draw,
    },
    Figure {
        name: "sorted",
        about: "throughput and turnaround of many mixes, those of each scheme sorted",
        source: Source::Study,
        takes: &[],
        draw: sorted::draw,
    },
    Figure {
        name: "reallocation",
        about: "share of an epoch in which SMs were vacated and pages under way, mean and worst",
        source: Source::Study,
        takes: &[],
        draw: reallocation::draw,
    },
    Figure {
        name: "energy",
        about: "energy of an instruction over a baseline scheme's, of the GPU and of its memory",
        source: Source::Study,
        takes: &[Choice::Baseline],
        draw: energy::draw,
    },
    Figure {
        name: "slice-speed",
        about: "speed of each application alone against its memory channels and its SMs",
        source: Source::Study,
        takes: &[Choice::App],
        draw: slice_speed::draw,
    },
    Figure {
        name: "slice-surface",
        about: "throughput of pairs over how SMs and memory channels are divided",
        source: Source::Study,
        takes: &[],
        draw: slice_surface::draw,
    },
    Figure {
        name: "qos",
        about: "progress of the application with the high priority against its target, with throughput",
        source: Source::Study,
        takes: &[],
        draw: qos::draw,
    },
    Figure {
        name: "correlation",
        about: "cycles against a reference table, with the band of 20 % error (needs --reference)",
        source: Source::Reference,
        takes: &[Choice::Reference],
        draw: correlation::draw,
    },
];

impl Figure {
    /// The figure called `name`.
    ///
    /// # Errors
    /// [`ReportError::UnknownFigure`] with the names there are.
    pub fn named(name: &str) -> Result<&'static Self, ReportError> {
        FIGURES.iter().find(|figure| figure.name == name).ok_or_else(|| {
            let known: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
            let hint = did_you_mean(name, known.iter().copied());
            ReportError::UnknownFigure { name: name.into(), hint, known: known.join(", ") }
        })
    }

    /// Draws it: the same scene gives the same bytes.
    ///
    /// # Errors
    /// [`ReportError::Empty`] when the scene holds nothing that it shows.
    pub fn draw(&self, input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
        (self.draw)(input)
    }
}

/// What is missing where no record holds a co-run.
const NO_CORUN: &str = "the records hold no co-runs; run `gpumodel analyze A B --scheme S,…`";

/// What is missing where no applications share the machine.
const NO_MIX: &str =
    "no applications ran together; run `gpumodel analyze A B --scheme S,… --json FILE`";

/// What to do where no kernel of a solo run says.
const NO_SOLO: &str = "run `gpumodel analyze APP --json FILE`";

/// What is missing where no record holds a queue.
const NO_QUEUE: &str = "the records hold no queues; run `gpumodel analyze --queue FILE.toml`";

/// The error for a scene without what `figure` shows.
fn empty(figure: &'static str, missing: &str) -> ReportError {
    ReportError::Empty { figure, missing: missing.into() }
}
