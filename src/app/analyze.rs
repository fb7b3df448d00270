//! `analyze`: its request, and its runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use gpumodel_core::units::{Cycle, counted, to_u64};
use gpumodel_policy::queue::QueueChoice;
use gpumodel_report::paper::PublishedSlowdowns;
use gpumodel_report::results::{Analysis, MachineRecord, SCHEMA};
use gpumodel_sim::config::Link;
use gpumodel_trace::{Filter, Progress, Silent};

use crate::corun::{are_independent, with_coruns};
use crate::memory::Memory;
use crate::queue::{DEFAULT_SCHEMES, QueueFile, queues};
use crate::record::notes::{self, Notes};
use crate::run_context::{RunContext, peaks};
use crate::scheme::parse_scheme;
use crate::{App, AppName, EndWhen, Ending, RunError, SampleRequest};

/// The request of `analyze`.
#[derive(Clone, Debug)]
pub struct AnalyzeRequest {
    /// The applications; each also runs alone.
    pub apps: Vec<AppName>,
    /// The machine: a name or a file.
    pub machine: OsString,
    /// Machine keys that `--set` overrides.
    pub overrides: Vec<(String, String)>,
    /// Damaged files of traces are skipped and counted, in the notes too.
    pub skip_damaged: bool,
    /// Selects the launches and CTAs that run.
    pub filter: Filter,
    /// Schemes under which the applications run together, each as `name` or
    /// `name:key=value:key=value`.
    pub schemes: Vec<String>,
    /// When co-runs end.
    pub until: Ending,
    /// Cycles of the solo runs that co-runs are compared with and that set the targets of
    /// [`EndWhen::Targets`]; `None`: those at which co-runs end, or the whole solo runs.
    pub window: Option<Cycle>,
    /// The file of a queue, which runs group by group: [`AnalyzeRequest::schemes`] are then
    /// schemes for queues; the default is those that ILP-SMRA compares.
    pub queue: Option<PathBuf>,
    /// Arrival cycles of applications, by name; the others arrive at cycle 0.
    pub arrivals: Vec<(String, Cycle)>,
    /// A folder of model files that take precedence over the built-in ones.
    pub models: Option<PathBuf>,
    /// The cache folder, for converted traces and results.
    pub cache: PathBuf,
    /// The seed of samples; recorded in the result.
    pub seed: u64,
    /// Sample large launches; `None`: run every CTA.
    pub sample: Option<SampleRequest>,
    /// Stretches in which all launches advance steadily are passed over, with an interval.
    pub fast_forward: bool,
    /// How many instructions of each launch of a solo run the record lists, of those with most
    /// stalls, L1 misses, sectors per request and bank conflicts; 0: none are counted.
    pub hot: usize,
    /// What runs keep for [`trace_events`](gpumodel_report::trace_events); nothing of it is in
    /// the record.
    pub events: EventDetail,
}

/// What runs keep of what happened when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventDetail {
    /// What is in the record.
    #[default]
    Record,
    /// Activity over time of co-runs too.
    Activity,
    /// And the lives of CTAs, up to
    /// [`RunEvents::CTAS`](gpumodel_report::results::RunEvents::CTAS) of each run.
    Ctas,
}

impl AnalyzeRequest {
    /// Solo runs of all launches and CTAs of `apps` on `machine`, seed 0, with the cache
    /// folder `cache`.
    #[must_use]
    pub fn new(apps: Vec<AppName>, machine: impl Into<OsString>, cache: &Path) -> Self {
        Self {
            apps,
            machine: machine.into(),
            overrides: Vec::new(),
            skip_damaged: false,
            filter: Filter::default(),
            schemes: Vec::new(),
            until: Ending::default(),
            window: None,
            queue: None,
            arrivals: Vec::new(),
            models: None,
            cache: cache.to_path_buf(),
            seed: 0,
            sample: None,
            fast_forward: false,
            hot: 0,
            events: EventDetail::default(),
        }
    }

    /// The queue and its schemes; `None`: all applications run together.
    ///
    /// # Errors
    /// When the file or a scheme is invalid, or an option has no meaning for this run.
    fn queue(&self) -> Result<Option<(QueueFile, Vec<QueueChoice>)>, RunError> {
        let Some(path) = &self.queue else {
            self.schemes.iter().try_for_each(|typed| parse_scheme(typed, &self.apps).map(drop))?;
            self.check_window()?;
            self.check_arrivals()?;
            return Ok(None);
        };
        for (option, used) in [
            ("--until", self.until != Ending::default()),
            ("--window", self.window.is_some()),
            ("--arrive", !self.arrivals.is_empty()),
        ] {
            if used {
                return Err(RunError::NotWithQueue(option));
            }
        }
        let file = QueueFile::read(path, &self.apps)?;
        let typed: Vec<&str> = match &self.schemes[..] {
            [] => DEFAULT_SCHEMES.to_vec(),
            schemes => schemes.iter().map(String::as_str).collect(),
        };
        let rule = file.early_finishers;
        let choice =
            |typed| QueueChoice::parse(typed).map(|choice| choice.with_early_finishers(rule));
        let choices: Vec<QueueChoice> = typed.into_iter().map(choice).collect::<Result<_, _>>()?;
        let apps = file.group_size;
        match choices.iter().find(|choice| !choice.within().row().serves(apps)) {
            Some(choice) => Err(RunError::SoloOnly { scheme: choice.name(), apps }),
            None => Ok(Some((file, choices))),
        }
    }

    /// Refuses a window that the end of co-runs does not use, and an end without the window
    /// that it needs; without co-runs neither matters.
    fn check_window(&self) -> Result<(), RunError> {
        let (when, window) = (self.until.when, self.window);
        if self.schemes.is_empty() {
            return Ok(());
        }
        if window.is_some() && !matches!(when, EndWhen::Targets | EndWhen::Clock) {
            return Err(RunError::UnusedWindow(self.until.to_string()));
        }
        if when == EndWhen::Targets && self.compared().is_none() {
            return Err(RunError::NoWindow);
        }
        Ok(())
    }

    /// Refuses two arrivals of one application.
    fn check_arrivals(&self) -> Result<(), RunError> {
        let mut known = BTreeSet::new();
        match self.arrivals.iter().find(|(name, _)| !known.insert(name)) {
            Some((name, _)) => Err(RunError::ArrivesTwice(name.clone())),
            None => Ok(()),
        }
    }

    /// Cycles of the solo runs that co-runs are compared with; `None`: the whole runs.
    pub(super) fn compared(&self) -> Option<Cycle> {
        self.window.or(self.until.cycles)
    }

    /// The arrival cycle of each of `apps`.
    ///
    /// # Errors
    /// When an arrival names an unknown application.
    pub(super) fn arrivals(&self, apps: &[App]) -> Result<Vec<Cycle>, RunError> {
        let mut cycles = vec![0; apps.len()];
        for (name, cycle) in &self.arrivals {
            let index = apps.iter().position(|app| app.name == *name);
            let index = index.ok_or_else(|| RunError::UnknownApp {
                name: name.clone(),
                known: apps.iter().map(|app| app.name.as_str()).collect::<Vec<_>>().join(", "),
            })?;
            cycles[index] = *cycle;
        }
        Ok(cycles)
    }
}

/// Runs every application alone, and all of them together under each named scheme, in
/// parallel on all threads. The record does not depend on the number of threads.
///
/// # Errors
/// [`RunError`]: an invalid model file or trace, a machine that cannot run an application,
/// an unknown scheme.
pub fn analyze(request: &AnalyzeRequest, watch: &dyn Watch) -> Result<Analysis, RunError> {
    let queue = request.queue()?;
    let named = queue.as_ref().map_or(&request.apps, |(file, _)| &file.apps);
    check_names(named)?;
    let models = crate::models(request.models.as_deref())?;
    let resolved = models.machine(&request.machine, &request.overrides)?;
    if request.sample.is_some() && resolved.machine.link.as_ref().is_some_and(Link::is_used) {
        return Err(RunError::SampledLink);
    }
    let memory = Memory::load(&resolved.machine, &models)?;
    let ctx = RunContext::new(request, (&resolved, &memory), watch, None);
    let locations: &[String] = match &queue {
        Some((file, _)) => &file.locations,
        None => &[],
    };
    let phases = Phases::new(request, queue.as_ref(), watch);
    phases.begin(1, CONVERTING_PHASE);
    let apps = open(request, (named, locations), watch)?;
    let mut analysis = if queue.is_some() || request.schemes.is_empty() {
        phases.alone(&ctx, request, &apps)?
    } else {
        phases.begin_joint();
        let alone = || phases.alone(&ctx, request, &apps);
        with_coruns(&ctx, request, &apps, (alone, phases.at_once))?
    };
    if request.sample.is_some() && phases.together.is_some() {
        analysis.notes.push(String::from("co-runs are not sampled: every CTA of them ran"));
    }
    if let Some((file, schemes)) = &queue {
        queues(&ctx, file, (schemes, &request.cache), &apps, &mut analysis)?;
        let published = PublishedSlowdowns::load(&models)?;
        analysis.interference.iter_mut().for_each(|record| published.add_to(record));
    }
    note_passed(&mut analysis);
    Ok(analysis)
}

/// The phases of an analysis.
struct Phases<'a> {
    watch: &'a dyn Watch,
    /// What runs together, where anything does.
    together: Option<String>,
    /// That and the solo runs are one phase.
    at_once: bool,
}

impl<'a> Phases<'a> {
    /// Those of a request.
    fn new(
        request: &AnalyzeRequest,
        queue: Option<&(QueueFile, Vec<QueueChoice>)>,
        watch: &'a dyn Watch,
    ) -> Self {
        let together = together(request, queue);
        let at_once = together.is_some() && queue.is_none() && are_independent(request);
        Self { watch, together, at_once }
    }

    /// Begins a phase.
    fn begin(&self, number: usize, what: &str) {
        let of = if self.at_once { 2 } else { 2 + self.together.iter().len() };
        self.watch.phase(Phase { number, of, what });
    }

    /// Begins the phase of all runs, where it is one.
    fn begin_joint(&self) {
        let joint = self.together.iter().filter(|_| self.at_once);
        joint
            .for_each(|together| self.begin(2, &format!("each application alone, and {together}")));
    }

    /// Runs each application alone; where that is a phase, it begins here, and the next behind it.
    fn alone(
        &self,
        ctx: &RunContext<'_>,
        request: &AnalyzeRequest,
        apps: &[App],
    ) -> Result<Analysis, RunError> {
        if self.at_once {
            return with_solo_runs(ctx, request, apps);
        }
        self.begin(2, "each application alone");
        let analysis = with_watched_solo_runs(ctx, request, apps);
        self.together.iter().for_each(|together| self.begin(3, together));
        analysis
    }
}

/// Notes what was passed over of co-runs.
fn note_passed(analysis: &mut Analysis) {
    for run in &analysis.coruns {
        let notes = run.apps.iter().filter_map(|app| {
            let how = format!("under {}", run.scheme);
            Some(notes::passed(&app.app, &how, &app.fast_forward?, app.cycles))
        });
        analysis.notes.extend(notes);
    }
}

/// What runs together, where anything does.
fn together(
    request: &AnalyzeRequest,
    queue: Option<&(QueueFile, Vec<QueueChoice>)>,
) -> Option<String> {
    let schemes = |count: usize| counted(to_u64(count), "scheme");
    match queue {
        Some((_, choices)) => Some(format!("the queue under {}", schemes(choices.len()))),
        None if request.schemes.is_empty() => None,
        None => Some(format!("together under {}", schemes(request.schemes.len()))),
    }
}

/// Analyzes `apps` alone and together under the schemes of a request without a queue, in an
/// existing context.
pub(super) fn analyze_in(
    ctx: &RunContext<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
) -> Result<Analysis, RunError> {
    with_coruns(ctx, request, apps, (|| with_watched_solo_runs(ctx, request, apps), false))
}

/// An analysis with the record of each solo run, whose progress begins here.
fn with_watched_solo_runs(
    ctx: &RunContext<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
) -> Result<Analysis, RunError> {
    ctx.watch.running().begin(apps.iter().map(|app| ctx.selected_instructions(app)).sum());
    with_solo_runs(ctx, request, apps)
}

/// An analysis with the record of each solo run.
fn with_solo_runs(
    ctx: &RunContext<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
) -> Result<Analysis, RunError> {
    let mut analysis = empty(request, peaks(ctx.resolved, ctx.memory));
    let mut notes = Notes::default();
    notes.of_request(request);
    notes.of_window(request, &ctx.resolved.machine);
    let rows: Vec<Result<_, RunError>> = apps
        .par_iter()
        // One by one: they take between milliseconds and minutes.
        .with_max_len(1)
        .map(|app| {
            let mut notes = Notes::default();
            app.warnings.iter().for_each(|warning| notes.add(format!("{}: {warning}", app.name)));
            let (row, more) = ctx.solo(app)?;
            more.into_iter().for_each(|note| notes.add(note));
            Ok((row, notes.into_sentences()))
        })
        .collect();
    for row in rows {
        let (row, sentences) = row?;
        analysis.solo.push(row);
        sentences.into_iter().for_each(|sentence| notes.add(sentence));
    }
    analysis.notes = notes.into_sentences();
    Ok(analysis)
}

/// Opens the applications and applies the filter; `locations` is where a file names the
/// first of them.
fn open(
    request: &AnalyzeRequest,
    (named, locations): (&[AppName], &[String]),
    watch: &dyn Watch,
) -> Result<Vec<App>, RunError> {
    let (models, cache) = (request.models.as_deref(), &request.cache);
    let open = |(number, typed): (usize, &AppName)| {
        let (skip, progress) = (request.skip_damaged, watch.converting());
        let opened = App::open_skipping(skip, typed, (models, cache), progress);
        let opened = opened.and_then(|mut app| {
            app.narrow(&request.filter)?;
            Ok(app)
        });
        opened.map_err(|source| match locations.get(number) {
            Some(location) => RunError::FileApp {
                location: location.clone(),
                app: typed.name.clone(),
                source: Box::new(source),
            },
            None => source,
        })
    };
    named.iter().enumerate().map(open).collect()
}

fn empty(request: &AnalyzeRequest, machine: MachineRecord) -> Analysis {
    let overrides: BTreeMap<String, String> = request.overrides.iter().cloned().collect();
    Analysis {
        schema: SCHEMA.to_owned(),
        program: concat!("gpumodel ", env!("CARGO_PKG_VERSION")).to_owned(),
        seed: request.seed,
        overrides,
        filters: request.filter.words().into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
        machine,
        ..Analysis::default()
    }
}

fn check_names(apps: &[AppName]) -> Result<(), RunError> {
    for (index, app) in apps.iter().enumerate() {
        if apps[..index].iter().any(|other| other.name == app.name) {
            return Err(RunError::SameName { name: app.name.clone(), path: app.path.clone() });
        }
    }
    Ok(())
}

/// What the first phase of analyses and sweeps does.
pub(crate) const CONVERTING_PHASE: &str = "converting applications that the cache folder lacks";

/// A phase of long work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase<'a> {
    /// Which one, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// What it does.
    pub what: &'a str,
}

/// Receives the progress of an analysis, from several threads.
pub trait Watch: Sync {
    /// Called when a phase begins.
    fn phase(&self, phase: Phase<'_>);

    /// Receives the progress of conversions, in bytes of trace text.
    fn converting(&self) -> &dyn Progress;

    /// Receives the progress of runs, in warp instructions.
    fn running(&self) -> &dyn Progress;
}

/// Ignores all progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn phase(&self, _: Phase<'_>) {}

    fn converting(&self) -> &dyn Progress {
        &Silent
    }

    fn running(&self) -> &dyn Progress {
        &Silent
    }
}
