//! A source of plain memory traffic: every warp of every CTA only loads.
//!
//! It measures the path from the load/store unit to the memory pins without
//! the cost of reading a trace.

use std::sync::Arc;

use gpumodel::core::contract::{AppFacts, Facts, Plan, PlanDraft, Share};
use gpumodel::core::isa::{
    Access, AddressMode, Code, Instruction, Launch, Register, RegisterFile, Segment,
};
use gpumodel::core::units::{AppId, Dim3, KernelId};
use gpumodel::sim::config::{AddressMap, Machine, Mapping, MemoryStandard, Resolved};
use gpumodel::sim::{
    Command, End, Feed, FeedError, Gpu, Outcome, Program, Setup, Stream, WarpStream, machine_facts,
};

/// Loads that a warp has on its way at a time.
const LOADS: u32 = 8;

const THREADS: u32 = 256;

/// Where a load goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pattern {
    /// Neighbouring words, all warps side by side, over and over a region.
    Stream {
        /// Bytes per lane.
        width: u8,
        /// Bytes of the region.
        span: u64,
    },
    /// A separate sector for every lane.
    Scatter {
        /// Bytes of the region.
        span: u64,
    },
}

impl Pattern {
    /// Bytes per lane.
    fn width(self) -> u8 {
        match self {
            Self::Stream { width, .. } => width,
            Self::Scatter { .. } => 4,
        }
    }
}

/// A kernel of loads.
#[derive(Debug)]
pub(crate) struct Traffic {
    pattern: Pattern,
    turns: u64,
    warps: u64,
    program: Program,
}

/// One warp of it.
#[derive(Debug)]
pub(crate) struct Loads {
    pattern: Pattern,
    warp: u64,
    warps: u64,
    place: u64,
    left: u64,
    state: u64,
}

impl Traffic {
    /// A kernel of `ctas` CTAs whose warps do `turns` times eight loads that go
    /// past the L1.
    pub(crate) fn new(resolved: &Resolved, pattern: Pattern, ctas: u32, turns: u64) -> Self {
        let opcode = String::from("LDG.E.STRONG.GPU");
        let load = |number: u32| Instruction {
            pc: 16 * u64::from(number),
            opcode: 0,
            destinations: Register::new(
                RegisterFile::General,
                u16::try_from(number + 2).expect("a small number"),
            )
            .into_iter()
            .collect(),
            sources: Box::default(),
            width: pattern.width(),
            immediates: Box::default(),
            line: None,
            control: None,
        };
        let code = Code {
            instructions: (0..LOADS).map(load).collect(),
            segments: vec![Segment { first: 0, length: LOADS }],
            opcodes: vec![opcode.clone()],
        };
        let launch = Launch {
            name: String::from("traffic"),
            grid: Dim3::new(ctas, 1, 1),
            block: Dim3::new(THREADS, 1, 1),
            registers: 16,
            ..Launch::default()
        };
        let program = Program {
            launch,
            opcodes: Arc::new([resolved.isa.opcode(&resolved.machine, &opcode)]),
            code: Arc::new(code),
            ctas: u64::from(ctas),
        };
        let warps = u64::from(ctas) * u64::from(THREADS / 32);
        Self { pattern, turns, warps, program }
    }

    /// Sectors that it asks for.
    pub(crate) fn sectors(&self) -> u64 {
        let each = match self.pattern {
            Pattern::Stream { width, .. } => u64::from(width),
            Pattern::Scatter { .. } => 32,
        };
        self.warps * self.turns * u64::from(LOADS) * each
    }

    /// Runs it alone on a machine, on the threads of the present pool.
    pub(crate) fn run(&self, resolved: &Resolved) -> Outcome {
        let machine = &resolved.machine;
        let standard =
            MemoryStandard::load(&machine.dram.standard, &gpumodel::models(), &machine.dram.timing)
                .expect("the machine's memory standard is there");
        let mapping = Mapping::load(&machine.dram.mapping, &gpumodel::models())
            .expect("the machine's mapping is there");
        let slices = machine.l2.slices / machine.dram.channels;
        let mapping = mapping
            .for_machine(machine.dram.channels, slices)
            .expect("the machine's mapping fits it");
        let plan = whole(machine, &standard, &mapping);
        let command = Command::Launch { kernel: KernelId(0), stream: 0 };
        let setup = Setup {
            machine,
            standard: &standard,
            mapping,
            apps: vec![vec![command].into()],
            end: End::default(),
            part: None,
        };
        let gpu = Gpu::new(setup, self).expect("the CTA fits").with_all_threads();
        gpu.run(&plan, &mut |_| ()).expect("the run ends")
    }
}

/// A shipped machine; `NAME+line` is that machine with requests by line.
pub(crate) fn machine(name: &str) -> Resolved {
    let (name, by_line) = match name.strip_suffix("+line") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let key = ("interconnect.request_granularity".to_owned(), "line".to_owned());
    let set = if by_line { vec![key] } else { vec![] };
    gpumodel::models().machine(name, &set).expect("a shipped machine")
}

/// A plan that gives one application everything.
fn whole(machine: &Machine, standard: &MemoryStandard, mapping: &AddressMap) -> Plan {
    let app =
        AppFacts { app: AppId(0), name: String::from("traffic"), arrival: 0, kernels: vec![] };
    let facts = Facts { apps: vec![app], ..machine_facts(machine, standard, mapping, 1.0) };
    let shares = vec![Share::Quota(vec![facts.max_ctas_per_sm; usize::from(facts.sms)])];
    Plan::new(&facts, PlanDraft { shares, ..PlanDraft::default() }).expect("a lawful plan")
}

impl Loads {
    /// A pseudo-random number.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.state >> 24
    }
}

impl WarpStream for Loads {
    fn next_segment(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        Some(0)
    }

    fn skip(&mut self, _count: u32) -> u64 {
        0
    }

    fn access(&mut self, into: &mut Access) {
        into.mask = u32::MAX;
        match self.pattern {
            Pattern::Stream { width, span } => {
                into.mode = AddressMode::Stride;
                into.stride = i64::from(width);
                into.base = (self.place * self.warps + self.warp) * 32 * u64::from(width) % span;
            }
            Pattern::Scatter { span } => {
                into.mode = AddressMode::List;
                for lane in 0..into.lanes.len() {
                    into.lanes[lane] = self.random() * 32 % span;
                }
                into.base = into.lanes[0];
            }
        }
        self.place += 1;
    }
}

impl Feed for Traffic {
    fn program(&self, _kernel: KernelId) -> &Program {
        &self.program
    }

    fn open(
        &self,
        _kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        for number in 0..u64::from(THREADS / 32) {
            let warp = ordinal * u64::from(THREADS / 32) + number;
            let (pattern, left) = (self.pattern, self.turns);
            let state = warp.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
            warps.push(Box::new(Loads { pattern, warp, warps: self.warps, place: 0, left, state }));
        }
        Ok(Dim3::new(u32::try_from(ordinal).unwrap_or(u32::MAX), 0, 0))
    }
}
