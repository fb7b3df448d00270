//! Are the figures of `reports` what the program draws from the records beside them?
//!
//! `BLESS=1 cargo test --test all gallery` draws them anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;

use crate::archive::{records_in, reports, unpacked};

/// A figure: the archive of its records, with the file or folder in it where it is not of
/// all of them; its name and the words after it; the file.
type Figure = (&'static str, &'static [&'static str], &'static str);

/// STP over `bp`.
const GAINS: &[&str] = &["normalized", "--metric", "stp", "--baseline", "bp"];

/// Cycles of runs of a cycle simulator beside ours.
const CYCLES: &[&str] = &["correlation", "--reference", "tests/data/cyclesim/accel-sim.csv"];

const FIGURES: &[Figure] = &[
    ("samples", &["stalls"], "sample-stalls.svg"),
    ("occupancy", &["occupancy"], "occupancy-warped-slicer.svg"),
    ("correlation", CYCLES, "correlation-cycle-simulator.svg"),
    ("sharing", &["normalized"], "sharing-normalized.svg"),
    ("sharing/steady-stream.csv", &["curves"], "sharing-curves.svg"),
    ("sharing/steady-stream.csv", &["residency"], "sharing-residency.svg"),
    ("software/stream.json", &["sm-scaling"], "software-stream.svg"),
    ("software/tasks", &["task-size"], "software-tasks.svg"),
    ("queues", &["queues"], "queue-throughput.svg"),
    ("queues", &["interference"], "queue-interference.svg"),
    ("queues", &["schedule", "--queue", "equal/1"], "queue-schedule.svg"),
    ("ugpu-slices", &["slice-speed", "--app", "pvc"], "ugpu-slice-speed-pvc.svg"),
    ("ugpu-slices", &["slice-speed", "--app", "dxtc"], "ugpu-slice-speed-dxtc.svg"),
    ("ugpu-slices", &["slice-surface"], "ugpu-slice-surface.svg"),
    ("ugpu-pairs/ten.csv", GAINS, "ugpu-ten-gains.svg"),
    ("ugpu-pairs/ten.csv", &["reallocation"], "ugpu-ten-reallocation.svg"),
    ("ugpu-pairs/ten.csv", &["energy", "--baseline", "bp"], "ugpu-ten-energy.svg"),
    ("ugpu-pairs/partitions.csv", &["sorted"], "ugpu-partitions-sorted.svg"),
    ("ugpu-pairs/pages.csv", &["sorted"], "ugpu-pages-sorted.svg"),
    ("ugpu-pairs/searches.csv", &["sorted"], "ugpu-searches-sorted.svg"),
    ("ugpu-alike", &["sorted"], "ugpu-alike-sorted.svg"),
    ("ugpu-many", GAINS, "ugpu-many.svg"),
    ("ugpu-ai", GAINS, "ugpu-networks.svg"),
    ("ugpu-qos", &["qos"], "ugpu-promises.svg"),
    ("ugpu-settings", GAINS, "ugpu-settings.svg"),
    ("ugpu-readings", GAINS, "ugpu-readings.svg"),
];

#[test]
fn figures_follow_from_the_records_beside_them() {
    let scratch = tempfile::tempdir().unwrap();
    let mut folders: BTreeMap<&str, PathBuf> = BTreeMap::new();
    for &(records, words, file) in FIGURES {
        let (archive, part) = records.split_once('/').unwrap_or((records, ""));
        let folder = folders.entry(archive).or_insert_with(|| unpacked(archive, scratch.path()));
        let drawn = scratch.path().join(file);
        let mut plot = Command::cargo_bin("gpumodel").unwrap();
        plot.arg("plot").args(records_in(&folder.join(part)));
        plot.arg("--figure").args(words).arg("-o").arg(&drawn);
        plot.current_dir(env!("CARGO_MANIFEST_DIR"));
        plot.assert().success();
        let committed = reports().join(file);
        if std::env::var_os("BLESS").is_some() {
            fs::copy(&drawn, &committed).unwrap();
        }
        let same = fs::read(&drawn).unwrap() == fs::read(&committed).unwrap();
        assert!(same, "{file} is another; BLESS=1 draws it anew");
    }
}
