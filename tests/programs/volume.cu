// A stencil of seven points in three dimensions, plane by plane with a tile in shared memory.
#include "check.h"
const int nx = 40, ny = 33, nz = 12, bx = 16, by = 8;
__host__ __device__ int at(int x, int y, int z) { return (z * ny + y) * nx + x; }
__global__ void step(const float *in, float *out) {
  __shared__ float plane[by + 2][bx + 2];
  int x = blockIdx.x * bx + threadIdx.x, y = blockIdx.y * by + threadIdx.y;
  int i = threadIdx.x + 1, j = threadIdx.y + 1;
  bool inside = x < nx && y < ny;
  float below = 0, here = inside ? in[at(x, y, 0)] : 0;
  for (int z = 0; z < nz; z++) {
    float above = inside && z + 1 < nz ? in[at(x, y, z + 1)] : 0;
    __syncthreads();
    plane[j][i] = here;
    if (threadIdx.x == 0) plane[j][0] = inside && x > 0 ? in[at(x - 1, y, z)] : 0;
    if (threadIdx.x == bx - 1) plane[j][bx + 1] = x + 1 < nx && y < ny ? in[at(x + 1, y, z)] : 0;
    if (threadIdx.y == 0) plane[0][i] = inside && y > 0 ? in[at(x, y - 1, z)] : 0;
    if (threadIdx.y == by - 1) plane[by + 1][i] = x < nx && y + 1 < ny ? in[at(x, y + 1, z)] : 0;
    __syncthreads();
    if (inside) out[at(x, y, z)] = 0.4f * here + 0.1f * (plane[j][i - 1] + plane[j][i + 1] + plane[j - 1][i] + plane[j + 1][i] + below + above);
    below = here, here = above;
  }
}
int main() {
  const int n = nx * ny * nz;
  static float a[n], b[n];
  for (int i = 0; i < n; i++) a[i] = real(i);
  float *x = device(a, n), *y = device<float>(nullptr, n);
  for (int t = 0; t < 2; t++) {
    step<<<dim3((nx + bx - 1) / bx, (ny + by - 1) / by), dim3(bx, by)>>>(x, y);
    float *other = x;
    x = y, y = other;
    for (int z = 0; z < nz; z++)
      for (int v = 0; v < ny; v++)
        for (int u = 0; u < nx; u++) {
          auto get = [&](int p, int q, int r) { return p < 0 || q < 0 || r < 0 || p >= nx || q >= ny || r >= nz ? 0.0f : a[at(p, q, r)]; };
          b[at(u, v, z)] = 0.4f * a[at(u, v, z)] + 0.1f * (get(u - 1, v, z) + get(u + 1, v, z) + get(u, v - 1, z) + get(u, v + 1, z) + get(u, v, z - 1) + get(u, v, z + 1));
        }
    for (int i = 0; i < n; i++) a[i] = b[i];
  }
  float *c = host(x, n);
  for (int i = 0; i < n; i++) expect("cell", i, c[i], a[i], 1e-5);
  return finish("volume");
}
