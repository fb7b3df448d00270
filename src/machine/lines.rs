//! The lines in which applications wait at the dispatcher.
//!
//! Applications that may come to the same SMs wait in one line. A line's timing is a
//! function of what its own applications do: who has SMs of its own gets a CTA in the
//! same cycle whatever happens on the SMs of others. The launch rate is the one thing
//! that lines share, on machines where it is less than a CTA per SM and cycle.

use crate::units::{AppId, Cycle, to_u16};

use super::rule::Rule;

/// One line.
#[derive(Clone, Debug, Default)]
struct Line {
    /// When its applications want CTAs handed out, if they do.
    asked: Option<Cycle>,
    /// From when on they may be.
    ready: Cycle,
    /// The SM that is looked at first.
    next_sm: usize,
}

/// All lines. A line has the number of the first of its applications.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// By application: its line.
    of_app: Vec<usize>,
    /// By SM: the line of those who may come there, if anybody may.
    at_sm: Vec<Option<usize>>,
    /// The line that is served first: the one after the last that was.
    first: usize,
}

impl Lines {
    /// One line for `apps` applications on `sms` SMs.
    pub(super) fn new(apps: usize, sms: usize) -> Self {
        Self {
            lines: vec![Line::default(); apps],
            of_app: vec![0; apps],
            at_sm: vec![Some(0); sms],
            first: 0,
        }
    }

    /// Lines up as the rule in force divides the SMs.
    pub(super) fn follow(&mut self, rule: &Rule) {
        let apps = self.of_app.len();
        self.of_app = (0..apps).collect();
        for sm in 0..self.at_sm.len() {
            let here = |&app: &usize| rule.may_come(AppId(to_u16(app)), sm);
            let lines: Vec<usize> = (0..apps).filter(here).map(|app| self.of_app[app]).collect();
            let first = lines.iter().copied().min();
            let joins = |line: &&mut usize| lines.contains(line);
            self.of_app.iter_mut().filter(joins).for_each(|line| *line = first.unwrap_or(*line));
            self.at_sm[sm] = first;
        }
        for line in self.at_sm.iter_mut().flatten() {
            *line = self.of_app[*line];
        }
        self.pause(self.lines.iter().map(|line| line.ready).max().unwrap_or(0));
    }

    /// The lines by number, the first to be served first.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first, self.lines.len());
        (0..count).map(move |k| (first + k) % count)
    }

    /// The line of an application.
    pub(super) fn of(&self, app: AppId) -> usize {
        self.of_app[app.index()]
    }

    /// The SM that a line looks at first.
    pub(super) fn next_sm(&self, line: usize) -> usize {
        self.lines[line].next_sm
    }

    /// Nothing is handed out before `cycle`.
    pub(super) fn pause(&mut self, cycle: Cycle) {
        for line in &mut self.lines {
            line.ready = line.ready.max(cycle);
        }
    }

    /// A line asks for CTAs at `cycle`.
    pub(super) fn ask(&mut self, line: usize, cycle: Cycle) {
        let line = &mut self.lines[line];
        let cycle = cycle.max(line.ready);
        line.asked = Some(line.asked.map_or(cycle, |asked| asked.min(cycle)));
    }

    /// Those who may come to an SM ask for CTAs at `cycle`.
    pub(super) fn ask_at(&mut self, sm: usize, cycle: Cycle) {
        if let Some(line) = self.at_sm[sm] {
            self.ask(line, cycle);
        }
    }

    /// All lines ask for CTAs at `cycle`.
    pub(super) fn ask_all(&mut self, cycle: Cycle) {
        (0..self.lines.len()).for_each(|line| self.ask(line, cycle));
    }

    /// Forgets what the lines ask for in which nobody waits; the earliest cycle at which
    /// one of the others is to be served.
    pub(super) fn next(&mut self, waits: impl Fn(usize) -> bool) -> Option<Cycle> {
        let mut earliest: Option<Cycle> = None;
        for (number, line) in self.lines.iter_mut().enumerate() {
            line.asked = line.asked.filter(|_| waits(number));
            if let Some(asked) = line.asked {
                let at = asked.max(line.ready);
                earliest = Some(earliest.map_or(at, |earliest| earliest.min(at)));
            }
        }
        earliest
    }

    /// Whether a line is served now: then what it asked for is done with.
    pub(super) fn takes(&mut self, line: usize, now: Cycle) -> bool {
        let line = &mut self.lines[line];
        let due = now >= line.ready && line.asked.is_some_and(|asked| asked <= now);
        line.asked = line.asked.filter(|_| !due);
        due
    }

    /// A line was given a CTA on an SM.
    pub(super) fn served(&mut self, line: usize, sm: usize) {
        self.lines[line].next_sm = (sm + 1) % self.at_sm.len();
        self.first = (line + 1) % self.lines.len();
    }

    /// A line that was given CTAs is served again from `cycle` on.
    pub(super) fn rest(&mut self, line: usize, cycle: Cycle) {
        self.lines[line].ready = cycle;
        self.ask(line, cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;
    use crate::epoch::{Plan, PlanDraft, Share};
    use crate::machine::fixture::{facts, named};
    use crate::machine::rule::Rule;
    use crate::units::AppId;

    /// Lines of three applications with these quotas on the first SMs.
    fn lines(quotas: [&[u32]; 3]) -> Lines {
        let resolved = named("ugpu", &[]);
        let facts = facts(&resolved, 3);
        let sms = usize::from(facts.sms);
        let share = |quota: &&[u32]| {
            let mut quota = quota.to_vec();
            quota.resize(sms, 0);
            Share::Quota(quota)
        };
        let shares = quotas.iter().map(share).collect();
        let plan = Plan::new(&facts, PlanDraft { shares, ..PlanDraft::default() }).unwrap();
        let mut lines = Lines::new(3, sms);
        lines.follow(&Rule::new(plan, &resolved.machine, None));
        lines
    }

    #[test]
    fn who_meets_on_an_sm_waits_in_one_line_with_whom_these_meet() {
        let apart = lines([&[1, 1], &[0, 0, 1], &[0, 0, 0, 1]]);
        assert_eq!([0, 1, 2].map(|app| apart.of(AppId(app))), [0, 1, 2]);
        let chain = lines([&[1, 0, 0], &[0, 1, 1], &[1, 1, 0]]);
        assert_eq!([0, 1, 2].map(|app| chain.of(AppId(app))), [0, 0, 0]);
        assert_eq!(chain.at_sm[..4], [Some(0), Some(0), Some(0), None]);
        let two = lines([&[1], &[0, 1], &[0, 1]]);
        assert_eq!([0, 1, 2].map(|app| two.of(AppId(app))), [0, 1, 1]);
    }

    #[test]
    fn a_line_is_served_when_it_asks_and_not_when_another_does() {
        let mut lines = lines([&[1], &[0, 1], &[0, 0, 1]]);
        lines.ask(0, 10);
        lines.ask_at(1, 11);
        assert_eq!(lines.next(|_| true), Some(10));
        assert!(lines.takes(0, 10) && !lines.takes(1, 10) && !lines.takes(2, 10));
        lines.rest(0, 14);
        assert_eq!(lines.next(|_| true), Some(11));
        assert!(!lines.takes(0, 11) && lines.takes(1, 11));
        assert_eq!((lines.next(|_| true), lines.next(|line| line > 0)), (Some(14), None));
    }
}
