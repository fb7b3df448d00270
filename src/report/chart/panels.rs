//! Small plots next to each other, each with its name above; values by rank in them.

use gpumodel_core::units::to_u32;

use super::axis::{counts, down, outline};
use super::canvas::{LINES, Label};
use super::layout::{Layout, NOTE};
use super::style::INK;
use super::text::{Anchor, fit_heavy};
use super::{Area, Scale};

/// Room left of the first column, for labels and the title of the axis.
const LEFT: f64 = 52.0;
/// Room left of other columns, for labels.
const NEXT: f64 = 38.0;
const RIGHT: f64 = 10.0;
/// Room of a name.
const NAME: f64 = 16.0;
/// Room of labels below a panel, and with the title of the axis.
const LABELS: f64 = 24.0;
const TITLE: f64 = 38.0;

/// One small plot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    /// Where data is drawn.
    pub(crate) area: Area,
    /// It is in the first column, with room for a title left of it.
    pub(crate) first: bool,
    /// Nothing lies below it; there is room for a title.
    pub(crate) last: bool,
}

/// Keeps a panel `height` high for each of `names`, written above it.
pub(crate) fn panels(layout: &mut Layout, names: &[String], height: f64) -> Vec<Panel> {
    let height = layout.chosen(height);
    let columns = match (names.len(), layout.narrow()) {
        (0 | 1, _) | (2, true) => 1,
        (2 | 4, _) | (_, true) => 2,
        _ => 3,
    };
    let gaps = f64::from(columns - 1) * (NEXT + RIGHT);
    let width = (layout.width() - LEFT - RIGHT - gaps) / f64::from(columns);
    let mut panels = Vec::new();
    let across = usize::try_from(columns).expect("three columns at most");
    for (row, names_of_row) in names.chunks(across).enumerate() {
        let top = layout.top() + NAME;
        let mut x = LEFT;
        for (column, name) in names_of_row.iter().enumerate() {
            let area = Area::new(x, top, width, height);
            let at = (x + width / 2.0, top - NAME / 2.0);
            let words = fit_heavy(name, NOTE, width);
            layout.canvas.text(Label::new(words, at, NOTE, Anchor::Centre).bold());
            layout.mark_plot(area);
            let last = (row + 1) * across + column >= names.len();
            panels.push(Panel { area, first: column == 0, last });
            x += width + NEXT + RIGHT;
        }
        // Panels without one below them may be in the row before the last.
        let ends = (row + 2) * across > names.len();
        layout.skip(NAME + height + if ends { TITLE } else { LABELS });
    }
    panels
}

/// Series that differ: colours come again with the other mark.
pub(crate) const RANKED: usize = 2 * LINES;
/// Marks on a line, about.
const MARKS: usize = 6;
/// Between the first or the last rank and the edge of a panel.
const EDGE: f64 = 6.0;

/// Series of sorted values in one panel; what is infinite has a rank and no place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranks<'a> {
    /// The values of each series, from the least to the most.
    pub(crate) series: &'a [Vec<f64>],
    /// Which line each series has.
    pub(crate) looks: &'a [usize],
    /// A dashed line at this value.
    pub(crate) reference: Option<f64>,
}

impl Ranks<'_> {
    /// Draws all series in `panel`, whose horizontal axis is called `title` where nothing
    /// lies below.
    pub(crate) fn draw(&self, layout: &mut Layout, panel: &Panel, title: &str) {
        let area = &panel.area;
        let most = to_u32(self.series.iter().map(Vec::len).max().unwrap_or(1)).max(1);
        let (low, high) = self.ends();
        let x = across_ranks(most, area);
        let y = Scale::linear(low, high, area.bottom(), area.y);
        let title = if panel.last { title } else { "" };
        counts(&mut layout.canvas, area, &x, most, title);
        down(&mut layout.canvas, area, &y, "", 0.0);
        for (index, values) in self.series.iter().enumerate() {
            let ranks = (1_u32..).zip(values).filter(|(_, value)| value.is_finite());
            let line: Vec<(f64, f64)> =
                ranks.map(|(rank, value)| (x.at(f64::from(rank)), y.at(*value))).collect();
            let step = line.len().div_ceil(MARKS).max(1);
            // Lines that lie near each other have their marks at different ranks.
            let shift = index * step / self.series.len();
            let marked: Vec<_> = line.iter().copied().skip(shift).step_by(step).collect();
            layout.canvas.marked_curve(&line, &marked, self.looks[index]);
        }
        if let Some(reference) = self.reference {
            let y = y.at(reference);
            layout.canvas.dashes((area.x, y), (area.right(), y), INK, 1.2);
        }
        outline(&mut layout.canvas, area);
    }

    /// Both ends of the axis, with some room beyond what is drawn.
    fn ends(&self) -> (f64, f64) {
        let values = self.series.iter().flatten().chain(&self.reference).copied();
        let values = values.filter(|value| value.is_finite());
        let (low, high) = values.fold((f64::MAX, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return (0.0, 1.0);
        }
        let room = (0.06 * (high - low)).max(0.04 * high);
        ((low - room).max(0.0), high + room)
    }
}

/// The ranks up to `most` from edge to edge, with room for half a mark; the only one in the
/// middle.
fn across_ranks(most: u32, area: &Area) -> Scale {
    let (low, high) = if most > 1 { (1.0, f64::from(most)) } else { (0.5, 1.5) };
    Scale::linear(low, high, area.x + EDGE, area.right() - EDGE)
}

/// A plot of values against a whole number, as wide as the layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountPlot {
    /// Where data is drawn.
    pub(crate) area: Area,
    x: Scale,
    y: Scale,
}

impl CountPlot {
    /// A plot with axes: from below 1 to `most` across, with a title, and as `scale` divides its area
    /// upwards, with `up` as title.
    pub(crate) fn new(
        layout: &mut Layout,
        most: Option<u32>,
        across: &str,
        scale: impl Fn(&Area) -> Scale,
        up: &str,
    ) -> Self {
        let area = layout.plot(62.0, 14.0, layout.chosen(150.0));
        let most = most.unwrap_or(1);
        let x = Scale::linear(0.5, f64::from(most), area.x, area.right() - 5.0);
        let y = scale(&area);
        counts(&mut layout.canvas, &area, &x, most, across);
        down(&mut layout.canvas, &area, &y, up, 12.0);
        Self { area, x, y }
    }

    /// Where `value` at `count` is.
    pub(crate) fn at(&self, count: u32, value: f64) -> (f64, f64) {
        (self.x.at(f64::from(count)), self.y.at(value))
    }

    /// Draws the edges over the data, and leaves `room` free below.
    pub(crate) fn finish(&self, layout: &mut Layout, room: f64) {
        outline(&mut layout.canvas, &self.area);
        layout.skip(room);
    }
}

#[cfg(test)]
mod tests {
    use super::{Area, Layout, Ranks, across_ranks, panels};
    use crate::chart::{Sheet, Width};

    #[test]
    fn panels_lie_apart_on_the_sheet() {
        let counts = [1, 2, 3, 4, 7, 21].into_iter();
        let each = |count: u32| [Width::Screen, Width::One, Width::Two].map(|wide| (count, wide));
        for (count, wide) in counts.flat_map(each) {
            let names: Vec<String> = (0..count).map(|i: u32| i.to_string()).collect();
            let panels = panels(
                &mut Layout::new(Sheet { width: wide, ..Sheet::default() }, "panels"),
                &names,
                80.0,
            );
            assert_eq!(panels.len(), names.len());
            for (i, panel) in panels.iter().enumerate() {
                assert!(panel.area.x > 30.0 && panel.area.right() < wide.units());
                assert!(panel.area.width > 90.0);
                assert!(panels[..i].iter().all(|other| !other.area.overlaps(&panel.area)));
                let below = |other: &super::Panel| {
                    other.area.y > panel.area.y && (other.area.x - panel.area.x).abs() < 0.1
                };
                assert_eq!(panel.last, !panels.iter().any(below));
            }
        }
    }

    #[test]
    fn ranks_lie_from_edge_to_edge() {
        let area = Area::new(100.0, 0.0, 200.0, 50.0);
        let ends = |most| [1.0, f64::from(most)].map(|rank| across_ranks(most, &area).at(rank));
        assert_eq!((ends(2), ends(9), ends(1)), ([106.0, 294.0], [106.0, 294.0], [200.0, 200.0]));
    }

    #[test]
    fn the_axis_holds_every_value_and_the_reference() {
        let series = [vec![0.5, 0.9, f64::INFINITY], vec![]];
        let (low, high) = Ranks { series: &series, looks: &[0, 1], reference: Some(1.2) }.ends();
        assert!(low > 0.4 && low < 0.5 && high > 1.2 && high < 1.3, "{low} {high}");
        let none = Ranks { series: &[], looks: &[], reference: None };
        assert_eq!(none.ends(), (0.0, 1.0));
    }
}
