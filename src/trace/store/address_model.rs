//! Predicts where the accesses of a warp start.
//!
//! Per memory instruction and chunk an affine [`Model`] over the CTA's position
//! and the warp gives the first address; after that each warp's own accesses
//! give the next: the last one plus a step that changes when the same other
//! difference comes twice in a row. The writer and the cursor run the same
//! code, so only what differs from the prediction is stored.
//!
//! [`classify`] says which part of an access the tracer's own rule explains, and [`fit`]
//! finds the models of a chunk.

use std::hash::BuildHasher;

use gpumodel_core::isa::AddressMode;
use gpumodel_core::units::{Dim3, to_u32, to_usize};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::lanes;
use super::records::AddressList;

/// A lane pattern, with lists named by `L`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape<L> {
    /// A constant step in bytes between lanes.
    Stride(i64),
    /// A list of differences.
    List(L),
}

impl<L> Shape<L> {
    /// Bytes from lane 0 to lane `first`, the lowest active one. Lists start
    /// at the lowest active lane, whichever it is.
    #[inline]
    fn origin(&self, first: u32) -> u64 {
        match self {
            Self::Stride(step) => step.wrapping_mul(i64::from(first)).cast_unsigned(),
            Self::List(_) => 0,
        }
    }
}

/// The affine model of one memory instruction in one chunk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    /// Address of lane 0 of warp 0 in CTA (0,0,0), modulo 2^64.
    pub(super) base: u64,
    /// Per CTA in x, y, z.
    pub(super) cta: [i64; 3],
    /// Per warp of the CTA.
    pub(super) warp: i64,
    /// From a warp's first access to its second.
    pub(super) step: i64,
    /// Between lanes.
    pub(super) stride: i64,
    /// The trace lists full addresses for this instruction.
    pub(super) full: bool,
}

impl Model {
    /// Lane 0's address in the first access of `warp` of the CTA at `cta`.
    #[inline]
    pub(super) fn first(&self, cta: Dim3, warp: u32) -> u64 {
        let [x, y, z] = [cta.x, cta.y, cta.z].map(i64::from);
        let offset = self.cta[0]
            .wrapping_mul(x)
            .wrapping_add(self.cta[1].wrapping_mul(y))
            .wrapping_add(self.cta[2].wrapping_mul(z))
            .wrapping_add(self.warp.wrapping_mul(i64::from(warp)));
        self.base.wrapping_add_signed(offset)
    }
}

/// The state of predicting one memory instruction of one warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<L> {
    lane0: u64,
    step: i64,
    last: i64,
    /// The shape of the last access.
    pub(super) shape: Shape<L>,
}

impl<L: Copy> Slot<L> {
    /// The slot before a warp's first access.
    #[inline]
    pub(super) fn new(model: &Model, cta: Dim3, warp: u32) -> Self {
        let before = model.first(cta, warp).wrapping_sub(model.step.cast_unsigned());
        let shape = Shape::Stride(model.stride);
        Self { lane0: before, step: model.step, last: model.step, shape }
    }

    /// The expected address of lane `first`, the lowest active one, in the
    /// current shape.
    #[inline]
    pub(super) fn expect(&self, first: u32) -> u64 {
        self.lane0.wrapping_add_signed(self.step).wrapping_add(self.shape.origin(first))
    }

    /// Passes an access whose lowest active lane `first` had address `base`, in
    /// the current shape.
    #[inline]
    pub(super) fn pass(&mut self, first: u32, base: u64) {
        let lane0 = base.wrapping_sub(self.shape.origin(first));
        let difference = lane0.wrapping_sub(self.lane0).cast_signed();
        if difference == self.last {
            self.step = difference;
        }
        self.last = difference;
        self.lane0 = lane0;
    }
}

/// The lane pattern of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    /// No active lane, written the usual way: base 0.
    Zero,
    /// One active lane: any shape explains it.
    Single,
    /// A constant step between lanes.
    Stride(i64),
    /// Index into [`Lists`].
    List(u32),
    /// Not written as tracers write such lanes: kept in full, with the
    /// index of its differences in [`Lists`].
    Irregular(AddressMode, i64, u32),
}

impl AccessKind {
    /// Its index into [`Lists`].
    fn list(self) -> Option<u32> {
        match self {
            Self::List(list) | Self::Irregular(_, _, list) => Some(list),
            Self::Zero | Self::Single | Self::Stride(_) => None,
        }
    }
}

/// One access of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Classified {
    /// Index of the memory instruction among those of the chunk.
    pub(super) slot: u32,
    pub(super) mask: u32,
    pub(super) base: u64,
    pub(super) kind: AccessKind,
}

impl Classified {
    /// Lane 0's address where the shape is known, given the instruction's usual
    /// step for single lanes; `None` for accesses that predictions pass over.
    pub(super) fn lane0(&self, usual: i64) -> Option<u64> {
        let first = i64::from(self.mask.trailing_zeros());
        let step = match self.kind {
            AccessKind::Zero | AccessKind::Irregular(..) => return None,
            AccessKind::Single => usual,
            AccessKind::Stride(step) => step,
            AccessKind::List(_) => 0,
        };
        Some(self.base.wrapping_sub(step.wrapping_mul(first).cast_unsigned()))
    }
}

/// Distinct difference lists in order of first appearance, and how often each occurs.
#[derive(Debug, Default)]
pub(super) struct Lists {
    values: Vec<i64>,
    lists: Vec<List>,
    /// From hashes to the first list of those that have it.
    first: FxHashMap<u64, u32>,
}

/// A list, its values among those of all.
#[derive(Debug)]
struct List {
    start: usize,
    end: usize,
    count: u32,
    /// The next one with the same hash.
    next: Option<u32>,
}

impl Lists {
    /// The lists, and how often each occurs.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[i64], u32)> + Clone {
        self.lists.iter().map(|list| (&self.values[list.start..list.end], list.count))
    }

    /// The list of that number.
    pub(super) fn get(&self, number: u32) -> &[i64] {
        let list = &self.lists[to_usize(number)];
        &self.values[list.start..list.end]
    }

    /// The number of `list`, counted once more; `guess` is tried first.
    fn number(&mut self, list: &[i64], guess: Option<u32>) -> u32 {
        let number = match guess.filter(|&guess| self.get(guess) == list) {
            Some(number) => number,
            None => self.find(list),
        };
        self.lists[to_usize(number)].count += 1;
        number
    }

    /// The number of `list`, which is added where there is none.
    fn find(&mut self, list: &[i64]) -> u32 {
        let new = to_u32(self.lists.len());
        let mut number = *self.first.entry(FxBuildHasher.hash_one(list)).or_insert(new);
        while number != new {
            if self.get(number) == list {
                return number;
            }
            number = *self.lists[to_usize(number)].next.get_or_insert(new);
        }
        let start = self.values.len();
        self.values.extend_from_slice(list);
        self.lists.push(List { start, end: self.values.len(), count: 0, next: None });
        new
    }
}

/// Classifies one access by the tracer's rule: no lane: base 0, stride 0; one
/// lane: no differences; neighbours with an equal step: stride; else
/// differences. With `full` the trace lists the address of every active lane instead. The list
/// may be that of the instruction's `last` access.
pub(super) fn classify(
    mask: u32,
    lines: &AddressList,
    deltas: &[i64],
    full: bool,
    last: Option<AccessKind>,
    lists: &mut Lists,
) -> AccessKind {
    let spread_mode = if full { AddressMode::List } else { AddressMode::Delta };
    let lanes = mask.count_ones();
    let guess = last.and_then(AccessKind::list);
    let usual = match lanes {
        0 => (lines.mode == AddressMode::Stride && lines.base == 0 && lines.stride == 0)
            .then_some(AccessKind::Zero),
        1 => (lines.mode == spread_mode).then_some(AccessKind::Single),
        _ if lines.mode == AddressMode::Stride => {
            (!full && lanes::contiguous(mask)).then_some(AccessKind::Stride(lines.stride))
        }
        _ if lines.mode == spread_mode => Some(match lanes::step(mask, deltas) {
            Some(step) if full || !lanes::contiguous(mask) => AccessKind::Stride(step),
            _ => AccessKind::List(lists.number(deltas, guess)),
        }),
        _ => None,
    };
    usual.unwrap_or_else(|| {
        AccessKind::Irregular(lines.mode, lines.stride, lists.number(deltas, guess))
    })
}

/// The accesses of one warp and where the warp is.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpAccesses<'a> {
    pub(super) cta: Dim3,
    pub(super) warp: u32,
    pub(super) seen: &'a [Classified],
}

/// A running majority: exact when one value holds more than half of the votes.
#[derive(Clone, Copy, Debug, Default)]
struct Vote {
    value: i64,
    lead: u32,
}

impl Vote {
    fn cast(&mut self, value: i64) {
        if self.lead == 0 {
            self.value = value;
        }
        if self.value == value {
            self.lead += 1;
        } else {
            self.lead -= 1;
        }
    }
}

/// A warp's first access by one instruction.
#[derive(Clone, Copy, Debug)]
struct Sample {
    cta: Dim3,
    warp: u32,
    lane0: u64,
}

/// Votes and samples of one instruction.
#[derive(Clone, Debug, Default)]
struct Gathered {
    step: Vote,
    samples: Vec<Sample>,
}

/// Models for `count` instructions; `full` says which list whole addresses.
pub(super) fn fit(warps: &[WarpAccesses<'_>], full: &[bool]) -> Vec<Model> {
    let strides = strides(warps, full.len());
    let gathered = gather(warps, &strides);
    let models = gathered.iter().zip(&strides).zip(full);
    models.map(|((gathered, &stride), &full)| model(gathered, stride, full)).collect()
}

fn strides(warps: &[WarpAccesses<'_>], count: usize) -> Vec<i64> {
    let mut votes = vec![Vote::default(); count];
    for seen in warps.iter().flat_map(|warp| warp.seen) {
        if let AccessKind::Stride(step) = seen.kind {
            votes[to_usize(seen.slot)].cast(step);
        }
    }
    votes.iter().map(|vote| vote.value).collect()
}

fn gather(warps: &[WarpAccesses<'_>], strides: &[i64]) -> Vec<Gathered> {
    let mut all = vec![Gathered::default(); strides.len()];
    // Per instruction: the warp that was last seen, and its accesses so far.
    let mut now = vec![(usize::MAX, 0_u32); strides.len()];
    for (index, warp) in warps.iter().enumerate() {
        for seen in warp.seen {
            let slot = to_usize(seen.slot);
            let Some(lane0) = seen.lane0(strides[slot]) else { continue };
            if now[slot].0 != index {
                now[slot] = (index, 0);
                all[slot].samples.push(Sample { cta: warp.cta, warp: warp.warp, lane0 });
            } else if now[slot].1 == 1 {
                let first = all[slot].samples.last().map_or(lane0, |sample| sample.lane0);
                all[slot].step.cast(lane0.wrapping_sub(first).cast_signed());
            }
            now[slot].1 += 1;
        }
    }
    all
}

fn model(gathered: &Gathered, stride: i64, full: bool) -> Model {
    let mut model = Model { stride, step: gathered.step.value, full, ..Model::default() };
    model.warp = per_warp(&gathered.samples);
    let starts = cta_starts(&gathered.samples, model.warp);
    for axis in 0..3 {
        model.cta[axis] = per_cta(&starts, &model, axis);
    }
    let mut base = Vote::default();
    for sample in &gathered.samples {
        base.cast(sample.lane0.wrapping_sub(model.first(sample.cta, sample.warp)).cast_signed());
    }
    model.base = base.value.cast_unsigned();
    model
}

fn per_warp(samples: &[Sample]) -> i64 {
    let mut vote = Vote::default();
    for pair in samples.windows(2).filter(|pair| pair[0].cta == pair[1].cta) {
        let warps = i64::from(pair[1].warp) - i64::from(pair[0].warp);
        let bytes = pair[1].lane0.wrapping_sub(pair[0].lane0).cast_signed();
        if bytes.checked_rem(warps) == Some(0) {
            vote.cast(bytes / warps);
        }
    }
    vote.value
}

/// The first sample of every CTA, brought to warp 0.
fn cta_starts(samples: &[Sample], per_warp: i64) -> Vec<Sample> {
    samples
        .chunk_by(|a, b| a.cta == b.cta)
        .map(|of_cta| {
            let offset = per_warp.wrapping_mul(i64::from(of_cta[0].warp)).cast_unsigned();
            Sample { lane0: of_cta[0].lane0.wrapping_sub(offset), ..of_cta[0] }
        })
        .collect()
}

/// Bytes per CTA along `axis`, from neighbours in file order that differ by one
/// there, minus the part that the lower axes explain.
fn per_cta(starts: &[Sample], model: &Model, axis: usize) -> i64 {
    let mut vote = Vote::default();
    for pair in starts.windows(2) {
        let [from, to]: [[u32; 3]; 2] = [pair[0].cta.into(), pair[1].cta.into()];
        let above_same = (axis + 1..3).all(|higher| from[higher] == to[higher]);
        if !above_same || to[axis].checked_sub(1) != Some(from[axis]) {
            continue;
        }
        let explained = model.first(pair[1].cta, 0).wrapping_sub(model.first(pair[0].cta, 0));
        let bytes = pair[1].lane0.wrapping_sub(pair[0].lane0);
        vote.cast(bytes.wrapping_sub(explained).cast_signed());
    }
    vote.value
}

#[cfg(test)]
mod tests {
    use super::{AccessKind, Classified, Model, Slot, WarpAccesses, fit};
    use gpumodel_core::units::Dim3;

    #[test]
    fn a_step_survives_one_jump() {
        let model = Model { base: 100, warp: 1000, step: 4, stride: 4, ..Model::default() };
        let mut slot: Slot<u32> = Slot::new(&model, Dim3::new(3, 0, 0), 2);
        assert_eq!(slot.expect(0), 2100);
        assert_eq!(slot.expect(3), 2112);
        slot.pass(0, 2100);
        assert_eq!(slot.expect(0), 2104);
        slot.pass(0, 5000);
        assert_eq!(slot.expect(0), 5004);
        slot.pass(0, 5016);
        slot.pass(0, 5032);
        assert_eq!(slot.expect(0), 5048);
    }

    #[test]
    fn an_affine_kernel_is_found() {
        let grid = Dim3::new(3, 2, 2);
        let mut all = Vec::new();
        for cta in 0..12_u32 {
            let at = Dim3::new(cta % 3, cta / 3 % 2, cta / 6);
            for warp in 0..4_u32 {
                let base = u64::from(1000 + 64 * at.x + 4096 * at.y + 100_000 * at.z + 8 * warp);
                let seen = |k: u64| Classified {
                    slot: 0,
                    mask: !0,
                    base: base + 16 * k,
                    kind: AccessKind::Stride(4),
                };
                all.push((at, warp, [seen(0), seen(1)]));
            }
        }
        assert_eq!(all.len(), 48);
        assert_eq!(grid.count(), 12);
        let warps: Vec<WarpAccesses<'_>> = all
            .iter()
            .map(|(cta, warp, seen)| WarpAccesses { cta: *cta, warp: *warp, seen })
            .collect();
        let model = fit(&warps, &[false])[0];
        assert_eq!((model.base, model.cta, model.warp), (1000, [64, 4096, 100_000], 8));
        assert_eq!((model.step, model.stride), (16, 4));
    }
}
