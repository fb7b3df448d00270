//! The link between host and device: what copies and page faults of managed memory take.

use serde::{Deserialize, Serialize};

use super::machine::Machine;

/// The link to the host and the copy engines behind it.
///
/// Copies take time only where `copies` is true. A copy takes `latency_us`, then its bytes at
/// the bandwidth of its direction. Copies of one direction share an engine: their latencies
/// overlap, their bytes go one after another. Each direction has an engine of its own. What
/// copies do to the caches and channels of kernels that run meanwhile is not modelled: the link
/// has a few percent of the bandwidth of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Copies take time; false: they are over at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copies: bool,
    /// Which memory is managed: its pages come over the link when they are first touched.
    #[serde(default, skip_serializing_if = "ManagedMemory::is_none")]
    pub managed: ManagedMemory,
    /// From the host, in 10^9 bytes per second.
    pub host_to_device_gb_per_s: f64,
    /// To the host.
    pub device_to_host_gb_per_s: f64,
    /// What a copy takes before its first byte, in microseconds.
    pub latency_us: f64,
    /// A copy within the device reads and writes its bytes at this share of the peak bandwidth
    /// of the memory.
    pub device_copy_percent: f64,
    /// What a page fault takes before the first byte of its page, in microseconds.
    pub fault_us: f64,
    /// Bytes that a page fault brings.
    pub fault_bytes: u32,
}

/// Which memory is managed.
///
/// Modelled: a request of an SM to a page that is not there waits; the first one costs
/// `fault_us`, which faults spend together, and the way of `fault_bytes` over the link, one page
/// after another. Not modelled: the driver's batches and its prefetcher, eviction, and the way
/// back when the host touches a page. After Zheng et al. 2016 (HPCA), who take 20 us of the 20 to
/// 50 us that they measured; so a single fault is up to 2.5 times too fast, and a stream, of
/// which drivers bring up to 2 MB ahead, too slow by up to the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ManagedMemory {
    /// None: all pages are in the device's memory.
    #[default]
    None,
    /// All that the program has: pages of copies to the device are there from the end of the
    /// copy on, the others when a kernel has first touched them.
    All,
}

impl ManagedMemory {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl Link {
    /// Whether anything of it takes time.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.copies || self.managed != ManagedMemory::None
    }
}

/// The longest latency, far below the wait after which a run counts as stuck.
const LONGEST_US: f64 = 10_000.0;

/// What does not hold of a machine's link, as `key = value`.
pub(super) fn problems(machine: &Machine) -> Vec<String> {
    let Some(link) = &machine.link else { return Vec::new() };
    let mut wrong = Vec::new();
    for (key, value) in [
        ("link.host_to_device_gb_per_s", link.host_to_device_gb_per_s),
        ("link.device_to_host_gb_per_s", link.device_to_host_gb_per_s),
    ] {
        if !(0.001..=100_000.0).contains(&value) {
            wrong.push(format!("{key} = {value} (from 0.001 to 100000)"));
        }
    }
    for (key, value) in [("link.latency_us", link.latency_us), ("link.fault_us", link.fault_us)] {
        if !(0.0..=LONGEST_US).contains(&value) {
            wrong.push(format!("{key} = {value} (from 0 to {LONGEST_US})"));
        }
    }
    let percent = link.device_copy_percent;
    if !(1.0..=100.0).contains(&percent) {
        wrong.push(format!("link.device_copy_percent = {percent} (from 1 to 100)"));
    }
    let bytes = link.fault_bytes;
    if !bytes.is_power_of_two() || !(1 << 12..=1 << 30).contains(&bytes) {
        wrong.push(format!("link.fault_bytes = {bytes} (a power of two from 4096 to 2^30)"));
    }
    let paged = machine.translation.as_ref().is_some_and(|spec| spec.demand_paging);
    if paged && link.managed != ManagedMemory::None {
        wrong.push(String::from(
            "link.managed = all with translation.demand_paging = true: a page would fault twice",
        ));
    }
    wrong
}
