//! The demand-aware algorithm for the applications of a run (UGPU, section 3).

use gpumodel_core::contract::{AppView, Facts};
use gpumodel_core::units::{AppId, to_u32, to_u64};

use super::super::solve::{Resources, Slice, Stop, Terms, redistribute};
use super::super::{Parameter, Settings};
use super::demand::{BMem, Demand, PORT_LIMIT};
use super::partition::Partition;

pub(super) const DELTA_SM: Parameter = Parameter::whole("delta_sm", 4, 1..=1024)
    .does("SMs that move in an iteration (assumed: one delta is printed for SMs and channels)");

pub(super) const DELTA_GROUPS: Parameter = Parameter::whole("delta_groups", 1, 1..=1024)
    .does("groups of channels that move in an iteration (assumed: one channel of each stack)");

pub(super) const MIN_SMS: Parameter =
    Parameter::whole("min_sms", 4, 1..=1024).does("SMs that an application keeps (assumed)");

pub(super) const MIN_GROUPS: Parameter = Parameter::whole("min_groups", 1, 1..=1024)
    .does("groups of channels that an application keeps (assumed: one channel of each stack)");

pub(super) const SMS_PER_CHANNEL: Parameter = Parameter::real("sms_per_channel", 1.0, 0.0..=64.0)
    .does(
        "SMs that it keeps for each of its channels once no channels are left to exchange \
              (assumed: the printed gains need it; 0: SMs go on moving alone)",
    );

pub(super) const ITERATIONS: Parameter = Parameter::whole("iterations", 20, 1..=1_000_000)
    .does("iterations of the algorithm, at most (published: section 3.3)");

/// The algorithm with its settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Algorithm {
    /// What moves in an iteration.
    pub(super) step: Resources,
    /// What every application keeps.
    pub(super) least: Resources,
    /// SMs that an application keeps for each channel where SMs move alone.
    pub(super) sms_per_channel: f64,
    /// The most iterations.
    pub(super) iterations: u32,
    /// How B_MEM is determined.
    pub(super) b_mem: BMem,
    /// The demand of an SM is at most what its port carries.
    pub(super) port_limit: bool,
}

/// What one of the applications between which resources move asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) app: AppId,
    pub(super) demand: Demand,
    /// Groups of channels that its pages fill.
    pub(super) needs: u32,
    /// The part of its solo performance that it keeps.
    pub(super) keeps: f64,
}

/// The result of the algorithm.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// What each application has.
    pub(super) parts: Vec<(AppId, Resources)>,
    pub(super) iterations: u32,
    /// Some have more or less than before.
    pub(super) moved: bool,
    /// It ended at the most iterations, before the result was stable.
    pub(super) cut: bool,
    /// Demand and supply of each, in words.
    pub(super) asked: String,
    /// Why it ended, in words.
    pub(super) end: String,
    /// Why nothing moved, in words, where all or none had enough.
    pub(super) stays: Option<String>,
}

impl Algorithm {
    pub(super) fn of(settings: &Settings) -> Self {
        let resources = |sms: &Parameter, groups: &Parameter| Resources {
            sms: settings.small(sms.name),
            groups: settings.small(groups.name),
        };
        Self {
            step: resources(&DELTA_SM, &DELTA_GROUPS),
            least: resources(&MIN_SMS, &MIN_GROUPS),
            sms_per_channel: settings.real(SMS_PER_CHANNEL.name),
            iterations: settings.small(ITERATIONS.name),
            b_mem: BMem::of(settings),
            port_limit: settings.word(PORT_LIMIT.name) == "on",
        }
    }

    /// The claim of an application with this demand, of any working set and without a target.
    pub(super) fn claim(&self, facts: &Facts, app: AppId, demand: Demand) -> Claim {
        let demand = if self.port_limit { demand.through_port(facts) } else { demand };
        Claim { app, demand, needs: 0, keeps: 0.0 }
    }

    /// Redistributes what the claimants have of the partition between them. Where all share
    /// all channels, each counts with an equal part of their supply.
    pub(super) fn run(&self, facts: &Facts, partition: &Partition, claims: &[Claim]) -> Outcome {
        let count = to_u32(claims.len());
        let owned = partition.total();
        let owns = owned.groups > 0;
        let whole = if owns { owned } else { Resources { groups: count, ..owned } };
        let each = f64::from(facts.channels) / f64::from(whole.groups.max(1));
        let slice = |claim: &Claim| {
            let has = partition.of(claim.app);
            Slice {
                demand: claim.demand.per_sm,
                supply: claim.demand.per_channel * each,
                has: if owns { has } else { Resources { groups: 1, ..has } },
                needs: claim.needs,
                keeps: claim.keeps,
            }
        };
        let slices: Vec<Slice> = claims.iter().map(slice).collect();
        let (step, least, iterations) = (self.step, self.least, self.iterations);
        let sms_per_group = if owns { sms_per_group(self.sms_per_channel * each) } else { 0 };
        let found = redistribute(&slices, &Terms { step, least, sms_per_group, whole, iterations });
        let moved = slices.iter().zip(&found.parts).any(|(slice, has)| slice.has != *has);
        let apps = claims.iter().map(|claim| claim.app);
        Outcome {
            iterations: found.iterations,
            moved,
            cut: found.stop == Stop::Iterations,
            asked: asked(facts, claims, &slices) + &unmet(facts, claims, &slices, least),
            end: end(found.iterations, found.stop),
            stays: (found.stop == Stop::Balanced && !moved).then(|| stays(&slices)),
            parts: apps.zip(found.parts).collect(),
        }
    }
}

/// SMs that are kept for a group of channels, rounded up.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "64 for each of some thousand channels at most"
)]
fn sms_per_group(sms: f64) -> u32 {
    sms.ceil() as u32
}

/// Groups of channels that the pages of an application fill.
pub(super) fn needs(facts: &Facts, seen: &AppView) -> u32 {
    let groups = to_u64(facts.channel_groups.len());
    let group_bytes = facts.channel_bytes * u64::from(facts.channels) / groups.max(1);
    let bytes = seen.pages.saturating_mul(facts.page_bytes.into());
    u32::try_from(bytes.div_ceil(group_bytes.max(1))).unwrap_or(u32::MAX)
}

fn asked(facts: &Facts, claims: &[Claim], slices: &[Slice]) -> String {
    let each = |(claim, slice): (&Claim, &Slice)| {
        let name = &facts.apps[claim.app.index()].name;
        let memory = if slice.needs > slice.has.groups { " and lacks memory" } else { "" };
        format!("{name} {:.1} of {:.1}{memory}", slice.asked(), slice.supplied())
    };
    let each: Vec<String> = claims.iter().zip(slices).map(each).collect();
    format!("GB/s asked for if nothing stalled, of what L2 and memory give: {}", each.join(", "))
}

/// The first application with fewer SMs than each keeps, so that it gives none, in words.
fn unmet(facts: &Facts, claims: &[Claim], slices: &[Slice], least: Resources) -> String {
    let below = |(_, slice): &(&Claim, &Slice)| slice.has.sms < least.sms;
    let Some((claim, slice)) = claims.iter().zip(slices).find(below) else {
        return String::new();
    };
    let (name, sms) = (&facts.apps[claim.app.index()].name, slice.has.sms);
    format!("; {name} has {sms} SMs, fewer than min_sms={}, and gives none", least.sms)
}

/// Why nothing moves, in words.
fn stays(slices: &[Slice]) -> String {
    let enough = slices.iter().any(Slice::computes);
    let which = if enough { "all have" } else { "none has" };
    format!("{which} what is asked for, nothing moves")
}

fn end(iterations: u32, stop: Stop) -> String {
    let end = match stop {
        Stop::Balanced => "all or none have what is asked for",
        Stop::Bound => "no application has more to give",
        Stop::Repeats => "the next would lead back",
        Stop::Iterations => "no more are allowed",
    };
    let times = if iterations == 1 { "iteration" } else { "iterations" };
    format!("after {iterations} {times} {end}")
}
