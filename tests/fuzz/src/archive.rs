//! Text in archives: a mutation of compressed bytes seldom passes their checksums.

use std::borrow::Cow;
use std::io::Write;

/// The bytes themselves, or what the first of them asks for: a byte from 1 to 4, which
/// no text starts with, packs the rest but two; these say where the archive is cut.
pub fn unfolded(bytes: &[u8]) -> Cow<'_, [u8]> {
    let [kind @ 1..=4, low, high, text @ ..] = bytes else { return Cow::Borrowed(bytes) };
    let mut packed = match kind {
        1 => xz(text),
        2 => gzip(text),
        3 => bzip2(text),
        _ => zstd::bulk::compress(text, 1).unwrap_or_default(),
    };
    let cut = usize::from(u16::from_le_bytes([*low, *high]));
    if cut > 0 {
        packed.truncate(packed.len().saturating_sub(cut % 64));
    }
    Cow::Owned(packed)
}

fn xz(text: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
    encoder.write_all(text).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn bzip2(text: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(text).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
