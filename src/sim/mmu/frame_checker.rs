//! A second page table, for tests: it learns where pages lie only from accesses and copies,
//! and panics when data would come from, or go to, a frame that its page has left.

use std::collections::{BTreeMap, BTreeSet};

use super::Mmu;
use super::frames::Frames;

/// Frames are addresses of their first bytes.
#[derive(Debug, Default)]
pub(super) struct FrameChecker {
    /// By page: its frame.
    frame_of: BTreeMap<u64, u64>,
    /// By frame: the page that lies there or is moving there.
    page_of: BTreeMap<u64, u64>,
    /// Frames whose data is being copied inside the memory.
    copied: BTreeSet<u64>,
    /// Frames that a page left in this way and that no page has used since.
    left: BTreeSet<u64>,
    /// Frames that were filled through the L2, which may still hold their writes.
    cached: BTreeSet<u64>,
}

impl FrameChecker {
    /// A frame answered an access to a page.
    pub(super) fn answered(&mut self, page: u64, frame: u64) {
        let known = *self.frame_of.entry(page).or_insert(frame);
        assert_eq!(known, frame, "page {page:#x} was answered from a frame that is not its own");
        self.assign(frame, page);
    }

    fn assign(&mut self, frame: u64, page: u64) {
        let known = *self.page_of.entry(frame).or_insert(page);
        assert_eq!(known, page, "two pages in frame {frame:#x}");
        self.left.remove(&frame);
    }

    /// A frame is allocated for a page that moves.
    pub(super) fn allocated(&mut self, page: u64, [from, to]: [u64; 2]) {
        let known = *self.frame_of.entry(page).or_insert(from);
        assert_eq!(known, from, "page {page:#x} moves from a frame that is not its own");
        self.assign(from, page);
        self.assign(to, page);
    }

    /// The copy of a frame inside the memory begins.
    pub(super) fn copy_begins(&mut self, frame: u64) {
        if !self.cached.contains(&frame) {
            self.copied.insert(frame);
        }
    }

    /// A page's data is in its new frame.
    pub(super) fn moved(&mut self, page: u64, [from, to]: [u64; 2]) {
        assert_eq!(self.frame_of.insert(page, to), Some(from), "page {page:#x}");
        self.page_of.remove(&from);
        if self.copied.remove(&from) {
            self.left.insert(from);
        } else {
            self.cached.extend([from, to]);
        }
    }

    /// A write to a frame has reached memory.
    pub(super) fn written(&self, frame: u64) {
        assert!(!self.copied.contains(&frame), "{frame:#x} is written while it is copied");
        assert!(!self.left.contains(&frame), "{frame:#x} is written after its page has left");
    }
}

impl Mmu {
    /// Checks that an access to `virtual_address` was answered from `address`. After a change of
    /// channels the pages in use lie in channels of their application.
    pub(crate) fn check_answer(&mut self, virtual_address: u64, address: u64) {
        let Some(frames) = &self.frames else { return };
        let page = self.table.page_of(virtual_address);
        let allowed =
            self.moves_held || frames.migration.stays() || frames.is_in_own_channels(page);
        assert!(allowed, "page {page:#x} was answered from a channel that was lost");
        self.checker.answered(page, self.frame(address));
    }

    /// Checks that a write to memory at `address` belongs there.
    pub(crate) fn check_write(&self, address: u64) {
        self.checker.written(self.frame(address));
    }

    /// Checks that no two pages are in one frame, also those that were not used since channels
    /// changed owners.
    pub(super) fn check_frames(&self) {
        let distinct = self.frames.as_ref().is_none_or(Frames::frames_are_distinct);
        assert!(distinct, "two pages in one frame");
    }

    fn frame(&self, address: u64) -> u64 {
        let bytes = u64::from(self.moves.page_bytes());
        address / bytes * bytes
    }
}

mod tests {
    use super::FrameChecker;

    /// Page 7, read in frame 1 and moved to frame 2 inside the memory.
    fn after_move() -> FrameChecker {
        let mut checker = FrameChecker::default();
        checker.answered(7, 1);
        checker.allocated(7, [1, 2]);
        checker.copy_begins(1);
        checker.moved(7, [1, 2]);
        checker
    }

    #[test]
    fn correct_accesses_pass() {
        let mut checker = after_move();
        checker.answered(7, 2);
        checker.answered(8, 1);
        checker.written(1);
    }

    #[test]
    #[should_panic(expected = "answered from a frame that is not its own")]
    fn a_stale_answer_is_seen() {
        after_move().answered(7, 1);
    }

    #[test]
    #[should_panic(expected = "two pages in frame")]
    fn two_pages_in_one_frame_are_seen() {
        after_move().answered(8, 2);
    }

    #[test]
    #[should_panic(expected = "two pages in frame")]
    fn a_frame_allocated_to_two_pages_is_seen() {
        let mut checker = FrameChecker::default();
        checker.allocated(7, [1, 2]);
        checker.allocated(8, [3, 2]);
    }

    #[test]
    #[should_panic(expected = "written while it is copied")]
    fn a_write_under_the_copy_is_seen() {
        let mut checker = FrameChecker::default();
        checker.allocated(7, [1, 2]);
        checker.copy_begins(1);
        checker.written(1);
    }

    #[test]
    #[should_panic(expected = "written after its page has left")]
    fn a_late_write_is_seen() {
        after_move().written(1);
    }

    #[test]
    #[should_panic(expected = "moves from a frame that is not its own")]
    fn a_move_from_elsewhere_is_seen() {
        after_move().allocated(7, [1, 3]);
    }
}
