//! Stores, and samples of one of their launches, as the machine's source of instructions.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gpumodel_core::isa::{self, Access, AsyncFields, Code, Effect, Opcode, Segment};
use gpumodel_core::units::{Dim3, KernelId, to_u32, to_u64, to_usize};
use gpumodel_sim::config::Resolved;
use gpumodel_sim::{Command, Feed, FeedError, Program, Stream, WarpStream};
use gpumodel_trace::{Store, TraceError, WarpCursor, bulk_copy, source_values};

use crate::constants::ConstantWords;

/// A warp of a store.
#[derive(Debug)]
struct StoredWarp(WarpCursor);

impl WarpStream for StoredWarp {
    fn next_segment(&mut self) -> Option<u32> {
        self.0.next_segment()
    }

    fn skip(&mut self, count: u32) -> u64 {
        self.0.skip(count)
    }

    fn access(&mut self, into: &mut Access) {
        self.0.access(into);
    }

    fn repeats(&self) -> u64 {
        self.0.repeats()
    }

    fn pass(&mut self, times: u64, _length: u32) -> u64 {
        self.0.pass(times)
    }
}

/// A warp whose constant loads read words that the trace does not have.
#[derive(Debug)]
struct ConstantWarp {
    warp: StoredWarp,
    words: Arc<ConstantWords>,
}

impl WarpStream for ConstantWarp {
    fn next_segment(&mut self) -> Option<u32> {
        self.warp.next_segment()
    }

    fn skip(&mut self, count: u32) -> u64 {
        self.warp.skip(count)
    }

    fn access(&mut self, into: &mut Access) {
        let number = self.warp.0.instruction();
        self.warp.access(into);
        if let Some(number) = number {
            self.words.fill(number, into);
        }
    }

    fn repeats(&self) -> u64 {
        self.warp.repeats()
    }

    fn pass(&mut self, times: u64, length: u32) -> u64 {
        self.warp.pass(times, length)
    }
}

/// A warp with fields of asynchronous instructions.
#[derive(Debug)]
struct AsyncWarp {
    warp: StoredWarp,
    /// Instructions consumed.
    at: u64,
    /// By instruction, in order; those before `at` are gone.
    fields: VecDeque<(u64, AsyncFields)>,
}

impl AsyncWarp {
    /// `count` instructions are consumed.
    fn advance(&mut self, count: u64) {
        self.at += count;
        while self.fields.front().is_some_and(|(at, _)| *at < self.at) {
            self.fields.pop_front();
        }
    }
}

impl WarpStream for AsyncWarp {
    fn next_segment(&mut self) -> Option<u32> {
        self.warp.next_segment()
    }

    fn skip(&mut self, count: u32) -> u64 {
        self.advance(u64::from(count));
        self.warp.skip(count)
    }

    fn access(&mut self, into: &mut Access) {
        self.advance(1);
        self.warp.access(into);
    }

    fn fields(&mut self) -> Option<AsyncFields> {
        let (at, _) = self.fields.front()?;
        (*at == self.at).then(|| self.fields.pop_front().map(|(_, fields)| fields))?
    }

    fn repeats(&self) -> u64 {
        self.warp.repeats()
    }

    fn pass(&mut self, times: u64, length: u32) -> u64 {
        self.advance(times * u64::from(length));
        self.warp.pass(times, length)
    }
}

/// The launches of one store, or the chosen ones.
#[derive(Debug)]
pub struct StoreFeed<'a> {
    store: &'a Store,
    /// By launch: its kernel in the store.
    kernels: Vec<usize>,
    programs: Vec<Program>,
    /// By launch: the words of its constant loads, as far as they are inferred.
    constants: Vec<Option<Arc<ConstantWords>>>,
    /// See [`StoreFeed::flops`].
    flops: OnceLock<f64>,
}

impl<'a> StoreFeed<'a> {
    /// The chosen kernels of a store, their opcodes resolved on a machine.
    pub fn new(
        store: &'a Store,
        chosen: impl Fn(usize) -> bool,
        resolved: &Resolved,
    ) -> Result<Self, TraceError> {
        let kernels: Vec<usize> = (0..store.kernel_count()).filter(|&k| chosen(k)).collect();
        let mut codes: Vec<Arc<Code>> = Vec::with_capacity(kernels.len());
        let mut programs: Vec<Program> = Vec::with_capacity(kernels.len());
        let mut constants = Vec::with_capacity(kernels.len());
        for &kernel in &kernels {
            let (stored, summary) = (store.code(kernel)?, store.kernel(kernel));
            let (launch, ctas) = (summary.launch(), summary.cta_count());
            if let Some(place) = codes.iter().position(|code| Arc::ptr_eq(code, &stored)) {
                let Program { code, opcodes, .. } = programs[place].clone();
                programs.push(Program { launch, code, opcodes, ctas });
                constants.push(Option::clone(&constants[place]));
            } else {
                let opcode = |text: &String| resolved.isa.opcode(&resolved.machine, text);
                let opcodes = stored.opcodes.iter().map(opcode).collect();
                let mut program = Program { launch, code: Arc::clone(&stored), opcodes, ctas };
                constants.push(infer(store, kernel, &mut program, resolved)?);
                programs.push(program);
            }
            codes.push(stored);
        }
        Ok(Self { store, kernels, programs, constants, flops: OnceLock::new() })
    }

    /// The command list, launches numbered by their place among the chosen ones.
    pub fn commands(&self) -> Vec<Command> {
        let command = |command| match command {
            gpumodel_trace::Command::Copy(copy) => Some(Command::Copy(copy)),
            gpumodel_trace::Command::Kernel(kernel) => {
                let place = self.kernels.binary_search(&kernel).ok()?;
                let stream = self.programs[place].launch.stream;
                Some(Command::Launch { kernel: KernelId(to_u32(place)), stream })
            }
        };
        self.store.commands().filter_map(command).collect()
    }

    /// The commands after the launch before `places` up to the last launch of `places`,
    /// launches numbered from the first of them on; after the last launch of all, the rest
    /// of the list too.
    pub fn commands_of(&self, places: Range<usize>) -> Vec<Command> {
        let first = to_u32(places.start);
        let mut begun = 0;
        let mut commands = Vec::new();
        for command in self.commands() {
            let command = match command {
                Command::Launch { kernel, stream } => {
                    begun += 1;
                    let kernel = KernelId(kernel.0.wrapping_sub(first));
                    let within = places.contains(&(begun - 1));
                    within.then_some(Command::Launch { kernel, stream })
                }
                Command::Copy(_) => {
                    let last = begun == places.end && begun == self.programs.len();
                    (places.contains(&begun) || last).then_some(command)
                }
            };
            commands.extend(command);
        }
        commands
    }

    /// Warp and thread instructions of a chosen launch.
    pub fn instructions(&self, place: usize) -> (u64, u64) {
        let summary = self.store.kernel(self.kernels[place]);
        (summary.warp_instructions(), summary.thread_instructions())
    }

    /// Whether the trace of a chosen launch has its accesses alone.
    pub fn memory_only(&self, place: usize) -> bool {
        self.store.kernel(self.kernels[place]).memory_only()
    }

    /// How often each segment of a chosen launch is executed.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    pub fn executed(&self, place: usize) -> Result<Vec<u64>, TraceError> {
        self.store.executed(self.kernels[place])
    }

    /// Single-precision operations of all chosen launches, all lanes: a multiply-add
    /// is two. Each launch at its mean of active lanes.
    ///
    /// # Errors
    /// [`TraceError::Store`] when a block is damaged.
    #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
    pub fn flops(&self) -> Result<f64, TraceError> {
        if let Some(&known) = self.flops.get() {
            return Ok(known);
        }
        let mut all = 0.0;
        for (place, program) in self.programs.iter().enumerate() {
            let code = &program.code;
            let counts = self.executed(place)?;
            let of_segment = |segment: &Segment| {
                let instructions = &code.instructions[segment.range()];
                let flops = instructions
                    .iter()
                    .map(|one| u64::from(isa::flops(&code.opcodes[to_usize(one.opcode)])));
                flops.sum::<u64>()
            };
            let each = code.segments.iter().zip(&counts);
            let warps: u64 = each.map(|(segment, &count)| count * of_segment(segment)).sum();
            let (issued, threads) = self.instructions(place);
            all += warps as f64 * threads as f64 / issued.max(1) as f64;
        }
        Ok(*self.flops.get_or_init(|| all))
    }

    /// Whether the words that a constant load of a chosen launch reads are inferred; `number` is
    /// its place in the code.
    pub fn infers_words(&self, place: usize, number: u32) -> bool {
        self.constants[place].as_ref().is_some_and(|words| words.has(number))
    }

    /// The store.
    pub fn store(&self) -> &'a Store {
        self.store
    }

    /// The index in the store of a chosen launch.
    pub fn kernel(&self, place: usize) -> usize {
        self.kernels[place]
    }

    /// The chosen launches.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The store and the launches of it that run, in words: what results depend on.
    pub fn content(&self) -> String {
        format!("{} {:?}", self.store.content_hash(), self.kernels)
    }

    /// By chosen launch: its kernel in the store.
    pub fn chosen(&self) -> &[usize] {
        &self.kernels
    }

    /// Warp instructions of a chosen launch.
    pub fn warp_instructions(&self, place: usize) -> u64 {
        self.store.kernel(self.kernels[place]).warp_instructions()
    }
}

impl Feed for StoreFeed<'_> {
    fn program(&self, kernel: KernelId) -> &Program {
        &self.programs[kernel.index()]
    }

    fn open(
        &self,
        kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        let number = self.kernels[to_usize(kernel.0)];
        let cta = self.store.cta(number, ordinal)?;
        let program = self.program(kernel);
        if !program.opcodes.iter().any(is_asynchronous) {
            let warp = |warp| -> Stream {
                let warp = StoredWarp(cta.warp(warp));
                match &self.constants[kernel.index()] {
                    None => Box::new(warp),
                    Some(words) => Box::new(ConstantWarp { warp, words: Arc::clone(words) }),
                }
            };
            warps.extend((0..cta.warp_count()).map(warp));
            return Ok(cta.position);
        }
        let tails = self.store.tails(number, ordinal)?;
        warps.extend((0..cta.warp_count()).map(|warp| -> Stream {
            let tails = tails.warps.get(to_usize(warp)).map_or(&[][..], |tails| &tails[..]);
            let fields = async_fields(program, cta.warp(warp), tails);
            Box::new(AsyncWarp { warp: StoredWarp(cta.warp(warp)), at: 0, fields })
        }));
        Ok(cta.position)
    }
}

/// Infers the words of the constant loads of `program` where the machine has caches for them, and
/// gives these loads a width.
fn infer(
    store: &Store,
    kernel: usize,
    program: &mut Program,
    resolved: &Resolved,
) -> Result<Option<Arc<ConstantWords>>, TraceError> {
    if resolved.machine.constant.is_none() {
        return Ok(None);
    }
    let words = ConstantWords::infer(store, kernel, program)?.map(Arc::new);
    if let Some(words) = &words {
        let mut code = Code::clone(&program.code);
        words.widen(&mut code.instructions);
        program.code = Arc::new(code);
    }
    Ok(words)
}

/// True for opcodes whose fields the machine asks for.
fn is_asynchronous(opcode: &Opcode) -> bool {
    opcode.effect.is_bulk() || matches!(opcode.effect, Effect::Object(_))
}

/// The fields of the asynchronous instructions of a warp, from its texts by instruction.
fn async_fields(
    program: &Program,
    mut warp: WarpCursor,
    tails: &[(u64, Vec<u8>)],
) -> VecDeque<(u64, AsyncFields)> {
    let code = &program.code;
    let mut tails = tails.iter().peekable();
    let mut found = VecDeque::new();
    let mut at = 0;
    while let Some(segment) = warp.next_segment() {
        let range = code.segments[to_usize(segment)].range();
        let length = to_u64(range.len());
        while let Some((place, text)) = tails.next_if(|tail| tail.0 < at + length) {
            let inside = usize::try_from(place - at).expect("a segment is short");
            let instruction = &code.instructions[range.start + inside];
            let opcode = &program.opcodes[to_usize(instruction.opcode)];
            let fields = match opcode.effect {
                Effect::Object(_) => {
                    let (to, from) = (instruction.destinations.len(), instruction.sources.len());
                    source_values(text, to, from).map(AsyncFields::Values)
                }
                effect if effect.is_bulk() => bulk_copy(text).map(AsyncFields::Copy),
                _ => None,
            };
            found.extend(fields.map(|fields| (*place, fields)));
        }
        at += length;
    }
    found
}

/// Some CTAs of one launch of a store.
#[derive(Debug)]
pub struct SampleFeed<'a> {
    whole: &'a StoreFeed<'a>,
    /// The launch's place among the store's chosen ones.
    place: usize,
    /// The CTAs, in order.
    ctas: &'a [u64],
    program: Program,
}

impl<'a> SampleFeed<'a> {
    /// The CTAs `ctas` of the launch at `place` of `whole`.
    pub fn new(whole: &'a StoreFeed<'a>, place: usize, ctas: &'a [u64]) -> Self {
        let program = Program { ctas: to_u64(ctas.len()), ..whole.programs()[place].clone() };
        Self { whole, place, ctas, program }
    }

    /// The command list: the launch alone.
    pub fn commands(&self) -> Vec<Command> {
        vec![Command::Launch { kernel: KernelId(0), stream: self.program.launch.stream }]
    }
}

impl Feed for SampleFeed<'_> {
    fn program(&self, _kernel: KernelId) -> &Program {
        &self.program
    }

    fn open(
        &self,
        _kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        self.whole.open(KernelId(to_u32(self.place)), self.ctas[to_usize(ordinal)], warps)
    }
}

/// Consecutive launches that run whole, numbered from the first of them on.
#[derive(Debug)]
pub struct RangeFeed<'a> {
    whole: &'a StoreFeed<'a>,
    first: u32,
}

impl<'a> RangeFeed<'a> {
    /// The launches of `whole` from place `first` on.
    pub fn new(whole: &'a StoreFeed<'a>, first: usize) -> Self {
        Self { whole, first: to_u32(first) }
    }
}

impl Feed for RangeFeed<'_> {
    fn program(&self, kernel: KernelId) -> &Program {
        self.whole.program(KernelId(kernel.0 + self.first))
    }

    fn open(
        &self,
        kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        self.whole.open(KernelId(kernel.0 + self.first), ordinal, warps)
    }
}
