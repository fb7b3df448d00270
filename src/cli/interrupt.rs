//! What an interrupt does.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::units::remove_unfinished;

/// The exit code of a program that was interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// The first interrupt only asks.
static GENTLE: AtomicBool = AtomicBool::new(false);

/// It has asked.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Ends the program at an interrupt, without outputs that are not finished.
pub(super) fn listen() {
    // Without a handler an interrupt still ends the program, only less tidily.
    let _ = ctrlc::set_handler(|| {
        if GENTLE.load(Ordering::SeqCst) && !STOPPED.swap(true, Ordering::SeqCst) {
            tell();
            return;
        }
        remove_unfinished();
        std::process::exit(INTERRUPTED.into());
    });
}

#[allow(clippy::print_stderr)]
fn tell() {
    eprintln!("interrupted: what runs is finished first; interrupt again to stop now");
}

/// Lets the first interrupt only be asked for by [`stopped`].
pub(super) fn ask_first() {
    GENTLE.store(true, Ordering::SeqCst);
}

/// Whether an interrupt has asked to stop.
pub(super) fn stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}
