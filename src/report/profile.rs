//! What kernels take of resources: launches of one name together, in record order.

use std::collections::BTreeMap;

use super::group::short_app;
use super::machine::machine_words;
use super::mix::apart;
use super::name::plain_name;
use super::number::float;
use crate::results::{Analysis, AppRecord, KernelRecord, UnitShares};

/// Shares of one kernel, means over its launches weighted by cycles beyond launch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile {
    /// What to call it.
    pub(crate) label: String,
    /// Launches that say.
    pub(crate) launches: u64,
    /// Cycles of those launches.
    pub(crate) cycles: u64,
    /// Shares by name; a launch without one of a name counts as 0.
    pub(crate) shares: UnitShares,
}

/// The kernels of `runs` for which `of` gives something, in record order; beyond `most`
/// only those with most cycles, and how many are left out.
pub(crate) fn profiles(
    runs: &[(&Analysis, &AppRecord)],
    most: usize,
    of: impl Fn(&KernelRecord) -> Option<UnitShares>,
) -> (Vec<Profile>, usize) {
    let mut order: Vec<(usize, &str)> = Vec::new();
    let mut sums: BTreeMap<(usize, &str), Sum> = BTreeMap::new();
    for (index, (_, app)) in runs.iter().enumerate() {
        for kernel in &app.kernels {
            let Some(shares) = of(kernel) else { continue };
            let key = (index, kernel.name.as_str());
            let sum = sums.entry(key).or_default();
            if sum.launches == 0 {
                order.push(key);
            }
            sum.add(kernel, &shares);
        }
    }
    let mut largest: Vec<usize> = (0..order.len()).collect();
    largest.sort_by_key(|&place| std::cmp::Reverse(sums[&order[place]].cycles));
    let left_out = largest.len().saturating_sub(most);
    largest.truncate(most);
    largest.sort_unstable();
    let labels = labels(runs, &order);
    let profile = |place: usize| sums[&order[place]].profile(&labels[place]);
    (largest.into_iter().map(profile).collect(), left_out)
}

/// What the kernels are called: an application's only kernel like the application.
fn labels(runs: &[(&Analysis, &AppRecord)], order: &[(usize, &str)]) -> Vec<String> {
    let records: Vec<&Analysis> = runs.iter().map(|run| run.0).collect();
    let machines = machine_words(&records);
    let label = |&(index, kernel): &(usize, &str)| {
        let app = short_app(&runs[index].1.app);
        let own = order.iter().filter(|other| other.0 == index).count();
        let label = match (runs.len(), own) {
            (1, _) => plain_name(kernel),
            (_, 1) => app.to_string(),
            _ => format!("{app}: {}", plain_name(kernel)),
        };
        label + &machines[index]
    };
    apart(order.iter().map(label).collect())
}

/// Shares of several launches, not yet divided by their weight.
#[derive(Debug, Default)]
struct Sum {
    launches: u64,
    cycles: u64,
    weight: f64,
    shares: UnitShares,
}

impl Sum {
    fn add(&mut self, kernel: &KernelRecord, shares: &UnitShares) {
        // A launch without time still says what it takes.
        let weight = float(kernel.cycles.saturating_sub(kernel.launch_cycles).max(1));
        self.launches += 1;
        self.cycles = self.cycles.saturating_add(kernel.cycles);
        self.weight += weight;
        for (name, share) in shares.iter().filter(|(_, share)| share.is_finite()) {
            *self.shares.entry(name.clone()).or_default() += share * weight;
        }
    }

    fn profile(&self, label: &str) -> Profile {
        let mean = |(name, sum): (&String, &f64)| (name.clone(), sum / self.weight);
        Profile {
            label: label.into(),
            launches: self.launches,
            cycles: self.cycles,
            shares: self.shares.iter().map(mean).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::profiles;
    use crate::results::{Analysis, AppRecord, KernelRecord};

    #[test]
    fn launches_of_one_name_are_weighted_by_their_cycles() {
        let kernel = |name: &str, cycles: u64, share| KernelRecord {
            name: name.into(),
            cycles: cycles + 10,
            launch_cycles: 10,
            residence: Some([("registers".to_string(), share)].into()),
            ..KernelRecord::default()
        };
        let kernels = vec![kernel("a", 300, 0.2), kernel("b", 50, 0.5), kernel("a", 100, 0.6)];
        let app = AppRecord { app: "suite/x".into(), kernels, ..AppRecord::default() };
        let record = Analysis::default();
        let reported = |runs: &[(&Analysis, &AppRecord)], most| {
            let (all, left) = profiles(runs, most, |kernel| kernel.residence.clone());
            let rows =
                all.into_iter().map(|one| (one.label, one.launches, one.shares["registers"]));
            (rows.collect::<Vec<_>>(), left)
        };
        let (rows, left) = reported(&[(&record, &app)], 9);
        assert_eq!((rows.len(), left), (2, 0));
        assert_eq!((rows[0].0.as_str(), rows[0].1), ("a", 2));
        assert!((rows[0].2 - 0.3).abs() < 1e-12);
        let (rows, left) = reported(&[(&record, &app), (&record, &app)], 2);
        let names: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
        assert_eq!((names, left), (vec!["x: a", "x: a [2]"], 2));
    }
}
