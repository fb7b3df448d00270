//! From a tree of values to typed descriptions, refusing unknown keys with the
//! nearest known one and naming file and line for everything that is wrong.

use std::fmt;

use serde::Deserialize;
use serde::de::value::StringDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Content, Node, Place, TomlError, dotted};
use crate::units::{in_words, nearest};

/// Reads a `T` from `node`.
///
/// # Errors
/// [`TomlError::UnknownKey`], [`TomlError::Value`] or [`TomlError::Missing`],
/// with the place in the file.
pub(super) fn decode<'de, T: Deserialize<'de>>(node: &'de Node) -> Result<T, TomlError> {
    T::deserialize(node).map_err(|fault| fault.at(node, "").into_error())
}

/// What is wrong, and where, as far as that is known on the way up.
#[derive(Debug)]
pub struct Fault {
    place: Option<Place>,
    key: String,
    wrong: Wrong,
}

#[derive(Debug)]
enum Wrong {
    Unknown { nearest: Option<String> },
    Missing { field: &'static str },
    Value { expected: String, found: String, nearest: Option<String> },
}

impl Fault {
    fn new(wrong: Wrong) -> Self {
        Self { place: None, key: String::new(), wrong }
    }

    /// Adds the place, if none is known yet, and one step of the key.
    fn at(mut self, node: &Node, key: &str) -> Self {
        self.place.get_or_insert_with(|| node.place.clone());
        if let Wrong::Value { found, .. } = &mut self.wrong
            && found.is_empty()
        {
            *found = node.content.describe();
        }
        if !key.is_empty() {
            self.key = if self.key.is_empty() { key.to_owned() } else { dotted(key, &self.key) };
        }
        self
    }

    fn into_error(self) -> TomlError {
        let place = self.place.expect("decode gives the place of the root");
        let key = self.key;
        match self.wrong {
            Wrong::Unknown { nearest } => {
                // A word of the command line stands in no section.
                let section = if place.line() == 0 { key.rsplit_once('.') } else { None };
                let nearest = nearest.map(|near| match section {
                    Some((section, _)) => dotted(section, &near),
                    None => near,
                });
                TomlError::UnknownKey { place, key, nearest }
            }
            Wrong::Missing { field } => TomlError::Missing { place, key: dotted(&key, field) },
            Wrong::Value { expected, found, nearest } => {
                TomlError::Value { place, key, expected, found, nearest }
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.key, self.wrong)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        let (expected, found) = match message.strip_prefix("expected ") {
            // What was found is known on the way up.
            Some(expected) => (expected.to_owned(), String::new()),
            None => ("a valid value".to_owned(), message),
        };
        Self::new(Wrong::Value { expected, found, nearest: None })
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = in_words(&expected.to_string());
        let found = match found {
            Unexpected::Map => "a section".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            other => other.to_string(),
        };
        Self::new(Wrong::Value { expected, found, nearest: None })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let nearest = nearest(variant, expected.iter().copied());
        let expected = format!("one of {}", expected.join(", "));
        Self::new(Wrong::Value { expected, found: format!("\"{variant}\""), nearest })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Wrong::Unknown { nearest: nearest(field, expected.iter().copied()) })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Wrong::Missing { field })
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let value = match &self.content {
            Content::Table(entries) => {
                let mut entries: Vec<_> = entries.iter().collect();
                // Sections that are read as they come keep the order of the file.
                entries.sort_by_key(|(_, node)| node.offset);
                visitor.visit_map(Entries { rest: entries.into_iter(), open: None })
            }
            Content::List(items) => visitor.visit_seq(Items(items.iter())),
            Content::Text(text) => visitor.visit_borrowed_str(text),
            Content::Integer(value) => visitor.visit_i64(*value),
            Content::Float(value) => visitor.visit_f64(*value),
            Content::Flag(value) => visitor.visit_bool(*value),
        };
        value.map_err(|fault| fault.at(self, ""))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        for (key, node) in self.entries().into_iter().flatten() {
            if !fields.contains(&key.as_str()) {
                let nearest = nearest(key, fields.iter().copied());
                return Err(Fault::new(Wrong::Unknown { nearest }).at(node, key));
            }
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Some(text) = self.text() else {
            let expected = format!("one of {}", variants.join(", "));
            let found = self.content.describe();
            return Err(Fault::new(Wrong::Value { expected, found, nearest: None }).at(self, ""));
        };
        let word: StringDeserializer<Fault> = text.to_owned().into_deserializer();
        visitor.visit_enum(word).map_err(|fault| fault.at(self, ""))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Entries<'de> {
    rest: std::vec::IntoIter<(&'de String, &'de Node)>,
    open: Option<(&'de str, &'de Node)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some((key, node)) = self.rest.next() else { return Ok(None) };
        self.open = Some((key, node));
        let name = de::value::BorrowedStrDeserializer::new(key);
        seed.deserialize(name).map(Some).map_err(|fault: Fault| fault.at(node, key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (key, node) = self.open.take().expect("serde asks for a value after its key");
        seed.deserialize(node).map_err(|fault| fault.at(node, key))
    }
}

struct Items<'de>(std::slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let item = |node: &'de Node| seed.deserialize(node).map_err(|fault| fault.at(node, ""));
        self.0.next().map(item).transpose()
    }
}
