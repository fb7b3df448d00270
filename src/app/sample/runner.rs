//! Runs groups of launches: samples of one, or several whole; and the part of a machine on which
//! samples run.

use std::ops::Range;

use gpumodel_core::contract::Plan;
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32, to_u64};
use gpumodel_feed::{RangeFeed, SampleFeed, StoreFeed};
use gpumodel_report::results::SampleRecord;
use gpumodel_sim::config::Machine;
use gpumodel_sim::{Command, End, Feed, Gpu, KernelCounts, Outcome, Part, PresumedL2Hits, Setup};

use super::OutsideAccesses;
use super::estimate::{Bias, CONFIDENCE, Estimate, Sampled};
use super::selection::Sampling;
use crate::memory::Memory;
use crate::{App, RunContext, RunError, float};

/// A launch runs whole if the error from contention on its channels may exceed this many times
/// the requested half width.
const MAX_CONTENTION: f64 = 5.0;

/// A launch runs whole if CTAs outside the sample bring more than this share of its L2 reads. A
/// matrix product with 72 to 75 % of such reads was 0.5 to 21 % too fast on parts of three
/// machines; a stencil with 27 to 33 % was within 5 %.
const MAX_SHARED: f64 = 0.6;

/// The result of a launch; times count from the start of its group.
#[derive(Debug)]
pub(super) struct LaunchResult {
    pub(super) counts: KernelCounts,
    pub(super) sample: Option<SampleRecord>,
    /// Why it ran whole after samples.
    pub(super) fallback: Option<FallbackReason>,
}

/// The context of all groups.
#[derive(Clone, Copy)]
pub(super) struct Runner<'a> {
    pub(super) ctx: &'a RunContext<'a>,
    pub(super) app: &'a App,
    pub(super) feed: &'a StoreFeed<'a>,
    pub(super) plan: &'a Plan,
    pub(super) scale: &'a Scale,
    /// The largest half width of an interval, relative to the cycles.
    pub(super) target: f64,
}

impl Runner<'_> {
    /// Runs `launches` whole, on the whole machine.
    pub(super) fn whole(
        &self,
        launches: Range<usize>,
        presumed_l2_hits: PresumedL2Hits,
    ) -> Result<Vec<LaunchResult>, RunError> {
        let feed = RangeFeed::new(self.feed, launches.start);
        let part = Part { pace: 1, presumed_l2_hits };
        let commands = self.feed.commands_of(launches);
        let (machine, memory) = (&self.ctx.resolved.machine, self.ctx.memory);
        let outcome = self.run(&feed, commands, machine, memory, part)?;
        let rows = outcome.kernels.into_iter().map(|counts| LaunchResult {
            counts,
            sample: None,
            fallback: None,
        });
        Ok(rows.collect())
    }

    /// Runs samples of a launch, one set after the other, until the interval is narrow enough;
    /// runs it whole if it never is, or if a part of the machine is not representative.
    pub(super) fn sample(
        &self,
        index: usize,
        sampling: &Sampling,
        outside: OutsideAccesses,
    ) -> Result<Vec<LaunchResult>, RunError> {
        let Sampling { strata, draw, per_sm } = sampling;
        let mut runs: Vec<Sampled> = Vec::new();
        let mut sum = KernelCounts::default();
        let mut fallback = FallbackReason::Wide;
        for (set, presumed_l2_hits) in outside.sets.into_iter().enumerate().take(draw.sets) {
            let chosen = draw.chosen(set, strata.ctas());
            let (counts, run) = self.one(index, chosen, presumed_l2_hits)?;
            if runs.is_empty() {
                (sum.start, sum.first_cta, sum.end) = (counts.start, counts.first_cta, counts.end);
            }
            sum.join(&counts);
            runs.push(run);
            let bias = Bias::of(self.busy(&sum, &runs));
            fallback = fallback_reason(&bias, &sum, &runs, self.target);
            if fallback != FallbackReason::Wide {
                break;
            }
            let mut estimate = Estimate::of(strata, &runs, *per_sm, self.scale.times());
            if estimate.half_width <= self.target {
                estimate.half_width = estimate.half_width.hypot(estimate.tail) + bias.half_width();
                return Ok(vec![self.extrapolated(index, sampling, sum, &estimate, &runs)]);
            }
        }
        let mut whole = self.whole(index..index + 1, outside.before)?;
        for results in &mut whole {
            let cycles = results.counts.end - results.counts.start;
            let sample = self.exact(index, sampling, cycles);
            results.sample = Some(SampleRecord { runs: to_u32(runs.len()), ..sample });
            results.fallback = Some(fallback);
        }
        Ok(whole)
    }

    /// The share of the part's DRAM bandwidth that `runs`, with the counts `sum`, took.
    fn busy(&self, sum: &KernelCounts, runs: &[Sampled]) -> f64 {
        let machine = &self.ctx.resolved.machine;
        let cycles: Cycle = runs.iter().map(|run| run.cycles).sum();
        let bytes = float((sum.dram_reads + sum.dram_writes) * SECTOR_BYTES);
        let peak = self.ctx.memory.peak_gb_per_s * 1000.0 / machine.clocks.core_mhz;
        let share = f64::from(self.scale.machine.dram.channels) / f64::from(machine.dram.channels);
        bytes / (float(cycles.max(1)) * peak * share)
    }

    /// Runs one set of CTAs on the part of the machine.
    fn one(
        &self,
        index: usize,
        chosen: Vec<u64>,
        presumed_l2_hits: PresumedL2Hits,
    ) -> Result<(KernelCounts, Sampled), RunError> {
        let feed = SampleFeed::new(self.feed, index, &chosen);
        let part = Part { pace: self.scale.cta_interval, presumed_l2_hits };
        let (machine, memory) = (&self.scale.machine, &self.scale.memory);
        let outcome = self.run(&feed, feed.commands(), machine, memory, part)?;
        let counts = outcome.kernels.into_iter().next().unwrap_or_default();
        let cycles = counts.end - counts.first_cta;
        Ok((
            counts,
            Sampled { chosen, spans: outcome.spans, cycles, outside_reads: outcome.passed },
        ))
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
        let running = self.ctx.watch.running();
        let mut watch = |issued| running.advance(issued);
        Gpu::new(setup, feed).and_then(|gpu| gpu.run(self.plan, &mut watch)).map_err(failed)
    }

    /// Extrapolates the launch from the sums of its samples.
    fn extrapolated(
        &self,
        index: usize,
        sampling: &Sampling,
        mut counts: KernelCounts,
        estimate: &Estimate,
        runs: &[Sampled],
    ) -> LaunchResult {
        let (warps, threads) = self.feed.instructions(index);
        let factor = float(warps) / float(counts.warp_instructions.max(1));
        counts.extrapolate(factor, to_u64(runs.len()));
        counts.set_instructions(warps, threads);
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
            ..self.exact(index, sampling, 0)
        };
        LaunchResult { counts, sample: Some(sample), fallback: None }
    }

    /// The sample record of a launch that ran whole, in `cycles`.
    fn exact(&self, index: usize, sampling: &Sampling, cycles: Cycle) -> SampleRecord {
        let machine = &self.ctx.resolved.machine;
        let ctas = self.feed.programs()[index].ctas;
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

/// Why `runs`, with the counts `sum`, do not represent the launch; [`FallbackReason::Wide`] if
/// only their interval is too wide.
fn fallback_reason(
    bias: &Bias,
    sum: &KernelCounts,
    runs: &[Sampled],
    target: f64,
) -> FallbackReason {
    let outside_reads: u64 = runs.iter().map(|run| run.outside_reads).sum();
    if bias.contention > MAX_CONTENTION * target {
        FallbackReason::Contention
    } else if float(outside_reads) > MAX_SHARED * float(sum.l2.reads()) {
        FallbackReason::Shared
    } else {
        FallbackReason::Wide
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cycles are positive and below 2^53"
)]
fn rounded(cycles: f64) -> Cycle {
    cycles.max(0.0).round() as Cycle
}

/// Why a launch ran whole although it was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FallbackReason {
    /// The interval stayed too wide.
    Wide,
    /// Contention on the machine's channels does not show on a part's.
    Contention,
    /// CTAs on other SMs bring most of the L2 reads: on a part they hit at once, on the whole
    /// machine all SMs wait for them together.
    Shared,
}

impl FallbackReason {
    /// The reason as text, of the samples.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Wide => "left a wider interval than requested",
            Self::Contention => "do not show the contention on the channels of a busy DRAM",
            Self::Shared => "do not show how long SMs wait for shared data",
        }
    }
}

/// The largest relative deviation of SMs per channel from the machine's.
const MISMATCH: f64 = 0.03;

/// The fewest SMs of a part: an interval needs more than one.
const MIN_SMS: u32 = 2;

/// A machine with fewer SMs, L2 slices and channels, all in proportion: each SM has as large a
/// share of the memory system as in the whole machine.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// The part.
    pub(super) machine: Machine,
    /// Its memory: the address map of the whole, folded onto fewer channels.
    pub(super) memory: Memory,
    /// SMs of the whole machine.
    pub(super) whole_sms: u32,
    /// Cycles between two dispatches of CTAs.
    pub(super) cta_interval: Cycle,
}

impl Scale {
    /// The smallest part of `machine` that keeps its proportions; `None` if there is none of at
    /// most half the SMs.
    pub(super) fn of(machine: &Machine, memory: &Memory) -> Option<Self> {
        let (channels, sms) = (machine.dram.channels, u32::from(machine.dispatch.sms));
        let parts = (1..=channels / 2).filter(|kept| channels.is_multiple_of(*kept));
        let (kept, chosen) = parts
            .map(|kept| (kept, sms_for(machine, kept)))
            .find(|&(kept, chosen)| fits(machine, kept, chosen))?;
        let mut part = machine.clone();
        part.dispatch.sms = u16::try_from(chosen).ok()?;
        part.dram.channels = kept;
        part.l2.slices = machine.l2.slices / channels * kept;
        let map = memory.map.clone().folded(kept);
        // To the nearest whole number of cycles.
        let per_cycle = chosen * machine.dispatch.ctas_per_cycle.max(1);
        part.dispatch.ctas_per_cycle = 1;
        let cta_interval = u64::from((2 * sms + per_cycle) / (2 * per_cycle)).max(1);
        let memory = Memory { map, ..memory.clone() };
        Some(Self { machine: part, memory, whole_sms: sms, cta_interval })
    }

    /// SMs of the whole machine for one of the part.
    pub(super) fn times(&self) -> f64 {
        f64::from(self.whole_sms) / f64::from(self.sms())
    }

    /// SMs of the part.
    pub(super) fn sms(&self) -> u32 {
        u32::from(self.machine.dispatch.sms)
    }
}

/// SMs for `kept` channels: the nearest whole number of ports.
fn sms_for(machine: &Machine, kept: u32) -> u32 {
    let port = machine.interconnect.sms_per_port.max(1);
    let per_channel = machine.dram.channels * port;
    let ports = (u32::from(machine.dispatch.sms) * kept * 2 + per_channel) / (per_channel * 2);
    ports * port
}

fn fits(machine: &Machine, kept: u32, chosen: u32) -> bool {
    let exact =
        f64::from(u32::from(machine.dispatch.sms) * kept) / f64::from(machine.dram.channels);
    let half = chosen * 2 <= u32::from(machine.dispatch.sms);
    chosen >= MIN_SMS && half && (f64::from(chosen) / exact - 1.0).abs() <= MISMATCH
}

#[cfg(test)]
mod tests {
    use super::{Memory, Scale};

    #[test]
    fn a_part_keeps_the_proportions_of_the_whole() {
        let models = crate::models(None).unwrap();
        for (name, sms, channels) in [("v100", 5, 2), ("rtx-2060", 5, 2)] {
            let machine = models.machine(name, &[]).unwrap().machine;
            let memory = Memory::load(&machine, &models).unwrap();
            let part = Scale::of(&machine, &memory).unwrap().machine;
            assert_eq!((u32::from(part.dispatch.sms), part.dram.channels), (sms, channels));
            let per_channel = |m: &gpumodel_sim::config::Machine| m.l2.slices / m.dram.channels;
            assert_eq!(per_channel(&part), per_channel(&machine), "{name}");
        }
    }
}
