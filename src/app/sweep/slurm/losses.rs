//! Words about cells that were lost: which, and what the logs say.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::fates::{Fate, LastTask};
use super::submit::Submitter;

/// So many endings are told, and so many ranges of cells; others are alike.
pub(super) const TOLD: usize = 5;

/// Bytes of a log's end that are looked at.
const LOG_BYTES: u64 = 4096;

/// Characters of it that are told.
const LOG_WORDS: usize = 300;

/// Ranges of numbers in order, as `1-3, 7`.
pub(super) fn ranges(numbers: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let mut text = String::new();
    for (place, &(first, last)) in ranges.iter().take(TOLD).enumerate() {
        let between = if place == 0 { "" } else { ", " };
        let end = if first == last { String::new() } else { format!("-{last}") };
        let _ = write!(text, "{between}{first}{end}");
    }
    if ranges.len() > TOLD { text + ", ..." } else { text }
}

/// Why a cell failed that was submitted `times` times and ended none of its tasks, the last
/// of which is this one with its fate.
pub(super) fn lost(
    submitter: &Submitter<'_>,
    (one, task): LastTask,
    fate: &Fate,
    times: u32,
) -> Vec<String> {
    let log = submitter.log(&submitter.jobs.submissions[one].label, task);
    let (end, ask) = (fate.words.as_deref().unwrap_or("one whose end nobody knows"), fate.ask);
    let tasks = match times {
        1 => "a task of Slurm was to run it, and ended before it did".to_owned(),
        _ => format!("{times} tasks of Slurm were to run it, and each ended before it did"),
    };
    let last = format!("the last was {end}, with {ask}");
    vec![tasks, last, format!("{}: {}", log.display(), last_words(&log))]
}

/// The end of a log.
pub(super) fn log_end(log: &Path) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES))).ok()?;
    let mut end = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut end).ok()?;
    Some(String::from_utf8_lossy(&end).into_owned())
}

/// How a log ends: from its last error on, where it has one.
fn last_words(log: &Path) -> String {
    let Some(end) = log_end(log) else { return String::from("is not there") };
    let lines: Vec<&str> = end.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.len().saturating_sub(1);
    let from = lines.iter().rposition(|line| line.contains("error: ")).unwrap_or(last);
    let words = lines[from.min(lines.len())..].join("; ");
    if words.is_empty() {
        String::from("is empty")
    } else {
        words.chars().take(LOG_WORDS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::Ask;
    use super::super::fakes::{Fake, estimate, request};
    use super::super::jobs::Jobs;
    use super::{Fate, Submitter, log_end, lost, ranges};

    #[test]
    fn numbers_are_told_as_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
        assert_eq!(ranges(&[1, 3, 5, 7, 9, 11]), "1, 3, 5, 7, 9, ...");
    }

    #[test]
    fn the_ends_of_logs_are_told() {
        let out = tempfile::tempdir().unwrap();
        let (fake, request, estimate) = (Fake::default(), request(out.path()), estimate(4));
        let jobs = Jobs::open(out.path(), out.path(), "7f").unwrap();
        let mut submitter = Submitter::new(&fake, &request, &estimate, jobs);
        let cells: Vec<_> = estimate.cells.iter().collect();
        submitter.array(&[&cells[..2], &cells[2..]], Ask::default()).unwrap();
        let ask = Ask { megabytes: 900, minutes: 11 };
        let words = Some(String::from("7_1 OUT_OF_MEMORY"));
        let fate = Fate { words, ask, ..Fate::default() };
        let said = || lost(&submitter, (0, 1), &fate, 3).join("; ");
        assert!(said().starts_with("3 tasks of Slurm"), "{}", said());
        let last = "the last was 7_1 OUT_OF_MEMORY, with 900M of memory and 11 minutes; ";
        assert!(said().contains(last), "{}", said());
        assert!(said().ends_with("/slurm/cells-1_1.log: is not there"), "{}", said());
        let log = submitter.log("cells-1", 1);
        std::fs::write(&log, "error: old\nfine\nerror: new\n  because: of it\n\n").unwrap();
        assert!(said().ends_with(": error: new; because: of it"), "{}", said());
        std::fs::write(&log, "a\nKilled\n").unwrap();
        assert!(said().ends_with(": Killed"), "{}", said());
        std::fs::write(&log, "").unwrap();
        assert!(said().ends_with(": is empty"), "{}", said());
        let long = "error: long ago\n".to_owned() + &"fine\n".repeat(1000);
        std::fs::write(&log, long.clone() + "error: new\n").unwrap();
        assert_eq!(log_end(&log).unwrap().len(), 4096);
        assert!(said().ends_with(": error: new"), "{}", said());
        std::fs::write(&log, long).unwrap();
        assert!(said().ends_with(": fine"), "{}", said());
    }
}
