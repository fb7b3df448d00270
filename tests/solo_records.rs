//! What the models of the papers' kernels do alone, as `reports/records/solo-*.tar.xz` have
//! it, beside what is printed of them, and in which class either puts them.

use std::collections::BTreeMap;
use std::path::Path;

use gpumodel::report::paper::{PublishedLookup, TableEntry};
use gpumodel::report::results::{Analysis, AppRecord, CoRun, SweepFiles};
use gpumodel::trace::workload::Workload;
use toml::Value;

use crate::archive::unpacked;
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

/// The runs of a paper's models alone.
pub(crate) struct Study {
    /// What the paper prints.
    pub(crate) paper: Value,
    records: Vec<Analysis>,
}

impl Study {
    /// The records of the archive `records`, beside `models/papers/PAPER.toml`.
    pub(crate) fn read(records: &str, paper_name: &str, scratch: &Path) -> Self {
        let files = SweepFiles::new(&unpacked(records, scratch));
        let cells = files.cells().unwrap();
        let record = |key: &str| Analysis::read(&files.record(key)).unwrap();
        let records = cells.iter().map(|cell| record(&cell.key)).collect();
        Self { paper: paper(paper_name), records }
    }

    /// The models, in the order of the records.
    pub(crate) fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = Vec::new();
        for solo in self.records.iter().flat_map(|record| &record.solo) {
            if !models.contains(&solo.app.as_str()) {
                models.push(&solo.app);
            }
        }
        models
    }

    /// A model alone to its end, with the record that has it.
    pub(crate) fn alone(&self, model: &str) -> (&Analysis, &AppRecord) {
        let of = |record: &&Analysis| record.solo[0].app == model;
        let record = self.records.iter().find(of).unwrap_or_else(|| panic!("no run of {model}"));
        (record, &record.solo[0])
    }

    /// A model's runs under a scheme, in the order of the plan.
    pub(crate) fn runs(&self, model: &str) -> Vec<(&Analysis, &CoRun)> {
        let own = self.records.iter().filter(|record| record.solo[0].app == model);
        own.map(|record| (record, &record.coruns[0])).collect()
    }

    /// What a model's run alone has in a column of the papers' tables.
    pub(crate) fn modelled(&self, model: &str, column: &str) -> f64 {
        let (apps, at) = ([vec![model.to_owned()]], BTreeMap::new());
        let (rows, row, schemes, window_cycles) = ("app", model, &[], Some(WINDOW));
        let lookup =
            PublishedLookup { rows, row, column, apps: &apps, schemes, at: &at, window_cycles };
        match lookup.value(&self.records) {
            Some(TableEntry::Number(value)) => value,
            other => panic!("{column} of {model}: {other:?}"),
        }
    }

    /// What is printed of a model, by key; `None`: nothing is.
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

/// Seconds of a run alone; `launches`: with those in which nothing of it runs.
fn seconds((record, app): (&Analysis, &AppRecord), launches: bool) -> f64 {
    let cycles = app.cycles - if launches { 0 } else { app.launch_cycles };
    count(cycles) / record.machine.core_mhz / 1e6
}

/// Single-precision operations of a whole model, 10^9 in a second.
pub(crate) fn gflop_per_s(study: &Study, model: &str) -> f64 {
    let workload = Workload::load(model, &gpumodel::models()).unwrap();
    let kernels = (0..workload.kernel_count()).map(|index| workload.kernel(index));
    let sum: u64 = kernels.map(|kernel| operations(&kernel)).sum();
    count(sum) / seconds(study.alone(model), true) / 1e9
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
    let (record, app) = study.alone(model);
    let machine = &record.machine;
    let asked = SECTOR * count(app.l2.accesses) / count(app.thread_instructions);
    let issued = LANES * machine.peak_warp_instructions_per_cycle / 2.0;
    let hits = app.l2.hit_rate().unwrap_or(0.0);
    let [cache, memory] = [machine.peak_l2_gb_per_s, machine.peak_dram_gb_per_s].map(|x| x / 2.0);
    let supply = hits * cache + ((1.0 - hits) * cache).min(memory);
    [asked * issued * machine.core_mhz / 1e3, supply]
}

/// By what an application of UGPU is bound.
pub(crate) fn ugpu_class(study: &Study, model: &str) -> String {
    let [demand, supply] = demand_and_supply(study, model);
    String::from(if demand > supply { "memory" } else { "compute" })
}

/// CTAs on an SM and the speed with them over the best, of the first 200 K cycles.
pub(crate) fn curve(study: &Study, model: &str) -> Vec<(u32, f64)> {
    let most = study.alone(model).1.kernels[0].ctas_per_sm;
    let point = |run: &CoRun| (run.parameters["ctas"].parse().unwrap(), run.apps[0].ipc);
    let runs = study.runs(model);
    let points: Vec<(u32, f64)> = runs.iter().map(|(_, run)| point(run)).collect();
    let points: Vec<(u32, f64)> = points.into_iter().filter(|(ctas, _)| *ctas <= most).collect();
    let best = points.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
    points.into_iter().map(|(ctas, speed)| (ctas, speed / best)).collect()
}

/// The class of a kernel of Warped-Slicer: misses of the L2 cut memory from compute (section
/// II.C), and more CTAs than the L1 holds hurt who is sensitive to it (section IV).
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

/// What ILP-SMRA classifies by.
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
        let (record, app) = study.alone(model);
        let seconds = seconds((record, app), false);
        let mixes = || app.kernels.iter().flat_map(|kernel| &kernel.instruction_mix);
        let memory: u64 = mixes().filter(|(unit, _)| *unit == "memory").map(|(_, n)| n).sum();
        let all: u64 = mixes().map(|(_, n)| n).sum();
        Self {
            dram: count(app.dram.bytes()) / seconds / 1e9,
            l2: SECTOR * count(app.l2.reads) / seconds / 1e9,
            ratio: count(memory) / count(all - memory),
            ipc: count(app.thread_instructions) / (seconds * record.machine.core_mhz * 1e6),
            peak_dram: record.machine.peak_dram_gb_per_s,
            peak_ipc: LANES * record.machine.peak_warp_instructions_per_cycle,
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

/// Bytes per second of the SMs' loads and stores in a run, 10^9, where the L1 keeps nothing.
pub(crate) fn moved_gb_per_s((record, run): (&Analysis, &CoRun)) -> f64 {
    SECTOR * count(run.l2.accesses) * record.machine.core_mhz / 1e3 / count(run.cycles)
}
