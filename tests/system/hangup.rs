//! Does what `nohup` starts outlive its terminal?

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::skip::skipped;
use crate::sweep_place::Place;

/// An analysis after a line of a shell, hung up again and again: its exit code.
fn hung_up(before: &str) -> Option<i32> {
    let place = Place::new();
    let line = format!("{before}; echo begun; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).arg(place.command(&[]).get_program());
    shell.args(["analyze", "m", "s", "--machine", "warped-slicer", "--scheme", "even"]);
    shell.current_dir(place.path("")).env("GPUMODEL_CACHE", place.path("cache"));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut begun = String::new();
    said.read_line(&mut begun).unwrap();
    assert_eq!(begun, "begun\n");
    let pid = child.id().to_string();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        // It may have ended by now.
        let _ = Command::new("kill").args(["-HUP", &pid]).stderr(Stdio::null()).status();
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether these tests were started with `nohup` themselves, which no shell takes back.
fn ignored_here() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn a_hang_up_stays_ignored_under_nohup() {
    assert_eq!(hung_up("trap '' HUP"), Some(0));
}

#[test]
fn a_hang_up_ends_the_program_unless_ignored() {
    if ignored_here() {
        return skipped("hang-ups are ignored here");
    }
    assert_ne!(hung_up("true"), Some(0));
}
