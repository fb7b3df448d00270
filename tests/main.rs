//! The integration tests: one file per question, one binary.
#![allow(clippy::unwrap_used)]

mod accuracy;
mod allocation;
mod analyze;
#[cfg(target_os = "linux")]
mod bombs;
mod compare;
mod corpus;
mod dram;
mod faults;
mod fuzz;
mod hostile;
mod imports;
mod layers;
mod machine_memory;
mod machine_verb;
mod metamorphic;
mod microbenchmarks;
mod model_errors;
mod models;
#[cfg(unix)]
mod moving;
mod opcodes;
mod packing;
mod parts;
mod picture;
mod power;
mod profiles;
mod record;
mod rendering;
mod report;
mod sample;
mod samples;
mod sampling;
mod schemes;
mod shapes;
mod shown;
mod solvers;
mod synth;
mod threads;
mod together;
mod trace_bad_input;
mod trace_cache;
mod trace_filters;
mod trace_generated;
mod trace_golden;
mod trace_memlog;
mod trace_outputs;
mod trace_round_trip;
mod trace_spill;
mod trace_versions;
mod tracez;
mod translation;
mod water_filling;
mod workloads;
