//! The integration tests: one file per question, one binary.
#![allow(clippy::unwrap_used)]

// What the targets of `fuzz` call their library and the fuzzer's is here, for `fuzz_corpus`.
extern crate self as gpumodel_fuzz;
extern crate self as libfuzzer_sys;

pub(crate) use fuzz_corpus::fuzz_target;
pub(crate) use fuzz_corpus::shared::{
    Bounded, Place, assembled, converted, forged, named, split, text, unfolded, walked,
};

mod accuracy;
mod allocation;
mod analyze;
#[cfg(target_os = "linux")]
mod bombs;
mod columns;
mod compare;
#[cfg(unix)]
mod convert_faults;
mod corpus;
mod corun_reference;
mod corun_settings;
mod covering;
mod dram;
mod drawn;
mod faults;
mod findings;
#[cfg(target_os = "linux")]
mod full_disk;
mod fuzz;
mod fuzz_corpus;
mod h100;
#[cfg(target_os = "linux")]
mod hangup;
mod held_figures;
mod hostile;
mod imports;
mod machine_memory;
mod machine_verb;
mod matching;
mod matching_gain;
mod memlog_text;
mod merge;
mod metamorphic;
mod microbenchmarks;
mod mix_figures;
mod model_errors;
mod modelled;
mod models;
#[cfg(unix)]
mod moving;
mod opcodes;
mod packing;
mod paper_tables;
mod paper_workloads;
mod parts;
mod patterns;
mod picture;
mod power;
mod profiles;
mod queue;
mod queue_figures;
mod queue_record;
#[cfg(target_os = "linux")]
mod read_only;
mod real_programs;
mod record;
mod redistribution;
mod rendering;
mod replay;
mod report;
mod report_data;
mod reproduce;
mod sample;
mod samples;
mod sampling;
mod schemes;
mod shapes;
mod sharing;
mod shown;
mod shown_mixes;
mod shown_queue;
mod shown_slices;
mod shown_study;
mod silences;
mod skip;
mod slate;
mod slice_figures;
mod slices;
#[cfg(unix)]
mod slurm;
mod slurm_scripts;
mod software_tables;
mod solo_classes;
mod solo_facts;
mod solo_needs;
mod solo_runs;
mod solo_tables;
mod solvers;
mod structure;
mod study_figures;
mod study_tables;
mod sweep;
#[cfg(unix)]
mod sweep_faults;
mod sweep_place;
mod synth;
mod synth_verb;
mod tenancy;
mod threads;
mod together;
mod trace_bad_input;
mod trace_cache;
mod trace_filters;
mod trace_generated;
mod trace_golden;
mod trace_memlog;
mod trace_memlog_real;
mod trace_outputs;
mod trace_round_trip;
mod trace_spill;
mod trace_versions;
mod tracez;
mod translation;
mod ugpu_tables;
mod water_filling;
mod workloads;
