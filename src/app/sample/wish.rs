//! What is asked of sampling.

/// What `--sample` asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleRequest {
    /// Half of the interval's width over the cycles, above 0 and below 1: sets of
    /// CTAs run until it is reached.
    pub half_width: f64,
    /// Launches of fewer warp instructions run whole.
    pub fewest_instructions: u64,
}

impl SampleRequest {
    /// Within 3 %: the sampling error that the interval must not exceed.
    pub const HALF_WIDTH: f64 = 0.03;

    /// What runs whole in a second or two: there is little to save, and of so short
    /// a launch most is its beginning and its end.
    pub const FEWEST_INSTRUCTIONS: u64 = 8_000_000;

    /// Samples until the interval is `half_width` of the cycles to either side.
    #[must_use]
    pub fn within(half_width: f64) -> Self {
        Self { half_width, fewest_instructions: Self::FEWEST_INSTRUCTIONS }
    }
}

impl Default for SampleRequest {
    fn default() -> Self {
        Self::within(Self::HALF_WIDTH)
    }
}
