//! What can be wrong with a model file, for the user: where it is, what was expected,
//! what was found and, for a name, which known one is nearest.

use gpumodel_core::models::ModelFileError;
use gpumodel_core::toml::{Place, TomlError};
use gpumodel_core::units::nearest;
use thiserror::Error;

use super::check::Problem;

/// Why a model could not be read.
#[derive(Debug, Error)]
pub enum SpecError {
    /// A file could not be read, or is not what its description says.
    #[error(transparent)]
    Toml(Box<TomlError>),
    /// A machine that lacks a key.
    #[error(
        "{0}; what a machine does not say comes from its base: `base = \"NAME\"`, of the names in \
         `gpumodel machine list`"
    )]
    Incomplete(Box<TomlError>),
    /// An override that names an unknown key.
    #[error("{0}; `gpumodel machine show NAME` lists the keys of a machine")]
    UnknownOverride(Box<TomlError>),
    /// `base` leads back to a file that is already being read.
    #[error("{place}: `base` goes round in a circle: {chain}")]
    BaseLoop {
        /// The `base` key that closes the circle.
        place: Place,
        /// The names in order.
        chain: String,
    },
    /// No model of that name.
    #[error("no `{name}` in models/{folder}{}; known: {known}", hint(nearest.as_deref()))]
    NoModel {
        /// The folder under `models/`.
        folder: &'static str,
        /// The name that was asked for.
        name: String,
        /// The known name that is spelt most alike.
        nearest: Option<String>,
        /// Every known name.
        known: String,
    },
    /// A file names an unknown model.
    #[error("{place}: `{key}`: {missing}")]
    NamesNoModel {
        /// Where the name stands.
        place: Place,
        /// The dotted key.
        key: &'static str,
        /// [`SpecError::NoModel`].
        missing: Box<SpecError>,
    },
    /// A line of a foreign configuration that is no option.
    #[error("{place}: {message}")]
    Option {
        /// Where the line stands.
        place: Place,
        /// What was expected and found.
        message: String,
    },
    /// A foreign configuration without an option that the machine needs.
    #[error("{files}: no `{key}` ({meaning}); is this a gpgpusim.config?")]
    MissingOption {
        /// The files that were read.
        files: String,
        /// The option.
        key: String,
        /// What it says.
        meaning: &'static str,
    },
    /// An override that names no key.
    #[error("{word}: expected SECTION.KEY=VALUE, as in l1.latency_cycles=30")]
    Override {
        /// The word as it was typed.
        word: String,
    },
    /// An override of the link of a machine that has none.
    #[error(
        "{word}: expected a machine with a section [link] (gpumodel machine show v100 lists its \
         keys), found {machine}, which has none; write a machine file with `base = \"{machine}\"` \
         and that section"
    )]
    NoLink {
        /// The word as it was typed.
        word: String,
        /// The machine.
        machine: String,
    },
    /// The description is readable but no machine can be like this.
    #[error("{machine} is not a consistent machine:{}", listed(problems))]
    Inconsistent {
        /// The machine.
        machine: String,
        /// Every check that failed.
        problems: Vec<Problem>,
    },
    /// The description is readable but no memory can be like this.
    #[error("{name} is not a consistent memory: {problem}")]
    InconsistentMemory {
        /// The standard or mapping.
        name: String,
        /// What does not fit, and what to do.
        problem: String,
    },
}

impl From<TomlError> for SpecError {
    /// Adds help to an override that has no lines around it that show other keys.
    fn from(error: TomlError) -> Self {
        match &error {
            TomlError::UnknownKey { place, nearest: None, .. } if place.line() == 0 => {
                Self::UnknownOverride(Box::new(error))
            }
            _ => Self::Toml(Box::new(error)),
        }
    }
}

impl From<ModelFileError> for SpecError {
    fn from(error: ModelFileError) -> Self {
        TomlError::from(error).into()
    }
}

impl SpecError {
    /// A value that is not what the description takes.
    pub(super) fn value(
        place: &Place,
        key: &str,
        expected: impl Into<String>,
        found: String,
    ) -> Self {
        let (place, key, expected) = (place.clone(), key.to_owned(), expected.into());
        TomlError::Value { place, key, expected, found, nearest: None }.into()
    }

    /// A key, or a name in an expression, that is not among the `known` ones.
    pub(super) fn unknown<'a>(
        place: &Place,
        key: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let name = key.rsplit('.').next().unwrap_or(key);
        let near = |word| nearest(word, known.iter().copied());
        let nearest = near(key).or_else(|| near(name));
        TomlError::UnknownKey { place: place.clone(), key: key.to_owned(), nearest }.into()
    }

    /// Adds the place that names a missing model; other errors stay.
    pub(super) fn named_at(self, place: &Place, key: &'static str) -> Self {
        match self {
            Self::NoModel { .. } => {
                Self::NamesNoModel { place: place.clone(), key, missing: Box::new(self) }
            }
            other => other,
        }
    }
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n  {problem}")).collect()
}
