// Tensor cores through wmma (half, bfloat16, TF32, bytes, doubles) and PTX (small shapes, 4 bits,
// transposed matrices, sparse ones), and half2 arithmetic.
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
// The form with ordered metadata needs PTX 8.5.
#if CUDART_VERSION >= 12050
#define SPARSE "mma.sp::ordered_metadata"
#else
#define SPARSE "mma.sp"
#endif
// Sparse products of 16 by 32 (16) elements: A has two of each four of a row, the metadata says which.
__global__ void sparse_products(const unsigned *a, const unsigned *b, const unsigned *where, float *wide, unsigned *narrow, float *brain, float *half_deep) {
  int t = threadIdx.x;
  float x[4] = {1, 2, 3, 4}, y[4] = {}, z[4] = {5, 6, 7, 8};
  unsigned h[2] = {0x3c003c00, 0x40004000};
  const unsigned *p = a + t * 4, *q = b + t * 4;
  asm volatile(SPARSE ".sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9,%10,%11},{%0,%1,%2,%3},%12,0x1;"
               : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]) : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]), "r"(where[t]));
  asm volatile(SPARSE ".sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7,%8,%9},{%0,%1},%10,0x0;"
               : "+r"(h[0]), "+r"(h[1]) : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]), "r"(where[32 + t]));
  asm volatile(SPARSE ".sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9,%10,%11},{%0,%1,%2,%3},%12,0x0;"
               : "+f"(y[0]), "+f"(y[1]), "+f"(y[2]), "+f"(y[3]) : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]), "r"(where[32 + t]));
  asm volatile(SPARSE ".sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6,%7},{%0,%1,%2,%3},%8,0x3;"
               : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3]) : "r"(p[0]), "r"(p[1]), "r"(q[0]), "r"(q[1]), "r"(where[64 + t]));
  for (int i = 0; i < 4; i++) wide[4 * t + i] = x[i], brain[4 * t + i] = y[i], half_deep[4 * t + i] = z[i];
  for (int i = 0; i < 2; i++) narrow[2 * t + i] = h[i];
}
// Bits of a small whole number as a half or the upper half of a single; whole products are exact.
unsigned bits_of(float value, bool brain) {
  half h = __float2half(value);
  unsigned single;
  memcpy(&single, &value, 4);
  return brain ? single >> 16 : *(unsigned short *)&h;
}
void sparse() {
  static int full[16][32], right[32][8];
  unsigned a[2][128] = {}, b[2][128] = {}, where[96] = {};
  for (int k = 0; k < 32; k++) for (int n = 0; n < 8; n++) right[k][n] = int(draw(8 * k + n + 5000) % 9) - 4;
  for (int row = 0; row < 16; row++)
    for (int group = 0; group < 8; group++) {
      unsigned pick = draw(8 * row + group + 6000) % 6, low = pick < 3 ? 0 : pick < 5 ? 1 : 2, high = pick < 3 ? pick + 1 : pick < 5 ? pick - 1 : 3;
      for (int i = 0; i < 2; i++) {
        int k = 2 * group + i, value = int(draw(2 * (8 * row + group) + i + 7000) % 9) - 4, lane = row % 8 * 4 + k % 8 / 2, word = 4 * lane + 2 * (k / 8) + row / 8;
        full[row][4 * group + (i ? high : low)] = value;
        for (int brain = 0; brain < 2; brain++) a[brain][word] |= bits_of(value, brain) << 16 * (k % 2);
      }
      unsigned pair = (low | high << 2) << (4 * (group % 4) + 16 * (row / 8));
      where[row % 8 * 4 + 2 + group / 4] |= pair, where[32 + row % 8 * 4 + group / 4] |= pair;
      if (group < 4) where[64 + row % 8 * 4 + 3] |= pair;
    }
  for (int k = 0; k < 32; k++)
    for (int n = 0; n < 8; n++)
      for (int brain = 0; brain < 2; brain++) b[brain][4 * (4 * n + k % 8 / 2) + k / 8] |= bits_of(right[k][n], brain) << 16 * (k % 2);
  unsigned *m = device(where, 96);
  float *x = device<float>(nullptr, 128), *y = device<float>(nullptr, 128), *z = device<float>(nullptr, 128), *other = device<float>(nullptr, 128);
  unsigned *h = device<unsigned>(nullptr, 64), *unused = device<unsigned>(nullptr, 64);
  sparse_products<<<1, 32>>>(device(a[0], 128), device(b[0], 128), m, x, h, other, z);
  sparse_products<<<1, 32>>>(device(a[1], 128), device(b[1], 128), m, other, unused, y, other);
  float *wide = host(x, 128), *brains = host(y, 128), *deep = host(z, 128);
  half *halves = (half *)host(h, 64);
  for (int i = 0; i < 128; i++) {
    int row = i / 16 + i % 4 / 2 * 8, column = i / 4 % 4 * 2 + i % 2, sum = 0, shallow = 0;
    for (int k = 0; k < 32; k++) sum += full[row][k] * right[k][column], shallow += k < 16 ? full[row][k] * right[k][column] : 0;
    expect("sparse", i, wide[i], float(sum + 1 + i % 4), 0), expect("sparse bfloat16", i, brains[i], float(sum), 0);
    expect("sparse to half", i, __half2float(halves[i]), float(sum + (i % 4 < 2 ? 1 : 2)), 0);
    expect("sparse of 16", i, deep[i], float(shallow + 5 + i % 4), 0);
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
  sparse();
  return finish("tensor");
}
