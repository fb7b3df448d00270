//! Bars side by side under one name.

use super::names::Named;

/// Room between clusters.
const GAP: f64 = 10.0;
/// As much more before one that sums up the others.
const APART: f64 = 14.0;
/// A bar's share of the sheet's width, at least; with its value above it.
const NARROW: f64 = 6.0;
const LABELLED: f64 = 12.0;

/// Bars side by side under one name.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// What they share.
    pub(crate) name: String,
    /// One value per series; `None`: no bar. Infinite ones are written only.
    pub(crate) values: Vec<Option<f64>>,
    /// Values stand above the bars.
    pub(crate) labelled: bool,
    /// Both ends of what each value may be; empty: there are none.
    pub(crate) ends: Vec<Option<(f64, f64)>>,
    /// It sums up the others, and stands apart from them.
    pub(crate) mean: bool,
}

impl Cluster {
    /// Its width with the room around it, where bars are widened `stretch` times.
    pub(super) fn width(&self, stretch: f64) -> f64 {
        self.bars() * stretch + self.gap()
    }

    /// The least width of its bars.
    pub(super) fn bars(&self) -> f64 {
        self.least() * float(self.values.len())
    }

    /// The room around its bars.
    pub(super) fn gap(&self) -> f64 {
        if self.mean { GAP + APART } else { GAP }
    }

    /// From one bar to the next.
    pub(super) fn pitch(&self, stretch: f64) -> f64 {
        self.least() * stretch
    }

    fn least(&self) -> f64 {
        if self.labelled { LABELLED } else { NARROW }
    }

    /// Values have room above its bars.
    pub(super) fn reported(&self, stretch: f64) -> bool {
        self.pitch(stretch) >= LABELLED * 0.999
    }

    /// The largest finite value, with the ends; at least 0.
    pub(super) fn most(&self) -> f64 {
        let ends = self.ends.iter().flatten().map(|end| end.1);
        let all = self.values.iter().flatten().copied().chain(ends);
        all.filter(|value| value.is_finite()).fold(0.0, f64::max)
    }
}

/// A cluster in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<'a> {
    pub(super) cluster: &'a Cluster,
    /// Left edge and width of its bars.
    pub(super) left: f64,
    pub(super) width: f64,
}

impl<'a> Slot<'a> {
    /// The places of `row` from `left` on.
    pub(super) fn all(row: &'a [Cluster], stretch: f64, left: f64) -> Vec<Self> {
        let mut end = left;
        let slot = |cluster: &'a Cluster| {
            let left = end + cluster.gap() - GAP / 2.0;
            end += cluster.width(stretch);
            Self { cluster, left, width: cluster.bars() * stretch }
        };
        row.iter().map(slot).collect()
    }

    /// Its name, which may take the width of its bars and the room beside them.
    pub(super) fn named(&self) -> Named<'a> {
        let (middle, width) = (self.left + self.width / 2.0, self.width + GAP);
        Named { name: &self.cluster.name, middle, width }
    }

    /// Where a rule stands between it and the others.
    pub(super) fn rule(&self) -> f64 {
        self.left - self.cluster.gap() / 2.0
    }
}

#[allow(clippy::cast_precision_loss)] // a handful of bars
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::{Cluster, Slot};

    #[test]
    fn a_mean_stands_apart_behind_a_rule() {
        let cluster = |mean| Cluster {
            name: String::new(),
            values: vec![Some(1.0); 2],
            labelled: false,
            ends: Vec::new(),
            mean,
        };
        let row = [cluster(false), cluster(false), cluster(true)];
        let slots = Slot::all(&row, 1.0, 100.0);
        let places: Vec<(f64, f64)> = slots.iter().map(|slot| (slot.left, slot.width)).collect();
        assert_eq!(places, [(105.0, 12.0), (127.0, 12.0), (163.0, 12.0)]);
        assert!((slots[2].rule() - 151.0).abs() < 1e-9, "between 139 and 163");
    }
}
