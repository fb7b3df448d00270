//! Do the rows of SMs, slices and channels add up to an application's totals?

use std::path::Path;

use assert_cmd::Command;
use gpumodel::core::units::SECTOR_BYTES;
use gpumodel::sim::config::MemoryStandard;
use serde_json::Value;

const MACHINES: [&str; 3] = ["accelsim-qv100", "v100", "ugpu"];

/// Counters of a cache, as the record names them; `merged` is left out: page
/// walks do not say it.
const CACHE: [&str; 4] = ["accesses", "hits", "reads", "read_hits"];

/// The applications of a record of the samples.
fn samples(machine: &str, set: &[&str]) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.env("GPUMODEL_CACHE", folder.path()).arg("analyze");
    for entry in std::fs::read_dir(root.join("traces/samples")).unwrap() {
        command.arg(entry.unwrap().path());
    }
    set.iter().for_each(|word| _ = command.args(["--set", word]));
    let output = command.args(["--machine", machine, "--json", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let apps = record["solo"].as_array().unwrap().clone();
    assert!(apps.len() >= 9, "{} samples", apps.len());
    apps
}

/// A counter; 0 where the machine lacks the part that counts.
fn count(row: &Value, path: &str) -> u64 {
    row.pointer(path).map_or(0, |value| value.as_u64().unwrap())
}

/// A counter summed over the rows of a list.
fn sum(app: &Value, list: &str, path: &str) -> u64 {
    app[list].as_array().unwrap().iter().map(|row| count(row, path)).sum()
}

/// How many rows each list must have.
fn assert_rows(app: &Value, machine: &str) {
    let machine = gpumodel::models().machine(machine, &[]).unwrap().machine;
    let rows = |list: &str| app[list].as_array().unwrap().len();
    assert_eq!(rows("by_sm"), usize::from(machine.dispatch.sms));
    assert_eq!(rows("by_slice"), usize::try_from(machine.l2.slices).unwrap());
    assert_eq!(rows("by_channel"), usize::try_from(machine.dram.channels).unwrap());
}

/// CTAs of a launch.
fn ctas(kernel: &Value) -> u64 {
    kernel["grid"].as_array().unwrap().iter().map(|side| side.as_u64().unwrap()).product()
}

#[test]
fn sms_add_up_to_the_application() {
    for machine in MACHINES {
        for app in samples(machine, &[]) {
            assert_rows(&app, machine);
            let of = |path: &str| (sum(&app, "by_sm", path), count(&app, path));
            let (parts, whole) = of("/warp_instructions");
            assert_eq!(parts, whole, "{machine} {}", app["app"]);
            for key in CACHE.into_iter().chain(["merged"]) {
                let (parts, whole) = of(&format!("/l1/{key}"));
                assert_eq!(parts, whole, "{key} {machine} {}", app["app"]);
            }
            let started: u64 = app["kernels"].as_array().unwrap().iter().map(ctas).sum();
            assert_eq!(sum(&app, "by_sm", "/ctas"), started, "{machine} {}", app["app"]);
        }
    }
}

#[test]
fn instruction_caches_of_sms_add_up_to_the_application() {
    for app in samples("v100", &[]) {
        for key in
            ["inner_accesses", "inner_misses", "inner_merged", "outer_accesses", "outer_misses"]
        {
            let path = format!("/instruction_cache/{key}");
            assert_eq!(sum(&app, "by_sm", &path), count(&app, &path), "{key} {}", app["app"]);
            assert_eq!(sum(&app, "kernels", &path), count(&app, &path), "{key} {}", app["app"]);
        }
        assert!(count(&app, "/instruction_cache/outer_misses") > 0, "cold code is read");
    }
}

#[test]
fn each_sms_slots_add_up() {
    for machine in MACHINES {
        for app in samples(machine, &[]) {
            for sm in app["by_sm"].as_array().unwrap() {
                let causes = sm["stall_fractions"].as_object().unwrap().values();
                let parts: Vec<f64> = causes.map(|part| part.as_f64().unwrap()).collect();
                let whole: f64 = parts.iter().sum();
                assert!((whole - 1.0).abs() < 1e-9, "{machine} {}: {whole}", app["app"]);
                assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{parts:?}");
            }
        }
    }
}

/// Requests at the L2 that are not the kernels' own: page walks, code, constants.
fn other_requests(app: &Value, key: &str) -> u64 {
    let walks = if key.ends_with("hits") { "walk_read_hits" } else { "walk_reads" };
    let code = sum(app, "kernels", &format!("/instruction_cache/l2/{key}"));
    let constants = sum(app, "kernels", &format!("/constant_cache/l2/{key}"));
    count(app, &format!("/translation/{walks}")) + code + constants
}

#[test]
fn slices_add_up_to_the_l2_with_walks_code_and_constants() {
    let mut others = [0; MACHINES.len()];
    for (machine, others) in MACHINES.into_iter().zip(&mut others) {
        for app in samples(machine, &[]) {
            for key in CACHE {
                let whole = count(&app, &format!("/l2/{key}")) + other_requests(&app, key);
                let parts = sum(&app, "by_slice", &format!("/{key}"));
                assert_eq!(parts, whole, "{key} {machine} {}", app["app"]);
            }
            *others += other_requests(&app, "accesses");
        }
    }
    // Only the second fetches code, only the third walks.
    assert!(others[0] == 0 && others[1] > 0 && others[2] > 0, "{others:?}");
}

/// Sectors that one access of a machine's memory moves.
fn sectors_per_access(machine: &str) -> u64 {
    let dram = gpumodel::models().machine(machine, &[]).unwrap().machine.dram;
    let standard = MemoryStandard::load(&dram.standard, &gpumodel::models(), &dram.timing).unwrap();
    u64::from(standard.bytes_per_access).max(SECTOR_BYTES) / SECTOR_BYTES
}

#[test]
fn channels_add_up_to_the_dram() {
    for machine in MACHINES {
        let moved = sectors_per_access(machine);
        for app in samples(machine, &[]) {
            let parts = |key: &str| sum(&app, "by_channel", &format!("/{key}"));
            let dram = |key: &str| count(&app, &format!("/dram/{key}"));
            let what = format!("{machine} {}", app["app"]);
            assert_eq!(moved * parts("reads"), dram("read_sectors"), "{what}");
            assert_eq!(moved * parts("writes"), dram("write_sectors"), "{what}");
            assert_eq!(parts("row_hits"), dram("row_hits"), "{what}");
            let opened = parts("row_misses") + parts("row_conflicts");
            assert_eq!(opened, dram("row_misses"), "{what}");
            let all = parts("reads") + parts("writes");
            assert_eq!((parts("row_hits") + opened, parts("absorbed")), (all, 0), "{what}");
        }
    }
}

#[test]
fn channels_count_requests_absorbed_by_queued_writes() {
    // A small L2 writes back, and what a write fetches is found among the queued writes.
    let small = ["l2.cache.sets=2", "l2.cache.ways=4"];
    let (mut written, mut spared) = (0, 0);
    for machine in MACHINES {
        let moved = sectors_per_access(machine);
        let fetching = (machine == "ugpu").then_some("l2.cache.write_miss=fetch");
        let set: Vec<&str> = small.into_iter().chain(fetching).collect();
        for app in samples(machine, &set) {
            let parts = |key: &str| sum(&app, "by_channel", &format!("/{key}"));
            let dram = |key: &str| count(&app, &format!("/dram/{key}"));
            let (sent, absorbed) = (parts("reads") + parts("writes"), parts("absorbed"));
            let all = dram("read_sectors") + dram("write_sectors");
            assert_eq!(moved * (sent + absorbed), all, "{machine} {}", app["app"]);
            assert!(moved * parts("reads") <= dram("read_sectors"), "{machine} {}", app["app"]);
            assert!(moved * parts("writes") <= dram("write_sectors"), "{machine} {}", app["app"]);
            (written, spared) = (written + dram("write_sectors"), spared + absorbed);
        }
    }
    assert!(written > 0 && spared > 0, "{written} written, {spared} spared");
}
