//! The values of schemes against each other that stand for a paper: as its file has them,
//! with ours next to them, and whether both agree.
//!
//! A row agrees when the sign does (less than 0.05 %, ours or printed, has none), the gain
//! is within ten points or a third of it, whichever is more, and the order agrees with every
//! other row that compares the same schemes by the same measure and is further away than three
//! points in the paper, on the mixes that both have a value of. It contradicts the paper when
//! the sign is the other or a printed limit does not hold; else it has the same sign alone. A
//! row that the paper's own data rule out (its file has the computation) and that does not
//! agree is impossible, whatever its sign.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::file::{RunSelection, Set};
use crate::group_by;
use crate::results::statistics::{geometric_mean, mean};
use crate::results::{Analysis, CoRun, Gain, Measure, NamedRun, Over, QueueGain, gains};

/// What a scheme is compared with where that is each application alone: ANTT 1.
pub const ALONE: &str = "alone";

/// How the gains of mixes become one value.
const MEANS: [&str; 4] = ["arithmetic", "geometric", "largest", "largest-change"];

/// Points by which a gain may differ in any case.
const POINTS: f64 = 10.0;

/// The part of a gain by which it may differ.
const PART: f64 = 1.0 / 3.0;

/// Rows that are no further apart in the paper may come in any order.
const TIE: f64 = 3.0;

/// What rounds to zero in a table with one digit after the point has no sign.
const ZERO: f64 = 0.05;

/// A value that a paper prints of schemes against each other: a `[[headline]]` of its file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// Where it is printed.
    pub published: String,
    /// The scheme, as `name:key=value` where parameters matter.
    pub scheme: String,
    /// What it is compared with; empty: nothing, it is a share of the scheme's own.
    #[serde(default)]
    pub over: String,
    /// Over which runs: a key of [`Paper::sets`](super::Paper::sets).
    pub set: String,
    /// What is compared: the name of a [`Measure`].
    pub measure: String,
    /// How mixes are averaged: `arithmetic`, `geometric`; or which of them stands for all:
    /// `best` or `largest`, or `largest-change`, the one furthest from no change at all.
    #[serde(default = "arithmetic")]
    pub mean: String,
    /// What is printed, in percent: both ends, equal for one value. `percent` in the file of
    /// a paper.
    #[serde(alias = "percent", deserialize_with = "ends")]
    pub published_percent: [f64; 2],
    /// What is printed is a limit, as `at most 2 %`: it has to hold, without a tolerance.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limit: bool,
    /// Why no run can give what is printed: the computation from the paper's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impossible: Option<String>,
    /// Why ours is another: of whole runs, and only on the side `when`.
    #[serde(default, skip_serializing)]
    pub analysis: Option<String>,
    /// Where ours lies when `analysis` holds.
    #[serde(default, skip_serializing)]
    pub when: Option<Side>,
    /// Why ours of the short version is another.
    #[serde(default, skip_serializing)]
    pub quick_analysis: Option<String>,
}

/// A side of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Below it.
    Low,
    /// Above it.
    High,
}

/// One value or both ends of several, as a file has them.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of percent, or [lowest, highest]")]
enum Percent {
    One(f64),
    Ends([f64; 2]),
}

fn ends<'de, D: Deserializer<'de>>(from: D) -> Result<[f64; 2], D::Error> {
    Ok(match Percent::deserialize(from)? {
        Percent::One(one) => [one, one],
        Percent::Ends(ends) => ends,
    })
}

pub(super) fn arithmetic() -> String {
    String::from("arithmetic")
}

impl Headline {
    /// What no value can be.
    pub(super) fn wrong(&self, sets: &BTreeMap<String, Set>) -> Option<String> {
        let [low, high] = self.published_percent;
        if let Some(wrong) = wrong_words(&self.set, &self.mean, sets) {
            return Some(wrong);
        }
        if self.analysis.is_some() != self.when.is_some() {
            let when = "expected it with analysis: on which side of what is printed ours is then";
            return Some(format!("when: {when}, low or high"));
        }
        (low > high).then(|| format!("percent: expected [lowest, highest], found [{low}, {high}]"))
    }
}

/// What is wrong about a set and a mean, whatever has them.
pub(super) fn wrong_words(set: &str, mean: &str, sets: &BTreeMap<String, Set>) -> Option<String> {
    if !sets.contains_key(set) {
        return Some(format!("there is no set {set}"));
    }
    let expected = MEANS.join(", ");
    (!MEANS.contains(&mean)).then(|| format!("mean: expected one of {expected}, found {mean}"))
}

/// A headline with the value of our runs, and whether both agree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadlineRow {
    /// What is printed.
    #[serde(flatten)]
    pub headline: Headline,
    /// Ours; absent: not run, or no mix has both schemes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled_percent: Option<f64>,
    /// Ours by mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixes: Vec<MixGain>,
    /// Whether both agree.
    pub verdict: Verdict,
    /// What of the rule does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Mixes that its runs are of in the paper; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_mixes: Option<usize>,
    /// Why ours is another: that of the headline, where it holds for runs such as these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<String>,
}

/// The gain of one mix, or of the queues of a distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MixGain {
    /// Applications with ` + ` between them, or the distribution.
    pub mix: String,
    /// The gain.
    pub percent: f64,
}

/// Whether a row agrees with the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Pass,
    /// Its sign is not the other, but its size or the order of schemes is.
    SameSign,
    /// It contradicts the paper, or mixes of it have no value.
    Fail,
    /// It does not agree, and by the paper's own data nothing could.
    Impossible,
    /// Unknown: its runs are not part of this reproduction.
    #[default]
    NotRun,
}

impl HeadlineRow {
    /// Fills in what `records` give, where schemes of a mix are in one record. Orders of the
    /// same applications are one mix. A mix that has no value leaves the row without one, and
    /// is a reason to fail, unless the runs are a part of the paper's.
    pub fn fill(&mut self, records: &[Analysis], chosen: &RunSelection<'_>) {
        self.modelled_percent = None;
        let Some(measure) = Measure::named(&self.headline.measure) else { return };
        let (mixes, missing) = match measure {
            Measure::Throughput | Measure::AppIpc => {
                let mixes = self.queues(records, measure, chosen);
                let missing = usize::from(mixes.is_empty());
                (mixes, missing)
            }
            _ => self.together(records, measure, chosen),
        };
        self.mixes = mixes;
        if missing > 0 && !chosen.partial {
            self.reasons = vec![format!("{missing} mixes of the set have no value")];
            return;
        }
        let ratios: Vec<f64> = self.mixes.iter().map(|mix| 1.0 + mix.percent / 100.0).collect();
        self.modelled_percent = over_mixes(&self.headline.mean, &ratios).map(percent);
    }

    /// The gains of mixes, and how many have none.
    fn together(
        &self,
        records: &[Analysis],
        measure: Measure,
        chosen: &RunSelection<'_>,
    ) -> (Vec<MixGain>, usize) {
        let runs = records.iter().filter_map(|record| Some((chosen.takes(record)?, record)));
        let mixes = group_by(runs);
        let of = |(_, records): &(Vec<&str>, Vec<&Analysis>)| {
            let apps = records[0].coruns[0].apps.iter().map(|app| app.app.as_str());
            let ratios = records.iter().map(|record| self.ratio(record, measure));
            let ratios: Option<Vec<f64>> = ratios.collect();
            let mix = apps.collect::<Vec<_>>().join(" + ");
            Some(MixGain { mix, percent: percent(mean(&ratios?)?) })
        };
        let gains: Vec<MixGain> = mixes.iter().filter_map(of).collect();
        let asked = chosen.mixes.map_or(mixes.len().max(1), <[_]>::len);
        let missing = asked.saturating_sub(gains.len());
        (gains, missing)
    }

    fn ratio(&self, record: &Analysis, measure: Measure) -> Option<f64> {
        let of = |scheme: &str| record.coruns.iter().find(|run| run.is_under(scheme));
        let own = of(&self.headline.scheme)?;
        if measure.of_one() {
            return Some(1.0 + measure.share(own)?);
        }
        if self.headline.over == ALONE {
            return measure.ratio(own, &CoRun { antt: 1.0, ..CoRun::default() });
        }
        measure.ratio(own, of(&self.headline.over)?)
    }

    fn queues(
        &self,
        records: &[Analysis],
        measure: Measure,
        chosen: &RunSelection<'_>,
    ) -> Vec<MixGain> {
        let runs: Vec<NamedRun<'_>> = records
            .iter()
            .flat_map(|record| &record.queues)
            .map(|run| NamedRun { name: &run.scheme, run })
            .collect();
        let value = |gain: &QueueGain| -> Option<Gain> {
            if measure == Measure::AppIpc { gain.job_ipc } else { gain.throughput }
        };
        let own = |gain: &QueueGain| {
            let name = match &gain.over {
                Over::Distribution(name) | Over::Queue(name) => name.clone(),
                Over::Average => return None,
            };
            let wanted = chosen.distribution.is_none_or(|only| only == name);
            let mean = value(gain)?.mean;
            (wanted && gain.scheme == self.headline.scheme)
                .then(|| MixGain { mix: name, percent: percent(mean) })
        };
        gains(&runs, &self.headline.over).iter().filter_map(own).collect()
    }
}

fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

impl HeadlineRow {
    /// How far ours is from what is printed, in points; 0 within both ends.
    #[must_use]
    pub fn distance(&self) -> Option<f64> {
        let [low, high] = self.headline.published_percent;
        let ours = self.modelled_percent?;
        Some(if ours < low { ours - low } else { (ours - high).max(0.0) })
    }

    /// How far it may be.
    #[must_use]
    pub fn allowed(&self) -> f64 {
        if self.headline.limit {
            return 0.0;
        }
        let [low, high] = self.headline.published_percent;
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
        f64::midpoint(self.headline.published_percent[0], self.headline.published_percent[1])
    }

    /// Whether `ours` has the other sign than all that is printed.
    fn is_opposite(&self, ours: f64) -> bool {
        let other = |printed: f64| printed.abs() >= ZERO && (ours > 0.0) != (printed > 0.0);
        ours.abs() >= ZERO && self.headline.published_percent.into_iter().all(other)
    }

    /// What of the rule does not hold of this row alone.
    fn alone(&self, ours: f64) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.is_opposite(ours) {
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
        over_mixes(&self.headline.mean, &ratios).map(|ratio| 100.0 * (ratio - 1.0))
    }

    /// Both compare the same, but for one of their schemes.
    fn shares_a_side_with(&self, other: &Self) -> bool {
        let (own, other) = (&self.headline, &other.headline);
        let same = own.set == other.set && own.measure == other.measure;
        same && (own.scheme == other.scheme) != (own.over == other.over)
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
    for other in rows.iter().filter(|other| row.shares_a_side_with(other)) {
        let (Some(ours), Some(theirs)) = (row.gain_with(other), other.gain_with(row)) else {
            continue;
        };
        let printed = row.middle() - other.middle();
        if printed.abs() > TIE && printed * (ours - theirs) < 0.0 {
            let (scheme, over) = (&other.headline.scheme, &other.headline.over);
            reasons.push(format!("{scheme} over {over} is on the other side of it"));
        }
    }
    let broken = row.headline.limit && row.distance().is_some_and(|away| away != 0.0);
    let verdict = match reasons.is_empty() {
        true => Verdict::Pass,
        false if row.headline.impossible.is_some() => Verdict::Impossible,
        false if broken || row.is_opposite(ours) => Verdict::Fail,
        false => Verdict::SameSign,
    };
    (verdict, reasons)
}

/// The mean called `name` of `ratios`, 1 where nothing is gained; `None` of nothing, or
/// where the mean does not exist.
///
/// `best` and `largest` are the largest ratio. `largest-change` is the one furthest from 1,
/// above or below: what a paper bounds for every mix is not met by gains of one that cancel
/// losses of another.
fn over_mixes(name: &str, ratios: &[f64]) -> Option<f64> {
    match name {
        "best" | "largest" => ratios.iter().copied().reduce(f64::max),
        "largest-change" => ratios.iter().copied().reduce(further),
        "geometric" => geometric_mean(ratios),
        _ => mean(ratios),
    }
}

/// Which is further from 1; the first where both are as far.
fn further(one: f64, other: f64) -> f64 {
    if (other - 1.0).abs() > (one - 1.0).abs() { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::{Headline, HeadlineRow, MixGain, RunSelection, Verdict, judge, over_mixes};
    use crate::results::{Analysis, CoRun, CoRunApp};

    /// A row by STP with one printed value.
    fn row(scheme: &str, over: &str, printed: f64, ours: f64) -> HeadlineRow {
        let headline = Headline {
            scheme: scheme.into(),
            over: over.into(),
            measure: "stp".into(),
            mean: "arithmetic".into(),
            published_percent: [printed; 2],
            ..Headline::default()
        };
        HeadlineRow { headline, modelled_percent: Some(ours), ..HeadlineRow::default() }
    }

    /// The same with both ends of a printed range.
    fn between(printed: [f64; 2], ours: f64) -> HeadlineRow {
        let mut row = row("a", "b", 0.0, ours);
        row.headline.published_percent = printed;
        row
    }

    #[test]
    fn a_row_takes_the_mixes_of_its_set() {
        let run = |scheme: &str, stp: f64, apps: [&str; 2]| CoRun {
            scheme: scheme.into(),
            parameters: [("k".to_owned(), "1".to_owned())].into(),
            stp,
            apps: apps.map(|app| CoRunApp { app: app.into(), ..CoRunApp::default() }).into(),
            ..CoRun::default()
        };
        let mix = |apps, stp| Analysis {
            coruns: vec![run("base", 1.0, apps), run("own", stp, apps)],
            ..Analysis::default()
        };
        let records = [mix(["a", "b"], 1.2), mix(["c", "d"], 1.4)];
        let filled = |scheme: &str, mean: &str, chosen: &RunSelection<'_>| {
            let mut row = row(scheme, "base", 0.0, 0.0);
            row.headline.mean = mean.into();
            row.fill(&records, chosen);
            row.modelled_percent.map(|percent| (percent * 1e6).round() / 1e6)
        };
        let all = RunSelection::default();
        assert_eq!(filled("own", "arithmetic", &all), Some(30.0));
        assert_eq!(filled("own", "best", &all), Some(40.0));
        assert_eq!(filled("own", "largest-change", &all), Some(40.0));
        assert_eq!(filled("own:k=1", "geometric", &all), Some(29.614_814));
        assert_eq!(filled("own:k=2", "arithmetic", &all), None);
        let mixes = [vec![String::from("d"), String::from("c")]];
        let some = RunSelection { mixes: Some(&mixes), ..all };
        assert_eq!(filled("own", "arithmetic", &some), Some(40.0));
        // One that is missing leaves no value, unless a part is all that is run.
        let mixes = [mixes[0].clone(), vec![String::from("e")]];
        let some = RunSelection { mixes: Some(&mixes), ..all };
        assert_eq!(filled("own", "arithmetic", &some), None);
        let part = RunSelection { partial: true, ..some };
        assert_eq!(filled("own", "arithmetic", &part), Some(40.0));
    }

    #[test]
    fn orders_of_the_same_applications_are_one_mix() {
        let run = |scheme: &str, stp: f64, apps: [&str; 2]| CoRun {
            scheme: scheme.into(),
            stp,
            antt: 1.5,
            apps: apps.map(|app| CoRunApp { app: app.into(), ..CoRunApp::default() }).into(),
            ..CoRun::default()
        };
        let mix = |apps, stp| Analysis {
            coruns: vec![run("base", 1.0, apps), run("own", stp, apps)],
            ..Analysis::default()
        };
        let records = [mix(["a", "b"], 1.1), mix(["b", "a"], 1.3)];
        let mut best = row("own", "base", 0.0, 0.0);
        best.headline.mean = "best".into();
        best.fill(&records, &RunSelection::default());
        assert_eq!((best.mixes.len(), best.mixes[0].mix.as_str()), (1, "a + b"));
        assert!((best.mixes[0].percent - 20.0).abs() < 1e-9, "{best:?}");
        let mut alone = row("own", "alone", 0.0, 0.0);
        alone.headline.measure = "antt-increase".into();
        alone.fill(&records, &RunSelection::default());
        assert!((alone.modelled_percent.unwrap() - 50.0).abs() < 1e-9, "{alone:?}");
    }

    #[test]
    fn a_row_without_a_value_that_should_have_one_fails() {
        let mut missing = HeadlineRow { modelled_percent: None, ..row("a", "b", 1.0, 0.0) };
        judge(std::slice::from_mut(&mut missing));
        assert_eq!(missing.verdict, Verdict::NotRun);
        missing.fill(&[], &RunSelection::default());
        judge(std::slice::from_mut(&mut missing));
        assert_eq!(missing.verdict, Verdict::Fail);
    }

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
        let ends = |ours| between([28.0, 31.0], ours);
        assert_eq!(verdicts(vec![ends(30.0)]), [true]);
        assert_eq!(verdicts(vec![ends(41.3)]), [true]);
        assert_eq!(verdicts(vec![ends(17.9)]), [false]);
        let limit = |ours| {
            let mut row = ends(ours);
            row.headline.limit = true;
            row
        };
        assert_eq!([31.0, 31.1].map(|ours| verdicts(vec![limit(ours)])), [[true], [false]]);
    }

    #[test]
    fn the_sign_has_to_agree_unless_there_is_none() {
        assert_eq!(verdicts(vec![row("a", "b", 2.0, -1.0)]), [false]);
        assert_eq!(verdicts(vec![row("a", "b", 2.0, -0.04)]), [true]);
        assert_eq!(verdicts(vec![between([-90.0, 900.0], -50.0)]), [true]);
    }

    #[test]
    fn what_does_not_agree_has_the_same_sign_or_contradicts() {
        let verdict = |mut rows: Vec<HeadlineRow>| {
            judge(&mut rows);
            rows[0].verdict
        };
        assert_eq!(verdict(vec![row("a", "b", 40.0, 5.0)]), Verdict::SameSign);
        assert_eq!(verdict(vec![row("a", "b", 40.0, -0.04)]), Verdict::SameSign, "no sign");
        assert_eq!(verdict(vec![row("a", "b", 40.0, -5.0)]), Verdict::Fail);
        assert_eq!(verdict(vec![row("a", "b", 2.0, -1.0)]), Verdict::Fail, "near, and a loss");
        let ruled_out = |ours| {
            let mut row = row("a", "b", 40.0, ours);
            row.headline.impossible = Some(String::from("4 times 0.25 is 1"));
            verdict(vec![row])
        };
        assert_eq!([-5.0, 5.0].map(ruled_out), [Verdict::Impossible; 2]);
        assert_eq!(ruled_out(39.0), Verdict::Pass, "what agrees agrees");
        let order = vec![row("a", "c", 20.0, 15.0), row("b", "c", 14.0, 15.1)];
        assert_eq!(verdict(order), Verdict::SameSign);
        let mut limit = between([-2.0, 2.0], 2.5);
        limit.headline.limit = true;
        assert_eq!(verdict(vec![limit]), Verdict::Fail);
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
        assert_eq!(between([28.0, 31.0], 30.0).is_low(), Some(false));
        let none = HeadlineRow { modelled_percent: None, ..row("a", "b", 1.0, 0.0) };
        assert_eq!(none.is_low(), None);
    }

    #[test]
    fn gains_and_losses_cancel_in_a_mean_and_not_in_the_largest_change() {
        let ratios = [1.07, 0.94];
        assert!((over_mixes("arithmetic", &ratios).unwrap() - 1.0).abs() < 0.01);
        assert!((over_mixes("geometric", &ratios).unwrap() - 1.0).abs() < 0.01);
        assert_eq!(over_mixes("largest-change", &ratios), Some(1.07));
    }

    #[test]
    fn a_change_is_the_furthest_from_one_on_either_side() {
        let change = |ratios: &[f64]| over_mixes("largest-change", ratios);
        assert_eq!(change(&[1.03, 0.93, 1.05]), Some(0.93));
        assert_eq!(change(&[0.99, 1.04]), Some(1.04));
        assert_eq!((change(&[1.0]), change(&[])), (Some(1.0), None));
        assert_eq!(over_mixes("largest", &[1.03, 0.93, 1.05]), Some(1.05));
    }
}
