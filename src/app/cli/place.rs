//! Where things are kept between runs.

use std::path::PathBuf;

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
