//! Do the models of the papers' kernels behave alone as the papers print?
//!
//! Short versions run here, on fewer SMs where few CTAs are left, so that an SM is as full
//! as under the whole grid. `models/workloads/CALIBRATION.md` compares the whole models with
//! the printed values, and lists which test checks what.

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::report::results::AppRecord;
use gpumodel::trace::workload::{Compression, Kernel, Workload, write_folder};
use toml::Value;

pub(crate) fn paper(name: &str) -> Value {
    toml::from_str(&gpumodel::models().text("papers", name).unwrap().text).unwrap()
}

/// The rows of a table of applications or kernels, by name.
pub(crate) fn rows<'a>(paper: &'a Value, key: &str) -> Vec<(&'a str, &'a Value)> {
    let table = paper["solo"][key].as_table().unwrap();
    table.iter().map(|(name, row)| (name.as_str(), row)).collect()
}

pub(crate) fn number(row: &Value, key: &str) -> f64 {
    row[key].as_float().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// A workload alone on `machine` with `sms` SMs.
fn alone(name: &str, scale: f64, machine: &str, sms: u32) -> (Workload, AppRecord) {
    let workload = Workload::load_scaled(name, &gpumodel::models(), scale).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    write_folder(&workload, &trace, Compression::None, &mut |_| {}).unwrap();
    let app = AppName::parse(trace.to_str().unwrap());
    let mut request = AnalyzeRequest::new(vec![app], machine, &folder.path().join("cache"));
    request.overrides.push(("dispatch.sms".to_owned(), sms.to_string()));
    let mut analysis = analyze(&request, &Unwatched).unwrap();
    (workload, analysis.solo.remove(0))
}

/// Registers of the original kernel: the transformation takes 23 % more on average, six
/// for MD5Hash.
fn original_registers(name: &str, transformed: i64) -> i64 {
    if name == "md5hash" { transformed - 6 } else { (transformed * 100 + 61) / 123 }
}

#[test]
fn the_arcs_kernels_ask_for_what_table_3_says() {
    for (name, row) in rows(&paper("arcs"), "kernel") {
        let workload = Workload::load(name, &gpumodel::models()).unwrap();
        let kernel = workload.kernel(0);
        let launch = kernel.launch();
        let is = |key: &str, value: i64| assert_eq!(row[key].as_integer(), Some(value), "{name}");
        is("ctas", launch.grid.count().cast_signed());
        is("threads", launch.block.count().cast_signed());
        is("worker_shared_bytes", i64::from(launch.shared_bytes) + 8);
        let printed = row["worker_registers"].as_integer().unwrap();
        assert_eq!(i64::from(launch.registers), original_registers(name, printed), "{name}");
    }
}

/// Share of a scheduler's cycles in which an instruction issues, when none issue in pairs.
fn issued(solo: &AppRecord, schedulers: u32) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "instructions of a short run")]
    let instructions = solo.warp_instructions as f64;
    #[allow(clippy::cast_precision_loss, reason = "cycles of a short run")]
    let cycles = (solo.cycles - solo.launch_cycles) as f64;
    instructions / cycles / f64::from(schedulers)
}

#[test]
fn the_arcs_kernels_fall_in_their_groups() {
    let paper = paper("arcs");
    let schedulers = gpumodel::models().machine("k40c", &[]).unwrap().machine.sm.schedulers;
    // Several waves of CTAs on the SM, but few CTAs of MD5Hash and nbody, which are long.
    let scale = |name: &str| match name {
        "md5hash" => 0.001,
        "nbody" => 0.04,
        _ => 1.0 / 15.0,
    };
    let cut = number(&paper["groups"], "low_below_percent") / 100.0;
    for (name, row) in rows(&paper, "kernel") {
        let share = issued(&alone(name, scale(name), "k40c", 1).1, schedulers);
        let low = number(row, "issued_percent") / 100.0 < cut;
        assert_eq!(share < cut, low, "{name} issues in {share} of its slots");
        let listed = paper["groups"][if low { "low" } else { "high" }].as_array().unwrap();
        assert!(listed.iter().any(|entry| entry.as_str() == Some(name)), "{name}");
    }
}

/// Single-precision operations of a launch: a multiply-add is two.
pub(crate) fn operations(kernel: &Kernel) -> u64 {
    let code = kernel.code();
    let of = |opcode: &String| match opcode.split('.').next() {
        Some("FADD" | "FMUL") => 1,
        Some("FFMA") => 2,
        _ => 0,
    };
    let each: Vec<u64> = code.opcodes.iter().map(of).collect();
    let mut sum = 0;
    for cta in (0..kernel.cta_count()).map(|cta| kernel.cta(cta)) {
        for mut stream in (0..cta.warp_count()).map(|warp| cta.warp(warp)) {
            while let Some(segment) = stream.next_segment() {
                for one in &code.instructions[code.segments[segment as usize].range()] {
                    sum += stream.skip(1) * each[one.opcode as usize];
                }
            }
        }
    }
    sum
}

/// What `value` is among rows that print `key` and a class `of`: the cut between two
/// classes is the geometric mean of the values next to it.
pub(crate) fn class<'a>(rows: &[(&str, &'a Value)], key: &str, of: &str, value: f64) -> &'a str {
    let mut printed: Vec<(f64, &str)> =
        rows.iter().map(|(_, row)| (number(row, key), row[of].as_str().unwrap())).collect();
    printed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let cuts = printed.windows(2).filter(|two| two[0].1 != two[1].1);
    let below = cuts.filter(|two| value < (two[0].0 * two[1].0).sqrt()).map(|two| two[0].1);
    below.min_by_key(|class| "LMH".find(*class)).unwrap_or(printed.last().unwrap().1)
}

#[test]
fn slate_s_benchmarks_fall_in_their_classes() {
    let paper = paper("slate");
    let clock = gpumodel::models().machine("titan-xp", &[]).unwrap().machine.clocks.core_mhz * 1e6;
    let rows = rows(&paper, "app");
    for (name, row) in &rows {
        let (workload, solo) = alone(name, 0.05, "titan-xp", 30);
        let kernels = (0..workload.kernel_count()).map(|index| workload.kernel(index));
        let operations: u64 = kernels.map(|kernel| operations(&kernel)).sum();
        #[allow(clippy::cast_precision_loss, reason = "counts of a short run")]
        let [operations, sectors, cycles] =
            [operations, solo.l2.accesses, solo.cycles].map(|count| count as f64);
        let seconds = cycles / clock;
        // The card's L1 keeps no global data, so all loads and stores reach the L2.
        let bytes = 32.0 * sectors / seconds / 1e9;
        assert_eq!(Some(class(&rows, "gb_per_s", "memory", bytes)), row["memory"].as_str());
        let found = class(&rows, "gflop_per_s", "compute", operations / seconds / 1e9);
        // BS does more than 16 operations for the 40 bytes that a thread moves, which is
        // what its two printed rates say; see the calibration.
        let expected = if *name == "black-scholes" { Some("H") } else { row["compute"].as_str() };
        assert_eq!(Some(found), expected, "{name}");
    }
}

/// Misses of the L2 per kilo thread instruction in lines of 128 bytes, of which a record
/// counts the four sectors.
fn lines_missed(solo: &AppRecord) -> f64 {
    let sectors = solo.l2.accesses - solo.l2.hits;
    #[allow(clippy::cast_precision_loss, reason = "counts of a short run")]
    let [sectors, instructions] = [sectors, solo.thread_instructions].map(|count| count as f64);
    1000.0 * sectors / 4.0 / instructions
}

#[test]
fn ugpu_s_benchmarks_miss_as_often_as_table_2_says() {
    let paper = paper("ugpu");
    // Parts after which nothing is left in the L2 that a whole run would not find there.
    let parts = [
        ("ugpu-bh", 0.05),
        ("ugpu-cp", 0.05),
        ("ugpu-lbm", 0.05),
        ("ugpu-mriq", 0.05),
        ("ugpu-pvc", 0.02),
        ("ugpu-srad", 0.04),
    ];
    for (name, scale) in parts {
        let printed = number(&paper["solo"]["app"][name], "mpki_thread");
        let found = lines_missed(&alone(name, scale, "ugpu", 80).1);
        assert!((found / printed - 1.0).abs() < 0.1, "{name} misses {found}, printed {printed}");
    }
}

#[test]
fn ugpu_s_benchmarks_launch_as_many_kernels_as_table_2_says() {
    let paper = paper("ugpu");
    for (name, row) in rows(&paper, "app") {
        let launches = Workload::load(name, &gpumodel::models()).unwrap().kernel_count();
        let printed = usize::try_from(row["kernels"].as_integer().unwrap()).unwrap();
        assert_eq!(launches % printed, 0, "{name} launches {launches}, printed {printed}");
    }
}
