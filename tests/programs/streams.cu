// Streams, events, managed memory, constants, variables, copies in two dimensions, pools of memory,
// fills of planes, and calls of programs that have a default stream per thread.
#include "check.h"
#include <cstring>
__constant__ float scale[4];
__device__ int counter;
__managed__ int shared_with_host = 3;
__global__ void step(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = a * x[i] + y[i] * scale[i & 3];
    if (i % 7 == 0) atomicAdd(&counter, 1);
    if (i == 0) shared_with_host += 4;
  }
}
// As `--default-stream per-thread` names them.
extern "C" cudaError_t cudaMemcpy_ptds(void *, const void *, size_t, cudaMemcpyKind);
extern "C" cudaError_t cudaMemcpyAsync_ptsz(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t);
extern "C" cudaError_t cudaMemsetAsync_ptsz(void *, int, size_t, cudaStream_t);
extern "C" cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t);
extern "C" cudaError_t cudaLaunchKernel_ptsz(const void *, dim3, dim3, void **, size_t, cudaStream_t);
void per_thread(float *x) {
  float h[64], *y;
  cudaMalloc(&y, sizeof h);
  int n = 64;
  float a = 3;
  void *arguments[] = {&n, &a, &x, &y};
  cudaMemsetAsync_ptsz(y, 0, sizeof h, 0);
  cudaLaunchKernel_ptsz((const void *)step, dim3(2), dim3(32), arguments, 0, 0);
  cudaMemcpyAsync_ptsz(h, y, sizeof h, cudaMemcpyDeviceToHost, 0);
  cudaStreamSynchronize_ptsz(0);
  for (int i = 0; i < n; i++) expect("per thread", i, h[i], 3.0f * i, 0);
  cudaMemcpy_ptds(h, x, sizeof h, cudaMemcpyDeviceToHost);
  expect("per thread", n, h[9], 9.0f, 0);
}
void calls() {
  cudaStream_t stream;
  int least, greatest, priority;
  unsigned flags;
  cudaDeviceGetStreamPriorityRange(&least, &greatest);
  cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest);
  cudaStreamGetPriority(stream, &priority);
  cudaStreamGetFlags(stream, &flags);
  expect("priority", 0, priority, greatest, 0);
  expect("flags", 0, flags, unsigned(cudaStreamNonBlocking), 0);
  cudaMemPool_t pool;
  cudaDeviceGetDefaultMemPool(&pool, 0);
  unsigned long long keep = ~0ull;
  expect("pool", 0, int(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep)), 0, 0);
  int *a, *b, back[4] = {1, 2, 3, 4};
  cudaMallocFromPoolAsync((void **)&a, 16, pool, stream);
  cudaMallocAsync((void **)&b, 16, stream);
  cudaMemcpyAsync(a, back, 16, cudaMemcpyHostToDevice, stream);
  cudaMemcpyPeer(b, 0, a, 0, 16);
  back[2] = 0;
  cudaMemcpy(back, b, 16, cudaMemcpyDeviceToHost);
  expect("peer", 2, back[2], 3, 0);
  expect("no peer", 0, cudaDeviceEnablePeerAccess(1, 0) != cudaSuccess, true, 0);
  cudaFreeAsync(a, stream);
  cudaPitchedPtr box;
  cudaMalloc3D(&box, make_cudaExtent(20, 3, 4));
  cudaMemset3D(box, 7, make_cudaExtent(20, 3, 4));
  cudaMemset2DAsync(box.ptr, box.pitch, 9, 8, 2, stream);
  char bytes[12][20];
  cudaMemcpy2D(bytes, 20, box.ptr, box.pitch, 20, 12, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 240; i++) expect("box", i, int(bytes[i / 20][i % 20]), i / 20 < 2 && i % 20 < 8 ? 9 : 7, 0);
  char place[32];
  int number = 5;
  size_t room = 0;
  cudaDeviceGetPCIBusId(place, sizeof place, 0);
  cudaDeviceGetByPCIBusId(&number, place);
  expect("device of a place", 0, number, 0, 0);
  expect("no such device", 0, int(cudaGetDeviceProperties(new cudaDeviceProp, 99)), int(cudaErrorInvalidDevice), 0);
  cudaFunction_t function;
  expect("function", 0, int(cudaGetFuncBySymbol(&function, (const void *)step)), 0, 0);
  int fitting = -1;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fitting, step, 128, ~size_t(0));
  expect("none fits", 0, fitting, 0, 0);
  cudaOccupancyAvailableDynamicSMemPerBlock(&room, step, 1, 128);
  expect("room", 0, room >= 48 * 1024, true, 0);
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  int width;
  cudaDeviceGetAttribute(&width, cudaDevAttrMaxTexture2DLayeredWidth, 0);
  expect("layers", 0, width, p.maxTexture2DLayered[0], 0);
  expect("textures", 0, p.maxTexture3D[2] >= 2048 && p.textureAlignment >= 256 && p.surfaceAlignment > 0, true, 0);
  expect("clusters", 0, p.clusterLaunch, int(p.major >= 9), 0);
  cudaGetLastError();
}
int main() {
  const int n = 1000;
  float *x, *y, h[4] = {1, 2, 3, 4}, ms = -1;
  cudaStream_t streams[2];
  cudaEvent_t begin, end;
  cudaMallocManaged(&x, n * 4);
  cudaMalloc(&y, n * 4);
  cudaMemcpyToSymbol(scale, h, sizeof h);
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int i = 0; i < n; i++) x[i] = i;
  cudaMemset(y, 0, n * 4);
  cudaEventRecord(begin);
  for (int k = 0; k < 2; k++) {
    cudaStreamCreate(&streams[k]);
    step<<<8, 128, 0, streams[k]>>>(n, k + 1.0f, x, y);
    cudaStreamSynchronize(streams[k]);
  }
  cudaEventRecord(end);
  cudaEventSynchronize(end);
  cudaEventElapsedTime(&ms, begin, end);
  int c;
  cudaMemcpyFromSymbol(&c, counter, sizeof c);
  expect("counter", 0, c, 2 * 143, 0);
  expect("managed", 0, shared_with_host, 11, 0);
  float *z = host(y, n);
  for (int i = 0; i < n; i++) expect("y", i, z[i], 2.0f * i + float(i) * h[i & 3], 1e-6);
  expect("time", 0, ms > 0, true, 0);
  float tile[4][8], *d;
  size_t pitch;
  cudaMallocPitch(&d, &pitch, sizeof tile[0], 4);
  cudaMemcpy2D(d, pitch, z, 40, sizeof tile[0], 4, cudaMemcpyHostToDevice);
  cudaMemcpy2D(tile, sizeof tile[0], d, pitch, sizeof tile[0], 4, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; i++) expect("tile", i, tile[i / 8][i % 8], z[i / 8 * 10 + i % 8], 0);
  per_thread(x);
  calls();
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  expect("warp", 0, p.warpSize, 32, 0);
  return finish("streams");
}
