//! Co-runs: all applications together under every requested scheme.

mod expected;
mod record;
pub(crate) mod runner;
mod shares;

use std::sync::atomic::AtomicU64;

use rayon::prelude::*;

use gpumodel_core::contract::{LawBroken, Probe, ProbeResult};
use gpumodel_core::units::Cycle;
use gpumodel_feed::{Mix, StoreFeed};
use gpumodel_policy::Scheme;
use gpumodel_report::results::{AppRecord, CoRun};

use self::expected::Expected;
use crate::facts::facts;
use crate::scheme::{SchemeLabel, parse_scheme};
use crate::solo::SoloBaseline;
use crate::{AnalyzeRequest, App, EndWhen, RunContext, RunError};
use runner::MixRunner;

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
