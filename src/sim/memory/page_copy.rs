//! Copying pages between the channels of the stacks (UGPU, sections 4.3 and 4.5).
//!
//! A page is cut into its columns. The columns of one bank's row at both ends are one copy
//! between two banks, and each stack does its own copies. A page stays in the same stacks
//! wherever it lies: channels at the same position of their groups are a stack.

use std::ops::{Index, IndexMut};

use crate::config::{AddressMap, Location, MemoryStandard, PageChannels};
use gpumodel_core::units::{Cycle, to_u16, to_u32, to_usize};

use super::channel::{Channels, Controller};
use super::{Counts, Events};
use crate::dram::{BankCopy, BankRow, Channel, Copied, Copier, bank_index};
use crate::gpu::event_queue::{Event, MemoryEvent};
use crate::slab::Slab;

/// A page that is being copied.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// The caller's number for it.
    token: u32,
    /// Copies between banks that have not ended.
    remaining: u32,
    /// The memory clock at which the ended ones have arrived.
    clock: u64,
}

/// The copies of one stack and their next event.
#[derive(Debug)]
struct Stack {
    copier: Copier,
    /// The cycle of the scheduled event; [`Cycle::MAX`] without one.
    due: Cycle,
}

/// The pages that are copied from channel to channel.
#[derive(Debug)]
pub(super) struct PageCopies {
    stacks: Vec<Stack>,
    /// By channel.
    stack_of: Vec<u16>,
    pages: Slab<Page>,
    /// Bytes that one MIGRATION moves.
    column_bytes: u64,
    standard: MemoryStandard,
    copied: Vec<Copied>,
}

/// The controllers by the number of their channel.
struct Controllers<'a>(&'a mut [Controller]);

impl Index<usize> for Controllers<'_> {
    type Output = Channel;

    fn index(&self, channel: usize) -> &Channel {
        &self.0[channel].channel
    }
}

impl IndexMut<usize> for Controllers<'_> {
    fn index_mut(&mut self, channel: usize) -> &mut Channel {
        &mut self.0[channel].channel
    }
}

impl PageCopies {
    /// No page in flight; `None` where the memory has no MIGRATION, pages do not
    /// belong to groups of channels, or a column does not stay in one row.
    pub(super) fn new(
        standard: &MemoryStandard,
        map: &AddressMap,
        page_bytes: u32,
    ) -> Option<Self> {
        let column_bytes = u64::from(standard.migration_bytes);
        let pages = PageChannels::of(map, page_bytes).filter(|_| column_bytes > 0)?;
        if !columns_stay_whole(map, u64::from(page_bytes), column_bytes) {
            return None;
        }
        let groups = pages.groups();
        let mut stack_of = vec![0; to_usize(map.channels())];
        let stack = |position: usize| {
            let channels = groups.iter().map(|group| to_usize(group[position])).collect();
            Stack { copier: Copier::new(standard, channels), due: Cycle::MAX }
        };
        let stacks: Vec<Stack> = (0..groups[0].len()).map(stack).collect();
        for (number, stack) in stacks.iter().enumerate() {
            stack.copier.channels().iter().for_each(|&c| stack_of[c] = to_u16(number));
        }
        let standard = standard.clone();
        let (pages, copied) = (Slab::new(), Vec::new());
        Some(Self { stacks, stack_of, pages, column_bytes, standard, copied })
    }

    /// Pages that are being copied.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Copies a page from the first address of `ends` to the second.
    pub(super) fn push(
        &mut self,
        token: u32,
        ends: [u64; 2],
        bytes: u32,
        map: &AddressMap,
        events: &mut Events,
    ) {
        let mut pieces = self.cut(ends, bytes, map);
        let number = self.pages.insert(Page { token, remaining: to_u32(pieces.len()), clock: 0 });
        for mut piece in pieces.drain(..) {
            piece.token = number;
            let stack = self.stack_of[piece.from.channel];
            self.stacks[usize::from(stack)].copier.push(piece);
            self.schedule(stack, events.now(), events);
        }
    }

    /// The copies between banks that make up a page, in order of its addresses.
    fn cut(&self, [from, to]: [u64; 2], bytes: u32, map: &AddressMap) -> Vec<BankCopy> {
        let mut pieces: Vec<BankCopy> = Vec::new();
        for offset in (0..u64::from(bytes)).step_by(to_usize(self.column_bytes)) {
            let [here, there] = [from, to].map(|page| map.locate(page + offset));
            let ends = [here, there].map(|place| self.bank_row(place));
            let columns = (here.column, there.column);
            match pieces.iter_mut().find(|piece| [piece.from, piece.to] == ends) {
                Some(piece) => piece.columns.push(columns),
                None => {
                    let [from, to] = ends;
                    pieces.push(BankCopy { token: 0, from, to, columns: vec![columns] });
                }
            }
        }
        pieces
    }

    fn bank_row(&self, place: Location) -> BankRow {
        let Location { channel, pseudo_channel, bank_group, bank, row, .. } = place;
        let bank = bank_index(&self.standard, pseudo_channel, bank_group, bank);
        BankRow { channel: to_usize(channel), bank: to_usize(bank), row }
    }

    /// A bank of `channel` may have become ready for its copy.
    pub(super) fn bank_may_be_ready(&mut self, channel: u32, events: &mut Events) {
        self.schedule(self.stack_of[to_usize(channel)], events.now(), events);
    }

    /// Schedules a stack for cycle `at` unless it is scheduled for an earlier one.
    fn schedule(&mut self, stack: u16, at: Cycle, events: &mut Events) {
        let due = &mut self.stacks[usize::from(stack)].due;
        if at < *due {
            *due = at;
            events.schedule(at, MemoryEvent::PageCopy { stack }.into());
        }
    }

    /// Records the copies between banks that have ended; the last one ends its page's copy.
    fn report_copied(&mut self, channels: &Channels, events: &mut Events) {
        for Copied { token, clock } in self.copied.drain(..) {
            let page = self.pages.get_mut(token);
            page.remaining -= 1;
            page.clock = page.clock.max(clock);
            if page.remaining == 0 {
                let Page { token, clock, .. } = self.pages.remove(token);
                let at = channels.clock.core_cycle_at_or_after(clock);
                events.schedule(at, Event::PageCopied { token });
            }
        }
    }
}

/// Lets a stack send and start what it can; returns the channels that were advanced to the
/// present for that.
pub(super) fn work(
    channels: &mut Channels,
    stack: u16,
    events: &mut Events,
    counts: &mut Counts,
) -> Vec<u32> {
    let now = events.now();
    let Some(mut copies) = channels.copies.take() else { return Vec::new() };
    let place = usize::from(stack);
    let due = std::mem::replace(&mut copies.stacks[place].due, Cycle::MAX);
    if due != now {
        copies.stacks[place].due = due;
        channels.copies = Some(copies);
        return Vec::new();
    }
    let of_stack = copies.stacks[place].copier.channels().iter();
    let of_stack: Vec<u32> = of_stack.map(|&channel| to_u32(channel)).collect();
    of_stack.iter().for_each(|&channel| channels.advance(channel, events, counts));
    let edge = channels.edge(now);
    let PageCopies { stacks, copied, .. } = &mut *copies;
    let copier = &mut stacks[place].copier;
    copier.work(edge, &mut Controllers(&mut channels.controllers), copied);
    let next = copier.next_event().map(|clock| channels.clock.core_cycle_at_or_after(clock));
    of_stack.iter().for_each(|&channel| channels.schedule(channel, events));
    copies.report_copied(channels, events);
    if let Some(next) = next {
        copies.schedule(stack, next.max(now + 1), events);
    }
    channels.copies = Some(copies);
    of_stack
}

/// Whether the accesses of each column of a page lie in one row of one bank.
fn columns_stay_whole(map: &AddressMap, page_bytes: u64, column_bytes: u64) -> bool {
    let row = |address| {
        let Location { channel, pseudo_channel, bank_group, bank, row, .. } = map.locate(address);
        [channel, pseudo_channel, bank_group, bank, row]
    };
    (0..page_bytes).step_by(to_usize(map.access_bytes())).all(|address| {
        let first = address / column_bytes * column_bytes;
        row(address) == row(first)
    })
}

#[cfg(test)]
mod tests {
    use crate::config::PageChannels;
    use crate::counters::KernelCounts;
    use crate::dram::ChannelCounters;
    use crate::gpu::event_queue::{Event, EventQueue};
    use crate::memory::MemorySystem;
    use crate::testkit::{memory_of, translating};

    /// Bytes of UGPU's pages.
    const PAGE: u32 = 4096;

    /// The memory system of a machine, and where its pages lie.
    fn memory_system(name: &str, set: &[(&str, &str)]) -> (MemorySystem, Option<PageChannels>) {
        let resolved = translating(name, set);
        let (standard, map) = memory_of(&resolved);
        let pages = PageChannels::of(&map, PAGE);
        (MemorySystem::new(&resolved.machine, &standard, map), pages)
    }

    /// Works until nothing is left: which pages arrived when.
    fn copied(memory_system: &mut MemorySystem, queue: &mut EventQueue<Event>) -> Vec<(u32, u64)> {
        let (mut counts, mut copied) = (vec![KernelCounts::default()], Vec::new());
        while let Some(event) = queue.next() {
            match event {
                Event::Memory(event) => memory_system.on_event(event, queue, &mut counts),
                Event::PageCopied { token } => copied.push((token, queue.now())),
                other => panic!("{other:?}"),
            }
        }
        copied
    }

    #[test]
    fn a_page_is_thirty_two_migrations_and_takes_99_cycles() {
        let (mut memory_system, pages) = memory_system("ugpu", &[]);
        let (pages, mut queue) = (pages.unwrap(), EventQueue::new());
        assert!(memory_system.can_copy_pages());
        let ends = [pages.together(1234, 2), pages.together(77, 5)];
        memory_system.copy_page(9, ends, PAGE, &mut queue);
        // 31 clocks at 440 MHz on a clock of 1.4 GHz.
        assert_eq!(copied(&mut memory_system, &mut queue), [(9, 99)]);
        let halves: Vec<u64> =
            memory_system.channel_counts(0).iter().map(|c| c.migrations).collect();
        for (channel, &halves) in (0_u32..).zip(&halves) {
            let ends = [2, 5].map(|group| pages.groups()[group].contains(&channel));
            assert_eq!(halves, if ends.contains(&true) { 8 } else { 0 }, "channel {channel}");
        }
        assert_eq!(halves.iter().sum::<u64>(), 2 * 32);
        let lent: u64 = memory_system.channel_counts(0).iter().map(|c| c.lent_clocks).sum();
        assert_eq!(lent, 32 * 2);
        // 16 banks of either end, four per channel.
        let activates: u64 = memory_system.channel_counts(0).iter().map(|c| c.activates).sum();
        assert_eq!(activates, 2 * 16);
    }

    #[test]
    fn larger_pages_have_more_columns_and_then_more_rows() {
        let sizes = [
            (4096_u32, "ugpu", 1),
            (8192, "ugpu-8k", 1),
            (65_536, "ugpu-64k", 1),
            (131_072, "ugpu-128k", 2),
            (2_097_152, "ugpu-2m", 32),
        ];
        for (bytes, mapping, rows) in sizes {
            let keys = [("translation.page_bytes", &*bytes.to_string()), ("dram.mapping", mapping)];
            let (mut memory_system, _) = memory_system("ugpu", &keys);
            let resolved = translating("ugpu", &keys);
            let pages = PageChannels::of(&memory_of(&resolved).1, bytes).unwrap();
            let mut queue = EventQueue::new();
            let ends = [pages.together(1234, 2), pages.together(77, 5)];
            memory_system.copy_page(1, ends, bytes, &mut queue);
            copied(&mut memory_system, &mut queue);
            let sum = |of: fn(&ChannelCounters) -> u64| -> u64 {
                memory_system.channel_counts(0).iter().map(of).sum()
            };
            assert_eq!(sum(|c| c.migrations), 2 * u64::from(bytes / 128), "{mapping}");
            // Of a bank of each group and stack at both ends.
            let activates = 2 * 16 * rows;
            let found = (sum(|c| c.activates), sum(|c| c.copy_activates));
            assert_eq!(found, (activates, activates), "{mapping}");
        }
    }

    #[test]
    fn any_number_of_pages_may_be_in_flight() {
        let (mut memory_system, pages) = memory_system("ugpu", &[]);
        let (pages, mut queue) = (pages.unwrap(), EventQueue::new());
        for token in 0..300 {
            let (from, to) = (token % 8, (token * 3 + 1 + token / 8) % 8);
            let to = if to == from { (to + 1) % 8 } else { to };
            let ends = [(0, from), (1, to)]
                .map(|(end, group)| pages.together(u64::from(token * 37 + end), group));
            memory_system.copy_page(token, ends, PAGE, &mut queue);
        }
        let copied = copied(&mut memory_system, &mut queue);
        let mut tokens: Vec<u32> = copied.iter().map(|page| page.0).collect();
        tokens.sort_unstable();
        assert!(tokens.into_iter().eq(0..300));
        let halves: u64 = memory_system.channel_counts(0).iter().map(|c| c.migrations).sum();
        assert_eq!(halves, 300 * 64);
        // Faster than one page after the other.
        let last = copied.last().unwrap().1;
        assert!(last < 300 * 144, "{last}");
    }

    #[test]
    fn pages_stay_where_the_memory_or_their_size_does_not_let_them_go() {
        assert!(!memory_system("v100", &[]).0.can_copy_pages());
        assert!(!memory_system("ugpu", &[("translation.page_bytes", "32768")]).0.can_copy_pages());
        assert!(memory_system("ugpu", &[("translation.page_bytes", "8192")]).0.can_copy_pages());
    }
}
