//! Marks of points: shapes that differ without colour.

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

/// Half the width of a crossed bar, and half its length.
const BAR: (f64, f64) = (0.42, 1.25);

impl Marker {
    /// Marker number `index`, and whether it is full: as many as there are, then the
    /// same as outlines.
    pub(crate) fn of(index: usize) -> (Self, bool) {
        (MARKERS[index % MARKERS.len()], (index / MARKERS.len()).is_multiple_of(2))
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
            Self::Cross => crossed().into_iter().map(slanting).collect(),
        };
        corners.into_iter().map(|(dx, dy)| (x + radius * dx, y + radius * dy)).collect()
    }
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
    use super::{MARKERS, Marker};

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
