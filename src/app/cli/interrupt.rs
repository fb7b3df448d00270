//! What an interrupt does.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use gpumodel_core::units::remove_unfinished;

/// The exit code of a program that was interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// What is said where an interrupt ends the program at once.
const ENDED: &str = "interrupted: outputs that were not finished are removed";

/// The first interrupt only asks.
static GENTLE: AtomicBool = AtomicBool::new(false);

/// It has asked.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// What is said where the first interrupt only asks.
const ASKED: &str = "interrupted: what runs is finished first; interrupt again to stop now";

/// Ends the program at an interrupt, without outputs that are not finished: by a terminal,
/// by its hang-up and by `kill`, unless the program was started to ignore the latter two.
pub(super) fn listen() {
    #[cfg(unix)]
    super::ignored::keep();
    // Without a handler an interrupt still ends the program, only less tidily.
    let _ = ctrlc::set_handler(|| {
        if GENTLE.load(Ordering::SeqCst) {
            if !STOPPED.swap(true, Ordering::SeqCst) {
                tell(ASKED);
                return;
            }
        } else {
            tell(ENDED);
        }
        remove_unfinished();
        std::process::exit(INTERRUPTED.into());
    });
}

fn tell(words: &str) {
    // It is lost where the terminal has hung up.
    let _ = writeln!(io::stderr(), "{words}");
}

/// Lets the first interrupt only be asked for by [`stopped`].
pub(super) fn ask_first() {
    GENTLE.store(true, Ordering::SeqCst);
}

/// Whether an interrupt has asked to stop.
pub(super) fn stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}
