//! What an interrupt does.

use std::fs;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};

use gpumodel_core::units::remove_unfinished;

/// The exit code of a program that was interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// What is said where an interrupt ends the program at once.
const ENDED_MESSAGE: &str = "interrupted: outputs that were not finished are removed";

/// The first interrupt only asks.
static GRACEFUL: AtomicBool = AtomicBool::new(false);

/// It has asked.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// What is said where the first interrupt only asks.
const GRACEFUL_MESSAGE: &str =
    "interrupted: what runs is finished first; interrupt again to stop now";

/// Ends the program at an interrupt, without outputs that are not finished: by a terminal,
/// by its hang-up and by `kill`, unless the program was started to ignore the latter two.
pub(super) fn listen() {
    #[cfg(unix)]
    keep_ignored();
    // Without a handler an interrupt still ends the program, only less tidily.
    let _ = ctrlc::set_handler(|| {
        if GRACEFUL.load(Ordering::SeqCst) {
            if !STOPPED.swap(true, Ordering::SeqCst) {
                tell(GRACEFUL_MESSAGE);
                return;
            }
        } else {
            tell(ENDED_MESSAGE);
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
pub(super) fn stop_gracefully() {
    GRACEFUL.store(true, Ordering::SeqCst);
}

/// Whether an interrupt has asked to stop.
pub(super) fn stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}

/// Those that stay ignored, of the ones that `ctrlc` handles. Not the interrupt: a shell
/// without job control ignores it for all that it starts in the background, and scripts
/// interrupt sweeps there all the same.
const KEPT: [Signal; 2] = [Signal::SIGHUP, Signal::SIGTERM];

/// Keeps ignored signals from handlers to come, which would take them up again: in this
/// thread, and in those and the programs that it starts. Where the system does not say
/// what is ignored, as beside Linux, nothing is.
fn keep_ignored() {
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    let mut kept = SigSet::empty();
    for signal in KEPT.into_iter().filter(|&signal| ignored & bit(signal) != 0) {
        kept.add(signal);
    }
    // Refused only for words that this does not say.
    let _ = kept.thread_block();
}

/// The ignored signals of a process whose status `/proc` gives as `status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Where a signal is in such a mask.
fn bit(signal: Signal) -> u64 {
    1 << (signal as i32 - 1)
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::Signal;

    use super::{bit, ignored};

    #[test]
    fn a_status_says_what_is_ignored() {
        let status = "Name:\tx\nSigBlk:\t0000000000004000\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored(status) & bit(Signal::SIGHUP), 1);
        assert_eq!(ignored(status) & bit(Signal::SIGTERM), 0);
        assert_eq!(ignored("SigIgn:\t0000000000004000\n"), bit(Signal::SIGTERM));
        assert_eq!(ignored(""), 0, "nothing is said");
    }
}
