//! Why no sample was enough for a launch, which ran whole after all.

/// The reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortfall {
    /// The interval stayed wider than asked for.
    Wide,
    /// Requests may crowd on the machine's channels as they do not on a part's.
    Crowded,
    /// CTAs on other SMs bring most of what is read from the L2: on a part it is
    /// simply there, on the whole machine everybody waits for it together.
    Shared,
}

impl Shortfall {
    /// In words, of the samples.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Wide => "left a wider interval than asked for",
            Self::Crowded => "do not tell how requests crowd on the channels of a busy DRAM",
            Self::Shared => "do not tell how long SMs wait for data that they read together",
        }
    }
}
