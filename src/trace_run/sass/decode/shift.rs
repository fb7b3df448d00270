//! Shifts.

use super::args::Args;
use super::{Action, Maker};
use crate::execute::{high, low, view};
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "SHF" => shf,
        _ => return None,
    })
}

/// `value` moved by `by`, of which values up to 64 count.
#[inline]
pub(super) fn funnel(value: u64, by: u32, left: bool, signed: bool) -> u64 {
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
    use super::funnel;

    #[test]
    fn shifts_by_the_width_or_more_leave_zeros_or_signs() {
        assert_eq!(funnel(1, 64, true, false), 0);
        assert_eq!(funnel(u64::MAX, 64, false, false), 0);
        assert_eq!(funnel(1 << 63, 64, false, true), u64::MAX);
        assert_eq!(funnel(0x8000_0000_0000_0000, 32, false, true), 0xffff_ffff_8000_0000);
    }
}
