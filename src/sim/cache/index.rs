//! Which set a line belongs to.

use std::sync::Arc;

use crate::config::{AddressMap, SetHash};
use gpumodel_core::units::{to_u32, to_usize};

/// Irreducible polynomials over GF(2) by degree, lowest first, with their
/// leading bit (tables of primitive polynomials, e.g. Lidl & Niederreiter).
const POLYNOMIALS: [u64; 17] = [
    0x1, 0x3, 0x7, 0xb, 0x13, 0x25, 0x43, 0x83, 0x11d, 0x211, 0x409, 0x805, 0x1053, 0x201b, 0x4143,
    0x8003, 0x1100b,
];

/// A set index function for one cache.
#[derive(Clone, Debug)]
pub(crate) struct SetIndex {
    sets: u32,
    kind: Kind,
    /// Removes the bits of a line number that choose its slice; with the line's shift.
    within: Option<(Arc<AddressMap>, u32)>,
}

#[derive(Clone, Debug)]
enum Kind {
    Mask,
    Modulo,
    Xor {
        bits: u32,
    },
    /// Of lines of two to `shift` bytes.
    Fermi {
        shift: u32,
    },
    /// The XOR of what each byte value at each byte position gives.
    Tables(Arc<[[u16; 256]; 8]>),
}

impl SetIndex {
    /// An index of `sets` sets (at least 1) for lines of two to `line_shift` bytes. Polynomial and
    /// XOR hashing need a power of two above 1; other numbers of sets use the remainder of the
    /// division.
    pub(crate) fn new(sets: u32, hash: SetHash, line_shift: u32) -> Self {
        let kind = if !sets.is_power_of_two() || sets > 1 << 16 {
            Kind::Modulo
        } else if sets == 1 {
            Kind::Mask
        } else {
            match hash {
                SetHash::Linear => Kind::Mask,
                SetHash::Xor => Kind::Xor { bits: sets.trailing_zeros() },
                SetHash::Ipoly => Kind::Tables(tables(&powers(sets.trailing_zeros()))),
                SetHash::Fermi => Kind::Fermi { shift: line_shift },
            }
        };
        Self { sets, kind, within: None }
    }

    /// The same for the lines of `1 << shift` bytes of one slice, by their number within it: the
    /// lines of a block of memory fall on the sets of a slice evenly. V100, A100, H100 and L40
    /// keep a buffer of 90 to 97 % of their L2 (te42kyfo/gpu-benches, largest buffer at L2
    /// latency). Accel-Sim's L2 removes the bits of the partition first as well.
    pub(crate) fn within_slice(self, map: Arc<AddressMap>, shift: u32) -> Self {
        let is_linear = map.divides_linearly() && !matches!(self.kind, Kind::Modulo);
        let index = Self { within: Some((map, shift)), ..self };
        if !is_linear {
            return index;
        }
        let image = |bit: usize| u16::try_from(index.of(1_u64 << bit)).expect("at most 2^16 sets");
        Self { kind: Kind::Tables(tables(&std::array::from_fn(image))), within: None, ..index }
    }

    /// The set of line number `line` (address over line size).
    #[inline]
    pub(crate) fn of(&self, line: u64) -> u32 {
        let line = match &self.within {
            Some((map, shift)) => map.within_slice(line << shift) >> shift,
            None => line,
        };
        match &self.kind {
            Kind::Mask => to_u32(line & u64::from(self.sets - 1)),
            Kind::Modulo => to_u32(line % u64::from(self.sets)),
            Kind::Xor { bits } => to_u32((line ^ (line >> bits)) & u64::from(self.sets - 1)),
            Kind::Fermi { shift } => fermi(line, *shift) & (self.sets - 1),
            Kind::Tables(table) => {
                let bytes = line.to_le_bytes();
                let mix = bytes
                    .iter()
                    .zip(table.iter())
                    .fold(0, |mix, (&b, row)| mix ^ row[usize::from(b)]);
                u32::from(mix)
            }
        }
    }
}

/// Five bits of the line number XOR address bits 13, 14, 15, 17 and 19; above them address bit
/// 12 (Nugteren et al., HPCA 2014, table 2; GPGPU-Sim's `gpu-cache.cc` has the same).
fn fermi(line: u64, shift: u32) -> u32 {
    let address = line << shift;
    let upper = (address >> 13 & 0b111) | (address >> 17 & 1) << 3 | (address >> 19 & 1) << 4;
    let lower = (line & 0b1_1111) ^ upper;
    to_u32(lower | (address >> 12 & 1) << 5)
}

/// The remainders of the powers of x, lowest first, by the polynomial of a degree.
fn powers(degree: u32) -> [u16; 64] {
    let polynomial = POLYNOMIALS[to_usize(degree)];
    let mut powers = [0_u16; 64];
    let mut value = 1_u64;
    for power in &mut powers {
        *power = u16::try_from(value).expect("a remainder is below 2^16");
        value <<= 1;
        if value >> degree & 1 == 1 {
            value ^= polynomial;
        }
    }
    powers
}

/// What each byte value at each byte position gives, from what each bit gives.
fn tables(images: &[u16; 64]) -> Arc<[[u16; 256]; 8]> {
    let mut table = [[0_u16; 256]; 8];
    for (position, row) in table.iter_mut().enumerate() {
        for (byte, entry) in row.iter_mut().enumerate() {
            *entry = (0..8)
                .filter(|bit| byte >> bit & 1 == 1)
                .fold(0, |mix, bit| mix ^ images[position * 8 + bit]);
        }
    }
    Arc::new(table)
}

#[cfg(test)]
mod tests {
    use super::SetIndex;
    use crate::config::SetHash;

    #[test]
    fn polynomial_spreads_every_power_of_two_stride() {
        let index = SetIndex::new(64, SetHash::Ipoly, 7);
        for shift in 0..20 {
            let mut seen = [0_u32; 64];
            for k in 0..64_u64 {
                seen[index.of(k << shift) as usize] += 1;
            }
            assert_eq!(seen, [1; 64], "stride 2^{shift}");
        }
    }

    #[test]
    fn every_kind_stays_inside() {
        for sets in [1, 4, 24, 64, 512] {
            for hash in [SetHash::Linear, SetHash::Xor, SetHash::Ipoly, SetHash::Fermi] {
                let index = SetIndex::new(sets, hash, 7);
                assert!(
                    (0..5_000_u64).all(|k| index.of(k.wrapping_mul(0x9e37_79b9_7f4a_7c15)) < sets)
                );
            }
        }
    }

    #[test]
    fn fermi_takes_bits_7_to_11_and_five_upper_ones() {
        let set = |sets: u32, address: u64| SetIndex::new(sets, SetHash::Fermi, 7).of(address >> 7);
        for (bit, of_64) in [
            (7, 1),
            (8, 2),
            (9, 4),
            (10, 8),
            (11, 16),
            (12, 32),
            (13, 1),
            (14, 2),
            (15, 4),
            (16, 0),
            (17, 8),
            (18, 0),
            (19, 16),
            (20, 0),
        ] {
            assert_eq!(set(64, 1 << bit), of_64, "bit {bit}");
            assert_eq!(set(32, 1 << bit), of_64 % 32, "bit {bit}");
        }
        assert_eq!(set(64, 1 << 7 | 1 << 13), 0, "they cancel out");
    }
}
