//! Turns the machine's counts into rows of a record, with the lives of CTAs and the hot spots that
//! it counted by instruction, as records list them.

pub(crate) mod assumptions;
pub(crate) mod energy;
pub(crate) mod notes;
pub(crate) mod utilization;

use std::collections::BTreeMap;

use gpumodel_core::isa::{Code, Unit};
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32, to_u64, to_usize};
use gpumodel_report::results::{
    AppRecord, CacheCounters, ChannelRecord, ConstantCounters, CtaRecord, DramCounters,
    FastForwardRecord, FetchCounters, HotInstruction, HotRecord, Interval, KernelRecord,
    LinkRecord, RunEvents, SmCounters, TlbCounters, TranslationCounters,
};
use gpumodel_sim::config::Machine;
use gpumodel_sim::dram::ChannelCounters;
use gpumodel_sim::{
    AppOutcome, CacheCounts, Cause, ConstantCounts, FetchCounts, InstructionCounts, KernelCounts,
    LinkUse, Need, Outcome, Passed, Program, Sample, SmCounts, StallStack, TlbCounts,
    TranslationCounts,
};

use crate::{RunContext, ratio};

/// The row of one launch.
pub(crate) fn kernel(
    ctx: &RunContext<'_>,
    program: &Program,
    index: usize,
    counts: &KernelCounts,
) -> KernelRecord {
    let (machine, launch) = (&ctx.resolved.machine, &program.launch);
    let need = Need::of(launch, machine);
    let (fits, limit) = need.fits(machine);
    let cycles = counts.end - counts.start;
    KernelRecord {
        name: launch.name.clone(),
        id: launch.id,
        launch: to_u32(index + 1),
        stream: launch.stream,
        start_cycle: counts.start,
        end_cycle: counts.end,
        grid: launch.grid,
        block: launch.block,
        registers: launch.registers,
        shared_bytes: launch.shared_bytes,
        cycles,
        launch_cycles: counts.first_cta - counts.start,
        warp_instructions: counts.warp_instructions,
        thread_instructions: counts.thread_instructions,
        ipc: ratio(counts.thread_instructions, cycles),
        ctas_per_sm: fits,
        occupancy: f64::from(fits * need.warps) / f64::from(machine.sm.max_warps),
        occupancy_limit: limit.name().to_owned(),
        l1: cache(&counts.l1),
        l2: cache(&counts.l2),
        instruction_cache: machine.fetch.as_ref().map(|_| fetch(&counts.fetch)),
        constant_cache: machine.constant.as_ref().map(|_| constant(&counts.constant)),
        dram: dram(ctx, counts, cycles),
        translation: machine.translation.as_ref().map(|_| translation(&counts.translation)),
        stall_fractions: stalls(counts.stalls, counts.slot_cycles),
        held_slot_fraction: Some(share(counts.held_slots, counts.slot_cycles)),
        issue_slot_utilization: Some(utilization::issue_slots(machine, counts)),
        residence: Some(utilization::residence(machine, &need, launch.block.count(), fits)),
        activity: Some(utilization::activity(machine, counts, cycles, ctx.memory.peak_gb_per_s)),
        instruction_mix: mix(counts),
        unknown_opcode_instructions: counts.unknown_opcodes,
        assumptions: assumptions::counted(counts, machine),
        ..KernelRecord::default()
    }
}

/// The row of an application from its launches' rows.
pub(crate) fn app(
    ctx: &RunContext<'_>,
    name: &str,
    store_hash: String,
    kernels: Vec<KernelRecord>,
    outcome: &Outcome,
) -> AppRecord {
    let cycles = outcome.cycles;
    let mut row = AppRecord { app: name.to_owned(), store_hash, cycles, ..AppRecord::default() };
    for kernel in &kernels {
        row.memory_only |= kernel.memory_only;
        row.warp_instructions += kernel.warp_instructions;
        row.thread_instructions += kernel.thread_instructions;
        row.l1 += kernel.l1;
        row.l2 += kernel.l2;
        row.dram.read_sectors += kernel.dram.read_sectors;
        row.dram.write_sectors += kernel.dram.write_sectors;
        row.dram.row_hits += kernel.dram.row_hits;
        row.dram.row_misses += kernel.dram.row_misses;
        if let Some(counters) = kernel.instruction_cache {
            *row.instruction_cache.get_or_insert_default() += counters;
        }
        if let Some(counters) = kernel.constant_cache {
            *row.constant_cache.get_or_insert_default() += counters;
        }
        if let Some(counters) = kernel.translation {
            *row.translation.get_or_insert_default() += counters;
        }
    }
    row.launch_cycles = launch_only_cycles(&kernels);
    row.ipc = ratio(row.thread_instructions, cycles);
    row.dram.bandwidth_utilization = utilization(ctx, row.dram.bytes(), cycles);
    row.timeline = outcome.timeline.iter().map(interval).collect();
    row.fast_forward = outcome.apps.first().and_then(fast_forward);
    row.link = outcome.apps.first().and_then(|app| link(&ctx.resolved.machine, &app.link));
    fill_parts(&mut row, &ctx.resolved.machine, outcome);
    if !row.memory_only {
        row.energy =
            energy::spent(&ctx.resolved.machine, outcome.kernels.iter(), &outcome.channels, cycles);
        row.energy_joules = row.energy.map(|parts| parts.total_joules());
    }
    row.kernels = kernels;
    row
}

/// Cycles in which a launch was in its launch latency and no CTA of another launch could run.
fn launch_only_cycles(kernels: &[KernelRecord]) -> Cycle {
    let mut edges: Vec<(Cycle, i64, i64)> = Vec::with_capacity(3 * kernels.len());
    for kernel in kernels {
        let first_cta = kernel.start_cycle + kernel.launch_cycles;
        edges.push((kernel.start_cycle, 1, 0));
        edges.push((first_cta, -1, 1));
        edges.push((kernel.end_cycle.max(first_cta), 0, -1));
    }
    edges.sort_unstable();
    let (mut sum, mut since, mut waiting, mut running) = (0, 0, 0, 0);
    for (cycle, wait, run) in edges {
        if waiting > 0 && running == 0 {
            sum += cycle - since;
        }
        since = cycle;
        waiting += wait;
        running += run;
    }
    sum
}

/// `part` over `whole`; 0 where `whole` is 0.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

pub(crate) fn cache(counts: &CacheCounts) -> CacheCounters {
    CacheCounters {
        accesses: counts.accesses(),
        hits: counts.accesses() - counts.misses(),
        merged: counts.read_merges + counts.write_merges,
        reads: counts.reads(),
        read_hits: counts.read_hits + counts.read_merges,
    }
}

pub(crate) fn tlb(counts: &TlbCounts) -> TlbCounters {
    let (accesses, merged) = (counts.accesses(), counts.merges);
    TlbCounters { accesses, hits: counts.hits + merged, merged }
}

fn translation(counts: &TranslationCounts) -> TranslationCounters {
    TranslationCounters {
        l1_tlb: tlb(&counts.l1),
        l2_tlb: tlb(&counts.l2),
        walks: counts.l2.misses,
        walk_reads: counts.reads.accesses(),
        walk_read_hits: counts.reads.accesses() - counts.reads.misses(),
        faults: counts.faults,
    }
}

pub(crate) fn fetch(counts: &FetchCounts) -> FetchCounters {
    FetchCounters {
        inner_accesses: counts.inner_lines,
        inner_misses: counts.inner_misses,
        inner_merged: counts.inner_merges,
        outer_accesses: counts.outer_lines,
        outer_misses: counts.outer_misses,
        l2: cache(&counts.l2),
    }
}

pub(crate) fn constant(counts: &ConstantCounts) -> ConstantCounters {
    ConstantCounters {
        accesses: counts.accesses,
        without_address: counts.without_address,
        passes: counts.passes,
        misses: counts.misses,
        merged: counts.merges,
        outer_misses: counts.outer_misses,
        l2: cache(&counts.l2),
    }
}

pub(crate) fn dram(ctx: &RunContext<'_>, counts: &KernelCounts, cycles: Cycle) -> DramCounters {
    let bytes = (counts.dram_reads + counts.dram_writes) * SECTOR_BYTES;
    DramCounters {
        read_sectors: counts.dram_reads,
        write_sectors: counts.dram_writes,
        row_hits: counts.row_hits,
        row_misses: counts.row_misses,
        bandwidth_utilization: utilization(ctx, bytes, cycles),
    }
}

/// What was passed over; `None` where every cycle was simulated.
pub(crate) fn fast_forward(ended: &AppOutcome) -> Option<FastForwardRecord> {
    let Passed { cycles, stretches, interval } = ended.passed?;
    let whole = ended.cycles().max(1) as f64;
    Some(FastForwardRecord { cycles, stretches, interval: interval / whole })
}

/// Copies and page faults; `None` where they take no time.
pub(crate) fn link(machine: &Machine, used: &LinkUse) -> Option<LinkRecord> {
    machine.link.as_ref().filter(|link| link.is_used())?;
    let LinkUse { copies, bytes, .. } = used;
    Some(LinkRecord {
        host_to_device_copies: copies[0],
        host_to_device_bytes: bytes[0],
        device_to_host_copies: copies[1],
        device_to_host_bytes: bytes[1],
        device_to_device_copies: copies[2],
        device_to_device_bytes: bytes[2],
        copy_cycles: used.copy_cycles,
        page_faults: used.faults,
        page_fault_bytes: used.fault_bytes,
        page_fault_cycles: used.fault_cycles,
    })
}

/// Share of the peak DRAM bandwidth over `cycles`.
fn utilization(ctx: &RunContext<'_>, bytes: u64, cycles: Cycle) -> f64 {
    let per_cycle = ctx.memory.peak_gb_per_s * 1000.0 / ctx.resolved.machine.clocks.core_mhz;
    ratio(bytes, cycles) / per_cycle
}

/// Shares of `slots` slot-cycles; slot-cycles without a cause are idle.
pub(crate) fn stalls(stack: StallStack, slots: f64) -> BTreeMap<String, f64> {
    let stack = without_debt(stack);
    let booked: f64 = stack.iter().sum();
    let whole = slots.max(booked);
    let share = |cause: Cause| {
        let slots = stack[cause as usize];
        let slots = if cause == Cause::Idle { slots + whole - booked } else { slots };
        let alone = f64::from(u8::from(cause == Cause::Idle));
        (cause.name().to_owned(), if whole > 0.0 { slots / whole } else { alone })
    };
    Cause::ALL.into_iter().map(share).collect()
}

/// Schedulers move fractions of cycles between issue and short waits, which may make the latter
/// negative; the other waits of running warps are reduced instead.
fn without_debt(mut stack: StallStack) -> StallStack {
    let mut debt = (-stack[Cause::ShortRaw as usize]).max(0.0);
    stack[Cause::ShortRaw as usize] += debt;
    for cause in [Cause::ExecutionResource, Cause::InstructionBufferEmpty, Cause::Issued] {
        let paid = debt.min(stack[cause as usize].max(0.0));
        stack[cause as usize] -= paid;
        debt -= paid;
    }
    stack
}

fn mix(counts: &KernelCounts) -> BTreeMap<String, u64> {
    let counted =
        Unit::ALL.into_iter().map(|unit| (unit.name().to_owned(), counts.by_unit[unit.index()]));
    counted.filter(|&(_, count)| count > 0).collect()
}

pub(crate) fn interval(sample: &Sample) -> Interval {
    let cycles = (sample.end - sample.start).max(1);
    Interval {
        start_cycle: sample.start,
        end_cycle: sample.end,
        warp_instructions: sample.warp_instructions,
        dram_sectors: sample.dram_sectors,
        resident_ctas: sample.cta_cycles as f64 / cycles as f64,
    }
}

/// Fills the rows of SMs, L2 slices and channels.
fn fill_parts(row: &mut AppRecord, machine: &Machine, outcome: &Outcome) {
    let slots = outcome.cycles as f64 * f64::from(machine.sm.schedulers);
    row.by_sm = outcome.sms.iter().map(|counts| sm(machine, counts, slots)).collect();
    row.by_slice = outcome.slices.iter().map(cache).collect();
    row.by_channel = outcome.channels.iter().map(channel).collect();
    row.l1_tlb_by_sm = outcome.tlbs.iter().map(tlb).collect();
}

fn sm(machine: &Machine, counts: &SmCounts, slots: f64) -> SmCounters {
    SmCounters {
        ctas: counts.ctas,
        warp_instructions: counts.warp_instructions,
        l1: cache(&counts.l1),
        instruction_cache: machine.fetch.as_ref().map(|_| fetch(&counts.fetch)),
        constant_cache: machine.constant.as_ref().map(|_| constant(&counts.constant)),
        stall_fractions: stalls(counts.stalls, slots),
    }
}

fn channel(counters: &ChannelCounters) -> ChannelRecord {
    ChannelRecord {
        reads: counters.reads,
        writes: counters.writes,
        absorbed: counters.absorbed,
        row_hits: counters.row_hits,
        row_misses: counters.row_misses,
        row_conflicts: counters.row_conflicts,
        refreshes: counters.refreshes,
        migrations: counters.migrations,
    }
}

/// The CTAs of a run whose machine kept them; `of` gives a launch's application and its place
/// there.
pub(crate) fn ctas(outcome: &Outcome, of: impl Fn(usize) -> (usize, usize)) -> RunEvents {
    let record = |span: &gpumodel_sim::CtaSpan| {
        let (app, launch) = of(to_usize(span.kernel));
        CtaRecord {
            start_cycle: span.start,
            end_cycle: span.end,
            sm: u32::from(span.sm),
            app_index: to_u32(app),
            launch: to_u32(launch + 1),
            ordinal: span.ordinal,
        }
    };
    let mut ctas: Vec<CtaRecord> = outcome.spans.iter().map(record).collect();
    ctas.sort_unstable();
    let ctas_left_out = to_u64(ctas.len().saturating_sub(RunEvents::CTAS));
    ctas.truncate(RunEvents::CTAS);
    RunEvents { ctas, ctas_left_out, ..RunEvents::default() }
}

/// The `most` instructions of each launch by each measure; nothing where they were not counted.
pub(crate) fn hot<'a>(
    most: usize,
    programs: &'a [Program],
    outcome: &'a Outcome,
) -> impl Iterator<Item = HotRecord> {
    let launches = programs.iter().zip(&outcome.hot).zip(&outcome.kernels);
    launches.map(move |((program, rows), counts)| {
        let rows = rows.iter().enumerate();
        let counted = rows.filter(|(_, row)| **row != InstructionCounts::default());
        let rows = counted.map(|(place, row)| instruction(&program.code, place, row));
        HotRecord::of(rows.collect(), most, stalled(&without_debt(counts.stalls)))
    })
}

/// Slot-cycles of a stack that are stalls.
fn stalled(stack: &StallStack) -> f64 {
    causes().map(|cause| stack[cause as usize]).sum()
}

/// The causes of stalls.
fn causes() -> impl Iterator<Item = Cause> {
    Cause::ALL.into_iter().filter(|cause| !matches!(cause, Cause::Issued | Cause::Idle))
}

fn instruction(code: &Code, place: usize, counts: &InstructionCounts) -> HotInstruction {
    let instruction = &code.instructions[place];
    let stack = without_debt(counts.stalls);
    let stalls: BTreeMap<String, f64> = causes()
        .map(|cause| (cause.name().to_owned(), stack[cause as usize]))
        .filter(|&(_, slots)| slots > 0.0)
        .collect();
    HotInstruction {
        pc: instruction.pc,
        opcode: code.opcodes[to_usize(instruction.opcode)].clone(),
        line: instruction.line,
        stall_slot_cycles: stalls.values().sum(),
        stalls,
        requests: counts.requests,
        sectors: counts.sectors,
        l1_accesses: counts.l1.accesses(),
        l1_misses: counts.l1.misses(),
        bank_conflict_cycles: counts.bank_conflict_cycles,
    }
}

#[cfg(test)]
mod tests {
    use gpumodel_report::results::KernelRecord;
    use gpumodel_sim::KernelCounts;

    use super::{Cause, launch_only_cycles, stalls};

    #[test]
    fn no_cause_is_negative_and_the_sum_stays() {
        let mut counts = KernelCounts { slot_cycles: 20.0, ..KernelCounts::default() };
        counts.stalls[Cause::Issued as usize] = 6.0;
        counts.stalls[Cause::ExecutionResource as usize] = 5.0;
        counts.stalls[Cause::ShortRaw as usize] = -1.0;
        let shares = stalls(counts.stalls, counts.slot_cycles);
        assert!(shares.values().all(|&share| share >= 0.0), "{shares:?}");
        assert!((shares.values().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?}");
    }

    fn kernel(start_cycle: u64, launch_cycles: u64, end_cycle: u64) -> KernelRecord {
        KernelRecord { start_cycle, launch_cycles, end_cycle, ..KernelRecord::default() }
    }

    #[test]
    fn launch_latency_behind_a_running_kernel_is_not_counted() {
        let serial = [kernel(0, 100, 300), kernel(300, 100, 500)];
        assert_eq!(launch_only_cycles(&serial), 200);
        let side_by_side = [kernel(0, 100, 300), kernel(0, 100, 400)];
        assert_eq!(launch_only_cycles(&side_by_side), 100);
        let hidden = [kernel(0, 100, 300), kernel(150, 100, 500)];
        assert_eq!(launch_only_cycles(&hidden), 100);
    }
}
