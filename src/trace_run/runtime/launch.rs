//! Launches.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use gpumodel_core::isa::Launch;
use gpumodel_core::units::Dim3;
use gpumodel_trace_run::cubin::Function;
use gpumodel_trace_run::execute::{
    Counts, LOCAL_WINDOW, LaunchRequest, Memory, Residency, SHARED_WINDOW, WORKSPACE_BYTES, run,
};
use gpumodel_trace_run::{Exception, Failure, RunError};

use crate::copies::per_thread;
use crate::device::most_shared;
use crate::graphs::{KernelAttributes, Work};
use crate::pointers::{bytes, get, number, pointer, put, put_at};
use crate::state::{Configuration, State, code, fail, memory, result, settled, state};

/// `dim3`, as the program passes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Extent {
    x: u32,
    y: u32,
    z: u32,
}

impl From<Extent> for Dim3 {
    fn from(extent: Extent) -> Self {
        Self::new(extent.x, extent.y, extent.z)
    }
}

#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(
    grid: Extent,
    block: Extent,
    shared: usize,
    stream: *const c_void,
) -> u32 {
    let stream = number(stream);
    let (grid, block) = (grid.into(), block.into());
    let one = Configuration { grid, block, shared, stream, cluster: None };
    state().configurations.push(one);
    0
}

#[unsafe(no_mangle)]
extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Extent,
    block: *mut Extent,
    shared: *mut usize,
    stream: *mut *mut c_void,
) -> u32 {
    let Some(one) = state().configurations.pop() else { return code::INVALID_CONFIGURATION };
    let extent = |dim: Dim3| Extent { x: dim.x, y: dim.y, z: dim.z };
    put(grid, extent(one.grid));
    put(block, extent(one.block));
    put(shared, one.shared);
    put(stream, pointer(one.stream));
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn __cudaGetKernel(kernel: *mut *const c_void, function: *const c_void) -> u32 {
    put(kernel, function);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn __cudaLaunchKernel(
    function: *const c_void,
    grid: Extent,
    block: Extent,
    parameters: *const *const c_void,
    shared: usize,
    stream: *const c_void,
) -> u32 {
    cudaLaunchKernel(function, grid, block, parameters, shared, stream)
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchKernel(
    function: *const c_void,
    grid: Extent,
    block: Extent,
    parameters: *const *const c_void,
    shared: usize,
    stream: *const c_void,
) -> u32 {
    let (grid, block, stream) = (grid.into(), block.into(), number(stream));
    let one = Configuration { grid, block, shared, stream, cluster: None };
    launch(function, one, parameters, false)
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchCooperativeKernel(
    function: *const c_void,
    grid: Extent,
    block: Extent,
    parameters: *const *const c_void,
    shared: usize,
    stream: *const c_void,
) -> u32 {
    let (grid, block, stream) = (grid.into(), block.into(), number(stream));
    let one = Configuration { grid, block, shared, stream, cluster: None };
    launch(function, one, parameters, true)
}

/// The part of `cudaLaunchConfig_t` that is used.
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchConfiguration {
    grid: Extent,
    block: Extent,
    shared: usize,
    stream: *const c_void,
    attributes: *const Attribute,
    count: u32,
}

/// `cudaLaunchAttribute`: its kind, and a value whose meaning depends on it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Attribute {
    kind: u32,
    unused: u32,
    value: [u32; 16],
}

/// `cudaLaunchAttributeCooperative` and `cudaLaunchAttributeClusterDimension`.
const COOPERATIVE: u32 = 2;
const CLUSTER_DIMENSION: u32 = 4;

impl LaunchConfiguration {
    /// The value of an attribute that the program sets.
    fn attribute(&self, kind: u32) -> Option<[u32; 16]> {
        let all = (0..self.count as usize).filter_map(|n| get(self.attributes.wrapping_add(n)));
        all.filter(|one| one.kind == kind).map(|one| one.value).next_back()
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchKernelExC(
    configuration: *const c_void,
    function: *const c_void,
    parameters: *const *const c_void,
) -> u32 {
    let Some(one) = get(configuration.cast::<LaunchConfiguration>()) else {
        return result(code::INVALID_VALUE);
    };
    let cooperative = one.attribute(COOPERATIVE).is_some_and(|value| value[0] != 0);
    let cluster = one.attribute(CLUSTER_DIMENSION).map(|value| {
        let [x, y, z] = [value[0], value[1], value[2]];
        Dim3 { x, y, z }
    });
    let (grid, block, stream) = (one.grid.into(), one.block.into(), number(one.stream));
    let one = Configuration { grid, block, shared: one.shared, stream, cluster };
    launch(function, one, parameters, cooperative)
}

fn launch(
    function: *const c_void,
    configuration: Configuration,
    parameters: *const *const c_void,
    cooperative: bool,
) -> u32 {
    let alive = settled();
    if alive != code::SUCCESS {
        return alive;
    }
    let mut state = state();
    let stream = configuration.stream;
    let value = match state.prepare(number(function), configuration, parameters, cooperative) {
        Ok(call) if state.is_captured(stream) => {
            let cluster = call.configuration.cluster;
            let attributes = KernelAttributes { cooperative: call.cooperative, cluster };
            state.capture_kernel(stream, call.work(), attributes)
        }
        Ok(call) => state.launch(&call),
        Err(wrong) => wrong,
    };
    if value != code::SUCCESS {
        state.last_error = value;
    }
    value
}

/// A launch that the program asked for.
#[derive(Clone, Debug)]
struct KernelCall {
    host: u64,
    configuration: Configuration,
    /// As they lie in constant bank 0.
    parameters: Vec<u8>,
    cooperative: bool,
}

impl KernelCall {
    /// The same as the work of a node of a graph.
    fn work(self) -> Work {
        Arc::new(move |stream| {
            let alive = settled();
            if alive != code::SUCCESS {
                return alive;
            }
            let configuration = Configuration { stream, ..self.configuration };
            state().launch(&Self { configuration, ..self.clone() })
        })
    }
}

/// `cudaKernelNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelParameters {
    function: *const c_void,
    grid: Extent,
    block: Extent,
    shared: u32,
    parameters: *const *const c_void,
    /// Parameters in another form.
    packed: *const *const c_void,
}

/// The work of a kernel node.
pub(crate) fn kernel_work(
    parameters: *const c_void,
    attributes: KernelAttributes,
) -> Result<Work, u32> {
    let KernelAttributes { cooperative, cluster } = attributes;
    let one = get(parameters.cast::<KernelParameters>()).ok_or(code::INVALID_VALUE)?;
    if !one.packed.is_null() {
        return Err(code::NOT_SUPPORTED);
    }
    let (grid, block, shared) = (one.grid.into(), one.block.into(), one.shared as usize);
    let configuration = Configuration { grid, block, shared, stream: 0, cluster };
    let call = state().prepare(number(one.function), configuration, one.parameters, cooperative)?;
    Ok(call.work())
}

/// Most CTAs of a cluster (CUDA C++ Programming Guide, thread block clusters: 8, or 16 where the
/// program asks for it).
const MOST_IN_CLUSTER: u64 = 16;

/// Threads of a CTA at most, in all and in each direction, and CTAs of a grid in each direction
/// (CUDA C++ Programming Guide, technical specifications of all compute capabilities).
pub(crate) const MOST_THREADS: u32 = 1024;
const MOST_BLOCK: [u32; 3] = [1024, 1024, 64];
const MOST_GRID: [u32; 3] = [u32::MAX >> 1, 65535, 65535];
impl Configuration {
    /// The error of a launch whose threads and dynamic shared bytes may be so many.
    fn check(self, most_threads: u32, most_shared: u64) -> u32 {
        let within = |size: Dim3, most: [u32; 3]| {
            let sizes = <[u32; 3]>::from(size);
            sizes.iter().zip(&most).all(|(size, most)| (1..=*most).contains(size))
        };
        let threads = self.block.count();
        if !within(self.block, MOST_BLOCK)
            || !within(self.grid, MOST_GRID)
            || threads > MOST_THREADS.into()
        {
            return code::INVALID_CONFIGURATION;
        }
        match () {
            () if self.shared as u64 > most_shared => code::INVALID_VALUE,
            () if threads > most_threads.into() => code::OUT_OF_RESOURCES,
            () => code::SUCCESS,
        }
    }

    /// CTAs of a cluster; none where there can be no such clusters.
    fn cluster(self, function: &Function, cooperative: bool) -> Option<Dim3> {
        let size = self.cluster.or(function.cluster).unwrap_or(Dim3::new(1, 1, 1));
        (self.takes(size) && !(cooperative && size.count() > 1)).then_some(size)
    }

    /// Whether the grid consists of whole clusters of that size.
    fn takes(self, cluster: Dim3) -> bool {
        let (grid, cluster) = (<[u32; 3]>::from(self.grid), <[u32; 3]>::from(cluster));
        let whole = |(all, each): (&u32, &u32)| *each > 0 && all % each == 0;
        // Where it divides the grid, the product has no more bits than the grid's CTAs.
        let count = || cluster.iter().map(|size| u64::from(*size)).product::<u64>();
        grid.iter().zip(&cluster).all(whole) && count() <= MOST_IN_CLUSTER
    }
}

/// The parameters, as they lie in constant bank 0.
fn gather(function: &Function, parameters: *const *const c_void) -> Vec<u8> {
    let end = function.parameters.iter().map(|(offset, size)| offset + size).max().unwrap_or(0);
    let mut all = vec![0; usize::try_from(end).unwrap_or(0)];
    for (index, &(offset, size)) in function.parameters.iter().enumerate() {
        let Some(from) = get(parameters.wrapping_add(index)) else { continue };
        let (offset, size) = (offset as usize, size as usize);
        all[offset..offset + size].copy_from_slice(&bytes(from, size));
    }
    all
}

impl State {
    /// A launch as the trace says it.
    fn describe(
        &self,
        name: String,
        function: &Function,
        sm: u32,
        configuration: Configuration,
    ) -> Launch {
        let Configuration { grid, block, shared, stream, cluster } = configuration;
        let cluster = cluster.or(function.cluster);
        let shared = u32::try_from(shared).unwrap_or(u32::MAX);
        Launch {
            name,
            id: u32::try_from(self.answer.launches).unwrap_or(u32::MAX),
            grid,
            block,
            shared_bytes: function.shared_bytes.saturating_add(shared),
            registers: function.registers,
            binary_version: sm,
            stream,
            shared_window: SHARED_WINDOW,
            local_window: LOCAL_WINDOW,
            cluster: cluster.unwrap_or_default(),
        }
    }

    /// The kernel of that address.
    pub(crate) fn function(&mut self, host: u64) -> Option<Function> {
        let (module, name) = self.functions.get(&host).cloned()?;
        let loaded = self.load(module);
        loaded.module.functions.iter().find(|one| one.name == name).cloned()
    }

    /// CTAs of a cluster of a launch of the kernel `function` of that address, or its error.
    fn check(
        &self,
        host: u64,
        function: &Function,
        configuration: Configuration,
        cooperative: bool,
    ) -> Result<Dim3, u32> {
        match configuration.check(self.most_threads(function), self.most_shared(host, function)) {
            code::SUCCESS
                if cooperative
                    && configuration.grid.count() > self.ctas_at_once(function, configuration) =>
            {
                Err(code::TOO_LARGE)
            }
            code::SUCCESS => {
                configuration.cluster(function, cooperative).ok_or(code::INVALID_CONFIGURATION)
            }
            wrong => Err(wrong),
        }
    }

    /// The CTAs of a launch on the device.
    fn residency(&self, function: &Function, configuration: Configuration) -> Residency {
        Residency {
            sms: self.request.device.sms,
            ctas: self.ctas_at_once(function, configuration),
            dynamic_shared: u32::try_from(configuration.shared).unwrap_or(u32::MAX),
            system_shared: self.system_shared(function),
        }
    }

    /// Threads for the kernel of that address: one where its CTAs depended on each other.
    fn threads(&self, host: u64) -> u64 {
        if self.alone.contains(&host) { 1 } else { rayon::current_num_threads() as u64 }
    }

    /// A launch of the kernel of that address, or its error.
    fn prepare(
        &mut self,
        host: u64,
        configuration: Configuration,
        parameters: *const *const c_void,
        cooperative: bool,
    ) -> Result<KernelCall, u32> {
        let function = self.function(host).ok_or(code::INVALID_FUNCTION)?;
        self.check(host, &function, configuration, cooperative)?;
        if parameters.is_null() && !function.parameters.is_empty() {
            return Err(code::INVALID_VALUE);
        }
        let parameters = gather(&function, parameters);
        Ok(KernelCall { host, configuration, parameters, cooperative })
    }

    fn launch(&mut self, call: &KernelCall) -> u32 {
        let KernelCall { host, configuration, cooperative, .. } = *call;
        let Some((number, name)) = self.functions.get(&host).cloned() else {
            return code::INVALID_FUNCTION;
        };
        let loaded = self.load(number);
        let Some(function) = loaded.module.functions.iter().find(|one| one.name == name) else {
            return code::INVALID_FUNCTION;
        };
        let cluster = match self.check(host, function, configuration, cooperative) {
            Ok(cluster) => cluster,
            Err(wrong) => return wrong,
        };
        let place = if cooperative { workspace() } else { Some(0) };
        let Some(place) = place else { return code::OUT_OF_MEMORY };
        self.answer.launches += 1;
        let launch = self.describe(name, function, loaded.sm, configuration);
        let request = LaunchRequest {
            launch: &launch,
            code: &loaded.code,
            function,
            parameters: &call.parameters,
            constants: &self.modules[number].constants,
            stack_bytes: self.stack_bytes,
            cooperative: place,
            cluster,
            textures: &self.textures,
            residency: self.residency(function, configuration),
            threads: self.threads(host),
        };
        let begun = Instant::now();
        let done = execute(&mut self.recorder, &request);
        let done = done.unwrap_or_else(|what| fail(&self.folder, &what));
        if cooperative {
            memory().free(place);
        }
        self.ran(host, done);
        self.answer.seconds += begun.elapsed().as_secs_f64();
        code::SUCCESS
    }

    /// Notes what a launch of the kernel of that address did.
    fn ran(&mut self, host: u64, Done { counts, recorded }: Done) {
        if counts.alone {
            self.alone.insert(host);
        }
        self.answer.instructions += counts.instructions;
        self.answer.recorded += u64::from(recorded);
        if let Some(Failure { exception, text }) = counts.failure {
            // A program without standard error goes on as well.
            let _ = std::io::stderr().write_all(text.as_bytes());
            self.failed = match exception {
                Exception::Assert => code::ASSERT,
                Exception::IllegalAddress => code::ILLEGAL_ADDRESS,
                Exception::MisalignedAddress => code::MISALIGNED_ADDRESS,
                Exception::LaunchFailure => code::LAUNCH_FAILURE,
            };
        }
    }
}

/// Zero bytes for the barrier of a cooperative launch.
fn workspace() -> Option<u64> {
    let place = memory().allocate(WORKSPACE_BYTES)?;
    memory().write(place, &[0; 64])?;
    Some(place)
}

/// A launch that ended.
struct Done {
    counts: Counts,
    /// It is in the trace.
    recorded: bool,
}

/// Runs a launch.
fn execute(
    recorder: &mut Option<gpumodel_trace::Recorder>,
    request: &LaunchRequest<'_>,
) -> Result<Done, String> {
    let code = request.code;
    let Some(recorder) = recorder else { return Err("the program launches while it ends".into()) };
    let text = |error: gpumodel_trace::TraceError| error.to_string();
    let wrong = |error: RunError| error.to_string();
    let recorded = recorder.launch(request.launch, &code.opcodes, code.rows());
    match recorded.map_err(text)? {
        None => Ok(Done { counts: run(request, memory(), None).map_err(wrong)?, recorded: false }),
        Some(mut kernel) => {
            let counts = run(request, memory(), Some(&mut kernel)).map_err(wrong)?;
            kernel.end().map_err(text)?;
            Ok(Done { counts, recorded: true })
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaFuncGetAttributes(attributes: *mut c_void, host: *const c_void) -> u32 {
    let mut state = state();
    let Some((module, name)) = state.functions.get(&number(host)).cloned() else {
        return code::INVALID_FUNCTION;
    };
    let loaded = state.load(module);
    let Some(function) = loaded.module.functions.iter().find(|one| one.name == name) else {
        return code::INVALID_FUNCTION;
    };
    put_at(attributes, 0, state.static_shared(function));
    put_at(attributes, 8, loaded.module.constants.len() as u64);
    put_at(attributes, 16, u64::from(function.stack_bytes));
    put_at(attributes, 24, state.most_threads(function));
    put_at(attributes, 28, function.registers);
    put_at(attributes, 32, loaded.sm);
    put_at(attributes, 36, loaded.sm);
    put_at(attributes, 40, 0_u32);
    let shared = state.most_shared(number(host), function);
    put_at(attributes, 44, u32::try_from(shared).unwrap_or(u32::MAX));
    put_at(attributes, 48, 0_u32.wrapping_sub(1));
    code::SUCCESS
}

/// `cudaFuncAttributeMaxDynamicSharedMemorySize`.
const DYNAMIC_SHARED: u32 = 8;

#[unsafe(no_mangle)]
extern "C" fn cudaFuncSetAttribute(host: *const c_void, attribute: u32, value: c_int) -> u32 {
    if attribute != DYNAMIC_SHARED {
        return code::SUCCESS;
    }
    let value = set_shared(number(host), value);
    result(value)
}

/// Lets a kernel have so many dynamic shared bytes.
fn set_shared(host: u64, bytes: c_int) -> u32 {
    let mut state = state();
    let Some(function) = state.function(host) else { return code::INVALID_FUNCTION };
    let most = most_shared(&state.request.device).saturating_sub(state.static_shared(&function));
    match u64::try_from(bytes) {
        Ok(bytes) if bytes <= most => {
            state.shared_limits.insert(host, bytes);
            code::SUCCESS
        }
        _ => code::INVALID_VALUE,
    }
}

/// A function's handle is its address.
#[unsafe(no_mangle)]
extern "C" fn cudaGetFuncBySymbol(function: *mut *const c_void, symbol: *const c_void) -> u32 {
    if !state().functions.contains_key(&number(symbol)) {
        return result(code::INVALID_FUNCTION);
    }
    put(function, symbol);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchKernel_ptsz(
    function: *const c_void,
    grid: Extent,
    block: Extent,
    parameters: *const *const c_void,
    shared: usize,
    stream: *const c_void,
) -> u32 {
    cudaLaunchKernel(function, grid, block, parameters, shared, per_thread(stream))
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchCooperativeKernel_ptsz(
    function: *const c_void,
    grid: Extent,
    block: Extent,
    parameters: *const *const c_void,
    shared: usize,
    stream: *const c_void,
) -> u32 {
    cudaLaunchCooperativeKernel(function, grid, block, parameters, shared, per_thread(stream))
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchKernelExC_ptsz(
    configuration: *const c_void,
    function: *const c_void,
    parameters: *const *const c_void,
) -> u32 {
    let Some(one) = get(configuration.cast::<LaunchConfiguration>()) else {
        return result(code::INVALID_VALUE);
    };
    let one = LaunchConfiguration { stream: per_thread(one.stream), ..one };
    cudaLaunchKernelExC((&raw const one).cast(), function, parameters)
}

twins! {
    __cudaLaunchKernel_ptsz = cudaLaunchKernel_ptsz(
        a: *const c_void, b: Extent, c: Extent, d: *const *const c_void, e: usize,
        f: *const c_void
    );
}
