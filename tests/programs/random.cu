// Random numbers of each thread, points in a circle, and a histogram in shared memory.
#include "check.h"
struct Generator {
  unsigned x, y, z, w;
  __host__ __device__ Generator(unsigned seed) : x(seed * 747796405u + 1), y(seed ^ 0x9e3779b9u), z(seed + 77), w(88675123u) { }
  __host__ __device__ unsigned next() {
    unsigned t = x ^ (x << 11);
    x = y, y = z, z = w;
    return w = w ^ (w >> 19) ^ t ^ (t >> 8);
  }
};
__global__ void circle(unsigned *inside, unsigned *bins, int draws) {
  __shared__ unsigned local[64];
  if (threadIdx.x < 64) local[threadIdx.x] = 0;
  __syncthreads();
  Generator g(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned hits = 0;
  for (int i = 0; i < draws; i++) {
    float u = g.next() * 0x1p-32f, v = g.next() * 0x1p-32f;
    hits += u * u + v * v <= 1.0f;
    atomicAdd(local + (g.next() >> 26), 1u);
  }
  hits += __shfl_down_sync(~0u, hits, 16), hits += __shfl_down_sync(~0u, hits, 8), hits += __shfl_down_sync(~0u, hits, 4);
  hits += __shfl_down_sync(~0u, hits, 2), hits += __shfl_down_sync(~0u, hits, 1);
  if (threadIdx.x % 32 == 0) atomicAdd(inside, hits);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(bins + threadIdx.x, local[threadIdx.x]);
}
int main() {
  const int blocks = 4, threads = 96, draws = 20;
  unsigned *hits = device<unsigned>(nullptr, 1), *bins = device<unsigned>(nullptr, 64), wanted = 0, counts[64] = {};
  circle<<<blocks, threads>>>(hits, bins, draws);
  for (int t = 0; t < blocks * threads; t++) {
    Generator g(t);
    for (int i = 0; i < draws; i++) {
      float u = g.next() * 0x1p-32f, v = g.next() * 0x1p-32f;
      wanted += std::fma(u, u, v * v) <= 1.0f;
      counts[g.next() >> 26]++;
    }
  }
  expect("hits", 0, double(host(hits, 1)[0]), double(wanted), 1e-3);
  unsigned *r = host(bins, 64);
  for (int i = 0; i < 64; i++) expect("bin", i, double(r[i]), double(counts[i]), 0);
  return finish("random");
}
