//! The commands of a DRAM, and the sentences of a standard: `[[gap]]` rows to clocks between
//! commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::file::{MemoryFile, Row};
use super::resolve::{SUM, evaluate};
use crate::config::error::SpecError;
use gpumodel_core::units::to_u32;

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

/// Most commands that one window counts.
const LARGEST_WINDOW: u32 = 64;

/// Longest wait in clocks.
const LONGEST_WAIT: i64 = 1 << 30;

/// Every gap of `file`, one command each way, the strictest of equal ones, with
/// the time that each command takes its bus.
///
/// A standard counts from the last clock of a command to the last clock of the
/// next; commands are placed by their first clock, so longer commands shift a wait.
///
/// # Errors
/// Unknown commands, levels or parameters; a wait out of range.
pub(super) fn gaps(
    file: &MemoryFile,
    parameters: &BTreeMap<String, i64>,
    separate_buses: bool,
    command_clocks: &[u32; Command::COUNT],
) -> Result<Vec<Gap>, SpecError> {
    let mut strictest: BTreeMap<(Level, Command, Command, u32), u32> = BTreeMap::new();
    let mut keep = |gap: Gap| {
        let wait = strictest.entry((gap.level, gap.from, gap.to, gap.window)).or_insert(0);
        *wait = (*wait).max(gap.wait);
    };
    for row in &file.rows {
        let words = Words { file, row, parameters };
        let (level, window, wait) = (words.level()?, words.window()?, words.wait()?);
        for &from in &words.commands("from", level)? {
            for &to in &words.commands("to", level)? {
                let shift =
                    i64::from(command_clocks[from.index()]) - i64::from(command_clocks[to.index()]);
                let wait = to_u32((wait + shift).max(0));
                keep(Gap { level, from, to, window, wait });
            }
        }
        words.only_known_keys()?;
    }
    for from in Command::ALL {
        for to in Command::ALL {
            if from.shares_bus(to, separate_buses) {
                let wait = command_clocks[from.index()];
                keep(Gap { level: Level::Channel, from, to, window: 1, wait });
            }
        }
    }
    let gap = |((level, from, to, window), wait)| Gap { level, from, to, window, wait };
    Ok(strictest.into_iter().map(gap).filter(|gap| gap.wait > 0).collect())
}

/// One row with what its words may refer to.
struct Words<'a> {
    file: &'a MemoryFile,
    row: &'a Row,
    parameters: &'a BTreeMap<String, i64>,
}

impl Words<'_> {
    fn wrong(&self, key: &str, expected: &str, found: &str) -> SpecError {
        let place = self.file.place_for(&self.row.place);
        SpecError::value(&place, &format!("gap.{key}"), expected, found.to_owned())
    }

    fn list(&self, key: &str) -> Result<&[String], SpecError> {
        let list = self.row.words.get(key).filter(|list| !list.is_empty());
        list.map(Vec::as_slice)
            .ok_or_else(|| self.wrong(key, "level, from, to and wait in every row", "nothing"))
    }

    fn single(&self, key: &str) -> Result<&str, SpecError> {
        match self.list(key)? {
            [word] => Ok(word),
            list => Err(self.wrong(key, "one word", &format!("{} words", list.len()))),
        }
    }

    fn level(&self) -> Result<Level, SpecError> {
        let word = self.single("level")?;
        let found = Level::ALL.into_iter().find(|level| level.name() == word);
        found.ok_or_else(|| {
            let names = Level::ALL.map(Level::name);
            self.wrong("level", &format!("one of {}", names.join(", ")), word)
        })
    }

    fn window(&self) -> Result<u32, SpecError> {
        if !self.row.words.contains_key("window") {
            return Ok(1);
        }
        let word = self.single("window")?;
        let count = word.parse().ok().filter(|count| (1..=LARGEST_WINDOW).contains(count));
        count.ok_or_else(|| {
            self.wrong("window", &format!("a number of commands from 1 to {LARGEST_WINDOW}"), word)
        })
    }

    fn wait(&self) -> Result<i64, SpecError> {
        let text = self.single("wait")?;
        match evaluate(text, self.parameters) {
            Ok(wait) if (-LONGEST_WAIT..=LONGEST_WAIT).contains(&wait) => Ok(wait),
            Ok(wait) => Err(self.wrong("wait", SUM, &wait.to_string())),
            Err(fault) => {
                let place = self.file.place_for(&self.row.place);
                Err(fault.at(&place, "gap.wait", text, self.parameters))
            }
        }
    }

    fn commands(&self, key: &str, level: Level) -> Result<Vec<Command>, SpecError> {
        let mut commands = Vec::new();
        for word in self.list(key)? {
            let command = Command::named(word).ok_or_else(|| {
                let names = Command::ALL.map(Command::name);
                self.wrong(key, &format!("commands among {}", names.join(", ")), word)
            })?;
            if command.is_for_all_banks() && level > Level::PseudoChannel {
                let expected = "level pseudo_channel or channel for commands to all banks";
                return Err(self.wrong(key, expected, word));
            }
            commands.push(command);
        }
        Ok(commands)
    }

    fn only_known_keys(&self) -> Result<(), SpecError> {
        const KNOWN: [&str; 5] = ["level", "from", "to", "wait", "window"];
        match self.row.words.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(SpecError::unknown(&self.file.place_for(&self.row.place), key, KNOWN)),
        }
    }
}
