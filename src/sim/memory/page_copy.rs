//! Copying pages between the channels of the stacks (UGPU, sections 4.3 and 4.5).
//!
//! A page is cut into its columns; those of one bank's row at both ends are one copy
//! between two banks, and each stack does its own copies. A page lies in the same
//! stacks wherever it is: channels at the same position of their groups are a stack.

use std::ops::{Index, IndexMut};

use crate::config::{AddressMap, Location, MemoryStandard, PageChannels};
use gpumodel_core::units::{Cycle, to_u16, to_u32, to_usize};

use super::channel::{Memory, Port};
use crate::counters::KernelCounts;
use crate::dram::{BankCopy, BankRow, Channel, Copied, Copier, bank_index};
use crate::gpu::event_queue::Event;
use crate::gpu::event_queue::EventQueue;
use crate::slab::Slab;

/// A page on its way.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// The caller's name for it.
    token: u32,
    /// Copies between banks that are not over.
    left: u32,
    /// The memory clock at which those that are over are there.
    clock: u64,
}

/// What copies between the channels of one stack, and when.
#[derive(Debug)]
struct Stack {
    copier: Copier,
    /// The cycle of the scheduled work; [`Cycle::MAX`] without one.
    due: Cycle,
}

/// The pages that go from channel to channel.
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

/// The controllers of the ports by the number of their channel.
struct Controllers<'a>(&'a mut [Port]);

impl Index<usize> for Controllers<'_> {
    type Output = Channel;

    fn index(&self, channel: usize) -> &Channel {
        &self.0[channel].controller
    }
}

impl IndexMut<usize> for Controllers<'_> {
    fn index_mut(&mut self, channel: usize) -> &mut Channel {
        &mut self.0[channel].controller
    }
}

impl PageCopies {
    /// No page on its way; `None` where the memory has no MIGRATION, pages do not
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

    /// Pages on their way.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// A page sets out from the first address of `ends` to the second.
    pub(super) fn push(
        &mut self,
        token: u32,
        ends: [u64; 2],
        bytes: u32,
        map: &AddressMap,
        queue: &mut EventQueue<Event>,
    ) {
        let mut pieces = self.cut(ends, bytes, map);
        let number = self.pages.insert(Page { token, left: to_u32(pieces.len()), clock: 0 });
        for mut piece in pieces.drain(..) {
            piece.token = number;
            let stack = self.stack_of[piece.from.channel];
            self.stacks[usize::from(stack)].copier.push(piece);
            self.schedule(stack, queue.now(), queue);
        }
    }

    /// The copies between banks that a page is made of, in order of its addresses.
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

    /// A bank of `channel` may have become ready.
    pub(super) fn stir(&mut self, channel: u32, queue: &mut EventQueue<Event>) {
        self.schedule(self.stack_of[to_usize(channel)], queue.now(), queue);
    }

    /// Lets a stack work at cycle `at`, unless it works before.
    fn schedule(&mut self, stack: u16, at: Cycle, queue: &mut EventQueue<Event>) {
        let due = &mut self.stacks[usize::from(stack)].due;
        if at < *due {
            *due = at;
            queue.schedule(at, Event::PageCopy { stack });
        }
    }

    /// Notes the copies between banks that are over; a page whose last one is over is
    /// there with its last column.
    fn settle(&mut self, memory: &Memory, queue: &mut EventQueue<Event>) {
        for Copied { token, clock } in self.copied.drain(..) {
            let page = self.pages.get_mut(token);
            page.left -= 1;
            page.clock = page.clock.max(clock);
            if page.left == 0 {
                let Page { token: name, clock, .. } = self.pages.remove(token);
                let at = memory.clock.core_cycle_at_or_after(clock);
                queue.schedule(at, Event::PageCopied { token: name });
            }
        }
    }
}

impl Memory {
    /// Lets a stack send and start what it can; the channels that were brought to the
    /// present by that.
    pub(super) fn copy_pages(
        &mut self,
        stack: u16,
        queue: &mut EventQueue<Event>,
        counts: &mut [KernelCounts],
    ) -> Vec<u32> {
        let now = queue.now();
        let Some(mut copies) = self.copies.take() else { return Vec::new() };
        let place = usize::from(stack);
        let due = std::mem::replace(&mut copies.stacks[place].due, Cycle::MAX);
        if due != now {
            copies.stacks[place].due = due;
            self.copies = Some(copies);
            return Vec::new();
        }
        let channels =
            copies.stacks[place].copier.channels().iter().map(|&channel| to_u32(channel));
        let channels: Vec<u32> = channels.collect();
        channels.iter().for_each(|&channel| self.turn(channel, queue, counts));
        let edge = self.edge(now);
        let PageCopies { stacks, copied, .. } = &mut *copies;
        let copier = &mut stacks[place].copier;
        copier.work(edge, &mut Controllers(&mut self.ports), copied);
        let next = copier.next_event().map(|clock| self.clock.core_cycle_at_or_after(clock));
        channels.iter().for_each(|&channel| self.schedule(channel, queue));
        copies.settle(self, queue);
        if let Some(next) = next {
            copies.schedule(stack, next.max(now + 1), queue);
        }
        self.copies = Some(copies);
        channels
    }
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
