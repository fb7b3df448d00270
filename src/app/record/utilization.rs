//! How busy the units and memories of the SMs were, from the machine's counts.

use gpumodel_core::isa::Unit;
use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u64};
use gpumodel_report::results::{UnitShares, UtilizationRecord};
use gpumodel_sim::config::{Cache, Machine};
use gpumodel_sim::{Cause, KernelCounts, Need, Outcome, Program, Sample};

use crate::float;

/// Resources of resident CTAs, summed over SMs and cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct HeldResources {
    /// Registers times cycles.
    pub(crate) registers: f64,
    /// Bytes of shared memory times cycles.
    pub(crate) shared_bytes: f64,
}

impl HeldResources {
    /// Adds `cta_cycles` of CTAs that need `need` each.
    pub(crate) fn add(&mut self, need: &Need, cta_cycles: f64) {
        self.registers += f64::from(need.registers) * cta_cycles;
        self.shared_bytes += f64::from(need.shared_bytes) * cta_cycles;
    }
}

/// The utilization over a run of `cycles`, for all launches of `counts`.
///
/// A warp instruction occupies its pipe for the initiation interval of the unit. The ALU's
/// utilization is that of the busiest of the integer, single and half precision pipes, since
/// some machines run all three on one. The load/store path is busy with issue or with the
/// sectors that the L1 looks up, whichever takes longer; back-pressure does not count.
pub(crate) fn busy<'a>(
    machine: &Machine,
    counts: impl Iterator<Item = &'a KernelCounts>,
    held: HeldResources,
    cycles: Cycle,
) -> UtilizationRecord {
    let mut by_unit = [0; Unit::ALL.len()];
    let mut sectors = 0;
    for launch in counts {
        by_unit.iter_mut().zip(launch.by_unit).for_each(|(sum, count)| *sum += count);
        sectors += launch.l1.accesses();
    }
    let time = f64::from(machine.dispatch.sms) * float(cycles);
    let part = |work: f64, capacity: f64| {
        if time > 0.0 && capacity > 0.0 { (work / (time * capacity)).min(1.0) } else { 0.0 }
    };
    let pipe = |unit: Unit| {
        machine.units.get(unit.name()).map_or(0.0, |spec| {
            let work = float(by_unit[unit.index()]) * f64::from(spec.initiation_cycles);
            part(work, f64::from(spec.count))
        })
    };
    // A bank looks up a sector of the cache, which may be a line.
    let at_once = u64::from(machine.l1.cache.sector_bytes) / SECTOR_BYTES;
    let looked_up = part(float(sectors), f64::from(machine.l1.banks) * float(at_once));
    UtilizationRecord {
        alu: [Unit::Int, Unit::Fp32, Unit::Half].into_iter().map(pipe).fold(0.0, f64::max),
        sfu: pipe(Unit::Sfu),
        load_store: pipe(Unit::Memory).max(looked_up),
        registers: part(held.registers, f64::from(machine.sm.registers)),
        shared: part(held.shared_bytes, f64::from(machine.shared.bytes)),
    }
}

/// The utilization of a solo run. Resident CTAs are divided between concurrent launches by the
/// CTAs that each started per cycle.
pub(crate) fn solo(
    machine: &Machine,
    programs: &[Program],
    outcome: &Outcome,
) -> UtilizationRecord {
    let needs: Vec<Need> = programs.iter().map(|p| Need::of(&p.launch, machine)).collect();
    let mut held = HeldResources::default();
    for sample in &outcome.timeline {
        let weights: Vec<f64> = outcome.kernels.iter().map(|k| weight(k, sample)).collect();
        let whole: f64 = weights.iter().sum();
        for (need, weight) in needs.iter().zip(weights).filter(|(_, weight)| *weight > 0.0) {
            held.add(need, float(sample.cta_cycles) * weight / whole);
        }
    }
    busy(machine, outcome.kernels.iter(), held, outcome.cycles)
}

/// CTAs that a launch started within an interval, at an even rate.
fn weight(launch: &KernelCounts, sample: &Sample) -> f64 {
    let overlap = launch.end.min(sample.end).saturating_sub(launch.first_cta.max(sample.start));
    let length = launch.end.saturating_sub(launch.first_cta).max(1);
    float(overlap) * float(launch.ctas_started) / float(to_u64(length))
}

/// The shares of an SM that `ctas` CTAs take, each with `need` and `threads`.
pub(crate) fn residence(machine: &Machine, need: &Need, threads: u64, ctas: u32) -> UnitShares {
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

/// The utilization of units and memory in the `cycles` of a launch; `peak_gb_per_s` is that of
/// the DRAM.
pub(crate) fn activity(
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
        let work = float(counts.unit_cycles[unit.index()]);
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

/// Share of the issue slots, from the first CTA to the end of the last, in which an instruction
/// issued. If a slot takes two instructions, this assumes that none issue in pairs: the true
/// share is between half of this and this.
pub(crate) fn issue_slots(machine: &Machine, counts: &KernelCounts) -> f64 {
    let width = f64::from(machine.sm.issue_width.max(1));
    let issued = counts.stalls[Cause::Issued as usize] * width;
    if counts.slot_cycles > 0.0 { (issued / counts.slot_cycles).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use gpumodel_core::isa::Unit;
    use gpumodel_sim::{CacheCounts, KernelCounts, Need, Sample};

    use super::{HeldResources, busy, weight};

    #[test]
    fn shares_are_work_over_capacity() {
        let mut machine =
            crate::models(None).unwrap().machine("warped-slicer-1400", &[]).unwrap().machine;
        machine.dispatch.sms = 2;
        let mut pipe = |name: &str, count, initiation| {
            let unit = machine.units.get_mut(name).unwrap();
            (unit.count, unit.initiation_cycles) = (count, initiation);
        };
        pipe("fp32", 2, 1);
        pipe("int", 2, 1);
        pipe("sfu", 1, 8);
        pipe("memory", 1, 1);
        (machine.l1.banks, machine.sm.registers, machine.shared.bytes) = (4, 1000, 500);
        let l1 = CacheCounts { read_hits: 1200, ..CacheCounts::default() };
        let mut launch = KernelCounts { l1, ..KernelCounts::default() };
        launch.by_unit[Unit::Fp32.index()] = 300;
        launch.by_unit[Unit::Int.index()] = 100;
        launch.by_unit[Unit::Sfu.index()] = 10;
        launch.by_unit[Unit::Memory.index()] = 20;
        let mut held = HeldResources::default();
        let need = Need { registers: 250, shared_bytes: 100, ..Need::default() };
        held.add(&need, 2.0 * 2.0 * 500.0); // two CTAs on two SMs, half of the time
        let shares = busy(&machine, [&launch, &launch].into_iter(), held, 1000);
        // 600 of 4000 fp32 slots; 160 of 2000 SFU cycles; 2400 of 8000 sectors.
        assert_eq!((shares.alu, shares.sfu, shares.load_store), (0.15, 0.08, 0.3));
        assert_eq!((shares.registers, shares.shared), (0.25, 0.2));
        let nothing = busy(&machine, std::iter::empty(), HeldResources::default(), 0);
        assert_eq!((nothing.alu, nothing.registers), (0.0, 0.0));
    }

    #[test]
    fn an_interval_belongs_to_the_launches_that_run_in_it() {
        let launch = |first_cta, end, ctas_started| KernelCounts {
            first_cta,
            end,
            ctas_started,
            ..KernelCounts::default()
        };
        let sample = Sample { start: 100, end: 200, ..Sample::default() };
        assert_eq!(weight(&launch(0, 100, 8), &sample), 0.0);
        assert_eq!(weight(&launch(150, 250, 8), &sample), 4.0);
        assert_eq!(weight(&launch(0, 400, 8), &sample), 2.0);
    }
}
