//! Tables of records: for the terminal as plain text without colour, the same on a terminal and
//! in a pipe, and for pages.

mod comparison;
mod corun;
mod hot;
mod queue;
mod solo;
mod sweep;

pub use comparison::comparison;
pub use corun::corun;
pub(crate) use corun::corun_blocks;
pub use hot::hot;
pub use queue::queue;
pub(crate) use queue::{published, queue_blocks, range};
pub use solo::solo;
pub(crate) use solo::{kernel_table, launch_table};
pub use sweep::{failures, planned};
