//! Numbers of variable length: seven bits per byte, low bits first; signed
//! numbers are folded so that small ones of either sign stay short.
//!
//! Reading is total: beyond the end of its bytes a [`Reader`] returns 0 and
//! remembers that it did, so foreign bytes never make it panic.

use gpumodel_core::units::to_usize;

use crate::error::ByteFault;

/// Appends `value`.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// Bytes of `value` as [`put`] writes it.
pub(crate) fn length(value: u64) -> usize {
    to_usize((u64::BITS - value.leading_zeros()).div_ceil(7).max(1))
}

/// Appends a signed `value`.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, fold(value));
}

/// Maps 0, -1, 1, -2, … to 0, 1, 2, 3, …
pub(crate) const fn fold(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The inverse of [`fold`].
pub(crate) const fn unfold(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// The lowest eight bits.
pub(crate) const fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

/// Reads the number at `*at` and moves past it; 0 beyond the end.
#[inline]
pub(crate) fn get(bytes: &[u8], at: &mut usize) -> u64 {
    match bytes.get(*at) {
        Some(&byte) if byte < 0x80 => {
            *at += 1;
            u64::from(byte)
        }
        _ => get_long(bytes, at),
    }
}

fn get_long(bytes: &[u8], at: &mut usize) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    while let Some(&byte) = bytes.get(*at) {
        *at += 1;
        if shift < 64 {
            value |= u64::from(byte & 0x7f) << shift;
        }
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// A position in bytes that remembers having run past the end.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    overrun: bool,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, overrun: false }
    }

    /// Bytes read so far.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    pub(crate) const fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next number.
    pub(crate) fn number(&mut self) -> u64 {
        self.overrun |= self.at >= self.bytes.len();
        get(self.bytes, &mut self.at)
    }

    /// The next signed number.
    pub(crate) fn signed(&mut self) -> i64 {
        unfold(self.number())
    }

    /// The next number as `u32`; larger ones count as damage.
    pub(crate) fn small(&mut self) -> u32 {
        let value = self.number();
        u32::try_from(value).unwrap_or_else(|_| {
            self.overrun = true;
            0
        })
    }

    /// The next number as a count of items of at least `bytes` bytes each that
    /// must still follow; a count that cannot be true counts as damage.
    pub(crate) fn count(&mut self, bytes: usize) -> usize {
        let value = usize::try_from(self.number()).unwrap_or(usize::MAX);
        if value.saturating_mul(bytes) > self.left() {
            self.overrun = true;
            return 0;
        }
        value
    }

    /// The next `count` bytes; empty when fewer are left.
    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let Some(bytes) = self.bytes.get(self.at..self.at.saturating_add(count)) else {
            self.overrun = true;
            return &[];
        };
        self.at += count;
        bytes
    }

    /// Moves on as `pass` does, which gets the bytes and the position.
    pub(crate) fn pass_with(&mut self, pass: impl FnOnce(&[u8], &mut usize)) {
        pass(self.bytes, &mut self.at);
        if self.at > self.bytes.len() {
            self.overrun = true;
            self.at = self.bytes.len();
        }
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Nothing was missing so far.
    ///
    /// # Errors
    /// A [`ByteFault`] at the position where `what` ended early.
    pub(crate) fn check(&self, what: &'static str) -> Result<(), ByteFault> {
        if self.overrun {
            return Err(ByteFault::new(self.at, what, "values that cannot be".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Reader, fold, length, put, put_signed, unfold};

    #[test]
    fn numbers_survive() {
        let mut bytes = Vec::new();
        let values = [0, 1, 127, 128, 300, u64::MAX, 1 << 63];
        for value in values {
            let start = bytes.len();
            put(&mut bytes, value);
            assert_eq!(bytes.len() - start, length(value));
            put_signed(&mut bytes, value.cast_signed());
        }
        let mut reader = Reader::new(&bytes);
        for value in values {
            assert_eq!(reader.number(), value);
            assert_eq!(reader.signed(), value.cast_signed());
        }
        assert!(reader.check("numbers").is_ok());
        assert_eq!(reader.number(), 0);
        assert!(reader.check("numbers").is_err());
    }

    #[test]
    fn folding_keeps_small_numbers_small() {
        assert_eq!([0, -1, 1, -2].map(fold), [0, 1, 2, 3]);
        assert_eq!(unfold(fold(i64::MIN)), i64::MIN);
    }
}
