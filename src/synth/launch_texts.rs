//! The texts of a workload's launches one by one, for who reads them at once.

use std::io::{self, Write};

use super::error::SynthError;
use super::text::{Halt, cta_bytes, write_kernel};
use super::workload::Workload;

/// The same texts as [`write_folder`](super::write_folder) writes, without a folder.
#[derive(Debug)]
pub struct LaunchTexts<'a> {
    workload: &'a Workload,
    /// Per kernel of the file: bytes of the text of its first CTA.
    first: Vec<u64>,
}

impl<'a> LaunchTexts<'a> {
    /// Those of `workload`.
    ///
    /// # Errors
    /// When the first CTA of a kernel does what no CTA can.
    pub fn new(workload: &'a Workload) -> Result<Self, SynthError> {
        let bytes = |launch: usize| cta_bytes(workload, &workload.kernel(launch));
        let first = workload.first_launches().into_iter().map(bytes).collect::<Result<_, _>>()?;
        Ok(Self { workload, first })
    }

    /// Bytes of all texts, were the CTAs of each kernel as long as its first.
    #[must_use]
    pub fn about_bytes(&self) -> u64 {
        (0..self.workload.kernel_count())
            .map(|launch| {
                let ctas = self.workload.kernel(launch).cta_count();
                ctas.saturating_mul(self.first[self.workload.kernel_of(launch)])
            })
            .fold(0, u64::saturating_add)
    }

    /// Writes the text of a launch; tells `passed` of each CTA its part of
    /// [`LaunchTexts::about_bytes`].
    ///
    /// # Errors
    /// What `out` says; where the workload does what no kernel can, an error whose inner
    /// one is a [`SynthError`].
    ///
    /// # Panics
    /// When the workload has no such launch.
    pub fn write(
        &self,
        launch: usize,
        out: &mut dyn Write,
        passed: &dyn Fn(u64),
    ) -> io::Result<()> {
        let part = self.first[self.workload.kernel_of(launch)];
        let kernel = self.workload.kernel(launch);
        match write_kernel(self.workload, &kernel, out, &mut || passed(part)) {
            Ok(_) => Ok(()),
            Err(Halt::Output(error)) => Err(error),
            Err(Halt::Workload(error)) => Err(io::Error::other(error)),
        }
    }
}
