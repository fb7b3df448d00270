//! Cells that are not submitted again: those that end every task, and those whose task
//! somebody has cancelled.

use super::{Scene, queue};

#[test]
fn a_cell_that_ends_every_task_fails_with_the_end_of_the_last_one() {
    let scene = Scene::new();
    (1..=4).for_each(|number| scene.end(number, true));
    scene.fake.account(&[
        (100, Some(0), "NODE_FAIL"),
        (102, Some(0), "OUT_OF_MEMORY"),
        (103, Some(0), "FAILED 0:9"),
    ]);
    scene.with("7f", |mut watcher| {
        // The first one and two more, each seen gone twice.
        for _ in 0..7 {
            let tables = queue(&["101|N/A|PENDING|Dependency|/x/tables-1.sh"]);
            assert!(!watcher.step(&tables).unwrap());
        }
        assert!(scene.failed.borrow().is_empty(), "the job of the tables may run it");
        scene.claimed.set(true);
        (0..2).for_each(|_| assert!(!watcher.step(&[]).unwrap()));
        assert!(scene.listener.said().contains("others have claimed them: cells 5"));
        scene.claimed.set(false);
        assert!(!watcher.step(&[]).unwrap());
        assert!(watcher.step(&[]).unwrap());
        assert_eq!((watcher.end(false).0.cells.failed, watcher.end(false).0.cells.left), (1, 0));
    });
    let failed = scene.failed.borrow().clone();
    let (at, said) = (failed[0].0, failed[0].1.join("; "));
    assert_eq!((failed.len(), at), (1, 4));
    assert!(
        said.starts_with("3 tasks of Slurm") && said.contains("103_0 FAILED by signal 9, with"),
        "{said}"
    );
    assert!(said.contains("cells-3_0.log: is not there"), "{said}");
}

#[test]
fn what_somebody_cancels_is_not_submitted_again_until_a_sweep_goes_on_with_nothing_alive() {
    let scene = Scene::new();
    (1..=2).for_each(|number| scene.end(number, true));
    let gone = ["100|0|CANCELLED|None|/x/cells-1.sh", "100|1|NODE_FAIL|NodeDown|/x/cells-1.sh"];
    scene.with("7f", |mut watcher| {
        watcher.step(&[]).unwrap();
        assert_eq!(scene.fake.asked(), ["cells-1 after []", "tables-1 after [100]"]);
        // Cells 3-4 were a task, cell 5 another; the job of the tables is cancelled too.
        (0..2).for_each(|_| assert!(!watcher.step(&queue(&gone)).unwrap()));
        assert_eq!(scene.fake.asked(), ["cells-2 after []"], "no tables, which would run them");
        let said = scene.listener.said();
        let left = "not submitted again: cells 3-4 (100_0 CANCELLED); --resume runs them";
        assert!(said.contains(left), "{said}");
        scene.end(5, true);
        assert!(watcher.step(&queue(&gone)).unwrap(), "nothing else is left");
        let (end, written) = watcher.end(false);
        assert_eq!((end.cells.done, end.cells.left, end.living, written), (3, 2, 0, false));
        assert!(!scene.listener.said().contains("the job of the tables"));
    });
    scene.fake.asked();
    scene.with("7f", |mut watcher| {
        watcher.take_up(&queue(&gone)).unwrap();
        watcher.step(&queue(&gone)).unwrap();
        assert_eq!(scene.fake.asked(), ["cells-3 after []", "tables-2 after [103]"]);
    });
}

#[test]
fn the_job_of_the_tables_is_said_to_run_what_somebody_cancels_where_it_lives() {
    let scene = Scene::new();
    (1..=4).for_each(|number| scene.end(number, true));
    let gone = ["100|0|CANCELLED|None|/x/cells-1.sh", "101|N/A|PENDING|Dependency|/x/tables-1.sh"];
    scene.with("7f", |mut watcher| {
        watcher.step(&[]).unwrap();
        (0..2).for_each(|_| assert!(!watcher.step(&queue(&gone)).unwrap()));
    });
    let said = scene.listener.said();
    let runs = "cells 5 (100_0 CANCELLED); the job of the tables runs them unless";
    assert!(said.contains(runs) && !said.contains("--resume"), "{said}");
}

#[test]
fn a_cell_of_which_slurm_refuses_the_larger_request_fails_and_the_rest_goes_on() {
    let scene = Scene::new();
    (1..=2).for_each(|number| scene.end(number, true));
    scene.fake.account(&[(100, Some(0), "OUT_OF_MEMORY"), (100, Some(1), "TIMEOUT")]);
    scene.with("7f", |mut watcher| {
        // Cells 3-4 were a task, cell 5 another.
        (0..2).for_each(|_| assert!(!watcher.step(&[]).unwrap()));
        assert_eq!(scene.fake.asked(), ["cells-1 after []", "tables-1 after [100]"]);
        scene.fake.refuse("Requested time limit is invalid");
        assert!(!watcher.step(&[]).unwrap());
        assert_eq!(scene.fake.asked(), ["cells-2 after []", "tables-2 after [103]"]);
        (3..=4).for_each(|number| scene.end(number, true));
        assert!(watcher.step(&[]).unwrap());
        let end = watcher.end(false).0.cells;
        assert_eq!((end.done, end.failed, end.left), (4, 1, 0));
    });
    let failed = scene.failed.borrow().clone();
    let (at, said) = (failed[0].0, failed[0].1.join("; "));
    assert_eq!((failed.len(), at), (1, 4));
    let refused = "another one with 256M of memory and 22 minutes was refused: sbatch: Requested";
    assert!(said.contains("100_1 TIMEOUT, with") && said.contains(refused), "{said}");
}

#[test]
fn a_request_that_is_no_larger_and_is_refused_ends_the_watch() {
    let scene = Scene::new();
    scene.fake.account(&[(100, None, "NODE_FAIL"), (101, None, "NODE_FAIL")]);
    scene.with("7f", |mut watcher| {
        (0..2).for_each(|_| assert!(!watcher.step(&[]).unwrap()));
        scene.fake.refuse("Invalid partition name specified");
        let said = watcher.step(&[]).unwrap_err().to_string();
        assert_eq!(said, "sbatch: Invalid partition name specified");
    });
    assert!(scene.failed.borrow().is_empty());
}
