//! The options that choose launches and CTAs, for every verb that has them.

use std::path::PathBuf;

use gpumodel_core::units::ByteCount;
use gpumodel_trace::{CtaChoice, Filter, KernelIds, NamePattern};

/// What to take of a trace or store.
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

/// Nothing runs in less: whoever types less has left out the unit.
const MIN_MEMORY: ByteCount = ByteCount(1 << 20);

/// Reads an amount of memory, as `512M` or `2G`.
pub(super) fn memory(typed: &str) -> Result<ByteCount, String> {
    let size: ByteCount = typed.parse()?;
    (size >= MIN_MEMORY).then_some(size).ok_or_else(|| String::from("expected at least 1M"))
}

/// Where converted traces are kept: [`named_cache`], else `gpumodel` in the user's cache
/// folder, else in the folder for temporary files.
pub(super) fn cache_folder() -> PathBuf {
    named_cache()
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("gpumodel")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache").join("gpumodel")))
        .unwrap_or_else(|| std::env::temp_dir().join("gpumodel-cache"))
}

/// The folder that `GPUMODEL_CACHE` names for it.
pub(super) fn named_cache() -> Option<PathBuf> {
    variable("GPUMODEL_CACHE")
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
