//! Is every memory file right: does it load, describe the device that it names, and fit the
//! machines?

use std::collections::BTreeMap;

use gpumodel::sim::config::{
    AddressMap, Command, Level, Machine, Mapping, MemoryStandard, SpecError,
};

fn load(name: &str) -> MemoryStandard {
    MemoryStandard::load(name, &gpumodel::models(), &BTreeMap::new())
        .unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// GB/s of `channels` channels.
fn peak(name: &str, channels: u32) -> f64 {
    let standard = load(name);
    standard.peak_bytes_per_clock() * standard.clock_khz as f64 * f64::from(channels) / 1e6
}

#[test]
fn every_standard_loads() {
    let models = gpumodel::models();
    let names: Vec<&str> = MemoryStandard::names(&models).collect();
    assert!(names.len() >= 20);
    for name in names {
        let standard = load(name);
        assert!(!standard.description.is_empty(), "{name} says what it is");
        let row = standard.columns * standard.bytes_per_access;
        // Two devices of a 2 KB page are one bank of a GTX 480's controller.
        assert!([1024, 2048, 4096].contains(&row), "{name}: a page of {row} bytes");
    }
}

#[test]
fn every_bank_waits_for_its_row_cycle() {
    for name in MemoryStandard::names(&gpumodel::models()) {
        let gaps = load(name).gaps;
        let wait = |from, to| {
            let found =
                gaps.iter().find(|g| g.level == Level::Bank && (g.from, g.to) == (from, to));
            found.map_or(0, |gap| gap.wait)
        };
        let (act, pre) = (Command::Activate, Command::Precharge);
        // Nanoseconds are rounded up to clocks one by one: the sum may be one more.
        assert!(wait(act, act) + 1 >= wait(act, pre) + wait(pre, act), "{name}: tRC");
    }
}

#[test]
fn peaks_are_those_of_the_parts() {
    for (name, channels, expected) in [
        ("ugpu-hbm", 32, 450.6),
        ("ugpu-hbm-900", 32, 901.1),
        ("v100-hbm2", 32, 898.0),
        ("gv100-hbm2", 32, 870.0),
        ("a100-hbm2", 40, 1555.2),
        ("h100-hbm3", 80, 3352.3),
        ("h100-hbm2e", 40, 2039.0),
        ("rtx2060-gddr6", 12, 336.0),
        ("rtx3070-gddr6", 16, 448.0),
        ("gtx1080-gddr5x", 8, 320.3),
        ("titan-xp-gddr5x", 12, 547.6),
        ("k40c-gddr5", 12, 288.4),
        ("accelsim-hbm", 32, 870.4),
        ("accelsim-gddr", 16, 448.1),
        ("hbm3e", 16, 1024.0),
    ] {
        let found = peak(name, channels);
        assert!((found - expected).abs() < 0.001 * expected, "{name}: {found} GB/s");
    }
}

#[test]
fn nine_hundred_gigabytes_take_thirty_two_channels() {
    let found = peak("ugpu-hbm-900", 32);
    assert!((found - 900.0).abs() < 0.005 * 900.0, "{found} GB/s");
}

#[test]
fn imported_timing_replaces_parameters_and_what_follows_from_them() {
    let timing = [("nbk", 32.0), ("CL", 20.0), ("bus_bytes", 4.0), ("burst_length", 8.0)];
    let timing = timing.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
    let standard = MemoryStandard::load("accelsim-gddr", &gpumodel::models(), &timing).unwrap();
    assert_eq!((standard.bank_groups, standard.banks_per_group), (4, 8));
    assert_eq!((standard.bytes_per_access, standard.burst_clocks), (32, 2));
    assert_eq!(standard.read_clocks, 22);
}

#[test]
fn a_mistyped_override_is_named() {
    let timing = BTreeMap::from([("tRCDD".to_owned(), 1.0)]);
    let error = MemoryStandard::load("ugpu-hbm", &gpumodel::models(), &timing).unwrap_err();
    assert!(error.to_string().contains("did you mean `tRCDRD`"), "{error}");
    let error =
        MemoryStandard::load("ugpu-hbn", &gpumodel::models(), &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("did you mean `ugpu-hbm`"), "{error}");
}

#[test]
fn a_number_without_source_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    let refuse = |text: &str, words: &str| {
        std::fs::write(&path, text).unwrap();
        let name = path.display().to_string();
        let error = MemoryStandard::load(&name, &gpumodel::models(), &BTreeMap::new())
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
        assert!(error.contains("bad.toml"), "{error}");
    };
    let base = "base = \"hbm\"\n[timing]\n";
    refuse(&format!("{base}tCCDS = 1\n"), "must say where it is from");
    refuse(&format!("{base}tCCDS = {{ value = 1 }}\n"), "0 sources");
    refuse(&format!("{base}tCCDX = {{ value = 1, assumed = \"x\" }}\n"), "did you mean `tCCD");
    refuse(&format!("{base}tCCDS = {{ value = 1.5, assumed = \"x\" }}\n"), "bad.toml:3");
    refuse("base = \"hbm\"\n[[gap]]\nlevel = \"bank\"\n", "bad.toml:2");
    refuse("base = \"hbm\"\n[organisation]\nrow = 1\n", "bad.toml:3");
    // An expression that is inherited, with a number that is not.
    let odd = "bytes_per_access = { value = 63, assumed = \"x\" }";
    refuse(&format!("base = \"ugpu-hbm\"\n[organisation]\n{odd}\n"), "128 / 63 is no whole");
    // A sentence that is inherited, of a number that is not given.
    let hbm = include_str!("../../../models/memory/hbm.toml");
    let without = hbm.lines().filter(|line| !line.starts_with("tCCDS"));
    refuse(&without.collect::<Vec<_>>().join("\n"), "unknown key `tCCDS`");
    refuse("base = \"hbm\n", "not TOML");
    refuse("base = \"nowhere/hbm.toml\"\n", "bad.toml: `base`: expected a file that can be read");
}

#[test]
fn more_bytes_than_addresses_are_refused() {
    let large = ["rows", "columns"].map(|key| (key.to_owned(), 1e9)).into_iter().collect();
    let error = MemoryStandard::load("hbm2", &gpumodel::models(), &large).unwrap_err().to_string();
    assert!(error.contains("hbm2 is not a consistent memory: a channel holds at most"), "{error}");
}

#[test]
fn every_mapping_loads() {
    for name in Mapping::names(&gpumodel::models()) {
        let mapping =
            Mapping::load(name, &gpumodel::models()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(!mapping.description.is_empty());
    }
}

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
