//! Does a merge report how much of the plan its folders have run?

use crate::sweep_place::Place;

#[test]
fn cells_that_no_folder_ran_remain() {
    let place = Place::new();
    let plan = "machines = ['warped-slicer']\nschemes = ['left-over', 'even', 'spatial']\n\
        seeds = [1, 2]\n[mixes]\nlists = [['m', 's']]\n";
    let plan = place.plan("plan", plan);
    assert_eq!(place.sweep(&plan, "a", &["--cells", "1-2"]).0, Some(0));
    assert_eq!(place.sweep(&plan, "b", &["--cells", "2-4"]).0, Some(0));
    let (code, said) = place.run(&["merge", "a", "b", "--out", "joined"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("joined: 4 cells done, 0 failed, 2 left"), "{said}");
    let (code, said) = place.sweep(&plan, "joined", &["--resume"]);
    assert!(code == Some(0) && said.contains("6 cells done, 0 failed, 0 left"), "{said}");
}
