//! `dram`: runs a request file through one memory channel, to a command list and a record.

pub(crate) mod requests;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufRead, Write};

use rustc_hash::FxHashMap;
use thiserror::Error;

use gpumodel_core::models::ModelFiles;
use gpumodel_core::toml::{Place, TomlError};
use gpumodel_core::units::{to_u32, to_u64};
use gpumodel_report::results::DramRecord;
use gpumodel_sim::config::{MemoryStandard, Refresh, SpecError};
use gpumodel_sim::dram::{Channel, ControllerOptions, Done, Issued, Request};

use crate::RequestError;
use requests::{Access, Requests};

pub use requests::RequestFormat;

/// The longest gap between requests if commands are listed, since each refresh is a line.
const MAX_LISTED_GAP: u64 = 1 << 32;

/// Commands are written after so many clocks, to bound the memory that holds them.
const WRITE_INTERVAL: u64 = 1 << 20;

/// Why a channel could not be run.
#[derive(Debug, Error)]
pub enum DramError {
    /// The memory standard or a `--set` option.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The request file.
    #[error(transparent)]
    Requests(#[from] RequestError),
    /// A `--set` option that is no `KEY=VALUE`.
    #[error("--set {word}: expected KEY=VALUE, as in --set act_clocks=2")]
    Override {
        /// The option.
        word: String,
    },
    /// The command list could not be written.
    #[error("cannot write the command list")]
    Commands(#[source] io::Error),
}

/// One channel to run: a memory standard with changed options and parameters.
#[derive(Clone, Debug)]
pub struct DramJob {
    standard: MemoryStandard,
    options: ControllerOptions,
    overrides: BTreeMap<String, String>,
}

impl DramJob {
    /// The standard `spec` (a name or a file, see [`MemoryStandard::load`]) with
    /// the `KEY=VALUE` pairs of `changes`: controller options and parameters.
    ///
    /// # Errors
    /// Unknown standards and keys, values out of range.
    pub fn new(
        spec: impl AsRef<OsStr>,
        models: &ModelFiles,
        changes: &[String],
    ) -> Result<Self, DramError> {
        let mut overrides = BTreeMap::new();
        for word in changes {
            let pair =
                word.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
            let (key, value) = pair.ok_or_else(|| DramError::Override { word: word.clone() })?;
            overrides.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        let place = Place::new("--set", 0);
        let is_option = |(key, _): &(&String, &String)| ControllerOptions::knows(key);
        let (option_values, parameter_values): (Vec<_>, Vec<_>) =
            overrides.iter().partition(is_option);
        let mut parameters = BTreeMap::new();
        for (key, value) in parameter_values {
            let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
            let number = number.ok_or_else(|| {
                SpecError::from(TomlError::Value {
                    place: place.clone(),
                    key: key.clone(),
                    expected: "a number".to_owned(),
                    found: format!("`{value}`"),
                    nearest: None,
                })
            })?;
            parameters.insert(key.clone(), number);
        }
        let standard = MemoryStandard::load(spec, models, &parameters)?;
        let mut options = standard.controller.clone();
        for (key, value) in option_values {
            options.set(&place, key, value)?;
        }
        Ok(Self { standard, options, overrides })
    }

    /// Runs the requests in `file` (named `name` in errors) and writes every
    /// command to `commands` as CSV.
    ///
    /// # Errors
    /// A request line that is invalid, or so late that the refreshes before it are too many to
    /// list; a failing write.
    pub fn run<'a>(
        &'a self,
        name: &str,
        file: impl BufRead,
        format: RequestFormat,
        commands: Option<&'a mut (dyn Write + 'a)>,
    ) -> Result<DramRecord, DramError> {
        let requests = Requests::new(name, file, format, &self.standard);
        let mut run = ChannelRun {
            standard: &self.standard,
            channel: Channel::new(&self.standard, &self.options),
            outstanding: OutstandingRequests::default(),
            latencies: LatencyHistogram::default(),
            idle_at: 0,
            max_gap: match self.options.refresh {
                Refresh::None => u64::MAX,
                Refresh::AllBank | Refresh::PerBank => MAX_LISTED_GAP,
            },
            commands,
            accesses: 0,
        };
        run.run(requests)?;
        Ok(self.record(&run))
    }

    fn record(&self, run: &ChannelRun<'_>) -> DramRecord {
        let counters = run.channel.counters();
        let cycles = run.outstanding.last_done();
        let moved = (counters.reads + counters.writes) * to_u64(self.standard.bytes_per_access);
        // Posted writes are done before their data moves: the channel then ends later.
        let possible = self.standard.peak_bytes_per_clock() * cycles.max(run.idle_at) as f64;
        DramRecord {
            schema: DramRecord::SCHEMA.to_owned(),
            spec: self.standard.name.clone(),
            requests: run.outstanding.requests(),
            accesses: run.accesses,
            cycles,
            last_read_done_cycle: run.outstanding.last_read_done(),
            bandwidth_utilization: if cycles == 0 { 0.0 } else { moved as f64 / possible },
            mean_read_latency_cycles: run.latencies.mean(),
            p99_read_latency_cycles: run.latencies.percentile(99) as f64,
            row_hits: counters.row_hits,
            row_misses: counters.row_misses,
            row_conflicts: counters.row_conflicts,
            activates: counters.activates,
            refreshes: counters.refreshes,
            reads: counters.reads,
            writes: counters.writes,
            clock_khz: self.standard.clock_khz,
            overrides: self.overrides.clone(),
        }
    }
}

/// A channel in a run, with its outstanding requests.
struct ChannelRun<'a> {
    standard: &'a MemoryStandard,
    channel: Channel,
    outstanding: OutstandingRequests,
    latencies: LatencyHistogram,
    commands: Option<&'a mut (dyn Write + 'a)>,
    /// Clock at which the channel became idle at the end.
    idle_at: u64,
    /// The longest allowed gap between requests.
    max_gap: u64,
    accesses: u64,
}

impl ChannelRun<'_> {
    /// In each clock the controller acts, then all accesses that have arrived are offered in
    /// order until one is refused; clocks without events are skipped.
    fn run(&mut self, mut requests: Requests<impl BufRead>) -> Result<(), DramError> {
        if let Some(commands) = &mut self.commands {
            self.channel.keep_log();
            let heading = b"cycle,channel,pc,bg,bank,cmd,row,column\n";
            commands.write_all(heading).map_err(DramError::Commands)?;
        }
        let mut done = Vec::new();
        let mut head = requests.next_access()?;
        let (mut last, mut clock) = (0, head.map_or(0, |access| access.clock));
        loop {
            if self.commands.is_some() && clock - last > self.max_gap {
                return Err(requests.too_late(self.max_gap).into());
            }
            self.advance((last, clock), &mut done)?;
            for access in done.drain(..) {
                self.outstanding.done(access, &mut self.latencies);
            }
            while let Some(access) = head.filter(|access| access.clock <= clock) {
                if !self.channel.room(access.write) {
                    break;
                }
                self.push(clock, access);
                head = requests.next_access()?;
            }
            if head.is_none() {
                self.outstanding.close(&mut self.latencies);
                if self.channel.is_idle() {
                    self.idle_at = clock;
                    return Ok(());
                }
            }
            // An idle channel only refreshes: advancing to the next arrival does that.
            let event = self.channel.next_event().filter(|_| !self.channel.is_idle());
            let arrival = head.map(|access| access.clock).filter(|arrival| *arrival > clock);
            let next = event.into_iter().chain(arrival).min();
            last = clock;
            clock = next.expect("a channel with waiting requests has a next event");
        }
    }

    /// Advances the channel to a clock, and writes its commands.
    fn advance(&mut self, (from, to): (u64, u64), done: &mut Vec<Done>) -> Result<(), DramError> {
        let stride = if self.commands.is_some() { WRITE_INTERVAL } else { u64::MAX };
        let mut at = from;
        loop {
            // No command is issued before the next event.
            let event = self.channel.next_event().unwrap_or(u64::MAX);
            at = to.min(at.saturating_add(stride).max(event));
            self.channel.advance(at, done);
            self.write_commands()?;
            if at == to {
                return Ok(());
            }
        }
    }

    fn push(&mut self, clock: u64, access: Access) {
        let token = self.outstanding.accept(clock, &access, &mut self.latencies);
        let request = Request { token, ..access.request() };
        let accepted = self.channel.push(clock, request);
        debug_assert!(accepted, "the channel had room");
        self.accesses += 1;
    }

    fn write_commands(&mut self) -> Result<(), DramError> {
        let Some(commands) = &mut self.commands else { return Ok(()) };
        for issued in self.channel.take_log() {
            write_command(self.standard, issued, commands).map_err(DramError::Commands)?;
        }
        Ok(())
    }
}

fn write_command(standard: &MemoryStandard, issued: Issued, to: &mut dyn Write) -> io::Result<()> {
    let group = issued.bank / standard.banks_per_group;
    writeln!(
        to,
        "{},0,{},{},{},{},{},{}",
        issued.clock,
        group / standard.bank_groups,
        group % standard.bank_groups,
        issued.bank % standard.banks_per_group,
        issued.command.name(),
        issued.row,
        issued.column
    )
}

/// A histogram of latencies in clocks.
#[derive(Clone, Debug, Default)]
struct LatencyHistogram {
    counts: FxHashMap<u64, u64>,
    count: u64,
    sum: u128,
}

impl LatencyHistogram {
    fn add(&mut self, latency: u64) {
        self.count += 1;
        self.sum += u128::from(latency);
        *self.counts.entry(latency).or_default() += 1;
    }

    /// Mean in clocks; 0 if nothing was read.
    fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The smallest latency that `percent` of all reads do not exceed.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let mut sorted: Vec<(u64, u64)> = self.counts.iter().map(|(&at, &n)| (at, n)).collect();
        sorted.sort_unstable();
        let mut seen = 0;
        let found = sorted.into_iter().find(|(_, count)| {
            seen += u128::from(*count);
            seen >= rank
        });
        found.map_or(0, |(latency, _)| latency)
    }
}

/// A request with accesses in flight.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    accepted: u64,
    last_done: u64,
    left: u32,
    write: bool,
}

/// All requests in flight; tokens are indices of the table.
#[derive(Clone, Debug, Default)]
struct OutstandingRequests {
    table: Vec<PendingRequest>,
    free: Vec<u32>,
    /// The request whose accesses are being accepted.
    open: Option<u32>,
    requests: u64,
    last_done: u64,
    last_read_done: u64,
}

impl OutstandingRequests {
    /// The token of an access that is accepted at `clock`.
    fn accept(&mut self, clock: u64, access: &Access, into: &mut LatencyHistogram) -> u32 {
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
        let pending = PendingRequest { accepted: clock, last_done: 0, left: 0, write };
        if let Some(slot) = self.free.pop() {
            self.table[slot as usize] = pending;
            return slot;
        }
        self.table.push(pending);
        to_u32(self.table.len() - 1)
    }

    /// The open request has no further access.
    fn close(&mut self, into: &mut LatencyHistogram) {
        if let Some(slot) = self.open.take() {
            self.finish(slot, into);
        }
    }

    /// An access was served.
    fn done(&mut self, done: Done, into: &mut LatencyHistogram) {
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

    fn finish(&mut self, slot: u32, into: &mut LatencyHistogram) {
        let pending = self.table[slot as usize];
        if pending.left == 0 {
            if !pending.write {
                into.add(pending.last_done - pending.accepted);
            }
            self.free.push(slot);
        }
    }

    /// Requests so far.
    fn requests(&self) -> u64 {
        self.requests
    }

    /// Clock at which the last access was done.
    fn last_done(&self) -> u64 {
        self.last_done
    }

    /// Clock of the last read's last data beat.
    fn last_read_done(&self) -> u64 {
        self.last_read_done
    }
}

#[cfg(test)]
mod tests {
    use super::LatencyHistogram;

    #[test]
    fn percentiles_are_exact() {
        let mut latencies = LatencyHistogram::default();
        for latency in 1..=100 {
            latencies.add(latency * 100);
        }
        assert_eq!(latencies.percentile(99), 9900);
        assert_eq!(latencies.percentile(40), 4000);
        assert!((latencies.mean() - 5050.0).abs() < 1e-9);
        assert_eq!(LatencyHistogram::default().percentile(99), 0);
    }
}
