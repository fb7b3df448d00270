//! Kernels as figures and tables show them: launches of one name together, what they take of
//! resources, and the causes of their stalls.

use std::collections::{BTreeMap, BTreeSet};

use gpumodel_core::units::SECTOR_BYTES;

use super::chart::{Fill, fit, text_width};
use super::format::{float, plain_name, ratio};
use super::look::cause_fill;
use super::machine::machine_tails;
use super::mix::apart;
use crate::group_by;
use crate::results::{Analysis, AppRecord, KernelRecord, UnitShares, last_component};

/// Launches of one kernel (or the rest of a long list) added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Group {
    /// What to call it: plain name, with the application where there are several.
    pub(crate) label: String,
    /// Position of its application in the list.
    pub(crate) app: usize,
    /// Kernels with different names in it; above 1 only for the rest.
    pub(crate) kernels: u64,
    /// Launches.
    pub(crate) launches: u64,
    /// Sums over the launches. Its name is empty for the rest; occupancy and stalls are means
    /// weighted by cycles.
    pub(crate) sum: KernelRecord,
    /// Cycles of the launches that have stalls.
    weight: f64,
}

impl Group {
    /// Every launch of `app` on its own, in record order.
    pub(crate) fn each(app: &AppRecord) -> Vec<Self> {
        let one = |kernel: &KernelRecord| {
            let mut group = Self::new(&kernel.name, 0);
            group.join(&Self::of(kernel));
            group
        };
        app.kernels.iter().map(one).collect()
    }

    /// DRAM sectors, both directions.
    pub(crate) fn dram_sectors(&self) -> u64 {
        self.sum.dram.read_sectors.saturating_add(self.sum.dram.write_sectors)
    }

    /// Thread instructions per cycle, launch latencies included; `None` without cycles
    /// and where it is not modelled.
    pub(crate) fn ipc(&self) -> Option<f64> {
        let ipc = ratio(float(self.sum.thread_instructions), float(self.sum.cycles));
        ipc.filter(|_| !self.sum.memory_only)
    }

    /// DRAM traffic in GB/s at an SM clock of `core_mhz`; `None` where either is unknown
    /// or times are not modelled.
    pub(crate) fn dram_gb_per_s(&self, core_mhz: f64) -> Option<f64> {
        let bytes = float(self.dram_sectors()) * float(SECTOR_BYTES);
        let per_cycle = ratio(bytes, float(self.sum.busy_cycles()))?;
        (core_mhz > 0.0 && !self.sum.memory_only).then(|| per_cycle * core_mhz / 1000.0)
    }

    /// The label with the number of launches where there are several, at most
    /// `room` wide at text `size`; the number is never cut.
    pub(crate) fn title(&self, size: f64, room: f64) -> String {
        if self.launches < 2 {
            return fit(&self.label, size, room);
        }
        let times = format!(" ×{}", self.launches);
        fit(&self.label, size, room - text_width(&times, size)) + &times
    }

    /// No launch yet of the kernel `name` of an application.
    fn new(name: &str, app: usize) -> Self {
        let sum = KernelRecord { name: name.into(), ..KernelRecord::default() };
        Self { label: plain_name(name), app, kernels: 1, sum, ..Self::default() }
    }

    /// One launch.
    fn of(kernel: &KernelRecord) -> Self {
        let stalled = !kernel.memory_only && !kernel.stall_fractions.is_empty();
        let weight = if stalled { float(kernel.cycles) } else { 0.0 };
        Self { launches: 1, sum: kernel.clone(), weight, ..Self::default() }
    }

    fn join(&mut self, other: &Self) {
        let cycles = float(self.sum.cycles) + float(other.sum.cycles);
        let share = if cycles > 0.0 { float(other.sum.cycles) / cycles } else { 1.0 };
        self.sum.occupancy += (other.sum.occupancy - self.sum.occupancy) * share;
        self.sum.add(&other.sum);
        self.kernels += other.kernels;
        self.launches += other.launches;
        self.blend(&other.sum.stall_fractions, other.weight);
    }

    /// Takes `stalls` of `weight` into the weighted mean.
    fn blend(&mut self, stalls: &BTreeMap<String, f64>, weight: f64) {
        let total = self.weight + weight;
        if stalls.is_empty() || weight <= 0.0 {
            return;
        }
        let own = &mut self.sum.stall_fractions;
        own.values_mut().for_each(|share| *share *= self.weight / total);
        for (cause, share) in stalls {
            *own.entry(cause.clone()).or_default() += share * weight / total;
        }
        self.weight = total;
    }
}

/// The kernels of `runs` by cycles, largest first; all beyond `most` are one
/// group at the end.
pub(crate) fn groups(runs: &[(&Analysis, &AppRecord)], most: usize) -> Vec<Group> {
    ranked_groups(runs, most, |_, _| 0)
}

/// As [`groups`], kernels with the least `rank` first, by the place of the run and the name.
pub(crate) fn ranked_groups(
    runs: &[(&Analysis, &AppRecord)],
    most: usize,
    rank: impl Fn(usize, &str) -> usize,
) -> Vec<Group> {
    let mut found: BTreeMap<(usize, &str), Group> = BTreeMap::new();
    for (index, (_, app)) in runs.iter().enumerate() {
        for kernel in &app.kernels {
            let group = found.entry((index, &kernel.name));
            let group = group.or_insert_with(|| Group::new(&kernel.name, index));
            group.join(&Group::of(kernel));
        }
    }
    let mut groups: Vec<Group> = found.into_values().collect();
    groups.sort_by_key(|group| {
        (rank(group.app, &group.sum.name), std::cmp::Reverse(group.sum.cycles))
    });
    if groups.len() > most {
        let rest = groups.split_off(most.saturating_sub(1));
        groups.push(joined(&rest));
    }
    name_apart(&mut groups, runs);
    groups
}

fn joined(groups: &[Group]) -> Group {
    let mut rest = Group::default();
    for group in groups {
        rest.join(group);
    }
    rest.label = format!("other ({} kernels)", rest.kernels);
    rest
}

/// The room that the titles of `groups` need at text `size`, at most `most`.
pub(crate) fn title_room(groups: &[Group], size: f64, most: f64) -> f64 {
    let width = |group: &Group| text_width(&group.title(size, f64::MAX), size);
    groups.iter().map(width).fold(0.0, f64::max).min(most)
}

/// Puts the application before the label where there are several, what differs of its
/// machine behind, and numbers labels that are still the same.
fn name_apart(groups: &mut [Group], runs: &[(&Analysis, &AppRecord)]) {
    let records: Vec<&Analysis> = runs.iter().map(|run| run.0).collect();
    let machines = machine_tails(&records);
    let mut used = BTreeSet::new();
    for group in groups {
        if runs.len() > 1 && group.kernels == 1 {
            let app = last_component(&runs[group.app].1.app);
            // An application is often called like its kernel.
            let kernel = if app == group.label { "" } else { &format!(": {}", group.label) };
            group.label = format!("{app}{kernel}{}", machines[group.app]);
        }
        let mut label = group.label.clone();
        let mut number = 2;
        while !used.insert(label.clone()) {
            label = format!("{} [{number}]", group.label);
            number += 1;
        }
        group.label = label;
    }
}

/// Shares of one kernel, means over its launches weighted by cycles beyond launch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile {
    /// What to call it.
    pub(crate) label: String,
    /// Launches that say.
    pub(crate) launches: usize,
    /// Cycles of those launches.
    pub(crate) cycles: u64,
    /// Shares by name; a launch without one of a name counts as 0.
    pub(crate) shares: UnitShares,
}

/// The kernels of `runs` for which `of` gives something, in record order; beyond `most`
/// only those with most cycles, and how many are left out. Kernels with the least `rank` come
/// first.
pub(crate) fn profiles<'r>(
    runs: &[(&'r Analysis, &'r AppRecord)],
    most: usize,
    rank: impl Fn(usize, &str) -> usize,
    of: impl Fn(&KernelRecord) -> Option<UnitShares>,
) -> (Vec<Profile>, usize) {
    let launches = runs.iter().enumerate().flat_map(|(index, (_, app))| {
        let launch =
            |kernel: &'r KernelRecord| Some(((index, kernel.name.as_str()), (kernel, of(kernel)?)));
        app.kernels.iter().filter_map(launch).collect::<Vec<_>>()
    });
    let (names, launches): (Vec<_>, Vec<_>) = group_by(launches).into_iter().unzip();
    let named = labels(runs, &names).into_iter().zip(launches);
    let all: Vec<Profile> = named.map(|(label, launches)| Profile::new(label, &launches)).collect();
    let left_out = all.len().saturating_sub(most);
    let ranks = names.iter().map(|(run, kernel)| rank(*run, kernel));
    let mut largest: Vec<((usize, usize), Profile)> = ranks.zip(0..).zip(all).collect();
    largest.sort_by_key(|((rank, _), profile)| (*rank, std::cmp::Reverse(profile.cycles)));
    largest.truncate(most);
    largest.sort_by_key(|(place, _)| *place);
    (largest.into_iter().map(|(_, profile)| profile).collect(), left_out)
}

/// What the kernels are called: an application's only kernel like the application.
fn labels(runs: &[(&Analysis, &AppRecord)], order: &[(usize, &str)]) -> Vec<String> {
    let records: Vec<&Analysis> = runs.iter().map(|run| run.0).collect();
    let machines = machine_tails(&records);
    let label = |&(index, kernel): &(usize, &str)| {
        let app = last_component(&runs[index].1.app);
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

impl Profile {
    fn new(label: String, launches: &[(&KernelRecord, UnitShares)]) -> Self {
        // A launch without time still says what it takes.
        let weight = |kernel: &KernelRecord| float(kernel.busy_cycles().max(1));
        let whole: f64 = launches.iter().map(|(kernel, _)| weight(kernel)).sum();
        let mut shares = UnitShares::new();
        for (kernel, own) in launches {
            for (name, share) in own.iter().filter(|(_, share)| share.is_finite()) {
                *shares.entry(name.clone()).or_default() += share * weight(kernel);
            }
        }
        shares.values_mut().for_each(|share| *share /= whole);
        let cycles = launches.iter().map(|(kernel, _)| kernel.cycles).fold(0, u64::saturating_add);
        Self { label, launches: launches.len(), cycles, shares }
    }
}

/// What is left of a stack whose parts do not sum to 1.
pub(crate) const UNRECORDED: &str = "not recorded";

/// Shares below this are rounding, not a part.
pub(crate) const ROUNDING: f64 = 5e-4;

/// The key of slots in which every warp waits for a result of arithmetic: read after write.
pub(crate) const SHORT_RAW: &str = "short_raw";

/// The key of slots in which a warp issued.
pub(crate) const ISSUED: &str = "issued";

/// The causes of `stacks` in stacking order: `issued` first, `idle` and what is
/// not recorded last, the others by name; with the fill of each.
pub(crate) fn causes<'a>(
    stacks: impl Iterator<Item = &'a BTreeMap<String, f64>>,
) -> Vec<(String, Fill)> {
    let mut names = BTreeSet::new();
    let mut gap = false;
    for stack in stacks {
        names.extend(stack.iter().filter(|(_, share)| **share > 0.0).map(|(cause, _)| cause));
        gap |= 1.0 - stack.values().sum::<f64>() > ROUNDING;
    }
    let mut found: Vec<String> = names.into_iter().cloned().collect();
    found.sort_by_key(|name| (name != ISSUED, name == IDLE));
    found.extend(gap.then(|| UNRECORDED.into()));
    let with_fill = |name: String| {
        let fill = cause_fill(&name);
        (name, fill)
    };
    found.into_iter().map(with_fill).collect()
}

/// The shares of `stack` in the order of `causes`, scaled down where they sum
/// to more than 1; what is missing to 1 goes to [`UNRECORDED`].
pub(crate) fn shares(stack: &BTreeMap<String, f64>, causes: &[(String, Fill)]) -> Vec<f64> {
    let sum: f64 = stack.values().sum();
    let scale = sum.max(1.0);
    let share = |cause: &str| match cause {
        UNRECORDED => (1.0 - sum).max(0.0),
        cause => stack.get(cause).copied().unwrap_or(0.0) / scale,
    };
    causes.iter().map(|(cause, _)| share(cause)).collect()
}

/// The key of slot-cycles of SMs without a warp.
pub(crate) const IDLE: &str = "idle";

/// What is shown for [`IDLE`].
pub(crate) const NO_CTA: &str = "no CTA";

/// `cause` as tables and figures show it.
pub(crate) fn cause_words(cause: &str) -> String {
    match cause {
        IDLE => NO_CTA.to_owned(),
        SHORT_RAW => "short RAW".to_owned(),
        cause => cause.replace('_', " "),
    }
}

/// The share of slot-cycles of SMs without a warp; `None` of an empty stack.
pub(crate) fn no_cta(stack: &BTreeMap<String, f64>) -> Option<f64> {
    (!stack.is_empty()).then(|| stack.get(IDLE).copied().unwrap_or(0.0))
}

/// The shares of `stack` over the slot-cycles of SMs with a warp; empty where there are none.
pub(crate) fn active_stack(stack: &BTreeMap<String, f64>) -> BTreeMap<&str, f64> {
    let active = 1.0 - no_cta(stack).unwrap_or(1.0);
    let causes = stack.iter().filter(|(cause, _)| *cause != IDLE && active > ROUNDING);
    causes.map(|(cause, share)| (cause.as_str(), share / active)).collect()
}

/// The largest cause other than `issued`, with its share of the slot-cycles of SMs with a
/// warp; `None` when nothing stalled.
pub(crate) fn top_stall(stack: &BTreeMap<String, f64>) -> Option<(String, f64)> {
    let causes = active_stack(stack).into_iter();
    let stalled = causes.filter(|(cause, share)| *cause != ISSUED && *share > 0.0);
    let top = stalled.fold(None, |best: Option<(&str, f64)>, (cause, share)| match best {
        Some((_, most)) if most >= share => best,
        _ => Some((cause, share)),
    });
    top.map(|(cause, share)| (cause_words(cause), share))
}

#[cfg(test)]
mod tests {
    use super::{no_cta, profiles, top_stall};
    use crate::results::{Analysis, AppRecord, KernelRecord};

    #[test]
    fn an_sm_without_a_warp_is_no_stall() {
        let stack = |parts: &[(&str, f64)]| {
            parts.iter().map(|(cause, share)| ((*cause).to_owned(), *share)).collect()
        };
        let mostly_empty =
            stack(&[("idle", 0.75), ("issued", 0.1), ("barrier", 0.05), ("short_raw", 0.1)]);
        assert_eq!(top_stall(&mostly_empty), Some(("short RAW".into(), 0.4)));
        assert_eq!(no_cta(&mostly_empty), Some(0.75));
        assert_eq!(top_stall(&stack(&[("idle", 1.0)])), None);
        assert_eq!(top_stall(&stack(&[("issued", 1.0)])), None);
        assert_eq!((top_stall(&stack(&[])), no_cta(&stack(&[]))), (None, None));
    }

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
            let (all, left) = profiles(runs, most, |_, _| 0, |kernel| kernel.residence.clone());
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
