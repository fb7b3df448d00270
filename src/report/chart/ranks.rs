//! Values by rank: for each series a line of its own, from the least to the most.

use super::Scale;
use super::axis::{counts, down, outline};
use super::colour::INK;
use super::curve::LINES;
use super::panels::Panel;
use super::sheet::Sheet;
use gpumodel_core::units::to_u32;

/// Series that differ: colours come again with the other mark.
pub(crate) const RANKED: usize = 2 * LINES;
/// Marks on a line, about.
const MARKS: usize = 6;

/// Series of sorted values in one panel; what is infinite has a rank and no place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranks<'a> {
    /// The values of each series, from the least to the most.
    pub(crate) series: &'a [Vec<f64>],
    /// A dashed line at this value.
    pub(crate) reference: Option<f64>,
}

impl Ranks<'_> {
    /// Draws all series in `panel`, whose horizontal axis is called `title` where nothing
    /// lies below.
    pub(crate) fn draw(&self, sheet: &mut Sheet, panel: &Panel, title: &str) {
        let area = &panel.area;
        let most = to_u32(self.series.iter().map(Vec::len).max().unwrap_or(1)).max(1);
        let (low, high) = self.ends();
        let x = Scale::linear(0.0, f64::from(most), area.x, area.right() - 5.0);
        let y = Scale::linear(low, high, area.bottom(), area.y);
        let title = if panel.last { title } else { "" };
        counts(&mut sheet.canvas, area, &x, most, title);
        down(&mut sheet.canvas, area, &y, "", 0.0);
        for (index, values) in self.series.iter().enumerate() {
            let ranks = (1_u32..).zip(values).filter(|(_, value)| value.is_finite());
            let line: Vec<(f64, f64)> =
                ranks.map(|(rank, value)| (x.at(f64::from(rank)), y.at(*value))).collect();
            let step = line.len().div_ceil(MARKS).max(1);
            // Lines that lie near each other have their marks at different ranks.
            let shift = index * step / self.series.len();
            let marked: Vec<_> = line.iter().copied().skip(shift).step_by(step).collect();
            sheet.canvas.marked_curve(&line, &marked, index);
        }
        if let Some(reference) = self.reference {
            let y = y.at(reference);
            sheet.canvas.dashes((area.x, y), (area.right(), y), INK, 1.2);
        }
        outline(&mut sheet.canvas, area);
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

#[cfg(test)]
mod tests {
    use super::Ranks;

    #[test]
    fn the_axis_holds_every_value_and_the_reference() {
        let series = [vec![0.5, 0.9, f64::INFINITY], vec![]];
        let (low, high) = Ranks { series: &series, reference: Some(1.2) }.ends();
        assert!(low > 0.4 && low < 0.5 && high > 1.2 && high < 1.3, "{low} {high}");
        let none = Ranks { series: &[], reference: None };
        assert_eq!(none.ends(), (0.0, 1.0));
    }
}
