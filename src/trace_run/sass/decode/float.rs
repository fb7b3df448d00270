//! Single precision.

use std::cmp::Ordering;

use super::args::{Args, Float};
use super::compare::{Join, Order, Results};
use super::rounding::{Rounding, narrow, rest_of_sum};
use super::{Action, Maker};
use crate::execute::{Lanes, Scope, SignChange, mask_of, single_bits, view};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "FADD" | "FMUL" | "FFMA" => arithmetic,
        "FMNMX" => fmnmx,
        "FSEL" => fsel,
        "FSETP" => fsetp,
        "FSET" => fset,
        "FCHK" => fchk,
        "MUFU" => mufu,
        _ => return None,
    })
}

const SIGN: u32 = 0x8000_0000;

impl Float {
    /// Its bits with the sign changed as it stands there.
    #[inline]
    pub(super) fn single_bits(&self, scope: &Scope<'_>) -> Lanes {
        let value = scope.get(self.from);
        match (self.absolute, self.negative) {
            (false, false) => value,
            (false, true) => value.map(|v| v ^ SIGN),
            (true, false) => value.map(|v| v & !SIGN),
            (true, true) => value.map(|v| v | SIGN),
        }
    }

    /// How its sign is changed.
    fn sign(&self) -> SignChange {
        SignChange {
            keep: if self.absolute { !SIGN } else { u32::MAX },
            turn: if self.negative { SIGN } else { 0 },
        }
    }

    #[inline]
    fn single(&self, scope: &Scope<'_>, flush: bool) -> [f32; 32] {
        let bits = self.single_bits(scope);
        match flush {
            true => bits.map(|bits| f32::from_bits(flushed(bits))),
            false => bits.map(f32::from_bits),
        }
    }
}

/// Without numbers that are too small to be normal.
#[inline]
pub(super) fn flushed(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & SIGN } else { bits }
}

/// The bits of a result.
#[inline]
fn result(value: f32, flush: bool, saturate: bool) -> u32 {
    if saturate {
        // What is no number becomes 0, and so does a negative one.
        let kept = if value > 0.0 { value.min(1.0) } else { 0.0 };
        return if flush { flushed(kept.to_bits()) } else { kept.to_bits() };
    }
    let bits = single_bits(value);
    if flush { flushed(bits) } else { bits }
}

/// The function of a fused multiply-add that rounds as `rounding` says.
fn directed(rounding: Rounding, a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let sum = product + f64::from(c);
    if sum == 0.0 && rounding == Rounding::Down && (product != 0.0 || c != 0.0) {
        return -0.0;
    }
    rounding.single(sum, rest_of_sum(product, f64::from(c), sum))
}

fn arithmetic(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b) = (args.target()?, args.float()?, args.float()?);
    let name = line.name();
    let c = if name == "FFMA" { Some(args.float()?) } else { None };
    let (flush, saturate) = (line.has("FTZ"), line.has("SAT"));
    let rounding = Rounding::of(line);
    if let Some(scale) = scale(line) {
        return Ok(scaled(target, a, b, scale, [flush, saturate]));
    }
    if rounding == Rounding::Nearest && !flush && !saturate {
        return Ok(match c {
            None if name == "FADD" => simple(target, &a, &b, |a, b| a + b),
            None => simple(target, &a, &b, |a, b| a * b),
            Some(c) => fused(target, a, b, c),
        });
    }
    // A sum is a product with 1 and a sum, a product a sum with a zero that changes nothing.
    let is_sum = name == "FADD";
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.single(scope, flush), b.single(scope, flush));
        let c = c.as_ref().map(|c| c.single(scope, flush));
        let value = scope.grid.vector.make(|i| {
            let value = match (rounding, c) {
                (Rounding::Nearest, Some(c)) => multiply_add(a[i], b[i], c[i]),
                (Rounding::Nearest, None) if is_sum => a[i] + b[i],
                (Rounding::Nearest, None) => a[i] * b[i],
                (_, Some(c)) => directed(rounding, a[i], b[i], c[i]),
                (_, None) if is_sum => directed(rounding, a[i], 1.0, b[i]),
                (_, None) => rounding.single(f64::from(a[i]) * f64::from(b[i]), 0.0),
            };
            result(value, flush, saturate)
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// What a product is also multiplied by.
fn scale(line: &Line) -> Option<f32> {
    line.suffixes().find_map(|suffix| match suffix {
        "D2" => Some(0.5),
        "D4" => Some(0.25),
        "D8" => Some(0.125),
        "M2" => Some(2.0),
        "M4" => Some(4.0),
        "M8" => Some(8.0),
        _ => None,
    })
}

fn scaled(
    target: crate::execute::Target,
    a: Float,
    b: Float,
    scale: f32,
    [flush, saturate]: [bool; 2],
) -> Action {
    Box::new(move |scope, mask| {
        let (a, b) = (a.single(scope, flush), b.single(scope, flush));
        let product = |i: usize| narrow(f64::from(a[i] * scale) * f64::from(b[i]));
        let value = std::array::from_fn(|i| result(product(i), flush, saturate));
        scope.put(target, mask, &value);
        Ok(())
    })
}

fn simple(
    target: crate::execute::Target,
    a: &Float,
    b: &Float,
    function: impl Fn(f32, f32) -> f32 + Copy + Send + Sync + 'static,
) -> Action {
    let ([a, b], [x, y]) = ([a.from, b.from], [a.sign(), b.sign()]);
    Box::new(move |scope, mask| {
        view!(a, scope, a);
        view!(b, scope, b);
        let value =
            scope.grid.vector.make(|i| single_bits(function(x.single(a[i]), y.single(b[i]))));
        scope.put(target, mask, &value);
        Ok(())
    })
}

fn fused(target: crate::execute::Target, a: Float, b: Float, c: Float) -> Action {
    let signs = [a.sign(), b.sign(), c.sign()];
    Box::new(move |scope, mask| {
        let value = {
            view!(a, scope, a.from);
            view!(b, scope, b.from);
            view!(c, scope, c.from);
            scope.grid.vector.multiply_add([a, b, c], signs)
        };
        let value = value.unwrap_or_else(|| {
            let [a, b, c] = [&a, &b, &c].map(|source| source.single(scope, false));
            let (value, care) = multiply_adds(&a, &b, &c);
            match care {
                true => std::array::from_fn(|i| single_bits(multiply_add(a[i], b[i], c[i]))),
                false => value,
            }
        });
        scope.put(target, mask, &value);
        Ok(())
    })
}

/// `a * b + c` of every lane as one loop without branches; whether a lane has to be rounded with
/// care, or is no number.
#[inline]
fn multiply_adds(a: &[f32; 32], b: &[f32; 32], c: &[f32; 32]) -> (Lanes, bool) {
    let mut value = [0; 32];
    let mut care = false;
    for lane in 0..32 {
        let sum = f64::from(a[lane]) * f64::from(b[lane]) + f64::from(c[lane]);
        let single = narrow(sum);
        value[lane] = single.to_bits();
        care |= sum.to_bits() & 0x1fff_ffff == 0x1000_0000;
        // Too small to be normal and not 0, or no number.
        care |= single.abs() < 1.2e-38 && sum != 0.0 || single.is_nan();
    }
    (value, care)
}

/// `a * b + c` rounded once. A double holds the product exactly; its sum is rounded twice, and
/// that shows only where the first rounding ends in the middle of two singles.
#[inline]
pub(super) fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    let sum = f64::from(a) * f64::from(b) + f64::from(c);
    let value = narrow(sum);
    let middle = sum.to_bits() & 0x1fff_ffff == 0x1000_0000;
    if middle || value.abs() < 1.2e-38 { f32::mul_add(a, b, c) } else { value }
}

fn fmnmx(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b) = (args.target()?, args.float()?, args.float()?);
    let least = args.predicate()?;
    let (flush, keeps_nan) = (line.has("FTZ"), line.has("NAN"));
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.single(scope, flush), b.single(scope, flush));
        let least = scope.holds(least);
        let vector = scope.grid.vector;
        let value = match (least, keeps_nan) {
            (0 | u32::MAX, false) => vector.make(|i| extreme(a[i], b[i], least != 0).to_bits()),
            _ => vector.make(|i| minimum(a[i], b[i], least >> i & 1 == 1, keeps_nan).to_bits()),
        };
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// The same as [`minimum`] without branches.
#[inline]
fn extreme(a: f32, b: f32, least: bool) -> f32 {
    // As integers with a sign, the order of numbers is that of their bits but for the sign's.
    let order = |value: f32| {
        let bits = value.to_bits().cast_signed();
        bits ^ ((bits >> 31).cast_unsigned() >> 1).cast_signed()
    };
    let first = (order(a) < order(b)) == least;
    let chosen = if first { a } else { b };
    let chosen = if b.is_nan() { a } else { chosen };
    let chosen = if a.is_nan() { b } else { chosen };
    if a.is_nan() && b.is_nan() { f32::from_bits(0x7fff_ffff) } else { chosen }
}

/// The smaller or the larger one; the other one where one is no number.
pub(super) fn minimum(a: f32, b: f32, least: bool, keeps_nan: bool) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => return f32::from_bits(0x7fff_ffff),
        (true, _) | (_, true) if keeps_nan => return f32::from_bits(0x7fff_ffff),
        (true, _) => return b,
        (_, true) => return a,
        _ => {}
    }
    if (a.total_cmp(&b) == Ordering::Less) == least { a } else { b }
}

fn fsel(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b) = (args.target()?, args.float()?, args.float()?);
    let first = args.predicate()?;
    let flush = line.has("FTZ");
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.single_bits(scope), b.single_bits(scope));
        let first = scope.holds(first);
        let value = scope.grid.vector.make(|i| {
            let bits = if first >> i & 1 == 1 { a[i] } else { b[i] };
            if flush { flushed(bits) } else { bits }
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// A comparison of numbers: of those that have no order, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    order: Order,
    unordered: bool,
}

impl Test {
    /// The test of the first suffix of `line`.
    pub(super) fn of(line: &Line) -> Result<Self, String> {
        let suffixes = || line.suffixes().filter(|one| !matches!(*one, "BF" | "FTZ" | "BF16_V2"));
        let name = suffixes().next().unwrap_or("");
        let test = |order, unordered| Some(Self { order, unordered });
        let found = match name {
            "NUM" => test(Order { less: true, equal: true, greater: true }, false),
            "NAN" => test(Order { less: false, equal: false, greater: false }, true),
            "T" => test(Order { less: true, equal: true, greater: true }, true),
            "F" => test(Order { less: false, equal: false, greater: false }, false),
            _ => match name.strip_suffix('U') {
                Some(name) => Order::named(name).and_then(|order| test(order, true)),
                None => Order::named(name).and_then(|order| test(order, false)),
            },
        };
        found.ok_or_else(|| "its order is not known".to_owned())
    }

    /// Of lanes that are less and that are equal, and of those that are greater.
    #[inline]
    pub(super) fn of_masks(self, [less, equal, greater]: [u32; 3]) -> u32 {
        let unordered = if self.unordered { !(less | equal | greater) } else { 0 };
        self.order.of_masks([less, equal, greater]) | unordered
    }

    #[inline]
    pub(super) fn holds(self, order: Option<Ordering>) -> bool {
        order.map_or(self.unordered, |order| self.order.holds(order))
    }
}

fn fsetp(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let results = Results::read(&mut args)?;
    let (a, b, also) = (args.float()?, args.float()?, args.predicate()?);
    let (test, join, flush) = (Test::of(line)?, Join::of(line), line.has("FTZ"));
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.single(scope, flush), b.single(scope, flush));
        let vector = scope.grid.vector;
        let less = vector.mask(|i| a[i] < b[i]);
        let equal = vector.mask(|i| a[i] == b[i]);
        let greater = vector.mask(|i| a[i] > b[i]);
        let holds = test.of_masks([less, equal, greater]);
        let also = scope.holds(also);
        results.set(scope, mask, holds, also, join);
        Ok(())
    }))
}

fn fset(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b) = (args.target()?, args.float()?, args.float()?);
    let also = args.predicate()?;
    let (test, join, flush) = (Test::of(line)?, Join::of(line), line.has("FTZ"));
    let one = if line.has("BF") { 1.0_f32.to_bits() } else { u32::MAX };
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.single(scope, flush), b.single(scope, flush));
        let holds = mask_of(|i| test.holds(a[i].partial_cmp(&b[i])));
        let holds = join.of_two(holds, scope.holds(also));
        let value = std::array::from_fn(|i| if holds >> i & 1 == 1 { one } else { 0 });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// Whether `a / b` needs the slow division: exponents at the ends of their range.
fn needs_care(a: f32, b: f32) -> bool {
    let exponent = |value: f32| (value.to_bits() >> 23 & 0xff).cast_signed();
    let (above, below) = (exponent(a), exponent(b));
    let quotient = above - below;
    !(1..=254).contains(&above)
        || !(3..=252).contains(&below)
        || !(-125..=126).contains(&quotient)
        || above < 25
}

fn fchk(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (out, a, b) = (args.predicate()?, args.float()?, args.float()?);
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.single(scope, false), b.single(scope, false));
        scope.set(out, mask, mask_of(|i| needs_care(a[i], b[i])));
        Ok(())
    }))
}

fn mufu(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.float()?);
    let name = line.suffixes().next().unwrap_or("");
    let function: fn(f64) -> f64 = match name {
        "RCP" => |x| 1.0 / x,
        "RSQ" => |x| 1.0 / x.sqrt(),
        "SQRT" => f64::sqrt,
        "EX2" => f64::exp2,
        "LG2" => f64::log2,
        "SIN" => f64::sin,
        "COS" => f64::cos,
        "TANH" => f64::tanh,
        "RCP64H" => return Ok(upper_half(target, a, |x| 1.0 / x)),
        "RSQ64H" => return Ok(upper_half(target, a, |x| 1.0 / x.sqrt())),
        _ => return Err("its function is not known".into()),
    };
    if line.has("F16") {
        return Err("of half precision it is not known".into());
    }
    // All but these take numbers that are too small to be normal as 0.
    let flush = matches!(name, "RCP" | "RSQ" | "SQRT" | "LG2");
    let angle = matches!(name, "SIN" | "COS");
    Ok(Box::new(move |scope, mask| {
        let value = a.single(scope, false).map(|value| {
            let value = if flush { f32::from_bits(flushed(value.to_bits())) } else { value };
            let value = f64::from(value);
            // Angles are in turns.
            let value = if angle { value * std::f64::consts::TAU } else { value };
            result(narrow(function(value)), flush, false)
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// A function of a double of which only the upper halves are read and written.
fn upper_half(target: crate::execute::Target, a: Float, function: fn(f64) -> f64) -> Action {
    Box::new(move |scope, mask| {
        let value = a.single_bits(scope).map(|bits| {
            let value = function(f64::from_bits(u64::from(bits) << 32));
            crate::execute::high(value.to_bits())
        });
        scope.put(target, mask, &value);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::{directed, minimum, multiply_add, multiply_adds};
    use crate::sass::decode::rounding::Rounding;

    #[test]
    fn a_fused_sum_is_rounded_once() {
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bits = crate::execute::high(state);
            // Exponents near each other, where roundings meet.
            f32::from_bits(bits & 0x807f_ffff | (120 + (bits >> 23 & 15)) << 23)
        };
        for _ in 0..200_000 {
            let (a, b, c) = (draw(), draw(), draw());
            assert_eq!(multiply_add(a, b, c).to_bits(), f32::mul_add(a, b, c).to_bits());
            let (down, up) = (directed(Rounding::Down, a, b, c), directed(Rounding::Up, a, b, c));
            let near = f32::mul_add(a, b, c);
            assert!(down <= near && near <= up && up <= down.next_up(), "{a} {b} {c}");
        }
    }

    #[test]
    fn lanes_that_need_no_care_are_rounded_as_alone() {
        let ends = [0.0, -0.0, 1.0, f32::MIN_POSITIVE, 1e-45, 3e38, f32::INFINITY, f32::NAN, -0.1];
        for (a, b, c) in ends.into_iter().flat_map(|a| {
            ends.into_iter().flat_map(move |b| ends.into_iter().map(move |c| (a, b, c)))
        }) {
            let (value, care) = multiply_adds(&[a; 32], &[b; 32], &[c; 32]);
            let expected = f32::mul_add(a, b, c);
            assert!(care || value == [expected.to_bits(); 32], "{a} {b} {c}");
            assert!(care || !expected.is_nan());
        }
    }

    #[test]
    fn a_minimum_leaves_out_what_is_no_number() {
        assert_eq!(minimum(f32::NAN, 2.0, true, false), 2.0);
        assert!(minimum(f32::NAN, 2.0, true, true).is_nan());
        assert_eq!(minimum(-0.0, 0.0, true, false).to_bits(), (-0.0_f32).to_bits());
    }
}
