//! What can matching gain in ILP-SMRA's queues? Tables of `reports/ILP_SMRA.md` from the
//! queues of the paper's evaluation and from the slow-downs that the paper prints.
//!
//! `BLESS=1 cargo test --test release matching_gain` writes them from
//! `reports/data/ilp-smra-two.json`, `ilp-smra-three.json` and `models/papers/ilp-smra.toml`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;

use crate::report_data::{hold_table, reports};

/// The parts of a record of queues that `reports/queues.jq` keeps.
#[derive(Debug, Deserialize)]
struct Record {
    solo: Vec<Solo>,
    queues: Vec<Queue>,
    interference: Vec<Classes>,
}

#[derive(Debug, Deserialize)]
struct Solo {
    app: String,
    cycles: u64,
}

#[derive(Debug, Deserialize)]
struct Classes {
    apps: Vec<Class>,
}

#[derive(Debug, Deserialize)]
struct Class {
    app: String,
    class: String,
}

#[derive(Debug, Deserialize)]
struct Queue {
    distribution: String,
    scheme: String,
    cycles: u64,
    jobs: Vec<Job>,
    groups: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Job {
    app: String,
    cycles: u64,
    end_cycle: u64,
}

#[derive(Debug, Deserialize)]
struct Group {
    start_cycle: u64,
    end_cycle: u64,
    jobs: Vec<usize>,
    shares: Vec<Share>,
}

#[derive(Debug, Deserialize)]
struct Share {
    since_begin_cycles: u64,
    sms: Vec<u64>,
}

/// Members of a group, sorted.
type Members = Vec<String>;

impl Record {
    fn load(name: &str) -> Self {
        let path = reports().join("data").join(name);
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    fn class(&self, app: &str) -> usize {
        let found = self.interference[0].apps.iter().find(|class| class.app == app).unwrap();
        NAMES.iter().position(|name| *name == found.class).unwrap()
    }

    /// The queues under `scheme`, whatever its parameters.
    fn of(&self, scheme: &str) -> impl Iterator<Item = &Queue> {
        let known = self.queues.iter().any(|queue| queue.scheme() == scheme);
        assert!(known, "the record has no queue under {scheme}");
        self.queues.iter().filter(move |queue| queue.scheme() == scheme)
    }

    fn alone(&self, app: &str) -> u64 {
        self.solo.iter().find(|solo| solo.app == app).unwrap().cycles
    }

    /// Cycles of every group that ran on even shares, by its members.
    fn times(&self) -> HashMap<Members, u64> {
        let even =
            self.queues.iter().filter(|queue| ["even-queue", "ilp"].contains(&queue.scheme()));
        even.flat_map(Queue::members).collect()
    }
}

impl Queue {
    /// The scheme's name, without parameters.
    fn scheme(&self) -> &str {
        self.scheme.split(':').next().unwrap_or_default()
    }

    fn members(&self) -> impl Iterator<Item = (Members, u64)> + '_ {
        self.groups.iter().map(|group| {
            let mut apps: Members =
                group.jobs.iter().map(|&job| self.jobs[job].app.clone()).collect();
            apps.sort();
            (apps, group.end_cycle - group.start_cycle)
        })
    }

    /// Cycles of its jobs alone on the whole machine, one after the other.
    fn serial(&self, record: &Record) -> u64 {
        self.jobs.iter().map(|job| record.alone(&job.app)).sum()
    }
}

impl Group {
    /// SMs times cycles of members that have ended, which repeat or stand idle.
    fn idle(&self, jobs: &[Job]) -> u64 {
        let ends =
            self.shares.iter().skip(1).map(|next| self.start_cycle + next.since_begin_cycles);
        let ends = ends.chain([self.end_cycle]);
        let of = |share: &Share, end: u64| -> u64 {
            let begin = self.start_cycle + share.since_begin_cycles;
            let idle = |(&job, sms): (&usize, &u64)| {
                sms * end.saturating_sub(begin.max(jobs[job].end_cycle))
            };
            self.jobs.iter().zip(&share.sms).map(idle).sum()
        };
        self.shares.iter().zip(ends).map(|(share, end)| of(share, end)).sum()
    }
}

/// The least sum of `cost` over pairs of what `counts` counts, by place; infinite where
/// pairs of finite cost do not make it up.
fn least(counts: &[usize], cost: &[Vec<f64>], known: &mut HashMap<Vec<usize>, f64>) -> f64 {
    let Some(first) = counts.iter().position(|&count| count > 0) else { return 0.0 };
    if let Some(&sum) = known.get(counts) {
        return sum;
    }
    let mut best = f64::INFINITY;
    let mut left = counts.to_vec();
    left[first] -= 1;
    for second in first..left.len() {
        if left[second] > 0 && cost[first][second].is_finite() {
            left[second] -= 1;
            best = best.min(cost[first][second] + least(&left, cost, known));
            left[second] += 1;
        }
    }
    known.insert(counts.to_vec(), best);
    best
}

/// Percent by which the best pairs of a queue of two at a time are faster than its own, of
/// the pairs whose time the record has.
fn best_of_known(queue: &Queue, times: &HashMap<Members, u64>) -> f64 {
    let mut counts = BTreeMap::new();
    queue.jobs.iter().for_each(|job| *counts.entry(&job.app).or_insert(0) += 1);
    let (apps, counts): (Vec<&String>, Vec<usize>) = counts.into_iter().unzip();
    let time = |a: &String, b: &String| {
        times.get(&vec![a.clone(), b.clone()]).map_or(f64::INFINITY, |&cycles| cycles as f64)
    };
    let cost: Vec<Vec<f64>> =
        apps.iter().map(|a| apps.iter().map(|b| time(a, b)).collect()).collect();
    percent(queue.cycles as f64, least(&counts, &cost, &mut HashMap::new()))
}

fn percent(before: f64, after: f64) -> f64 {
    100.0 * (before / after - 1.0)
}

const NAMES: [&str; 4] = ["M", "MC", "C", "A"];
const DISTRIBUTIONS: [&str; 5] = ["equal", "M", "MC", "C", "A"];
const SCHEMES: [&str; 4] = ["even-queue", "profile-based", "ilp", "ilp-smra"];
/// The least and the largest slow-down of pairs of classes for which none is printed: those
/// of the printed ones.
const OPEN: [f64; 2] = [1.06, 2.05];

/// The least and the largest printed slow-down, by the class that slows and the slowed one.
fn printed() -> Vec<Vec<Option<[f64; 2]>>> {
    let path = reports().join("../models/papers/ilp-smra.toml");
    let paper: toml::Value = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let number = |value: &toml::Value| value.as_float().unwrap();
    let read = |disturbs: &str, suffers: &str| {
        let value = paper["interference"]["slowdown"].get(disturbs)?.get(suffers)?;
        let list = value.as_array().map(|list| [number(&list[0]), number(&list[1])]);
        Some(list.unwrap_or_else(|| [number(value); 2]))
    };
    let row = |disturbs| NAMES.iter().map(move |suffers| read(disturbs, suffers)).collect();
    NAMES.iter().map(|disturbs| row(disturbs)).collect()
}

/// Percent that the best pairs of so many jobs of each class gain over pairs by chance where
/// a pair of these classes takes so long.
fn over_chance(counts: &[usize; 4], cost: &[Vec<f64>]) -> f64 {
    let jobs: Vec<usize> = (0..4).flat_map(|class| vec![class; counts[class]]).collect();
    let pairs = (0..jobs.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let all: Vec<f64> = pairs.map(|(a, b)| cost[jobs[a]][jobs[b]]).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    percent(mean * (jobs.len() / 2) as f64, least(counts, cost, &mut HashMap::new()))
}

/// The least and the most of [`over_chance`] where every job takes as long alone on half of
/// the SMs and a pair as long as its slower member, over the ends of all that is printed as
/// a range or not at all, each on its own.
fn by_print(counts: [usize; 4]) -> [f64; 2] {
    let printed = printed();
    let end = |disturbs: usize, suffers: usize, end: usize| {
        printed[disturbs][suffers].unwrap_or(OPEN)[end]
    };
    let pairs: Vec<(usize, usize, [f64; 2])> = (0..4)
        .flat_map(|a| (0..=a).map(move |b| (a, b)))
        .map(|(a, b)| (a, b, [0, 1].map(|which| end(a, b, which).max(end(b, a, which)))))
        .collect();
    let mut range = [f64::INFINITY, f64::NEG_INFINITY];
    for choice in 0..1_usize << pairs.len() {
        let mut cost = vec![vec![0.0; 4]; 4];
        for (place, &(a, b, ends)) in pairs.iter().enumerate() {
            let time = ends[choice >> place & 1];
            (cost[a][b], cost[b][a]) = (time, time);
        }
        let gain = over_chance(&counts, &cost);
        range = [range[0].min(gain), range[1].max(gain)];
    }
    range
}

/// The most percent that the program of equations 3 to 5 can gain over pairs by chance: of
/// the mean of 1/S of both members, its objective, over the ends of what is printed as a range
/// or not at all. It is the gain of throughput where all jobs have the same IPC and length.
fn by_objective(counts: [usize; 4]) -> f64 {
    let printed = printed();
    let speed = |disturbs: usize, suffers: usize, end: usize| {
        1.0 / printed[disturbs][suffers].unwrap_or(OPEN)[end]
    };
    let pairs: Vec<(usize, usize)> = (0..4).flat_map(|a| (0..=a).map(move |b| (a, b))).collect();
    let jobs: Vec<usize> = (0..4).flat_map(|class| vec![class; counts[class]]).collect();
    let drawn: Vec<(usize, usize)> =
        (0..jobs.len()).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
    let groups = (jobs.len() / 2) as f64;
    let gain = |choice: usize| {
        let mut lost = vec![vec![0.0; 4]; 4];
        for (place, &(a, b)) in pairs.iter().enumerate() {
            let end = choice >> place & 1;
            let efficiency = f64::midpoint(speed(a, b, end), speed(b, a, end));
            (lost[a][b], lost[b][a]) = (1.0 - efficiency, 1.0 - efficiency);
        }
        let mean = drawn.iter().map(|&(a, b)| 1.0 - lost[jobs[a]][jobs[b]]).sum::<f64>()
            / drawn.len() as f64;
        let best = groups - least(&counts, &lost, &mut HashMap::new());
        percent(best, mean * groups)
    };
    (0..1_usize << pairs.len()).map(gain).fold(f64::NEG_INFINITY, f64::max)
}

fn row(title: &str, cells: impl Iterator<Item = String>) -> String {
    format!("| {title} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn signed(percent: f64) -> String {
    format!("{percent:+.1} %")
}

fn queues(two: &Record, three: &Record) -> String {
    let order: Vec<&str> = two.of("ilp").map(|queue| queue.distribution.as_str()).collect();
    assert_eq!(order, DISTRIBUTIONS);
    let mut table = format!("| | {} |\n|---|---|---|---|---|---|\n", order.join(" | "));
    for (title, record) in [("two", two), ("three", three)] {
        for scheme in SCHEMES {
            let gain = |queue: &Queue| percent(queue.serial(record) as f64, queue.cycles as f64);
            let title = format!("{title} at a time, `{scheme}` over one after the other");
            table += &row(&title, record.of(scheme).map(|queue| signed(gain(queue))));
        }
    }
    let times = two.times();
    let best = two.of("even-queue").map(|queue| signed(best_of_known(queue, &times)));
    table += &row("best pairs whose time is known, over `even-queue`", best);
    let counts: Vec<[usize; 4]> = two
        .of("even-queue")
        .map(|queue| {
            let mut counts = [0; 4];
            queue.jobs.iter().for_each(|job| counts[two.class(&job.app)] += 1);
            counts
        })
        .collect();
    let print = counts.iter().map(|&counts| {
        let [low, high] = by_print(counts);
        format!("{low:.0} to {high:.0} %")
    });
    table += &row("best pairs by the printed slow-downs, over pairs by chance", print);
    let most = counts.iter().map(|&counts| format!("{:.0} %", by_objective(counts)));
    table + &row("the same by the program's objective, at most", most)
}

/// By classes of a group: how many `scheme` made, and how much faster they were than one
/// after the other.
fn patterns(record: &Record, scheme: &str) -> BTreeMap<String, (usize, f64)> {
    let mut found: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for (apps, cycles) in record.of(scheme).flat_map(Queue::members) {
        let mut classes: Vec<usize> = apps.iter().map(|app| record.class(app)).collect();
        classes.sort_unstable();
        let name = classes.iter().map(|&class| NAMES[class]).collect::<Vec<_>>().join("+");
        let serial: u64 = apps.iter().map(|app| record.alone(app)).sum();
        let entry = found.entry(name).or_default();
        *entry = (entry.0 + 1, entry.1 + serial as f64 / cycles as f64);
    }
    found
}

/// A row for each pattern of which a scheme made at least `few` groups.
fn groups(record: &Record, few: usize) -> String {
    let mut table = format!(
        "| classes | by arrival | {} | {} | matched | {} | {} |\n|---|---|---|---|---|---|---|\n",
        SCHEMES[0], SCHEMES[1], SCHEMES[2], SCHEMES[3]
    );
    let all = SCHEMES.map(|scheme| patterns(record, scheme));
    let count = |at: usize, name: &str| all[at].get(name).map_or(0, |found| found.0);
    let faster = |at: usize, name: &str| {
        let found = all[at].get(name);
        found.map_or("–".into(), |&(count, sum)| signed(100.0 * (sum / count as f64 - 1.0)))
    };
    let names: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    for name in names.into_iter().filter(|name| count(0, name).max(count(2, name)) >= few) {
        let [even, own, ilp, smra] = [0, 1, 2, 3].map(|at| faster(at, name));
        let [arrival, matched] = [0, 2].map(|at| count(at, name));
        let _ =
            writeln!(table, "| {name} | {arrival} | {even} | {own} | {matched} | {ilp} | {smra} |");
    }
    table
}

/// By scheme: how many times longer jobs of each class take than alone on the whole machine,
/// and how much SM time follows the end of members, which repeat.
fn classes(two: &Record, three: &Record) -> String {
    let mut table = String::from(
        "| | M | MC | C | A | repeats | M | MC | C | A | repeats |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for scheme in SCHEMES {
        let mut cells = Vec::new();
        for record in [two, three] {
            let mut sums = [(0, 0.0); 4];
            for job in record.of(scheme).flat_map(|queue| &queue.jobs) {
                let slower = job.cycles as f64 / record.alone(&job.app) as f64;
                let sum = &mut sums[record.class(&job.app)];
                *sum = (sum.0 + 1, sum.1 + slower);
            }
            cells.extend(sums.map(|(count, sum)| format!("{:.2}", sum / f64::from(count))));
            let idle = |queue: &Queue| -> u64 {
                queue.groups.iter().map(|group| group.idle(&queue.jobs)).sum()
            };
            let shares = record.of(scheme).map(|queue| idle(queue) as f64 / queue.cycles as f64);
            let shares: Vec<f64> = shares.map(|share| share / 60.0).collect();
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            cells.push(format!("{:.1} %", 100.0 * mean));
        }
        table += &row(&format!("`{scheme}`"), cells.into_iter());
    }
    table
}

#[test]
fn the_gain_of_matching_follows_from_queues_and_printed_values() {
    let [two, three] = ["ilp-smra-two.json", "ilp-smra-three.json"].map(Record::load);
    let path = reports().join("ILP_SMRA.md");
    hold_table(&path, "ilp-smra-queues", &queues(&two, &three));
    hold_table(&path, "ilp-smra-pairs", &groups(&two, 1));
    hold_table(&path, "ilp-smra-triples", &groups(&three, 3));
    hold_table(&path, "ilp-smra-classes", &classes(&two, &three));
}
