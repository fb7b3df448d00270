//! How warps whose instructions come unevenly wait for each other.
//!
//! The fluid shares of [`issue_bandwidth`](super::issue_bandwidth) let warps fit together
//! without loss up to the capacity of a resource. Real instructions come at times together and
//! at times not at all, and a warp that finds the issue slot or a unit taken waits. The warps of a
//! scheduler are the customers of a closed queueing network: each thinks (it waits for its own
//! results), is served, and thinks again. With N customers whose demand would take a share d of
//! a server, mean value analysis (Schweitzer's approximation, exponential service) gives the
//! share u that they take by `(d - u)(1 - au) = v a d u^2 / N` with `a = 1 - 1/N` and v = 1.
//! Here v is half the [unevenness](crate::interval::Step::unevenness) of the warps: half because
//! service takes constant time, and nothing where all come evenly, since such warps fall into
//! step. A saturated resource stays saturated the more warps there are, and waits elsewhere are
//! then hidden by its queue, in proportion to its demand.
//!
//! Assumed: that v. Over random programs of four units and 2 to 16 warps the result is 3 % off a
//! scheduler that is stepped cycle by cycle, in the mean (the test below).

use super::issue_bandwidth::{Claim, ISSUE, PerResource, RESOURCES};
use crate::interval::OPERANDS;

/// A share of a capacity above which it counts as full: far above rounding.
const FULL: f32 = 0.999;

/// What is waited for at one resource.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// What the claims ask of it at their own pace over what there is, where it is full; else 0.
    excess: f32,
    /// Cycles of waiting over those of a claim's progress.
    wait: f32,
}

/// Slows down claims that have their rates by what they wait for each other.
pub(super) fn contend(claims: &mut [Claim], capacity: &PerResource) {
    if claims.len() < 2 {
        return;
    }
    // One instruction at a time comes to a unit: it waits only behind one that takes longer. Of
    // the operand banks that is a part of all.
    let lasting = claims.iter().fold(1 << ISSUE, |all, claim| all | claim.lasting);
    let mut loads = [Load::default(); RESOURCES];
    let mut most = 1.0_f32;
    for (resource, load) in loads.iter_mut().enumerate() {
        let limit = capacity[resource];
        if limit < 1.0 || lasting >> resource & 1 == 1 {
            *load = waited(claims, resource, limit);
            most = most.max(load.excess);
        }
    }
    for claim in claims {
        let mut waits = 0.0;
        for (density, load) in claim.density.iter().zip(&loads) {
            if *density > 0.0 {
                waits += if load.excess > 0.0 { load.wait } else { load.wait / most };
            }
        }
        claim.rate /= 1.0 + waits;
    }
}

/// The load of a resource of which there is `limit` per cycle.
fn waited(claims: &[Claim], resource: usize, limit: f32) -> Load {
    let (mut asked, mut squares, mut used) = (0.0_f32, 0.0_f32, 0.0_f32);
    let (mut uneven, mut conflicting) = (0.0_f32, 0.0_f32);
    for claim in claims {
        let density = claim.density[resource];
        asked += density;
        squares += density * density;
        used += density * claim.rate;
        uneven += density * claim.unevenness;
        conflicting += density * claim.conflicting;
    }
    if squares <= 0.0 {
        return Load::default();
    }
    // Claims of different densities count as so many equal ones.
    let users = asked * asked / squares;
    let conflicting = if resource == OPERANDS { conflicting / asked } else { 1.0 };
    let variability = 0.5 * conflicting * uneven / asked;
    let (asked, used) = (asked / limit, used / limit);
    let full = used > FULL;
    let demand = if full { asked } else { used };
    let wait = demand.min(1.0) / taken(demand, users, variability) - 1.0;
    Load { excess: if full { asked } else { 0.0 }, wait: wait.max(0.0) }
}

/// The share u of a server that `users` customers take who ask for `demand`, above 0.
fn taken(demand: f32, users: f32, variability: f32) -> f32 {
    let others = 1.0 - 1.0 / users;
    let lost = (variability * demand / users).min(1.0);
    let sum = 1.0 + others * demand;
    let root = (sum * sum - 4.0 * others * demand * (1.0 - lost)).max(0.0).sqrt();
    2.0 * demand / (sum + root)
}

#[cfg(test)]
mod tests {
    use super::super::issue_bandwidth::{Claim, ISSUE, PerResource, RESOURCES, max_min_fair};
    use super::super::issue_interval::IssueOrder;
    use super::{contend, taken};
    use crate::interval::walk::Unevenness;

    fn near(found: f32, expected: f32) {
        assert!((found - expected).abs() < 1e-3, "{found} is not {expected}");
    }

    #[test]
    fn customers_with_constant_times_take_all_there_is() {
        near(taken(0.7, 8.0, 0.0), 0.7);
        assert!(taken(3.0, 8.0, 0.0) >= 1.0);
    }

    #[test]
    fn a_server_without_pause_between_customers_is_never_idle() {
        for users in [2.0, 4.0, 16.0] {
            assert!(taken(users, users, 1.0) > 0.999);
        }
    }

    #[test]
    fn exponential_customers_lose_what_mean_value_analysis_says() {
        // Eight customers that think for seven times their service: R = 1 / (1 - 7/8 u) and
        // u = 8 / (7 + R) give u = 0.784.
        near(taken(1.0, 8.0, 1.0), 0.784);
    }

    const LENGTH: usize = 64;
    const SERVICE: [u32; 4] = [2, 2, 8, 1];

    /// A loop: the unit of each instruction, and the cycles from the issue before it at least.
    struct Program([(usize, u32); LENGTH]);

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % end
        }
    }

    impl Program {
        /// Units in random shares, and one of several kinds of gaps.
        fn random(random: &mut Random) -> Self {
            let shares = [10, 10, 1, 10].map(|most| 1 + random.below(most));
            let (kind, gap) = (random.below(4), 2 + random.below(6));
            Self([(); LENGTH].map(|()| {
                let mut draw = random.below(shares.iter().sum());
                let mut unit = 0;
                while draw >= shares[unit] {
                    draw -= shares[unit];
                    unit += 1;
                }
                let gap = match kind {
                    0 => gap,
                    1 => 1 + random.below(2) * 3,
                    2 => 1 + random.below(gap),
                    _ => 2 + random.below(5) / 4 * 12,
                };
                (unit, u32::try_from(gap).unwrap())
            }))
        }

        /// Instructions per cycle of `warps` warps, stepped cycle by cycle, round robin.
        fn stepped(&self, warps: usize, random: &mut Random) -> f32 {
            const CYCLES: u32 = 20_000;
            let length = LENGTH as u64;
            let mut places: Vec<usize> =
                (0..warps).map(|_| usize::try_from(random.below(length)).unwrap()).collect();
            let (mut ready, mut free) = (vec![0; warps], [0; 4]);
            let (mut last, mut issued) = (0, 0_u16);
            for now in 0..CYCLES {
                let turns = (1..=warps).map(|turn| (last + turn) % warps);
                let can =
                    |warp: &usize| ready[*warp] <= now && free[self.0[places[*warp]].0] <= now;
                let Some(warp) = turns.into_iter().find(can) else { continue };
                let unit = self.0[places[warp]].0;
                free[unit] = now + SERVICE[unit];
                places[warp] = (places[warp] + 1) % LENGTH;
                ready[warp] = now + self.0[places[warp]].1;
                (last, issued) = (warp, issued + 1);
            }
            f32::from(issued) / 20_000.0
        }

        /// What one warp asks for alone.
        fn claim(&self, age: u64) -> Claim {
            let (mut uneven, mut free, mut at) = (Unevenness::default(), [0; 4], 0);
            let mut density: PerResource = [0.0; RESOURCES];
            for &(unit, gap) in &self.0 {
                at = free[unit].max(at + gap);
                free[unit] = at + SERVICE[unit];
                uneven.note(unit, at, SERVICE[unit]);
                density[unit] += f32::from(u8::try_from(SERVICE[unit]).unwrap());
                density[ISSUE] += 1.0;
            }
            let cycles = f32::from(u16::try_from(at).unwrap());
            Claim::new(density.map(|asked| asked / cycles), age).uneven(uneven.mean(at), 0b111)
        }

        /// What the model says in place of [`Program::stepped`].
        fn modelled(&self, warps: usize) -> f32 {
            let mut claims: Vec<Claim> = (0..warps as u64).map(|age| self.claim(age)).collect();
            let mut turns = IssueOrder::default();
            for (place, claim) in claims.iter().enumerate() {
                turns.enter(claim, place, 0);
            }
            max_min_fair(&mut claims, &turns, &[1.0; RESOURCES], &mut Vec::new());
            contend(&mut claims, &[1.0; RESOURCES]);
            claims.iter().map(|claim| claim.rate * claim.pace()).sum()
        }
    }

    #[test]
    fn random_programs_take_what_a_scheduler_gives_them_cycle_by_cycle() {
        let mut random = Random(88_172_645_463_325_252);
        let mut errors = Vec::new();
        for _ in 0..60 {
            let program = Program::random(&mut random);
            for warps in [2, 4, 8, 16] {
                errors.push(program.modelled(warps) / program.stepped(warps, &mut random) - 1.0);
            }
        }
        let mean = |of: fn(f32) -> f32| errors.iter().map(|e| of(*e)).sum::<f32>() / 240.0;
        let (bias, absolute) = (mean(|error| error), mean(f32::abs));
        assert!(bias.abs() < 0.02 && absolute < 0.04, "bias {bias}, mean error {absolute}");
    }
}
