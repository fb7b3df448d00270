// Prefix sums of a CTA, in shared memory and with shuffles.
#include "check.h"
__global__ void shared_scan(const int *x, int *y) {
  __shared__ int s[2][512];
  int t = threadIdx.x, at = blockIdx.x * 512 + t, cur = 0;
  s[0][t] = x[at];
  __syncthreads();
  for (int step = 1; step < 512; step *= 2) {
    s[cur ^ 1][t] = s[cur][t] + (t >= step ? s[cur][t - step] : 0);
    cur ^= 1;
    __syncthreads();
  }
  y[at] = s[cur][t];
}
__global__ void warp_scan(const int *x, int *y) {
  __shared__ int sums[16];
  int t = threadIdx.x, lane = t & 31, at = blockIdx.x * 512 + t, v = x[at];
  for (int step = 1; step < 32; step *= 2) {
    int other = __shfl_up_sync(~0u, v, step);
    if (lane >= step) v += other;
  }
  if (lane == 31) sums[t / 32] = v;
  __syncthreads();
  if (t < 16) {
    int w = sums[t];
    for (int step = 1; step < 16; step *= 2) {
      int other = __shfl_up_sync(0xffff, w, step, 16);
      if (t >= step) w += other;
    }
    sums[t] = w;
  }
  __syncthreads();
  y[at] = v + (t >= 32 ? sums[t / 32 - 1] : 0);
}
int main() {
  const int n = 2048;
  static int a[n];
  for (int i = 0; i < n; i++) a[i] = draw(i) % 100 - 50;
  int *x = device(a, n), *y = device<int>(nullptr, n), *z = device<int>(nullptr, n);
  shared_scan<<<n / 512, 512>>>(x, y);
  warp_scan<<<n / 512, 512>>>(x, z);
  int *p = host(y, n), *q = host(z, n);
  for (int i = 0, sum = 0; i < n; i++) {
    sum = i % 512 ? sum + a[i] : a[i];
    expect("shared", i, p[i], sum, 0);
    expect("warp", i, q[i], sum, 0);
  }
  return finish("scan");
}
