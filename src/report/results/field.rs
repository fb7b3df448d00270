//! Rows of a table: named columns, whose fields have a type also where they are empty.

use serde_json::{Map, Value};

use gpumodel_core::units::to_u64;

/// One field of a row; `None`: empty in CSV and Parquet, `null` in JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    Text(Option<String>),
    Count(Option<u64>),
    /// Finite.
    Number(Option<f64>),
    Flag(Option<bool>),
}

/// A row: its columns in order, with their fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row(Vec<(&'static str, Field)>);

impl Row {
    /// Adds columns.
    pub(super) fn extend(&mut self, columns: impl IntoIterator<Item = (&'static str, Field)>) {
        self.0.extend(columns);
    }

    /// The columns in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|&(name, _)| name)
    }

    /// The fields in the order of the columns.
    pub(super) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().map(|(_, field)| field)
    }

    /// The row as a JSON object.
    pub(super) fn to_json(&self) -> Map<String, Value> {
        self.0.iter().map(|(name, field)| ((*name).to_owned(), field.to_json())).collect()
    }
}

impl Field {
    /// Of the same type without a value.
    pub(super) fn emptied(self) -> Self {
        match self {
            Self::Text(_) => Self::Text(None),
            Self::Count(_) => Self::Count(None),
            Self::Number(_) => Self::Number(None),
            Self::Flag(_) => Self::Flag(None),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => text.clone().into(),
            Self::Count(count) => (*count).into(),
            Self::Number(number) => (*number).into(),
            Self::Flag(flag) => (*flag).into(),
        }
    }

    /// As CSV has it.
    pub(super) fn plain(&self) -> String {
        match self.to_json() {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        }
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Field {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Field {
    fn from(count: u64) -> Self {
        Self::Count(Some(count))
    }
}

impl From<Option<u64>> for Field {
    fn from(count: Option<u64>) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Field {
    fn from(count: usize) -> Self {
        to_u64(count).into()
    }
}

impl From<f64> for Field {
    fn from(number: f64) -> Self {
        Self::Number(number.is_finite().then_some(number))
    }
}

impl From<Option<f64>> for Field {
    fn from(number: Option<f64>) -> Self {
        Self::Number(number.filter(|number| number.is_finite()))
    }
}

impl From<bool> for Field {
    fn from(flag: bool) -> Self {
        Self::Flag(Some(flag))
    }
}
