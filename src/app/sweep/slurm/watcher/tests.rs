//! What the watch decides, look by look.

mod given_up;

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::super::answers::Entry;
use super::super::fakes::{Fake, Listener, entry, estimate, request};
use super::super::jobs::Jobs;
use super::super::request::SlurmRequest;
use super::{Ask, Deeds, Life, Submitter, SweepError, Tally, Watcher};
use gpumodel_core::units::to_u64;
use gpumodel_report::results::{SweepEstimate, SweepFiles};

/// A sweep of five cells: two arrays, of the tasks 1-2 and 3-4, and of 5.
struct Scene {
    out: tempfile::TempDir,
    fake: Fake,
    listener: Listener,
    files: SweepFiles,
    estimate: SweepEstimate,
    request: SlurmRequest,
    listed: Cell<u32>,
    /// What was kept of cells as failed.
    failed: RefCell<Vec<(usize, Vec<String>)>>,
    /// Somebody has all cells claimed.
    claimed: Cell<bool>,
    /// How long a job may stay out of the queue.
    grace: Duration,
}

impl Scene {
    fn new() -> Self {
        let out = tempfile::tempdir().unwrap();
        let files = SweepFiles::new(out.path());
        fs::create_dir_all(files.records()).unwrap();
        fs::create_dir_all(files.failures()).unwrap();
        fs::write(out.path().join("plan.toml"), "plan").unwrap();
        let (fake, listener) = (Fake::default(), Listener::default());
        let (estimate, request) = (estimate(5), request(out.path()));
        let (listed, grace) = (Cell::new(0), Duration::ZERO);
        let (failed, claimed) = (RefCell::default(), Cell::new(false));
        Self { out, fake, listener, files, estimate, request, listed, failed, claimed, grace }
    }

    fn folder(&self) -> PathBuf {
        super::super::folder(self.out.path())
    }

    fn plan(&self) -> PathBuf {
        self.out.path().join("plan.toml")
    }

    /// The script of an array.
    fn script(&self, number: u32) -> String {
        fs::read_to_string(self.folder().join(format!("cells-{number}.sh"))).unwrap()
    }

    /// A cell ends.
    fn end(&self, number: u64, good: bool) {
        let key = format!("k{number}");
        fs::write(if good { self.files.record(&key) } else { self.files.failure(&key) }, "")
            .unwrap();
    }

    /// Does `work` with a watch of the plan whose hash is `hash`.
    fn with<T>(&self, hash: &str, work: impl FnOnce(Watcher<'_>) -> T) -> T {
        let jobs = Jobs::open(&self.folder(), self.out.path(), hash).unwrap();
        let submitter = Submitter::new(&self.fake, &self.request, &self.estimate, jobs);
        let keys: Vec<&str> = self.estimate.cells.iter().map(|one| one.cell.key.as_str()).collect();
        let tally = Tally::new(&self.files, &keys, vec![None; keys.len()]);
        let list = || {
            self.listed.set(self.listed.get() + 1);
            Ok(())
        };
        let fail = |at: usize, errors| {
            if !self.claimed.get() {
                self.failed.borrow_mut().push((at, errors));
                self.end(to_u64(at) + 1, false);
            }
            Ok(!self.claimed.get())
        };
        let (plan, deeds) = (self.plan(), Deeds { list: &list, fail: &fail });
        let watcher = Watcher::new(submitter, tally, (hash, &plan), &self.listener, deeds);
        work(Watcher { life: Life::new(self.grace), ..watcher.unwrap() })
    }
}

/// A queue from lines.
fn queue(lines: &[&str]) -> Vec<Entry> {
    lines.iter().map(|line| entry(line)).collect()
}

const ALL: [&str; 4] = [
    "100|0|RUNNING|None|/x/cells-1.sh",
    "100|1|PENDING|Resources|/x/cells-1.sh",
    "101|0|PENDING|Resources|/x/cells-2.sh",
    "102|N/A|PENDING|Dependency|/x/tables-1.sh",
];

const FIRST: [&str; 3] = ["cells-1 after []", "cells-2 after []", "tables-1 after [100, 101]"];

#[test]
fn everything_is_submitted_once_and_waited_for() {
    let scene = Scene::new();
    scene.with("7f", |mut watcher| {
        watcher.take_up(&[]).unwrap();
        assert!(!watcher.step(&[]).unwrap());
        assert_eq!(scene.fake.asked(), FIRST);
        for number in 1..=5 {
            assert!(!watcher.step(&queue(&ALL)).unwrap());
            scene.end(number, number != 3);
        }
        assert!(!watcher.step(&queue(&ALL[3..])).unwrap(), "the tables are not there");
        assert!(watcher.step(&[]).unwrap());
        assert_eq!((scene.fake.asked().len(), scene.listed.get()), (0, 1));
        let (end, written) = watcher.end(false);
        assert_eq!((end.cells.done, end.cells.failed, end.cells.left, written), (4, 1, 0, false));
    });
    let said = scene.listener.said();
    assert!(
        said.contains("waiting for the tables of job 102") && said.contains("was lost"),
        "{said}"
    );
}

#[test]
fn what_is_lost_is_submitted_again_after_a_second_look_and_only_that() {
    let scene = Scene::new();
    scene.with("7f", |mut watcher| {
        watcher.step(&[]).unwrap();
        scene.fake.asked();
        let gone = ["100|0|NODE_FAIL|NodeDown|/x/cells-1.sh", ALL[1], ALL[2], ALL[3]];
        scene.end(1, true);
        watcher.step(&queue(&gone)).unwrap();
        assert_eq!(scene.fake.asked(), Vec::<String>::new(), "it may only be late");
        watcher.step(&queue(&gone)).unwrap();
        assert_eq!(scene.fake.asked(), ["cells-3 after []", "update 102 after [100, 101, 103]"]);
        let said = scene.listener.said();
        assert!(said.contains("lost, submitted again: cells 2 (100_0 NODE_FAIL)"), "{said}");
        let jobs = Jobs::read(&scene.folder()).unwrap().unwrap();
        assert_eq!(jobs.submissions[3].tasks, [(2, 2)]);
        watcher
            .step(&queue(&["103|0|RUNNING|None|/x/cells-3.sh", ALL[1], ALL[2], ALL[3]]))
            .unwrap();
        assert_eq!(scene.fake.asked(), Vec::<String>::new());
    });
}

#[test]
fn a_record_that_shows_late_is_no_loss() {
    let scene = Scene::new();
    scene.with("7f", |mut watcher| {
        watcher.step(&[]).unwrap();
        scene.fake.asked();
        watcher.step(&queue(&ALL[2..])).unwrap();
        (1..=4).for_each(|number| scene.end(number, true));
        watcher.step(&queue(&ALL[2..])).unwrap();
        assert_eq!(scene.fake.asked(), Vec::<String>::new());
    });
}

#[test]
fn a_refusal_ends_the_watch_only_when_nothing_lives() {
    let scene = Scene::new();
    scene.fake.refuse("Invalid partition name specified");
    let said = scene.with("7f", |mut watcher| watcher.step(&[]).unwrap_err().to_string());
    assert_eq!(said, "sbatch: Invalid partition name specified");
    assert_eq!((Jobs::read(&scene.folder()).unwrap(), scene.listed.get()), (None, 0));
    scene.with("7f", |mut watcher| {
        watcher.submit(&[0, 1], 2, Ask::default()).unwrap();
        let one = ["101|0|RUNNING|None|/x/cells-1.sh"];
        for _ in 0..2 {
            scene.fake.refuse("QOSMaxSubmitJobPerUserLimit");
            watcher.step(&queue(&one)).unwrap();
        }
        assert_eq!(scene.fake.asked(), ["cells-1 after []"], "and no tables before all are in");
        assert_eq!(scene.listener.said().matches("are submitted later").count(), 1);
        watcher.step(&queue(&one)).unwrap();
        assert_eq!(scene.fake.asked(), ["cells-2 after []", "tables-1 after [101, 104]"]);
    });
}

#[test]
fn another_watch_takes_up_what_lives() {
    let scene = Scene::new();
    scene.with("7f", |mut watcher| watcher.step(&[]).unwrap());
    scene.fake.asked();
    // The first watch was killed before it wrote down the last number.
    let mut jobs = Jobs::read(&scene.folder()).unwrap().unwrap();
    jobs.submissions[1].job = None;
    jobs.save(&scene.folder()).unwrap();
    scene.with("7f", |mut watcher| {
        watcher.take_up(&queue(&ALL)).unwrap();
        watcher.step(&queue(&ALL)).unwrap();
        watcher.step(&queue(&ALL)).unwrap();
        assert_eq!(scene.fake.asked(), Vec::<String>::new());
    });
    assert!(scene.listener.said().contains("3 jobs are in the queue"));
    // The job of the tables is gone: another one is due.
    scene.with("7f", |mut watcher| {
        watcher.take_up(&queue(&ALL[..3])).unwrap();
        watcher.step(&queue(&ALL[..3])).unwrap();
        assert_eq!(scene.fake.asked(), ["tables-2 after [100, 101]"]);
    });
}

#[test]
fn other_cells_under_the_same_numbers_are_refused() {
    let scene = Scene::new();
    scene.with("7f", |mut watcher| watcher.step(&[]).unwrap());
    let taken = scene.with("8a", |mut watcher| watcher.take_up(&queue(&ALL)));
    assert!(taken.unwrap_err().to_string().contains("scancel --name=gpumodel-"));
    scene.with("8a", |mut watcher| {
        watcher.take_up(&[]).unwrap();
        assert_eq!(watcher.submitter.jobs.plan_hash, "8a", "nothing lives that means others");
    });
    // Edited while it is watched: the jobs refuse, one after the other.
    scene.with("7f", |mut watcher| {
        watcher.step(&[]).unwrap();
        fs::write(scene.plan(), "another").unwrap();
        watcher.step(&[]).unwrap();
        let said = watcher.step(&[]).unwrap_err();
        assert!(matches!(said, SweepError::Slurm(_)) && said.to_string().contains("other cells"));
    });
}

#[test]
fn an_interrupt_leaves_the_jobs_alone() {
    let scene = Scene::new();
    scene.with("7f", |mut watcher| watcher.step(&[]).unwrap());
    scene.fake.asked();
    scene.fake.set(queue(&ALL));
    scene.listener.stop();
    let (end, _) = scene.with("7f", |watcher| watcher.run().unwrap());
    assert_eq!((end.living, end.cells.left), (3, 5));
    scene.fake.set(Vec::new());
    let (end, _) = scene.with("7f", |watcher| watcher.run().unwrap());
    assert_eq!((end.living, end.cells.left), (0, 5));
    assert_eq!(scene.fake.asked(), Vec::<String>::new());
}

#[test]
fn lost_cells_go_one_by_one_with_more_of_what_there_was_too_little_of() {
    let scene = Scene::new();
    let lines = |watcher: &mut Watcher<'_>, lost: &[&str]| {
        let queue = queue(&[lost, &ALL[3..]].concat());
        (0..2).for_each(|_| assert!(!watcher.step(&queue).unwrap()));
        scene.listener.said()
    };
    scene.with("7f", |mut watcher| {
        watcher.step(&[]).unwrap();
        let lost = [
            "100|0|OUT_OF_MEMORY|OutOfMemory|/x/cells-1.sh",
            "100|1|TIMEOUT|TimeLimit|/x/cells-1.sh",
            "101|0|NODE_FAIL|NodeDown|/x/cells-2.sh",
        ];
        let said = lines(&mut watcher, &lost);
        for words in [
            "cells 5 (101_0 NODE_FAIL), one per task with 256M of memory and 11 minutes",
            "cells 3-4 (100_1 TIMEOUT), one per task with 256M of memory and 22 minutes",
            "cells 1-2 (100_0 OUT_OF_MEMORY), one per task with 512M of memory and 11 minutes",
        ] {
            assert!(said.contains(words), "{said}");
        }
        let text = scene.script(5);
        assert!(text.contains("0) cells=1-1 ;;\n1) cells=2-2 ;;\n"), "{text}");
        assert!(text.contains("--mem=512M\n") && text.contains("--time=11\n"), "{text}");
        // Its neighbour goes on; it takes nobody along the next time.
        let lost = [
            "103|0|RUNNING|None|/x/cells-3.sh",
            "104|0|RUNNING|None|/x/cells-4.sh",
            "104|1|RUNNING|None|/x/cells-4.sh",
            "105|0|OUT_OF_MEMORY|OutOfMemory|/x/cells-5.sh",
            "105|1|RUNNING|None|/x/cells-5.sh",
        ];
        let said = lines(&mut watcher, &lost);
        assert!(said.contains("cells 1 (105_0 OUT_OF_MEMORY), one per task with 1024M"), "{said}");
        assert_eq!(said.matches("submitted again").count(), 1, "{said}");
        assert!(scene.script(6).contains("--array=0-0\n"), "{}", scene.script(6));
    });
}

#[test]
fn what_was_submitted_before_all_had_ended_counts_no_more() {
    let mut scene = Scene::new();
    scene.request.resubmit = 1;
    for _ in 0..2 {
        scene.with("7f", |mut watcher| {
            watcher.take_up(&[]).unwrap();
            watcher.step(&[]).unwrap();
        });
    }
    let all = [
        "103|0|RUNNING|None|/x/cells-3.sh",
        "103|1|RUNNING|None|/x/cells-3.sh",
        "105|N/A|PENDING|Dependency|/x/tables-2.sh",
    ];
    scene.fake.asked();
    scene.with("7f", |mut watcher| {
        watcher.take_up(&queue(&all)).unwrap();
        (0..2).for_each(|_| assert!(!watcher.step(&queue(&all)).unwrap()));
        assert_eq!(scene.fake.asked(), ["cells-5 after []", "update 105 after [103, 106]"]);
        // Once more than it was lost once: too often.
        (0..3).for_each(|_| assert!(!watcher.step(&queue(&all)).unwrap()));
        assert_eq!(scene.fake.asked(), Vec::<String>::new());
    });
}

#[test]
fn a_job_that_the_queue_does_not_show_is_not_submitted_twice() {
    let mut scene = Scene::new();
    scene.grace = Duration::from_secs(1000);
    scene.with("7f", |mut watcher| {
        (0..4).for_each(|_| assert!(!watcher.step(&[]).unwrap()));
        assert_eq!(scene.fake.asked(), FIRST);
        let said = scene.listener.said();
        assert_eq!(said.matches("job 100 is not in the queue yet").count(), 1, "{said}");
    });
    // Another watch knows no more; it does not submit them either.
    scene.with("7f", |mut watcher| {
        watcher.take_up(&[]).unwrap();
        (0..4).for_each(|_| assert!(!watcher.step(&[]).unwrap()));
        assert_eq!(scene.fake.asked(), ["tables-2 after [100, 101]"]);
    });
    // For long not, but the accounts have one of them.
    scene.grace = Duration::ZERO;
    scene.fake.account(&[(100, None, "RUNNING")]);
    scene.with("7f", |mut watcher| {
        watcher.take_up(&[]).unwrap();
        (0..3).for_each(|_| assert!(!watcher.step(&[]).unwrap()));
        let last = "tables-4 after [100, 105]";
        assert_eq!(scene.fake.asked(), ["tables-3 after [100]", "cells-3 after []", last]);
        let said = scene.listener.said();
        assert!(said.contains("the accounts have it as RUNNING"), "{said}");
        assert!(said.contains("submitted again: cells 5, one per task"), "{said}");
    });
}

#[test]
fn a_submission_that_nobody_has_heard_of_is_found_by_its_name() {
    let mut scene = Scene::new();
    scene.grace = Duration::from_secs(1000);
    scene.fake.refuse("Socket timed out on send/recv operation");
    scene.fake.silence(true);
    scene.with("7f", |mut watcher| {
        assert!(!watcher.step(&[]).unwrap());
        assert!(scene.listener.said().contains("the job may be there: it is looked for"));
        assert_eq!(scene.fake.asked(), Vec::<String>::new());
        scene.fake.silence(false);
        assert!(!watcher.step(&[]).unwrap());
        assert_eq!(scene.fake.asked(), ["cells-2 after []"], "what was not submitted yet");
    });
    let late = queue(&["90|0|PENDING|None|/x/cells-1.sh", "90|1|PENDING|None|/x/cells-1.sh"]);
    scene.with("7f", |mut watcher| {
        watcher.take_up(&[]).unwrap();
        assert!(!watcher.step(&[]).unwrap());
        assert_eq!(scene.fake.asked(), Vec::<String>::new(), "no tables before its number");
        assert!(!watcher.step(&late).unwrap());
        assert_eq!(scene.fake.asked(), ["tables-1 after [90, 101]"]);
    });
    let jobs = Jobs::read(&scene.folder()).unwrap().unwrap();
    assert_eq!(jobs.submissions[0].job, Some(90));
}

#[test]
fn a_cell_that_somebody_wants_anew_is_no_loss() {
    let mut scene = Scene::new();
    scene.request.resubmit = 0;
    scene.with("7f", |mut watcher| watcher.step(&[]).unwrap());
    scene.fake.asked();
    scene.with("7f", |watcher| {
        let mut watcher = watcher.retrying(vec![4]);
        watcher.take_up(&queue(&ALL[..2])).unwrap();
        watcher.step(&queue(&ALL[..2])).unwrap();
        assert_eq!(scene.fake.asked(), ["cells-3 after []", "tables-2 after [100, 103]"]);
    });
    assert!(!scene.listener.said().contains("lost"));
}
