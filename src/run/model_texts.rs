//! A workload model as a trace that is converted while it is made.

use std::io::{self, Write};

use crate::synth::{self, LaunchTexts, SynthError, Workload};
use crate::trace::{self, Texts, TraceError};

/// The texts of its launches.
pub(super) struct ModelTexts<'a> {
    workload: &'a Workload,
    texts: LaunchTexts<'a>,
}

impl<'a> ModelTexts<'a> {
    /// Those of `workload`.
    ///
    /// # Errors
    /// When the first CTA of a kernel does what no CTA can.
    pub(super) fn new(workload: &'a Workload) -> Result<Self, SynthError> {
        Ok(Self { workload, texts: LaunchTexts::new(workload)? })
    }
}

impl Texts for ModelTexts<'_> {
    fn name(&self) -> String {
        format!("synth:{}", self.workload.name())
    }

    fn commands(&self) -> Vec<trace::Command> {
        let command = |command| match command {
            synth::Command::MemcpyHtoD { destination, bytes } => {
                trace::Command::MemcpyHtoD { destination, bytes }
            }
            synth::Command::Kernel(launch) => trace::Command::Kernel(launch),
        };
        self.workload.commands().map(command).collect()
    }

    fn about_bytes(&self) -> u64 {
        self.texts.about_bytes()
    }

    fn write(&self, launch: usize, out: &mut dyn Write, passed: &dyn Fn(u64)) -> io::Result<()> {
        self.texts.write(launch, out, passed)
    }
}

/// What a workload model says in an error of making its texts; other errors come back.
pub(super) fn told(error: TraceError) -> Result<SynthError, TraceError> {
    let TraceError::Io { what: "make", path, source } = error else { return Err(error) };
    source.downcast().map_err(|source| TraceError::Io { what: "make", path, source })
}
