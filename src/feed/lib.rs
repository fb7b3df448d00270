//! Where the machine's instructions come from: stores of traces, several of them together,
//! samples of them, kernels as persistent workers, and declared workloads.

mod constants;
mod mix;
mod store;
mod worker;
mod workload;

pub use mix::Mix;
pub use store::{RangeFeed, SampleFeed, StoreFeed};
pub use workload::WorkloadFeed;
