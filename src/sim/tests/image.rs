//! Facts of profiles that come from an earlier run.

use crate::testkit::scripted::{Line, Script, line, machine, memory};
use crate::{Outcome, ProfileImage};

/// A load, its use, a barrier, arithmetic.
fn body() -> Vec<Line> {
    vec![
        memory("LDG.E.SYS", Some(2), Some(8), |cta, _, turn| (cta * 65536 + turn * 128, 4)),
        line("MUFU.RCP", Some(4), Some(2)),
        line("BAR.SYNC", None, None),
        line("FADD", Some(5), Some(4)),
    ]
}

/// An outcome without what it found.
fn bare(outcome: &Outcome) -> Outcome {
    Outcome { profiles: vec![], ..outcome.clone() }
}

#[test]
fn a_profile_from_an_earlier_run_changes_nothing_and_leaves_nothing_to_find() {
    let machine = machine(&[]);
    let script = Script::new(&machine, &body(), 12, 4, 96);
    let first = script.run(&machine);
    assert_eq!(first.profiles.len(), 1);
    let again = script.run_knowing(&machine, &first.profiles);
    assert!(again.profiles.is_empty());
    assert_eq!(again, bare(&first));
}

#[test]
fn a_part_of_a_profile_or_that_of_longer_code_is_not_taken_in() {
    let machine = machine(&[]);
    let script = Script::new(&machine, &body(), 5, 1, 64);
    let first = script.run(&machine);
    let words = first.profiles[0].words();
    let refused = |words: Vec<u32>| {
        let outcome = script.run_knowing(&machine, &[ProfileImage::new(words)]);
        assert_eq!(outcome, first);
    };
    (0..words.len()).for_each(|length| refused(words[..length].to_vec()));
    refused([words, &[0]].concat());
    let long = [body(), body()].concat();
    let other = Script::new(&machine, &long, 5, 1, 64).run(&machine);
    refused(other.profiles[0].words().to_vec());
}
