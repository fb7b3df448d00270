//! The figures: one file each, and one row each in the table below.
//!
//! A figure takes a [`FigureInput`] and gives a [`Drawing`], or says what is missing:
//! there is no empty plot.

mod activity;
mod app_time;
mod benchmark;
mod categories;
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
mod ownership;
mod prelude;
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

pub use super::chart::{Area, Drawing, Format, Sheet, Width};
pub use benchmark::benchmark_figures;
pub use categories::{order, rename};
pub use input::FigureInput;

use gpumodel_core::units::did_you_mean;

use super::ReportError;
use super::chart::{Entry, Fill, Layout, SOFT_INK, Scale, Swatch};
use super::format::float;
use super::results::CoRun;
use super::results::statistics::geometric_mean;

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
    draw: fn(&FigureInput<'_>) -> Drawn,
}

/// A drawing, or what is missing for it.
type Drawn = Result<Drawing, Missing>;

/// What the records lack that a figure shows, and what to do next.
#[derive(Debug)]
struct Missing(String);

impl From<&str> for Missing {
    fn from(missing: &str) -> Self {
        Self(missing.into())
    }
}

impl From<String> for Missing {
    fn from(missing: String) -> Self {
        Self(missing)
    }
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
    /// Records against a reference table.
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

/// Something that some figures let choose and others do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One application of the records.
    App,
    /// A reference table to compare with.
    Reference,
    /// The scheme that others are divided by.
    Baseline,
    /// What is compared.
    Metric,
    /// Which of several metrics are shown.
    Metrics,
    /// The queue that is shown.
    Queue,
}

impl Choice {
    /// The option that makes the choice.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::App => "--app",
            Self::Reference => "--reference",
            Self::Baseline => "--baseline",
            Self::Metric => "--metric",
            Self::Metrics => "--metrics",
            Self::Queue => "--queue",
        }
    }
}

/// The table of figures: module, name, what it is drawn from, what can be chosen, one line.
macro_rules! figures {
    ($($module:ident, $name:literal, $source:ident, [$($choice:ident),*], $about:literal;)+) => {
        /// Every figure, in printing order.
        pub const FIGURES: &[Figure] = &[$(Figure {
            name: $name,
            about: $about,
            source: Source::$source,
            takes: &[$(Choice::$choice),*],
            draw: $module::draw,
        }),+];
    };
}

figures! {
    stalls, "stalls", Apps, [App],
        "where scheduler slots go, one stacked bar per kernel";
    roofline, "roofline", Apps, [App],
        "instructions per second against instructions per sector, with the machine's roofs";
    traffic, "traffic", Apps, [App],
        "bytes through L1, L2 and DRAM per kernel, with hit rates";
    residence, "residence", Apps, [App],
        "registers, shared memory, threads and CTA slots of an SM that each kernel takes";
    issue_slots, "issue-slots", Apps, [App],
        "issue-slot utilisation of each kernel, with the line between low and high";
    timeline, "timeline", OneApp, [App],
        "kernels by stream over time, with instructions per cycle and DRAM bandwidth";
    schemes, "schemes", CoRuns, [Metrics],
        "throughput, turnaround and fairness of the sharing schemes side by side";
    sharing, "sharing", CoRuns, [],
        "when each application ran under each sharing scheme";
    normalized, "normalized", CoRuns, [Baseline, Metric],
        "schemes over a baseline scheme, one group of bars per mix, with the geometric mean";
    slowdown, "slowdown", CoRuns, [],
        "slowdown of each application under each sharing scheme";
    shared_stalls, "shared-stalls", CoRuns, [],
        "where scheduler slots go, each application alone and under each sharing scheme";
    curves, "curves", CoRuns, [],
        "speed of each application against its CTAs per SM as a scheme saw it, with its choice";
    residency, "residency", CoRuns, [],
        "which application's CTAs were on which SM over time";
    ownership, "ownership", CoRuns, [],
        "which application owned how many SMs and memory channels over time, as planned";
    interference, "interference", Queues, [],
        "how much longer each class of applications takes next to each other class, as found and as published";
    queues, "queues", Queues, [Baseline, Metric],
        "schemes over a baseline scheme on queues, one group of bars per distribution of classes";
    schedule, "schedule", Queues, [Queue],
        "which applications of a queue ran together and when, under each scheme";
    sm_share, "sm-share", Queues, [Queue],
        "SMs of each application of a queue over time, under each scheme";
    occupancy, "occupancy", Sweep, [App],
        "speed of each kernel against CTAs per SM (needs runs with several sm.max_ctas)";
    activity, "activity", StudyApps, [App],
        "how busy units and memory are during each kernel, from 0 to 10";
    sm_scaling, "sm-scaling", Study, [App],
        "bandwidth and speed of each application against its SMs, and where it saturates";
    ctas, "ctas", Study, [App],
        "time of each application against its CTAs per SM, with the points that pay for nothing";
    transformed, "transformed", Study, [App],
        "time and registers of persistent workers over the kernels as written";
    task_size, "task-size", Study, [App],
        "kernel time against the thread blocks of a task";
    app_time, "app-time", Study, [App],
        "kernel, communication, compilation and waiting time of each application by scheme";
    makespan, "makespan", Study, [Baseline],
        "makespans of mixes over a baseline scheme's, orders of arrival averaged";
    sorted, "sorted", Study, [Metrics],
        "throughput and turnaround of many mixes, those of each scheme sorted";
    reallocation, "reallocation", Study, [],
        "share of an epoch in which SMs were vacated and pages under way, mean and worst";
    energy, "energy", Study, [Baseline],
        "energy of an instruction over a baseline scheme's, of the GPU and of its memory";
    slice_speed, "slice-speed", Study, [App],
        "speed of each application alone against its memory channels and its SMs";
    slice_surface, "slice-surface", Study, [],
        "throughput of pairs over how SMs and memory channels are divided";
    qos, "qos", Study, [],
        "progress of the application with the high priority against its target, with throughput";
    correlation, "correlation", Reference, [Reference],
        "cycles against a reference table, with the band of 20 % error (needs --reference)";
}

impl Figure {
    /// The figure called `name`.
    ///
    /// # Errors
    /// [`ReportError::UnknownFigure`] with the known names.
    pub fn named(name: &str) -> Result<&'static Self, ReportError> {
        FIGURES.iter().find(|figure| figure.name == name).ok_or_else(|| {
            let known: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
            let hint = did_you_mean(name, known.iter().copied());
            ReportError::UnknownFigure { name: name.into(), hint, known: known.join(", ") }
        })
    }

    /// Draws it: the same input gives the same bytes. In print it is no higher than a page where
    /// its plots can be lower.
    ///
    /// # Errors
    /// [`ReportError::Empty`] when the input holds nothing that it shows,
    /// [`ReportError::Unchanged`] when it cannot be as high as the input asks.
    pub fn draw(&self, input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
        let Some(inches) = input.sheet.height else { return self.on_a_page(input) };
        let inch = input.sheet.width.units_per_inch();
        let height = |stretch| self.stretched(input, stretch).map(|drawing| drawing.size.1 / inch);
        let (least, most) = (height(LEAST)?, height(MOST)?);
        let unchanged = |why| ReportError::Unchanged { figure: self.name, option: "--height", why };
        if (most - least) * inch < 1.0 {
            return Err(unchanged("its height follows from its rows; leave it out".into()));
        }
        if !(least..=most).contains(&inches) {
            return Err(unchanged(format!("it can be from {least:.1} to {most:.1} inches high")));
        }
        self.at_most(input, inches * inch, MOST)
    }

    /// Draws it as high as usual, or with lower plots where that is higher than a page.
    fn on_a_page(&self, input: &FigureInput<'_>) -> Result<Drawing, ReportError> {
        let usual = self.stretched(input, 1.0)?;
        match input.sheet.page() {
            Some(page) if usual.size.1 > page => self.at_most(input, page, 1.0),
            _ => Ok(usual),
        }
    }

    /// Draws it as near to `height` as plots that are from [`LEAST`] to `most` times as high as
    /// usual let it be, and no higher if they do.
    fn at_most(
        &self,
        input: &FigureInput<'_>,
        height: f64,
        most: f64,
    ) -> Result<Drawing, ReportError> {
        let (mut low, mut high) = (LEAST, most);
        let mut drawing = self.stretched(input, low)?;
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            let next = self.stretched(input, middle)?;
            if next.size.1 > height {
                high = middle;
            } else {
                (low, drawing) = (middle, next);
            }
        }
        Ok(drawing)
    }

    /// Draws it with plots that are `stretch` times as high, where their height can be chosen.
    fn stretched(&self, input: &FigureInput<'_>, stretch: f64) -> Result<Drawing, ReportError> {
        let input = &input.clone().stretched(stretch);
        (self.draw)(input)
            .map_err(|Missing(missing)| ReportError::Empty { figure: self.name, missing })
    }

    /// Refuses a choice that changes nothing of the figure.
    ///
    /// # Errors
    /// [`ReportError::Unused`] with the figures that it is for.
    pub fn check(&self, choice: Choice) -> Result<(), ReportError> {
        let takes = |figure: &&Self| figure.takes.contains(&choice);
        if takes(&self) {
            return Ok(());
        }
        let known: Vec<&str> = FIGURES.iter().filter(takes).map(|figure| figure.name).collect();
        let (figure, option) = (self.name, choice.option());
        Err(ReportError::Unused { figure, option, known: known.join(", ") })
    }
}

/// How much less high than usual plots may be, and how much higher.
const LEAST: f64 = 0.4;
const MOST: f64 = 8.0;
/// Steps of the search for a height, each half as long as the one before.
const HALVINGS: usize = 14;

/// The places of the metrics called `asked` among those called `names`, in that order; of all
/// where none is asked for.
fn chosen(names: &[&str], asked: &[String]) -> Result<Vec<usize>, Missing> {
    if asked.is_empty() {
        return Ok((0..names.len()).collect());
    }
    let unknown = |asked: &str| -> Missing {
        format!("no metric is called {asked}; there are {}", names.join(", ")).into()
    };
    let place =
        |asked: &String| names.iter().position(|name| name == asked).ok_or_else(|| unknown(asked));
    asked.iter().map(place).collect()
}

/// Refuses with what is missing unless there is something to draw.
fn ensure(some: bool, missing: impl Into<Missing>) -> Result<(), Missing> {
    if some { Ok(()) } else { Err(missing.into()) }
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

/// What a figure says of applications, kernels and mixes beyond those that it draws.
const MORE_APPS: &str = "applications are not drawn; choose with --app NAME";
const MORE_KERNELS: &str = "kernels, with fewer cycles, are not drawn";
const MORE_MIXES: &str = "mixes are in the mean and not drawn";

/// The place of the baseline among `schemes`: the one that `input` asks for, else the first of
/// `usual`, by the records' names, that some mix `ran` under, else the first of all.
fn baseline(
    input: &FigureInput<'_>,
    schemes: &[String],
    usual: &[&str],
    ran: &str,
) -> Result<usize, Missing> {
    let place = |name: &str| schemes.iter().position(|scheme| scheme == name);
    let Some(name) = input.baseline else {
        return Ok(usual.iter().find_map(|name| place(input.shown(name))).unwrap_or(0));
    };
    let missing =
        || format!("no mix {ran} under {name}; the schemes are {}", schemes.join(", ")).into();
    place(name).ok_or_else(missing)
}

/// The metric called `asked` of `metrics`, which have a name each; the first where none is
/// asked for.
fn metric<'m, T>(
    metrics: &'m [T],
    name: fn(&T) -> &str,
    asked: Option<&str>,
) -> Result<&'m T, Missing> {
    let Some(asked) = asked else { return Ok(&metrics[0]) };
    let names: Vec<&str> = metrics.iter().map(name).collect();
    Ok(&metrics[chosen(&names, &[asked.to_owned()])?[0]])
}

/// The geometric mean of each of `series` over the values that it has.
fn means<V: IntoIterator<Item = f64>>(
    series: usize,
    values: impl Fn(usize) -> V,
) -> Vec<Option<f64>> {
    let mean = |place| geometric_mean(&values(place).into_iter().collect::<Vec<f64>>());
    (0..series).map(mean).collect()
}

/// Says how many of `all` mixes lack something, where some do.
fn partial(layout: &mut Layout, lacking: usize, all: usize, what: &str) {
    if lacking > 0 {
        let lack = if lacking == 1 { "lacks" } else { "lack" };
        layout
            .note(&format!("{lacking} of {all} mixes {lack} {what} are over those that have it."));
    }
}

/// Says that `count` runs held as much as others, where there are some.
fn repeated(layout: &mut Layout, count: usize) {
    match count {
        0 => {}
        1 => layout.note("One more run held as much as another and is not drawn."),
        _ => layout.note(&format!("{count} more runs held as much as others and are not drawn.")),
    }
}

/// Legend entries of the applications of the largest of `runs`, each with the places of its
/// applications, in their colours.
fn app_entries<'a>(runs: impl Iterator<Item = (&'a CoRun, &'a [usize])>) -> Vec<Entry> {
    let most = runs.max_by_key(|(_, places)| places.len());
    let of = |(run, places): (&'a CoRun, &'a [usize])| places.iter().map(|&at| &run.apps[at].app);
    let names = most.into_iter().flat_map(of).enumerate();
    names.map(|(i, name)| Entry::new(Swatch::Fill(Fill::flat(i)), name)).collect()
}

/// Draws a tick from `top` to `bottom` at each decision of `run`; those nearer to each other
/// than can be seen share one.
fn decision_ticks(layout: &mut Layout, run: &CoRun, time: &Scale, (top, bottom): (f64, f64)) {
    const NEAR: f64 = 0.8;
    let mut last = f64::MIN;
    for decision in &run.decisions {
        let x = time.at(float(decision.cycle));
        if x - last >= NEAR {
            layout.canvas.line(vec![(x, top), (x, bottom)], SOFT_INK, 0.8);
            last = x;
        }
    }
}
