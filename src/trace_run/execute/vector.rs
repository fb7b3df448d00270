//! Loops over the lanes of a warp, compiled for the vector unit of this computer: with the
//! widest instructions that it has, chosen when the program starts.

use gpumodel_core::units::WARP_LANES;
use pulp::{Arch, Simd, WithSimd};

/// The vector unit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Vector(Arch);

/// A value per lane.
type Each<T> = [T; WARP_LANES];

impl Vector {
    /// `function` of every lane's number.
    #[inline]
    pub(crate) fn make<R: Copy + Default>(self, function: impl Fn(usize) -> R) -> Each<R> {
        self.0.dispatch(Make(function))
    }

    /// The lanes for which `holds` is true.
    #[inline]
    pub(crate) fn mask(self, holds: impl Fn(usize) -> bool) -> u32 {
        self.0.dispatch(Mask(holds))
    }

    /// Writes the lanes of `mask` only.
    #[inline]
    pub(crate) fn blend(self, old: &mut Each<u32>, new: &Each<u32>, mask: u32) {
        self.0.dispatch(Blend { old, new, mask });
    }

    /// Of the places of the lanes of `mask`: the lowest, the highest, all bits that are set in
    /// any, and whether they do not follow each other at `step` (then it is not 0).
    #[inline]
    pub(crate) fn bounds(self, places: &Each<u64>, mask: u32, step: u64) -> [u64; 4] {
        self.0.dispatch(Bounds { places, mask, step })
    }

    /// `a * b + c`, rounded once, of every lane after the changes of sign; none where the
    /// vector unit has no such instruction.
    #[inline]
    pub(crate) fn multiply_add(
        self,
        sources: [&Each<u32>; 3],
        signs: [SignChange; 3],
    ) -> Option<Each<u32>> {
        self.0.dispatch(MultiplyAdd { sources, signs })
    }
}

/// What stands before and around a floating-point source: bits that are kept, then turned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignChange {
    pub(crate) keep: u32,
    pub(crate) turn: u32,
}

impl SignChange {
    /// The number that the changed bits are.
    #[inline]
    pub(crate) fn single(self, bits: u32) -> f32 {
        f32::from_bits(bits & self.keep ^ self.turn)
    }
}

/// The bits of a result: of what is no number, those that the hardware gives.
#[inline]
pub(crate) fn single_bits(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

struct Make<F>(F);

impl<R: Copy + Default, F: Fn(usize) -> R> WithSimd for Make<F> {
    type Output = Each<R>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Each<R> {
        let mut out = [R::default(); WARP_LANES];
        for (lane, out) in out.iter_mut().enumerate() {
            *out = (self.0)(lane);
        }
        out
    }
}

struct Mask<F>(F);

impl<F: Fn(usize) -> bool> WithSimd for Mask<F> {
    type Output = u32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> u32 {
        (0..WARP_LANES).fold(0, |mask, lane| mask | u32::from((self.0)(lane)) << lane)
    }
}

struct Blend<'a> {
    old: &'a mut Each<u32>,
    new: &'a Each<u32>,
    mask: u32,
}

impl WithSimd for Blend<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for lane in 0..WARP_LANES {
            let keep = (self.mask >> lane & 1).wrapping_sub(1);
            self.old[lane] = self.old[lane] & keep | self.new[lane] & !keep;
        }
    }
}

struct Bounds<'a> {
    places: &'a Each<u64>,
    mask: u32,
    step: u64,
}

impl WithSimd for Bounds<'_> {
    type Output = [u64; 4];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> [u64; 4] {
        let first = self.places[self.mask.trailing_zeros() as usize % WARP_LANES];
        let [mut lowest, mut highest, mut all, mut apart] = [first, first, 0, 0];
        for (lane, &place) in (0_u32..).zip(self.places) {
            let here = self.mask >> lane & 1 == 1;
            let place = if here { place } else { first };
            lowest = lowest.min(place);
            highest = highest.max(place);
            all |= place;
            apart |= place ^ first.wrapping_add(self.step * u64::from(lane));
        }
        [lowest, highest, all, apart]
    }
}

struct MultiplyAdd<'a> {
    sources: [&'a Each<u32>; 3],
    signs: [SignChange; 3],
}

impl WithSimd for MultiplyAdd<'_> {
    type Output = Option<Each<u32>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        if S::IS_SCALAR {
            return None;
        }
        let ([a, b, c], [x, y, z]) = (self.sources, self.signs);
        let mut out = [0; WARP_LANES];
        for (lane, out) in out.iter_mut().enumerate() {
            let (a, b, c) = (x.single(a[lane]), y.single(b[lane]), z.single(c[lane]));
            *out = single_bits(a.mul_add(b, c));
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::{SignChange, Vector, single_bits};

    /// Bits of all kinds of numbers: infinite ones, tiny ones and what is no number among them.
    fn draw(state: &mut u64) -> u32 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let bits = crate::execute::high(*state);
        match bits % 7 {
            0 => bits & 0x807f_ffff,
            1 => bits | 0x7f80_0000,
            _ => bits & 0x9fff_ffff | 0x2000_0000,
        }
    }

    #[test]
    fn a_fused_sum_is_the_same_in_the_vector_unit_and_out_of_it() {
        let (vector, mut state) = (Vector::default(), 1);
        let kept = SignChange { keep: u32::MAX, turn: 0 };
        let turned = SignChange { keep: 0x7fff_ffff, turn: 0x8000_0000 };
        for _ in 0..2000 {
            let [a, b, c] = [(); 3].map(|()| std::array::from_fn(|_| draw(&mut state)));
            // A vector unit without such an instruction says so.
            let Some(value) = vector.multiply_add([&a, &b, &c], [kept, turned, kept]) else {
                return;
            };
            for lane in 0..32 {
                let (a, b) = (f32::from_bits(a[lane]), f32::from_bits(b[lane]));
                let exact = f32::mul_add(a, -b.abs(), f32::from_bits(c[lane]));
                assert_eq!(value[lane], single_bits(exact), "{a} {b}");
            }
        }
    }

    #[test]
    fn bounds_are_those_of_the_lanes_that_take_part() {
        let vector = Vector::default();
        let mut places: [u64; 32] = std::array::from_fn(|lane| 4096 + 4 * lane as u64);
        assert_eq!(vector.bounds(&places, u32::MAX, 4)[3], 0);
        assert_ne!(vector.bounds(&places, u32::MAX, 8)[3], 0);
        places[7] = 1;
        let [lowest, highest, all, _] = vector.bounds(&places, !(1 << 7) & !1, 4);
        assert_eq!((lowest, highest, all & 3), (4100, 4096 + 31 * 4, 0));
        assert_eq!(vector.bounds(&places, u32::MAX, 4)[0], 1);
        assert_eq!(vector.mask(|lane| places[lane] == 1), 1 << 7);
    }
}
