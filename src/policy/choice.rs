//! A scheme as the user names it: `name:key=value:key=value`.

use std::fmt;

use thiserror::Error;

use gpumodel_core::units::{did_you_mean, quoted, shown, to_u64};

use super::parameter::PLACE;
use super::{Kind, Parameter, Row, Scheme, Settings, TABLE, Value, find};

/// A scheme and its settings.
#[derive(Clone, Debug)]
pub struct Choice {
    row: &'static Row,
    settings: Settings,
}

/// Why a text names no scheme.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadChoice {
    /// No scheme has that name.
    #[error("no scheme is called {}{hint}; known are: {known}", shown(name))]
    UnknownScheme {
        /// As typed.
        name: String,
        /// The nearest known name, in words.
        hint: String,
        /// Every name.
        known: String,
    },
    /// The name is empty.
    #[error("expected the name of a scheme, found an empty one; known are: {known}")]
    NoName {
        /// Every name.
        known: String,
    },
    /// The scheme has no such parameter.
    #[error("scheme {scheme} has no parameter {}{hint}; known are: {known}", shown(key))]
    UnknownParameter {
        /// Which scheme.
        scheme: &'static str,
        /// As typed.
        key: String,
        /// The nearest known name, in words.
        hint: String,
        /// Every parameter of the scheme.
        known: String,
    },
    /// A setting without `=`.
    #[error(
        "scheme {scheme}: expected key=value after the colon, found {}",
        quoted(found.as_bytes())
    )]
    NotAPair {
        /// Which scheme.
        scheme: &'static str,
        /// As typed.
        found: String,
    },
    /// A parameter is set twice.
    #[error("scheme {scheme}: {key} is set twice")]
    Twice {
        /// Which scheme.
        scheme: &'static str,
        /// Which parameter.
        key: &'static str,
    },
    /// A parameter does not take that value.
    #[error("scheme {scheme}: {key}: expected {expected}, found {}", quoted(found.as_bytes()))]
    Value {
        /// Which scheme.
        scheme: &'static str,
        /// Which parameter.
        key: &'static str,
        /// What it takes.
        expected: String,
        /// As typed.
        found: String,
    },
}

impl Choice {
    /// Reads `name` or `name:key=value:key=value`.
    ///
    /// # Errors
    /// [`BadChoice`] names what is unknown, the nearest known name and all others,
    /// or what a value should have been.
    pub fn parse(text: &str) -> Result<Self, BadChoice> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().trim();
        let known = || TABLE.iter().map(|row| row.name).collect::<Vec<_>>();
        let row = find(name).ok_or_else(|| unknown(name, &known()))?;
        let mut choice = Self::of(row);
        for (key, value) in pairs(row.name, &[row.parameters], parts)? {
            choice.settings.set(key, value);
        }
        Ok(choice)
    }

    /// A scheme with its default settings.
    #[must_use]
    pub fn of(row: &'static Row) -> Self {
        Self { row, settings: Settings::defaults(row.parameters) }
    }

    /// Sets a parameter, if the scheme has one of that name.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.settings.set(name, value);
    }

    /// The same with a parameter set to `value`, if the scheme has one that takes it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Some(parameter) = self.row.parameters.iter().find(|known| known.name == name)
            && let Some(value) = parameter.kind.parse(value)
        {
            self.settings.set(name, value);
        }
        self
    }

    /// Refuses the place of an application beyond the last of `apps` applications.
    ///
    /// # Errors
    /// [`BadChoice::Value`].
    pub fn fits(&self, apps: usize) -> Result<(), BadChoice> {
        for parameter in self.row.parameters.iter().filter(|one| one.name == PLACE) {
            let Kind::Whole { least, .. } = parameter.kind else { continue };
            let place = self.settings.whole(parameter.name);
            if place > to_u64(apps) {
                let plural = if apps == 1 { "" } else { "s" };
                return Err(BadChoice::Value {
                    scheme: self.row.name,
                    key: parameter.name,
                    expected: format!("{least} to {apps} (the run has {apps} application{plural})"),
                    found: place.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Its row of the table.
    #[must_use]
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// Every parameter with its value, defaults included.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The scheme, ready to start.
    #[must_use]
    pub fn make(&self) -> Box<dyn Scheme> {
        (self.row.make)(&self.settings)
    }
}

/// The error for a name that is none of `known`.
pub(super) fn unknown(name: &str, known: &[&str]) -> BadChoice {
    let (hint, known) = (did_you_mean(name, known.iter().copied()), known.join(", "));
    if name.is_empty() {
        return BadChoice::NoName { known };
    }
    BadChoice::UnknownScheme { name: name.to_owned(), hint, known }
}

/// Reads settings `key=value`, each key once, of a scheme that has these lists of parameters.
pub(super) fn pairs<'a>(
    scheme: &'static str,
    parameters: &[&'static [Parameter]],
    parts: impl Iterator<Item = &'a str>,
) -> Result<Vec<(&'static str, Value)>, BadChoice> {
    let mut pairs: Vec<(&'static str, Value)> = Vec::new();
    for part in parts {
        let (key, value) = pair(scheme, parameters, part)?;
        if pairs.iter().any(|(known, _)| *known == key) {
            return Err(BadChoice::Twice { scheme, key });
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

fn pair(
    scheme: &'static str,
    parameters: &[&'static [Parameter]],
    part: &str,
) -> Result<(&'static str, Value), BadChoice> {
    let (key, value) = part
        .split_once('=')
        .ok_or_else(|| BadChoice::NotAPair { scheme, found: part.to_owned() })?;
    let all = || parameters.iter().copied().flatten();
    let Some(parameter) = all().find(|known| known.name == key) else {
        let known: Vec<&str> = all().map(|known| known.name).collect();
        let hint = did_you_mean(key, known.iter().copied());
        let known = if known.is_empty() { String::from("none") } else { known.join(", ") };
        return Err(BadChoice::UnknownParameter { scheme, key: key.to_owned(), hint, known });
    };
    let read = parameter.kind.parse(value).ok_or_else(|| BadChoice::Value {
        scheme,
        key: parameter.name,
        expected: parameter.kind.expected(),
        found: value.to_owned(),
    })?;
    Ok((parameter.name, read))
}

/// The name, and the settings that differ from the defaults: two choices with the same text
/// are the same.
impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.row.name)?;
        let changed = self.settings.changed(self.row.parameters);
        changed.into_iter().try_for_each(|(name, value)| write!(formatter, ":{name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::TABLE;
    use super::{BadChoice, Choice};

    fn refused(text: &str) -> String {
        Choice::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn every_scheme_is_made_by_its_name() {
        for row in TABLE {
            let choice = Choice::parse(row.name).unwrap();
            assert_eq!(choice.to_string(), row.name);
            assert_eq!(choice.settings().iter().count(), row.parameters.len());
            for parameter in row.parameters {
                let default = parameter.kind.default();
                let again = parameter.kind.parse(&default.to_string());
                assert_eq!(again, Some(default), "{}: {}", row.name, parameter.name);
            }
        }
    }

    #[test]
    fn only_changed_settings_are_shown() {
        let text = "warped-slicer:window=10000:threshold_on=loss";
        assert_eq!(Choice::parse(text).unwrap().to_string(), text);
        let choice = Choice::parse("warped-slicer:window=5000").unwrap();
        assert_eq!(choice.to_string(), "warped-slicer", "the default");
    }

    #[test]
    fn a_place_that_no_application_has_is_refused() {
        let fits = |text: &str, apps| Choice::parse(text).unwrap().fits(apps);
        for text in ["qos-bp:high=2", "bp:high=2", "qos-ugpu", "warped-slicer", "mps-share"] {
            assert_eq!(fits(text, 2), Ok(()), "{text}");
        }
        let said = fits("qos-bp:high=7", 2).unwrap_err().to_string();
        let expected = "expected 0 to 2 (the run has 2 applications), found `7`";
        assert_eq!(said, format!("scheme qos-bp: high: {expected}"));
        let said = fits("bp:sms=60:high=2", 1).unwrap_err().to_string();
        assert!(said.contains("expected 1 to 1 (the run has 1 application)"), "{said}");
    }

    #[test]
    fn what_is_unknown_or_out_of_range_is_refused() {
        let scheme = refused("warped-slice");
        assert!(scheme.contains("did you mean warped-slicer?"), "{scheme}");
        assert!(scheme.contains("left-over"), "{scheme}");
        let key = refused("warped-slicer:windw=1");
        assert!(key.contains("did you mean window?") && key.contains("delay"), "{key}");
        let none = refused("left-over:window=1");
        assert!(none.ends_with("known are: none"), "{none}");
        let range = refused("warped-slicer:window=0");
        assert!(range.contains("from 1") && range.contains("`0`"), "{range}");
        let word = refused("warped-slicer:threshold_on=both");
        assert!(word.contains("loss or performance"), "{word}");
        let pair = refused("warped-slicer:window");
        assert!(pair.contains("key=value"), "{pair}");
        for nothing in ["", " ", ":window=1"] {
            let none = refused(nothing);
            let words = "expected the name of a scheme, found an empty one; known are: ";
            assert!(none.starts_with(words) && none.contains("left-over"), "{none}");
        }
        let twice = Choice::parse("warped-slicer:window=1:window=2").unwrap_err();
        assert_eq!(twice, BadChoice::Twice { scheme: "warped-slicer", key: "window" });
        let long = "\u{7f}é".repeat(5000);
        for place in ["", "warped-slicer:", "warped-slicer:window="] {
            let error = refused(&format!("{place}{long}"));
            assert!(error.len() < 1000, "{} bytes: {error}", error.len());
        }
    }
}
