//! Under construction.

pub mod dram;
