//! Double precision.

use super::args::{Args, Float};
use super::compare::{Join, Results};
use super::float::Test;
use super::rounding::{Rounding, rest_of_sum};
use super::{Action, Maker};
use crate::execute::{From, Scope, mask_of};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "DADD" | "DMUL" | "DFMA" => arithmetic,
        "DSETP" => dsetp,
        _ => return None,
    })
}

const SIGN: u64 = 1 << 63;

impl Float {
    /// Its value of 64 bits: a pair of registers, or an upper half.
    pub(super) fn double(&self, scope: &Scope<'_>) -> [f64; 32] {
        let bits = match self.from {
            From::Number(upper) => [u64::from(upper) << 32; 32],
            from => scope.get64(from),
        };
        scope.grid.vector.make(|i| {
            let bits = bits[i];
            let bits = if self.absolute { bits & !SIGN } else { bits };
            f64::from_bits(if self.negative { bits ^ SIGN } else { bits })
        })
    }
}

fn bits(value: f64) -> u64 {
    if value.is_nan() { 0xfff8_0000_0000_0000 } else { value.to_bits() }
}

/// The product and what its rounding left out.
fn exact_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// `a * b + c`, rounded as `rounding` says.
fn fused(rounding: Rounding, a: f64, b: f64, c: f64) -> f64 {
    let value = a.mul_add(b, c);
    if rounding == Rounding::Nearest || !value.is_finite() {
        return value;
    }
    // The sum of three parts without the result: its sign is that of the error.
    let (product, rest) = exact_product(a, b);
    let sum = product + c;
    let left = rest_of_sum(product, c, sum);
    rounding.double(value, (sum - value) + (left + rest))
}

fn arithmetic(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b) = (args.target()?, args.float()?, args.float()?);
    let name = line.name();
    let c = if name == "DFMA" { Some(args.float()?) } else { None };
    let rounding = Rounding::of(line);
    let is_sum = name == "DADD";
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.double(scope), b.double(scope));
        let c = c.as_ref().map(|c| c.double(scope));
        let vector = scope.grid.vector;
        if rounding == Rounding::Nearest {
            let value = match &c {
                Some(c) => vector.make(|i| bits(a[i].mul_add(b[i], c[i]))),
                None if is_sum => vector.make(|i| bits(a[i] + b[i])),
                None => vector.make(|i| bits(a[i] * b[i])),
            };
            scope.put64(target, mask, &value);
            return Ok(());
        }
        let value = std::array::from_fn(|i| {
            bits(match c {
                Some(c) => fused(rounding, a[i], b[i], c[i]),
                None if is_sum => {
                    let sum = a[i] + b[i];
                    rounding.double(sum, rest_of_sum(a[i], b[i], sum))
                }
                None => {
                    let (product, rest) = exact_product(a[i], b[i]);
                    rounding.double(product, rest)
                }
            })
        });
        scope.put64(target, mask, &value);
        Ok(())
    }))
}

fn dsetp(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let results = Results::read(&mut args)?;
    let (a, b, also) = (args.float()?, args.float()?, args.predicate()?);
    if line.has("MIN") || line.has("MAX") {
        return Ok(choice(results, [a, b], line.has("MIN")));
    }
    let (test, join) = (Test::of(line)?, Join::of(line));
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.double(scope), b.double(scope));
        let holds = scope.grid.vector.mask(|i| test.holds(a[i].partial_cmp(&b[i])));
        let also = scope.holds(also);
        results.set(scope, mask, holds, also, join);
        Ok(())
    }))
}

/// Which one is the smaller or larger: the first result says that it is the first one, the
/// second that neither is a number.
fn choice(results: Results, [a, b]: [Float; 2], least: bool) -> Action {
    Box::new(move |scope, mask| {
        let (a, b) = (a.double(scope), b.double(scope));
        let first = mask_of(|i| {
            let below = a[i].total_cmp(&b[i]).is_lt();
            !a[i].is_nan() && (b[i].is_nan() || below == least)
        });
        let neither = mask_of(|i| a[i].is_nan() && b[i].is_nan());
        results.set_both(scope, mask, first, neither);
        Ok(())
    })
}
