//! The demand-aware algorithm on the applications of a run (UGPU, section 3).

use gpumodel_core::contract::{AppView, Facts};
use gpumodel_core::units::{AppId, to_u32, to_u64};

use super::super::solve::{Resources, Slice, Stop, Terms, redistribute};
use super::super::{Parameter, Settings};
use super::demand::{B_MEM, Demand, PORT_LIMIT};
use super::partition::Partition;

pub(super) const DELTA_SM: Parameter = Parameter::whole("delta_sm", 4, 1..=1024)
    .does("SMs that move in an iteration (assumed: one delta is printed for SMs and channels)");

pub(super) const DELTA_GROUPS: Parameter = Parameter::whole("delta_groups", 1, 1..=1024)
    .does("groups of channels that move in an iteration (assumed: one channel of each stack)");

pub(super) const MIN_SMS: Parameter =
    Parameter::whole("min_sms", 4, 1..=1024).does("SMs that an application keeps (assumed)");

pub(super) const MIN_GROUPS: Parameter = Parameter::whole("min_groups", 1, 1..=1024)
    .does("groups of channels that an application keeps (assumed: one channel of each stack)");

pub(super) const ITERATIONS: Parameter = Parameter::whole("iterations", 20, 1..=1_000_000)
    .does("iterations of the algorithm, at most (published: section 3.3)");

/// The algorithm with its settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Algorithm {
    /// What moves in an iteration.
    pub(super) step: Resources,
    /// What everybody keeps.
    pub(super) least: Resources,
    /// Iterations, at most.
    pub(super) iterations: u32,
    /// B_MEM over the peak of the pins.
    pub(super) b_mem: f64,
    /// An SM asks for no more than its port carries.
    pub(super) port_limit: bool,
}

/// One of those between whom resources are moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trader {
    /// Which application.
    pub(super) app: AppId,
    /// What it asks for and is given.
    pub(super) demand: Demand,
    /// Groups of channels that its pages fill.
    pub(super) needs: u32,
    /// The part of its performance alone that it keeps.
    pub(super) keeps: f64,
}

/// What the algorithm has found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// What each trader has.
    pub(super) parts: Vec<(AppId, Resources)>,
    /// Iterations.
    pub(super) iterations: u32,
    /// Some have more or less than before.
    pub(super) moved: bool,
    /// More iterations would go on.
    pub(super) cut: bool,
    /// What each asked for and was given, in words.
    pub(super) asked: String,
    /// Why it ended, in words.
    pub(super) end: String,
    /// Why nothing moved, in words, where everybody or nobody had enough.
    pub(super) stays: Option<String>,
}

impl Algorithm {
    /// As the parameters say.
    pub(super) fn of(settings: &Settings) -> Self {
        let small = |parameter: &Parameter| to_u32(settings.whole(parameter.name));
        Self {
            step: Resources { sms: small(&DELTA_SM), groups: small(&DELTA_GROUPS) },
            least: Resources { sms: small(&MIN_SMS), groups: small(&MIN_GROUPS) },
            iterations: small(&ITERATIONS),
            b_mem: settings.real(B_MEM.name),
            port_limit: settings.word(PORT_LIMIT.name) == "on",
        }
    }

    /// What an application with this demand asks for, as the parameters say.
    pub(super) fn bounded(&self, facts: &Facts, demand: Demand) -> Demand {
        if self.port_limit { demand.through_port(facts) } else { demand }
    }

    /// What `traders` have of the partition, redistributed between them. Where all share
    /// all channels, each counts with an equal part of what they give it.
    pub(super) fn run(&self, facts: &Facts, partition: &Partition, traders: &[Trader]) -> Found {
        let count = to_u32(traders.len());
        let owned = partition.whole();
        let owns = owned.groups > 0;
        let whole = if owns { owned } else { Resources { groups: count, ..owned } };
        let each = f64::from(facts.channels) / f64::from(whole.groups.max(1));
        let slice = |trader: &Trader| {
            let has = partition.of(trader.app);
            Slice {
                demand: trader.demand.per_sm,
                supply: trader.demand.per_channel * each,
                has: if owns { has } else { Resources { groups: 1, ..has } },
                needs: trader.needs,
                keeps: trader.keeps,
            }
        };
        let slices: Vec<Slice> = traders.iter().map(slice).collect();
        let (step, least, iterations) = (self.step, self.least, self.iterations);
        let found = redistribute(&slices, &Terms { step, least, whole, iterations });
        let had = slices.iter().map(|slice| slice.has);
        let moved = had.zip(&found.parts).any(|(had, has)| had != *has);
        let unmet = unmet(facts, traders, &slices, least);
        let asked = format!("{}{unmet}", asked(facts, traders, &slices));
        let end = end(found.iterations, found.stop);
        let stays = (found.stop == Stop::Balanced && !moved).then(|| stays(&slices));
        let apps = traders.iter().map(|trader| trader.app);
        let parts = apps.zip(found.parts).collect();
        let cut = found.stop == Stop::Iterations;
        Found { parts, iterations: found.iterations, moved, cut, asked, end, stays }
    }
}

/// Groups of channels that the pages of an application fill.
pub(super) fn needs(facts: &Facts, seen: &AppView) -> u32 {
    let groups = to_u64(facts.channel_groups.len());
    let group_bytes = facts.channel_bytes * u64::from(facts.channels) / groups.max(1);
    let bytes = seen.pages.saturating_mul(facts.page_bytes.into());
    u32::try_from(bytes.div_ceil(group_bytes.max(1))).unwrap_or(u32::MAX)
}

fn asked(facts: &Facts, traders: &[Trader], slices: &[Slice]) -> String {
    let each = |(trader, slice): (&Trader, &Slice)| {
        let name = &facts.apps[trader.app.index()].name;
        let memory = if slice.needs > slice.has.groups { " and lacks memory" } else { "" };
        format!("{name} {:.1} of {:.1}{memory}", slice.asked(), slice.given())
    };
    let each: Vec<String> = traders.iter().zip(slices).map(each).collect();
    format!("GB/s asked for if nothing stalled, of what L2 and memory give: {}", each.join(", "))
}

/// Who has less than everybody is to keep, and gives none of it, in words.
fn unmet(facts: &Facts, traders: &[Trader], slices: &[Slice], least: Resources) -> String {
    let below = |(_, slice): &(&Trader, &Slice)| slice.has.sms < least.sms;
    let Some((trader, slice)) = traders.iter().zip(slices).find(below) else {
        return String::new();
    };
    let (name, sms) = (&facts.apps[trader.app.index()].name, slice.has.sms);
    format!("; {name} has {sms} SMs, fewer than min_sms={}, and gives none", least.sms)
}

/// Why nothing moves, in words.
fn stays(slices: &[Slice]) -> String {
    let contented = slices.iter().filter(|slice| slice.computes()).count();
    let who = if contented > 0 { "all have" } else { "none has" };
    format!("{who} what is asked for, nothing moves")
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
