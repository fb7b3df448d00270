//! Rounding of floating-point results.

use crate::sass::text::Line;

/// Where a result goes that lies between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest one, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Down.
    Down,
    /// Up.
    Up,
}

impl Rounding {
    /// The rounding that `line` names.
    pub(super) fn of(line: &Line) -> Self {
        let found = line.suffixes().find_map(|suffix| match suffix {
            "RZ" | "TRUNC" => Some(Self::Zero),
            "RM" | "FLOOR" => Some(Self::Down),
            "RP" | "CEIL" => Some(Self::Up),
            _ => None,
        });
        found.unwrap_or(Self::Nearest)
    }

    /// `value + rest` as a single, where `rest` is far smaller than `value`.
    pub(super) fn single(self, value: f64, rest: f64) -> f32 {
        let nearest = narrow(value);
        if !value.is_finite() {
            return nearest;
        }
        let mut over = f64::from(nearest) - value - rest;
        if nearest.is_infinite() {
            over = f64::from(nearest);
        }
        match self.correction(over, nearest > 0.0 || over > 0.0 && nearest == 0.0) {
            1 => nearest.next_up(),
            -1 => nearest.next_down(),
            _ => nearest,
        }
    }

    /// `value + rest` as a double, where `value` is their sum rounded to the nearest double.
    pub(super) fn double(self, value: f64, rest: f64) -> f64 {
        if !value.is_finite() {
            return value;
        }
        match self.correction(-rest, value > 0.0) {
            1 => value.next_up(),
            -1 => value.next_down(),
            _ => value,
        }
    }

    /// The step from a result that is `over` too large.
    fn correction(self, over: f64, positive: bool) -> i32 {
        match self {
            Self::Zero if positive && over > 0.0 => -1,
            Self::Zero if !positive && over < 0.0 => 1,
            Self::Down if over > 0.0 => -1,
            Self::Up if over < 0.0 => 1,
            _ => 0,
        }
    }

    /// `value` as a whole number.
    pub(super) fn whole(self, value: f64) -> f64 {
        match self {
            Self::Nearest => value.round_ties_even(),
            Self::Zero => value.trunc(),
            Self::Down => value.floor(),
            Self::Up => value.ceil(),
        }
    }
}

/// A double as the nearest single.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "rounds to the nearest")]
pub(super) fn narrow(value: f64) -> f32 {
    value as f32
}

/// The error of `a + b` rounded to `sum`.
pub(super) fn rest_of_sum(a: f64, b: f64, sum: f64) -> f64 {
    let part = sum - a;
    (a - (sum - part)) + (b - part)
}

/// The half-precision number nearest to `value`, as bits.
pub(super) fn to_half(value: f64, rounding: Rounding) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if size.is_nan() {
        return 0x7fff;
    }
    let towards = match rounding {
        Rounding::Down if sign == 0 => Rounding::Zero,
        Rounding::Up if sign != 0 => Rounding::Zero,
        Rounding::Down => Rounding::Up,
        other => other,
    };
    if size.is_infinite() {
        return sign | 0x7c00;
    }
    // The unit of the last place, of small numbers that of the smallest normal one.
    let exponent = (size.to_bits() >> 52).saturating_sub(1023 - 14);
    let exponent = u16::try_from(exponent).unwrap_or(0).min(32);
    let unit = 2_f64.powi(i32::from(exponent) - 24);
    let steps = towards.whole(size / unit);
    let bits = f64::from(exponent) * 1024.0 + steps;
    let most = if towards == Rounding::Zero { 31743.0 } else { 31744.0 };
    sign | whole(bits.min(most))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 0x7c00")]
fn whole(bits: f64) -> u16 {
    bits as u16
}

/// The number that half-precision `bits` are.
#[inline]
pub(super) fn from_half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let size = u32::from(bits & 0x7fff);
    let value = match size {
        0x7c00.. => f32::from_bits(0x7f80_0000 | (size & 0x3ff) << 13),
        // Moves the exponent by a multiplication, which also places what is not normal.
        _ => f32::from_bits(size << 13) * f32::from_bits(0x7780_0000),
    };
    f32::from_bits(value.to_bits() | sign)
}

/// The same of the lower half of `bits`.
pub(crate) fn half_to_single(bits: u32) -> f32 {
    from_half(super::half::halves(bits)[0])
}

/// The bfloat16 nearest to `value`, as bits.
pub(super) fn to_brain(value: f32, rounding: Rounding) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return 0x7fff;
    }
    let more = match rounding {
        Rounding::Nearest => 0x7fff + (bits >> 16 & 1),
        Rounding::Zero => 0,
        Rounding::Up if bits >> 31 == 0 => 0xffff,
        Rounding::Down if bits >> 31 == 1 => 0xffff,
        Rounding::Up | Rounding::Down => 0,
    };
    u16::try_from((bits + more) >> 16).unwrap_or(0x7fff)
}

/// The number that bfloat16 `bits` are.
#[inline]
pub(super) fn from_brain(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::{Rounding, from_half, rest_of_sum, to_brain, to_half};

    #[test]
    fn halves_are_read_and_written_back() {
        for bits in 0..=u16::MAX {
            let value = from_half(bits);
            if !value.is_nan() {
                assert_eq!(to_half(value.into(), Rounding::Nearest), bits, "{bits:#x} {value}");
            }
        }
        assert_eq!(to_half(65504.0, Rounding::Nearest), 0x7bff);
        assert_eq!(to_half(65520.0, Rounding::Nearest), 0x7c00);
        assert_eq!(to_half(65520.0, Rounding::Zero), 0x7bff);
        assert_eq!(to_half(1e9, Rounding::Nearest), 0x7c00);
        assert_eq!(to_half(2_f64.powi(-25), Rounding::Nearest), 0);
        assert_eq!(to_half(2_f64.powi(-25), Rounding::Up), 1);
        assert_eq!(to_half(1.0 + 2_f64.powi(-11), Rounding::Nearest), 0x3c00);
        assert_eq!(to_half(-1.0 - 2_f64.powi(-11), Rounding::Down), 0xbc01);
        assert_eq!(to_brain(1.0 + 2_f32.powi(-8), Rounding::Nearest), 0x3f80);
        assert_eq!(to_brain(1.0 + 2_f32.powi(-8), Rounding::Up), 0x3f81);
    }

    #[test]
    fn directed_rounding_keeps_the_side() {
        let third = 1.0_f64 / 3.0;
        assert!(f64::from(Rounding::Down.single(third, 0.0)) <= third);
        assert!(f64::from(Rounding::Up.single(third, 0.0)) >= third);
        assert_eq!(Rounding::Zero.single(-third, 0.0), -Rounding::Down.single(third, 0.0));
        assert_eq!(Rounding::Zero.single(1e300, 0.0), f32::MAX);
        assert_eq!(Rounding::Up.single(1e-300, 0.0), f32::from_bits(1));
        let (a, b) = (1.0, 2_f64.powi(-60));
        assert_eq!(rest_of_sum(a, b, a + b), b);
        assert_eq!(Rounding::Up.double(a + b, rest_of_sum(a, b, a + b)), 1.0_f64.next_up());
    }
}
