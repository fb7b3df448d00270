//! The events of a run, and the one queue that they wait in: a calendar of the near
//! future and a heap beyond it.
//!
//! Events leave in order of (cycle, order of scheduling), which is the whole
//! tie-break: a run is a function of its input alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gpumodel_core::units::{Cycle, to_usize};

/// One event; ids index the tables of their owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// CTAs may start from a dispatch group.
    Dispatch { group: u16 },
    /// A launch begins its launch latency.
    Launch { kernel: u32 },
    /// A launch may start CTAs.
    Begin { kernel: u32 },
    /// A further instance of a launch with workers may start them.
    Instance { kernel: u32 },
    /// An interval of a scheduler may be complete.
    Scheduler { sm: u16, scheduler: u8 },
    /// A warp's wait ends at a known time.
    Wake { sm: u16, warp: u16 },
    /// The load/store unit may continue.
    LoadStore { sm: u16 },
    /// Lines of code have come for warps, or requests for code may leave.
    Fetch { sm: u16 },
    /// Something happens behind the SMs' ports.
    Memory(MemoryEvent),
    /// A page is in its new channels.
    PageCopied { token: u32 },
    /// The L2 TLB knows whether it has a page.
    LookUp { request: u32 },
    /// A page walk begins, goes to its next level, or ends.
    Walk { walk: u32 },
    /// The driver has found a frame for a page that moves.
    PageMove { number: u32 },
    /// An answer arrives at its SM.
    Reply { packet: u32 },
    /// The barrier of a cluster opens.
    ClusterOpen { cluster: u32 },
    /// A message arrives at a CTA of a cluster.
    ClusterMessage { message: u32 },
    /// Whether all CTAs of a cluster wait is checked.
    ClusterCheck { cluster: u32 },
    /// A copy between host and device has ended.
    Copied { copy: u32 },
    /// A page of managed memory has come.
    PageBrought { place: u32 },
    /// An application arrives.
    Arrival { app: u16 },
    /// A plan takes effect; this and the next two only while it has this number.
    Effect { plan: u32 },
    /// A cycle has come at which the plan asked to be woken.
    Alarm { plan: u32 },
    /// Whether an application's IPC has shifted is checked.
    IpcCheck { plan: u32 },
    /// A time slice is over, or may begin.
    SliceEnd { plan: u32 },
    /// Whether an application has reached its target is checked.
    TargetCheck,
    /// A window of a fast-forwarded run is over.
    Window,
    /// The run is over.
    End,
}

/// An event of slices, the way to them, and memory channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryEvent {
    /// Packets cross whose ports take turns.
    Turn,
    /// A request arrives at its slice.
    Arrive { packet: u32 },
    /// A slice's answers have drained: it may continue.
    Slice { slice: u16 },
    /// A request or an answer arrives from the other half of the L2.
    Crossed { packet: u32 },
    /// A transfer arrives at its memory channel.
    ToChannel { transfer: u32 },
    /// A memory channel has something to do.
    Channel { channel: u16 },
    /// Columns of pages may go from channel to channel of a stack.
    PageCopy { stack: u16 },
    /// A sector arrives at its slice from memory.
    Fill { transfer: u32 },
}

impl Event {
    /// Whether it is due at a cycle of the run, whatever the machine does: stretches that are
    /// passed over bring it nearer.
    pub(crate) const fn is_of_the_clock(&self) -> bool {
        match self {
            Self::Arrival { .. }
            | Self::Effect { .. }
            | Self::Alarm { .. }
            | Self::SliceEnd { .. }
            | Self::TargetCheck
            | Self::End => true,
            Self::Dispatch { .. }
            | Self::Launch { .. }
            | Self::Begin { .. }
            | Self::Instance { .. }
            | Self::Scheduler { .. }
            | Self::Wake { .. }
            | Self::LoadStore { .. }
            | Self::Fetch { .. }
            | Self::Memory(_)
            | Self::PageCopied { .. }
            | Self::LookUp { .. }
            | Self::Walk { .. }
            | Self::PageMove { .. }
            | Self::Reply { .. }
            | Self::ClusterOpen { .. }
            | Self::ClusterMessage { .. }
            | Self::ClusterCheck { .. }
            | Self::Copied { .. }
            | Self::PageBrought { .. }
            | Self::IpcCheck { .. }
            | Self::Window => false,
        }
    }
}

impl From<MemoryEvent> for Event {
    fn from(event: MemoryEvent) -> Self {
        Self::Memory(event)
    }
}

/// Cycles that the calendar covers; a power of two, multiple of 64.
const SPAN: u64 = 4096;

/// A queue of events of type `E`.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    now: Cycle,
    days: Vec<Vec<E>>,
    /// Lists of past days, to be used again: the last one first, as it is still in
    /// the host's cache.
    spare: Vec<Vec<E>>,
    occupied: [u64; (SPAN / 64) as usize],
    far: BinaryHeap<Reverse<Far<E>>>,
    sequence: u64,
    today: Vec<E>,
    today_next: usize,
}

#[derive(Debug)]
struct Far<E> {
    cycle: Cycle,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.cycle, self.sequence) == (other.cycle, other.sequence)
    }
}

impl<E> Eq for Far<E> {}

impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.cycle, self.sequence).cmp(&(other.cycle, other.sequence))
    }
}

impl<E: Copy> EventQueue<E> {
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            days: (0..SPAN).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            occupied: [0; (SPAN / 64) as usize],
            far: BinaryHeap::new(),
            sequence: 0,
            today: Vec::new(),
            today_next: 0,
        }
    }

    /// The cycle of the last event taken.
    pub(crate) fn now(&self) -> Cycle {
        self.now
    }

    /// Schedules `event` at `cycle`; a cycle in the past is now.
    #[inline]
    pub(crate) fn schedule(&mut self, cycle: Cycle, event: E) {
        if cycle <= self.now {
            self.today.push(event);
        } else if cycle - self.now < SPAN {
            let day = to_usize(cycle % SPAN);
            let bit = 1 << (day % 64);
            if self.occupied[day / 64] & bit == 0 {
                self.occupied[day / 64] |= bit;
                self.days[day] = self.spare.pop().unwrap_or_default();
            }
            self.days[day].push(event);
        } else {
            self.sequence += 1;
            self.far.push(Reverse(Far { cycle, sequence: self.sequence, event }));
        }
    }

    /// Takes the next event and moves time to it; `None` when none is left.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<E> {
        loop {
            if let Some(&event) = self.today.get(self.today_next) {
                self.today_next += 1;
                return Some(event);
            }
            self.today.clear();
            self.today_next = 0;
            self.turn_to_next_day()?;
        }
    }

    /// The cycle of the first waiting event that `is` chooses.
    pub(crate) fn first(&self, is: impl Fn(&E) -> bool) -> Option<Cycle> {
        if self.today[self.today_next..].iter().any(&is) {
            return Some(self.now);
        }
        let near = self.ahead().find(|&(day, _)| self.days[day].iter().any(&is));
        let far = self.far.iter().filter(|Reverse(far)| is(&far.event));
        let far = far.map(|Reverse(far)| far.cycle).min();
        near.map(|(_, cycle)| cycle).into_iter().chain(far).min()
    }

    /// Lets the waiting events that `is` chooses come `by` cycles sooner, in the same order; now at
    /// the soonest.
    pub(crate) fn bring_forward(&mut self, by: Cycle, is: impl Fn(&E) -> bool) {
        let mut moved = Vec::new();
        for (day, cycle) in self.ahead().collect::<Vec<_>>() {
            let list = &mut self.days[day];
            moved.extend(list.iter().filter(|event| is(event)).map(|&event| (cycle, 1, 0, event)));
            list.retain(|event| !is(event));
        }
        for Reverse(far) in std::mem::take(&mut self.far) {
            if is(&far.event) {
                moved.push((far.cycle, 0, far.sequence, far.event));
            } else {
                self.far.push(Reverse(far));
            }
        }
        moved.sort_by_key(|&(cycle, near, sequence, _)| (cycle, near, sequence));
        moved
            .into_iter()
            .for_each(|(cycle, .., event)| self.schedule(cycle.saturating_sub(by), event));
    }

    /// The days of the calendar that have events, with their cycles, soonest first.
    fn ahead(&self) -> impl Iterator<Item = (usize, Cycle)> {
        let cycles = self.now + 1..self.now + SPAN;
        let days = cycles.map(|cycle| (to_usize(cycle % SPAN), cycle));
        days.filter(|&(day, _)| self.occupied[day / 64] >> (day % 64) & 1 == 1)
    }

    fn turn_to_next_day(&mut self) -> Option<()> {
        let near = self.next_occupied_day();
        let far = self.far.peek().map(|Reverse(far)| far.cycle);
        let cycle = match (near, far) {
            (Some(near), Some(far)) => near.min(far),
            (near, far) => near.or(far)?,
        };
        self.now = cycle;
        // What waited beyond the calendar was scheduled before anything that the
        // calendar holds for the same cycle, so it goes first.
        while self.far.peek().is_some_and(|Reverse(far)| far.cycle == cycle) {
            if let Some(Reverse(far)) = self.far.pop() {
                self.today.push(far.event);
            }
        }
        let day = to_usize(cycle % SPAN);
        let bit = 1 << (day % 64);
        if self.occupied[day / 64] & bit != 0 {
            self.occupied[day / 64] &= !bit;
            let mut list = std::mem::take(&mut self.days[day]);
            if self.today.is_empty() {
                std::mem::swap(&mut self.today, &mut list);
            } else {
                self.today.append(&mut list);
            }
            self.spare.push(list);
        }
        Some(())
    }

    fn next_occupied_day(&self) -> Option<Cycle> {
        let start = to_usize((self.now + 1) % SPAN);
        let words = self.occupied.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let day = word * 64 + to_usize(bits.trailing_zeros());
                let ahead = (day + to_usize(SPAN) - start) % to_usize(SPAN);
                return Some(self.now + 1 + ahead as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::EventQueue;

    #[test]
    fn an_event_takes_eight_bytes() {
        assert_eq!(size_of::<super::Event>(), 8);
    }

    #[test]
    fn events_leave_by_cycle_then_by_order_of_scheduling() {
        let mut queue = EventQueue::new();
        queue.schedule(10_000, 'x');
        queue.schedule(5, 'b');
        queue.schedule(3, 'a');
        queue.schedule(5, 'c');
        assert_eq!((queue.next(), queue.now()), (Some('a'), 3));
        queue.schedule(3, 'd');
        assert_eq!((queue.next(), queue.now()), (Some('d'), 3));
        assert_eq!((queue.next(), queue.now()), (Some('b'), 5));
        assert_eq!((queue.next(), queue.now()), (Some('c'), 5));
        queue.schedule(4_100, 'e');
        assert_eq!((queue.next(), queue.now()), (Some('e'), 4_100));
        queue.schedule(10_000, 'y');
        assert_eq!((queue.next(), queue.now()), (Some('x'), 10_000));
        assert_eq!((queue.next(), queue.now()), (Some('y'), 10_000));
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn chosen_events_come_sooner_in_the_same_order() {
        let mut queue = EventQueue::new();
        queue.schedule(9_000, 'x');
        queue.schedule(9_000, 'y');
        queue.schedule(3_000, 'z');
        queue.schedule(3_000, 'a');
        let capital = |event: &char| *event > 'w';
        assert_eq!((queue.first(capital), queue.first(|_| false)), (Some(3_000), None));
        queue.bring_forward(2_500, capital);
        queue.schedule(700, 'y');
        queue.bring_forward(5_000, |event| *event == 'y');
        let mut order = Vec::new();
        while let Some(event) = queue.next() {
            order.push((event, queue.now()));
        }
        assert_eq!(order, [('y', 0), ('z', 500), ('y', 1_500), ('a', 3_000), ('x', 6_500)]);
    }

    #[test]
    fn a_sorted_reference_agrees() {
        let mut queue = EventQueue::new();
        let mut reference = std::collections::BTreeMap::new();
        let mut state = 1_u64;
        let mut sequence = 0_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            if state >> 62 != 0 {
                let cycle = queue.now()
                    + (state >> 33) % [3, 100, 4_095, 4_097, 9_000][(state >> 20) as usize % 5];
                sequence += 1;
                queue.schedule(cycle, sequence);
                reference.insert((cycle, sequence), ());
            } else if let Some(event) = queue.next() {
                let ((cycle, first), ()) = reference.pop_first().unwrap();
                assert_eq!((queue.now(), event), (cycle, first));
            }
        }
    }
}
