//! Dashed lines through points.

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

#[cfg(test)]
mod tests {
    use super::dashes;

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
}
