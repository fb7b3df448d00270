//! Lines over a fill, so that fills differ without colour.

use super::Area;

/// Hatches that differ.
pub(crate) const HATCHED: usize = 16;

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

use Course::{Falling, Level, Rising, Upright};

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

/// Both ends of a line.
type Ends = [(f64, f64); 2];

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
        if area.width < 2.0 || area.height < 2.0 {
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

#[cfg(test)]
mod tests {
    use super::{Area, HATCHED, Hatch};

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
        assert!(Hatch::of(1).lines(&Area::new(0.0, 0.0, 1.0, 9.0)).is_empty(), "too small");
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
}
