//! The commands of a DRAM, and the sentences of a standard as data.

use serde::{Deserialize, Serialize};

/// A DRAM command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Command {
    /// Opens a row.
    #[serde(rename = "ACT")]
    Activate,
    /// Closes the row of one bank.
    #[serde(rename = "PRE")]
    Precharge,
    /// Closes the rows of all banks of a pseudo channel.
    #[serde(rename = "PREA")]
    PrechargeAll,
    /// Reads one access.
    #[serde(rename = "RD")]
    Read,
    /// Writes one access.
    #[serde(rename = "WR")]
    Write,
    /// Reads one access and closes the row.
    #[serde(rename = "RDA")]
    ReadClose,
    /// Writes one access and closes the row.
    #[serde(rename = "WRA")]
    WriteClose,
    /// Refreshes all banks of a pseudo channel.
    #[serde(rename = "REFab")]
    RefreshAll,
    /// Refreshes one bank.
    #[serde(rename = "REFpb")]
    RefreshBank,
    /// The source's half of UGPU's MIGRATION (section 4.3): its bank sends one
    /// 128-byte column to another channel of the stack.
    #[serde(rename = "MIGR")]
    MigrateRead,
    /// The destination's half, in the same clock: its bank takes the column in.
    #[serde(rename = "MIGW")]
    MigrateWrite,
    /// A set of through-silicon vias carries the column, in the same clock. It
    /// takes no command bus: the halves name the set.
    #[serde(rename = "MIGT")]
    MigrateThrough,
}

impl Command {
    /// How many commands there are.
    pub const COUNT: usize = 12;

    /// Every command, by [`Command::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::Activate,
        Self::Precharge,
        Self::PrechargeAll,
        Self::Read,
        Self::Write,
        Self::ReadClose,
        Self::WriteClose,
        Self::RefreshAll,
        Self::RefreshBank,
        Self::MigrateRead,
        Self::MigrateWrite,
        Self::MigrateThrough,
    ];

    /// Position in [`Command::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in files and command lists, as the standards write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activate => "ACT",
            Self::Precharge => "PRE",
            Self::PrechargeAll => "PREA",
            Self::Read => "RD",
            Self::Write => "WR",
            Self::ReadClose => "RDA",
            Self::WriteClose => "WRA",
            Self::RefreshAll => "REFab",
            Self::RefreshBank => "REFpb",
            Self::MigrateRead => "MIGR",
            Self::MigrateWrite => "MIGW",
            Self::MigrateThrough => "MIGT",
        }
    }

    /// The command of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }

    /// True for commands that move data: they use the column bus.
    #[must_use]
    pub const fn is_column(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::Write
                | Self::ReadClose
                | Self::WriteClose
                | Self::MigrateRead
                | Self::MigrateWrite
        )
    }

    /// True for commands that go to no bank alone but to the whole pseudo channel.
    #[must_use]
    pub const fn is_for_all_banks(self) -> bool {
        matches!(self, Self::PrechargeAll | Self::RefreshAll | Self::MigrateThrough)
    }

    /// True for the parts of a MIGRATION.
    #[must_use]
    pub const fn is_migration(self) -> bool {
        matches!(self, Self::MigrateRead | Self::MigrateWrite | Self::MigrateThrough)
    }

    /// True when one command on a bus keeps the other from it: the row and the
    /// column bus of a channel may be one, and one command takes none.
    #[must_use]
    pub(super) fn shares_bus(self, other: Self, separate: bool) -> bool {
        let on_bus = [self, other].iter().all(|&command| command != Self::MigrateThrough);
        on_bus && (!separate || self.is_column() == other.is_column())
    }
}

/// A part of the memory inside which a sentence of the standard holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The whole channel: its command buses.
    Channel,
    /// One pseudo channel: its data bus.
    PseudoChannel,
    /// One bank group.
    BankGroup,
    /// One bank.
    Bank,
}

impl Level {
    /// How many levels there are.
    pub const COUNT: usize = 4;

    /// Every level, outermost first.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Channel, Self::PseudoChannel, Self::BankGroup, Self::Bank];

    /// Position in [`Level::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::PseudoChannel => "pseudo_channel",
            Self::BankGroup => "bank_group",
            Self::Bank => "bank",
        }
    }
}

/// One sentence of a standard: inside one `level`, the command `to` comes at
/// least `wait` clocks after the `window`-th last command `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// Where the sentence holds.
    pub level: Level,
    /// The earlier command.
    pub from: Command,
    /// The later command.
    pub to: Command,
    /// How many commands `from` may lie inside one wait: 1 for an ordinary gap,
    /// 4 for the four-activate window.
    pub window: u32,
    /// Clocks from the first clock of `from` to the first clock of `to`.
    pub wait: u32,
}
