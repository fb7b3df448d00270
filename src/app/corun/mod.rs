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
use gpumodel_report::results::{AppRecord, CoRun};

use crate::run_context::facts;
use crate::scheme::{SchemeLabel, parse_scheme};
use crate::solo::SoloBaseline;
use crate::{AnalyzeRequest, App, RunContext, RunError};
use runner::{Expected, MixRunner};

/// A scheme with its probes.
struct PreparedScheme {
    chosen: SchemeLabel,
    scheme: Box<dyn Scheme>,
    probes: Vec<Probe>,
}

/// Runs `apps` together under each scheme of the request, in parallel on all threads. The
/// rows are in the order of the schemes.
pub(crate) fn coruns(
    ctx: &RunContext<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
    solo: &[AppRecord],
) -> Result<Vec<CoRun>, RunError> {
    let feeds = apps.iter().map(|app| {
        let store = StoreFeed::new(&app.store, |k| ctx.chooses(app, k), ctx.resolved);
        store.map_err(RunError::from)
    });
    let feeds: Vec<StoreFeed<'_>> = feeds.collect::<Result<_, _>>()?;
    let baselines = baselines(ctx, request, apps, &feeds, solo)?;
    let targeted = request.until.when == EndWhen::Targets;
    if targeted {
        check_targets(ctx, request, apps, &baselines)?;
    }
    let arrivals = request.arrivals(apps)?;
    let named = apps.iter().zip(&feeds).zip(arrivals);
    let named: Vec<_> = named.map(|((app, feed), at)| (app.name.as_str(), feed, at)).collect();
    let facts = facts(ctx, &named);
    let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
    let target = |baseline: &SoloBaseline| baseline.target.filter(|_| targeted);
    let targets: Vec<Option<f64>> = baselines.iter().map(target).collect();
    let (names, until) = (names.join(" + "), request.until);
    let expected = Some(Expected::new(solo, until, targets.clone()));
    let mix = Mix::new(feeds.iter().collect());
    let runner = MixRunner { ctx, names, mix, facts, until, targets, expected };
    let prepared = prepare(&runner, request)?;
    let results = probe_results(&runner, &prepared)?;
    let runs: Vec<Result<CoRun, RunError>> = prepared
        .into_par_iter()
        .zip(results)
        .with_max_len(1)
        .map(|(PreparedScheme { chosen, mut scheme, .. }, results)| {
            let (outcome, decisions) =
                runner.run_scheme(&chosen.name, scheme.as_mut(), &results)?;
            let scheme = (chosen.name.as_str(), chosen.parameters);
            Ok(runner.record(scheme, (&outcome, &decisions), &baselines))
        })
        .collect();
    runs.into_iter().collect()
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

/// Runs the probes of all schemes, equal ones once; probes that race do so within their
/// scheme. The progress of these and of the runs after them begins here.
fn probe_results(
    runner: &MixRunner<'_>,
    prepared: &[PreparedScheme],
) -> Result<Vec<Vec<ProbeResult>>, RunError> {
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
    let probes = asked.iter().map(|(_, probe)| runner.expects(|expected| expected.probe(probe)));
    let runs = prepared.iter().map(|_| runner.expects(Expected::run));
    let whole = probes.chain(runs).flatten().fold(0, u64::saturating_add);
    runner.ctx.watch.running().begin_about(whole);
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
