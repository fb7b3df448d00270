//! The memory of a machine: its standard and address map, checked against each other.

use gpumodel_core::models::ModelFiles;
use gpumodel_sim::config::{AddressMap, Machine, MemoryStandard, SpecError};

/// The largest ratio of a memory's clock to that of its standard: Accel-Sim's A100 runs HBM2 at
/// 7.1 times, a wrong unit is off by 1000.
const MAX_CLOCK_RATIO: f64 = 64.0;

/// Checks that the memory standard and the mapping of `machine` exist and fit together.
///
/// # Errors
/// [`SpecError`]: what is missing or does not fit.
pub fn check_memory(machine: &Machine, models: &ModelFiles) -> Result<(), SpecError> {
    Memory::load(machine, models).map(drop)
}

/// The memory side of a run.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// The standard with the machine's own parameters.
    pub(super) standard: MemoryStandard,
    /// Maps addresses to channels, banks and rows.
    pub(super) map: AddressMap,
    /// Peak bandwidth of all channels in GB/s.
    pub(super) peak_gb_per_s: f64,
}

impl Memory {
    /// Reads the standard and the mapping that `machine` names.
    pub(super) fn load(machine: &Machine, models: &ModelFiles) -> Result<Self, SpecError> {
        let dram = &machine.dram;
        let standard = MemoryStandard::load(&dram.standard, models, &dram.timing)?;
        let map = AddressMap::of_machine(machine, &standard, models)?;
        if machine.l2.cache.line_bytes < standard.bytes_per_access {
            return Err(SpecError::InconsistentMemory {
                name: standard.name,
                problem: format!(
                    "it moves {} bytes at once, an L2 line of {} holds {}: raise l2.cache.line_bytes",
                    standard.bytes_per_access, machine.name, machine.l2.cache.line_bytes
                ),
            });
        }
        check_sectors(machine, &map)?;
        check_width(machine, &standard)?;
        let standard_mhz = standard.clock_khz as f64 / 1000.0;
        let mhz = machine.clocks.dram_mhz.unwrap_or(standard_mhz);
        check_clock(machine, &standard, (mhz, standard_mhz))?;
        let bytes = standard.peak_bytes_per_clock() * f64::from(dram.channels);
        Ok(Self { standard, map, peak_gb_per_s: bytes * mhz / 1000.0 })
    }
}

/// Checks that each sector of the caches lies in one row.
fn check_sectors(machine: &Machine, map: &AddressMap) -> Result<(), SpecError> {
    let bytes = machine.l2.cache.sector_bytes;
    if map.keeps_whole(u64::from(bytes)) {
        return Ok(());
    }
    Err(SpecError::InconsistentMemory {
        name: machine.dram.mapping.clone(),
        problem: format!(
            "it spreads the {bytes} bytes over channels, slices or rows that {} fetches as one: \
             set l1.cache.sector_bytes and l2.cache.sector_bytes to 32, or name another dram.mapping",
            machine.name
        ),
    })
}

/// Checks the channel width that the machine states: only that of the standard is modelled.
fn check_width(machine: &Machine, standard: &MemoryStandard) -> Result<(), SpecError> {
    let said = f64::from(machine.dram.channel_bytes_per_clock);
    let found = standard.peak_bytes_per_clock();
    if (said - found).abs() < 1e-6 * said {
        return Ok(());
    }
    Err(SpecError::InconsistentMemory {
        name: standard.name.clone(),
        problem: format!(
            "a channel moves {found} bytes per clock, dram.channel_bytes_per_clock of {} says {said}: \
             for another bandwidth name another dram.standard, or set dram.channels or \
             clocks.dram_mhz",
            machine.name
        ),
    })
}

/// Refuses a clock far from that of the standard: its unit is probably wrong.
fn check_clock(
    machine: &Machine,
    standard: &MemoryStandard,
    (mhz, own): (f64, f64),
) -> Result<(), SpecError> {
    if (own / MAX_CLOCK_RATIO..=own * MAX_CLOCK_RATIO).contains(&mhz) {
        return Ok(());
    }
    Err(SpecError::InconsistentMemory {
        name: standard.name.clone(),
        problem: format!(
            "its command clock is {own} MHz, clocks.dram_mhz of {} says {mhz}: expected at most \
             {MAX_CLOCK_RATIO} times more or less; give the command clock in MHz, or name another \
             dram.standard",
            machine.name
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn a_width_that_the_standard_does_not_have_is_refused() {
        let mut machine = crate::models(None).unwrap().machine("ilp-smra", &[]).unwrap().machine;
        assert!(Memory::load(&machine, &crate::models(None).unwrap()).is_ok());
        machine.dram.channel_bytes_per_clock = 64;
        let error = Memory::load(&machine, &crate::models(None).unwrap()).unwrap_err().to_string();
        assert!(error.contains("moves 32 bytes per clock"), "{error}");
        assert!(error.contains("dram.channel_bytes_per_clock of ilp-smra says 64"), "{error}");
    }

    #[test]
    fn a_clock_in_another_unit_is_refused() {
        let mut machine = crate::models(None).unwrap().machine("v100", &[]).unwrap().machine;
        for (mhz, fits) in
            [(877.0, true), (3000.0, true), (8770.0, true), (87_700.0, false), (0.877, false)]
        {
            machine.clocks.dram_mhz = Some(mhz);
            let found = Memory::load(&machine, &crate::models(None).unwrap());
            assert_eq!(found.is_ok(), fits, "{mhz}: {found:?}");
        }
        let error = Memory::load(&machine, &crate::models(None).unwrap()).unwrap_err().to_string();
        assert!(error.contains("is 877 MHz") && error.contains("says 0.877"), "{error}");
        machine.clocks.dram_mhz = None;
        assert!(Memory::load(&machine, &crate::models(None).unwrap()).is_ok());
    }
}
