// Atomic operations of all types, in global and in shared memory, and loops of compare-and-swap.
#include "check.h"
#include <cuda_fp16.h>
const int slots = 4;
__device__ float smallest(float *place, float value) {
  int *bits = (int *)place, old = *bits, assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) <= value) break;
    old = atomicCAS(bits, assumed, __float_as_int(value));
  } while (old != assumed);
  return __int_as_float(old);
}
__global__ void whole(int *i, unsigned *u, unsigned long long *w, const int *x, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int v = x[t], s = t % slots;
  atomicAdd(i + s, v);
  atomicSub(i + slots + s, v);
  atomicMin(i + 2 * slots + s, v);
  atomicMax(i + 3 * slots + s, v);
  atomicAnd(u + s, unsigned(v) | 0xff);
  atomicOr(u + slots + s, unsigned(v) & 0xff00ff);
  atomicXor(u + 2 * slots + s, unsigned(v));
  atomicInc(u + 3 * slots + s, 6);
  atomicDec(u + 4 * slots + s, 9);
  atomicMin(u + 5 * slots + s, unsigned(v));
  atomicMax(u + 6 * slots + s, unsigned(v));
  atomicAdd(w + s, (unsigned long long)(long long)v << 20);
  atomicMax((long long *)w + slots + s, (long long)v << 24);
  atomicMin((long long *)w + 2 * slots + s, (long long)v << 24);
  atomicXor(w + 3 * slots + s, (unsigned long long)(unsigned)v << 13);
}
__global__ void real_numbers(float *f, double *d, half2 *h, const int *x, int n) {
  __shared__ float part;
  __shared__ unsigned count;
  __shared__ unsigned long long most;
  if (threadIdx.x == 0) part = 0, count = 0, most = 0;
  __syncthreads();
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) {
    atomicAdd(&part, float(x[t] % 64));
    atomicAdd(&count, 1u);
    atomicMax(&most, (unsigned long long)(unsigned)x[t] << 8);
    atomicAdd(d, x[t] % 64 * 0.5);
    atomicAdd(h + t % slots, __floats2half2_rn(1, 0.5f));
    smallest(f + 1, x[t] * 0.25f);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(f, part);
    atomicAdd(f + 2, float(count));
    atomicMax((unsigned long long *)(d + 1), most);
  }
}
__global__ void shared_words(unsigned long long *w, long long *s, double *d, const int *x, int n) {
  // The compiler makes loops of compare-and-swap of these.
  __shared__ unsigned long long sum[2], last;
  __shared__ long long least;
  __shared__ double half;
  if (threadIdx.x == 0) sum[0] = sum[1] = last = 0, least = 1ll << 60, half = 0;
  __syncthreads();
  for (int t = threadIdx.x; t < n; t += blockDim.x) {
    atomicAdd(sum, (1ull << 40) + 3);
    atomicAdd(sum + (t & 1), (unsigned long long)(long long)x[t] << 20);
    atomicMin(&least, (long long)x[t] << 24);
    atomicExch(&last, 5ull << 33);
    s[t] = (long long)atomicAdd(&half, x[t] * 0.5);
  }
  __syncthreads();
  if (threadIdx.x == 0) w[0] = sum[0], w[1] = sum[1], w[2] = last, s[n] = least, *d = half;
}
__global__ void swaps(int *lock, int *total, int *last) {
  // One thread of each CTA at a time is inside.
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1)) { }
    *total = *total + 1;
    __threadfence();
    atomicExch(lock, 0);
    atomicExch(last, 7);
  }
}
int main() {
  const int n = 3000;
  static int x[n], i[4 * slots];
  static unsigned u[7 * slots];
  static unsigned long long w[4 * slots];
  for (int t = 0; t < n; t++) x[t] = int(draw(t) % 100000) - 50000;
  for (int s = 0; s < slots; s++) i[2 * slots + s] = 1 << 30, i[3 * slots + s] = -(1 << 30), u[s] = u[5 * slots + s] = ~0u;
  int *di = device(i, 4 * slots), *dx = device(x, n), *dl = device<int>(nullptr, 3);
  unsigned *du = device(u, 7 * slots);
  unsigned long long *dw = device(w, 4 * slots);
  float *df = device<float>(nullptr, 3);
  double *dd = device<double>(nullptr, 2);
  half2 *dh = device<half2>(nullptr, slots);
  whole<<<(n + 127) / 128, 128>>>(di, du, dw, dx, n);
  real_numbers<<<(n + 127) / 128, 128>>>(df, dd, dh, dx, n);
  swaps<<<9, 64>>>(dl, dl + 1, dl + 2);
  const int part = 300;
  unsigned long long *ds = device<unsigned long long>(nullptr, 3);
  long long *dp = device<long long>(nullptr, part + 1);
  double *dt = device<double>(nullptr, 1);
  shared_words<<<1, 96>>>(ds, dp, dt, dx, part);
  double sum = 0, least = 0;
  unsigned long long most = 0;
  for (int t = 0; t < n; t++) {
    int v = x[t], s = t % slots;
    i[s] += v, i[slots + s] -= v;
    if (v < i[2 * slots + s]) i[2 * slots + s] = v;
    if (v > i[3 * slots + s]) i[3 * slots + s] = v;
    u[s] &= unsigned(v) | 0xff, u[slots + s] |= unsigned(v) & 0xff00ff, u[2 * slots + s] ^= unsigned(v);
    u[3 * slots + s] = u[3 * slots + s] >= 6 ? 0 : u[3 * slots + s] + 1;
    u[4 * slots + s] = u[4 * slots + s] == 0 || u[4 * slots + s] > 9 ? 9 : u[4 * slots + s] - 1;
    if (unsigned(v) < u[5 * slots + s]) u[5 * slots + s] = v;
    if (unsigned(v) > u[6 * slots + s]) u[6 * slots + s] = v;
    long long far = (long long)v * (1 << 24);
    w[s] += (unsigned long long)(long long)v << 20, w[3 * slots + s] ^= (unsigned long long)(unsigned)v << 13;
    if (far > (long long)w[slots + s]) w[slots + s] = far;
    if (far < (long long)w[2 * slots + s]) w[2 * slots + s] = far;
    sum += v % 64;
    if (v * 0.25 < least) least = v * 0.25;
    if ((unsigned long long)(unsigned)v << 8 > most) most = (unsigned long long)(unsigned)v << 8;
  }
  int *gi = host(di, 4 * slots), *gl = host(dl, 3);
  unsigned *gu = host(du, 7 * slots);
  unsigned long long *gw = host(dw, 4 * slots);
  for (int s = 0; s < 4 * slots; s++) expect("whole", s, gi[s], i[s], 0), expect("wide", s, double(gw[s] ^ w[s]), 0.0, 0);
  for (int s = 0; s < 7 * slots; s++) expect("bits", s, double(gu[s]), double(u[s]), 0);
  float *gf = host(df, 3);
  double *gd = host(dd, 2);
  half2 *gh = host(dh, slots);
  expect("sum", 0, gf[0], float(sum), 0), expect("least", 0, gf[1], float(least), 0), expect("count", 0, gf[2], float(n), 0);
  expect("double", 0, gd[0], sum / 2, 0);
  unsigned long long *bits = (unsigned long long *)gd;
  expect("most", 0, double(bits[1]), double(most), 0);
  for (int s = 0; s < slots; s++) expect("half", s, __low2float(gh[s]) - 2 * __high2float(gh[s]), 0.0f, 0), expect("half", s, __low2float(gh[s]), n / float(slots), 0);
  expect("lock", 0, gl[0], 0, 0), expect("lock", 1, gl[1], 9, 0), expect("lock", 2, gl[2], 7, 0);
  unsigned long long sums[3] = {((1ull << 40) + 3) * part, 0, 5ull << 33}, *gs = host(ds, 3);
  long long far = 1ll << 60;
  double total = 0;
  for (int t = 0; t < part; t++) {
    sums[t & 1] += (unsigned long long)(long long)x[t] << 20, total += x[t] * 0.5;
    if (x[t] * (1ll << 24) < far) far = x[t] * (1ll << 24);
  }
  for (int k = 0; k < 3; k++) expect("shared", k, double(gs[k] ^ sums[k]), 0.0, 0);
  expect("shared", 3, double(host(dp, part + 1)[part] - far), 0.0, 0), expect("shared", 4, *host(dt, 1), total, 0);
  return finish("atomics");
}
