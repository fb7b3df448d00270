//! A trace-driven, analytic/cycle-hybrid performance model of GPUs that run
//! several kernels at once.
//!
//! # The stations
//! trace text -> [`trace`] store -> feed -> [`machine`] (View -> [`scheme`]
//! -> Plan) -> [`record`] -> table and SVG by [`report`].
//!
//! # The rooms
//! Imports go down only; `tests/layers.rs` holds this table.
//!
//! | floor | room | may import |
//! |---|---|---|
//! | 6 | [`cli`] | run, report, synth, trace, spec, record, units |
//! | 5 | [`report`] | record, units |
//! | 5 | [`run`] | machine, scheme, synth, trace, spec, epoch, record, isa, units |
//! | 4 | [`machine`] | spec, epoch, isa, units |
//! | 4 | [`scheme`] | epoch, units |
//! | 3 | [`spec`], [`trace`], [`synth`] | isa, units |
//! | 2 | [`epoch`], [`record`] | units |
//! | 1 | [`isa`] | units |
//! | 0 | [`units`] | nothing |
//!
//! # The laws
//! The machine does not know who rules, the ruler does not touch the machine.
//! Hardware is a file under `models/`; every number in it says where it is from.
//! Same input, same bytes, whatever the thread count.
//!
//! A reading order: [`isa`], [`epoch`], [`machine`], [`run`], then the rest.

pub mod cli;
pub mod epoch;
pub mod isa;
pub mod machine;
pub mod record;
pub mod report;
pub mod run;
pub mod scheme;
pub mod spec;
pub mod synth;
pub mod trace;
pub mod units;
