//! Co-runs: all applications together under every requested scheme; and when one ends: `--until`.

mod record;
pub(crate) mod runner;
mod shares;

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;

use gpumodel_core::contract::{LawBroken, Probe, ProbeResult};
use gpumodel_core::units::Cycle;
use gpumodel_feed::{Mix, StoreFeed};
use gpumodel_policy::Scheme;
use gpumodel_report::results::{Analysis, AppRecord, CoRun};
use gpumodel_sim::Outcome;

use crate::run_context::facts;
use crate::scheme::{SchemeLabel, parse_scheme};
use crate::solo::SoloBaseline;
use crate::{AnalyzeRequest, App, RunContext, RunError};
use runner::{Decision, Expected, MixRunner};

/// A scheme with its probes.
struct PreparedScheme {
    chosen: SchemeLabel,
    scheme: Box<dyn Scheme>,
    probes: Vec<Probe>,
}

/// What a scheme did: its name, its run, and what it decided.
type SchemeRun = (SchemeLabel, Outcome, Vec<Decision>);

/// Whether co-runs may begin before it is known how long the applications take alone.
pub(crate) fn are_independent(request: &AnalyzeRequest) -> bool {
    request.until.when != EndWhen::Targets
}

/// Adds to the analysis that `alone` gives the runs of `apps` together under each scheme of the
/// request, in parallel on all threads: `at_once` with it, where these do not depend on it. The
/// rows are in the order of the schemes.
pub(crate) fn with_coruns(
    ctx: &RunContext<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
    (alone, at_once): (impl FnOnce() -> Result<Analysis, RunError> + Send, bool),
) -> Result<Analysis, RunError> {
    let feeds = apps.iter().map(|app| {
        let store = StoreFeed::new(&app.store, |k| ctx.chooses(app, k), ctx.resolved);
        store.map_err(RunError::from)
    });
    let feeds: Vec<StoreFeed<'_>> = feeds.collect::<Result<_, _>>()?;
    let runner = |targets, expected| mix_runner(ctx, request, (apps, &feeds), targets, expected);
    let none = vec![None; apps.len()];
    if at_once && are_independent(request) {
        let instructions = apps.iter().map(|app| ctx.selected_instructions(app));
        let expected = Expected::of_traces(instructions.clone(), request.until);
        let runner = runner(none, expected)?;
        let prepared = prepare(&runner, request)?;
        ctx.watch.running().begin_about(instructions.sum::<u64>() + whole(&runner, &prepared));
        let (alone, runs) = rayon::join(alone, || run_schemes(&runner, prepared));
        let (mut analysis, runs) = (alone?, runs?);
        let baselines = baselines(ctx, request, apps, &feeds, &analysis.solo)?;
        analysis.coruns = records(&runner, &runs, &baselines);
        return Ok(analysis);
    }
    let mut analysis = alone()?;
    let baselines = baselines(ctx, request, apps, &feeds, &analysis.solo)?;
    let mut targets = none;
    if !are_independent(request) {
        check_targets(ctx, request, apps, &baselines)?;
        targets = baselines.iter().map(|baseline| baseline.target).collect();
    }
    let expected = Expected::new(&analysis.solo, request.until, targets.clone());
    let runner = runner(targets, expected)?;
    let prepared = prepare(&runner, request)?;
    ctx.watch.running().begin_about(whole(&runner, &prepared));
    let runs = run_schemes(&runner, prepared)?;
    analysis.coruns = records(&runner, &runs, &baselines);
    Ok(analysis)
}

/// Applications ready to run together; each with a target stops there.
fn mix_runner<'a>(
    ctx: &'a RunContext<'a>,
    request: &AnalyzeRequest,
    (apps, feeds): (&[App], &'a [StoreFeed<'a>]),
    targets: Vec<Option<f64>>,
    expected: Expected,
) -> Result<MixRunner<'a>, RunError> {
    let arrivals = request.arrivals(apps)?;
    let named = apps.iter().zip(feeds).zip(arrivals);
    let named: Vec<_> = named.map(|((app, feed), at)| (app.name.as_str(), feed, at)).collect();
    let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
    let (names, facts) = (names.join(" + "), facts(ctx, &named));
    let mix = Mix::new(feeds.iter().collect());
    let (until, expected) = (request.until, Some(expected));
    Ok(MixRunner { ctx, names, mix, facts, until, targets, expected })
}

/// Runs the probes of all schemes, then the schemes.
fn run_schemes(
    runner: &MixRunner<'_>,
    prepared: Vec<PreparedScheme>,
) -> Result<Vec<SchemeRun>, RunError> {
    let results = probe_results(runner, &prepared)?;
    let runs: Vec<Result<SchemeRun, RunError>> = prepared
        .into_par_iter()
        .zip(results)
        .with_max_len(1)
        .map(|(PreparedScheme { chosen, mut scheme, .. }, results)| {
            let (outcome, decisions) =
                runner.run_scheme(&chosen.name, scheme.as_mut(), &results)?;
            Ok((chosen, outcome, decisions))
        })
        .collect();
    runs.into_iter().collect()
}

/// The records of runs under schemes.
fn records(runner: &MixRunner<'_>, runs: &[SchemeRun], baselines: &[SoloBaseline]) -> Vec<CoRun> {
    let record = |(chosen, outcome, decisions): &SchemeRun| {
        let scheme = (chosen.name.as_str(), chosen.parameters.clone());
        runner.record(scheme, (outcome, decisions), baselines)
    };
    runs.iter().map(record).collect()
}

/// The part of each solo run that the co-runs are compared with.
fn baselines(
    ctx: &RunContext<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
    feeds: &[StoreFeed<'_>],
    solo: &[AppRecord],
) -> Result<Vec<SoloBaseline>, RunError> {
    let Some(window) = request.compared() else {
        return Ok(solo.iter().map(SoloBaseline::whole).collect());
    };
    let expected = Expected::new(solo, request.until, vec![None; solo.len()]);
    ctx.watch.running().begin_about(expected.windows(window));
    let runs: Vec<Result<SoloBaseline, RunError>> = apps
        .par_iter()
        .zip(feeds)
        .zip(solo)
        .with_max_len(1)
        .map(|((app, feed), row)| {
            // A run that ends within the window is known.
            if (1..=window).contains(&row.cycles) && !row.is_sampled() {
                return Ok(SoloBaseline::whole(row));
            }
            SoloBaseline::within(ctx, app, feed, window)
        })
        .collect();
    runs.into_iter().collect()
}

/// Refuses targets below one instruction.
fn check_targets(
    ctx: &RunContext<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
    baselines: &[SoloBaseline],
) -> Result<(), RunError> {
    let idle = |baseline: &SoloBaseline| baseline.target.is_some_and(|target| target < 1.0);
    let Some(index) = baselines.iter().position(idle) else { return Ok(()) };
    Err(RunError::EmptyWindow {
        app: apps[index].name.clone(),
        window: request.compared().unwrap_or(0),
        launch: ctx.resolved.machine.dispatch.kernel_launch_cycles,
    })
}

fn prepare(
    runner: &MixRunner<'_>,
    request: &AnalyzeRequest,
) -> Result<Vec<PreparedScheme>, RunError> {
    let prepare = |typed: &String| {
        let (chosen, scheme) = parse_scheme(typed, &request.apps)?;
        let law = |source: LawBroken| RunError::law(&chosen.name, source);
        let probes = scheme.probes(&runner.facts).map_err(law)?;
        Ok(PreparedScheme { chosen, scheme, probes })
    };
    request.schemes.iter().map(prepare).collect()
}

/// The probes of all schemes, equal ones once, with the scheme that asks first for each; by scheme
/// the places of its probes among them. Probes that race do so within their scheme.
fn asked(prepared: &[PreparedScheme]) -> (Vec<(usize, &Probe)>, Vec<Vec<usize>>) {
    let mut asked: Vec<(usize, &Probe)> = Vec::new();
    let mut indices: Vec<Vec<usize>> = Vec::new();
    for (number, scheme) in prepared.iter().enumerate() {
        let mut own = Vec::with_capacity(scheme.probes.len());
        for probe in &scheme.probes {
            let same =
                |&(by, other): &(usize, &Probe)| (by == number || !probe.race) && other == probe;
            own.push(asked.iter().position(same).unwrap_or_else(|| {
                asked.push((number, probe));
                asked.len() - 1
            }));
        }
        indices.push(own);
    }
    (asked, indices)
}

/// Warp instructions that are expected of all probes and schemes.
fn whole(runner: &MixRunner<'_>, prepared: &[PreparedScheme]) -> u64 {
    let (asked, _) = asked(prepared);
    let probes = asked.iter().map(|(_, probe)| runner.expects(|expected| expected.probe(probe)));
    let runs = prepared.iter().map(|_| runner.expects(Expected::run));
    probes.chain(runs).flatten().fold(0, u64::saturating_add)
}

/// Runs the probes of all schemes.
fn probe_results(
    runner: &MixRunner<'_>,
    prepared: &[PreparedScheme],
) -> Result<Vec<Vec<ProbeResult>>, RunError> {
    let (asked, indices) = asked(prepared);
    let best: Vec<AtomicU64> = prepared.iter().map(|_| AtomicU64::new(Cycle::MAX)).collect();
    let results: Vec<Result<ProbeResult, RunError>> = asked
        .par_iter()
        .with_max_len(1)
        .map(|&(scheme, probe)| runner.cached_probe(probe, &best[scheme]))
        .collect();
    let results: Vec<ProbeResult> = results.into_iter().collect::<Result<_, _>>()?;
    let pick = |own: Vec<usize>| own.into_iter().map(|index| results[index].clone()).collect();
    Ok(indices.into_iter().map(pick).collect())
}

/// When a co-run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Which applications must finish.
    pub when: EndWhen,
    /// The last cycle of the run.
    pub cycles: Option<Cycle>,
}

/// Which applications must finish before a co-run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndWhen {
    /// Every application has finished once.
    #[default]
    All,
    /// One application has finished.
    First,
    /// Every application has reached the instruction count of its solo window, where it stops
    /// and frees its resources (Warped-Slicer).
    Targets,
    /// Every application has finished once; early finishers relaunch (UGPU).
    FirstRun,
    /// None: only the cycle counts.
    Clock,
}

impl EndWhen {
    const NAMES: [(&'static str, Self); 4] = [
        ("all", Self::All),
        ("first", Self::First),
        ("targets", Self::Targets),
        ("first-run", Self::FirstRun),
    ];
}

impl FromStr for Ending {
    type Err = String;

    /// Reads `all`, `first`, `targets`, `first-run`, `cycles=N`, or one of the names and
    /// `cycles=N` with a comma between them.
    fn from_str(typed: &str) -> Result<Self, String> {
        let mut until = Self { when: EndWhen::Clock, cycles: None };
        for part in typed.split([',', ':']) {
            let repeated = match part.strip_prefix("cycles=") {
                Some(cycles) => until.cycles.replace(number(cycles)?).is_some(),
                None => std::mem::replace(&mut until.when, named(part)?) != EndWhen::Clock,
            };
            if repeated {
                return Err(format!(
                    "{part} comes second: give one of all, first, targets, first-run, and cycles=N once"
                ));
            }
        }
        Ok(until)
    }
}

fn number(typed: &str) -> Result<Cycle, String> {
    let cycles =
        typed.parse().map_err(|_| format!("expected a number of cycles, found {typed}"))?;
    if cycles == 0 { Err(String::from("a run takes at least one cycle")) } else { Ok(cycles) }
}

fn named(typed: &str) -> Result<EndWhen, String> {
    let found = EndWhen::NAMES.iter().find(|(name, _)| *name == typed).map(|&(_, when)| when);
    found.ok_or_else(|| {
        format!("expected all, first, targets, first-run or cycles=N, found {typed}")
    })
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            EndWhen::NAMES.iter().find(|(_, when)| *when == self.when).map(|(name, _)| *name);
        match (name, self.cycles) {
            (Some(name), None) => f.write_str(name),
            (Some(name), Some(cycles)) => write!(f, "{name},cycles={cycles}"),
            (None, cycles) => write!(f, "cycles={}", cycles.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EndWhen, Ending};

    #[test]
    fn what_is_typed_is_what_is_shown() {
        for typed in ["all", "first", "targets", "first-run", "cycles=5", "first-run,cycles=900"] {
            assert_eq!(typed.parse::<Ending>().unwrap().to_string(), typed);
        }
        let both: Ending = "first-run:cycles=7".parse().unwrap();
        assert_eq!(both, Ending { when: EndWhen::FirstRun, cycles: Some(7) });
        for invalid in [
            "",
            "never",
            "cycles=",
            "cycles=x",
            "cycles=0",
            "all,none",
            "all,first",
            "cycles=5,cycles=6",
        ] {
            assert!(invalid.parse::<Ending>().is_err(), "{invalid}");
        }
    }
}
