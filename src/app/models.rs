//! The model files of this program.

use std::path::Path;

use gpumodel_sim::config::{Models, SpecError};

/// The carried model files, and over them those of `folder`.
///
/// # Errors
/// [`SpecError::File`].
pub fn models(folder: Option<&Path>) -> Result<Models, SpecError> {
    Models::with_overrides(gpumodel_models::builtin(), folder)
}
