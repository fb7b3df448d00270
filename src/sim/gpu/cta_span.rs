//! When single CTAs ran, for who extrapolates from them.

use gpumodel_core::units::Cycle;

/// The life of one CTA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CtaSpan {
    /// Its launch, in the numbering of the run.
    pub kernel: u32,
    /// Its position among the launch's CTAs that ran, in the order of their start.
    pub ordinal: u64,
    /// Where it ran.
    pub sm: u16,
    /// When it was handed out.
    pub start: Cycle,
    /// When its last warp ended.
    pub end: Cycle,
}
