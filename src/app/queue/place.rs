//! One place of a queue's order: an application's name, or a name and a time.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use gpumodel_core::units::Cycle;

/// One place of an order that is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Application name.
    pub(super) app: String,
    /// When it arrives.
    pub(super) arrival: Cycle,
}

/// A place that says when.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Timed {
    app: String,
    arrival: Cycle,
}

/// What is wrong within `{ app, arrival }` is told of the key that it is about.
impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Place)
    }
}

struct Place;

impl<'de> Visitor<'de> for Place {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an application's name, or { app = \"name\", arrival = cycle }")
    }

    fn visit_str<E: Error>(self, app: &str) -> Result<Entry, E> {
        Ok(Entry { app: app.to_owned(), arrival: 0 })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Entry, A::Error> {
        let Timed { app, arrival } = Timed::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Entry { app, arrival })
    }
}
