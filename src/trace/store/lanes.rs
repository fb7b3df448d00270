//! The lane pattern of one access: a constant step between lanes, or a list of
//! differences between one active lane and the next, packed.
//!
//! A packed list is one byte (six bits: zero bits cut off below; bit 6: form)
//! and then, as form 0, one signed number per difference; as form 1, a byte
//! with a width in bits, the smallest offset from the base as a signed number,
//! and every offset above that smallest one in that many bits, low bits first.

use gpumodel_core::isa::{Access, AddressMode};
use gpumodel_core::units::{WARP_LANES, to_u32, to_u64, to_usize};

use super::varint;

/// Bit of the head byte that says that offsets are packed in equal widths.
const PACKED: u8 = 0x40;

/// True when the set bits of `mask` are neighbours.
#[inline]
pub(crate) const fn contiguous(mask: u32) -> bool {
    let low = mask >> (mask.trailing_zeros() & 31);
    low & low.wrapping_add(1) == 0
}

/// The constant step between lanes that explains `deltas` (differences between
/// successive active lanes of `mask`), if there is one.
pub(crate) fn step(mask: u32, deltas: &[i64]) -> Option<i64> {
    let mut lanes = Lanes(mask);
    let mut last = lanes.next()?;
    let mut found = None;
    for (lane, &delta) in lanes.zip(deltas) {
        let gap = i64::from(lane - last);
        last = lane;
        let step = match found {
            Some(step) => step,
            None if delta.checked_rem(gap) == Some(0) => delta / gap,
            None => return None,
        };
        if step.wrapping_mul(gap) != delta {
            return None;
        }
        found = Some(step);
    }
    found
}

/// The set bits of a mask, lowest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes(pub(crate) u32);

impl Iterator for Lanes {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// Appends `deltas` in the shorter form.
pub(crate) fn pack(deltas: &[i64], out: &mut Vec<u8>) {
    let shift = deltas.iter().fold(0, |all, d| all | d).trailing_zeros() & 63;
    let lengths = deltas.iter().map(|delta| varint::length(varint::fold(delta >> shift)));
    let plain = 1 + lengths.sum::<usize>();
    let offsets = Offsets::of(deltas);
    let packed = offsets.packed_bytes();
    // Plain bytes repeat, so a later compressor gains more from them.
    if packed + packed / 8 < plain {
        return offsets.pack(out);
    }
    out.push(varint::low_byte(u64::from(shift)));
    for delta in deltas {
        varint::put_signed(out, delta >> shift);
    }
}

/// Offsets of active lanes after the first from that one's address.
struct Offsets {
    /// Above the smallest.
    above: [u64; WARP_LANES],
    count: usize,
    least: i64,
    /// Zero bits below in all, and bits of the others.
    shift: u32,
    width: u32,
}

impl Offsets {
    fn of(deltas: &[i64]) -> Self {
        let mut sum = 0_i64;
        let mut offsets = [0_i64; WARP_LANES];
        for (offset, delta) in offsets.iter_mut().zip(deltas) {
            sum = sum.wrapping_add(*delta);
            *offset = sum;
        }
        let count = deltas.len().min(WARP_LANES);
        let least = offsets[..count].iter().copied().min().unwrap_or(0);
        let mut above = [0; WARP_LANES];
        for (above, offset) in above.iter_mut().zip(&offsets[..count]) {
            *above = offset.wrapping_sub(least).cast_unsigned();
        }
        let all = above.iter().fold(0, |all, above| all | above);
        let shift = all.trailing_zeros() & 63;
        let width = u64::BITS - (all >> shift).leading_zeros();
        Self { above, count, least, shift, width }
    }

    /// Bytes of the packed form.
    fn packed_bytes(&self) -> usize {
        let bits = to_usize(self.width) * self.count;
        2 + varint::length(varint::fold(self.least)) + bits.div_ceil(8)
    }

    fn pack(&self, out: &mut Vec<u8>) {
        out.push(varint::low_byte(u64::from(self.shift)) | PACKED);
        out.push(varint::low_byte(u64::from(self.width)));
        varint::put_signed(out, self.least);
        let (mut bits, mut held) = (0_u128, 0);
        for above in &self.above[..self.count] {
            bits |= u128::from(above >> self.shift) << held;
            held += self.width;
            while held >= 8 {
                out.push(bits.to_le_bytes()[0]);
                bits >>= 8;
                held -= 8;
            }
        }
        if held > 0 {
            out.push(bits.to_le_bytes()[0]);
        }
    }
}

/// Passes a packed list of `count` differences at `*at`.
pub(crate) fn pass(bytes: &[u8], at: &mut usize, count: u32) {
    let head = bytes.get(*at).copied().unwrap_or(0);
    *at += 1;
    if head & PACKED == 0 {
        for _ in 0..count {
            varint::get(bytes, at);
        }
        return;
    }
    let width = bytes.get(*at).copied().unwrap_or(0).min(64);
    *at += 1;
    varint::get(bytes, at);
    *at += to_usize((u32::from(width) * count).div_ceil(8));
}

/// Reads a packed list at `at`: fills the addresses of the active lanes after
/// the first from the first one's, `base`.
pub(crate) fn unpack(bytes: &[u8], mut at: usize, base: u64, mask: u32, into: &mut Access) {
    let head = bytes.get(at).copied().unwrap_or(0);
    let shift = u32::from(head & 0x3f);
    at += 1;
    let mut lanes = Lanes(mask);
    let Some(first) = lanes.next() else { return };
    into.lanes[to_usize(first)] = base;
    if head & PACKED == 0 {
        let mut address = base;
        for lane in lanes {
            let delta = varint::unfold(varint::get(bytes, &mut at)) << shift;
            address = address.wrapping_add_signed(delta);
            into.lanes[to_usize(lane)] = address;
        }
        return;
    }
    let width = bytes.get(at).copied().unwrap_or(0).min(64);
    at += 1;
    let least = varint::unfold(varint::get(bytes, &mut at));
    let floor = base.wrapping_add_signed(least);
    let mut bit = 0;
    for lane in lanes {
        let above = bits(bytes, at, bit, u32::from(width));
        bit += u64::from(width);
        into.lanes[to_usize(lane)] = floor.wrapping_add(above << shift);
    }
}

/// `width` bits from bit `bit` after byte `at`; 0 beyond the end.
fn bits(bytes: &[u8], at: usize, bit: u64, width: u32) -> u64 {
    let from = at.saturating_add(to_usize(bit / 8));
    let mut word = [0; 16];
    let rest = bytes.get(from..).unwrap_or_default();
    let have = rest.len().min(word.len());
    word[..have].copy_from_slice(&rest[..have]);
    let wide = u128::from_le_bytes(word) >> (bit % 8);
    let kept = wide & ((1_u128 << width) - 1);
    u64::try_from(kept).unwrap_or(u64::MAX)
}

/// Fills `into` with equally spaced lanes; `full` lists every address.
#[inline]
pub(crate) fn spread(base: u64, step: i64, mask: u32, full: bool, into: &mut Access) {
    if !full && contiguous(mask) {
        into.mode = AddressMode::Stride;
        into.stride = step;
        return;
    }
    let first = mask.trailing_zeros();
    for lane in Lanes(mask) {
        let offset = step.wrapping_mul(i64::from(lane - first));
        into.lanes[to_usize(lane)] = base.wrapping_add_signed(offset);
    }
}

/// How many differences an access with `mask` has.
pub(crate) fn delta_count(mask: u32) -> u32 {
    to_u32(to_u64(mask.count_ones()).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::{contiguous, pack, pass, step, unpack};
    use gpumodel_core::isa::{Access, AddressMode};

    fn deltas(access: &Access) -> Vec<i64> {
        let addresses: Vec<u64> = access.active().map(|(_, address)| address).collect();
        addresses.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]).cast_signed()).collect()
    }

    fn survive(list: &[i64]) {
        let mask = u32::try_from((1_u64 << (list.len() + 1)) - 1).unwrap();
        let mut bytes = Vec::new();
        pack(list, &mut bytes);
        let mut end = 0;
        pass(&bytes, &mut end, u32::try_from(list.len()).unwrap());
        assert_eq!(end, bytes.len());
        let mut access = Access { mask, mode: AddressMode::Delta, ..Access::default() };
        unpack(&bytes, 0, 1 << 40, mask, &mut access);
        assert_eq!(deltas(&access), list);
    }

    #[test]
    fn lists_survive_in_both_forms() {
        survive(&[4; 31]);
        survive(&[0; 31]);
        survive(&[i64::MAX, 1, i64::MIN, -1]);
        let random: Vec<i64> = (1..32).map(|i| ((i * 0x9e37_79b9) % 0x3ff_ffff) * 4).collect();
        survive(&random);
    }

    #[test]
    fn a_step_counts_lanes_not_active_lanes() {
        assert_eq!(step(0b1011, &[4, 8]), Some(4));
        assert_eq!(step(0b1011, &[4, 4]), None);
        assert_eq!(step(0b101, &[3]), None);
        assert!(contiguous(0b1110) && !contiguous(0b1010) && contiguous(u32::MAX));
    }
}
