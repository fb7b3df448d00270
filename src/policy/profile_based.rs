//! To each application as many SMs as it makes use of when it is alone.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, Plan, PlanDraft, Probe, ProbeApp, ProbeResult, View,
};
use gpumodel_core::units::{AppId, Cycle, to_u16, to_u64};

use super::active_apps::{FREED, FreedSms};
use super::solve::proportion;
use super::{Kind, Parameter, Scheme, Settings, active_apps, shares};

/// What a user may set; ILP-SMRA prints no values for it.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "step",
        kind: Kind::Whole { default: 6, least: 1, most: 1024 },
        summary: "SMs between two runs alone; the last has every SM (assumed)",
    },
    Parameter {
        name: "window",
        kind: Kind::Whole { default: 0, least: 0, most: u64::MAX },
        summary: "cycles of a run alone; 0: to its end (assumed)",
    },
    Parameter {
        name: "enough",
        kind: Kind::Real { default: 0.95, least: 0.0, most: 1.0 },
        summary: "of the best performance: the fewest SMs that reach it are asked for (assumed)",
    },
    FREED,
];

/// Runs each application alone on ever more SMs before anything else; the fewest with
/// which it is nearly as fast as it gets are what it asks for. The machine is divided
/// in proportion to what is asked for, so that every SM belongs to somebody (Adriaens
/// et al., HPCA 2012, as ILP-SMRA compares with it).
#[derive(Clone, Debug)]
pub struct ProfileBased {
    step: u16,
    window: Option<Cycle>,
    enough: f64,
    freed: FreedSms,
    /// SMs that each application asks for, by [`AppId`].
    wants: Vec<u64>,
    /// Between whom the SMs are divided.
    apps: Vec<AppId>,
}

impl ProfileBased {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        let window = settings.whole("window");
        let step = u16::try_from(settings.whole("step"));
        Box::new(Self {
            step: step.expect("the table allows no more than a u16 holds"),
            window: (window > 0).then_some(window),
            enough: settings.real("enough"),
            freed: FreedSms::of(settings),
            wants: Vec::new(),
            apps: Vec::new(),
        })
    }

    /// The SMs with which an application is tried; nothing where it is the only one.
    fn tried(&self, facts: &Facts) -> Vec<u16> {
        if facts.apps.len() < 2 {
            return Vec::new();
        }
        let below = (1..).map_while(|times: u16| times.checked_mul(self.step));
        below.take_while(|&sms| sms < facts.sms).chain([facts.sms]).collect()
    }

    /// SMs that one asks for, by what it did with each number of them.
    fn asked(&self, tried: &[u16], rows: &[ProbeResult], facts: &Facts) -> u64 {
        let rows = rows.iter().map(|row| row.apps.first().map_or(0.0, performance));
        let performance: Vec<f64> = rows.collect();
        let best = performance.iter().copied().fold(0.0, f64::max);
        let enough = performance.iter().position(|&one| one >= self.enough * best);
        u64::from(enough.map_or(facts.sms, |place| tried[place]))
    }

    /// Divides the SMs between those that hold some.
    fn plan(&self, facts: &Facts) -> Result<Plan, LawBroken> {
        let asked: Vec<u64> = self.apps.iter().map(|app| self.wants[app.index()]).collect();
        let parts = proportion(u64::from(facts.sms), &asked);
        let mut last = 0;
        let ends: Vec<u64> = parts
            .iter()
            .map(|part| {
                last += part;
                last
            })
            .collect();
        let full = facts.max_ctas_per_sm;
        let owns = |place: usize, sm: u64| (ends[place] - parts[place]..ends[place]).contains(&sm);
        let quota = |place: usize, sm: usize| if owns(place, to_u64(sm)) { full } else { 0 };
        let shares = shares::on_each_sm(facts, &self.apps, quota);
        let words = |place: usize| {
            let name = &facts.apps[self.apps[place].index()].name;
            format!("{name} asks for {} and has {}", asked[place], parts[place])
        };
        let each: Vec<String> = (0..self.apps.len()).map(words).collect();
        let reason = match self.apps.len() {
            1 => String::from("the only active application has every SM"),
            _ => format!("SMs by runs alone: {}", each.join(", ")),
        };
        let order = DispatchOrder::RoundRobin;
        Plan::new(facts, PlanDraft { shares, order, reason, ..PlanDraft::default() })
    }
}

/// Instructions per cycle, by which two runs of the same work compare as their times.
fn performance(row: &ProbeApp) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    let float = |count: u64| count as f64;
    float(row.warp_instructions) / float(row.cycles.max(1))
}

impl Scheme for ProfileBased {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        let full = facts.max_ctas_per_sm;
        let probe = |app: AppId, sms: u16| {
            let quota = |_, sm| if sm < usize::from(sms) { full } else { 0 };
            let shares = shares::on_each_sm(facts, &[app], quota);
            let reason = format!("alone on {sms} SMs");
            let order = DispatchOrder::RoundRobin;
            let draft = PlanDraft { shares, order, reason, ..PlanDraft::default() };
            let plan = Plan::new(facts, draft)?;
            Ok(Probe { apps: vec![app], plan, window: self.window, race: false })
        };
        let tried = self.tried(facts);
        let apps = (0..facts.apps.len()).map(|index| AppId(to_u16(index)));
        let of = |app| tried.iter().map(move |&sms| (app, sms));
        apps.flat_map(of).map(|(app, sms)| probe(app, sms)).collect()
    }

    fn start(&mut self, facts: &Facts, probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let tried = self.tried(facts);
        let rows = probes.chunks(tried.len().max(1));
        self.wants = rows.map(|rows| self.asked(&tried, rows, facts)).collect();
        // Who is alone was not asked.
        self.wants.resize(facts.apps.len(), u64::from(facts.sms));
        self.apps = active_apps::at_start(facts);
        self.apps.truncate(usize::from(facts.sms));
        self.plan(facts)
    }

    fn decide(&mut self, facts: &Facts, view: &View) -> Result<Plan, LawBroken> {
        self.apps = self.freed.holders(&self.apps, facts, view);
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

    /// Each application is faster with every SM up to a number of its own.
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
    fn who_needs_few_sms_leaves_more_to_who_needs_many() {
        let facts = facts(&["BLK", "IMG"]);
        let (_, plan) = started("profile-based:step=1", &facts, &[4, 12]);
        assert_eq!(sms(&plan, 2), [4, 12], "as asked for");
        // 16 and 6 of 22 are scaled to 16.
        let (_, plan) = started("profile-based:step=2", &facts, &[16, 6]);
        assert_eq!(sms(&plan, 2), [12, 4], "{}", plan.reason());
        assert!(plan.reason().contains("BLK asks for 16 and has 12"), "{}", plan.reason());
        // 95 % of the best of 16 is reached with 16 alone, 70 % with 12.
        let (_, plan) = started("profile-based:step=4:enough=0.7", &facts, &[16, 4]);
        assert_eq!(sms(&plan, 2), [12, 4], "{}", plan.reason());
    }

    #[test]
    fn sms_of_who_ends_are_given_or_stay_idle() {
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
