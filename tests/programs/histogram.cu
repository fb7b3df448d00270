// Histograms: atomics in shared memory and in device memory, of every kind.
#include "check.h"
__global__ void histogram(const unsigned *x, int n, int *out) {
  __shared__ int bins[64];
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[x[i] % 64], 1);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
__global__ void kinds(const unsigned *x, int n, int *out, unsigned long long *wide) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicMin(&out[0], int(x[i]));
  atomicMax(&out[1], int(x[i]));
  atomicMin((unsigned *)&out[2], x[i]);
  atomicAnd(&out[3], x[i]);
  atomicOr(&out[4], x[i] & 0xff0f);
  atomicXor(&out[5], x[i]);
  atomicInc((unsigned *)&out[6], 99);
  atomicAdd(wide, (unsigned long long)x[i] << 4);
  int old = out[7], seen;
  do {
    seen = old;
    old = atomicCAS(&out[7], seen, seen * 3 + 1);
  } while (old != seen);
  atomicExch(&out[8], 5);
}
int main() {
  const int n = 3000;
  static unsigned a[n];
  int bins[64] = {}, first[9] = {0x7fffffff, int(0x80000000), -1, -1, 0, 0, 0, 0, 0}, w[9];
  unsigned long long sum = 0;
  for (int i = 0; i < 9; i++) w[i] = first[i];
  for (int i = 0; i < n; i++) {
    a[i] = draw(i);
    bins[a[i] % 64]++;
    w[0] = min(w[0], int(a[i]));
    w[1] = max(w[1], int(a[i]));
    w[2] = min(unsigned(w[2]), a[i]);
    w[3] &= a[i];
    w[4] |= a[i] & 0xff0f;
    w[5] ^= a[i];
    w[6] = unsigned(w[6]) >= 99 ? 0 : w[6] + 1;
    w[7] = unsigned(w[7]) * 3 + 1;
    w[8] = 5;
    sum += (unsigned long long)a[i] << 4;
  }
  unsigned *x = device(a, n);
  int *y = device<int>(nullptr, 64), *z = device(first, 9);
  unsigned long long *u = device<unsigned long long>(nullptr, 1);
  histogram<<<4, 128>>>(x, n, y);
  kinds<<<(n + 95) / 96, 96>>>(x, n, z, u);
  int *h = host(y, 64), *k = host(z, 9);
  for (int i = 0; i < 64; i++) expect("bins", i, h[i], bins[i], 0);
  for (int i = 0; i < 9; i++) expect("kinds", i, k[i], w[i], 0);
  expect("wide", 0, host(u, 1)[0], sum, 0);
  return finish("histogram");
}
