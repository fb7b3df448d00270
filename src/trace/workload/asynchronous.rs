//! What instructions of Hopper carry beyond registers and lane addresses: boxes of bulk copies,
//! values of steps at barrier objects, groups of matrix multiplies. As a trace of version 6 has
//! them: text after the sources, whose forms are in [`crate::async_fields`].

use std::fmt::Write as _;

use gpumodel_core::isa::{AsyncFields, Instruction, MOST_IMMEDIATES};

use super::lane_expression::{LaneExpression, Scope};
use crate::async_fields::{bulk_copy, source_values};

/// Bulk copies that a workload may declare.
pub(super) const BULK: [&str; 5] = ["UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED"];

/// Bytes that are the unit of a bulk copy (PTX ISA, `cp.async.bulk`).
pub(super) const BULK_UNIT: i64 = 16;

/// Most rows of a box, and most bytes of a copy: the shared memory of an SM.
pub(super) const BOX_ROWS: i64 = 256;
pub(super) const BOX_BYTES: i64 = 1 << 18;

/// The fields of one static instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fields {
    /// Of a matrix multiply of a warp group: 1 where it ends a group of them, else 0.
    Group(i64),
    /// Of a step at a barrier object: the value of its second source.
    Value(LaneExpression),
    /// Of the step that makes a barrier object: the arrivals that end a phase.
    Arrivals(LaneExpression),
    /// Of a bulk copy.
    Copy(CopyBox),
}

/// The box of a bulk copy: rows of global memory that lie `pitch` bytes apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyBox {
    /// Where the first row begins.
    pub(super) address: LaneExpression,
    /// The buffer in which it lies, by its base, where one alone is named.
    pub(super) buffer: Option<u64>,
    /// Offset of the barrier object in shared memory; 0 for copies to global memory.
    pub(super) object: LaneExpression,
    pub(super) rows: u32,
    pub(super) row_bytes: u32,
    pub(super) pitch: i64,
    /// The CTAs of the cluster that get it, a bit each by rank; 0: the CTA that asks.
    pub(super) multicast: i64,
}

impl CopyBox {
    /// Addresses of its rows, by the lane at `lane`.
    pub(super) fn rows(&self, scope: &Scope<'_>, lane: usize) -> impl Iterator<Item = u64> + use<> {
        let first = self.address.lanes(scope).get(lane);
        let pitch = self.pitch;
        let rows = i64::from(self.rows);
        (0..rows).map(move |row| first.wrapping_add(row * pitch).cast_unsigned())
    }

    /// The form of Accel-Sim 2.0 with a base and differences.
    fn text(&self, scope: &Scope<'_>, lane: usize) -> String {
        let bytes = u64::from(self.rows) * u64::from(self.row_bytes);
        let object = self.object.lanes(scope).get(lane);
        let first = self.address.lanes(scope).get(lane);
        let to = match self.multicast {
            0 => String::from("0"),
            mask => format!("1 {mask:#x}"),
        };
        let mut text = format!("16 {object:#x} {to} {bytes} 0 4 {first:#x} {}", self.rows);
        for _ in 1..self.rows {
            write!(text, " {}", self.pitch).expect("a String takes everything");
        }
        text
    }
}

/// The value that makes a barrier object for so many arrivals: 2^20 less them, above one bit
/// (Accel-Sim 2.0, trace_driven.cc).
fn made_for(arrivals: i64) -> i64 {
    (0x10_0000_i64.wrapping_sub(arrivals) << 1) & 0xffff_ffff
}

impl Fields {
    /// The text of an execution whose lowest lane is `lane`.
    pub(super) fn text(&self, scope: &Scope<'_>, lane: usize, instruction: &Instruction) -> String {
        let value = |expression: &LaneExpression| expression.lanes(scope).get(lane);
        match self {
            Self::Group(group) => format!("{group} 0 0"),
            Self::Value(expression) => values(instruction, value(expression)),
            Self::Arrivals(expression) => values(instruction, made_for(value(expression))),
            Self::Copy(copy) => copy.text(scope, lane),
        }
    }

    /// The immediates of the instruction: its own, or the first numbers of a text that is kept
    /// whole.
    pub(super) fn immediates(&self, own: i64) -> Box<[i64]> {
        let mut open = [0; MOST_IMMEDIATES + 1];
        match self {
            Self::Group(group) => open[0] = *group,
            Self::Copy(_) => open[0] = BULK_UNIT,
            Self::Value(_) | Self::Arrivals(_) => return [own].into(),
        }
        open.into()
    }

    /// What the machine reads of `text`.
    pub(super) fn read(&self, text: &str, instruction: &Instruction) -> Option<AsyncFields> {
        let (to, from) = (instruction.destinations.len(), instruction.sources.len());
        match self {
            Self::Group(_) => None,
            Self::Value(_) | Self::Arrivals(_) => {
                source_values(text.as_bytes(), to, from).map(AsyncFields::Values)
            }
            Self::Copy(_) => bulk_copy(text.as_bytes()).map(AsyncFields::Copy),
        }
    }
}

/// Register values: 0 but for the second source.
fn values(instruction: &Instruction, value: i64) -> String {
    let mut text = String::from("Val");
    let second = instruction.destinations.len() + 1;
    for place in 0..instruction.destinations.len() + instruction.sources.len() {
        let value = if place == second { value } else { 0 };
        write!(text, " 1 {value:#x}").expect("a String takes everything");
    }
    text
}

/// Why a box of so many rows and bytes is none; `None` where it is one.
pub(super) fn wrong_box(rows: i64, row_bytes: i64, pitch: i64) -> Option<String> {
    if !(1..=BOX_ROWS).contains(&rows) {
        return Some(format!("`rows` is {rows}, expected 1 to {BOX_ROWS}"));
    }
    if row_bytes < BULK_UNIT || row_bytes % BULK_UNIT != 0 || rows * row_bytes > BOX_BYTES {
        return Some(format!(
            "{rows} rows of {row_bytes} bytes, expected multiples of {BULK_UNIT} bytes, \
             together at most {BOX_BYTES}"
        ));
    }
    let apart = pitch % BULK_UNIT == 0 && pitch.unsigned_abs() < 1 << 32;
    (!apart).then(|| format!("`pitch` is {pitch}, expected a multiple of {BULK_UNIT}"))
}

#[cfg(test)]
mod tests {
    use super::{made_for, wrong_box};

    #[test]
    fn an_object_is_made_by_what_its_count_lacks() {
        assert_eq!(made_for(1), 0x1f_fffe);
        assert_eq!(made_for(128), (0x10_0000 - 128) << 1);
    }

    #[test]
    fn boxes_are_of_whole_units() {
        assert_eq!(wrong_box(64, 128, 8192), None);
        for (rows, bytes, pitch) in
            [(0, 128, 0), (257, 16, 16), (4, 8, 8), (4, 24, 32), (256, 2048, 2048), (4, 16, 8)]
        {
            assert!(wrong_box(rows, bytes, pitch).is_some(), "{rows} x {bytes}, {pitch}");
        }
    }
}
