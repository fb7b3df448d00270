//! Finds the affine models of a chunk's memory instructions.

use gpumodel_core::units::{Dim3, to_usize};

use super::access::{Kind, Seen};
use super::predict::Model;

/// The accesses of one warp and where the warp is.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpAccesses<'a> {
    pub(super) cta: Dim3,
    pub(super) warp: u32,
    pub(super) seen: &'a [Seen],
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

/// What is gathered about one instruction.
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
        if let Kind::Stride(step) = seen.kind {
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
/// there, with what the lower axes explain taken off.
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
    use super::{WarpAccesses, fit};
    use crate::store::access::{Kind, Seen};
    use gpumodel_core::units::Dim3;

    #[test]
    fn an_affine_kernel_is_found() {
        let grid = Dim3::new(3, 2, 2);
        let mut all = Vec::new();
        for cta in 0..12_u32 {
            let at = Dim3::new(cta % 3, cta / 3 % 2, cta / 6);
            for warp in 0..4_u32 {
                let base = u64::from(1000 + 64 * at.x + 4096 * at.y + 100_000 * at.z + 8 * warp);
                let seen =
                    |k: u64| Seen { slot: 0, mask: !0, base: base + 16 * k, kind: Kind::Stride(4) };
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
