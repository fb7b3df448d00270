//! Pairs of 16-bit floating-point numbers.

use super::args::{Args, Float};
use super::compare::Join;
use super::float::{Test, minimum};
use super::rounding::{Rounding, from_brain, from_half, to_brain, to_half};
use super::{Action, Maker};
use crate::execute::{From, Lanes, Scope, Target, ZERO, mask_of};
use crate::sass::operand::Value;
use crate::sass::text::{Guard, Line};

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "HADD2" | "HMUL2" | "HFMA2" => arithmetic,
        "HMNMX2" => hmnmx,
        "HSETP2" => hsetp,
        "HSET2" => hset,
        _ => return None,
    })
}

/// Which 16-bit format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Half,
    Brain,
}

impl Format {
    fn of(line: &Line) -> Self {
        match line.has("BF16_V2") || line.has("BF16") {
            true => Self::Brain,
            false => Self::Half,
        }
    }

    pub(super) fn read(self, bits: u16) -> f32 {
        match self {
            Self::Half => from_half(bits),
            Self::Brain => from_brain(bits),
        }
    }

    fn write(self, value: f64) -> u16 {
        match self {
            Self::Half => to_half(value, Rounding::Nearest),
            // Sums and products of few digits: a single holds them well enough to round once.
            Self::Brain => to_brain(odd(value), Rounding::Nearest),
        }
    }
}

/// A single whose last digit says whether it is exact, to be rounded further.
fn odd(value: f64) -> f32 {
    let near = super::rounding::narrow(value);
    let exact = f64::from(near) == value || !near.is_finite();
    if exact || near.to_bits() & 1 == 1 {
        return near;
    }
    if f64::from(near) < value { near.next_up() } else { near.next_down() }
}

/// A source of two numbers.
struct Pair {
    source: Float,
    format: Format,
    /// The source is one single.
    single: bool,
}

impl Pair {
    fn get(&self, scope: &Scope<'_>) -> [[f32; 2]; 32] {
        scope.get(self.source.from).map(|bits| self.of(bits))
    }

    /// The numbers in the bits of a lane.
    fn of(&self, bits: u32) -> [f32; 2] {
        if self.single {
            return [self.signed(f32::from_bits(bits)); 2];
        }
        let [low, high] = halves(bits);
        let [low, high] = match self.source.suffix.as_str() {
            "H0_H0" => [low, low],
            "H1_H1" => [high, high],
            "H1_H0" | "" => [low, high],
            _ => [high, low],
        };
        [low, high].map(|bits| self.signed(self.format.read(bits)))
    }

    /// Its bits, when they are the same always.
    fn fixed(&self) -> Option<u32> {
        match self.source.from {
            From::Thread(ZERO) => Some(0),
            From::Number(number) => Some(number),
            From::Thread(_) | From::Warp(_) | From::Constant(_) => None,
        }
    }

    fn signed(&self, value: f32) -> f32 {
        let value = if self.source.absolute { value.abs() } else { value };
        if self.source.negative { -value } else { value }
    }
}

pub(super) fn halves(bits: u32) -> [u16; 2] {
    let [a, b, c, d] = bits.to_le_bytes();
    [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])]
}

pub(super) fn joined(low: u16, high: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

/// The next source: an immediate is printed as two numbers.
fn pair(args: &mut Args<'_>, format: Format) -> Result<Pair, String> {
    let source = args.float()?;
    let suffix = source.suffix.clone();
    if source.immediate {
        let second =
            args.peek().is_some_and(|one| matches!(one.value, Value::Integer(_) | Value::Float));
        if second {
            args.next()?;
        }
    }
    let source = Float { suffix: if source.immediate { String::new() } else { suffix }, ..source };
    Ok(Pair { source, format, single: false })
}

fn arithmetic(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let format = Format::of(line);
    let target_suffix = args.peek().map(|one| one.suffix.clone()).unwrap_or_default();
    let target = args.target()?;
    let (a, b) = (pair(&mut args, format)?, pair(&mut args, format)?);
    let c = if line.name() == "HFMA2" { Some(pair(&mut args, format)?) } else { None };
    let (sums, single) = (line.name() == "HADD2", line.has("F32"));
    let (saturate, relu) = (line.has("SAT"), line.has("RELU"));
    if !target_suffix.is_empty() {
        return Err("a result of one half is not known".into());
    }
    let one = move |a: [f32; 2], b: [f32; 2], c: Option<[f32; 2]>| {
        let [low, high] = [0, 1].map(|part| {
            let (x, y) = (f64::from(a[part]), f64::from(b[part]));
            let value = match c {
                Some(c) => x * y + f64::from(c[part]),
                None if sums => x + y,
                None => x * y,
            };
            let value = if saturate { value.clamp(0.0, 1.0) } else { value };
            if relu { value.max(0.0) } else { value }
        });
        match single {
            true => super::rounding::narrow(low).to_bits(),
            false => joined(format.write(low), format.write(high)),
        }
    };
    // With numbers alone it is a move, as compilers use it.
    let third = c.as_ref().map_or(Some(0), Pair::fixed);
    if let (Some(x), Some(y), Some(z)) = (a.fixed(), b.fixed(), third) {
        return Ok(constant(target, one(a.of(x), b.of(y), c.as_ref().map(|c| c.of(z)))));
    }
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.get(scope), b.get(scope));
        let c = c.as_ref().map(|c| c.get(scope));
        let value: Lanes = std::array::from_fn(|i| one(a[i], b[i], c.map(|c| c[i])));
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// The same value always.
fn constant(target: Target, value: u32) -> Action {
    Box::new(move |scope, mask| {
        scope.put(target, mask, &[value; 32]);
        Ok(())
    })
}

fn hmnmx(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let format = Format::of(line);
    let target = args.target()?;
    let (a, b) = (pair(&mut args, format)?, pair(&mut args, format)?);
    let least = args.predicate()?;
    let keeps_nan = line.has("NAN");
    Ok(Box::new(move |scope, mask| {
        let (a, b, least) = (a.get(scope), b.get(scope), scope.holds(least));
        let value = std::array::from_fn(|i| {
            let least = least >> i & 1 == 1;
            let [low, high] = [0, 1].map(|part| minimum(a[i][part], b[i][part], least, keeps_nan));
            joined(format.write(low.into()), format.write(high.into()))
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// A comparison of pairs whose result is a pair: of ones, or of all bits.
fn hset(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let format = Format::of(line);
    let target = args.target()?;
    let (a, b) = (pair(&mut args, format)?, pair(&mut args, format)?);
    let also = args.maybe_predicate().unwrap_or(Guard::ALWAYS);
    let (test, join) = (Test::of(line)?, Join::of(line));
    let one = if line.has("BF") { format.write(1.0) } else { u16::MAX };
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.get(scope), b.get(scope));
        let also = scope.holds(also);
        let [low, high] = [0, 1].map(|part| {
            let holds = mask_of(|i| test.holds(a[i][part].partial_cmp(&b[i][part])));
            join.of_two(holds, also)
        });
        let of = |holds: u32, lane: usize| if holds >> lane & 1 == 1 { one } else { 0 };
        let value = std::array::from_fn(|lane| joined(of(low, lane), of(high, lane)));
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn hsetp(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let format = Format::of(line);
    let (first, second) = (args.predicate()?, args.predicate()?);
    let (a, b) = (pair(&mut args, format)?, pair(&mut args, format)?);
    let also = args.predicate()?;
    let (test, join) = (Test::of(line)?, Join::of(line));
    // Of both, or of each.
    let both = line.suffixes().filter(|one| *one == "AND").count() > 1;
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.get(scope), b.get(scope));
        let also = scope.holds(also);
        let of = |part: usize| mask_of(|i| test.holds(a[i][part].partial_cmp(&b[i][part])));
        let (low, high) = (of(0), of(1));
        if both {
            let all = low & high;
            scope.set(first, mask, join.of_two(all, also));
            scope.set(second, mask, join.of_two(!all, also));
        } else {
            scope.set(first, mask, join.of_two(low, also));
            scope.set(second, mask, join.of_two(high, also));
        }
        Ok(())
    }))
}
