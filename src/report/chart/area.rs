//! Areas on a layout, and places for labels in them.

use super::text::{Anchor, line_area, text_width};

/// A rectangle: left, top, width and height in user units, y growing downwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width, not negative.
    pub width: f64,
    /// Height, not negative.
    pub height: f64,
}

impl Area {
    /// A rectangle from its left and upper edge, width and height.
    #[must_use]
    pub const fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self { x, y, width, height }
    }

    /// Right edge.
    #[must_use]
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// Lower edge.
    #[must_use]
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    /// True when both share more than an edge.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.x < other.right()
            && other.x < self.right()
            && self.y < other.bottom()
            && other.y < self.bottom()
    }

    /// True when `other` lies within, edges included.
    #[must_use]
    pub fn holds(&self, other: &Self) -> bool {
        self.x <= other.x
            && self.y <= other.y
            && other.right() <= self.right()
            && other.bottom() <= self.bottom()
    }

    /// The smallest area that holds all of `areas`; `None` where there are none.
    pub(crate) fn around(areas: &[Self]) -> Option<Self> {
        let both = |one: Self, other: &Self| {
            let (x, y) = (one.x.min(other.x), one.y.min(other.y));
            let (right, bottom) =
                (one.right().max(other.right()), one.bottom().max(other.bottom()));
            Self::new(x, y, right - x, bottom - y)
        };
        let (first, others) = areas.split_first()?;
        Some(others.iter().fold(*first, both))
    }

    /// The part of a straight line that lies within; `None` where that is a point or nothing.
    pub(crate) fn clipped(&self, [from, to]: Ends) -> Option<Ends> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (mut begin, mut end) = (0.0_f64, 1.0_f64);
        let edges = [
            (-dx, from.0 - self.x),
            (dx, self.right() - from.0),
            (-dy, from.1 - self.y),
            (dy, self.bottom() - from.1),
        ];
        for (slope, room) in edges {
            if slope < 0.0 {
                begin = begin.max(room / slope);
            } else if slope > 0.0 {
                end = end.min(room / slope);
            } else if room < 0.0 {
                return None;
            }
        }
        let at = |share: f64| (from.0 + dx * share, from.1 + dy * share);
        (begin < end).then(|| [at(begin), at(end)])
    }
}

/// Both ends of a straight line.
pub(crate) type Ends = [(f64, f64); 2];

/// The room within a plot area that is taken.
#[derive(Debug)]
pub(crate) struct Placement {
    within: Area,
    taken: Vec<Area>,
    /// What lines take.
    lines: Vec<Area>,
}

impl Placement {
    /// All of `within` is free.
    pub(crate) fn new(within: Area) -> Self {
        Self { within, taken: Vec::new(), lines: Vec::new() }
    }

    /// Nothing may be placed over `area`.
    pub(crate) fn take(&mut self, area: Area) {
        self.taken.push(area);
    }

    /// Nothing may be placed over a point of `radius`.
    pub(crate) fn take_point(&mut self, at: (f64, f64), radius: f64) {
        self.take(around(at, radius));
    }

    /// Nothing may be placed over the line between `from` and `to`.
    pub(crate) fn take_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steps = (dx.hypot(dy) / 6.0).ceil().max(1.0);
        let mut step = 0.0;
        while step <= steps {
            let share = step / steps;
            self.lines.push(around((from.0 + dx * share, from.1 + dy * share), 2.0));
            step += 1.0;
        }
    }

    /// The nearest free place for the left middle of `text` next to `point`, which is then
    /// taken; `None` where there is none.
    pub(crate) fn next_to(
        &mut self,
        text: &str,
        size: f64,
        point: (f64, f64),
    ) -> Option<(f64, f64)> {
        self.place(text_width(text, size), size, point)
    }

    /// A line from `text` to the point that it names goes through nothing but what is at that
    /// point, and through lines where it may be `crossing` them.
    fn reaches(&self, text: &Area, to: (f64, f64), crossing: bool) -> bool {
        const STEP: f64 = 2.0;
        const AT: f64 = 8.0;
        let from = (to.0.clamp(text.x, text.right()), to.1.clamp(text.y, text.bottom()));
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        let mut along = 0.0;
        while along < length - AT {
            let share = along / length;
            let point = Area::new(from.0 + dx * share, from.1 + dy * share, 0.0, 0.0);
            let mut taken = self.taken.iter().chain(self.lines.iter().filter(|_| !crossing));
            if taken.any(|taken| taken.holds(&point)) {
                return false;
            }
            along += STEP;
        }
        true
    }

    /// As [`Self::next_to`], for a text that is so wide.
    pub(crate) fn place(&mut self, width: f64, size: f64, near: (f64, f64)) -> Option<(f64, f64)> {
        let places = [6.0, 12.0, 20.0, 30.0, 42.0, 56.0, 72.0, 90.0].into_iter().flat_map(|far| {
            let (left, middle, up) = (-far - width, -width / 2.0, far + size / 2.0 - 4.0);
            [(far, 0.0), (left, 0.0), (middle, -up), (middle, up)].into_iter().chain([
                (far, -up),
                (far, up),
                (left, -up),
                (left, up),
            ])
        });
        let places = places.map(|(dx, dy)| (near.0 + dx, near.1 + dy));
        let area = |at: (f64, f64)| line_area(width, size, Anchor::Left, at);
        let free = |at: &(f64, f64)| {
            let area = area(*at);
            let mut taken = self.taken.iter().chain(&self.lines);
            self.within.holds(&area) && !taken.any(|taken| taken.overlaps(&area))
        };
        let free: Vec<(f64, f64)> = places.filter(free).collect();
        let reached =
            |crossing| free.iter().copied().find(|at| self.reaches(&area(*at), near, crossing));
        let at = reached(false).or_else(|| reached(true))?;
        self.take(area(at));
        Some(at)
    }
}

/// The square around a point.
fn around((x, y): (f64, f64), radius: f64) -> Area {
    Area::new(x - radius, y - radius, 2.0 * radius, 2.0 * radius)
}

#[cfg(test)]
mod tests {
    use super::{Area, Placement};

    #[test]
    fn a_line_is_clipped_to_an_area() {
        let area = Area::new(10.0, 10.0, 20.0, 20.0);
        let clipped = |from, to| area.clipped([from, to]);
        assert_eq!(clipped((0.0, 0.0), (40.0, 40.0)), Some([(10.0, 10.0), (30.0, 30.0)]));
        assert_eq!(clipped((20.0, 40.0), (20.0, 25.0)), Some([(20.0, 30.0), (20.0, 25.0)]));
        assert_eq!(clipped((0.0, 5.0), (40.0, 5.0)), None);
        assert_eq!(clipped((0.0, 20.0), (10.0, 10.0)), None, "a corner is a point");
        let around = Area::around(&[area, Area::new(0.0, 20.0, 5.0, 40.0)]);
        assert_eq!(around, Some(Area::new(0.0, 10.0, 30.0, 50.0)));
    }

    #[test]
    fn labels_avoid_each_other_until_there_is_no_room() {
        let mut placement = Placement::new(Area::new(0.0, 0.0, 100.0, 40.0));
        placement.take_point((50.0, 20.0), 4.0);
        let placed = (0..50).filter_map(|_| placement.next_to("name", 10.0, (50.0, 20.0))).count();
        assert!((2..20).contains(&placed), "{placed} labels of 10 x 26 in 100 x 40");
    }

    #[test]
    fn a_leader_goes_through_nothing() {
        let mut placement = Placement::new(Area::new(0.0, 0.0, 200.0, 200.0));
        placement.take(Area::new(80.0, 92.0, 40.0, 16.0));
        placement.take(Area::new(125.0, 0.0, 4.0, 200.0));
        for _ in 0..20 {
            let Some(at) = placement.next_to("name", 10.0, (100.0, 100.0)) else { break };
            assert!(at.0 < 125.0, "{at:?} is behind the wall");
        }
    }

    #[test]
    fn a_leader_crosses_a_line_where_nothing_else_is_free() {
        let mut placement = Placement::new(Area::new(0.0, 0.0, 200.0, 20.0));
        placement.take(Area::new(0.0, 0.0, 107.0, 20.0));
        placement.take_line((115.0, 0.0), (115.0, 20.0));
        let at = placement.next_to("1", 10.0, (100.0, 10.0));
        assert!(at.is_some_and(|at| at.0 > 117.0), "{at:?}");
    }
}
