//! What a channel has counted.

use serde::{Deserialize, Serialize};

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
    /// Those among them that opened a row for a copy between channels.
    pub copy_activates: u64,
    /// PRE, PREA and closing accesses.
    pub precharges: u64,
    /// REFab and REFpb commands.
    pub refreshes: u64,
    /// Accesses that were answered from the queue or served with another.
    pub absorbed: u64,
    /// Clocks of data-bus time, summed over pseudo channels.
    pub busy_clocks: u64,
    /// Halves of MIGRATION commands: columns that left or reached this channel.
    pub migrations: u64,
    /// Clocks for which its through-silicon vias carried columns of migrations, its own
    /// or other channels'; not part of `busy_clocks`.
    pub lent_clocks: u64,
}

impl ChannelCounters {
    /// Adds the counts of another channel.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.row_hits += other.row_hits;
        self.row_misses += other.row_misses;
        self.row_conflicts += other.row_conflicts;
        self.activates += other.activates;
        self.copy_activates += other.copy_activates;
        self.precharges += other.precharges;
        self.refreshes += other.refreshes;
        self.absorbed += other.absorbed;
        self.busy_clocks += other.busy_clocks;
        self.migrations += other.migrations;
        self.lent_clocks += other.lent_clocks;
    }
}
