//! Nodes of graphs whose work the program describes: kernels, copies, fills, calls, events.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::copies::{copy_volume, transfer, volume};
use crate::events::{HostFunction, call_host, record_event};
use crate::graphs::{KernelAttributes, NewNode, NodeKind, Work, add, attributes_of, replace};
use crate::launch::kernel_work;
use crate::pointers::{get, number, pointer, put};
use crate::state::{alive, code};
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
