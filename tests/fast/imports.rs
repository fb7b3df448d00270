//! Does an imported configuration become the machine that it describes?

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::sim::config::{
    AllocatePolicy, BankConflicts, ImportLabel, Machine, SchedulerPolicy, SetHash, WritePolicy,
    import_accelsim,
};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn label(name: &str, description: &str) -> ImportLabel {
    ImportLabel { name: name.to_owned(), description: description.to_owned() }
}

fn small() -> gpumodel::sim::config::Import {
    let folder = here().join("tests/data/accelsim-small");
    let files = [folder.join("gpgpusim.config"), folder.join("trace.config")];
    import_accelsim(&files, &label("small", "made for the tests")).unwrap()
}

fn resolve(text: &str) -> Machine {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    fs::write(&file, text).unwrap();
    gpumodel::models().machine(file.to_str().unwrap(), &[]).unwrap().machine
}

#[test]
fn every_part_of_the_configuration_arrives() {
    let m = resolve(&small().text);
    assert_eq!((m.name.as_str(), m.reference_name.as_str()), ("small", "small"));
    assert_eq!(
        (m.dispatch.sms, m.interconnect.sms_per_port, m.dispatch.ctas_per_cycle),
        (12, 2, 6)
    );
    assert_eq!((m.clocks.core_mhz, m.clocks.interconnect_mhz), (1000.0, 900.0));
    assert_eq!((m.clocks.l2_mhz, m.clocks.dram_mhz), (800.0, Some(700.5)));
    assert_eq!((m.sm.max_warps, m.sm.policy, m.sm.register_banks), (32, SchedulerPolicy::Gto, 2));
    let unit = |name: &str| {
        let unit = &m.units[name];
        (unit.count, unit.latency_cycles, unit.initiation_cycles, unit.overrides_isa)
    };
    assert_eq!(unit("int"), (4, 3, 2, true));
    assert_eq!(unit("fp32"), (4, 5, 4, true));
    assert_eq!(unit("half"), (4, 5, 2, true), "half the interval of fp32");
    assert_eq!(unit("branch"), (2, 6, 3, true));
    assert_eq!(m.shared.conflicts, BankConflicts::FirstWord);
    assert_eq!(
        (m.l1.cache.sets, m.l1.cache.ways, m.l1.latency_cycles),
        (4, 128, 32),
        "64 KB at most"
    );
    assert_eq!(
        (m.l1.cache.write, m.l1.cache.allocate),
        (WritePolicy::WriteThrough, AllocatePolicy::OnMiss)
    );
    assert_eq!(
        (m.l2.slices, m.l2.cache.hash, m.l2.cache.write),
        (24, SetHash::Ipoly, WritePolicy::WriteBack)
    );
    assert_eq!((m.l2.input_queue, m.l2.dram_queue, m.l2.reply_queue), (64, 32, 8));
    assert_eq!(
        (m.dram.standard.as_str(), m.dram.mapping.as_str()),
        ("accelsim-gddr", "accelsim-rtx2060")
    );
    assert_eq!((m.dram.timing["CCDL"], m.dram.timing["RCDWR"]), (6.0, 15.0));
    assert!(m.quirks.spreads_small_grids && m.quirks.no_refresh);
    assert!(m.quirks.listed_registers_only && m.quirks.serial_kernels);
    assert_eq!(m.quirks.instruction_buffer, 2);
}

#[test]
fn unused_values_are_listed() {
    let import = small();
    let file = here().join("tests/data/accelsim-small/gpgpusim.config");
    let reported = |line: &str| format!("{}:{line}", file.display());
    assert_eq!(import.unknown, ["40 -frobnicate 17"].map(reported));
    let unmodelled = ["38 -gpgpu_dram_scheduler 0: modelled as 1 (FR-FCFS)"];
    assert_eq!(import.unmodelled, unmodelled.map(reported));
    assert_eq!(import.ignored, ["39 -gpgpu_runtime_stat 500"].map(reported));
    assert!(!import.text.contains("accelsim-small/"), "its text is the same wherever it lies");
    assert!(import.text.contains("#   gpgpusim.config:40 -frobnicate 17"), "also in the file");
    assert!(import.text.contains("-gpgpu_n_clusters 6"), "values cite their line");
}

#[test]
fn wrong_values_name_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("gpgpusim.config");
    let good =
        fs::read_to_string(here().join("tests/data/accelsim-small/gpgpusim.config")).unwrap();
    let refused = |from: &str, to: &str| {
        fs::write(&config, good.replace(from, to)).unwrap();
        let error = import_accelsim(std::slice::from_ref(&config), &label("x", "x")).unwrap_err();
        error.to_string()
    };
    let at = |error: &str, line: &str| error.starts_with(&format!("{}:{line}", config.display()));
    let error = refused("-gpgpu_n_clusters 6", "-gpgpu_n_clusters six");
    assert!(at(&error, "2: `-gpgpu_n_clusters`"), "{error}");
    let error = refused("1000.0:900.0", "inf:900.0");
    assert!(error.contains("four clocks in MHz"), "{error}");
    let error = refused("S:64:128:16,", "S:64:128,");
    assert!(at(&error, "26: `-gpgpu_cache:dl2`"), "{error}");
    let error = refused("-gpgpu_shader_cta 16", "-gpgpu_shader_cta 0");
    assert!(at(&error, "10: `-gpgpu_shader_cta`"), "{error}");
    let error = refused("-gpgpu_num_sched_per_core 4", "-gpgpu_num_sched_per_core 0");
    assert!(error.contains("config:") && error.contains("at least one scheduler"), "{error}");
    let error = refused("-gpgpu_scheduler gto", "-gpgpu_scheduler magic");
    assert!(error.contains("expected lrr, gto"), "{error}");
    let error = refused("-frobnicate 17", "frobnicate");
    assert!(at(&error, "40: expected `-key value`"), "{error}");
    let error = refused("nbk=16:CCD=4", "nbk=16:CCD=4:nbk=16");
    assert!(at(&error, "36: `-gpgpu_dram_timing_opt`"), "{error}");
    assert!(error.contains("expected nbk once"), "{error}");
    let error = refused("-gpgpu_n_mem 12", "-gpgpu_n_mem 4294967295");
    assert!(at(&error, "4: `-gpgpu_n_mem`"), "{error}");
    assert!(error.contains("a number whose product is below 4294967296"), "{error}");
    let error = refused("-gpgpu_dram_buswidth 2", "-gpgpu_dram_buswidth 4000000000");
    assert!(at(&error, "31: `-gpgpu_dram_buswidth`"), "{error}");
    let error = refused("0000RRRR", "000XRRRR");
    assert!(at(&error, "35: `-gpgpu_mem_addr_mapping`"), "{error}");
    assert!(error.contains("letters R, B, C, S, D or 0, found `X`"), "{error}");
}

#[test]
fn a_two_level_scheduler_has_its_active_warps() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("gpgpusim.config");
    let good =
        fs::read_to_string(here().join("tests/data/accelsim-small/gpgpusim.config")).unwrap();
    let import = |word: &str| {
        fs::write(&config, good.replace("-gpgpu_scheduler gto", word)).unwrap();
        import_accelsim(std::slice::from_ref(&config), &label("small", "two levels"))
    };
    let m = resolve(&import("-gpgpu_scheduler two_level_active:6:0:1").unwrap().text);
    assert_eq!((m.sm.policy, m.sm.active_warps), (SchedulerPolicy::TwoLevel, 6));
    let error = import("-gpgpu_scheduler two_level_active").unwrap_err().to_string();
    assert!(error.contains("a number as part 2"), "{error}");
}

/// Configuration folder, machine file.
const COMMITTED: &[(&str, &str)] = &[
    ("QV100", "accelsim-qv100"),
    ("QV100_fixed_l1", "accelsim-qv100-fixed-l1"),
    ("RTX3070", "accelsim-rtx3070"),
    ("RTX2060", "accelsim-rtx2060"),
    ("TITANX", "accelsim-titanx"),
    ("A100", "accelsim-a100"),
];

#[test]
fn the_committed_machines_are_what_the_importer_writes() {
    let configs: PathBuf = here().join("../shared/reference/cyclesim/configs");
    if !configs.is_dir() {
        crate::skip::skipped("reference configurations not present");
        return;
    }
    let models = gpumodel::models();
    for (folder, name) in COMMITTED {
        let files = ["gpgpusim.config", "trace.config"].map(|file| configs.join(folder).join(file));
        let description = models.machine(name, &[]).unwrap().machine.description;
        let import = import_accelsim(&files, &label(name, &description)).unwrap();
        assert_eq!(import.text, models.text("gpus", name).unwrap().text, "{name}: import it again");
        assert_eq!(import.unknown, Vec::<String>::new(), "{name}");
    }
}

/// Posted text, machine file.
const POSTED: &[(&str, &str)] = &[
    ("up-SM7_TITANV.config", "accelsim-titanv"),
    ("up-SM75_RTX2060_S.config", "accelsim-rtx2060-s"),
];

#[test]
fn the_machines_of_posted_texts_are_what_the_importer_writes() {
    let posted = here().join("../shared/reference/cyclesim/configs-posted");
    if !posted.is_dir() {
        crate::skip::skipped("posted configurations not present");
        return;
    }
    let models = gpumodel::models();
    for (text, name) in POSTED {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("gpgpusim.config");
        fs::copy(posted.join(text), &config).unwrap();
        let description = models.machine(name, &[]).unwrap().machine.description;
        let import = import_accelsim(&[config], &label(name, &description)).unwrap();
        // The timing of units is from a trace.config, which is not among the posted texts.
        let committed = &models.text("gpus", name).unwrap().text;
        let from_text = committed.lines().skip(1).filter(|line| !line.contains("trace.config"));
        let changed: Vec<&str> =
            from_text.filter(|line| !import.text.lines().any(|own| own == *line)).collect();
        assert_eq!(changed, Vec::<&str>::new(), "{name}: import it again");
    }
}
