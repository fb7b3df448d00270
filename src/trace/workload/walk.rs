//! A warp's instructions one by one, every address checked: what the texts and the stores of
//! a workload are made of.

use std::sync::Arc;

use gpumodel_core::isa::{Access, Code, Launch};
use gpumodel_core::units::to_usize;

use super::declared::Workload;
use super::error::{Fault, SynthError};
use super::kernel::{Cta, Kernel};
use super::program::Bounds;
use super::stream::WarpStream;

/// Most dynamic instructions of one warp: a text's lines are held until their number is known.
const WARP_INSTRUCTIONS: u64 = 1 << 20;
/// Bytes of a thread's local memory.
const LOCAL_BYTES: u64 = 1 << 24;

/// Goes through the warps of a launch.
pub(super) struct Walk<'a> {
    workload: &'a Workload,
    launch: &'a Launch,
    code: Arc<Code>,
    access: Access,
}

impl<'a> Walk<'a> {
    /// Through those of `kernel`, which is of `workload`.
    pub(super) fn new(workload: &'a Workload, kernel: &'a Kernel) -> Self {
        Self { workload, launch: kernel.launch(), code: kernel.code(), access: Access::default() }
    }

    /// Gives each instruction of a warp to `take`: its index in the code, its lanes, and its
    /// addresses where it has a width. Gives their number.
    ///
    /// # Errors
    /// When an address lies outside its space or is not aligned, or when the warp does not end
    /// in time.
    pub(super) fn warp(
        &mut self,
        cta: &Cta,
        warp: u32,
        mut take: impl FnMut(usize, u32, Option<&Access>),
    ) -> Result<u64, SynthError> {
        let mut stream = cta.warp(warp);
        let mut count = 0;
        while let Some(segment) = stream.next_segment() {
            let segment = self.code.segments[to_usize(segment)];
            for index in segment.range().take(to_usize(stream.left())) {
                let stepped = if count == WARP_INSTRUCTIONS {
                    let what = format!("more than {WARP_INSTRUCTIONS} instructions");
                    Err(Fault::new(stream.addressed().1, what))
                } else {
                    self.step(index, &mut stream, &mut take)
                };
                stepped.map_err(|fault| self.told(fault, cta, warp))?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn step(
        &mut self,
        index: usize,
        stream: &mut WarpStream,
        take: &mut impl FnMut(usize, u32, Option<&Access>),
    ) -> Result<(), Fault> {
        let mask = stream.mask();
        if self.code.instructions[index].width == 0 {
            stream.skip(1);
            take(index, mask, None);
            return Ok(());
        }
        let (bounds, at) = stream.addressed();
        stream.access(&mut self.access);
        self.check(index, bounds, at)?;
        take(index, mask, Some(&self.access));
        Ok(())
    }

    /// The error for a fault of a warp.
    fn told(&self, fault: Fault, cta: &Cta, warp: u32) -> SynthError {
        let (name, position) = (&self.launch.name, cta.position());
        let what = format!("kernel `{name}`, CTA {position}, warp {warp}: {}", fault.what);
        self.workload.fault(Fault { what, ..fault })
    }

    /// Every active address lies in its space and is aligned to its width.
    fn check(&self, index: usize, bounds: Option<Bounds>, at: usize) -> Result<(), Fault> {
        let instruction = &self.code.instructions[index];
        let opcode = &self.code.opcodes[to_usize(instruction.opcode)];
        // An address of LDSM names a row of 16 bytes, whatever the width says.
        let matrix = opcode.starts_with("LDSM");
        let width = if matrix { 16 } else { u64::from(instruction.width) };
        for (lane, address) in self.access.active() {
            let wrong = if address % width == 0 {
                self.outside(bounds, address, width)
            } else {
                Some(format!("the address {address:#x} is no multiple of {width}"))
            };
            if let Some(what) = wrong {
                return Err(Fault::new(at, format!("lane {lane}: {opcode}: {what}")));
            }
        }
        Ok(())
    }

    fn outside(&self, bounds: Option<Bounds>, address: u64, width: u64) -> Option<String> {
        let (bytes, name) = match bounds? {
            Bounds::Buffers(base) => return self.workload.outside(base, address, width),
            Bounds::Shared => (u64::from(self.launch.shared_bytes), "`shared_bytes`"),
            Bounds::Local => (LOCAL_BYTES, "the local window"),
        };
        (address.saturating_add(width) > bytes)
            .then(|| format!("{width} bytes at offset {address:#x} lie beyond {name}, {bytes:#x}"))
    }
}
