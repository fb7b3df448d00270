//! Groups by an integer program over classes.

use std::collections::VecDeque;

use gpumodel_core::contract::{
    Classified, Findings, Group, GroupProbe, GroupProbeResult, Groups, PatternUse, QueueFacts,
    QueueView,
};
use gpumodel_core::units::{JobId, to_u32, to_usize};

use super::super::solve::{
    Engine, Matching, Pattern, count_patterns, matching, patterns, with_idle,
};
use super::super::{Parameter, Settings};
use super::class::{self, Rule};
use super::interference::{self, PairProbes};
use super::{Grouping, Unmatched};

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[
    class::ALPHA,
    class::BETA,
    class::GAMMA,
    class::DELTA,
    class::EPSILON,
    Parameter::whole("representatives", 3, 0..=1_000_000)
        .does("applications of a class that are run in pairs at most; 0: all (assumed)"),
    Parameter::word("classes", CLASS, &[CLASS, APPLICATION])
        .does("four classes, or one class for each application"),
];

const CLASS: &str = "class";
const APPLICATION: &str = "application";

/// The most patterns: with more the solver would take many minutes.
const MOST_PATTERNS: u64 = 50_000;

/// Classifies applications, measures by pairs how much classes slow each other down, and
/// groups those that wait so that the sum of the patterns' efficiencies is highest
/// (ILP-SMRA, sections III.A and III.B).
///
/// The first group has the longest waiting application, the best pattern left for its class,
/// and of each class the longest waiting. So no application starves.
#[derive(Clone, Debug)]
pub(super) struct Ilp {
    rule: Rule,
    representatives: usize,
    /// Each application is a class.
    per_app: bool,
    /// Set by the answers to the probes.
    findings: Option<Findings>,
}

impl Ilp {
    pub(super) fn make(settings: &Settings) -> Box<dyn Grouping> {
        Box::new(Self {
            rule: Rule::of(settings),
            representatives: to_usize(settings.whole("representatives")),
            per_app: settings.word("classes") == APPLICATION,
            findings: None,
        })
    }

    /// Classes and thresholds; of the four classes those with applications.
    fn classified(&self, facts: &QueueFacts) -> Findings {
        let apps = 0..facts.apps.len();
        if self.per_app {
            let own = |app| Classified {
                app,
                class: app,
                fits: true,
                reason: String::from("each application is a class"),
            };
            return Findings {
                classes: facts.apps.iter().map(|app| app.name.clone()).collect(),
                classified: apps.map(own).collect(),
                ..Findings::default()
            };
        }
        let mut classified: Vec<Classified> =
            apps.map(|app| self.rule.classify(facts, app)).collect();
        let some = |class: &usize| classified.iter().any(|one| one.class == *class);
        let held: Vec<usize> = (0..class::CLASSES.len()).filter(some).collect();
        for one in &mut classified {
            one.class = held.iter().take_while(|&&class| class != one.class).count();
        }
        Findings {
            classes: held.iter().map(|&class| class::CLASSES[class].to_owned()).collect(),
            classified,
            thresholds: self.rule.thresholds(facts),
            ..Findings::default()
        }
    }

    /// The probes; none where the user has measured the slow-downs.
    fn pair_probes(
        &self,
        facts: &QueueFacts,
        findings: &Findings,
    ) -> Result<Option<PairProbes>, Unmatched> {
        if !facts.given.is_empty() {
            interference::measured(facts, &findings.classes)?;
            return Ok(None);
        }
        let mut members = vec![Vec::new(); findings.classes.len()];
        for one in &findings.classified {
            members[one.class].push(one.app);
        }
        PairProbes::new(facts, &members, self.representatives).map(Some)
    }

    /// The result, with the size of the program, in words.
    fn words(&self, program: &Program, findings: &Findings, waiting: usize) -> String {
        let Program { patterns, places, classes, solved, .. } = program;
        let used = solved.groups.iter().filter(|&&groups| groups > 0).count();
        let base = format!(
            "{waiting} applications by {used} of {} patterns, efficiencies sum to {:.4}",
            patterns.len(),
            solved.objective
        );
        if !self.per_app {
            return base;
        }
        let all = count_patterns(*classes, *places)
            .map_or(String::from("2^64 or more"), |all| all.to_string());
        let (pairs, variables) = (findings.pairs.len(), patterns.len());
        format!(
            "{base}; each application a class: {all} patterns by eq. 1, {variables} variables, \
             {pairs} pairs run"
        )
    }
}

/// The program and its solution.
struct Program {
    patterns: Vec<Pattern>,
    places: u32,
    /// Classes of the queue, also those without waiting applications.
    classes: usize,
    solved: Matching,
}

impl Program {
    fn solve(facts: &QueueFacts, findings: &Findings, waiting: &[u64]) -> Result<Self, Unmatched> {
        let places = to_u32(facts.group_size.max(1));
        let demand = with_idle(waiting, places);
        let some = demand.iter().filter(|&&waiting| waiting > 0).count();
        if count_patterns(some, places).is_none_or(|all| all > MOST_PATTERNS) {
            let (classes, places) = (some, facts.group_size);
            return Err(Unmatched::Patterns { classes, places, most: MOST_PATTERNS });
        }
        let patterns = patterns(&findings.slowdown, &demand, places);
        let solved = matching(&patterns, &demand, Engine::default())?;
        Ok(Self { patterns, places, classes: waiting.len(), solved })
    }

    /// Each group begins with the longest waiting application and the best pattern left for
    /// its class.
    fn groups(&self, facts: &QueueFacts, findings: &Findings, waiting: &[JobId]) -> Vec<Group> {
        let class = |job: JobId| findings.classified[facts.jobs[job.index()].app].class;
        let mut queues = vec![VecDeque::new(); self.classes];
        waiting.iter().for_each(|&job| queues[class(job)].push_back(job));
        let mut left = self.solved.groups.clone();
        let mut placed = vec![false; facts.jobs.len()];
        let mut groups = Vec::new();
        for &oldest in waiting {
            if placed[oldest.index()] {
                continue;
            }
            let pattern = self.best(&left, class(oldest));
            left[pattern] -= 1;
            let mut jobs = Vec::new();
            for (queue, &count) in queues.iter_mut().zip(&self.patterns[pattern].counts) {
                jobs.extend(queue.drain(..to_usize(count)));
            }
            jobs.iter().for_each(|job| placed[job.index()] = true);
            jobs.sort_by_key(|&job| (facts.jobs[job.index()].app, job));
            groups.push(Group { jobs, pattern: Some(pattern) });
        }
        groups
    }

    /// The pattern of the highest efficiency that is left and has one of `class`; the
    /// first of equals.
    fn best(&self, left: &[u64], class: usize) -> usize {
        let open = |&at: &usize| left[at] > 0 && self.patterns[at].counts[class] > 0;
        let worth = |at: usize| self.patterns[at].efficiency;
        let places = (0..left.len()).filter(open).rev();
        let best = places.max_by(|&one, &other| worth(one).total_cmp(&worth(other)));
        best.expect("the patterns in use take every application")
    }

    fn uses(&self) -> Vec<PatternUse> {
        let pairs = self.patterns.iter().zip(&self.solved.groups);
        let one = |(pattern, &groups): (&Pattern, &u64)| PatternUse {
            counts: pattern.counts.clone(),
            efficiency: pattern.efficiency,
            groups,
        };
        pairs.map(one).collect()
    }
}

impl Grouping for Ilp {
    fn probes(&self, facts: &QueueFacts) -> Result<Vec<GroupProbe>, Unmatched> {
        self.rule.check()?;
        let probes = self.pair_probes(facts, &self.classified(facts))?;
        Ok(probes.map_or_else(Vec::new, |probes| probes.all()))
    }

    fn learn(&mut self, facts: &QueueFacts, answers: &[GroupProbeResult]) -> Result<(), Unmatched> {
        let mut findings = self.classified(facts);
        if let Some(probes) = self.pair_probes(facts, &findings)? {
            findings.pairs = probes.slowdowns(answers);
            findings.slowdown = probes.matrix(findings.classes.len(), &findings.pairs);
        } else {
            findings.slowdown = interference::measured(facts, &findings.classes)?;
        }
        self.findings = Some(findings);
        Ok(())
    }

    fn groups(&mut self, facts: &QueueFacts, view: &QueueView) -> Result<Groups, Unmatched> {
        let findings = self.findings.as_ref().expect("the answers come before the first grouping");
        let mut waiting = vec![0; findings.classes.len()];
        for job in &view.waiting {
            waiting[findings.classified[facts.jobs[job.index()].app].class] += 1;
        }
        let program = Program::solve(facts, findings, &waiting)?;
        let groups = program.groups(facts, findings, &view.waiting);
        let reason = self.words(&program, findings, view.waiting.len());
        Ok(Groups::new(facts, view, groups, program.uses(), reason)?)
    }

    fn findings(&self) -> Option<&Findings> {
        self.findings.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::QueueChoice;
    use super::{Grouping, Unmatched};
    use gpumodel_core::contract::{
        GroupProbe, GroupProbeResult, Groups, Job, Profile, QueueFacts, QueueView,
    };
    use gpumodel_core::units::{JobId, to_u32};

    /// Applications of these classes on a machine of 100 GB/s and 1000 instructions per
    /// cycle, each named by its class and place.
    fn apps(classes: &[&str]) -> Vec<Profile> {
        let app = |(place, class): (usize, &&str)| {
            let (dram, l2, ratio, ipc) = match *class {
                "M" => (80.0, 90.0, 0.5, 50.0),
                "MC" => (40.0, 90.0, 0.4, 100.0),
                "C" => (10.0, 80.0, 0.4, 100.0),
                _ => (2.0, 4.0, 0.05, 700.0),
            };
            Profile {
                name: format!("{class}{place}"),
                cycles: 1000,
                ipc,
                dram_gb_per_s: dram,
                l2_to_l1_gb_per_s: l2,
                memory_to_compute: ratio,
                given_class: None,
            }
        };
        classes.iter().enumerate().map(app).collect()
    }

    /// What the paper prints of its Fig. 2, and within its ranges where it prints ranges.
    fn published() -> BTreeMap<String, BTreeMap<String, f64>> {
        let rows = [
            ("M", [2.10, 1.78, 1.61, 1.20]),
            ("MC", [2.05, 1.60, 1.55, 1.10]),
            ("C", [1.76, 1.55, 1.50, 1.08]),
            ("A", [1.51, 1.30, 1.20, 1.06]),
        ];
        let names = ["M", "MC", "C", "A"];
        let row = |values: [f64; 4]| names.map(String::from).into_iter().zip(values).collect();
        rows.into_iter().map(|(name, values)| (name.to_owned(), row(values))).collect()
    }

    fn facts(classes: &[&str], jobs: &[usize], group_size: usize) -> QueueFacts {
        QueueFacts {
            sms: 60,
            group_size,
            peak_dram_gb_per_s: 100.0,
            peak_ipc: 1000.0,
            apps: apps(classes),
            jobs: jobs.iter().map(|&app| Job { app, arrival: 0 }).collect(),
            given: published(),
        }
    }

    fn all(facts: &QueueFacts) -> QueueView {
        QueueView { now: 0, waiting: (0..to_u32(facts.jobs.len())).map(JobId).collect() }
    }

    fn grouped(text: &str, facts: &QueueFacts) -> (Box<dyn Grouping>, Groups) {
        let mut grouping = QueueChoice::parse(text).unwrap().make();
        assert!(grouping.probes(facts).unwrap().is_empty(), "the slow-downs are measured");
        grouping.learn(facts, &[]).unwrap();
        let groups = grouping.groups(facts, &all(facts)).unwrap();
        (grouping, groups)
    }

    fn members(groups: &Groups) -> Vec<Vec<u32>> {
        groups.groups().iter().map(|group| group.jobs.iter().map(|job| job.0).collect()).collect()
    }

    #[test]
    fn with_the_published_slow_downs_memory_never_runs_with_memory() {
        // Five of each class: the paper's equal distribution of 20.
        let jobs: Vec<usize> = (0..20).map(|job| job % 4).collect();
        let facts = facts(&["M", "MC", "C", "A"], &jobs, 2);
        let (grouping, groups) = grouped("ilp", &facts);
        assert_eq!(groups.patterns().len(), 10);
        let used: Vec<(&[u32], u64)> =
            groups.patterns().iter().map(|p| (&p.counts[..], p.groups)).collect();
        assert_eq!(used.iter().map(|(_, groups)| groups).sum::<u64>(), 10);
        let taken = |counts: &[u32]| used.iter().find(|one| one.0 == counts).unwrap().1;
        assert_eq!((taken(&[2, 0, 0, 0]), taken(&[1, 1, 0, 0])), (0, 0), "no M with M or MC");
        // M-C and MC-A are worth 0.595 + 0.839; M-A and MC-C only 0.748 + 0.645.
        assert_eq!((taken(&[1, 0, 1, 0]), taken(&[0, 1, 0, 1])), (5, 5), "{used:?}");
        assert!(groups.reason().contains("sum to 7.169"), "{}", groups.reason());
        assert!(groups.reason().contains("of 10 patterns"), "{}", groups.reason());
        let findings = grouping.findings().unwrap();
        assert_eq!(findings.classes, ["M", "MC", "C", "A"]);
        assert_eq!(findings.slowdown[1][0], 2.05, "MC on M");
        assert!((findings.thresholds[0].value - 55.0).abs() < 1e-9, "alpha");
    }

    #[test]
    fn within_a_class_applications_run_in_order() {
        let jobs = [0, 0, 0, 1, 1, 1, 0, 1];
        let facts = facts(&["M", "A"], &jobs, 2);
        let (_, groups) = grouped("ilp-smra", &facts);
        assert_eq!(members(&groups), [[0, 3], [1, 4], [2, 5], [6, 7]]);
        let again = grouped("ilp-smra", &facts).1;
        assert_eq!(groups, again);
    }

    #[test]
    fn members_lie_by_application_so_that_like_groups_look_alike() {
        let facts = facts(&["A", "M"], &[1, 0, 0, 1], 2);
        let (_, groups) = grouped("ilp", &facts);
        assert_eq!(members(&groups), [[1, 0], [2, 3]], "A first in both");
    }

    #[test]
    fn a_queue_that_cannot_be_divided_leaves_places_idle() {
        let facts = facts(&["M", "A"], &[0, 0, 1, 0, 1, 1, 1], 3);
        let (_, groups) = grouped("ilp", &facts);
        assert_eq!(groups.groups().len(), 3);
        let idle = groups.patterns().iter().map(|p| u64::from(p.counts[2]) * p.groups);
        assert_eq!(idle.sum::<u64>(), 2, "nine places for seven");
        let mut placed = members(&groups).concat();
        placed.sort_unstable();
        assert_eq!(placed, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn one_alone_and_one_class_and_large_groups_work() {
        for size in 1..=4 {
            let alone = facts(&["M", "A"], &[0], size);
            assert_eq!(members(&grouped("ilp", &alone).1), [[0]], "{size} at a time");
            let alike = facts(&["C", "C"], &[0, 1, 0], size);
            let groups = grouped("ilp", &alike).1;
            assert_eq!(groups.groups().len(), 3_usize.div_ceil(size), "{size} at a time");
        }
        // Only those that wait are grouped.
        let facts = facts(&["M", "A"], &[0, 1, 0, 1], 2);
        let (mut grouping, _) = grouped("ilp", &facts);
        let view = QueueView { now: 9, waiting: vec![JobId(3)] };
        assert_eq!(members(&grouping.groups(&facts, &view).unwrap()), [[3]]);
    }

    /// Each application takes 100 cycles alone, 200 with another, and 300 with the one at `bad`.
    fn answers(probes: &[GroupProbe], bad: usize) -> Vec<GroupProbeResult> {
        let one = |probe: &GroupProbe, member: usize| match probe.apps.len() {
            1 => 100,
            _ if probe.apps[1 - member] == bad => 300,
            _ => 200,
        };
        let answer = |probe: &GroupProbe| GroupProbeResult {
            cycles: (0..probe.apps.len()).map(|member| one(probe, member)).collect(),
            warp_instructions: vec![1; probe.apps.len()],
        };
        probes.iter().map(answer).collect()
    }

    #[test]
    fn the_matrix_is_measured_by_pairs_of_the_classes_that_are_there() {
        let mut facts = facts(&["M", "A", "A"], &[0, 1, 2, 0], 2);
        facts.given.clear();
        let mut grouping = QueueChoice::parse("ilp").unwrap().make();
        let probes = grouping.probes(&facts).unwrap();
        assert_eq!(probes.len(), 3 + 4, "three alone; M-M, M-A twice, A-A");
        grouping.learn(&facts, &answers(&probes, 0)).unwrap();
        let findings = grouping.findings().unwrap();
        assert_eq!(findings.classes, ["M", "A"]);
        assert_eq!(findings.slowdown, [[3.0, 3.0], [2.0, 2.0]]);
        assert_eq!(findings.pairs.len(), 4);
    }

    #[test]
    fn each_application_can_be_a_class_and_its_cost_is_shown() {
        let mut facts = facts(&["M", "M", "A", "A"], &[0, 1, 2, 3, 0, 1], 2);
        facts.given.clear();
        let mut grouping = QueueChoice::parse("ilp:classes=application").unwrap().make();
        let probes = grouping.probes(&facts).unwrap();
        assert_eq!(probes.len(), 4 + 10, "four alone, and all pairs");
        grouping.learn(&facts, &answers(&probes, 3)).unwrap();
        let groups = grouping.groups(&facts, &all(&facts)).unwrap();
        let reason = groups.reason();
        assert!(reason.contains("10 patterns by eq. 1, 8 variables, 10 pairs run"), "{reason}");
        assert_eq!(grouping.findings().unwrap().classes, ["M0", "M1", "A2", "A3"]);
        assert_eq!(groups.groups().len(), 3);
    }

    #[test]
    fn a_missing_slow_down_is_named_and_too_many_patterns_are_refused() {
        let mut lacks = facts(&["M", "A"], &[0, 1], 2);
        lacks.given.get_mut("A").unwrap().remove("M");
        let refused = QueueChoice::parse("ilp").unwrap().make().probes(&lacks).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("class M next to class A") && text.contains("M, A"), "{text}");
        let names = vec!["A"; 200];
        let jobs: Vec<usize> = (0..200).collect();
        let mut many = facts(&names, &jobs, 4);
        let row: BTreeMap<String, f64> =
            many.apps.iter().map(|app| (app.name.clone(), 1.0)).collect();
        many.given = many.apps.iter().map(|app| (app.name.clone(), row.clone())).collect();
        let mut grouping = QueueChoice::parse("ilp:classes=application").unwrap().make();
        grouping.learn(&many, &[]).unwrap();
        let refused = grouping.groups(&many, &all(&many)).unwrap_err();
        assert!(
            matches!(refused, Unmatched::Patterns { classes: 200, places: 4, .. }),
            "{refused}"
        );
    }
}
