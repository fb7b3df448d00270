// Tensor cores through wmma (half, bfloat16, TF32, bytes, doubles) and PTX (small shapes, 4 bits,
// transposed matrices), and half2 arithmetic.
#include "check.h"
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void half_product(const half *a, const half *b, float *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
  wmma::fill_fragment(z, 1.0f);
  wmma::load_matrix_sync(x, a, 16);
  wmma::load_matrix_sync(y, b, 16);
  wmma::mma_sync(z, x, y, z);
  wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}
__global__ void byte_product(const signed char *a, const signed char *b, int *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> z;
  wmma::fill_fragment(z, 3);
  wmma::load_matrix_sync(x, a, 16);
  wmma::load_matrix_sync(y, b, 16);
  wmma::mma_sync(z, x, y, z);
  wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}
__global__ void double_product(const double *a, const double *b, double *c) {
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> z;
  wmma::fill_fragment(z, 0.0);
  wmma::load_matrix_sync(x, a, 4);
  wmma::load_matrix_sync(y, b, 4);
  wmma::mma_sync(z, x, y, z);
  wmma::store_matrix_sync(c, z, 8, wmma::mem_row_major);
}
__global__ void pairs(const half2 *a, const half2 *b, half2 *c) {
  int t = threadIdx.x;
  c[t] = __hfma2(a[t], b[t], __hadd2(a[t], __hmul2(b[t], b[t])));
}
__global__ void small_products(const int *a, const int *b, int *c, int *moved) {
  int t = threadIdx.x, x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%0,%1},{%2},{%3},{%0,%1};"
               : "+r"(x[0]), "+r"(x[1]) : "r"(a[t]), "r"(b[t]));
  asm volatile("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%0,%1},{%2},{%3},{%0,%1};"
               : "+r"(x[2]), "+r"(x[3]) : "r"(a[t]), "r"(b[t]));
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u4.s4.s32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
               : "+r"(x[4]), "+r"(x[5]), "+r"(x[6]), "+r"(x[7]) : "r"(a[t]), "r"(a[t + 32]), "r"(b[t]));
  for (int i = 0; i < 8; i++) c[8 * t + i] = x[i];
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved[t]) : "r"(a[t]));
}
// Element k of a row of 4 registers, each of elements with so many bits.
int element(const int *row, int k, int bits, bool is_signed) {
  unsigned all = unsigned(row[k * bits / 32]) << (32 - bits - k * bits % 32);
  return is_signed ? int(all) >> (32 - bits) : int(all >> (32 - bits));
}
void small_shapes() {
  int a[64], b[32];
  for (int i = 0; i < 64; i++) a[i] = draw(i + 700), b[i % 32] = draw(i + 900);
  int *c = device<int>(nullptr, 256), *moved = device<int>(nullptr, 32);
  small_products<<<1, 32>>>(device(a, 64), device(b, 32), c, moved);
  int *got = host(c, 256), *turned = host(moved, 32);
  for (int t = 0; t < 32; t++) {
    for (int i = 0; i < 8; i++) {
      int row = t / 4, column = t % 4 * 2 + i % 2, sum = i + 1, bits = i < 2 ? 8 : 4;
      const int *left = a + (i >= 6 ? 32 : 0) + 4 * row, *right = b + 4 * column;
      for (int k = 0; k < 128 / bits; k++) sum += element(left, k, bits, i < 4) * element(right, k, bits, i >= 2);
      expect("small", 8 * t + i, got[8 * t + i], sum, 0);
    }
    unsigned low = element(a + 4 * (t % 4 * 2), t / 4, 16, false), high = element(a + 4 * (t % 4 * 2 + 1), t / 4, 16, false);
    expect("moved", t, unsigned(turned[t]), low | high << 16, 0);
  }
}
int main() {
  static half a[256], b[256];
  static signed char p[256], q[256];
  static double u[32], v[32];
  for (int i = 0; i < 256; i++) a[i] = __float2half(real(i)), b[i] = __float2half(real(i + 300)), p[i] = draw(i), q[i] = draw(i + 300);
  for (int i = 0; i < 32; i++) u[i] = real(i), v[i] = real(i + 50);
  half *x = device(a, 256), *y = device(b, 256), *h = device<half>(nullptr, 64);
  signed char *r = device(p, 256), *s = device(q, 256);
  float *z = device<float>(nullptr, 256);
  int *w = device<int>(nullptr, 256);
  double *m = device(u, 32), *n = device(v, 32), *o = device<double>(nullptr, 64);
  half_product<<<1, 32>>>(x, y, z);
  byte_product<<<1, 32>>>(r, s, w);
  double_product<<<1, 32>>>(m, n, o);
  pairs<<<1, 32>>>((half2 *)x, (half2 *)y, (half2 *)h);
  float *f = host(z, 256);
  int *g = host(w, 256);
  double *d = host(o, 64);
  half *k = host(h, 64);
  for (int i = 0; i < 256; i++) {
    double sum = 1;
    int whole = 3;
    for (int j = 0; j < 16; j++) sum += double(__half2float(a[i / 16 * 16 + j])) * __half2float(b[i % 16 * 16 + j]), whole += p[i / 16 * 16 + j] * q[i % 16 * 16 + j];
    expect("half", i, double(f[i]), sum, 1e-5);
    expect("byte", i, g[i], whole, 0);
  }
  for (int i = 0; i < 64; i++) {
    double sum = 0;
    for (int j = 0; j < 4; j++) sum += u[i / 8 * 4 + j] * v[i % 8 * 4 + j];
    expect("double", i, d[i], sum, 1e-14);
    float e = __half2float(a[i]), t = __half2float(b[i]);
    expect("pair", i, __half2float(k[i]), e * t + e + t * t, 3e-3);
  }
  small_shapes();
  return finish("tensor");
}
