// Half precision: scalars and pairs, comparisons, conversions, a dot product.
#include "check.h"
#include <cuda_fp16.h>
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
  return finish("halves");
}
