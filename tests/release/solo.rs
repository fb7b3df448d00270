//! Are the models of the papers' kernels, alone, what the papers print, and in their classes?
//!
//! The whole runs are those of `reports/data/solo-PAPER.csv`; `models/workloads/CALIBRATION.md`
//! compares them with the printed values, and lists which test checks what.

use std::collections::BTreeMap;

use gpumodel::report::paper::{PublishedLookup, TableEntry};
use gpumodel::report::results::{
    Analysis, AppRecord, CacheCounters, DramCounters, KernelRecord, MachineRecord,
    UtilizationRecord,
};
use gpumodel::trace::workload::{Kernel, Workload};
use serde::Deserialize;
use toml::Value;

use crate::report_data::{Run, rows as data};

/// Thread instructions of a warp instruction with all its lanes.
const LANES: f64 = 32.0;

/// Bytes of a sector.
const SECTOR: f64 = 32.0;

/// A kernel that falls below this share of its best speed with all its CTAs is hurt by the
/// last of them: Warped-Slicer does not print how far a cache-sensitive one falls. The ten
/// models keep more than 0.9 or less than 0.8.
const HURT: f64 = 0.9;

/// Misses of the L2 per kilo warp instruction from which a kernel is memory-intensive
/// (Warped-Slicer, section II.C).
const INTENSIVE: f64 = 30.0;

/// The cycles in which Warped-Slicer counts instructions.
const WINDOW: f64 = 2e6;

fn paper(name: &str) -> Value {
    toml::from_str(&gpumodel::models().text("papers", name).unwrap().text).unwrap()
}

/// The rows of a table of applications or kernels, by name.
fn rows<'a>(paper: &'a Value, key: &str) -> Vec<(&'a str, &'a Value)> {
    let table = paper["solo"][key].as_table().unwrap();
    table.iter().map(|(name, row)| (name.as_str(), row)).collect()
}

pub(crate) fn number(row: &Value, key: &str) -> f64 {
    row[key].as_float().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// An application alone to its end: a row of a table that `reports/alone.jq` makes.
#[derive(Debug, Deserialize)]
pub(crate) struct Alone {
    app: String,
    core_mhz: f64,
    peak_dram_gb_per_s: f64,
    peak_l2_gb_per_s: f64,
    peak_warp_instructions_per_cycle: f64,
    pub(crate) cycles: u64,
    launch_cycles: u64,
    pub(crate) warp_instructions: u64,
    thread_instructions: u64,
    ipc: f64,
    l2_accesses: u64,
    l2_hits: u64,
    l2_reads: u64,
    l2_read_hits: u64,
    dram_read_sectors: u64,
    dram_write_sectors: u64,
    pub(crate) kernels: usize,
    /// Of all its launches.
    pub(crate) kernel_cycles: u64,
    /// Of its first launch.
    pub(crate) ctas_per_sm: u32,
    memory_instructions: u64,
    other_instructions: u64,
    issue_slot_utilization: f64,
    registers: f64,
    shared: f64,
    alu: f64,
    sfu: f64,
    load_store: f64,
    pub(crate) barrier: f64,
    pub(crate) execution_resource: f64,
    pub(crate) instruction_buffer_empty: f64,
    pub(crate) long_memory_latency: f64,
    pub(crate) short_raw: f64,
}

impl Alone {
    /// The record of the run, as far as the papers' columns ask; all launches are the mean one.
    fn record(&self) -> Analysis {
        let kernel = KernelRecord {
            cycles: 1,
            issue_slot_utilization: Some(self.issue_slot_utilization),
            ..KernelRecord::default()
        };
        let app = AppRecord {
            app: self.app.clone(),
            cycles: self.cycles,
            warp_instructions: self.warp_instructions,
            thread_instructions: self.thread_instructions,
            ipc: self.ipc,
            l2: self.l2(),
            dram: DramCounters { read_sectors: self.dram_read_sectors, ..Default::default() },
            utilization: Some(UtilizationRecord {
                registers: self.registers,
                shared: self.shared,
                alu: self.alu,
                sfu: self.sfu,
                load_store: self.load_store,
            }),
            kernels: vec![kernel; self.kernels],
            ..AppRecord::default()
        };
        let machine = MachineRecord { core_mhz: self.core_mhz, ..MachineRecord::default() };
        Analysis { machine, solo: vec![app], ..Analysis::default() }
    }

    fn l2(&self) -> CacheCounters {
        CacheCounters {
            accesses: self.l2_accesses,
            hits: self.l2_hits,
            reads: self.l2_reads,
            read_hits: self.l2_read_hits,
            ..CacheCounters::default()
        }
    }

    /// Seconds; `launches`: with those in which nothing of it runs.
    pub(crate) fn seconds(&self, launches: bool) -> f64 {
        let cycles = self.cycles - if launches { 0 } else { self.launch_cycles };
        count(cycles) / self.core_mhz / 1e6
    }

    /// Bytes over the DRAM pins.
    pub(crate) fn dram_bytes(&self) -> f64 {
        SECTOR * count(self.dram_read_sectors + self.dram_write_sectors)
    }
}

/// The runs of a paper's models alone.
pub(crate) struct Study {
    /// The printed values.
    pub(crate) paper: Value,
    alone: Vec<Alone>,
}

impl Study {
    /// The runs of `reports/data/solo-PAPER.csv`, with `models/papers/PAPER.toml`.
    pub(crate) fn read(name: &str) -> Self {
        Self { paper: paper(name), alone: data(&format!("solo-{name}")) }
    }

    /// The models, in the order of the table.
    pub(crate) fn models(&self) -> Vec<&str> {
        self.alone.iter().map(|alone| alone.app.as_str()).collect()
    }

    /// A model alone to its end.
    pub(crate) fn alone(&self, model: &str) -> &Alone {
        let mut alone = self.alone.iter();
        alone.find(|alone| alone.app == model).unwrap_or_else(|| panic!("no run of {model}"))
    }

    /// The value of a model's solo run in a column of the papers' tables.
    pub(crate) fn modelled(&self, model: &str, column: &str) -> f64 {
        let (apps, at) = ([vec![model.to_owned()]], BTreeMap::new());
        let (rows, row, schemes, window_cycles) = ("app", model, &[], Some(WINDOW));
        let lookup =
            PublishedLookup { rows, row, column, apps: &apps, schemes, at: &at, window_cycles };
        match lookup.value(&[self.alone(model).record()]) {
            Some(TableEntry::Number(value)) => value,
            other => panic!("{column} of {model}: {other:?}"),
        }
    }

    /// The printed values of a model, by key; `None` without any.
    pub(crate) fn printed(&self, model: &str) -> Option<&Value> {
        let solo = &self.paper["solo"];
        let rows = solo.get("app").or_else(|| solo.get("kernel"));
        rows.expect("a table of applications").get(model)
    }
}

/// A count as a number.
pub(crate) fn count(count: u64) -> f64 {
    count as f64
}

/// Single-precision operations of a launch: a multiply-add is two.
fn operations(kernel: &Kernel) -> u64 {
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
fn class<'a>(rows: &[(&str, &'a Value)], key: &str, of: &str, value: f64) -> &'a str {
    let mut printed: Vec<(f64, &str)> =
        rows.iter().map(|(_, row)| (number(row, key), row[of].as_str().unwrap())).collect();
    printed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let cuts = printed.windows(2).filter(|two| two[0].1 != two[1].1);
    let below = cuts.filter(|two| value < (two[0].0 * two[1].0).sqrt()).map(|two| two[0].1);
    below.min_by_key(|class| "LMH".find(*class)).unwrap_or(printed.last().unwrap().1)
}

/// Single-precision operations of a whole model, 10^9 in a second.
pub(crate) fn gflop_per_s(study: &Study, model: &str) -> f64 {
    let workload = Workload::load(model, &gpumodel::models()).unwrap();
    let kernels = (0..workload.kernel_count()).map(|index| workload.kernel(index));
    let sum: u64 = kernels.map(|kernel| operations(&kernel)).sum();
    count(sum) / study.alone(model).seconds(true) / 1e9
}

/// Classes of Slate, compute and memory.
pub(crate) fn slate_class(study: &Study, model: &str) -> String {
    let rows = rows(&study.paper, "app");
    let compute = class(&rows, "gflop_per_s", "compute", gflop_per_s(study, model));
    let memory = class(&rows, "gb_per_s", "memory", study.modelled(model, "gb_per_s"));
    format!("{compute} {memory}")
}

/// The group of a kernel of ARCS 2018.
pub(crate) fn arcs_class(study: &Study, model: &str) -> String {
    let low = number(&study.paper["groups"], "low_below_percent");
    String::from(if study.modelled(model, "issued_percent") < low { "low" } else { "high" })
}

/// UGPU's equations 1 and 2 for half of the SMs and half of the channels: what an
/// application asks of memory and what it gets, GB/s.
pub(crate) fn demand_and_supply(study: &Study, model: &str) -> [f64; 2] {
    let app = study.alone(model);
    let asked = SECTOR * count(app.l2_accesses) / count(app.thread_instructions);
    let issued = LANES * app.peak_warp_instructions_per_cycle / 2.0;
    let hits = app.l2().hit_rate().unwrap_or(0.0);
    let [cache, memory] = [app.peak_l2_gb_per_s, app.peak_dram_gb_per_s].map(|x| x / 2.0);
    let supply = hits * cache + ((1.0 - hits) * cache).min(memory);
    [asked * issued * app.core_mhz / 1e3, supply]
}

/// The bound of an application of UGPU.
pub(crate) fn ugpu_class(study: &Study, model: &str) -> String {
    let [demand, supply] = demand_and_supply(study, model);
    String::from(if demand > supply { "memory" } else { "compute" })
}

/// CTAs on an SM and the speed with them over the best, of the first 200 K cycles.
pub(crate) fn curve(study: &Study, model: &str) -> Vec<(u32, f64)> {
    let most = study.alone(model).ctas_per_sm;
    let runs = data::<Run>("warped-slicer-curves").into_iter().filter(|run| run.mix == model);
    let point = |run: Run| (run.parameters["ctas"].parse().unwrap(), run.ipc[0]);
    let points: Vec<(u32, f64)> = runs.map(point).collect();
    let points: Vec<(u32, f64)> = points.into_iter().filter(|(ctas, _)| *ctas <= most).collect();
    let best = points.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
    points.into_iter().map(|(ctas, speed)| (ctas, speed / best)).collect()
}

/// The class of a kernel of Warped-Slicer: misses of the L2 cut memory from compute (section
/// II.C), and more CTAs than the L1 holds slow a kernel that is sensitive to it (section IV).
pub(crate) fn warped_slicer_class(study: &Study, model: &str) -> String {
    let &(_, full) = curve(study, model).last().expect("a run with all CTAs");
    let misses = study.modelled(model, "mpki_warp");
    let class = if full < HURT {
        "cache"
    } else if misses >= INTENSIVE {
        "memory"
    } else {
        "compute"
    };
    String::from(class)
}

/// The values that ILP-SMRA classifies by.
pub(crate) struct Profile {
    /// Of DRAM and of reads from the L2, GB/s.
    pub(crate) dram: f64,
    pub(crate) l2: f64,
    /// Memory over compute instructions.
    pub(crate) ratio: f64,
    /// Thread instructions per cycle.
    pub(crate) ipc: f64,
    /// The most that the machine moves, GB/s, and issues.
    pub(crate) peak_dram: f64,
    pub(crate) peak_ipc: f64,
}

impl Profile {
    /// Launches are left out: nothing of the application runs in them.
    pub(crate) fn of(study: &Study, model: &str) -> Self {
        let app = study.alone(model);
        let seconds = app.seconds(false);
        Self {
            dram: app.dram_bytes() / seconds / 1e9,
            l2: SECTOR * count(app.l2_reads) / seconds / 1e9,
            ratio: count(app.memory_instructions) / count(app.other_instructions),
            ipc: count(app.thread_instructions) / (seconds * app.core_mhz * 1e6),
            peak_dram: app.peak_dram_gb_per_s,
            peak_ipc: LANES * app.peak_warp_instructions_per_cycle,
        }
    }
}

/// The class of a benchmark of ILP-SMRA by table I; `none`: it fits no row of it.
pub(crate) fn ilp_class(study: &Study, model: &str) -> String {
    let app = Profile::of(study, model);
    let bound = |name: &str| number(&study.paper["thresholds"], name);
    let (slow, cached) = (bound("epsilon") * app.peak_ipc, bound("gamma") * app.peak_dram);
    let class = if app.dram > bound("alpha") * app.peak_dram {
        "M"
    } else if app.dram > bound("beta") * app.peak_dram {
        "MC"
    } else if app.l2 > cached && app.ratio > bound("delta") && app.ipc < slow {
        "C"
    } else if app.ratio < bound("delta") && app.ipc > slow {
        "A"
    } else {
        "none"
    };
    String::from(class)
}

mod solo_classes {
    //! Are the models of the papers' kernels, alone, in the printed classes?
    //!
    //! The tables `reports/data/solo-*.csv` are of whole runs; `solo_facts` checks some of it on
    //! short ones.

    use super::{Study, arcs_class, ilp_class, slate_class, ugpu_class, warped_slicer_class};

    /// A model, its printed class and the one that it has here.
    type Gap = (&'static str, &'static str, &'static str);

    /// Models in another class than printed, each explained under "What does not fit" of
    /// `models/workloads/CALIBRATION.md`.
    const GAPS: [Gap; 13] = [
        ("black-scholes", "M M", "H M"),
        ("ilp-3ds", "MC", "M"),
        ("ilp-bfs2", "C", "MC"),
        ("ilp-bp", "MC", "M"),
        ("ilp-fft", "MC", "M"),
        ("ilp-hs", "A", "MC"),
        ("ilp-lud", "A", "none"),
        ("ilp-nn", "A", "none"),
        ("ilp-ray", "MC", "A"),
        ("ilp-sad", "A", "MC"),
        ("ilp-spmv", "C", "none"),
        ("ugpu-convs", "memory", "compute"),
        ("ugpu-srad", "memory", "compute"),
    ];

    /// A paper with the key of its class, or the keys, and the class by its rule.
    type Rule = (&'static str, &'static [&'static str], fn(&Study, &str) -> String);

    const RULES: [Rule; 4] = [
        ("slate", &["compute", "memory"], slate_class),
        ("ugpu", &["bound"], ugpu_class),
        ("warped-slicer", &["class"], warped_slicer_class),
        ("ilp-smra", &["class"], ilp_class),
    ];

    #[test]
    fn each_kernel_is_in_its_printed_class_except_known_gaps() {
        let (mut found, mut seen) = (Vec::new(), 0);
        for (paper, keys, rule) in RULES {
            let study = Study::read(paper);
            for model in study.models() {
                let Some(row) = study.printed(model) else { continue };
                let words: Vec<&str> = keys.iter().map(|key| row[*key].as_str().unwrap()).collect();
                let (printed, ours) = (words.join(" "), rule(&study, model));
                seen += 1;
                if printed != ours {
                    found.push((model.to_owned(), printed, ours));
                }
            }
        }
        found.sort();
        let known = GAPS.map(|(model, printed, ours)| (model.into(), printed.into(), ours.into()));
        assert_eq!(found, known, "left: found; remove a closed gap from the list");
        assert_eq!(seen, 5 + 15 + 10 + 13);
    }

    #[test]
    fn each_kernel_of_arcs_is_in_its_printed_group() {
        let study = Study::read("arcs");
        for group in ["low", "high"] {
            for model in study.paper["groups"][group].as_array().unwrap() {
                let model = model.as_str().unwrap();
                assert_eq!(arcs_class(&study, model), group, "{model}");
            }
        }
    }
}

mod solo_facts {
    //! Do the models of the papers' kernels behave alone as the papers print?
    //!
    //! Short versions run here, on fewer SMs where few CTAs are left, so that an SM is as full
    //! as under the whole grid.

    use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
    use gpumodel::report::results::AppRecord;
    use gpumodel::trace::workload::{Compression, Workload, write_folder};

    use super::{class, number, operations, paper, rows};

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
            let is =
                |key: &str, value: i64| assert_eq!(row[key].as_integer(), Some(value), "{name}");
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

    #[test]
    fn slate_s_benchmarks_fall_in_their_classes() {
        let paper = paper("slate");
        let clock =
            gpumodel::models().machine("titan-xp", &[]).unwrap().machine.clocks.core_mhz * 1e6;
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
            let expected =
                if *name == "black-scholes" { Some("H") } else { row["compute"].as_str() };
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
            assert!(
                (found / printed - 1.0).abs() < 0.1,
                "{name} misses {found}, printed {printed}"
            );
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
}
