//! Tensor maps: what `cuTensorMapEncodeTiled` writes into 128 bytes, and the rows of a box.
//!
//! NVIDIA does not publish its encoding. This one is, in little-endian bytes:
//!
//! | bytes | content |
//! |---|---|
//! | 0 to 3 | `GPMT` |
//! | 4 to 6 | element type, dimensions, swizzle, numbered as `CUtensorMapDataType` and so on |
//! | 8 to 15 | address |
//! | 16 to 35 | elements of each dimension, less one, 4 bytes each |
//! | 36 to 45 | elements of a box, 2 bytes each |
//! | 46 to 50 | element strides, 1 byte each |
//! | 64 to 95 | bytes from an element to the next of dimensions 1 to 4 |

/// Bytes of a tensor map.
pub const TENSOR_MAP_BYTES: usize = 128;
/// Most dimensions.
pub const MOST_DIMENSIONS: usize = 5;
const MARK: [u8; 4] = *b"GPMT";

/// What an element of a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Element {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F64,
    Bf16,
}

impl Element {
    /// That of a number of `CUtensorMapDataType`.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::U8,
            1 => Self::U16,
            2 => Self::U32,
            3 => Self::S32,
            4 => Self::U64,
            5 => Self::S64,
            6 => Self::F16,
            // With and without denormal numbers, and TF32, which has the bits of a single.
            7 | 10..=12 => Self::F32,
            8 => Self::F64,
            9 => Self::Bf16,
            _ => return None,
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }
}

/// A tensor in global memory, and the boxes in which it is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Number of the element type in `CUtensorMapDataType`.
    pub kind: u8,
    /// Dimensions.
    pub rank: usize,
    /// Number of the swizzle: 0, and of 32, 64 and 128 bytes.
    pub swizzle: u8,
    /// Where the first element lies.
    pub address: u64,
    /// Elements of each dimension, the innermost first.
    pub size: [u64; MOST_DIMENSIONS],
    /// Bytes from an element to the next of dimensions 1 to 4.
    pub strides: [u64; MOST_DIMENSIONS - 1],
    /// Elements of a box.
    pub extent: [u16; MOST_DIMENSIONS],
    /// Of each dimension but the first, every how many elements one is copied.
    pub steps: [u8; MOST_DIMENSIONS],
}

impl TensorMap {
    /// Its 128 bytes; none where it is no map that a card has.
    #[must_use]
    pub fn encoded(&self) -> Option<[u8; TENSOR_MAP_BYTES]> {
        self.is_possible().then_some(())?;
        let mut bytes = [0; TENSOR_MAP_BYTES];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..7].copy_from_slice(&[self.kind, u8::try_from(self.rank).ok()?, self.swizzle]);
        bytes[8..16].copy_from_slice(&self.address.to_le_bytes());
        for place in 0..MOST_DIMENSIONS {
            let size = u32::try_from(self.size[place] - 1).ok()?;
            bytes[16 + 4 * place..][..4].copy_from_slice(&size.to_le_bytes());
            bytes[36 + 2 * place..][..2].copy_from_slice(&self.extent[place].to_le_bytes());
            bytes[46 + place] = self.steps[place];
        }
        for (place, stride) in self.strides.iter().enumerate() {
            bytes[64 + 8 * place..][..8].copy_from_slice(&stride.to_le_bytes());
        }
        Some(bytes)
    }

    /// From its bytes.
    #[must_use]
    pub fn read(bytes: &[u8; TENSOR_MAP_BYTES]) -> Option<Self> {
        let word = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or(0);
        let size = |n: usize| (word(16 + 4 * n) & 0xffff_ffff) + 1;
        let extent = |n: usize| u16::from_le_bytes([bytes[36 + 2 * n], bytes[37 + 2 * n]]);
        let map = Self {
            kind: bytes[4],
            rank: bytes[5].into(),
            swizzle: bytes[6],
            address: word(8),
            size: std::array::from_fn(size),
            strides: std::array::from_fn(|n| word(64 + 8 * n)),
            extent: std::array::from_fn(extent),
            steps: std::array::from_fn(|n| bytes[46 + n]),
        };
        (bytes[..4] == MARK && map.is_possible()).then_some(map)
    }

    /// The limits that NVIDIA's driver API documents for `cuTensorMapEncodeTiled`.
    fn is_possible(&self) -> bool {
        let Some(element) = Element::of(self.kind) else { return false };
        let row = self.row_bytes(element);
        let sizes = self.size.iter().all(|size| (1..=1 << 32).contains(size));
        let boxes = self.extent.iter().all(|extent| (1..=256).contains(extent));
        let steps = self.steps.iter().all(|step| (1..=8).contains(step));
        let used = &self.strides[..self.rank.clamp(1, MOST_DIMENSIONS) - 1];
        let strides = used.iter().all(|stride| stride % 16 == 0 && *stride < 1 << 40);
        let span = if self.swizzle == 0 { usize::MAX } else { 16 << self.swizzle };
        let layout = row.is_multiple_of(16) && row <= span && self.swizzle <= 3;
        let place = (1..=MOST_DIMENSIONS).contains(&self.rank) && self.address.is_multiple_of(16);
        place && sizes && boxes && steps && strides && layout
    }

    fn row_bytes(&self, element: Element) -> usize {
        usize::from(self.extent[0]) * element.bytes()
    }

    /// What its elements are.
    pub(crate) fn element(&self) -> Element {
        Element::of(self.kind).unwrap_or(Element::U8)
    }

    /// Elements of a box in one dimension that are copied.
    fn count(&self, dimension: usize) -> usize {
        let step = if dimension == 0 { 1 } else { usize::from(self.steps[dimension]) };
        usize::from(self.extent[dimension]).div_ceil(step.max(1))
    }

    /// Bytes of a box.
    pub(crate) fn box_bytes(&self) -> usize {
        (0..self.rank).map(|place| self.count(place)).product::<usize>() * self.element().bytes()
    }

    /// The part of each row of a box that lies in the tensor; `at` is its first element.
    pub(crate) fn rows(&self, at: [i32; MOST_DIMENSIONS]) -> Vec<Row> {
        let bytes = self.element().bytes();
        let first = i64::from(at[0]);
        let from = first.max(0);
        let to = (first + i64::from(self.extent[0])).min(self.size[0].cast_signed());
        let Some(inside) = usize::try_from(to - from).ok().filter(|&count| count > 0) else {
            return Vec::new();
        };
        let lead = usize::try_from(from - first).unwrap_or(0) * bytes;
        let row_bytes = usize::from(self.extent[0]) * bytes;
        let rows: usize = (1..self.rank).map(|place| self.count(place)).product();
        let row = |number: usize| {
            let offset = self.offset(number, at)?.wrapping_add(from.cast_unsigned() * bytes as u64);
            let address = self.address.wrapping_add(offset);
            Some(Row { address, offset: number * row_bytes + lead, bytes: inside * bytes })
        };
        (0..rows).filter_map(row).collect()
    }

    /// Bytes from the tensor's first element to a row of a box; none where it is outside.
    fn offset(&self, number: usize, at: [i32; MOST_DIMENSIONS]) -> Option<u64> {
        let (mut left, mut offset) = (number, 0_u64);
        for (place, at) in at.into_iter().enumerate().take(self.rank).skip(1) {
            let index = left % self.count(place) * usize::from(self.steps[place]);
            left /= self.count(place);
            let element = i64::from(at) + i64::try_from(index).ok()?;
            let element = u64::try_from(element).ok().filter(|&one| one < self.size[place])?;
            offset = offset.wrapping_add(element.wrapping_mul(self.strides[place - 1]));
        }
        Some(offset)
    }
}

/// A part of a row of a box that lies in the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Where it lies in global memory.
    pub(crate) address: u64,
    /// Where it lies in the box.
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// Where a byte at a place of shared memory goes: with a swizzle of 32, 64 or 128 bytes, numbered
/// 1, 2 and 3, the number of its 16 bytes changes with that of the 128 bytes (PTX ISA, tensor
/// swizzle modes; CUTLASS, `Swizzle<B, 4, 3>`).
pub(crate) fn swizzled(place: usize, swizzle: u8) -> usize {
    place ^ (place >> 3 & ((1 << swizzle) - 1) << 4)
}

#[cfg(test)]
mod tests {
    use super::{Row, TensorMap, swizzled};

    const MAP: TensorMap = TensorMap {
        kind: 7,
        rank: 2,
        swizzle: 1,
        address: 0x1000,
        size: [10, 5, 1, 1, 1],
        strides: [48, 0, 0, 0],
        extent: [8, 2, 1, 1, 1],
        steps: [1; 5],
    };

    #[test]
    fn a_map_is_what_was_encoded() {
        assert_eq!(TensorMap::read(&MAP.encoded().unwrap()), Some(MAP));
        let wide = TensorMap { size: [1 << 32, 3, 4, 5, 6], rank: 5, strides: [64; 4], ..MAP };
        assert_eq!(TensorMap::read(&wide.encoded().unwrap()), Some(wide));
        for wrong in [
            TensorMap { kind: 40, ..MAP },
            TensorMap { rank: 6, ..MAP },
            TensorMap { extent: [16, 2, 1, 1, 1], ..MAP },
            TensorMap { extent: [7, 2, 1, 1, 1], ..MAP },
            TensorMap { strides: [40, 0, 0, 0], ..MAP },
            TensorMap { address: 8, ..MAP },
        ] {
            assert_eq!(wrong.encoded(), None, "{wrong:?}");
        }
        assert_eq!(TensorMap::read(&[0; 128]), None);
    }

    #[test]
    fn rows_of_a_box_are_cut_where_the_tensor_ends() {
        let row = |address, offset, bytes| Row { address, offset, bytes };
        assert_eq!(MAP.rows([0; 5]), [row(0x1000, 0, 32), row(0x1030, 32, 32)]);
        assert_eq!(MAP.rows([-2, 4, 0, 0, 0]), [row(0x10c0, 8, 24)]);
        assert_eq!(MAP.rows([6, -1, 0, 0, 0]), [row(0x1018, 32, 16)]);
        assert_eq!(MAP.rows([10, 0, 0, 0, 0]), []);
        let skips = TensorMap { extent: [8, 4, 1, 1, 1], steps: [1, 2, 1, 1, 1], ..MAP };
        assert_eq!(skips.rows([0; 5])[1], row(0x1060, 32, 32));
        assert_eq!((MAP.box_bytes(), skips.box_bytes()), (64, 64));
    }

    #[test]
    fn sixteen_bytes_change_places_with_the_row_of_128() {
        let units = |row: usize, swizzle: u8| -> Vec<usize> {
            (0..8).map(|unit| swizzled(128 * row + 16 * unit, swizzle) / 16 % 8).collect()
        };
        assert_eq!(units(3, 3), [3, 2, 1, 0, 7, 6, 5, 4]);
        assert_eq!(units(6, 2), [2, 3, 0, 1, 6, 7, 4, 5]);
        assert_eq!(units(1, 1), [1, 0, 3, 2, 5, 4, 7, 6]);
        assert_eq!(units(5, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
