//! Clusters of upright bars, in as many rows as they need.

use super::axis::{down, outline};
use super::canvas::Label;
use super::cluster::{Cluster, Slot};
use super::colour::{Fill, INK, SOFT_INK};
use super::names::{Named, names};
use super::sheet::{NOTE, Sheet};
use super::text::Anchor;
use super::{Area, Scale};
use crate::number::short;

const LEFT: f64 = 52.0;
const RIGHT: f64 = 8.0;
/// Left of the bars, the title of the vertical axis.
const TITLE: f64 = 40.0;
/// Height of the scale.
const HEIGHT: f64 = 76.0;
/// Bars are widened up to this many times.
const STRETCH: f64 = 4.0;
/// Room above the scale, for values where there are some.
const HEAD: f64 = 32.0;
const NO_HEAD: f64 = 6.0;

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
    /// The scale reaches this at least: what other panels of the same quantity need.
    pub(crate) most: f64,
}

impl Bars<'_> {
    /// Draws all clusters on `sheet`, on one scale from 0 on.
    pub(crate) fn draw(&self, sheet: &mut Sheet) {
        let room = sheet.width() - LEFT - RIGHT;
        let rows = self.rows(room);
        let stretch = rows.iter().map(|row| stretch(row, room)).fold(STRETCH, f64::min);
        let most = highest(self.clusters).max(self.most).max(self.reference.unwrap_or(0.0));
        for row in rows {
            self.row(sheet, row, stretch, most);
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
        let reported = row.iter().any(|cluster| cluster.reported(stretch));
        sheet.skip(if reported { HEAD } else { NO_HEAD });
        let area = sheet.plot(LEFT, RIGHT, HEIGHT);
        let scale = Scale::from_zero(most, area.bottom(), area.y);
        down(&mut sheet.canvas, &area, &scale, self.title, area.x - TITLE);
        let slots = Slot::all(row, stretch, area.x);
        let mut values = Vec::new();
        for (place, slot) in slots.iter().enumerate() {
            if slot.cluster.mean && place > 0 {
                let x = slot.rule();
                sheet.canvas.line(vec![(x, area.y), (x, area.bottom())], SOFT_INK, 0.6);
            }
            values.extend(self.bars(sheet, slot, stretch, &scale));
        }
        if let Some(reference) = self.reference {
            let y = scale.at(reference);
            sheet.canvas.dashes((area.x, y), (area.right(), y), INK, 0.8);
        }
        for value in values {
            sheet.canvas.text_before(value);
        }
        outline(&mut sheet.canvas, &area);
        let named: Vec<Named<'_>> = slots.iter().map(Slot::named).collect();
        let height = names(&mut sheet.canvas, &named, area.bottom());
        sheet.skip(height + 10.0);
    }

    /// Draws the bars of a cluster; returns the values that stand above them.
    fn bars(&self, sheet: &mut Sheet, slot: &Slot<'_>, stretch: f64, scale: &Scale) -> Vec<Label> {
        let cluster = slot.cluster;
        let pitch = cluster.pitch(stretch);
        let floor = scale.at(0.0);
        let mut values = Vec::new();
        let mut x = slot.left;
        for (place, (value, fill)) in cluster.values.iter().zip(self.fills).enumerate() {
            let top = value.filter(|v| v.is_finite()).map_or(floor, |v| scale.at(v));
            if top < floor {
                let bar = Area::new(x, top, pitch * 0.88, floor - top);
                sheet.canvas.bar(bar, *fill);
            }
            let middle = x + pitch * 0.44;
            let end = cluster.ends.get(place).copied().flatten();
            let top = end.map_or(top, |end| whisker(sheet, middle, end, scale).min(top));
            if let (Some(value), true) = (value, cluster.reported(stretch)) {
                values.push(self.value(*value, (middle, top), scale));
            }
            x += pitch;
        }
        values
    }

    /// A value above what reaches up to a point: above the reference line too where that
    /// would go through it.
    fn value(&self, value: f64, (x, top): (f64, f64), scale: &Scale) -> Label {
        let words = if value.is_finite() { short(value) } else { "∞".into() };
        let label = Label::new(words, (x, top - 2.0), NOTE, Anchor::Left).upwards();
        let area = label.area();
        let line = self.reference.map(|reference| scale.at(reference));
        match line.filter(|y| area.y < y + 1.0 && y - 1.0 < area.bottom()) {
            Some(y) => Label { at: (x, y - 2.0), ..label },
            None => label,
        }
    }
}

/// The largest value of `clusters`, with the ends; at least 0.
pub(crate) fn highest(clusters: &[Cluster]) -> f64 {
    clusters.iter().map(Cluster::most).fold(0.0, f64::max)
}

/// How many times wider bars fill a row of `room`; less than one where not even the
/// thinnest have room.
fn stretch(row: &[Cluster], room: f64) -> f64 {
    let bars: f64 = row.iter().map(Cluster::bars).sum();
    let gaps: f64 = row.iter().map(Cluster::gap).sum();
    ((room - gaps) / bars.max(1.0)).max(0.1)
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

#[cfg(test)]
mod tests {
    use super::{Bars, Cluster, Scale};

    fn cluster(labelled: bool) -> Cluster {
        let (name, values) = (String::new(), vec![Some(1.0); 6]);
        Cluster { name, values, labelled, ends: Vec::new(), mean: false }
    }

    #[test]
    fn rows_are_as_few_as_fit_and_alike() {
        let mut clusters = vec![cluster(false); 10];
        clusters.push(cluster(true));
        let lengths = |room| {
            let bars =
                Bars { clusters: &clusters, fills: &[], title: "", reference: None, most: 0.0 };
            bars.rows(room).iter().map(|row| row.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(420.0), [6, 5], "ten of 46 units and one of 82");
        assert_eq!(lengths(600.0), [11]);
        assert_eq!(lengths(10.0), [1; 11], "each has a row, however little room there is");
    }

    #[test]
    fn no_value_stands_in_the_reference_line() {
        let reference = Some(1.0);
        let bars = Bars { clusters: &[], fills: &[], title: "", reference, most: 0.0 };
        let scale = Scale::linear(0.0, 2.0, 100.0, 0.0);
        let area = |value| bars.value(value, (0.0, scale.at(value)), &scale).area();
        assert!((area(0.9).bottom() - 48.0).abs() < 1e-9, "above the line at 50");
        assert!((area(0.2).bottom() - 88.0).abs() < 1e-9, "well below the line");
        assert!((area(1.5).bottom() - 23.0).abs() < 1e-9, "well above it");
    }
}
