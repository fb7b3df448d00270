//! The memory of one channel: a device that knows when a command is legal, and a
//! controller that chooses among waiting requests. Where the standard has MIGRATION, a
//! [`Copier`] copies rows between the channels of a stack.
//!
//! Time is counted in memory command clocks. A [`Channel`] sleeps until the next clock at
//! which something can happen, yet sends the same commands at the same clocks as one that
//! is visited every clock. It knows no address, no cache and no application.

mod arbiter;
mod channel;
mod device;
mod migration;
mod queue;
mod refresh;

use crate::counters::Sums;
use serde::{Deserialize, Serialize};

use crate::config::Command;
pub use crate::config::ControllerOptions;
pub use channel::Channel;
pub use device::{CLOSED, Device, bank_index};
pub use migration::{BankCopy, BankRow, Copied, Copier};

/// One access for a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The caller's number for it; comes back in [`Done`].
    pub token: u32,
    /// Writes; else reads.
    pub write: bool,
    /// Pseudo channel.
    pub pseudo_channel: u32,
    /// Bank group of the pseudo channel.
    pub bank_group: u32,
    /// Bank of the group.
    pub bank: u32,
    /// Row of the bank.
    pub row: u32,
    /// Access within the row.
    pub column: u32,
}

/// Several accesses of one row that are offered together: to the columns from that of
/// `request` on, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The access to the first column. It is only made when its bit is set.
    pub request: Request,
    /// Columns, one bit each, the lowest for that of `request`.
    pub columns: u8,
}

/// A served access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The caller's number for it.
    pub token: u32,
    /// For a read the clock of its last data beat, which may lie in the future; for a write
    /// the clock of its command (posted: the clock after its acceptance).
    pub clock: u64,
    /// Its row was open when its first command was sent, or it needed none.
    pub row_hit: bool,
}

/// A sent command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// When.
    pub clock: u64,
    /// What.
    pub command: Command,
    /// Bank of the channel, as [`bank_index`] counts; the first of the
    /// pseudo channel for commands to all banks.
    pub bank: u32,
    /// Row of the request that caused it; 0 for maintenance.
    pub row: u32,
    /// Column of a column command, else 0.
    pub column: u32,
}

/// Counts of one channel since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelCounters {
    /// RD and RDA commands.
    pub reads: u64,
    /// WR and WRA commands.
    pub writes: u64,
    /// Accesses whose row was open when their first command was sent.
    pub row_hits: u64,
    /// Accesses whose bank was closed when their first command was sent.
    pub row_misses: u64,
    /// Accesses whose bank had another row open when their first command was sent.
    pub row_conflicts: u64,
    /// ACT commands.
    pub activates: u64,
    /// ACT commands among them that opened a row for a copy between channels.
    pub copy_activates: u64,
    /// PRE, PREA and closing accesses.
    pub precharges: u64,
    /// REFab and REFpb commands.
    pub refreshes: u64,
    /// Accesses answered from the queue or merged with another.
    pub absorbed: u64,
    /// Clocks of data-bus time, summed over pseudo channels.
    pub busy_clocks: u64,
    /// Cycles of the SMs' clock in which requests waited at or in the controller; 0 where a
    /// channel runs without the rest of a machine.
    #[serde(default)]
    pub waiting_cycles: u64,
    /// Halves of MIGRATION commands: columns that left or reached this channel.
    pub migrations: u64,
    /// Clocks for which its through-silicon vias carried columns of any channel's
    /// migrations; not part of `busy_clocks`.
    pub lent_clocks: u64,
}

impl ChannelCounters {
    /// Adds the counts of another channel.
    pub fn add(&mut self, other: &Self) {
        self.add_growth(other, &Self::default(), 1.0);
    }
}

impl Sums for ChannelCounters {
    fn sums(&mut self) -> Vec<&mut u64> {
        vec![
            &mut self.reads,
            &mut self.writes,
            &mut self.row_hits,
            &mut self.row_misses,
            &mut self.row_conflicts,
            &mut self.activates,
            &mut self.copy_activates,
            &mut self.precharges,
            &mut self.refreshes,
            &mut self.absorbed,
            &mut self.busy_clocks,
            &mut self.waiting_cycles,
            &mut self.migrations,
            &mut self.lent_clocks,
        ]
    }
}
