//! Instructions that change where lanes go.

use super::args::Args;
use crate::execute::From;
use crate::sass::operand::{Operand, Value};
use crate::sass::text::{Guard, Line};

/// An instruction that may change where lanes go.
pub(crate) enum Control {
    /// To the instruction `target`, where `also` holds.
    Branch { target: usize, also: Option<Guard> },
    /// To `target` with all lanes here when the guard holds for any of them.
    BranchTogether { target: usize },
    /// To `target`: when all lanes of `mask` are here and the guard holds for them, those for which
    /// it holds; or when not, all that are here.
    BranchWhen { target: usize, mask: From, together: bool },
    /// To where a pair of registers and `base` point.
    Jump { address: From, base: u64 },
    /// The lanes end.
    Exit,
    /// The lanes will converge at this barrier.
    Push { barrier: usize },
    /// The lanes wait for those that will converge here.
    Converge { barrier: usize },
    /// The lanes for which `when` holds do not converge at this barrier.
    Break { barrier: usize, when: Guard },
    /// The lanes of `mask` wait for each other; `apart`: those of each mask go on without others
    /// until they converge.
    Sync { mask: From, apart: bool },
    /// A barrier of the CTA.
    Barrier(CtaBarrier),
    /// An arrival at the barrier of the cluster.
    ClusterArrive,
    /// The lanes wait there for all threads of the cluster.
    ClusterWait,
    /// Other lanes of the warp may go first.
    Yield,
    /// So may other lanes and, when the lanes sleep again and again, other warps and CTAs.
    Sleep,
    /// The kernel fails.
    Trap,
}

/// An arrival at a barrier of the CTA.
pub(crate) struct CtaBarrier {
    pub(crate) number: From,
    /// Threads that it waits for; none: all of the CTA.
    pub(crate) expected: Option<From>,
    /// What the barrier counts.
    pub(crate) predicate: Option<Guard>,
    /// The result is whether the predicate holds for all.
    pub(crate) all: bool,
    /// The lanes wait.
    pub(crate) waits: bool,
}

/// The control instruction of `line`; none when it is not one.
pub(super) fn read(line: &Line) -> Option<Result<Control, String>> {
    Some(match line.name() {
        "BRA" => branch(line),
        "BRX" | "RET" => jump(line),
        "CALL" => call(line),
        "EXIT" => Ok(Control::Exit),
        "BSSY" => barrier(line).map(|barrier| Control::Push { barrier }),
        "BSYNC" => barrier(line).map(|barrier| Control::Converge { barrier }),
        "BREAK" => leave(line),
        "WARPSYNC" => sync(line),
        "BAR" => cta_barrier(line),
        "UCGABAR_ARV" => Ok(Control::ClusterArrive),
        "UCGABAR_WAIT" => Ok(Control::ClusterWait),
        "YIELD" => Ok(Control::Yield),
        "NANOSLEEP" => Ok(Control::Sleep),
        "BPT" => Ok(Control::Trap),
        _ => return None,
    })
}

fn index(operand: &Operand) -> Result<usize, String> {
    let place = operand.integer().and_then(|place| usize::try_from(place / 16).ok());
    place.ok_or_else(|| format!("unexpected target {:?}", operand.value))
}

fn branch(line: &Line) -> Result<Control, String> {
    let mut args = Args::new(line);
    if line.has("DIV") || line.has("CONV") {
        // Of the lanes of a mask, or of all of a warp.
        let mask = match args.len() {
            1 => From::Number(u32::MAX),
            _ => source(args.next()?)?,
        };
        let target = index(args.next()?)?;
        return Ok(Control::BranchWhen { target, mask, together: line.has("CONV") });
    }
    if line.has("U") && line.has("ANY") {
        return Ok(Control::BranchTogether { target: index(args.next()?)? });
    }
    let also = args.maybe_predicate();
    Ok(Control::Branch { target: index(args.next()?)?, also })
}

/// A mask: a register, a number, or all lanes as the opposite of zero.
fn source(operand: &Operand) -> Result<From, String> {
    Ok(match operand.value {
        Value::Register(number) => From::Thread(number),
        Value::Uniform(63) if operand.not => From::Number(u32::MAX),
        Value::Uniform(number) if !operand.not => From::Warp(number),
        Value::Integer(number) => From::Number(super::args::bits(number)),
        _ => return Err(format!("unexpected mask {:?}", operand.value)),
    })
}

fn jump(line: &Line) -> Result<Control, String> {
    let mut args = Args::new(line);
    let address = args.int()?.from;
    let place = if args.len() > 0 { args.number()? } else { 0 };
    // A branch prints how far it is from the instruction after it, a return where its
    // function begins.
    let base = match line.name() {
        "BRX" => (line.pc + 16).wrapping_add_signed(place),
        _ => place.cast_unsigned(),
    };
    Ok(Control::Jump { address, base })
}

fn call(line: &Line) -> Result<Control, String> {
    let mut args = Args::new(line);
    let first = args.next()?;
    match first.value {
        Value::Register(number) => {
            let base = if args.len() > 0 { args.number()? } else { 0 };
            Ok(Control::Jump { address: From::Thread(number), base: base.cast_unsigned() })
        }
        _ => Ok(Control::Branch { target: index(first)?, also: None }),
    }
}

fn barrier(line: &Line) -> Result<usize, String> {
    let found = line.operands.iter().find_map(|operand| match operand.value {
        Value::Barrier(number) => Some(usize::from(number)),
        _ => None,
    });
    found.ok_or_else(|| "it names no barrier".to_owned())
}

fn leave(line: &Line) -> Result<Control, String> {
    let when = Args::new(line).maybe_predicate().unwrap_or(Guard::ALWAYS);
    Ok(Control::Break { barrier: barrier(line)?, when })
}

fn sync(line: &Line) -> Result<Control, String> {
    let operand = line.operands.first();
    let mask = operand.map_or(Ok(From::Number(u32::MAX)), source)?;
    Ok(Control::Sync { mask, apart: line.has("EXCLUSIVE") || line.has("COLLECTIVE") })
}

fn cta_barrier(line: &Line) -> Result<Control, String> {
    let mut args = Args::new(line);
    let number = args.int()?.from;
    let expected = match args.peek() {
        Some(operand) if !operand.is_predicate() => Some(args.int()?.from),
        _ => None,
    };
    let predicate = args.maybe_predicate().filter(|_| line.has("RED"));
    let barrier =
        CtaBarrier { number, expected, predicate, all: line.has("AND"), waits: !line.has("ARV") };
    Ok(Control::Barrier(barrier))
}
