//! The profiling phase: SMs run different numbers of CTAs (section IV.A, Fig. 4).

use gpumodel_core::contract::{DispatchOrder, Facts, PlanDraft, Share, View, WakeOn};
use gpumodel_core::units::{AppId, Cycle, to_u32};

use super::super::shares;
use super::rules::Rules;
use super::samples::Seen;

/// A kernel to be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) app: AppId,
    /// CTAs of it that one SM holds.
    pub(super) most: u32,
}

/// One profiling phase.
///
/// The SMs are divided evenly between the subjects. On the SMs of one, counts of
/// its CTAs rise from 1. Where a subject has fewer SMs than counts, it takes
/// several rounds; counts only rise, so nothing has to drain between rounds. Where
/// it has more, counts repeat. Others that are there are held back: they keep
/// their quotas, but the subjects go first.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    subjects: Vec<Subject>,
    /// Everybody there, in arrival order.
    present: Vec<AppId>,
    /// For each SM the place of its subject, and its place among that one's SMs.
    layout: Vec<(usize, u32)>,
    round: u32,
    /// When the present span ends.
    until: Cycle,
    /// `None` while it warms up.
    window: Option<Window>,
    /// The finished samplings.
    pub(super) samplings: Vec<Vec<Seen>>,
}

/// A sampling that goes on.
#[derive(Clone, Debug)]
struct Window {
    begin: Cycle,
    /// For each SM its subject's CTAs at the beginning.
    ctas: Vec<u32>,
    instructions: Vec<f64>,
    memory_slots: Vec<f64>,
}

/// What follows from a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The phase goes on.
    More,
    /// All samplings are there.
    Done,
}

impl Profile {
    /// Begins at `now` with at least one of `subjects`; with more subjects than
    /// SMs the last ones are left for another phase.
    pub(super) fn new(
        facts: &Facts,
        mut subjects: Vec<Subject>,
        present: Vec<AppId>,
        now: Cycle,
        rules: &Rules,
    ) -> Self {
        subjects.truncate(usize::from(facts.sms));
        let owners = shares::sm_owners(facts, subjects.len());
        let mut taken = vec![0; subjects.len()];
        let place = |owner: usize| {
            taken[owner] += 1;
            (owner, taken[owner] - 1)
        };
        let layout = owners.into_iter().map(place).collect();
        let until = now + rules.warmup;
        Self { subjects, present, layout, round: 0, until, window: None, samplings: Vec::new() }
    }

    /// Who was there when it began.
    pub(super) fn present(&self) -> &[AppId] {
        &self.present
    }

    /// The subjects, as applications.
    pub(super) fn apps(&self) -> impl Iterator<Item = AppId> {
        self.subjects.iter().map(|subject| subject.app)
    }

    /// SMs of a subject.
    fn sms(&self, subject: usize) -> u32 {
        to_u32(self.layout.iter().filter(|&&(owner, _)| owner == subject).count())
    }

    /// CTAs that the subject of an SM may have there in this round.
    fn count(&self, sm: usize) -> u32 {
        let (owner, place) = self.layout[sm];
        let (most, sms) = (self.subjects[owner].most.max(1), self.sms(owner));
        if sms >= most { place % most + 1 } else { (self.round * sms + place + 1).min(most) }
    }

    /// Rounds until every subject has had every count.
    fn rounds(&self) -> u32 {
        let of = |(place, subject): (usize, &Subject)| subject.most.div_ceil(self.sms(place));
        self.subjects.iter().enumerate().map(of).max().unwrap_or(1).max(1)
    }

    /// The plan of the present span; `held` are the shares of everybody before.
    pub(super) fn draft(&self, facts: &Facts, held: &[Share]) -> PlanDraft {
        let apps: Vec<AppId> = self.apps().collect();
        let mut shares = shares::on_each_sm(facts, &apps, |place, sm| {
            if self.layout[sm].0 == place { self.count(sm) } else { 0 }
        });
        let others = self.present.iter().filter(|app| !apps.contains(app));
        let mut order = apps.clone();
        for app in others {
            shares[app.index()] = held.get(app.index()).cloned().unwrap_or(Share::Waiting);
            order.push(*app);
        }
        let names: Vec<&str> =
            apps.iter().map(|app| facts.apps[app.index()].name.as_str()).collect();
        let doing = if self.window.is_some() { "samples" } else { "warms up to sample" };
        let reason = format!("{doing} {} with 1, 2, ... CTAs on different SMs", names.join(", "));
        let order = DispatchOrder::Priority(order);
        let wake = vec![WakeOn::At(self.until)];
        PlanDraft { shares, order, wake, reason, ..PlanDraft::default() }
    }

    /// Takes the counters of a view, and goes on when the span is over.
    pub(super) fn advance(&mut self, facts: &Facts, view: &View, rules: &Rules) -> Progress {
        if let Some(window) = &mut self.window {
            let (subjects, layout) = (&self.subjects, &self.layout);
            window.add(view, |sm| subjects[layout[sm].0].app);
        }
        if view.now < self.until {
            return Progress::More;
        }
        let Some(window) = self.window.take() else {
            self.after_warmup(view, rules);
            return Progress::More;
        };
        self.samplings.push(self.seen(facts, view, &window));
        self.round += 1;
        self.until = view.now + rules.settle;
        if self.round < self.rounds() { Progress::More } else { Progress::Done }
    }

    /// Sampling begins when every subject has begun a launch.
    fn after_warmup(&mut self, view: &View, rules: &Rules) {
        let begun = |app: AppId| !view.apps[app.index()].running.is_empty();
        if !self.apps().all(begun) {
            self.until = view.now + rules.warmup.max(rules.window);
            return;
        }
        self.until = view.now + rules.window;
        let sms = self.layout.len();
        self.window = Some(Window {
            begin: view.now,
            ctas: self.resident(view),
            instructions: vec![0.0; sms],
            memory_slots: vec![0.0; sms],
        });
    }

    /// CTAs of its subject on each SM.
    fn resident(&self, view: &View) -> Vec<u32> {
        let on = |(sm, &(owner, _)): (usize, &(usize, u32))| {
            let app = &view.apps[self.subjects[owner].app.index()];
            app.ctas_by_sm.get(sm).copied().unwrap_or(0)
        };
        self.layout.iter().enumerate().map(on).collect()
    }

    /// What the SMs have shown. An SM counts with the CTAs that it really held, the
    /// mean of both ends of the window: a grid may be too small for its quota, and
    /// CTAs of an earlier plan may still have been ending.
    fn seen(&self, facts: &Facts, view: &View, window: &Window) -> Vec<Seen> {
        let end = self.resident(view);
        #[allow(clippy::cast_precision_loss, reason = "a window is below 2^53 cycles")]
        let cycles = (view.now - window.begin).max(1) as f64;
        let slots = cycles * f64::from(facts.schedulers_per_sm);
        let of = |(sm, &(owner, _)): (usize, &(usize, u32))| Seen {
            app: self.subjects[owner].app,
            ctas: (window.ctas[sm] + end[sm]).div_ceil(2),
            ipc: window.instructions[sm] / cycles,
            memory_stalls: window.memory_slots[sm] / slots,
        };
        self.layout.iter().enumerate().map(of).collect()
    }
}

impl Window {
    /// Adds what the subject of each SM did since the last decision.
    fn add(&mut self, view: &View, subject: impl Fn(usize) -> AppId) {
        for sm in 0..self.instructions.len() {
            let app = &view.apps[subject(sm).index()];
            self.instructions[sm] += app.warp_instructions_by_sm.get(sm).copied().unwrap_or(0.0);
            self.memory_slots[sm] += app.memory_stall_slots_by_sm.get(sm).copied().unwrap_or(0.0);
        }
    }
}
