//! The profiling phase, in which SMs run different numbers of CTAs (section IV.A, Fig. 4), and
//! the curve of a kernel by their counters (eq. 3 and 4).

use std::collections::BTreeMap;

use gpumodel_core::contract::{self, DispatchOrder, Facts, PlanDraft, Share, View, WakeOn};
use gpumodel_core::units::{AppId, Cycle, to_u32};

use super::super::shares;
use super::super::solve::{self, Sample, float};
use super::{Rules, Scaling};

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
/// its CTAs rise from 1. Where a subject has fewer SMs than counts, it takes several rounds;
/// counts only rise, so no CTA has to drain between rounds. Where it has more, counts repeat.
/// Other active applications keep their quotas, but the CTAs of the subjects go first.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    subjects: Vec<Subject>,
    /// All active applications, in arrival order.
    active_apps: Vec<AppId>,
    /// For each SM the place of its subject, and its place among the SMs of the subject.
    layout: Vec<(usize, u32)>,
    round: u32,
    /// When the current warm-up or window ends.
    until: Cycle,
    /// `None` while it warms up.
    window: Option<Window>,
    /// The finished samplings.
    pub(super) samplings: Vec<Vec<Seen>>,
}

/// The current sampling.
#[derive(Clone, Debug)]
struct Window {
    begin: Cycle,
    /// For each SM its subject's CTAs at the beginning.
    ctas: Vec<u32>,
    instructions: Vec<f64>,
    memory_slots: Vec<f64>,
}

impl Profile {
    /// Begins at `now` with at least one of `subjects`; with more subjects than SMs the last
    /// ones wait for another phase.
    pub(super) fn new(
        facts: &Facts,
        mut subjects: Vec<Subject>,
        active_apps: Vec<AppId>,
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
        Self { subjects, active_apps, layout, round: 0, until, window: None, samplings: Vec::new() }
    }

    /// The applications that were active when it began.
    pub(super) fn active_apps(&self) -> &[AppId] {
        &self.active_apps
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

    /// The current plan; `held` are the shares of all before the phase.
    pub(super) fn draft(&self, facts: &Facts, held: &[Share]) -> PlanDraft {
        let apps: Vec<AppId> = self.apps().collect();
        let mut shares = shares::on_each_sm(facts, &apps, |place, sm| {
            if self.layout[sm].0 == place { self.count(sm) } else { 0 }
        });
        let others = self.active_apps.iter().filter(|app| !apps.contains(app));
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

    /// Adds the counters of a view, and continues at the end of the warm-up or window; true when
    /// all samplings are complete.
    pub(super) fn advance(&mut self, facts: &Facts, view: &View, rules: &Rules) -> bool {
        if let Some(window) = &mut self.window {
            let (subjects, layout) = (&self.subjects, &self.layout);
            window.add(view, rules.blocked, |sm| subjects[layout[sm].0].app);
        }
        if view.now < self.until {
            return false;
        }
        let Some(window) = self.window.take() else {
            self.after_warmup(view, rules);
            return false;
        };
        self.samplings.push(self.seen(facts, view, &window));
        self.round += 1;
        self.until = view.now + rules.settle;
        self.round >= self.rounds()
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

    /// The samples of the SMs. An SM counts with the CTAs that it really held, the mean of both
    /// ends of the window: a grid may be too small for its quota, and CTAs of an earlier plan
    /// may still run.
    fn seen(&self, facts: &Facts, view: &View, window: &Window) -> Vec<Seen> {
        let end = self.resident(view);
        let cycles = float((view.now - window.begin).max(1));
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
    /// Adds what the subject of each SM did since the last decision; with `blocked`, slots in
    /// which memory blocks the load/store unit wait for memory too.
    fn add(&mut self, view: &View, blocked: bool, subject: impl Fn(usize) -> AppId) {
        for sm in 0..self.instructions.len() {
            let app = &view.apps[subject(sm).index()];
            self.instructions[sm] += app.warp_instructions_by_sm.get(sm).copied().unwrap_or(0.0);
            self.memory_slots[sm] += app.memory_stall_slots_by_sm.get(sm).copied().unwrap_or(0.0);
            if blocked {
                let slots = app.load_store_stall_slots_by_sm.get(sm);
                self.memory_slots[sm] += slots.copied().unwrap_or(0.0);
            }
        }
    }
}

/// One SM during one sampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) app: AppId,
    /// CTAs that it held.
    pub(super) ctas: u32,
    /// Warp instructions per cycle.
    pub(super) ipc: f64,
    /// Share of scheduler slots lost to long memory latency, 0 to 1 (phi).
    pub(super) memory_stalls: f64,
}

/// The speeds of a kernel with 1, 2, ... CTAs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KernelCurve {
    /// As sampled.
    ipc: Vec<Option<f64>>,
    /// As estimated for all SMs with that many CTAs.
    scaled: Vec<Option<f64>>,
}

/// The curves of `apps` from all SMs of all samplings; each sampling by itself has
/// its mean number of CTAs per SM, over all of its SMs (eq. 4).
pub(super) fn curves(samplings: &[Vec<Seen>], scaling: Scaling) -> BTreeMap<AppId, KernelCurve> {
    let mut sums: BTreeMap<AppId, BTreeMap<u32, (f64, f64, f64)>> = BTreeMap::new();
    for sampling in samplings {
        let held: Vec<&Seen> = sampling.iter().filter(|seen| seen.ctas > 0).collect();
        let mean = mean(&held);
        for seen in held {
            let factor = scaling.factor(seen.ctas, mean, seen.memory_stalls);
            let sum = sums.entry(seen.app).or_default().entry(seen.ctas).or_default();
            *sum = (sum.0 + seen.ipc, sum.1 + seen.ipc * factor, sum.2 + 1.0);
        }
    }
    sums.into_iter().map(|(app, counts)| (app, KernelCurve::mean(&counts))).collect()
}

/// CTAs per SM.
fn mean(held: &[&Seen]) -> f64 {
    let count = held.iter().map(|_| 1.0).sum::<f64>();
    held.iter().map(|seen| f64::from(seen.ctas)).sum::<f64>() / count
}

impl KernelCurve {
    /// From the sums of sampled and scaled speeds and the number of samples.
    fn mean(counts: &BTreeMap<u32, (f64, f64, f64)>) -> Self {
        let most = counts.last_key_value().map_or(0, |(&most, _)| most);
        let of = |part: &dyn Fn(&(f64, f64, f64)) -> f64| {
            (1..=most).map(|ctas| counts.get(&ctas).map(|sum| part(sum) / sum.2)).collect()
        };
        Self { ipc: of(&|sum| sum.0), scaled: of(&|sum| sum.1) }
    }

    /// From speeds that need no scaling.
    pub(super) fn unscaled(ipc: Vec<Option<f64>>) -> Self {
        Self { scaled: ipc.clone(), ipc }
    }

    /// The curve for the solver; `None` without samples. Where one CTA was not sampled, its
    /// speed is that of the fewest, divided by their number: splits begin with one.
    pub(super) fn of_solver(&self) -> Option<solve::Curve> {
        let all = (1..).zip(&self.scaled);
        let mut samples: Vec<Sample> =
            all.filter_map(|(ctas, speed)| speed.map(|speed| Sample { ctas, speed })).collect();
        let first = *samples.first()?;
        if first.ctas > 1 {
            samples.insert(0, Sample { ctas: 1, speed: first.speed / f64::from(first.ctas) });
        }
        solve::Curve::new(&samples).ok()
    }

    /// The curve for a plan.
    pub(super) fn of_plan(&self, app: AppId, chosen: u32) -> contract::Curve {
        let best = self.scaled.iter().flatten().fold(0.0_f64, |best, &speed| best.max(speed));
        let against = |speed: &f64| if best > 0.0 { speed / best } else { 0.0 };
        let normalized = self.scaled.iter().map(|speed| speed.as_ref().map(against)).collect();
        contract::Curve { app, ipc: self.ipc.clone(), normalized, chosen }
    }
}

#[cfg(test)]
mod tests {
    use super::{KernelCurve, Scaling, Seen, curves};
    use gpumodel_core::units::AppId;

    fn seen(ctas: u32, ipc: f64, memory_stalls: f64) -> Seen {
        Seen { app: AppId(0), ctas, ipc, memory_stalls }
    }

    fn close(found: &[Option<f64>], expected: &[f64]) {
        let found: Vec<f64> = found.iter().map(|speed| speed.unwrap()).collect();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
        }
    }

    #[test]
    fn an_sm_with_fewer_ctas_than_the_mean_had_more_bandwidth() {
        // CTA_avg = 2: psi = -1/2, 0, 1/2.
        let sampling = [vec![seen(1, 1.0, 1.0), seen(2, 1.0, 1.0), seen(3, 1.0, 1.0)]];
        close(&curves(&sampling, Scaling::Printed)[&AppId(0)].scaled, &[0.5, 1.0, 1.5]);
        close(&curves(&sampling, Scaling::Off)[&AppId(0)].scaled, &[1.0, 1.0, 1.0]);
        let inverse = &curves(&sampling, Scaling::Inverse)[&AppId(0)].scaled;
        close(inverse, &[2.0, 1.0, 2.0 / 3.0]);
    }

    #[test]
    fn without_memory_stalls_nothing_is_scaled() {
        let sampling = vec![seen(1, 1.0, 0.0), seen(3, 2.0, 0.5)];
        close(
            &curves(&[sampling.clone(), vec![seen(2, 1.5, 1.0)]], Scaling::Printed)[&AppId(0)]
                .scaled,
            &[1.0, 1.5, 2.5],
        );
        close(
            &curves(&[sampling, vec![seen(2, 1.5, 1.0)]], Scaling::Printed)[&AppId(0)].ipc,
            &[1.0, 1.5, 2.0],
        );
    }

    #[test]
    fn the_mean_is_over_the_sms_of_all_kernels() {
        let other = Seen { app: AppId(1), ..seen(7, 1.0, 0.0) };
        let found = curves(&[vec![seen(1, 1.0, 1.0), other]], Scaling::Printed);
        close(&found[&AppId(0)].scaled, &[0.25]);
        assert_eq!(found[&AppId(1)].scaled.len(), 7);
    }

    #[test]
    fn equal_counts_are_averaged_and_gaps_stay_gaps() {
        let known = &curves(
            &[vec![seen(2, 1.0, 0.0), seen(2, 2.0, 0.0), seen(0, 9.0, 0.0)]],
            Scaling::Printed,
        );
        assert_eq!(known[&AppId(0)].ipc, [None, Some(1.5)]);
        let curve = known[&AppId(0)].of_solver().unwrap();
        assert_eq!(curve.samples()[0].speed, 0.75, "one CTA as half of two");
        let evidence = known[&AppId(0)].of_plan(AppId(0), 2);
        assert_eq!(evidence.normalized, [None, Some(1.0)]);
        assert_eq!(KernelCurve::default().of_solver(), None);
    }
}
