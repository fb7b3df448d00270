//! How the warps of a scheduler share its issue slots and units while several
//! have something to issue: a fluid model, settled whenever the set changes.
//!
//! Every burst would like to run at rate 1, the pace it has alone. Its density
//! on a resource is what it takes of it per cycle at that pace. Where the sum
//! of densities exceeds a capacity, the policy decides who slows down:
//! round robin gives every warp the same *instruction* rate up to its own pace
//! (max-min fair), age-ordered policies serve one warp after the other: the
//! oldest first, under greedy-then-oldest behind the one that goes on. Two-level
//! scheduling is round robin among the warps of the active set.

use crate::spec::SchedulerPolicy;

use super::super::profile::ASKED;

/// The issue slot's place among the resources: behind the execution units and the
/// operand banks.
pub(super) const ISSUE: usize = ASKED;

/// Places for resources, rounded up to whole vector registers; what is beyond
/// [`ISSUE`] nobody asks for.
pub(super) const RESOURCES: usize = (ISSUE + 1).next_multiple_of(4);

/// One number per resource.
pub(super) type PerResource = [f32; RESOURCES];

/// One contender: densities at its own pace, age, and the rate it is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// What it takes of each resource per cycle at rate 1.
    pub(super) density: PerResource,
    /// Cycles per instruction alone.
    every: f32,
    /// Order of arrival of its warp; lower is older.
    pub(super) age: u64,
    /// Goes before older ones.
    pub(super) first: bool,
    /// Given rate, 0 to 1.
    pub(super) rate: f32,
}

impl Claim {
    /// The claim of a warp that came as number `age`, not yet given a rate.
    pub(super) fn new(density: PerResource, age: u64) -> Self {
        Self { density, every: 1.0 / density[ISSUE], age, first: false, rate: 0.0 }
    }

    /// The same claim of a warp that has come anew, as number `age`.
    pub(super) fn aged(self, age: u64) -> Self {
        Self { age, first: false, ..self }
    }

    /// Instructions per cycle alone.
    pub(super) fn pace(&self) -> f32 {
        self.density[ISSUE]
    }
}

/// The places of a scheduler's claims, the slowest one first; equal ones as they came.
#[derive(Debug, Default)]
pub(super) struct ByPace(Vec<usize>);

impl ByPace {
    /// The last of `claims` is new.
    pub(super) fn enter(&mut self, claims: &[Claim]) {
        let place = claims.len() - 1;
        let pace = claims[place].pace();
        let behind = self.0.iter().position(|&other| claims[other].pace() > pace);
        self.0.insert(behind.unwrap_or(self.0.len()), place);
    }

    /// The claim at `place` is taken out, those behind it move up.
    pub(super) fn leave(&mut self, place: usize) {
        self.0.retain(|&other| other != place);
        for other in &mut self.0 {
            *other -= usize::from(*other > place);
        }
    }
}

/// Tolerance of the capacity comparison: far above rounding, far below one slot
/// in a thousand cycles.
const SLACK: f32 = 1e-4;

/// Sets the rate of every claim; `order` is room to work in.
pub(super) fn share(
    claims: &mut [Claim],
    by_pace: &ByPace,
    capacity: &PerResource,
    policy: SchedulerPolicy,
    order: &mut Vec<usize>,
) {
    let (mut total, mut slope) = ([0.0; RESOURCES], [0.0; RESOURCES]);
    for claim in claims.iter_mut() {
        claim.rate = 1.0;
        grow(&mut total, &claim.density, 1.0);
        grow(&mut slope, &claim.density, claim.every);
    }
    if total.iter().zip(capacity).all(|(sum, limit)| *sum <= limit + SLACK) {
        return;
    }
    order.clone_from(&by_pace.0);
    match policy {
        SchedulerPolicy::Lrr | SchedulerPolicy::TwoLevel => {
            max_min(claims, capacity, slope, order);
        }
        SchedulerPolicy::Gto | SchedulerPolicy::Oldest => one_by_one(claims, capacity, order),
    }
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

/// Each claim takes what those before it leave.
fn one_by_one(claims: &mut [Claim], capacity: &PerResource, order: &mut [usize]) {
    order.sort_unstable_by_key(|&i| (!claims[i].first, claims[i].age));
    let mut left = *capacity;
    for &index in &*order {
        let claim = &mut claims[index];
        for (rest, density) in left.iter().zip(&claim.density) {
            if *density > 0.0 {
                claim.rate = claim.rate.min(rest.max(0.0) / density);
            }
        }
        for (rest, density) in left.iter_mut().zip(&claim.density) {
            *rest -= density * claim.rate;
        }
    }
}

/// Slows claims down where the demand on a resource comes near its capacity:
/// instructions do not come evenly, so that a unit is at times idle and at times
/// asked by several. `loss` is what is lost of the throughput where demand just
/// equals capacity; the throughput follows a curve between demand (far below) and
/// capacity (far above). Who is alone on a resource loses nothing there.
pub(super) fn ease(claims: &mut [Claim], capacity: &PerResource, loss: f32) {
    if loss <= 0.0 || claims.len() < 2 {
        return;
    }
    let total = demand(claims.iter());
    let mut users = [0.0_f32; RESOURCES];
    for claim in claims.iter() {
        for (count, density) in users.iter_mut().zip(&claim.density) {
            *count += f32::from(u8::from(*density > 0.0));
        }
    }
    let mut factors = [1.0_f32; RESOURCES];
    for (resource, factor) in factors.iter_mut().enumerate() {
        if users[resource] > 1.0 {
            let demand = total[resource] / capacity[resource];
            let bend = loss * loss * (1.0 - 1.0 / users[resource]) * demand * demand.min(1.0);
            let apart = (1.0 - demand) / 2.0;
            let taken = f32::midpoint(1.0, demand) - (apart * apart + bend).sqrt();
            *factor = (taken / demand.min(1.0)).min(1.0);
        }
    }
    for claim in claims {
        let uses = claim.density.iter().zip(&factors).filter(|(density, _)| **density > 0.0);
        claim.rate *= uses.map(|(_, factor)| *factor).fold(1.0, f32::min);
    }
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

/// The resource that fills up first before the instruction rate of those who take
/// `slope` of what is `left` reaches `pace`, and the rate there.
fn filled(slope: &PerResource, left: &PerResource, pace: f32) -> Option<(usize, f32)> {
    let mut excess = [0.0_f32; RESOURCES];
    for (excess, (slope, left)) in excess.iter_mut().zip(slope.iter().zip(left)) {
        *excess = slope * pace - left;
    }
    if !excess.iter().fold(false, |any, excess| any | (*excess > SLACK)) {
        return None;
    }
    // Rounding may leave a resource overfull that nobody open uses.
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
    use super::{ByPace, Claim, ISSUE, PerResource, RESOURCES, ease, share};
    use crate::spec::SchedulerPolicy;

    fn claim(age: u64, issue: f32, unit: f32) -> Claim {
        let mut density: PerResource = [0.0; RESOURCES];
        density[ISSUE] = issue;
        density[0] = unit;
        Claim::new(density, age)
    }

    fn share_out(claims: &mut [Claim], policy: SchedulerPolicy) {
        let mut by_pace = ByPace::default();
        for known in 1..=claims.len() {
            by_pace.enter(&claims[..known]);
        }
        share(claims, &by_pace, &[1.0; RESOURCES], policy, &mut Vec::new());
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
    fn nobody_slows_down_while_there_is_room() {
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
    fn what_is_lost_at_the_knee_fades_on_both_sides() {
        let throughput = |each: f32| {
            let mut claims = vec![claim(0, each, 0.0); 64];
            share_out(&mut claims, SchedulerPolicy::Lrr);
            ease(&mut claims, &[1.0; RESOURCES], 0.1);
            claims.iter().map(|c| c.rate * each).sum::<f32>()
        };
        assert!((throughput(1.0 / 64.0) - 0.9).abs() < 2e-3, "{}", throughput(1.0 / 64.0));
        assert!(throughput(0.4 / 64.0) > 0.39 && throughput(0.2 / 64.0) > 0.199);
        assert!(throughput(4.0 / 64.0) > 0.98);
        let mut lone = [Claim { rate: 1.0, ..claim(0, 1.0, 1.0) }];
        ease(&mut lone, &[1.0; RESOURCES], 0.1);
        close(&[lone[0].rate], &[1.0]);
        let mut apart =
            [claim(0, 0.01, 1.0), claim(1, 0.01, 0.0)].map(|c| Claim { rate: 1.0, ..c });
        ease(&mut apart, &[1.0; RESOURCES], 0.1);
        close(&[apart[0].rate, apart[1].rate], &[1.0, 1.0]);
    }

    #[test]
    fn the_oldest_goes_first_behind_the_greedy_one() {
        let mut claims = [claim(2, 1.0, 0.0), claim(0, 0.7, 0.0), claim(1, 0.2, 0.0)];
        close(&rates(&claims, SchedulerPolicy::Oldest), &[0.1, 1.0, 1.0]);
        claims[2].first = true;
        claims[2].density[ISSUE] = 0.5;
        close(&rates(&claims, SchedulerPolicy::Gto), &[0.0, 0.714, 1.0]);
    }
}
