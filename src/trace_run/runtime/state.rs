//! The state of the runtime: what is registered, allocated and recorded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gpumodel_core::units::Dim3;
use gpumodel_trace::{Filter, Recorder};
use gpumodel_trace_run::cubin::Module;
use gpumodel_trace_run::execute::{Texels, Texture};
use gpumodel_trace_run::request::{Answer, Request, VARIABLE};
use gpumodel_trace_run::sass::Code;

use crate::graphs::Graphs;
use crate::memory::DeviceMemory;

/// Results of functions, as `cudaError_t`.
pub(crate) mod code {
    pub(crate) const SUCCESS: u32 = 0;
    pub(crate) const INVALID_VALUE: u32 = 1;
    pub(crate) const OUT_OF_MEMORY: u32 = 2;
    pub(crate) const INVALID_CONFIGURATION: u32 = 9;
    pub(crate) const INVALID_SYMBOL: u32 = 13;
    pub(crate) const ILLEGAL_ADDRESS: u32 = 700;
    pub(crate) const OUT_OF_RESOURCES: u32 = 701;
    pub(crate) const ASSERT: u32 = 710;
    pub(crate) const MISALIGNED_ADDRESS: u32 = 716;
    pub(crate) const LAUNCH_FAILURE: u32 = 719;
    pub(crate) const TOO_LARGE: u32 = 720;
    pub(crate) const INVALID_FUNCTION: u32 = 98;
    pub(crate) const INVALID_DEVICE: u32 = 101;
    pub(crate) const PEER_NOT_ENABLED: u32 = 705;
    pub(crate) const NOT_SUPPORTED: u32 = 801;
    pub(crate) const ILLEGAL_STATE: u32 = 401;
    pub(crate) const CAPTURE_UNSUPPORTED: u32 = 900;
    pub(crate) const CAPTURE_INVALIDATED: u32 = 901;
    pub(crate) const CAPTURE_UNMATCHED: u32 = 903;
    pub(crate) const CAPTURE_UNJOINED: u32 = 904;
    pub(crate) const UPDATE_FAILURE: u32 = 910;
}

/// A module that is read when something of it is used.
pub(crate) struct ModuleSlot {
    /// Its fat binary.
    pub(crate) fat: Vec<u8>,
    pub(crate) loaded: Option<Arc<Loaded>>,
    /// The variables that the host has initialised: none before it is loaded.
    pub(crate) constants: Vec<u8>,
}

/// A module that is read.
pub(crate) struct Loaded {
    pub(crate) module: Module,
    pub(crate) code: Code,
    pub(crate) sm: u32,
    /// Where its variables lie.
    pub(crate) base: u64,
}

/// What the next launch is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Configuration {
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared: usize,
    pub(crate) stream: u64,
    /// CTAs of a cluster, where the launch says so.
    pub(crate) cluster: Option<Dim3>,
}

/// All of it.
pub(crate) struct State {
    pub(crate) folder: PathBuf,
    pub(crate) request: Request,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) answer: Answer,
    pub(crate) modules: Vec<ModuleSlot>,
    /// By the address of the host's function: module and name.
    pub(crate) functions: HashMap<u64, (usize, String)>,
    /// By the address of the host's variable: module and name.
    pub(crate) variables: HashMap<u64, (usize, String)>,
    /// By the address of the host's function: dynamic shared bytes that the program asked for.
    pub(crate) shared_limits: HashMap<u64, u64>,
    /// Addresses of kernels whose CTAs depended on each other.
    pub(crate) alone: BTreeSet<u64>,
    /// Textures and surfaces, each at the number that is its handle.
    pub(crate) textures: Vec<Option<Texture>>,
    /// By the address of an array: its texels.
    pub(crate) arrays: BTreeMap<u64, Texels>,
    pub(crate) configurations: Vec<Configuration>,
    pub(crate) stack_bytes: u32,
    /// The next number of a stream or an event.
    pub(crate) handle: u64,
    /// By stream: its priority.
    pub(crate) priorities: HashMap<u64, i32>,
    /// Streams that do not wait for the default one.
    pub(crate) apart: BTreeSet<u64>,
    pub(crate) graphs: Graphs,
    pub(crate) last_error: u32,
    /// The error of a kernel that failed: all later calls return it.
    pub(crate) failed: u32,
    process: u32,
}

static STATE: OnceLock<Mutex<State>> = OnceLock::new();
static MEMORY: OnceLock<DeviceMemory> = OnceLock::new();

/// Device memory.
pub(crate) fn memory() -> &'static DeviceMemory {
    MEMORY.get_or_init(|| DeviceMemory::reserve().unwrap_or_else(|what| fail_early(&what)))
}

/// The state; the first call reads the request.
pub(crate) fn state() -> MutexGuard<'static, State> {
    let state = STATE.get_or_init(|| Mutex::new(begin()));
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn begin() -> State {
    let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        fail_early("this CUDA runtime is for `gpumodel trace -o OUT.gpt -- PROGRAM`");
    };
    let request = Request::read(&folder).unwrap_or_else(|error| fail_early(&error.to_string()));
    let recorder = filter(&request)
        .and_then(|filter| {
            Recorder::create(&request.output, &request.source, filter)
                .map_err(|error| error.to_string())
        })
        .unwrap_or_else(|what| fail(&folder, &what));
    // SAFETY: `finish` is a function that lives as long as the process.
    unsafe { libc::atexit(finish) };
    State {
        folder,
        request,
        recorder: Some(recorder),
        answer: Answer::default(),
        modules: Vec::new(),
        functions: HashMap::new(),
        variables: HashMap::new(),
        shared_limits: HashMap::new(),
        alone: BTreeSet::new(),
        textures: Vec::new(),
        arrays: BTreeMap::new(),
        configurations: Vec::new(),
        stack_bytes: 1024,
        handle: 16,
        priorities: HashMap::new(),
        apart: BTreeSet::new(),
        graphs: Graphs::default(),
        last_error: code::SUCCESS,
        failed: code::SUCCESS,
        process: std::process::id(),
    }
}

fn filter(request: &Request) -> Result<Filter, String> {
    let Request { kernels, names, ctas, .. } = request;
    Ok(Filter {
        kernels: kernels.as_ref().map(|ids| ids.parse()).transpose()?,
        names: names.as_ref().map(|names| names.parse()).transpose()?,
        ctas: ctas.as_ref().map(|ctas| ctas.parse()).transpose()?,
    })
}

/// Ends the process: there is no state yet.
fn fail_early(what: &str) -> ! {
    match std::env::var_os(VARIABLE) {
        Some(folder) => fail(&PathBuf::from(folder), what),
        None => {
            let line = format!("error: {what}\n");
            // SAFETY: the pointer and the length are those of a string.
            unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
            // SAFETY: ends the process.
            unsafe { libc::_exit(2) }
        }
    }
}

/// Ends the process with an error for the user, which `gpumodel trace` prints.
pub(crate) fn fail(folder: &std::path::Path, what: &str) -> ! {
    let answer = Answer { error: Some(what.to_owned()), ..Answer::default() };
    let written = answer.write(folder);
    // SAFETY: ends the process without running more of the program, whose results would be
    // wrong from here on.
    unsafe { libc::_exit(if written.is_ok() { 2 } else { 3 }) }
}

/// Writes the end of the store when the program ends.
extern "C" fn finish() {
    let mut state = state();
    if state.process != std::process::id() {
        return;
    }
    if let Some(recorder) = state.recorder.take()
        && let Err(error) = recorder.finish()
    {
        fail(&state.folder, &error.to_string());
    }
    if let Err(error) = state.answer.write(&state.folder) {
        fail(&state.folder, &error.to_string());
    }
}

/// Remembers a result and returns it. The error of a kernel that failed stays the last one.
pub(crate) fn result(value: u32) -> u32 {
    if value != code::SUCCESS {
        let mut state = state();
        let stays = state.failed != code::SUCCESS && state.last_error == state.failed;
        if !stays {
            state.last_error = value;
        }
    }
    value
}

/// The result of a call that does nothing else: the error of a kernel that failed before it.
pub(crate) fn alive() -> u32 {
    let failed = state().failed;
    result(failed)
}

/// The same of a call that waits for kernels: the program prints what they printed.
pub(crate) fn settled() -> u32 {
    let alive = alive();
    memory().flush();
    alive
}

/// A new number for a stream or an event.
pub(crate) fn handle() -> u64 {
    state().new_handle()
}
