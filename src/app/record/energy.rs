//! The energy of a run, from the machine's counts.

use gpumodel_core::units::Cycle;
use gpumodel_report::results::EnergyRecord;
use gpumodel_sim::KernelCounts;
use gpumodel_sim::config::Machine;
use gpumodel_sim::dram::ChannelCounters;

use crate::float;

/// Joules in a picojoule.
const PICO: f64 = 1e-12;

/// The energy of a run of `cycles`, by component, for all launches of `counts`; `None` if the
/// machine has no energy table.
///
/// Accesses to shared memory are part of the instructions. A sector crosses the crossbar once,
/// as the reply of a read or the data of a write; page walks start at the L2 and do not cross
/// it. A page that the memory copies itself takes the rows that were opened for it.
pub(crate) fn spent<'a>(
    machine: &Machine,
    counts: impl Iterator<Item = &'a KernelCounts>,
    channels: &[ChannelCounters],
    cycles: Cycle,
) -> Option<EnergyRecord> {
    let table = machine.energy.as_ref()?;
    let mut events = Events::default();
    counts.for_each(|launch| events.add(launch));
    let columns: u64 = channels.iter().map(|channel| channel.migrations).sum();
    events.activates += channels.iter().map(|channel| channel.copy_activates).sum::<u64>();
    let seconds = float(cycles) / (machine.clocks.core_mhz * 1e6);
    let each = |count: u64, picojoules: f64| float(count) * picojoules * PICO;
    Some(EnergyRecord {
        static_joules: table.static_watts * seconds,
        dram_static_joules: table.dram_static_watts * seconds,
        instructions_joules: each(events.instructions, table.thread_instruction_pj),
        l1_joules: each(events.l1, table.l1_sector_pj),
        interconnect_joules: each(events.crossings, table.interconnect_sector_pj),
        l2_joules: each(events.l2, table.l2_sector_pj),
        dram_joules: each(events.dram, table.dram_sector_pj),
        activates_joules: each(events.activates, table.dram_activate_pj),
        migrations_joules: each(columns, table.dram_migrate_pj.unwrap_or(0.0)),
    })
}

/// Counts of events that take energy, summed over launches.
#[derive(Debug, Default)]
struct Events {
    instructions: u64,
    l1: u64,
    crossings: u64,
    l2: u64,
    dram: u64,
    activates: u64,
}

impl Events {
    fn add(&mut self, launch: &KernelCounts) {
        let copies = launch.translation.copies.accesses();
        let asked = launch.l2.accesses()
            + launch.fetch.l2.accesses()
            + copies
            + launch.constant.l2.accesses();
        self.instructions += launch.thread_instructions;
        self.l1 += launch.l1.accesses();
        self.crossings += asked;
        self.l2 += asked + launch.translation.reads.accesses();
        self.dram += launch.dram_reads + launch.dram_writes;
        self.activates += launch.row_misses;
    }
}

#[cfg(test)]
mod tests {
    use gpumodel_sim::config::Energy;
    use gpumodel_sim::dram::ChannelCounters;
    use gpumodel_sim::{CacheCounts, KernelCounts};

    use super::spent;

    fn table() -> Energy {
        Energy {
            static_watts: 30.0,
            dram_static_watts: 10.0,
            thread_instruction_pj: 50.0,
            l1_sector_pj: 5.0,
            interconnect_sector_pj: 7.0,
            l2_sector_pj: 11.0,
            dram_sector_pj: 1000.0,
            dram_activate_pj: 900.0,
            dram_migrate_pj: Some(2000.0),
        }
    }

    #[test]
    fn each_event_costs_its_energy_and_time_costs_power() {
        let mut machine =
            crate::models(None).unwrap().machine("warped-slicer", &[]).unwrap().machine;
        machine.clocks.core_mhz = 1000.0;
        machine.energy = Some(table());
        let channel =
            ChannelCounters { migrations: 4, copy_activates: 1, ..ChannelCounters::default() };
        let reads = |read_hits| CacheCounts { read_hits, write_misses: 1, ..Default::default() };
        let mut launch = KernelCounts {
            thread_instructions: 2_000,
            l1: reads(99),
            l2: reads(49),
            dram_reads: 20,
            dram_writes: 5,
            row_misses: 4,
            ..KernelCounts::default()
        };
        launch.fetch.l2 = reads(9);
        launch.translation.reads = reads(2);
        // Two such launches in a millisecond.
        let energy =
            spent(&machine, [&launch, &launch].into_iter(), &[channel; 2], 1_000_000).unwrap();
        let close = |value: f64, expected: f64| {
            assert!((value / expected - 1.0).abs() < 1e-12, "{value} instead of {expected}");
        };
        close(energy.static_joules, 0.03);
        close(energy.dram_static_joules, 0.01);
        close(energy.instructions_joules, 200e-9);
        close(energy.l1_joules, 1e-9);
        close(energy.interconnect_joules, 2.0 * 60.0 * 7e-12);
        close(energy.l2_joules, 2.0 * 63.0 * 11e-12);
        close(energy.dram_joules, 50e-9);
        close(energy.activates_joules, (8.0 + 2.0) * 900e-12);
        close(energy.migrations_joules, 8.0 * 2000e-12);
        machine.energy = None;
        assert_eq!(spent(&machine, [&launch].into_iter(), &[], 1), None);
    }
}
