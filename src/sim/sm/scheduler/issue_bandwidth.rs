//! How the warps of a scheduler share its issue slots and units while several
//! have something to issue: a fluid model, settled whenever the set changes.
//!
//! Every interval would like to run at rate 1, the pace it has alone. Its density
//! on a resource is what it takes of it per cycle at that pace. Where the sum
//! of densities exceeds a capacity, the policy decides who slows down:
//! round robin gives every warp the same *instruction* rate up to its own pace
//! (max-min fair), age-ordered policies serve one warp after the other: the
//! oldest first, under greedy-then-oldest behind the one that continues. Two-level
//! scheduling is round robin among the warps of the active set.

use crate::interval::RESOURCES as DEMANDS;
use crate::sm::scheduler::issue_interval::{IssueOrder, Turn};

/// The issue slot's place among the resources: behind the execution units and the
/// operand banks.
pub(in crate::sm) const ISSUE: usize = DEMANDS;

/// Places for resources, rounded up to whole vector registers; what is beyond
/// [`ISSUE`] is never asked for.
pub(in crate::sm) const RESOURCES: usize = (ISSUE + 1).next_multiple_of(LANES);

/// Numbers of a vector register.
const LANES: usize = 4;

/// One number per resource.
pub(in crate::sm) type PerResource = [f32; RESOURCES];

/// One contender: densities at its own pace, age, and the rate it is given.
#[derive(Clone, Copy, Debug)]
pub(in crate::sm) struct Claim {
    /// What it takes of each resource per cycle at rate 1.
    pub(in crate::sm) density: PerResource,
    /// The resources that it takes any of, one bit each.
    asks: u32,
    /// Cycles per instruction alone.
    every: f32,
    /// Order of arrival of its warp; lower is older.
    pub(in crate::sm) age: u64,
    /// Given rate, 0 to 1.
    pub(in crate::sm) rate: f32,
    /// How unevenly its instructions come, 0 to 1.
    pub(in crate::sm) unevenness: f32,
    /// Resources that one of its instructions occupies for several cycles, one bit each.
    pub(in crate::sm) lasting: u16,
    /// Part of its use of the operand banks by instructions that occupy them for several cycles.
    pub(in crate::sm) conflicting: f32,
}

impl Claim {
    /// The claim of a warp that came as number `age`, not yet given a rate.
    pub(in crate::sm) fn new(density: PerResource, age: u64) -> Self {
        let bit = |(place, density): (usize, &f32)| u32::from(*density > 0.0) << place;
        let asks = density.iter().enumerate().map(bit).fold(0, |all, bit| all | bit);
        let (every, rate, unevenness) = (1.0 / density[ISSUE], 0.0, 0.0);
        Self { density, asks, every, age, rate, unevenness, lasting: 0, conflicting: 1.0 }
    }

    /// The same of an interval whose instructions come unevenly.
    pub(in crate::sm) fn uneven(self, unevenness: f32, lasting: u16) -> Self {
        Self { unevenness, lasting, ..self }
    }

    /// The same with that part of its use of the operand banks by instructions in conflict.
    pub(in crate::sm) fn conflicting(self, conflicting: f32) -> Self {
        Self { conflicting, ..self }
    }

    /// The same claim of a warp that has come back, as number `age`.
    pub(in crate::sm) fn aged(self, age: u64) -> Self {
        Self { age, ..self }
    }

    /// The resources that it asks for, one bit each.
    pub(in crate::sm) fn asks(&self) -> u32 {
        self.asks
    }

    /// Instructions per cycle alone.
    pub(in crate::sm) fn pace(&self) -> f32 {
        self.density[ISSUE]
    }
}

/// Tolerance of the capacity comparison: far above rounding, far below one slot
/// in a thousand cycles.
const SLACK: f32 = 1e-4;

/// A rest of a resource too small to be used.
const NOTHING: f32 = 1e-6;

/// Whether the capacity covers what all ask for (in 2^-32).
pub(in crate::sm) fn fits(asked: &[i64; RESOURCES], capacity: &PerResource) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "densities are small ratios")]
    let share = |asked: i64| asked as f64 / 4_294_967_296.0;
    asked.iter().zip(capacity).all(|(&asked, &limit)| share(asked) <= f64::from(limit + SLACK))
}

/// Sets the rate of every claim, max-min fair in instructions; `order` is room to work
/// in.
pub(in crate::sm) fn max_min_fair(
    claims: &mut [Claim],
    turns: &IssueOrder,
    capacity: &PerResource,
    order: &mut Vec<usize>,
) {
    claims.iter_mut().for_each(|claim| claim.rate = 1.0);
    let total = demand(claims.iter());
    // All are compared, as vector registers do it.
    if total.iter().zip(capacity).fold(true, |fits, (sum, limit)| fits & (*sum <= limit + SLACK)) {
        return;
    }
    let mut slope = [0.0; RESOURCES];
    for claim in claims.iter() {
        grow(&mut slope, &claim.density, claim.every);
    }
    order.clear();
    order.extend(turns.places());
    max_min(claims, capacity, slope, order);
}

/// What claims ask of each resource at their own pace, claim by claim: one pass
/// over them for all resources.
fn demand<'a>(claims: impl Iterator<Item = &'a Claim>) -> PerResource {
    let mut total = [0.0_f32; RESOURCES];
    for claim in claims {
        for (sum, density) in total.iter_mut().zip(&claim.density) {
            *sum += density;
        }
    }
    total
}

/// Each claim takes what those before it leave: the places of those that are given
/// something are appended to `moving`, the rates of the others stay as they are. Gives how many
/// turns came before no issue slot was left, if none is.
pub(in crate::sm) fn one_by_one(
    claims: &mut [Claim],
    turns: impl Iterator<Item = Turn>,
    capacity: &PerResource,
    moving: &mut Vec<usize>,
) -> Option<usize> {
    let mut left = *capacity;
    let mut gone = below(&left);
    let mut served = 0;
    for turn in turns {
        if gone >> ISSUE & 1 == 1 {
            return Some(served);
        }
        served += 1;
        if turn.asks & gone != 0 {
            continue;
        }
        let claim = &mut claims[turn.place];
        claim.rate = most(&left, &claim.density);
        grow(&mut left, &claim.density, -claim.rate);
        gone = below(&left);
        moving.push(turn.place);
    }
    (gone >> ISSUE & 1 == 1).then_some(served)
}

/// Resources of which nothing is left, one bit each.
fn below(left: &PerResource) -> u32 {
    let bit = |(place, left): (usize, &f32)| u32::from(*left <= NOTHING) << place;
    left.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
}

/// The highest rate, at most 1, at which a claim of `density` takes no more of any
/// resource than is `left`. Written by fours, as vector registers are.
fn most(left: &PerResource, density: &PerResource) -> f32 {
    // Most have all that they ask for, which takes no division.
    if left.iter().zip(density).fold(true, |fits, (left, asked)| fits & (asked <= left)) {
        return 1.0;
    }
    let mut least = [1.0_f32; LANES];
    for (left, density) in left.chunks_exact(LANES).zip(density.chunks_exact(LANES)) {
        for (least, (rest, asked)) in least.iter_mut().zip(left.iter().zip(density)) {
            // Not a number, and so never less, where nothing is asked of nothing left.
            let there = if *rest > 0.0 { *rest } else { 0.0 };
            let share = there / asked;
            *least = if share < *least { share } else { *least };
        }
    }
    least.into_iter().fold(1.0, f32::min)
}

/// Raises one instruction rate for all, from pace to pace of the `open` claims
/// (slowest first), each of which stays at its own; where a resource fills up in
/// between, fixes its users there and goes on with the others. `slope` is what all
/// of them take per instruction.
fn max_min(
    claims: &mut [Claim],
    capacity: &PerResource,
    mut slope: PerResource,
    open: &mut Vec<usize>,
) {
    let mut left = *capacity;
    let (mut level, mut next) = (0.0_f32, 0);
    while let Some(&place) = open.get(next) {
        let claim = &claims[place];
        if let Some((resource, full)) = filled(&slope, &left, claim.pace()) {
            level = level.max(full);
            slope = close(claims, open, next, resource, level, &mut left);
        } else {
            grow(&mut left, &claim.density, -1.0);
            grow(&mut slope, &claim.density, -claim.every);
            level = claim.pace();
            next += 1;
        }
    }
}

/// Adds `times` the second to the first.
fn grow(sum: &mut PerResource, more: &PerResource, times: f32) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more * times;
    }
}

/// The resource that fills up first before the instruction rate of those that take
/// `slope` of what is `left` reaches `pace`, and the rate there.
fn filled(slope: &PerResource, left: &PerResource, pace: f32) -> Option<(usize, f32)> {
    let mut excess = [0.0_f32; RESOURCES];
    for (excess, (slope, left)) in excess.iter_mut().zip(slope.iter().zip(left)) {
        *excess = slope * pace - left;
    }
    if !excess.iter().fold(false, |any, excess| any | (*excess > SLACK)) {
        return None;
    }
    // Rounding may leave a resource overfull that no open claim uses.
    let over = (0..RESOURCES).filter(|&r| excess[r] > SLACK && slope[r] > 0.0);
    over.map(|resource| (resource, left[resource] / slope[resource]))
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Fixes the users of `resource` among the open claims from place `next` on at
/// instruction rate `level`; gives what the others take per instruction.
fn close(
    claims: &mut [Claim],
    open: &mut Vec<usize>,
    next: usize,
    resource: usize,
    level: f32,
    left: &mut PerResource,
) -> PerResource {
    let mut slope = [0.0; RESOURCES];
    let mut kept = next;
    for index in next..open.len() {
        let claim = &mut claims[open[index]];
        if claim.density[resource] > 0.0 {
            claim.rate = (level * claim.every).min(1.0);
            grow(left, &claim.density, -level * claim.every);
        } else {
            grow(&mut slope, &claim.density, claim.every);
            open[kept] = open[index];
            kept += 1;
        }
    }
    open.truncate(kept);
    slope
}

#[cfg(test)]
mod tests {
    use super::{Claim, ISSUE, IssueOrder, PerResource, RESOURCES, max_min_fair, one_by_one};
    use crate::config::SchedulerPolicy;
    use crate::sm::scheduler::policy::{L1Feedback, ReadyWarp, Sharing, named};

    fn claim(age: u64, issue: f32, unit: f32) -> Claim {
        let mut density: PerResource = [0.0; RESOURCES];
        density[ISSUE] = issue;
        density[0] = unit;
        Claim::new(density, age)
    }

    fn share_out(claims: &mut [Claim], policy: SchedulerPolicy) {
        share_behind(claims, policy, None);
    }

    fn share_behind(claims: &mut [Claim], policy: SchedulerPolicy, first: Option<usize>) {
        let mut turns = IssueOrder::default();
        let scheduler = named(policy, 0);
        for (place, claim) in claims.iter().enumerate() {
            let (age, pace, l1) = (claim.age, claim.pace(), L1Feedback::default());
            turns.enter(claim, place, scheduler.key(&ReadyWarp { warp: 0, age, pace, l1 }));
        }
        match scheduler.sharing() {
            Sharing::Fair => {
                max_min_fair(claims, &turns, &[1.0; RESOURCES], &mut Vec::new());
            }
            Sharing::InOrder => {
                one_by_one(claims, turns.behind(first), &[1.0; RESOURCES], &mut Vec::new());
            }
        }
    }

    fn rates(claims: &[Claim], policy: SchedulerPolicy) -> Vec<f32> {
        let mut claims = claims.to_vec();
        share_out(&mut claims, policy);
        claims.iter().map(|c| c.rate).collect()
    }

    fn close(found: &[f32], expected: &[f32]) {
        let near = found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-3);
        assert!(near && found.len() == expected.len(), "{found:?} is not {expected:?}");
    }

    #[test]
    fn claims_keep_their_pace_while_capacity_lasts() {
        let claims = [claim(0, 0.25, 0.5), claim(1, 0.5, 0.5)];
        close(&rates(&claims, SchedulerPolicy::Lrr), &[1.0, 1.0]);
    }

    #[test]
    fn round_robin_is_max_min_fair_in_instructions() {
        // A dense warp and three sparse ones: 0.2 each is left alone, the dense gets the rest.
        let claims =
            [claim(0, 1.0, 0.0), claim(1, 0.2, 0.0), claim(2, 0.2, 0.0), claim(3, 0.2, 0.0)];
        close(&rates(&claims, SchedulerPolicy::Lrr), &[0.4, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn a_full_unit_slows_its_users_only() {
        let claims = [claim(0, 0.25, 1.0), claim(1, 0.25, 1.0), claim(2, 0.25, 0.0)];
        close(&rates(&claims, SchedulerPolicy::Lrr), &[0.5, 0.5, 1.0]);
    }

    #[test]
    fn a_resource_overfull_by_rounding_ends_the_search() {
        let of = |age: u64, unit: usize, asked: f32, slots: f32, cycles: f32| {
            let mut density: PerResource = [0.0; RESOURCES];
            density[ISSUE] = slots / cycles;
            density[unit] = asked / cycles;
            Claim::new(density, age)
        };
        let claims = [
            of(0, 0, 526.0, 33.0, 1066.0),
            of(1, 0, 874.0, 55.0, 1725.0),
            of(2, 1, 100.0, 50.0, 100.0),
            of(3, 1, 80.0, 40.0, 100.0),
        ];
        close(&rates(&claims, SchedulerPolicy::Lrr), &[1.0, 1.0, 0.5, 0.625]);
    }

    #[test]
    fn many_warps_share_what_there_is() {
        let claims: Vec<Claim> = (0..200).map(|age| claim(age, 0.5, 0.0)).collect();
        close(&rates(&claims, SchedulerPolicy::Lrr), &[0.01; 200]);
    }

    #[test]
    fn the_oldest_goes_first_behind_the_greedy_one() {
        let mut claims = [claim(2, 1.0, 0.0), claim(0, 0.7, 0.0), claim(1, 0.2, 0.0)];
        close(&rates(&claims, SchedulerPolicy::Oldest), &[0.1, 1.0, 1.0]);
        claims[2].density[ISSUE] = 0.5;
        share_behind(&mut claims, SchedulerPolicy::Gto, Some(2));
        close(&claims.map(|claim| claim.rate), &[0.0, 0.714, 1.0]);
    }
}
