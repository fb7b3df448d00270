//! Under construction.

mod dram;
mod dram_latency;
mod dram_requests;

pub use dram::{DramError, DramJob, RequestFormat};
pub use dram_requests::RequestError;
