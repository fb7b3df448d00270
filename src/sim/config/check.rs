//! The checks that a machine must pass: each a small named fact.

use std::fmt;

use super::cache::{Cache, SetHash};
use super::cache_policy;
use super::cache_size;
use super::constant;
use super::isa_table::IsaTable;
use super::machine::{Machine, SchedulerPolicy};
use super::translation;

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The fact that does not hold.
    pub check: &'static str,
    /// What was found.
    pub found: String,
}

impl Problem {
    pub(super) fn new(check: &'static str, found: impl fmt::Display) -> Self {
        Self { check, found: found.to_string() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.found)
    }
}

/// A fact, and what is found where it does not hold (empty: it holds).
type Check = (&'static str, fn(&Machine) -> Vec<String>);

/// One row per fact.
const CHECKS: [Check; 25] = [
    ("clocks tick: at least 1 kHz and below 100000 MHz", clocks),
    ("a count is at least 1", counts),
    ("a count is no larger than any GPU's", largest),
    ("a size is a power of two where its bits are used", powers),
    ("a latency is below 100000 cycles", latencies),
    ("a launch begins and ends within 10000000 cycles", launches),
    ("a queue is at most 1048576 long", queues),
    ("schedulers divide the warps of an SM; two-level ones alone have sm.active_warps", schedulers),
    ("a line is a multiple of the 32-byte sector, at most 8 of them", cache_size::lines),
    ("caches have sectors of 32 bytes, or whole lines of 128 in both levels", cache_size::sectors),
    ("all slices and all L1s together hold at most 1 GiB each", cache_size::totals),
    ("L2 slices are a multiple of the channels", slices),
    ("carve-outs ascend and fit the unified array", carve_outs),
    ("the L1 at its largest size is the unified array", unified),
    ("shared memory is handed out in units that divide it", shared),
    ("the registers of an SM are a multiple of the unit", registers),
    ("SMs fill their ports", ports),
    ("a percentage is at most 100", percentages),
    ("timing parameters are at least 0", timing),
    ("a hashed cache has a power of two of sets", hashed_sets),
    ("the policies of a cache go together", cache_policy::problems),
    ("pages and TLBs hold together", translation::problems),
    ("instruction caches hold together", fetch),
    ("constant caches hold together", constant::problems),
    ("energies are at least 0", energy),
];

/// Every check that `machine` with the opcode table `isa` fails.
pub(super) fn problems(machine: &Machine, isa: &IsaTable) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (check, failed) in CHECKS {
        problems.extend(failed(machine).into_iter().map(|found| Problem::new(check, found)));
    }
    for unit in isa.units().into_iter().map(gpumodel_core::isa::Unit::name) {
        if !machine.units.contains_key(unit) {
            let found = format!("models/isa/{}.toml uses `{unit}`, `units` lacks it", isa.name);
            problems.push(Problem::new("every unit of the opcode table exists", found));
        }
    }
    for unit in machine.units.keys() {
        if gpumodel_core::isa::Unit::from_name(unit).is_none() {
            let known =
                gpumodel_core::isa::Unit::ALL.map(gpumodel_core::isa::Unit::name).join(", ");
            let found = format!("`units.{unit}`; known: {known}");
            problems.push(Problem::new("a unit has a known name", found));
        }
    }
    problems
}

/// The rows of `values` that `holds` refuses, as `key = value`.
pub(super) fn refused<K: fmt::Display, T: fmt::Display + Copy>(
    values: &[(K, T)],
    holds: impl Fn(T) -> bool,
) -> Vec<String> {
    let wrong = values.iter().filter(|(_, value)| !holds(*value));
    wrong.map(|(key, value)| format!("{key} = {value}")).collect()
}

fn clocks(m: &Machine) -> Vec<String> {
    let mut clocks = vec![
        ("clocks.core_mhz", m.clocks.core_mhz),
        ("clocks.interconnect_mhz", m.clocks.interconnect_mhz),
        ("clocks.l2_mhz", m.clocks.l2_mhz),
    ];
    clocks.extend(m.clocks.dram_mhz.map(|mhz| ("clocks.dram_mhz", mhz)));
    refused(&clocks, |mhz| (0.001..100_000.0).contains(&mhz))
}

fn counts(m: &Machine) -> Vec<String> {
    let counts = [
        ("dispatch.sms", u32::from(m.dispatch.sms)),
        ("dispatch.ctas_per_cycle", m.dispatch.ctas_per_cycle),
        ("sm.max_warps", m.sm.max_warps),
        ("sm.max_ctas", m.sm.max_ctas),
        ("sm.registers", m.sm.registers),
        ("sm.register_unit", m.sm.register_unit),
        ("sm.schedulers", m.sm.schedulers),
        ("sm.issue_width", m.sm.issue_width),
        ("shared.unit_bytes", m.shared.unit_bytes),
        ("shared.banks", m.shared.banks),
        ("shared.bank_bytes", m.shared.bank_bytes),
        ("l1.banks", m.l1.banks),
        ("l1.tags_per_cycle", m.l1.tags_per_cycle),
        ("interconnect.sms_per_port", m.interconnect.sms_per_port),
        ("l2.slices", m.l2.slices),
        ("l2.accesses_per_cycle", m.l2.accesses_per_cycle),
        ("dram.channels", m.dram.channels),
        ("dram.channel_bytes_per_clock", m.dram.channel_bytes_per_clock),
    ];
    let mut wrong = refused(&counts, |count| count > 0);
    for (key, cache) in [("l1.cache", &m.l1.cache), ("l2.cache", &m.l2.cache)] {
        wrong.extend(refused(&cache_counts(key, cache), |count| count > 0));
    }
    for (name, unit) in &m.units {
        if unit.count == 0 || unit.initiation_cycles == 0 {
            let (count, initiation) = (unit.count, unit.initiation_cycles);
            wrong.push(format!("units.{name}: count {count}, initiation_cycles {initiation}"));
        }
    }
    wrong
}

/// Counts that the engine's tables grow with.
fn largest(m: &Machine) -> Vec<String> {
    let limited = [
        ("dispatch.sms", u32::from(m.dispatch.sms), 4096),
        ("sm.max_ctas", m.sm.max_ctas, 256),
        ("sm.schedulers", m.sm.schedulers, 64),
        ("sm.issue_width", m.sm.issue_width, 8),
        ("sm.register_banks", m.sm.register_banks, 1024),
        ("shared.banks", m.shared.banks, 64),
        ("l1.banks", m.l1.banks, if m.l1.bank_bytes > 0 { 32 } else { 1024 }),
        ("interconnect.flit_bytes", m.interconnect.flit_bytes, 4096),
        ("interconnect.header_bytes", m.interconnect.header_bytes, 4096),
        ("l2.accesses_per_cycle", m.l2.accesses_per_cycle, 1024),
        ("dram.channels", m.dram.channels, 1024),
    ];
    let mut wrong = Vec::new();
    for (key, value, limit) in limited {
        wrong.extend(refused(&[(key, value)], |value| value <= limit));
    }
    for (name, unit) in &m.units {
        wrong.extend(refused(&[(format!("units.{name}.count"), unit.count)], |n| n <= 1024));
    }
    wrong
}

/// The counts of a cache that must not be 0.
fn cache_counts(key: &str, cache: &Cache) -> [(String, u32); 4] {
    [
        (format!("{key}.sets"), cache.sets),
        (format!("{key}.ways"), cache.ways),
        (format!("{key}.mshr_entries"), cache.mshr_entries),
        (format!("{key}.mshr_merge"), cache.mshr_merge),
    ]
}

fn powers(m: &Machine) -> Vec<String> {
    let sizes = [
        ("l1.cache.line_bytes", m.l1.cache.line_bytes),
        ("l2.cache.line_bytes", m.l2.cache.line_bytes),
        ("shared.banks", m.shared.banks),
        ("shared.bank_bytes", m.shared.bank_bytes),
    ];
    refused(&sizes, u32::is_power_of_two)
}

fn latencies(m: &Machine) -> Vec<String> {
    let mut latencies = vec![
        ("shared.latency_cycles", m.shared.latency_cycles),
        ("l1.latency_cycles", m.l1.latency_cycles),
        ("interconnect.latency_cycles", m.interconnect.latency_cycles),
        ("l2.latency_cycles", m.l2.latency_cycles),
        ("dram.latency_cycles", m.dram.latency_cycles),
        ("sm.dependent_issue_cycles", m.sm.dependent_issue_cycles),
        ("sm.branch_cycles", m.sm.branch_cycles),
        ("sm.first_issue_cycles", m.sm.first_issue_cycles),
        ("sm.memory_issue_cycles", m.sm.memory_issue_cycles),
        ("sm.exit_cycles", m.sm.exit_cycles),
        ("quirks.refetch_cycles", m.quirks.refetch_cycles),
    ];
    for (name, unit) in &m.units {
        latencies.push((name, unit.latency_cycles));
        latencies.push((name, unit.initiation_cycles));
    }
    refused(&latencies, |cycles| cycles < 100_000)
}

fn launches(m: &Machine) -> Vec<String> {
    let launches = [
        ("dispatch.kernel_launch_cycles", m.dispatch.kernel_launch_cycles),
        ("dispatch.cta_launch_cycles", m.dispatch.cta_launch_cycles),
        ("dispatch.kernel_retire_cycles", m.dispatch.kernel_retire_cycles),
    ];
    refused(&launches, |cycles| cycles <= 10_000_000)
}

fn queues(m: &Machine) -> Vec<String> {
    let queues = [
        ("l1.queue", m.l1.queue),
        ("interconnect.input_queue", m.interconnect.input_queue),
        ("interconnect.output_queue", m.interconnect.output_queue),
        ("l2.input_queue", m.l2.input_queue),
        ("l2.dram_queue", m.l2.dram_queue),
        ("l2.reply_queue", m.l2.reply_queue),
        ("dram.queue", m.dram.queue),
    ];
    let mut wrong = refused(&queues, |entries| entries > 0 && entries <= 1 << 20);
    let caches = [
        ("l1.cache.mshr_entries", m.l1.cache.mshr_entries),
        ("l2.cache.mshr_entries", m.l2.cache.mshr_entries),
    ];
    wrong.extend(refused(&caches, |entries| entries <= 1 << 20));
    wrong
}

fn schedulers(m: &Machine) -> Vec<String> {
    let whole = m.sm.max_warps.checked_rem(m.sm.schedulers) == Some(0) && m.sm.max_warps <= 256;
    let found = format!("{} warps on {} schedulers", m.sm.max_warps, m.sm.schedulers);
    let two_level = m.sm.policy == SchedulerPolicy::TwoLevel;
    let mut wrong =
        refused(&[("sm.active_warps", m.sm.active_warps)], |warps| (warps > 0) == two_level);
    wrong.extend((!whole).then_some(found));
    wrong
}

fn slices(m: &Machine) -> Vec<String> {
    let whole = m.l2.slices.checked_rem(m.dram.channels) == Some(0) && m.l2.slices <= 4096;
    let found = format!("{} slices on {} channels", m.l2.slices, m.dram.channels);
    if whole { Vec::new() } else { vec![found] }
}

fn carve_outs(m: &Machine) -> Vec<String> {
    let sizes = &m.l1.carve_outs_bytes;
    let mut wrong = Vec::new();
    if !sizes.is_sorted_by(|a, b| a < b) {
        wrong.push(format!("{sizes:?} does not ascend"));
    }
    if sizes.last().is_some_and(|&largest| largest > m.l1.unified_bytes) {
        wrong.push(format!("{sizes:?} exceeds l1.unified_bytes = {}", m.l1.unified_bytes));
    }
    if sizes.last().is_some_and(|&largest| largest < m.shared.bytes) {
        wrong.push(format!("{sizes:?} has no room for shared.bytes = {}", m.shared.bytes));
    }
    wrong
}

fn unified(m: &Machine) -> Vec<String> {
    let (array, unified) = (cache_size::bytes(&m.l1.cache), u64::from(m.l1.unified_bytes));
    let smallest = m.l1.carve_outs_bytes.first().copied().map_or(0, u64::from);
    if unified == 0 || array + smallest == unified {
        return Vec::new();
    }
    vec![format!(
        "l1.cache has {array} bytes; {unified} unified less the smallest carve-out is {}",
        unified.saturating_sub(smallest)
    )]
}

fn shared(m: &Machine) -> Vec<String> {
    let whole = m.shared.bytes.checked_rem(m.shared.unit_bytes) == Some(0);
    let found = format!("{} bytes in units of {}", m.shared.bytes, m.shared.unit_bytes);
    if whole { Vec::new() } else { vec![found] }
}

fn registers(m: &Machine) -> Vec<String> {
    let whole = m.sm.registers.checked_rem(m.sm.register_unit) == Some(0);
    let found = format!("{} registers in units of {}", m.sm.registers, m.sm.register_unit);
    if whole { Vec::new() } else { vec![found] }
}

fn ports(m: &Machine) -> Vec<String> {
    let sms = u32::from(m.dispatch.sms);
    let whole = sms.checked_rem(m.interconnect.sms_per_port) == Some(0);
    let found = format!("{sms} SMs in groups of {}", m.interconnect.sms_per_port);
    if whole { Vec::new() } else { vec![found] }
}

fn percentages(m: &Machine) -> Vec<String> {
    refused(
        &[
            ("l1.dirty_percent", m.l1.dirty_percent),
            ("sm.knee_loss_percent", m.sm.knee_loss_percent),
            ("l1.cache.dirty_ways_percent", m.l1.cache.dirty_ways_percent.unwrap_or(100)),
            ("l2.cache.dirty_ways_percent", m.l2.cache.dirty_ways_percent.unwrap_or(100)),
        ],
        |percent| percent <= 100,
    )
}

fn timing(m: &Machine) -> Vec<String> {
    let wrong = m.dram.timing.iter().filter(|(_, value)| !(value.is_finite() && **value >= 0.0));
    wrong.map(|(key, value)| format!("dram.timing.{key} = {value}")).collect()
}

fn hashed_sets(m: &Machine) -> Vec<String> {
    let caches = [("l1.cache", &m.l1.cache), ("l2.cache", &m.l2.cache)];
    let wrong = caches
        .iter()
        .filter(|(_, cache)| cache.hash != SetHash::Linear && !cache.sets.is_power_of_two());
    wrong.map(|(key, cache)| format!("{key}: {} sets with {:?}", cache.sets, cache.hash)).collect()
}

fn fetch(m: &Machine) -> Vec<String> {
    let Some(f) = &m.fetch else { return Vec::new() };
    let mut wrong = refused(&[("fetch.line_bytes", f.line_bytes)], |bytes| {
        bytes.is_power_of_two() && (32..=1024).contains(&bytes)
    });
    for (key, bytes, ways) in [
        ("fetch.inner_ways", f.inner_bytes, f.inner_ways),
        ("fetch.outer_ways", f.outer_bytes, f.outer_ways),
    ] {
        let way_bytes = u64::from(f.line_bytes) * u64::from(ways);
        if bytes == 0 || bytes > 1 << 24 || u64::from(bytes).checked_rem(way_bytes) != Some(0) {
            wrong.push(format!("{key} = {ways} of {bytes} bytes"));
        }
    }
    if f.inner_caches == 0 || !m.sm.schedulers.is_multiple_of(f.inner_caches) {
        wrong.push(format!(
            "{} schedulers on fetch.inner_caches = {}",
            m.sm.schedulers, f.inner_caches
        ));
    }
    let cycles = [
        ("fetch.outer_latency_cycles", f.outer_latency_cycles),
        ("fetch.outer_interval_cycles", f.outer_interval_cycles),
    ];
    wrong.extend(refused(&cycles, |cycles| cycles < 100_000));
    wrong.extend(refused(&[("fetch.prefetch_lines", f.prefetch_lines)], |lines| lines <= 1024));
    wrong.extend(refused(&[("fetch.outer_outstanding", f.outer_outstanding)], |lines| {
        (1..=1024).contains(&lines)
    }));
    wrong
}

fn energy(m: &Machine) -> Vec<String> {
    let Some(e) = &m.energy else { return Vec::new() };
    let values = [
        ("energy.static_watts", e.static_watts),
        ("energy.dram_static_watts", e.dram_static_watts),
        ("energy.thread_instruction_pj", e.thread_instruction_pj),
        ("energy.l1_sector_pj", e.l1_sector_pj),
        ("energy.interconnect_sector_pj", e.interconnect_sector_pj),
        ("energy.l2_sector_pj", e.l2_sector_pj),
        ("energy.dram_sector_pj", e.dram_sector_pj),
        ("energy.dram_activate_pj", e.dram_activate_pj),
    ];
    refused(&values, |value| value.is_finite() && value >= 0.0)
}
