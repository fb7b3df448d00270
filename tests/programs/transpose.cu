// Transposes through shared memory: with bank conflicts, with padding, and of vectors of four.
#include "check.h"
const int tile = 32, rows = 8;
template <int pad> __global__ void transpose(const float *in, float *out, int w, int h) {
  __shared__ float part[tile][tile + pad];
  int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  for (int j = 0; j < tile; j += rows)
    if (x < w && y + j < h) part[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * tile + threadIdx.x, y = blockIdx.x * tile + threadIdx.y;
  for (int j = 0; j < tile; j += rows)
    if (x < h && y + j < w) out[(y + j) * h + x] = part[threadIdx.x][threadIdx.y + j];
}
__global__ void vectors(const float4 *in, float4 *out, const short2 *s, char4 *c, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float4 v = in[t];
  out[n - 1 - t] = make_float4(v.w, v.z, v.y, v.x);
  c[t] = make_char4(s[t].x, s[t].y, s[t].x >> 8, s[t].y >> 8);
}
int main() {
  const int w = 100, h = 76, n = w * h / 4;
  static float a[w * h];
  static short2 s[n];
  for (int i = 0; i < w * h; i++) a[i] = real(i);
  for (int i = 0; i < n; i++) s[i] = make_short2(draw(i), draw(i + 31));
  float *x = device(a, w * h), *y = device<float>(nullptr, w * h), *z = device<float>(nullptr, w * h), *v = device<float>(nullptr, w * h);
  char4 *c = device<char4>(nullptr, n);
  dim3 grid((w + tile - 1) / tile, (h + tile - 1) / tile), block(tile, rows);
  transpose<0><<<grid, block>>>(x, y, w, h);
  transpose<1><<<grid, block>>>(x, z, w, h);
  vectors<<<(n + 63) / 64, 64>>>((float4 *)x, (float4 *)v, device(s, n), c, n);
  float *p = host(y, w * h), *q = host(z, w * h), *r = host(v, w * h);
  char4 *b = host(c, n);
  for (int i = 0; i < w * h; i++) {
    expect("conflicts", i, p[i % w * h + i / w], a[i], 0);
    expect("padding", i, q[i % w * h + i / w], a[i], 0);
    expect("vectors", i, r[w * h - 1 - i], a[i], 0);
  }
  for (int i = 0; i < n; i++) expect("bytes", i, int(b[i].x + 1000 * b[i].w), int((signed char)s[i].x + 1000 * (signed char)(s[i].y >> 8)), 0);
  return finish("transpose");
}
