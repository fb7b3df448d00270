//! One launch of a workload, its CTAs and their warps.

use std::sync::Arc;

use gpumodel_core::isa::{Code, Launch};
use gpumodel_core::units::{Dim3, to_u32};

use super::program::Program;
use super::stream::{Place, WarpStream};

/// One kernel launch of a workload.
#[derive(Clone, Debug)]
pub struct Kernel {
    launch: Launch,
    program: Arc<Program>,
    /// Launch of this kernel, from 0.
    number: u32,
}

impl Kernel {
    pub(super) fn new(launch: Launch, program: Arc<Program>, number: u32) -> Self {
        Self { launch, program, number }
    }

    /// What a trace header would say.
    #[must_use]
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// The static instructions and segments.
    #[must_use]
    pub fn code(&self) -> Arc<Code> {
        Arc::clone(&self.program.code)
    }

    /// CTAs of the grid.
    #[must_use]
    pub fn cta_count(&self) -> u64 {
        self.program.grid.count()
    }

    /// The CTA of that number, x fastest.
    ///
    /// # Panics
    /// When the grid has no such CTA.
    #[must_use]
    pub fn cta(&self, ordinal: u64) -> Cta {
        assert!(ordinal < self.cta_count(), "CTA {ordinal} of {}", self.cta_count());
        let Dim3 { x, y, .. } = self.program.grid;
        let (x, y) = (u64::from(x), u64::from(y));
        let position =
            Dim3::new(to_u32(ordinal % x), to_u32(ordinal / x % y), to_u32(ordinal / x / y));
        Cta { program: Arc::clone(&self.program), position, ordinal, launch: self.number }
    }
}

/// One CTA of a launch.
#[derive(Clone, Debug)]
pub struct Cta {
    program: Arc<Program>,
    position: Dim3,
    ordinal: u64,
    launch: u32,
}

impl Cta {
    /// Where the CTA lies in the grid.
    #[must_use]
    pub fn position(&self) -> Dim3 {
        self.position
    }

    /// Warps of the CTA.
    #[must_use]
    pub fn warp_count(&self) -> u32 {
        to_u32(self.program.block.count().div_ceil(32))
    }

    /// The instructions of one warp.
    ///
    /// # Panics
    /// When the CTA has no such warp.
    #[must_use]
    pub fn warp(&self, warp: u32) -> WarpStream {
        assert!(warp < self.warp_count(), "warp {warp} of {}", self.warp_count());
        let place = Place { position: self.position, cta: self.ordinal, warp, launch: self.launch };
        WarpStream::new(Arc::clone(&self.program), place)
    }
}
