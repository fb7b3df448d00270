//! Additions and multiplications with carries.

use super::args::{Args, Int, NEVER};
use super::{Action, Maker};
use crate::execute::{Lanes, Lanes64, Target, high, low, view};
use crate::sass::operand::Operand;
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
#[inline]
fn addend(value: u32, negative: bool) -> u64 {
    let turn = if negative { u32::MAX } else { 0 };
    u64::from(value ^ turn) + u64::from(negative)
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
    if line.has("64") {
        return wide_sum(line, target, [a, b, c.unwrap_or(Int::NOTHING)]);
    }
    let carries = line.has("X");
    if outs == [None, None] && !carries {
        return Ok(plain_sum(target, [a, b], c));
    }
    let c = c.unwrap_or(Int::NOTHING);
    Ok(Box::new(move |scope, mask| {
        let vector = scope.grid.vector;
        let [x, y] = ins.map(|one| if carries { scope.holds(one) } else { 0 });
        let sum = {
            view!(d, scope, a.raw());
            view!(e, scope, b.raw());
            view!(f, scope, c.raw());
            vector.make(|i| {
                let sum = addend(d[i], a.negative) + addend(e[i], b.negative);
                let carries = (x >> i & 1) + (y >> i & 1);
                sum + addend(f[i], c.negative) + u64::from(carries)
            })
        };
        scope.put(target, mask, &vector.make(|i| low(sum[i])));
        for (least, out) in (1..).zip(outs) {
            if let Some(out) = out {
                scope.set(out, mask, vector.mask(|i| high(sum[i]) >= least));
            }
        }
        Ok(())
    }))
}

/// A sum of pairs of registers.
fn wide_sum(line: &Line, target: Target, sources: [Int; 3]) -> Result<Action, String> {
    let below = |one: &Operand| one.integer().is_some_and(|number| number < 0);
    if line.operands.iter().any(|one| below(one) || one.is_predicate()) {
        return Err("with carries or a negative number it is not known".into());
    }
    Ok(Box::new(move |scope, mask| {
        let [a, b, c] = sources.map(|one| one.get64(scope));
        let sum = scope.grid.vector.make(|i| a[i].wrapping_add(b[i]).wrapping_add(c[i]));
        scope.put64(target, mask, &sum);
        Ok(())
    }))
}

/// A sum without carries.
fn plain_sum(target: Target, [a, b]: [Int; 2], c: Option<Int>) -> Action {
    Box::new(move |scope, mask| {
        let vector = scope.grid.vector;
        let sum = {
            view!(a, scope, a);
            view!(b, scope, b);
            match c {
                None => vector.make(|i| a[i].wrapping_add(b[i])),
                Some(c) => {
                    view!(c, scope, c);
                    vector.make(|i| a[i].wrapping_add(b[i]).wrapping_add(c[i]))
                }
            }
        };
        scope.put(target, mask, &sum);
        Ok(())
    })
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
            view!(a, scope, a);
            view!(b, scope, b);
            let value = scope.grid.vector.make(|i| a[i].wrapping_mul(b[i]));
            scope.put(target, mask, &value);
            Ok(())
        });
    }
    Box::new(move |scope, mask| {
        view!(a, scope, a);
        view!(b, scope, b);
        view!(c, scope, c);
        let carry = carry.map_or(0, |carry| scope.holds(carry));
        let value: Lanes = scope
            .grid
            .vector
            .make(|i| a[i].wrapping_mul(b[i]).wrapping_add(c[i]).wrapping_add(carry >> i & 1));
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
        let vector = scope.grid.vector;
        let carry = carry.map_or(0, |carry| scope.holds(carry));
        let added = c.get64(scope);
        let products: Lanes64 = {
            view!(a, scope, a);
            view!(b, scope, b);
            match signed {
                true => vector.make(|i| product(a[i], b[i], true)),
                false => vector.make(|i| product(a[i], b[i], false)),
            }
        };
        let sum = vector
            .make(|i| products[i].wrapping_add(added[i]).wrapping_add(u64::from(carry >> i & 1)));
        match upper {
            true => scope.put(target, mask, &vector.make(|i| high(sum[i]))),
            false => scope.put64(target, mask, &sum),
        }
        if let Some(out) = out {
            let over = |i: usize| {
                let (sum, first) = products[i].overflowing_add(added[i]);
                first || sum.overflowing_add(u64::from(carry >> i & 1)).1
            };
            scope.set(out, mask, vector.mask(over));
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
    let c = if upper && !extends { args.int()? } else { Int::NOTHING };
    let shift = u32::try_from(args.number()?).map_err(|_| "a negative shift")? & 31;
    let carry = args.maybe_predicate().filter(|_| line.has("X"));
    Ok(Box::new(move |scope, mask| {
        let vector = scope.grid.vector;
        let carry = carry.map_or(0, |carry| scope.holds(carry));
        let sum = {
            view!(raw, scope, a.raw());
            view!(other, scope, b.raw());
            view!(c, scope, c);
            vector.make(|i| {
                let extended = match extends {
                    true => i64::from(raw[i].cast_signed()).cast_unsigned(),
                    false => u64::from(c[i]) << 32 | u64::from(raw[i]),
                };
                let shifted = extended << shift;
                let part = if upper { high(shifted) } else { low(shifted) };
                let part = addend(part, a.negative);
                part + addend(other[i], b.negative) + u64::from(carry >> i & 1)
            })
        };
        scope.put(target, mask, &vector.make(|i| low(sum[i])));
        if let Some(out) = out {
            scope.set(out, mask, vector.mask(|i| high(sum[i]) != 0));
        }
        Ok(())
    }))
}
