//! Options that several verbs share, and what a user sets once for every command: the default
//! machine, from the environment or from the config file.

use std::env;
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde::Deserialize;

use gpumodel_core::toml::{TomlError, read_file};
use gpumodel_core::units::ByteCount;
use gpumodel_sim::config::{Models, SpecError};
use gpumodel_trace::{CtaChoice, Filter, KernelIds, NamePattern};

use super::output::detail;

/// Selects launches and CTAs of a trace or store.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FilterArguments {
    /// Only launches with these ids, as `1-12,40`
    #[arg(long, value_name = "IDS")]
    kernels: Option<KernelIds>,
    /// Only launches whose name, mangled or readable, matches this regular
    /// expression somewhere
    #[arg(long, value_name = "REGEX")]
    names: Option<NamePattern>,
    /// Only these CTAs of every launch: positions in the grid, x fastest, as
    /// `0-159,320`, or `first:80` for the first 80 that the trace has
    #[arg(long, value_name = "CTAS")]
    ctas: Option<CtaChoice>,
}

impl From<FilterArguments> for Filter {
    fn from(typed: FilterArguments) -> Self {
        let FilterArguments { kernels, names, ctas } = typed;
        Self { kernels, names, ctas }
    }
}

/// Where model files come from.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ModelsArgument {
    /// A folder of model files that take precedence over the built-in ones, laid out as
    /// `models/`
    #[arg(id = "models", long, value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
}

impl ModelsArgument {
    /// The carried model files, and over them those of the folder.
    pub(super) fn load(&self) -> Result<Models, SpecError> {
        crate::models(self.folder.as_deref())
    }
}

/// The smallest amount of memory: a smaller one lacks its unit.
const MIN_MEMORY: ByteCount = ByteCount(1 << 20);

/// Reads the `KEY=VALUE` of a `--set`.
pub(super) fn setting(typed: &str) -> Result<(String, String), String> {
    let (key, value) =
        typed.split_once('=').ok_or("expected KEY=VALUE, as l1.latency_cycles=20")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Sets the number of threads; the default is one per core.
pub(super) fn set_threads(threads: Option<u16>) -> Result<(), rayon::ThreadPoolBuildError> {
    let Some(threads) = threads else { return Ok(()) };
    rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()
}

/// Reads an amount of memory, as `512M` or `2G`.
pub(super) fn memory(typed: &str) -> Result<ByteCount, String> {
    let size: ByteCount = typed.parse()?;
    (size >= MIN_MEMORY).then_some(size).ok_or_else(|| String::from("expected at least 1M"))
}

/// The folder for converted traces and cached results: [`named_cache`], else `gpumodel` in the user's cache
/// folder, else in the folder for temporary files.
pub(super) fn cache_folder() -> PathBuf {
    let folder = named_cache()
        .or_else(|| user_folder("XDG_CACHE_HOME", ".cache"))
        .unwrap_or_else(|| env::temp_dir().join("gpumodel-cache"));
    detail(format_args!("cache folder: {}", folder.display()));
    folder
}

/// The program's own folder in the one that the variable `named` names, else in `usual` of the
/// home folder.
fn user_folder(named: &str, usual: &str) -> Option<PathBuf> {
    let parent = variable(named).or_else(|| Some(variable("HOME")?.join(usual)))?;
    Some(parent.join("gpumodel"))
}

/// The cache folder that `GPUMODEL_CACHE` names.
pub(super) fn named_cache() -> Option<PathBuf> {
    variable("GPUMODEL_CACHE")
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

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
