//! The L1 TLB of one SM, and the memory instructions set aside for it.
//!
//! The pages of an instruction are looked up with its lines' tags, each once. An
//! instruction whose page is missing is set aside, and the load/store unit goes
//! on with younger ones; when its pages have come it is served before all others
//! and not looked up again. When no further page or instruction may wait, the
//! unit stalls.

use std::collections::VecDeque;

use crate::config::Machine;
use gpumodel_core::units::{Cycle, to_u32, to_usize};

use crate::cache::{Merge, Mshr};
use crate::counters::TlbCounts;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::RequestKind;
use crate::mmu::{Request, Tlb};
use crate::sm::coalesce::{LINE_BYTES, LineRequest};
use crate::sm::lsu::l1::L1;
use crate::sm::lsu::queue::{Entry, Route};

/// What is known of an instruction's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sm) enum Pages {
    /// All of them.
    Known,
    /// Some are in flight.
    Asked,
    /// No more may be asked for now.
    Refused,
}

/// What became of one page.
enum Page {
    /// The TLB has it.
    Known,
    /// It was in flight already.
    Waits,
    /// It was not.
    Asked,
    /// Nothing more may wait.
    Refused,
}

/// An instruction set aside, until this many pages have come.
#[derive(Debug)]
struct Aside {
    entry: Entry,
    pages: u32,
    /// Its pages have been forgotten since: they are looked up again.
    forgotten: bool,
}

/// The translation unit of one SM.
#[derive(Debug)]
pub(in crate::sm) struct Translator {
    tlb: Tlb,
    /// Instructions by the page that they wait for.
    misses: Mshr<u32>,
    aside: Vec<Option<Aside>>,
    free: Vec<u32>,
    released: Vec<u32>,
    /// From line numbers to pages.
    page_shift: u32,
    latency: u32,
    before_l1: bool,
    /// Of all launches.
    pub(in crate::sm) counts: TlbCounts,
}

impl Translator {
    /// The empty unit of `machine`; `None` where addresses are physical or pages known.
    pub(in crate::sm) fn new(machine: &Machine) -> Option<Box<Self>> {
        let spec = machine.translation.as_ref().filter(|spec| !spec.ideal)?;
        Some(Box::new(Self {
            tlb: Tlb::new(spec.l1_entries, spec.l1_ways),
            misses: Mshr::new(spec.l1_mshr_entries, spec.l1_mshr_merge),
            aside: Vec::new(),
            free: Vec::new(),
            released: Vec::new(),
            page_shift: spec.page_bytes.trailing_zeros() - LINE_BYTES.trailing_zeros(),
            latency: spec.l1_latency_cycles,
            before_l1: spec.before_l1,
            counts: TlbCounts::default(),
        }))
    }

    /// A place for one instruction outside the queue.
    fn reserve(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.aside.push(None);
            to_u32(self.aside.len() - 1)
        })
    }

    /// Looks a page up for the instruction that has `place`.
    fn lookup(&mut self, page: u64, place: u32, counts: &mut TlbCounts) -> Page {
        if self.tlb.lookup(page) {
            counts.hits += 1;
            self.counts.hits += 1;
            return Page::Known;
        }
        match self.misses.merge(page, place) {
            Merge::Merged => {
                counts.merges += 1;
                self.counts.merges += 1;
                Page::Waits
            }
            Merge::Absent if !self.misses.is_full() => {
                self.misses.open(page, place);
                counts.misses += 1;
                self.counts.misses += 1;
                Page::Asked
            }
            Merge::Absent | Merge::Full => Page::Refused,
        }
    }

    /// A page has come: instructions that wait for nothing else are appended to
    /// `out` in the order in which they asked.
    pub(in crate::sm) fn arrive(&mut self, page: u64, out: &mut VecDeque<Entry>) {
        self.tlb.insert(page);
        self.misses.close(page, &mut self.released);
        for place in self.released.drain(..) {
            let slot = &mut self.aside[to_usize(place)];
            let aside = slot.as_mut().expect("an instruction that waits for a page is set aside");
            aside.pages -= 1;
            if aside.pages == 0 {
                let aside = slot.take().expect("it has just been there");
                let Aside { mut entry, forgotten, .. } = aside;
                if forgotten {
                    entry.forget_pages();
                }
                self.free.push(place);
                out.push_back(Entry { returned: true, issued: Cycle::MAX, ..entry });
            }
        }
    }

    /// Looks up the pages of an instruction of SM `sm` that have not been yet. With
    /// [`Pages::Asked`] it is set aside.
    #[inline(never)]
    pub(in crate::sm) fn translate(
        &mut self,
        entry: &mut Entry,
        sm: u16,
        l1: &L1,
        shared_state: &mut SharedState,
    ) -> Pages {
        if to_usize(entry.looked_up) == entry.lines.len() {
            return Pages::Known;
        }
        let place = self.reserve();
        let (pages, refused) = self.look_up(entry, place, sm, l1, shared_state);
        if pages > 0 {
            self.aside[to_usize(place)] =
                Some(Aside { entry: entry.take(), pages, forgotten: false });
            return Pages::Asked;
        }
        self.free.push(place);
        if refused {
            return Pages::Refused;
        }
        entry.delay = if entry.returned { 0 } else { self.latency };
        Pages::Known
    }

    /// The TLB is flushed: the pages of all waiting instructions are looked up again.
    pub(in crate::sm) fn forget_pages(&mut self) {
        self.tlb.clear();
        self.aside.iter_mut().flatten().for_each(|aside| aside.forgotten = true);
    }

    /// Looks up pages line by line until all are or one must wait to be asked for:
    /// pages that have become awaited, and whether it stopped early. With virtual
    /// tags, lines whose sectors the L1 keeps need none.
    fn look_up(
        &mut self,
        entry: &mut Entry,
        place: u32,
        sm: u16,
        l1: &L1,
        shared_state: &mut SharedState,
    ) -> (u32, bool) {
        let mut awaited = 0;
        while let Some(line) = entry.lines.get(to_usize(entry.looked_up)) {
            let page = line.line >> self.page_shift;
            let same =
                |other: &LineRequest| other.translated && other.line >> self.page_shift == page;
            let all = self.before_l1 || entry.route != Route::Cached(RequestKind::Read);
            let known = entry.lines[..to_usize(entry.looked_up)].iter().any(same)
                || !(all
                    || line.sectors().any(|address| !l1.keeps(address, l1.sector_bit(address))));
            if !known {
                let counts = &mut shared_state.counts[to_usize(entry.kernel)].translation.l1;
                match self.lookup(page, place, counts) {
                    Page::Known => {}
                    Page::Waits => awaited += 1,
                    Page::Asked => {
                        awaited += 1;
                        let request = Request { page, kernel: entry.kernel, sm };
                        shared_state.ask_page(request, u64::from(self.latency));
                    }
                    Page::Refused => return (awaited, true),
                }
                entry.lines[to_usize(entry.looked_up)].translated = true;
            }
            entry.looked_up += 1;
        }
        (awaited, false)
    }
}
