//! A value that a paper prints, ours beside it, and whether they agree.
//!
//! A row passes when the sign agrees (less than 0.05 %, ours or printed, has none), the gain
//! is within ten points or a third of it, whichever is more, and the order agrees with every
//! other row that compares the same schemes by the same measure and is further away than three
//! points in the paper.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::chosen::Chosen;
use super::measure::Measure;
use super::over_mixes::over_mixes;
use super::queue_gain::{Gain, NamedRun, Over, gains};
use super::statistics::mean;
use super::{Analysis, CoRun, QueueGain};

/// Points by which a gain may differ in any case.
const POINTS: f64 = 10.0;

/// The part of a gain by which it may differ.
const PART: f64 = 1.0 / 3.0;

/// Rows that are no further apart in the paper may come in any order.
const TIE: f64 = 3.0;

/// What rounds to zero in a table with one digit after the point has no sign.
const ZERO: f64 = 0.05;

/// What a scheme is compared with where that is each application alone: ANTT 1.
pub const ALONE: &str = "alone";

/// A printed value and ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadlineRow {
    /// Where it is printed.
    pub published: String,
    /// The scheme.
    pub scheme: String,
    /// What it is compared with; empty: nothing, it is a share.
    pub over: String,
    /// Over which runs.
    pub set: String,
    /// By which measure.
    pub measure: String,
    /// How mixes are averaged: `arithmetic`, `geometric`; or which of them stands for all:
    /// `best` or `largest`, or `largest-change`, the one furthest from no change at all.
    pub mean: String,
    /// What is printed, in percent: both ends, equal for one value.
    pub published_percent: [f64; 2],
    /// What is printed is a limit that has to hold, not a value to be near.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limit: bool,
    /// Ours; absent: not run, or no mix has both schemes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled_percent: Option<f64>,
    /// Ours by mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixes: Vec<MixGain>,
    /// What comes out.
    pub verdict: Verdict,
    /// What of the rule does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Why ours is another, as far as it was found out.
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
    /// It does not.
    Fail,
    /// Nobody knows: its runs are not part of this reproduction.
    #[default]
    NotRun,
}

impl HeadlineRow {
    /// Fills in what `records` give, where schemes of a mix are in one record. Orders of the
    /// same applications are one mix. A mix that has no value leaves the row without one, and
    /// is a reason to fail, unless the runs are a part of the paper's.
    pub fn fill(&mut self, records: &[Analysis], chosen: &Chosen<'_>) {
        self.modelled_percent = None;
        let Some(measure) = Measure::named(&self.measure) else { return };
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
        self.modelled_percent = over_mixes(&self.mean, &ratios).map(percent);
    }

    /// The gains of mixes, and how many have none.
    fn together(
        &self,
        records: &[Analysis],
        measure: Measure,
        chosen: &Chosen<'_>,
    ) -> (Vec<MixGain>, usize) {
        let mut ratios: BTreeMap<Vec<&str>, (String, Vec<Option<f64>>)> = BTreeMap::new();
        let mut order: Vec<Vec<&str>> = Vec::new();
        for record in records {
            let Some(names) = chosen.takes(record) else { continue };
            let mix = record.coruns[0].apps.iter().map(|app| app.app.as_str());
            let mix = mix.collect::<Vec<_>>().join(" + ");
            if !ratios.contains_key(&names) {
                order.push(names.clone());
            }
            let entry = ratios.entry(names).or_insert_with(|| (mix, Vec::new()));
            entry.1.push(self.ratio(record, measure));
        }
        let of = |names: &Vec<&str>| {
            let (mix, ratios) = &ratios[names];
            let ratios: Option<Vec<f64>> = ratios.iter().copied().collect();
            Some(MixGain { mix: mix.clone(), percent: percent(mean(&ratios?)?) })
        };
        let gains: Vec<MixGain> = order.iter().filter_map(of).collect();
        let wanted = chosen.mixes.map_or(order.len().max(1), <[_]>::len);
        let missing = wanted.saturating_sub(gains.len());
        (gains, missing)
    }

    fn ratio(&self, record: &Analysis, measure: Measure) -> Option<f64> {
        let of = |scheme: &str| record.coruns.iter().find(|run| is(run, scheme));
        let own = of(&self.scheme)?;
        if measure.of_one() {
            return Some(1.0 + measure.share(own)?);
        }
        if self.over == ALONE {
            return measure.ratio(own, &CoRun { antt: 1.0, ..CoRun::default() });
        }
        measure.ratio(own, of(&self.over)?)
    }

    fn queues(&self, records: &[Analysis], measure: Measure, chosen: &Chosen<'_>) -> Vec<MixGain> {
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
            (wanted && gain.scheme == self.scheme)
                .then(|| MixGain { mix: name, percent: percent(mean) })
        };
        gains(&runs, &self.over).iter().filter_map(own).collect()
    }

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
        let Some(theirs) = other.modelled_percent else { continue };
        let printed = row.middle() - other.middle();
        if printed.abs() > TIE && printed * (ours - theirs) < 0.0 {
            let (scheme, over) = (&other.scheme, &other.over);
            reasons.push(format!("{scheme} over {over} is on the other side of it"));
        }
    }
    (if reasons.is_empty() { Verdict::Pass } else { Verdict::Fail }, reasons)
}

/// Whether a run is of the scheme `name:key=value`.
fn is(run: &CoRun, typed: &str) -> bool {
    let mut words = typed.split(':');
    let has = |word: &str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        run.parameters.get(key).is_some_and(|found| found == value)
    };
    words.next() == Some(run.scheme.as_str()) && words.all(has)
}

fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

#[cfg(test)]
mod tests {
    use super::{Chosen, HeadlineRow, Verdict, judge};
    use crate::record::{Analysis, CoRun, CoRunApp};

    fn row(scheme: &str, over: &str, printed: f64, ours: f64) -> HeadlineRow {
        HeadlineRow {
            scheme: scheme.into(),
            over: over.into(),
            measure: "stp".into(),
            mean: "arithmetic".into(),
            published_percent: [printed; 2],
            modelled_percent: Some(ours),
            ..HeadlineRow::default()
        }
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
        let filled = |scheme: &str, mean: &str, chosen: &Chosen<'_>| {
            let mut row = row(scheme, "base", 0.0, 0.0);
            row.mean = mean.into();
            row.fill(&records, chosen);
            row.modelled_percent.map(|percent| (percent * 1e6).round() / 1e6)
        };
        let all = Chosen::default();
        assert_eq!(filled("own", "arithmetic", &all), Some(30.0));
        assert_eq!(filled("own", "best", &all), Some(40.0));
        assert_eq!(filled("own", "largest-change", &all), Some(40.0));
        assert_eq!(filled("own:k=1", "geometric", &all), Some(29.614_814));
        assert_eq!(filled("own:k=2", "arithmetic", &all), None);
        let mixes = [vec![String::from("d"), String::from("c")]];
        let some = Chosen { mixes: Some(&mixes), ..all };
        assert_eq!(filled("own", "arithmetic", &some), Some(40.0));
        // One that is missing leaves no value, unless a part is all that is run.
        let mixes = [mixes[0].clone(), vec![String::from("e")]];
        let some = Chosen { mixes: Some(&mixes), ..all };
        assert_eq!(filled("own", "arithmetic", &some), None);
        let part = Chosen { partial: true, ..some };
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
        let mut best = HeadlineRow { mean: "best".into(), ..row("own", "base", 0.0, 0.0) };
        best.fill(&records, &Chosen::default());
        assert_eq!((best.mixes.len(), best.mixes[0].mix.as_str()), (1, "a + b"));
        assert!((best.mixes[0].percent - 20.0).abs() < 1e-9, "{best:?}");
        let mut alone = row("own", "alone", 0.0, 0.0);
        alone.measure = "antt-increase".into();
        alone.fill(&records, &Chosen::default());
        assert!((alone.modelled_percent.unwrap() - 50.0).abs() < 1e-9, "{alone:?}");
    }

    #[test]
    fn a_row_without_a_value_that_should_have_one_fails() {
        let mut missing = HeadlineRow { modelled_percent: None, ..row("a", "b", 1.0, 0.0) };
        judge(std::slice::from_mut(&mut missing));
        assert_eq!(missing.verdict, Verdict::NotRun);
        missing.fill(&[], &Chosen::default());
        judge(std::slice::from_mut(&mut missing));
        assert_eq!(missing.verdict, Verdict::Fail);
    }
}
