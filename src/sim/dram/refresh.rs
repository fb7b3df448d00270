//! When refresh is due, and for which banks.

use crate::config::{MemoryStandard, Refresh};
use gpumodel_core::units::{to_u64, to_usize};

/// The refresh clocks of a channel, one per pseudo channel.
#[derive(Clone, Debug)]
pub(super) struct RefreshTimer {
    policy: Refresh,
    interval: u64,
    banks: usize,
    pseudo_channels: Vec<Timer>,
    /// The earliest clock at which a refresh is or was due.
    pub(super) soonest: u64,
    /// Clocks after which every bank has been refreshed once more, when refreshes
    /// come fast enough that none delays the next; else `u64::MAX`.
    period: u64,
}

/// Refresh of one pseudo channel.
#[derive(Clone, Debug)]
struct Timer {
    /// Clock at which the next refresh is due.
    due: u64,
    /// The bank to refresh next, from 0 within the pseudo channel.
    bank: usize,
}

/// A refresh that is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// The pseudo channel.
    pub(super) pseudo_channel: usize,
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
        let count = if policy == Refresh::None { 0 } else { to_usize(standard.pseudo_channels) };
        let refreshes = match policy {
            Refresh::PerBank => to_u64(standard.bank_groups * standard.banks_per_group),
            Refresh::AllBank | Refresh::None => 1,
        };
        let longest = standard.gaps.iter().map(|gap| to_u64(gap.wait)).max().unwrap_or(0);
        let steady = interval > longest || policy == Refresh::None;
        Self {
            period: if steady { interval * refreshes } else { u64::MAX },
            policy,
            interval,
            banks: to_usize(standard.bank_groups * standard.banks_per_group),
            soonest: if count == 0 { u64::MAX } else { interval },
            pseudo_channels: vec![Timer { due: interval, bank: 0 }; count],
        }
    }

    /// The refreshes that are due at `clock`.
    pub(super) fn due(&self, clock: u64) -> impl Iterator<Item = Due> + '_ {
        let due = self.pseudo_channels.iter().enumerate();
        due.filter(move |(_, timer)| timer.due <= clock).map(|(pseudo_channel, timer)| {
            let first = pseudo_channel * self.banks;
            match self.policy {
                Refresh::PerBank => Due { pseudo_channel, bank: first + timer.bank, banks: 1 },
                Refresh::AllBank | Refresh::None => {
                    Due { pseudo_channel, bank: first, banks: self.banks }
                }
            }
        })
    }

    /// The next clock after `clock` at which a refresh becomes due.
    #[inline]
    pub(super) fn next(&self, clock: u64) -> u64 {
        if self.soonest > clock {
            return self.soonest;
        }
        let later = self.pseudo_channels.iter().map(|timer| timer.due).filter(|due| *due > clock);
        later.min().unwrap_or(u64::MAX)
    }

    /// Skips the refreshes of an idle, closed channel up to a few periods before
    /// `now`; they are counted and not sent. The last ones are sent, so that the
    /// device ends as if all had been.
    pub(super) fn skip(&mut self, now: u64) -> u64 {
        let mut skipped = 0;
        for timer in &mut self.pseudo_channels {
            let periods = (now.saturating_sub(timer.due) / self.period).saturating_sub(2);
            timer.due += periods * self.period;
            skipped += periods * (self.period / self.interval);
        }
        self.soonest = self.earliest();
        skipped
    }

    /// The refresh of a pseudo channel was sent.
    pub(super) fn sent(&mut self, pseudo_channel: usize) {
        let timer = &mut self.pseudo_channels[pseudo_channel];
        timer.due += self.interval;
        timer.bank = (timer.bank + 1) % self.banks;
        self.soonest = self.earliest();
    }

    fn earliest(&self) -> u64 {
        self.pseudo_channels.iter().map(|timer| timer.due).min().unwrap_or(u64::MAX)
    }
}
