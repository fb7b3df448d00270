//! When a co-run ends: `--until`.

use std::fmt;
use std::str::FromStr;

use gpumodel_core::units::Cycle;

/// When a co-run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Which applications must finish.
    pub when: EndWhen,
    /// The last cycle of the run.
    pub cycles: Option<Cycle>,
}

/// Which applications must finish before a co-run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndWhen {
    /// Every application has finished once.
    #[default]
    All,
    /// One application has finished.
    First,
    /// Every application has reached the instruction count of its solo window, where it stops
    /// and frees its resources (Warped-Slicer).
    Targets,
    /// Every application has finished once; early finishers relaunch (UGPU).
    FirstRun,
    /// None: only the cycle counts.
    Clock,
}

impl EndWhen {
    const NAMES: [(&'static str, Self); 4] = [
        ("all", Self::All),
        ("first", Self::First),
        ("targets", Self::Targets),
        ("first-run", Self::FirstRun),
    ];
}

impl FromStr for Ending {
    type Err = String;

    /// Reads `all`, `first`, `targets`, `first-run`, `cycles=N`, or one of the names and
    /// `cycles=N` with a comma between them.
    fn from_str(typed: &str) -> Result<Self, String> {
        let mut until = Self { when: EndWhen::Clock, cycles: None };
        for part in typed.split([',', ':']) {
            let repeated = match part.strip_prefix("cycles=") {
                Some(cycles) => until.cycles.replace(number(cycles)?).is_some(),
                None => std::mem::replace(&mut until.when, named(part)?) != EndWhen::Clock,
            };
            if repeated {
                return Err(format!(
                    "{part} comes second: give one of all, first, targets, first-run, and cycles=N once"
                ));
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

fn named(typed: &str) -> Result<EndWhen, String> {
    let found = EndWhen::NAMES.iter().find(|(name, _)| *name == typed).map(|&(_, when)| when);
    found.ok_or_else(|| {
        format!("expected all, first, targets, first-run or cycles=N, found {typed}")
    })
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            EndWhen::NAMES.iter().find(|(_, when)| *when == self.when).map(|(name, _)| *name);
        match (name, self.cycles) {
            (Some(name), None) => f.write_str(name),
            (Some(name), Some(cycles)) => write!(f, "{name},cycles={cycles}"),
            (None, cycles) => write!(f, "cycles={}", cycles.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EndWhen, Ending};

    #[test]
    fn what_is_typed_is_what_is_shown() {
        for typed in ["all", "first", "targets", "first-run", "cycles=5", "first-run,cycles=900"] {
            assert_eq!(typed.parse::<Ending>().unwrap().to_string(), typed);
        }
        let both: Ending = "first-run:cycles=7".parse().unwrap();
        assert_eq!(both, Ending { when: EndWhen::FirstRun, cycles: Some(7) });
        for invalid in [
            "",
            "never",
            "cycles=",
            "cycles=x",
            "cycles=0",
            "all,none",
            "all,first",
            "cycles=5,cycles=6",
        ] {
            assert!(invalid.parse::<Ending>().is_err(), "{invalid}");
        }
    }
}
