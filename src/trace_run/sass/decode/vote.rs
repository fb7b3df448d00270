//! Exchange between the lanes of a warp.

use super::args::Args;
use super::{Action, Maker};
use crate::execute::{Lanes, each, mask_of};
use crate::sass::operand::Value;
use crate::sass::text::Line;

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "VOTE" | "VOTEU" => vote,
        "SHFL" => shfl,
        "MATCH" => matches,
        "REDUX" => redux,
        "ELECT" => elect,
        _ => return None,
    })
}

fn vote(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let is_register = |value: &Value| matches!(value, Value::Register(_) | Value::Uniform(_));
    let target = match args.peek() {
        Some(operand) if is_register(&operand.value) => Some(args.target()?),
        _ => None,
    };
    let first = args.predicate()?;
    let (out, of) = match args.maybe_predicate() {
        Some(of) => (Some(first), of),
        None => (None, first),
    };
    let (all, equal) = (line.has("ALL"), line.has("EQ"));
    // The lanes of a vote are those at this place, whatever a guard of the warp says.
    Ok(Box::new(move |scope, mask| {
        let holding = scope.holds(of) & mask;
        if let Some(target) = target {
            scope.put(target, mask, &[holding; 32]);
        }
        let holds = match (all, equal) {
            (true, _) => holding == mask,
            (_, true) => holding == mask || holding == 0,
            _ => holding != 0,
        };
        if let Some(out) = out {
            scope.set(out, mask, 0_u32.wrapping_sub(u32::from(holds)));
        }
        Ok(())
    }))
}

/// The lane that `lane` reads, and whether it lies in the lane's segment.
fn partner(mode: &str, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (segment, clamp) = (c >> 8 & 31, c & 31);
    let least = lane & segment;
    let most = least | clamp & !segment;
    let b = b & 31;
    let (from, inside) = match mode {
        "UP" => (lane.wrapping_sub(b), i64::from(lane) - i64::from(b) >= i64::from(most)),
        "DOWN" => (lane + b, lane + b <= most),
        "BFLY" => (lane ^ b, lane ^ b <= most),
        _ => {
            let from = least | b & !segment;
            (from, from <= most)
        }
    };
    if inside { (from & 31, true) } else { (lane, false) }
}

fn shfl(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let out = args.predicate()?;
    let (target, a, b, c) = (args.target()?, args.int()?, args.int()?, args.int()?);
    let mode = line.suffixes().next().ok_or("its mode is not known")?.to_owned();
    Ok(Box::new(move |scope, mask| {
        let (a, b, c) = (a.get(scope), b.get(scope), c.get(scope));
        let mut inside = 0;
        let value: Lanes = std::array::from_fn(|lane| {
            let number = u32::try_from(lane).unwrap_or(0);
            let (from, within) = partner(&mode, number, b[lane], c[lane]);
            inside |= u32::from(within) << lane;
            // What a lane that is not here would give is not defined; 0 is the same always.
            if mask >> from & 1 == 1 { a[from as usize] } else { 0 }
        });
        scope.put(target, mask, &value);
        scope.set(out, mask, inside);
        Ok(())
    }))
}

fn matches(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let out = args.maybe_predicate();
    let (target, a) = (args.target()?, args.int()?);
    let (wide, all) = (line.has("U64"), line.has("ALL"));
    Ok(Box::new(move |scope, mask| {
        let value = if wide { a.get64(scope) } else { a.get(scope).map(u64::from) };
        let same: Lanes =
            std::array::from_fn(|lane| mask & mask_of(|other| value[other] == value[lane]));
        if !all {
            scope.put(target, mask, &same);
            return Ok(());
        }
        let whole = mask != 0 && same[mask.trailing_zeros() as usize] == mask;
        scope.put(target, mask, &[if whole { mask } else { 0 }; 32]);
        if let Some(out) = out {
            scope.set(out, mask, 0_u32.wrapping_sub(u32::from(whole)));
        }
        Ok(())
    }))
}

fn redux(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.int()?);
    let signed = line.has("S32");
    let join: fn(u32, u32) -> u32 = match line.suffixes().next().unwrap_or("AND") {
        "SUM" => u32::wrapping_add,
        "OR" => |a, b| a | b,
        "XOR" => |a, b| a ^ b,
        "MIN" if signed => |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned(),
        "MAX" if signed => |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned(),
        "MIN" => u32::min,
        "MAX" => u32::max,
        _ => |a, b| a & b,
    };
    Ok(Box::new(move |scope, mask| {
        let value = a.get(scope);
        let joined = each(mask).map(|lane| value[lane]).reduce(join).unwrap_or(0);
        scope.put(target, mask, &[joined; 32]);
        Ok(())
    }))
}

fn elect(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let out = args.predicate()?;
    let target = args.target()?;
    Ok(Box::new(move |scope, mask| {
        let first = mask & mask.wrapping_neg();
        scope.set(out, mask, first);
        scope.put(target, mask, &[first; 32]);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::partner;

    #[test]
    fn shuffles_read_the_lanes_that_ptx_names() {
        assert_eq!(partner("DOWN", 5, 16, 0x1f), (21, true));
        assert_eq!(partner("DOWN", 20, 16, 0x1f), (20, false));
        assert_eq!(partner("UP", 5, 1, 0), (4, true));
        assert_eq!(partner("UP", 0, 1, 0), (0, false));
        assert_eq!(partner("BFLY", 5, 1, 0x1f), (4, true));
        // Width 8: segments of eight lanes.
        assert_eq!(partner("IDX", 13, 2, 0x181f), (10, true));
        assert_eq!(partner("DOWN", 7, 1, 0x181f), (7, false));
        assert_eq!(partner("UP", 8, 1, 0x1800), (8, false));
    }
}
