//! Are the models of the papers' kernels, alone, in the printed classes?
//!
//! The tables `reports/data/solo-*.csv` are of whole runs; `solo_facts.rs` checks some of it on
//! short ones.

use crate::solo_runs::{
    Study, arcs_class, ilp_class, slate_class, ugpu_class, warped_slicer_class,
};

/// A model, its printed class and the one that it has here.
type Gap = (&'static str, &'static str, &'static str);

/// Models in another class than printed, each explained under "What does not fit" of
/// `models/workloads/CALIBRATION.md`.
const GAPS: [Gap; 13] = [
    ("black-scholes", "M M", "H M"),
    ("ilp-3ds", "MC", "M"),
    ("ilp-bfs2", "C", "MC"),
    ("ilp-bp", "MC", "M"),
    ("ilp-fft", "MC", "M"),
    ("ilp-hs", "A", "MC"),
    ("ilp-lps", "MC", "M"),
    ("ilp-lud", "A", "none"),
    ("ilp-nn", "A", "none"),
    ("ilp-sad", "A", "MC"),
    ("ilp-spmv", "C", "none"),
    ("ugpu-convs", "memory", "compute"),
    ("ugpu-srad", "memory", "compute"),
];

/// A paper with the key of its class, or the keys, and the class by its rule.
type Rule = (&'static str, &'static [&'static str], fn(&Study, &str) -> String);

const RULES: [Rule; 4] = [
    ("slate", &["compute", "memory"], slate_class),
    ("ugpu", &["bound"], ugpu_class),
    ("warped-slicer", &["class"], warped_slicer_class),
    ("ilp-smra", &["class"], ilp_class),
];

#[test]
fn each_kernel_is_in_its_printed_class_except_known_gaps() {
    let (mut found, mut seen) = (Vec::new(), 0);
    for (paper, keys, rule) in RULES {
        let study = Study::read(paper);
        for model in study.models() {
            let Some(row) = study.printed(model) else { continue };
            let words: Vec<&str> = keys.iter().map(|key| row[*key].as_str().unwrap()).collect();
            let (printed, ours) = (words.join(" "), rule(&study, model));
            seen += 1;
            if printed != ours {
                found.push((model.to_owned(), printed, ours));
            }
        }
    }
    found.sort();
    let known = GAPS.map(|(model, printed, ours)| (model.into(), printed.into(), ours.into()));
    assert_eq!(found, known, "left: found; remove a closed gap from the list");
    assert_eq!(seen, 5 + 15 + 10 + 13);
}

#[test]
fn each_kernel_of_arcs_is_in_its_printed_group() {
    let study = Study::read("arcs");
    for group in ["low", "high"] {
        for model in study.paper["groups"][group].as_array().unwrap() {
            let model = model.as_str().unwrap();
            assert_eq!(arcs_class(&study, model), group, "{model}");
        }
    }
}
