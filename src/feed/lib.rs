//! Where the machine's instructions come from: stores of traces, several of them together,
//! samples of them, kernels as persistent workers, and declared workloads.

mod constants;
mod mix;
mod sample;
mod store;
mod worker;
mod workload;

pub use mix::Mix;
pub use sample::{RangeFeed, SampleFeed};
pub use store::StoreFeed;
pub use workload::WorkloadFeed;
