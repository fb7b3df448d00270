//! The checks that a machine must pass: each a small named fact.

use std::fmt;

use gpumodel_core::units::SECTOR_BYTES;

use super::cache::{AllocatePolicy, Cache, SetHash, WriteMiss, WritePolicy};
use super::cluster;
use super::isa_table::IsaTable;
use super::link;
use super::machine::{Allocation, Machine, PortQueues, RequestGranularity};
use super::mig;
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
const CHECKS: [Check; 28] = [
    ("clocks tick: at least 1 kHz and below 100000 MHz", clocks),
    ("a count is at least 1", counts),
    ("a count is no larger than any GPU's", largest),
    ("a size is a power of two where its bits are used", powers),
    ("a latency is below 100000 cycles", latencies),
    ("a launch begins and ends within 10000000 cycles", launches),
    ("a queue is at most 1048576 long", queues),
    ("schedulers divide the warps of an SM; active sets alone have sm.active_warps", schedulers),
    ("a line is a multiple of the 32-byte sector, at most 8 of them", cache_lines),
    ("caches have sectors of 32 bytes, or whole lines of 128 in both levels", cache_sectors),
    ("all slices and all L1s together hold at most 1 GiB each", cache_totals),
    ("L2 slices are a multiple of the channels", slices),
    ("carve-outs ascend and fit the unified array", carve_outs),
    ("the L1 at its largest size is the unified array", unified),
    ("shared memory is handed out in units that divide it", shared),
    ("the registers of an SM are a multiple of the unit", registers),
    ("SMs fill their ports", ports),
    ("a percentage is at most 100", percentages),
    ("timing parameters are at least 0", timing),
    ("a hashed cache has a power of two of sets, 32 or 64 for fermi", hashed_sets),
    ("the policies of a cache go together", cache_policies),
    ("pages and TLBs hold together", translation::problems),
    ("clusters hold together", cluster::problems),
    ("the link to the host holds together", link::problems),
    ("instances fit the machine", mig::problems),
    ("instruction caches hold together", fetch),
    ("constant caches hold together", constant_caches),
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
        ("l2.atomic_lanes", m.l2.atomic_lanes, 32),
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
        ("l2.far_half_cycles", m.l2.far_half_cycles),
        ("dram.latency_cycles", m.dram.latency_cycles),
        ("sm.dependent_issue_cycles", m.sm.dependent_issue_cycles),
        ("sm.cross_unit_cycles", m.sm.cross_unit_cycles),
        ("sm.sfu_operand_cycles", m.sm.sfu_operand_cycles),
        ("sm.memory_operand_cycles", m.sm.memory_operand_cycles),
        ("sm.branch_cycles", m.sm.branch_cycles),
        ("sm.first_issue_cycles", m.sm.first_issue_cycles),
        ("sm.memory_issue_cycles", m.sm.memory_issue_cycles),
        ("sm.exit_cycles", m.sm.exit_cycles),
        ("sm.barrier_cycles", m.sm.barrier_cycles),
        ("sm.barrier_arrival_cycles", m.sm.barrier_arrival_cycles),
        ("sm.bulk_copy_cycles", m.sm.bulk_copy_cycles),
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
        ("dispatch.cta_interval_cycles", u64::from(m.dispatch.cta_interval_cycles)),
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
    let active_set = m.sm.policy.has_active_set();
    let mut wrong =
        refused(&[("sm.active_warps", m.sm.active_warps)], |warps| (warps > 0) == active_set);
    wrong.extend((!whole).then_some(found));
    if m.sm.leaves_at_any_wait && !active_set {
        wrong.push("sm.leaves_at_any_wait = true and sm.policy without an active set".to_owned());
    }
    wrong
}

fn slices(m: &Machine) -> Vec<String> {
    let whole = m.l2.slices.checked_rem(m.dram.channels) == Some(0) && m.l2.slices <= 4096;
    let found = format!("{} slices on {} channels", m.l2.slices, m.dram.channels);
    let mut wrong = if whole { Vec::new() } else { vec![found] };
    let by_line = m.interconnect.request_granularity == RequestGranularity::Line;
    if m.l2.far_half_cycles > 0 && !(by_line && m.l2.slices.is_multiple_of(2)) {
        wrong.push(format!(
            "l2.far_half_cycles = {} with {} slices; two halves need an even number of them, and \
             interconnect.request_granularity = \"line\"",
            m.l2.far_half_cycles, m.l2.slices
        ));
    }
    wrong
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
    let (array, unified) = (cache_bytes(&m.l1.cache), u64::from(m.l1.unified_bytes));
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
    let holds = |cache: &Cache| match cache.hash {
        SetHash::Linear => true,
        SetHash::Xor | SetHash::Ipoly => cache.sets.is_power_of_two(),
        SetHash::Fermi => matches!(cache.sets, 32 | 64),
    };
    let wrong = caches.iter().filter(|(_, cache)| !holds(cache));
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

/// Lines of whole sectors, not too many.
fn cache_lines(m: &Machine) -> Vec<String> {
    let sizes = [
        ("l1.cache.line_bytes", m.l1.cache.line_bytes),
        ("l2.cache.line_bytes", m.l2.cache.line_bytes),
    ];
    refused(&sizes, |bytes| {
        let bytes = u64::from(bytes);
        bytes >= SECTOR_BYTES && bytes.is_multiple_of(SECTOR_BYTES) && bytes <= 8 * SECTOR_BYTES
    })
}

/// Whole lines are those of the coalescer; both levels ask for the same.
fn cache_sectors(m: &Machine) -> Vec<String> {
    let bytes = m.l1.cache.sector_bytes;
    let whole = bytes == 128
        && m.l1.cache.line_bytes == bytes
        && m.l2.cache.line_bytes == bytes
        && m.l1.bank_bytes == 0;
    let sector = u64::from(bytes) == SECTOR_BYTES;
    let found = format!(
        "l1.cache.sector_bytes {bytes}, l2.cache.sector_bytes {}: 32 both, or 128 both with \
         lines of 128 bytes and l1.bank_bytes 0",
        m.l2.cache.sector_bytes
    );
    let same = m.l2.cache.sector_bytes == bytes;
    if same && (sector || whole) { Vec::new() } else { vec![found] }
}

/// Bytes that a cache holds.
fn cache_bytes(cache: &Cache) -> u64 {
    u64::from(cache.sets)
        .saturating_mul(u64::from(cache.ways))
        .saturating_mul(u64::from(cache.line_bytes))
}

/// No more than any GPU has.
fn cache_totals(m: &Machine) -> Vec<String> {
    let fetch = m.fetch.as_ref().map_or(0, |f| f.inner_bytes.max(f.outer_bytes));
    let constant = m.constant.as_ref().map_or(0, |c| c.bytes);
    let l1 = cache_bytes(&m.l1.cache).saturating_mul(u64::from(m.dispatch.sms));
    let l2 = cache_bytes(&m.l2.cache).saturating_mul(u64::from(m.l2.slices));
    let sms = u64::from(m.dispatch.sms);
    let totals = [
        ("bytes of all L1s", l1),
        ("bytes of all slices", l2),
        ("bytes of all instruction caches", u64::from(fetch) * sms),
        ("bytes of all constant caches", u64::from(constant) * sms),
    ];
    refused(&totals, |bytes| bytes <= 1 << 30)
}

/// The combinations in `machine` that mean nothing, each with its reason.
fn cache_policies(machine: &Machine) -> Vec<String> {
    let caches = [("l1.cache", &machine.l1.cache), ("l2.cache", &machine.l2.cache)];
    let mut found: Vec<String> = caches
        .into_iter()
        .filter_map(|(key, cache)| Some(format!("{key}: {}", contradiction(cache)?)))
        .collect();
    if machine.l2.cache.write == WritePolicy::LocalWriteBack {
        found.push("l2.cache: `local-write-back`, but only an L1 knows local memory".to_owned());
    }
    let l1 = &machine.l1.cache;
    if l1.write_miss == WriteMiss::ThroughAndFetch && contradiction(l1).is_none() {
        found.push("l1.cache: `through-and-fetch`, but only an L2 has it".to_owned());
    }
    let (l1, crossbar) = (&machine.l1, &machine.interconnect);
    if l1.bank_bytes != 0 && (!l1.bank_bytes.is_power_of_two() || l1.bank_bytes < 32) {
        found.push(format!("l1.bank_bytes = {}: 0, or a power of two from 32 on", l1.bank_bytes));
    }
    if l1.returns_per_cycle > 1 {
        found.push(format!("l1.returns_per_cycle = {}: 0 or 1", l1.returns_per_cycle));
    }
    if crossbar.allocation == Allocation::Matched && crossbar.flit_bytes > 0 {
        found.push("interconnect: `matched` ports move packets of one flit: flit_bytes = 0".into());
    }
    if !(1..=8).contains(&crossbar.sm_port_flits) {
        found.push(format!("interconnect.sm_port_flits = {}: 1 to 8", crossbar.sm_port_flits));
    }
    if crossbar.allocation == Allocation::Matched
        && (crossbar.port_queues != PortQueues::Fifo || crossbar.sm_port_flits != 1)
    {
        found.push(
            "interconnect: `matched` ports have one queue, and one packet crosses per cycle: \
             port_queues = \"fifo\", sm_port_flits = 1"
                .into(),
        );
    }
    if crossbar.request_granularity == RequestGranularity::Line {
        found.extend(without_lines(machine).map(|why| {
            format!("interconnect.request_granularity = \"line\": {why}, or \"sector\"")
        }));
    }
    found
}

/// What a machine needs for requests by line and lacks, if anything.
fn without_lines(machine: &Machine) -> Option<&'static str> {
    let sectored = |cache: &Cache| (cache.line_bytes, cache.sector_bytes) == (128, 32);
    if !sectored(&machine.l1.cache) || !sectored(&machine.l2.cache) {
        return Some("expected lines of 128 bytes and sectors of 32 in L1 and L2");
    }
    if machine.interconnect.allocation == Allocation::Matched {
        return Some("expected interconnect.allocation = \"independent\"");
    }
    (machine.l1.bank_bytes != 0).then_some("expected l1.bank_bytes = 0")
}

/// Why the write policies of one cache contradict each other, if they do.
fn contradiction(cache: &Cache) -> Option<&'static str> {
    use WriteMiss::{Fetch, Lazy, ThroughAndFetch};
    match (cache.write, cache.write_miss, cache.allocate) {
        (WritePolicy::WriteEvict, Fetch | Lazy | ThroughAndFetch, _) => Some(
            "`write-evict` drops what is written, so a write takes no way: write_miss = \"around\"",
        ),
        (WritePolicy::WriteThrough, Fetch | ThroughAndFetch, _) => Some(
            "`write-through` leaves nothing to complete, so a write fetches nothing: write_miss = \
             \"lazy\" or \"around\"",
        ),
        (WritePolicy::WriteBack | WritePolicy::LocalWriteBack, Fetch, AllocatePolicy::OnFill) => {
            Some(
                "the bytes of a write that fetches its sector need a way until it comes: allocate = \
             \"on-miss\", or write_miss = \"lazy\" or \"around\"",
            )
        }
        _ => None,
    }
}

/// What does not hold of a machine's constant caches, as `key = value`.
fn constant_caches(machine: &Machine) -> Vec<String> {
    let Some(c) = &machine.constant else { return Vec::new() };
    let mut wrong = refused(&[("constant.line_bytes", c.line_bytes)], |bytes| {
        bytes.is_power_of_two() && (32..=128).contains(&bytes)
    });
    let way_bytes = u64::from(c.line_bytes) * u64::from(c.ways);
    let whole = u64::from(c.bytes).checked_rem(way_bytes) == Some(0);
    if c.bytes == 0 || c.bytes > 1 << 24 || !whole {
        wrong.push(format!("constant.ways = {} of {} bytes", c.ways, c.bytes));
    }
    wrong.extend(refused(&[("constant.latency_cycles", c.latency_cycles)], |n| n < 100_000));
    wrong.extend(refused(&[("constant.word_cycles", c.word_cycles)], |n| (1..=1024).contains(&n)));
    wrong.extend(refused(&[("constant.outstanding", c.outstanding)], |n| (1..=1024).contains(&n)));
    let outer = machine.fetch.as_ref().map_or(0, |fetch| fetch.line_bytes);
    if c.shares_outer && outer < c.line_bytes {
        wrong.push(format!("constant.shares_outer with outer lines of {outer} bytes"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::cache_policies;
    use crate::config::Models;

    const WRITES: [&str; 4] = ["write-through", "write-evict", "write-back", "local-write-back"];
    const MISSES: [&str; 4] = ["around", "lazy", "fetch", "through-and-fetch"];
    const ALLOCATES: [&str; 2] = ["on-miss", "on-fill"];

    fn refused(cache: &str, write: &str, miss: &str, allocate: &str) -> Vec<String> {
        let set = |key: &str, value: &str| (format!("{cache}.{key}"), value.to_owned());
        let set = [set("write", write), set("write_miss", miss), set("allocate", allocate)];
        let (resolved, found) = Models::builtin().examine("accelsim-qv100", &set).unwrap();
        let own = cache_policies(&resolved.machine);
        assert_eq!(own.is_empty(), found.is_empty(), "{found:?}");
        own
    }

    #[test]
    fn what_means_nothing_is_refused_with_a_way_out() {
        let mut taken = 0;
        for cache in ["l1.cache", "l2.cache"] {
            for write in WRITES {
                for miss in MISSES {
                    for allocate in ALLOCATES {
                        let wrong = refused(cache, write, miss, allocate);
                        taken += u32::from(wrong.is_empty());
                        assert!(wrong.iter().all(|text| text.starts_with(cache)), "{wrong:?}");
                    }
                }
            }
        }
        // Through: around, lazy; evict: around; back and local: those and fetch
        // on a miss. The L2 has no local memory, and alone fetches what it passes on.
        assert_eq!(taken, (4 + 2 + 5 + 5) + (4 + 2 + 5 + 2));
        let wrong = refused("l1.cache", "write-evict", "lazy", "on-miss");
        assert!(wrong[0].contains("write_miss = \"around\""), "{wrong:?}");
        let wrong = refused("l2.cache", "local-write-back", "lazy", "on-miss");
        assert!(wrong[0].contains("only an L1"), "{wrong:?}");
    }
}
