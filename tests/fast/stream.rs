//! Do short blocks of plain loads and stores take the bandwidth that cards were measured to give?
//!
//! One element of 8 bytes per thread and array, two blocks per SM: a block's whole life is in
//! the number. The measurements are in `tests/data/hardware/stream.csv`, with their source.

use std::sync::Arc;

use gpumodel::core::contract::{AppFacts, Facts, Plan, PlanDraft, Share};
use gpumodel::core::isa::{
    Access, AddressMode, Code, Instruction, Launch, Register, RegisterFile, Segment,
};
use gpumodel::core::units::{AppId, Dim3, KernelId};
use gpumodel::sim::config::{Machine, Mapping, MemoryStandard, Resolved};
use gpumodel::sim::{
    Command, End, Feed, FeedError, Gpu, Program, Setup, Stream, WarpStream, machine_facts,
};

const MEASURED: &str = include_str!("../data/hardware/stream.csv");

const BYTES: u64 = 8;

/// A kernel that moves an element per thread and array.
#[derive(Debug)]
struct Kernel {
    program: Program,
    threads: u64,
    /// From the start of one array to that of the next.
    array_bytes: u64,
}

/// One warp of it: where its elements lie, and which array comes next.
#[derive(Debug)]
struct Warp {
    base: u64,
    array_bytes: u64,
    begun: bool,
}

impl WarpStream for Warp {
    fn next_segment(&mut self) -> Option<u32> {
        (!std::mem::replace(&mut self.begun, true)).then_some(0)
    }

    fn skip(&mut self, _count: u32) -> u64 {
        0
    }

    fn access(&mut self, into: &mut Access) {
        (into.mask, into.mode, into.stride) = (u32::MAX, AddressMode::Stride, 8);
        into.base = self.base;
        self.base += self.array_bytes;
    }
}

impl Feed for Kernel {
    fn program(&self, _kernel: KernelId) -> &Program {
        &self.program
    }

    fn open(
        &self,
        _kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        for warp in 0..self.threads / 32 {
            let base = (1 << 32) + (ordinal * self.threads + warp * 32) * BYTES;
            warps.push(Box::new(Warp { base, array_bytes: self.array_bytes, begun: false }));
        }
        Ok(Dim3::new(u32::try_from(ordinal).unwrap(), 0, 0))
    }
}

/// An instruction: opcode, destination, sources, bytes per lane of its address.
type Line = (&'static str, Option<u16>, Vec<u16>, u8);

/// Index arithmetic, loads, one operation, perhaps a store.
fn lines(loads: u16, stores: bool) -> Vec<Line> {
    let mut lines = vec![
        ("MOV", Some(1), vec![], 0),
        ("S2R", Some(2), vec![], 0),
        ("S2R", Some(3), vec![], 0),
        ("IMAD", Some(4), vec![2, 3], 0),
        ("MOV", Some(5), vec![], 0),
        ("IMAD.WIDE", Some(6), vec![4, 5], 0),
    ];
    let loaded: Vec<u16> = (0..loads).map(|load| 10 + 2 * load).collect();
    lines.extend(loaded.iter().map(|&to| ("LDG.E.64", Some(to), vec![6], 8)));
    lines.push(("DFMA", Some(20), loaded, 0));
    if stores {
        lines.push(("STG.E.64", None, vec![6, 20], 8));
    }
    lines.push(("EXIT", None, vec![], 0));
    lines
}

fn kernel(resolved: &Resolved, lines: Vec<Line>, threads: u32, ctas: u32) -> Kernel {
    let register = |number| Register::new(RegisterFile::General, number).unwrap();
    let opcodes: Vec<String> = lines.iter().map(|line| line.0.to_owned()).collect();
    let instruction = |(number, (_, to, from, width)): (usize, Line)| Instruction {
        pc: 16 * number as u64,
        opcode: u32::try_from(number).unwrap(),
        destinations: to.map(register).into_iter().collect(),
        sources: from.into_iter().map(register).collect(),
        width,
        immediates: Box::default(),
        line: None,
    };
    let instructions: Vec<Instruction> = lines.into_iter().enumerate().map(instruction).collect();
    let length = u32::try_from(instructions.len()).unwrap();
    let shared = &resolved.machine.shared;
    let half = shared.bytes / 2 - shared.reserved_bytes_per_cta;
    let launch = Launch {
        name: String::from("stream"),
        grid: Dim3::new(ctas, 1, 1),
        block: Dim3::new(threads, 1, 1),
        registers: 16,
        // Two blocks fill an SM.
        shared_bytes: if threads == 1024 { 0 } else { half / 1024 * 1024 },
        ..Launch::default()
    };
    let code = Code { instructions, segments: vec![Segment { first: 0, length }], opcodes };
    let isa = |opcode: &String| resolved.isa.opcode(&resolved.machine, opcode);
    let program = Program {
        launch,
        opcodes: code.opcodes.iter().map(isa).collect(),
        code: Arc::new(code),
        ctas: u64::from(ctas),
    };
    let (threads, ctas) = (u64::from(threads), u64::from(ctas));
    let array_bytes = (threads * ctas * BYTES).next_multiple_of(1 << 21);
    Kernel { program, threads, array_bytes }
}

fn whole(machine: &Machine, standard: &MemoryStandard, mapping: &Mapping) -> Plan {
    let map = mapping
        .clone()
        .for_machine(machine.dram.channels, machine.l2.slices / machine.dram.channels)
        .unwrap();
    let app = AppFacts { app: AppId(0), name: String::from("stream"), arrival: 0, kernels: vec![] };
    let facts = Facts { apps: vec![app], ..machine_facts(machine, standard, &map, 1.0) };
    let shares = vec![Share::Quota(vec![facts.max_ctas_per_sm; usize::from(facts.sms)])];
    Plan::new(&facts, PlanDraft { shares, ..PlanDraft::default() }).unwrap()
}

/// GB/s over the pins of the memory while a grid of `rounds` blocks per place of an SM runs.
fn gbps(name: &str, kind: &str, threads: u32, rounds: u32) -> f64 {
    let (loads, stores) = match kind {
        "read" => (1, false),
        "scale" => (1, true),
        "init" => (0, true),
        _ => (3, true),
    };
    let models = gpumodel::models();
    let resolved = models.machine(name, &[]).unwrap();
    let machine = &resolved.machine;
    let ctas = u32::from(machine.dispatch.sms) * 2 * rounds;
    let kernel = kernel(&resolved, lines(loads, stores), threads, ctas);
    let standard = MemoryStandard::load(&machine.dram.standard, &models, &machine.dram.timing);
    let (standard, mapping) =
        (standard.unwrap(), Mapping::load(&machine.dram.mapping, &models).unwrap());
    let plan = whole(machine, &standard, &mapping);
    let slices = machine.l2.slices / machine.dram.channels;
    let setup = Setup {
        machine,
        standard: &standard,
        mapping: mapping.for_machine(machine.dram.channels, slices).unwrap(),
        apps: vec![vec![Command::Launch { kernel: KernelId(0), stream: 0 }].into()],
        end: End::default(),
        part: None,
    };
    let outcome = Gpu::new(setup, &kernel).unwrap().run(&plan, &mut |_| ()).unwrap();
    let dispatch = &machine.dispatch;
    let around = dispatch.kernel_launch_cycles + dispatch.kernel_retire_cycles;
    // What stays in the L2 has not been moved.
    let counts = &outcome.kernels[0];
    let bytes = 32 * (counts.dram_reads + counts.dram_writes);
    bytes as f64 / (outcome.cycles - around) as f64 * machine.clocks.core_mhz * 1e-3
}

/// The measured rows: machine, kernel, threads per block, GB/s.
fn rows() -> Vec<(&'static str, &'static str, u32, f64)> {
    let lines = MEASURED.lines().filter(|line| !line.starts_with('#')).skip(1);
    let row = |line: &'static str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[0], fields[1], fields[2].parse().unwrap(), fields[3].parse().unwrap())
    };
    lines.map(row).collect()
}

#[test]
fn a_block_of_one_load_per_thread_lives_as_long_as_on_the_cards() {
    for (machine, kernel, threads, measured) in rows() {
        // Stores of a short run stay in the L2.
        if threads <= 256 && kernel == "read" {
            let found = gbps(machine, kernel, threads, 24);
            let error = found / measured - 1.0;
            assert!(error.abs() < 0.12, "{machine} {kernel} {threads}: {found} for {measured}");
        }
    }
}

#[test]
fn a_stream_of_all_sms_takes_what_a_v100_gives() {
    for (machine, kernel, threads, measured) in rows() {
        if machine == "v100-pcie" && threads == 1024 && ["read", "scale"].contains(&kernel) {
            // The ramps at both ends are a tenth of so short a run.
            let found = gbps(machine, kernel, threads, 16);
            let error = found / measured - 1.0;
            assert!((-0.15..0.08).contains(&error), "{kernel}: {found} for {measured}");
        }
    }
}
