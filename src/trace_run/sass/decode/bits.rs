//! Shifting, counting, finding and extracting bits.

use super::args::Args;
use super::{Action, Maker};
use crate::execute::{Lanes, high, low, mask_of, view};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "SHF" => shf,
        "POPC" => popc,
        "FLO" => flo,
        "BREV" => brev,
        "SGXT" => sgxt,
        "BMSK" => bmsk,
        _ => return None,
    })
}

fn unary(line: &Line, function: fn(u32) -> u32) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.int()?);
    Ok(Box::new(move |scope, mask| {
        let value = a.get(scope).map(function);
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn popc(line: &Line) -> Result<Action, String> {
    unary(line, u32::count_ones)
}

fn brev(line: &Line) -> Result<Action, String> {
    unary(line, u32::reverse_bits)
}

/// Position of the highest bit that counts; all ones when there is none.
fn highest(value: u32, signed: bool, shift: bool) -> u32 {
    let value = if signed && value.cast_signed() < 0 { !value } else { value };
    match value.checked_ilog2() {
        None => u32::MAX,
        Some(place) if shift => 31 - place,
        Some(place) => place,
    }
}

fn flo(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let out = args.maybe_predicate();
    let a = args.int()?;
    let (signed, shift) = (!line.has("U32"), line.has("SH"));
    Ok(Box::new(move |scope, mask| {
        let value: Lanes = a.get(scope).map(|v| highest(v, signed, shift));
        scope.put(target, mask, &value);
        if let Some(out) = out {
            scope.set(out, mask, mask_of(|i| value[i] != u32::MAX));
        }
        Ok(())
    }))
}

fn sgxt(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b) = (args.target()?, args.int()?, args.int()?);
    let (signed, wraps) = (!line.has("U32"), line.has("W"));
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.get(scope), b.get(scope));
        let value = std::array::from_fn(|i| {
            let width = if wraps { b[i] & 31 } else { b[i].min(32) };
            if width == 0 {
                return 0;
            }
            let left = a[i] << (32 - width);
            match signed {
                true => (left.cast_signed() >> (32 - width)).cast_unsigned(),
                false => left >> (32 - width),
            }
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn bmsk(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a, b) = (args.target()?, args.int()?, args.int()?);
    let wraps = line.has("W");
    Ok(Box::new(move |scope, mask| {
        let (a, b) = (a.get(scope), b.get(scope));
        let value = std::array::from_fn(|i| {
            let (first, width) = match wraps {
                true => (a[i] & 31, b[i] & 31),
                false => (a[i].min(32), b[i].min(32)),
            };
            let ones = (1_u64 << width) - 1;
            low(ones << first)
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// `value` moved by `by`, of which values up to 64 count.
#[inline]
fn funnel(value: u64, by: u32, left: bool, signed: bool) -> u64 {
    match (left, signed) {
        (true, _) => value.checked_shl(by).unwrap_or(0),
        (_, true) => (value.cast_signed() >> by.min(63)).cast_unsigned(),
        _ => value.checked_shr(by).unwrap_or(0),
    }
}

fn shf(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let (a, b, c) = (args.int()?, args.int()?, args.int()?);
    let kind = line.suffixes().find(|one| matches!(*one, "U32" | "S32" | "U64" | "S64"));
    let kind = kind.ok_or("its type is not known")?;
    let (left, wide, signed) = (line.has("L"), kind.ends_with("64"), kind.starts_with('S'));
    let (wraps, upper) = (line.has("W"), line.has("HI"));
    let most = if wide { 64 } else { 32 };
    Ok(Box::new(move |scope, mask| {
        view!(a, scope, a);
        view!(b, scope, b);
        view!(c, scope, c);
        let value = scope.grid.vector.make(|i| {
            let by = if wraps { b[i] & (most - 1) } else { b[i].min(most) };
            let all = u64::from(c[i]) << 32 | u64::from(a[i]);
            let moved = funnel(all, by, left, signed);
            if upper { high(moved) } else { low(moved) }
        });
        scope.put(target, mask, &value);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::{funnel, highest};

    #[test]
    fn the_highest_bit_is_found_as_count_leading_zeros_says() {
        for value in [0_u32, 1, 2, 0x8000_0000, 0x7fff_ffff, 12345] {
            let expected = if value == 0 { u32::MAX } else { 31 - value.leading_zeros() };
            assert_eq!(highest(value, false, false), expected);
        }
        assert_eq!(highest(1, false, true), 31);
        assert_eq!(highest(u32::MAX, true, false), u32::MAX);
        assert_eq!(highest(0xffff_fff0, true, false), 3);
    }

    #[test]
    fn shifts_by_the_width_or_more_leave_zeros_or_signs() {
        assert_eq!(funnel(1, 64, true, false), 0);
        assert_eq!(funnel(u64::MAX, 64, false, false), 0);
        assert_eq!(funnel(1 << 63, 64, false, true), u64::MAX);
        assert_eq!(funnel(0x8000_0000_0000_0000, 32, false, true), 0xffff_ffff_8000_0000);
    }
}
