//! What a launch takes of SMs and memory, as shares by name.

use gpumodel_core::isa::Unit;
use gpumodel_core::units::{Cycle, SECTOR_BYTES};
use gpumodel_report::results::UnitShares;
use gpumodel_sim::config::{Cache, Machine};
use gpumodel_sim::{Cause, KernelCounts, Need};

/// How much of an SM `ctas` CTAs take that need `need` each and have `threads`.
pub(super) fn residence(machine: &Machine, need: &Need, threads: u64, ctas: u32) -> UnitShares {
    let part = |amount: u32, whole: u32| f64::from(amount) * f64::from(ctas) / f64::from(whole);
    let lanes = f64::from(machine.sm.max_warps) * 32.0;
    [
        ("registers", part(need.registers, machine.sm.registers)),
        ("shared", part(need.shared_bytes, machine.shared.bytes)),
        ("threads", float(threads) * f64::from(ctas) / lanes),
        ("cta_slots", part(1, machine.sm.max_ctas)),
    ]
    .into_iter()
    .filter(|(_, share)| share.is_finite())
    .map(|(name, share)| (name.to_owned(), share))
    .collect()
}

/// How busy units and memory were in the `cycles` of a launch; `peak_gb_per_s` is the
/// DRAM's.
pub(super) fn activity(
    machine: &Machine,
    counts: &KernelCounts,
    cycles: Cycle,
    peak_gb_per_s: f64,
) -> UnitShares {
    let time = float(cycles) * f64::from(machine.dispatch.sms);
    let mut shares = UnitShares::new();
    let mut note = |name: &str, work: f64, capacity: f64| {
        if work > 0.0 && capacity > 0.0 {
            shares.insert(name.to_owned(), (work / capacity).min(1.0));
        }
    };
    for unit in Unit::ALL.into_iter().filter(|&unit| unit != Unit::Memory) {
        let Some(spec) = machine.units.get(unit.name()) else { continue };
        let work = float(counts.by_unit[unit.index()]) * f64::from(spec.initiation_cycles);
        note(unit.name(), work, time * f64::from(spec.count));
    }
    note("shared", float(counts.shared_passes), time);
    // A look-up is of a sector of the cache, which may be a line.
    let at_once = |cache: &Cache| float(u64::from(cache.sector_bytes) / SECTOR_BYTES);
    let banks = f64::from(machine.l1.banks.max(1)) * at_once(&machine.l1.cache);
    note("l1", float(counts.l1.accesses()), time * banks);
    let slices = f64::from(machine.l2.slices * machine.l2.accesses_per_cycle);
    let slices = slices * at_once(&machine.l2.cache);
    let l2_cycles = float(cycles) * machine.clocks.l2_mhz / machine.clocks.core_mhz;
    note("l2", float(counts.l2.accesses()), l2_cycles * slices);
    let bytes = float((counts.dram_reads + counts.dram_writes) * SECTOR_BYTES);
    let seconds = float(cycles) / (machine.clocks.core_mhz * 1e6);
    note("dram", bytes, seconds * peak_gb_per_s * 1e9);
    shares
}

/// Share of the issue slots from the first CTA to the last one's end in which an
/// instruction issued at least. Bursts are fluids: where a slot takes two instructions,
/// none are taken to issue in pairs, so that the true share lies between half of this
/// and this.
pub(super) fn issue_slots(machine: &Machine, counts: &KernelCounts) -> f64 {
    let width = f64::from(machine.sm.issue_width.max(1));
    let issued = counts.stalls[Cause::Issued as usize] * width;
    if counts.slot_cycles > 0.0 { (issued / counts.slot_cycles).clamp(0.0, 1.0) } else { 0.0 }
}

#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
