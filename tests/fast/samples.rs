//! Are the committed sample traces what the workload models give today?
//!
//! `BLESS=1 cargo test samples` rewrites `traces/samples` and
//! `traces/MANIFEST.toml` from the table below.

use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use gpumodel::trace::workload::{Compression, FolderReport, Workload, write_folder};

/// Workload and scale of every sample.
const SAMPLES: &[(&str, f64)] = &[
    ("compute", 0.03125),
    ("gather", 0.0625),
    ("histogram", 0.0625),
    ("matmul-tiled", 0.125),
    ("reduce", 0.0625),
    ("saxpy", 0.125),
    ("stencil5", 0.0625),
    ("transpose", 0.25),
    ("two-streams", 0.5),
];

/// Largest plain text of one sample.
const TEXT_BYTES: u64 = 5 << 20;
/// Largest sum of all committed files.
const COMMITTED_BYTES: u64 = 300_000;

const HEADER: &str = "\
# The committed traces: what they are and how they were made.
# Written by `BLESS=1 cargo test samples`; checked by `cargo test samples`.
# text_xxh3 is XXH3 (64 bits) over the decompressed kernel-N.traceg in order.
";

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces")
}

fn load(name: &str, scale: f64) -> Workload {
    Workload::load_scaled(name, &gpumodel::models(), scale).unwrap()
}

fn entry(name: &str, scale: f64, seed: u64, report: &FolderReport) -> String {
    let mut text = String::new();
    let _ = write!(
        text,
        "\n[[sample]]\nfolder = \"samples/{name}\"\nworkload = \"models/workloads/{name}.toml\"\n\
         command = \"gpumodel synth {name} --scale {scale} --compress xz -o traces/samples/{name}\"\n\
         program = \"gpumodel {}\"\nscale = {scale}\nseed = {seed}\nlaunches = {}\n\
         warp_instructions = {}\nthread_instructions = {}\ntext_bytes = {}\n\
         text_xxh3 = \"{}\"\nlicence = \"MIT OR Apache-2.0\"\n",
        env!("CARGO_PKG_VERSION"),
        report.kernels,
        report.warp_instructions,
        report.thread_instructions,
        report.text_bytes,
        report.text_hash,
    );
    text
}

/// Names of the files of a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The text of a file, decompressed where it is xz.
fn text(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_none_or(|ending| ending != "xz") {
        return bytes;
    }
    let mut plain = Vec::new();
    liblzma::read::XzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
    plain
}

/// A manifest without the lines that say which version wrote it.
fn but_version(manifest: &str) -> Vec<&str> {
    manifest.lines().filter(|line| !line.starts_with("program = ")).collect()
}

fn blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn bless(manifest: &mut String) {
    for &(name, scale) in SAMPLES {
        let folder = traces().join("samples").join(name);
        let workload = load(name, scale);
        let report = write_folder(&workload, &folder, Compression::Xz, &mut |_| {}).unwrap();
        manifest.push_str(&entry(name, scale, workload.seed(), &report));
    }
    fs::write(traces().join("MANIFEST.toml"), manifest).unwrap();
}

#[test]
fn samples_are_what_the_workloads_give() {
    let mut manifest = HEADER.to_owned();
    if blessing() {
        return bless(&mut manifest);
    }
    let fresh = tempfile::tempdir().unwrap();
    for &(name, scale) in SAMPLES {
        let folder = fresh.path().join(name);
        let workload = load(name, scale);
        let report = write_folder(&workload, &folder, Compression::Xz, &mut |_| {}).unwrap();
        assert!(report.text_bytes < TEXT_BYTES, "{name}: {} bytes", report.text_bytes);
        manifest.push_str(&entry(name, scale, workload.seed(), &report));
        let committed = traces().join("samples").join(name);
        assert_eq!(files(&committed), files(&folder), "{name}");
        for file in files(&folder) {
            let same = text(&committed.join(&file)) == text(&folder.join(&file));
            assert!(same, "{name}/{file} differs: BLESS=1 cargo test samples, and say why");
        }
    }
    let committed = fs::read_to_string(traces().join("MANIFEST.toml")).unwrap();
    assert_eq!(but_version(&committed), but_version(&manifest));
}

#[test]
fn samples_stay_small_and_are_all_listed() {
    if blessing() {
        return;
    }
    let samples = traces().join("samples");
    let listed: Vec<&str> = SAMPLES.iter().map(|(name, _)| *name).collect();
    assert_eq!(files(&samples), listed);
    let mut bytes = 0;
    for name in listed {
        let folder = samples.join(name);
        for file in files(&folder) {
            bytes += fs::metadata(folder.join(file)).unwrap().len();
        }
    }
    assert!(bytes < COMMITTED_BYTES, "{bytes} bytes of samples");
}
