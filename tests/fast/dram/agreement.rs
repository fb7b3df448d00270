//! Do long runs agree with two other simulators, as far as these agree with
//! each other, and do they meet the closed forms?

use gpumodel::app::{DramJob, RequestFormat};
use gpumodel::report::results::DramRecord;

use super::generator::requests;

const PEERS: &str = include_str!("../../data/dram_peers.csv");

/// One measured run of one peer.
struct Peer {
    last: f64,
    mean: f64,
    p99: f64,
    bandwidth: f64,
}

/// The runs of `configs` for a request list.
fn peers(configs: &[&str], list: (&str, u32, &str, &str)) -> Vec<Peer> {
    let (organisation, bytes, pattern, rate) = list;
    let key = format!("{organisation},{bytes},{pattern},{rate}");
    let of_list = PEERS.lines().filter_map(|line| {
        let (config, rest) = line.split_once(',')?;
        let numbers = rest.strip_prefix(&key)?.strip_prefix(',')?;
        configs.contains(&config).then_some(numbers)
    });
    of_list
        .map(|numbers| {
            let numbers: Vec<f64> = numbers.split(',').map(|n| n.parse().unwrap()).collect();
            let &[last, mean, p99, bandwidth] = numbers.as_slice() else { panic!("{numbers:?}") };
            Peer { last, mean, p99, bandwidth }
        })
        .collect()
}

fn run(spec: &str, text: &str) -> DramRecord {
    let job = DramJob::new(spec, &gpumodel::models(), &[]).unwrap();
    job.run("list", text.as_bytes(), RequestFormat::Coordinates, None).unwrap()
}

/// Whether `value` is between the least and the most of `peers`, widened by `slack`.
fn between(value: f64, peers: &[Peer], of: fn(&Peer) -> f64, slack: f64) -> bool {
    let least = peers.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = peers.iter().map(of).fold(0.0, f64::max);
    value >= least * (1.0 - slack) && value <= most * (1.0 + slack)
}

/// The disagreements, in words.
fn disagreements(spec: &str, configs: &[&str], list: (&str, u32, &str, &str)) -> Vec<String> {
    let (organisation, bytes, pattern, rate) = list;
    let peers = peers(configs, list);
    assert_eq!(peers.len(), configs.len(), "{list:?} was measured");
    let record = run(spec, &requests(organisation, bytes, pattern, rate));
    let (last, mean) = (record.last_read_done_cycle as f64, record.mean_read_latency_cycles);
    let mut wrong = Vec::new();
    let mut expect = |holds: bool, what: &str, found: f64| {
        if !holds {
            wrong.push(format!("{spec} {list:?}: {what} is {found}"));
        }
    };
    let bound_by_timing = ["seq", "bgilv", "rand", "rowcyc"].contains(&pattern);
    if !bound_by_timing {
        expect(between(last, &peers, |p| p.last, 0.10), "last read", last);
        let used = record.bandwidth_utilization;
        expect(between(used, &peers, |p| p.bandwidth, 0.10), "bandwidth", used);
    } else if (spec, pattern) == ("warped-slicer-gddr5", "rand") {
        expect(between(last, &peers, |p| p.last, 0.0), "last read", last);
    } else {
        let near = peers.iter().all(|p| (last - p.last).abs() <= 0.005 * p.last);
        expect(near, "last read", last);
    }
    match (bound_by_timing, rate) {
        (true, "low") => {
            expect(between(mean, &peers, |p| p.mean, 0.02), "mean latency", mean);
            let p99 = record.p99_read_latency_cycles;
            let near = peers.iter().any(|p| (p99 - p.p99).abs() <= 3.0);
            expect(near, "99th percentile", p99);
        }
        (_, "sat") => {}
        _ => expect(between(mean, &peers, |p| p.mean, 0.10), "mean latency", mean),
    }
    wrong
}

fn check(spec: &str, configs: &[&str], organisation: &str, sizes: &[u32]) {
    let mut wrong = Vec::new();
    for &bytes in sizes {
        for pattern in ["seq", "bgilv", "rand", "rowcyc", "two_seq", "rw70_rand"] {
            for rate in ["low", "med", "sat"] {
                wrong.extend(disagreements(spec, configs, (organisation, bytes, pattern, rate)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn published_hbm_set_runs_as_its_peers() {
    check("ugpu-hbm", &["d3_pub440_uni", "r2_pub440_act1"], "B32", &[64, 32]);
}

#[test]
fn published_gddr5_set_runs_as_its_peers() {
    check("warped-slicer-gddr5", &["d3_gddr5_924", "r2_gddr5_924_rowhit"], "L64", &[64]);
}

#[test]
fn pseudo_channels_run_as_their_peer() {
    check("hbm2-pc", &["r2_hbm2_rowhit_noref"], "PC32", &[64, 32]);
}

#[test]
fn legacy_mode_runs_as_its_peer() {
    check("hbm2-legacy", &["d3_hbm2_noref"], "L64", &[64]);
}

/// Every request to a new row of one bank.
fn one_bank(requests: u64, accesses: u64) -> String {
    let line = |at: u64| {
        format!("{} 0 R 0 0 0 {} {}\n", at / accesses, at / accesses % 16384, at % accesses)
    };
    (0..requests * accesses).map(line).collect()
}

#[test]
fn one_bank_is_bound_by_its_row_cycle() {
    // (N - 1) tRC + 1 + tRCD + (k - 1) tCCD_L + CL + burst
    for (spec, accesses, expected) in [
        ("ugpu-hbm", 2, 19_999 * 47 + 32),
        ("warped-slicer-gddr5", 1, 19_999 * 40 + 27),
        ("hbm2-legacy", 1, 19_999 * 48 + 31),
    ] {
        let record = run(spec, &one_bank(20_000, accesses));
        assert_eq!(record.last_read_done_cycle, expected, "{spec}");
        assert_eq!(record.row_conflicts + record.row_misses, 20_000, "{spec}");
    }
}

#[test]
fn refresh_costs_its_share_of_a_stream() {
    let text = requests("B32", 64, "seq", "sat");
    let changes = ["refresh=all-bank", "act_clocks=2"].map(str::to_owned);
    let job = DramJob::new("ugpu-hbm", &gpumodel::models(), &changes).unwrap();
    let record = job.run("list", text.as_bytes(), RequestFormat::Coordinates, None).unwrap();
    // The peers measured 0.905 and 0.911 of the peak with tREFI 1716, tRFC 115.
    assert!((0.90..0.92).contains(&record.bandwidth_utilization), "{record:?}");
    assert_eq!(record.refreshes, record.cycles / 1716);
}
