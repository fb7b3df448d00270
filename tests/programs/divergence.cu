// Branches, loops of different lengths, switches, calls, recursion, local arrays.
#include "check.h"
__host__ __device__ int collatz(unsigned n) { int k = 0; while (n != 1 && k < 300) { n = n & 1 ? 3 * n + 1 : n / 2; k++; } return k; }
__host__ __device__ int pick(int v, int n) {
  switch (v % 9) { case 0: return n * 3; case 1: return n / 7; case 2: return n % 5; case 3: return n ^ 77; case 4: return n * n; case 5: return n - 9; case 6: return n << 3; case 7: return -n; }
  return 11;
}
__device__ __host__ __noinline__ int depth(int x, int y) { return x <= 0 ? y : depth(x - 1, y + x) * 3 + 1; }
__host__ __device__ int local(int t, int n) { int l[32]; for (int i = 0; i < 32; i++) l[i] = i * t; for (int i = 0; i < n; i++) l[(i * 7 + t) & 31] += i; int s = 0; for (int i = 0; i < 32; i++) s = s * 31 + l[(i + t) & 31]; return s; }
__global__ void kernel(int *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = collatz(i + 1);
  if (i % 3 == 0) { for (int k = 0; k < i % 17; k++) { v += k; if (v % 11 == 0) break; if (k % 5 == 2) continue; v ^= k; } }
  else if (i % 3 == 1) v += pick(i, v);
  o[i] = v + depth(i % 6, i) + local(i, i % 40);
}
__global__ void generic(int *o, int pick) {
  __shared__ int s[64];
  int l[4] = {int(threadIdx.x), 5, 6, 7};
  s[threadIdx.x] = threadIdx.x * 10;
  __syncthreads();
  int *p = pick == 0 ? &s[threadIdx.x ^ 1] : pick == 1 ? &l[threadIdx.x & 3] : o + threadIdx.x;
  if (threadIdx.x & 1) p = &s[threadIdx.x];
  o[threadIdx.x + 64] = *p;
}
int main() {
  const int n = 1000;
  int *o = device<int>(nullptr, n), *g = device<int>(nullptr, 128);
  kernel<<<(n + 95) / 96, 96>>>(o, n);
  generic<<<1, 64>>>(g, 1);
  int *r = host(o, n), *h = host(g, 128);
  for (int i = 0; i < n; i++) {
    int v = collatz(i + 1);
    if (i % 3 == 0) { for (int k = 0; k < i % 17; k++) { v += k; if (v % 11 == 0) break; if (k % 5 == 2) continue; v ^= k; } }
    else if (i % 3 == 1) v += pick(i, v);
    expect("o", i, r[i], v + depth(i % 6, i) + local(i, i % 40), 0);
  }
  for (int i = 0; i < 64; i++) { int l[4] = {i, 5, 6, 7}; expect("generic", i, h[i + 64], i & 1 ? i * 10 : l[i & 3], 0); }
  return finish("divergence");
}
