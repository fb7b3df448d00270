//! When a co-run ends, as users type it.

use std::fmt;
use std::str::FromStr;

use gpumodel_core::units::Cycle;

/// When a co-run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// Who has to be done.
    pub who: Who,
    /// The cycle at which the run ends at the latest.
    pub cycles: Option<Cycle>,
}

/// Who has to be done before a co-run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Who {
    /// Every application has finished once.
    #[default]
    All,
    /// One application has finished.
    First,
    /// Every application has reached the instructions that it executes alone in a
    /// window, where it is stopped and gives up what it holds (Warped-Slicer).
    Targets,
    /// Every application has finished once; who is early begins anew meanwhile
    /// (UGPU).
    FirstRun,
    /// Nobody: only the clock counts.
    Clock,
}

impl Who {
    const NAMES: [(&'static str, Self); 4] = [
        ("all", Self::All),
        ("first", Self::First),
        ("targets", Self::Targets),
        ("first-run", Self::FirstRun),
    ];
}

impl FromStr for Until {
    type Err = String;

    /// Reads `all`, `first`, `targets`, `first-run`, `cycles=N`, or one of the words
    /// and `cycles=N` with a comma between them.
    fn from_str(typed: &str) -> Result<Self, String> {
        let mut until = Self { who: Who::Clock, cycles: None };
        for part in typed.split([',', ':']) {
            let again = match part.strip_prefix("cycles=") {
                Some(cycles) => until.cycles.replace(number(cycles)?).is_some(),
                None => std::mem::replace(&mut until.who, named(part)?) != Who::Clock,
            };
            if again {
                return Err(format!("{part} comes second: one word, one number of cycles"));
            }
        }
        Ok(until)
    }
}

fn number(typed: &str) -> Result<Cycle, String> {
    let cycles =
        typed.parse().map_err(|_| format!("expected a number of cycles, found {typed}"))?;
    if cycles == 0 { Err(String::from("a run takes at least one cycle")) } else { Ok(cycles) }
}

fn named(typed: &str) -> Result<Who, String> {
    let found = Who::NAMES.iter().find(|(name, _)| *name == typed).map(|&(_, who)| who);
    found.ok_or_else(|| {
        format!("expected all, first, targets, first-run or cycles=N, found {typed}")
    })
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Who::NAMES.iter().find(|(_, who)| *who == self.who).map(|(name, _)| *name);
        match (name, self.cycles) {
            (Some(name), None) => f.write_str(name),
            (Some(name), Some(cycles)) => write!(f, "{name},cycles={cycles}"),
            (None, cycles) => write!(f, "cycles={}", cycles.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Until, Who};

    #[test]
    fn what_is_typed_is_what_is_shown() {
        for typed in ["all", "first", "targets", "first-run", "cycles=5", "first-run,cycles=900"] {
            assert_eq!(typed.parse::<Until>().unwrap().to_string(), typed);
        }
        let both: Until = "first-run:cycles=7".parse().unwrap();
        assert_eq!(both, Until { who: Who::FirstRun, cycles: Some(7) });
        for wrong in [
            "",
            "never",
            "cycles=",
            "cycles=x",
            "cycles=0",
            "all,none",
            "all,first",
            "cycles=5,cycles=6",
        ] {
            assert!(wrong.parse::<Until>().is_err(), "{wrong}");
        }
    }
}
