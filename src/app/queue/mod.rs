//! Queues of applications: who runs with whom, group after group, under every scheme
//! that was asked for.
//!
//! The queues of one request are worked off side by side: in rounds, all of them say
//! what they need to go on, and each piece of work is done once, on whichever thread
//! is free. What was found out is kept in the user's cache folder, so that a request
//! that was ended goes on where it was.

mod course;
mod file;
mod generate;
mod known;
mod place;
mod pool;
mod study;
mod told;
mod work;

pub(super) use file::QueueFile;
pub use file::QueueFileError;
pub(super) use study::{USUAL, queues};
