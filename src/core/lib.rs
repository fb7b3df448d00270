//! What every part of gpumodel speaks of: units, instructions, the contract between
//! policies and the machine, the files of models, strict TOML and expressions in it.

pub mod contract;
pub mod expression;
pub mod isa;
pub mod memory_copy;
pub mod models;
pub mod toml;
pub mod units;
