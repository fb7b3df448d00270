//! A declared workload as the machine's source of instructions, without a store of it.

use std::sync::Arc;

use gpumodel_core::isa::{Access, AsyncFields};
use gpumodel_core::units::{Dim3, KernelId, to_u32};
use gpumodel_sim::config::Resolved;
use gpumodel_sim::{Command, Feed, FeedError, Program, Stream, WarpStream};
use gpumodel_trace::workload::{self, Kernel, Workload};

/// A warp of a declared kernel.
#[derive(Debug)]
struct DeclaredWarp(workload::WarpStream);

impl WarpStream for DeclaredWarp {
    fn next_segment(&mut self) -> Option<u32> {
        self.0.next_segment()
    }

    fn skip(&mut self, count: u32) -> u64 {
        self.0.skip(count)
    }

    fn access(&mut self, into: &mut Access) {
        self.0.access(into);
    }

    fn fields(&mut self) -> Option<AsyncFields> {
        self.0.fields()
    }
}

/// The launches of one workload.
#[derive(Debug)]
pub struct WorkloadFeed {
    kernels: Vec<Kernel>,
    programs: Vec<Program>,
}

impl WorkloadFeed {
    /// The launches of a workload, their opcodes resolved on a machine.
    #[must_use]
    pub fn new(workload: &Workload, resolved: &Resolved) -> Self {
        let kernels: Vec<Kernel> =
            (0..workload.kernel_count()).map(|k| workload.kernel(k)).collect();
        let program = |kernel: &Kernel| {
            let code = kernel.code();
            let opcode = |text: &String| resolved.isa.opcode(&resolved.machine, text);
            Program {
                launch: kernel.launch().clone(),
                opcodes: Arc::from_iter(code.opcodes.iter().map(opcode)),
                code,
                ctas: kernel.cta_count(),
            }
        };
        let programs = kernels.iter().map(program).collect();
        Self { kernels, programs }
    }

    /// The launches in order.
    pub fn commands(&self) -> Vec<Command> {
        let launch = |(place, program): (usize, &Program)| Command::Launch {
            kernel: KernelId(to_u32(place)),
            stream: program.launch.stream,
        };
        self.programs.iter().enumerate().map(launch).collect()
    }
}

impl Feed for WorkloadFeed {
    fn program(&self, kernel: KernelId) -> &Program {
        &self.programs[kernel.index()]
    }

    fn open(
        &self,
        kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        let cta = self.kernels[kernel.index()].cta(ordinal);
        let warp = |warp| -> Stream { Box::new(DeclaredWarp(cta.warp(warp))) };
        warps.extend((0..cta.warp_count()).map(warp));
        Ok(cta.position())
    }
}
