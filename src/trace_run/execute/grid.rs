//! A launch: its constants, its CTAs in order or together, its records in order.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gpumodel_core::isa::Launch;
use gpumodel_core::units::Dim3;
use gpumodel_trace::{LaunchRecorder, WarpRecord};

use rayon::prelude::*;

use super::buffer::{Buffer, Written};
use super::cluster;
use super::cta::{Cta, Slice};
use super::lanes::Lanes;
use super::memory::{
    CONSTANT_BANK_BYTES, CONSTANT_WINDOW, LOCAL_WINDOW, Memory, SHARED_WINDOW, constant_address,
};
use super::texture::Texture;
use super::vector::Vector;
use super::warp::{Warp, WarpMemory};
use crate::cubin::Function;
use crate::sass::Code;
use crate::{Failure, RunError};

/// Warp instructions of a CTA before the next one begins.
const SLICE: u64 = 1 << 22;
/// The same where all CTAs of a launch are there at once.
const COOPERATIVE_SLICE: u64 = 1 << 16;
/// Warp instructions of CTAs that run together, about: what their records may take of memory.
const BATCH: u64 = 1 << 19;
/// A batch of so many warp instructions is followed by as many CTAs that run alone, to see
/// what is faster.
const TRIAL: u64 = 1 << 17;
/// Places in constant bank 0.
const BLOCK: usize = 0;
const GRID: usize = 0xc;
const SHARED: usize = 0x18;
const LOCAL: usize = 0x20;
const STACK: usize = 0x28;
const DYNAMIC_SHARED: usize = 0x2c;
const GRID_ID: usize = 0x30;
/// The generic address of the bank, up to sm_89.
const BANK: usize = 0x40;
const CONSTANTS: usize = 0x50;
const SMS: usize = 0x10c;
const SYSTEM_SHARED: usize = 0x114;
/// Where the barrier of a cooperative launch lies: the halves of its address.
const WORKSPACE: [usize; 2] = [0x8c, 0x90];
/// The same from compute capability 9 on, where parameters begin here.
const LATE_WORKSPACE: [usize; 2] = [0x44, 0x48];
const LATE_PARAMETERS: u32 = 0x210;
const FIRST_LATE: u32 = 90;
/// The same: the generic address of constant bank 3.
const LATE_CONSTANTS: usize = 0xd0;
/// The same: whether there are clusters, their CTAs in each direction, the reciprocals of these,
/// and all CTAs of one.
const IS_CLUSTER: usize = 0x140;
/// The same: the generic address of the parameters.
const PARAMETERS: usize = 0x198;
const CLUSTER: usize = 0x144;
const CLUSTER_RECIPROCAL: usize = 0x150;
const CLUSTER_CTAS: usize = 0x188;
/// Bytes that a cooperative launch needs for its barrier.
pub const WORKSPACE_BYTES: u64 = 64;
/// Most constant banks.
pub(crate) const BANKS: usize = 32;

/// What is launched.
#[derive(Clone, Copy, Debug)]
pub struct LaunchRequest<'a> {
    /// As the trace says it.
    pub launch: &'a Launch,
    /// The code of the kernel's module.
    pub code: &'a Code,
    /// The kernel.
    pub function: &'a Function,
    /// Its parameters, as they lie in constant bank 0 from the parameters' base on.
    pub parameters: &'a [u8],
    /// Constant bank 3.
    pub constants: &'a [u8],
    /// Bytes of stack that each thread has at least.
    pub stack_bytes: u32,
    /// All CTAs are there at once, and [`WORKSPACE_BYTES`] zero bytes of device memory lie here
    /// for their barrier; 0 for other launches.
    pub cooperative: u64,
    /// CTAs of a cluster; of the launches without clusters one.
    pub cluster: Dim3,
    /// Textures and surfaces, each at the number that is its handle.
    pub textures: &'a [Option<Texture>],
    /// Its CTAs on the device.
    pub residency: Residency,
    /// CTAs may run together on so many threads; results do not depend on it.
    pub threads: u64,
}

/// The CTAs of a launch on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// SMs, which CTAs go to in turn.
    pub sms: u32,
    /// CTAs that the device holds at once; a CTA begins when fewer have begun and not ended.
    /// Cooperative launches hold the whole grid.
    pub ctas: u64,
    /// Dynamic shared bytes of a CTA.
    pub dynamic_shared: u32,
    /// Those of its static shared bytes that are the system's.
    pub system_shared: u32,
}

/// What all threads of a launch share.
pub struct Grid<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) code: &'a Code,
    function: &'a Function,
    pub(crate) memory: &'a dyn Memory,
    banks: Vec<Vec<u8>>,
    pub(crate) entry: usize,
    pub(crate) local_bytes: usize,
    pub(crate) vector: Vector,
    pub(crate) textures: &'a [Option<Texture>],
    cluster: Dim3,
    sms: u32,
    /// Per warp of a CTA: the position of each thread.
    pub(crate) threads: Vec<[Lanes; 3]>,
    /// What warps that have ended leave for others.
    spare: Mutex<Vec<WarpMemory>>,
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Warp instructions, until it failed where it did.
    pub instructions: u64,
    /// It did not pay to run CTAs together: they depend on each other, or buffers cost more than
    /// further threads gain.
    pub alone: bool,
    /// It failed as it would on a GPU.
    pub failure: Option<Failure>,
}

impl<'a> Grid<'a> {
    fn new(request: &LaunchRequest<'a>, memory: &'a dyn Memory) -> Self {
        let LaunchRequest { launch, code, function, .. } = *request;
        let local = request.stack_bytes.max(function.stack_bytes).next_multiple_of(16);
        let mut grid = Self {
            launch,
            code,
            function,
            memory,
            banks: vec![Vec::new(); BANKS],
            entry: usize::try_from(function.start / 16).unwrap_or(usize::MAX),
            local_bytes: usize::try_from(local).unwrap_or(0),
            vector: Vector::default(),
            textures: request.textures,
            cluster: request.cluster,
            sms: request.residency.sms,
            threads: threads(launch.block),
            spare: Mutex::default(),
        };
        for (number, bytes) in &function.banks {
            if let Some(bank) = grid.banks.get_mut(usize::from(*number)) {
                bank.clone_from(bytes);
            }
        }
        grid.banks[3] = request.constants.to_vec();
        grid.fill(request);
        let place = request.cooperative.to_le_bytes();
        // A kernel without parameters has no place for them.
        let late =
            function.parameter_base >= LATE_PARAMETERS || launch.binary_version >= FIRST_LATE;
        let [upper, lower] = if late { LATE_WORKSPACE } else { WORKSPACE };
        grid.banks[0][upper..][..4].copy_from_slice(&place[4..]);
        grid.banks[0][lower..][..4].copy_from_slice(&place[..4]);
        let constants = if late { LATE_CONSTANTS } else { CONSTANTS };
        grid.banks[0][constants..][..8].copy_from_slice(&constant_address(0).to_le_bytes());
        if late {
            grid.fill_cluster();
        } else {
            grid.banks[0][BANK..][..8].copy_from_slice(&CONSTANT_WINDOW.to_le_bytes());
        }
        grid
    }

    fn fill(&mut self, request: &LaunchRequest<'_>) {
        let parameters = request.parameters;
        let base = usize::try_from(self.function.parameter_base).unwrap_or(0);
        let (block, extent) = (<[u32; 3]>::from(self.launch.block), self.launch.grid);
        let bank = &mut self.banks[0];
        bank.resize(bank.len().max(base + parameters.len()).max(PARAMETERS + 8), 0);
        for (index, size) in block.into_iter().enumerate() {
            bank[BLOCK + 4 * index..][..4].copy_from_slice(&size.to_le_bytes());
        }
        for (index, size) in <[u32; 3]>::from(extent).into_iter().enumerate() {
            bank[GRID + 4 * index..][..4].copy_from_slice(&size.to_le_bytes());
        }
        bank[SHARED..][..8].copy_from_slice(&SHARED_WINDOW.to_le_bytes());
        bank[LOCAL..][..8].copy_from_slice(&LOCAL_WINDOW.to_le_bytes());
        let top = u32::try_from(self.local_bytes).unwrap_or(0);
        let words = [
            (STACK, top),
            (DYNAMIC_SHARED, request.residency.dynamic_shared),
            (GRID_ID, self.launch.id),
            (SMS, request.residency.sms),
            (SYSTEM_SHARED, request.residency.system_shared),
        ];
        for (at, word) in words {
            bank[at..][..4].copy_from_slice(&word.to_le_bytes());
        }
        bank[base..][..parameters.len()].copy_from_slice(parameters);
    }

    /// Writes where kernels read them the dimensions of clusters, and where parameters lie.
    fn fill_cluster(&mut self) {
        let parameters = CONSTANT_WINDOW + u64::from(self.function.parameter_base);
        self.banks[0][PARAMETERS..][..8].copy_from_slice(&parameters.to_le_bytes());
        let bank = &mut self.banks[0];
        let mut put = |at: usize, word: u32| bank[at..][..4].copy_from_slice(&word.to_le_bytes());
        put(IS_CLUSTER, u32::from(self.cluster.count() > 1));
        put(CLUSTER_CTAS, u32::try_from(self.cluster.count()).unwrap_or(u32::MAX));
        for (index, size) in <[u32; 3]>::from(self.cluster).into_iter().enumerate() {
            put(CLUSTER + 4 * index, size);
            put(CLUSTER_RECIPROCAL + 4 * index, reciprocal(size).to_bits());
        }
    }

    /// Whether CTAs are in clusters.
    #[inline]
    pub(crate) fn in_cluster(&self) -> bool {
        self.cluster.count() > 1
    }

    /// The number in its cluster of the CTA of that number in the grid.
    pub(crate) fn rank(&self, number: u64) -> u32 {
        let (position, size) = (self.launch.grid.position(number), self.cluster);
        let [x, y, z] = [position.x % size.x, position.y % size.y, position.z % size.z];
        x + size.x * (y + size.y * z)
    }

    /// The SM of the CTA of that number: CTAs go to all of them in turn.
    pub(crate) fn sm(&self, number: u64) -> u32 {
        u32::try_from(number % u64::from(self.sms.max(1))).unwrap_or(0)
    }

    /// The CTAs of the cluster of that number, x fastest, by their number in it.
    fn members(&self, cluster: u64) -> Vec<u64> {
        let (grid, size) = (self.launch.grid, self.cluster);
        let clusters = Dim3::new(grid.x / size.x, grid.y / size.y, grid.z / size.z);
        let first = clusters.position(cluster);
        let member = |rank: u64| {
            let place = size.position(rank);
            let [x, y, z] = [
                first.x * size.x + place.x,
                first.y * size.y + place.y,
                first.z * size.z + place.z,
            ];
            u64::from(x) + u64::from(grid.x) * (u64::from(y) + u64::from(grid.y) * u64::from(z))
        };
        (0..size.count()).map(member).collect()
    }

    /// 32 bits of a constant bank. An offset counts modulo 64 KB: it has 16 bits, which nvdisasm
    /// prints with a sign. What lies beyond the bank's bytes is 0.
    #[inline]
    pub(crate) fn constant(&self, bank: u8, offset: u64) -> u32 {
        let bytes = self.banks.get(usize::from(bank)).map_or(&[][..], |bank| bank);
        let at = usize::try_from(offset % CONSTANT_BANK_BYTES).unwrap_or(usize::MAX);
        if let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            return u32::from_le_bytes(*word);
        }
        let byte =
            |index: usize| at.checked_add(index).and_then(|at| bytes.get(at)).copied().unwrap_or(0);
        u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
    }

    /// Memory for a warp.
    pub(crate) fn spare(&self) -> WarpMemory {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.pop().unwrap_or_default()
    }

    /// Takes the memory of warps that have ended.
    fn keep(&self, warps: impl Iterator<Item = Warp>) {
        let used = self.code.registers;
        let cleared: Vec<WarpMemory> = warps.map(|warp| warp.memory().cleared(used)).collect();
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).extend(cleared);
    }

    /// An error at the instruction `at`.
    pub(crate) fn fault(&self, at: usize, what: String) -> RunError {
        let pc = (at as u64 * 16).wrapping_sub(self.function.start);
        RunError::Kernel { kernel: self.launch.name.clone(), pc, what }
    }
}

/// One over `size`, no smaller, so that the whole part of a multiple of it is exact.
fn reciprocal(size: u32) -> f32 {
    let size = f64::from(size.max(1));
    #[allow(clippy::cast_possible_truncation, reason = "rounded on purpose")]
    let near = (1.0 / size) as f32;
    if f64::from(near) * size < 1.0 { near.next_up() } else { near }
}

/// The position of the threads of each warp in a CTA; lanes without a thread have the last one's.
fn threads(block: Dim3) -> Vec<[Lanes; 3]> {
    let count = block.count();
    let of_warp = |first: u64| {
        let place = |lane: usize| block.position((first + lane as u64).min(count - 1));
        [
            std::array::from_fn(|lane| place(lane).x),
            std::array::from_fn(|lane| place(lane).y),
            std::array::from_fn(|lane| place(lane).z),
        ]
    };
    (0..count).step_by(32).map(of_warp).collect()
}

/// Executes a launch and gives its CTAs to `recorder`; of one that fails as on a GPU those that
/// ended before.
///
/// # Errors
/// When an instruction cannot be executed, or the records cannot be written.
pub fn run(
    request: &LaunchRequest<'_>,
    memory: &dyn Memory,
    recorder: Option<&mut LaunchRecorder<'_>>,
) -> Result<Counts, RunError> {
    let grid = Grid::new(request, memory);
    let ctas = request.launch.grid.count();
    let mut run = Run {
        grid,
        recorder,
        live: VecDeque::new(),
        done: BTreeMap::new(),
        taken: BTreeMap::new(),
        asked: 0,
        next: 0,
        counts: Counts::default(),
        ending: Duration::ZERO,
    };
    match run.all(ctas, request) {
        Err(RunError::Failed(failure)) => run.counts.failure = Some(failure),
        other => other?,
    }
    Ok(run.counts)
}

struct Run<'a, 'r, 'w> {
    grid: Grid<'a>,
    recorder: Option<&'r mut LaunchRecorder<'w>>,
    live: VecDeque<Cta>,
    /// CTAs that ended before one that began earlier.
    done: BTreeMap<u64, (Dim3, Vec<WarpRecord>)>,
    /// Which of the CTAs that began and have not ended are recorded.
    taken: BTreeMap<u64, bool>,
    /// The next CTA of which it is not known whether it is recorded.
    asked: u64,
    /// The next CTA to be recorded.
    next: u64,
    counts: Counts,
    /// Time in which CTAs that had ended were recorded, on all threads in any case.
    ending: Duration,
}

impl Run<'_, '_, '_> {
    fn all(&mut self, ctas: u64, request: &LaunchRequest<'_>) -> Result<(), RunError> {
        let (cooperative, threads) = (request.cooperative != 0, request.threads);
        let mut begun = 0;
        if self.grid.in_cluster() {
            return self.clusters(ctas);
        }
        if cooperative {
            while begun < ctas {
                let cta = self.begin(begun);
                self.live.push_back(cta);
                begun += 1;
            }
        } else if threads > 1 && ctas > 1 {
            begun = self.together(ctas, threads)?;
        }
        let slice = if cooperative { COOPERATIVE_SLICE } else { SLICE };
        let most = usize::try_from(request.residency.ctas.max(1)).unwrap_or(usize::MAX);
        loop {
            let cta = match () {
                () if begun < ctas && self.live.len() < most => {
                    begun += 1;
                    self.begin(begun - 1)
                }
                () => match self.live.pop_front() {
                    Some(cta) => cta,
                    None => return Ok(()),
                },
            };
            self.step(cta, slice)?;
        }
    }

    /// Runs one cluster after the other.
    fn clusters(&mut self, ctas: u64) -> Result<(), RunError> {
        for cluster in 0..ctas / self.grid.cluster.count() {
            let members = self.grid.members(cluster);
            let mut ctas: Vec<Cta> = members.into_iter().map(|one| self.begin(one)).collect();
            let done = cluster::run(&mut ctas, &self.grid);
            self.counts.instructions += ctas.iter().map(Cta::executed).sum::<u64>();
            done?;
            for cta in ctas {
                self.end(cta)?;
            }
        }
        Ok(())
    }

    /// Runs CTAs together while that pays; returns the first one that is left to be run alone.
    fn together(&mut self, ctas: u64, threads: u64) -> Result<u64, RunError> {
        let (mut next, mut size, mut tried) = (0, 2 * threads, false);
        while next < ctas {
            let end = (next + size).min(ctas);
            let before = self.counts.instructions;
            let (done, pace) = self.timed(|run| run.batch(next..end))?;
            let Batch { ended, again } = done;
            if ended < end || 2 * again > end - next {
                self.counts.alone = true;
                return Ok(ended);
            }
            let instructions = self.counts.instructions - before;
            size = (BATCH / (instructions / (end - next)).max(1)).clamp(threads, 64 * threads);
            (next, tried) = match tried || instructions < TRIAL {
                true => (end, tried),
                false => {
                    let until = (2 * end - next).min(ctas);
                    let (reached, pace_alone) = self.timed(|run| run.one_by_one(end..until))?;
                    self.counts.alone = reached < until || pace_alone < pace;
                    (reached, true)
                }
            };
            if self.counts.alone {
                return Ok(next);
            }
        }
        Ok(next)
    }

    /// What `work` gives, and its seconds per warp instruction, without the time of records.
    fn timed<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, RunError>,
    ) -> Result<(T, f64), RunError> {
        let (begun, ending, before) = (Instant::now(), self.ending, self.counts.instructions);
        let done = work(self)?;
        let spent = begun.elapsed().saturating_sub(self.ending - ending);
        #[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
        let instructions = (self.counts.instructions - before).max(1) as f64;
        Ok((done, spent.as_secs_f64() / instructions))
    }

    /// Runs these CTAs alone, while each ends within its slice; returns the first one that did not
    /// begin.
    fn one_by_one(&mut self, numbers: Range<u64>) -> Result<u64, RunError> {
        for number in numbers.clone() {
            let cta = self.begin(number);
            if self.step(cta, SLICE)? == Slice::More {
                return Ok(number + 1);
            }
        }
        Ok(numbers.end)
    }

    /// Runs a slice of a CTA that runs alone.
    fn step(&mut self, mut cta: Cta, slice: u64) -> Result<Slice, RunError> {
        let before = cta.executed();
        let done = cta.run(&self.grid, slice);
        self.counts.instructions += cta.executed() - before;
        let done = done?;
        match done {
            Slice::Done => self.end(cta)?,
            Slice::More => self.live.push_back(cta),
        }
        Ok(done)
    }

    /// Runs these CTAs together, then takes their results in order.
    fn batch(&mut self, numbers: Range<u64>) -> Result<Batch, RunError> {
        let recorded: Vec<(u64, bool)> =
            numbers.clone().map(|number| (number, self.recorded(number))).collect();
        let grid = &self.grid;
        let ran: Vec<Option<Cta>> = recorded
            .par_iter()
            .map(|&(number, recorded)| buffered(grid, number, recorded))
            .collect();
        let mut written = Written::default();
        let mut again = 0;
        for ((number, recorded), cta) in recorded.into_iter().zip(ran) {
            let valid =
                |cta: &Cta| !cta.state.buffer.as_ref().is_some_and(|b| b.read_any(&written));
            let cta = match cta.filter(valid) {
                Some(cta) => Some(cta),
                None => {
                    again += 1;
                    buffered(&self.grid, number, recorded)
                }
            };
            let Some(mut cta) = cta else { return Ok(Batch { ended: number, again }) };
            let buffer = cta.state.buffer.take().unwrap_or_default();
            let committed = buffer.commit(self.grid.memory, &mut written);
            committed.ok_or_else(|| RunError::code("device memory was freed during a launch"))?;
            self.counts.instructions += cta.executed();
            self.end(cta)?;
        }
        Ok(Batch { ended: numbers.end, again })
    }

    fn recorded(&mut self, number: u64) -> bool {
        while self.asked <= number {
            let takes = self.recorder.as_mut().is_some_and(|one| one.takes(self.asked));
            self.taken.insert(self.asked, takes);
            self.asked += 1;
        }
        self.taken.get(&number).copied().unwrap_or(false)
    }

    fn begin(&mut self, number: u64) -> Cta {
        let recorded = self.recorded(number);
        Cta::new(&self.grid, number, recorded)
    }

    fn end(&mut self, cta: Cta) -> Result<(), RunError> {
        let begun = Instant::now();
        let ended = self.record(cta);
        self.ending += begun.elapsed();
        ended
    }

    /// Gives the records of a CTA that has ended to the recorder, after those of earlier ones.
    fn record(&mut self, cta: Cta) -> Result<(), RunError> {
        self.taken.remove(&cta.number);
        let Cta { number, position, mut warps, .. } = cta;
        let records = warps.iter_mut().filter_map(|warp| warp.record.take()).collect();
        self.grid.keep(warps.into_iter());
        self.done.insert(number, (position, records));
        while let Some((position, records)) = self.done.remove(&self.next) {
            self.next += 1;
            let Some(recorder) = self.recorder.as_mut().filter(|_| !records.is_empty()) else {
                continue;
            };
            let written = recorder.cta(position, records);
            written.map_err(|error| RunError::code(error.to_string()))?;
        }
        Ok(())
    }
}

/// CTAs that ran together.
struct Batch {
    /// The first one that did not end.
    ended: u64,
    /// How many ran again.
    again: u64,
}

/// A CTA that ran to its end with a buffer for its writes; none when it waits for others, or
/// cannot go on: what it reads may be old.
fn buffered(grid: &Grid<'_>, number: u64, recorded: bool) -> Option<Cta> {
    let mut cta = Cta::new(grid, number, recorded);
    cta.state.buffer = Some(Buffer::default());
    matches!(cta.run(grid, SLICE), Ok(Slice::Done)).then_some(cta)
}

#[cfg(test)]
mod tests {
    use super::reciprocal;

    #[test]
    fn kernels_divide_by_the_size_of_a_cluster_exactly() {
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        #[allow(clippy::cast_sign_loss, reason = "as kernels compute it")]
        let quotient = |number: u32, size: u32| (number as f32 * reciprocal(size)).trunc() as u32;
        for size in 1..=16 {
            assert!((0..100_000).all(|number| quotient(number, size) == number / size), "{size}");
        }
    }
}
