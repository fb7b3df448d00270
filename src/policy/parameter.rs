//! The parameters of schemes, and their settings.

use std::ops::RangeInclusive;

use gpumodel_core::units::{Cycle, to_u32};
use serde::Serialize;

/// The name of parameters that are the place of an application, from 1.
pub(super) const PLACE: &str = "high";

/// One parameter of a scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in `name:key=value`.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: Kind,
    /// What it does and where its default is from, in one line.
    pub summary: &'static str,
}

impl Parameter {
    /// A whole number.
    pub(super) const fn whole(
        name: &'static str,
        default: u64,
        takes: RangeInclusive<u64>,
    ) -> Self {
        let (least, most) = (*takes.start(), *takes.end());
        Self { name, kind: Kind::Whole { default, least, most }, summary: "" }
    }

    /// Any number.
    pub(super) const fn real(name: &'static str, default: f64, takes: RangeInclusive<f64>) -> Self {
        let (least, most) = (*takes.start(), *takes.end());
        Self { name, kind: Kind::Real { default, least, most }, summary: "" }
    }

    /// One of some words.
    pub(super) const fn word(
        name: &'static str,
        default: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        Self { name, kind: Kind::Word { default, words }, summary: "" }
    }

    /// A list in its own notation, which the scheme reads.
    pub(super) const fn list(name: &'static str, default: &'static str) -> Self {
        Self { name, kind: Kind::List { default }, summary: "" }
    }

    /// The same with what it does and the source of its default.
    pub(super) const fn does(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }
}

/// The values that a parameter takes, and its default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number.
    Whole {
        /// The default.
        default: u64,
        /// The lowest value allowed.
        least: u64,
        /// The highest value allowed.
        most: u64,
    },
    /// Any number.
    Real {
        /// The default.
        default: f64,
        /// The lowest value allowed.
        least: f64,
        /// The highest value allowed.
        most: f64,
    },
    /// One of some words.
    Word {
        /// The default.
        default: &'static str,
        /// Every word.
        words: &'static [&'static str],
    },
    /// Words or numbers with `+` between them.
    List {
        /// The default.
        default: &'static str,
    },
}

/// A short text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl Text {
    /// Bytes at most.
    const MOST: usize = 96;

    /// `None` where it is too long, or has other characters than letters, digits, `.` and `+`.
    fn new(text: &str) -> Option<Self> {
        let right = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'+');
        let mut bytes = [0; Self::MOST];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        text.bytes().all(right).then_some(Self { bytes, length: text.len() })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Of a [`Kind::Whole`].
    Whole(u64),
    /// Of a [`Kind::Real`].
    Real(f64),
    /// Of a [`Kind::Word`].
    Word(&'static str),
    /// Of a [`Kind::List`].
    List(Text),
}

impl std::fmt::Display for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(formatter),
            Self::Real(value) => value.fmt(formatter),
            Self::Word(value) => value.fmt(formatter),
            Self::List(value) => value.as_str().fmt(formatter),
        }
    }
}

impl Kind {
    /// The default value.
    #[must_use]
    pub fn default(self) -> Value {
        match self {
            Self::Whole { default, .. } => Value::Whole(default),
            Self::Real { default, .. } => Value::Real(default),
            Self::Word { default, .. } => Value::Word(default),
            Self::List { default } => {
                Value::List(Text::new(default).expect("a default is a short text"))
            }
        }
    }

    /// The values that it takes, in words.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Whole { least, most, .. } if most == u64::MAX => {
                format!("a whole number from {least}")
            }
            Self::Whole { least, most, .. } => format!("a whole number from {least} to {most}"),
            Self::Real { least, most, .. } => format!("a number from {least} to {most}"),
            Self::Word { words, .. } => words.join(" or "),
            Self::List { default } => {
                format!("a list as {default} or one with + between its parts")
            }
        }
    }

    /// The value that `text` names; `None` when it is not allowed.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<Value> {
        match self {
            Self::Whole { least, most, .. } => {
                let value = text.parse().ok().filter(|value| (least..=most).contains(value))?;
                Some(Value::Whole(value))
            }
            Self::Real { least, most, .. } => {
                let value = text.parse().ok().filter(|value| (least..=most).contains(value))?;
                Some(Value::Real(value))
            }
            Self::Word { words, .. } => {
                words.iter().find(|&&word| word == text).map(|&word| Value::Word(word))
            }
            Self::List { .. } => Text::new(text).filter(|_| !text.is_empty()).map(Value::List),
        }
    }
}

/// Every parameter of a scheme with its value, in the order of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Vec<(&'static str, Value)>);

impl Settings {
    /// All defaults.
    #[must_use]
    pub fn defaults(parameters: &'static [Parameter]) -> Self {
        Self(parameters.iter().map(|one| (one.name, one.kind.default())).collect())
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        for slot in self.0.iter_mut().filter(|(known, _)| *known == name) {
            slot.1 = value;
        }
    }

    /// The settings that differ from the defaults of `parameters`.
    pub(super) fn changed(&self, parameters: &'static [Parameter]) -> Vec<(&'static str, Value)> {
        let both = self.iter().zip(Self::defaults(parameters).0);
        both.filter(|(set, default)| set != default).map(|(set, _)| set).collect()
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.0.iter().copied()
    }

    fn get(&self, name: &str) -> Value {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.expect("a scheme reads parameters of its row").1
    }

    pub(super) fn whole(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Whole(value) => value,
            other => unreachable!("the row says that {name} is a whole number, not {other}"),
        }
    }

    /// A whole number that fits 32 bits, as the row of the parameter says.
    pub(super) fn small(&self, name: &str) -> u32 {
        to_u32(self.whole(name))
    }

    /// Cycles of a run, `None` to its end, for which 0 stands.
    pub(super) fn window(&self, name: &str) -> Option<Cycle> {
        Some(self.whole(name)).filter(|&cycles| cycles > 0)
    }

    pub(super) fn real(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Real(value) => value,
            other => unreachable!("the row says that {name} is a number, not {other}"),
        }
    }

    pub(super) fn list(&self, name: &str) -> Text {
        match self.get(name) {
            Value::List(value) => value,
            other => unreachable!("the row says that {name} is a list, not {other}"),
        }
    }

    pub(super) fn word(&self, name: &str) -> &'static str {
        match self.get(name) {
            Value::Word(value) => value,
            other => unreachable!("the row says that {name} is a word, not {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Value};

    #[test]
    fn values_outside_the_range_are_refused() {
        let whole = Kind::Whole { default: 2, least: 1, most: 3 };
        assert_eq!(whole.parse("3"), Some(Value::Whole(3)));
        assert_eq!(["0", "4", "-1", "1.5", ""].map(|text| whole.parse(text)), [None; 5]);
        let real = Kind::Real { default: 1.2, least: 0.0, most: 2.0 };
        assert_eq!(real.parse("0.5"), Some(Value::Real(0.5)));
        assert_eq!(["NaN", "inf", "-0.1", "2.1"].map(|text| real.parse(text)), [None; 4]);
        let word = Kind::Word { default: "on", words: &["on", "off"] };
        assert_eq!(word.parse("off"), Some(Value::Word("off")));
        assert_eq!(word.parse("Off"), None);
    }
}
