//! Clusters of upright bars, in as many rows as they need.

use super::axis::{down, outline};
use super::canvas::Label;
use super::colour::{Fill, INK};
use super::sheet::{NOTE, Sheet};
use super::text::{Anchor, fit, text_width};
use super::{Area, Scale};
use crate::report::number::short;

const LEFT: f64 = 52.0;
const RIGHT: f64 = 8.0;
/// Left of the bars, the title of the vertical axis.
const TITLE: f64 = 40.0;
const HEIGHT: f64 = 76.0;
/// Room between clusters.
const GAP: f64 = 10.0;
/// A bar's share of the sheet's width, at least; with its value above it.
const NARROW: f64 = 6.0;
const LABELLED: f64 = 12.0;
/// Bars are widened up to this many times.
const STRETCH: f64 = 4.0;
/// Room above the bars, for values where there are some.
const HEAD: f64 = 32.0;
const NO_HEAD: f64 = 6.0;
/// Longest name of a cluster that stands upright.
const NAME: f64 = 230.0;

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
}

impl Cluster {
    fn width(&self, stretch: f64) -> f64 {
        self.pitch() * stretch * float(self.values.len()) + GAP
    }

    fn pitch(&self) -> f64 {
        if self.labelled { LABELLED } else { NARROW }
    }
}

/// Clusters with what they have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bars<'a> {
    /// From left to right.
    pub(crate) clusters: &'a [Cluster],
    /// One fill per series.
    pub(crate) fills: &'a [Fill],
    /// Title of the vertical axis.
    pub(crate) title: &'a str,
    /// A dashed line at this value.
    pub(crate) reference: Option<f64>,
}

impl Bars<'_> {
    /// Draws all clusters on `sheet`, on one scale from 0 on.
    pub(crate) fn draw(&self, sheet: &mut Sheet) {
        let room = sheet.width() - LEFT - RIGHT;
        let rows = self.rows(room);
        let widest = rows.iter().map(|row| row.iter().map(|c| c.width(1.0)).sum::<f64>());
        let bars = widest.fold(1.0, f64::max);
        let stretch = (room / bars).clamp(1.0, STRETCH);
        let values = self.clusters.iter().flat_map(|cluster| &cluster.values).flatten().copied();
        let ends = self.clusters.iter().flat_map(|cluster| &cluster.ends).flatten();
        let all = values.chain(ends.map(|end| end.1));
        let most = all.filter(|v| v.is_finite()).fold(0.0, f64::max);
        for row in rows {
            self.row(sheet, row, stretch, most.max(self.reference.unwrap_or(0.0)));
        }
    }

    /// The clusters in as few rows of at most `room` as there can be, none wider than it
    /// must be.
    fn rows(&self, room: f64) -> Vec<&[Cluster]> {
        let few = self.filled(room);
        let (mut least, mut most) = (0.0, room);
        while most - least > 1.0 {
            let middle = f64::midpoint(least, most);
            if self.filled(middle).len() > few.len() {
                least = middle;
            } else {
                most = middle;
            }
        }
        self.filled(most)
    }

    /// The clusters in rows of at most `room`, each as full as can be.
    fn filled(&self, room: f64) -> Vec<&[Cluster]> {
        let mut rows = Vec::new();
        let (mut from, mut width) = (0, 0.0);
        for (index, cluster) in self.clusters.iter().enumerate() {
            let more = cluster.width(1.0);
            if index > from && width + more > room {
                rows.push(&self.clusters[from..index]);
                (from, width) = (index, 0.0);
            }
            width += more;
        }
        rows.push(&self.clusters[from..]);
        rows
    }

    fn row(&self, sheet: &mut Sheet, row: &[Cluster], stretch: f64, most: f64) {
        let told = |cluster: &Cluster| cluster.labelled || cluster.pitch() * stretch >= LABELLED;
        let head = if row.iter().any(told) { HEAD } else { NO_HEAD };
        let area = sheet.plot(LEFT, RIGHT, HEIGHT + head);
        let scale = Scale::from_zero(most, area.bottom(), area.y + head);
        down(&mut sheet.canvas, &area, &scale, self.title, area.x - TITLE);
        let mut left = area.x + GAP / 2.0;
        let mut values = Vec::new();
        for cluster in row {
            values.extend(self.cluster(sheet, cluster, left, stretch, &scale));
            left += cluster.width(stretch);
        }
        if let Some(reference) = self.reference {
            let y = scale.at(reference);
            sheet.canvas.dashes((area.x, y), (area.right(), y), INK, 0.8);
        }
        for value in values {
            sheet.canvas.text_before(value);
        }
        outline(&mut sheet.canvas, &area);
        let height = names(sheet, row, stretch, &area);
        sheet.skip(height + 10.0);
    }

    /// Draws the bars of `cluster`; returns the values that stand above them.
    fn cluster(
        &self,
        sheet: &mut Sheet,
        cluster: &Cluster,
        left: f64,
        stretch: f64,
        scale: &Scale,
    ) -> Vec<Label> {
        let pitch = cluster.pitch() * stretch;
        let floor = scale.at(0.0);
        let mut values = Vec::new();
        let mut x = left;
        for (place, (value, fill)) in cluster.values.iter().zip(self.fills).enumerate() {
            let top = value.filter(|v| v.is_finite()).map_or(floor, |v| scale.at(v));
            if top < floor {
                let bar = Area::new(x, top, pitch * 0.88, floor - top);
                sheet.canvas.bar(bar, *fill);
            }
            let end = cluster.ends.get(place).copied().flatten();
            let top = end.map_or(top, |end| whisker(sheet, x + pitch * 0.44, end, scale).min(top));
            if let (Some(value), true) = (value, cluster.labelled || pitch >= LABELLED) {
                let words = if value.is_finite() { short(*value) } else { "∞".into() };
                let at = (x + pitch * 0.44, top - 2.0);
                values.push(Label::new(words, at, NOTE, Anchor::Left).upwards());
            }
            x += pitch;
        }
        values
    }
}

/// Draws both ends of a value at `x`; returns the height of the upper one.
fn whisker(sheet: &mut Sheet, x: f64, ends: (f64, f64), scale: &Scale) -> f64 {
    let (low, high) = (scale.at(ends.0), scale.at(ends.1));
    sheet.canvas.line(vec![(x, low), (x, high)], INK, 1.0);
    for y in [low, high] {
        sheet.canvas.line(vec![(x - 2.0, y), (x + 2.0, y)], INK, 1.0);
    }
    high
}

/// Writes the names of a row below `area`, upright where they are wider than their
/// clusters; returns the height that they take.
fn names(sheet: &mut Sheet, row: &[Cluster], stretch: f64, area: &Area) -> f64 {
    let flat = row.iter().all(|c| text_width(&c.name, NOTE) <= c.width(stretch) - 2.0);
    let mut left = area.x + GAP / 2.0;
    let mut height: f64 = NOTE;
    for cluster in row {
        let x = left + (cluster.width(stretch) - GAP) / 2.0;
        left += cluster.width(stretch);
        if flat {
            let at = (x, area.bottom() + 9.0);
            sheet.canvas.text(Label::new(&cluster.name, at, NOTE, Anchor::Centre));
        } else {
            let name = fit(&cluster.name, NOTE, NAME);
            height = height.max(text_width(&name, NOTE));
            let at = (x, area.bottom() + 4.0);
            sheet.canvas.text(Label::new(name, at, NOTE, Anchor::Right).upwards());
        }
    }
    height + 4.0
}

#[allow(clippy::cast_precision_loss)] // a handful of bars
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::{Bars, Cluster};

    #[test]
    fn rows_are_as_few_as_fit_and_alike() {
        let cluster = |labelled| Cluster {
            name: String::new(),
            values: vec![Some(1.0); 6],
            labelled,
            ends: Vec::new(),
        };
        let mut clusters = vec![cluster(false); 10];
        clusters.push(cluster(true));
        let lengths = |room| {
            let bars = Bars { clusters: &clusters, fills: &[], title: "", reference: None };
            bars.rows(room).iter().map(|row| row.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(420.0), [6, 5], "ten of 46 units and one of 82");
        assert_eq!(lengths(600.0), [11]);
        assert_eq!(lengths(10.0), [1; 11], "each has a row, however little room there is");
    }
}
