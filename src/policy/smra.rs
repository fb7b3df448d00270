//! Own SMs for each application, some of which move at run time.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, ProbeResult, View, Wake, WakeOn,
};
use gpumodel_core::units::{AppId, Cycle, to_usize};

use super::shares::{self, FREED, FreedSms};
use super::solve::float;
use super::spatial;
use super::{Parameter, Scheme, Settings};

/// What a user may set. The paper prints no values; these are those of the public simulator of
/// its first author (`srinupunyala/gpgpu-sim-edit`, 2017), of which nothing says that it made
/// the paper's figures.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::whole("first", 15_000, 100..=u64::MAX).does(
        "cycles until the first decision (assumed: the public simulator of the first author)",
    ),
    Parameter::whole("t_c", 30_000, 100..=u64::MAX)
        .does("T_C: cycles between two decisions (assumed, likewise)"),
    Parameter::real("ipc_thr", 100.0, 0.0..=1_000_000.0)
        .does("IPC_thr: thread instructions per cycle of an application (assumed, likewise)"),
    Parameter::real("bw_thr", 0.3, 0.0..=1.0)
        .does("BW_thr, of the peak bandwidth of the DRAM (assumed, likewise; its beta)"),
    Parameter::whole("n_r", 5, 1..=1024).does("n_r: SMs that move at a time (assumed, likewise)"),
    Parameter::whole("r_min", 10, 1..=1024)
        .does("R_min: SMs that an application keeps (assumed, likewise)"),
    Parameter::word("take_back", "off", &["off", "on"]).does(
        "SMs move only while the throughput rises, and back where it fell (published: lines 8 \
              and 24 of Algorithm 1; the public simulator does neither)",
    ),
    Parameter::whole("rest", 4, 0..=u64::MAX)
        .does("decisions without a move after one that was taken back (assumed)"),
    FREED,
];

/// SM reallocation of ILP-SMRA (Algorithm 1): all begin with as many SMs each. After `first`
/// cycles, then every `t_c`, an application scores 1 for low IPC, 2 for much bandwidth, 3 for
/// both, and `n_r` SMs go from the highest score to the lowest, by draining.
///
/// As printed (`take_back=on`) SMs move while the total throughput rises, and a move after which
/// it falls is taken back. The listing never measures the throughput again; here each decision
/// compares the throughput of the last period with that of the period before. When equal
/// nothing moves.
///
/// When an application ends, the SMs are divided evenly again; where its SMs stay idle
/// (`freed=idle`), it neither gives nor takes any, and the others continue with the SMs
/// that they have.
#[derive(Clone, Debug)]
pub(super) struct Smra {
    first: Cycle,
    period: Cycle,
    ipc_threshold: f64,
    bandwidth_threshold: f64,
    step: usize,
    least: usize,
    take_back: bool,
    rest: u64,
    freed: FreedSms,
    /// The applications between which the SMs are divided; the owner of an SM is a place in
    /// this list.
    apps: Vec<AppId>,
    /// The places of those that have not ended.
    running: Vec<usize>,
    owners: Vec<usize>,
    /// The owners before the last move, while it can be taken back.
    before: Option<Vec<usize>>,
    /// Throughput of the period before: T_p.
    last: f64,
    /// Decisions that pass before the next move.
    resting: u64,
}

impl Smra {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self {
            first: settings.whole("first"),
            period: settings.whole("t_c"),
            ipc_threshold: settings.real("ipc_thr"),
            bandwidth_threshold: settings.real("bw_thr"),
            step: to_usize(settings.whole("n_r")),
            least: to_usize(settings.whole("r_min")),
            take_back: settings.word("take_back") == "on",
            rest: settings.whole("rest"),
            freed: FreedSms::of(settings),
            apps: Vec::new(),
            running: Vec::new(),
            owners: Vec::new(),
            before: None,
            last: 0.0,
            resting: 0,
        })
    }

    /// Equal shares for these applications, of which nothing is measured yet.
    fn begin(&mut self, facts: &Facts, mut apps: Vec<AppId>) -> String {
        apps.truncate(usize::from(facts.sms));
        self.owners = shares::sm_owners(facts, apps.len());
        self.running = (0..apps.len()).collect();
        self.apps = apps;
        self.forget();
        spatial::words(facts, self.apps.len())
    }

    /// Drops the last move and throughput: they cannot be compared with the next.
    fn forget(&mut self) {
        (self.before, self.last, self.resting) = (None, 0.0, 0);
    }

    fn plan(&self, facts: &Facts, now: Cycle, reason: String) -> Result<Plan, LawBroken> {
        let owns = |place: usize, sm: usize| self.owners[sm] == place;
        let shares = shares::on_own_sms(facts, &self.apps, owns);
        let alone = self.running.len() < 2;
        let wait = if now < self.first { self.first - now } else { self.period };
        let wake = if alone { Vec::new() } else { vec![WakeOn::At(now + wait)] };
        let order = DispatchOrder::RoundRobin;
        Plan::new(facts, PlanDraft { shares, order, wake, reason, ..PlanDraft::default() })
    }

    /// The same applications own SMs. SMs may move when it is `due`, unless an application has
    /// ended meanwhile.
    fn proceed(&mut self, facts: &Facts, view: &View, due: bool) -> String {
        let ended = |place: &usize| view.apps[self.apps[*place].index()].finished;
        let running: Vec<usize> = (0..self.apps.len()).filter(|place| !ended(place)).collect();
        if due && running == self.running {
            return self.reallocate(facts, view);
        }
        self.running = running;
        self.forget();
        let count = self.running.len();
        format!("{count} of {} applications keep the SMs that they have", self.apps.len())
    }

    /// Moves SMs by the counters of the last period; returns why.
    fn reallocate(&mut self, facts: &Facts, view: &View) -> String {
        let now = throughput(view);
        let last = std::mem::replace(&mut self.last, now);
        if self.take_back
            && now < last
            && let Some(before) = self.before.take()
        {
            self.owners = before;
            (self.resting, self.last) = (self.rest, last);
            return format!("throughput fell from {last:.1} to {now:.1}: the move is taken back");
        }
        self.before = None;
        if self.resting > 0 {
            self.resting -= 1;
            // Moves begin again with a new throughput to compare with.
            self.last = if self.resting == 0 { 0.0 } else { self.last };
            return String::from("no move for some time after one that was taken back");
        }
        if self.take_back && now <= last {
            return format!("throughput does not rise ({last:.1} to {now:.1}): nothing moves");
        }
        let scores: Vec<u32> =
            (0..self.apps.len()).map(|place| self.score(place, facts, view)).collect();
        self.shift(facts, &scores)
    }

    fn score(&self, place: usize, facts: &Facts, view: &View) -> u32 {
        let app = &view.apps[self.apps[place].index()];
        let cycles = float(view.now - view.since).max(1.0);
        let low = float(app.thread_instructions) / cycles < self.ipc_threshold;
        let gb_per_s = float(app.dram_bytes) / cycles * facts.core_mhz / 1000.0;
        let much = gb_per_s > self.bandwidth_threshold * facts.peak_dram_gb_per_s;
        u32::from(low) + 2 * u32::from(much)
    }

    /// SMs that one application holds.
    fn held(&self, place: usize) -> usize {
        self.owners.iter().filter(|&&owner| owner == place).count()
    }

    /// Moves SMs from the highest score that can give some to the lowest.
    fn shift(&mut self, facts: &Facts, scores: &[u32]) -> String {
        let places = self.running.iter().copied();
        let gives = places.clone().filter(|&place| self.held(place) > self.least);
        let from = gives.min_by_key(|&place| (std::cmp::Reverse(scores[place]), place));
        let to = places.min_by_key(|&place| (scores[place], place));
        let (Some(from), Some(to)) = (from, to) else {
            return String::from("no application has more SMs than r_min");
        };
        if scores[from] <= scores[to] {
            return format!(
                "scores {scores:?}: no application with a higher score has SMs to give"
            );
        }
        let count = self.step.min(self.held(from) - self.least);
        self.before = Some(self.owners.clone());
        let owned = self.owners.iter_mut().rev().filter(|owner| **owner == from);
        owned.take(count).for_each(|owner| *owner = to);
        let name = |place: usize| &facts.apps[self.apps[place].index()].name;
        format!("scores {scores:?}: {count} SMs go from {} to {}", name(from), name(to))
    }
}

impl Scheme for Smra {
    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let reason = self.begin(facts, shares::apps_at_start(facts));
        self.plan(facts, 0, reason)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        let apps = self.freed.owners(&self.apps, facts, view);
        let due = matches!(view.wake, Wake::At(_));
        let reason = if apps == self.apps && (due || self.freed == FreedSms::Idle) {
            self.proceed(facts, view, due)
        } else {
            self.begin(facts, apps)
        };
        self.plan(facts, view.now, reason)
    }
}

/// Thread instructions of all applications per cycle since the last decision.
fn throughput(view: &View) -> f64 {
    let threads: u64 = view.apps.iter().map(|app| app.thread_instructions).sum();
    float(threads) / float(view.now - view.since).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::Choice;
    use super::super::fixture::{facts, view};
    use gpumodel_core::contract::{Facts, Plan, View, Wake, WakeOn};
    use gpumodel_core::units::{AppId, Cycle, to_u16};

    fn sms(plan: &Plan, apps: usize) -> Vec<usize> {
        let of = |app: usize| (0..16).filter(|&sm| plan.quota(AppId(to_u16(app)), sm) > 0).count();
        (0..apps).map(of).collect()
    }

    /// The view at cycle `now` after 20 000 cycles with these thread instructions per cycle
    /// and gigabytes per second.
    fn period(facts: &Facts, now: Cycle, apps: &[(u64, u64)]) -> View {
        let mut seen = view(facts, now, Wake::At(now));
        seen.since = now - 20_000;
        for (app, &(ipc, gb_per_s)) in seen.apps.iter_mut().zip(apps) {
            app.thread_instructions = ipc * 20_000;
            app.dram_bytes = gb_per_s * 20_000 * 1000 / 1400;
        }
        seen
    }

    #[test]
    fn sms_go_from_memory_bound_to_compute_bound_while_that_helps() {
        let facts = facts(&["BLK", "IMG"]);
        let mut smra = Choice::parse("smra:n_r=3:r_min=4:rest=2:take_back=on").unwrap().make();
        assert_eq!(sms(&smra.start(&facts, &[]).unwrap(), 2), [8, 8]);
        let mut then = |now, ipc: u64, expected: [usize; 2]| {
            // BLK: low IPC and 100 of 177 GB/s; IMG computes.
            let plan = smra.decide(&facts, &period(&facts, now, &[(60, 100), (ipc, 1)])).unwrap();
            assert_eq!(sms(&plan, 2), expected, "{}", plan.reason());
        };
        then(20_000, 300, [5, 11]);
        then(40_000, 340, [4, 12]);
        then(60_000, 350, [4, 12]);
        then(80_000, 350, [4, 12]);
    }

    #[test]
    fn a_move_that_costs_throughput_is_taken_back_and_tried_again_later() {
        let facts = facts(&["BLK", "IMG"]);
        let mut smra = Choice::parse("smra:n_r=2:r_min=2:rest=2:take_back=on").unwrap().make();
        smra.start(&facts, &[]).unwrap();
        let mut seen = Vec::new();
        for (number, ipc) in [300, 280, 300, 300, 300, 320].into_iter().enumerate() {
            let now = 20_000 * (number as u64 + 1);
            let plan = smra.decide(&facts, &period(&facts, now, &[(60, 100), (ipc, 1)])).unwrap();
            seen.push(sms(&plan, 2)[0]);
        }
        assert_eq!(seen, [6, 8, 8, 8, 6, 4]);
    }

    #[test]
    fn where_sms_stay_idle_an_ended_application_neither_gives_nor_takes() {
        let facts = facts(&["BLK", "IMG", "NN"]);
        let mut smra = Choice::parse("smra:n_r=2:r_min=2:freed=idle").unwrap().make();
        assert_eq!(sms(&smra.start(&facts, &[]).unwrap(), 3), [6, 5, 5]);
        let speeds = [(60, 100), (300, 1), (60, 1)];
        let plan = smra.decide(&facts, &period(&facts, 20_000, &speeds)).unwrap();
        assert_eq!(sms(&plan, 3), [4, 7, 5]);
        // IMG, to which SMs went, ends: they stay where they are.
        let end = |now, wake, nn| {
            let mut seen = period(&facts, now, &[(60, 100), (0, 0), nn]);
            (seen.wake, seen.apps[1].active, seen.apps[1].finished) = (wake, false, true);
            seen
        };
        let plan = smra.decide(&facts, &end(30_000, Wake::AppEnd(AppId(1)), (60, 1))).unwrap();
        assert_eq!(sms(&plan, 3), [4, 7, 5], "{}", plan.reason());
        // Its end costs throughput, which takes no move back; NN computes now.
        let plan = smra.decide(&facts, &end(50_000, Wake::At(50_000), (200, 1))).unwrap();
        assert_eq!(sms(&plan, 3), [2, 7, 7], "{}", plan.reason());
        let mut last = end(60_000, Wake::AppEnd(AppId(0)), (200, 1));
        (last.apps[0].active, last.apps[0].finished) = (false, true);
        let plan = smra.decide(&facts, &last).unwrap();
        assert_eq!(sms(&plan, 3), [2, 7, 7]);
        assert!(plan.wake().is_empty(), "one application is left");
    }

    #[test]
    fn without_take_back_sms_move_whatever_becomes_of_the_throughput() {
        let facts = facts(&["BLK", "IMG"]);
        let mut smra = Choice::parse("smra:n_r=2:r_min=4").unwrap().make();
        assert_eq!(smra.start(&facts, &[]).unwrap().wake(), [WakeOn::At(15_000)]);
        let mut seen = Vec::new();
        for (number, ipc) in [300, 280, 260].into_iter().enumerate() {
            let now = 15_000 + 30_000 * (number as u64);
            let plan = smra.decide(&facts, &period(&facts, now + 20_000, &[(60, 100), (ipc, 1)]));
            seen.push(sms(&plan.unwrap(), 2)[0]);
        }
        assert_eq!(seen, [6, 4, 4], "down to r_min");
    }

    #[test]
    fn equal_scores_move_nothing_and_an_end_gives_everything_to_the_other() {
        let facts = facts(&["BLK", "LBM"]);
        let mut smra = Choice::parse("smra").unwrap().make();
        smra.start(&facts, &[]).unwrap();
        let plan = smra.decide(&facts, &period(&facts, 20_000, &[(60, 80), (60, 80)])).unwrap();
        assert_eq!(sms(&plan, 2), [8, 8]);
        let mut seen = view(&facts, 30_000, Wake::AppEnd(AppId(0)));
        (seen.apps[0].active, seen.apps[0].finished) = (false, true);
        assert_eq!(sms(&smra.decide(&facts, &seen).unwrap(), 2), [0, 16]);
    }
}
