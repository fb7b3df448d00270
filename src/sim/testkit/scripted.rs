//! A hand-made source of instructions for the machine's own tests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::Resolved;
use gpumodel_core::isa::{
    Access, AddressMode, Code, Instruction, Launch, Register, RegisterFile, Segment,
};
use gpumodel_core::units::{Dim3, KernelId, to_u32, to_usize};

pub(crate) use crate::testkit::fixture::{
    address_of, facts, gap, kernel_cycles, machine, memory_of, named, sectored, translating, whole,
};
use crate::{
    End, Feed, FeedError, Gpu, MachineError, Outcome, ProfileImage, Program, Setup, Stream,
    WarpStream, Worker,
};

/// The lanes' addresses by CTA, warp and turn; the mask is the line's.
#[derive(Clone, Copy)]
pub(crate) struct Where(&'static dyn Fn(u64, u64, u64, &mut Access));

impl fmt::Debug for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Where")
    }
}

/// One instruction of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    opcode: &'static str,
    destination: Option<u16>,
    source: Option<u16>,
    at: Option<Where>,
    pub(crate) width: u8,
    pub(crate) mask: u32,
    immediates: &'static [i64],
}

impl Line {
    /// The same with other bytes per lane.
    pub(crate) fn bytes(self, width: u8) -> Self {
        Self { width, ..self }
    }

    /// The same with fewer active lanes.
    pub(crate) fn masked(self, mask: u32) -> Self {
        Self { mask, ..self }
    }

    /// The same with this immediate instead of a 0.
    pub(crate) fn immediate(self, immediate: i64) -> Self {
        self.immediates(Box::leak(Box::new([immediate])))
    }

    /// The same with these immediates instead of a 0.
    pub(crate) fn immediates(self, immediates: &'static [i64]) -> Self {
        Self { immediates, ..self }
    }
}

/// An instruction without addresses.
pub(crate) fn line(opcode: &'static str, destination: Option<u16>, source: Option<u16>) -> Line {
    Line { opcode, destination, source, at: None, width: 0, mask: u32::MAX, immediates: &[0] }
}

/// A load or store of 4 bytes per lane: the address of lane 0 and the step
/// between lanes, by CTA, warp and turn.
pub(crate) fn memory(
    opcode: &'static str,
    destination: Option<u16>,
    source: Option<u16>,
    at: impl Fn(u64, u64, u64) -> (u64, i64) + 'static,
) -> Line {
    with_lanes(line(opcode, destination, source), move |cta, warp, turn, access| {
        (access.base, access.stride) = at(cta, warp, turn);
        access.mode = AddressMode::Stride;
    })
}

/// A load or store of 4 bytes per lane: an address per CTA, warp, turn and lane.
pub(crate) fn scattered(
    opcode: &'static str,
    destination: Option<u16>,
    source: Option<u16>,
    at: impl Fn(u64, u64, u64, u64) -> u64 + 'static,
) -> Line {
    with_lanes(line(opcode, destination, source), move |cta, warp, turn, access| {
        access.lanes = std::array::from_fn(|lane| at(cta, warp, turn, lane as u64));
        access.mode = AddressMode::List;
    })
}

/// Scripts live as long as the test: what they say of addresses is leaked.
fn with_lanes(line: Line, at: impl Fn(u64, u64, u64, &mut Access) + 'static) -> Line {
    Line { at: Some(Where(Box::leak(Box::new(at)))), width: 4, ..line }
}

/// A kernel whose warps run bodies of lines, over and over.
#[derive(Debug)]
pub(crate) struct Script {
    /// By warp, in turn.
    bodies: Vec<Arc<[Line]>>,
    /// By CTA, not by warp.
    by_cta: bool,
    mask: u32,
    repeat: u32,
    one_by_one: bool,
    entered: Arc<AtomicU64>,
    /// By CTA: how often it was opened.
    opened: Arc<[AtomicU64]>,
    pub(crate) worker: Option<Arc<Worker>>,
    pub(crate) program: Program,
}

/// A warp of a [`Script`].
#[derive(Debug)]
pub(crate) struct ScriptedWarp {
    body: Arc<[Line]>,
    segment: u32,
    mask: u32,
    repeat: u32,
    one_by_one: bool,
    entered: Arc<AtomicU64>,
    place: usize,
    turn: u64,
    cta: u64,
    warp: u64,
}

impl WarpStream for ScriptedWarp {
    fn next_segment(&mut self) -> Option<u32> {
        self.repeat = self.repeat.checked_sub(1)?;
        self.turn += 1;
        self.place = 0;
        self.entered.fetch_add(1, Ordering::Relaxed);
        Some(self.segment)
    }

    fn skip(&mut self, count: u32) -> u64 {
        let lines = &self.body[self.place..self.place + to_usize(count)];
        self.place += to_usize(count);
        lines.iter().map(|line| u64::from((line.mask & self.mask).count_ones())).sum()
    }

    fn repeats(&self) -> u64 {
        if self.one_by_one { 0 } else { u64::from(self.repeat) }
    }

    fn pass(&mut self, times: u64, length: u32) -> u64 {
        assert_eq!((self.place, self.body.len()), (0, to_usize(length)));
        self.repeat -= u32::try_from(times).expect("at most what is left");
        self.turn += times;
        let lanes = times * self.skip(length);
        self.place = 0;
        lanes
    }

    fn access(&mut self, into: &mut Access) {
        let line = self.body[self.place];
        let at = line.at.expect("only lines with addresses are accessed");
        self.place += 1;
        *into = Access { mask: line.mask & self.mask, ..Access::default() };
        (at.0)(self.cta, self.warp, self.turn - 1, into);
    }
}

fn register(number: Option<u16>) -> Box<[Register]> {
    number.and_then(|n| Register::new(RegisterFile::General, n)).into_iter().collect()
}

impl Script {
    /// `ctas` CTAs of `threads` threads, every warp running `lines` `repeat` times.
    pub(crate) fn new(
        resolved: &Resolved,
        lines: &[Line],
        repeat: u32,
        ctas: u32,
        threads: u32,
    ) -> Self {
        Self::of_bodies(resolved, &[lines], repeat, ctas, threads)
    }

    /// As [`Script::new`], warps running the bodies in turn.
    pub(crate) fn of_bodies(
        resolved: &Resolved,
        bodies: &[&[Line]],
        repeat: u32,
        ctas: u32,
        threads: u32,
    ) -> Self {
        let code = code(bodies);
        let resolve = |text: &String| resolved.isa.opcode(&resolved.machine, text);
        let launch = Launch {
            name: String::from("scripted"),
            grid: Dim3::new(ctas, 1, 1),
            block: Dim3::new(threads, 1, 1),
            registers: 16,
            ..Launch::default()
        };
        let opcodes = code.opcodes.iter().map(resolve).collect();
        let program = Program { launch, opcodes, code: Arc::new(code), ctas: u64::from(ctas) };
        let bodies = bodies.iter().map(|&lines| Arc::from(lines)).collect();
        Self {
            bodies,
            by_cta: false,
            mask: u32::MAX,
            repeat,
            one_by_one: false,
            entered: Arc::default(),
            opened: (0..ctas).map(|_| AtomicU64::new(0)).collect(),
            worker: None,
            program,
        }
    }

    /// By CTA: how often it was opened.
    pub(crate) fn opened(&self) -> Vec<u64> {
        self.opened.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// CTAs of one warp that run the bodies in turn, once each.
    pub(crate) fn of_ctas(resolved: &Resolved, bodies: &[&[Line]], ctas: u32) -> Self {
        Self { by_cta: true, ..Self::of_bodies(resolved, bodies, 1, ctas, 32) }
    }

    /// The launch.
    pub(crate) fn launch(&self) -> Launch {
        self.program.launch.clone()
    }

    /// The same from a source that does not know what repeats.
    pub(crate) fn one_by_one(mut self) -> Self {
        self.one_by_one = true;
        self
    }

    /// Segments that warps have been asked for one by one.
    pub(crate) fn entered(&self) -> u64 {
        self.entered.load(Ordering::Relaxed)
    }

    /// The same with so many registers per thread and shared bytes per CTA.
    pub(crate) fn needing(mut self, registers: u32, shared_bytes: u32) -> Self {
        self.program.launch.registers = registers;
        self.program.launch.shared_bytes = shared_bytes;
        self
    }

    /// The same with other active lanes.
    pub(crate) fn with_mask(mut self, mask: u32) -> Self {
        self.mask = mask;
        self
    }

    /// The same with windows of shared and local memory in generic addresses.
    pub(crate) fn with_windows(mut self, shared: u64, local: u64) -> Self {
        self.program.launch.shared_window = shared;
        self.program.launch.local_window = local;
        self
    }

    /// Runs it alone.
    pub(crate) fn run(&self, resolved: &Resolved) -> Outcome {
        self.run_side_by_side(resolved, 1)
    }

    /// Runs it alone, to whatever end.
    pub(crate) fn try_run(&self, resolved: &Resolved) -> Result<Outcome, MachineError> {
        self.run_apps(resolved, 1, &[])
    }

    /// Runs it with what an earlier run has found of its code.
    pub(crate) fn run_knowing(&self, resolved: &Resolved, images: &[ProfileImage]) -> Outcome {
        self.run_apps(resolved, 1, images).unwrap()
    }

    /// Runs it as `apps` applications at once, each with all the room.
    pub(crate) fn run_side_by_side(&self, resolved: &Resolved, apps: u16) -> Outcome {
        self.run_apps(resolved, apps, &[]).unwrap()
    }

    fn run_apps(
        &self,
        resolved: &Resolved,
        apps: u16,
        images: &[ProfileImage],
    ) -> Result<Outcome, MachineError> {
        let machine = &resolved.machine;
        let (standard, mapping) = memory_of(resolved);
        let launch = |kernel: u32| crate::Command::Launch { kernel: KernelId(kernel), stream: 0 };
        let lists = (0..u32::from(apps)).map(|kernel| vec![launch(kernel)].into()).collect();
        let setup = Setup {
            machine,
            standard: &standard,
            mapping,
            apps: lists,
            end: End::default(),
            part: None,
        };
        let gpu = Gpu::new(setup, self).unwrap().with_profiles(images);
        gpu.run(&whole(resolved, apps), &mut |_| ())
    }
}

/// One segment per body.
fn code(bodies: &[&[Line]]) -> Code {
    let mut code = Code::default();
    for &lines in bodies {
        append(&mut code, lines);
    }
    code
}

/// Adds a body and says its segment.
pub(crate) fn append(code: &mut Code, lines: &[Line]) -> u32 {
    let first = to_u32(code.instructions.len());
    code.segments.push(Segment { first, length: to_u32(lines.len()) });
    for line in lines {
        let place = code.instructions.len();
        code.opcodes.push(line.opcode.to_owned());
        code.instructions.push(Instruction {
            pc: 16 * place as u64,
            opcode: to_u32(place),
            destinations: register(line.destination),
            sources: register(line.source),
            width: line.width,
            immediates: line.immediates.into(),
            line: None,
        });
    }
    to_u32(code.segments.len() - 1)
}

impl Feed for Script {
    fn program(&self, _kernel: KernelId) -> &Program {
        &self.program
    }

    fn worker(&self, _kernel: KernelId) -> Option<&Arc<Worker>> {
        self.worker.as_ref()
    }

    fn open(
        &self,
        _kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        self.opened[to_usize(to_u32(ordinal))].fetch_add(1, Ordering::Relaxed);
        for warp in 0..u64::from(self.program.launch.warps_per_cta()) {
            let turn = if self.by_cta { ordinal } else { warp };
            let segment = turn % self.bodies.len() as u64;
            warps.push(Box::new(ScriptedWarp {
                body: Arc::clone(&self.bodies[to_usize(segment)]),
                segment: to_u32(segment),
                mask: self.mask,
                repeat: self.repeat,
                one_by_one: self.one_by_one,
                entered: Arc::clone(&self.entered),
                place: 0,
                turn: 0,
                cta: ordinal,
                warp,
            }));
        }
        Ok(Dim3::new(to_u32(ordinal), 0, 0))
    }
}
