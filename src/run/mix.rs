//! Several stores as one source of instructions.

use crate::machine::{Command, Feed, FeedError, Program};
use crate::units::{Dim3, KernelId, to_u32};

use super::feed::{StoreFeed, StoredWarp};

/// The launches of several applications, numbered over all.
#[derive(Debug)]
pub(super) struct Mix<'a> {
    pub(super) feeds: Vec<&'a StoreFeed<'a>>,
    /// By launch: its application and its place there.
    owners: Vec<(usize, KernelId)>,
    /// By application: its first launch.
    first: Vec<usize>,
}

impl<'a> Mix<'a> {
    /// The launches of `feeds`, in their order.
    pub(super) fn new(feeds: Vec<&'a StoreFeed<'a>>) -> Self {
        let mut owners = Vec::new();
        let mut first = Vec::new();
        for (app, feed) in feeds.iter().enumerate() {
            first.push(owners.len());
            let places = 0..feed.programs().len();
            owners.extend(places.map(|place| (app, KernelId(to_u32(place)))));
        }
        Self { feeds, owners, first }
    }

    /// The command list of an application, its launches numbered over all.
    pub(super) fn commands(&self, app: usize) -> Vec<Command> {
        let first = to_u32(self.first[app]);
        let renumber = |command| match command {
            Command::Launch { kernel, stream } => {
                Command::Launch { kernel: KernelId(kernel.0 + first), stream }
            }
            copy @ Command::Copy { .. } => copy,
        };
        self.feeds[app].commands().into_iter().map(renumber).collect()
    }

    /// The launches of an application among all.
    pub(super) fn launches(&self, app: usize) -> std::ops::Range<usize> {
        self.first[app]..self.first[app] + self.feeds[app].programs().len()
    }
}

impl Feed for Mix<'_> {
    type Warp = StoredWarp;

    fn program(&self, kernel: KernelId) -> &Program {
        let (app, place) = self.owners[kernel.index()];
        self.feeds[app].program(place)
    }

    fn open(
        &self,
        kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<StoredWarp>,
    ) -> Result<Dim3, FeedError> {
        let (app, place) = self.owners[kernel.index()];
        self.feeds[app].open(place, ordinal, warps)
    }
}
