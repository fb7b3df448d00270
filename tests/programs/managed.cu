// Managed variables and memory, mapped and registered memory of the host, symbols; the limits of
// the device and the errors beyond them.
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
extern __shared__ int dynamic[];
__global__ void fill(int *list) {
  dynamic[threadIdx.x] = threadIdx.x;
  if (list) list[threadIdx.x] = dynamic[threadIdx.x] + 1;
}
__global__ void __launch_bounds__(128) bounded(int *list) { list[threadIdx.x] = 1; }
void limits() {
  cudaDeviceProp device_of;
  cudaGetDeviceProperties(&device_of, 0);
  size_t most = device_of.sharedMemPerBlockOptin, room, all;
  int *list, *none;
  auto is = [](const char *what, cudaError_t wanted) { expect(what, 0, int(cudaGetLastError()), int(wanted), 0); };
  cudaMemGetInfo(&room, &all);
  expect("memory", 0, room <= all && all == device_of.totalGlobalMem, true, 0);
  cudaMalloc(&none, all + 1);
  is("too much memory", cudaErrorMemoryAllocation);
  cudaMalloc(&list, 4096);
  fill<<<1, 2048, 8192>>>(list);
  is("2048 threads", cudaErrorInvalidConfiguration);
  fill<<<dim3(1, 65536), 32, 128>>>(nullptr);
  is("65536 CTAs in y", cudaErrorInvalidConfiguration);
  fill<<<1, dim3(1, 1, 65), 1024>>>(nullptr);
  is("65 threads in z", cudaErrorInvalidConfiguration);
  fill<<<1, 32, 48 * 1024 + 4>>>(list);
  is("more than 48 KiB", cudaErrorInvalidValue);
  cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, int(most) + 4);
  is("more than there is", cudaErrorInvalidValue);
  cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, int(most));
  fill<<<1, 32, most>>>(list);
  is("all of it", cudaSuccess);
  expect("filled", 0, *host(list + 31, 1), 32, 0);
  cudaFuncAttributes of;
  cudaFuncGetAttributes(&of, fill);
  expect("dynamic", 0, of.maxDynamicSharedSizeBytes, int(most), 0);
  cudaFuncGetAttributes(&of, bounded);
  expect("bound", 0, of.maxThreadsPerBlock, 128, 0);
  bounded<<<1, 128>>>(list);
  is("as many as bounded", cudaSuccess);
  bounded<<<1, 160>>>(list);
  expect("more than bounded", 0, cudaGetLastError() != cudaSuccess, true, 0);
  cudaFree(list);
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
  cudaMemcpy(list, mapped, n * sizeof(float), cudaMemcpyHostToDevice);
  expect("from pinned", n - 1, list[n - 1], mapped[n - 1], 0);
  cudaPointerAttributes kinds[2];
  cudaPointerGetAttributes(&kinds[0], mapped);
  cudaPointerGetAttributes(&kinds[1], list);
  expect("pinned", 0, int(kinds[0].type), int(cudaMemoryTypeHost), 0);
  expect("managed", 0, int(kinds[1].type), int(cudaMemoryTypeManaged), 0);
  cudaFreeHost(mapped);
  cudaFree(list);
  limits();
  return finish("managed");
}
