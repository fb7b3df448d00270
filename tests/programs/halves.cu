// Half precision: scalars and pairs, comparisons, conversions, a dot product; numbers of 8 bits.
#include "check.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cstring>
__global__ void scalars(const half *a, const half *b, half *r, int *k, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  half x = a[t], y = b[t], *o = r + t * 6;
  o[0] = x + y, o[1] = x * y, o[2] = __hfma(x, y, x), o[3] = __hmax(x, y), o[4] = __habs(x) - y, o[5] = __hneg(x);
  k[t] = (x < y) | (x == y) << 1 | __hge(y, x) << 2 | __half2int_rz(x * __float2half(100.0f)) << 8;
}
__global__ void dot(const half2 *a, const half2 *b, float *out, int n) {
  half2 sum = __float2half2_rn(0.0f);
  float all = 0;
  for (int i = threadIdx.x; i < n; i += 32) {
    sum = __hfma2(a[i], b[i], sum);
    float2 f = __half22float2(__hmul2(a[i], b[i]));
    all += f.x + f.y;
  }
  for (int step = 16; step; step /= 2) {
    sum = __hadd2(sum, __shfl_xor_sync(~0u, sum, step));
    all += __shfl_xor_sync(~0u, all, step);
  }
  if (threadIdx.x == 0) out[0] = __low2float(sum) + __high2float(sum), out[1] = all;
}
__global__ void compare(const half2 *a, const half2 *b, half2 *r, __nv_bfloat162 *s, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  r[3 * t] = __hgt2(a[t], b[t]), r[3 * t + 1] = __heq2(a[t], b[t]), r[3 * t + 2] = __hleu2(a[t], b[t]);
  float2 x = __half22float2(a[t]), y = __half22float2(b[t]);
  s[t] = __hge2(__float22bfloat162_rn(x), __float22bfloat162_rn(y));
}
void comparisons(const half *x, const half *y, const half *a, const half *b, int n) {
  half2 *r = device<half2>(nullptr, 3 * n);
  __nv_bfloat162 *s = device<__nv_bfloat162>(nullptr, n);
  compare<<<(n + 63) / 64, 64>>>((const half2 *)x, (const half2 *)y, r, s, n);
  half2 *got = host(r, 3 * n);
  __nv_bfloat162 *brains = host(s, n);
  for (int i = 0; i < 2 * n; i++) {
    float p = __half2float(a[i]), q = __half2float(b[i]);
    float wanted[] = {float(p > q), float(p == q), float(!(p > q))};
    for (int j = 0; j < 3; j++) {
      half2 pair = got[3 * (i / 2) + j];
      expect("compared", 3 * i + j, __half2float(i % 2 ? pair.y : pair.x), wanted[j], 0);
    }
    bool above = __bfloat162float(__float2bfloat16(p)) >= __bfloat162float(__float2bfloat16(q));
    expect("brains", i, __bfloat162float(i % 2 ? brains[i / 2].y : brains[i / 2].x), float(above), 0);
  }
}
__global__ void pack(const float4 *x, unsigned *r, float4 *back, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  __nv_fp8x4_e4m3 a(x[t]);
  __nv_fp8x4_e5m2 b(x[t]);
  r[3 * t] = a.__x, r[3 * t + 1] = b.__x;
  __half2 pair = __floats2half2_rn(x[t].x, x[t].y);
  __half2_raw raw;
  memcpy(&raw, &pair, 4);
  r[3 * t + 2] = __nv_cvt_halfraw2_to_fp8x2(raw, __NV_SATFINITE, __NV_E4M3);
  back[2 * t] = (float4)a, back[2 * t + 1] = (float4)b;
}
// The number in the bits of one of 8 bits.
double small(unsigned bits, bool wide) {
  int fraction = wide ? 2 : 3, bias = wide ? 15 : 7, exponent = bits >> fraction & (wide ? 31 : 15);
  double part = double(bits & ((1 << fraction) - 1)) / (1 << fraction);
  double size = exponent ? std::ldexp(1 + part, exponent - bias) : std::ldexp(part, 1 - bias);
  return bits & 128 ? -size : size;
}
// The nearest of them, the one with an even last digit of two.
unsigned nearest(double value, bool wide) {
  unsigned best = 0;
  for (unsigned bits = 0; bits <= (wide ? 0x7bu : 0x7eu); bits++) {
    double now = std::fabs(small(bits, wide) - std::fabs(value)), before = std::fabs(small(best, wide) - std::fabs(value));
    if (now < before || (now == before && bits % 2 == 0)) best = bits;
  }
  return best | (std::signbit(value) ? 128 : 0);
}
void eighths() {
  const int n = 300;
  static float4 x[n];
  float *all = (float *)x;
  for (int i = 0; i < 4 * n; i++) all[i] = i < 126 ? small(i, false) + i % 3 * 0.03125f * small(i, false) : i < 250 ? small(i % 124, true) : real(i) * std::ldexp(1.0f, i % 40 - 20);
  all[1000] = 1e9f, all[1001] = -1e9f, all[1002] = 464, all[1003] = -464.1f;
  unsigned *r = device<unsigned>(nullptr, 3 * n);
  float4 *back = device<float4>(nullptr, 2 * n);
  pack<<<5, 64>>>(device(x, n), r, back, n);
  unsigned *got = host(r, 3 * n);
  float *values = (float *)host(back, 2 * n);
  for (int i = 0; i < 4 * n; i++) {
    int t = i / 4, part = i % 4;
    for (int wide = 0; wide < 2; wide++) {
      unsigned bits = nearest(all[i], wide);
      expect(wide ? "e5m2" : "e4m3", i, got[3 * t + wide] >> 8 * part & 255, bits, 0);
      expect(wide ? "from e5m2" : "from e4m3", i, double(values[8 * t + 4 * wide + part]), small(bits, wide), 0);
    }
    if (part < 2) expect("from half", i, got[3 * t + 2] >> 8 * part & 255, nearest(__half2float(__float2half(all[i])), false), 0);
  }
}
int main() {
  const int n = 256;
  static half a[n], b[n];
  for (int i = 0; i < n; i++) a[i] = __float2half(real(i)), b[i] = i % 9 ? __float2half(real(i + 1111)) : a[i];
  half *x = device(a, n), *y = device(b, n), *z = device<half>(nullptr, n * 6);
  int *k = device<int>(nullptr, n);
  float *d = device<float>(nullptr, 2);
  scalars<<<4, 64>>>(x, y, z, k, n);
  dot<<<1, 32>>>((half2 *)x, (half2 *)y, d, n / 2);
  half *r = host(z, n * 6);
  int *flags = host(k, n);
  double sum = 0;
  for (int i = 0; i < n; i++) {
    float p = __half2float(a[i]), q = __half2float(b[i]);
    float wanted[] = {p + q, p * q, p * q + p, p > q ? p : q, std::fabs(p) - q, -p};
    for (int j = 0; j < 6; j++) expect("scalar", i * 6 + j, __half2float(r[i * 6 + j]), __half2float(__float2half(wanted[j])), 0);
    expect("flags", i, flags[i], (p < q) | (p == q) << 1 | (q >= p) << 2 | int(__half2float(__float2half(p * 100))) << 8, 0);
    sum += double(p) * q;
  }
  float *s = host(d, 2);
  expect("dot", 0, double(s[0]), sum, 0.05), expect("dot", 1, double(s[1]), sum, 0.01);
  comparisons(x, y, a, b, n / 2);
  eighths();
  return finish("halves");
}
