//! Solo runs of the models of the papers' kernels, from `reports/data/solo-PAPER.csv`, with
//! the printed values, and the class by either.

use std::collections::BTreeMap;

use gpumodel::report::paper::{PublishedLookup, TableEntry};
use gpumodel::report::results::{
    Analysis, AppRecord, CacheCounters, DramCounters, KernelRecord, MachineRecord,
    UtilizationRecord,
};
use gpumodel::trace::workload::Workload;
use serde::Deserialize;
use toml::Value;

use crate::report_data::{Run, rows as data};
use crate::solo_facts::{class, number, operations, paper, rows};

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
