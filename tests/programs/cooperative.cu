// A barrier of the whole grid, CTAs that wait for earlier ones, and barrier objects and pipelines
// of CUDA's C++ library.
#include "check.h"
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
__global__ void halves(int *x, int n) {
  cg::grid_group grid = cg::this_grid();
  for (int step = n / 2; step; step /= 2) {
    for (int i = grid.thread_rank(); i < step; i += grid.size()) x[i] += x[i + step];
    grid.sync();
  }
}
__global__ void chain(volatile int *flags, int *order) {
  if (threadIdx.x == 0) {
    int last = gridDim.x - 1 - blockIdx.x;
    while (last != gridDim.x - 1 && flags[last + 1] == 0) { }
    order[last] = atomicAdd(order + gridDim.x, 1);
    __threadfence();
    flags[last] = 1;
  }
}
typedef cuda::barrier<cuda::thread_scope_block> Barrier;
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void objects(const int *in, int *out) {
  __shared__ Barrier bar, fewer;
  __shared__ int buffer[128], copied[128];
  cg::thread_block block = cg::this_thread_block();
  int t = threadIdx.x, sum = 0;
  if (t == 0) init(&bar, 128), init(&fewer, 128);
  block.sync();
  for (int i = 0; i < 3; i++) {
    buffer[t] = t * (i + 1);
    bar.arrive_and_wait();
    sum += buffer[127 - t];
    bar.wait(bar.arrive());
  }
  cuda::memcpy_async(block, copied, in, sizeof(int) * 128, bar);
  bar.arrive_and_wait();
  sum += copied[127 - t];
  // A half leaves; the other one goes on alone.
  if (t >= 64) fewer.arrive_and_drop();
  else
    for (int i = 0; i < 3; i++) {
      fewer.arrive_and_wait();
      buffer[t] = sum + i;
      fewer.arrive_and_wait();
      sum += buffer[63 - t] - (i == 0 && t == 0);
    }
  out[t] = sum;
}
__global__ void pipeline(const int *in, int *out, int tiles) {
  __shared__ int buffer[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  cg::thread_block block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int next = 0, tile = 0; tile < tiles; tile++) {
    for (; next < tiles && next < tile + 2; next++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, buffer[next % 2], in + 64 * next, sizeof(int) * 64, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += buffer[tile % 2][63 - threadIdx.x] * (tile + 1);
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
void library(const int *a, const int *x) {
  int *out = device<int>(nullptr, 192);
  objects<<<1, 128>>>(x, out);
  pipeline<<<1, 64>>>(x, out + 128, 7);
  int *r = host(out, 192), wanted[128];
  for (int t = 0; t < 128; t++) wanted[t] = (127 - t) * 6 + a[127 - t];
  for (int i = 0; i < 3; i++) {
    int before[64];
    for (int t = 0; t < 64; t++) before[t] = wanted[t] + i;
    for (int t = 0; t < 64; t++) wanted[t] += before[63 - t] - (i == 0 && t == 0);
  }
  for (int t = 0; t < 128; t++) expect("object", t, r[t], wanted[t], 0);
  for (int t = 0; t < 64; t++) {
    int sum = 0;
    for (int tile = 0; tile < 7; tile++) sum += a[64 * tile + 63 - t] * (tile + 1);
    expect("pipeline", t, r[128 + t], sum, 0);
  }
}
int main() {
  const int n = 4096;
  static int a[n];
  int sum = 0, count = n, blocks = 8;
  for (int i = 0; i < n; i++) a[i] = draw(i) % 1000, sum += a[i];
  int *x = device(a, n), *f = device<int>(nullptr, 16), *o = device<int>(nullptr, 17);
  void *arguments[] = {&x, &count};
  library(a, x);
  cudaLaunchCooperativeKernel((void *)halves, dim3(blocks), dim3(128), arguments, 0, 0);
  chain<<<16, 32>>>(f, o);
  expect("sum", 0, host(x, n)[0], sum, 0);
  int *r = host(o, 17);
  for (int i = 0; i < 16; i++) expect("order", i, r[i], 15 - i, 0);
  return finish("cooperative");
}
