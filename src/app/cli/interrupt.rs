//! Handles interrupts: removes unfinished outputs, lets sweeps finish what runs, and says how the
//! work goes on.

use std::fs;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};

use gpumodel_core::units::remove_unfinished;

/// The exit code of a program that was interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// The message when an interrupt ends the program at once.
const ENDED_MESSAGE: &str = "interrupted: unfinished outputs are removed";

/// Whether the first interrupt only asks to stop.
static GRACEFUL: AtomicBool = AtomicBool::new(false);

/// Whether an interrupt has asked to stop.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// The message when the first interrupt asks to stop.
const GRACEFUL_MESSAGE: &str = "interrupted: finishing what runs; interrupt again to stop now";

/// How the work goes on after its end; unset for short work.
static CONTINUATION: OnceLock<Continuation> = OnceLock::new();

/// Whether results may be lost or kept by now.
static BEGAN: AtomicBool = AtomicBool::new(false);

/// How work goes on that was interrupted or has failed.
#[derive(Debug)]
pub(super) enum Continuation {
    /// It goes on where it ended: how, for the user.
    Resumes(String),
    /// It begins again: what is kept.
    Restarts(&'static str),
}

/// Sets what an interrupt, and for work that resumes an error, says of the way on.
pub(super) fn continues(how: Continuation) {
    // A command does one work.
    let _ = CONTINUATION.set(how);
}

/// The phase began whose results a later run takes.
pub(super) fn work_began() {
    BEGAN.store(true, Ordering::SeqCst);
}

/// How the work resumes; `None` if it begins again.
pub(super) fn resumes() -> Option<&'static str> {
    match CONTINUATION.get()? {
        Continuation::Resumes(how) => Some(how),
        Continuation::Restarts(_) => None,
    }
}

/// How the work resumes after an error; `None` if it had not begun, or begins again.
pub(super) fn after_error() -> Option<&'static str> {
    resumes().filter(|_| BEGAN.load(Ordering::SeqCst))
}

/// Ends the program at an interrupt and removes unfinished outputs. Interrupts come from a
/// terminal, its hang-up or `kill`; the latter two only if the program was not started to
/// ignore them.
pub(super) fn listen() {
    #[cfg(unix)]
    keep_ignored();
    // Without a handler an interrupt still ends the program, but unfinished outputs stay.
    let _ = ctrlc::set_handler(|| {
        if GRACEFUL.load(Ordering::SeqCst) {
            if !STOPPED.swap(true, Ordering::SeqCst) {
                tell(GRACEFUL_MESSAGE);
                return;
            }
        } else {
            tell(ENDED_MESSAGE);
        }
        match CONTINUATION.get() {
            Some(Continuation::Resumes(how)) => tell(how),
            Some(Continuation::Restarts(kept)) => tell(kept),
            None => (),
        }
        remove_unfinished();
        std::process::exit(INTERRUPTED.into());
    });
}

fn tell(words: &str) {
    // The write fails if the terminal has hung up.
    let _ = writeln!(io::stderr(), "{words}");
}

/// Makes the first interrupt only set [`stopped`].
pub(super) fn stop_gracefully() {
    GRACEFUL.store(true, Ordering::SeqCst);
}

/// Whether an interrupt has asked to stop.
pub(super) fn stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}

/// The signals of `ctrlc` that stay ignored. Not the interrupt: a shell without job control
/// ignores it for all background processes, and scripts still interrupt sweeps there.
const KEPT: [Signal; 2] = [Signal::SIGHUP, Signal::SIGTERM];

/// Blocks ignored signals (`nohup` ignores hang-ups) in this thread and in all threads and
/// programs that it starts, so that handlers set later do not receive them. Does nothing on
/// systems that do not report ignored signals, which is all but Linux.
fn keep_ignored() {
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    let mut kept = SigSet::empty();
    for signal in KEPT.into_iter().filter(|&signal| ignored & bit(signal) != 0) {
        kept.add(signal);
    }
    // Fails only for an invalid argument, which this is not.
    let _ = kept.thread_block();
}

/// The ignored signals in the text of `/proc/PID/status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The bit of a signal in such a mask.
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
