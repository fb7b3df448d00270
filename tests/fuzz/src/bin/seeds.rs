//! Writes the fuzzing seeds: the repository's files for each reader, and for each target
//! the words in them.
//!
//! `seeds FOLDER` fills `FOLDER/TARGET` and `FOLDER/TARGET.dict`. It is linked like a
//! target, whose instrumentation its libraries have, and ends before it would fuzz.

#![no_main]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::trace::{ConvertRequest, Silent, convert};
use gpumodel_fuzz::{Place, disassembled};

#[path = "../../../common/packing.rs"]
mod packing;
#[allow(dead_code)]
#[path = "../../../common/rendering.rs"]
mod rendering;
#[allow(dead_code)]
#[path = "../../../common/small_files.rs"]
mod small_files;

/// Larger files are no good to start from: each input should take a millisecond.
const LARGEST: usize = 16 << 10;

/// Most words of a target, and their lengths.
const WORDS: usize = 600;

/// One target's seeds.
struct Seeds {
    folder: PathBuf,
    words: BTreeSet<String>,
}

impl Seeds {
    fn new(out: &Path, target: &str) -> Self {
        let folder = out.join(target);
        fs::create_dir_all(&folder).expect("a folder for seeds");
        Self { folder, words: BTreeSet::new() }
    }

    /// Adds `bytes` behind the bytes of `before`, under `name`.
    fn add(&mut self, name: &str, before: &[u8], bytes: &[u8]) {
        if bytes.len() > LARGEST {
            return;
        }
        let whole = [before, bytes].concat();
        fs::write(self.folder.join(name), whole).expect("a seed is written");
        let text = String::from_utf8_lossy(bytes);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-#:.".contains(c)));
        let plain = |word: &&str| (2..=32).contains(&word.len()) && !word.starts_with("0000");
        let letters = |word: &&str| word.chars().any(|c| c.is_ascii_alphabetic() || c == '#');
        self.words.extend(words.filter(plain).filter(letters).map(str::to_owned));
    }

    /// Adds every file of `folder` of the repository that `which` takes.
    fn folder(&mut self, folder: &str, before: &[u8], which: impl Fn(&str) -> bool) {
        let path = root().join(folder);
        let entries = fs::read_dir(&path).expect("a folder of the repository");
        let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.is_file()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if which(&name) {
                let bytes = fs::read(path).expect("a file of the repository");
                self.add(&format!("{}-{name}", folder.replace('/', "-")), before, &bytes);
            }
        }
    }

    /// Adds every case of broken input that `which` takes.
    fn hostile(&mut self, which: impl Fn(&str) -> bool) {
        for (name, bytes) in small_files::small_files(&text("tests/data/hostile.txt")) {
            if which(&name) {
                self.add(&format!("hostile-{name}"), &[], &bytes);
            }
        }
    }

    /// Writes the words; every `n`th where there are too many.
    fn finish(self) {
        let mut text = String::new();
        let step = self.words.len().div_ceil(WORDS).max(1);
        for word in self.words.iter().step_by(step) {
            writeln!(text, "\"{word}\"").expect("a String takes everything");
        }
        fs::write(self.folder.with_extension("dict"), text).expect("the words are written");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> Vec<u8> {
    fs::read(root().join(path)).expect("a file of the repository")
}

fn text(path: &str) -> String {
    String::from_utf8(read(path)).expect("a text of the repository")
}

/// The small trace as every version of the tracer writes it.
fn versions(grouped: &str) -> Vec<(String, String)> {
    let from = grouped.find("-accelsim tracer version").expect("a version");
    let end = from + grouped[from..].find('\n').expect("a line");
    let keys = ["", "= 1.2", "= 3", "= 4", "= 5", "= 6"];
    let key = |version: &str| match version {
        "" => String::new(),
        version => format!("-accelsim tracer version {version}"),
    };
    let text = |version| [&grouped[..from], &key(version), &grouped[end..]].concat();
    keys.into_iter().map(|version| (format!("version{version}"), text(version))).collect()
}

/// The records of the small trace as a raw one.
fn raw(grouped: &str) -> String {
    let header = &grouped[..grouped.find("#BEGIN_TB").expect("a block")];
    let mut text = header.trim_end().to_owned() + "\n\n";
    let (mut cta, mut warp) = ("", "");
    for line in grouped.lines() {
        if let Some(position) = line.strip_prefix("thread block = ") {
            cta = position;
        } else if let Some(number) = line.strip_prefix("warp = ") {
            warp = number;
        } else if line.starts_with("00") {
            writeln!(text, "{} {warp} {line}", cta.replace(',', " ")).expect("a String");
        }
    }
    text
}

/// Seeds of trace readers: the small trace in all forms.
fn traces(out: &Path) {
    let grouped = String::from_utf8(read("traces/golden/v1.traceg")).expect("text");
    let forms = versions(&grouped);
    trace(out, &grouped, &forms);
    tracez(out, &forms);
    list(out);
    memlog(out);
    store(out, &forms);
}

fn trace(out: &Path, grouped: &str, forms: &[(String, String)]) {
    let mut trace = Seeds::new(out, "trace");
    for (name, text) in forms.iter().chain([&("raw".to_owned(), raw(grouped))]) {
        trace.add(name, &[], text.as_bytes());
        for kind in 1..=4 {
            trace.add(&format!("{name}-packed-{kind}"), &[kind, 0, 0], text.as_bytes());
        }
    }
    trace.hostile(|name| !name.contains("tracez") && !name.contains("list"));
    trace.finish();
}

fn tracez(out: &Path, forms: &[(String, String)]) {
    let mut tracez = Seeds::new(out, "tracez");
    for (name, text) in forms {
        for (chunk, dictionary) in [(2, 0), (256, 0), (1, 256)] {
            let packing = packing::Packing { chunk, dictionary, level: 3 };
            let bytes = packing::packed(text, packing);
            tracez.add(&format!("{name}-{chunk}-{dictionary}"), &[], &bytes);
        }
    }
    tracez.hostile(|name| name.contains("tracez"));
    tracez.finish();
}

fn list(out: &Path) {
    let mut list = Seeds::new(out, "list");
    list.hostile(|name| name.contains("list"));
    list.add(
        "good",
        &[],
        b"MemcpyHtoD,0x00007f0000000000,1024\nkernel-1.traceg\nmore/kernelslist.g\n",
    );
    list.finish();
}

fn memlog(out: &Path) {
    let mut memlog = Seeds::new(out, "memlog");
    memlog.folder("traces/golden", &[], |name| name.ends_with(".txt"));
    let log = read("traces/golden/memlog-v1.txt");
    for lines in [3, 8, 20] {
        let part: Vec<u8> =
            log.split_inclusive(|b| *b == b'\n').take(lines).flatten().copied().collect();
        memlog.add(&format!("first-{lines}"), &[], &part);
    }
    memlog.finish();
}

fn store(out: &Path, forms: &[(String, String)]) {
    let mut store = Seeds::new(out, "store");
    let mut both = |name: &str, bytes: &[u8]| {
        store.add(&format!("{name}-whole"), &[1], bytes);
        store.add(&format!("{name}-parts"), &[2], &disassembled(bytes).unwrap_or_default());
    };
    for name in ["v1.gpt", "memlog-v1.gpt"] {
        both(name, &read(&format!("traces/golden/{name}")));
    }
    for (name, text) in forms {
        both(name, &converted(text));
    }
    store.finish();
}

/// The store of a trace.
fn converted(text: &str) -> Vec<u8> {
    let place = Place::new();
    let inputs = vec![place.file("kernel-1", text.as_bytes())];
    let output = place.at("out.gpt");
    let request = ConvertRequest { inputs, output: output.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).expect("a good trace");
    fs::read(output).expect("its store")
}

fn models(out: &Path) {
    let toml = |name: &str| name.ends_with(".toml");
    let mut import = Seeds::new(out, "import");
    let folder = "tests/data/accelsim-small";
    let files = ["gpgpusim.config", "trace.config"].map(|name| read(&format!("{folder}/{name}")));
    import.add("small", &[], &files.join(&[0xff][..]));
    import.add("one", &[], &files[0]);
    import.finish();
    let mut machine = Seeds::new(out, "machine");
    machine.folder("models/gpus", &[0], toml);
    machine.folder("models/isa", &[1], toml);
    machine.folder("models/memory", &[2], toml);
    machine.folder("models/memory/mappings", &[3], toml);
    machine.finish();
    let mut workload = Seeds::new(out, "workload");
    workload.folder("models/workloads", &[0], toml);
    for (name, bytes) in small_files::small_files(&text("tests/data/kernels.txt")) {
        workload.add(&name.replace('/', "-"), &[0], &bytes);
    }
    workload.folder("tests/data/shapes", &[1], toml);
    workload.finish();
    let mut plan = Seeds::new(out, "plan");
    plan.folder("models/plans", &[0], toml);
    plan.folder("models/mixes", &[1], toml);
    plan.folder("models/papers", &[2], toml);
    plan.finish();
}

/// Tables of sweeps: as they are written, as other programs write them.
fn tables(record: &mut Seeds) {
    let tables: [(&str, &[u8]); 3] = [
        ("table.csv", b"key,machine,scheme,stp\n0a1b,v100,even,1.5\n\"2c3d\",\"a, b\",bp,\n"),
        ("table-quoted.csv", b"\"\",\"key\"\r\n\"0\",\"0a1b\"\r\n\"1\",\"0a1b\"\r\n"),
        ("table.jsonl", b"{\"key\":\"0a1b\",\"stp\":1.5}\n\n{\"key\":\"2c3d\",\"error\":null}\n"),
    ];
    for (name, bytes) in tables {
        record.add(name, &[230], bytes);
    }
}

fn records(out: &Path) {
    let mut record = Seeds::new(out, "record");
    for (place, name) in ["record.json", "hardware.csv", "launches.csv", "runs.csv", "slots.csv"]
        .into_iter()
        .enumerate()
    {
        let bytes = read(&format!("tests/data/report/{name}"));
        if place == 0 {
            let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
            record.add(name, &[0], &lines.collect::<Vec<_>>().concat());
        } else {
            record.add(name, &[160], &bytes);
        }
    }
    record.add("sweep", &[220], br#"{"schema":"gpumodel.sweep/1","cells":[]}"#);
    tables(&mut record);
    record.add("reproduction", &[240], br#"{"schema":"gpumodel.reproduction/1","papers":[]}"#);
    record.finish();
    let mut requests = Seeds::new(out, "requests");
    let lines: &[(&str, &str)] = &[
        ("address", "0 0 R\n10 0x40 W 64\n# a\n900 0x12340 R 256\n5000 0 R\n"),
        ("coordinates", "1 0 R 0 0 0 1 0\n1 0 R 0 0 0 1 1\n2 9 W 0 1 2 3 4\n3 7000 R 0 1 1 9 2\n"),
        ("rows", "0 0x0 R\n0 0x100000 R\n0 0x200000 W\n1 0x300000 R\n1 0x0 W\n2 0x0 R\n"),
        ("late", "0 0 R\n9000000 64 W\n"),
    ];
    for (name, text) in lines {
        for spec in 0..6 {
            let format = if *name == "coordinates" { 32 } else { 0 };
            requests.add(&format!("{name}-{spec}"), &[spec | format], text.as_bytes());
            requests.add(&format!("{name}-{spec}-listed"), &[spec | format | 64], text.as_bytes());
        }
    }
    requests.finish();
}

fn words(out: &Path) {
    let mut scheme = Seeds::new(out, "scheme");
    for row in gpumodel::app::schemes() {
        let parameters = row.parameters.iter();
        let words: String = parameters.map(|p| format!(":{}={}", p.name, p.default)).collect();
        let kind = u8::from(row.queue);
        scheme.add(row.name, &[kind], format!("{}{words}", row.name).as_bytes());
    }
    for (kind, text) in [
        (2, "1-12,40"),
        (3, "first:160"),
        (3, "0-159,320"),
        (4, "gemm|conv.*[a-z]+\n_ZN3foo3barEPKfi"),
        (5, "first-run,cycles=900"),
        (6, "1-4,7"),
        (7, "A=synth:saxpy:scale=0.5"),
        (8, "hbm3 refresh=none read_queue=8 tRCD=9 page_policy=closed"),
        (9, "v100 l1.latency_cycles=30 dram.channels=8 name=x"),
    ] {
        scheme.add(&format!("words-{kind}-{}", text.len()), &[kind], text.as_bytes());
    }
    scheme.finish();
}

/// Writes the seeds of all targets and ends the process.
fn all() {
    let out = std::env::args_os().nth(1).expect("the folder to write into");
    let out = Path::new(&out);
    traces(out);
    models(out);
    records(out);
    words(out);
    std::process::exit(0);
}

libfuzzer_sys::fuzz_target!(
    init: all(),
    |_bytes: &[u8]| {}
);
