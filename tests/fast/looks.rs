//! Has every scheme a look of its own in figures?

use std::collections::BTreeSet;

use gpumodel::policy::TABLE;
use gpumodel::policy::queue::QUEUE_TABLE;
use gpumodel::report::scheme_look;

#[test]
fn every_scheme_has_a_colour_and_a_hatch_that_no_other_has() {
    let names = TABLE.iter().map(|row| row.name);
    let queues = QUEUE_TABLE.iter().map(|row| row.name);
    let names: BTreeSet<&str> = names.chain(queues).collect();
    let looks: Vec<_> = names.into_iter().map(|name| (name, scheme_look(name))).collect();
    for (place, (name, look)) in looks.iter().enumerate() {
        assert!(look.is_some(), "{name} has no row in `SCHEMES` of src/report/look.rs");
        let other = looks[..place].iter().find(|other| other.1 == *look);
        assert!(other.is_none(), "{name} looks as {other:?}");
    }
    assert_eq!(scheme_look("mine"), None);
}

#[test]
fn schemes_of_one_paper_differ_as_lines() {
    for (place, row) in TABLE.iter().enumerate() {
        let line = |name| scheme_look(name).map(|(colour, hatch)| (colour, hatch % 4));
        let paper = TABLE[..place].iter().filter(|other| other.paper == row.paper);
        let other = paper.clone().find(|other| line(other.name) == line(row.name));
        assert!(other.is_none(), "{} has the line of {other:?}", row.name);
    }
}
