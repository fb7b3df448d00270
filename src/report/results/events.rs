//! What happened when, in more detail than records keep.

use gpumodel_core::units::Cycle;

use super::Interval;

/// What a run adds to its record where its events are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEvents {
    /// Activity over time, all applications together; empty where the record has it.
    pub timeline: Vec<Interval>,
    /// Its CTAs in the order of their starts, the first [`RunEvents::CTAS`]; those that were
    /// dropped before their end are missing.
    pub ctas: Vec<CtaRecord>,
    /// CTAs beyond those.
    pub ctas_left_out: u64,
}

impl RunEvents {
    /// Most CTAs of a run.
    pub const CTAS: usize = 50_000;
}

/// The life of one CTA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CtaRecord {
    /// When it was handed out.
    pub start_cycle: Cycle,
    /// When its last warp ended.
    pub end_cycle: Cycle,
    /// Which SM.
    pub sm: u32,
    /// Position of its application in the run.
    pub app_index: u32,
    /// Position of its launch in the application's list, from 1.
    pub launch: u32,
    /// Its position among the launch's CTAs, in the order of their start.
    pub ordinal: u64,
}
