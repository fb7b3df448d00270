//! The sentences of a standard: `[[gap]]` rows to clocks between commands.

use std::collections::BTreeMap;

use super::command::{Command, Gap, Level};
use super::file::{MemoryFile, Row};
use super::resolve::{SUM, evaluate};
use crate::config::error::SpecError;
use gpumodel_core::units::to_u32;

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
