//! `analyze`: its request, the context that all its runs share, and the facts that schemes get
//! before a run starts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use gpumodel_core::contract::{AppFacts, Facts, KernelFacts};
use gpumodel_core::units::{AppId, Cycle, to_u16};
use gpumodel_feed::StoreFeed;
use gpumodel_policy::queue::QueueChoice;
use gpumodel_report::paper::PublishedSlowdowns;
use gpumodel_report::results::{Analysis, AppRecord, MachineRecord, SCHEMA};
use gpumodel_sim::config::{Link, Machine, Resolved};
use gpumodel_sim::{End, Load, Need, Program, Setup, machine_facts};
use gpumodel_trace::{Filter, Progress, Silent};

use crate::cache::profiles::Profiles;
use crate::cache::results::ResultCache;
use crate::corun::coruns;
use crate::memory::Memory;
use crate::queue::{DEFAULT_SCHEMES, QueueFile, queues};
use crate::record::notes::{self, Notes};
use crate::scheme::parse_scheme;
use crate::solo::solo;
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

/// The context that all runs of one analysis share.
pub(super) struct RunContext<'a> {
    pub(super) resolved: &'a Resolved,
    pub(super) memory: &'a Memory,
    pub(super) watch: &'a dyn Watch,
    pub(super) profiles: Profiles,
    pub(super) seed: u64,
    pub(super) sample: Option<SampleRequest>,
    pub(super) fast_forward: bool,
    pub(super) hot: usize,
    pub(super) events: EventDetail,
    filter: &'a Filter,
    /// Cached results; `None`: everything is computed.
    results: Option<&'a ResultCache>,
}

impl<'a> RunContext<'a> {
    /// The context of the runs of `request` on a machine.
    pub(super) fn new(
        request: &'a AnalyzeRequest,
        (resolved, memory): (&'a Resolved, &'a Memory),
        watch: &'a dyn Watch,
        results: Option<&'a ResultCache>,
    ) -> Self {
        let profiles = results.map_or_else(|| Profiles::new(&request.cache), ResultCache::profiles);
        let AnalyzeRequest { seed, sample, fast_forward, hot, events, ref filter, .. } = *request;
        Self {
            resolved,
            memory,
            watch,
            profiles,
            seed,
            sample,
            fast_forward,
            hot,
            events,
            filter,
            results,
        }
    }

    /// A machine with the memory of this context, ready to run `apps` until `end`.
    pub(super) fn setup<'m>(
        &'m self,
        machine: &'m Machine,
        apps: Vec<Load>,
        end: End,
    ) -> Setup<'m> {
        let (standard, mapping) = (&self.memory.standard, self.memory.map.clone());
        Setup { machine, standard, mapping, apps, end, part: None }
    }

    /// The cached result of `work`, or the one that it computes. `key_parts` name everything
    /// that the result depends on, except build, machine and filter.
    pub(super) fn cached<T: Serialize + DeserializeOwned>(
        &self,
        key_parts: impl FnOnce() -> Vec<String>,
        work: impl FnOnce() -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let Some(results) = self.results else { return work() };
        let mut all = vec![self.resolved.hash.clone(), self.filter()];
        all.extend(self.fast_forward.then(|| String::from("fast-forward")));
        all.extend(key_parts());
        results.get_or_compute(&all, work)
    }

    /// The record of a solo run, with notes on its assumptions.
    pub(super) fn solo(&self, app: &App) -> Result<(AppRecord, Vec<String>), RunError> {
        let key_parts = || vec![String::from("solo"), app.name.clone(), app.store.content_hash()];
        self.cached(key_parts, || {
            let mut notes = Notes::default();
            let row = solo(self, app, &mut notes)?;
            Ok((row, notes.into_sentences()))
        })
    }

    /// The filter of launches and CTAs as text.
    pub(super) fn filter(&self) -> String {
        format!("{:?}", self.filter.words())
    }

    /// Warp instructions of an application that the filter selects.
    fn selected_instructions(&self, app: &App) -> u64 {
        let chosen = (0..app.store.kernel_count()).filter(|&kernel| self.chooses(app, kernel));
        chosen.map(|kernel| app.store.kernel(kernel).warp_instructions()).sum()
    }

    /// Whether the filter selects a kernel of an application's store.
    pub(super) fn chooses(&self, app: &App, kernel: usize) -> bool {
        self.filter.takes(&app.store.kernel(kernel).launch())
    }
}

/// Runs every application alone, then all of them together under each named scheme, in
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
    let together = together(request, queue.as_ref());
    let phase = |number, what| watch.phase(Phase { number, of: together.iter().len() + 2, what });
    phase(1, CONVERTING_PHASE);
    let apps = open(request, (named, locations), watch)?;
    phase(2, "each application alone");
    let mut analysis = with_solo_runs(&ctx, request, &apps)?;
    if let Some(what) = &together {
        phase(3, what);
    }
    if request.sample.is_some() && (queue.is_some() || !request.schemes.is_empty()) {
        analysis.notes.push(String::from("co-runs are not sampled: every CTA of them ran"));
    }
    if let Some((file, schemes)) = &queue {
        queues(&ctx, file, (schemes, &request.cache), &apps, &mut analysis)?;
        let published = PublishedSlowdowns::load(&models)?;
        analysis.interference.iter_mut().for_each(|record| published.add_to(record));
    } else if !request.schemes.is_empty() {
        analysis.coruns = coruns(&ctx, request, &apps, &analysis.solo)?;
    }
    note_passed(&mut analysis);
    Ok(analysis)
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
    match queue {
        Some((_, schemes)) => Some(format!("the queue under {}", counted(schemes.len()))),
        None if request.schemes.is_empty() => None,
        None => Some(format!("together under {}", counted(request.schemes.len()))),
    }
}

fn counted(schemes: usize) -> String {
    format!("{schemes} scheme{}", if schemes == 1 { "" } else { "s" })
}

/// Analyzes `apps` alone and together under the schemes of a request without a queue, in an
/// existing context.
pub(super) fn analyze_in(
    ctx: &RunContext<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
) -> Result<Analysis, RunError> {
    let mut analysis = with_solo_runs(ctx, request, apps)?;
    analysis.coruns = coruns(ctx, request, apps, &analysis.solo)?;
    Ok(analysis)
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
    ctx.watch.running().begin(apps.iter().map(|app| ctx.selected_instructions(app)).sum());
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

/// The facts of applications on a machine: their names, launches and arrivals.
pub(super) fn facts(ctx: &RunContext<'_>, apps: &[(&str, &StoreFeed<'_>, Cycle)]) -> Facts {
    let machine = &ctx.resolved.machine;
    let app = |(index, &(name, feed, arrival)): (usize, &(&str, &StoreFeed<'_>, Cycle))| {
        let kernels = feed.programs().iter().enumerate();
        let kernels =
            kernels.map(|(index, program)| kernel(machine, program, feed.warp_instructions(index)));
        AppFacts {
            app: AppId(to_u16(index)),
            name: name.to_owned(),
            arrival,
            kernels: kernels.collect(),
        }
    };
    Facts { apps: apps.iter().enumerate().map(app).collect(), ..without_apps(machine, ctx.memory) }
}

fn without_apps(machine: &Machine, memory: &Memory) -> Facts {
    machine_facts(machine, &memory.standard, &memory.map, memory.peak_gb_per_s)
}

fn kernel(machine: &Machine, program: &Program, warp_instructions: u64) -> KernelFacts {
    let need = Need::of(&program.launch, machine);
    KernelFacts {
        name: program.launch.name.clone(),
        ctas: program.ctas,
        threads_per_cta: u32::try_from(program.launch.block.count()).unwrap_or(u32::MAX),
        warps_per_cta: need.warps,
        registers_per_thread: program.launch.registers,
        shared_bytes: program.launch.shared_bytes,
        registers_per_cta: need.registers,
        shared_bytes_per_cta: need.shared_bytes,
        ctas_per_sm: need.fits(machine).0,
        warp_instructions,
    }
}

/// The machine in a record: name, hash and the peak rates of its description.
pub(super) fn peaks(resolved: &Resolved, memory: &Memory) -> MachineRecord {
    let machine = &resolved.machine;
    let facts = without_apps(machine, memory);
    let issue = u32::from(machine.dispatch.sms) * machine.sm.schedulers * machine.sm.issue_width;
    MachineRecord {
        name: machine.name.clone(),
        reference_name: machine.reference_name.clone(),
        hash: resolved.hash.clone(),
        sms: u64::from(machine.dispatch.sms),
        core_mhz: machine.clocks.core_mhz,
        peak_dram_gb_per_s: memory.peak_gb_per_s,
        peak_l2_gb_per_s: facts.peak_l2_gb_per_s,
        peak_warp_instructions_per_cycle: f64::from(issue),
    }
}
