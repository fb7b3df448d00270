//! The integration tests: one file per question, one binary.
#![allow(clippy::unwrap_used)]

mod accuracy;
mod allocation;
mod analyze;
mod compare;
mod dram;
mod faults;
mod imports;
mod layers;
mod machine_memory;
mod machine_verb;
mod microbenchmarks;
mod model_errors;
mod models;
mod opcodes;
mod packing;
mod parts;
mod picture;
mod profiles;
mod record;
mod rendering;
mod report;
mod sample;
mod samples;
mod shapes;
mod shown;
mod synth;
mod threads;
mod trace_bad_input;
mod trace_generated;
mod trace_golden;
mod trace_round_trip;
mod trace_versions;
mod tracez;
mod translation;
mod workloads;
