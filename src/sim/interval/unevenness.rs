//! How unevenly a stretch comes to the issue slot and to the units.

use super::RESOURCES;

/// The place of the issue slot behind the units.
const ISSUE: usize = RESOURCES;

/// The uses of one resource.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    count: f64,
    /// Cycles for which it was occupied.
    asked: f64,
    first: f64,
    last: f64,
    /// Squares of the cycles from each use to the next, summed up.
    squares: f64,
}

/// The uses of each resource along a stretch.
#[derive(Debug)]
pub(crate) struct Unevenness([Uses; ISSUE + 1]);

impl Default for Unevenness {
    fn default() -> Self {
        Self([Uses::default(); ISSUE + 1])
    }
}

impl Unevenness {
    /// An instruction issues in cycle `at` to `unit`, which it occupies for `cycles`.
    pub(crate) fn note(&mut self, unit: usize, at: u32, cycles: u32) {
        for (resource, cycles) in [(unit, cycles), (ISSUE, 1)] {
            let uses = &mut self.0[resource];
            let at = f64::from(at);
            if uses.count > 0.0 {
                uses.squares += (at - uses.last).powi(2);
            } else {
                uses.first = at;
            }
            uses.last = at;
            uses.count += 1.0;
            uses.asked += f64::from(cycles);
        }
    }

    /// The standard deviation over the mean of the cycles from each use to the next, as if the
    /// stretch of `length` cycles came again and again; at most 1, and the mean over the
    /// resources by what is asked of them.
    pub(crate) fn mean(&self, length: u32) -> f32 {
        let length = f64::from(length.max(1));
        let (mut sum, mut asked) = (0.0, 0.0);
        for uses in self.0.iter().filter(|uses| uses.count > 0.0) {
            let around = (length - uses.last + uses.first).max(0.0);
            let squares = uses.squares + around.powi(2);
            let variance = (squares * uses.count / length.powi(2) - 1.0).max(0.0);
            sum += uses.asked * variance.sqrt().min(1.0);
            asked += uses.asked;
        }
        #[allow(clippy::cast_possible_truncation, reason = "0 to 1")]
        let mean = (sum / f64::max(asked, 1.0)) as f32;
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::Unevenness;

    fn mean(issues: &[(usize, u32)], length: u32) -> f32 {
        let mut unevenness = Unevenness::default();
        issues.iter().for_each(|&(unit, at)| unevenness.note(unit, at, 1));
        unevenness.mean(length)
    }

    #[test]
    fn what_comes_evenly_has_none() {
        assert!(mean(&[(0, 4), (0, 8), (0, 12), (0, 16)], 16) < 1e-6);
        assert!(mean(&[], 0) < 1e-6);
    }

    #[test]
    fn bursts_have_more_than_a_single_gap() {
        // Gaps of 1, 1, 1, 13: mean 4, variance 27, so at most 1 for slot and unit.
        assert!((mean(&[(0, 1), (0, 2), (0, 3), (0, 16)], 16) - 1.0).abs() < 1e-6);
        // Gaps of 3 and 5: a standard deviation of 1 over 4.
        assert!((mean(&[(0, 3), (0, 8)], 8) - 0.25).abs() < 1e-6);
    }
}
