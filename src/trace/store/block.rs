//! Compressed blocks of a store: checked, then decompressed.

use std::io::Read;

use gpumodel_core::units::{to_u64, to_usize};

use super::content_hash::checksum;
use super::file::StoreFile;
use super::layout::{BlockRow, LARGEST_BLOCK};
use crate::error::Fault;

/// Memory that is reserved before it is known that the bytes are there.
const FIRST_GUESS: u64 = 1 << 22;

/// The bytes of the block `row` of `file`, verified and decompressed.
pub(super) fn read(file: &StoreFile, row: &BlockRow) -> Result<Vec<u8>, Fault> {
    let stored = stored(file, row)?;
    decompress(&stored, u64::from(row.raw.get()))
}

/// Checks that the block `row` of `file` is as it was written.
pub(super) fn check(file: &StoreFile, row: &BlockRow) -> Result<(), Fault> {
    stored(file, row).map(|_| ())
}

fn stored(file: &StoreFile, row: &BlockRow) -> Result<Vec<u8>, Fault> {
    let bytes = file.read(row.offset.get(), u64::from(row.stored.get()))?;
    if row.checksum != checksum(&bytes) {
        let start = to_usize(row.offset.get());
        return Err(Fault::new(start, "the block's checksum", "another: the file is damaged"));
    }
    Ok(bytes)
}

/// Decompresses one block that should give `raw` bytes.
pub(super) fn decompress(stored: &[u8], raw: u64) -> Result<Vec<u8>, Fault> {
    let wrong = |found: String| Fault::new(0, format!("{raw} bytes after decompression"), found);
    if raw > LARGEST_BLOCK {
        return Err(Fault::new(
            0,
            format!("a block of at most {LARGEST_BLOCK} bytes"),
            raw.to_string(),
        ));
    }
    let decoder = zstd::stream::read::Decoder::with_buffer(stored);
    let mut bytes = Vec::with_capacity(to_usize(raw.min(FIRST_GUESS)));
    let mut limited = decoder.map_err(|e| wrong(e.to_string()))?.take(raw + 1);
    limited.read_to_end(&mut bytes).map_err(|e| wrong(e.to_string()))?;
    if to_u64(bytes.len()) != raw {
        return Err(wrong("another number".to_owned()));
    }
    Ok(bytes)
}
