// A radix sort of four bits a pass: histograms, a scan of them, and a stable scatter.
#include "check.h"
const int threads = 128, digits = 16;
__global__ void count(const unsigned *keys, int *counts, int shift, int n) {
  __shared__ int local[digits];
  if (threadIdx.x < digits) local[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * threads + threadIdx.x;
  if (i < n) atomicAdd(local + (keys[i] >> shift & 15), 1);
  __syncthreads();
  if (threadIdx.x < digits) counts[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}
__global__ void scan(int *counts, int n) {
  extern __shared__ int sums[];
  int t = threadIdx.x, each = (n + blockDim.x - 1) / blockDim.x, sum = 0;
  for (int i = t * each; i < (t + 1) * each && i < n; i++) sum += counts[i];
  sums[t] = sum;
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    int other = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }
  int before = sums[t] - sum;
  for (int i = t * each; i < (t + 1) * each && i < n; i++) {
    int old = counts[i];
    counts[i] = before;
    before += old;
  }
}
__global__ void scatter(const unsigned *keys, unsigned *out, const int *places, int shift, int n) {
  __shared__ int warps[threads / 32][digits];
  int i = blockIdx.x * threads + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned key = i < n ? keys[i] : 0, digit = i < n ? key >> shift & 15 : digits;
  for (int j = threadIdx.x; j < threads / 32 * digits; j += threads) warps[j / digits][j % digits] = 0;
  __syncthreads();
  unsigned same = __match_any_sync(~0u, digit), before = __popc(same & ((1u << lane) - 1));
  if (digit < digits && before == 0) warps[warp][digit] = __popc(same);
  __syncthreads();
  if (digit == digits) return;
  int place = places[digit * gridDim.x + blockIdx.x] + before;
  for (int w = 0; w < warp; w++) place += warps[w][digit];
  out[place] = key;
}
int main() {
  const int n = 2500, blocks = (n + threads - 1) / threads;
  static unsigned a[n];
  unsigned total = 0, sum = 0;
  for (int i = 0; i < n; i++) a[i] = draw(i), total += a[i];
  unsigned *x = device(a, n), *y = device<unsigned>(nullptr, n);
  int *c = device<int>(nullptr, blocks * digits);
  for (int shift = 0; shift < 32; shift += 4) {
    count<<<blocks, threads>>>(x, c, shift, n);
    scan<<<1, 64, 64 * sizeof(int)>>>(c, blocks * digits);
    scatter<<<blocks, threads>>>(x, y, c, shift, n);
    unsigned *other = x;
    x = y, y = other;
  }
  unsigned *r = host(x, n);
  for (int i = 0; i < n; i++) {
    sum += r[i];
    if (i) expect("order", i, r[i - 1] <= r[i], true, 0);
  }
  expect("total", 0, sum == total, true, 0);
  return finish("radix");
}
