//! Queue files.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use thiserror::Error;

use gpumodel_core::toml::{Node, TomlError};
use gpumodel_core::units::{Cycle, did_you_mean};
use gpumodel_policy::queue::{CLASSES, EarlyFinishers};

use super::Generate;
use crate::AppName;
use crate::error::{InvalidValue, location};

/// The largest queue file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// The longest queue.
const MAX_JOBS: usize = 100_000;

/// The latest arrival: weeks of GPU time.
const MAX_CYCLES: Cycle = 1_000_000_000_000_000;

/// The most applications that run together.
const MAX_GROUP_SIZE: usize = 16;

/// A queue file, checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueueFile {
    /// Its name: the stem of the file.
    pub(super) name: String,
    /// N_G.
    pub(crate) group_size: usize,
    /// What happens when a member of a group ends before the others.
    pub(crate) early_finishers: EarlyFinishers,
    /// The applications: those of the file first.
    pub(crate) apps: Vec<AppName>,
    /// File and line of each application of the file.
    pub(crate) locations: Vec<String>,
    /// The listed order.
    pub(super) order: Vec<Entry>,
    /// The queues to generate.
    pub(super) generate: Option<Generate>,
    /// Classes that applications have by the file, whatever is measured of them.
    pub(super) classes: BTreeMap<String, String>,
    /// Measured slow-downs, by interfering class or application, then by the slowed one.
    pub(super) interference: BTreeMap<String, BTreeMap<String, f64>>,
}

/// Why a queue file is refused.
#[derive(Debug, Error)]
pub enum QueueFileError {
    /// It cannot be read.
    #[error("cannot read the queue {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is too large.
    #[error("the queue {path} is larger than {most} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size.
        most: u64,
    },
    /// It is no TOML, or has unknown keys.
    #[error(transparent)]
    Toml(Box<TomlError>),
    /// An invalid value.
    #[error("{}: {message}", location(path, *line))]
    Value {
        /// The file.
        path: PathBuf,
        /// The line, from 1; `None`: the error is about the whole file.
        line: Option<u32>,
        /// Key, what was expected and what was found.
        message: String,
    },
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawEarlyFinishers {
    #[default]
    Idle,
    Given,
    Restart,
}

impl From<RawEarlyFinishers> for EarlyFinishers {
    fn from(raw: RawEarlyFinishers) -> Self {
        match raw {
            RawEarlyFinishers::Idle => Self::Idle,
            RawEarlyFinishers::Given => Self::Given,
            RawEarlyFinishers::Restart => Self::Restart,
        }
    }
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[allow(dead_code, reason = "a description for readers")]
    description: Option<String>,
    group_size: usize,
    #[serde(default)]
    early_finishers: RawEarlyFinishers,
    #[serde(default)]
    apps: BTreeMap<String, String>,
    #[serde(default)]
    order: Vec<Entry>,
    generate: Option<Generate>,
    #[serde(default)]
    classes: BTreeMap<String, String>,
    #[serde(default)]
    interference: BTreeMap<String, BTreeMap<String, f64>>,
}

impl QueueFile {
    /// Reads the queue at `path`; `more` are further applications.
    pub(crate) fn read(path: &Path, more: &[AppName]) -> Result<Self, QueueFileError> {
        let failed = |source| QueueFileError::Read { path: path.to_path_buf(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(QueueFileError::TooLarge { path: path.to_path_buf(), most: MAX_BYTES });
        }
        let invalid = |error| QueueFileError::Toml(Box::new(error));
        let lines = Node::read(&path.display().to_string(), &text).map_err(invalid)?;
        let raw = lines.decode().map_err(invalid)?;
        Self::new(path, (raw, &lines), more).map_err(|invalid| QueueFileError::Value {
            path: path.to_path_buf(),
            line: lines.line(&invalid.keys),
            message: invalid.message,
        })
    }

    fn new(
        path: &Path,
        (raw, lines): (Raw, &Node),
        more: &[AppName],
    ) -> Result<Self, InvalidValue> {
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let index = |name: &String| {
            location(path, lines.line(&InvalidValue::of("apps", "").within(name).keys))
        };
        let locations = raw.apps.keys().map(index).collect();
        let named = raw.apps.iter().map(|(name, source)| AppName::within(folder, name, source));
        let apps: Vec<AppName> = named.chain(more.iter().cloned()).collect();
        let queue = Self {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            group_size: raw.group_size,
            early_finishers: raw.early_finishers.into(),
            apps,
            locations,
            order: raw.order,
            generate: raw.generate,
            classes: raw.classes,
            interference: raw.interference,
        };
        queue.check().map(|()| queue)
    }

    fn check(&self) -> Result<(), InvalidValue> {
        let size = self.group_size;
        if !(1..=MAX_GROUP_SIZE).contains(&size) {
            let message = format!("group_size: expected 1 to {MAX_GROUP_SIZE}, found {size}");
            return Err(InvalidValue::of("group_size", message));
        }
        if self.apps.is_empty() {
            let message = "expected applications in [apps], as saxpy = \"synth:saxpy\", or on the \
                           command line";
            return Err(InvalidValue::of("apps", message));
        }
        match &self.generate {
            None if self.order.is_empty() => {
                let message = "expected an order, as order = [\"a\", \"b\"], or a table [generate]";
                Err(InvalidValue::of("order", message))
            }
            Some(_) if !self.order.is_empty() => {
                let message = "expected an order or a table [generate], found both";
                Err(InvalidValue::of("generate", message))
            }
            Some(generate) => generate.check(MAX_JOBS),
            None => self.check_order(),
        }?;
        self.check_classes()?;
        self.check_interference()
    }

    fn check_order(&self) -> Result<(), InvalidValue> {
        if self.order.len() > MAX_JOBS {
            return Err(InvalidValue::of(
                "order",
                format!("order: expected at most {MAX_JOBS} entries"),
            ));
        }
        for (number, entry) in self.order.iter().enumerate() {
            let invalid = |message: String| {
                let message = format!("order, entry {}: {message}", number + 1);
                InvalidValue::of("order", message).item(number)
            };
            if entry.arrival > MAX_CYCLES {
                let found = entry.arrival;
                let message = format!("arrival: expected at most {MAX_CYCLES}, found {found}");
                return Err(invalid(message).within("arrival"));
            }
            let results = || self.apps.iter().map(|app| app.name.as_str());
            if !results().any(|name| name == entry.app) {
                let hint = did_you_mean(&entry.app, results());
                let all = results().collect::<Vec<_>>().join(", ");
                let message =
                    format!("no application {}{hint}; the applications are: {all}", entry.app);
                return Err(invalid(message).within("app"));
            }
        }
        Ok(())
    }

    fn check_classes(&self) -> Result<(), InvalidValue> {
        for (app, class) in &self.classes {
            let invalid = |message: String| {
                InvalidValue::of("classes", format!("classes.{app}: {message}")).within(app)
            };
            if !self.apps.iter().any(|known| known.name == *app) {
                let hint = did_you_mean(app, self.apps.iter().map(|known| known.name.as_str()));
                return Err(invalid(format!("no application {app}{hint}")));
            }
            if !CLASSES.contains(&class.as_str()) {
                let classes = CLASSES.join(", ");
                return Err(invalid(format!("expected a class ({classes}), found {class}")));
            }
        }
        Ok(())
    }

    fn check_interference(&self) -> Result<(), InvalidValue> {
        let all = self.interference.iter().flat_map(|(disturbs, row)| {
            row.iter().map(move |(suffers, value)| (disturbs, suffers, *value))
        });
        for (disturbs, suffers, value) in all {
            let invalid = |message: String| {
                let message = format!("interference.{disturbs}.{suffers}: {message}");
                InvalidValue::of("interference", message).within(disturbs).within(suffers)
            };
            if !(0.01..=1000.0).contains(&value) {
                let message = format!("expected a slow-down from 0.01 to 1000, found {value}");
                return Err(invalid(message));
            }
            let results = |name: &String| {
                CLASSES.contains(&name.as_str()) || self.apps.iter().any(|app| app.name == *name)
            };
            if let Some(name) = [disturbs, suffers].into_iter().find(|name| !results(name)) {
                let classes = CLASSES.join(", ");
                return Err(invalid(format!(
                    "expected a class ({classes}) or an application's name, found {name}"
                )));
            }
        }
        Ok(())
    }
}

/// An entry of a listed order: the name of an application, or a name and a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The name of the application.
    pub(super) app: String,
    /// When it arrives.
    pub(super) arrival: Cycle,
}

/// An entry with a time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Timed {
    app: String,
    arrival: Cycle,
}

/// An error within `{ app, arrival }` names the key.
impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{EarlyFinishers, Entry, QueueFile};

    fn read(text: &str) -> Result<QueueFile, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("q.toml");
        std::fs::write(&path, text).unwrap();
        QueueFile::read(&path, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn paths_are_from_the_files_folder_on() {
        let text = "group_size = 2\norder = ['a', {app = 'b', arrival = 7}, 'a']\n\
                    [apps]\na = 'synth:saxpy'\nb = 'x/b.gpt'\nc = 'synth:own/c.toml'";
        let queue = read(text).unwrap();
        assert_eq!((queue.name.as_str(), queue.early_finishers), ("q", EarlyFinishers::Idle));
        assert_eq!(queue.apps[0].path, PathBuf::from("synth:saxpy"));
        assert!(queue.apps[1].path.is_absolute() && queue.apps[1].path.ends_with("x/b.gpt"));
        let own = queue.apps[2].path.to_str().unwrap();
        assert!(own.starts_with("synth:/") && own.ends_with("own/c.toml"), "{own}");
        assert_eq!(queue.order[1], Entry { app: "b".into(), arrival: 7 });
    }

    #[test]
    fn unknown_keys_and_values_are_refused_with_their_line() {
        let apps = "[apps]\na = 'synth:saxpy'\n";
        for (text, words) in [
            (
                format!("group_sice = 2\norder=['a']\n{apps}"),
                "q.toml:1: unknown key `group_sice`; did you mean `group_size`",
            ),
            (format!("order=['a']\n{apps}"), "q.toml:1: `group_size` is missing"),
            (format!("group_size = -2\norder=['a']\n{apps}"), "expected a whole number from 0 on"),
            (
                format!("group_size = 2\nearly_finishers = 'ide'\norder=['a']\n{apps}"),
                "q.toml:2: `early_finishers`: expected one of idle, given, restart, found \"ide\"; did you \
                 mean `idle`?",
            ),
            (
                format!("group_size = 2\norder=[{{app='a'}}]\n{apps}"),
                "q.toml:2: `order.arrival` is missing",
            ),
            (
                format!("group_size = 2\norder=['a',\n{{app='a', arrival=-5}}]\n{apps}"),
                "q.toml:3: `order.arrival`: expected a whole number from 0 on, found integer `-5`",
            ),
            (
                format!("group_size = 2\norder=[{{ap='a', arrival=5}}]\n{apps}"),
                "q.toml:2: unknown key `order.ap`; did you mean `app`?",
            ),
            (
                format!("group_size = 2\norder=[7]\n{apps}"),
                "q.toml:2: `order`: expected an application's name, or { app = \"name\", arrival",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn invalid_values_are_refused_with_their_line() {
        let apps = "[apps]\na = 'synth:saxpy'\n";
        for (text, words) in [
            (
                format!("group_size = 0\norder=['a']\n{apps}"),
                "q.toml:1: group_size: expected 1 to 16, found 0",
            ),
            (format!("group_size = 2\n{apps}"), "expected an order"),
            (
                format!("group_size = 2\norder=['b']\n{apps}"),
                "q.toml:2: order, entry 1: no application b",
            ),
            ("group_size = 2\norder=['b']".into(), "expected applications"),
            (format!("group_size = 2\norder=['a']\n{apps}[generate]\nlength=2"), "found both"),
            (
                format!("group_size = 2\norder=['a']\n{apps}[interference]\nM={{A=-1.0}}"),
                "q.toml:6: interference.M.A",
            ),
            (format!("group_size = 2\norder=['a']\n{apps}[interference]\nM={{Q=1.0}}"), "found Q"),
            (
                format!("group_size = 2\norder=[{{app='a',arrival=9000000000000000000}}]\n{apps}"),
                "q.toml:2: order, entry 1: arrival: expected at most",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(words) && error.contains("q.toml"), "{text}: {error}");
        }
        let missing = QueueFile::read(Path::new("no/such.toml"), &[]).unwrap_err();
        assert!(missing.to_string().contains("no/such.toml"));
    }

    #[test]
    fn what_cannot_be_generated_is_refused_with_its_line() {
        let apps = "[apps]\na = 'synth:saxpy'\n";
        for (text, words) in [
            (format!("group_size = 2\n{apps}[generate]\nlength=2\ndistributions=['B']"), "found B"),
            (format!("group_size = 2\n{apps}[generate]\nlength=0"), "q.toml:5: generate.length"),
            (
                format!("group_size = 2\n{apps}[generate]\nlength=100000\nseeds=[1,2,3]"),
                "found 1500000",
            ),
            (
                format!("group_size = 2\n{apps}[generate]\nlength=2\nseeds=[]"),
                "q.toml:6: generate.seeds: expected 1 to 1000, found 0",
            ),
            (
                format!("group_size = 2\n{apps}[generate]\nlength=2\nseeds=[1,\n2,\n1]"),
                "q.toml:8: generate.seeds: 1 appears twice",
            ),
            (
                format!("group_size = 2\n{apps}[generate]\nlength=2\ndistributions=['M', 'M']"),
                "generate.distributions: M appears twice",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(words) && error.contains("q.toml"), "{text}: {error}");
        }
    }
}
