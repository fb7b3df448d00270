//! Do the readers of untrusted bytes survive any bytes?
//!
//! `GPUMODEL_FUZZ_SECONDS` sets the time of each test (two seconds by default),
//! `GPUMODEL_FUZZ_SEED` the seed. A failure prints the bytes and the seed that made them;
//! add it to `data/hostile.txt`.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use gpumodel::core::isa::Access;
use gpumodel::core::units::ByteCount;
use gpumodel::trace::{ConvertRequest, Silent, Store, convert, export, sources};

use crate::corpus::cases;
use crate::hostile::{random, small};

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Words that steer readers more often than random bytes do.
const WORDS: &[&str] = &[
    "#BEGIN_TB\n",
    "#END_TB\n",
    "thread block = 0,0,0\n",
    "warp = 0\n",
    "insts = 1\n",
    "\n",
    "\r\n",
    "-kernel name = k\n",
    "-grid dim = (2,1,1)\n",
    "#\n",
    "4294967296",
    "18446744073709551615",
    "-1",
    "0x",
    " ",
    "\0",
    "ffffffff",
    "00000000",
    " 2 0x7f00 4 -4 ",
    " 3 0x1 ",
    " HGMMA ",
    " NoVal",
    "R255",
    "kernel-1.traceg\n",
    "MemcpyHtoD,0x0,1\n",
    "-enable lineinfo = 1\n",
    "\u{feff}",
];

/// A child of two of `seeds`: spliced, cut, with words and bytes changed.
fn child(seeds: &[Vec<u8>], random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut bytes = seeds[random(seeds.len())].clone();
    if random(4) == 0 {
        let other = &seeds[random(seeds.len())];
        bytes.truncate(random(bytes.len() + 1));
        bytes.extend_from_slice(&other[random(other.len() + 1)..]);
    }
    for _ in 0..=random(6) {
        let at = random(bytes.len() + 1);
        let to = at + random((bytes.len() - at).min(40) + 1);
        match random(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random(8),
            1 if at < bytes.len() => bytes[at] = u8::try_from(random(256)).unwrap(),
            2 => drop(bytes.drain(at..to)),
            3 => bytes.extend_from_within(at..to),
            4 => drop(bytes.splice(at..at, WORDS[random(WORDS.len())].bytes())),
            _ => drop(bytes.splice(at..to, WORDS[random(WORDS.len())].bytes())),
        }
    }
    bytes
}

/// Gives children of `seeds` to `reader` until the time is over.
#[allow(clippy::print_stdout)]
fn fuzz(name: &str, seeds: &[Vec<u8>], mut reader: impl FnMut(&[u8])) {
    let seed = number("GPUMODEL_FUZZ_SEED", 1);
    let time = Duration::from_secs(number("GPUMODEL_FUZZ_SECONDS", 2));
    let (start, mut random, mut count) = (Instant::now(), random(seed * 2 + 1), 0_u64);
    while start.elapsed() < time {
        let bytes = child(seeds, &mut random);
        let result = catch_unwind(AssertUnwindSafe(|| reader(&bytes)));
        assert!(result.is_ok(), "{name}, seed {seed}, number {count}: {}", bytes.escape_ascii());
        count += 1;
    }
    println!("{name}: {count} inputs");
}

/// Everything of a store is read; what it says does not matter.
fn walk(store: &Store, most: u64) {
    let mut access = Access::default();
    for kernel in 0..store.kernel_count() {
        let ctas = store.kernel(kernel).cta_count().min(most);
        let _ = (store.code(kernel).is_ok(), store.executed(kernel).is_ok());
        for ordinal in 0..ctas {
            let (Ok(cta), _) = (store.cta(kernel, ordinal), store.tails(kernel, ordinal)) else {
                continue;
            };
            for warp in 0..cta.warp_count() {
                let mut cursor = cta.warp(warp);
                while cursor.next_segment().is_some() {
                    while cursor.instruction().is_some() {
                        cursor.access(&mut access);
                    }
                }
            }
        }
    }
}

/// Converts; an accepted store must be whole and survive its text.
fn import(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let request = |input: &str, output: &str| ConvertRequest {
        inputs: vec![at(input)],
        output: at(output),
        memory: Some(ByteCount(1 << 16)),
        ..ConvertRequest::default()
    };
    fs::write(at("kernel-1"), bytes).unwrap();
    let result = convert(&request("kernel-1", "out.gpt"), &Silent);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1 + usize::from(result.is_ok()));
    if result.is_err() {
        return;
    }
    let store = Store::open(&at("out.gpt")).unwrap();
    store.verify().unwrap();
    walk(&store, 100);
    if export(&store, &request("out.gpt", "text")).is_ok() && store.kernel(0).cta_count() > 0 {
        convert(&request("text", "again.gpt"), &Silent).unwrap();
        let again = Store::open(&at("again.gpt")).unwrap();
        assert_eq!(again.kernel(0).warp_instructions(), store.kernel(0).warp_instructions());
    }
}

fn read_cases(with: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    let taken = cases().into_iter().filter(|(name, _)| with(name));
    taken.map(|(_, bytes)| bytes).collect()
}

#[test]
fn text_of_any_bytes() {
    let forms = small().into_iter().filter(|(name, _)| name.contains("r")).map(|(_, bytes)| bytes);
    let archives = ["xz", "gzip", "bzip2", "zstd", "tracez", "list"];
    let mut seeds = read_cases(|name| !archives.iter().any(|archive| name.contains(archive)));
    seeds.extend(forms);
    fuzz("text", &seeds, import);
}

#[test]
fn binary_traces_of_any_bytes() {
    let mut seeds = read_cases(|name| name.starts_with("tracez"));
    seeds.extend(small().into_iter().filter(|(name, _)| name == "tracez").map(|(_, bytes)| bytes));
    fuzz("tracez", &seeds, import);
}

#[test]
fn archives_of_any_bytes() {
    let archives = ["xz", "gzip", "bzip2", "zstd"];
    let mut seeds = read_cases(|name| archives.iter().any(|archive| name.starts_with(archive)));
    seeds.extend(small().into_iter().filter(|(name, _)| archives.contains(&&**name)).map(|c| c.1));
    fuzz("archives", &seeds, import);
}

#[test]
fn logs_of_any_bytes() {
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/golden/memlog-v1.txt");
    fuzz("logs", &[fs::read(good).unwrap()], import);
}

#[test]
fn lists_of_any_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("kernelslist.g");
    fs::write(folder.path().join("kernel-1.traceg"), "-kernel name = k\n").unwrap();
    fuzz("lists", &read_cases(|name| name.contains("list")), |bytes| {
        fs::write(&list, bytes).unwrap();
        let _ = sources(std::slice::from_ref(&list));
    });
}

#[test]
fn stores_of_any_bytes() {
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/golden/v1.gpt");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gpt");
    fuzz("stores", &[fs::read(good).unwrap()], |bytes| {
        // Half of them with checksums made right, as a forger would.
        let mut bytes = bytes.to_vec();
        if bytes.len() > 80 && bytes.len() % 2 == 0 {
            forge(&mut bytes);
        }
        fs::write(&path, &bytes).unwrap();
        if let Ok(store) = Store::open(&path) {
            walk(&store, 100);
            let _ = (store.verify(), store.check_blocks(), store.content_hash());
        }
    });
}

/// Makes the checksums of header and index right.
fn forge(bytes: &mut [u8]) {
    let length = bytes.len();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let put = |bytes: &mut [u8], at: usize, number: u64| {
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    };
    put(bytes, 16, u64::try_from(length).unwrap());
    let index = usize::try_from(word(bytes, 24)).unwrap_or(usize::MAX).min(length);
    put(bytes, 32, u64::try_from(length - index).unwrap());
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[index..]);
    put(bytes, 40, sum);
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..72]);
    put(bytes, 72, sum);
}
