//! Kernels as persistent workers on SMs of their own, paired by the classes of Slate's Table I.

use std::collections::VecDeque;
use std::fmt;

use gpumodel_core::contract::{
    AddedCode, AppFacts, DispatchOrder, Facts, LawBroken, Persistent, Plan, PlanDraft, Probe,
    ProbeApp, ProbeResult, Resize, Share, Touch, View, Wake, WakeOn, Word,
};
use gpumodel_core::units::{AppId, Cycle, SECTOR_BYTES, to_u64};

use super::{Kind, Parameter, Scheme, Settings, active_apps, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    TASK,
    SPLIT,
    COMPUTE_MEDIUM,
    COMPUTE_HIGH,
    MEMORY_MEDIUM,
    MEMORY_HIGH,
    COMMUNICATION,
    COMPILATION,
    RELAUNCH,
    REGISTERS,
    SHARED,
    LEADER,
    INSTRUCTIONS,
    BLOCK,
    Parameter {
        name: "window",
        kind: Kind::Whole { default: 0, least: 0, most: u64::MAX },
        summary: "cycles of each profiling run, extrapolated; 0: to the end (as in the paper)",
    },
];

/// Slate (IPDPS 2019). Kernels run as workers that pull tasks of several blocks in
/// order. A daemon has a queue of kernels, one for each application at a time. The first
/// runs; beside it runs the first of the others that goes with it by Table I, each on a
/// range of SMs of its own; without one it has all SMs. When a kernel comes or ends,
/// those that run are resized: all their workers retreat and are launched again.
///
/// Intensities are those of a run alone as written. Daemon and compiler take their
/// parts of the application's time as published; what the paper does not print
/// (levels, the split, the cost of a relaunch) are parameters.
#[derive(Clone, Debug)]
pub struct Slate {
    costs: Costs,
    cuts: Cuts,
    saturate: bool,
    window: Option<Cycle>,
    profiles: Vec<Profile>,
    forms: Vec<Persistent>,
    /// By application: SMs that saturate its traffic, where that is asked for.
    enough: Vec<u32>,
    /// Applications whose next kernel waits, the first to come first.
    queue: VecDeque<AppId>,
    /// The application on the lower SMs and the one on the upper: alone, either has all.
    running: [Option<AppId>; 2],
}

impl Slate {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        let window = settings.whole("window");
        Box::new(Self {
            costs: Costs::of(settings),
            cuts: Cuts::of(settings),
            saturate: settings.word(SPLIT.name) == SATURATE,
            window: (window > 0).then_some(window),
            profiles: Vec::new(),
            forms: Vec::new(),
            enough: Vec::new(),
            queue: VecDeque::new(),
            running: [None; 2],
        })
    }

    fn intensity(&self, app: AppId) -> Intensity {
        self.cuts.intensity(&self.profiles[app.index()])
    }

    /// SMs on which an application is tried.
    fn tried(&self, facts: &Facts) -> Vec<u16> {
        if self.saturate && facts.apps.len() > 1 {
            return (1..=facts.sms).collect();
        }
        vec![facts.sms]
    }

    /// A kernel of an application wants to run.
    fn enqueue(&mut self, app: AppId) {
        if !self.queue.contains(&app) && !self.running.contains(&Some(app)) {
            self.queue.push_back(app);
        }
    }

    fn dequeue(&mut self, app: AppId) {
        self.queue.retain(|&waits| waits != app);
        for place in self.running.iter_mut().filter(|place| **place == Some(app)) {
            *place = None;
        }
    }

    /// Fills the places of those that run.
    fn fill(&mut self) {
        if self.running == [None; 2] {
            self.running[0] = self.queue.pop_front();
        }
        let (alone, free) = match self.running {
            [Some(one), None] => (one, 1),
            [None, Some(one)] => (one, 0),
            _ => return,
        };
        let first = self.intensity(alone);
        let goes = |&app: &AppId| first.goes_with(self.intensity(app));
        if let Some(place) = self.queue.iter().position(goes) {
            self.running[free] = self.queue.remove(place);
        }
    }

    fn plan(&self, facts: &Facts) -> Result<Plan, LawBroken> {
        let sms = u32::from(facts.sms);
        // Who has no SM of its own waits: on a machine of one SM all but the first.
        let (holders, first) = match self.running {
            [Some(one), Some(other)] if sms > 1 => {
                let enough = [one, other].map(|app| self.enough[app.index()]);
                let enough = self.saturate.then_some(enough);
                let between = [one, other].map(|app| self.intensity(app));
                (vec![one, other], divide(sms, enough, between))
            }
            [one, other] => (one.or(other).into_iter().collect(), sms),
        };
        let owns = |place: usize, sm: usize| {
            (u32::try_from(sm).is_ok_and(|sm| sm < first)) == (place == 0)
        };
        let quota = |place, sm| if owns(place, sm) { facts.max_ctas_per_sm } else { 0 };
        let given: Vec<Share> = shares::on_each_sm(facts, &holders, quota);
        Plan::new(
            facts,
            PlanDraft {
                shares: given,
                order: DispatchOrder::InOrder,
                workers: self.forms.iter().cloned().map(Some).collect(),
                wake: vec![WakeOn::KernelEnd],
                reason: self.words(facts, first),
                ..PlanDraft::default()
            },
        )
    }

    fn words(&self, facts: &Facts, first: u32) -> String {
        let name =
            |app: &AppId| format!("{} ({})", facts.apps[app.index()].name, self.intensity(*app));
        match (&self.running, self.queue.is_empty()) {
            ([Some(one), Some(other)], _) => {
                let rest = u32::from(facts.sms) - first;
                format!(
                    "{} has {first} SMs and {} {rest}: they go together",
                    name(one),
                    name(other)
                )
            }
            ([Some(one), None] | [None, Some(one)], true) => format!("{} is alone", name(one)),
            ([Some(one), None] | [None, Some(one)], false) => {
                let waits: Vec<String> = self.queue.iter().map(name).collect();
                format!("{} goes with none of those that wait: {}", name(one), waits.join(", "))
            }
            ([None, None], _) => String::from("no kernel waits"),
        }
    }
}

impl Scheme for Slate {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        let probe = |app: AppId, sms: u16| {
            let inside = |sm: usize| sm < usize::from(sms);
            let quota = |_, sm| if inside(sm) { facts.max_ctas_per_sm } else { 0 };
            let draft = PlanDraft {
                shares: shares::on_each_sm(facts, &[app], quota),
                reason: format!("alone on {sms} SMs, as written"),
                ..PlanDraft::default()
            };
            let plan = Plan::new(facts, draft)?;
            Ok(Probe { apps: vec![app], plan, window: self.window, race: false })
        };
        let tried = self.tried(facts);
        let apps = facts.apps.iter().map(|app| app.app);
        let all = apps.flat_map(|app| tried.iter().map(move |&sms| (app, sms)));
        all.map(|(app, sms)| probe(app, sms)).collect()
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let rows = probes.chunks(self.tried(facts).len());
        for (app, rows) in facts.apps.iter().zip(rows) {
            let whole = rows.last().and_then(|row| row.apps.first()).cloned().unwrap_or_default();
            self.profiles.push(Profile::of(&whole, facts));
            self.forms.push(self.costs.form(app, &whole, facts));
            self.enough.push(saturates(rows));
        }
        self.profiles.resize(facts.apps.len(), Profile::default());
        self.forms.resize_with(facts.apps.len(), || self.costs.bare(facts));
        self.enough.resize(facts.apps.len(), u32::from(facts.sms));
        let there = active_apps::at_start(facts);
        let now = there.first().map_or(0, |app| facts.apps[app.index()].arrival);
        if now > 0 {
            // None is active: the first to come will have all.
            self.running[0] = there.first().copied();
            let plan = self.plan(facts);
            self.running = [None; 2];
            return plan;
        }
        there.into_iter().for_each(|app| self.enqueue(app));
        self.fill();
        self.plan(facts)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        match view.wake {
            Wake::Arrival(app) => self.enqueue(app),
            Wake::KernelEnd(app) if view.apps[app.index()].running.is_empty() => {
                self.dequeue(app);
            }
            _ => {}
        }
        for app in active_apps::in_arrival_order(facts) {
            if view.apps[app.index()].active {
                self.enqueue(app);
            } else {
                self.dequeue(app);
            }
        }
        self.fill();
        self.plan(facts)
    }
}

/// One of three levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Low.
    Low,
    /// Medium.
    Medium,
    /// High.
    High,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// What a kernel does alone, in the units of table II.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Profile {
    /// Single-precision operations.
    pub gflop_per_s: f64,
    /// Loads and stores of global memory as the SMs see them, not DRAM.
    pub gb_per_s: f64,
}

impl Profile {
    /// By a run alone. Sectors are counted at the L1, or at the L2 where the L1 keeps
    /// no global data.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    pub fn of(run: &ProbeApp, facts: &Facts) -> Self {
        let seconds = run.cycles.max(1) as f64 / (facts.core_mhz * 1e6);
        let bytes = run.l1_accesses.max(run.l2_accesses) * SECTOR_BYTES;
        Self { gflop_per_s: run.flops / seconds / 1e9, gb_per_s: bytes as f64 / seconds / 1e9 }
    }
}

/// Where levels begin. The paper prints none: any cut between its benchmarks does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cuts {
    /// Operations from which on arithmetic is medium, and high.
    pub gflop_per_s: [f64; 2],
    /// Traffic from which on memory is medium, and high.
    pub gb_per_s: [f64; 2],
}

const MOST: f64 = 1e6;

pub(super) const COMPUTE_MEDIUM: Parameter = Parameter {
    name: "compute_medium",
    kind: Kind::Real { default: 56.0, least: 0.0, most: MOST },
    summary: "GFLOP/s from which on arithmetic is medium (assumed, between 19.6 and 161.3)",
};

pub(super) const COMPUTE_HIGH: Parameter = Parameter {
    name: "compute_high",
    kind: Kind::Real { default: 496.0, least: 0.0, most: MOST },
    summary: "GFLOP/s from which on it is high (assumed, between 161.3 and 1525)",
};

pub(super) const MEMORY_MEDIUM: Parameter = Parameter {
    name: "memory_medium",
    kind: Kind::Real { default: 156.0, least: 0.0, most: MOST },
    summary: "GB/s from which on memory is medium (assumed, between 71.6 and 340.9)",
};

pub(super) const MEMORY_HIGH: Parameter = Parameter {
    name: "memory_high",
    kind: Kind::Real { default: 479.0, least: 0.0, most: MOST },
    summary: "GB/s from which on it is high (assumed, between 403.5 and 568.6)",
};

impl Cuts {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            gflop_per_s: [COMPUTE_MEDIUM, COMPUTE_HIGH].map(|cut| settings.real(cut.name)),
            gb_per_s: [MEMORY_MEDIUM, MEMORY_HIGH].map(|cut| settings.real(cut.name)),
        }
    }

    /// The intensity of a kernel.
    #[must_use]
    pub fn intensity(&self, profile: &Profile) -> Intensity {
        let level = |value: f64, [medium, high]: [f64; 2]| match value {
            value if value >= high => Level::High,
            value if value >= medium => Level::Medium,
            _ => Level::Low,
        };
        Intensity {
            compute: level(profile.gflop_per_s, self.gflop_per_s),
            memory: level(profile.gb_per_s, self.gb_per_s),
        }
    }
}

/// How intensive a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intensity {
    /// In arithmetic.
    pub compute: Level,
    /// In memory.
    pub memory: Level,
}

/// Table I: whether a kernel of the row, which runs, goes together with one of the
/// column. Rows and columns: memory low with arithmetic low, medium and high; memory
/// medium; memory high. It is not symmetric for high arithmetic beside medium or high
/// memory; the running kernel is taken as the row (assumed).
const TOGETHER: [[bool; 5]; 5] = [
    [true, true, false, true, true],
    [true, true, false, false, true],
    [false, false, false, false, true],
    [true, false, true, false, false],
    [true, true, false, false, false],
];

impl Intensity {
    fn place(self) -> usize {
        match (self.memory, self.compute) {
            (Level::Low, Level::Low) => 0,
            (Level::Low, Level::Medium) => 1,
            (Level::Low, Level::High) => 2,
            (Level::Medium, _) => 3,
            (Level::High, _) => 4,
        }
    }

    /// Whether a kernel that runs goes together with `candidate`.
    #[must_use]
    pub fn goes_with(self, candidate: Self) -> bool {
        TOGETHER[self.place()][candidate.place()]
    }
}

impl fmt::Display for Intensity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} memory, {} arithmetic", self.memory, self.compute)
    }
}

pub(super) const TASK: Parameter = Parameter {
    name: "task",
    kind: Kind::Whole { default: 10, least: 1, most: 1_000_000 },
    summary: "thread blocks of a task (published: 10)",
};

pub(super) const COMMUNICATION: Parameter = Parameter {
    name: "communication",
    kind: Kind::Real { default: 0.04, least: 0.0, most: 0.45 },
    summary: "part of an application's time for messages with the daemon (published mean)",
};

pub(super) const COMPILATION: Parameter = Parameter {
    name: "compilation",
    kind: Kind::Real { default: 0.015, least: 0.0, most: 0.45 },
    summary: "part of it for injecting and compiling code (published mean)",
};

pub(super) const RELAUNCH: Parameter = Parameter {
    name: "relaunch_us",
    kind: Kind::Real { default: 5.0, least: 0.0, most: 1e6 },
    summary: "microseconds in which the dispatch kernel relaunches workers (assumed)",
};

pub(super) const REGISTERS: Parameter = Parameter {
    name: "registers",
    kind: Kind::Whole { default: 4, least: 0, most: 128 },
    summary: "registers of a thread in addition to the original's (assumed: block index and count)",
};

pub(super) const SHARED: Parameter = Parameter {
    name: "shared",
    kind: Kind::Whole { default: 24, least: 0, most: 4096 },
    summary: "shared bytes of a CTA in addition to the original's (published: listings 1 and 2)",
};

pub(super) const LEADER: Parameter = Parameter {
    name: "leader",
    kind: Kind::Whole { default: 24, least: 0, most: 10_000 },
    summary: "instructions of the first thread for a task (assumed: its division and stores)",
};

pub(super) const INSTRUCTIONS: Parameter = Parameter {
    name: "instructions",
    kind: Kind::Whole { default: 8, least: 0, most: 10_000 },
    summary: "instructions of each warp for a task (assumed, counted in listing 2)",
};

pub(super) const BLOCK: Parameter = Parameter {
    name: "block",
    kind: Kind::Whole { default: 6, least: 0, most: 10_000 },
    summary: "instructions of each warp for a block (published: 4 M per launch of BS, 625 K warps)",
};

/// Instructions of the first thread when it comes and of each warp behind the barrier,
/// counted in listing 1.
const COMES: u32 = 6;
const LOOKS: u32 = 3;

/// What the form costs.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    form: Persistent,
    communication: f64,
    compilation: f64,
    relaunch_us: f64,
}

impl Costs {
    pub(super) fn of(settings: &Settings) -> Self {
        let small = |name: &str| u32::try_from(settings.whole(name)).unwrap_or(u32::MAX);
        let form = Persistent {
            task_blocks: small(TASK.name),
            register_factor: 1.0,
            more_registers: small(REGISTERS.name),
            more_shared_bytes: small(SHARED.name),
            arrive: AddedCode {
                touches: Vec::new(),
                leader_instructions: COMES,
                meets: true,
                instructions: LOOKS,
            },
            task: AddedCode {
                touches: vec![Touch::Read(Word::Flag), Touch::Add(Word::Queue)],
                leader_instructions: small(LEADER.name),
                meets: true,
                instructions: small(INSTRUCTIONS.name),
            },
            block_instructions: small(BLOCK.name),
            leave: AddedCode::default(),
            resize: Resize::Relaunch { cycles: 0 },
            compile_cycles: 0,
            call_cycles: 0,
        };
        Self {
            form,
            communication: settings.real(COMMUNICATION.name),
            compilation: settings.real(COMPILATION.name),
            relaunch_us: settings.real(RELAUNCH.name),
        }
    }

    /// The form without what hosts do.
    pub(super) fn bare(&self, facts: &Facts) -> Persistent {
        let cycles = facts.cycles_in(self.relaunch_us * 1e-6);
        Persistent { resize: Resize::Relaunch { cycles }, ..self.form.clone() }
    }

    /// The form of an application's kernels. What the hosts do are the published parts
    /// of its time, of which the rest is that of its run alone: messages in equal parts
    /// before each launch, compilation before the first.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "cycles are below 2^53 and not negative"
    )]
    pub(super) fn form(&self, app: &AppFacts, alone: &ProbeApp, facts: &Facts) -> Persistent {
        let all: u64 = app.kernels.iter().map(|kernel| kernel.warp_instructions).sum();
        let ran = alone.warp_instructions.max(1) as f64;
        let kernels = alone.cycles as f64 * (all as f64 / ran).max(1.0);
        let whole = kernels / (1.0 - self.communication - self.compilation);
        let launches = to_u64(app.kernels.len().max(1)) as f64;
        Persistent {
            compile_cycles: (whole * self.compilation).round() as Cycle,
            call_cycles: (whole * self.communication / launches).round() as Cycle,
            ..self.bare(facts)
        }
    }
}

pub(super) const SPLIT: Parameter = Parameter {
    name: "split",
    kind: Kind::Word { default: EVEN, words: &[EVEN, SATURATE] },
    summary: "SMs of two kernels: half each, or what saturates the one with more traffic (assumed)",
};

const EVEN: &str = "even";
pub(super) const SATURATE: &str = "saturate";

/// Part of the traffic on all SMs from which on fewer are enough.
const ENOUGH: f64 = 0.95;

/// The SMs at which a kernel's traffic is as large as it gets, by runs on 1, 2, ...
#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
pub(super) fn saturates(rows: &[ProbeResult]) -> u32 {
    let speed = |row: &ProbeResult| {
        row.apps.first().map_or(0.0, |app| {
            app.l1_accesses.max(app.l2_accesses) as f64 / app.cycles.max(1) as f64
        })
    };
    let most = rows.iter().map(speed).fold(0.0, f64::max);
    let first = rows.iter().position(|row| speed(row) >= ENOUGH * most);
    gpumodel_core::units::to_u32(first.map_or(rows.len(), |place| place + 1))
}

/// SMs of the first of two kernels, of `sms`. `saturate`: where each has as much
/// traffic as it can; the kernel with more intensive memory, the first of equals, has
/// so many, at most all but one.
pub(super) fn divide(sms: u32, saturate: Option<[u32; 2]>, [one, other]: [Intensity; 2]) -> u32 {
    let Some([first, second]) = saturate else { return sms.div_ceil(2) };
    let most = sms.saturating_sub(1).max(1);
    if other.memory > one.memory { sms - second.clamp(1, most) } else { first.clamp(1, most) }
}

#[cfg(test)]
mod tests {
    use super::{Cuts, Intensity, Level, PARAMETERS, Profile, divide, saturates};
    use crate::Settings;
    use gpumodel_core::contract::{ProbeApp, ProbeResult};

    /// Table II: name, GFLOP/s, GB/s.
    const PUBLISHED: [(&str, f64, f64); 5] = [
        ("BS", 161.3, 401.49),
        ("GS", 19.6, 340.9),
        ("MM", 1525.0, 403.5),
        ("RG", 4.2, 71.6),
        ("TR", 0.0, 568.6),
    ];

    fn published(name: &str) -> Intensity {
        let cuts = Cuts::of(&Settings::defaults(PARAMETERS));
        let &(_, gflop_per_s, gb_per_s) =
            PUBLISHED.iter().find(|(known, ..)| *known == name).unwrap();
        cuts.intensity(&Profile { gflop_per_s, gb_per_s })
    }

    #[test]
    fn the_benchmarks_have_the_levels_of_table_two() {
        use Level::{High, Low, Medium};
        let levels = |name| (published(name).compute, published(name).memory);
        assert_eq!(levels("BS"), (Medium, Medium));
        assert_eq!(levels("GS"), (Low, Medium));
        assert_eq!(levels("MM"), (High, Medium));
        assert_eq!(levels("RG"), (Low, Low));
        assert_eq!(levels("TR"), (Low, High));
    }

    #[test]
    fn all_pairs_with_rg_go_together_and_the_other_ten_do_not() {
        let mut together = Vec::new();
        for (place, (one, ..)) in PUBLISHED.iter().enumerate() {
            for (other, ..) in &PUBLISHED[place..] {
                let goes = published(one).goes_with(published(other));
                assert_eq!(goes, published(other).goes_with(published(one)), "{one} {other}");
                together.extend(goes.then_some((*one, *other)));
            }
        }
        let expected = [("BS", "RG"), ("GS", "RG"), ("MM", "RG"), ("RG", "RG"), ("RG", "TR")];
        assert_eq!(together, expected);
    }

    fn row(sectors: u64) -> ProbeResult {
        let app = ProbeApp { cycles: 100, l1_accesses: sectors, ..ProbeApp::default() };
        ProbeResult { cycles: 100, apps: vec![app] }
    }

    #[test]
    fn traffic_is_saturated_where_more_sms_bring_no_more() {
        let rows: Vec<_> = [100, 200, 290, 300, 298, 300].map(row).into();
        assert_eq!(saturates(&rows), 3);
        assert_eq!(saturates(&[row(7)]), 1);
    }

    #[test]
    fn the_kernel_with_more_traffic_has_what_saturates_it() {
        let of = |memory| Intensity { compute: Level::Low, memory };
        let (low, high) = (of(Level::Low), of(Level::High));
        assert_eq!(divide(30, None, [low, high]), 15);
        assert_eq!(divide(31, None, [low, high]), 16);
        assert_eq!(divide(30, Some([30, 9]), [low, high]), 21);
        assert_eq!(divide(30, Some([9, 30]), [high, low]), 9);
        assert_eq!(divide(30, Some([30, 30]), [high, low]), 29, "the other keeps one");
        assert_eq!(divide(1, Some([30, 30]), [high, low]), 1);
    }
}
