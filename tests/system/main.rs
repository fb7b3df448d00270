//! Slow tests, and those that need a special place or end processes: full disks, kills, memory
//! limits, a real Slurm. Not part of a plain `cargo test`: `cargo test --test system`.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
pub(crate) use common::{compression, packing, rendering, skip, sweep_place};

#[cfg(target_os = "linux")]
mod bombs;
#[cfg(unix)]
mod kills;
#[cfg(unix)]
mod moving;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(unix)]
mod slurm;
#[cfg(target_os = "linux")]
mod surroundings;
