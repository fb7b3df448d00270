//! LZ4 blocks, in which older toolkits compress device code.

/// Decompresses `input`, which becomes `size` bytes; none when it is damaged.
pub(super) fn decompress(input: &[u8], size: usize) -> Option<Vec<u8>> {
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
        let offset = usize::from(super::bytes::u16_at(input, at)?);
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
    use super::decompress;

    #[test]
    fn matches_may_overlap_what_they_make() {
        // "ab", then 10 bytes from 2 back, then the literal "c".
        let packed = [0x26, b'a', b'b', 2, 0, 0x10, b'c'];
        assert_eq!(decompress(&packed, 13).unwrap(), b"abababababab\x63");
        assert_eq!(decompress(&packed, 14), None);
        assert_eq!(decompress(&[0x26, b'a', b'b', 9, 0, 0x10, b'c'], 13), None);
    }
}
