//! One configuration for each kernel so that the slowest ends soonest, greedily.

use super::Amount;

/// A kernel: what a CTA of it takes, and its configurations with rising CTAs and falling
/// times, from the smallest with which it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What a CTA takes of an SM.
    pub need: Amount,
    /// CTAs on an SM and the time left with as many, in any unit.
    pub configurations: Vec<(u32, f64)>,
}

impl Candidate {
    /// A kernel with these times for 1, 2, ... CTAs. Configurations that are not faster than
    /// one with fewer CTAs are left out, except the first.
    #[must_use]
    pub fn pruned(need: Amount, times: &[f64]) -> Self {
        let mut configurations: Vec<(u32, f64)> = Vec::new();
        for (ctas, &time) in (1..).zip(times) {
            if configurations.last().is_none_or(|&(_, best)| time < best) {
                configurations.push((ctas, time));
            }
        }
        Self { need, configurations }
    }

    fn taken(&self, place: usize) -> Amount {
        self.need.times(self.configurations[place].0)
    }
}

/// The place of each candidate's configuration by Algorithm 1 of the ARCS 2018 paper:
/// all begin with their first; the one with most time left (the first of equals) takes its
/// next, and where that does not fit with the others it keeps the one that it has. `None`
/// when the first configurations do not fit together, or a candidate has none.
///
/// No choice that fits has a shorter longest time: a candidate takes more only while it has
/// most time left, so none has more than that time requires.
///
/// The listing's loop runs past the last kernel (`marked <= size`); here it ends.
#[must_use]
pub fn greedy(whole: Amount, candidates: &[Candidate]) -> Option<Vec<usize>> {
    if candidates.iter().any(|one| one.configurations.is_empty()) {
        return None;
    }
    let mut chosen = vec![0; candidates.len()];
    let fits = |chosen: &[usize]| {
        let parts = candidates.iter().zip(chosen).map(|(one, &place)| one.taken(place));
        whole.minus(parts.fold(Amount::default(), Amount::plus)).is_some()
    };
    if !fits(&chosen) {
        return None;
    }
    let left = |chosen: &[usize], one: usize| candidates[one].configurations[chosen[one]].1;
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    let sort = |order: &mut [usize], chosen: &[usize]| {
        order.sort_by(|&one, &other| {
            left(chosen, other).total_cmp(&left(chosen, one)).then(one.cmp(&other))
        });
    };
    sort(&mut order, &chosen);
    let mut marked = 0;
    while let Some(&kernel) = order.get(marked) {
        if chosen[kernel] + 1 == candidates[kernel].configurations.len() {
            marked += 1;
            continue;
        }
        chosen[kernel] += 1;
        if fits(&chosen) {
            sort(&mut order[marked..], &chosen);
        } else {
            chosen[kernel] -= 1;
            marked += 1;
        }
    }
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::{Candidate, greedy};
    use crate::solve::Amount;

    fn need(registers: u64, warps: u64) -> Amount {
        Amount { registers, shared_bytes: 0, threads: warps * 32, warps, cta_slots: 1 }
    }

    const WHOLE: Amount =
        Amount { registers: 65_536, shared_bytes: 49_152, threads: 2048, warps: 64, cta_slots: 16 };

    #[test]
    fn configurations_that_are_not_faster_are_left_out() {
        let pruned = Candidate::pruned(need(1, 1), &[8.0, 4.0, 5.0, 4.0, 3.0]);
        assert_eq!(pruned.configurations, [(1, 8.0), (2, 4.0), (5, 3.0)]);
    }

    #[test]
    fn equal_kernels_share_equally_and_the_longer_takes_the_rest() {
        let times: Vec<f64> = (1..=16).map(|ctas| 60.0 / f64::from(ctas)).collect();
        let one = Candidate::pruned(need(4096, 8), &times);
        assert_eq!(greedy(WHOLE, &[one.clone(), one.clone()]), Some(vec![3, 3]));
        let tenth: Vec<f64> = times.iter().map(|time| time * 0.1).collect();
        let short = Candidate::pruned(need(4096, 8), &tenth);
        let chosen = greedy(WHOLE, &[one.clone(), short]).unwrap();
        assert!(chosen[0] > chosen[1], "{chosen:?}");
        assert_eq!(chosen[0] + chosen[1] + 2, 8, "64 warps are eight CTAs");
    }

    #[test]
    fn where_one_cta_each_does_not_fit_there_is_no_choice() {
        let large = Candidate::pruned(need(40_000, 8), &[1.0]);
        assert_eq!(greedy(WHOLE, &[large.clone(), large.clone()]), None);
        assert_eq!(greedy(WHOLE, &[large]), Some(vec![0]));
        assert_eq!(greedy(WHOLE, &[]), Some(vec![]));
    }
}
