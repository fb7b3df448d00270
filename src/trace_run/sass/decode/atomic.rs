//! Atomic operations.

use super::args::Args;
use super::half::{Format, halves, joined};
use super::load::{Space, addresses};
use super::rounding::{Rounding, to_brain, to_half};
use super::{Action, Maker};
use crate::execute::{From, Target, ZERO, each, high, low};
use crate::sass::operand::Address;
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "ATOM" | "ATOMG" | "ATOMS" => atomic,
        "RED" | "REDG" => reduction,
        _ => return None,
    })
}

/// The new value from the old one, the operand and, of a compare-and-swap, the other one.
pub(super) type Update = fn(u64, u64, u64) -> u64;

fn single(bits: u64) -> f32 {
    f32::from_bits(low(bits))
}

pub(super) fn add_singles(a: u64, b: u64, _: u64) -> u64 {
    let flush = |value: f32| f32::from_bits(super::float::flushed(value.to_bits()));
    u64::from(flush(flush(single(a)) + flush(single(b))).to_bits())
}

pub(super) fn add_doubles(a: u64, b: u64, _: u64) -> u64 {
    (f64::from_bits(a) + f64::from_bits(b)).to_bits()
}

pub(super) fn add_pairs(a: u64, b: u64, format: Format) -> u64 {
    let (a, b) = (halves(low(a)), halves(low(b)));
    let [x, y] = [0, 1].map(|part| {
        let sum = format.read(a[part]) + format.read(b[part]);
        match format {
            Format::Half => to_half(sum.into(), Rounding::Nearest),
            Format::Brain => to_brain(sum, Rounding::Nearest),
        }
    });
    u64::from(joined(x, y))
}

fn smaller(a: u64, b: u64, wide: bool) -> bool {
    match wide {
        true => a.cast_signed() < b.cast_signed(),
        false => low(a).cast_signed() < low(b).cast_signed(),
    }
}

fn sum(line: &Line) -> Option<Update> {
    Some(match () {
        () if line.has("F32") => add_singles,
        () if line.has("F64") => add_doubles,
        () if line.has("F16x2") => |a, b, _| add_pairs(a, b, Format::Half),
        () if line.has("BF16x2") || line.has("BF16_V2") => |a, b, _| add_pairs(a, b, Format::Brain),
        () if line.suffixes().any(|one| one.starts_with('F') && one != "FTZ") => return None,
        () => |a, b, _| a.wrapping_add(b),
    })
}

/// The function that `line` names.
pub(super) fn update(line: &Line) -> Result<Update, String> {
    let wide = line.has("64") || line.has("S64");
    let signed = line.has("S32") || line.has("S64");
    let found = line.suffixes().find_map(|suffix| -> Option<Update> {
        Some(match suffix {
            "ADD" => return sum(line),
            "MIN" if signed && wide => |a, b, _| if smaller(b, a, true) { b } else { a },
            "MAX" if signed && wide => |a, b, _| if smaller(a, b, true) { b } else { a },
            "MIN" if signed => |a, b, _| if smaller(b, a, false) { b } else { a },
            "MAX" if signed => |a, b, _| if smaller(a, b, false) { b } else { a },
            "MIN" => |a, b, _| a.min(b),
            "MAX" => |a, b, _| a.max(b),
            "POPC" => |a, _, _| a + 1,
            "INC" => |a, b, _| if a >= b { 0 } else { a + 1 },
            "DEC" => |a, b, _| if a == 0 || a > b { b } else { a - 1 },
            "AND" => |a, b, _| a & b,
            "OR" => |a, b, _| a | b,
            "XOR" => |a, b, _| a ^ b,
            "EXCH" => |_, b, _| b,
            "CAS" | "CAST" => |a, b, c| if a == b { c } else { a },
            _ => return None,
        })
    });
    found.ok_or_else(|| "its operation is not known".to_owned())
}

fn atomic(line: &Line) -> Result<Action, String> {
    if line.has("ARRIVE") {
        return super::objects::arrive_at_counter(line);
    }
    let mut args = Args::new(line);
    let out = args.maybe_predicate();
    let target = args.target()?;
    let address = args.memory()?;
    let counts = line.has("POPC");
    let first = if counts { From::Number(0) } else { args.int()?.from };
    let swaps = line.has("CAS") || line.has("CAST");
    let second = if swaps { args.int()?.from } else { From::Number(0) };
    if line.has("128") {
        return Err("of 128 bits it is not known".into());
    }
    let mut operation = Operation::of(line, target, first, second)?;
    operation.status = line.has("CAST");
    Ok(Box::new(move |scope, mask| {
        operation.run(scope, mask, address)?;
        if let Some(out) = out {
            scope.set(out, mask, u32::MAX);
        }
        Ok(())
    }))
}

fn reduction(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let address = args.memory()?;
    let first = args.int()?.from;
    let operation = Operation::of(line, Target::Thread(ZERO), first, From::Number(0))?;
    Ok(Box::new(move |scope, mask| operation.run(scope, mask, address)))
}

struct Operation {
    target: Target,
    first: From,
    second: From,
    space: Space,
    update: Update,
    wide: bool,
    /// The result is whether the swap was done, a number as wide as the operands.
    status: bool,
}

impl Operation {
    fn of(line: &Line, target: Target, first: From, second: From) -> Result<Self, String> {
        let space = Space::of(line);
        let wide = line.has("64") || line.has("S64") || line.has("F64");
        Ok(Self { target, first, second, space, update: update(line)?, wide, status: false })
    }

    fn run(
        &self,
        scope: &mut crate::execute::Scope<'_>,
        mask: u32,
        address: Address,
    ) -> Result<(), String> {
        let places = addresses(scope, address, self.space);
        let bytes = if self.wide { 8 } else { 4 };
        scope.aligned(mask, &places, bytes)?;
        let read = |from: From| match self.wide {
            true => scope.get64(from),
            false => scope.get(from).map(u64::from),
        };
        let (first, second) = (read(self.first), read(self.second));
        let mut olds = [0_u64; 32];
        for lane in each(mask) {
            let mut raw = [0; 8];
            scope.read(self.space, lane, places[lane], &mut raw[..bytes])?;
            let old = u64::from_le_bytes(raw);
            let new = (self.update)(old, first[lane], second[lane]);
            if new != old {
                scope.write(self.space, lane, places[lane], &new.to_le_bytes()[..bytes])?;
            }
            olds[lane] = if self.status { u64::from(old == first[lane]) } else { old };
        }
        scope.put(self.target, mask, &olds.map(low));
        if self.wide {
            scope.put(self.target.next(), mask, &olds.map(high));
        }
        Ok(())
    }
}
