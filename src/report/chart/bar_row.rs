//! Bars side by side in one lane: as many as can be seen.

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
    use super::BarRow;

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
