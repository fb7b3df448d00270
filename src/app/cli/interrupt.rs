//! What an interrupt does.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use gpumodel_core::units::remove_unfinished;

/// The exit code of a program that was interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// What is said where an interrupt ends the program at once.
const ENDED: &str = "interrupted: outputs that were not finished are removed";

/// The first interrupt only asks.
static GENTLE: AtomicBool = AtomicBool::new(false);

/// It has asked.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// What is said at the first and at the second interrupt.
static WORDS: Mutex<(String, String)> = Mutex::new((String::new(), String::new()));

/// Ends the program at an interrupt, without outputs that are not finished: by a terminal,
/// by its hang-up and by `kill`, unless the program was started to ignore the latter two.
pub(super) fn listen() {
    #[cfg(unix)]
    super::ignored::keep();
    // Without a handler an interrupt still ends the program, only less tidily.
    let _ = ctrlc::set_handler(|| {
        if GENTLE.load(Ordering::SeqCst) {
            let words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
            if !STOPPED.swap(true, Ordering::SeqCst) {
                tell(&words.0);
                return;
            }
            tell(&words.1);
        } else {
            tell(ENDED);
        }
        remove_unfinished();
        std::process::exit(INTERRUPTED.into());
    });
}

fn tell(words: &str) {
    if !words.is_empty() {
        // Nobody hears it where the terminal has hung up.
        let _ = writeln!(io::stderr(), "{words}");
    }
}

/// Lets the first interrupt only be asked for by [`stopped`].
pub(super) fn ask_first() {
    let first = "interrupted: what runs is finished first; interrupt again to stop now";
    ask_first_with(first.to_owned(), String::new());
}

/// The same, saying `first` then and `second` when the next one ends the program.
pub(super) fn ask_first_with(first: String, second: String) {
    *WORDS.lock().unwrap_or_else(PoisonError::into_inner) = (first, second);
    GENTLE.store(true, Ordering::SeqCst);
}

/// Whether an interrupt has asked to stop.
pub(super) fn stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}
