//! `analyze --sample`: estimates launches from some of their CTAs on a part of the machine.
//!
//! # The method
//! A launch's CTAs are grouped into *strata* by the paths of their warps. A *set* is a row of
//! neighbouring SMs with the CTAs that these SMs would get; one is drawn from those whose mix
//! of strata is nearest to the launch's ([`selection`]). It runs, from the first wave to the
//! last, on a part of the machine with as many SMs as the set, and L2 slices, channels and
//! launch rate in proportion ([`Scale`]; scale-model simulation, Liu et al., IEEE CAL 2022). A
//! scan of all addresses finds what CTAs outside the set bring into the L2 ([`l2_sharing`]).
//! The lifetimes of the set's CTAs give the launch's cycles and their interval ([`estimate`]).
//! If the interval is wider than requested, another set runs; after the last set the launch
//! runs whole. So does a launch that keeps the DRAM so busy that a part of its channels does
//! not show the contention on all of them.
//!
//! # Alternatives that were tried
//! * *The first waves on the whole machine, then extrapolation*: most launches have
//!   fewer than 13 waves on a large GPU, many less than one: a tenth of the work is less than
//!   the first wave, whose CTAs all start together with cold caches.
//! * *CTAs drawn one by one*: breaks what neighbours share in the L1 and L2 (a
//!   stencil missed the L2 2.6 times as often). *One block of neighbours*: other
//!   CTAs share an SM's L1 than in the whole (a matrix product had 12 % L1 hits instead of
//!   42 %). *Whole SMs with the scan* keep both.
//! * *SMs drawn one by one* lose a part of what neighbours share (on a GV100 a matrix
//!   product 6 % too fast, a Walsh transform 4 %; in a row 1 % each).
//! * *A miss for the first access to a sector that others bring*: it is unknown which CTA
//!   accesses it first. A whole miss made the matrix product 8 % too slow, half a miss 2 to
//!   5 %, none 1 % too fast; the time between requests of two SMs, with SMs drawn one by one,
//!   6 % too fast.
//! * *Other ways to fold channels*: without the turn by row, or neighbouring channels
//!   into one, a Sobol sequence was 14 and 13 % too fast where it was 10 %.
//! * *Larger parts, and the trend over them*: an eighth, a quarter and a half of the
//!   machine left the Sobol sequence 15, 13 and 8 % too fast and the Walsh transform
//!   3, 5 and 4 % too slow: no trend holds for both.
//! * *A part of the machine*: contention, waves and the tail are as in the whole;
//!   and a part is cheaper than its share of the work.
//!
//! Not modelled: contention of atomics, address translation, and concurrent streams. Such
//! launches run whole, and so do small ones.

mod estimate;
mod l2_sharing;
mod runner;
mod selection;

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use gpumodel_core::contract::Plan;
use gpumodel_core::units::{Cycle, SECTOR_BYTES};
use gpumodel_feed::StoreFeed;
use gpumodel_report::results::{AppRecord, KernelRecord, SampleRecord};
use gpumodel_sim::{KernelCounts, Outcome};

use crate::record::assumptions;
use crate::record::notes::Notes;
use crate::{App, RunContext, RunError, record};
use l2_sharing::{OutsideAccesses, SharingScan};
use runner::{LaunchResult, Runner, Scale};
use selection::Choice;

/// Launches that run together: one that is sampled, or neighbours that run whole.
#[derive(Clone, Debug)]
struct LaunchGroup {
    launches: Range<usize>,
    sampled: bool,
}

/// Runs samples of `app` under `plan`. `None` if no launch can be sampled: it must run whole,
/// and the notes say why.
///
/// # Errors
/// [`RunError`] when the trace is damaged or the machine cannot run it.
pub(super) fn sampled(
    ctx: &RunContext<'_>,
    app: &App,
    feed: &StoreFeed<'_>,
    plan: &Plan,
    request: SampleRequest,
    notes: &mut Notes,
) -> Result<Option<AppRecord>, RunError> {
    let scale = match part(ctx, feed) {
        Ok(scale) => scale,
        Err(reason) => {
            notes.add(format!("{}: nothing was sampled: {reason}", app.name));
            return Ok(None);
        }
    };
    let choice = |index| Choice::of(feed, index, &scale, request, ctx.seed);
    let launches: Vec<usize> = (0..feed.programs().len()).collect();
    let choices = launches.into_par_iter().map(choice).collect::<Result<Vec<_>, _>>()?;
    reasons(app, &choices, notes);
    let groups = groups(&choices);
    if groups.iter().all(|group| !group.sampled) {
        return Ok(None);
    }
    let Some(outside) = scan_launches(ctx, feed, &choices, &groups)? else {
        notes.add(format!("{}: nothing was sampled: it touches too much memory", app.name));
        return Ok(None);
    };
    let runner = Runner { ctx, app, feed, plan, scale: &scale, target: request.half_width };
    let run =
        |(group, outside): (&LaunchGroup, OutsideAccesses)| match &choices[group.launches.start] {
            Choice::Sample(sampling) => runner.sample(group.launches.start, sampling, outside),
            Choice::Whole(_) => runner.whole(group.launches.clone(), outside.before),
        };
    let results = groups.par_iter().zip(outside).map(run).collect::<Result<Vec<_>, _>>()?;
    join(ctx, app, feed, results, notes).map(Some)
}

/// The part of the machine, or why no part will do.
fn part(ctx: &RunContext<'_>, feed: &StoreFeed<'_>) -> Result<Scale, &'static str> {
    let machine = &ctx.resolved.machine;
    let streams = feed.programs().windows(2).any(|p| p[0].launch.stream != p[1].launch.stream);
    if streams && !machine.quirks.serial_kernels {
        return Err("kernels of several streams may run side by side");
    }
    if machine.translation.is_some() {
        return Err("the machine translates addresses");
    }
    Scale::of(machine, ctx.memory)
        .ok_or("no part of the machine has its SMs and channels in proportion")
}

/// Notes which launches run whole, and why.
fn reasons(app: &App, choices: &[Choice], notes: &mut Notes) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for choice in choices {
        if let Choice::Whole(reason) = choice {
            *counts.entry(reason).or_default() += 1;
        }
    }
    for (reason, count) in counts {
        let launches = choices.len();
        notes.add(format!("{}: {count} of {launches} launches ran whole: {reason}", app.name));
    }
}

fn groups(choices: &[Choice]) -> Vec<LaunchGroup> {
    let mut found: Vec<LaunchGroup> = Vec::new();
    for (index, choice) in choices.iter().enumerate() {
        let sampled = matches!(choice, Choice::Sample(_));
        match found.last_mut() {
            Some(last) if !last.sampled && !sampled => last.launches.end = index + 1,
            _ => found.push(LaunchGroup { launches: index..index + 1, sampled }),
        }
    }
    found
}

/// Scans all launches for the accesses outside each group's sets; `None` if they touch more
/// memory than the scan covers.
fn scan_launches(
    ctx: &RunContext<'_>,
    feed: &StoreFeed<'_>,
    choices: &[Choice],
    groups: &[LaunchGroup],
) -> Result<Option<Vec<OutsideAccesses>>, RunError> {
    let machine = &ctx.resolved.machine;
    let (l2, sms) = (&machine.l2, u64::from(machine.dispatch.sms));
    let lines = u64::from(l2.slices) * u64::from(l2.cache.sets) * u64::from(l2.cache.ways);
    let line = u64::from(l2.cache.line_bytes) / SECTOR_BYTES;
    let mut scan = SharingScan::new(lines, line);
    let mut outside = Vec::with_capacity(groups.len());
    for group in groups {
        for index in group.launches.clone() {
            let (draw, per_sm) = match &choices[index] {
                Choice::Sample(sampling) => (Some(&sampling.draw), u64::from(sampling.per_sm)),
                Choice::Whole(_) => (None, 1),
            };
            let program = &feed.programs()[index];
            scan.launch(feed.store(), feed.kernel(index), program, draw, per_sm * sms)?;
            if scan.overflows() {
                return Ok(None);
            }
        }
        outside.push(scan.end_group());
    }
    Ok(Some(outside))
}

/// The record of the application: its groups one after the other.
fn join(
    ctx: &RunContext<'_>,
    app: &App,
    feed: &StoreFeed<'_>,
    results: Vec<Vec<LaunchResult>>,
    notes: &mut Notes,
) -> Result<AppRecord, RunError> {
    let gap = ctx.resolved.machine.dispatch.kernel_retire_cycles;
    let mut outcome = Outcome::default();
    let mut samples: Vec<Option<SampleRecord>> = Vec::new();
    for group in results {
        let offset = if outcome.cycles == 0 { 0 } else { outcome.cycles + gap };
        for LaunchResult { mut counts, sample, fallback } in group {
            if let Some(fallback) = fallback {
                let words = fallback.text();
                notes.add(format!("{}: samples of a launch {words}: it ran whole", app.name));
            }
            shift(&mut counts, offset);
            outcome.cycles = outcome.cycles.max(counts.end);
            outcome.kernels.push(counts);
            samples.push(sample);
        }
    }
    outcome.totals.clone_from(&outcome.kernels);
    let rows = feed.programs().iter().zip(&outcome.kernels).zip(samples).enumerate();
    let mut kernels: Vec<KernelRecord> = rows
        .map(|(index, ((program, counts), sample))| {
            let mut row = record::kernel(ctx, program, index, counts);
            row.sample = sample.map(|sample| sample.with_ipc(row.thread_instructions));
            row
        })
        .collect();
    assumptions::fill(&mut kernels, feed, &ctx.resolved.machine)?;
    notes.of_run(app, feed, &outcome, &ctx.resolved.machine);
    Ok(record::app(ctx, &app.name, app.store.content_hash(), kernels, &outcome))
}

fn shift(counts: &mut KernelCounts, by: Cycle) {
    counts.start += by;
    counts.first_cta += by;
    counts.end += by;
}

/// The options of sampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleRequest {
    /// Half of the interval's width over the cycles, above 0 and below 1: sets of CTAs run until
    /// it is reached.
    pub half_width: f64,
    /// Launches of fewer warp instructions run whole.
    pub fewest_instructions: u64,
}

impl SampleRequest {
    /// The default half width: 3 %.
    pub const HALF_WIDTH: f64 = 0.03;

    /// Shorter launches run whole within a second or two, and consist mostly of their start and
    /// end.
    const FEWEST_INSTRUCTIONS: u64 = 8_000_000;

    /// Samples until the interval is `half_width` of the cycles to either side.
    #[must_use]
    pub fn within(half_width: f64) -> Self {
        Self { half_width, fewest_instructions: Self::FEWEST_INSTRUCTIONS }
    }
}

impl Default for SampleRequest {
    fn default() -> Self {
        Self::within(Self::HALF_WIDTH)
    }
}
