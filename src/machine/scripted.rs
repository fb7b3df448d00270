//! A hand-made source of instructions for the machine's own tests.

use std::sync::Arc;

use crate::isa::{Access, AddressMode, Code, Instruction, Launch, Register, RegisterFile, Segment};
use crate::spec::{Mapping, MemoryStandard, Models, Resolved};
use crate::units::{Dim3, KernelId, to_u32, to_usize};

use super::{Command, Feed, FeedError, Gpu, Outcome, Program, Setup, WarpStream};
use crate::epoch::{AppFacts, Facts, Plan, PlanDraft, Share};
use crate::units::AppId;

/// Address of lane 0 and step between lanes: by CTA, warp and occurrence.
pub(super) type Where = fn(u64, u64, u64) -> (u64, i64);

/// One instruction of a script.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) opcode: &'static str,
    pub(super) destination: Option<u16>,
    pub(super) source: Option<u16>,
    pub(super) at: Option<Where>,
}

/// An instruction without addresses.
pub(super) fn line(opcode: &'static str, destination: Option<u16>, source: Option<u16>) -> Line {
    Line { opcode, destination, source, at: None }
}

/// A load or store of 4 bytes per lane.
pub(super) fn memory(
    opcode: &'static str,
    destination: Option<u16>,
    source: Option<u16>,
    at: Where,
) -> Line {
    Line { opcode, destination, source, at: Some(at) }
}

/// A kernel whose warps all run the same lines with one mask.
pub(super) struct Script {
    lines: Vec<Line>,
    mask: u32,
    repeat: u32,
    program: Program,
}

/// A warp of a [`Script`].
#[derive(Debug)]
pub(super) struct ScriptedWarp {
    lines: Vec<Option<Where>>,
    mask: u32,
    repeat: u32,
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
        Some(0)
    }

    fn skip(&mut self, count: u32) -> u64 {
        self.place += to_usize(count);
        u64::from(count * self.mask.count_ones())
    }

    fn access(&mut self, into: &mut Access) {
        let at = self.lines[self.place].expect("only lines with addresses are accessed");
        let (base, stride) = at(self.cta, self.warp, self.turn - 1);
        self.place += 1;
        *into = Access {
            mask: self.mask,
            mode: AddressMode::Stride,
            base,
            stride,
            ..Access::default()
        };
    }
}

fn register(number: Option<u16>) -> Box<[Register]> {
    number.and_then(|n| Register::new(RegisterFile::General, n)).into_iter().collect()
}

/// The machine that the tests run on, with some keys set.
pub(super) fn machine(set: &[(&str, &str)]) -> Resolved {
    let overrides: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    Models::builtin().machine("accelsim-qv100", &overrides).unwrap()
}

impl Script {
    /// `ctas` CTAs of `threads` threads, every warp running `lines` `repeat` times.
    pub(super) fn new(
        resolved: &Resolved,
        lines: &[Line],
        repeat: u32,
        ctas: u32,
        threads: u32,
    ) -> Self {
        let instruction = |(place, line): (usize, &Line)| Instruction {
            pc: 16 * place as u64,
            opcode: to_u32(place),
            destinations: register(line.destination),
            sources: register(line.source),
            width: if line.at.is_some() { 4 } else { 0 },
            immediates: Box::default(),
            line: None,
        };
        let opcodes: Vec<String> = lines.iter().map(|line| line.opcode.to_owned()).collect();
        let resolve = |text: &String| resolved.isa.opcode(&resolved.machine, text);
        let launch = Launch {
            name: String::from("scripted"),
            grid: Dim3::new(ctas, 1, 1),
            block: Dim3::new(threads, 1, 1),
            registers: 16,
            ..Launch::default()
        };
        let program = Program {
            launch,
            opcodes: opcodes.iter().map(resolve).collect(),
            code: Arc::new(Code {
                instructions: lines.iter().enumerate().map(instruction).collect(),
                segments: vec![Segment { first: 0, length: to_u32(lines.len()) }],
                opcodes,
            }),
            ctas: u64::from(ctas),
        };
        Self { lines: lines.to_vec(), mask: u32::MAX, repeat, program }
    }

    /// The same with other active lanes.
    pub(super) fn with_mask(mut self, mask: u32) -> Self {
        self.mask = mask;
        self
    }

    /// Runs it alone.
    pub(super) fn run(&self, resolved: &Resolved) -> Outcome {
        let machine = &resolved.machine;
        let standard =
            MemoryStandard::load(&machine.dram.standard, None, &machine.dram.timing).unwrap();
        let slices = machine.l2.slices / machine.dram.channels;
        let mapping = Mapping::load(&machine.dram.mapping, None).unwrap();
        let mapping = mapping.for_machine(machine.dram.channels, slices).unwrap();
        let command = Command::Launch { kernel: KernelId(0), stream: 0 };
        let setup = Setup { machine, standard: &standard, mapping, apps: vec![vec![command]] };
        Gpu::new(setup, self).unwrap().run(&whole(resolved), &mut |_| ()).unwrap()
    }
}

/// A plan that gives one application everything.
fn whole(resolved: &Resolved) -> Plan {
    let machine = &resolved.machine;
    let facts = Facts {
        sms: machine.dispatch.sms,
        max_ctas_per_sm: machine.sm.max_ctas,
        max_warps_per_sm: machine.sm.max_warps,
        registers_per_sm: machine.sm.registers,
        shared_bytes_per_sm: machine.shared.bytes,
        channels: machine.dram.channels,
        core_mhz: machine.clocks.core_mhz,
        peak_dram_gb_per_s: 1.0,
        peak_l2_gb_per_s: 1.0,
        peak_ipc_per_sm: 128.0,
        apps: vec![AppFacts { app: AppId(0), name: String::from("a"), kernels: vec![] }],
    };
    let shares = vec![Share::Quota(vec![facts.max_ctas_per_sm; usize::from(facts.sms)])];
    Plan::new(&facts, PlanDraft { shares, ..PlanDraft::default() }).unwrap()
}

impl Feed for Script {
    type Warp = ScriptedWarp;

    fn program(&self, _kernel: KernelId) -> &Program {
        &self.program
    }

    fn open(
        &self,
        _kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<ScriptedWarp>,
    ) -> Result<Dim3, FeedError> {
        let lines: Vec<Option<Where>> = self.lines.iter().map(|line| line.at).collect();
        for warp in 0..u64::from(self.program.launch.warps_per_cta()) {
            let (mask, repeat) = (self.mask, self.repeat);
            warps.push(ScriptedWarp {
                lines: lines.clone(),
                mask,
                repeat,
                place: 0,
                turn: 0,
                cta: ordinal,
                warp,
            });
        }
        Ok(Dim3::new(to_u32(ordinal), 0, 0))
    }
}
