// Managed variables and memory, mapped and registered memory of the host, symbols.
#include "check.h"
__managed__ int counter = 5;
__managed__ float table[64];
__device__ int hidden[32];
__constant__ float factors[8];
__global__ void use(float *list, const float *mapped, int *registered, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  list[t] = list[t] * factors[t % 8] + mapped[t];
  registered[t] += t;
  if (t < 64) table[t] = 2.0f * t + table[t];
  if (t < 32) hidden[t] += t;
  atomicAdd(&counter, 1);
}
int main() {
  const int n = 500;
  float f[8], *list, *mapped, *seen;
  int h[32];
  for (int i = 0; i < 8; i++) f[i] = i - 3.5f;
  for (int i = 0; i < 64; i++) table[i] = i;
  for (int i = 0; i < 32; i++) h[i] = 100;
  cudaMallocManaged(&list, n * sizeof(float));
  cudaHostAlloc(&mapped, n * sizeof(float), cudaHostAllocMapped);
  cudaHostGetDevicePointer(&seen, mapped, 0);
  int *own = (int *)calloc(n, sizeof(int));
  cudaHostRegister(own, n * sizeof(int), cudaHostRegisterDefault);
  for (int i = 0; i < n; i++) list[i] = i, mapped[i] = 1000 + i;
  cudaMemcpyToSymbol(factors, f, sizeof f);
  cudaMemcpyToSymbol(hidden, h, sizeof h);
  use<<<4, 128>>>(list, seen, own, n);
  cudaDeviceSynchronize();
  for (int i = 0; i < n; i++) {
    expect("managed", i, list[i], i * f[i % 8] + 1000 + i, 1e-6);
    expect("registered", i, own[i], i, 0);
  }
  for (int i = 0; i < 64; i++) expect("table", i, table[i], 3.0f * i, 0);
  expect("counter", 0, counter, 5 + n, 0);
  int back[32];
  cudaMemcpyFromSymbol(back, hidden, sizeof back);
  for (int i = 0; i < 32; i++) expect("symbol", i, back[i], 100 + i, 0);
  cudaHostUnregister(own);
  cudaFreeHost(mapped);
  cudaFree(list);
  return finish("managed");
}
