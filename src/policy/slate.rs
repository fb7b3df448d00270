//! Persistent workers on own SMs, paired by the classes of Slate's Table I.

use std::collections::VecDeque;
use std::fmt;

use gpumodel_core::contract::{
    AddedCode, AppFacts, DispatchOrder, Facts, LawBroken, Persistent, Plan, PlanDraft, Probe,
    ProbeApp, ProbeResult, Resize, Touch, View, Wake, WakeOn, Word,
};
use gpumodel_core::units::{AppId, Cycle, SECTOR_BYTES, to_u32, to_u64};

use super::solve::float;
use super::{Parameter, Scheme, Settings, shares};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::whole("task", 10, 1..=1_000_000).does("thread blocks of a task (published: 10)"),
    Parameter::word("split", EVEN, &[EVEN, SATURATE]).does(
        "SMs of two kernels: half each, or what saturates the one with more traffic (assumed)",
    ),
    Parameter::real("compute_medium", 56.0, 0.0..=1e6)
        .does("GFLOP/s from which on arithmetic is medium (assumed, between 19.6 and 161.3)"),
    Parameter::real("compute_high", 496.0, 0.0..=1e6)
        .does("GFLOP/s from which on it is high (assumed, between 161.3 and 1525)"),
    Parameter::real("memory_medium", 156.0, 0.0..=1e6)
        .does("GB/s from which on memory is medium (assumed, between 71.6 and 340.9)"),
    Parameter::real("memory_high", 479.0, 0.0..=1e6)
        .does("GB/s from which on it is high (assumed, between 403.5 and 568.6)"),
    Parameter::real("communication", 0.04, 0.0..=0.45)
        .does("part of an application's time for messages with the daemon (published mean)"),
    Parameter::real("compilation", 0.015, 0.0..=0.45)
        .does("part of it for injecting and compiling code (published mean)"),
    Parameter::real("relaunch_us", 5.0, 0.0..=1e6)
        .does("microseconds in which the dispatch kernel relaunches workers (assumed)"),
    Parameter::whole("registers", 3, 0..=128).does(
        "registers of a thread in addition to the original's (assumed: block index in two \
             dimensions and count; 4: with the task's index)",
    ),
    Parameter::whole("shared", 24, 0..=4096)
        .does("shared bytes of a CTA in addition to the original's (published: listings 1 and 2)"),
    Parameter::whole("leader", 24, 0..=10_000)
        .does("instructions of the first thread for a task (assumed: its division and stores)"),
    Parameter::whole("instructions", 8, 0..=10_000)
        .does("instructions of each warp for a task (assumed, counted in listing 2)"),
    Parameter::whole("block", 6, 0..=10_000).does(
        "instructions of each warp for a block (published: 4 M per launch of BS, 625 K warps)",
    ),
    Parameter::whole("window", 0, 0..=u64::MAX)
        .does("cycles of each profiling run, extrapolated; 0: to the end (as in the paper)"),
];

const EVEN: &str = "even";
const SATURATE: &str = "saturate";

/// Slate (IPDPS 2019). Kernels run as workers that pull tasks of several blocks in order.
/// The queue of a daemon has one kernel of each application at a time. The first kernel
/// runs with the first of the others that matches it by Table I, each on its own range of
/// SMs; without such a kernel it has all SMs. When a kernel arrives or ends, the kernels
/// that run are resized: all their workers retreat and are launched again.
///
/// Intensities are measured in a solo run without workers. Daemon and compiler take the
/// published parts of the application's time; what the paper does not print (levels, the
/// split, the cost of a relaunch) are parameters.
#[derive(Clone, Debug)]
pub(super) struct Slate {
    costs: Costs,
    cuts: Cuts,
    saturate: bool,
    window: Option<Cycle>,
    profiles: Vec<Profile>,
    forms: Vec<Persistent>,
    /// By application: the SMs that saturate its traffic, where the split needs them.
    enough: Vec<u32>,
    /// Applications whose next kernel waits, in order of arrival.
    queue: VecDeque<AppId>,
    /// The application on the lower SMs and the one on the upper; one without the other has
    /// all SMs.
    running: [Option<AppId>; 2],
}

impl Slate {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self {
            costs: Costs::of(settings),
            cuts: Cuts::of(settings),
            saturate: settings.word("split") == SATURATE,
            window: settings.window("window"),
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

    /// The numbers of SMs with which each application is profiled.
    fn tried(&self, facts: &Facts) -> Vec<u16> {
        if self.saturate && facts.apps.len() > 1 {
            return (1..=facts.sms).collect();
        }
        vec![facts.sms]
    }

    /// Queues an application's next kernel.
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

    /// Fills the two places with kernels of the queue.
    fn fill(&mut self) {
        if self.running == [None; 2] {
            self.running[0] = self.queue.pop_front();
        }
        let (runs, free) = match self.running {
            [Some(one), None] => (one, 1),
            [None, Some(one)] => (one, 0),
            [None, None] | [Some(_), Some(_)] => return,
        };
        let first = self.intensity(runs);
        let matches = |&app: &AppId| first.matches(self.intensity(app));
        if let Some(place) = self.queue.iter().position(matches) {
            self.running[free] = self.queue.remove(place);
        }
    }

    fn plan(&self, facts: &Facts) -> Result<Plan, LawBroken> {
        let sms = u32::from(facts.sms);
        // An application without an SM waits: on a machine of one SM all but the first.
        let (owners, first) = match self.running {
            [Some(one), Some(other)] if sms > 1 => {
                let enough = [one, other].map(|app| self.enough[app.index()]);
                let enough = self.saturate.then_some(enough);
                let between = [one, other].map(|app| self.intensity(app));
                (vec![one, other], divide(sms, enough, between))
            }
            [one, other] => (one.or(other).into_iter().collect(), sms),
        };
        let owns = |place: usize, sm: usize| (to_u32(sm) < first) == (place == 0);
        Plan::new(
            facts,
            PlanDraft {
                shares: shares::on_own_sms(facts, &owners, owns),
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
        match &self.running {
            [Some(one), Some(other)] => {
                let rest = u32::from(facts.sms) - first;
                let (one, other) = (name(one), name(other));
                format!("{one} has {first} SMs and {other} {rest}: they go together")
            }
            [Some(one), None] | [None, Some(one)] if self.queue.is_empty() => {
                format!("{} is alone", name(one))
            }
            [Some(one), None] | [None, Some(one)] => {
                let waits: Vec<String> = self.queue.iter().map(name).collect();
                format!("{} goes with none of those that wait: {}", name(one), waits.join(", "))
            }
            [None, None] => String::from("no kernel waits"),
        }
    }
}

impl Scheme for Slate {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        let probe = |app: AppId, sms: u16| {
            let draft = PlanDraft {
                shares: shares::on_own_sms(facts, &[app], |_, sm| sm < usize::from(sms)),
                reason: format!("alone on {sms} SMs, without workers"),
                ..PlanDraft::default()
            };
            shares::solo_probe(facts, app, self.window, draft)
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
        let first = shares::apps_at_start(facts);
        let now = first.first().map_or(0, |app| facts.apps[app.index()].arrival);
        if now > 0 {
            // None is active yet: the first that arrives will have all SMs.
            self.running[0] = first.first().copied();
            let plan = self.plan(facts);
            self.running = [None; 2];
            return plan;
        }
        first.into_iter().for_each(|app| self.enqueue(app));
        self.fill();
        self.plan(facts)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        match view.wake {
            Wake::Arrival(app) => self.enqueue(app),
            Wake::KernelEnd(app) => {
                if view.apps[app.index()].running.is_empty() {
                    self.dequeue(app);
                }
            }
            Wake::At(_)
            | Wake::KernelBegin(_)
            | Wake::AppEnd(_)
            | Wake::LastTaskStarted(_)
            | Wake::CtaDrained(_)
            | Wake::IpcShift(_) => {}
        }
        for app in shares::in_arrival_order(facts) {
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
enum Level {
    Low,
    Medium,
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

/// What a kernel does in a solo run, in the units of table II.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Profile {
    /// Single-precision operations.
    gflop_per_s: f64,
    /// Loads and stores of global memory as the SMs see them, not DRAM.
    gb_per_s: f64,
}

impl Profile {
    /// Sectors are counted at the L1, or at the L2 where the L1 caches no global data.
    fn of(run: &ProbeApp, facts: &Facts) -> Self {
        let seconds = float(run.cycles.max(1)) / (facts.core_mhz * 1e6);
        let bytes = run.l1_accesses.max(run.l2_accesses) * SECTOR_BYTES;
        Self { gflop_per_s: run.flops / seconds / 1e9, gb_per_s: float(bytes) / seconds / 1e9 }
    }
}

/// Where levels begin. The paper prints none: any cut between its benchmarks fits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cuts {
    /// Operations from which on arithmetic is medium, and high.
    gflop_per_s: [f64; 2],
    /// Traffic from which on memory is medium, and high.
    gb_per_s: [f64; 2],
}

impl Cuts {
    fn of(settings: &Settings) -> Self {
        Self {
            gflop_per_s: ["compute_medium", "compute_high"].map(|cut| settings.real(cut)),
            gb_per_s: ["memory_medium", "memory_high"].map(|cut| settings.real(cut)),
        }
    }

    fn intensity(&self, profile: &Profile) -> Intensity {
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

/// The class of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Intensity {
    compute: Level,
    memory: Level,
}

/// Table I: whether a kernel of the row, which runs, goes together with one of the column.
/// Rows and columns: memory low with arithmetic low, medium and high; memory medium; memory
/// high. It is not symmetric for high arithmetic against medium or high memory; the running
/// kernel is taken as the row (assumed).
const MATCHES: [[bool; 5]; 5] = [
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
    fn matches(self, candidate: Self) -> bool {
        MATCHES[self.place()][candidate.place()]
    }
}

impl fmt::Display for Intensity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} memory, {} arithmetic", self.memory, self.compute)
    }
}

/// What workers cost.
#[derive(Clone, Debug)]
struct Costs {
    form: Persistent,
    communication: f64,
    compilation: f64,
    relaunch_us: f64,
}

impl Costs {
    /// The instructions with which a worker arrives are counted in listing 1: six of the
    /// first thread, and three of each warp behind the barrier.
    fn of(settings: &Settings) -> Self {
        let form = Persistent {
            task_blocks: settings.small("task"),
            register_factor: 1.0,
            more_registers: settings.small("registers"),
            more_shared_bytes: settings.small("shared"),
            arrive: AddedCode {
                touches: Vec::new(),
                leader_instructions: 6,
                meets: true,
                instructions: 3,
            },
            task: AddedCode {
                touches: vec![Touch::Read(Word::Flag), Touch::Add(Word::Queue)],
                leader_instructions: settings.small("leader"),
                meets: true,
                instructions: settings.small("instructions"),
            },
            block_instructions: settings.small("block"),
            leave: AddedCode::default(),
            resize: Resize::Relaunch { cycles: 0 },
            compile_cycles: 0,
            call_cycles: 0,
        };
        Self {
            form,
            communication: settings.real("communication"),
            compilation: settings.real("compilation"),
            relaunch_us: settings.real("relaunch_us"),
        }
    }

    /// The form without the costs of the host.
    fn bare(&self, facts: &Facts) -> Persistent {
        let cycles = facts.cycles_in(self.relaunch_us * 1e-6);
        Persistent { resize: Resize::Relaunch { cycles }, ..self.form.clone() }
    }

    /// The form of an application's kernels. The host takes the published parts of its
    /// time, of which the solo run is the rest: messages in equal parts before each launch,
    /// compilation before the first.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "cycles are below 2^53 and not negative"
    )]
    fn form(&self, app: &AppFacts, solo: &ProbeApp, facts: &Facts) -> Persistent {
        let all: u64 = app.kernels.iter().map(|kernel| kernel.warp_instructions).sum();
        let ran = float(solo.warp_instructions.max(1));
        let kernels = float(solo.cycles) * (float(all) / ran).max(1.0);
        let whole = kernels / (1.0 - self.communication - self.compilation);
        let launches = float(to_u64(app.kernels.len().max(1)));
        Persistent {
            compile_cycles: (whole * self.compilation).round() as Cycle,
            call_cycles: (whole * self.communication / launches).round() as Cycle,
            ..self.bare(facts)
        }
    }
}

/// Part of the traffic on all SMs from which on fewer are enough.
const ENOUGH: f64 = 0.95;

/// The fewest SMs at which a kernel has nearly its highest traffic, by runs on 1, 2, ...
fn saturates(rows: &[ProbeResult]) -> u32 {
    let speed = |row: &ProbeResult| {
        row.apps.first().map_or(0.0, |app| {
            float(app.l1_accesses.max(app.l2_accesses)) / float(app.cycles.max(1))
        })
    };
    let most = rows.iter().map(speed).fold(0.0, f64::max);
    let first = rows.iter().position(|row| speed(row) >= ENOUGH * most);
    to_u32(first.map_or(rows.len(), |place| place + 1))
}

/// SMs of the first of two kernels, of `sms`. With `saturate` the kernel with more intensive
/// memory, the first of equals, has the SMs that saturate its traffic, at most all but one.
fn divide(sms: u32, saturate: Option<[u32; 2]>, [one, other]: [Intensity; 2]) -> u32 {
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
                let goes = published(one).matches(published(other));
                assert_eq!(goes, published(other).matches(published(one)), "{one} {other}");
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
