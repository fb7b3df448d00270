//! Do the documents of `reports` and `models` agree with the data and the model? Not part of
//! a plain `cargo test`: `cargo test --test release`.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
pub(crate) use common::{rendering, skip, sweep_place};

mod calibration;
mod columns;
mod guide;
mod h100;
mod matching_gain;
mod paper_programs;
mod quick;
mod real_programs;
mod report_data;
mod report_tables;
mod sampling;
mod silences;
mod solo;
mod water_filling;
