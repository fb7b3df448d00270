//! Does the energy of a run follow from its counters, and is the power one that
//! a board can have?

use std::path::Path;

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::report::results::{AppRecord, EnergyRecord};

/// Every sample trace alone on `machine`.
fn samples(machine: &str, cache: &Path) -> Vec<AppRecord> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/samples");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let apps = paths.iter().map(AppName::parse).collect();
    analyze(&AnalyzeRequest::new(apps, machine, cache), &Unwatched).unwrap().solo
}

#[test]
fn energy_is_the_sum_of_time_and_events() {
    let cache = tempfile::tempdir().unwrap();
    let machine = gpumodel::models().machine("warped-slicer", &[]).unwrap().machine;
    let table = machine.energy.unwrap();
    let close = |value: f64, expected: f64| (value - expected).abs() <= 1e-9 * expected.abs();
    #[allow(clippy::cast_precision_loss)]
    let pico = |count: u64, each: f64| count as f64 * each * 1e-12;
    for app in samples("warped-slicer", cache.path()) {
        let EnergyRecord { static_joules, l1_joules, dram_joules, .. } = app.energy.unwrap();
        let seconds = pico(app.cycles, 1e6) / machine.clocks.core_mhz;
        assert!(close(static_joules, table.static_watts * seconds), "{}", app.app);
        assert!(close(l1_joules, pico(app.l1.accesses, table.l1_sector_pj)), "{}", app.app);
        let sectors = app.dram.read_sectors + app.dram.write_sectors;
        assert!(close(dram_joules, pico(sectors, table.dram_sector_pj)), "{}", app.app);
        assert!(close(app.energy_joules.unwrap(), app.energy.unwrap().total_joules()));
        let shares = app.utilization.unwrap();
        for share in [shares.alu, shares.sfu, shares.load_store, shares.registers, shares.shared] {
            assert!((0.0..=1.0).contains(&share), "{}: {shares:?}", app.app);
        }
        assert!(shares.alu > 0.0 && shares.load_store > 0.0 && shares.registers > 0.0);
    }
}

#[test]
fn no_board_takes_more_than_it_may() {
    // Board powers that NVIDIA states.
    let boards = [("v100", 300.0), ("a100", 400.0), ("h100", 700.0), ("k40c", 235.0)];
    let cache = tempfile::tempdir().unwrap();
    for (machine, board) in boards {
        let clock = gpumodel::models().machine(machine, &[]).unwrap().machine.clocks.core_mhz;
        for app in samples(machine, cache.path()) {
            #[allow(clippy::cast_precision_loss)]
            let watts = app.energy_joules.unwrap() / (app.cycles as f64 / clock * 1e-6);
            assert!(watts > 0.1 * board && watts < board, "{} on {machine}: {watts} W", app.app);
        }
    }
}

#[test]
fn machines_without_energies_report_none() {
    let cache = tempfile::tempdir().unwrap();
    for app in samples("accelsim-titanx", cache.path()) {
        assert_eq!((app.energy, app.energy_joules), (None, None), "{}", app.app);
    }
}
