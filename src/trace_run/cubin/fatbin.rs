//! Fat binaries: PTX and cubins of several architectures in one container, plain or compressed
//! (LZ4, zstd).

use super::{index_at, u16_at, u32_at, u64_at};
use crate::RunError;

const MAGIC: u32 = 0xba55_ed50;
const HEADER: usize = 16;
const KIND_PTX: u16 = 1;
const KIND_CUBIN: u16 = 2;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
/// Most bytes of a decompressed entry: a bound on memory.
const LARGEST: usize = 1 << 31;

/// One entry of a fat binary.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    kind: u16,
    /// Its architecture, as 80.
    pub sm: u32,
    flags: u64,
    packed: &'a [u8],
    size: usize,
}

/// Bytes of the fat binary whose first 16 bytes are `head`.
#[must_use]
pub fn total_bytes(head: &[u8]) -> Option<usize> {
    (u32_at(head, 0)? == MAGIC).then_some(())?;
    index_at(head, 8)?.checked_add(usize::from(u16_at(head, 6)?))
}

/// The entries of the fat binary `bytes`.
///
/// # Errors
/// When it is damaged.
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, RunError> {
    let damaged = || RunError::code("the program's fat binary is damaged");
    let end = total_bytes(bytes).filter(|&end| end <= bytes.len()).ok_or_else(damaged)?;
    let mut at = usize::from(u16_at(bytes, 6).ok_or_else(damaged)?).max(HEADER);
    let mut entries = Vec::new();
    while at < end {
        let (entry, next) = entry(&bytes[..end], at).ok_or_else(damaged)?;
        entries.push(entry);
        at = next;
    }
    Ok(entries)
}

fn entry(bytes: &[u8], at: usize) -> Option<(Entry<'_>, usize)> {
    let head = bytes.get(at..)?;
    let header = usize::try_from(u32_at(head, 4)?).ok()?;
    let padded = index_at(head, 8)?;
    let packed_bytes = usize::try_from(u32_at(head, 16)?).ok()?;
    let next = at.checked_add(header)?.checked_add(padded)?;
    let body = bytes.get(at + header..next)?;
    let flags = u64_at(head, 40)?;
    let packed = flags & (FLAG_LZ4 | FLAG_ZSTD) != 0;
    let body = if packed { body.get(..packed_bytes)? } else { body };
    let size = if packed { index_at(head, 56)? } else { body.len() };
    let entry = Entry { kind: u16_at(head, 0)?, sm: u32_at(head, 28)?, flags, packed: body, size };
    (next > at).then_some((entry, next))
}

impl Entry<'_> {
    /// Whether it is a cubin.
    #[must_use]
    pub fn is_cubin(&self) -> bool {
        self.kind == KIND_CUBIN
    }

    /// Its bytes.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn unpacked(&self) -> Result<Vec<u8>, RunError> {
        let done = match (self.flags & FLAG_LZ4 != 0, self.flags & FLAG_ZSTD != 0) {
            _ if self.size > LARGEST => None,
            (true, _) => decompress(self.packed, self.size),
            (_, true) => zstd::bulk::decompress(self.packed, self.size).ok(),
            _ => Some(self.packed.to_vec()),
        };
        done.ok_or_else(|| RunError::code("an entry of the program's fat binary is damaged"))
    }
}

/// The cubin that a device of compute capability `sm` runs: of the same generation, the newest
/// one that is not newer than it.
///
/// # Errors
/// When there is none; the error names what there is.
pub fn choose<'a, 'b>(entries: &'a [Entry<'b>], sm: u32) -> Result<&'a Entry<'b>, RunError> {
    let fits = |one: &&Entry<'_>| one.is_cubin() && one.sm / 10 == sm / 10 && one.sm <= sm;
    entries.iter().filter(fits).max_by_key(|one| one.sm).ok_or_else(|| {
        let names: Vec<String> = entries
            .iter()
            .map(|one| match one.kind {
                KIND_PTX => format!("PTX of sm_{}", one.sm),
                _ => format!("sm_{}", one.sm),
            })
            .collect();
        RunError::code(format!(
            "the program has code for {}, and the device is sm_{sm}; compile with -arch=sm_{sm}, \
             or choose another --device",
            if names.is_empty() { "no device".to_owned() } else { names.join(", ") }
        ))
    })
}

/// Decompresses an LZ4 block, in which older toolkits compress device code: `input` becomes `size`
/// bytes; none when it is damaged.
fn decompress(input: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let token = *input.get(at)?;
        at += 1;
        let literals = length(input, &mut at, token >> 4)?;
        out.extend_from_slice(input.get(at..at.checked_add(literals)?)?);
        at += literals;
        if at == input.len() || out.len() >= size {
            break;
        }
        let offset = usize::from(u16_at(input, at)?);
        at += 2;
        let matched = length(input, &mut at, token & 15)?.checked_add(4)?;
        let from = out.len().checked_sub(offset).filter(|_| offset > 0)?;
        if matched > size.saturating_sub(out.len()) {
            return None;
        }
        for place in from..from + matched {
            out.push(out[place]);
        }
    }
    (out.len() == size).then_some(out)
}

/// A length whose first four bits are `nibble`.
fn length(input: &[u8], at: &mut usize, nibble: u8) -> Option<usize> {
    let mut length = usize::from(nibble);
    if nibble < 15 {
        return Some(length);
    }
    loop {
        let more = *input.get(*at)?;
        *at += 1;
        length = length.checked_add(usize::from(more))?;
        if more < 255 {
            return Some(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{choose, decompress, entries};

    fn fat(parts: &[(u16, u32, u64, &[u8], usize)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, sm, flags, bytes, size) in parts {
            let padded = bytes.len().next_multiple_of(8);
            let mut head = vec![0; 64];
            head[0..2].copy_from_slice(&kind.to_le_bytes());
            head[4..8].copy_from_slice(&64_u32.to_le_bytes());
            head[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
            head[16..20].copy_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
            head[28..32].copy_from_slice(&sm.to_le_bytes());
            head[40..48].copy_from_slice(&flags.to_le_bytes());
            head[56..64].copy_from_slice(&(*size as u64).to_le_bytes());
            body.extend(head);
            body.extend_from_slice(bytes);
            body.resize(body.len() + padded - bytes.len(), 0);
        }
        let mut all = Vec::from(super::MAGIC.to_le_bytes());
        all.extend([1, 0, 16, 0]);
        all.extend((body.len() as u64).to_le_bytes());
        all.extend(body);
        all
    }

    #[test]
    fn entries_are_unpacked_whatever_packed_them() {
        let text = b"the same text, the same text, the same text";
        let zstd = zstd::bulk::compress(text, 3).unwrap();
        let all = fat(&[(2, 80, 0x8000, &zstd, text.len()), (1, 90, 0, b"12345678", 0)]);
        let read = entries(&all).unwrap();
        assert_eq!(read[0].unpacked().unwrap(), text);
        assert_eq!(read[1].unpacked().unwrap(), b"12345678");
        assert_eq!(choose(&read, 86).unwrap().sm, 80);
        let error = choose(&read, 90).unwrap_err().to_string();
        assert!(error.contains("sm_80, PTX of sm_90"), "{error}");
        for end in 0..all.len() {
            assert!(entries(&all[..end]).is_err());
        }
    }

    #[test]
    fn matches_may_overlap_what_they_make() {
        // "ab", then 10 bytes from 2 back, then the literal "c".
        let packed = [0x26, b'a', b'b', 2, 0, 0x10, b'c'];
        assert_eq!(decompress(&packed, 13).unwrap(), b"abababababab\x63");
        assert_eq!(decompress(&packed, 14), None);
        assert_eq!(decompress(&[0x26, b'a', b'b', 9, 0, 0x10, b'c'], 13), None);
    }
}
