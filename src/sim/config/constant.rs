//! Constant caches of a machine.

use serde::{Deserialize, Serialize};

use super::check::refused;
use super::machine::Machine;

/// The way of constant loads that carry addresses: an inner constant cache per
/// SM, then the outer cache of [`super::Fetch`] where both share it, then the
/// L2. Latencies in core cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Bytes of the inner cache.
    pub bytes: u32,
    /// Its ways.
    pub ways: u32,
    /// Bytes of its lines: a power of two, 32 to 128.
    pub line_bytes: u32,
    /// Cycles from the look-up of a word until its data is there.
    pub latency_cycles: u32,
    /// Lines that it may await from the L2 at a time.
    pub outstanding: u32,
    /// What misses is asked of the outer cache of `fetch`; false: of the L2.
    pub shares_outer: bool,
}

/// What does not hold of a machine's constant caches, as `key = value`.
pub(super) fn problems(machine: &Machine) -> Vec<String> {
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
    wrong.extend(refused(&[("constant.outstanding", c.outstanding)], |n| (1..=1024).contains(&n)));
    let outer = machine.fetch.as_ref().map_or(0, |fetch| fetch.line_bytes);
    if c.shares_outer && outer < c.line_bytes {
        wrong.push(format!("constant.shares_outer with outer lines of {outer} bytes"));
    }
    wrong
}
