//! What a contributor runs: facts, naive twins, closed forms, properties, every machine under
//! every scheme. One file per question, one binary.
#![allow(clippy::unwrap_used)]

// What the targets of `fuzz` call their library and the fuzzer's is here, for `fuzz_corpus`.
extern crate self as gpumodel_fuzz;
extern crate self as libfuzzer_sys;

pub(crate) use fuzz_corpus::fuzz_target;
pub(crate) use fuzz_corpus::shared::{
    Bounded, Place, assembled, converted, forged, named, split, text, unfolded, walked,
};

#[path = "../common/mod.rs"]
mod common;
pub(crate) use common::{compression, memlog_text, packing, rendering, skip, sweep_place};

mod accuracy;
mod allocation;
mod analyze;
mod behaviour;
mod compare;
mod constant_words;
mod corpus;
mod corun_settings;
mod covering;
mod dram;
mod drawn;
#[cfg(feature = "pdf")]
mod exported;
mod faults;
mod fuzz;
mod fuzz_corpus;
mod guide;
mod hopper;
mod hostile;
mod hot;
mod imports;
mod imports_variants;
mod machine_verb;
mod measured;
mod metamorphic;
mod microbenchmarks;
mod mix_figures;
mod model_errors;
mod modelled;
mod models;
mod opcodes;
mod parts;
mod power;
mod profile;
mod profiles;
mod queue;
mod queue_figures;
mod queue_record;
mod record;
mod reference_cases;
mod replay;
mod report;
mod reproduce;
mod sample;
mod samples;
mod scheme_pages;
mod schemes;
mod shapes;
mod sharing;
mod shown;
mod shown_queue;
mod shown_study;
mod slate;
mod slice_figures;
mod slices;
mod slurm_scripts;
mod solvers;

mod structure;
mod study_figures;
mod sweep;
mod synth;
mod synth_verb;
mod tables;
mod tenancy;
mod terminal;
mod threads;
mod together;
mod trace_cache;
mod trace_events;
mod trace_faults;
mod trace_filters;
mod trace_generated;
mod trace_memlog;
mod trace_outputs;
mod trace_round_trip;
mod trace_spill;
mod trace_versions;
mod tracez;
mod translation;
mod troubles;
mod workloads;
