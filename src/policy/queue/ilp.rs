//! Groups by an integer program over classes.

use std::collections::VecDeque;

use gpumodel_core::contract::{
    Classified, Findings, Group, GroupProbe, GroupProbeResult, Groups, PatternUse, QueueFacts,
    QueueView,
};
use gpumodel_core::units::{JobId, to_u32, to_usize};

use super::super::solve::{
    Engine, Matching, NoMatching, Pattern, count_patterns, matching, patterns, with_idle,
};
use super::super::{Parameter, Settings};
use super::class::{self, Rule};
use super::interference::{self, Questions};
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
        .does("four classes, or each application a class of its own"),
];

const CLASS: &str = "class";
const APPLICATION: &str = "application";

/// Patterns that are weighed at most: with more the solver would take many minutes.
const MOST_PATTERNS: u64 = 50_000;

/// Classifies applications, finds by pairs how much classes slow each other down, and
/// groups those that wait so that the sum of the patterns' efficiencies is highest
/// (ILP-SMRA, sections III.A and III.B).
///
/// Who has waited longest begins: with it goes the best pattern that is left for its
/// class, and of each class those that have waited longest. So nobody starves.
#[derive(Clone, Debug)]
pub struct Ilp {
    rule: Rule,
    representatives: usize,
    /// Each application is a class.
    apart: bool,
    /// After the answers are there.
    findings: Option<Findings>,
}

impl Ilp {
    pub(super) fn make(settings: &Settings) -> Box<dyn Grouping> {
        Box::new(Self {
            rule: Rule::of(settings),
            representatives: to_usize(settings.whole("representatives")),
            apart: settings.word("classes") == APPLICATION,
            findings: None,
        })
    }

    /// Classes and thresholds; of the four classes those that somebody is in.
    fn classified(&self, facts: &QueueFacts) -> Findings {
        let apps = 0..facts.apps.len();
        if self.apart {
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

    /// The probes; none where the user has given the slow-downs.
    fn questions(
        &self,
        facts: &QueueFacts,
        findings: &Findings,
    ) -> Result<Option<Questions>, Unmatched> {
        if !facts.given.is_empty() {
            interference::given(facts, &findings.classes)?;
            return Ok(None);
        }
        let mut members = vec![Vec::new(); findings.classes.len()];
        for one in &findings.classified {
            members[one.class].push(one.app);
        }
        Questions::new(facts, &members, self.representatives).map(Some)
    }

    /// Why, with what it costs.
    fn words(&self, program: &Program, findings: &Findings, waiting: usize) -> String {
        let Program { weighed, places, classes, solved, .. } = program;
        let used = solved.groups.iter().filter(|&&groups| groups > 0).count();
        let base = format!(
            "{waiting} applications by {used} of {} patterns, efficiencies sum to {:.4}",
            weighed.len(),
            solved.objective
        );
        if !self.apart {
            return base;
        }
        let all = count_patterns(*classes, *places)
            .map_or(String::from("2^64 or more"), |all| all.to_string());
        let (pairs, variables) = (findings.pairs.len(), weighed.len());
        format!(
            "{base}; each application a class: {all} patterns by eq. 1, {variables} variables, \
             {pairs} pairs run"
        )
    }
}

/// The program and its solution.
struct Program {
    weighed: Vec<Pattern>,
    places: u32,
    /// Classes of the queue, also those of which nobody waits.
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
        let weighed = patterns(&findings.slowdown, &demand, places);
        let solved = matching(&weighed, &demand, Engine::default())?;
        Ok(Self { weighed, places, classes: waiting.len(), solved })
    }

    /// Takes the longest waiting, with the best pattern that is left for its class.
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
            for (queue, &count) in queues.iter_mut().zip(&self.weighed[pattern].counts) {
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
        let open = |&at: &usize| left[at] > 0 && self.weighed[at].counts[class] > 0;
        let worth = |at: usize| self.weighed[at].efficiency;
        let places = (0..left.len()).filter(open).rev();
        let best = places.max_by(|&one, &other| worth(one).total_cmp(&worth(other)));
        best.expect("the patterns in use take every application")
    }

    fn uses(&self) -> Vec<PatternUse> {
        let pairs = self.weighed.iter().zip(&self.solved.groups);
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
        let questions = self.questions(facts, &self.classified(facts))?;
        Ok(questions.map_or_else(Vec::new, |questions| questions.probes()))
    }

    fn learn(&mut self, facts: &QueueFacts, answers: &[GroupProbeResult]) -> Result<(), Unmatched> {
        let mut findings = self.classified(facts);
        if let Some(questions) = self.questions(facts, &findings)? {
            findings.pairs = questions.found(answers);
            findings.slowdown = questions.slowdown(findings.classes.len(), &findings.pairs);
        } else {
            findings.slowdown = interference::given(facts, &findings.classes)?;
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

impl From<NoMatching> for Unmatched {
    fn from(none: NoMatching) -> Self {
        match none {
            NoMatching::Infeasible => Self::Infeasible(none.to_string()),
            NoMatching::Solver(text) => Self::Solver(text),
            NoMatching::Wrong(text) => Self::Wrong(text),
        }
    }
}

#[cfg(test)]
#[path = "ilp_tests.rs"]
mod tests;
