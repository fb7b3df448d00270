//! Requests on their way through a channel, and how long reads took.

use std::collections::BTreeMap;

use super::dram_requests::Access;
use gpumodel_core::units::{to_u32, to_usize};
use gpumodel_sim::dram::Done;

/// Latencies below this are counted in a table.
const SHORT: u64 = 4096;

/// A histogram of latencies in clocks, exact.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    short: Vec<u64>,
    long: BTreeMap<u64, u64>,
    count: u64,
    sum: u128,
}

impl Latencies {
    fn add(&mut self, latency: u64) {
        self.count += 1;
        self.sum += u128::from(latency);
        if latency < SHORT {
            self.short.resize(self.short.len().max(to_usize(SHORT)), 0);
            self.short[to_usize(latency)] += 1;
        } else {
            *self.long.entry(latency).or_insert(0) += 1;
        }
    }

    /// Mean in clocks; 0 when nothing was read.
    #[allow(clippy::cast_precision_loss)] // a mean of clocks
    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The smallest latency that `percent` of all reads do not exceed.
    pub(super) fn percentile(&self, percent: u64) -> u64 {
        let wanted = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let short = self.short.iter().enumerate().map(|(at, count)| (at as u64, *count));
        let long = self.long.iter().map(|(latency, count)| (*latency, *count));
        let mut seen = 0;
        let found = short.chain(long).find(|(_, count)| {
            seen += u128::from(*count);
            seen >= wanted && wanted > 0
        });
        found.map_or(0, |(latency, _)| latency)
    }
}

/// One request of which some accesses are still on their way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    accepted: u64,
    last_done: u64,
    left: u32,
    write: bool,
}

/// All requests on their way; tokens are slots of the table.
#[derive(Clone, Debug, Default)]
pub(super) struct Outstanding {
    table: Vec<Pending>,
    free: Vec<u32>,
    /// The request whose accesses are being accepted.
    open: Option<u32>,
    requests: u64,
    last_done: u64,
    last_read_done: u64,
}

impl Outstanding {
    /// The token of an access that is accepted at `clock`.
    pub(super) fn accept(&mut self, clock: u64, access: &Access, into: &mut Latencies) -> u32 {
        if access.first {
            self.close(into);
        }
        let slot = self.open.unwrap_or_else(|| self.begin(clock, access.write));
        self.open = Some(slot);
        self.table[slot as usize].left += 1;
        slot
    }

    fn begin(&mut self, clock: u64, write: bool) -> u32 {
        self.requests += 1;
        let pending = Pending { accepted: clock, last_done: 0, left: 0, write };
        if let Some(slot) = self.free.pop() {
            self.table[slot as usize] = pending;
            return slot;
        }
        self.table.push(pending);
        to_u32(self.table.len() - 1)
    }

    /// The open request has no further access.
    pub(super) fn close(&mut self, into: &mut Latencies) {
        if let Some(slot) = self.open.take() {
            self.finish(slot, into);
        }
    }

    /// An access was served.
    pub(super) fn done(&mut self, done: Done, into: &mut Latencies) {
        let pending = &mut self.table[done.token as usize];
        pending.left -= 1;
        pending.last_done = pending.last_done.max(done.clock);
        self.last_done = self.last_done.max(done.clock);
        if !pending.write {
            self.last_read_done = self.last_read_done.max(done.clock);
        }
        if self.open != Some(done.token) {
            self.finish(done.token, into);
        }
    }

    fn finish(&mut self, slot: u32, into: &mut Latencies) {
        let pending = self.table[slot as usize];
        if pending.left == 0 {
            if !pending.write {
                into.add(pending.last_done - pending.accepted);
            }
            self.free.push(slot);
        }
    }

    /// Requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Clock at which the last access was done.
    pub(super) fn last_done(&self) -> u64 {
        self.last_done
    }

    /// Clock of the last read's last data beat.
    pub(super) fn last_read_done(&self) -> u64 {
        self.last_read_done
    }
}

#[cfg(test)]
mod tests {
    use super::Latencies;

    #[test]
    fn percentiles_are_exact_on_both_sides_of_the_table() {
        let mut latencies = Latencies::default();
        for latency in 1..=100 {
            latencies.add(latency * 100);
        }
        assert_eq!(latencies.percentile(99), 9900);
        assert_eq!(latencies.percentile(40), 4000);
        assert!((latencies.mean() - 5050.0).abs() < 1e-9);
        assert_eq!(Latencies::default().percentile(99), 0);
    }
}
