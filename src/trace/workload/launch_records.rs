//! The records of a workload's launches CTA by CTA, for who makes a store of them at once.

use std::sync::Arc;

use gpumodel_core::isa::{Access, Code};

use super::declared::Workload;
use super::error::SynthError;
use super::text::{cta_bytes, header};
use super::walk::Walk;

/// Takes one executed instruction: warp in the CTA, index in the code, active lanes, and the
/// addresses where the instruction has a width.
pub type TakeRecord<'a> = dyn FnMut(u32, usize, u32, Option<&Access>) + 'a;

/// The same instructions as [`write_folder`](super::write_folder) writes, without a text.
#[derive(Debug)]
pub struct LaunchRecords<'a> {
    workload: &'a Workload,
    /// Per kernel of the file: bytes of the text that its first CTA would have.
    first: Vec<u64>,
}

impl<'a> LaunchRecords<'a> {
    /// Those of `workload`.
    ///
    /// # Errors
    /// When the first CTA of a kernel does what no CTA can.
    pub fn new(workload: &'a Workload) -> Result<Self, SynthError> {
        let bytes = |launch: usize| cta_bytes(workload, &workload.kernel(launch));
        let first = workload.first_launches().into_iter().map(bytes).collect::<Result<_, _>>()?;
        Ok(Self { workload, first })
    }

    /// Bytes of the texts of all launches, were the CTAs of each kernel as long as its first.
    #[must_use]
    pub fn about_bytes(&self) -> u64 {
        (0..self.workload.kernel_count())
            .map(|launch| {
                let ctas = self.workload.kernel(launch).cta_count();
                ctas.saturating_mul(self.cta_bytes(launch))
            })
            .fold(0, u64::saturating_add)
    }

    /// The part of a CTA of a launch in [`LaunchRecords::about_bytes`].
    ///
    /// # Panics
    /// When the workload has no such launch.
    #[must_use]
    pub fn cta_bytes(&self, launch: usize) -> u64 {
        self.first[self.workload.kernel_of(launch)]
    }

    /// The header that the text of a launch would have.
    ///
    /// # Panics
    /// When the workload has no such launch.
    #[must_use]
    pub fn header(&self, launch: usize) -> String {
        header(self.workload.kernel(launch).launch())
    }

    /// The instructions of a launch, which records name by their index.
    ///
    /// # Panics
    /// When the workload has no such launch.
    #[must_use]
    pub fn code(&self, launch: usize) -> Arc<Code> {
        self.workload.kernel(launch).code()
    }

    /// Gives the records of the CTA `number` of a launch to `take`, warp by warp.
    ///
    /// # Errors
    /// When the CTA does what no CTA can.
    ///
    /// # Panics
    /// When the workload has no such launch, or the launch no such CTA.
    pub fn cta(
        &self,
        launch: usize,
        number: u64,
        take: &mut TakeRecord<'_>,
    ) -> Result<(), SynthError> {
        let kernel = self.workload.kernel(launch);
        let cta = kernel.cta(number);
        let mut walk = Walk::new(self.workload, &kernel);
        for warp in 0..cta.warp_count() {
            walk.warp(&cta, warp, |index, mask, access| take(warp, index, mask, access))?;
        }
        Ok(())
    }
}
