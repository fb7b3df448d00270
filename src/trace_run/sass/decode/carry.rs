//! Additions and multiplications with carries.

use super::args::{Args, Int, NEVER};
use super::{Action, Maker};
use crate::execute::{Lanes, Scope, Target, high, low, mask_of};
use crate::sass::text::{Guard, Line};

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "IADD3" | "VIADD" => iadd3,
        "IMAD" => imad,
        "LEA" => lea,
        _ => return None,
    })
}

/// A source as a number to add, with the carry that its sign gives.
fn addend(source: Int, scope: &Scope<'_>) -> [u64; 32] {
    let value = source.raw(scope);
    match source.negative {
        true => value.map(|v| u64::from(!v) + 1),
        false => value.map(u64::from),
    }
}

fn iadd3(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let outs = [args.maybe_predicate(), args.maybe_predicate()];
    let (a, b) = (args.int()?, args.int()?);
    let c = if args.len() > 0 && !args.peek().is_some_and(|one| one.is_predicate()) {
        Some(args.int()?)
    } else {
        None
    };
    let ins = [args.maybe_predicate().unwrap_or(NEVER), args.maybe_predicate().unwrap_or(NEVER)];
    let carries = line.has("X");
    if outs == [None, None] && !carries {
        return Ok(Box::new(move |scope, mask| {
            let (a, b) = (a.get(scope), b.get(scope));
            let c = c.map_or([0; 32], |c| c.get(scope));
            let sum = std::array::from_fn(|i| a[i].wrapping_add(b[i]).wrapping_add(c[i]));
            scope.put(target, mask, &sum);
            Ok(())
        }));
    }
    let c = c.unwrap_or(Int::NOTHING);
    Ok(Box::new(move |scope, mask| {
        let [a, b, c] = [a, b, c].map(|source| addend(source, scope));
        let [x, y] = ins.map(|one| if carries { scope.holds(one) } else { 0 });
        let sum: [u64; 32] = std::array::from_fn(|i| {
            a[i] + b[i] + c[i] + u64::from(x >> i & 1) + u64::from(y >> i & 1)
        });
        scope.put(target, mask, &sum.map(low));
        for (least, out) in (1..).zip(outs) {
            if let Some(out) = out {
                scope.set(out, mask, mask_of(|i| high(sum[i]) >= least));
            }
        }
        Ok(())
    }))
}

/// What a multiply-add multiplies and adds.
struct Multiply {
    target: Target,
    out: Option<Guard>,
    sources: [Int; 3],
    carry: Option<Guard>,
    signed: bool,
}

fn imad(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let out = args.maybe_predicate();
    let _ = args.maybe_predicate();
    let sources = [args.int()?, args.int()?, args.int()?];
    let carry = args.maybe_predicate().filter(|_| line.has("X"));
    let multiply = Multiply { target, out, sources, carry, signed: !line.has("U32") };
    match (line.has("WIDE"), line.has("HI")) {
        (true, _) => Ok(wide(multiply, false)),
        (_, true) => Ok(wide(multiply, true)),
        _ => Ok(lower(multiply)),
    }
}

fn lower(multiply: Multiply) -> Action {
    let Multiply { target, sources: [a, b, c], carry, .. } = multiply;
    if carry.is_none() && c.from == crate::execute::From::Thread(crate::execute::ZERO) {
        return Box::new(move |scope, mask| {
            let (a, b) = (a.get(scope), b.get(scope));
            scope.put(target, mask, &std::array::from_fn(|i| a[i].wrapping_mul(b[i])));
            Ok(())
        });
    }
    Box::new(move |scope, mask| {
        let [a, b, c] = [a, b, c].map(|source| source.get(scope));
        let carry = carry.map_or(0, |carry| scope.holds(carry));
        let value: Lanes = std::array::from_fn(|i| {
            a[i].wrapping_mul(b[i]).wrapping_add(c[i]).wrapping_add(carry >> i & 1)
        });
        scope.put(target, mask, &value);
        Ok(())
    })
}

/// The product of 64 bits.
#[inline]
fn product(a: u32, b: u32, signed: bool) -> u64 {
    match signed {
        true => (i64::from(a.cast_signed()) * i64::from(b.cast_signed())).cast_unsigned(),
        false => u64::from(a) * u64::from(b),
    }
}

/// Of 64 bits, all or the upper half.
fn wide(multiply: Multiply, upper: bool) -> Action {
    let Multiply { target, out, sources: [a, b, c], carry, signed } = multiply;
    Box::new(move |scope, mask| {
        let (a, b, c) = (a.get(scope), b.get(scope), c.get64(scope));
        let carry = carry.map_or(0, |carry| scope.holds(carry));
        let sum: [u128; 32] = std::array::from_fn(|i| {
            let carry = u128::from(carry >> i & 1);
            u128::from(product(a[i], b[i], signed)) + u128::from(c[i]) + carry
        });
        let lower = |value: u128| u64::try_from(value & u128::from(u64::MAX)).unwrap_or(0);
        match upper {
            true => scope.put(target, mask, &sum.map(|value| high(lower(value)))),
            false => scope.put64(target, mask, &sum.map(lower)),
        }
        if let Some(out) = out {
            scope.set(out, mask, mask_of(|i| sum[i] >> 64 != 0));
        }
        Ok(())
    })
}

fn lea(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let out = args.maybe_predicate();
    let (a, b) = (args.int()?, args.int()?);
    let (upper, extends) = (line.has("HI"), line.has("SX32"));
    let c = if upper && !extends { Some(args.int()?) } else { None };
    let shift = u32::try_from(args.number()?).map_err(|_| "a negative shift")? & 31;
    let carry = args.maybe_predicate().filter(|_| line.has("X"));
    Ok(Box::new(move |scope, mask| {
        let (raw, b) = (a.raw(scope), addend(b, scope));
        let c = c.map_or([0; 32], |c| c.get(scope));
        let carry = carry.map_or(0, |carry| scope.holds(carry));
        let sum: [u64; 32] = std::array::from_fn(|i| {
            let extended = match extends {
                true => i64::from(raw[i].cast_signed()).cast_unsigned(),
                false => u64::from(c[i]) << 32 | u64::from(raw[i]),
            };
            let shifted = extended << shift;
            let part = if upper { high(shifted) } else { low(shifted) };
            let part = if a.negative { u64::from(!part) + 1 } else { u64::from(part) };
            part + b[i] + u64::from(carry >> i & 1)
        });
        scope.put(target, mask, &sum.map(low));
        if let Some(out) = out {
            scope.set(out, mask, mask_of(|i| high(sum[i]) != 0));
        }
        Ok(())
    }))
}
