// Forces between all pairs of bodies, tile by tile, with the reciprocal root.
#include "check.h"
const int threads = 64;
__global__ void forces(const float4 *bodies, float4 *out, int n) {
  extern __shared__ float4 tile[];
  int i = blockIdx.x * threads + threadIdx.x;
  float4 me = bodies[min(i, n - 1)], sum = make_float4(0, 0, 0, 0);
  for (int first = 0; first < n; first += threads) {
    int j = first + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < threads; k++) {
      float4 other = tile[k];
      float x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
      float inverse = rsqrtf(x * x + y * y + z * z + 0.01f), pull = other.w * inverse * inverse * inverse;
      sum.x += x * pull, sum.y += y * pull, sum.z += z * pull;
    }
    __syncthreads();
  }
  if (i < n) out[i] = sum;
}
int main() {
  const int n = 300;
  static float4 a[n];
  for (int i = 0; i < n; i++) a[i] = make_float4(real(3 * i), real(3 * i + 1), real(3 * i + 2), 1 + real(i + 5000) * 0.5f);
  float4 *x = device(a, n), *y = device<float4>(nullptr, n);
  forces<<<(n + threads - 1) / threads, threads, threads * sizeof(float4)>>>(x, y, n);
  float4 *r = host(y, n);
  for (int i = 0; i < n; i++) {
    double u = 0, v = 0, w = 0;
    for (int j = 0; j < n; j++) {
      double x = a[j].x - a[i].x, y = a[j].y - a[i].y, z = a[j].z - a[i].z, d = x * x + y * y + z * z + 0.01;
      double pull = a[j].w / (d * std::sqrt(d));
      u += x * pull, v += y * pull, w += z * pull;
    }
    expect("x", i, double(r[i].x), u, 1e-3), expect("y", i, double(r[i].y), v, 1e-3), expect("z", i, double(r[i].z), w, 1e-3);
  }
  return finish("bodies");
}
