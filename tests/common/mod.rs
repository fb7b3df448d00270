//! Code that several tiers of tests share.
#![allow(dead_code, unreachable_pub, reason = "each tier uses a part of it")]

pub(crate) mod compression;
pub(crate) mod memlog_text;
pub(crate) mod packing;
pub(crate) mod program;
pub(crate) mod rendering;
pub(crate) mod skip;
pub(crate) mod small_files;
pub(crate) mod sweep_place;

use std::path::{Path, PathBuf};

/// The folder of workload models.
pub(crate) fn workloads() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/workloads")
}
