//! A scheme for queues as it is asked for.

use std::fmt;

use super::super::choice::{BadChoice, Choice, setting, unknown};
use super::super::{Settings, TABLE, find};
use super::{Grouping, InArrivalOrder, QUEUE_TABLE, QueueRow, find_queue};

/// Who runs with whom, and how they share the machine.
#[derive(Clone, Debug)]
pub struct QueueChoice {
    /// `None`: in order of arrival under any scheme of the other table.
    grouping: Option<(&'static QueueRow, Settings)>,
    within: Choice,
    /// The settings of `within` that the user has made.
    set: Vec<&'static str>,
    /// Those that [`QueueChoice::or`] has made: not what tells choices apart.
    given: Vec<&'static str>,
}

impl QueueChoice {
    /// Reads `name` or `name:key=value:key=value`: a scheme of [`QUEUE_TABLE`] with
    /// parameters of its own and of the one within its groups, or any scheme of
    /// [`TABLE`], whose groups come in order of arrival.
    ///
    /// # Errors
    /// As [`Choice::parse`].
    pub fn parse(text: &str) -> Result<Self, BadChoice> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().trim();
        let Some(row) = find_queue(name) else { return Self::arriving(name, text) };
        let within = find(row.within).expect("the table names a scheme of the other table");
        let mut settings = Settings::defaults(row.parameters);
        let (mut words, mut set) = (String::from(row.within), Vec::new());
        for part in parts {
            let lists = [row.parameters, within.parameters];
            let (key, value) = setting(row.name, &lists, part)?;
            if set.contains(&key) {
                return Err(BadChoice::Twice { scheme: row.name, key });
            }
            set.push(key);
            if row.parameters.iter().any(|own| own.name == key) {
                settings.set(key, value);
            } else {
                words += ":";
                words += part;
            }
        }
        Ok(Self {
            grouping: Some((row, settings)),
            within: Choice::parse(&words)?,
            set,
            given: Vec::new(),
        })
    }

    /// Any scheme, its groups in order of arrival.
    fn arriving(name: &str, text: &str) -> Result<Self, BadChoice> {
        if find(name).is_none() {
            let queues = QUEUE_TABLE.iter().map(|row| row.name);
            let known: Vec<&str> = queues.chain(TABLE.iter().map(|row| row.name)).collect();
            return Err(unknown(name, &known));
        }
        let within = Choice::parse(text)?;
        let row = within.row();
        let key = |part| setting(row.name, &[row.parameters], part).map(|(key, _)| key);
        let set = text.split(':').skip(1).map(key).collect::<Result<_, _>>()?;
        Ok(Self { grouping: None, within, set, given: Vec::new() })
    }

    /// The same with a parameter of the scheme within groups set to `value`, where it
    /// has one and the user has not set it.
    #[must_use]
    pub fn or(mut self, name: &'static str, value: &str) -> Self {
        if !self.set.contains(&name) {
            self.within = self.within.with(name, value);
            self.given.push(name);
        }
        self
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
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, super::super::Value)> {
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

/// The name, and what the user has set otherwise than the defaults.
impl fmt::Display for QueueChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        let own = self.grouping.iter().flat_map(|(row, settings)| {
            settings.iter().zip(Settings::defaults(row.parameters).iter().collect::<Vec<_>>())
        });
        let defaults = Settings::defaults(self.within.row().parameters);
        let within = self.within.settings().iter().zip(defaults.iter());
        let typed = within.filter(|(set, _)| !self.given.contains(&set.0));
        let differ = own.chain(typed).filter(|(set, default)| set != default);
        for ((name, value), _) in differ.collect::<Vec<_>>() {
            write!(formatter, ":{name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::QueueChoice;

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
