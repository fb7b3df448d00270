//! The memory of one channel: the device that knows when a command is legal,
//! and the controller that chooses among waiting requests. Between the channels of
//! a stack a [`Copier`] copies rows where the standard has MIGRATION.
//!
//! Time is counted in memory command clocks. A [`Channel`] sleeps until the next
//! clock at which something can happen, and yet sends the same commands at the
//! same clocks as one that is visited every clock. Knows no address, no cache and
//! no application.

mod channel;
mod choice;
mod copier;
mod counters;
mod device;
mod drain;
mod migration_banks;
mod queue;
mod refresh;
mod scheduler;
mod sending;
mod turn;

pub use channel::{Channel, Done, Issued, Request};
pub use copier::{BankCopy, BankRow, Copied, Copier};
pub use counters::ChannelCounters;
pub use device::{CLOSED, Device, bank_index};
pub use scheduler::{Candidate, Named, Scheduler};

pub use crate::config::ControllerOptions;
