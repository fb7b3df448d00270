//! The records of a workload's CTAs: each executed instruction with its lanes and addresses,
//! every address checked. The texts and the stores of a workload are made of them.

use gpumodel_core::isa::{Access, Launch};
use gpumodel_core::units::to_usize;

use super::asynchronous::BULK_UNIT;
use super::program::{Bounds, Program};
use super::{Cta, Kernel, WarpStream, Workload, WorkloadError};

/// Most dynamic instructions of one warp: a text's lines are held until their number is known.
const WARP_INSTRUCTIONS: u64 = 1 << 20;
/// Bytes of a thread's local memory.
const LOCAL_BYTES: u64 = 1 << 24;
/// Where the rank of a CTA begins in an address of a cluster's shared memories.
const RANK_BIT: u32 = 24;

/// Reads the records of the warps of a launch.
pub(crate) struct CtaRecords<'a> {
    workload: &'a Workload,
    launch: &'a Launch,
    program: &'a Program,
    access: Access,
}

/// One executed instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executed<'a> {
    /// Its index in the code.
    pub(crate) index: usize,
    /// Its lanes.
    pub(crate) mask: u32,
    /// Its addresses, where it has a width.
    pub(crate) access: Option<&'a Access>,
    /// The text that ends its line, where it has one.
    pub(crate) tail: Option<&'a str>,
}

impl<'a> CtaRecords<'a> {
    /// Those of `kernel`, which is of `workload`.
    pub(crate) fn new(workload: &'a Workload, kernel: &'a Kernel) -> Self {
        let (launch, program) = (kernel.launch(), kernel.program());
        Self { workload, launch, program, access: Access::default() }
    }

    /// Gives each instruction of a warp to `take`. Returns their number.
    ///
    /// # Errors
    /// When an address lies outside its space or is not aligned, or when the warp does not end
    /// in time.
    pub(crate) fn warp(
        &mut self,
        cta: &Cta,
        warp: u32,
        mut take: impl FnMut(Executed<'_>),
    ) -> Result<u64, WorkloadError> {
        let mut stream = cta.warp(warp);
        let mut count = 0;
        while let Some(segment) = stream.next_segment() {
            let segment = self.program.code.segments[to_usize(segment)];
            for index in segment.range().take(to_usize(stream.left())) {
                let stepped = if count == WARP_INSTRUCTIONS {
                    Err(format!("more than {WARP_INSTRUCTIONS} instructions"))
                } else {
                    self.step(index, &mut stream, &mut take)
                };
                stepped.map_err(|what| {
                    let (name, position) = (&self.launch.name, cta.position());
                    let what = format!("kernel `{name}`, CTA {position}, warp {warp}: {what}");
                    WorkloadError::invalid(&self.program.actions[index].place, what)
                })?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn step(
        &mut self,
        index: usize,
        stream: &mut WarpStream,
        take: &mut impl FnMut(Executed<'_>),
    ) -> Result<(), String> {
        let mask = stream.mask();
        let tail = stream.tail();
        let tail = tail.as_deref();
        if self.program.code.instructions[index].width == 0 {
            self.check_copy(stream)?;
            stream.skip(1);
            take(Executed { index, mask, access: None, tail });
            return Ok(());
        }
        stream.access(&mut self.access);
        self.check(index)?;
        take(Executed { index, mask, access: Some(&self.access), tail });
        Ok(())
    }

    /// Every row of a box lies in its buffer and is aligned.
    fn check_copy(&self, stream: &WarpStream) -> Result<(), String> {
        let Some((copy, rows)) = stream.copy().filter(|_| stream.mask() != 0) else {
            return Ok(());
        };
        let bytes = u64::from(copy.row_bytes);
        for (row, address) in rows.enumerate() {
            let wrong = if address % BULK_UNIT.cast_unsigned() == 0 {
                self.workload.outside(copy.buffer, address, bytes)
            } else {
                Some(format!("the address {address:#x} is no multiple of {BULK_UNIT}"))
            };
            if let Some(what) = wrong {
                return Err(format!("row {row} of the box: {what}"));
            }
        }
        Ok(())
    }

    /// Every active address lies in its space and is aligned to its width.
    fn check(&self, index: usize) -> Result<(), String> {
        let code = &self.program.code;
        let instruction = &code.instructions[index];
        let opcode = &code.opcodes[to_usize(instruction.opcode)];
        let bounds = self.program.actions[index].address.as_ref().map(|(bounds, _)| *bounds);
        // An address of LDSM or STSM names a row of 16 bytes, whatever the width says.
        let matrix = opcode.starts_with("LDSM") || opcode.starts_with("STSM");
        let width = if matrix { 16 } else { u64::from(instruction.width) };
        // A step at a barrier object may be at that of another CTA of the cluster.
        let ranks = if opcode.starts_with("SYNCS") { self.launch.cluster.count() } else { 0 };
        for (lane, address) in self.access.active() {
            let rank = address >> RANK_BIT;
            let address = if rank < ranks { address - (rank << RANK_BIT) } else { address };
            let wrong = if address % width == 0 {
                self.outside(bounds, address, width)
            } else {
                Some(format!("the address {address:#x} is no multiple of {width}"))
            };
            if let Some(what) = wrong {
                return Err(format!("lane {lane}: {opcode}: {what}"));
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
