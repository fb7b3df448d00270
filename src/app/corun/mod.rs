//! Applications together under every scheme that was asked for.

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

use crate::analyze::{AnalyzeRequest, Bench};
use crate::app::App;
use crate::corun::runner::Stage;
use crate::ending::Who;
use crate::error::RunError;
use crate::facts::facts;
use crate::scheme::{Chosen, chosen};
use crate::solo::Reference;

/// A scheme with what it asked to have measured.
struct Prepared {
    chosen: Chosen,
    scheme: Box<dyn Scheme>,
    probes: Vec<Probe>,
}

/// Runs `apps` together under each scheme of the request, side by side on all
/// threads; the rows are in the order of the schemes, whatever the threads.
pub(crate) fn coruns(
    bench: &Bench<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
    solo: &[AppRecord],
) -> Result<Vec<CoRun>, RunError> {
    let feeds = apps.iter().map(|app| {
        let store = StoreFeed::new(&app.store, |k| bench.chooses(app, k), bench.resolved);
        store.map_err(RunError::from)
    });
    let feeds: Vec<StoreFeed<'_>> = feeds.collect::<Result<_, _>>()?;
    // Windows, limits and probes: nobody knows how much is run.
    bench.watch.running().begin_unknown();
    let references = references(bench, request, apps, &feeds, solo)?;
    let targeted = request.until.who == Who::Targets;
    if targeted {
        check_targets(bench, request, apps, &references)?;
    }
    let arrivals = request.arrivals(apps)?;
    let named = apps.iter().zip(&feeds).zip(arrivals);
    let named: Vec<_> = named.map(|((app, feed), at)| (app.name.as_str(), feed, at)).collect();
    let facts = facts(bench, &named);
    let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
    let target = |reference: &Reference| reference.target.filter(|_| targeted);
    let targets = references.iter().map(target).collect();
    let (names, until) = (names.join(" + "), request.until);
    let stage =
        Stage { bench, names, mix: Mix::new(feeds.iter().collect()), facts, until, targets };
    let prepared = prepare(&stage, request)?;
    let answers = measured(&stage, &prepared)?;
    let runs: Vec<Result<CoRun, RunError>> = prepared
        .into_par_iter()
        .zip(answers)
        .with_max_len(1)
        .map(|(Prepared { chosen, mut scheme, .. }, answers)| {
            let (outcome, decisions) = stage.under(&chosen.name, scheme.as_mut(), &answers)?;
            let scheme = (chosen.name.as_str(), chosen.parameters);
            Ok(stage.record(scheme, (&outcome, &decisions), &references))
        })
        .collect();
    runs.into_iter().collect()
}

/// The applications alone over the work that the co-runs are about.
fn references(
    bench: &Bench<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
    feeds: &[StoreFeed<'_>],
    solo: &[AppRecord],
) -> Result<Vec<Reference>, RunError> {
    let Some(window) = request.compared() else {
        return Ok(solo.iter().map(Reference::whole).collect());
    };
    let runs: Vec<Result<Reference, RunError>> = apps
        .par_iter()
        .zip(feeds)
        .zip(solo)
        .with_max_len(1)
        .map(|((app, feed), row)| {
            // The window may hold the whole run, which is known.
            let known = (1..=window).contains(&row.cycles) && !row.is_sampled();
            let known = known.then(|| Ok(Reference::whole(row)));
            known.unwrap_or_else(|| Reference::within(bench, app, feed, window))
        })
        .collect();
    runs.into_iter().collect()
}

/// Refuses targets that are reached before anything is done.
fn check_targets(
    bench: &Bench<'_>,
    request: &AnalyzeRequest,
    apps: &[App],
    references: &[Reference],
) -> Result<(), RunError> {
    let idle = |reference: &Reference| reference.target.is_some_and(|target| target < 1.0);
    let Some(place) = references.iter().position(idle) else { return Ok(()) };
    Err(RunError::EmptyWindow {
        app: apps[place].name.clone(),
        window: request.compared().unwrap_or(0),
        launch: bench.resolved.machine.dispatch.kernel_launch_cycles,
    })
}

fn prepare(stage: &Stage<'_>, request: &AnalyzeRequest) -> Result<Vec<Prepared>, RunError> {
    let prepare = |typed: &String| {
        let (chosen, scheme) = chosen(typed, &request.apps)?;
        let law = |source: LawBroken| RunError::law(&chosen.name, source);
        let probes = scheme.probes(&stage.facts).map_err(law)?;
        Ok(Prepared { chosen, scheme, probes })
    };
    request.schemes.iter().map(prepare).collect()
}

/// Answers what the schemes asked, each question once; those that race do so
/// within their scheme.
fn measured(stage: &Stage<'_>, prepared: &[Prepared]) -> Result<Vec<Vec<ProbeResult>>, RunError> {
    let mut asked: Vec<(usize, &Probe)> = Vec::new();
    let mut places: Vec<Vec<usize>> = Vec::new();
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
        places.push(own);
    }
    let best: Vec<AtomicU64> = prepared.iter().map(|_| AtomicU64::new(Cycle::MAX)).collect();
    let answers: Vec<Result<ProbeResult, RunError>> = asked
        .par_iter()
        .with_max_len(1)
        .map(|&(scheme, probe)| stage.answer(probe, &best[scheme]))
        .collect();
    let answers: Vec<ProbeResult> = answers.into_iter().collect::<Result<_, _>>()?;
    let pick = |own: Vec<usize>| own.into_iter().map(|place| answers[place].clone()).collect();
    Ok(places.into_iter().map(pick).collect())
}
