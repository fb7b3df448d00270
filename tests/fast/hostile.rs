//! Is every sample, truncated or flipped anywhere, refused with its place or read whole?

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::core::units::ByteCount;
use gpumodel::trace::{ConvertRequest, Silent, Store, convert};
use rayon::prelude::*;

use crate::compression::{bzip2, gzip, xz};
use crate::packing::{Packing, packed};
use crate::rendering::text;

/// A small grouped trace with every address mode, tails and an empty warp.
const GROUPED: &str = include_str!("../../traces/golden/v1.traceg");

/// The trace in the form of a tracer version: keys of its header, and whether lines
/// have the four leading fields in a frame.
fn version(keys: &str) -> String {
    let from = GROUPED.find("-accelsim tracer version").unwrap();
    let end = from + GROUPED[from..].find('\n').unwrap();
    [&GROUPED[..from], keys, &GROUPED[end..]].concat()
}

/// The records of the small trace as a raw one.
fn raw() -> String {
    let header = &GROUPED[..GROUPED.find("#BEGIN_TB").unwrap()];
    let mut text = header.trim_end().to_owned() + "\n\n";
    let (mut cta, mut warp) = ("", "");
    for line in GROUPED.lines() {
        if let Some(position) = line.strip_prefix("thread block = ") {
            cta = position;
        } else if let Some(number) = line.strip_prefix("warp = ") {
            warp = number;
        } else if line.starts_with("00") {
            text += &format!("{} {warp} {line}\n", cta.replace(',', " "));
        }
    }
    text
}

/// The small trace in every form that is understood.
pub(crate) fn small() -> Vec<(String, Vec<u8>)> {
    let mut all = vec![("grouped".to_owned(), GROUPED.as_bytes().to_vec())];
    for keys in ["", "-accelsim tracer version = 1.2", "-accelsim tracer version = 3"] {
        all.push((format!("grouped {keys}"), version(keys).into_bytes()));
    }
    for number in [4, 5, 6] {
        let keys = format!("-accelsim tracer version = {number}");
        all.push((format!("version {number}"), version(&keys).into_bytes()));
    }
    let text = GROUPED.as_bytes();
    all.push(("raw".to_owned(), raw().into_bytes()));
    let chunk = Packing { chunk: 2, dictionary: 0, level: 3 };
    all.push(("tracez".to_owned(), packed(GROUPED, chunk)));
    all.push(("xz".to_owned(), xz(text)));
    all.push(("gzip".to_owned(), gzip(text)));
    all.push(("bzip2".to_owned(), bzip2(text)));
    all.push(("zstd".to_owned(), zstd::bulk::compress(text, 3).unwrap()));
    all
}

/// The committed samples, as they are and in other forms.
fn samples() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/samples");
    let mut all = Vec::new();
    for name in ["compute", "gather", "histogram", "reduce", "two-streams", "transpose"] {
        let path = folder.join(name).join("kernel-1.traceg.xz");
        all.push((format!("{name}.xz"), fs::read(&path).unwrap()));
        if name == "two-streams" {
            let text = text(&path);
            all.push((format!("{name}.tracez"), packed(&text, Packing::default())));
            all.push((format!("{name}.bz2"), bzip2(text.as_bytes())));
            all.push((format!("{name}.traceg"), text.into_bytes()));
        }
    }
    all
}

/// Converts `bytes`; on success the store must be whole, on an error nothing may be
/// left and the message must say where. True when it was taken.
fn taken(bytes: &[u8], deep: bool) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("kernel-3.x"), folder.path().join("out.gpt"));
    fs::write(&input, bytes).unwrap();
    let request = ConvertRequest {
        inputs: vec![input],
        output: output.clone(),
        memory: Some(ByteCount(1 << 20)),
        ..ConvertRequest::default()
    };
    let result = convert(&request, &Silent);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1 + usize::from(result.is_ok()), "files");
    if let Err(error) = result {
        let said = error.to_string();
        let digit = |text: &str| text.starts_with(|next: char| next.is_ascii_digit());
        let lines = said.split("kernel-3.x:").skip(1);
        let placed = lines.clone().any(|at| digit(at) || digit(at.trim_start_matches(" byte ")));
        let clear = said.contains("expected ") && said.contains(", found ");
        assert!(placed && clear, "{said}");
        return false;
    }
    let store = Store::open(&output).unwrap();
    store.verify().unwrap();
    if deep {
        analyzed(&output, folder.path());
    }
    true
}

/// The main job on a store: it ends with a record or with an error that names it.
fn analyzed(store: &Path, folder: &Path) {
    let app = AppName::parse(store);
    let request = AnalyzeRequest::new(vec![app], "gtx-1080", folder);
    if let Err(error) = analyze(&request, &Unwatched) {
        assert!(error.to_string().contains("out"), "{error}");
    }
}

/// Runs `cases` of `name`, in parallel; names the case that panics.
fn all_of(name: &str, cases: &[Vec<u8>], deep: bool) -> usize {
    let one = |(number, bytes): (usize, &Vec<u8>)| {
        let result = catch_unwind(AssertUnwindSafe(|| taken(bytes, deep)));
        result.unwrap_or_else(|_| panic!("{name}: case {number} of {} bytes", bytes.len()))
    };
    cases.par_iter().enumerate().filter(|&case| one(case)).count()
}

/// Numbers that look random and are the same every time.
pub(crate) fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
    }
}

/// Copies of `bytes` with one to four bytes changed, in one bit or altogether.
pub(crate) fn flips(bytes: &[u8], count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = random(seed);
    let mut flipped = || {
        let mut flipped = bytes.to_vec();
        for _ in 0..=random(4) {
            let at = random(bytes.len());
            let bits = 1 << random(8);
            flipped[at] ^= if random(2) == 0 { bits } else { u8::try_from(random(256)).unwrap() };
        }
        flipped
    };
    (0..count).map(|_| flipped()).collect()
}

fn cuts(bytes: &[u8]) -> Vec<Vec<u8>> {
    (0..50).map(|part| bytes[..bytes.len() * part / 50].to_vec()).collect()
}

#[test]
fn every_form_cut_at_every_fiftieth_is_refused_or_shorter() {
    for (name, bytes) in small() {
        assert!(taken(&bytes, true), "{name}");
        // Between two thread blocks, or two lines of raw text, a cut is not seen.
        let most = if name == "raw" { 20 } else { 6 };
        assert!(all_of(&name, &cuts(&bytes), true) <= most, "{name}");
    }
    for (name, bytes) in samples() {
        assert!(all_of(&name, &cuts(&bytes), false) <= 1, "{name}");
    }
}

#[test]
fn every_form_with_flipped_bytes_is_refused_or_accepted_whole() {
    for (name, bytes) in small() {
        all_of(&name, &flips(&bytes, 300, 7), true);
    }
    for (name, bytes) in samples() {
        all_of(&name, &flips(&bytes, 20, 11), false);
    }
}
