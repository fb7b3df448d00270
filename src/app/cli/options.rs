//! Options that several verbs share.

use std::path::PathBuf;

use gpumodel_core::units::ByteCount;
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
        .unwrap_or_else(|| std::env::temp_dir().join("gpumodel-cache"));
    detail(format_args!("cache folder: {}", folder.display()));
    folder
}

/// The program's own folder in the one that the variable `named` names, else in `usual` of the
/// home folder.
pub(super) fn user_folder(named: &str, usual: &str) -> Option<PathBuf> {
    let parent = variable(named).or_else(|| Some(variable("HOME")?.join(usual)))?;
    Some(parent.join("gpumodel"))
}

/// The cache folder that `GPUMODEL_CACHE` names.
pub(super) fn named_cache() -> Option<PathBuf> {
    variable("GPUMODEL_CACHE")
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
