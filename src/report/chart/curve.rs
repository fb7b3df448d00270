//! Lines through points, told apart by colour, by mark and by dashes.

use super::canvas::Canvas;
use super::colour::{Colour, Fill, PAPER};
use super::dash::dashes;
use super::marker::Marker;

/// Lines that have a colour and a full mark of their own.
pub(crate) const LINES: usize = 7;

/// Size of a mark.
const MARK: f64 = 3.4;

/// Drawn and left out lengths; none: the line is whole. Their number and that of marks
/// have no factor in common, so that a mark that comes again is on another line.
const PATTERNS: [&[f64]; 4] = [&[], &[7.0, 3.0], &[2.2, 2.4], &[10.0, 2.6, 2.2, 2.6]];

/// The colour of line number `index` of a plot.
fn colour(index: usize) -> Colour {
    Fill::of(index).colour
}

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
        self.stroke(points, index, 1.8);
        for point in marked {
            self.point(*point, index);
        }
    }

    /// What goes with line number `index`: thin, its marks small and open.
    pub(crate) fn thin_curve(&mut self, points: &[(f64, f64)], index: usize) {
        self.stroke(points, index, 0.9);
        for point in points {
            self.marker(*point, index, MARK - 0.8, false);
        }
    }

    /// Line number `index` without marks.
    pub(crate) fn stroke(&mut self, points: &[(f64, f64)], index: usize, width: f64) {
        for dash in dashes(points, PATTERNS[index % PATTERNS.len()]) {
            self.line(dash, colour(index), width);
        }
    }

    /// A point of series number `index`.
    pub(crate) fn point(&mut self, at: (f64, f64), index: usize) {
        let (_, full) = Marker::of(index);
        self.marker(at, index, MARK, full);
    }

    /// The mark of series number `index`, full or as an outline.
    pub(crate) fn marker(&mut self, at: (f64, f64), index: usize, radius: f64, full: bool) {
        let ((marker, _), colour) = (Marker::of(index), colour(index));
        let mut corners = marker.corners(at, radius);
        let Some(&first) = corners.first() else {
            self.circle(at, radius, if full { colour } else { PAPER }, true);
            if !full {
                self.circle(at, radius, colour, false);
            }
            return;
        };
        self.polygon(corners.clone(), if full { colour } else { PAPER }, 1.0);
        if !full {
            corners.push(first);
            self.line(corners, colour, 1.2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES, Marker, PATTERNS};
    use crate::chart::RANKED;

    #[test]
    fn no_two_lines_of_a_figure_are_alike_without_colour() {
        let looks = |index: usize| (Marker::of(index), PATTERNS[index % PATTERNS.len()]);
        let most = RANKED.max(LINES);
        for index in 0..most {
            assert!((0..index).all(|other| looks(other) != looks(index)), "line {index}");
            let shape = |index: usize| (Marker::of(index).0, looks(index).1);
            assert!((0..index).all(|other| shape(other) != shape(index)), "line {index}");
        }
        assert!((0..LINES).all(|index| Marker::of(index).1), "full ones first");
    }
}
