//! Does every machine's memory fit the machine?

use gpumodel::sim::config::{AddressMap, Machine, MemoryStandard, SpecError};

/// The inconsistencies, in words.
fn unfit(machine: &Machine) -> Result<Option<String>, SpecError> {
    let dram = &machine.dram;
    let standard = MemoryStandard::load(&dram.standard, &gpumodel::models(), &dram.timing)?;
    AddressMap::of_machine(machine, &standard, &gpumodel::models())?;
    let (said, found) = (f64::from(dram.channel_bytes_per_clock), standard.peak_bytes_per_clock());
    let differs = (said - found).abs() > 1e-9;
    Ok(differs.then(|| format!("{said} B per clock, {} has {found}", dram.standard)))
}

#[test]
fn every_machine_has_its_stated_memory() {
    let models = gpumodel::models();
    let mut wrong = Vec::new();
    for name in models.machine_names() {
        match unfit(&models.machine(name, &[]).unwrap().machine) {
            Ok(None) => {}
            Ok(Some(problem)) => wrong.push(format!("{name}: {problem}")),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
