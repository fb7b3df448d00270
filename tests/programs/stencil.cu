// A five-point stencil with a halo in shared memory, several steps.
#include "check.h"
#include <utility>
__global__ void stencil(const float *in, float *out, int w, int h) {
  __shared__ float tile[18][34];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  auto at = [&](int x, int y) { return in[min(max(y, 0), h - 1) * w + min(max(x, 0), w - 1)]; };
  tile[ty][tx] = at(x, y);
  if (threadIdx.x == 0) tile[ty][0] = at(x - 1, y);
  if (threadIdx.x == 31) tile[ty][33] = at(x + 1, y);
  if (threadIdx.y == 0) tile[0][tx] = at(x, y - 1);
  if (threadIdx.y == 15) tile[17][tx] = at(x, y + 1);
  __syncthreads();
  if (x < w && y < h) out[y * w + x] = 0.5f * tile[ty][tx] + 0.125f * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx]);
}
int main() {
  const int w = 70, h = 45;
  static float a[w * h], b[w * h];
  for (int i = 0; i < w * h; i++) a[i] = real(i);
  float *x = device(a, w * h), *y = device<float>(nullptr, w * h);
  for (int k = 0; k < 3; k++) {
    stencil<<<dim3((w + 31) / 32, (h + 15) / 16), dim3(32, 16)>>>(x, y, w, h);
    std::swap(x, y);
    for (int i = 0; i < w * h; i++) {
      auto at = [&](int x, int y) { return a[min(max(y, 0), h - 1) * w + min(max(x, 0), w - 1)]; };
      int c = i % w, r = i / w;
      b[i] = 0.5f * a[i] + 0.125f * (at(c - 1, r) + at(c + 1, r) + at(c, r - 1) + at(c, r + 1));
    }
    for (int i = 0; i < w * h; i++) a[i] = b[i];
  }
  float *r = host(x, w * h);
  for (int i = 0; i < w * h; i++) expect("out", i, r[i], a[i], 1e-6);
  return finish("stencil");
}
