//! Graphs: work that is described first, node by node or by capturing streams, and launched later.
//! The nodes of a launched graph run one after the other, in the order of their dependencies, as
//! if they were issued to the stream of the launch.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::copies::per_thread;
use crate::pointers::{get, number, pointer, put, put_at};
use crate::state::{State, alive, code, result, state};
use gpumodel_core::units::Dim3;

/// What a node does, in the stream of that number.
pub(crate) type Work = Arc<dyn Fn(u64) -> u32 + Send + Sync>;

/// The kind of a node, as `cudaGraphNodeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum NodeKind {
    Kernel = 0,
    Copy = 1,
    Fill = 2,
    Host = 3,
    Graph = 4,
    Empty = 5,
    WaitForEvent = 6,
    RecordEvent = 7,
    Allocate = 10,
    Free = 11,
}

#[derive(Clone)]
struct Node {
    handle: u64,
    kind: NodeKind,
    work: Work,
    /// Those of a kernel, which new parameters keep.
    attributes: KernelAttributes,
    /// The nodes that it depends on.
    after: Vec<u64>,
}

/// How a kernel is launched beyond its parameters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelAttributes {
    pub(crate) cooperative: bool,
    pub(crate) cluster: Option<Dim3>,
}

/// A graph, or an instance of one, whose nodes stand in the order in which they run.
#[derive(Clone, Default)]
struct Graph(Vec<Node>);

/// A stream whose work goes into a graph.
struct Capture {
    graph: u64,
    /// The nodes that the next one depends on.
    last: Vec<u64>,
    /// The capture began here; other streams joined it.
    first: bool,
}

/// All graphs.
#[derive(Default)]
pub(crate) struct Graphs {
    /// By handle.
    graphs: BTreeMap<u64, Graph>,
    instances: BTreeMap<u64, Graph>,
    /// By stream.
    captures: BTreeMap<u64, Capture>,
    /// Events that were recorded in a capture: its graph, and the nodes before the event.
    events: BTreeMap<u64, (u64, Vec<u64>)>,
}

/// The streams of a program without one per thread cannot be captured.
const LAST_LEGACY_STREAM: u64 = 1;

/// `cudaStreamPerThread`.
const PER_THREAD_STREAM: u64 = 2;

/// The number of a stream among captures, in which each thread of the host has its own stream.
fn key(stream: u64) -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1 << 63);
    thread_local! {
        static OWN: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    if stream == PER_THREAD_STREAM { OWN.with(|own| *own) } else { stream }
}

impl Graph {
    /// The nodes, each after those that it depends on; none where that is not possible.
    fn ordered(&self) -> Option<Self> {
        let (mut left, mut done, mut all) = (self.0.clone(), BTreeSet::new(), Vec::new());
        while !left.is_empty() {
            let ready = |node: &Node| node.after.iter().all(|one| done.contains(one));
            let node = left.remove(left.iter().position(ready)?);
            done.insert(node.handle);
            all.push(node);
        }
        Some(Self(all))
    }

    fn node(&mut self, handle: u64) -> Option<&mut Node> {
        self.0.iter_mut().find(|node| node.handle == handle)
    }

    /// Whether nodes of the same kinds depend on each other in the same way.
    fn resembles(&self, other: &Self) -> bool {
        let shape = |graph: &Self| {
            let place = |handle: &u64| graph.0.iter().position(|node| node.handle == *handle);
            let nodes = graph.0.iter();
            let one = |node: &Node| (node.kind, node.after.iter().map(place).collect::<Vec<_>>());
            nodes.map(one).collect::<Vec<_>>()
        };
        shape(self) == shape(other)
    }

    /// All that it does.
    fn works(&self) -> Vec<Work> {
        self.0.iter().map(|node| node.work.clone()).collect()
    }
}

/// Does all of `works` in a stream, until one fails.
fn run(works: &[Work], stream: u64) -> u32 {
    let failed = |done: &u32| *done != code::SUCCESS;
    works.iter().map(|work| work(stream)).find(failed).unwrap_or(code::SUCCESS)
}

impl Graphs {
    /// The graph with a node.
    fn of_node(&mut self, node: u64) -> Option<&mut Graph> {
        self.graphs.values_mut().find(|graph| graph.0.iter().any(|one| one.handle == node))
    }
}

impl State {
    /// A new number for an object of the program.
    pub(crate) fn new_handle(&mut self) -> u64 {
        self.handle += 16;
        self.handle
    }

    fn add_node(&mut self, graph: u64, kind: NodeKind, after: Vec<u64>, work: Work) -> Option<u64> {
        let handle = self.new_handle();
        let graph = self.graphs.graphs.get_mut(&graph)?;
        let known = |one: &u64| graph.0.iter().any(|node| node.handle == *one);
        after.iter().all(known).then_some(())?;
        graph.0.push(Node { handle, kind, work, attributes: KernelAttributes::default(), after });
        Some(handle)
    }

    /// Whether work in that stream goes into a graph.
    pub(crate) fn is_captured(&self, stream: u64) -> bool {
        self.graphs.captures.contains_key(&key(stream))
    }

    /// Adds work to the graph that the stream is captured into.
    pub(crate) fn capture(&mut self, stream: u64, kind: NodeKind, work: Work) -> u32 {
        let stream = key(stream);
        let capture = self.graphs.captures.get(&stream).map(|one| (one.graph, one.last.clone()));
        let added = capture.and_then(|(graph, after)| self.add_node(graph, kind, after, work));
        let Some(node) = added else { return code::CAPTURE_INVALIDATED };
        if let Some(capture) = self.graphs.captures.get_mut(&stream) {
            capture.last = vec![node];
        }
        code::SUCCESS
    }

    /// Adds a kernel to the graph that the stream is captured into.
    pub(crate) fn capture_kernel(
        &mut self,
        stream: u64,
        work: Work,
        attributes: KernelAttributes,
    ) -> u32 {
        let done = self.capture(stream, NodeKind::Kernel, work);
        let Graphs { graphs, captures, .. } = &mut self.graphs;
        let capture = captures.get(&key(stream)).filter(|_| done == code::SUCCESS);
        let added = capture.and_then(|one| Some((graphs.get_mut(&one.graph)?, *one.last.first()?)));
        if let Some(node) = added.and_then(|(graph, last)| graph.node(last)) {
            node.attributes = attributes;
        }
        done
    }

    /// Notes an event of a stream; whether that is captured.
    pub(crate) fn record_captured(&mut self, event: u64, stream: u64) -> bool {
        let stream = key(stream);
        let Graphs { captures, events, .. } = &mut self.graphs;
        match captures.get(&stream) {
            Some(capture) => events.insert(event, (capture.graph, capture.last.clone())),
            None => events.remove(&event),
        };
        captures.contains_key(&stream)
    }

    /// A stream that waits for an event of a capture joins it.
    pub(crate) fn wait_captured(&mut self, stream: u64, event: u64) -> u32 {
        let Graphs { captures, events, .. } = &mut self.graphs;
        let Some((graph, nodes)) = events.get(&event) else { return code::SUCCESS };
        if stream <= LAST_LEGACY_STREAM {
            return code::CAPTURE_UNSUPPORTED;
        }
        let stream = key(stream);
        let new = Capture { graph: *graph, last: Vec::new(), first: false };
        let last = &mut captures.entry(stream).or_insert(new).last;
        let missing: Vec<u64> = nodes.iter().filter(|node| !last.contains(node)).copied().collect();
        last.extend(missing);
        code::SUCCESS
    }

    /// Ends the capture that began in a stream; its graph, or the error.
    fn end_capture(&mut self, stream: u64) -> Result<u64, u32> {
        let stream = key(stream);
        let Graphs { graphs, captures, events, .. } = &mut self.graphs;
        let capture = captures.get(&stream).ok_or(code::ILLEGAL_STATE)?;
        if !capture.first {
            return Err(code::CAPTURE_UNMATCHED);
        }
        let (graph, last) = (capture.graph, capture.last.clone());
        captures.retain(|_, one| one.graph != graph);
        events.retain(|_, (one, _)| *one != graph);
        let nodes = &graphs.get(&graph).ok_or(code::CAPTURE_INVALIDATED)?.0;
        let needed = |one: &Node| nodes.iter().any(|node| node.after.contains(&one.handle));
        if nodes.iter().all(|node| last.contains(&node.handle) || needed(node)) {
            return Ok(graph);
        }
        graphs.remove(&graph);
        Err(code::CAPTURE_UNJOINED)
    }
}

/// Does work in a stream, or adds it to the graph that the stream is captured into.
pub(crate) fn in_stream(
    stream: *const c_void,
    kind: NodeKind,
    work: impl Fn(u64) -> u32 + Send + Sync + 'static,
) -> u32 {
    let stream = number(stream);
    let mut state = state();
    if state.is_captured(stream) {
        let done = state.capture(stream, kind, Arc::new(work));
        drop(state);
        return result(done);
    }
    drop(state);
    work(stream)
}

/// The dependencies of a new node.
fn listed(nodes: *const u64, count: usize) -> Vec<u64> {
    let count = if nodes.is_null() { 0 } else { count };
    (0..count).filter_map(|index| get(nodes.wrapping_add(index))).collect()
}

/// Where a new node goes: where its handle is written, the graph, the nodes before it.
pub(crate) struct NewNode {
    pub(crate) node: *mut u64,
    pub(crate) graph: *const c_void,
    pub(crate) after: *const u64,
    pub(crate) count: usize,
}

/// Adds a node.
pub(crate) fn add(to: &NewNode, kind: NodeKind, work: Result<Work, u32>) -> u32 {
    let after = listed(to.after, to.count);
    let added = work.and_then(|work| {
        let added = state().add_node(number(to.graph), kind, after, work);
        added.ok_or(code::INVALID_VALUE)
    });
    match added {
        Ok(node) if put(to.node, node) => code::SUCCESS,
        Ok(_) => result(code::INVALID_VALUE),
        Err(wrong) => result(wrong),
    }
}

/// The attributes of a kernel node: those in an instance where there is one.
pub(crate) fn attributes_of(
    instance: Option<*const c_void>,
    node: *const c_void,
) -> KernelAttributes {
    let (mut state, node) = (state(), number(node));
    let graph = match instance {
        Some(one) => state.graphs.instances.get_mut(&number(one)),
        None => state.graphs.of_node(node),
    };
    graph.and_then(|graph| graph.node(node)).map(|node| node.attributes).unwrap_or_default()
}

/// Gives a node other work: that of an instance where there is one, else that of its graph.
pub(crate) fn replace(
    instance: Option<*const c_void>,
    node: *const c_void,
    kind: NodeKind,
    work: Result<Work, u32>,
) -> u32 {
    let work = match work {
        Ok(work) => work,
        Err(wrong) => return result(wrong),
    };
    let (mut state, node) = (state(), number(node));
    let graph = match instance {
        Some(one) => state.graphs.instances.get_mut(&number(one)),
        None => state.graphs.of_node(node),
    };
    let found = graph.and_then(|graph| graph.node(node)).filter(|node| node.kind == kind);
    let value = match found {
        Some(node) => {
            node.work = work;
            code::SUCCESS
        }
        None => code::INVALID_VALUE,
    };
    drop(state);
    result(value)
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamBeginCapture(stream: *const c_void, _: u32) -> u32 {
    let mut state = state();
    let number = number(stream);
    if number <= LAST_LEGACY_STREAM || state.is_captured(number) {
        drop(state);
        return result(code::CAPTURE_UNSUPPORTED);
    }
    let graph = state.new_handle();
    state.graphs.graphs.insert(graph, Graph::default());
    let capture = Capture { graph, last: Vec::new(), first: true };
    state.graphs.captures.insert(key(number), capture);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamEndCapture(stream: *const c_void, graph: *mut u64) -> u32 {
    let ended = state().end_capture(number(stream));
    put(graph, ended.unwrap_or(0));
    result(ended.err().unwrap_or(code::SUCCESS))
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamIsCapturing(stream: *const c_void, status: *mut u32) -> u32 {
    put(status, u32::from(state().is_captured(number(stream))));
    code::SUCCESS
}

/// Other threads of the program may do what they want in any case.
#[unsafe(no_mangle)]
extern "C" fn cudaThreadExchangeStreamCaptureMode(_: *mut c_int) -> u32 {
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphCreate(graph: *mut u64, _: u32) -> u32 {
    let mut state = state();
    let handle = state.new_handle();
    state.graphs.graphs.insert(handle, Graph::default());
    put(graph, handle);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphDestroy(graph: *const c_void) -> u32 {
    let known = state().graphs.graphs.remove(&number(graph)).is_some();
    result(if known { code::SUCCESS } else { code::INVALID_VALUE })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphClone(clone: *mut u64, graph: *const c_void) -> u32 {
    let mut state = state();
    let Some(mut new) = state.graphs.graphs.get(&number(graph)).cloned() else {
        drop(state);
        return result(code::INVALID_VALUE);
    };
    let mut names = BTreeMap::new();
    for node in &mut new.0 {
        names.insert(node.handle, state.new_handle());
        node.handle = names[&node.handle];
    }
    for one in new.0.iter_mut().flat_map(|node| &mut node.after) {
        *one = names.get(one).copied().unwrap_or(0);
    }
    let handle = state.new_handle();
    state.graphs.graphs.insert(handle, new);
    put(clone, handle);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphInstantiate(instance: *mut u64, graph: *const c_void, _: u64) -> u32 {
    let mut state = state();
    let found = state.graphs.graphs.get(&number(graph)).and_then(Graph::ordered);
    let Some(ordered) = found else {
        drop(state);
        return result(code::INVALID_VALUE);
    };
    let handle = state.new_handle();
    state.graphs.instances.insert(handle, ordered);
    put(instance, handle);
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphInstantiateWithFlags(
    instance: *mut u64,
    graph: *const c_void,
    flags: u64,
) -> u32 {
    cudaGraphInstantiate(instance, graph, flags)
}

/// Where the results lie in `cudaGraphInstantiateParams`: the node that is wrong, and how.
const WRONG_NODE: usize = 16;
const INSTANTIATED: usize = 24;
/// `cudaGraphInstantiateInvalidStructure`.
const INVALID_STRUCTURE: u32 = 2;

#[unsafe(no_mangle)]
extern "C" fn cudaGraphInstantiateWithParams(
    instance: *mut u64,
    graph: *const c_void,
    parameters: *mut c_void,
) -> u32 {
    let done = cudaGraphInstantiate(instance, graph, 0);
    put_at(parameters, WRONG_NODE, 0_u64);
    put_at(parameters, INSTANTIATED, if done == code::SUCCESS { 0 } else { INVALID_STRUCTURE });
    done
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphExecDestroy(instance: *const c_void) -> u32 {
    let known = state().graphs.instances.remove(&number(instance)).is_some();
    result(if known { code::SUCCESS } else { code::INVALID_VALUE })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphUpload(_: *const c_void, _: *const c_void) -> u32 {
    alive()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphLaunch(instance: *const c_void, stream: *const c_void) -> u32 {
    let works = state().graphs.instances.get(&number(instance)).map(Graph::works);
    let Some(works) = works else { return result(code::INVALID_VALUE) };
    let alive = alive();
    match alive {
        code::SUCCESS => in_stream(stream, NodeKind::Graph, move |stream| run(&works, stream)),
        failed => failed,
    }
}

/// `cudaGraphExecUpdateErrorTopologyChanged`.
const TOPOLOGY_CHANGED: u32 = 2;

#[unsafe(no_mangle)]
extern "C" fn cudaGraphExecUpdate(
    instance: *const c_void,
    graph: *const c_void,
    information: *mut c_void,
) -> u32 {
    let mut state = state();
    let new = state.graphs.graphs.get(&number(graph)).and_then(Graph::ordered);
    let old = state.graphs.instances.get_mut(&number(instance));
    let value = match (old, new) {
        (Some(old), Some(new)) if old.resembles(&new) => {
            for (old, new) in old.0.iter_mut().zip(new.0) {
                old.work = new.work;
            }
            code::SUCCESS
        }
        (Some(_), Some(_)) => code::UPDATE_FAILURE,
        _ => code::INVALID_VALUE,
    };
    drop(state);
    put_at(information, 0, if value == code::SUCCESS { 0 } else { TOPOLOGY_CHANGED });
    put_at(information, 8, [0_u64; 2]);
    result(value)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddEmptyNode(
    node: *mut u64,
    graph: *const c_void,
    after: *const u64,
    count: usize,
) -> u32 {
    let to = NewNode { node, graph, after, count };
    add(&to, NodeKind::Empty, Ok(Arc::new(|_| code::SUCCESS)))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddChildGraphNode(
    node: *mut u64,
    graph: *const c_void,
    after: *const u64,
    count: usize,
    child: *const c_void,
) -> u32 {
    add(&NewNode { node, graph, after, count }, NodeKind::Graph, child_work(child))
}

/// To run all nodes of a graph, as it is now.
pub(crate) fn child_work(child: *const c_void) -> Result<Work, u32> {
    let child = state().graphs.graphs.get(&number(child)).and_then(Graph::ordered);
    let works = child.ok_or(code::INVALID_VALUE)?.works();
    Ok(Arc::new(move |stream| run(&works, stream)))
}

/// Whether the program was built for CUDA 13, where edges of graphs have data.
pub(crate) fn edges_have_data() -> bool {
    state().folder.join("libcudart.so.13").exists()
}

/// `cudaGraphAddDependencies` of CUDA 13, which has data of each edge; in CUDA 12 their number
/// stands in its place.
#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddDependencies(
    graph: *const c_void,
    from: *const u64,
    to: *const u64,
    data: *const c_void,
    count: usize,
) -> u32 {
    let count = if edges_have_data() { count } else { data.addr() };
    let (mut state, mut value) = (state(), code::SUCCESS);
    for (from, to) in listed(from, count).into_iter().zip(listed(to, count)) {
        let graph = state.graphs.graphs.get_mut(&number(graph));
        let known = graph.filter(|graph| graph.0.iter().any(|node| node.handle == from));
        match known.and_then(|graph| graph.node(to)) {
            Some(node) => node.after.push(from),
            None => value = code::INVALID_VALUE,
        }
    }
    drop(state);
    result(value)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphAddDependencies_v2(
    graph: *const c_void,
    from: *const u64,
    to: *const u64,
    _: *const c_void,
    count: usize,
) -> u32 {
    // The count stands where both versions of the other one find it.
    cudaGraphAddDependencies(graph, from, to, pointer(count as u64), count)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphDestroyNode(node: *const c_void) -> u32 {
    let (mut state, handle) = (state(), number(node));
    let Some(graph) = state.graphs.of_node(handle) else {
        drop(state);
        return result(code::INVALID_VALUE);
    };
    graph.0.retain(|node| node.handle != handle);
    graph.0.iter_mut().for_each(|node| node.after.retain(|one| *one != handle));
    code::SUCCESS
}

/// Lists the nodes of a graph that `wanted` takes, or says how many there are.
fn list(
    graph: *const c_void,
    nodes: *mut u64,
    count: *mut usize,
    wanted: fn(&&Node) -> bool,
) -> u32 {
    let state = state();
    let Some(graph) = state.graphs.graphs.get(&number(graph)) else {
        drop(state);
        return result(code::INVALID_VALUE);
    };
    let all: Vec<u64> = graph.0.iter().filter(wanted).map(|node| node.handle).collect();
    let room = if nodes.is_null() { 0 } else { get(count).unwrap_or(0) };
    for (index, node) in all.iter().take(room).enumerate() {
        put(nodes.wrapping_add(index), *node);
    }
    put(count, if nodes.is_null() { all.len() } else { room.min(all.len()) });
    code::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphGetNodes(graph: *const c_void, nodes: *mut u64, count: *mut usize) -> u32 {
    list(graph, nodes, count, |_| true)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphGetRootNodes(
    graph: *const c_void,
    nodes: *mut u64,
    count: *mut usize,
) -> u32 {
    list(graph, nodes, count, |node| node.after.is_empty())
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphNodeGetType(node: *const c_void, kind: *mut u32) -> u32 {
    let (mut state, node) = (state(), number(node));
    let found = state.graphs.of_node(node).and_then(|graph| graph.node(node)).map(|one| one.kind);
    drop(state);
    match found {
        Some(found) if put(kind, found as u32) => code::SUCCESS,
        _ => result(code::INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamBeginCapture_ptsz(stream: *const c_void, mode: u32) -> u32 {
    cudaStreamBeginCapture(per_thread(stream), mode)
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamEndCapture_ptsz(stream: *const c_void, graph: *mut u64) -> u32 {
    cudaStreamEndCapture(per_thread(stream), graph)
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamIsCapturing_ptsz(stream: *const c_void, status: *mut u32) -> u32 {
    cudaStreamIsCapturing(per_thread(stream), status)
}

stream_twins! {
    cudaGraphLaunch_ptsz = cudaGraphLaunch(a: *const c_void);
}

twins! {
    cudaGraphUpload_ptsz = cudaGraphUpload(a: *const c_void, b: *const c_void);
    cudaGraphInstantiateWithParams_ptsz = cudaGraphInstantiateWithParams(
        a: *mut u64, b: *const c_void, c: *mut c_void
    );
}
