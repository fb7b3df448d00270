//! What every part of gpumodel speaks of: units, instructions, the contract between
//! policies and the machine, the files of models.

pub mod contract;
pub mod isa;
pub mod models;
pub mod units;
