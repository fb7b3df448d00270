//! How much classes slow each other down: the probes, and the matrix that follows.

use gpumodel_core::contract::{GroupProbe, GroupProbeResult, PairFound, QueueFacts};

use super::super::solve::float;
use super::Unmatched;

/// The probes by which the slow-downs of classes are measured: every different one once.
#[derive(Clone, Debug)]
pub(super) struct PairProbes {
    /// Applications that run alone.
    solos: Vec<usize>,
    /// Applications that run together, with their classes.
    pairs: Vec<Pair>,
    /// SMs of each application.
    sms: u16,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    apps: [usize; 2],
    classes: [usize; 2],
}

impl PairProbes {
    /// For every two classes each representative of the one with each of the other;
    /// within a class all that differ, or its only representative with a copy of
    /// itself. Each has half of the SMs; of an odd number one stays idle.
    ///
    /// `members` are the applications of each class; at most `most` of each represent
    /// it, spread evenly, 0: all do.
    ///
    /// # Errors
    /// When the machine has fewer than two SMs.
    pub(super) fn new(
        facts: &QueueFacts,
        members: &[Vec<usize>],
        most: usize,
    ) -> Result<Self, Unmatched> {
        let sms = facts.sms / 2;
        if sms == 0 {
            return Err(Unmatched::NoPair { sms: facts.sms });
        }
        let chosen: Vec<Vec<usize>> =
            members.iter().map(|apps| representatives(apps, most)).collect();
        let mut solos: Vec<usize> = chosen.iter().flatten().copied().collect();
        solos.sort_unstable();
        let mut pairs = Vec::new();
        for (first, apps) in chosen.iter().enumerate() {
            for (second, others) in chosen.iter().enumerate().skip(first) {
                let classes = [first, second];
                let pair = |apps| Pair { apps, classes };
                if first != second {
                    let with = |&app: &usize| others.iter().map(move |&other| [app, other]);
                    pairs.extend(apps.iter().flat_map(with).map(pair));
                } else if let [only] = apps[..] {
                    pairs.push(pair([only, only]));
                } else {
                    let behind = |place: usize| apps[place + 1..].iter();
                    let with = |place| behind(place).map(move |&other| [apps[place], other]);
                    pairs.extend((0..apps.len()).flat_map(with).map(pair));
                }
            }
        }
        Ok(Self { solos, pairs, sms })
    }

    /// The probes: the solo runs first.
    pub(super) fn all(&self) -> Vec<GroupProbe> {
        let alone =
            self.solos.iter().map(|&app| GroupProbe { apps: vec![app], sms: vec![self.sms] });
        let together = self
            .pairs
            .iter()
            .map(|pair| GroupProbe { apps: pair.apps.to_vec(), sms: vec![self.sms; 2] });
        alone.chain(together).collect()
    }

    /// The slow-downs of each pair: cycles together over cycles alone on as many SMs.
    pub(super) fn slowdowns(&self, answers: &[GroupProbeResult]) -> Vec<PairFound> {
        let (alone, together) = answers.split_at(self.solos.len());
        let cycles = |answer: &GroupProbeResult, member: usize| float(answer.cycles[member]);
        let solo = |app: usize| {
            let place = self.solos.binary_search(&app).expect("a member of a pair also runs alone");
            cycles(&alone[place], 0).max(1.0)
        };
        let pair = |(pair, answer): (&Pair, &GroupProbeResult)| PairFound {
            apps: pair.apps,
            slowdown: [0, 1].map(|one| cycles(answer, one).max(1.0) / solo(pair.apps[one])),
        };
        self.pairs.iter().zip(together).map(pair).collect()
    }

    /// The mean slow-down of each class (column) by each class (row).
    pub(super) fn matrix(&self, classes: usize, found: &[PairFound]) -> Vec<Vec<f64>> {
        let mut sums = vec![vec![(0.0, 0.0); classes]; classes];
        for (pair, found) in self.pairs.iter().zip(found) {
            for (sufferer, disturber) in [(0, 1), (1, 0)] {
                let entry = &mut sums[pair.classes[disturber]][pair.classes[sufferer]];
                *entry = (entry.0 + found.slowdown[sufferer], entry.1 + 1.0);
            }
        }
        let means =
            |row: Vec<(f64, f64)>| row.into_iter().map(|(sum, count)| sum / count).collect();
        sums.into_iter().map(means).collect()
    }
}

/// At most `most` of `apps`, spread evenly over them, with the first; 0: all.
fn representatives(apps: &[usize], most: usize) -> Vec<usize> {
    let count = if most == 0 { apps.len() } else { most.min(apps.len()) };
    (0..count).map(|place| apps[place * apps.len() / count]).collect()
}

/// The slow-downs that the user has measured, for these classes.
///
/// # Errors
/// When one is missing.
pub(super) fn measured(facts: &QueueFacts, classes: &[String]) -> Result<Vec<Vec<f64>>, Unmatched> {
    let entry = |disturbs: &String, suffers: &String| {
        let found = facts.given.get(disturbs).and_then(|row| row.get(suffers));
        found.copied().ok_or_else(|| Unmatched::Missing {
            disturbs: disturbs.clone(),
            suffers: suffers.clone(),
            classes: classes.join(", "),
        })
    };
    let row = |disturbs| classes.iter().map(|suffers| entry(disturbs, suffers)).collect();
    classes.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{PairProbes, measured, representatives};
    use crate::queue::Unmatched;
    use gpumodel_core::contract::{GroupProbeResult, QueueFacts};

    fn facts(sms: u16) -> QueueFacts {
        QueueFacts {
            sms,
            group_size: 2,
            peak_dram_gb_per_s: 1.0,
            peak_ipc: 1.0,
            apps: Vec::new(),
            jobs: Vec::new(),
            given: BTreeMap::new(),
        }
    }

    #[test]
    fn every_pair_runs_once_on_half_of_the_sms() {
        let probes = PairProbes::new(&facts(61), &[vec![0, 3], vec![1], vec![2]], 3).unwrap();
        let probes = probes.all();
        let apps: Vec<&[usize]> = probes.iter().map(|probe| &probe.apps[..]).collect();
        let pairs: [&[usize]; 8] =
            [&[0, 3], &[0, 1], &[3, 1], &[0, 2], &[3, 2], &[1, 1], &[1, 2], &[2, 2]];
        assert_eq!(apps, [&[&[0][..], &[1], &[2], &[3]], &pairs[..]].concat());
        assert!(probes.iter().all(|probe| probe.sms.iter().all(|&sms| sms == 30)));
        assert!(PairProbes::new(&facts(1), &[vec![0]], 3).is_err());
    }

    #[test]
    fn representatives_are_spread_over_the_class() {
        assert_eq!(representatives(&[4, 5, 6, 7, 8, 9], 3), [4, 6, 8]);
        assert_eq!(representatives(&[4, 5], 3), [4, 5]);
        assert_eq!(representatives(&[4, 5, 6, 7], 0), [4, 5, 6, 7]);
        assert_eq!(representatives(&[4, 5, 6, 7], 1), [4]);
    }

    #[test]
    fn an_entry_is_the_mean_over_pairs_of_the_time_against_alone() {
        let probes = PairProbes::new(&facts(60), &[vec![0, 1], vec![2]], 0).unwrap();
        let answer = |cycles: &[u64]| GroupProbeResult {
            cycles: cycles.to_vec(),
            warp_instructions: vec![1; cycles.len()],
        };
        let answers = [
            answer(&[100]),
            answer(&[200]),
            answer(&[400]),
            answer(&[150, 500]),
            answer(&[110, 480]),
            answer(&[260, 520]),
            answer(&[800, 600]),
        ];
        let found = probes.slowdowns(&answers);
        assert_eq!(
            found.iter().map(|pair| pair.apps).collect::<Vec<_>>(),
            [[0, 1], [0, 2], [1, 2], [2, 2]]
        );
        assert_eq!(found[1].slowdown, [1.1, 1.2]);
        let slowdown = probes.matrix(2, &found);
        let expected = [[(1.5 + 2.5) / 2.0, 1.25], [1.2, 1.75]];
        for (row, expected) in slowdown.iter().zip(expected) {
            for (found, expected) in row.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
            }
        }
    }

    #[test]
    fn a_measured_matrix_is_whole_or_refused() {
        let mut facts = facts(60);
        let row = |m, a| BTreeMap::from([(String::from("M"), m), (String::from("A"), a)]);
        facts.given.insert(String::from("M"), row(2.1, 1.2));
        let classes = [String::from("M"), String::from("A")];
        assert_eq!(measured(&facts, &classes[..1]), Ok(vec![vec![2.1]]));
        let missing = measured(&facts, &classes).unwrap_err();
        assert!(matches!(&missing, Unmatched::Missing { disturbs, .. } if disturbs == "A"));
        facts.given.insert(String::from("A"), row(1.5, 1.06));
        assert_eq!(measured(&facts, &classes), Ok(vec![vec![2.1, 1.2], vec![1.5, 1.06]]));
    }
}
