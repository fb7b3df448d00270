// Bitonic sort in shared memory, and a radix step with ballots.
#include "check.h"
#include <algorithm>
__global__ void bitonic(unsigned *x) {
  __shared__ unsigned s[1024];
  int t = threadIdx.x;
  s[t] = x[t];
  s[t + 512] = x[t + 512];
  for (int size = 2; size <= 1024; size *= 2)
    for (int step = size / 2; step; step /= 2) {
      __syncthreads();
      int i = 2 * t - (t & (step - 1)), j = i + step;
      bool up = (i & size) == 0;
      if ((s[i] > s[j]) == up) { unsigned k = s[i]; s[i] = s[j]; s[j] = k; }
    }
  __syncthreads();
  x[t] = s[t];
  x[t + 512] = s[t + 512];
}
__global__ void split(const unsigned *x, unsigned *y) {
  __shared__ int counts[9];
  int t = threadIdx.x, lane = t & 31, bit = x[t] & 1;
  unsigned ones = __ballot_sync(~0u, bit);
  if (lane == 0) counts[t / 32] = __popc(~ones);
  __syncthreads();
  if (t == 0) { int sum = 0; for (int w = 0; w < 8; w++) { int c = counts[w]; counts[w] = sum; sum += c; } counts[8] = sum; }
  __syncthreads();
  unsigned below = (1u << lane) - 1;
  int zeros = counts[t / 32] + __popc(~ones & below);
  y[bit ? counts[8] + t - zeros : zeros] = x[t];
}
int main() {
  static unsigned a[1024];
  for (int i = 0; i < 1024; i++) a[i] = draw(i);
  unsigned *x = device(a, 1024), *y = device(a, 256), *z = device<unsigned>(nullptr, 256);
  bitonic<<<1, 512>>>(x);
  split<<<1, 256>>>(y, z);
  unsigned *b = host(x, 1024), *c = host(z, 256);
  std::stable_partition(a, a + 256, [](unsigned v) { return !(v & 1); });
  for (int i = 0; i < 256; i++) expect("split", i, c[i], a[i], 0);
  std::sort(a, a + 1024);
  for (int i = 0; i < 1024; i++) expect("sorted", i, b[i], a[i], 0);
  return finish("sort");
}
