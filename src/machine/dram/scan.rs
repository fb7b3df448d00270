//! One look over the candidates of a channel: what goes now, and when next.

use crate::spec::Command;

/// A command that was chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    pub(super) command: Command,
    pub(super) bank: usize,
    /// The kind of request that it serves; unused for maintenance.
    pub(super) kind: usize,
    /// The request, or `NONE` for maintenance.
    pub(super) entry: u32,
    /// Lowest goes first.
    pub(super) rank: u64,
}

/// Ranks are classed in their top bits.
pub(super) const OPENER: u64 = 0;
pub(super) const MAINTENANCE: u64 = 1 << 60;
pub(super) const ORDINARY: u64 = 2 << 60;
pub(super) const IDLE: u64 = 3 << 60;

/// The best candidates at one clock.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub(super) clock: u64,
    separate_buses: bool,
    pub(super) in_order: bool,
    /// Best ready command of the column bus (of the only bus).
    pub(super) column: Option<Pick>,
    /// Best ready command of the row bus.
    pub(super) row: Option<Pick>,
    /// Earliest clock of a candidate that is not ready.
    pub(super) next: u64,
    /// Some candidate was ready, or its turn alone decides.
    pub(super) ready: bool,
    /// Some ready candidate was not chosen.
    pub(super) lost: bool,
    /// With order kept: the first ordinary candidate and its clock.
    first: Option<(Pick, u64)>,
}

impl Scan {
    pub(super) fn new(clock: u64, separate_buses: bool, in_order: bool) -> Self {
        Self {
            clock,
            separate_buses,
            in_order,
            column: None,
            row: None,
            next: u64::MAX,
            ready: false,
            lost: false,
            first: None,
        }
    }

    /// Some candidate is not legal before `time`.
    #[inline]
    pub(super) fn sleep_until(&mut self, time: u64) {
        self.next = self.next.min(time);
    }

    /// A candidate that is legal from `time` on.
    #[inline]
    pub(super) fn offer(&mut self, time: u64, pick: Pick) {
        self.ready |= self.in_order || time <= self.clock;
        if self.in_order && pick.rank >= ORDINARY && pick.rank < IDLE {
            if self.first.is_none_or(|(first, _)| pick.rank < first.rank) {
                self.first = Some((pick, time));
            }
        } else {
            self.keep(time, pick);
        }
    }

    #[inline]
    fn keep(&mut self, time: u64, pick: Pick) {
        if time > self.clock {
            self.next = self.next.min(time);
            return;
        }
        let column = !self.separate_buses || pick.command.is_column();
        let slot = if column { &mut self.column } else { &mut self.row };
        match slot {
            None => *slot = Some(pick),
            Some(best) => {
                self.lost = true;
                if pick.rank < best.rank {
                    *best = pick;
                }
            }
        }
    }

    /// Ends the look: with order kept, only the first candidate counts.
    pub(super) fn finish(mut self) -> Self {
        if let Some((pick, time)) = self.first.take() {
            self.keep(time, pick);
        }
        self
    }
}
