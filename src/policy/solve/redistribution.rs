//! Demand-aware redistribution of SMs and memory channels (UGPU, section 3.2, Fig. 5).
//!
//! An application that demands at most the bandwidth that its channels supply is
//! compute-bound, every other one memory-bound. In each iteration SMs go from the most
//! memory-bound application to the most compute-bound one and channels the other way,
//! until one of the two kinds is empty.
//!
//! Where the paper is silent: SMs and channels move together (lines 20 to 23). Where the most
//! memory-bound application has no SM to give, the next one in the list gives; where none has,
//! only channels move, and nothing where none has those either. Where no channels can move, an
//! application gives SMs only while it keeps some for each of its channels
//! ([`Terms::sms_per_group`]): the printed gains of two programs (+52.8 % in STP, +67 % in
//! ANTT under the offline partition) need 24 to 32 SMs with the memory-bound one, so the exchange
//! cannot go on with SMs alone. Of equals the first is taken. A step may go too far, so that the next one would lead back: of the
//! allocations that would alternate, the one with the highest predicted throughput stays, of
//! equals the first. So a run that begins with a result ends with it.

/// SMs and groups of channels; the channels of a group move together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// SMs.
    pub sms: u32,
    /// Groups of channels.
    pub groups: u32,
}

/// An application with its part of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Bandwidth that one SM demands when it never stalls (BW_SM, eq. 1).
    pub demand: f64,
    /// Bandwidth that one group of channels supplies (BW_MC of each, eq. 2), in the unit of
    /// the demand; above 0.
    pub supply: f64,
    /// What it has.
    pub has: Resources,
    /// Groups that its working set fills: with fewer it is memory-bound whatever its demand,
    /// and it gives none that it needs (section 3.2).
    pub needs: u32,
    /// The part of its performance with the whole machine that it keeps (section 6.7); 0: no
    /// target.
    pub keeps: f64,
}

/// How resources may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The most that moves in one iteration.
    pub step: Resources,
    /// What every application keeps.
    pub least: Resources,
    /// SMs that an application keeps for each of its groups of channels where SMs move alone; 0:
    /// no more than `least`.
    pub sms_per_group: u32,
    /// The whole machine.
    pub whole: Resources,
    /// The most iterations.
    pub iterations: u32,
}

/// Why a redistribution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All are compute-bound, or all are memory-bound.
    Balanced,
    /// No application can give anything.
    Bound,
    /// The next step leads back to an allocation that was left.
    Repeats,
    /// The most iterations were made.
    Iterations,
}

/// The result of a redistribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redistribution {
    /// What each has, by its place.
    pub parts: Vec<Resources>,
    /// Iterations, with the last one that finds nothing to move.
    pub iterations: u32,
    /// Why it ended.
    pub stop: Stop,
}

impl Slice {
    /// Bandwidth that its SMs demand.
    #[must_use]
    pub fn asked(&self) -> f64 {
        self.demand * f64::from(self.has.sms)
    }

    /// Bandwidth that its channels supply.
    #[must_use]
    pub fn supplied(&self) -> f64 {
        self.supply * f64::from(self.has.groups)
    }

    /// It is compute-bound (Fig. 5, line 12, and the memory that it needs).
    #[must_use]
    pub fn computes(&self) -> bool {
        self.asked() <= self.supplied() && self.needs <= self.has.groups
    }

    /// The degree to which it is compute-bound or memory-bound, from 1 (Fig. 5, lines 13 and
    /// 15). A working set that is too large counts as a demand too large by the same factor.
    fn degree(&self) -> f64 {
        if self.computes() {
            return ratio(self.supplied(), self.asked());
        }
        let short = ratio(f64::from(self.needs), f64::from(self.has.groups));
        ratio(self.asked(), self.supplied()).max(short)
    }

    /// Predicted performance over that with the whole machine: as many SMs are busy as
    /// there are and as the channels keep busy.
    #[must_use]
    pub fn progress(&self, whole: Resources) -> f64 {
        ratio(self.busy(self.has), self.busy(whole))
    }

    fn busy(&self, has: Resources) -> f64 {
        f64::from(has.sms).min(ratio(self.supply * f64::from(has.groups), self.demand))
    }

    /// It meets its target with `has`.
    fn meets_target(&self, has: Resources, terms: &Terms) -> bool {
        let then = Self { has, ..*self };
        self.keeps <= 0.0 || then.progress(terms.whole) >= self.keeps * (1.0 - ROUNDING)
    }

    /// SMs that it can give in one step, to an application that gives channels for them or
    /// `alone`.
    fn spare_sms(&self, terms: &Terms, alone: bool) -> u32 {
        let has = self.has;
        let for_channels = if alone { terms.sms_per_group * has.groups } else { 0 };
        let keeps = terms.least.sms.max(for_channels);
        let most = terms.step.sms.min(has.sms.saturating_sub(keeps));
        let left = |count: &u32| Resources { sms: has.sms - count, ..has };
        (1..=most).rev().find(|count| self.meets_target(left(count), terms)).unwrap_or(0)
    }

    /// Groups of channels that it can give in one step.
    fn spare_groups(&self, terms: &Terms) -> u32 {
        let has = self.has;
        let keeps = terms.least.groups.max(self.needs);
        let most = terms.step.groups.min(has.groups.saturating_sub(keeps));
        let left = |count: &u32| Resources { groups: has.groups - count, ..has };
        (1..=most).rev().find(|count| self.meets_target(left(count), terms)).unwrap_or(0)
    }
}

/// Predictions that differ by less are equal.
const ROUNDING: f64 = 1e-9;

fn ratio(over: f64, under: f64) -> f64 {
    if under > 0.0 { over / under } else { f64::INFINITY }
}

/// Redistributes the resources of `slices` between them; their sum stays.
#[must_use]
pub fn redistribute(slices: &[Slice], terms: &Terms) -> Redistribution {
    let mut seen = vec![slices.to_vec()];
    let mut last = 0;
    let (mut iterations, mut stop) = (0, Stop::Iterations);
    while iterations < terms.iterations {
        iterations += 1;
        match step(&seen[last], terms) {
            Err(end) => {
                stop = end;
                break;
            }
            Ok(next) => match seen.iter().position(|before| *before == next) {
                Some(first) => {
                    (last, stop) = (first + fastest(&seen[first..], terms), Stop::Repeats);
                    break;
                }
                None => {
                    seen.push(next);
                    last += 1;
                }
            },
        }
    }
    let parts = seen[last].iter().map(|slice| slice.has).collect();
    Redistribution { parts, iterations, stop }
}

/// One iteration: sorts both lists and moves resources between their heads.
fn step(slices: &[Slice], terms: &Terms) -> Result<Vec<Slice>, Stop> {
    let (compute, memory) = lists(slices);
    let (Some(&most_compute), Some(&most_memory)) = (compute.first(), memory.first()) else {
        return Err(Stop::Balanced);
    };
    let giver = |list: &[usize], spare: &dyn Fn(&Slice) -> u32| {
        let spare = |&place: &usize| (place, spare(&slices[place]));
        list.iter().map(spare).find(|&(_, count)| count > 0)
    };
    let groups = giver(&compute, &|slice| slice.spare_groups(terms));
    let sms = giver(&memory, &|slice| slice.spare_sms(terms, groups.is_none()));
    if sms.is_none() && groups.is_none() {
        return Err(Stop::Bound);
    }
    let mut next = slices.to_vec();
    if let Some((from, count)) = sms {
        next[from].has.sms -= count;
        next[most_compute].has.sms += count;
    }
    if let Some((from, count)) = groups {
        next[from].has.groups -= count;
        next[most_memory].has.groups += count;
    }
    Ok(next)
}

/// Places of the compute-bound and of the memory-bound, the most so first.
fn lists(slices: &[Slice]) -> (Vec<usize>, Vec<usize>) {
    let mut places: Vec<usize> = (0..slices.len()).collect();
    places.sort_by(|&one, &other| slices[other].degree().total_cmp(&slices[one].degree()));
    places.into_iter().partition(|&place| slices[place].computes())
}

/// The place of the allocation with the highest sum of predicted performances.
fn fastest(seen: &[Vec<Slice>], terms: &Terms) -> usize {
    let throughput = |slices: &Vec<Slice>| -> f64 {
        slices.iter().map(|slice| slice.progress(terms.whole)).sum()
    };
    let mut best = (0, throughput(&seen[0]));
    for (place, slices) in seen.iter().enumerate().skip(1) {
        let found = throughput(slices);
        if found > best.1 * (1.0 + ROUNDING) {
            best = (place, found);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::{Resources, Slice, Stop, Terms, redistribute, step};

    const TERMS: Terms = Terms {
        step: Resources { sms: 4, groups: 1 },
        least: Resources { sms: 4, groups: 1 },
        sms_per_group: 4,
        whole: Resources { sms: 80, groups: 8 },
        iterations: 20,
    };

    /// An application with this demand per SM and a supply of 112 per group of channels.
    fn slice(demand: f64, sms: u32, groups: u32) -> Slice {
        let has = Resources { sms, groups };
        Slice { demand, supply: 112.0, has, needs: 0, keeps: 0.0 }
    }

    fn parts(slices: &[Slice], terms: &Terms) -> (Vec<(u32, u32)>, u32, Stop) {
        let found = redistribute(slices, terms);
        let parts = found.parts.iter().map(|part| (part.sms, part.groups)).collect();
        (parts, found.iterations, found.stop)
    }

    #[test]
    fn sms_go_to_compute_bound_and_channels_to_memory_bound_applications() {
        // 40 SMs ask for 800 of 448, 36 for 720 of 560, 32 for 640 of 672.
        let pair = [slice(20.0, 40, 4), slice(0.5, 40, 4)];
        assert_eq!(parts(&pair, &TERMS), (vec![(32, 6), (48, 2)], 3, Stop::Balanced));
    }

    #[test]
    fn sms_and_channels_are_exchanged_until_none_is_left_to_give() {
        // 28 SMs ask for 1400 of 784, and the other keeps its last group: 28 SMs for as many
        // channels.
        let pair = [slice(50.0, 40, 4), slice(0.5, 40, 4)];
        assert_eq!(parts(&pair, &TERMS), (vec![(28, 7), (52, 1)], 4, Stop::Bound));
        // Channels move where SMs are at their bound.
        let few = Terms { least: Resources { sms: 36, groups: 1 }, ..TERMS };
        assert_eq!(parts(&pair, &few), (vec![(36, 7), (44, 1)], 4, Stop::Bound));
        // SMs go on moving where nothing is kept for channels: 16 ask for 800, 12 for 600.
        let alone = Terms { sms_per_group: 0, ..TERMS };
        assert_eq!(parts(&pair, &alone), (vec![(12, 7), (68, 1)], 8, Stop::Balanced));
    }

    #[test]
    fn with_one_group_each_sms_move_down_to_one_per_channel() {
        let eight = |demand: f64| slice(demand, 10, 1);
        let all = [eight(50.0), eight(0.5)];
        assert_eq!(parts(&all, &TERMS).0, [(4, 1), (16, 1)]);
    }

    #[test]
    fn an_application_with_nothing_to_give_is_passed_over() {
        let none = slice(0.0, 20, 1);
        let three = [none, slice(1.0, 20, 5), slice(50.0, 40, 2)];
        let next = step(&three, &TERMS).unwrap();
        let has: Vec<(u32, u32)> = next.iter().map(|one| (one.has.sms, one.has.groups)).collect();
        assert_eq!(has, [(24, 1), (20, 4), (36, 3)], "SMs to the first, a group of the second");
    }

    #[test]
    fn alike_applications_move_nothing_and_neither_does_one_alone() {
        for demand in [0.0, 0.5, 50.0] {
            let pair = [slice(demand, 40, 4), slice(demand, 40, 4)];
            assert_eq!(parts(&pair, &TERMS), (vec![(40, 4), (40, 4)], 1, Stop::Balanced));
        }
        let alone = [slice(50.0, 80, 8)];
        assert_eq!(parts(&alone, &TERMS), (vec![(80, 8)], 1, Stop::Balanced));
    }

    #[test]
    fn a_step_that_goes_too_far_and_back_ends_at_the_better_of_the_two() {
        // 40 x 12 > 448 and 40 x 10 <= 448; one step on, 36 x 12 <= 560 and 44 x 10 > 336.
        let pair = [slice(12.0, 40, 4), slice(10.0, 40, 4)];
        let found = parts(&pair, &TERMS);
        // 448 of 896 and 400 of 800 bytes, against 432 of 896 and 336 of 800.
        assert_eq!(found, (vec![(40, 4), (40, 4)], 2, Stop::Repeats));
        let beyond = [slice(12.0, 36, 5), slice(10.0, 44, 3)];
        assert_eq!(parts(&beyond, &TERMS).0, found.0, "wherever it begins");
    }

    #[test]
    fn at_most_so_many_iterations_are_made() {
        let fine = Terms { step: Resources { sms: 1, groups: 1 }, iterations: 10, ..TERMS };
        let pair = [slice(50.0, 40, 4), slice(0.5, 40, 4)];
        assert_eq!(parts(&pair, &fine), (vec![(30, 7), (50, 1)], 10, Stop::Iterations));
    }

    #[test]
    fn an_application_that_needs_memory_keeps_and_gets_channels() {
        // Both compute; the first has memory for half of its working set.
        let large = Slice { needs: 6, ..slice(0.5, 40, 3) };
        let pair = [large, slice(0.5, 40, 5)];
        assert_eq!(parts(&pair, &TERMS).0, [(28, 6), (52, 2)]);
        // An application that needs all its channels gives none.
        let full = Slice { needs: 4, ..slice(0.5, 40, 4) };
        let (found, _, _) = parts(&[full, slice(20.0, 40, 4)], &TERMS);
        assert_eq!(found, [(60, 4), (20, 4)], "only SMs move");
    }

    #[test]
    fn an_application_keeps_its_target() {
        // 60 of 80 SMs are 0.75; 2 groups keep 77 busy, 1 group 38.
        let high = Slice { keeps: 0.75, ..slice(2.9, 60, 6) };
        let (found, _, stop) = parts(&[high, slice(200.0, 20, 2)], &TERMS);
        assert_eq!((found, stop), (vec![(76, 2), (4, 6)], Stop::Bound));
        // 8 groups keep 44.8 SMs busy, of which 0.85 are 38.08.
        let high = Slice { keeps: 0.85, ..slice(20.0, 60, 6) };
        assert_eq!(parts(&[high, slice(0.0, 20, 2)], &TERMS).0, [(39, 7), (41, 1)]);
    }
}
