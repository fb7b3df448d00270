//! How far is machine `h100` from an H100, with one and with two kernels on an SM?
//!
//! `tests/data/hardware/h100` has the measurements, their program, and the loops of its
//! kernels as workload models. `BLESS=1 cargo test --test release h100` writes the tables of
//! `reports/H100.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use tempfile::TempDir;

use crate::report_data::{hold_table, reports};

/// The folder of measurements and loops.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/hardware/h100");

/// The clock at which the card ran.
const CORE_GHZ: f64 = 1.98;
const CLOCKS: &[(&str, &str)] = &[("clocks.core_mhz", "1980"), ("clocks.interconnect_mhz", "1980")];

/// The schedulers that the order of one kernel's warps implies.
const ROUND_ROBIN: &[(&str, &str)] =
    &[("sm.policy", "lrr"), ("sm.active_warps", "0"), ("sm.leaves_at_any_wait", "false")];

/// The card's kernels of a pair are so many times as long as the model's, and so is the time by
/// which the first starts earlier.
const LONGER: f64 = 8.0;

/// Kernels of a pair and the rounds that they have on the card.
const PAIRS: &[(&str, f64)] =
    &[("compute", 2000.0), ("special", 500.0), ("l1", 2000.0), ("l2", 480.0)];

/// Two of a GPC's eighteen SMs, with their part of its port.
const TWO_SMS: &[(&str, &str)] =
    &[("dispatch.sms", "2"), ("cluster.gpcs", "1"), ("cluster.gpc_bytes_per_l2_cycle", "78")];

/// Rows of the program's table.
struct Measured(Vec<BTreeMap<String, String>>);

impl Measured {
    fn read(file: &str) -> Self {
        let text = fs::read_to_string(Path::new(FOLDER).join(file)).unwrap();
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let row = |line: &str| {
            let fields = line.split(',').map(str::to_owned);
            names.iter().map(|name| (*name).to_owned()).zip(fields).collect()
        };
        Self(lines.map(row).collect())
    }

    /// A column of the one row that is so.
    fn number(&self, is: &[(&str, &str)], column: &str) -> f64 {
        let so =
            |row: &&BTreeMap<String, String>| is.iter().all(|(key, value)| row[*key] == *value);
        let rows: Vec<_> = self.0.iter().filter(so).collect();
        assert_eq!(rows.len(), 1, "{is:?}");
        rows[0][column].parse().unwrap()
    }

    /// Cycles per round of a kernel's row.
    fn round(&self, is: &[(&str, &str)]) -> f64 {
        self.number(is, "cycles") / self.number(is, "rounds")
    }
}

/// The model of the card, with room for the loops that it runs.
struct Card {
    place: TempDir,
    settings: Vec<(String, String)>,
}

impl Card {
    fn new(settings: &[&[(&str, &str)]]) -> Self {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let settings = settings.concat().iter().map(own).collect();
        Self { place: tempfile::tempdir().unwrap(), settings }
    }

    /// A loop of the folder with these constants.
    fn with(&self, name: &str, constants: &[(&str, u32)]) -> PathBuf {
        let mut text = fs::read_to_string(Path::new(FOLDER).join(format!("{name}.toml"))).unwrap();
        for (key, value) in constants {
            let (before, line) = text.split_once(&format!("\n{key} = ")).expect("a constant");
            let (_, behind) = line.split_once('\n').expect("a line");
            text = format!("{before}\n{key} = {value}\n{behind}");
        }
        let path = self.place.path().join(format!("{name}.toml"));
        fs::write(&path, text).unwrap();
        path
    }

    fn request(&self, apps: Vec<AppName>, schemes: &[&str]) -> AnalyzeRequest {
        AnalyzeRequest {
            overrides: self.settings.clone(),
            schemes: schemes.iter().map(|&scheme| scheme.to_owned()).collect(),
            ..AnalyzeRequest::new(apps, "h100", &self.place.path().join("cache"))
        }
    }

    /// Cycles per round of a loop, between `rounds` and three times as many.
    fn round(&self, name: &str, constants: &[(&str, u32)], rounds: u32) -> f64 {
        let cycles = |rounds: u32| {
            let path = self.with(name, &[constants, &[("rounds", rounds)]].concat());
            let app = AppName::parse(format!("synth:{}", path.display()));
            analyze(&self.request(vec![app], &[]), &Unwatched).unwrap().solo[0].cycles as f64
        };
        (cycles(3 * rounds) - cycles(rounds)) / f64::from(2 * rounds)
    }

    /// How many times longer both take on two shared SMs, when the second arrives at `start`.
    fn pair(&self, first: (&str, f64), second: (&str, f64), start: f64) -> [f64; 2] {
        let app = |name: &str, (kernel, rounds): (&str, f64)| {
            let rounds = (rounds / LONGER).round() as u32;
            let constants = [several_constants(kernel, 2), vec![("rounds", rounds)]].concat();
            let path = self.with(kernel, &constants);
            let own = path.with_file_name(format!("{name}-{kernel}.toml"));
            fs::rename(path, &own).unwrap();
            AppName::parse(format!("{name}=synth:{}", own.display()))
        };
        let request = AnalyzeRequest {
            arrivals: vec![("second".to_owned(), start as u64)],
            ..self.request(vec![app("first", first), app("second", second)], &["left-over"])
        };
        let analysis = analyze(&request, &Unwatched).unwrap();
        let apps = &analysis.coruns[0].apps;
        [1.0 / apps[0].normalized_progress, 1.0 / apps[1].normalized_progress]
    }
}

/// Bytes of a CTA's round in loops that read from L2 or DRAM.
const ROUND: f64 = 65536.0;

/// A number of the card, and ours.
#[derive(Clone, Debug)]
struct Row {
    of: String,
    card: f64,
    model: f64,
}

/// Throughputs of one SM, in what a round has of something.
fn throughputs(measured: &Measured, card: &Card) -> Vec<Row> {
    let mut rows = Vec::new();
    for (kernel, of, each) in
        [("compute", "cycles per FFMA", 64.0), ("special", "cycles per MUFU.EX2", 32.0)]
    {
        for (threads, warps) in [("128", 1.0), ("1024", 8.0)] {
            let is = [("what", "warps"), ("kernel", kernel), ("threads", threads)];
            let per = each * warps;
            rows.push(Row {
                of: format!("{of} and scheduler, warps: {warps}"),
                card: measured.round(&is) / per,
                model: card.round(kernel, &[("width", threads.parse().unwrap())], 40) / per,
            });
        }
    }
    for (what, kernel, of, bytes, constants, rounds) in [
        ("warps", "l1", "bytes per cycle out of the L1", 32768.0, &[][..], 100),
        ("sms", "l2", "bytes per cycle from the L2, 1 SM", ROUND, &[("window", 1 << 20)], 20),
        ("sms", "stream", "bytes per cycle from the DRAM, 1 SM", ROUND, &[], 20),
    ] {
        let is = [("what", what), ("kernel", kernel), ("ctas", "1")];
        let model = bytes / card.round(kernel, constants, rounds);
        rows.push(Row { of: of.to_owned(), card: bytes / measured.round(&is), model });
    }
    rows
}

/// Cycles of a load, by where it hits.
fn latencies(measured: &Measured, card: &Card) -> Vec<Row> {
    [("L1", "127", 128, 4), ("L2", "8191", 65_536, 2048), ("DRAM", "8388607", 8_388_608, 1)]
        .map(|(of, mask, lines, warm)| Row {
            of: format!("cycles of a load, {of}"),
            card: measured.round(&[("what", "latency"), ("mask", mask)]) / 16.0,
            model: card.round("chase", &[("lines", lines), ("warm", warm)], 40) / 16.0,
        })
        .into()
}

fn alone(rows: &[Row]) -> String {
    let head = "| of | H100 | `h100` | error |\n|---|---|---|---|\n".to_owned();
    rows.iter().fold(head, |mut lines, Row { of, card, model }| {
        let error = (model / card - 1.0) * 100.0;
        let _ = writeln!(lines, "| {of} | {card:.2} | {model:.2} | {error:+.0} % |");
        lines
    })
}

/// A loop on so many SMs. The card reads its window hundreds of times, ours is smaller, so
/// that few rounds have read all of it.
fn several_constants(kernel: &str, sms: u32) -> Vec<(&'static str, u32)> {
    let window = (kernel == "l2").then_some(("window", (2 * sms) << 16));
    [("number", sms)].into_iter().chain(window).collect()
}

/// Bytes per cycle that several SMs read: on the card, on another one, and on ours.
fn several(measured: &Measured, other: &Measured, card: &Card) -> String {
    let mut lines = String::from("| of | SMs | H100 | another | `h100` |\n|---|---|---|---|---|\n");
    for (kernel, of) in [("l2", "L2"), ("stream", "DRAM")] {
        for sms in [33, 66, 132] {
            let number = sms.to_string();
            let is = [("what", "sms"), ("kernel", kernel), ("ctas", number.as_str())];
            let bytes = ROUND * f64::from(sms);
            let [one, another] = [measured, other].map(|table| bytes / table.round(&is));
            let own = bytes / card.round(kernel, &several_constants(kernel, sms), 5);
            let _ = writeln!(lines, "| {of} | {sms} | {one:.0} | {another:.0} | {own:.0} |");
        }
    }
    lines
}

/// A row per pair: the first's and the second's slow-down on the card, from its launch to its
/// end, as the machine's file has it, and with round robin.
fn pairs(measured: &Measured) -> String {
    let cards = [Card::new(&[CLOCKS, TWO_SMS]), Card::new(&[CLOCKS, TWO_SMS, ROUND_ROBIN])];
    let mut lines =
        String::from("| first, second | H100 | `h100` | round robin |\n|---|---|---|---|\n");
    for first in PAIRS {
        for second in PAIRS {
            let alone = |kernel| measured.number(&[("what", "all"), ("kernel", kernel)], "ns");
            let is = [("what", "within"), ("kernel", second.0), ("beside", first.0)];
            let own = measured.number(&is, "ns") / alone(second.0);
            let other = measured.number(&is, "other_ns") / alone(first.0);
            let start = measured.number(&is, "head_start_ns") * CORE_GHZ / LONGER;
            let _ = write!(lines, "| {}, {} | {other:.2}, {own:.2} |", first.0, second.0);
            for card in &cards {
                let [one, two] = card.pair(*first, *second, start);
                let _ = write!(lines, " {one:.2}, {two:.2} |");
            }
            lines.push('\n');
        }
    }
    lines
}

#[test]
fn kernels_alone_take_what_the_report_says() {
    let (measured, card) = (Measured::read("results.csv"), Card::new(&[CLOCKS]));
    let rows = [throughputs(&measured, &card), latencies(&measured, &card)].concat();
    hold_table(&reports().join("H100.md"), "alone", &alone(&rows));
}

#[test]
fn several_sms_read_as_fast_as_the_report_says() {
    let (measured, other) = (Measured::read("results.csv"), Measured::read("other-card.csv"));
    let table = several(&measured, &other, &Card::new(&[CLOCKS]));
    hold_table(&reports().join("H100.md"), "several", &table);
}

#[test]
fn pairs_on_an_sm_slow_each_other_down_as_the_report_says() {
    hold_table(&reports().join("H100.md"), "pairs", &pairs(&Measured::read("results.csv")));
}
