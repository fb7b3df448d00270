//! Lines through points, told apart by colour and by mark.

use super::Fill;
use super::canvas::Canvas;
use super::sheet::Swatch;

/// Lines that have a colour and a mark of their own.
pub(crate) const LINES: usize = 7;

/// Radius of a mark.
const MARK: f64 = 3.4;

impl Canvas {
    /// Line number `index` of a plot through `points`, with a mark at each.
    pub(crate) fn curve(&mut self, points: &[(f64, f64)], index: usize) {
        self.marked_curve(points, points, index);
    }

    /// Line number `index` of a plot through `points`, with a mark at each of `marked`.
    pub(crate) fn marked_curve(
        &mut self,
        points: &[(f64, f64)],
        marked: &[(f64, f64)],
        index: usize,
    ) {
        let colour = Fill::of(index).colour;
        self.line(points.to_vec(), colour, 1.8);
        for point in marked {
            self.circle(*point, MARK, colour, full(index));
        }
    }
}

impl Swatch {
    /// The mark of line number `index`.
    pub(crate) fn mark(index: usize) -> Self {
        let colour = Fill::of(index).colour;
        if full(index) { Self::Dot(colour) } else { Self::Ring(colour) }
    }
}

/// Marks alternate, so that neighbours differ without colour.
fn full(index: usize) -> bool {
    index.is_multiple_of(2)
}
