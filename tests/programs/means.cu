// Clusters of points by k-means: distances, the least of them, sums with atomics.
#include "check.h"
const int clusters = 5, dimensions = 3;
__global__ void assign(const float *points, const float *centres, int *of, float *sums, int *counts, int n) {
  __shared__ float part[clusters * dimensions];
  __shared__ int count[clusters];
  for (int i = threadIdx.x; i < clusters * dimensions; i += blockDim.x) part[i] = 0;
  if (threadIdx.x < clusters) count[threadIdx.x] = 0;
  __syncthreads();
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < n) {
    float least = INFINITY;
    int best = 0;
    for (int c = 0; c < clusters; c++) {
      float d = 0;
      for (int k = 0; k < dimensions; k++) {
        float x = points[k * n + p] - __ldg(centres + c * dimensions + k);
        d += x * x;
      }
      if (d < least) least = d, best = c;
    }
    of[p] = best;
    atomicAdd(count + best, 1);
    for (int k = 0; k < dimensions; k++) atomicAdd(part + best * dimensions + k, points[k * n + p]);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < clusters * dimensions; i += blockDim.x) atomicAdd(sums + i, part[i]);
  if (threadIdx.x < clusters) atomicAdd(counts + threadIdx.x, count[threadIdx.x]);
}
int main() {
  const int n = 700, size = clusters * dimensions;
  static float points[n * dimensions], centres[size];
  for (int i = 0; i < n * dimensions; i++) points[i] = real(i) + (i % n) % clusters * 3;
  for (int i = 0; i < size; i++) centres[i] = i / dimensions * 2.7f + 0.1f;
  float *x = device(points, n * dimensions);
  int *of = device<int>(nullptr, n);
  for (int t = 0; t < 4; t++) {
    float *sums = device<float>(nullptr, size);
    int *counts = device<int>(nullptr, clusters);
    assign<<<(n + 127) / 128, 128>>>(x, device(centres, size), of, sums, counts, n);
    float *s = host(sums, size);
    int *c = host(counts, clusters), *o = host(of, n), total = 0;
    double wanted[size] = {};
    for (int p = 0; p < n; p++)
      for (int k = 0; k < dimensions; k++) wanted[o[p] * dimensions + k] += points[k * n + p];
    for (int i = 0; i < size; i++) expect("sum", i, double(s[i]), wanted[i], 1e-4);
    for (int i = 0; i < clusters; i++) total += c[i];
    expect("count", t, total, n, 0);
    for (int i = 0; i < size; i++) centres[i] = c[i / dimensions] ? s[i] / c[i / dimensions] : centres[i];
  }
  int *o = host(of, n);
  for (int p = 0; p < n; p++) expect("cluster", p, o[p], p % clusters, 0);
  return finish("means");
}
