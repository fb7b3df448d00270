//! Bars: clusters of upright ones in as many rows as they need, and lanes of level ones over time.

use super::axis::{down, outline};
use super::canvas::Label;
use super::layout::{Layout, NOTE};
use super::style::{Fill, INK, SOFT_INK};
use super::text::{Anchor, Named, names, text_width};
use super::{Area, Scale};
use crate::format::{decimals, float, short};

const LEFT: f64 = 52.0;
const RIGHT: f64 = 8.0;
/// Left of the bars, the title of the vertical axis.
const TITLE: f64 = 40.0;
/// Height of the scale.
const HEIGHT: f64 = 76.0;
/// Bars are widened up to this many times.
const STRETCH: f64 = 8.0;
/// Room above the scale, next to that of values.
const HEAD: f64 = 6.0;
/// Below bars without names, half of which the lowest number of the scale takes.
const NAMELESS: f64 = 9.0;

/// Clusters with what they have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bars<'a> {
    /// From left to right.
    clusters: &'a [Cluster],
    /// Title of the vertical axis.
    title: &'a str,
    /// A dashed line at this value.
    reference: Option<f64>,
    /// The scale reaches this at least.
    most: f64,
    /// Which fill each series has.
    looks: &'a [usize],
    /// The clusters have no names below them.
    nameless: bool,
    /// Height of the scale, usually.
    high: f64,
    /// No values stand above bars.
    silent: bool,
}

impl<'a> Bars<'a> {
    /// `clusters` on a scale with `title`.
    pub(crate) fn new(clusters: &'a [Cluster], title: &'a str) -> Self {
        Self {
            clusters,
            title,
            reference: None,
            most: 0.0,
            looks: &[],
            nameless: false,
            high: HEIGHT,
            silent: false,
        }
    }

    /// With a dashed line at `reference`.
    pub(crate) fn reference(self, reference: f64) -> Self {
        Self { reference: Some(reference), ..self }
    }

    /// On a scale that reaches `most` at least: what other panels of the same quantity need.
    pub(crate) fn most(self, most: f64) -> Self {
        Self { most, ..self }
    }

    /// Series in these fills, where their places say nothing.
    pub(crate) fn looks(self, looks: &'a [usize]) -> Self {
        Self { looks, ..self }
    }

    /// Without values above bars, though they have room.
    pub(crate) fn silent(self, silent: bool) -> Self {
        Self { silent, ..self }
    }

    /// With a scale of that height, usually.
    pub(crate) fn high(self, high: f64) -> Self {
        Self { high, ..self }
    }

    /// Without names below, where those of bars further below are the same and one row holds
    /// all.
    pub(crate) fn nameless(self, nameless: bool) -> Self {
        Self { nameless, ..self }
    }

    /// Draws all clusters on `layout`, on one scale from 0 on.
    pub(crate) fn draw(&self, layout: &mut Layout) {
        let room = layout.width() - LEFT - RIGHT;
        let rows = self.rows(room);
        let stretch = rows.iter().map(|row| stretch(row, room)).fold(STRETCH, f64::min);
        let most = highest(self.clusters).max(self.most);
        let values = Values::of(self.clusters, most, stretch);
        let most = most.max(self.reference.unwrap_or(0.0));
        for row in rows {
            self.row(layout, row, stretch, most, &values);
        }
    }

    /// The clusters in as few rows of at most `room` as there can be, about equally wide.
    fn rows(&self, room: f64) -> Vec<&[Cluster]> {
        let full = self.filled(room);
        let width = |row: &[Cluster]| row.iter().map(|cluster| cluster.width(1.0)).sum::<f64>();
        let mut rest = self.clusters;
        let mut rows = Vec::new();
        for left in (1..=full.len()).rev() {
            let share = width(rest) / float(left);
            let mut taken = 0.0;
            let fits = |cluster: &&Cluster| {
                let more = cluster.width(1.0);
                let fits = left == 1 || taken + more / 2.0 <= share;
                taken += more;
                fits
            };
            let count = rest.iter().take_while(fits).count().max(1).min(rest.len());
            let (row, others) = rest.split_at(count);
            rows.push(row);
            rest = others;
        }
        let fit = |row: &&[Cluster]| width(row) <= room;
        if rows.iter().all(fit) { rows } else { full }
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

    fn row(&self, layout: &mut Layout, row: &[Cluster], stretch: f64, most: f64, written: &Values) {
        let height = layout.chosen(self.high);
        layout.skip(HEAD + self.head(row, stretch, &Scale::from_zero(most, height, 0.0), written));
        let area = layout.plot(LEFT, RIGHT, height);
        let scale = Scale::from_zero(most, area.bottom(), area.y);
        down(&mut layout.canvas, &area, &scale, self.title, area.x - TITLE);
        let slots = Slot::all(row, stretch, (area.x, area.width));
        let mut values = Vec::new();
        for (place, slot) in slots.iter().enumerate() {
            if slot.cluster.mean && place > 0 {
                let x = slot.rule();
                layout.canvas.line(vec![(x, area.y), (x, area.bottom())], SOFT_INK, 0.6);
            }
            values.extend(self.bars(layout, slot, stretch, &scale, written));
        }
        if let Some(reference) = self.reference {
            let y = scale.at(reference);
            layout.canvas.dashes((area.x, y), (area.right(), y), INK, 0.8);
        }
        for value in values {
            layout.canvas.text_before(value);
        }
        outline(&mut layout.canvas, &area);
        if self.nameless && row.len() == self.clusters.len() {
            layout.skip(NAMELESS);
            return;
        }
        let named: Vec<Named<'_>> = slots.iter().map(Slot::named).collect();
        let height = names(&mut layout.canvas, &named, area.bottom());
        layout.skip(height + 10.0);
    }

    /// Whether values stand above the bars of a cluster.
    fn reported(&self, cluster: &Cluster, stretch: f64) -> bool {
        !self.silent && cluster.reported(stretch)
    }

    /// The room that values of a row need above an area whose top is at height 0.
    fn head(&self, row: &[Cluster], stretch: f64, scale: &Scale, written: &Values) -> f64 {
        let reported = row.iter().filter(|cluster| self.reported(cluster, stretch));
        let room = |cluster: &Cluster| {
            let values = cluster.values.iter().enumerate();
            let room = |(place, value): (usize, &Option<f64>)| {
                let top = cluster.top(place, scale);
                value.map_or(0.0, |value| -self.value(written, value, (0.0, top), scale).area().y)
            };
            values.map(room).fold(0.0, f64::max)
        };
        reported.map(room).fold(0.0, f64::max)
    }

    /// Draws the bars of a cluster; returns the values that stand above them.
    fn bars(
        &self,
        layout: &mut Layout,
        slot: &Slot<'_>,
        stretch: f64,
        scale: &Scale,
        written: &Values,
    ) -> Vec<Label> {
        let cluster = slot.cluster;
        let width = cluster.pitch(stretch) * 0.88;
        let floor = scale.at(0.0);
        let mut values = Vec::new();
        let mut x = slot.left + (slot.pitch - cluster.pitch(stretch)) / 2.0;
        for (place, value) in cluster.values.iter().enumerate() {
            let top = cluster.end_of_bar(place, scale);
            if top < floor {
                let fill = Fill::of(self.looks.get(place).copied().unwrap_or(place));
                let upper = cluster.uppers.get(place).copied().flatten().unwrap_or(0.0);
                let split = scale.at(value.unwrap_or(0.0) - upper);
                let part = |from: f64, to: f64| Area::new(x, from, width, to - from);
                layout.canvas.bar(part(split, floor), fill);
                if split > top {
                    layout.canvas.bar(part(top, split), fill.pale());
                }
            }
            let middle = x + width / 2.0;
            if let Some(ends) = cluster.end(place) {
                whisker(layout, middle, ends, scale);
            }
            let top = cluster.top(place, scale);
            if let (Some(value), true) = (value, self.reported(cluster, stretch)) {
                values.push(self.value(written, *value, (middle, top), scale));
            }
            x += slot.pitch;
        }
        values
    }

    /// A value above what reaches up to a point: above the reference line too where that
    /// would go through it.
    fn value(&self, written: &Values, value: f64, (x, top): (f64, f64), scale: &Scale) -> Label {
        let label = |bottom: f64| written.label(value, (x, bottom - 2.0));
        let area = label(top).area();
        let line = self.reference.map(|reference| scale.at(reference));
        let line = line.filter(|y| area.y < y + 1.0 && y - 1.0 < area.bottom());
        label(line.unwrap_or(top))
    }
}

/// How the values above the bars of a figure are written, all with as many decimals.
#[derive(Clone, Copy, Debug)]
struct Values {
    decimals: usize,
    /// They have room next to each other.
    level: bool,
}

impl Values {
    /// Those of `clusters` up to `most`, where bars are widened `stretch` times.
    fn of(clusters: &[Cluster], most: f64, stretch: f64) -> Self {
        let words = Self { decimals: decimals(most), level: true };
        let reported = clusters.iter().filter(|cluster| cluster.reported(stretch));
        let mut sizes = reported.flat_map(|cluster| {
            let width = |value: &f64| text_width(&words.words(*value), NOTE);
            let pitch = cluster.pitch(stretch);
            cluster.values.iter().flatten().map(move |value| (width(value), pitch))
        });
        let level = sizes.all(|(width, pitch)| width + 2.0 <= pitch);
        Self { level, ..words }
    }

    fn words(&self, value: f64) -> String {
        match value {
            value if !value.is_finite() => "∞".into(),
            value if value >= MANY => short(value),
            value => format!("{value:.*}", self.decimals),
        }
    }

    /// A value whose lower end is at a point.
    fn label(&self, value: f64, (x, bottom): (f64, f64)) -> Label {
        let words = self.words(value);
        match self.level {
            true => Label::new(words, (x, bottom - NOTE / 2.0), NOTE, Anchor::Centre),
            false => Label::new(words, (x, bottom), NOTE, Anchor::Left).upwards(),
        }
    }
}

/// Values from here on are written short.
const MANY: f64 = 99_999.5;

/// The largest value of `clusters`, with the ends; at least 0.
pub(crate) fn highest<'a>(clusters: impl IntoIterator<Item = &'a Cluster>) -> f64 {
    clusters.into_iter().map(Cluster::most).fold(0.0, f64::max)
}

/// How many times wider bars fill a row of `room`; less than one where not even the
/// thinnest have room.
fn stretch(row: &[Cluster], room: f64) -> f64 {
    let bars: f64 = row.iter().map(Cluster::bars).sum();
    let gaps: f64 = row.iter().map(Cluster::gap).sum();
    ((room - gaps) / bars.max(1.0)).max(0.1)
}

/// Draws both ends of a value at `x`.
fn whisker(layout: &mut Layout, x: f64, ends: (f64, f64), scale: &Scale) {
    let (low, high) = (scale.at(ends.0), scale.at(ends.1));
    layout.canvas.line(vec![(x, low), (x, high)], INK, 1.0);
    for y in [low, high] {
        layout.canvas.line(vec![(x - 2.0, y), (x + 2.0, y)], INK, 1.0);
    }
}

/// Room between clusters.
const GAP: f64 = 10.0;
/// As much more before one that sums up the others.
const APART: f64 = 14.0;
/// A bar's share of the layout's width, at least; with its value above it.
const NARROW: f64 = 6.0;
const LABELLED: f64 = 12.0;

/// Bars side by side under one name.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    name: String,
    /// One per series, in its fill; `None`: no bar. Infinite ones are written only.
    values: Vec<Option<f64>>,
    /// Values stand above the bars.
    labelled: bool,
    /// Both ends of what each value may be; empty: there are none.
    ends: Vec<Option<(f64, f64)>>,
    /// The upper part of each value, drawn pale; empty: there are none.
    uppers: Vec<Option<f64>>,
    /// It sums up the others, and stands apart from them.
    mean: bool,
}

impl Cluster {
    /// Bars of these values, which stand above them where `labelled`.
    pub(crate) fn new(name: &str, values: Vec<Option<f64>>, labelled: bool) -> Self {
        let (ends, uppers) = (Vec::new(), Vec::new());
        Self { name: name.into(), values, labelled, ends, uppers, mean: false }
    }

    /// One that sums up the others.
    pub(crate) fn mean(name: &str, values: Vec<Option<f64>>) -> Self {
        Self { mean: true, ..Self::new(name, values, true) }
    }

    /// With both ends of what each value may be.
    pub(crate) fn with_ends(self, ends: Vec<Option<(f64, f64)>>) -> Self {
        Self { ends, ..self }
    }

    /// With the upper part of each value.
    pub(crate) fn with_uppers(self, uppers: Vec<Option<f64>>) -> Self {
        Self { uppers, ..self }
    }

    /// Its width with the room around it, where bars are widened `stretch` times.
    fn width(&self, stretch: f64) -> f64 {
        self.bars() * stretch + self.gap()
    }

    /// The least width of its bars.
    fn bars(&self) -> f64 {
        self.least() * float(self.values.len())
    }

    /// The room around its bars.
    fn gap(&self) -> f64 {
        if self.mean { GAP + APART } else { GAP }
    }

    /// From one bar to the next.
    fn pitch(&self, stretch: f64) -> f64 {
        self.least() * stretch
    }

    fn least(&self) -> f64 {
        if self.labelled { LABELLED } else { NARROW }
    }

    /// Values have room above its bars.
    fn reported(&self, stretch: f64) -> bool {
        self.pitch(stretch) >= LABELLED * 0.999
    }

    /// Both ends of what the value at `place` may be.
    fn end(&self, place: usize) -> Option<(f64, f64)> {
        self.ends.get(place).copied().flatten()
    }

    /// How high the bar at `place` reaches.
    fn end_of_bar(&self, place: usize, scale: &Scale) -> f64 {
        let value = self.values[place].filter(|value| value.is_finite());
        value.map_or(scale.at(0.0), |value| scale.at(value))
    }

    /// How high the bar at `place` reaches, or the end above it.
    fn top(&self, place: usize, scale: &Scale) -> f64 {
        let bar = self.end_of_bar(place, scale);
        self.end(place).map_or(bar, |(_, high)| scale.at(high).min(bar))
    }

    /// The largest finite value, with the ends; at least 0.
    fn most(&self) -> f64 {
        let ends = self.ends.iter().flatten().map(|end| end.1);
        let all = self.values.iter().flatten().copied().chain(ends);
        all.filter(|value| value.is_finite()).fold(0.0, f64::max)
    }
}

/// A cluster in its place.
#[derive(Clone, Copy, Debug)]
struct Slot<'a> {
    cluster: &'a Cluster,
    /// Left edge and width of its bars, and from one bar to the next.
    left: f64,
    width: f64,
    pitch: f64,
    /// Room beyond what it needs.
    spare: f64,
}

impl<'a> Slot<'a> {
    /// The places of `row` from `left` on, spread over `room`: the bars themselves where there is
    /// one cluster.
    fn all(row: &'a [Cluster], stretch: f64, (left, room): (f64, f64)) -> Vec<Self> {
        if let [cluster] = row {
            return vec![Self::only(cluster, stretch, (left, room))];
        }
        let widths: f64 = row.iter().map(|cluster| cluster.width(stretch)).sum();
        let spare = ((room - widths) / float(row.len())).max(0.0);
        let mut end = left;
        let slot = |cluster: &'a Cluster| {
            let left = end + cluster.gap() + (spare - GAP) / 2.0;
            end += cluster.width(stretch) + spare;
            let pitch = cluster.pitch(stretch);
            Self { cluster, left, width: cluster.bars() * stretch, pitch, spare }
        };
        row.iter().map(slot).collect()
    }

    /// The place of the only cluster of a row.
    fn only(cluster: &'a Cluster, stretch: f64, (left, room): (f64, f64)) -> Self {
        let width = (room - cluster.gap()).max(cluster.bars() * stretch);
        let pitch = width / float(cluster.values.len().max(1));
        Self { cluster, left: left + cluster.gap() / 2.0, width, pitch, spare: 0.0 }
    }

    /// Its name, which may take the width of its bars and the room next to them.
    fn named(&self) -> Named<'a> {
        let (middle, width) = (self.left + self.width / 2.0, self.width + GAP + self.spare);
        Named { name: &self.cluster.name, middle, width }
    }

    /// Where a rule stands between it and the others.
    fn rule(&self) -> f64 {
        self.left - (self.cluster.gap() + self.spare) / 2.0
    }
}

/// Narrower bars are not drawn apart.
const LEAST: f64 = 0.8;

/// A lane being filled from left to right.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BarRow {
    end: Option<f64>,
}

impl BarRow {
    /// The part of the bar from `from` to `to` that is to be drawn: what lies right
    /// of all earlier ones, at least as wide as can be seen; `None` where that is
    /// nothing. A lane of some hundred units draws at most some thousand bars.
    pub(crate) fn add(&mut self, from: f64, to: f64) -> Option<(f64, f64)> {
        let start = self.end.map_or(from, |end| end.max(from));
        let end = to.max(from + LEAST);
        if end - start < LEAST / 2.0 {
            return None;
        }
        self.end = Some(end);
        Some((start, end))
    }

    /// The right end of the last bar.
    pub(crate) fn end(&self) -> Option<f64> {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::{BarRow, Bars, Cluster, Scale, Slot, Values};

    fn cluster(labelled: bool) -> Cluster {
        Cluster::new("", vec![Some(1.0); 6], labelled)
    }

    #[test]
    fn rows_are_as_few_as_fit_and_alike() {
        let mut clusters = vec![cluster(false); 10];
        clusters.push(cluster(true));
        let lengths = |room| {
            Bars::new(&clusters, "").rows(room).iter().map(|row| row.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(420.0), [6, 5], "ten of 46 units and one of 82");
        assert_eq!(lengths(600.0), [11]);
        assert_eq!(lengths(10.0), [1; 11], "each has a row, however little room there is");
    }

    #[test]
    fn no_value_stands_in_the_reference_line() {
        let bars = Bars::new(&[], "").reference(1.0);
        let scale = Scale::linear(0.0, 2.0, 100.0, 0.0);
        for level in [true, false] {
            let written = Values { decimals: 2, level };
            let area = |value| bars.value(&written, value, (0.0, scale.at(value)), &scale).area();
            assert!((area(0.9).bottom() - 48.0).abs() < 1e-9, "above the line at 50");
            assert!((area(0.2).bottom() - 88.0).abs() < 1e-9, "well below the line");
            assert!((area(1.5).bottom() - 23.0).abs() < 1e-9, "well above it");
        }
    }

    #[test]
    fn values_have_as_many_decimals_and_lie_where_they_have_room() {
        let clusters = [Cluster::new("", vec![Some(0.9), Some(1.25), Some(f64::INFINITY)], true)];
        let values = Values::of(&clusters, 1.25, 1.0);
        assert_eq!(
            [0.9, 1.25, f64::INFINITY].map(|value| values.words(value)),
            ["0.90", "1.25", "∞"]
        );
        assert!(!values.level && Values::of(&clusters, 1.25, 3.0).level);
        let whole = |most| Values::of(&clusters, most, 1.0).words(8.333);
        assert_eq!([100.0, 50.0].map(whole), ["8", "8.3"]);
        assert_eq!(values.words(1.5e9), "1.5G");
    }

    #[test]
    fn a_mean_stands_apart_behind_a_rule() {
        let cluster = |mean| Cluster { mean, ..Cluster::new("", vec![Some(1.0); 2], false) };
        let row = [cluster(false), cluster(false), cluster(true)];
        let slots = Slot::all(&row, 1.0, (100.0, 0.0));
        let places: Vec<(f64, f64)> = slots.iter().map(|slot| (slot.left, slot.width)).collect();
        assert_eq!(places, [(105.0, 12.0), (127.0, 12.0), (163.0, 12.0)]);
        assert!((slots[2].rule() - 151.0).abs() < 1e-9, "between 139 and 163");
        let spread = Slot::all(&row, 1.0, (100.0, 140.0));
        let last = &spread[2];
        assert!((last.left + last.width + 15.0 - 240.0).abs() < 1e-9, "the row is filled");
    }

    #[test]
    fn the_bars_of_an_only_cluster_fill_the_row() {
        let row = [Cluster::new("", vec![Some(1.0); 4], false)];
        let slots = Slot::all(&row, 1.0, (100.0, 210.0));
        assert_eq!((slots[0].left, slots[0].width, slots[0].pitch), (105.0, 200.0, 50.0));
    }

    #[test]
    fn a_lane_draws_what_can_be_seen() {
        let mut bar_row = BarRow::default();
        assert_eq!(bar_row.add(0.0, 10.0), Some((0.0, 10.0)));
        assert_eq!(bar_row.add(10.0, 12.0), Some((10.0, 12.0)));
        assert_eq!(bar_row.add(11.0, 12.1), None);
        assert_eq!(bar_row.add(11.0, 13.0), Some((12.0, 13.0)));
        let tiny = |i: u32| f64::from(i) * 0.001;
        let drawn =
            (0..100_000).filter(|&i| bar_row.add(20.0 + tiny(i), 20.0 + tiny(i + 1)).is_some());
        assert!(drawn.count() <= 500);
    }
}
