//! How a launch's numbers came from a sample of its CTAs.

use serde::{Deserialize, Serialize};

use gpumodel_core::units::Cycle;

use super::{AppRecord, KernelRecord};

/// The sample of one launch. Its cycles, counters and stalls are extrapolated from
/// the CTAs that ran; instruction counts are the trace's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleRecord {
    /// CTAs that ran, all runs together; all of them when no sample was good enough.
    pub ctas_run: u64,
    /// CTAs of the launch in the trace.
    pub ctas: u64,
    /// Classes of CTAs whose warps take the same paths, rare paths together.
    pub strata: u64,
    /// Samples that ran, one after the other until the interval was tight.
    pub runs: u32,
    /// SMs of the machine's part on which each ran.
    pub sms: u64,
    /// Memory channels of that part.
    pub channels: u64,
    /// How sure the intervals are, 0 to 1, of what the choice of CTAs leaves open.
    /// They also hold a bound, fitted to measured launches, on what a part of a
    /// machine does otherwise than the whole.
    pub confidence: f64,
    /// The interval of the launch's cycles, launch latency included.
    pub cycles_low: Cycle,
    /// Its upper end.
    pub cycles_high: Cycle,
    /// The interval of thread instructions per cycle.
    pub ipc_low: f64,
    /// Its upper end.
    pub ipc_high: f64,
}

impl SampleRecord {
    /// The same with the interval of the IPC that follows from that of the cycles.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    pub fn with_ipc(self, thread_instructions: u64) -> Self {
        let ipc = |cycles: Cycle| thread_instructions as f64 / cycles.max(1) as f64;
        Self { ipc_low: ipc(self.cycles_high), ipc_high: ipc(self.cycles_low), ..self }
    }
}

impl KernelRecord {
    /// True when the numbers are extrapolated from a part of the CTAs.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.sample.as_ref().is_some_and(|sample| sample.ctas_run < sample.ctas)
    }
}

impl AppRecord {
    /// True when a launch's numbers are extrapolated from a part of its CTAs.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.kernels.iter().any(KernelRecord::is_sampled)
    }
}
