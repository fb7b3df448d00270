//! A workload model as launches that are converted while they are walked.

use std::io;
use std::sync::Arc;

use gpumodel_core::isa::Code;
use gpumodel_trace::workload::{self, LaunchRecords, SynthError, Workload};
use gpumodel_trace::{Launches, TakeRecord, TraceError};

/// The records of its launches.
pub(super) struct ModelRecords<'a> {
    workload: &'a Workload,
    records: LaunchRecords<'a>,
}

impl<'a> ModelRecords<'a> {
    /// Those of `workload`.
    ///
    /// # Errors
    /// When the first CTA of a kernel does what no CTA can.
    pub(super) fn new(workload: &'a Workload) -> Result<Self, SynthError> {
        Ok(Self { workload, records: LaunchRecords::new(workload)? })
    }
}

impl Launches for ModelRecords<'_> {
    fn name(&self) -> String {
        format!("synth:{}", self.workload.name())
    }

    fn commands(&self) -> Vec<gpumodel_trace::Command> {
        let command = |command| match command {
            workload::Command::MemcpyHtoD { destination, bytes } => {
                gpumodel_trace::Command::MemcpyHtoD { destination, bytes }
            }
            workload::Command::Kernel(launch) => gpumodel_trace::Command::Kernel(launch),
        };
        self.workload.commands().map(command).collect()
    }

    fn about_bytes(&self) -> u64 {
        self.records.about_bytes()
    }

    fn cta_bytes(&self, launch: usize) -> u64 {
        self.records.cta_bytes(launch)
    }

    fn header(&self, launch: usize) -> String {
        self.records.header(launch)
    }

    fn code(&self, launch: usize) -> Arc<Code> {
        self.records.code(launch)
    }

    fn cta(&self, launch: usize, number: u64, take: &mut TakeRecord<'_>) -> io::Result<()> {
        self.records.cta(launch, number, take).map_err(io::Error::other)
    }
}

/// What a workload model says in an error of making its records; other errors come back.
pub(super) fn told(error: TraceError) -> Result<SynthError, TraceError> {
    let TraceError::Io { what: "make", path, source } = error else { return Err(error) };
    source.downcast().map_err(|source| TraceError::Io { what: "make", path, source })
}
