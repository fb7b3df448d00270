//! Where the machine's instructions come from: stores of traces, several of them together,
//! samples of them, and kernels as persistent workers.

mod mix;
mod sample;
mod store;
mod worker;

pub use mix::Mix;
pub use sample::{RangeFeed, SampleFeed};
pub use store::StoreFeed;
