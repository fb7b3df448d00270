//! What a plan may do wrong.

use thiserror::Error;

use crate::units::AppId;

/// Which law a draft breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LawBroken {
    /// Shares and applications differ in number.
    #[error("the plan has {found} shares for {expected} applications")]
    ShareCount {
        /// Applications of the run.
        expected: usize,
        /// Shares in the draft.
        found: usize,
    },
    /// A quota list does not cover the SMs.
    #[error("application {app} has quotas for {found} SMs; the machine has {expected}")]
    QuotaLength {
        /// Whose quotas.
        app: AppId,
        /// SMs of the machine.
        expected: usize,
        /// Entries in the list.
        found: usize,
    },
    /// An SM would hold more CTAs than it has slots.
    #[error("application {app} is given {quota} CTAs on SM {sm}; an SM holds {limit}")]
    QuotaTooLarge {
        /// Whose quota.
        app: AppId,
        /// Which SM.
        sm: usize,
        /// The quota.
        quota: u32,
        /// CTA slots of an SM.
        limit: u32,
    },
    /// Regions and applications differ in number.
    #[error("the plan has {found} regions for {expected} applications")]
    RegionCount {
        /// Applications of the run.
        expected: usize,
        /// Regions in the draft.
        found: usize,
    },
    /// A region leaves the SM, or the regions together do.
    #[error("the region of application {app} asks for more {what} than an SM has left")]
    RegionTooLarge {
        /// Whose region.
        app: AppId,
        /// Of what.
        what: &'static str,
    },
    /// Two regions have something in common.
    #[error("the regions of applications {0} and {1} overlap")]
    RegionOverlap(AppId, AppId),
    /// A channel does not exist or has two owners.
    #[error("channel {channel} of application {app} does not exist or is owned twice")]
    Channel {
        /// Whose channel list.
        app: AppId,
        /// Which channel.
        channel: u32,
    },
    /// Channel lists and applications differ in number.
    #[error("the plan has channels for {found} of {expected} applications")]
    ChannelCount {
        /// Applications of the run.
        expected: usize,
        /// Lists in the draft.
        found: usize,
    },
    /// A part of a group of channels is owned.
    #[error("application {app} owns channel {channel}, not those that its pages lie in with it")]
    ChannelGroup {
        /// Whose channel list.
        app: AppId,
        /// A channel of the group.
        channel: u32,
    },
    /// The pages of the machine spread over all channels.
    #[error(
        "channels are owned on machines only whose mapping keeps a page in some of them: \
         translation, and channel bits above the page's, as `ugpu` has (with larger pages, \
         --set dram.mapping=ugpu-8k to ugpu-2m)"
    )]
    NoGroups,
    /// Pages are to follow channels that change hands, and nobody can be told.
    #[error(
        "pages follow channels that change hands where TLBs can be told: not with \
         translation.ideal=true, as bp, ugpu-offline and cd-search run too"
    )]
    PagesStay,
    /// An application runs without a channel.
    #[error("application {0} has SMs and no memory channel")]
    NoChannel(AppId),
    /// Forms as workers and applications differ in number.
    #[error("the plan has forms as workers for {found} of {expected} applications")]
    WorkerCount {
        /// Applications of the run.
        expected: usize,
        /// Forms in the draft.
        found: usize,
    },
    /// A worker can neither be saved nor dropped, and none has empty tasks.
    #[error(
        "application {0} runs as workers: they are only drained, without time slices, and a \
         task has a block at least"
    )]
    Workers(AppId),
    /// A later plan of a run gives an application another form.
    #[error("application {0} is to have another form in the middle of a run")]
    Reformed(AppId),
    /// Nobody runs and nothing would ever wake the scheme.
    #[error("no application has a share and no wake condition is set")]
    Asleep,
    /// A priority list names an application twice or one that does not exist.
    #[error("the priority list names application {0} twice or it does not exist")]
    Priority(AppId),
}
