//! A scheme for queues as the user names it.

use std::fmt;

use super::super::choice::{BadChoice, Choice, pairs, unknown};
use super::super::{Settings, TABLE, Value, find};
use super::{FREED, Grouping, InArrivalOrder, QUEUE_TABLE, QueueRow, find_queue};

/// Which applications run together, and how they share the machine.
#[derive(Clone, Debug)]
pub struct QueueChoice {
    /// `None`: groups in order of arrival under any scheme of the other table.
    grouping: Option<(&'static QueueRow, Settings)>,
    within: Choice,
    /// The names of the settings that the user has made.
    set: Vec<&'static str>,
    /// Those that [`QueueChoice::or`] has made, which are not shown.
    added: Vec<&'static str>,
    /// A member that ends before its group is started again.
    restarts: bool,
}

/// What happens when a member of a group ends before the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyFinishers {
    /// Its SMs stay idle.
    #[default]
    Idle,
    /// The others divide its SMs.
    Given,
    /// It is started again until every member has ended once, and what it then executes counts
    /// in the throughput of the queue.
    Restart,
}

impl EarlyFinishers {
    /// Its name in files and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Given => "given",
            Self::Restart => "restart",
        }
    }
}

impl QueueChoice {
    /// Reads `name` or `name:key=value:key=value`: a scheme of [`QUEUE_TABLE`] with its
    /// parameters and those of the scheme within its groups, or any scheme of [`TABLE`], whose
    /// groups are formed in order of arrival.
    ///
    /// # Errors
    /// As [`Choice::parse`].
    pub fn parse(text: &str) -> Result<Self, BadChoice> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().trim();
        let row = find_queue(name);
        let within = find(row.map_or(name, |row| row.within)).ok_or_else(|| {
            let queues = QUEUE_TABLE.iter().map(|row| row.name);
            let known: Vec<&str> = queues.chain(TABLE.iter().map(|row| row.name)).collect();
            unknown(name, &known)
        })?;
        let own = row.map_or(&[][..], |row| row.parameters);
        let scheme = row.map_or(within.name, |row| row.name);
        let pairs = pairs(scheme, &[own, within.parameters], parts)?;
        let mut settings = Settings::defaults(own);
        let mut within = Choice::of(within);
        for &(key, value) in &pairs {
            settings.set(key, value);
            within.set(key, value);
        }
        let set = pairs.into_iter().map(|(key, _)| key).collect();
        let grouping = row.map(|row| (row, settings));
        Ok(Self { grouping, within, set, added: Vec::new(), restarts: false })
    }

    /// The same with a parameter of the scheme within groups set to `value`, if it has one and
    /// the user has not set it.
    #[must_use]
    pub fn or(mut self, name: &'static str, value: &str) -> Self {
        if !self.set.contains(&name) {
            self.within = self.within.with(name, value);
            self.added.push(name);
        }
        self
    }

    /// The same with a rule for members that end early, where the user has set none for their SMs.
    #[must_use]
    pub fn with_early_finishers(self, rule: EarlyFinishers) -> Self {
        match rule {
            EarlyFinishers::Idle | EarlyFinishers::Given => self.or(FREED, rule.name()),
            EarlyFinishers::Restart => {
                let restarts = !self.set.contains(&FREED);
                Self { restarts, ..self }
            }
        }
    }

    /// A member that ends before its group is started again.
    #[must_use]
    pub fn restarts(&self) -> bool {
        self.restarts
    }

    /// The rule for members that end early; `None` where the scheme has its own.
    #[must_use]
    pub fn early_finishers(&self) -> Option<String> {
        if self.restarts {
            return Some(EarlyFinishers::Restart.name().to_owned());
        }
        let (_, value) = self.settings().find(|(name, _)| *name == FREED)?;
        Some(value.to_string())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.grouping.as_ref().map_or(self.within.row().name, |(row, _)| row.name)
    }

    /// The scheme within groups.
    #[must_use]
    pub fn within(&self) -> &Choice {
        &self.within
    }

    /// Every parameter of grouping and scheme with its value, defaults included.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let own = self.grouping.iter().flat_map(|(_, settings)| settings.iter());
        own.chain(self.within.settings().iter())
    }

    /// The grouping, ready to start.
    #[must_use]
    pub fn make(&self) -> Box<dyn Grouping> {
        match &self.grouping {
            Some((row, settings)) => (row.make)(settings),
            None => Box::new(InArrivalOrder),
        }
    }
}

/// The name, and the settings of the user that differ from the defaults.
impl fmt::Display for QueueChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        let own = self.grouping.iter().flat_map(|(row, settings)| settings.changed(row.parameters));
        let within = self.within.settings().changed(self.within.row().parameters);
        let typed = within.into_iter().filter(|(name, _)| !self.added.contains(name));
        let mut all = own.chain(typed);
        all.try_for_each(|(name, value)| write!(formatter, ":{name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{EarlyFinishers, QueueChoice};

    #[test]
    fn any_scheme_serves_groups_in_order_of_arrival() {
        let choice = QueueChoice::parse("even-queue").unwrap();
        assert_eq!((choice.name(), choice.within().row().name), ("even-queue", "spatial"));
        let choice = QueueChoice::parse("smra:n_r=4").unwrap();
        assert_eq!((choice.name(), choice.to_string()), ("smra", "smra:n_r=4".into()));
        assert_eq!(choice.clone().or("n_r", "9").within().to_string(), "smra:n_r=4");
        let given = choice.or("r_min", "9");
        assert_eq!(given.within().to_string(), "smra:n_r=4:r_min=9");
        assert_eq!(given.to_string(), "smra:n_r=4", "as it was typed");
        let rule = |text: &str, rule| {
            let choice = QueueChoice::parse(text).unwrap().with_early_finishers(rule);
            (choice.restarts(), choice.early_finishers().unwrap())
        };
        assert_eq!(rule("ilp", EarlyFinishers::Restart), (true, "restart".into()));
        assert_eq!(rule("ilp", EarlyFinishers::Idle), (false, "idle".into()));
        assert_eq!(rule("ilp:freed=given", EarlyFinishers::Restart), (false, "given".into()));
        let typed = QueueChoice::parse("spatial:freed=given").unwrap().or("freed", "idle");
        assert_eq!(typed.within().to_string(), "spatial", "a default that is typed is kept");
    }

    #[test]
    fn what_is_unknown_is_refused_with_both_tables() {
        let unknown = QueueChoice::parse("even-que").unwrap_err().to_string();
        assert!(unknown.contains("did you mean even-queue?"), "{unknown}");
        assert!(unknown.contains("warped-slicer"), "{unknown}");
        let empty = QueueChoice::parse("").unwrap_err().to_string();
        assert!(empty.contains("found an empty one; known are: even-queue"), "{empty}");
        assert!(QueueChoice::parse("even-queue:n_r=4").is_err());
        assert!(QueueChoice::parse("even-queue:x").is_err());
    }
}
