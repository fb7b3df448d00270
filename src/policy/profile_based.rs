//! As many SMs for each application as it uses in a solo run.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, Probe, ProbeApp, ProbeResult, View,
};
use gpumodel_core::units::{AppId, Cycle, to_u16, to_u64};

use super::shares::{self, FREED, FreedSms};
use super::solve::{float, proportion};
use super::{Parameter, Scheme, Settings};

/// What a user may set; ILP-SMRA prints no values for it.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::whole("step", 6, 1..=1024)
        .does("SMs between two runs alone; the last has every SM (assumed)"),
    Parameter::whole("window", 0, 0..=u64::MAX)
        .does("cycles of a run alone; 0: to its end (assumed)"),
    Parameter::real("enough", 0.95, 0.0..=1.0)
        .does("of the best performance: the fewest SMs that reach it are asked for (assumed)"),
    FREED,
];

/// Before the run, runs each application alone on ever more SMs; it needs the fewest with
/// which it is nearly as fast as with all. All SMs are divided in proportion to these needs
/// (Adriaens et al., HPCA 2012, as ILP-SMRA compares with it).
#[derive(Clone, Debug)]
pub(super) struct ProfileBased {
    step: u16,
    window: Option<Cycle>,
    enough: f64,
    freed: FreedSms,
    /// SMs that each application needs, by [`AppId`].
    needs: Vec<u64>,
    /// The applications between which the SMs are divided.
    apps: Vec<AppId>,
}

impl ProfileBased {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        let step = u16::try_from(settings.whole("step"));
        Box::new(Self {
            step: step.expect("the parameter is below 65 536"),
            window: settings.window("window"),
            enough: settings.real("enough"),
            freed: FreedSms::of(settings),
            needs: Vec::new(),
            apps: Vec::new(),
        })
    }

    /// The numbers of SMs of the solo runs; none where there is one application.
    fn tried(&self, facts: &Facts) -> Vec<u16> {
        if facts.apps.len() < 2 {
            return Vec::new();
        }
        let below = (1..).map_while(|times: u16| times.checked_mul(self.step));
        below.take_while(|&sms| sms < facts.sms).chain([facts.sms]).collect()
    }

    /// SMs that an application needs, by its solo runs.
    fn need(&self, tried: &[u16], rows: &[ProbeResult], facts: &Facts) -> u64 {
        let rows = rows.iter().map(|row| row.apps.first().map_or(0.0, performance));
        let performance: Vec<f64> = rows.collect();
        let best = performance.iter().copied().fold(0.0, f64::max);
        let enough = performance.iter().position(|&one| one >= self.enough * best);
        u64::from(enough.map_or(facts.sms, |place| tried[place]))
    }

    /// Divides the SMs.
    fn plan(&self, facts: &Facts) -> Result<Plan, LawBroken> {
        let needs: Vec<u64> = self.apps.iter().map(|app| self.needs[app.index()]).collect();
        let parts = proportion(u64::from(facts.sms), &needs);
        let first = |place: usize| parts[..place].iter().sum::<u64>();
        let owns = |place, sm| (first(place)..first(place + 1)).contains(&to_u64(sm));
        let shares = shares::on_own_sms(facts, &self.apps, owns);
        let words = |place: usize| {
            let name = &facts.apps[self.apps[place].index()].name;
            format!("{name} needs {} and has {}", needs[place], parts[place])
        };
        let each: Vec<String> = (0..self.apps.len()).map(words).collect();
        let reason = match self.apps.len() {
            1 => String::from("the only active application has every SM"),
            _ => format!("SMs by solo runs: {}", each.join(", ")),
        };
        let order = DispatchOrder::RoundRobin;
        Plan::new(facts, PlanDraft { shares, order, reason, ..PlanDraft::default() })
    }
}

/// Instructions per cycle: runs of the same work compare by it as by their times.
fn performance(row: &ProbeApp) -> f64 {
    float(row.warp_instructions) / float(row.cycles.max(1))
}

impl Scheme for ProfileBased {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        let probe = |app: AppId, sms: u16| {
            let shares = shares::on_own_sms(facts, &[app], |_, sm| sm < usize::from(sms));
            let (order, reason) = (DispatchOrder::RoundRobin, format!("alone on {sms} SMs"));
            let draft = PlanDraft { shares, order, reason, ..PlanDraft::default() };
            shares::solo_probe(facts, app, self.window, draft)
        };
        let tried = self.tried(facts);
        let apps = (0..facts.apps.len()).map(|index| AppId(to_u16(index)));
        let of = |app| tried.iter().map(move |&sms| (app, sms));
        apps.flat_map(of).map(|(app, sms)| probe(app, sms)).collect()
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let tried = self.tried(facts);
        let rows = probes.chunks(tried.len().max(1));
        self.needs = rows.map(|rows| self.need(&tried, rows, facts)).collect();
        // An application alone in the run is not profiled.
        self.needs.resize(facts.apps.len(), u64::from(facts.sms));
        self.apps = shares::apps_at_start(facts);
        self.apps.truncate(usize::from(facts.sms));
        self.plan(facts)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.apps = self.freed.owners(&self.apps, facts, view);
        self.plan(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{facts, view};
    use super::super::{Choice, Scheme};
    use gpumodel_core::contract::{Facts, Plan, Probe, ProbeApp, ProbeResult, Wake};
    use gpumodel_core::units::{AppId, to_u16};

    fn sms(plan: &Plan, apps: usize) -> Vec<usize> {
        let of = |app: usize| (0..16).filter(|&sm| plan.quota(AppId(to_u16(app)), sm) > 0).count();
        (0..apps).map(of).collect()
    }

    /// Each application is faster with every SM up to its own number.
    fn answers(probes: &[Probe], saturates: &[u64]) -> Vec<ProbeResult> {
        let answer = |probe: &Probe| {
            let app = probe.apps[0];
            let sms = (0..16).filter(|&sm| probe.plan.quota(app, sm) > 0).count() as u64;
            let cycles = 100_000 / sms.min(saturates[app.index()]);
            let row = ProbeApp { app, cycles, warp_instructions: 5000, ..ProbeApp::default() };
            ProbeResult { cycles, apps: vec![row] }
        };
        probes.iter().map(answer).collect()
    }

    fn started(text: &str, facts: &Facts, saturates: &[u64]) -> (Box<dyn Scheme>, Plan) {
        let mut scheme = Choice::parse(text).unwrap().make();
        let probes = scheme.probes(facts).unwrap();
        let plan = scheme.start(facts, &answers(&probes, saturates)).unwrap();
        (scheme, plan)
    }

    #[test]
    fn each_is_tried_alone_on_ever_more_sms() {
        let facts = facts(&["BLK", "IMG"]);
        let probes = Choice::parse("profile-based").unwrap().make().probes(&facts).unwrap();
        let tried: Vec<(u16, usize)> = probes
            .iter()
            .map(|probe| (probe.apps[0].0, sms(&probe.plan, 2).iter().sum()))
            .collect();
        assert_eq!(tried, [(0, 6), (0, 12), (0, 16), (1, 6), (1, 12), (1, 16)]);
        assert!(probes.iter().all(|probe| probe.apps.len() == 1 && probe.window.is_none()));
        let windows = Choice::parse("profile-based:window=5000:step=20").unwrap().make();
        let probes = windows.probes(&facts).unwrap();
        assert_eq!(probes.len(), 2, "every SM at once");
        assert!(probes.iter().all(|probe| probe.window == Some(5000)));
    }

    #[test]
    fn sms_are_divided_in_proportion_to_needs() {
        let facts = facts(&["BLK", "IMG"]);
        let (_, plan) = started("profile-based:step=1", &facts, &[4, 12]);
        assert_eq!(sms(&plan, 2), [4, 12], "as needed");
        // 16 and 6 of 22 are scaled to 16.
        let (_, plan) = started("profile-based:step=2", &facts, &[16, 6]);
        assert_eq!(sms(&plan, 2), [12, 4], "{}", plan.reason());
        assert!(plan.reason().contains("BLK needs 16 and has 12"), "{}", plan.reason());
        // 95 % of the best of 16 is reached with 16 alone, 70 % with 12.
        let (_, plan) = started("profile-based:step=4:enough=0.7", &facts, &[16, 4]);
        assert_eq!(sms(&plan, 2), [12, 4], "{}", plan.reason());
    }

    #[test]
    fn sms_of_an_ended_application_are_given_or_stay_idle() {
        let facts = facts(&["BLK", "IMG", "NN"]);
        for (text, expected) in
            [("profile-based:step=2", [0, 8, 8]), ("profile-based:step=2:freed=idle", [8, 4, 4])]
        {
            let (mut scheme, plan) = started(text, &facts, &[8, 4, 4]);
            assert_eq!(sms(&plan, 3), [8, 4, 4]);
            let mut seen = view(&facts, 1000, Wake::AppEnd(AppId(0)));
            (seen.apps[0].active, seen.apps[0].finished) = (false, true);
            assert_eq!(sms(&scheme.decide(&facts, &seen).unwrap(), 3), expected, "{text}");
        }
    }
}
