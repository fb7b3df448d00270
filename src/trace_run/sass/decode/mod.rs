//! What each instruction does: a closure over the state of a warp, made once per instruction.
//!
//! To add an opcode: a function in the file of its kind, and its row in that file's `find`.

mod args;
mod atomic;
mod bits;
mod bulk;
mod carry;
mod compare;
mod control;
mod convert;
mod double;
mod float;
mod group_matrix;
mod half;
mod integer;
mod load;
mod matrix;
mod moves;
mod objects;
mod rounding;
mod texture;
mod vote;

use crate::execute::Scope;
use crate::sass::text::Line;

pub(crate) use control::{Control, CtaBarrier};
pub(crate) use rounding::half_to_single;

/// What an instruction does to the lanes of a mask.
pub(crate) type Action = Box<dyn Fn(&mut Scope<'_>, u32) -> Result<(), String> + Send + Sync>;
/// Makes the action of an instruction.
type Maker = fn(&Line) -> Result<Action, String>;

/// What an instruction is to the executor.
pub(crate) enum Step {
    /// It computes, and the next one follows.
    Compute(Action),
    /// It computes, or its lanes wait and ask again.
    Wait(Action),
    /// It may change where lanes go.
    Control(Control),
    /// It cannot be executed, and why.
    Unknown(String),
}

/// Decodes `line`.
pub(crate) fn step(line: &Line) -> Step {
    if let Some(control) = control::read(line) {
        return match control {
            Ok(control) => Step::Control(control),
            Err(what) => unknown(line, &what),
        };
    }
    let name = line.name();
    if name == "SYNCS" && line.has("PHASECHK") {
        return objects::phase_check(line).map_or_else(|what| unknown(line, &what), Step::Wait);
    }
    let families = [
        integer::find,
        carry::find,
        bits::find,
        moves::find,
        compare::find,
        float::find,
        double::find,
        half::find,
        convert::find,
        load::find,
        atomic::find,
        vote::find,
        matrix::find,
        texture::find,
        objects::find,
        bulk::find,
        group_matrix::find,
    ];
    // The uniform datapath has the instructions of the others.
    let plain = name.strip_prefix('U').unwrap_or(name);
    let found = families.iter().find_map(|find| find(name).or_else(|| find(plain)));
    match found.map(|maker| maker(line)) {
        Some(Ok(action)) => Step::Compute(action),
        Some(Err(what)) => unknown(line, &what),
        None => unknown(line, "it is not known"),
    }
}

fn unknown(line: &Line, what: &str) -> Step {
    Step::Unknown(format!(
        "instruction `{}` cannot be executed: {what}; report it with the program, or compile for \
         another architecture or without what uses it",
        line.opcode
    ))
}
