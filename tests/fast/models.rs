//! Is every model file right?

use gpumodel::core::toml::SourceKind;
use gpumodel::sim::config::IsaTable;

#[test]
fn every_machine_loads_and_passes_its_checks() {
    let models = gpumodel::models();
    let wrong: Vec<String> = models
        .machine_names()
        .into_iter()
        .filter_map(|name| models.machine(name, &[]).err())
        .map(|error| error.to_string())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_opcode_table_loads() {
    let models = gpumodel::models();
    for name in models.names("isa") {
        let table = IsaTable::load(&models, name).unwrap_or_else(|error| panic!("{error}"));
        assert!(table.opcodes().count() > 80, "{name}");
    }
}

/// Keys that may stand without a source: words that describe, and documented
/// defaults (everything off).
fn needs_no_source(key: &str, value: &serde_json::Value) -> bool {
    let describing = ["name", "reference_name", "description", "isa"].contains(&key);
    let off = value.is_null() || *value == false || *value == 0;
    let optional = key.starts_with("quirks.")
        || key.ends_with(".overrides_isa")
        || ["translation", "energy"].contains(&key);
    describing || (optional && off)
}

#[test]
fn every_number_has_a_source() {
    let models = gpumodel::models();
    for name in models.machine_names() {
        for row in models.machine(name, &[]).unwrap().listing() {
            let sourced =
                row.source.as_ref().is_some_and(|s| s.text.len() > 3 && s.kind != SourceKind::Set);
            assert!(sourced || needs_no_source(&row.key, &row.value), "{name}: {}", row.key);
        }
    }
}

/// How kernels run together follows from the model: words of a source that show that a
/// number was fitted to it.
const OF_SEVERAL: [&str; 8] =
    ["together", "beside", "pair", "pairs", "queue", "queues", "corun", "coruns"];

#[test]
fn nothing_is_fitted_to_kernels_that_run_together() {
    let models = gpumodel::models();
    let mut fitted = 0;
    for name in models.machine_names() {
        for row in models.machine(name, &[]).unwrap().listing() {
            let Some(source) = row.source.filter(|source| source.kind == SourceKind::Fitted) else {
                continue;
            };
            fitted += 1;
            let text = source.text.to_lowercase().replace("co-run", "corun");
            let words = text.split(|c: char| !c.is_alphanumeric());
            let bad: Vec<&str> = words.filter(|word| OF_SEVERAL.contains(word)).collect();
            assert!(bad.is_empty(), "{name}: {} speaks of {bad:?}: {}", row.key, source.text);
        }
    }
    assert!(fitted > 10, "{fitted} fitted numbers");
}

/// Machine, GB/s, MiB of L2, FP32 lanes, as the makers and papers print them.
const PRINTED: &[(&str, f64, f64, u32)] = &[
    ("v100", 900.0, 6.0, 5120),
    ("gv100", 870.0, 6.0, 5120),
    ("a100", 1555.0, 40.0, 6912),
    ("h100", 3352.0, 50.0, 16896),
    ("h100-pcie", 2039.0, 50.0, 14592),
    ("rtx-2060", 336.0, 3.0, 1920),
    ("rtx-3070", 448.0, 4.0, 5888),
    ("gtx-1080", 320.0, 2.0, 2560),
    ("titan-xp", 547.7, 3.0, 3840),
    ("k40c", 288.0, 1.5, 2880),
    ("warped-slicer", 177.4, 0.75, 1024),
    ("ilp-smra", 177.4, 0.75, 3840),
    ("ugpu", 900.0, 6.0, 5120),
    ("v100-pcie", 900.0, 6.0, 5120),
    ("a100-80gb", 2039.0, 40.0, 6912),
    ("h200", 4917.0, 60.0, 16896),
    ("a40", 696.0, 6.0, 10752),
    ("l40", 864.0, 96.0, 18176),
    ("l4", 300.0, 48.0, 7424),
    ("t4", 320.0, 4.0, 2560),
    ("rtx-4090", 1008.0, 72.0, 16384),
    ("rtx-2070", 448.0, 4.0, 2304),
    ("accelsim-qv100", 870.4, 6.0, 5120),
    ("accelsim-rtx3070", 448.1, 4.0, 5888),
    ("accelsim-rtx2060", 336.0, 3.0, 1920),
    ("accelsim-titanv", 652.8, 4.5, 5120),
    ("accelsim-rtx2060-s", 448.0, 4.0, 2176),
];

#[test]
fn machines_meet_the_printed_figures() {
    let models = gpumodel::models();
    for &(name, gb_per_s, l2_mib, lanes) in PRINTED {
        let machine = models.machine(name, &[]).unwrap().machine;
        let peak = machine.peak_gb_per_s().unwrap();
        assert!((peak / gb_per_s - 1.0).abs() < 0.005, "{name}: {peak} GB/s");
        let l2 = &machine.l2.cache;
        let bytes = f64::from(l2.sets * l2.ways * l2.line_bytes) * f64::from(machine.l2.slices);
        assert_eq!(bytes / f64::from(1 << 20), l2_mib, "{name}");
        let fp32 = &machine.units["fp32"];
        let found = fp32.count * 32 / fp32.initiation_cycles * u32::from(machine.dispatch.sms);
        assert_eq!(found, lanes, "{name}");
    }
}

#[test]
fn the_load_path_of_volta_adds_up_to_the_measured_latencies() {
    let m = gpumodel::models().machine("v100", &[]).unwrap().machine;
    // Each way a flit of the crossbar, and the cycle of the slice's look-up.
    let crossing = m.interconnect.latency_cycles + 1;
    let l2_hit = m.l1.latency_cycles + 2 * crossing + m.l2.latency_cycles + 1;
    assert_eq!((m.l1.latency_cycles, l2_hit), (29, 215), "te42kyfo/gpu-benches: 30.0, 215");
}

#[test]
fn an_override_changes_the_machine_its_source_and_its_hash() {
    let models = gpumodel::models();
    let plain = models.machine("v100", &[]).unwrap();
    let set = |key: &str, value: &str| {
        models.machine("v100", &[(key.to_owned(), value.to_owned())]).unwrap()
    };
    let changed = set("l1.latency_cycles", "30");
    assert_eq!(changed.machine.l1.latency_cycles, 30);
    assert_eq!(changed.provenance["l1.latency_cycles"].kind, SourceKind::Set);
    assert_ne!(changed.hash, plain.hash);
    assert_eq!(changed.overrides["l1.latency_cycles"], "30");
    assert_eq!(models.machine("v100", &[]).unwrap().hash, plain.hash);
    assert_eq!(set("l1.latency_cycles", "29").hash, plain.hash, "the same hardware");
    assert!(set("quirks.no_refresh", "true").machine.quirks.no_refresh);
    assert_eq!(set("dram.timing.tRP", "20").machine.dram.timing["tRP"], 20.0);
    assert_eq!(set("clocks.core_mhz", "1000").machine.clocks.core_mhz, 1000.0);
    assert_eq!(set("l1.carve_outs_bytes", "[0, 98304]").machine.l1.carve_outs_bytes, [0, 98304]);
    assert_eq!(set("description", "7").hash, plain.hash, "words do not count");
}

#[test]
fn memory_named_by_files_counts_by_what_is_in_them() {
    let (models, folder) = (gpumodel::models(), tempfile::tempdir().unwrap());
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let hash = |key: &str, path: &str| {
        let set = [(key.to_owned(), path.to_owned())];
        models.machine("warped-slicer-1400", &set).unwrap().hash
    };
    let read = |name: &str| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/memory");
        std::fs::read_to_string(root.join(name)).unwrap()
    };
    for (key, text, old, new) in [
        ("dram.standard", read("warped-slicer-gddr5.toml"), "value = 28,", "value = 29,"),
        ("dram.mapping", read("mappings/warped-slicer.toml"), "value = 8,", "value = 9,"),
    ] {
        let changed = text.replacen(old, new, 1);
        assert_ne!(changed, text, "{key}");
        let path = write("own.toml", &text);
        let (first, again) = (hash(key, &path), hash(key, &path));
        assert_eq!(first, again, "{key}");
        write("own.toml", &changed);
        assert_ne!(hash(key, &path), first, "{key}");
        // The same through a file that builds on it.
        let upper = write("upper.toml", &format!("base = '{path}'\n"));
        let above = hash(key, &upper);
        write("own.toml", &text);
        assert_ne!(hash(key, &upper), above, "{key}: the base");
    }
}

#[test]
fn a_description_that_inherits_keeps_its_own_name() {
    let models = gpumodel::models();
    let gv100 = models.machine("gv100", &[]).unwrap().machine;
    assert_eq!((gv100.name.as_str(), gv100.reference_name.as_str()), ("gv100", "gv100"));
    assert_eq!(gv100.sm, models.machine("v100", &[]).unwrap().machine.sm);
}
