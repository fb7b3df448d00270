//! The work of memory controllers ahead of the rest of the machine.
//!
//! A transfer is on its way to its channel for the latency of the memory, L cycles. So at cycle
//! `s` all that arrives before `s + L` is known, and that alone, since controllers get nothing
//! else. [`LookAhead`] lets other threads advance all controllers to `s + L` while the machine
//! goes through about half of these cycles; then it gives them what has been sent meanwhile.
//!
//! A controller leaves a [`Log`] of what each of its advances gave. The machine has the same
//! events in the same order as without look-ahead, and where it would advance a controller it
//! takes the next entry of the log. Two events of a channel at one cycle leave the queue in the
//! order in which they were scheduled: an arrival carries the number of advances before its
//! transfer left, which says on which side of each of them that was.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpumodel_core::units::{Cycle, to_usize};

use super::channel::{Advanced, Controller, takes};
use crate::dram::{Block, ChannelCounters, Done};

/// Groups of channels for each thread, so that threads can share out the work.
const GROUPS_PER_THREAD: usize = 4;

/// Requests in and on their way to all controllers below which another thread is not worth its
/// start.
const WORTH_A_THREAD: usize = 64;

/// Cycles of the longest window: logs grow with it.
const LONGEST_WINDOW: Cycle = 512;

/// How long an idle thread waits for more jobs before it looks for other work.
const PATIENCE: Duration = Duration::from_millis(2);

/// How long a thread helps before it looks for other work.
const STAY: Duration = Duration::from_millis(20);

/// A block on its way to a channel.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Cycle,
    /// Advances of its channel before it left its slice.
    after: u64,
    block: Block,
}

/// What the advances of a controller gave, in their order.
#[derive(Debug, Default)]
struct Log {
    entries: Vec<(Cycle, Advanced)>,
    /// The controller's counters after each of them.
    counters: Vec<ChannelCounters>,
    /// What they served.
    done: Vec<Done>,
}

impl Log {
    fn clear(&mut self) {
        self.entries.clear();
        self.counters.clear();
        self.done.clear();
    }
}

/// A controller that is ahead of the machine.
#[derive(Debug)]
struct Ahead {
    controller: Controller,
    /// What has left slices, in the order of arrival.
    coming: VecDeque<Arrival>,
    /// Cycles of events that are scheduled, and by which advance each was first.
    scheduled: Vec<(Cycle, u64)>,
    /// Advances so far.
    advances: u64,
    log: Log,
}

impl Ahead {
    fn new(controller: Controller) -> Self {
        let (coming, scheduled) = (VecDeque::new(), Vec::new());
        Self { controller, coming, scheduled, advances: 0, log: Log::default() }
    }

    /// Adds what has left slices, in that order.
    fn send(&mut self, sent: &mut Vec<Arrival>) {
        for arrival in sent.drain(..) {
            let place = self.coming.partition_point(|other| other.at <= arrival.at);
            self.coming.insert(place, arrival);
        }
    }

    /// Makes all advances before cycle `until`.
    fn run(&mut self, until: Cycle) {
        loop {
            let next = self.coming.front().map_or(Cycle::MAX, |arrival| arrival.at);
            let now = next.min(self.controller.due);
            if now >= until {
                return;
            }
            if self.is_arrival_first()
                && let Some(Arrival { block, .. }) = self.coming.pop_front()
            {
                self.controller.arrive(block);
            } else {
                self.controller.takes_event(now);
                self.scheduled.retain(|&(cycle, _)| cycle > now);
            }
            self.advance(now);
        }
    }

    /// Whether the next arrival comes before the scheduled event.
    fn is_arrival_first(&self) -> bool {
        let Some(&Arrival { at, after, .. }) = self.coming.front() else { return false };
        let due = self.controller.due;
        if at != due {
            return at < due;
        }
        let by = self.scheduled.iter().find(|&&(cycle, _)| cycle == due).map(|&(_, by)| by);
        // Those of one cycle leave the queue in the order of scheduling.
        by.is_none_or(|by| after <= by)
    }

    fn advance(&mut self, now: Cycle) {
        let advanced = self.controller.advance(now, &mut self.log.done);
        self.log.entries.push((now, advanced));
        self.log.counters.push(*self.controller.channel.counters());
        let event = advanced.event;
        if event != Cycle::MAX && self.scheduled.iter().all(|&(cycle, _)| cycle != event) {
            self.scheduled.push((event, self.advances));
        }
        self.advances += 1;
    }

    /// Requests that it has to deal with.
    fn load(&self) -> usize {
        self.coming.len() + self.controller.load()
    }
}

/// The machine's side of a controller that is ahead.
#[derive(Debug, Default)]
struct Behind {
    log: Log,
    /// Entries of the log that the machine has taken, and what they served.
    taken: (usize, usize),
    /// Advances that the machine has seen in all.
    advances: u64,
    /// The cycle of the scheduled event; [`Cycle::MAX`] without one.
    due: Cycle,
    /// The counters before the log.
    counters: ChannelCounters,
    /// What has left slices since the controller last got that.
    sent: Vec<Arrival>,
}

impl Behind {
    /// Takes a new log, as the old one is at its end.
    fn take(&mut self, log: &mut Log) {
        debug_assert_eq!(self.taken, (self.log.entries.len(), self.log.done.len()));
        self.counters = *self.counters();
        self.taken = (0, 0);
        self.log.clear();
        std::mem::swap(&mut self.log, log);
    }

    /// The next entry of the log; what it served is added to `done`.
    fn next(&mut self, now: Cycle, done: &mut Vec<Done>) -> Advanced {
        let (entry, first) = self.taken;
        let (at, advanced) = self.log.entries[entry];
        assert_eq!(at, now, "a controller is ahead and acted at another cycle");
        let end = first + to_usize(advanced.served);
        done.extend_from_slice(&self.log.done[first..end]);
        self.taken = (entry + 1, end);
        self.advances += 1;
        if advanced.event != Cycle::MAX {
            self.due = advanced.event;
        }
        advanced
    }

    /// The counters after the last advance that the machine has seen.
    fn counters(&self) -> &ChannelCounters {
        let last = self.taken.0.checked_sub(1);
        last.map_or(&self.counters, |last| &self.log.counters[last])
    }
}

/// Controllers that are ahead of the machine, on other threads where these are idle.
#[derive(Debug)]
pub(super) struct LookAhead {
    /// By channel.
    behind: Vec<Behind>,
    jobs: Arc<Jobs>,
    /// Controllers that no thread works on, in order of their channels; empty while threads may.
    idle: Vec<Job>,
    latency: Cycle,
    /// The logs have all advances before this cycle.
    covered: Cycle,
    /// All controllers are or will be advanced to this cycle.
    computed: Cycle,
    /// It comes to its end.
    ends: bool,
}

impl Drop for LookAhead {
    fn drop(&mut self) {
        let mut state = self.jobs.lock();
        state.over = true;
        // Calls for help may wait long for a thread; they keep no controllers until then.
        let left = [std::mem::take(&mut state.waiting), std::mem::take(&mut state.done)];
        drop(state);
        self.jobs.offered.notify_all();
        drop(left);
    }
}

impl LookAhead {
    /// Lets controllers at cycle 0 go ahead of the machine on `threads` threads; transfers take
    /// `latency` cycles to them.
    pub(super) fn new(controllers: Vec<Controller>, latency: Cycle, threads: usize) -> Self {
        let channels = controllers.len();
        let groups = (GROUPS_PER_THREAD * threads).clamp(1, channels.max(1));
        let mut controllers = controllers.into_iter().map(Ahead::new);
        let job = |group: usize| {
            let count = channels * (group + 1) / groups - channels * group / groups;
            Job { group, controllers: controllers.by_ref().take(count).collect(), until: 0 }
        };
        let idle: Vec<Job> = (0..groups).map(job).collect();
        let behind = || Behind { due: Cycle::MAX, ..Behind::default() };
        Self {
            behind: (0..channels).map(|_| behind()).collect(),
            jobs: Arc::new(Jobs::new(threads.saturating_sub(1))),
            idle,
            latency,
            covered: 0,
            computed: 0,
            ends: false,
        }
    }

    /// Notes a block that leaves its slice now and arrives at `at`.
    pub(super) fn send(&mut self, channel: u32, block: Block, at: Cycle) {
        debug_assert!(at >= self.computed, "{at}: the controller is at {}", self.computed);
        let behind = &mut self.behind[to_usize(channel)];
        behind.sent.push(Arrival { at, after: behind.advances, block });
    }

    /// Whether the event of a channel at cycle `now` is the scheduled one.
    pub(super) fn takes_event(&mut self, channel: u32, now: Cycle) -> bool {
        takes(&mut self.behind[to_usize(channel)].due, now)
    }

    /// What the next advance of a channel gives, which is at cycle `now`.
    pub(super) fn advance(&mut self, channel: u32, now: Cycle, done: &mut Vec<Done>) -> Advanced {
        self.behind[to_usize(channel)].next(now, done)
    }

    /// The counters of a channel at the machine's cycle.
    pub(super) fn counters(&self, channel: usize) -> &ChannelCounters {
        self.behind[channel].counters()
    }

    /// From now on controllers go no further ahead.
    pub(super) fn end(&mut self) {
        self.ends = true;
    }

    /// Whether the logs lack advances of the cycle `now`.
    pub(super) fn is_behind(&self, now: Cycle) -> bool {
        now >= self.covered
    }

    /// Takes the logs, which are at their ends, and lets the controllers go on; returns them
    /// where they are not to go further and stand where the machine is, at cycle `now`.
    pub(super) fn go_on(&mut self, now: Cycle) -> Option<Vec<Controller>> {
        self.bring_back();
        if self.covered <= now {
            if self.ends {
                let ahead = self.idle.drain(..).flat_map(|job| job.controllers);
                return Some(ahead.map(|ahead| ahead.controller).collect());
            }
            // Nothing of the present is known: that cannot wait.
            self.run_to(now + self.window());
            self.bring_back();
        }
        if !self.ends {
            self.run_to((now + self.latency).min(self.covered + self.window()));
        }
        None
    }

    /// Cycles of the machine for which the controllers get at once what was sent.
    fn window(&self) -> Cycle {
        (self.latency / 2).clamp(1, LONGEST_WINDOW)
    }

    /// Brings the controllers back from the threads, and takes their logs.
    fn bring_back(&mut self) {
        if self.idle.is_empty() {
            self.jobs.bring_back(&mut self.idle);
        }
        let ahead = self.idle.iter_mut().flat_map(|job| &mut job.controllers);
        for (behind, ahead) in self.behind.iter_mut().zip(ahead) {
            behind.take(&mut ahead.log);
        }
        self.covered = self.computed;
    }

    /// Gives the controllers what has been sent, and lets them advance to a cycle.
    fn run_to(&mut self, until: Cycle) {
        self.computed = until;
        let mut load = 0;
        let ahead = self.idle.iter_mut().flat_map(|job| &mut job.controllers);
        for (behind, ahead) in self.behind.iter_mut().zip(ahead) {
            ahead.send(&mut behind.sent);
            load += ahead.load();
        }
        self.idle.iter_mut().for_each(|job| job.until = until);
        if load < WORTH_A_THREAD {
            self.idle.iter_mut().for_each(Job::run);
        } else {
            self.jobs.start(&mut self.idle);
        }
    }
}

/// A group of controllers that are to advance to a cycle.
#[derive(Debug)]
struct Job {
    group: usize,
    controllers: Vec<Ahead>,
    until: Cycle,
}

impl Job {
    fn run(&mut self) {
        self.controllers.iter_mut().for_each(|ahead| ahead.run(self.until));
    }
}

/// Jobs that idle threads of the pool take; the thread of the machine takes back what none has
/// begun, so that it never waits for a thread that has other work.
#[derive(Debug)]
struct Jobs {
    /// Threads that may help.
    helpers: usize,
    state: Mutex<JobState>,
    /// A job has ended.
    ended: Condvar,
    /// Jobs wait, or none will come any more.
    offered: Condvar,
}

#[derive(Debug, Default)]
struct JobState {
    waiting: Vec<Job>,
    done: Vec<Job>,
    /// Jobs that threads work on.
    running: usize,
    /// Threads that help, and calls for help that none has answered yet.
    helpers: usize,
    /// No job will come any more.
    over: bool,
    /// Why a job ended early.
    panic: Option<Box<dyn Any + Send>>,
}

impl Jobs {
    fn new(helpers: usize) -> Self {
        let (ended, offered) = (Condvar::new(), Condvar::new());
        Self { helpers, state: Mutex::default(), ended, offered }
    }

    fn lock(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers jobs to the threads of the pool.
    fn start(self: &Arc<Self>, jobs: &mut Vec<Job>) {
        let mut state = self.lock();
        state.waiting.append(jobs);
        let more = self.helpers.min(state.waiting.len()).saturating_sub(state.helpers);
        state.helpers += more;
        drop(state);
        self.offered.notify_all();
        for _ in 0..more {
            let jobs = Arc::clone(self);
            rayon::spawn(move || jobs.help());
        }
    }

    /// Works on jobs for a while.
    fn help(&self) {
        let begun = Instant::now();
        let mut state = self.lock();
        while !state.over && begun.elapsed() < STAY {
            if let Some(mut job) = state.waiting.pop() {
                state.running += 1;
                drop(state);
                let ended = catch_unwind(AssertUnwindSafe(|| job.run()));
                state = self.lock();
                state.running -= 1;
                match ended {
                    Ok(()) => state.done.push(job),
                    Err(panic) => state.panic = Some(panic),
                }
                self.ended.notify_one();
                continue;
            }
            let waited = self.offered.wait_timeout(state, PATIENCE);
            let (next, time) = waited.unwrap_or_else(PoisonError::into_inner);
            state = next;
            if time.timed_out() && state.waiting.is_empty() {
                break;
            }
        }
        state.helpers -= 1;
    }

    /// Brings all jobs back into `all`, in the order of their groups; does those that wait.
    fn bring_back(&self, all: &mut Vec<Job>) {
        let mut state = self.lock();
        loop {
            if let Some(panic) = state.panic.take() {
                drop(state);
                resume_unwind(panic);
            }
            if let Some(mut job) = state.waiting.pop() {
                drop(state);
                job.run();
                all.push(job);
                state = self.lock();
            } else if state.running > 0 {
                state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                all.append(&mut state.done);
                all.sort_unstable_by_key(|job| job.group);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::channel::{Channels, Transfer};
    use super::{Controller, LookAhead};
    use crate::config::{AddressMap, Machine, MemoryStandard};
    use crate::counters::KernelCounts;
    use crate::dram::{Block, Channel, ChannelCounters, Request};
    use crate::gpu::event_queue::{Event, EventQueue, MemoryEvent};
    use crate::testkit::{memory_of, named, on_threads};
    use gpumodel_core::units::{ClockRatio, Cycle, to_u8};

    /// What happened: cycles, events and what queued, and counters now and then.
    type Story = (Vec<(Cycle, Event, usize)>, Vec<Vec<ChannelCounters>>);

    /// Channels that get transfers at random, some at the cycles of their events.
    struct Random {
        channels: Channels,
        map: AddressMap,
        events: EventQueue<Event>,
        state: u64,
        /// Transfers that are still to be sent.
        left: u32,
    }

    impl Random {
        fn new(machine: &Machine, memory: (MemoryStandard, AddressMap), latency: Cycle) -> Self {
            let (standard, map) = memory;
            let mut channels = Channels::new(machine, &standard, 2, None);
            channels.latency = latency;
            Self { channels, map, events: EventQueue::new(), state: latency + 1, left: 3000 }
        }

        /// A number below `below`.
        fn draw(&mut self, below: u64) -> u64 {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (self.state >> 33) % below
        }

        /// Sends a transfer to one of a few rows, now or soon.
        fn send(&mut self) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let address = self.draw(1 << 13) * 64;
            let mut place = self.map.locate(address);
            place.column &= !1;
            let parts = to_u8(1 + self.draw(3));
            let remaining = to_u8(parts.count_ones());
            let write = self.draw(3) == 0;
            let (sectors, slice, kernel, flushes) = (1, 0, 0, 0);
            let transfer = Transfer {
                address,
                place,
                parts,
                remaining,
                sectors,
                slice,
                kernel,
                write,
                flushes,
            };
            let at = self.events.now() + self.draw(4);
            self.channels.send(transfer, at, &mut self.events);
        }

        /// Handles events until all that was sent is served; controllers go ahead no more from
        /// event `end` on.
        fn story(mut self, end: usize) -> Story {
            let (mut counts, mut story) = (vec![KernelCounts::default()], Story::default());
            (0..300).for_each(|_| self.send());
            while let Some(event) = self.events.next()
                && self.channels.is_busy()
            {
                match event {
                    Event::Memory(MemoryEvent::ToChannel { transfer }) => {
                        self.channels.on_arrive(transfer, &mut self.events, &mut counts);
                    }
                    Event::Memory(MemoryEvent::Channel { channel }) => {
                        self.channels.on_event(channel, &mut self.events, &mut counts);
                    }
                    Event::Memory(MemoryEvent::Fill { transfer }) => {
                        self.channels.remove(transfer);
                    }
                    other => panic!("{other:?}"),
                }
                (0..self.draw(3)).for_each(|_| self.send());
                let now = self.events.now();
                let room = (0..4).filter(|&channel| self.channels.has_room(channel)).count();
                story.0.push((now, event, room));
                if story.0.len() % 97 == 0 {
                    story.1.push(self.channels.counts(now));
                }
                if story.0.len() == end {
                    self.channels.end_look_ahead();
                }
            }
            assert!(self.left == 0 && story.0.len() > 3000);
            story
        }
    }

    #[test]
    fn channels_that_are_ahead_do_the_same_in_the_same_order() {
        for (name, key) in [("v100", "8"), ("ugpu", "2"), ("gtx-1080", "2"), ("warped-slicer", "2")]
        {
            let resolved = named(name, &[("l2.dram_queue", key)]);
            let random = |latency| Random::new(&resolved.machine, memory_of(&resolved), latency);
            // The shorter, the more events are scheduled at the cycle of a transfer's departure.
            for latency in [1, 2, 7, 30, 200] {
                let known = random(latency).story(0);
                for (threads, end) in [(1, 0), (2, 0), (3, 1500)] {
                    let mut ahead = random(latency);
                    ahead.channels.look_ahead(threads);
                    let story = on_threads(threads, || ahead.story(end));
                    let first = known.0.iter().zip(&story.0).position(|(one, other)| one != other);
                    assert_eq!(first, None, "{name}, {latency} cycles, {threads} threads");
                    assert!(known == story, "{name}, {latency} cycles, {threads} threads");
                }
            }
        }
    }

    /// A controller of HBM2, and a block for a bank.
    fn one(bank: u32) -> (Controller, Block) {
        let resolved = named("v100", &[]);
        let (standard, _) = memory_of(&resolved);
        let channel = Channel::new(&standard, &standard.controller);
        let request = Request { bank, ..Request::default() };
        (Controller::new(channel, ClockRatio::new(1, 1)), Block { request, columns: 1 })
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn a_panic_of_another_thread_is_one_of_the_machine() {
        on_threads(2, || {
            let (controller, block) = one(1000);
            let mut ahead = LookAhead::new(vec![controller], 10, 2);
            (0..100).for_each(|_| ahead.send(0, block, 10));
            ahead.go_on(0);
            ahead.go_on(9);
            ahead.go_on(18);
        });
    }

    #[test]
    fn what_no_thread_begins_is_done_by_the_machine() {
        let (controller, block) = one(0);
        let mut ahead = LookAhead::new(vec![controller], 10, 2);
        (0..100).for_each(|_| ahead.send(0, block, 10));
        // The only thread of the pool is that of the machine.
        on_threads(1, || {
            assert!([0, 5, 10].into_iter().all(|now| ahead.go_on(now).is_none()));
            let mut done = Vec::new();
            let advanced = ahead.advance(0, 10, &mut done);
            assert_eq!((advanced.queued, advanced.waits, done.len()), (0, true, 0));
        });
    }
}
