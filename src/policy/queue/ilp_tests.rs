//! Tests of the grouping by an integer program.

use std::collections::BTreeMap;

use super::super::QueueChoice;
use super::{Grouping, Unmatched};
use gpumodel_core::contract::{
    GroupProbe, GroupProbeResult, Groups, Job, Profile, QueueFacts, QueueView,
};
use gpumodel_core::units::{JobId, to_u32};

/// Applications of these classes on a machine of 100 GB/s and 1000 instructions per
/// cycle, each named by its class and place.
fn apps(classes: &[&str]) -> Vec<Profile> {
    let app = |(place, class): (usize, &&str)| {
        let (dram, l2, ratio, ipc) = match *class {
            "M" => (80.0, 90.0, 0.5, 50.0),
            "MC" => (40.0, 90.0, 0.4, 100.0),
            "C" => (10.0, 80.0, 0.4, 100.0),
            _ => (2.0, 4.0, 0.05, 700.0),
        };
        Profile {
            name: format!("{class}{place}"),
            cycles: 1000,
            ipc,
            dram_gb_per_s: dram,
            l2_to_l1_gb_per_s: l2,
            memory_to_compute: ratio,
        }
    };
    classes.iter().enumerate().map(app).collect()
}

/// What the paper prints of its Fig. 2, and within its ranges where it prints ranges.
fn published() -> BTreeMap<String, BTreeMap<String, f64>> {
    let rows = [
        ("M", [2.10, 1.78, 1.61, 1.20]),
        ("MC", [2.05, 1.60, 1.55, 1.10]),
        ("C", [1.76, 1.55, 1.50, 1.08]),
        ("A", [1.51, 1.30, 1.20, 1.06]),
    ];
    let names = ["M", "MC", "C", "A"];
    let row = |values: [f64; 4]| names.map(String::from).into_iter().zip(values).collect();
    rows.into_iter().map(|(name, values)| (name.to_owned(), row(values))).collect()
}

fn facts(classes: &[&str], jobs: &[usize], group_size: usize) -> QueueFacts {
    QueueFacts {
        sms: 60,
        group_size,
        peak_dram_gb_per_s: 100.0,
        peak_ipc: 1000.0,
        apps: apps(classes),
        jobs: jobs.iter().map(|&app| Job { app, arrival: 0 }).collect(),
        given: published(),
    }
}

fn all(facts: &QueueFacts) -> QueueView {
    QueueView { now: 0, waiting: (0..to_u32(facts.jobs.len())).map(JobId).collect() }
}

fn grouped(text: &str, facts: &QueueFacts) -> (Box<dyn Grouping>, Groups) {
    let mut grouping = QueueChoice::parse(text).unwrap().make();
    assert!(grouping.probes(facts).unwrap().is_empty(), "the slow-downs are given");
    grouping.learn(facts, &[]).unwrap();
    let groups = grouping.groups(facts, &all(facts)).unwrap();
    (grouping, groups)
}

fn members(groups: &Groups) -> Vec<Vec<u32>> {
    groups.groups().iter().map(|group| group.jobs.iter().map(|job| job.0).collect()).collect()
}

#[test]
fn with_the_published_slow_downs_memory_never_runs_beside_memory() {
    // Five of each class: the paper's equal distribution of 20.
    let jobs: Vec<usize> = (0..20).map(|job| job % 4).collect();
    let facts = facts(&["M", "MC", "C", "A"], &jobs, 2);
    let (grouping, groups) = grouped("ilp", &facts);
    assert_eq!(groups.patterns().len(), 10);
    let used: Vec<(&[u32], u64)> =
        groups.patterns().iter().map(|p| (&p.counts[..], p.groups)).collect();
    assert_eq!(used.iter().map(|(_, groups)| groups).sum::<u64>(), 10);
    let taken = |counts: &[u32]| used.iter().find(|one| one.0 == counts).unwrap().1;
    assert_eq!((taken(&[2, 0, 0, 0]), taken(&[1, 1, 0, 0])), (0, 0), "no M beside M or MC");
    // M-C and MC-A are worth 0.595 + 0.839; M-A and MC-C only 0.748 + 0.645.
    assert_eq!((taken(&[1, 0, 1, 0]), taken(&[0, 1, 0, 1])), (5, 5), "{used:?}");
    assert!(groups.reason().contains("sum to 7.169"), "{}", groups.reason());
    assert!(groups.reason().contains("of 10 patterns"), "{}", groups.reason());
    let findings = grouping.findings().unwrap();
    assert_eq!(findings.classes, ["M", "MC", "C", "A"]);
    assert_eq!(findings.slowdown[1][0], 2.05, "MC on M");
    assert!((findings.thresholds[0].value - 55.0).abs() < 1e-9, "alpha");
}

#[test]
fn within_a_class_nobody_is_passed_over() {
    let jobs = [0, 0, 0, 1, 1, 1, 0, 1];
    let facts = facts(&["M", "A"], &jobs, 2);
    let (_, groups) = grouped("ilp-smra", &facts);
    assert_eq!(members(&groups), [[0, 3], [1, 4], [2, 5], [6, 7]]);
    let again = grouped("ilp-smra", &facts).1;
    assert_eq!(groups, again);
}

#[test]
fn members_lie_by_application_so_that_like_groups_look_alike() {
    let facts = facts(&["A", "M"], &[1, 0, 0, 1], 2);
    let (_, groups) = grouped("ilp", &facts);
    assert_eq!(members(&groups), [[1, 0], [2, 3]], "A first in both");
}

#[test]
fn a_queue_that_cannot_be_divided_leaves_places_idle() {
    let facts = facts(&["M", "A"], &[0, 0, 1, 0, 1, 1, 1], 3);
    let (_, groups) = grouped("ilp", &facts);
    assert_eq!(groups.groups().len(), 3);
    let idle = groups.patterns().iter().map(|p| u64::from(p.counts[2]) * p.groups);
    assert_eq!(idle.sum::<u64>(), 2, "nine places for seven");
    let mut placed = members(&groups).concat();
    placed.sort_unstable();
    assert_eq!(placed, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn one_alone_and_one_class_and_large_groups_work() {
    for size in 1..=4 {
        let alone = facts(&["M", "A"], &[0], size);
        assert_eq!(members(&grouped("ilp", &alone).1), [[0]], "{size} at a time");
        let alike = facts(&["C", "C"], &[0, 1, 0], size);
        let groups = grouped("ilp", &alike).1;
        assert_eq!(groups.groups().len(), 3_usize.div_ceil(size), "{size} at a time");
    }
    // Only those that wait are grouped.
    let facts = facts(&["M", "A"], &[0, 1, 0, 1], 2);
    let (mut grouping, _) = grouped("ilp", &facts);
    let view = QueueView { now: 9, waiting: vec![JobId(3)] };
    assert_eq!(members(&grouping.groups(&facts, &view).unwrap()), [[3]]);
}

/// Everybody takes `alone` cycles alone and beside another twice that, or three times
/// beside the application at `bad`.
fn answers(probes: &[GroupProbe], bad: usize) -> Vec<GroupProbeResult> {
    let one = |probe: &GroupProbe, member: usize| match probe.apps.len() {
        1 => 100,
        _ if probe.apps[1 - member] == bad => 300,
        _ => 200,
    };
    let answer = |probe: &GroupProbe| GroupProbeResult {
        cycles: (0..probe.apps.len()).map(|member| one(probe, member)).collect(),
        warp_instructions: vec![1; probe.apps.len()],
    };
    probes.iter().map(answer).collect()
}

#[test]
fn the_matrix_is_measured_by_pairs_of_the_classes_that_are_there() {
    let mut facts = facts(&["M", "A", "A"], &[0, 1, 2, 0], 2);
    facts.given.clear();
    let mut grouping = QueueChoice::parse("ilp").unwrap().make();
    let probes = grouping.probes(&facts).unwrap();
    assert_eq!(probes.len(), 3 + 4, "three alone; M-M, M-A twice, A-A");
    grouping.learn(&facts, &answers(&probes, 0)).unwrap();
    let findings = grouping.findings().unwrap();
    assert_eq!(findings.classes, ["M", "A"]);
    assert_eq!(findings.slowdown, [[3.0, 3.0], [2.0, 2.0]]);
    assert_eq!(findings.pairs.len(), 4);
}

#[test]
fn each_application_can_be_a_class_and_its_cost_is_told() {
    let mut facts = facts(&["M", "M", "A", "A"], &[0, 1, 2, 3, 0, 1], 2);
    facts.given.clear();
    let mut grouping = QueueChoice::parse("ilp:classes=application").unwrap().make();
    let probes = grouping.probes(&facts).unwrap();
    assert_eq!(probes.len(), 4 + 10, "four alone, and all pairs");
    grouping.learn(&facts, &answers(&probes, 3)).unwrap();
    let groups = grouping.groups(&facts, &all(&facts)).unwrap();
    let reason = groups.reason();
    assert!(reason.contains("10 patterns by eq. 1, 8 variables, 10 pairs run"), "{reason}");
    assert_eq!(grouping.findings().unwrap().classes, ["M0", "M1", "A2", "A3"]);
    assert_eq!(groups.groups().len(), 3);
}

#[test]
fn what_is_not_given_is_named_and_too_many_patterns_are_refused() {
    let mut lacks = facts(&["M", "A"], &[0, 1], 2);
    lacks.given.get_mut("A").unwrap().remove("M");
    let refused = QueueChoice::parse("ilp").unwrap().make().probes(&lacks).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("class M beside class A") && text.contains("M, A"), "{text}");
    let names = vec!["A"; 200];
    let jobs: Vec<usize> = (0..200).collect();
    let mut many = facts(&names, &jobs, 4);
    let row: BTreeMap<String, f64> = many.apps.iter().map(|app| (app.name.clone(), 1.0)).collect();
    many.given = many.apps.iter().map(|app| (app.name.clone(), row.clone())).collect();
    let mut grouping = QueueChoice::parse("ilp:classes=application").unwrap().make();
    grouping.learn(&many, &[]).unwrap();
    let refused = grouping.groups(&many, &all(&many)).unwrap_err();
    assert!(matches!(refused, Unmatched::Patterns { classes: 200, places: 4, .. }), "{refused}");
}
