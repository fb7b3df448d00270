//! The integration tests: one file per question, one binary.
#![allow(clippy::unwrap_used)]

mod compare;
mod faults;
mod layers;
mod models;
mod picture;
mod record;
mod report;
mod sample;
mod samples;
mod synth;
mod workloads;
