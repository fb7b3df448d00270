//! The channels of a stack with a copier between them, run clock by clock or asleep.

use std::collections::VecDeque;

use gpumodel::sim::config::MemoryStandard;
use gpumodel::sim::dram::{
    BankCopy, BankRow, Channel, ControllerOptions, Copied, Copier, Done, Issued, Request,
};

/// Channels of a stack (UGPU, table 1).
pub(super) const CHANNELS: usize = 8;

/// UGPU's memory at 900 GB/s with some numbers changed.
pub(super) fn load(overrides: &[(&str, f64)]) -> MemoryStandard {
    let overrides = overrides.iter().map(|&(key, value)| (key.to_owned(), value)).collect();
    MemoryStandard::load("ugpu-hbm-900", &gpumodel::models(), &overrides).unwrap()
}

/// The outcome of a run.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    /// By channel.
    pub(super) commands: Vec<Vec<Issued>>,
    /// With the channel.
    pub(super) done: Vec<(usize, Done)>,
    pub(super) copied: Vec<Copied>,
}

/// A copy of the two columns of a page in one bank, between the same rows.
pub(super) fn page_copy(token: u32, group: usize, from: usize, to: usize) -> BankCopy {
    let end = |channel| BankRow { channel, bank: 4 * group, row: 7 };
    BankCopy { token, from: end(from), to: end(to), columns: vec![(0, 0), (2, 2)] }
}

/// A page's part of a stack, from channel 0 to channel 5: 256 bytes of each bank group.
pub(super) fn page() -> Vec<BankCopy> {
    (0..4).map(|group| page_copy(u32::try_from(group).unwrap(), group, 0, 5)).collect()
}

/// A run of a stack, clock by clock or asleep between events.
pub(super) struct Stack {
    channels: Vec<Channel>,
    copier: Copier,
    asleep: bool,
    /// Arrival and request, by channel.
    pub(super) requests: Vec<VecDeque<(u64, Request)>>,
    /// Arrival and copy.
    pub(super) copies: VecDeque<(u64, BankCopy)>,
    done: Vec<(usize, Done)>,
    copied: Vec<Copied>,
}

impl Stack {
    /// Idle channels that keep their logs.
    pub(super) fn new(
        standard: &MemoryStandard,
        options: &ControllerOptions,
        asleep: bool,
    ) -> Self {
        let mut channels = vec![Channel::new(standard, options); CHANNELS];
        channels.iter_mut().for_each(Channel::keep_log);
        Self {
            channels,
            copier: Copier::new(standard, (0..CHANNELS).collect()),
            asleep,
            requests: vec![VecDeque::new(); CHANNELS],
            copies: VecDeque::new(),
            done: Vec::new(),
            copied: Vec::new(),
        }
    }

    fn is_idle(&self) -> bool {
        let arrived = self.requests.iter().all(VecDeque::is_empty) && self.copies.is_empty();
        arrived && self.copier.is_idle() && self.channels.iter().all(Channel::is_idle)
    }

    /// Everything that happens at `clock`; the next clock at which anything does.
    fn visit(&mut self, clock: u64) -> Option<u64> {
        let mut done = Vec::new();
        for (number, channel) in self.channels.iter_mut().enumerate() {
            match self.asleep {
                true => channel.advance(clock, &mut done),
                false => channel.tick(clock, &mut done),
            }
            self.done.extend(done.drain(..).map(|done| (number, done)));
            while let Some(&(_, request)) = self.requests[number].front().filter(|r| r.0 <= clock) {
                if !channel.push(clock, request) {
                    break;
                }
                self.requests[number].pop_front();
            }
        }
        let mut works = !self.asleep || self.copier.next_event() == Some(clock);
        while let Some((_, copy)) = self.copies.front().filter(|copy| copy.0 <= clock) {
            self.copier.push(copy.clone());
            self.copies.pop_front();
            works = true;
        }
        for channel in &mut self.channels {
            works |= channel.take_ready_for_copy();
        }
        if works {
            self.copier.work(clock, &mut self.channels, &mut self.copied);
        }
        self.next_event(clock)
    }

    fn next_event(&self, clock: u64) -> Option<u64> {
        let arrivals = self.requests.iter().filter_map(|list| list.front()).map(|r| r.0);
        let arrivals = arrivals.chain(self.copies.front().map(|copy| copy.0));
        let events = self.channels.iter().filter_map(Channel::next_event);
        let events = events.chain(self.copier.next_event());
        events.chain(arrivals.filter(|at| *at > clock)).min()
    }

    /// Runs until `end` and on until everything is done; the commands before `end`.
    pub(super) fn run(mut self, end: u64) -> Outcome {
        let mut clock = 0;
        while clock < end || !self.is_idle() {
            assert!(clock < 5_000_000, "no progress");
            let next = self.visit(clock).unwrap_or(end.max(clock + 1));
            assert!(next > clock, "asleep at {clock} with work");
            clock = if self.asleep { next } else { clock + 1 };
        }
        let log = |channel: &mut Channel| channel.take_log().filter(|i| i.clock < end).collect();
        let commands = self.channels.iter_mut().map(log).collect();
        Outcome { commands, done: self.done, copied: self.copied }
    }
}
