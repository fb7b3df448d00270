//! One application alone on the machine.

use std::borrow::Cow;

use gpumodel_core::contract::Plan;
use gpumodel_policy::{Scheme, Solo};
use gpumodel_report::results::{AppRecord, KernelRecord};
use gpumodel_sim::config::Machine;
use gpumodel_sim::{End, Gpu, Outcome, Setup};

use super::app::App;
use super::assumptions;
use super::error::RunError;
use super::facts::facts;
use super::notes::Notes;
use super::profiles::Key;
use super::request::Bench;
use super::rows;
use super::sample::sampled;
use super::utilization;
use gpumodel_feed::StoreFeed;

/// Runs `app` under the `solo` scheme and fills its row.
pub(super) fn solo(bench: &Bench<'_>, app: &App, notes: &mut Notes) -> Result<AppRecord, RunError> {
    let resolved = bench.resolved;
    let feed = StoreFeed::new(&app.store, |kernel| bench.chooses(app, kernel), resolved)?;
    let plan = whole(bench, &app.name, &feed)?;
    let logged = (0..feed.programs().len()).filter(|&place| feed.memory_only(place)).count();
    if bench.sample.is_some() && logged > 0 {
        let why = "a log of accesses has no times to estimate";
        notes.add(format!("{}: nothing was sampled: {why}", app.name));
    } else if let Some(wish) = bench.sample
        && let Some(row) = sampled(bench, app, &feed, &plan, wish, notes)?
    {
        return Ok(row);
    }
    let mut machine = Cow::Borrowed(&resolved.machine);
    if logged > 0 && logged == feed.programs().len() {
        // Where no code is known, none is fetched.
        machine.to_mut().fetch = None;
    }
    let outcome = run(bench, &machine, app, &feed, &plan)?;
    let launches = feed.programs().iter().zip(&outcome.kernels);
    let mut kernels: Vec<KernelRecord> = launches
        .enumerate()
        .map(|(place, (program, counts))| rows::kernel(bench, program, place, counts))
        .collect();
    assumptions::fill(&mut kernels, &feed, &resolved.machine)?;
    notes.of_run(app, &feed, &outcome, &resolved.machine);
    let hash = app.store.content_hash();
    let mut row = rows::app(bench, &app.name, hash, kernels, &outcome);
    if !row.memory_only {
        row.utilization = Some(utilization::alone(&machine, feed.programs(), &outcome));
    }
    Ok(row)
}

/// The plan that gives an application everything.
pub(super) fn whole(bench: &Bench<'_>, name: &str, feed: &StoreFeed<'_>) -> Result<Plan, RunError> {
    let law = |source| RunError::Law { scheme: String::from("solo"), source };
    let facts = facts(bench, &[(name, feed, 0)]);
    Solo::default().start(&facts, &[]).map_err(law)
}

fn run(
    bench: &Bench<'_>,
    machine: &Machine,
    app: &App,
    feed: &StoreFeed<'_>,
    plan: &Plan,
) -> Result<Outcome, RunError> {
    let failed = |source| RunError::Machine { app: app.name.clone(), source };
    let setup = Setup {
        machine,
        standard: &bench.memory.standard,
        mapping: bench.memory.map.clone(),
        apps: vec![feed.commands().into()],
        end: End::default(),
        part: None,
    };
    let running = bench.watch.running();
    let mut watch = |issued| running.advance(issued);
    let key = Key::new(&app.store.content_hash(), &bench.resolved.hash, feed.chosen());
    let gpu = Gpu::new(setup, feed).map(|gpu| gpu.with_profiles(&bench.profiles.load(key)));
    let outcome = gpu.and_then(|gpu| gpu.run(plan, &mut watch)).map_err(failed)?;
    bench.profiles.save(key, &outcome.profiles);
    Ok(outcome)
}
