//! Stores with correct checksums; otherwise only checksums would be fuzzed.
//!
//! The layout is that of `src/trace/store/layout.rs`.

use xxhash_rust::xxh3::xxh3_64;

const HEADER: usize = 80;
const HEAD: usize = 32;
const KERNEL: usize = 140;
const COMMAND: usize = 20;
const BLOCK: usize = 24;
const CHUNK: usize = 2 * BLOCK + 12;

fn word(bytes: &[u8], at: usize) -> usize {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0, u32::from_le_bytes) as usize
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    eight.map_or(0, u64::from_le_bytes)
}

fn put(bytes: &mut [u8], at: usize, number: u64, length: usize) {
    if let Some(place) = bytes.get_mut(at..at + length) {
        place.copy_from_slice(&number.to_le_bytes()[..length]);
    }
}

/// Where the rows of blocks lie in an index, as far as it reaches.
fn block_rows(index: &[u8]) -> Vec<usize> {
    let [kernels, commands, chunks, codes] = [0, 4, 8, 12].map(|at| word(index, at));
    let first = HEAD
        .saturating_add(kernels.saturating_mul(KERNEL))
        .saturating_add(commands.saturating_mul(COMMAND));
    let after = first.saturating_add(chunks.saturating_mul(CHUNK));
    let chunks = (0..chunks).map(|n| first.saturating_add(n.saturating_mul(CHUNK)));
    let fits = |at: &usize| at.checked_add(BLOCK).is_some_and(|end| end <= index.len());
    let chunks = chunks.take_while(fits).flat_map(|at| [at, at + BLOCK]).filter(fits);
    let codes = (0..codes).map(|n| after.saturating_add(n.saturating_mul(BLOCK)));
    chunks.chain(codes.take_while(fits)).collect()
}

/// Makes all checksums of a store's bytes right, and the sizes in its header.
pub fn forged(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let length = bytes.len();
    if length < HEADER {
        return bytes;
    }
    put(&mut bytes, 16, length as u64, 8);
    let index = usize::try_from(long(&bytes, 24)).unwrap_or(length).min(length);
    put(&mut bytes, 32, (length - index) as u64, 8);
    for row in block_rows(&bytes[index..]) {
        let at = index + row;
        let start = usize::try_from(long(&bytes, at)).unwrap_or(length);
        let end = start.saturating_add(word(&bytes, at + 8));
        if let Some(stored) = bytes.get(start..end) {
            let sum = xxh3_64(stored);
            put(&mut bytes, at + 16, sum, 8);
        }
    }
    let sum = xxh3_64(&bytes[index..]);
    put(&mut bytes, 40, sum, 8);
    let sum = xxh3_64(&bytes[..72]);
    put(&mut bytes, 72, sum, 8);
    bytes
}

/// One section of an unpacked store: its length in two bytes, then as much as is there.
fn section<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let [low, high, rest @ ..] = *bytes else { return std::mem::take(bytes) };
    let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (taken, rest) = rest.split_at(length);
    *bytes = rest;
    taken
}

/// The store that is made of sections: header, rows of the index, texts, and the blocks
/// in the order of their rows, all unpacked, so that mutations reach what is within.
pub fn assembled(mut input: &[u8]) -> Vec<u8> {
    let input = &mut input;
    let (header, rows, texts) = (section(input), section(input), section(input));
    let (mut store, mut rows) = (header.to_vec(), rows.to_vec());
    store.resize(HEADER, 0);
    for at in block_rows(&rows) {
        let raw = section(input);
        let stored = if raw.is_empty() { Vec::new() } else { packed(raw) };
        put(&mut rows, at, store.len() as u64, 8);
        put(&mut rows, at + 8, stored.len() as u64, 4);
        put(&mut rows, at + 12, raw.len() as u64, 4);
        store.extend_from_slice(&stored);
    }
    let texts_stored = packed(texts);
    put(&mut rows, 16, texts_stored.len() as u64, 8);
    put(&mut rows, 24, texts.len() as u64, 8);
    let index = store.len() as u64;
    put(&mut store, 24, index, 8);
    store.extend_from_slice(&rows);
    store.extend_from_slice(&texts_stored);
    forged(&store)
}

fn packed(raw: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(raw, 1).unwrap_or_default()
}

/// The sections of a good store: what [`assembled`] takes.
pub fn disassembled(store: &[u8]) -> Option<Vec<u8>> {
    let index = store.get(usize::try_from(long(store, 24)).ok()?..)?;
    let texts = index.len().checked_sub(usize::try_from(long(index, 16)).ok()?)?;
    let mut out = Vec::new();
    let mut add = |bytes: &[u8]| {
        out.extend_from_slice(&u16::try_from(bytes.len()).ok()?.to_le_bytes());
        out.extend_from_slice(bytes);
        Some(())
    };
    add(&store[..HEADER])?;
    add(&index[..texts])?;
    add(&zstd::stream::decode_all(&index[texts..]).ok()?)?;
    for at in block_rows(&index[..texts]) {
        let start = usize::try_from(long(index, at)).ok()?;
        let stored = store.get(start..start + word(index, at + 8))?;
        let raw =
            if stored.is_empty() { Vec::new() } else { zstd::stream::decode_all(stored).ok()? };
        add(&raw)?;
    }
    Some(out)
}
