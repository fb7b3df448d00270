// bfloat16 and TF32: tensor cores, arithmetic of pairs, and conversions.
#include "check.h"
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;
typedef __nv_bfloat16 brain;
__global__ void brains(const brain *a, const brain *b, float *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, brain, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, brain, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
  wmma::fill_fragment(z, 0.0f);
  wmma::load_matrix_sync(x, a, 16);
  wmma::load_matrix_sync(y, b, 16);
  wmma::mma_sync(z, x, y, z);
  wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}
__global__ void singles(const float *a, const float *b, float *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> z;
  wmma::fill_fragment(z, 0.0f);
  wmma::load_matrix_sync(x, a, 8);
  wmma::load_matrix_sync(y, b, 8);
  for (int i = 0; i < x.num_elements; i++) x.x[i] = wmma::__float_to_tf32(x.x[i]);
  for (int i = 0; i < y.num_elements; i++) y.x[i] = wmma::__float_to_tf32(y.x[i]);
  wmma::mma_sync(z, x, y, z);
  wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}
__global__ void pairs(const float2 *f, __nv_bfloat162 *out, float *single, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  __nv_bfloat162 p = __float22bfloat162_rn(f[t]), q = __float2bfloat162_rn(1.5f);
  out[t] = __hfma2(p, q, __hadd2(p, q));
  brain m = __hmax(__low2bfloat16(p), __high2bfloat16(p));
  single[t] = __bfloat162float(m) + (__hlt(__low2bfloat16(p), __high2bfloat16(p)) ? 100.0f : 0.0f);
}
int main() {
  const int n = 200;
  static brain a[256], b[256];
  static float u[128], v[128];
  static float2 f[n];
  for (int i = 0; i < 256; i++) a[i] = __float2bfloat16(real(i)), b[i] = __float2bfloat16(real(i + 500));
  for (int i = 0; i < 128; i++) u[i] = int(draw(i) % 512) / 256.0f, v[i] = int(draw(i + 900) % 512) / 128.0f;
  for (int i = 0; i < n; i++) f[i] = make_float2(real(i), real(i + 4000));
  float *z = device<float>(nullptr, 256), *w = device<float>(nullptr, 256), *s = device<float>(nullptr, n);
  __nv_bfloat162 *o = device<__nv_bfloat162>(nullptr, n);
  brains<<<1, 32>>>(device(a, 256), device(b, 256), z);
  singles<<<1, 32>>>(device(u, 128), device(v, 128), w);
  pairs<<<2, 128>>>(device(f, n), o, s, n);
  float *g = host(z, 256), *h = host(w, 256), *single = host(s, n);
  __nv_bfloat162 *got = host(o, n);
  for (int i = 0; i < 256; i++) {
    double sum = 0, exact = 0;
    for (int k = 0; k < 16; k++) sum += double(__bfloat162float(a[i / 16 * 16 + k])) * __bfloat162float(b[i % 16 * 16 + k]);
    for (int k = 0; k < 8; k++) exact += double(u[i / 16 * 8 + k]) * v[i % 16 * 8 + k];
    expect("bfloat16", i, double(g[i]), sum, 1e-5);
    expect("tf32", i, double(h[i]), exact, 1e-6);
  }
  for (int i = 0; i < n; i++) {
    float x = __bfloat162float(__float2bfloat16(f[i].x)), y = __bfloat162float(__float2bfloat16(f[i].y));
    expect("pair", i, __bfloat162float(got[i].x), x * 1.5f + (x + 1.5f), 0.02);
    expect("pair", i, __bfloat162float(got[i].y), y * 1.5f + (y + 1.5f), 0.02);
    expect("single", i, single[i], (x > y ? x : y) + (x < y ? 100.0f : 0.0f), 0);
  }
  return finish("brain");
}
