//! The model files that gpumodel carries: machines, memory standards, opcode tables,
//! workloads, queues of mixes, papers, plans of sweeps.
//!
//! Data alone. `README.md` next to this file says what belongs into each folder.

use gpumodel_core::models::ModelFiles;

/// Path below `models/`, and text, of every carried file.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/models.rs"));

/// The files that the program carries.
#[must_use]
pub fn builtin() -> ModelFiles {
    ModelFiles::new(FILES)
}
