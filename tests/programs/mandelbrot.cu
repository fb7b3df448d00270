// A fractal: loops that end at another time in each lane.
#include "check.h"
template <typename T> __host__ __device__ int steps(T u, T v, int most) {
  T x = 0, y = 0;
  int n = 0;
  for (; n < most; n++) {
    T p = x * x, q = y * y;
    if (p + q > 4) break;
    y = 2 * x * y + v;
    x = p - q + u;
  }
  return n;
}
template <typename T> __global__ void draw_set(unsigned short *out, int w, int h, int most) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) out[y * w + x] = steps<T>(T(3) * x / w - 2, T(2) * y / h - 1, most);
}
int main() {
  const int w = 64, h = 48, most = 100;
  unsigned short *a = device<unsigned short>(nullptr, w * h), *b = device<unsigned short>(nullptr, w * h);
  draw_set<float><<<dim3(4, 6), dim3(16, 8)>>>(a, w, h, most);
  draw_set<double><<<dim3(2, 12), dim3(32, 4)>>>(b, w, h, most);
  unsigned short *p = host(a, w * h), *q = host(b, w * h);
  int same[2] = {};
  for (int i = 0; i < w * h; i++) {
    same[0] += p[i] == steps<float>(3.0f * (i % w) / w - 2, 2.0f * (i / w) / h - 1, most);
    same[1] += q[i] == steps<double>(3.0 * (i % w) / w - 2, 2.0 * (i / w) / h - 1, most);
  }
  // A fused multiply-add rounds otherwise, so that a few points near the edge differ.
  expect("singles", 0, same[0] >= w * h * 98 / 100, true, 0);
  expect("doubles", 0, same[1] >= w * h * 98 / 100, true, 0);
  return finish("mandelbrot");
}
