//! `analyze --sample`: launches from a part of their CTAs on a part of the machine.
//!
//! # The method
//! A launch's CTAs are grouped into *strata* by the paths of their warps. A *set*
//! is a row of neighbouring SMs of the machine with the CTAs that these SMs would
//! get; one is drawn of those whose mix of strata is nearest to the launch's.
//! It runs, from the first wave to the last one, on a part of the machine with as
//! many SMs as the set and L2 slices, channels and launch rate in proportion
//! ([`scale`]; scale-model simulation, Liu et al., IEEE CAL 2022). What CTAs outside
//! the set bring into the L2 is known from a walk over all addresses ([`census`]).
//! From the lives of the set's CTAs follow the launch's cycles and their interval
//! ([`estimate`]); when chance leaves more open than asked for, another set runs, and
//! after the last one the launch runs whole. So does a launch that keeps the DRAM so
//! busy that a part of its channels does not tell how requests crowd on all of them.
//!
//! # Why so
//! * *The first waves on the whole machine, then extrapolation*: most launches have
//!   fewer than 13 waves on a large GPU, many less than one: a tenth of the work is
//!   not even the first wave, whose CTAs all start together with cold caches.
//! * *CTAs drawn one by one*: breaks what neighbours share in the L1 and L2 (a
//!   stencil missed the L2 2.6 times as often). *One block of neighbours*: other
//!   CTAs share an SM's L1 than in the whole (a matrix product 12 % L1 hits for
//!   42 %). *Whole SMs with the census* keep both.
//! * *SMs drawn one by one* lose a part of what neighbours share (on a GV100 a matrix
//!   product 6 % too fast, a Walsh transform 4 %; in a row 1 % each).
//! * *Sectors that others bring come only after a miss*: which CTA of many asks first
//!   is not known. The first of the set waiting for the whole miss made the matrix
//!   product 8 % too slow, for half of it 2 to 5 %, for none 1 % too fast; for as long
//!   as requests of two SMs lay apart, with SMs drawn one by one, 6 % too fast.
//! * *Other ways to fold channels*: without the turn by row, or neighbouring channels
//!   into one, a Sobol sequence was 14 and 13 % too fast where it was 10 %.
//! * *Larger parts, and the trend over them*: an eighth, a quarter and a half of the
//!   machine left the Sobol sequence 15, 13 and 8 % too fast and the Walsh transform
//!   3, 5 and 4 % too slow: no trend holds for both.
//! * *A part of the machine*: contention, waves and the tail are as in the whole;
//!   and a part is cheaper than its share of the work.
//!
//! What it does not see: atomics that meet in one place, address translation, and
//! streams side by side. Such launches run whole, and so do small ones.

mod estimate;
mod l2_sharing;
mod runner;
mod scale;
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
use runner::{LaunchResult, Runner};
use scale::Scale;
use selection::Choice;

/// Launches that run together: one sampled one, or neighbours that run whole.
#[derive(Clone, Debug)]
struct LaunchGroup {
    launches: Range<usize>,
    sampled: bool,
}

/// Runs `app` by samples under `plan`. `None` when no launch of it can be sampled:
/// it is to run whole, and the reason is among the notes.
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

/// The part of the machine, or why there is none.
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

/// Says which launches run whole.
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

/// Walks over all launches: what each stretch needs of the rest; `None` when they
/// touch more memory than is kept track of.
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

/// The row of the application: its stretches one after the other.
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
                let words = fallback.words();
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

/// What `--sample` asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleRequest {
    /// Half of the interval's width over the cycles, above 0 and below 1: sets of
    /// CTAs run until it is reached.
    pub half_width: f64,
    /// Launches of fewer warp instructions run whole.
    pub fewest_instructions: u64,
}

impl SampleRequest {
    /// Within 3 %: the sampling error that the interval must not exceed.
    pub const HALF_WIDTH: f64 = 0.03;

    /// What runs whole in a second or two: there is little to save, and of so short
    /// a launch most is its beginning and its end.
    pub const FEWEST_INSTRUCTIONS: u64 = 8_000_000;

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
