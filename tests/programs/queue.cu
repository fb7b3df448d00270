// CTAs that stay and take work from a queue until it is empty; results at places given by atomics.
#include "check.h"
__global__ void work(const unsigned *items, int n, int *next, unsigned *found, int *count) {
  __shared__ int base;
  for (;;) {
    if (threadIdx.x == 0) base = atomicAdd(next, (int)blockDim.x);
    __syncthreads();
    int first = base;
    __syncthreads();
    if (first >= n) return;
    int i = first + threadIdx.x;
    if (i < n) {
      unsigned v = items[i], steps = 0;
      for (; v != 1; steps++) v = v & 1 ? 3 * v + 1 : v / 2;
      if (steps > 40) found[atomicAdd(count, 1)] = items[i];
    }
  }
}
int main() {
  const int n = 1500;
  static unsigned a[n];
  unsigned sum = 0, got = 0;
  int wanted = 0;
  for (int i = 0; i < n; i++) {
    a[i] = draw(i) % 5000 + 1;
    unsigned v = a[i], steps = 0;
    for (; v != 1; steps++) v = v & 1 ? 3 * v + 1 : v / 2;
    if (steps > 40) wanted++, sum += a[i];
  }
  int *next = device<int>(nullptr, 2);
  unsigned *found = device<unsigned>(nullptr, n);
  work<<<6, 64>>>(device(a, n), n, next, found, next + 1);
  int count = host(next, 2)[1];
  unsigned *r = host(found, n);
  for (int i = 0; i < count; i++) got += r[i];
  expect("count", 0, count, wanted, 0);
  expect("sum", 0, got == sum, true, 0);
  return finish("queue");
}
