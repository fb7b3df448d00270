//! Textures and surfaces: what a coordinate reads, as NVIDIA's programming guide defines it.

use super::lanes::{Scope, low};

/// What coordinates outside of a texture read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressMode {
    /// The texture repeats; coordinates from 0 to 1 only.
    Wrap,
    /// The nearest texel.
    #[default]
    Clamp,
    /// The texture repeats and every other one is turned; coordinates from 0 to 1 only.
    Mirror,
    /// A constant.
    Border,
}

/// What the bits of a channel are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelKind {
    /// A whole number with a sign.
    Signed,
    /// A whole number.
    #[default]
    Unsigned,
    /// A floating-point number.
    Float,
}

/// The texels of a texture or surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Texels {
    /// Where the first one lies.
    pub address: u64,
    /// Bytes from a row to the next.
    pub pitch: u64,
    /// Texels of a row.
    pub width: u64,
    /// Rows; 0: there is one dimension.
    pub height: u64,
    /// Planes of rows, or layers; 0: there are none.
    pub depth: u64,
    /// The planes are layers, between which nothing is weighted.
    pub layered: bool,
    /// Bits of each channel: 8, 16 or 32, after the last one 0.
    pub bits: [u32; 4],
    /// What they are.
    pub kind: ChannelKind,
}

/// How a texture is read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampler {
    /// For each dimension.
    pub modes: [AddressMode; 3],
    /// The texels around a place are weighted: two in each dimension.
    pub linear: bool,
    /// Whole numbers become numbers from 0 or -1 to 1.
    pub scaled_reads: bool,
    /// Coordinates go from 0 to 1.
    pub normalised: bool,
    /// What [`AddressMode::Border`] gives.
    pub border: [f32; 4],
}

/// A texture, or a surface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Texture {
    /// What it consists of.
    pub texels: Texels,
    /// How it is read; surfaces make no use of it.
    pub sampler: Sampler,
}

impl Texels {
    /// Bytes of a texel.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.bits.iter().sum::<u32>() / 8)
    }

    /// Rows, of which there is at least one.
    fn rows(&self) -> u64 {
        self.height.max(1)
    }

    /// Texels in each direction, of which there is at least one; layers do not count.
    fn extent(&self) -> [u64; 3] {
        let depth = if self.layered { 1 } else { self.depth.max(1) };
        [self.width, self.rows(), depth]
    }

    /// Where a texel lies, its first coordinate in bytes.
    pub(crate) fn place(&self, [left, y, z]: [u64; 3]) -> u64 {
        self.address + (z * self.rows() + y) * self.pitch + left
    }

    /// The last byte of a row, row and plane.
    pub(crate) fn last(&self, bytes: u64) -> [u64; 3] {
        let row = (self.width * self.bytes()).saturating_sub(bytes);
        [row, self.rows() - 1, self.depth.max(1) - 1]
    }

    fn raw(
        &self,
        scope: &mut Scope<'_>,
        lane: usize,
        [x, y, z]: [u64; 3],
    ) -> Result<[u32; 4], String> {
        let place = self.place([x * self.bytes(), y, z]);
        let mut bytes = [0; 16];
        let length = usize::try_from(self.bytes()).unwrap_or(0).min(16);
        scope.read_global(lane, place, &mut bytes[..length])?;
        let (all, mut at) = (u128::from_le_bytes(bytes), 0);
        Ok(self.bits.map(|bits| {
            let value = if bits == 0 { 0 } else { all >> at & ((1_u128 << bits) - 1) };
            at += bits;
            low(u64::try_from(value).unwrap_or(0))
        }))
    }
}

/// Bits of weights after the point: NVIDIA gives them 9 bits, one of them before the point.
const WEIGHT_STEPS: f32 = 256.0;

impl Texture {
    /// The channels that `lane` reads at `place`, which are coordinates as the kernel gives them,
    /// in the layer of that number, where there are any.
    pub(crate) fn sample(
        &self,
        scope: &mut Scope<'_>,
        lane: usize,
        (place, layer): ([f32; 3], u32),
    ) -> Result<[u32; 4], String> {
        let Texels { height, depth, layered, .. } = self.texels;
        let extent = self.texels.extent();
        let missing = [false, height == 0, depth == 0 || layered];
        let place = [0, 1, 2].map(|axis| match () {
            () if missing[axis] => 0.5,
            () if self.sampler.normalised => place[axis] * float(extent[axis]),
            () => place[axis],
        });
        let layer = if layered { u64::from(layer).min(depth.max(1) - 1) } else { 0 };
        if !self.sampler.linear {
            return self.texel(scope, lane, (place.map(f32::floor), layer));
        }
        self.weighted(scope, lane, (place, layer))
    }

    /// The weighted mean of the texels around a place.
    fn weighted(
        &self,
        scope: &mut Scope<'_>,
        lane: usize,
        (place, layer): ([f32; 3], u64),
    ) -> Result<[u32; 4], String> {
        let first = place.map(|one| (one - 0.5).floor());
        let weight = |axis: usize| {
            ((place[axis] - 0.5 - first[axis]) * WEIGHT_STEPS).round_ties_even() / WEIGHT_STEPS
        };
        let weights = [weight(0), weight(1), weight(2)];
        let mut sum = [0.0; 4];
        for corner in 0..8_u8 {
            let upper = [0, 1, 2].map(|axis| corner >> axis & 1 == 1);
            let weight =
                |axis: usize| if upper[axis] { weights[axis] } else { 1.0 - weights[axis] };
            let weight = weight(0) * weight(1) * weight(2);
            // A texel without weight may lie in no row, as in a texture of one dimension.
            if weight == 0.0 {
                continue;
            }
            let at = [0, 1, 2].map(|axis| first[axis] + if upper[axis] { 1.0 } else { 0.0 });
            let texel = self.texel(scope, lane, (at, layer))?;
            for (sum, bits) in sum.iter_mut().zip(texel) {
                *sum += weight * f32::from_bits(bits);
            }
        }
        Ok(sum.map(f32::to_bits))
    }

    /// A channel of the four texels around a place, in the order of OpenGL's `textureGather`:
    /// lower left, lower right, upper right, upper left, where rows count downwards.
    pub(crate) fn gather(
        &self,
        scope: &mut Scope<'_>,
        lane: usize,
        (place, channel): ([f32; 2], usize),
    ) -> Result<[u32; 4], String> {
        let extent = self.texels.extent();
        let first = [0, 1].map(|axis| {
            let size = if self.sampler.normalised { float(extent[axis]) } else { 1.0 };
            (place[axis] * size - 0.5).floor()
        });
        let mut values = [0; 4];
        for (value, [x, y]) in values.iter_mut().zip([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0; 2]])
        {
            let at = [first[0] + x, first[1] + y, 0.0];
            *value = self.texel(scope, lane, (at, 0))?[channel % 4];
        }
        Ok(values)
    }

    /// The channels of the texel of that number; a whole number may lie outside.
    fn texel(
        &self,
        scope: &mut Scope<'_>,
        lane: usize,
        (at, layer): ([f32; 3], u64),
    ) -> Result<[u32; 4], String> {
        let extent = self.texels.extent();
        let inside = [0, 1, 2].map(|axis| {
            let mode = self.sampler.modes[axis];
            index(at[axis], extent[axis], mode, self.sampler.normalised)
        });
        let [Some(x), Some(y), Some(z)] = inside else {
            return Ok(self.sampler.border.map(f32::to_bits));
        };
        self.channels(scope, lane, [x, y, z + layer])
    }

    /// The channels of the texel `index`; 0 outside.
    pub(crate) fn fetch(
        &self,
        scope: &mut Scope<'_>,
        lane: usize,
        index: u32,
    ) -> Result<[u32; 4], String> {
        match u64::from(index) < self.texels.width {
            true => self.channels(scope, lane, [index.into(), 0, 0]),
            false => Ok([0; 4]),
        }
    }

    fn channels(
        &self,
        scope: &mut Scope<'_>,
        lane: usize,
        place: [u64; 3],
    ) -> Result<[u32; 4], String> {
        let raw = self.texels.raw(scope, lane, place)?;
        Ok(std::array::from_fn(|channel| self.value(raw[channel], self.texels.bits[channel])))
    }

    /// The result for a channel of so many bits.
    fn value(&self, raw: u32, bits: u32) -> u32 {
        match (self.texels.kind, bits) {
            (_, 0) => 0,
            (ChannelKind::Float, 16) => crate::sass::half_to_single(raw).to_bits(),
            (ChannelKind::Float, _) => raw,
            (ChannelKind::Unsigned, _) if self.sampler.scaled_reads && bits < 32 => {
                (float(raw.into()) / float((1 << bits) - 1)).to_bits()
            }
            (ChannelKind::Unsigned, _) => raw,
            (ChannelKind::Signed, _) => {
                let value = (raw << (32 - bits)).cast_signed() >> (32 - bits);
                if !self.sampler.scaled_reads || bits >= 32 {
                    return value.cast_unsigned();
                }
                let size = float(value.unsigned_abs().into()) / float((1 << (bits - 1)) - 1);
                size.min(1.0).copysign(if value < 0 { -1.0 } else { 1.0 }).to_bits()
            }
        }
    }
}

/// The number of the texel at `at` of `count`; none outside.
fn index(at: f32, count: u64, mode: AddressMode, normalised: bool) -> Option<u64> {
    let most = float(count - 1);
    let size = float(count);
    let found = match mode {
        AddressMode::Border if at >= 0.0 && at <= most => at,
        AddressMode::Border => return None,
        AddressMode::Wrap if normalised => at.rem_euclid(size),
        AddressMode::Mirror if normalised => {
            let at = at.rem_euclid(2.0 * size);
            if at < size { at } else { 2.0 * size - 1.0 - at }
        }
        AddressMode::Wrap | AddressMode::Mirror | AddressMode::Clamp => at,
    };
    // What is no number becomes 0.
    Some(whole(found.max(0.0).min(most)))
}

#[allow(clippy::cast_precision_loss, reason = "sizes of textures are far below 2^24")]
fn float(value: u64) -> f32 {
    value as f32
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside a texture")]
fn whole(value: f32) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::{AddressMode, ChannelKind, Sampler, Texels, Texture, index};

    #[test]
    fn coordinates_outside_are_clamped_wrapped_mirrored_or_the_border() {
        let at = |at, mode| index(at, 4, mode, true);
        let all = [-1.0, 4.0, 5.0].map(|place| at(place, AddressMode::Wrap));
        assert_eq!(all, [Some(3), Some(0), Some(1)]);
        let all = [-1.0, 4.0, 5.0].map(|place| at(place, AddressMode::Mirror));
        assert_eq!(all, [Some(0), Some(3), Some(2)]);
        let all = [-1.0, 4.0, f32::NAN].map(|place| at(place, AddressMode::Clamp));
        assert_eq!(all, [Some(0), Some(3), Some(0)]);
        let all = [-1.0, 4.0, 3.0].map(|place| at(place, AddressMode::Border));
        assert_eq!(all, [None, None, Some(3)]);
        // Coordinates that are not normalised are clamped.
        assert_eq!(index(5.0, 4, AddressMode::Wrap, false), Some(3));
    }

    #[test]
    fn small_numbers_are_scaled_as_they_are_read() {
        let texture = |kind| Texture {
            texels: Texels { kind, ..Texels::default() },
            sampler: Sampler { scaled_reads: true, ..Sampler::default() },
        };
        let signed = |raw| f32::from_bits(texture(ChannelKind::Signed).value(raw, 8));
        assert_eq!([signed(0x80), signed(0x81), signed(0x7f)], [-1.0, -1.0, 1.0]);
        let unsigned = |raw| f32::from_bits(texture(ChannelKind::Unsigned).value(raw, 8));
        assert_eq!([unsigned(0), unsigned(51), unsigned(255)], [0.0, 0.2, 1.0]);
        let half = texture(ChannelKind::Float).value(0x3c00, 16);
        assert_eq!(f32::from_bits(half), 1.0);
    }
}
