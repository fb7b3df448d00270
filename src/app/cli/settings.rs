//! What a user sets once for every command: the default machine, from the environment or from
//! the config file.

use std::env;
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde::Deserialize;

use gpumodel_core::toml::{TomlError, read_file};

use super::options::user_folder;
use super::output::detail;

/// The variable that names the default machine.
const MACHINE: &str = "GPUMODEL_MACHINE";

/// The config file; every key may be missing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The default machine: a name, or a path relative to the current folder.
    machine: Option<String>,
}

/// The machine of commands that name none, and where it is set.
#[derive(Debug)]
pub(super) struct DefaultMachine {
    machine: OsString,
    from: String,
}

impl DefaultMachine {
    /// Reads the environment, else the config file.
    ///
    /// # Errors
    /// When the config file cannot be read, with the line; an unknown key with the nearest.
    pub(super) fn read() -> Result<Option<Self>, TomlError> {
        if let Some(machine) = env::var_os(MACHINE).filter(|name| !name.is_empty()) {
            return Ok(Some(Self { machine, from: MACHINE.to_owned() }));
        }
        let Some(path) = config_file().filter(|path| path.exists()) else { return Ok(None) };
        let (file, _) = read_file::<File>(&path)?;
        let from = path.display().to_string();
        Ok(file.machine.map(|machine| Self { machine: machine.into(), from }))
    }

    /// Makes it the default of `analyze --machine`.
    pub(super) fn apply(&self, command: Command) -> Command {
        let machine = self.machine.clone();
        command.mut_subcommand("analyze", |analyze| {
            analyze.mut_arg("machine", |option| option.required(false).default_value(machine))
        })
    }

    /// Whether the command uses it; reports it as a detail then.
    pub(super) fn is_used(&self, matches: &ArgMatches) -> bool {
        let verb = matches.subcommand().filter(|(verb, _)| *verb == "analyze");
        let source = verb.and_then(|(_, options)| options.value_source("machine"));
        let used = source == Some(ValueSource::DefaultValue);
        if used {
            detail(format_args!("{self}"));
        }
        used
    }
}

impl Display for DefaultMachine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "machine {}, which {} names", self.machine.to_string_lossy(), self.from)
    }
}

/// `gpumodel/config.toml` in the user's config folder.
fn config_file() -> Option<PathBuf> {
    Some(user_folder("XDG_CONFIG_HOME", ".config")?.join("config.toml"))
}
