// CUDA graphs: captured from streams that fork and join, built node by node, launched again with
// other values, updated, nested.
#include "check.h"
#include <cooperative_groups.h>
__constant__ int offset;
__global__ void scale(int *x, int n, int a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * a + offset;
}
__global__ void sum(const int *a, const int *b, int *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
const int n = 300;
static int calls = 0;
void count(void *by) { calls += *(int *)by; }
void is(const char *what, cudaError_t got, cudaError_t wanted) { expect(what, 0, int(got), int(wanted), 0); }
// Two streams: a copy, kernels on both, their sum, a call, a copy back.
void captured() {
  cudaStream_t one, two;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  cudaStreamCreate(&one);
  cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
  cudaEventCreate(&fork);
  cudaEventCreate(&join);
  int h[n], back[n], step = 5, *a = device<int>(nullptr, n), *b = device<int>(nullptr, n), *c = device<int>(nullptr, n);
  is("default stream", cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  is("begin", cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaStreamCaptureStatus status;
  cudaStreamIsCapturing(one, &status);
  expect("capturing", 0, int(status), int(cudaStreamCaptureStatusActive), 0);
  cudaMemcpyAsync(a, h, sizeof h, cudaMemcpyHostToDevice, one);
  cudaEventRecord(fork, one);
  cudaStreamWaitEvent(two, fork, 0);
  cudaMemsetAsync(b, 1, n * sizeof(int), two);
  scale<<<3, 128, 0, two>>>(b, n, 2);
  scale<<<3, 128, 0, one>>>(a, n, 3);
  cudaEventRecord(join, two);
  cudaStreamWaitEvent(one, join, 0);
  int *temporary;
  cudaMallocAsync((void **)&temporary, n * sizeof(int), one);
  sum<<<3, 128, 0, one>>>(a, b, temporary, n);
  cudaMemcpyAsync(c, temporary, n * sizeof(int), cudaMemcpyDeviceToDevice, one);
  cudaFreeAsync(temporary, one);
  cudaLaunchHostFunc(one, count, &step);
  cudaMemcpyAsync(back, c, sizeof back, cudaMemcpyDeviceToHost, one);
  is("end on another stream", cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureUnmatched);
  is("end", cudaStreamEndCapture(one, &graph), cudaSuccess);
  size_t nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  expect("nodes", 0, nodes >= 7, true, 0);
  is("instance", cudaGraphInstantiate(&instance, graph, 0), cudaSuccess);
  cudaGraphDestroy(graph);
  expect("not launched yet", 0, calls, 0, 0);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < n; i++) h[i] = i + round;
    is("launch", cudaGraphLaunch(instance, round == 1 ? two : one), cudaSuccess);
    is("work after it", cudaStreamSynchronize(round == 1 ? two : one), cudaSuccess);
    for (int i = 0; i < n; i++) expect("sum", i, back[i], (i + round) * 3 + 0x01010101 * 2 + 20, 0);
    expect("calls", 0, calls, step * (round + 1), 0);
  }
  cudaGraphExecDestroy(instance);
  // A stream that does not join again.
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  cudaEventRecord(fork, one);
  cudaStreamWaitEvent(two, fork, 0);
  scale<<<1, 32, 0, two>>>(b, n, 2);
  is("not joined", cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
  is("no capture", cudaStreamEndCapture(one, &graph), cudaErrorIllegalState);
  scale<<<1, 32, 0, two>>>(b, n, 1);
  is("both are free", cudaDeviceSynchronize(), cudaSuccess);
  cudaGetLastError();
}
cudaKernelNodeParams kernel(const void *function, void **arguments) {
  cudaKernelNodeParams p = {};
  p.func = (void *)function;
  p.gridDim = dim3(3);
  p.blockDim = dim3(128);
  p.kernelParams = arguments;
  return p;
}
void built() {
  cudaGraph_t graph, outer;
  cudaGraphExec_t instance;
  cudaGraphNode_t fill, copy, left, right, join, call, out, constant, nodes[16];
  int h[n], back[n], ten = 10, step = 100, two = 2, many = n;
  int *a = device<int>(nullptr, n), *b = device<int>(nullptr, n), *c = device<int>(nullptr, n);
  for (int i = 0; i < n; i++) h[i] = i;
  cudaGraphCreate(&graph, 0);
  cudaMemsetParams value = {};
  value.dst = b;
  value.value = 70000;
  value.elementSize = 4;
  value.width = n;
  value.height = 1;
  is("fill", cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &value), cudaSuccess);
  is("copy", cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, a, h, sizeof h, cudaMemcpyHostToDevice), cudaSuccess);
  is("constant", cudaGraphAddMemcpyNodeToSymbol(&constant, graph, nullptr, 0, offset, &ten, 4, 0, cudaMemcpyHostToDevice), cudaSuccess);
  void *of_a[] = {&a, &many, &two}, *of_b[] = {&b, &many, &two}, *of_sum[] = {&a, &b, &c, &many};
  cudaKernelNodeParams p = kernel((const void *)scale, of_a), q = kernel((const void *)scale, of_b), r = kernel((const void *)sum, of_sum);
  cudaGraphNode_t before[] = {copy, constant}, both[2];
  // The sum first: its dependencies come later.
  is("sum", cudaGraphAddKernelNode(&join, graph, nullptr, 0, &r), cudaSuccess);
  is("left", cudaGraphAddKernelNode(&left, graph, before, 2, &p), cudaSuccess);
  before[0] = fill;
  is("right", cudaGraphAddKernelNode(&right, graph, before, 2, &q), cudaSuccess);
  both[0] = left, both[1] = right;
  cudaGraphNode_t to[] = {join, join};
#if CUDART_VERSION >= 13000
  is("edges", cudaGraphAddDependencies(graph, both, to, nullptr, 2), cudaSuccess);
#else
  is("edges", cudaGraphAddDependencies(graph, both, to, 2), cudaSuccess);
#endif
  cudaHostNodeParams host_call = {count, &step};
  is("call", cudaGraphAddHostNode(&call, graph, &join, 1, &host_call), cudaSuccess);
  cudaMemcpy3DParms rows = {};
  rows.srcPtr = make_cudaPitchedPtr(c, sizeof h, n, 1);
  rows.dstPtr = make_cudaPitchedPtr(back, sizeof h, n, 1);
  rows.extent = make_cudaExtent(sizeof h, 1, 1);
  rows.kind = cudaMemcpyDeviceToHost;
  is("rows", cudaGraphAddMemcpyNode(&out, graph, &call, 1, &rows), cudaSuccess);
  cudaGraphNode_t empty, wrong;
  is("empty", cudaGraphAddEmptyNode(&empty, graph, &out, 1), cudaSuccess);
  q.blockDim = dim3(2048);
  is("too many threads", cudaGraphAddKernelNode(&wrong, graph, nullptr, 0, &q), cudaErrorInvalidConfiguration);
  cudaGetLastError();
  size_t count_of_nodes = 16;
  cudaGraphGetRootNodes(graph, nodes, &count_of_nodes);
  expect("roots", 0, int(count_of_nodes), 3, 0);
  cudaGraphNodeType type;
  cudaGraphNodeGetType(join, &type);
  expect("type", 0, int(type), int(cudaGraphNodeTypeKernel), 0);
  is("instance", cudaGraphInstantiateWithFlags(&instance, graph, 0), cudaSuccess);
  calls = 0;
  auto check = [&](const char *what, int x, int y) {
    cudaGraphLaunch(instance, 0);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i++) expect(what, i, back[i], i * x + 70000 * y + 20, 0);
  };
  check("built", 2, 2);
  int seven = 7;
  of_a[2] = &seven;
  p = kernel((const void *)scale, of_a);
  is("other value", cudaGraphExecKernelNodeSetParams(instance, left, &p), cudaSuccess);
  check("with another value", 7, 2);
  cudaGraphExecUpdateResultInfo information;
  is("update", cudaGraphExecUpdate(instance, graph, &information), cudaSuccess);
  check("updated", 2, 2);
  // As a node of another graph, twice.
  cudaGraphNode_t first, second;
  cudaGraphCreate(&outer, 0);
  cudaGraphAddChildGraphNode(&first, outer, nullptr, 0, graph);
  cudaGraphAddChildGraphNode(&second, outer, &first, 1, graph);
  is("other shape", cudaGraphExecUpdate(instance, outer, &information), cudaErrorGraphExecUpdateFailure);
  cudaGetLastError();
  cudaGraphExecDestroy(instance);
  is("outer", cudaGraphInstantiate(&instance, outer, 0), cudaSuccess);
  check("nested", 2, 2);
  expect("calls", 0, calls, 500, 0);
  cudaGraphDestroy(outer);
#if CUDART_VERSION >= 13000
  cudaGraphAddDependencies(graph, &empty, &copy, nullptr, 1);
#else
  cudaGraphAddDependencies(graph, &empty, &copy, 1);
#endif
  cudaGraphExec_t none;
  expect("cycle", 0, cudaGraphInstantiate(&none, graph, 0) != cudaSuccess, true, 0);
  cudaGetLastError();
}
// Memory of a graph that the program frees after each launch stays the graph's.
void allocated() {
  cudaStream_t one;
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  cudaStreamCreate(&one);
  int *sums = device<int>(nullptr, n), back[n], *of_graph, *other;
  cudaMemset(sums, 0, sizeof back);
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  cudaMallocAsync((void **)&of_graph, sizeof back, one);
  cudaMemsetAsync(of_graph, 0, sizeof back, one);
  scale<<<3, 128, 0, one>>>(of_graph, n, 1);
  sum<<<3, 128, 0, one>>>(sums, of_graph, sums, n);
  is("end of memory", cudaStreamEndCapture(one, &graph), cudaSuccess);
  is("instance with memory", cudaGraphInstantiate(&instance, graph, 0), cudaSuccess);
  for (int round = 0; round < 3; round++) {
    is("launch with memory", cudaGraphLaunch(instance, one), cudaSuccess);
    is("free", cudaFreeAsync(of_graph, one), cudaSuccess);
    cudaMallocAsync((void **)&other, sizeof back, one);
    cudaMemsetAsync(other, 1, sizeof back, one);
    if (round < 2) cudaGraphLaunch(instance, one);
    if (round < 2) cudaFreeAsync(of_graph, one);
    cudaMemcpyAsync(back, other, sizeof back, cudaMemcpyDeviceToHost, one);
    cudaFreeAsync(other, one);
    is("sync", cudaStreamSynchronize(one), cudaSuccess);
    for (int i = 0; i < n; i++) expect("other memory", i, back[i], 0x01010101, 0);
  }
  cudaMemcpy(back, sums, sizeof back, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++) expect("sums", i, back[i], 50, 0);
}
#if CUDART_VERSION >= 12030
// Nodes whose parameters are those of any kind.
void described() {
  cudaGraph_t graph, outer;
  cudaGraphExec_t instance;
  cudaGraphNode_t fill, copy, left, join, out, call, whole;
  cudaStream_t one;
  cudaStreamCreate(&one);
  int h[n], back[n], step = 1000, two = 2, three = 3, many = n;
  int *a = device<int>(nullptr, n), *b = device<int>(nullptr, n), *c = device<int>(nullptr, n);
  for (int i = 0; i < n; i++) h[i] = 5 * i;
  auto add = [](cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, cudaGraphNodeParams *p) {
#if CUDART_VERSION >= 13000
    return cudaGraphAddNode(node, graph, after, nullptr, count, p);
#else
    return cudaGraphAddNode(node, graph, after, count, p);
#endif
  };
  auto rows = [](void *to, void *from, cudaMemcpyKind kind) {
    cudaGraphNodeParams p = {cudaGraphNodeTypeMemcpy};
    p.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(from, sizeof(int[n]), n, 1), p.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(to, sizeof(int[n]), n, 1);
    p.memcpy.copyParams.extent = make_cudaExtent(sizeof(int[n]), 1, 1), p.memcpy.copyParams.kind = kind;
    return p;
  };
  auto kernel_of = [](const void *function, void **arguments) {
    cudaGraphNodeParams p = {cudaGraphNodeTypeKernel};
    p.kernel.func = (void *)function, p.kernel.gridDim = dim3(3), p.kernel.blockDim = dim3(128), p.kernel.kernelParams = arguments;
    return p;
  };
  cudaGraphCreate(&graph, 0);
  cudaGraphNodeParams value = {cudaGraphNodeTypeMemset}, in = rows(a, h, cudaMemcpyHostToDevice), end = rows(back, c, cudaMemcpyDeviceToHost), wrong = {cudaGraphNodeTypeMemset};
  value.memset.dst = b, value.memset.value = 300, value.memset.elementSize = 4, value.memset.width = n, value.memset.height = 1;
  void *of_a[] = {&a, &many, &two}, *of_sum[] = {&a, &b, &c, &many};
  cudaGraphNodeParams p = kernel_of((const void *)scale, of_a), q = kernel_of((const void *)sum, of_sum), host_call = {cudaGraphNodeTypeHost}, child = {cudaGraphNodeTypeGraph};
  is("described copy", add(&copy, graph, nullptr, 0, &in), cudaSuccess);
  is("described fill", add(&fill, graph, nullptr, 0, &value), cudaSuccess);
  is("described kernel", add(&left, graph, &copy, 1, &p), cudaSuccess);
  cudaGraphNode_t both[] = {left, fill};
  is("described sum", add(&join, graph, both, 2, &q), cudaSuccess);
  host_call.host.fn = count, host_call.host.userData = &step;
  is("described call", add(&call, graph, &join, 1, &host_call), cudaSuccess);
  is("described result", add(&out, graph, &call, 1, &end), cudaSuccess);
  is("element of no bytes", add(&out, graph, nullptr, 0, &wrong), cudaErrorInvalidValue);
  cudaGetLastError();
  cudaGraphCreate(&outer, 0);
  child.graph.graph = graph;
  is("described graph", add(&whole, outer, nullptr, 0, &child), cudaSuccess);
  calls = 0;
  auto check = [&](const char *what, cudaGraph_t made, int factor) {
    is(what, cudaGraphInstantiate(&instance, made, 0), cudaSuccess);
    cudaGraphLaunch(instance, one), cudaStreamSynchronize(one);
    for (int i = 0; i < n; i++) expect(what, i, back[i], 5 * i * factor + 10 + 300, 0);
  };
  check("described", outer, 2);
  of_a[2] = &three, p = kernel_of((const void *)scale, of_a);
  is("described again", cudaGraphNodeSetParams(left, &p), cudaSuccess);
  is("of another kind", cudaGraphNodeSetParams(left, &value), cudaErrorInvalidValue);
  cudaGetLastError();
  check("described with another value", graph, 3);
  value.memset.value = 0;
  is("described in the instance", cudaGraphExecNodeSetParams(instance, fill, &value), cudaSuccess);
  cudaGraphLaunch(instance, one), cudaStreamSynchronize(one);
  for (int i = 0; i < n; i++) expect("described with another fill", i, back[i], 15 * i + 10, 0);
  expect("described calls", 0, calls, 3000, 0);
}
#endif
__global__ void meet(int *x, int value) {
  x[blockIdx.x] = value;
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) x[gridDim.x] = x[0] + x[gridDim.x - 1];
}
// New parameters keep that a kernel is cooperative; an event is recorded at each launch.
void cooperative() {
  cudaStream_t one;
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  cudaEvent_t begin, end;
  cudaStreamCreate(&one);
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  int *x = device<int>(nullptr, 8), back[8], value = 3;
  void *values[] = {&x, &value};
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  cudaEventRecordWithFlags(begin, one, cudaEventRecordExternal);
  cudaLaunchCooperativeKernel((void *)meet, dim3(4), dim3(32), values, 0, one);
  cudaEventRecordWithFlags(end, one, cudaEventRecordExternal);
  is("end of meeting", cudaStreamEndCapture(one, &graph), cudaSuccess);
  is("instance that meets", cudaGraphInstantiate(&instance, graph, 0), cudaSuccess);
  cudaGraphNode_t nodes[8];
  size_t count = 8;
  cudaGraphGetNodes(graph, nodes, &count);
  value = 9;
  cudaKernelNodeParams other = {};
  other.func = (void *)meet;
  other.gridDim = dim3(4);
  other.blockDim = dim3(32);
  other.kernelParams = values;
  for (size_t i = 0; i < count; i++) {
    cudaGraphNodeType type;
    cudaGraphNodeGetType(nodes[i], &type);
    if (type == cudaGraphNodeTypeKernel)
      is("other meeting", cudaGraphExecKernelNodeSetParams(instance, nodes[i], &other), cudaSuccess);
  }
  is("meet", cudaGraphLaunch(instance, one), cudaSuccess);
  is("met", cudaStreamSynchronize(one), cudaSuccess);
  float time = 0;
  cudaEventElapsedTime(&time, begin, end);
  expect("time of the graph", 0, time > 0.0001f, true, 0);
  cudaMemcpy(back, x, sizeof back, cudaMemcpyDeviceToHost);
  expect("meeting", 0, back[4], 18, 0);
}
int main() {
  int ten = 10;
  cudaMemcpyToSymbol(offset, &ten, sizeof ten);
  captured();
  built();
  allocated();
  cooperative();
#if CUDART_VERSION >= 12030
  described();
#endif
  return finish("graphs");
}
