//! A page table of the tests' own beside that of the machine: it learns where pages lie
//! from what is sent and copied alone, and fails where data would come from, or go to, a
//! frame that its page has left.

use std::collections::{BTreeMap, BTreeSet};

use super::Mmu;

/// Frames are addresses of their first bytes.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    /// By page: its frame.
    home: BTreeMap<u64, u64>,
    /// By frame: the page that lies there, or is on its way there.
    holder: BTreeMap<u64, u64>,
    /// Frames whose data is being copied away inside the memory.
    copied: BTreeSet<u64>,
    /// Frames that a page has left so, and none has come to since.
    left: BTreeSet<u64>,
    /// Frames that were filled through the L2, which may keep what is written to them.
    cached: BTreeSet<u64>,
}

impl Shadow {
    /// An access to a page was answered from a frame.
    pub(super) fn answered(&mut self, page: u64, frame: u64) {
        let home = *self.home.entry(page).or_insert(frame);
        assert_eq!(home, frame, "page {page:#x} was answered from a frame that is not its own");
        self.hold(frame, page);
    }

    fn hold(&mut self, frame: u64, page: u64) {
        let holder = *self.holder.entry(frame).or_insert(page);
        assert_eq!(holder, page, "two pages in frame {frame:#x}");
        self.left.remove(&frame);
    }

    /// A frame is kept for a page.
    pub(super) fn kept(&mut self, page: u64, [from, to]: [u64; 2]) {
        let home = *self.home.entry(page).or_insert(from);
        assert_eq!(home, from, "page {page:#x} sets out from a frame that is not its own");
        self.hold(from, page);
        self.hold(to, page);
    }

    /// The data of a frame begins to be copied inside the memory.
    pub(super) fn begins(&mut self, frame: u64) {
        if !self.cached.contains(&frame) {
            self.copied.insert(frame);
        }
    }

    /// A page's data is in its new frame.
    pub(super) fn came(&mut self, page: u64, [from, to]: [u64; 2]) {
        assert_eq!(self.home.insert(page, to), Some(from), "page {page:#x}");
        self.holder.remove(&from);
        if self.copied.remove(&from) {
            self.left.insert(from);
        } else {
            self.cached.extend([from, to]);
        }
    }

    /// Something that was written to a frame has come to memory.
    pub(super) fn written(&self, frame: u64) {
        assert!(!self.copied.contains(&frame), "{frame:#x} is written while it is copied");
        assert!(!self.left.contains(&frame), "{frame:#x} is written after its page has left");
    }
}

impl Mmu {
    /// Checks the answer to an access to `asked`, which comes from `address`. Who goes on
    /// behind a change has its pages in channels of its own.
    pub(crate) fn check_answer(&mut self, asked: u64, address: u64) {
        let Some(frames) = &self.frames else { return };
        let page = self.table.page_of(asked);
        let at_home = self.holds || frames.migration().stays() || frames.is_in_its_own(page);
        assert!(at_home, "page {page:#x} was answered from a channel that was lost");
        self.shadow.answered(page, self.frame(address));
    }

    /// Checks that what has come to memory at `address` belongs there.
    pub(crate) fn check_write(&self, address: u64) {
        self.shadow.written(self.frame(address));
    }

    /// Checks that no two pages are in one frame, also those that nobody has used since
    /// channels changed hands.
    pub(super) fn check_frames(&self) {
        let alone = self.frames.as_ref().is_none_or(super::frames::Frames::each_page_is_alone);
        assert!(alone, "two pages in one frame");
    }

    fn frame(&self, address: u64) -> u64 {
        let bytes = u64::from(self.moves.page_bytes());
        address / bytes * bytes
    }
}

mod tests {
    use super::Shadow;

    /// Page 7, read in frame 1 and moved to frame 2 inside the memory.
    fn moved() -> Shadow {
        let mut shadow = Shadow::default();
        shadow.answered(7, 1);
        shadow.kept(7, [1, 2]);
        shadow.begins(1);
        shadow.came(7, [1, 2]);
        shadow
    }

    #[test]
    fn what_is_right_is_let_through() {
        let mut shadow = moved();
        shadow.answered(7, 2);
        shadow.answered(8, 1);
        shadow.written(1);
    }

    #[test]
    #[should_panic(expected = "answered from a frame that is not its own")]
    fn a_stale_answer_is_seen() {
        moved().answered(7, 1);
    }

    #[test]
    #[should_panic(expected = "two pages in frame")]
    fn two_pages_in_one_frame_are_seen() {
        moved().answered(8, 2);
    }

    #[test]
    #[should_panic(expected = "two pages in frame")]
    fn a_frame_kept_for_two_pages_is_seen() {
        let mut shadow = Shadow::default();
        shadow.kept(7, [1, 2]);
        shadow.kept(8, [3, 2]);
    }

    #[test]
    #[should_panic(expected = "written while it is copied")]
    fn a_write_under_the_copy_is_seen() {
        let mut shadow = Shadow::default();
        shadow.kept(7, [1, 2]);
        shadow.begins(1);
        shadow.written(1);
    }

    #[test]
    #[should_panic(expected = "written after its page has left")]
    fn a_late_write_is_seen() {
        moved().written(1);
    }

    #[test]
    #[should_panic(expected = "sets out from a frame that is not its own")]
    fn a_page_that_sets_out_from_elsewhere_is_seen() {
        moved().kept(7, [1, 3]);
    }
}
