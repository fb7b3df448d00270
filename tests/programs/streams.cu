// Streams, events, managed memory, constants, variables, copies in two dimensions.
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
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  expect("warp", 0, p.warpSize, 32, 0);
  return finish("streams");
}
