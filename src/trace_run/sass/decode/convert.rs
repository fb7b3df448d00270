//! Conversions between formats.

use super::args::{Args, Float};
use super::half::joined;
use super::rounding::{Rounding, from_brain, from_half, narrow, to_brain, to_half};
use super::{Action, Maker};
use crate::execute::{From, Lanes, Scope, Target, low};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "F2I" => f2i,
        "I2F" | "I2FP" => i2f,
        "F2F" => f2f,
        "FRND" => frnd,
        "F2FP" => f2fp,
        "I2I" => i2i,
        "I2IP" => i2ip,
        _ => return None,
    })
}

/// A format of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Half,
    Brain,
    Single,
    Double,
}

impl Format {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "F16" => Self::Half,
            "BF16" => Self::Brain,
            "F32" => Self::Single,
            "F64" => Self::Double,
            _ => return None,
        })
    }

    fn all(line: &Line) -> Vec<Self> {
        line.suffixes().filter_map(Self::named).collect()
    }

    /// Reads numbers of this format.
    fn read(self, source: &Float, scope: &Scope<'_>, flush: bool) -> [f64; 32] {
        let upper = source.suffix.starts_with("H1");
        let half = |bits: u32| super::half::halves(bits)[usize::from(upper)];
        let signed = |value: f64| {
            let value = if source.absolute { value.abs() } else { value };
            if source.negative { -value } else { value }
        };
        match self {
            Self::Double => source.double(scope),
            Self::Single => source.single_bits(scope).map(|bits| {
                let bits = if flush { super::float::flushed(bits) } else { bits };
                f64::from(f32::from_bits(bits))
            }),
            Self::Half => scope.get(source.from).map(|v| signed(from_half(half(v)).into())),
            Self::Brain => scope.get(source.from).map(|v| signed(from_brain(half(v)).into())),
        }
    }

    /// Writes numbers in this format.
    fn write(
        self,
        scope: &mut Scope<'_>,
        target: Target,
        mask: u32,
        value: [f64; 32],
        rounding: Rounding,
    ) {
        match self {
            Self::Double => scope.put64(target, mask, &value.map(f64::to_bits)),
            Self::Single => scope.put(target, mask, &value.map(|v| single(v, rounding).to_bits())),
            Self::Half => {
                scope.put(target, mask, &value.map(|v| u32::from(to_half(v, rounding))));
            }
            Self::Brain => {
                let brain = |v: f64| u32::from(to_brain(narrow(v), rounding));
                scope.put(target, mask, &value.map(brain));
            }
        }
    }
}

fn single(value: f64, rounding: Rounding) -> f32 {
    let value = rounding.single(value, 0.0);
    if value.is_nan() { f32::from_bits(0x7fff_ffff) } else { value }
}

/// A format of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whole {
    bits: u32,
    signed: bool,
}

impl Whole {
    fn named(name: &str) -> Option<Self> {
        let (sign, bits) = name.split_at_checked(1)?;
        let bits = bits.parse().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64))?;
        matches!(sign, "U" | "S").then_some(Self { bits, signed: sign == "S" })
    }

    /// The same with those of 2 and 4 bits.
    fn narrow(name: &str) -> Option<Self> {
        match name {
            "U2" | "S2" => Some(Self { bits: 2, signed: name == "S2" }),
            "U4" | "S4" => Some(Self { bits: 4, signed: name == "S4" }),
            _ => Self::named(name),
        }
    }

    fn of(line: &Line) -> Self {
        let found = line.suffixes().find_map(Self::named);
        found.unwrap_or(Self { bits: 32, signed: true })
    }

    /// The smallest and the largest number.
    fn range(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// `value`, which is whole, as bits; the nearest end of the range when it lies outside.
    fn clamp(self, value: f64, nan_is_zero: bool) -> u64 {
        if value.is_nan() {
            return if nan_is_zero { 0 } else { 1 << (self.bits.max(32) - 1) };
        }
        let (least, most) = self.range();
        self.bits_of(wide(value).clamp(least, most))
    }

    fn bits_of(self, value: i128) -> u64 {
        let ones = (1_i128 << self.bits.max(32)) - 1;
        u64::try_from(value & ones).unwrap_or(0)
    }

    /// The number in the lowest bits.
    fn value(self, raw: u64) -> i128 {
        let unused = 64 - self.bits;
        match self.signed {
            true => i128::from((raw << unused).cast_signed() >> unused),
            false => i128::from(raw << unused >> unused),
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "ends of the range are kept")]
fn wide(value: f64) -> i128 {
    value as i128
}

fn f2i(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.float()?);
    let from = Format::all(line).first().copied().unwrap_or(Format::Single);
    let (to, rounding) = (Whole::of(line), Rounding::of(line));
    let (flush, zero) = (line.has("FTZ"), line.has("NTZ"));
    Ok(Box::new(move |scope, mask| {
        let value = from.read(&a, scope, flush);
        let value = value.map(|value| to.clamp(rounding.whole(value), zero));
        match to.bits {
            64 => scope.put64(target, mask, &value),
            _ => scope.put(target, mask, &value.map(low)),
        }
        Ok(())
    }))
}

/// A whole number as a double, and what that leaves out.
#[allow(clippy::cast_precision_loss, reason = "the loss is returned")]
fn exact(value: i128) -> (f64, f64) {
    let near = value as f64;
    (near, (value - wide(near)) as f64)
}

fn i2f(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.int()?);
    let part = line.operands.get(1).map_or("", |operand| operand.suffix.as_str()).to_owned();
    let to = Format::all(line).first().copied().unwrap_or(Format::Single);
    let (from, rounding) = (Whole::of(line), Rounding::of(line));
    let shift = match part.as_str() {
        "B1" => 8,
        "B2" | "H1" => 16,
        "B3" => 24,
        _ => 0,
    };
    Ok(Box::new(move |scope, mask| {
        let raw = match from.bits {
            64 => a.get64(scope),
            _ => a.get(scope).map(|v| u64::from(v >> shift)),
        };
        let value = raw.map(|raw| exact(from.value(raw)));
        match to {
            Format::Single => {
                let single = value.map(|(near, rest)| to_single(rounding, near, rest).to_bits());
                scope.put(target, mask, &single);
            }
            Format::Double => {
                let double = value.map(|(near, rest)| rounding.double(near, rest).to_bits());
                scope.put64(target, mask, &double);
            }
            Format::Half | Format::Brain => {
                to.write(scope, target, mask, value.map(|(near, _)| near), rounding);
            }
        }
        Ok(())
    }))
}

/// `near + rest` as a single: what lies in the middle but for the rest is not.
fn to_single(rounding: Rounding, near: f64, rest: f64) -> f32 {
    let middle = near.to_bits() & 0x1fff_ffff == 0x1000_0000;
    if rounding == Rounding::Nearest && middle && rest != 0.0 {
        return narrow(if rest > 0.0 { near.next_up() } else { near.next_down() });
    }
    rounding.single(near, rest)
}

fn f2f(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.float()?);
    let formats = Format::all(line);
    let (to, from) = match formats[..] {
        [to, from] => (to, from),
        [to] => (to, Format::Single),
        _ => return Err("its formats are not known".into()),
    };
    let (rounding, flush) = (Rounding::of(line), line.has("FTZ"));
    Ok(Box::new(move |scope, mask| {
        let value = from.read(&a, scope, flush);
        to.write(scope, target, mask, value, rounding);
        Ok(())
    }))
}

fn frnd(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.float()?);
    let format = Format::all(line).first().copied().unwrap_or(Format::Single);
    let (rounding, flush) = (Rounding::of(line), line.has("FTZ"));
    Ok(Box::new(move |scope, mask| {
        let value = format.read(&a, scope, flush).map(|value| rounding.whole(value));
        format.write(scope, target, mask, value, Rounding::Nearest);
        Ok(())
    }))
}

/// `value`, or 0 where it is not above 0; not a number stays what it is.
fn positive(value: f64) -> f64 {
    if value <= 0.0 { 0.0 } else { value }
}

fn f2fp(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.float()?);
    if let Some(shape) = Small::of(line) {
        return small(line, args, target, a, shape);
    }
    let b = args.float()?;
    if !line.has("PACK_AB") {
        return Err("this form is not known".into());
    }
    let (brain, rounding) = (line.has("BF16"), Rounding::of(line));
    let relu = line.has("RELU");
    Ok(Box::new(move |scope, mask| {
        let read = |source: &Float| Format::Single.read(source, scope, false);
        let (a, b) = (read(&a), read(&b));
        let pack = |value: f64| {
            let value = if relu { positive(value) } else { value };
            match brain {
                true => to_brain(narrow(value), rounding),
                false => to_half(value, rounding),
            }
        };
        let value: Lanes = std::array::from_fn(|i| joined(pack(b[i]), pack(a[i])));
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// A format of 8 bits: bits of exponent and of fraction, and the largest number as bits.
#[derive(Clone, Copy, Debug)]
struct Small {
    exponent: i32,
    fraction: i32,
    most: u8,
}

impl Small {
    fn of(line: &Line) -> Option<Self> {
        line.suffixes().find_map(|suffix| match suffix {
            "E4M3" => Some(Self { exponent: 4, fraction: 3, most: 0x7e }),
            "E5M2" => Some(Self { exponent: 5, fraction: 2, most: 0x7b }),
            _ => None,
        })
    }

    fn read(self, bits: u8) -> f64 {
        super::group_matrix::Element::Small(if self.exponent == 4 { [4, 3] } else { [5, 2] })
            .read(&[bits])
    }

    /// The nearest number, the largest where `value` is larger.
    fn write(self, value: f64) -> u8 {
        let bias = (1 << (self.exponent - 1)) - 1;
        let least = 1 - bias;
        if value.is_nan() {
            return 0x7f;
        }
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        // A double has more digits and a wider range: its own exponent is exact.
        let (size, mut exponent) = (value.abs(), least);
        while exponent <= bias + 1 && size >= 2_f64.powi(exponent + 1) {
            exponent += 1;
        }
        let steps = Rounding::Nearest.whole(size / 2_f64.powi(exponent - self.fraction));
        let first = f64::from(exponent - least) * f64::from(1 << self.fraction);
        let bits = (first + steps).min(f64::from(self.most));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 127")]
        let bits = bits as u8;
        sign | bits
    }
}

/// Packs two numbers as bytes below those of a third source, or unpacks two.
fn small(
    line: &Line,
    mut args: Args<'_>,
    target: Target,
    a: Float,
    shape: Small,
) -> Result<Action, String> {
    let relu = line.has("RELU");
    if line.has("UNPACK_B") {
        let shift = if a.suffix.starts_with("H1") { 16 } else { 0 };
        return Ok(Box::new(move |scope, mask| {
            let value = scope.get(a.from).map(|bits| {
                let [first, second, ..] = (bits >> shift).to_le_bytes();
                let [low, high] = [first, second].map(|one| {
                    let value = shape.read(one);
                    to_half(if relu { positive(value) } else { value }, Rounding::Nearest)
                });
                joined(low, high)
            });
            scope.put(target, mask, &value);
            Ok(())
        }));
    }
    let halves = line.has("UNPACK_B_MERGE_C");
    if !line.has("SATFINITE") || !(halves || line.has("PACK_AB_MERGE_C")) {
        return Err("this form is not known".into());
    }
    let b = if halves { a.clone() } else { args.float()? };
    let c = args.int()?;
    let brain = line.has("BF16");
    Ok(Box::new(move |scope, mask| {
        let format = if brain { Format::Brain } else { Format::Half };
        let [low, high] = match halves {
            false => [&b, &a].map(|source| Format::Single.read(source, scope, false)),
            true => ["H0", "H1"]
                .map(|part| format.read(&Float { suffix: part.into(), ..a.clone() }, scope, false)),
        };
        let byte = |value: f64| shape.write(if relu { positive(value) } else { value });
        let c = c.get(scope);
        let value: Lanes = std::array::from_fn(|lane| {
            let [low, high] = [low[lane], high[lane]].map(byte);
            c[lane] << 16 | u32::from(u16::from_le_bytes([low, high]))
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// Packs two whole numbers, the nearest ones of a smaller format, below the bits of a third
/// source.
fn i2ip(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b, c) = (args.target()?, args.int()?, args.int()?, args.int()?);
    let formats: Vec<Whole> = line.suffixes().filter_map(Whole::narrow).collect();
    let [to, from] = formats[..] else { return Err("its formats are not known".into()) };
    if !line.has("SAT") || from.bits != 32 || to.bits > 16 {
        return Err("this form is not known".into());
    }
    let (least, most) = to.range();
    let part = move |raw: u32| {
        let bits = to.bits_of(from.value(raw.into()).clamp(least, most));
        low(bits & ((1 << to.bits) - 1))
    };
    Ok(Box::new(move |scope, mask| {
        let (a, b, c) = (a.get(scope), b.get(scope), c.get(scope));
        let value = std::array::from_fn(|lane| {
            let above = c[lane].checked_shl(2 * to.bits).unwrap_or(0);
            above | part(a[lane]) << to.bits | part(b[lane])
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn i2i(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.int()?);
    let formats: Vec<Whole> = line.suffixes().filter_map(Whole::named).collect();
    let [to, from] = formats[..] else { return Err("its formats are not known".into()) };
    let saturates = line.has("SAT");
    if matches!(a.from, From::Constant(_)) && from.bits == 64 {
        return Err("of 64 bits it is not known".into());
    }
    Ok(Box::new(move |scope, mask| {
        let value = a.get(scope).map(|raw| {
            let value = from.value(u64::from(raw));
            let (least, most) = to.range();
            let value = if saturates { value.clamp(least, most) } else { value };
            low(to.bits_of(value))
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::{Rounding, Small, Whole, exact, to_single};

    #[test]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of Rust saturates, which is what is compared"
    )]
    fn numbers_outside_the_range_become_its_ends_as_in_rust() {
        let of = |name: &str| Whole::named(name).unwrap();
        for value in [0.0, -1.0, 3e9, -3e9, 1e20, -1e20, 255.0, 127.0, f64::INFINITY] {
            let value: f64 = value;
            assert_eq!(of("S32").clamp(value, true), u64::from((value as i32).cast_unsigned()));
            assert_eq!(of("U32").clamp(value, true), u64::from(value as u32));
            assert_eq!(of("S64").clamp(value, true), (value as i64).cast_unsigned());
            assert_eq!(of("U64").clamp(value, true), value as u64);
            assert_eq!(of("U8").clamp(value, true), u64::from(value as u8));
        }
        assert_eq!(of("S32").clamp(f64::NAN, true), 0);
        assert_eq!(of("S32").clamp(f64::NAN, false), 0x8000_0000);
    }

    #[test]
    fn numbers_of_eight_bits_are_the_nearest() {
        let four = Small { exponent: 4, fraction: 3, most: 0x7e };
        let five = Small { exponent: 5, fraction: 2, most: 0x7b };
        for (shape, most) in [(four, 448.0), (five, 57344.0)] {
            for bits in 0..=shape.most {
                let (value, next) = (shape.read(bits), shape.read(bits + 1));
                assert_eq!(shape.write(value), bits);
                assert_eq!(shape.write(-value), bits | 0x80);
                if bits < shape.most {
                    let even = bits + bits % 2;
                    assert_eq!(shape.write(f64::midpoint(value, next)), even, "{value}");
                }
            }
            assert_eq!(shape.write(1e9), shape.write(most));
            assert_eq!(shape.write(f64::INFINITY), shape.most);
            assert_eq!(shape.write(f64::NAN), 0x7f);
        }
    }

    #[test]
    fn whole_numbers_are_rounded_once() {
        for value in [0_i64, 1, -1, i64::MAX, i64::MIN, (1 << 60) + (1 << 36) + 1, 0x7fff_ffbf] {
            let (near, rest) = exact(value.into());
            assert_eq!(to_single(Rounding::Nearest, near, rest), value as f32, "{value}");
        }
        let (near, rest) = exact(0x7fff_ffff);
        assert_eq!(to_single(Rounding::Up, near, rest), 2_147_483_648.0);
        assert_eq!(to_single(Rounding::Zero, near, rest), 2_147_483_520.0);
    }
}
