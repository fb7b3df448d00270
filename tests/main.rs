//! The integration tests: one file per question, one binary.
#![allow(clippy::unwrap_used)]

mod faults;
mod layers;
mod samples;
mod synth;
mod workloads;
