//! What marks look like: colours, fills with hatches, dashes and markers, which stay apart for colour-blind
//! readers and in grey.
//!
//! Colours after M. Okabe and K. Ito, "Color Universal Design" (2008).

use Course::{Falling, Level, Rising, Upright};

use super::Area;
use super::area::Ends;

/// A colour as red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// Text and frames.
pub(crate) const INK: Colour = Colour(0x20, 0x20, 0x20);
/// Secondary text.
pub(crate) const SOFT_INK: Colour = Colour(0x55, 0x55, 0x55);
/// Grid lines.
pub(crate) const GRID: Colour = Colour(0xdd, 0xdd, 0xdd);
/// Background.
pub(crate) const PAPER: Colour = Colour(0xff, 0xff, 0xff);
/// What is left over.
pub(crate) const REST: Colour = Colour(0xbb, 0xbb, 0xbb);

const PALETTE: [Colour; 7] = [
    Colour(0x00, 0x72, 0xb2), // blue
    Colour(0xe6, 0x9f, 0x00), // orange
    Colour(0x00, 0x9e, 0x73), // bluish green
    Colour(0xcc, 0x79, 0xa7), // reddish purple
    Colour(0x56, 0xb4, 0xe9), // sky blue
    Colour(0xd5, 0x5e, 0x00), // vermilion
    Colour(0xf0, 0xe4, 0x42), // yellow
];

/// The yellow of the palette as a line: as bright as the orange.
const DARK_YELLOW: Colour = Colour(0xc4, 0xb0, 0x00);

impl Colour {
    /// The colour of a line or an open mark in this colour.
    pub(crate) fn of_lines(self) -> Self {
        if self == PALETTE[6] { DARK_YELLOW } else { self }
    }
}

/// A fill: colour and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// The colour.
    pub(crate) colour: Colour,
    /// The lines over it.
    pub(crate) hatch: Hatch,
}

impl Fill {
    /// A plain fill.
    pub(crate) const fn plain(colour: Colour) -> Self {
        Self { colour, hatch: Hatch::PLAIN }
    }

    /// Plain fill number `index` of a series, for areas too small for lines: eight
    /// before one comes again.
    pub(crate) fn flat(index: usize) -> Self {
        let place = index % (PALETTE.len() + 1);
        Self::plain(PALETTE.get(place).copied().unwrap_or(SOFT_INK))
    }

    /// Fill number `index` of a series: [`LOOKS`] before one comes again, and as many as
    /// there are hatches before lines come again.
    pub(crate) fn of(index: usize) -> Self {
        Self { colour: PALETTE[index % PALETTE.len()], hatch: Hatch::of(index) }
    }

    /// Without lines and nearly white.
    pub(crate) fn pale(self) -> Self {
        let Colour(red, green, blue) = self.colour;
        let light = |part: u8| 255 - (255 - part) / 3;
        Self::plain(Colour(light(red), light(green), light(blue)))
    }

    /// The same lines over another colour.
    pub(crate) fn over(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }
}

/// Hatches that differ.
pub(crate) const HATCHED: usize = 16;

/// Fills of a series before one comes again: every colour with every hatch.
pub(crate) const LOOKS: usize = PALETTE.len() * HATCHED;

/// The number of the fill with the colour and the hatch at these places, which have no factor
/// in common.
pub(crate) const fn look(colour: usize, hatch: usize) -> usize {
    (64 * colour + 49 * hatch) % LOOKS
}

/// Which way lines run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// Rising to the right.
    Rising,
    /// Falling to the right.
    Falling,
    /// Vertical.
    Upright,
    /// Horizontal.
    Level,
}

/// How near and how thick lines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Fine,
    Heavy,
    Dense,
}

/// Lines over a fill: their courses, and their weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hatch {
    courses: &'static [Course],
    weight: Weight,
}

/// Smaller areas have no lines: a few strokes of a hatch say nothing and blacken the colour.
const LEAST: f64 = 4.0;

const HATCHES: [Hatch; HATCHED] = [
    Hatch::PLAIN,
    Hatch::new(&[Rising], Weight::Fine),
    Hatch::new(&[Falling], Weight::Fine),
    Hatch::new(&[Upright], Weight::Fine),
    Hatch::new(&[Level], Weight::Fine),
    Hatch::new(&[Rising, Falling], Weight::Fine),
    Hatch::new(&[Upright, Level], Weight::Fine),
    Hatch::new(&[Rising], Weight::Heavy),
    Hatch::new(&[Falling], Weight::Heavy),
    Hatch::new(&[Upright], Weight::Heavy),
    Hatch::new(&[Level], Weight::Heavy),
    Hatch::new(&[Rising], Weight::Dense),
    Hatch::new(&[Falling], Weight::Dense),
    Hatch::new(&[Upright], Weight::Dense),
    Hatch::new(&[Level], Weight::Dense),
    Hatch::new(&[Upright, Level], Weight::Dense),
];

impl Hatch {
    /// No lines.
    pub(crate) const PLAIN: Self = Self::new(&[], Weight::Fine);

    const fn new(courses: &'static [Course], weight: Weight) -> Self {
        Self { courses, weight }
    }

    /// Hatch number `index`: [`HATCHED`] before one comes again.
    pub(crate) fn of(index: usize) -> Self {
        HATCHES[index % HATCHED]
    }

    /// How thick its lines are.
    pub(crate) fn stroke(self) -> f64 {
        match self.weight {
            Weight::Fine | Weight::Dense => 0.5,
            Weight::Heavy => 2.0,
        }
    }

    /// Between the middles of neighbouring lines.
    fn gap(self) -> f64 {
        match self.weight {
            Weight::Fine => 5.0,
            Weight::Heavy => 8.0,
            Weight::Dense => 2.5,
        }
    }

    /// Its lines over `area`. Thin ones of a course are connected along the edges, back
    /// and forth; thick ones stay apart, and stay off the edges.
    pub(crate) fn lines(self, area: &Area) -> Vec<Vec<(f64, f64)>> {
        if area.width < LEAST || area.height < LEAST {
            return Vec::new();
        }
        let apart = self.weight == Weight::Heavy;
        let mut lines = Vec::new();
        for course in self.courses {
            let ends = self.ends(area, *course);
            if apart {
                lines.extend(ends.into_iter().map(|ends| ends.to_vec()));
            } else if !ends.is_empty() {
                let there = |(place, [a, b]): (usize, Ends)| {
                    if place.is_multiple_of(2) { [a, b] } else { [b, a] }
                };
                lines.push(ends.into_iter().enumerate().flat_map(there).collect());
            }
        }
        lines
    }

    /// The ends of all lines of one course.
    fn ends(self, area: &Area, course: Course) -> Vec<Ends> {
        let edge = if self.weight == Weight::Heavy { self.stroke() / 2.0 } else { 0.0 };
        let (left, top) = (area.x + edge, area.y + edge);
        let (w, h) = ((area.width - 2.0 * edge).max(0.0), (area.height - 2.0 * edge).max(0.0));
        let span = match course {
            Rising | Falling => w + h,
            Level => h,
            Upright => w,
        };
        let mut ends = Vec::new();
        // A bar that is narrower than two thick lines are apart has one.
        let first = if self.weight == Weight::Heavy { span / 2.0 } else { f64::MAX };
        let mut at = first.min(self.gap() / 2.0);
        while at < span {
            let line = match course {
                Level => [(0.0, at), (w, at)],
                Upright => [(at, 0.0), (at, h)],
                Rising | Falling => [(at - at.min(h), at.min(h)), (at.min(w), at - at.min(w))],
            };
            let turn = |x: f64| if course == Falling { w - x } else { x };
            ends.push(line.map(|(x, y)| (left + turn(x), top + y)));
            at += self.gap();
        }
        ends
    }
}

/// The dashes of a line through `points`: drawn and left out lengths in turn, from the
/// first of `pattern` on. No pattern: one dash.
pub(crate) fn dashes(points: &[(f64, f64)], pattern: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let Some((&first, &length)) = points.first().zip(pattern.first()) else {
        return vec![points.to_vec()];
    };
    let mut pen = Pen { pattern, place: 0, left: length, dash: vec![first], done: Vec::new() };
    for ends in points.windows(2) {
        pen.draw(ends[0], ends[1]);
    }
    pen.done.extend((pen.dash.len() > 1).then_some(pen.dash));
    pen.done
}

/// A pen on its way along a line.
struct Pen<'a> {
    pattern: &'a [f64],
    /// Where it is in the pattern, and how far this place still reaches.
    place: usize,
    left: f64,
    /// The dash that it draws; empty between two.
    dash: Vec<(f64, f64)>,
    done: Vec<Vec<(f64, f64)>>,
}

impl Pen<'_> {
    /// Goes on from `from` straight to `to`.
    fn draw(&mut self, mut from: (f64, f64), to: (f64, f64)) {
        loop {
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            if length <= self.left || !length.is_finite() {
                self.left -= length;
                if !self.dash.is_empty() {
                    self.dash.push(to);
                }
                return;
            }
            let share = self.left / length;
            from = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            self.turn(from);
        }
    }

    /// Ends a dash at `at`, or begins one.
    fn turn(&mut self, at: (f64, f64)) {
        let drawn = !self.dash.is_empty();
        self.dash.push(at);
        if drawn {
            self.done.push(std::mem::take(&mut self.dash));
        }
        self.place = (self.place + 1) % self.pattern.len();
        self.left = self.pattern[self.place];
    }
}

/// A shape of about the size of a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A triangle that stands on a side.
    Triangle,
    /// A square on a corner.
    Diamond,
    /// Two crossed bars, slanting.
    Cross,
    /// A triangle that stands on a corner.
    Wedge,
    /// Two crossed bars, upright and level.
    Plus,
    /// A star with five points.
    Star,
    /// Two triangles that meet in the middle, left and right.
    Bowtie,
    /// A low rectangle.
    Slab,
}

const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Cross,
    Marker::Wedge,
    Marker::Plus,
];

/// Points of a plot that differ in colour and in shape: the palette, then darker ones after
/// P. Tol, "Colour schemes" (2021).
const POINTS: [(Marker, Colour); 10] = [
    (Marker::Circle, PALETTE[0]),
    (Marker::Square, PALETTE[1]),
    (Marker::Triangle, PALETTE[2]),
    (Marker::Diamond, PALETTE[3]),
    (Marker::Cross, PALETTE[4]),
    (Marker::Wedge, PALETTE[5]),
    (Marker::Plus, Colour(0x88, 0x22, 0x55)),
    (Marker::Star, Colour(0x33, 0x22, 0x88)),
    (Marker::Bowtie, Colour(0x99, 0x99, 0x33)),
    (Marker::Slab, PALETTE[6]),
];

/// Points before a shape and a colour come again.
pub(crate) const POINT_LOOKS: usize = POINTS.len();

/// Half the width of a crossed bar, and half its length.
const BAR: (f64, f64) = (0.42, 1.25);

impl Marker {
    /// Marker number `index`, and whether it is full: as many as there are, then the
    /// same as outlines.
    pub(crate) fn of(index: usize) -> (Self, bool) {
        (MARKERS[index % MARKERS.len()], (index / MARKERS.len()).is_multiple_of(2))
    }

    /// The shape of point number `index` of a plot without lines, and its colour: each of
    /// [`POINT_LOOKS`] has its own.
    pub(crate) fn of_point(index: usize) -> (Self, Colour) {
        POINTS[index % POINT_LOOKS]
    }

    /// Its corners around the point (`x`, `y`), where a circle has `radius`; a circle has
    /// none.
    pub(crate) fn corners(self, (x, y): (f64, f64), radius: f64) -> Vec<(f64, f64)> {
        let corners: Vec<(f64, f64)> = match self {
            Self::Circle => Vec::new(),
            Self::Square => vec![(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Self::Triangle => vec![(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
            Self::Diamond => vec![(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            Self::Wedge => vec![(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
            Self::Plus => crossed(),
            Self::Star => star(),
            Self::Bowtie => vec![(-1.2, -1.0), (1.2, 1.0), (1.2, -1.0), (-1.2, 1.0)],
            Self::Slab => vec![(-1.3, -0.55), (1.3, -0.55), (1.3, 0.55), (-1.3, 0.55)],
            Self::Cross => crossed().into_iter().map(slanting).collect(),
        };
        corners.into_iter().map(|(dx, dy)| (x + radius * dx, y + radius * dy)).collect()
    }
}

/// The corners of a star that stands on two points.
fn star() -> Vec<(f64, f64)> {
    let corner = |place: u8| {
        let turn = f64::from(place) * std::f64::consts::PI / 5.0;
        let radius = if place.is_multiple_of(2) { 1.4 } else { 0.58 };
        (radius * turn.sin(), -radius * turn.cos())
    };
    (0..10).map(corner).collect()
}

/// The corners of an upright and a level bar.
fn crossed() -> Vec<(f64, f64)> {
    let (a, r) = BAR;
    let arm = [(a, -r), (a, -a), (r, -a)];
    let mut corners = Vec::new();
    // A quarter turn leads from arm to arm.
    for (c, s) in [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
        corners.extend(arm.map(|(x, y)| (x * c - y * s, x * s + y * c)));
    }
    corners
}

/// A point an eighth of a turn further around the origin.
fn slanting((x, y): (f64, f64)) -> (f64, f64) {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    ((x - y) * half, (x + y) * half)
}

#[cfg(test)]
mod tests {
    use super::{
        Area, Fill, HATCHED, Hatch, INK, LOOKS, MARKERS, Marker, PALETTE, POINT_LOOKS, dashes, look,
    };

    #[test]
    fn points_have_a_colour_and_a_shape_of_their_own() {
        let points: Vec<_> = (0..POINT_LOOKS).map(Marker::of_point).collect();
        for (i, (marker, colour)) in points.iter().enumerate() {
            assert!(points[..i].iter().all(|other| other.0 != *marker && other.1 != *colour));
            let corners = marker.corners((0.0, 0.0), 1.0);
            assert!(corners.iter().all(|(x, y)| x.abs() <= 1.5 && y.abs() <= 1.5), "{marker:?}");
        }
    }

    #[test]
    fn eight_plain_fills_differ() {
        let fills: Vec<Fill> = (0..8).map(Fill::flat).collect();
        assert!((0..8).all(|i| !fills[..i].contains(&fills[i])));
        assert_eq!(Fill::flat(8), fills[0]);
    }

    #[test]
    fn fills_differ_and_sixteen_without_colour() {
        let fills: Vec<Fill> = (0..LOOKS).map(Fill::of).collect();
        for (i, fill) in fills.iter().enumerate() {
            assert!(!fills[..i].contains(fill), "fill {i} comes twice");
        }
        let grey: Vec<Fill> = fills[..HATCHED].iter().map(|fill| fill.over(INK)).collect();
        for (i, fill) in grey.iter().enumerate() {
            assert!(!grey[..i].contains(fill), "the lines of fill {i} come twice");
        }
    }

    #[test]
    fn a_look_has_its_colour_and_its_hatch() {
        for (colour, hatch) in (0..PALETTE.len()).flat_map(|c| (0..HATCHED).map(move |h| (c, h))) {
            let fill = Fill::of(look(colour, hatch));
            assert_eq!((fill.colour, fill.hatch), (PALETTE[colour], Hatch::of(hatch)));
        }
    }

    #[test]
    fn hatching_stays_within_its_area() {
        let area = Area::new(10.0, 20.0, 33.0, 12.0);
        for hatch in (1..HATCHED).map(Hatch::of) {
            let points: Vec<(f64, f64)> = hatch.lines(&area).into_iter().flatten().collect();
            assert!(points.len() > 3 || hatch.stroke() > 1.0, "{hatch:?} draws lines");
            assert!(!points.is_empty(), "{hatch:?} draws lines");
            for (x, y) in points {
                let inside = area.holds(&Area::new(x, y, 0.0, 0.0));
                assert!(inside, "{hatch:?} leaves its area at {x},{y}");
            }
        }
        assert!(Hatch::PLAIN.lines(&area).is_empty());
        let narrow = Area::new(0.0, 0.0, 5.3, 40.0);
        assert!((1..HATCHED).all(|i| !Hatch::of(i).lines(&narrow).is_empty()), "in narrow bars");
        assert!(Hatch::of(1).lines(&Area::new(0.0, 0.0, 3.9, 9.0)).is_empty(), "too small");
    }

    #[test]
    fn no_two_hatches_are_alike() {
        let area = Area::new(0.0, 0.0, 40.0, 40.0);
        let drawn: Vec<_> =
            (0..HATCHED).map(|i| (Hatch::of(i), Hatch::of(i).lines(&area))).collect();
        for (i, (hatch, lines)) in drawn.iter().enumerate() {
            for (other, others) in &drawn[..i] {
                assert!(lines != others, "{hatch:?} looks as {other:?}");
            }
        }
        assert_eq!(Hatch::of(HATCHED), Hatch::PLAIN);
    }

    fn length(line: &[(f64, f64)]) -> f64 {
        line.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum()
    }

    #[test]
    fn dashes_go_around_corners() {
        let line = [(0.0, 0.0), (5.0, 0.0), (5.0, 0.0), (5.0, 15.0)];
        let drawn = dashes(&line, &[6.0, 2.0]);
        assert_eq!(drawn[0], [(0.0, 0.0), (5.0, 0.0), (5.0, 0.0), (5.0, 1.0)]);
        let lengths: Vec<f64> = drawn.iter().map(|dash| length(dash)).collect();
        assert_eq!(lengths, [6.0, 6.0, 4.0], "{drawn:?}");
        assert_eq!(dashes(&line, &[]), [line.to_vec()]);
        assert!(dashes(&line[..1], &[6.0, 2.0]).is_empty(), "a point has no length");
        assert!(dashes(&[], &[6.0, 2.0]).concat().is_empty());
    }

    #[test]
    fn markers_differ_and_lie_around_their_point() {
        for (i, marker) in MARKERS.iter().enumerate() {
            let corners = marker.corners((50.0, 20.0), 4.0);
            let mut others = MARKERS[..i].iter().map(|other| other.corners((50.0, 20.0), 4.0));
            assert!(others.all(|other| other != corners), "{marker:?}");
            for (x, y) in corners {
                let far = (x - 50.0).hypot(y - 20.0);
                assert!(far > 1.0 && far < 6.0, "{marker:?} reaches {x}, {y}");
            }
        }
        assert_eq!(Marker::of(8), (Marker::Square, false));
        assert_eq!(Marker::of(14), (Marker::Circle, true));
    }
}
