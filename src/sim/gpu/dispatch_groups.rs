//! The groups in which applications wait at the dispatcher.
//!
//! Applications that may come to the same SMs wait in one group. While the plan in force
//! stays, when a group is served depends on its own applications alone: each has events of
//! its own, so that also the order within a cycle does not depend on others. The launch
//! rate is the one thing that groups share, on machines that start fewer CTAs per cycle
//! than they have SMs.

use gpumodel_core::units::Cycle;

/// One group.
#[derive(Clone, Copy, Debug, Default)]
struct DispatchGroup {
    /// When its applications want CTAs handed out, if they do.
    asked: Option<Cycle>,
    /// From when on they may be.
    ready: Cycle,
    /// The SM that is tried first.
    next_sm: usize,
}

/// All groups, in the order of their first applications.
#[derive(Debug)]
pub(crate) struct DispatchGroups {
    groups: Vec<DispatchGroup>,
    /// By group: the cycle of the event that is scheduled for it.
    scheduled: Vec<Option<Cycle>>,
    /// By application: its group; none for one that may come to no SM.
    of_app: Vec<Option<usize>>,
    /// By SM: the group of the applications that may come there, if any may.
    at_sm: Vec<Option<usize>>,
    /// The group that is served first where the launch rate is shared: the one after the
    /// last that was.
    first: usize,
    /// The last cycle in which CTAs were handed out, and how many were.
    handed: (Cycle, u32),
}

impl DispatchGroups {
    /// One group for `apps` applications on `sms` SMs.
    pub(crate) fn new(apps: usize, sms: usize) -> Self {
        Self {
            groups: vec![DispatchGroup::default(); apps],
            scheduled: vec![None; apps],
            of_app: vec![Some(0); apps],
            at_sm: vec![Some(0); sms],
            first: 0,
            handed: (0, 0),
        }
    }

    /// Divides the applications into groups again, now that `may_come` says which application may come to which SM.
    /// Whether anything has changed.
    pub(crate) fn follow(&mut self, may_come: impl Fn(usize, usize) -> bool) -> bool {
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

    /// Applications take what is of their groups with them to those of `of_app`.
    fn carry_over(&mut self, of_app: &[Option<usize>]) {
        let before = self.groups.clone();
        let latest = before.iter().map(|group| group.ready).max().unwrap_or(0);
        for (number, group) in self.groups.iter_mut().enumerate() {
            let members = of_app.iter().zip(&self.of_app).filter(|(to, _)| **to == Some(number));
            let from: Vec<DispatchGroup> =
                members.filter_map(|(_, from)| from.map(|from| before[from])).collect();
            *group = DispatchGroup {
                asked: from.iter().filter_map(|group| group.asked).min(),
                ready: from.iter().map(|group| group.ready).max().unwrap_or(latest),
                next_sm: from.first().unwrap_or(group).next_sm,
            };
        }
    }

    /// True with one group for applications that may all come anywhere.
    pub(crate) fn is_one(&self) -> bool {
        self.of_app.iter().flatten().all(|&group| group == 0)
    }

    /// The groups by number, the first to be served first.
    pub(crate) fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first, self.groups.len());
        (0..count).map(move |k| (first + k) % count)
    }

    /// The group of an application.
    pub(crate) fn of(&self, app: usize) -> Option<usize> {
        self.of_app[app]
    }

    /// The SM that a group looks at first.
    pub(crate) fn next_sm(&self, group: usize) -> usize {
        self.groups[group].next_sm
    }

    /// Nothing is handed out before `cycle`.
    pub(crate) fn pause(&mut self, cycle: Cycle) {
        for group in &mut self.groups {
            group.ready = group.ready.max(cycle);
        }
    }

    fn ask(&mut self, group: Option<usize>, cycle: Cycle) {
        if let Some(group) = group {
            let asked = &mut self.groups[group].asked;
            *asked = Some(asked.map_or(cycle, |asked| asked.min(cycle)));
        }
    }

    /// Asks for CTAs at `cycle` for an application and those in its group.
    pub(crate) fn ask_for(&mut self, app: usize, cycle: Cycle) {
        self.ask(self.of_app[app], cycle);
    }

    /// The same for those that may come to an SM.
    pub(crate) fn ask_at(&mut self, sm: usize, cycle: Cycle) {
        self.ask(self.at_sm[sm], cycle);
    }

    /// The same for everybody.
    pub(crate) fn ask_all(&mut self, cycle: Cycle) {
        (0..self.groups.len()).for_each(|group| self.ask(Some(group), cycle));
    }

    /// Drops requests of groups in which no application waits. Gives the groups, and when,
    /// for which an event is to be scheduled.
    pub(crate) fn schedule(
        &mut self,
        waits: impl Fn(usize) -> bool,
        mut event: impl FnMut(usize, Cycle),
    ) {
        for (number, group) in self.groups.iter_mut().enumerate() {
            group.asked = group.asked.filter(|_| waits(number));
            let Some(at) = group.asked.map(|asked| asked.max(group.ready)) else { continue };
            if self.scheduled[number].is_none_or(|scheduled| scheduled > at) {
                self.scheduled[number] = Some(at);
                event(number, at);
            }
        }
    }

    /// Whether the event of a group that comes now is the one that is scheduled for it,
    /// which is then done with.
    pub(crate) fn is_called(&mut self, group: usize, now: Cycle) -> bool {
        self.scheduled[group].take_if(|at| *at == now).is_some()
    }

    /// Whether a group is served now: then what it asked for is done with.
    pub(crate) fn takes(&mut self, group: usize, now: Cycle) -> bool {
        let group = &mut self.groups[group];
        now >= group.ready && group.asked.take_if(|asked| *asked <= now).is_some()
    }

    /// CTAs that all groups have been given in this cycle.
    pub(crate) fn handed(&self, now: Cycle) -> u32 {
        if self.handed.0 == now { self.handed.1 } else { 0 }
    }

    /// A group is given a CTA; the next one goes to `next_sm` where there is room.
    pub(crate) fn served(&mut self, group: usize, next_sm: usize, now: Cycle) {
        self.handed = (now, self.handed(now) + 1);
        self.groups[group].next_sm = next_sm;
        self.first = (group + 1) % self.groups.len();
    }

    /// A group is served again at `cycle`, and not before where it was given CTAs.
    pub(crate) fn again(&mut self, group: usize, served: bool, cycle: Cycle) {
        if served {
            self.groups[group].ready = cycle;
        }
        self.ask(Some(group), cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::DispatchGroups;

    /// Groups of three applications on eight SMs, each of which may come to some of them.
    fn groups(sms: [&[usize]; 3]) -> DispatchGroups {
        let mut groups = DispatchGroups::new(3, 8);
        groups.follow(|app, sm| sms[app].contains(&sm));
        groups
    }

    fn of(groups: &DispatchGroups) -> [Option<usize>; 3] {
        [0, 1, 2].map(|app| groups.of(app))
    }

    /// Groups for which events are scheduled, and when.
    fn events(groups: &mut DispatchGroups) -> Vec<(usize, u64)> {
        let mut events = Vec::new();
        groups.schedule(|_| true, |group, at| events.push((group, at)));
        events
    }

    #[test]
    fn who_meets_on_an_sm_waits_in_one_line_with_whom_these_meet() {
        assert_eq!(of(&groups([&[0, 1], &[2], &[3]])), [Some(0), Some(1), Some(2)]);
        let chain = groups([&[0, 2], &[1, 2], &[1]]);
        assert_eq!((of(&chain), chain.is_one()), ([Some(0); 3], true));
        assert_eq!(chain.at_sm[..4], [Some(0), Some(0), Some(0), None]);
        assert_eq!(of(&groups([&[0], &[1], &[1]])), [Some(0), Some(1), Some(1)]);
        assert_eq!(of(&groups([&[], &[0], &[1]])), [None, Some(0), Some(1)]);
    }

    #[test]
    fn a_line_is_served_when_it_asks_and_not_when_another_does() {
        let mut groups = groups([&[0], &[1], &[2]]);
        groups.ask_for(0, 10);
        groups.ask_at(1, 11);
        assert_eq!(events(&mut groups), [(0, 10), (1, 11)]);
        assert_eq!(events(&mut groups), []);
        assert!(groups.is_called(0, 10) && !groups.is_called(0, 10) && !groups.is_called(1, 10));
        assert!(groups.takes(0, 10) && !groups.takes(1, 10) && !groups.takes(2, 10));
        groups.again(0, true, 14);
        assert_eq!(events(&mut groups), [(0, 14)]);
        assert!(groups.takes(1, 11) && !groups.takes(0, 13));
        groups.schedule(|group| group > 0, |_, _| ());
        assert!(!groups.takes(0, 14));
    }

    #[test]
    fn applications_take_what_is_theirs_to_other_lines() {
        let mut groups = groups([&[0], &[1], &[2, 3]]);
        groups.served(2, 4, 7);
        groups.again(2, true, 8);
        assert!(!groups.follow(|app, sm| [&[0][..], &[1], &[2, 3]][app].contains(&sm)));
        assert!(groups.follow(|app, sm| [&[0, 1][..], &[0, 1], &[2, 3]][app].contains(&sm)));
        assert_eq!(of(&groups), [Some(0), Some(0), Some(1)]);
        assert_eq!((groups.next_sm(0), groups.next_sm(1)), (0, 4));
        assert!(!groups.takes(1, 7) && groups.takes(1, 8) && !groups.takes(0, 8));
    }
}
