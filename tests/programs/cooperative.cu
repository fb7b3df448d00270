// A barrier of the whole grid, and CTAs that wait for earlier ones.
#include "check.h"
#include <cooperative_groups.h>
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
int main() {
  const int n = 4096;
  static int a[n];
  int sum = 0, count = n, blocks = 8;
  for (int i = 0; i < n; i++) a[i] = draw(i) % 1000, sum += a[i];
  int *x = device(a, n), *f = device<int>(nullptr, 16), *o = device<int>(nullptr, 17);
  void *arguments[] = {&x, &count};
  cudaLaunchCooperativeKernel((void *)halves, dim3(blocks), dim3(128), arguments, 0, 0);
  chain<<<16, 32>>>(f, o);
  expect("sum", 0, host(x, n)[0], sum, 0);
  int *r = host(o, 17);
  for (int i = 0; i < 16; i++) expect("order", i, r[i], 15 - i, 0);
  return finish("cooperative");
}
