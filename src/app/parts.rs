//! From what the machine's parts counted to their rows.

use gpumodel_report::results::{AppRecord, ChannelRecord, SmCounters};
use gpumodel_sim::config::Machine;
use gpumodel_sim::dram::ChannelCounters;
use gpumodel_sim::{Outcome, SmCounts};

use super::rows;

/// Fills the rows of SMs, slices and channels.
pub(super) fn fill(row: &mut AppRecord, machine: &Machine, outcome: &Outcome) {
    #[allow(clippy::cast_precision_loss, reason = "spans are below 2^53")]
    let slots = outcome.cycles as f64 * f64::from(machine.sm.schedulers);
    row.by_sm = outcome.sms.iter().map(|counts| sm(machine, counts, slots)).collect();
    row.by_slice = outcome.slices.iter().map(rows::cache).collect();
    row.by_channel = outcome.channels.iter().map(channel).collect();
    row.l1_tlb_by_sm = outcome.tlbs.iter().map(rows::tlb).collect();
}

fn sm(machine: &Machine, counts: &SmCounts, slots: f64) -> SmCounters {
    SmCounters {
        ctas: counts.ctas,
        warp_instructions: counts.warp_instructions,
        l1: rows::cache(&counts.l1),
        instruction_cache: machine.fetch.as_ref().map(|_| rows::fetch(&counts.fetch)),
        constant_cache: machine.constant.as_ref().map(|_| rows::constant(&counts.constant)),
        stall_fractions: rows::stalls(counts.stalls, slots),
    }
}

fn channel(counters: &ChannelCounters) -> ChannelRecord {
    ChannelRecord {
        reads: counters.reads,
        writes: counters.writes,
        absorbed: counters.absorbed,
        row_hits: counters.row_hits,
        row_misses: counters.row_misses,
        row_conflicts: counters.row_conflicts,
        refreshes: counters.refreshes,
        migrations: counters.migrations,
    }
}
