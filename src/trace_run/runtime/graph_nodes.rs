//! Nodes of graphs whose work the program describes: kernels, copies, fills, calls, events.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::copies::{copy_volume, transfer, volume};
use crate::events::{HostFunction, call_host, record_event};
use crate::graphs::{
    KernelAttributes, NewNode, NodeKind, Work, add, attributes_of, child_work, edges_have_data,
    replace,
};
use crate::launch::kernel_work;
use crate::pointers::{get, number, pointer, put};
use crate::state::{alive, code, fail, result, state};
use crate::symbols::{from_symbol, to_symbol};

/// The node parameters of one kind: their type, and the work that they describe.
macro_rules! nodes {
    ($($kind:ident = $work:ident: $add:ident $set:ident $set_in_instance:ident;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $add(
            node: *mut u64,
            graph: *const c_void,
            after: *const u64,
            count: usize,
            parameters: *const c_void,
        ) -> u32 {
            add(&NewNode { node, graph, after, count }, NodeKind::$kind, $work(parameters))
        }

        #[unsafe(no_mangle)]
        extern "C" fn $set(node: *const c_void, parameters: *const c_void) -> u32 {
            replace(None, node, NodeKind::$kind, $work(parameters))
        }

        #[unsafe(no_mangle)]
        extern "C" fn $set_in_instance(
            instance: *const c_void,
            node: *const c_void,
            parameters: *const c_void,
        ) -> u32 {
            replace(Some(instance), node, NodeKind::$kind, $work(parameters))
        }
    )*};
}

nodes! {
    Copy = volume_work: cudaGraphAddMemcpyNode cudaGraphMemcpyNodeSetParams
        cudaGraphExecMemcpyNodeSetParams;
    Fill = fill_work: cudaGraphAddMemsetNode cudaGraphMemsetNodeSetParams
        cudaGraphExecMemsetNodeSetParams;
    Host = host_work: cudaGraphAddHostNode cudaGraphHostNodeSetParams
        cudaGraphExecHostNodeSetParams;
    RecordEvent = record_work: cudaGraphAddEventRecordNode cudaGraphEventRecordNodeSetEvent
        cudaGraphExecEventRecordNodeSetEvent;
    WaitForEvent = wait_work: cudaGraphAddEventWaitNode cudaGraphEventWaitNodeSetEvent
        cudaGraphExecEventWaitNodeSetEvent;
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddKernelNode(
    node: *mut u64,
    graph: *const c_void,
    after: *const u64,
    count: usize,
    parameters: *const c_void,
) -> u32 {
    let work = kernel_work(parameters, KernelAttributes::default());
    add(&NewNode { node, graph, after, count }, NodeKind::Kernel, work)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphKernelNodeSetParams(node: *const c_void, parameters: *const c_void) -> u32 {
    let work = kernel_work(parameters, attributes_of(None, node));
    replace(None, node, NodeKind::Kernel, work)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphExecKernelNodeSetParams(
    instance: *const c_void,
    node: *const c_void,
    parameters: *const c_void,
) -> u32 {
    let work = kernel_work(parameters, attributes_of(Some(instance), node));
    replace(Some(instance), node, NodeKind::Kernel, work)
}

fn volume_work(parameters: *const c_void) -> Result<Work, u32> {
    let parameters = volume(parameters).ok_or(code::INVALID_VALUE)?;
    Ok(Arc::new(move |stream| copy_volume(&parameters, Some(stream))))
}

/// `cudaMemsetParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FillParameters {
    to: u64,
    pitch: usize,
    value: u32,
    /// Bytes of an element.
    element: u32,
    /// In elements.
    width: usize,
    height: usize,
}

impl FillParameters {
    fn fill(&self) {
        let bytes = self.value.to_le_bytes();
        for row in 0..self.height {
            let first = pointer(self.to).wrapping_byte_add(row.wrapping_mul(self.pitch));
            for column in 0..self.width {
                let [a, b, ..] = bytes;
                let (wide, narrow) = (first.cast::<[u8; 4]>(), first.cast::<[u8; 2]>());
                match self.element {
                    1 => put(first.cast::<u8>().wrapping_add(column), a),
                    2 => put(narrow.wrapping_add(column), [a, b]),
                    _ => put(wide.wrapping_add(column), bytes),
                };
            }
        }
    }
}

fn fill_work(parameters: *const c_void) -> Result<Work, u32> {
    let one = get(parameters.cast::<FillParameters>()).ok_or(code::INVALID_VALUE)?;
    if !matches!(one.element, 1 | 2 | 4) {
        return Err(code::INVALID_VALUE);
    }
    Ok(Arc::new(move |_| {
        let alive = alive();
        if alive == code::SUCCESS {
            one.fill();
        }
        alive
    }))
}

/// `cudaHostNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct HostParameters {
    function: Option<HostFunction>,
    data: u64,
}

fn host_work(parameters: *const c_void) -> Result<Work, u32> {
    let one = get(parameters.cast::<HostParameters>()).ok_or(code::INVALID_VALUE)?;
    let function = one.function.ok_or(code::INVALID_VALUE)?;
    Ok(Arc::new(move |_| call_host(function, one.data)))
}

fn record_work(event: *const c_void) -> Result<Work, u32> {
    let event = number(event);
    Ok(Arc::new(move |_| record_event(event)))
}

fn wait_work(_: *const c_void) -> Result<Work, u32> {
    Ok(Arc::new(|_| alive()))
}

fn copy_work(to: *mut c_void, from: *const c_void, bytes: usize) -> Result<Work, u32> {
    let (to, from) = (number(to), number(from));
    Ok(Arc::new(move |stream| transfer(pointer(to), pointer(from), bytes, Some(stream))))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddMemcpyNode1D(
    node: *mut u64,
    graph: *const c_void,
    after: *const u64,
    count: usize,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _: c_int,
) -> u32 {
    add(&NewNode { node, graph, after, count }, NodeKind::Copy, copy_work(to, from, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphMemcpyNodeSetParams1D(
    node: *const c_void,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _: c_int,
) -> u32 {
    replace(None, node, NodeKind::Copy, copy_work(to, from, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphExecMemcpyNodeSetParams1D(
    instance: *const c_void,
    node: *const c_void,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    _: c_int,
) -> u32 {
    replace(Some(instance), node, NodeKind::Copy, copy_work(to, from, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddMemcpyNodeToSymbol(
    node: *mut u64,
    graph: *const c_void,
    after: *const u64,
    count: usize,
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    _: c_int,
) -> u32 {
    let (symbol, from) = (number(symbol), number(from));
    let work: Work = Arc::new(move |stream| {
        to_symbol(pointer(symbol), pointer(from), [bytes, offset], Some(stream))
    });
    add(&NewNode { node, graph, after, count }, NodeKind::Copy, Ok(work))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddMemcpyNodeFromSymbol(
    node: *mut u64,
    graph: *const c_void,
    after: *const u64,
    count: usize,
    to: *mut c_void,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    _: c_int,
) -> u32 {
    let (to, symbol) = (number(to), number(symbol));
    let work: Work = Arc::new(move |_| from_symbol(pointer(to), pointer(symbol), [bytes, offset]));
    add(&NewNode { node, graph, after, count }, NodeKind::Copy, Ok(work))
}

/// Where the parameters of a node's kind lie in `cudaGraphNodeParams`, and in these those of a
/// copy.
const OF_KIND: usize = 16;
const OF_COPY: usize = 16;

/// The kind and the work of a node that `cudaGraphNodeParams` describes.
fn described(
    parameters: *const c_void,
    attributes: KernelAttributes,
) -> Result<(NodeKind, Work), u32> {
    let kind = get(parameters.cast::<u32>()).ok_or(code::INVALID_VALUE)?;
    let own = parameters.wrapping_byte_add(OF_KIND);
    let handle = || pointer(get(own.cast::<u64>()).unwrap_or(0)).cast_const();
    Ok(match kind {
        0 => (NodeKind::Kernel, kernel_work(own, attributes)?),
        1 => (NodeKind::Copy, volume_work(own.wrapping_byte_add(OF_COPY))?),
        2 => (NodeKind::Fill, fill_work(own)?),
        3 => (NodeKind::Host, host_work(own)?),
        4 => (NodeKind::Graph, child_work(handle())?),
        5 => (NodeKind::Empty, Arc::new(|_| code::SUCCESS)),
        6 => (NodeKind::WaitForEvent, wait_work(handle())?),
        7 => (NodeKind::RecordEvent, record_work(handle())?),
        other => unsupported(other),
    })
}

/// Ends the program: a node of this kind cannot be left out.
fn unsupported(kind: u32) -> ! {
    let name = match kind {
        8 => "ExtSemaphoreSignal",
        9 => "ExtSemaphoreWait",
        10 => "MemAlloc",
        11 => "MemFree",
        13 => "Conditional",
        14 => "MemcpyBatch",
        _ => "of this number",
    };
    let what = format!(
        "a graph of the program has a node of kind {kind} (cudaGraphNodeType{name}), which is not \
         supported: use kernels, copies, fills, calls, events and graphs, or capture a stream"
    );
    fail(&state().folder, &what)
}

fn add_described(to: &NewNode, parameters: *const c_void) -> u32 {
    match described(parameters, KernelAttributes::default()) {
        Ok((kind, work)) => add(to, kind, Ok(work)),
        Err(wrong) => result(wrong),
    }
}

fn replace_described(
    instance: Option<*const c_void>,
    node: *const c_void,
    parameters: *const c_void,
) -> u32 {
    match described(parameters, attributes_of(instance, node)) {
        Ok((kind, work)) => replace(instance, node, kind, Ok(work)),
        Err(wrong) => result(wrong),
    }
}

/// `cudaGraphAddNode` of CUDA 13; in CUDA 12 nothing lies between the nodes and their number.
#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddNode(
    node: *mut u64,
    graph: *const c_void,
    after: *const u64,
    data: *const c_void,
    count: usize,
    parameters: *const c_void,
) -> u32 {
    if edges_have_data() {
        return cudaGraphAddNode_v2(node, graph, after, data, count, parameters);
    }
    let early = pointer(count as u64);
    add_described(&NewNode { node, graph, after, count: data.addr() }, early)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddNode_v2(
    node: *mut u64,
    graph: *const c_void,
    after: *const u64,
    _: *const c_void,
    count: usize,
    parameters: *const c_void,
) -> u32 {
    add_described(&NewNode { node, graph, after, count }, parameters)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphNodeSetParams(node: *const c_void, parameters: *const c_void) -> u32 {
    replace_described(None, node, parameters)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphExecNodeSetParams(
    instance: *const c_void,
    node: *const c_void,
    parameters: *const c_void,
) -> u32 {
    replace_described(Some(instance), node, parameters)
}
