//! When refresh is due, and for which banks.

use crate::config::{MemoryStandard, Refresh};
use gpumodel_core::units::{to_u64, to_usize};

/// The refresh clocks of a channel, one per pseudo channel.
#[derive(Clone, Debug)]
pub(super) struct RefreshTimer {
    policy: Refresh,
    interval: u64,
    banks: usize,
    lanes: Vec<Lane>,
    /// The earliest clock at which a lane is due.
    soonest: u64,
    /// Clocks after which every bank has been refreshed once more, when refreshes
    /// come fast enough that none delays the next; else `u64::MAX`.
    period: u64,
}

/// Refresh of one pseudo channel.
#[derive(Clone, Debug)]
struct Lane {
    /// Clock at which the next refresh is due.
    due: u64,
    /// The bank whose turn it is, from 0 within the pseudo channel.
    turn: usize,
}

/// A refresh that is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// The pseudo channel.
    pub(super) lane: usize,
    /// First bank that it needs.
    pub(super) bank: usize,
    /// How many banks it needs.
    pub(super) banks: usize,
}

impl Due {
    /// The banks that it needs, one bit each.
    pub(super) fn mask(self) -> u64 {
        (u64::MAX >> (64 - self.banks)) << self.bank
    }
}

impl RefreshTimer {
    pub(super) fn new(standard: &MemoryStandard, policy: Refresh) -> Self {
        let interval = match policy {
            Refresh::PerBank => standard.refresh_bank_interval,
            Refresh::AllBank | Refresh::None => standard.refresh_interval,
        };
        let interval = to_u64(interval);
        let lanes = if policy == Refresh::None { 0 } else { to_usize(standard.pseudo_channels) };
        let turns = match policy {
            Refresh::PerBank => to_u64(standard.bank_groups * standard.banks_per_group),
            Refresh::AllBank | Refresh::None => 1,
        };
        let longest = standard.gaps.iter().map(|gap| to_u64(gap.wait)).max().unwrap_or(0);
        let steady = interval > longest || policy == Refresh::None;
        Self {
            period: if steady { interval * turns } else { u64::MAX },
            policy,
            interval,
            banks: to_usize(standard.bank_groups * standard.banks_per_group),
            soonest: if lanes == 0 { u64::MAX } else { interval },
            lanes: vec![Lane { due: interval, turn: 0 }; lanes],
        }
    }

    /// The refreshes that are due at `clock`.
    pub(super) fn due(&self, clock: u64) -> impl Iterator<Item = Due> + '_ {
        let ready = self.lanes.iter().enumerate().filter(move |(_, lane)| lane.due <= clock);
        ready.map(|(at, lane)| {
            let first = at * self.banks;
            match self.policy {
                Refresh::PerBank => Due { lane: at, bank: first + lane.turn, banks: 1 },
                _ => Due { lane: at, bank: first, banks: self.banks },
            }
        })
    }

    /// The next clock after `clock` at which a refresh becomes due.
    #[inline]
    pub(super) fn next(&self, clock: u64) -> u64 {
        if self.soonest > clock {
            return self.soonest;
        }
        let later = self.lanes.iter().map(|lane| lane.due).filter(|due| *due > clock);
        later.min().unwrap_or(u64::MAX)
    }

    /// Skips the refreshes of an idle, closed channel up to a few periods before
    /// `now`; they are counted and not sent. The last ones are sent, so that the
    /// device ends as if all had been.
    pub(super) fn skip(&mut self, now: u64) -> u64 {
        let mut skipped = 0;
        for lane in &mut self.lanes {
            let periods = (now.saturating_sub(lane.due) / self.period).saturating_sub(2);
            lane.due += periods * self.period;
            skipped += periods * (self.period / self.interval);
        }
        self.soonest = self.earliest();
        skipped
    }

    /// The earliest clock at which a refresh is or was due.
    #[inline]
    pub(super) fn soonest(&self) -> u64 {
        self.soonest
    }

    /// The refresh of `lane` was sent.
    pub(super) fn sent(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        lane.due += self.interval;
        lane.turn = (lane.turn + 1) % self.banks;
        self.soonest = self.earliest();
    }

    fn earliest(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.due).min().unwrap_or(u64::MAX)
    }
}
