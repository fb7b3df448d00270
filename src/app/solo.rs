//! Solo runs: whole, for records, and over a window, for co-runs to compare with.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use gpumodel_core::contract::Plan;
use gpumodel_core::units::{Cycle, to_u64};
use gpumodel_feed::StoreFeed;
use gpumodel_policy::{Scheme, Solo};
use gpumodel_report::results::{Alone, AppRecord, KernelRecord};
use gpumodel_sim::config::Machine;
use gpumodel_sim::{End, Gpu, Outcome, ProfileImage};

use crate::cache::profiles::Key;
use crate::corun::runner::sums;
use crate::record::notes::Notes;
use crate::record::{assumptions, utilization};
use crate::run_context::facts;
use crate::sample::sampled;
use crate::{App, EventDetail, RunContext, RunError, record};

/// Runs `app` under the `solo` scheme and fills its record.
pub(super) fn solo(
    ctx: &RunContext<'_>,
    app: &App,
    notes: &mut Notes,
) -> Result<AppRecord, RunError> {
    let resolved = ctx.resolved;
    let feed = StoreFeed::new(&app.store, |kernel| ctx.chooses(app, kernel), resolved)?;
    let plan = solo_plan(ctx, &app.name, &feed)?;
    let logged = (0..feed.programs().len()).filter(|&index| feed.memory_only(index)).count();
    if ctx.sample.is_some() && logged > 0 {
        let why = "a log of accesses has no times to estimate";
        notes.add(format!("{}: nothing was sampled: {why}", app.name));
    } else if let Some(request) = ctx.sample
        && let Some(row) = sampled(ctx, app, &feed, &plan, request, notes)?
    {
        return Ok(row);
    }
    let mut machine = Cow::Borrowed(&resolved.machine);
    if logged > 0 && logged == feed.programs().len() {
        // A log has no code to fetch.
        machine.to_mut().fetch = None;
    }
    let key = Key::new(&app.store.content_hash(), &resolved.hash, feed.chosen());
    // Stored profiles do not say where in an interval a warp waits.
    let profiles = if ctx.hot > 0 { Vec::new() } else { ctx.profiles.load(key) };
    let outcome = run(ctx, &machine, (app, &feed), &plan, (End::default(), &profiles))?;
    if ctx.hot == 0 {
        ctx.profiles.save(key, &outcome.profiles);
    }
    let launches = feed.programs().iter().zip(&outcome.kernels);
    let mut kernels: Vec<KernelRecord> = launches
        .enumerate()
        .map(|(index, (program, counts))| record::kernel(ctx, program, index, counts))
        .collect();
    assumptions::fill(&mut kernels, &feed, &resolved.machine)?;
    for (kernel, hot) in kernels.iter_mut().zip(record::hot(ctx.hot, feed.programs(), &outcome)) {
        kernel.hot = Some(hot);
    }
    notes.of_run(app, &feed, &outcome, &resolved.machine);
    let hash = app.store.content_hash();
    let mut row = record::app(ctx, &app.name, hash, kernels, &outcome);
    row.events = record::ctas(&outcome, |kernel| (0, kernel));
    if !row.memory_only {
        row.utilization = Some(utilization::solo(&machine, feed.programs(), &outcome));
    }
    Ok(row)
}

/// The plan that gives an application the whole machine.
fn solo_plan(ctx: &RunContext<'_>, name: &str, feed: &StoreFeed<'_>) -> Result<Plan, RunError> {
    let law = |source| RunError::Law { scheme: String::from("solo"), source };
    let facts = facts(ctx, &[(name, feed, 0)]);
    Solo::default().start(&facts, &[]).map_err(law)
}

/// Runs an application under a plan until `end`.
fn run(
    ctx: &RunContext<'_>,
    machine: &Machine,
    (app, feed): (&App, &StoreFeed<'_>),
    plan: &Plan,
    (end, profiles): (End, &[ProfileImage]),
) -> Result<Outcome, RunError> {
    let failed = |source| RunError::Machine { app: app.name.clone(), source };
    let setup = ctx.setup(machine, vec![feed.commands().into()], end);
    let running = ctx.watch.running();
    let mut watch = |issued| running.advance(issued);
    let mut gpu = Gpu::new(setup, feed).map_err(failed)?.with_profiles(profiles);
    if ctx.hot > 0 {
        gpu = gpu.with_hot_spots();
    }
    if ctx.events == EventDetail::Ctas {
        gpu = gpu.with_cta_spans();
    }
    if ctx.fast_forward {
        gpu = gpu.with_fast_forward();
    }
    ctx.on_threads(gpu).run(plan, &mut watch).map_err(failed)
}

/// The part of a solo run that a co-run is compared with.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct SoloBaseline {
    pub(super) alone: Alone,
    /// Warp instructions executed in the window; `None` if the run ended within it.
    pub(super) target: Option<f64>,
}

impl SoloBaseline {
    /// The whole solo run.
    pub(super) fn whole(row: &AppRecord) -> Self {
        Self { alone: Alone::from(row), target: None }
    }

    /// The first `window` cycles of a solo run.
    pub(super) fn within(
        ctx: &RunContext<'_>,
        app: &App,
        feed: &StoreFeed<'_>,
        window: Cycle,
    ) -> Result<Self, RunError> {
        let key_parts =
            || vec![String::from("window"), app.store.content_hash(), window.to_string()];
        ctx.cached(key_parts, || {
            let plan = solo_plan(ctx, &app.name, feed)?;
            let end = End { first: false, at: Some(window) };
            let outcome = run(ctx, &ctx.resolved.machine, (app, feed), &plan, (end, &[]))?;
            let (app, counts) = (outcome.apps[0], sums(&outcome.kernels));
            let threads =
                threads(app.progress, counts.warp_instructions, counts.thread_instructions);
            let alone = Alone { cycles: app.end, ipc: threads as f64 / app.end.max(1) as f64 };
            Ok(Self { alone, target: (!app.finished).then_some(app.progress) })
        })
    }
}

/// Thread instructions of `progress` warp instructions, at the counted ratio: bursts are
/// counted when they begin, which is ahead of progress.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are below 2^53 and not negative"
)]
pub(super) fn threads(progress: f64, warps: u64, threads: u64) -> u64 {
    let share = progress / warps.max(1) as f64;
    to_u64((threads as f64 * share.min(1.0)).round() as u64)
}
