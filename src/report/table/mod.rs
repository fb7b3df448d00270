//! Tables of records: for the terminal as plain text without colour, for pages, and as CSV.
//!
//! Texts take the `width` of the terminal in characters; `None`, as in a pipe, is any width.

mod analysis;
mod benchmark;
mod cells;
mod comparison;
mod corun;
mod hot;
mod layout;
mod markdown;
mod queue;
mod queue_csv;
mod solo;
mod sweep;

/// The column of the rate of work of an application or of all together: thread instructions per
/// cycle. No table has another IPC.
const THREAD_IPC: &str = "thread IPC";

pub use analysis::{NAMES, analysis, analysis_tables};
pub use benchmark::{benchmark_tables, benchmarks};
pub(crate) use cells::NONE;
pub use cells::{Cell, Column, Table};
pub use comparison::{comparison, comparison_tables};
pub use corun::corun;
pub(crate) use corun::corun_blocks;
pub use layout::wrapped;
pub use markdown::markdown;
pub use queue::queue;
pub(crate) use queue::{published, queue_blocks, range};
pub use solo::solo;
pub(crate) use solo::{TOP_SHARE, kernel_table, launch_table, stall_table};
pub use sweep::{failures, means, means_table, planned, planned_table};
