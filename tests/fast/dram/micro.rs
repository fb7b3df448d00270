//! Do hand-written cases give the command lists of two other simulators: the same
//! commands at the same clocks, no tolerance?

use std::collections::BTreeMap;

use gpumodel::core::toml::Place;
use gpumodel::sim::config::MemoryStandard;
use gpumodel::sim::dram::{Channel, ControllerOptions, Done, Issued, Request};

const REQUESTS: &str = include_str!("../../data/dram_micro_requests.csv");
const COMMANDS: &str = include_str!("../../data/dram_micro.csv");

type Line = (u64, String, u32, u32, u32);

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split(',').collect())
}

fn requests(case: &str) -> Vec<(u64, Request)> {
    let of_case = rows(REQUESTS).filter(|row| row[0].starts_with(case));
    let number = |text: &str| text.parse::<u32>().unwrap();
    of_case
        .map(|row| {
            let request = Request {
                token: number(row[1]),
                write: row[3] == "W",
                pseudo_channel: number(row[4]),
                bank_group: number(row[5]),
                bank: number(row[6]),
                row: number(row[7]),
                column: number(row[8]),
            };
            (u64::from(number(row[2])), request)
        })
        .collect()
}

/// Commands and the clock of the last read's data.
fn golden(config: &str, case: &str) -> (Vec<Line>, u64) {
    let of_case = rows(COMMANDS).filter(|row| row[0] == config && row[1].starts_with(case));
    let mut last = 0;
    let lines = of_case
        .map(|row| {
            last = row[8].parse().unwrap();
            let number = |at: usize| row[at].parse::<u32>().unwrap();
            (row[2].parse().unwrap(), row[3].to_owned(), number(4), number(5), number(6))
        })
        .collect();
    (lines, last)
}

/// Every command, and the last read's data, of the requests of a case.
fn run(standard: &MemoryStandard, options: &ControllerOptions, case: &str) -> (Vec<Line>, u64) {
    let requests = requests(case);
    let writes: Vec<u32> = requests.iter().filter(|r| r.1.write).map(|r| r.1.token).collect();
    let mut channel = Channel::new(standard, options);
    channel.keep_log();
    let (mut done, mut waiting) = (Vec::new(), requests.as_slice());
    for clock in 0..400 {
        channel.advance(clock, &mut done);
        while let Some(((_, request), rest)) = waiting.split_first().filter(|(r, _)| r.0 <= clock) {
            assert!(channel.push(clock, *request), "micro cases never fill a queue");
            waiting = rest;
        }
    }
    assert_eq!(done.len(), requests.len(), "{case}: every request is served once");
    let reads = done.iter().filter(|d: &&Done| !writes.contains(&d.token));
    let last = reads.map(|d| d.clock).max().unwrap_or(0);
    let place = |issued: Issued| {
        let (bank, banks) = (issued.bank, standard.banks_per_group);
        let (group, groups) = (bank / banks, standard.bank_groups);
        let name = issued.command.name().to_owned();
        (issued.clock, name, group / groups, group % groups, bank % banks)
    };
    (channel.take_log().map(place).collect(), last)
}

fn check(spec: &str, act_clocks: Option<f64>, config: &str, cases: &[u32]) {
    let overrides: BTreeMap<String, f64> =
        act_clocks.map(|clocks| ("act_clocks".to_owned(), clocks)).into_iter().collect();
    let standard = MemoryStandard::load(spec, &gpumodel::models(), &overrides).unwrap();
    let mut options = standard.controller.clone();
    for key in ["posted_writes", "forward", "merge"] {
        options.set(&Place::new("test", 0), key, "0").unwrap();
    }
    for case in cases.iter().map(|number| format!("m{number:02}_")) {
        let expected = golden(config, &case);
        assert!(!expected.0.is_empty(), "{config} has {case}");
        assert_eq!(run(&standard, &options, &case), expected, "{spec}, {case}");
    }
}

const TIMING: [u32; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
const GDDR5: [u32; 10] = [1, 2, 3, 4, 5, 10, 11, 12, 13, 14];
const POLICY: [u32; 4] = [15, 17, 18, 19];

#[test]
fn published_hbm_set_agrees_with_both_simulators() {
    check("ugpu-hbm", Some(1.0), "r2_pub440_act1", &TIMING);
}

#[test]
fn two_clock_activates_agree_with_ramulator() {
    check("ugpu-hbm", Some(2.0), "r2_pub440_rowhit", &TIMING);
}

#[test]
fn one_kind_of_request_at_one_address_agrees_with_ramulator() {
    check("ugpu-hbm", Some(1.0), "r2_pub440_act1", &POLICY);
    check("ugpu-hbm", Some(2.0), "r2_pub440_rowhit", &POLICY);
    check("warped-slicer-gddr5", None, "r2_gddr5_924_rowhit", &POLICY);
}

#[test]
fn published_gddr5_set_agrees_with_both_simulators() {
    check("warped-slicer-gddr5", None, "r2_gddr5_924_rowhit", &GDDR5);
}

#[test]
fn two_pseudo_channels_share_the_row_bus() {
    check("hbm2-pc", None, "r2_hbm2_rowhit_noref", &[16]);
}
