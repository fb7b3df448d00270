//! Does a record of queues come back as it was written, and is a wrong one refused?

use std::path::Path;

use gpumodel::report::results::{Analysis, SCHEMA};
use gpumodel::report::table;

use crate::shown::small;
use crate::shown_queue::{Size, TWENTY, queued};

fn read(analysis: &Analysis) -> Result<Analysis, String> {
    let text = analysis.to_json();
    Analysis::from_json(text.as_bytes(), Path::new("r.json")).map_err(|e| e.to_string())
}

#[test]
fn queues_come_back_as_written() {
    let sizes =
        [TWENTY, Size { jobs: 36, group: 3, seeds: 2, ..TWENTY }, Size { jobs: 1, ..TWENTY }];
    for record in sizes.map(queued) {
        assert_eq!(read(&record).unwrap(), record);
    }
    let none = Analysis { schema: SCHEMA.into(), ..Analysis::default() };
    assert!(!none.to_json().contains("queues"), "a record without queues does not name them");
}

/// A rule: what breaks it, and where and why the record is refused.
type Rule = (fn(&mut Analysis), &'static str);

const RULES: &[Rule] = &[
    (|r| r.queues[0].group_size = 0, "queues[0].group_size: expected at least 1"),
    (|r| r.queues[1].jobs[3].group = 99, "queues[1].jobs[3].group: expected one of 10 groups"),
    (|r| r.queues[0].jobs[3].group = 7, "queues[0].jobs[3].group: expected a group that names"),
    (|r| r.queues[0].jobs[2].arrival_cycle = u64::MAX, "queues[0].jobs[2].start_cycle"),
    (|r| r.queues[0].jobs[2].end_cycle = 0, "queues[0].jobs[2].end_cycle: expected cycle"),
    (|r| r.queues[0].groups[1].jobs.push(9), "queues[0].groups[1].jobs: expected 1 to 2"),
    (|r| r.queues[0].group_size = 1, "queues[0].groups[0].jobs: expected 1 to 1 members"),
    (
        |r| {
            r.queues[0].group_size = 3;
            r.queues[0].groups[1].jobs.push(77);
        },
        "queues[0].groups[1].jobs[2]: expected one of 20 jobs, found 77",
    ),
    (
        |r| {
            r.queues[0].group_size = 3;
            r.queues[0].groups[1].jobs.push(0);
        },
        "queues[0].groups[1].jobs[2]: expected a job of the group, found one of group 0",
    ),
    (
        |r| {
            r.queues[0].group_size = 3;
            r.queues[0].groups[0].jobs.push(0);
        },
        "queues[0].groups[0].jobs[2]: expected every job once",
    ),
    (|r| r.queues[0].groups[4].end_cycle = 1, "queues[0].groups[4].end_cycle: expected cycle"),
    (
        |r| r.queues[3].groups[2].shares[1].sms.truncate(1),
        "queues[3].groups[2].shares[1].sms: expected 2 members, found 1",
    ),
    (
        |r| r.queues[3].groups[2].shares[2].since_begin_cycles = 9,
        "queues[3].groups[2].shares[2].since_begin_cycles: expected cycle 8000 or later",
    ),
    (
        |r| r.queues[2].groups[0].pattern = Some(2),
        "queues[2].groups[0].pattern: expected one of 2 patterns, found 2",
    ),
    (
        |r| r.queues[2].matchings[0].cycle = 1,
        "queues[2].groups[0].pattern: expected one of 0 patterns",
    ),
    (
        |r| r.queues[2].matchings[0].patterns[1].counts.truncate(3),
        "queues[2].matchings[0].patterns[1].counts: expected 4 classes, found 3",
    ),
    (
        |r| r.queues[2].matchings[0].waiting.truncate(3),
        "queues[2].matchings[0].waiting: expected 4 classes, found 3",
    ),
    (
        |r| {
            let matching = r.queues[2].matchings[0].clone();
            r.queues[2].matchings[0].cycle = 0;
            r.queues[2].matchings.push(matching.clone());
            r.queues[2].matchings[1].cycle = 5;
            r.queues[2].matchings.push(matching);
        },
        "queues[2].matchings[2].cycle: expected cycle 5 or later, found 0",
    ),
    (|r| r.interference[0].slowdown.truncate(3), "interference[0].slowdown: expected 4 rows"),
    (
        |r| r.interference[0].slowdown[1].push(1.0),
        "interference[0].slowdown[1]: expected 4 columns, found 5",
    ),
    (|r| r.interference[0].apps[2].class = "X".into(), "interference[0].apps[2].class: expected"),
    (|r| r.interference[0].published[0].high = 1.0, "interference[0].published[0].high"),
];

#[test]
fn a_record_that_breaks_a_rule_is_refused_with_the_key() {
    for (breaks, message) in RULES {
        let mut record = queued(TWENTY);
        breaks(&mut record);
        let error = read(&record).expect_err(message);
        assert!(error.contains(message), "{message}: {error}");
    }
}

#[test]
fn a_group_follows_a_pattern_of_the_matching_in_force() {
    let mut record = queued(TWENTY);
    let run = &mut record.queues[2];
    let mut later = run.matchings[0].clone();
    later.cycle = run.groups[3].start_cycle;
    later.patterns.push(later.patterns[0].clone());
    run.matchings.push(later);
    run.groups[3].pattern = Some(2);
    assert_eq!(read(&record).unwrap(), record);
    record.queues[2].groups[2].pattern = Some(2);
    assert!(read(&record).unwrap_err().contains("queues[2].groups[2].pattern"));
}

#[test]
fn a_queue_that_does_not_divide_has_idle_places() {
    let mut record = queued(Size { jobs: 19, ..TWENTY });
    let matching = &mut record.queues[2].matchings[0];
    matching.classes.push("idle".into());
    matching.patterns.iter_mut().for_each(|pattern| pattern.counts.push(0));
    assert_eq!(read(&record).unwrap(), record);
}

#[test]
fn the_tables_show_the_queues() {
    let text = table::queue(&queued(TWENTY), None);
    let line = |start: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("{start} in {text}")).to_string()
    };
    assert!(line("suite/BLK1").ends_with("nearest"), "{text}");
    assert!(line("alpha = 97.5 of MB GB/s").contains("epsilon = 384 of IPC"));
    assert!(line("MC ").contains("2.11 (2.05)"), "{text}");
    assert!(line("A ").contains("1.44 (1.06–1.51)"), "{text}");
    assert!(line("M + A").contains("(1, 0, 0, 1)"), "{text}");
    assert!(text.contains("Schedule of equal-1 under ilp-smra"));
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    assert_eq!(table::queue(&small(), None), "");
}

#[test]
fn several_queues_have_their_gains_and_no_schedule() {
    let size = Size { distributions: 5, seeds: 3, ..TWENTY };
    let record = queued(size);
    let text = table::queue(&record, None);
    assert!(!text.contains("Schedule"));
    let mean = |of: &str, seed: u64| {
        let run = |scheme: &str| {
            let is = |run: &&gpumodel::report::results::QueueRun| {
                run.scheme == scheme && run.seed == seed && run.distribution.as_deref() == Some(of)
            };
            record.queues.iter().find(is).unwrap().throughput_ipc
        };
        run("ilp") / run("even-queue")
    };
    let own = (1..=3).map(|seed| mean("MC", seed)).sum::<f64>() / 3.0;
    let line = text.lines().find(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.starts_with(&["MC", "ilp", "3"])
    });
    assert!(line.unwrap().contains(&format!("{own:.3} [")), "{own}: {line:?}");
    assert!(text.lines().any(|line| line.trim_start().starts_with("average")));
}
