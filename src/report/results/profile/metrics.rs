//! What a profiler's metrics are called, and which quantity of a comparison each one is.
//!
//! Names of Nsight Compute: of its raw page (`unit__what.rollup`), then of its details page. The
//! first name of a measure that a launch has counts.

use std::collections::BTreeMap;

use super::super::Quantity;
use super::counters::{self, Counter};

/// What a metric measures; between a metric and the quantities that follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Measured {
    /// This quantity itself.
    Is(Quantity),
    /// SM clock in hertz.
    SmHertz,
    /// L1 sectors that hit.
    L1Hits,
    /// L2 sectors that hit, of those that L1s asked for.
    L2Hits,
    /// DRAM bytes per second, both ways.
    DramBandwidth,
    /// A count that only runs without a GPU are compared with.
    Counts(Counter),
    /// Warps that stall for a cause, by the [`STALL_FAMILIES`] of the metric.
    Stall(usize, Quantity),
}

use Measured::{DramBandwidth, Is, L1Hits, L2Hits, SmHertz};
use Quantity as Q;

/// Bytes of a sector, where a metric counts sectors.
const SECTOR: f64 = 32.0;

/// Metric, what it measures, and by what its value is multiplied.
const METRICS: &[(&str, Measured, f64)] = &[
    ("gpc__cycles_elapsed.max", Is(Q::CyclesBeyondLaunch), 1.0),
    ("sm__cycles_elapsed.max", Is(Q::CyclesBeyondLaunch), 1.0),
    ("sm__cycles_elapsed.avg", Is(Q::CyclesBeyondLaunch), 1.0),
    ("smsp__cycles_elapsed.max", Is(Q::CyclesBeyondLaunch), 1.0),
    ("smsp__cycles_elapsed.avg", Is(Q::CyclesBeyondLaunch), 1.0),
    ("Elapsed Cycles", Is(Q::CyclesBeyondLaunch), 1.0),
    ("gpu__time_duration.sum", Is(Q::Duration), 1.0),
    ("gpu__time_duration.max", Is(Q::Duration), 1.0),
    ("gpu__time_duration.avg", Is(Q::Duration), 1.0),
    ("Duration", Is(Q::Duration), 1.0),
    ("sm__inst_executed.sum", Is(Q::WarpInstructions), 1.0),
    ("smsp__inst_executed.sum", Is(Q::WarpInstructions), 1.0),
    ("Executed Instructions", Is(Q::WarpInstructions), 1.0),
    ("smsp__thread_inst_executed.sum", Is(Q::ThreadInstructions), 1.0),
    ("sm__thread_inst_executed.sum", Is(Q::ThreadInstructions), 1.0),
    ("l1tex__t_sectors.sum", Is(Q::L1Sectors), 1.0),
    ("l1tex__t_sectors_lookup_hit.sum", L1Hits, 1.0),
    ("l1tex__t_sector_hit_rate.pct", Is(Q::L1HitRate), 1.0),
    ("L1/TEX Hit Rate", Is(Q::L1HitRate), 1.0),
    ("lts__t_sectors_srcunit_tex.sum", Is(Q::L2Sectors), 1.0),
    ("lts__t_sectors.sum", Is(Q::L2Sectors), 1.0),
    ("lts__t_sectors_srcunit_tex_lookup_hit.sum", L2Hits, 1.0),
    ("lts__t_sector_hit_rate.pct", Is(Q::L2HitRate), 1.0),
    ("L2 Hit Rate", Is(Q::L2HitRate), 1.0),
    ("dram__bytes_read.sum", Is(Q::DramReadBytes), 1.0),
    ("dram__sectors_read.sum", Is(Q::DramReadBytes), SECTOR),
    ("dram__bytes_write.sum", Is(Q::DramWriteBytes), 1.0),
    ("dram__sectors_write.sum", Is(Q::DramWriteBytes), SECTOR),
    ("dram__bytes.sum", Is(Q::DramBytes), 1.0),
    ("dram__bytes.sum.per_second", DramBandwidth, 1.0),
    ("Memory Throughput", DramBandwidth, 1.0),
    ("sm__maximum_warps_per_active_cycle_pct", Is(Q::TheoreticalOccupancy), 1.0),
    ("Theoretical Occupancy", Is(Q::TheoreticalOccupancy), 1.0),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", Is(Q::AchievedOccupancy), 1.0),
    ("Achieved Occupancy", Is(Q::AchievedOccupancy), 1.0),
    ("launch__registers_per_thread", Is(Q::Registers), 1.0),
    ("Registers Per Thread", Is(Q::Registers), 1.0),
    ("smsp__issue_active.avg.pct_of_peak_sustained_active", Is(Q::IssuedSlots), 1.0),
    ("smsp__issue_active.avg.per_cycle_active", Is(Q::IssuedSlots), 1.0),
    ("One or More Eligible", Is(Q::IssuedSlots), 1.0),
    ("gpc__cycles_elapsed.avg.per_second", SmHertz, 1.0),
    ("smsp__cycles_elapsed.avg.per_second", SmHertz, 1.0),
    ("sm__cycles_elapsed.avg.per_second", SmHertz, 1.0),
    ("SM Frequency", SmHertz, 1.0),
];

/// How metrics about stalls begin and end; the reason stands between.
const STALL_FAMILIES: [(&str, &str); 5] = [
    ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"),
    ("smsp__average_warp_latency_issue_stalled_", ".ratio"),
    ("smsp__warp_issue_stalled_", "_per_warp_active.pct"),
    ("smsp__pcsamp_warps_issue_stalled_", ""),
    ("Stall ", ""),
];

/// The reasons of Nsight Compute, and the causes of a record. `selected` and `not_selected` are
/// no stalls of the scheduler; `sleeping` and `misc` have no counterpart.
const STALL_REASONS: &[(&str, Quantity)] = &[
    ("long_scoreboard", Q::LongMemoryStalls),
    ("short_scoreboard", Q::ShortRawStalls),
    ("drain", Q::LongMemoryStalls),
    ("membar", Q::LongMemoryStalls),
    ("imc_miss", Q::LongMemoryStalls),
    ("wait", Q::ShortRawStalls),
    ("lg_throttle", Q::ExecutionResourceStalls),
    ("mio_throttle", Q::ExecutionResourceStalls),
    ("tex_throttle", Q::ExecutionResourceStalls),
    ("math_pipe_throttle", Q::ExecutionResourceStalls),
    ("dispatch_stall", Q::ExecutionResourceStalls),
    ("gmma", Q::ExecutionResourceStalls),
    ("no_instruction", Q::InstructionBufferStalls),
    ("no_instructions", Q::InstructionBufferStalls),
    ("branch_resolve", Q::InstructionBufferStalls),
    ("branch_resolving", Q::InstructionBufferStalls),
    ("barrier", Q::BarrierStalls),
    ("warpgroup_arrive", Q::BarrierStalls),
];

/// What the metric `name` measures, its rank among names of the same, and its factor.
pub(super) fn find(name: &str) -> Option<(Measured, usize, f64)> {
    let row = METRICS.iter().position(|row| row.0 == name);
    row.map(|at| (METRICS[at].1, at, METRICS[at].2))
        .or_else(|| {
            counters::find(name).map(|(counter, rank)| (Measured::Counts(counter), rank, 1.0))
        })
        .or_else(|| stall(name))
}

fn stall(name: &str) -> Option<(Measured, usize, f64)> {
    let mut families = STALL_FAMILIES.iter().enumerate();
    families.find_map(|(family, (begin, end))| {
        let reason = name.strip_prefix(begin)?.strip_suffix(end)?;
        let reason = reason.to_ascii_lowercase().replace(' ', "_");
        let (_, cause) = STALL_REASONS.iter().find(|row| row.0 == reason)?;
        Some((Measured::Stall(family, *cause), 0, 1.0))
    })
}

/// Words of units without their prefix, and what one of them is in bytes, nanoseconds, hertz,
/// shares or plain counts.
const UNITS: &[(&str, f64)] = &[
    ("", 1.0),
    ("%", 0.01),
    ("byte", 1.0),
    ("b", 1.0),
    ("byte/second", 1.0),
    ("byte/s", 1.0),
    ("b/s", 1.0),
    ("second", 1e9),
    ("s", 1e9),
    ("hz", 1.0),
    ("cycle/second", 1.0),
    ("cycle/s", 1.0),
    ("cycle", 1.0),
    ("inst", 1.0),
    ("sector", 1.0),
    ("register/thread", 1.0),
    ("register", 1.0),
    ("inst/cycle", 1.0),
    ("warp", 1.0),
    ("ratio", 1.0),
];

/// By what a value in `unit` is multiplied; `None` where the unit is unknown.
pub(super) fn scale(unit: &str, name: &str) -> Option<f64> {
    let percent = name.contains("pct") || name.contains("Occupancy") || name.contains("Rate");
    if unit.is_empty() && percent {
        return Some(0.01);
    }
    let unit = unit.replace("nsecond", "ns").replace("usecond", "us").replace("msecond", "ms");
    match unit.as_str() {
        "ns" => return Some(1.0),
        "us" | "µs" => return Some(1e3),
        "ms" => return Some(1e6),
        "s" | "sec" => return Some(1e9),
        "cycle/ns" => return Some(1e9),
        "cycle/us" => return Some(1e6),
        "cycle/ms" => return Some(1e3),
        _ => {}
    }
    let find = |word: &str| {
        let word = word.to_ascii_lowercase();
        let row = UNITS.iter().find(|row| row.0 == word || format!("{}s", row.0) == word);
        row.map(|row| row.1)
    };
    find(&unit).or_else(|| {
        let prefixes = [('K', 1e3), ('k', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];
        let (_, factor) = prefixes.into_iter().find(|(letter, _)| unit.starts_with(*letter))?;
        find(&unit[1..]).map(|one| one * factor)
    })
}

/// The metrics of one launch.
#[derive(Clone, Debug, Default)]
pub(super) struct Values(BTreeMap<Measured, (usize, f64)>);

impl Values {
    /// Notes a metric; of several names of one measure the first of the table counts, and the
    /// reasons of one cause add up.
    pub(super) fn note(&mut self, (measured, rank, factor): (Measured, usize, f64), value: f64) {
        let value = value * factor;
        let slot = self.0.entry(measured).or_insert((rank, 0.0));
        match measured {
            Measured::Stall(..) => slot.1 += value,
            Is(_) | Measured::Counts(_) | SmHertz | L1Hits | L2Hits | DramBandwidth => {
                if rank <= slot.0 {
                    *slot = (rank, value);
                }
            }
        }
    }

    pub(super) fn get(&self, measured: Measured) -> Option<f64> {
        self.0.get(&measured).map(|(_, value)| *value)
    }

    pub(super) fn sm_hertz(&self) -> Option<f64> {
        self.get(SmHertz)
    }

    /// The quantities that the metrics say, or that follow from them.
    pub(super) fn quantities(&self) -> BTreeMap<Quantity, f64> {
        let mut found: BTreeMap<Quantity, f64> = BTreeMap::new();
        for (measured, (_, value)) in &self.0 {
            if let Is(quantity) = measured {
                found.insert(*quantity, *value);
            }
        }
        for (hits, all, rate) in
            [(L1Hits, Q::L1Sectors, Q::L1HitRate), (L2Hits, Q::L2Sectors, Q::L2HitRate)]
        {
            let both = self.get(hits).zip(found.get(&all).copied());
            if let Some((hits, all)) = both.filter(|(hits, all)| *all > 0.0 && hits <= all) {
                found.insert(rate, hits / all);
            }
        }
        let ways = found.get(&Q::DramReadBytes).zip(found.get(&Q::DramWriteBytes));
        let moved = ways.map(|(reads, writes)| reads + writes).or_else(|| {
            let time = found.get(&Q::Duration)?;
            Some(self.get(DramBandwidth)? * time * 1e-9)
        });
        if let Some(moved) = moved {
            found.entry(Q::DramBytes).or_insert(moved);
        }
        found.extend(self.stalls());
        found
    }

    /// The share of each cause in all stalls, of the first family of metrics that has any.
    fn stalls(&self) -> Vec<(Quantity, f64)> {
        for family in 0..STALL_FAMILIES.len() {
            let value = |cause| self.get(Measured::Stall(family, cause)).unwrap_or(0.0);
            let all: f64 = Quantity::STALLS.into_iter().map(value).sum();
            if all > 0.0 {
                return Quantity::STALLS.map(|cause| (cause, value(cause) / all)).into();
            }
        }
        Vec::new()
    }
}
