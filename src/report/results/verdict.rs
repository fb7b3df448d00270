//! Whether a printed value and ours agree.
//!
//! A row passes when the sign agrees (less than 0.05 %, ours or printed, has none), the gain
//! is within ten points or a third of it, whichever is more, and the order agrees with every
//! other row that compares the same schemes by the same measure and is further away than three
//! points in the paper, on the mixes that both have a value of.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::over_mixes::over_mixes;
use super::{HeadlineRow, MixGain};

/// Points by which a gain may differ in any case.
const POINTS: f64 = 10.0;

/// The part of a gain by which it may differ.
const PART: f64 = 1.0 / 3.0;

/// Rows that are no further apart in the paper may come in any order.
const TIE: f64 = 3.0;

/// What rounds to zero in a table with one digit after the point has no sign.
const ZERO: f64 = 0.05;

/// Whether a row agrees with the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Pass,
    /// It does not.
    Fail,
    /// Nobody knows: its runs are not part of this reproduction.
    #[default]
    NotRun,
}

impl HeadlineRow {
    /// How far ours is from what is printed, in points; 0 within both ends.
    #[must_use]
    pub fn distance(&self) -> Option<f64> {
        let [low, high] = self.published_percent;
        let ours = self.modelled_percent?;
        Some(if ours < low { ours - low } else { (ours - high).max(0.0) })
    }

    /// How far it may be.
    #[must_use]
    pub fn allowed(&self) -> f64 {
        if self.limit {
            return 0.0;
        }
        let [low, high] = self.published_percent;
        let printed = if self.modelled_percent.is_some_and(|ours| ours < low) { low } else { high };
        POINTS.max(PART * printed.abs())
    }

    /// Whether ours is below what is printed, or below its middle; `None`: there is none of
    /// ours, or it is just there.
    #[must_use]
    pub fn is_low(&self) -> Option<bool> {
        match self.modelled_percent?.partial_cmp(&self.middle())? {
            Ordering::Less => Some(true),
            Ordering::Equal => None,
            Ordering::Greater => Some(false),
        }
    }

    fn middle(&self) -> f64 {
        f64::midpoint(self.published_percent[0], self.published_percent[1])
    }

    /// What of the rule does not hold of this row alone.
    fn alone(&self, ours: f64) -> Vec<String> {
        let mut reasons = Vec::new();
        let other = |printed: f64| printed.abs() >= ZERO && (ours > 0.0) != (printed > 0.0);
        if ours.abs() >= ZERO && self.published_percent.into_iter().all(other) {
            reasons.push(String::from("the sign is the other"));
        }
        let (distance, allowed) = (self.distance().unwrap_or(0.0), self.allowed());
        if distance.abs() > allowed {
            reasons.push(format!("{:.1} points away, {allowed:.1} allowed", distance.abs()));
        }
        reasons
    }

    /// Ours over the mixes that both have a value of, in percent: where a part of the runs is
    /// there, one scheme may have more than another.
    fn gain_with(&self, other: &Self) -> Option<f64> {
        let shared = |mix: &&MixGain| other.mixes.iter().any(|one| one.mix == mix.mix);
        let mixes: Vec<&MixGain> = self.mixes.iter().filter(shared).collect();
        if mixes.len() == self.mixes.len() {
            return self.modelled_percent;
        }
        let ratios: Vec<f64> = mixes.iter().map(|mix| 1.0 + mix.percent / 100.0).collect();
        over_mixes(&self.mean, &ratios).map(|ratio| 100.0 * (ratio - 1.0))
    }

    /// Both compare the same, but for one of their schemes.
    fn beside(&self, other: &Self) -> bool {
        let same = self.set == other.set && self.measure == other.measure;
        same && (self.scheme == other.scheme) != (self.over == other.over)
    }
}

/// Judges `rows`, all of one paper.
pub fn judge(rows: &mut [HeadlineRow]) {
    let judged: Vec<(Verdict, Vec<String>)> = rows.iter().map(|row| verdict(row, rows)).collect();
    for (row, (verdict, reasons)) in rows.iter_mut().zip(judged) {
        (row.verdict, row.reasons) = (verdict, reasons);
    }
}

fn verdict(row: &HeadlineRow, rows: &[HeadlineRow]) -> (Verdict, Vec<String>) {
    let Some(ours) = row.modelled_percent else {
        let verdict = if row.reasons.is_empty() { Verdict::NotRun } else { Verdict::Fail };
        return (verdict, row.reasons.clone());
    };
    let mut reasons = row.alone(ours);
    for other in rows.iter().filter(|other| row.beside(other)) {
        let (Some(ours), Some(theirs)) = (row.gain_with(other), other.gain_with(row)) else {
            continue;
        };
        let printed = row.middle() - other.middle();
        if printed.abs() > TIE && printed * (ours - theirs) < 0.0 {
            let (scheme, over) = (&other.scheme, &other.over);
            reasons.push(format!("{scheme} over {over} is on the other side of it"));
        }
    }
    (if reasons.is_empty() { Verdict::Pass } else { Verdict::Fail }, reasons)
}

#[cfg(test)]
mod tests {
    use super::{Verdict, judge};
    use crate::results::headline::row;
    use crate::results::{HeadlineRow, MixGain};

    fn verdicts(mut rows: Vec<HeadlineRow>) -> Vec<bool> {
        judge(&mut rows);
        rows.iter().map(|row| row.verdict == Verdict::Pass).collect()
    }

    #[test]
    fn a_gain_may_be_ten_points_or_a_third_away() {
        assert_eq!(verdicts(vec![row("a", "b", 12.0, 21.9)]), [true]);
        assert_eq!(verdicts(vec![row("a", "b", 12.0, 22.1)]), [false]);
        assert_eq!(verdicts(vec![row("a", "b", 90.0, 60.1)]), [true]);
        assert_eq!(verdicts(vec![row("a", "b", 90.0, 59.0)]), [false]);
        let ends =
            |ours| HeadlineRow { published_percent: [28.0, 31.0], ..row("a", "b", 0.0, ours) };
        assert_eq!(verdicts(vec![ends(30.0)]), [true]);
        assert_eq!(verdicts(vec![ends(41.3)]), [true]);
        assert_eq!(verdicts(vec![ends(17.9)]), [false]);
        let limit = |ours| HeadlineRow { limit: true, ..ends(ours) };
        assert_eq!([31.0, 31.1].map(|ours| verdicts(vec![limit(ours)])), [[true], [false]]);
    }

    #[test]
    fn the_sign_has_to_agree_unless_there_is_none() {
        assert_eq!(verdicts(vec![row("a", "b", 2.0, -1.0)]), [false]);
        assert_eq!(verdicts(vec![row("a", "b", 2.0, -0.04)]), [true]);
        let ends = HeadlineRow { published_percent: [-90.0, 900.0], ..row("a", "b", 0.0, -50.0) };
        assert_eq!(verdicts(vec![ends]), [true]);
    }

    #[test]
    fn schemes_far_apart_have_to_come_in_order() {
        let rows = |ours| vec![row("a", "c", 20.0, 15.0), row("b", "c", 14.0, ours)];
        assert_eq!(verdicts(rows(14.9)), [true, true]);
        assert_eq!(verdicts(rows(15.1)), [false, false]);
        // Three points are a tie; other schemes on both sides say nothing.
        assert_eq!(verdicts(vec![row("a", "c", 20.0, 15.0), row("b", "c", 17.0, 16.0)]), [true; 2]);
        assert_eq!(verdicts(vec![row("a", "c", 20.0, 15.0), row("b", "d", 12.0, 16.0)]), [true; 2]);
    }

    #[test]
    fn the_order_is_that_of_the_mixes_that_both_have() {
        let mix = |name: &str, percent| MixGain { mix: name.to_owned(), percent };
        let rows = |b| {
            let more = vec![mix("x", 15.0), mix("y", -35.0)];
            let a = HeadlineRow { mixes: more, ..row("a", "c", 20.0, -10.0) };
            vec![a, HeadlineRow { mixes: vec![mix("x", b)], ..row("b", "c", 14.0, b) }]
        };
        assert_eq!(verdicts(rows(14.9)), [false, true], "the mean is 30 points away");
        assert_eq!(verdicts(rows(15.1)), [false, false]);
        let mut rows = rows(14.9);
        rows[1].mixes[0].mix = String::from("z");
        rows[1].modelled_percent = Some(20.0);
        assert_eq!(verdicts(rows), [false, true], "nothing to compare");
    }

    #[test]
    fn ours_is_low_or_high_of_the_middle_of_what_is_printed() {
        assert_eq!(row("a", "b", 12.0, 11.0).is_low(), Some(true));
        assert_eq!(row("a", "b", -12.0, -11.0).is_low(), Some(false));
        assert_eq!(row("a", "b", 12.0, 12.0).is_low(), None);
        let ends = HeadlineRow { published_percent: [28.0, 31.0], ..row("a", "b", 0.0, 30.0) };
        assert_eq!(ends.is_low(), Some(false));
        let none = HeadlineRow { modelled_percent: None, ..row("a", "b", 1.0, 0.0) };
        assert_eq!(none.is_low(), None);
    }
}
