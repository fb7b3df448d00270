//! Where lanes go: branches, convergence, calls, barriers and the end.

use super::lanes::{From, Scope, each, mask_of};
use super::warp::{Pause, Split, Wait, Warp};
use crate::sass::{Control, CtaBarrier, Guard, Step};
use crate::{Exception, Failure, RunError};

/// Instructions of a split before another one of its warp has its turn.
const SPLIT_TURN: u64 = 1 << 10;

impl Scope<'_> {
    /// Runs the warp until all its lanes wait or have ended, or for `turn` instructions.
    pub(super) fn run(&mut self, turn: u64) -> Result<(), RunError> {
        let end = self.warp.executed + turn;
        let (mut rests, registers) = (0, self.grid.code.registers);
        (self.warp.idle, self.warp.spin.found, self.warp.spin.back) = (false, false, false);
        self.warp.retry();
        while self.warp.executed < end {
            let Some(index) = self.warp.splits.iter().position(|s| s.wait == Wait::Ready) else {
                self.warp.idle = true;
                return Ok(());
            };
            // The one that is ready goes first; the others wait for their turn.
            self.warp.splits.swap(0, index);
            let limit = end.min(self.warp.executed + SPLIT_TURN);
            self.stretch(limit)?;
            let lane = self.active.trailing_zeros() as usize;
            let back = std::mem::take(&mut self.warp.spin.back);
            let spins = back && self.warp.spins(lane, registers);
            let pause = std::mem::take(&mut self.warp.pause);
            let rest = spins || pause == Pause::Rest;
            rests += usize::from(rest);
            // Lanes that wait for others of their warp let these go first.
            self.warp.spin.found = rest && rests >= self.warp.ready();
            let ends = pause == Pause::Turn || self.warp.spin.found;
            if self.warp.splits.len() > 1 && (ends || rest || self.warp.executed >= limit) {
                self.warp.splits.rotate_left(1);
            }
            if ends {
                self.warp.idle = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Executes instructions of the first split until another one may be first, or `limit` of
    /// the warp's are done.
    fn stretch(&mut self, limit: u64) -> Result<(), RunError> {
        let Split { mut at, mask: active, apart, .. } = self.warp.splits[0];
        let code = self.grid.code;
        self.active = active;
        // Uniform registers between a vote of lanes apart and its use belong to these lanes.
        while self.warp.executed < limit || apart != 0 {
            let Some(instruction) = code.instructions.get(at) else {
                // It counts as well: code that calls without end must not hold up others.
                self.warp.executed += 1;
                return self.call_system(at);
            };
            let mask = match instruction.guard {
                Guard::ALWAYS => active,
                guard => active & self.holds(guard),
            };
            self.warp.executed += 1;
            match &instruction.step {
                Step::Compute(action) => {
                    action(self, mask).map_err(|what| self.fault(at, &what))?;
                    self.warp.note(at, instruction.addressed, mask);
                    at += 1;
                }
                Step::Wait(action) => {
                    action(self, mask).map_err(|what| self.fault(at, &what))?;
                    if !self.goes_on(at, instruction.addressed, mask) {
                        return Ok(());
                    }
                    at += 1;
                }
                Step::Control(control) => {
                    self.warp.note(at, instruction.addressed, mask);
                    let done = self.control(control, at, mask);
                    return done.map_err(|what| self.fault(at, &what));
                }
                Step::Unknown(what) => return Err(self.grid.fault(at, what.clone())),
            }
        }
        self.warp.splits[0].at = at;
        Ok(())
    }

    /// After the instruction at `at`, for which lanes may wait: whether the next one follows at
    /// once.
    fn goes_on(&mut self, at: usize, addressed: bool, mask: u32) -> bool {
        if self.warp.pause == Pause::Again {
            self.warp.executed -= 1;
            let split = &mut self.warp.splits[0];
            *split = Split { at, mask: self.active, wait: Wait::Object, ..*split };
            return false;
        }
        self.warp.note(at, addressed, mask);
        self.warp.splits[0].at = at + 1;
        self.warp.pause == Pause::No
    }

    /// The error of the instruction `at`: of the program where the device raises an exception.
    pub(super) fn fault(&mut self, at: usize, what: &str) -> RunError {
        let what = format!("CTA {}, warp {}: {what}", self.position, self.warp.number);
        let error = self.grid.fault(at, what);
        match self.warp.exception.take() {
            None => error,
            Some(exception) => {
                RunError::Failed(Failure { exception, text: format!("gpumodel: {error}\n") })
            }
        }
    }

    fn control(&mut self, control: &Control, at: usize, mask: u32) -> Result<(), String> {
        let next = at + 1;
        match control {
            Control::Branch { target, also } => {
                let taken = also.map_or(mask, |guard| mask & self.holds(guard));
                self.part(next, taken, *target);
            }
            Control::BranchTogether { target } => {
                self.part(next, if mask == 0 { 0 } else { self.active }, *target);
            }
            Control::BranchWhen { target, mask: of, together } => {
                let taken = self.taken_when(*of, *together, mask);
                self.part(next, taken, *target);
            }
            Control::Jump { address, base } => self.jump(next, mask, *address, *base),
            Control::Exit => self.exit(next, mask),
            Control::Push { barrier } => self.push(*barrier, next, mask),
            Control::Converge { barrier } => self.converge(*barrier, next, mask),
            Control::Break { barrier, when } => {
                self.leave(*barrier, next, mask & self.holds(*when));
            }
            Control::Sync { mask: of, apart } => self.sync(*of, *apart, next, mask),
            Control::Barrier(barrier) => self.cta_barrier(barrier, next, mask)?,
            Control::ClusterArrive => self.arrive_at_cluster(next, mask),
            Control::ClusterWait => self.wait_for_cluster(next, mask),
            Control::Sleep if mask != 0 && self.warp.sleeps() => {
                self.warp.splits[0].at = next;
                self.warp.pause = Pause::Rest;
            }
            Control::Yield | Control::Sleep => {
                self.warp.splits[0].at = next;
                self.warp.splits.rotate_left(1);
            }
            Control::Trap if mask != 0 => {
                self.warp.exception = Some(Exception::LaunchFailure);
                return Err("the kernel trapped".into());
            }
            Control::Trap => self.warp.splits[0].at = next,
        }
        Ok(())
    }

    /// Lanes will converge at `barrier`.
    fn push(&mut self, barrier: usize, next: usize, mask: u32) {
        for lane in each(self.active & mask) {
            self.warp.barriers[barrier][lane] = self.active & mask;
        }
        self.warp.splits[0].at = next;
    }

    fn arrive_at_cluster(&mut self, next: usize, mask: u32) {
        self.warp.splits[0].at = next;
        self.warp.at_cluster |= mask;
        self.warp.spin.writes += 1;
    }

    /// Lanes wait where the barrier of the cluster was not complete since they arrived.
    fn wait_for_cluster(&mut self, next: usize, mask: u32) {
        self.warp.splits[0].at = next;
        if self.warp.at_cluster & mask != 0 && self.grid.in_cluster() {
            self.warp.splits[0].wait = Wait::Cluster;
        }
    }

    /// Whether the lanes of `here` have all of a mask that have not ended. The compiler's guard
    /// excludes lanes whose mask is not that of others.
    fn all_here(&self, of: From, here: u32) -> bool {
        let first = self.active.trailing_zeros() as usize % 32;
        let wanted = self.get(of)[first] & self.warp.alive;
        here & wanted == wanted
    }

    /// The lanes that branch when all lanes of a mask are here, or are not.
    fn taken_when(&self, of: From, together: bool, mask: u32) -> u32 {
        match mask != 0 && self.all_here(of, mask) == together {
            true if together => mask,
            true => self.active,
            false => 0,
        }
    }

    /// Lanes of `taken` go to `target`, the others on to `next`.
    fn part(&mut self, next: usize, taken: u32, target: usize) {
        self.warp.spin.back = taken != 0 && target < next;
        let split = &mut self.warp.splits[0];
        let others = split.mask & !taken;
        match (taken, others) {
            (0, _) => split.at = next,
            (_, 0) => split.at = target,
            _ => {
                (split.at, split.mask) = (next, others);
                let goes = Split { at: target, mask: taken, ..*split };
                self.warp.splits.push(goes);
            }
        }
    }

    pub(super) fn jump(&mut self, next: usize, mask: u32, address: From, base: u64) {
        let to = self.get64(address);
        let place =
            |lane: usize| usize::try_from(to[lane].wrapping_add(base) / 16).unwrap_or(usize::MAX);
        let others = self.active & !mask;
        let here = Split { at: next, mask: others, ..self.warp.splits[0] };
        self.warp.splits[0] = here;
        let mut left = mask;
        while left != 0 {
            let at = place(left.trailing_zeros() as usize);
            let same = mask_of(|lane| left >> lane & 1 == 1 && place(lane) == at);
            self.warp.splits.push(Split { at, mask: same, ..here });
            left &= !same;
        }
        self.warp.splits.retain(|split| split.mask != 0);
    }

    fn exit(&mut self, next: usize, mask: u32) {
        self.warp.alive &= !mask;
        let split = &mut self.warp.splits[0];
        split.mask &= !mask;
        split.at = next;
        if split.mask == 0 {
            self.warp.splits.swap_remove(0);
        }
        self.warp.meet();
    }

    fn leave(&mut self, barrier: usize, next: usize, leaving: u32) {
        for lanes in self.warp.barriers[barrier].iter_mut() {
            if *lanes & leaving != 0 {
                *lanes &= !leaving;
            }
        }
        for split in &mut self.warp.splits {
            if let Wait::Converge(number, joined) = &mut split.wait
                && usize::from(*number) == barrier
                && *joined & leaving != 0
            {
                *joined &= !leaving;
            }
        }
        for lane in each(leaving) {
            self.warp.barriers[barrier][lane] = 0;
        }
        self.warp.splits[0].at = next;
        self.warp.meet();
    }

    fn converge(&mut self, barrier: usize, next: usize, mask: u32) {
        let wait = |warp: &Warp| {
            let lane = mask.trailing_zeros() as usize % 32;
            warp.barriers[barrier][lane] | mask
        };
        let joined = wait(self.warp);
        let split = &mut self.warp.splits[0];
        let others = split.mask & !mask;
        split.at = next;
        if mask == 0 {
            return;
        }
        if joined & self.warp.alive & !split.mask == 0 && others == 0 {
            split.apart = 0;
            return;
        }
        let left = Split { mask: others, ..*split };
        let number = u8::try_from(barrier).unwrap_or(0);
        *split = Split { at: next, mask, wait: Wait::Converge(number, joined), apart: 0 };
        if others != 0 {
            self.warp.splits.push(left);
        }
        self.warp.meet();
    }

    /// The lanes of each mask wait for each other and go on, where `apart` without any others.
    fn sync(&mut self, of: From, apart: bool, next: usize, mask: u32) {
        let (of, alive) = (self.get(of), self.warp.alive);
        let all = each(mask).fold(0, |all, lane| all | of[lane]) & alive;
        let one = all == mask && each(mask).all(|lane| of[lane] & alive == all);
        let split = &mut self.warp.splits[0];
        (split.at, split.apart) = (next, 0);
        let here = *split;
        if all & !here.mask == 0 && (!apart || one && all == alive) {
            return;
        }
        let (mut groups, mut left) = (Vec::new(), mask);
        while left != 0 {
            let named = of[left.trailing_zeros() as usize];
            let wanted = named & alive;
            let group = left & mask_of(|lane| of[lane] & alive == wanted);
            let wait = if wanted & !mask == 0 { Wait::Ready } else { Wait::Warp(wanted) };
            groups.push(Split { mask: group, wait, apart: if apart { named } else { 0 }, ..here });
            left &= !group;
        }
        groups.push(Split { mask: here.mask & !mask, ..here });
        self.warp.splits.splice(..1, groups);
        self.warp.merge();
        self.warp.meet();
    }

    fn cta_barrier(&mut self, barrier: &CtaBarrier, next: usize, mask: u32) -> Result<(), String> {
        let first = mask.trailing_zeros() as usize % 32;
        let number = self.get(barrier.number)[first];
        let number = u8::try_from(number & 15).unwrap_or(0);
        let expected = barrier.expected.map_or(0, |from| self.get(from)[first]);
        let split = &mut self.warp.splits[0];
        split.at = next;
        if mask == 0 {
            return Ok(());
        }
        if mask != split.mask {
            return Err("a barrier under a predicate that not all threads share".into());
        }
        if barrier.waits {
            split.wait = Wait::Cta(number);
        }
        if let Some(predicate) = barrier.predicate {
            self.warp.reduces_all = barrier.all;
            let holding = (self.holds(predicate) & mask).count_ones();
            let arrived = &mut self.cta.barriers[usize::from(number)];
            arrived.holding += holding;
            arrived.asked += mask.count_ones();
        }
        self.warp.spin.writes += 1;
        self.cta.arrive(number, self.warp, mask, expected);
        Ok(())
    }
}

impl Warp {
    /// How many splits do not wait.
    fn ready(&self) -> usize {
        self.splits.iter().filter(|split| split.wait == Wait::Ready).count()
    }

    /// Lets lanes go on whose partners have all arrived or ended.
    pub(crate) fn meet(&mut self) {
        loop {
            let complete = |split: &Split| self.complete(split.wait);
            let Some(wait) = self.splits.iter().find(|s| complete(s)).map(|s| s.wait) else {
                return;
            };
            for split in &mut self.splits {
                let same = match (split.wait, wait) {
                    (Wait::Converge(one, a), Wait::Converge(other, b)) => one == other && a == b,
                    (Wait::Warp(_), Wait::Warp(wanted)) => split.mask & wanted != 0,
                    _ => false,
                };
                if same {
                    split.wait = Wait::Ready;
                }
            }
            self.merge();
        }
    }

    fn complete(&self, wait: Wait) -> bool {
        let waiting = |kind: fn(Wait, Wait) -> bool| {
            self.splits.iter().filter(|s| kind(s.wait, wait)).fold(0, |all, s| all | s.mask)
        };
        match wait {
            Wait::Ready | Wait::Cta(_) | Wait::Cluster | Wait::Object => false,
            Wait::Converge(_, joined) => {
                let same = |one: Wait, other: Wait| match (one, other) {
                    (Wait::Converge(a, x), Wait::Converge(b, y)) => a == b && x == y,
                    _ => false,
                };
                joined & self.alive & !waiting(same) == 0
            }
            Wait::Warp(wanted) => {
                let same = |one: Wait, _: Wait| matches!(one, Wait::Warp(_));
                wanted & self.alive & !waiting(same) == 0
            }
        }
    }
}
