//! Running stretches of launches: samples of one, or several whole.

use std::ops::Range;

use gpumodel_core::contract::Plan;
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32, to_u64};
use gpumodel_report::results::SampleRecord;
use gpumodel_sim::config::Machine;
use gpumodel_sim::{Command, End, Feed, Gpu, KernelCounts, Outcome, Part, PresumedL2Hits, Setup};

use super::super::app::App;
use super::super::error::RunError;
use super::super::memory::Memory;
use super::super::request::Bench;
use super::census::Around;
use super::choice::Sampling;
use super::estimate::{Bias, CONFIDENCE, Estimate, Sampled};
use super::scale::Scale;
use super::shortfall::Shortfall;
use gpumodel_feed::StoreFeed;
use gpumodel_feed::{RangeFeed, SampleFeed};

/// A launch runs whole when what crowds on its channels may be more than this many
/// times the half-width asked for.
const MOST_CROWDING: f64 = 5.0;

/// A launch runs whole when others bring more than this share of what it reads from
/// the L2. A matrix product, of which 72 to 75 % of the reads are such, came out 0.5
/// to 21 % too fast on parts of three machines; a stencil with 27 to 33 % was within
/// 5 %.
const MOST_SHARED: f64 = 0.6;

/// What a launch left; times from the start of its stretch on.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) counts: KernelCounts,
    pub(super) sample: Option<SampleRecord>,
    /// Why no sample was enough.
    pub(super) shortfall: Option<Shortfall>,
}

/// What all stretches share.
#[derive(Clone, Copy)]
pub(super) struct Runner<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) app: &'a App,
    pub(super) feed: &'a StoreFeed<'a>,
    pub(super) plan: &'a Plan,
    pub(super) scale: &'a Scale,
    /// The half-width that an interval may have, over the cycles.
    pub(super) target: f64,
}

impl Runner<'_> {
    /// The launches at `places`, whole, on the whole machine.
    pub(super) fn whole(
        &self,
        places: Range<usize>,
        presumed_l2_hits: PresumedL2Hits,
    ) -> Result<Vec<Ran>, RunError> {
        let feed = RangeFeed::new(self.feed, places.start);
        let part = Part { pace: 1, presumed_l2_hits };
        let commands = self.feed.commands_of(places);
        let (machine, memory) = (&self.bench.resolved.machine, self.bench.memory);
        let outcome = self.run(&feed, commands, machine, memory, part)?;
        let rows =
            outcome.kernels.into_iter().map(|counts| Ran { counts, sample: None, shortfall: None });
        Ok(rows.collect())
    }

    /// The launch at `place` by samples, one set after the other until the interval
    /// is tight; whole when it never is, or the memory is too busy for a part to tell.
    pub(super) fn sample(
        &self,
        place: usize,
        sampling: &Sampling,
        around: Around,
    ) -> Result<Vec<Ran>, RunError> {
        let Sampling { strata, draw, per_sm } = sampling;
        let mut runs: Vec<Sampled> = Vec::new();
        let mut sum = KernelCounts::default();
        let mut shortfall = Shortfall::Wide;
        for (set, presumed_l2_hits) in around.sets.into_iter().enumerate().take(draw.sets) {
            let chosen = draw.chosen(set, strata.ctas());
            let (counts, run) = self.one(place, chosen, presumed_l2_hits)?;
            if runs.is_empty() {
                (sum.start, sum.first_cta, sum.end) = (counts.start, counts.first_cta, counts.end);
            }
            sum.join(&counts);
            runs.push(run);
            let bias = Bias::of(self.busy(&sum, &runs));
            shortfall = shortage(&bias, &sum, &runs, self.target);
            if shortfall != Shortfall::Wide {
                break;
            }
            let mut estimate = Estimate::of(strata, &runs, *per_sm, self.scale.times());
            if estimate.half_width <= self.target {
                estimate.half_width = estimate.half_width.hypot(estimate.tail) + bias.half_width();
                return Ok(vec![self.extrapolated(place, sampling, sum, &estimate, &runs)]);
            }
        }
        let mut whole = self.whole(place..place + 1, around.before)?;
        for ran in &mut whole {
            let cycles = ran.counts.end - ran.counts.start;
            let sample = self.exact(place, sampling, cycles);
            ran.sample = Some(SampleRecord { runs: to_u32(runs.len()), ..sample });
            ran.shortfall = Some(shortfall);
        }
        Ok(whole)
    }

    /// The share of the part's DRAM bandwidth that `runs` took, which counted `sum`.
    fn busy(&self, sum: &KernelCounts, runs: &[Sampled]) -> f64 {
        let machine = &self.bench.resolved.machine;
        let cycles: Cycle = runs.iter().map(|run| run.cycles).sum();
        let bytes = float((sum.dram_reads + sum.dram_writes) * SECTOR_BYTES);
        let peak = self.bench.memory.peak_gb_per_s * 1000.0 / machine.clocks.core_mhz;
        let share = f64::from(self.scale.machine.dram.channels) / f64::from(machine.dram.channels);
        bytes / (float(cycles.max(1)) * peak * share)
    }

    /// One set of CTAs on the machine's part.
    fn one(
        &self,
        place: usize,
        chosen: Vec<u64>,
        presumed_l2_hits: PresumedL2Hits,
    ) -> Result<(KernelCounts, Sampled), RunError> {
        let feed = SampleFeed::new(self.feed, place, &chosen);
        let part = Part { pace: self.scale.pace, presumed_l2_hits };
        let (machine, memory) = (&self.scale.machine, &self.scale.memory);
        let outcome = self.run(&feed, feed.commands(), machine, memory, part)?;
        let counts = outcome.kernels.into_iter().next().unwrap_or_default();
        let cycles = counts.end - counts.first_cta;
        Ok((counts, Sampled { chosen, spans: outcome.spans, cycles, passed: outcome.passed }))
    }

    fn run<F: Feed>(
        &self,
        feed: &F,
        commands: Vec<Command>,
        machine: &Machine,
        memory: &Memory,
        part: Part,
    ) -> Result<Outcome, RunError> {
        let failed = |source| RunError::Machine { app: self.app.name.clone(), source };
        let setup = Setup {
            machine,
            standard: &memory.standard,
            mapping: memory.map.clone(),
            apps: vec![commands.into()],
            end: End::default(),
            part: Some(part),
        };
        let running = self.bench.watch.running();
        let mut watch = |issued| running.advance(issued);
        Gpu::new(setup, feed).and_then(|gpu| gpu.run(self.plan, &mut watch)).map_err(failed)
    }

    /// The launch from the sums of its samples.
    fn extrapolated(
        &self,
        place: usize,
        sampling: &Sampling,
        mut counts: KernelCounts,
        estimate: &Estimate,
        runs: &[Sampled],
    ) -> Ran {
        let (warps, threads) = self.feed.instructions(place);
        let factor = float(warps) / float(counts.warp_instructions.max(1));
        counts.extrapolate(factor, to_u64(runs.len()));
        counts.settle_instructions(warps, threads);
        counts.end = counts.first_cta + rounded(estimate.cycles);
        let launch = counts.first_cta - counts.start;
        let ctas_run = runs.iter().map(|run| to_u64(run.chosen.len())).sum();
        let at = |share: f64| launch + rounded(estimate.cycles * share);
        let sample = SampleRecord {
            ctas_run,
            cycles_low: at(1.0 - estimate.half_width),
            cycles_high: at(1.0 + estimate.half_width),
            runs: to_u32(runs.len()),
            sms: to_u64(self.scale.sms()),
            channels: to_u64(self.scale.machine.dram.channels),
            ..self.exact(place, sampling, 0)
        };
        Ran { counts, sample: Some(sample), shortfall: None }
    }

    /// The sample's row of a launch that ran whole after all, in `cycles`.
    fn exact(&self, place: usize, sampling: &Sampling, cycles: Cycle) -> SampleRecord {
        let machine = &self.bench.resolved.machine;
        let ctas = self.feed.programs()[place].ctas;
        SampleRecord {
            ctas_run: ctas,
            ctas,
            strata: to_u64(sampling.strata.sizes.len()),
            runs: 0,
            sms: u64::from(machine.dispatch.sms),
            channels: u64::from(machine.dram.channels),
            confidence: CONFIDENCE,
            cycles_low: cycles,
            cycles_high: cycles,
            ..SampleRecord::default()
        }
    }
}

/// What keeps `runs`, which counted `sum`, from telling the whole; [`Shortfall::Wide`]
/// when only their interval may.
fn shortage(bias: &Bias, sum: &KernelCounts, runs: &[Sampled], target: f64) -> Shortfall {
    let passed: u64 = runs.iter().map(|run| run.passed).sum();
    if bias.crowding > MOST_CROWDING * target {
        Shortfall::Crowded
    } else if float(passed) > MOST_SHARED * float(sum.l2.reads()) {
        Shortfall::Shared
    } else {
        Shortfall::Wide
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cycles are positive and below 2^53"
)]
fn rounded(cycles: f64) -> Cycle {
    cycles.max(0.0).round() as Cycle
}
