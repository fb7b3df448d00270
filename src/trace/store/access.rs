//! The accesses of a chunk, classified for packing: what of each the tracer's
//! own rule already says, and what is left to store.

use std::collections::HashMap;

use gpumodel_core::isa::AddressMode;
use gpumodel_core::units::{to_u32, to_usize};

use super::lanes;
use super::records::Lines;

/// How the lanes of an access lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No active lane, written the usual way: base 0.
    Zero,
    /// One active lane: any shape explains it.
    Single,
    /// A constant step between lanes.
    Stride(i64),
    /// Index into [`Lists`].
    List(u32),
    /// Not written as tracers write such lanes: kept as it stands, with the
    /// index of its differences in [`Lists`].
    Odd(AddressMode, i64, u32),
}

/// One access of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Index of the memory instruction among those of the chunk.
    pub(super) slot: u32,
    pub(super) mask: u32,
    pub(super) base: u64,
    pub(super) kind: Kind,
}

impl Seen {
    /// Lane 0's address where the shape is known, given the instruction's usual
    /// step for single lanes; `None` for accesses that predictions pass over.
    pub(super) fn lane0(&self, usual: i64) -> Option<u64> {
        let first = i64::from(self.mask.trailing_zeros());
        let step = match self.kind {
            Kind::Zero | Kind::Odd(..) => return None,
            Kind::Single => usual,
            Kind::Stride(step) => step,
            Kind::List(_) => 0,
        };
        Some(self.base.wrapping_sub(step.wrapping_mul(first).cast_unsigned()))
    }
}

/// Distinct difference lists and how often each occurs.
#[derive(Debug, Default)]
pub(super) struct Lists {
    numbers: HashMap<Box<[i64]>, u32>,
    /// In order of first appearance.
    pub(super) lists: Vec<(Box<[i64]>, u32)>,
}

impl Lists {
    /// The number of `list`, counted once more.
    fn number(&mut self, list: &[i64]) -> u32 {
        if let Some(&number) = self.numbers.get(list) {
            self.lists[to_usize(number)].1 += 1;
            return number;
        }
        let number = to_u32(self.lists.len());
        self.numbers.insert(list.into(), number);
        self.lists.push((list.into(), 1));
        number
    }
}

/// Classifies one access by the tracer's rule: no lane: base 0, stride 0; one
/// lane: no differences; neighbours with an equal step: stride; else
/// differences. With `full` the trace lists the address of every active lane instead.
pub(super) fn classify(
    mask: u32,
    lines: &Lines,
    deltas: &[i64],
    full: bool,
    lists: &mut Lists,
) -> Kind {
    let spread_mode = if full { AddressMode::List } else { AddressMode::Delta };
    let lanes = mask.count_ones();
    let usual = match lanes {
        0 => (lines.mode == AddressMode::Stride && lines.base == 0 && lines.stride == 0)
            .then_some(Kind::Zero),
        1 => (lines.mode == spread_mode).then_some(Kind::Single),
        _ if lines.mode == AddressMode::Stride => {
            (!full && lanes::contiguous(mask)).then_some(Kind::Stride(lines.stride))
        }
        _ if lines.mode == spread_mode => Some(match lanes::step(mask, deltas) {
            Some(step) if full || !lanes::contiguous(mask) => Kind::Stride(step),
            _ => Kind::List(lists.number(deltas)),
        }),
        _ => None,
    };
    usual.unwrap_or_else(|| Kind::Odd(lines.mode, lines.stride, lists.number(deltas)))
}
