//! Hand-made machines, memories, plans and kernels for the tests of this crate; kernels run alone
//! or as several applications.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::{
    AddressMap, Command as DramCommand, Location, MemoryStandard, Models, Resolved,
};
use crate::{
    AddedSegment, AddedSegments, Command, End, Feed, FeedError, Gpu, Line as AddedLine, Load,
    MachineError, Outcome, Pause, ProfileImage, Program, Setup, Stream, TASK_BARRIER, WarpStream,
    Worker, machine_facts,
};
use gpumodel_core::contract::{AppFacts, Facts, Plan, PlanDraft, Resize, Share, View, Word};
use gpumodel_core::isa::{
    Access, AddressMode, Code, ControlBits, Instruction, Launch, Register, RegisterFile, Segment,
};
use gpumodel_core::units::{AppId, Dim3, KernelId, to_u16, to_u32, to_usize};

/// The lanes' addresses by CTA, warp and repetition; the mask is that of the line.
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
    more_sources: &'static [u16],
    control: Option<ControlBits>,
}

impl Line {
    /// With other bytes per lane.
    pub(crate) fn bytes(self, width: u8) -> Self {
        Self { width, ..self }
    }

    /// With fewer active lanes.
    pub(crate) fn masked(self, mask: u32) -> Self {
        Self { mask, ..self }
    }

    /// With this immediate instead of a 0.
    pub(crate) fn immediate(self, immediate: i64) -> Self {
        self.immediates(Box::leak(Box::new([immediate])))
    }

    /// With these immediates instead of a 0.
    pub(crate) fn immediates(self, immediates: &'static [i64]) -> Self {
        Self { immediates, ..self }
    }

    /// With these sources after its first one.
    pub(crate) fn reading(self, more_sources: &'static [u16]) -> Self {
        Self { more_sources, ..self }
    }

    /// With these control bits.
    pub(crate) fn controlled(self, control: ControlBits) -> Self {
        Self { control: Some(control), ..self }
    }
}

/// An instruction without addresses.
pub(crate) fn line(opcode: &'static str, destination: Option<u16>, source: Option<u16>) -> Line {
    Line {
        opcode,
        destination,
        source,
        at: None,
        width: 0,
        mask: u32::MAX,
        immediates: &[0],
        more_sources: &[],
        control: None,
    }
}

/// A load or store of 4 bytes per lane: the address of lane 0 and the step between lanes, by
/// CTA, warp and repetition.
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

/// A load or store of 4 bytes per lane: an address per CTA, warp, repetition and lane.
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

/// Scripts live as long as the test: their address functions are leaked.
fn with_lanes(line: Line, at: impl Fn(u64, u64, u64, &mut Access) + 'static) -> Line {
    Line { at: Some(Where(Box::leak(Box::new(at)))), width: 4, ..line }
}

/// A kernel whose warps run bodies of lines repeatedly.
#[derive(Debug)]
pub(crate) struct Script {
    /// Assigned to warps round robin.
    bodies: Vec<Arc<[Line]>>,
    /// Bodies are assigned by CTA, not by warp.
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

    /// As [`Script::new`], with the bodies assigned to warps round robin.
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

    /// CTAs of one warp, with the bodies assigned to CTAs round robin and run once.
    pub(crate) fn of_ctas(resolved: &Resolved, bodies: &[&[Line]], ctas: u32) -> Self {
        Self { by_cta: true, ..Self::of_bodies(resolved, bodies, 1, ctas, 32) }
    }

    /// The launch.
    pub(crate) fn launch(&self) -> Launch {
        self.program.launch.clone()
    }

    /// From a feed that does not report repetitions.
    pub(crate) fn one_by_one(mut self) -> Self {
        self.one_by_one = true;
        self
    }

    /// Segments that warps have entered one by one.
    pub(crate) fn entered(&self) -> u64 {
        self.entered.load(Ordering::Relaxed)
    }

    /// With so many registers per thread and shared bytes per CTA.
    pub(crate) fn needing(mut self, registers: u32, shared_bytes: u32) -> Self {
        self.program.launch.registers = registers;
        self.program.launch.shared_bytes = shared_bytes;
        self
    }

    /// With other active lanes.
    pub(crate) fn with_mask(mut self, mask: u32) -> Self {
        self.mask = mask;
        self
    }

    /// With windows of shared and local memory in generic addresses.
    pub(crate) fn with_windows(mut self, shared: u64, local: u64) -> Self {
        self.program.launch.shared_window = shared;
        self.program.launch.local_window = local;
        self
    }

    /// In clusters of so many CTAs along x.
    pub(crate) fn in_clusters(mut self, ctas: u32) -> Self {
        self.program.launch.cluster = Dim3::new(ctas, 1, 1);
        self
    }

    /// As workers that take `task_blocks` CTAs at a time; a task costs a barrier
    /// and, where `queued`, an addition to the queue.
    pub(crate) fn working(
        mut self,
        resolved: &Resolved,
        task_blocks: u32,
        queued: bool,
        resize: Resize,
    ) -> Self {
        let mut code = Code::clone(&self.program.code);
        let first_segment = to_u32(code.segments.len());
        let barrier = line("BAR.SYNC", None, None).immediate(TASK_BARRIER);
        let queue = [memory("ATOMG.E.ADD", Some(60), None, |_, _, _| (0, 0)).masked(1)];
        let leader: Vec<Line> = queue.into_iter().filter(|_| queued).chain([barrier]).collect();
        let mut lines = Vec::new();
        let pieces = [&leader[..], &[barrier]].map(|body| {
            let segment = append(&mut code, body);
            let piece = AddedSegment { segment, line: to_u32(lines.len()) };
            let word = |line: &Line| (line.width > 0).then_some(Word::Queue);
            lines.extend(body.iter().map(|line| AddedLine { mask: line.mask, word: word(line) }));
            Some(piece)
        });
        let [leader, others] = pieces;
        self.worker = Some(Arc::new(Worker {
            task_blocks,
            resize,
            compile_cycles: 0,
            call_cycles: 0,
            first_segment,
            arrive: AddedSegments::default(),
            task: AddedSegments { leader, others },
            block: None,
            leave: AddedSegments::default(),
            lines,
        }));
        let resolve = |text: &String| resolved.isa.opcode(&resolved.machine, text);
        self.program.opcodes = code.opcodes.iter().map(resolve).collect();
        self.program.code = Arc::new(code);
        self
    }

    /// Runs it alone.
    pub(crate) fn run(&self, resolved: &Resolved) -> Outcome {
        self.run_side_by_side(resolved, 1)
    }

    /// Runs it alone; may fail.
    pub(crate) fn try_run(&self, resolved: &Resolved) -> Result<Outcome, MachineError> {
        self.run_apps(resolved, 1, |gpu| gpu)
    }

    /// Runs it with the profiles of an earlier run.
    pub(crate) fn run_knowing(&self, resolved: &Resolved, images: &[ProfileImage]) -> Outcome {
        self.run_apps(resolved, 1, |gpu| gpu.with_profiles(images)).unwrap()
    }

    /// Runs it alone, counting by instruction.
    pub(crate) fn run_hot(&self, resolved: &Resolved) -> Outcome {
        self.run_apps(resolved, 1, |gpu| gpu.with_hot_spots()).unwrap()
    }

    /// Runs it alone, keeping the lives of its CTAs.
    pub(crate) fn run_with_spans(&self, resolved: &Resolved) -> Outcome {
        self.run_apps(resolved, 1, |gpu| gpu.with_cta_spans()).unwrap()
    }

    /// Runs it alone, fast-forwarded.
    pub(crate) fn run_forwarded(&self, resolved: &Resolved) -> Outcome {
        self.run_apps(resolved, 1, |gpu| gpu.with_fast_forward()).unwrap()
    }

    /// Runs it as `apps` applications at once on all threads.
    pub(crate) fn run_on_all_threads(&self, resolved: &Resolved, apps: u16) -> Outcome {
        self.run_apps(resolved, apps, |gpu| gpu.with_all_threads()).unwrap()
    }

    /// Runs it as `apps` applications at once without partition.
    pub(crate) fn run_side_by_side(&self, resolved: &Resolved, apps: u16) -> Outcome {
        self.run_apps(resolved, apps, |gpu| gpu).unwrap()
    }

    fn run_apps(
        &self,
        resolved: &Resolved,
        apps: u16,
        prepare: impl for<'g> FnOnce(Gpu<'g>) -> Gpu<'g>,
    ) -> Result<Outcome, MachineError> {
        let machine = &resolved.machine;
        let (standard, mapping) = memory_of(resolved);
        let launch = |kernel: u32| Command::Launch { kernel: KernelId(kernel), stream: 0 };
        let lists = (0..u32::from(apps)).map(|kernel| vec![launch(kernel)].into()).collect();
        let setup = Setup {
            machine,
            standard: &standard,
            mapping,
            apps: lists,
            end: End::default(),
            part: None,
        };
        let gpu = prepare(Gpu::new(setup, self).unwrap());
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

/// Adds a body and returns its segment.
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
            sources: line
                .source
                .iter()
                .chain(line.more_sources)
                .copied()
                .flat_map(|one| register(Some(one)))
                .collect(),
            width: line.width,
            immediates: line.immediates.into(),
            line: None,
            control: line.control,
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

/// Several applications of one launch each.
#[derive(Debug)]
pub(crate) struct Scripts {
    scripts: Vec<Script>,
    loads: Vec<Load>,
    end: End,
    forwarded: bool,
    all_threads: bool,
}

impl Scripts {
    /// All from the beginning, each to its end.
    pub(crate) fn new(scripts: Vec<Script>) -> Self {
        let launch =
            |kernel: usize| vec![Command::Launch { kernel: KernelId(to_u32(kernel)), stream: 0 }];
        let loads = (0..scripts.len()).map(|kernel| Load::from(launch(kernel))).collect();
        Self { scripts, loads, end: End::default(), forwarded: false, all_threads: false }
    }

    /// The same, fast-forwarded.
    pub(crate) fn forwarded(self) -> Self {
        Self { forwarded: true, ..self }
    }

    /// The same on all threads.
    pub(crate) fn on_all_threads(self) -> Self {
        Self { all_threads: true, ..self }
    }

    /// With another load for one of them.
    pub(crate) fn with(mut self, app: usize, change: impl Fn(&mut Load)) -> Self {
        change(&mut self.loads[app]);
        self
    }

    /// The same scripts as the launches of one application with these commands.
    pub(crate) fn of_one_app(self, commands: Vec<Command>) -> Self {
        Self { loads: vec![commands.into()], ..self }
    }

    /// By CTA of an application: how often it was opened.
    pub(crate) fn opened(&self, app: usize) -> Vec<u64> {
        self.scripts[app].opened()
    }

    /// With another end.
    pub(crate) fn until(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Runs under `first`, then under the plans of `answer`.
    pub(crate) fn run(
        &self,
        resolved: &Resolved,
        first: &Plan,
        mut answer: impl FnMut(&View) -> Plan,
    ) -> Outcome {
        let machine = &resolved.machine;
        let (standard, mapping) = memory_of(resolved);
        let (apps, end) = (self.loads.clone(), self.end);
        let setup = Setup { machine, standard: &standard, mapping, apps, end, part: None };
        let mut gpu = Gpu::new(setup, self).unwrap();
        if self.forwarded {
            gpu = gpu.with_fast_forward();
        }
        if self.all_threads {
            gpu = gpu.with_all_threads();
        }
        gpu.follow(first.clone()).unwrap();
        while let Pause::Decide(view) = gpu.advance(&mut |_| ()).unwrap() {
            gpu.follow(answer(&view)).unwrap();
        }
        gpu.finish().unwrap()
    }

    /// Runs under one plan.
    pub(crate) fn under(&self, resolved: &Resolved, plan: &Plan) -> Outcome {
        self.run(resolved, plan, |_| plan.clone())
    }
}

impl Feed for Scripts {
    fn program(&self, kernel: KernelId) -> &Program {
        self.scripts[kernel.index()].program(kernel)
    }

    fn worker(&self, kernel: KernelId) -> Option<&Arc<Worker>> {
        self.scripts[kernel.index()].worker(kernel)
    }

    fn open(
        &self,
        kernel: KernelId,
        ordinal: u64,
        warps: &mut Vec<Stream>,
    ) -> Result<Dim3, FeedError> {
        self.scripts[kernel.index()].open(kernel, ordinal, warps)
    }
}

/// A plan with the same quota of each application on all SMs; 0: it waits.
pub(crate) fn plan(resolved: &Resolved, quotas: &[u32], more: PlanDraft) -> Plan {
    let sms = usize::from(resolved.machine.dispatch.sms);
    let share = |&quota: &u32| match quota {
        0 => Share::Waiting,
        _ => Share::Quota(vec![quota; sms]),
    };
    let shares = quotas.iter().map(share).collect();
    let facts = facts(resolved, to_u16(quotas.len()));
    Plan::new(&facts, PlanDraft { shares, ..more }).unwrap()
}

/// The machine that most tests run on, with some keys set.
pub(crate) fn machine(set: &[(&str, &str)]) -> Resolved {
    named("accelsim-qv100", set)
}

/// The machine `name` without address translation, with some keys set, and without instruction
/// caches unless one of their keys is set.
pub(crate) fn named(name: &str, set: &[(&str, &str)]) -> Resolved {
    let mut resolved = translating(name, set);
    resolved.machine.translation = None;
    if !set.iter().any(|(key, _)| key.starts_with("fetch.")) {
        resolved.machine.fetch = None;
    }
    resolved
}

/// As [`named`], with caches of sectors of 32 bytes.
pub(crate) fn sectored(name: &str, set: &[(&str, &str)]) -> Resolved {
    let sectors = [("l1.cache.sector_bytes", "32"), ("l2.cache.sector_bytes", "32")];
    named(name, &[&sectors, set].concat())
}

/// What `work` gives in a pool of `threads` threads.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// The memory of a machine and where addresses lie in it.
pub(crate) fn memory_of(resolved: &Resolved) -> (MemoryStandard, AddressMap) {
    let machine = &resolved.machine;
    let standard = MemoryStandard::load(
        &machine.dram.standard,
        &gpumodel_models::builtin(),
        &machine.dram.timing,
    )
    .unwrap();
    let map = AddressMap::of_machine(machine, &standard, &gpumodel_models::builtin()).unwrap();
    (standard, map)
}

/// The first address at a place, whatever its slice.
pub(crate) fn address_of(mapping: &AddressMap, place: Location) -> u64 {
    let of_slice = |slice| Location { slice, ..place };
    let mut places = (0..mapping.slices()).map(of_slice);
    let found = places.find(|&place| mapping.locate(mapping.address(place)) == place);
    mapping.address(found.expect("every place has an address"))
}

/// Clocks from one command to another of the same bank.
pub(crate) fn gap(standard: &MemoryStandard, from: DramCommand, to: DramCommand) -> u64 {
    let pairs = standard.gaps.iter().filter(|gap| gap.window == 1);
    let waits = pairs.filter(|gap| (gap.from, gap.to) == (from, to)).map(|gap| gap.wait);
    u64::from(waits.max().expect("the standard has a sentence on the pair"))
}

/// Cycles from the first CTA to the end.
pub(crate) fn kernel_cycles(outcome: &Outcome) -> u64 {
    outcome.kernels[0].end - outcome.kernels[0].first_cta
}

/// Any machine as it is, with some keys set.
pub(crate) fn translating(name: &str, set: &[(&str, &str)]) -> Resolved {
    let overrides: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    Models::builtin().machine(name, &overrides).unwrap()
}

/// The facts of `apps` applications without kernels.
pub(crate) fn facts(resolved: &Resolved, apps: u16) -> Facts {
    let (standard, map) = memory_of(resolved);
    let app =
        |app| AppFacts { app: AppId(app), name: format!("a{app}"), arrival: 0, kernels: vec![] };
    let machine = machine_facts(&resolved.machine, &standard, &map, 1.0);
    Facts { apps: (0..apps).map(app).collect(), ..machine }
}

/// A plan that gives every application all SMs and places.
pub(crate) fn whole(resolved: &Resolved, apps: u16) -> Plan {
    let facts = facts(resolved, apps);
    let quota = Share::Quota(vec![facts.max_ctas_per_sm; usize::from(facts.sms)]);
    let shares = vec![quota; usize::from(apps)];
    Plan::new(&facts, PlanDraft { shares, ..PlanDraft::default() }).unwrap()
}
