//! Moves between registers, constants, predicates and special registers.

use super::args::Args;
use super::{Action, Maker};
use crate::execute::{Lanes, SHARED_WINDOW, Scope, Target, high, low, mask_of};
use crate::sass::operand::Value;
use crate::sass::text::{Guard, Line};

pub(super) fn find(name: &str) -> Option<Maker> {
    Some(match name {
        "MOV" => mov,
        "LDC" => ldc,
        "S2R" | "S2UR" => s2r,
        "CS2R" => cs2r,
        "R2UR" => r2ur,
        "B2R" => b2r,
        "NOP" | "DEPBAR" | "LDGDEPBAR" | "MEMBAR" | "ERRBAR" | "CCTL" | "FENCE" | "PREEXIT"
        | "ACQBULK" | "WARPGROUP" | "PMTRIG" | "CGAERRBAR" | "ENDCOLLECTIVE" => nothing,
        "BMOV" => bmov,
        "LEPC" => lepc,
        _ => return None,
    })
}

fn nothing(_: &Line) -> Result<Action, String> {
    Ok(Box::new(|_, _| Ok(())))
}

fn mov(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.int()?);
    let wide = line.has("64");
    Ok(Box::new(move |scope, mask| {
        if wide {
            let value = a.get64(scope);
            scope.put64(target, mask, &value);
        } else {
            let value = a.get(scope);
            scope.put(target, mask, &value);
        }
        Ok(())
    }))
}

fn ldc(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let (target, a) = (args.target()?, args.int()?);
    let kind = line.suffixes().find(|one| *one != "E").unwrap_or("32").to_owned();
    let indexed = line.indexed_constant();
    let narrow: fn(u32) -> u32 = match kind.as_str() {
        "U8" => |v| v & 0xff,
        "S8" => |v| i32::from(v.to_le_bytes()[0].cast_signed()).cast_unsigned(),
        "U16" => |v| v & 0xffff,
        "S16" => |v| ((v << 16).cast_signed() >> 16).cast_unsigned(),
        "32" => |v| v,
        "64" => {
            return Ok(Box::new(move |scope, mask| {
                indexed.into_iter().for_each(|place| scope.note_constant(place));
                let value = scope.get64(a.from);
                scope.put64(target, mask, &value);
                Ok(())
            }));
        }
        _ => return Err("its width is not known".into()),
    };
    Ok(Box::new(move |scope, mask| {
        indexed.into_iter().for_each(|place| scope.note_constant(place));
        let value = a.get(scope).map(narrow);
        scope.put(target, mask, &value);
        Ok(())
    }))
}

/// Warps of an SM (CUDA C++ Programming Guide, compute capability 9.0).
const MOST_WARPS: u32 = 64;

/// What a special register holds.
type Special = fn(&Scope<'_>) -> Lanes;

fn lane_number(lane: usize) -> u32 {
    u32::try_from(lane).unwrap_or(0)
}

fn special(name: &str) -> Option<Special> {
    Some(match name {
        "SR_TID.X" => |scope| scope.warp.threads[0],
        "SR_TID.Y" => |scope| scope.warp.threads[1],
        "SR_TID.Z" => |scope| scope.warp.threads[2],
        "SR_CTAID.X" => |scope| [scope.position.x; 32],
        "SR_CTAID.Y" => |scope| [scope.position.y; 32],
        "SR_CTAID.Z" => |scope| [scope.position.z; 32],
        "SR_LANEID" => |_| std::array::from_fn(lane_number),
        "SR_EQMASK" => |_| std::array::from_fn(|lane| 1 << lane),
        "SR_LTMASK" => |_| std::array::from_fn(|lane| (1 << lane) - 1),
        "SR_LEMASK" => |_| std::array::from_fn(|lane| u32::MAX >> (31 - lane)),
        "SR_GTMASK" => |_| std::array::from_fn(|lane| !(u32::MAX >> (31 - lane))),
        "SR_GEMASK" => |_| std::array::from_fn(|lane| u32::MAX << lane),
        "SR_CLOCKLO" | "SR_GLOBALTIMERLO" => |scope| [low(scope.warp.executed); 32],
        "SR_CLOCKHI" | "SR_GLOBALTIMERHI" => |scope| [high(scope.warp.executed); 32],
        "SR_WARPID" | "SR_VIRTUALWARPID" => |scope| [scope.warp.number; 32],
        // The number of the warp stands in bits 8 to 14, above a lane's.
        "SR_VIRTID" => |scope| [(scope.warp.number & 0x7f) << 8; 32],
        // From Hopper on: in bits 8 to 15 the warps that an SM has at most.
        "SR_VIRTCFG" => |_| [MOST_WARPS << 8; 32],
        "SR_SMEMSZ" => |scope| [scope.grid.launch.shared_bytes; 32],
        "SR_SWINLO" => |_| [low(SHARED_WINDOW); 32],
        "SR_SWINHI" => |_| [high(SHARED_WINDOW); 32],
        "SR_CgaCtaId" => |scope| [scope.cta.cluster.rank; 32],
        "SR_SMID" | "SR_VIRTUALSMID" => |scope| [scope.cta.sm; 32],
        // The lowest place of the stack, which code for the debugger asks for.
        "SR_LMEMHIOFF" => |_| [0; 32],
        "SRZ" | "SR_NVLINK" => |_| [0; 32],
        _ => return None,
    })
}

fn word(args: &mut Args<'_>) -> Result<String, String> {
    match &args.next()?.value {
        Value::Word(word) => Ok(word.clone()),
        other => Err(format!("unexpected operand {other:?}")),
    }
}

fn s2r(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let name = word(&mut args)?;
    let read = special(&name).ok_or_else(|| format!("special register {name} is not known"))?;
    Ok(Box::new(move |scope, mask| {
        let value = read(scope);
        scope.put(target, mask, &value);
        Ok(())
    }))
}

fn cs2r(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let name = word(&mut args)?;
    let read = special(&name).ok_or_else(|| format!("special register {name} is not known"))?;
    let further = special(&name.replace("LO", "HI")).filter(|_| name.ends_with("LO"));
    let pair = !line.has("32");
    Ok(Box::new(move |scope, mask| {
        let (value, upper) = (read(scope), further.map_or([0; 32], |read| read(scope)));
        scope.put(target, mask, &value);
        if pair {
            scope.put(target.next(), mask, &upper);
        }
        Ok(())
    }))
}

fn r2ur(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let out = args.maybe_predicate();
    let target = args.target()?;
    let a = args.int()?;
    let any = line.has("OR");
    Ok(Box::new(move |scope, mask| {
        let value = a.get(scope);
        let chosen = match any && out.is_none() {
            true => crate::execute::each(mask).fold(0, |all, lane| all | value[lane]),
            false => value[mask.trailing_zeros() as usize % 32],
        };
        scope.put(target, mask, &[chosen; 32]);
        // Loops over the values of a warp go on with the lanes that have another one, here or,
        // with `OR`, in a register before.
        if let Some(out) = out {
            let before = if any { scope.holds(out) } else { 0 };
            scope.set(out, mask, before | mask_of(|lane| value[lane] != chosen));
        }
        Ok(())
    }))
}

fn b2r(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    if !line.has("RESULT") {
        return Err("this form is not known".into());
    }
    let target = args.target()?;
    let out = args.maybe_predicate();
    Ok(Box::new(move |scope, mask| {
        let [count, all, any] = scope.warp.reduced;
        scope.put(target, mask, &[count; 32]);
        if let Some(out) = out {
            let holds = if scope.warp.reduces_all { all } else { any };
            scope.set(out, mask, 0_u32.wrapping_sub(holds));
        }
        Ok(())
    }))
}

/// To and from convergence barriers, which calls save.
fn bmov(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let clears = line.has("CLEAR");
    if let Some(Value::Barrier(number)) = args.peek().map(|one| &one.value) {
        let number = usize::from(*number);
        args.next()?;
        let a = args.int()?;
        return Ok(Box::new(move |scope, mask| {
            let value = a.get(scope);
            for lane in crate::execute::each(mask) {
                scope.warp.barriers[number][lane] = value[lane];
            }
            Ok(())
        }));
    }
    let target: Target = args.target()?;
    let Value::Barrier(number) = args.next()?.value else {
        return Err("this form is not known".into());
    };
    let number = usize::from(number);
    Ok(Box::new(move |scope, mask| {
        let value = scope.warp.barriers[number];
        scope.put(target, mask, &value);
        if clears {
            for lane in crate::execute::each(mask) {
                scope.warp.barriers[number][lane] = 0;
            }
        }
        Ok(())
    }))
}

/// The place of the instruction itself, or the one that it names.
fn lepc(line: &Line) -> Result<Action, String> {
    let mut args = Args::new(line);
    let target = args.target()?;
    let place = if args.len() > 0 { args.number()?.cast_unsigned() } else { line.pc };
    Ok(Box::new(move |scope, mask| {
        scope.put64(target, mask, &[place; 32]);
        Ok(())
    }))
}

/// A guard as a source, to read predicates together.
pub(super) fn bit(scope: &Scope<'_>, number: u8) -> u32 {
    scope.holds(Guard { number, ..Guard::ALWAYS })
}
