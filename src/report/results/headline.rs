//! A value that a paper prints, and ours beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::chosen::Chosen;
use super::measure::Measure;
use super::over_mixes::over_mixes;
use super::queue_gain::{Gain, NamedRun, Over, gains};
use super::statistics::mean;
use super::{Analysis, CoRun, QueueGain, Verdict};

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
    /// Mixes that its runs are of in the paper; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_mixes: Option<usize>,
    /// Why ours is another, as far as it was found out of runs such as these.
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
        let of = |scheme: &str| record.coruns.iter().find(|run| run.is_under(scheme));
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
}

fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

/// A row by STP with one printed value, for tests.
#[cfg(test)]
pub(super) fn row(scheme: &str, over: &str, printed: f64, ours: f64) -> HeadlineRow {
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

#[cfg(test)]
mod tests {
    use super::{Chosen, HeadlineRow, row};
    use crate::results::{Analysis, CoRun, CoRunApp, Verdict, judge};

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
