//! The lines in which applications wait at the dispatcher.
//!
//! Applications that may come to the same SMs wait in one line. While the plan in force
//! stays, when a line is served depends on its own applications alone: each has events of
//! its own, so that also the order within a cycle does not depend on others. The launch
//! rate is the one thing that lines share, on machines that start fewer CTAs per cycle
//! than they have SMs.

use gpumodel_core::units::Cycle;

/// One line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// When its applications want CTAs handed out, if they do.
    asked: Option<Cycle>,
    /// From when on they may be.
    ready: Cycle,
    /// The SM that is looked at first.
    next_sm: usize,
}

/// All lines, in the order of their first applications.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// By line: the cycle of the event that is scheduled for it.
    scheduled: Vec<Option<Cycle>>,
    /// By application: its line; none for who may come to no SM.
    of_app: Vec<Option<usize>>,
    /// By SM: the line of those who may come there, if anybody may.
    at_sm: Vec<Option<usize>>,
    /// The line that is served first where the launch rate is shared: the one after the
    /// last that was.
    first: usize,
    /// The last cycle in which CTAs were handed out, and how many were.
    handed: (Cycle, u32),
}

impl Lines {
    /// One line for `apps` applications on `sms` SMs.
    pub(super) fn new(apps: usize, sms: usize) -> Self {
        Self {
            lines: vec![Line::default(); apps],
            scheduled: vec![None; apps],
            of_app: vec![Some(0); apps],
            at_sm: vec![Some(0); sms],
            first: 0,
            handed: (0, 0),
        }
    }

    /// Lines up anew, now that `may_come` says which application may come to which SM.
    /// Whether anything has changed.
    pub(super) fn follow(&mut self, may_come: impl Fn(usize, usize) -> bool) -> bool {
        let apps = self.of_app.len();
        // The first of those with whom each application stands; none stands nowhere.
        let mut with: Vec<usize> = (0..apps).collect();
        let mut first_at: Vec<Option<usize>> = vec![None; self.at_sm.len()];
        for (sm, first_at) in first_at.iter_mut().enumerate() {
            let here = (0..apps).filter(|&app| may_come(app, sm));
            let met: Vec<usize> = here.map(|app| with[app]).collect();
            *first_at = met.iter().copied().min();
            let least = first_at.unwrap_or(0);
            with.iter_mut().filter(|with| met.contains(with)).for_each(|with| *with = least);
        }
        let mut firsts: Vec<usize> = first_at.iter().flatten().map(|&app| with[app]).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let number = |app: usize| firsts.binary_search(&with[app]).ok();
        let of_app: Vec<Option<usize>> = (0..apps).map(number).collect();
        let at_sm = first_at.iter().map(|first| first.and_then(number)).collect();
        let changed = of_app != self.of_app || at_sm != self.at_sm;
        if changed {
            self.carry_over(&of_app);
            (self.of_app, self.at_sm) = (of_app, at_sm);
        }
        changed
    }

    /// Applications take what is of their lines with them to those of `of_app`.
    fn carry_over(&mut self, of_app: &[Option<usize>]) {
        let before = self.lines.clone();
        let latest = before.iter().map(|line| line.ready).max().unwrap_or(0);
        for (number, line) in self.lines.iter_mut().enumerate() {
            let members = of_app.iter().zip(&self.of_app).filter(|(to, _)| **to == Some(number));
            let from: Vec<Line> =
                members.filter_map(|(_, from)| from.map(|from| before[from])).collect();
            *line = Line {
                asked: from.iter().filter_map(|line| line.asked).min(),
                ready: from.iter().map(|line| line.ready).max().unwrap_or(latest),
                next_sm: from.first().unwrap_or(line).next_sm,
            };
        }
    }

    /// True with one line for everybody who may come anywhere.
    pub(super) fn is_one(&self) -> bool {
        self.of_app.iter().flatten().all(|&line| line == 0)
    }

    /// The lines by number, the first to be served first.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first, self.lines.len());
        (0..count).map(move |k| (first + k) % count)
    }

    /// The line of an application.
    pub(super) fn of(&self, app: usize) -> Option<usize> {
        self.of_app[app]
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

    fn ask(&mut self, line: Option<usize>, cycle: Cycle) {
        if let Some(line) = line {
            let asked = &mut self.lines[line].asked;
            *asked = Some(asked.map_or(cycle, |asked| asked.min(cycle)));
        }
    }

    /// Asks for CTAs at `cycle` for an application and those in its line.
    pub(super) fn ask_for(&mut self, app: usize, cycle: Cycle) {
        self.ask(self.of_app[app], cycle);
    }

    /// The same for those who may come to an SM.
    pub(super) fn ask_at(&mut self, sm: usize, cycle: Cycle) {
        self.ask(self.at_sm[sm], cycle);
    }

    /// The same for everybody.
    pub(super) fn ask_all(&mut self, cycle: Cycle) {
        (0..self.lines.len()).for_each(|line| self.ask(Some(line), cycle));
    }

    /// Drops what is asked for in lines in which nobody waits. Gives the lines, and when,
    /// for which an event is to be scheduled.
    pub(super) fn schedule(
        &mut self,
        waits: impl Fn(usize) -> bool,
        mut event: impl FnMut(usize, Cycle),
    ) {
        for (number, line) in self.lines.iter_mut().enumerate() {
            line.asked = line.asked.filter(|_| waits(number));
            let Some(at) = line.asked.map(|asked| asked.max(line.ready)) else { continue };
            if self.scheduled[number].is_none_or(|scheduled| scheduled > at) {
                self.scheduled[number] = Some(at);
                event(number, at);
            }
        }
    }

    /// Whether the event of a line that comes now is the one that is scheduled for it,
    /// which is then done with.
    pub(super) fn is_called(&mut self, line: usize, now: Cycle) -> bool {
        self.scheduled[line].take_if(|at| *at == now).is_some()
    }

    /// Whether a line is served now: then what it asked for is done with.
    pub(super) fn takes(&mut self, line: usize, now: Cycle) -> bool {
        let line = &mut self.lines[line];
        now >= line.ready && line.asked.take_if(|asked| *asked <= now).is_some()
    }

    /// CTAs that all lines have been given in this cycle.
    pub(super) fn handed(&self, now: Cycle) -> u32 {
        if self.handed.0 == now { self.handed.1 } else { 0 }
    }

    /// A line is given a CTA on an SM.
    pub(super) fn served(&mut self, line: usize, sm: usize, now: Cycle) {
        self.handed = (now, self.handed(now) + 1);
        self.lines[line].next_sm = (sm + 1) % self.at_sm.len();
        self.first = (line + 1) % self.lines.len();
    }

    /// A line is served again at `cycle`, and not before where it was given CTAs.
    pub(super) fn again(&mut self, line: usize, served: bool, cycle: Cycle) {
        if served {
            self.lines[line].ready = cycle;
        }
        self.ask(Some(line), cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    /// Lines of three applications on eight SMs, each of which may come to some of them.
    fn lines(sms: [&[usize]; 3]) -> Lines {
        let mut lines = Lines::new(3, 8);
        lines.follow(|app, sm| sms[app].contains(&sm));
        lines
    }

    fn of(lines: &Lines) -> [Option<usize>; 3] {
        [0, 1, 2].map(|app| lines.of(app))
    }

    /// Lines for which events are scheduled, and when.
    fn events(lines: &mut Lines) -> Vec<(usize, u64)> {
        let mut events = Vec::new();
        lines.schedule(|_| true, |line, at| events.push((line, at)));
        events
    }

    #[test]
    fn who_meets_on_an_sm_waits_in_one_line_with_whom_these_meet() {
        assert_eq!(of(&lines([&[0, 1], &[2], &[3]])), [Some(0), Some(1), Some(2)]);
        let chain = lines([&[0, 2], &[1, 2], &[1]]);
        assert_eq!((of(&chain), chain.is_one()), ([Some(0); 3], true));
        assert_eq!(chain.at_sm[..4], [Some(0), Some(0), Some(0), None]);
        assert_eq!(of(&lines([&[0], &[1], &[1]])), [Some(0), Some(1), Some(1)]);
        assert_eq!(of(&lines([&[], &[0], &[1]])), [None, Some(0), Some(1)]);
    }

    #[test]
    fn a_line_is_served_when_it_asks_and_not_when_another_does() {
        let mut lines = lines([&[0], &[1], &[2]]);
        lines.ask_for(0, 10);
        lines.ask_at(1, 11);
        assert_eq!(events(&mut lines), [(0, 10), (1, 11)]);
        assert_eq!(events(&mut lines), []);
        assert!(lines.is_called(0, 10) && !lines.is_called(0, 10) && !lines.is_called(1, 10));
        assert!(lines.takes(0, 10) && !lines.takes(1, 10) && !lines.takes(2, 10));
        lines.again(0, true, 14);
        assert_eq!(events(&mut lines), [(0, 14)]);
        assert!(lines.takes(1, 11) && !lines.takes(0, 13));
        lines.schedule(|line| line > 0, |_, _| ());
        assert!(!lines.takes(0, 14));
    }

    #[test]
    fn applications_take_what_is_theirs_to_other_lines() {
        let mut lines = lines([&[0], &[1], &[2, 3]]);
        lines.served(2, 3, 7);
        lines.again(2, true, 8);
        assert!(!lines.follow(|app, sm| [&[0][..], &[1], &[2, 3]][app].contains(&sm)));
        assert!(lines.follow(|app, sm| [&[0, 1][..], &[0, 1], &[2, 3]][app].contains(&sm)));
        assert_eq!(of(&lines), [Some(0), Some(0), Some(1)]);
        assert_eq!((lines.next_sm(0), lines.next_sm(1)), (0, 4));
        assert!(!lines.takes(1, 7) && lines.takes(1, 8) && !lines.takes(0, 8));
    }
}
