//! Do the documents of `reports` and `models` agree with the data and the model? Not part of
//! a plain `cargo test`: `cargo test --test release`.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
pub(crate) use common::{rendering, skip, sweep_place};

mod columns;
mod findings;
mod guide;
mod h100;
mod matching_gain;
mod paper_programs;
mod paper_tables;
mod quick;
mod real_programs;
mod report_data;
mod sampling;
mod silences;
mod software_tables;
mod solo_classes;
mod solo_facts;
mod solo_needs;
mod solo_runs;
mod solo_tables;
mod study_tables;
mod ugpu_tables;
mod water_filling;
