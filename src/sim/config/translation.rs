//! Address translation and page migration of a machine.

use serde::{Deserialize, Serialize};

use super::check::refused;
use super::machine::Machine;

/// TLBs, page walkers and the cost of moving a page. Latencies in core cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Every page is known everywhere at no cost, so that applications share no TLB
    /// and no walker; pages still lie in the channels of their application, and stay
    /// there.
    pub ideal: bool,
    /// Every access is translated before the L1 (physical tags); false: only
    /// what leaves the L1 is (virtual tags).
    pub before_l1: bool,
    /// Entries of an SM's L1 TLB.
    pub l1_entries: u32,
    /// Its ways; equal to the entries for a fully associative one.
    pub l1_ways: u32,
    /// Cycles added by an L1 TLB look-up to an access.
    pub l1_latency_cycles: u32,
    /// Pages whose translation an SM may wait for at a time.
    pub l1_mshr_entries: u32,
    /// Memory instructions that may wait for one of them, the first included.
    pub l1_mshr_merge: u32,
    /// Entries of the L2 TLB that all SMs share.
    pub l2_entries: u32,
    /// Its ways.
    pub l2_ways: u32,
    /// Cycles added by a look-up in the L2 TLB, the way there and back included.
    pub l2_latency_cycles: u32,
    /// Requests that the L2 TLB takes per cycle.
    pub l2_requests_per_cycle: u32,
    /// Page walks at a time.
    pub walkers: u32,
    /// Levels of the page table, each one read of 8 bytes by a walk.
    pub walk_levels: u32,
    /// Entries of the walk cache for each level but the last; 0: none.
    pub walk_cache_entries: u32,
    /// Lines of 64 bytes of the last level that the walk cache holds, eight entries each: a walk
    /// to one of their pages reads nothing; 0: none.
    pub walk_cache_lines: u32,
    /// Only pages of host-to-device copies and of local memory are in memory
    /// before they are touched; false: all are.
    pub demand_paging: bool,
    /// Cycles until a page that is not in memory has been loaded.
    pub fault_cycles: u64,
    /// Cycles that the driver spends on one page migration.
    pub migration_driver_cycles: u64,
    /// Cycles that moving the data of one page takes inside the memory, where the
    /// memory's standard has no command for it.
    pub migration_copy_cycles: u64,
    /// Pages that the driver moves at a time.
    pub migration_parallel: u32,
    /// Ports of the crossbar through which pages are copied that the memory does not
    /// copy itself; the sectors of a page take turns on them.
    pub migration_ports: u32,
    /// Which pages an application moves to channels that it has gained.
    pub migration_fill: MigrationFill,
}

/// Which pages an application moves to channels that it has gained, until all of its
/// channels hold the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationFill {
    /// Those that are used first, whichever they are (UGPU, section 4.4). Neighbours in
    /// memory then lie in the gained channels together.
    First,
    /// Of pages in a row every so many-th, as if they had been laid out over all channels
    /// from the beginning.
    Spread,
}

/// What does not hold of a machine's translation, as `key = value`.
pub(super) fn problems(machine: &Machine) -> Vec<String> {
    let Some(t) = &machine.translation else { return Vec::new() };
    let mut wrong = Vec::new();
    if !t.page_bytes.is_power_of_two() || !(1 << 12..=1 << 30).contains(&t.page_bytes) {
        let bytes = t.page_bytes;
        wrong.push(format!("translation.page_bytes = {bytes} (a power of two from 4096 to 2^30)"));
    }
    wrong.extend(refused(&[("translation.walk_levels", t.walk_levels)], |n| (1..=8).contains(&n)));
    let tables = [
        ("translation.walkers", t.walkers),
        ("translation.l2_requests_per_cycle", t.l2_requests_per_cycle),
        ("translation.migration_parallel", t.migration_parallel),
        ("translation.l1_mshr_entries", t.l1_mshr_entries),
        ("translation.l1_mshr_merge", t.l1_mshr_merge),
    ];
    wrong.extend(refused(&tables, |count| (1..=1 << 12).contains(&count)));
    let ports = [("translation.migration_ports", t.migration_ports)];
    wrong.extend(refused(&ports, |count| (1..=64).contains(&count)));
    wrong.extend(wrong_sizes(t, machine.dispatch.sms.into()));
    let cached = [
        ("translation.walk_cache_entries", t.walk_cache_entries),
        ("translation.walk_cache_lines", t.walk_cache_lines),
    ];
    wrong.extend(refused(&cached, |entries| entries <= 1 << 20));
    let latencies = [
        ("translation.l1_latency_cycles", t.l1_latency_cycles),
        ("translation.l2_latency_cycles", t.l2_latency_cycles),
    ];
    wrong.extend(refused(&latencies, |cycles| cycles < 100_000));
    // Longer than the wait after which a run counts as stuck would look like that.
    wrong.extend(refused(&[("translation.fault_cycles", t.fault_cycles)], |n| n <= 10_000_000));
    wrong
}

/// What does not hold of the entries of TLBs on a machine of so many SMs.
fn wrong_sizes(t: &Translation, sms: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, entries, ways) in [
        ("translation.l1_ways", t.l1_entries, t.l1_ways),
        ("translation.l2_ways", t.l2_entries, t.l2_ways),
    ] {
        if entries == 0 || entries > 1 << 20 || entries.checked_rem(ways) != Some(0) {
            wrong.push(format!("{key} = {ways} of {entries} entries"));
        }
    }
    let totals = [
        ("entries of all L1 TLBs", u64::from(t.l1_entries) * sms),
        ("page misses of all SMs", u64::from(t.l1_mshr_entries) * sms),
    ];
    wrong.extend(refused(&totals, |entries| entries <= 1 << 20));
    wrong
}
