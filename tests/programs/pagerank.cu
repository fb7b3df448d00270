// PageRank over a sparse graph: pushes with atomic sums of singles, pulls by rows, a norm.
#include "check.h"
__global__ void push(const int *starts, const int *edges, const float *rank, float *next, int n) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n) return;
  int first = starts[v], last = starts[v + 1];
  float share = 0.85f * rank[v] / (last - first);
  for (int e = first; e < last; e++) atomicAdd(next + edges[e], share);
}
__global__ void begin(float *next, int n) {
  for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) next[v] = 0.15f / n;
}
__global__ void distance(const float *a, const float *b, float *sum, int n) {
  float part = 0;
  for (int v = threadIdx.x; v < n; v += blockDim.x) part += fabsf(a[v] - b[v]);
  for (int step = 16; step; step /= 2) part += __shfl_xor_sync(~0u, part, step);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, part);
}
int main() {
  const int n = 400;
  static int starts[n + 1], edges[n * 8];
  static float a[n];
  static double now[n], then[n];
  for (int v = 0; v < n; v++) {
    starts[v + 1] = starts[v] + 1 + draw(v) % 7;
    for (int e = starts[v]; e < starts[v + 1]; e++) edges[e] = draw(e * 3 + 1) % n;
    a[v] = now[v] = 1.0 / n;
  }
  int *s = device(starts, n + 1), *g = device(edges, n * 8);
  float *x = device(a, n), *y = device<float>(nullptr, n), *sum = device<float>(nullptr, 1);
  for (int t = 0; t < 6; t++) {
    begin<<<2, 64>>>(y, n);
    push<<<(n + 63) / 64, 64>>>(s, g, x, y, n);
    float *other = x;
    x = y, y = other;
    for (int v = 0; v < n; v++) then[v] = 0.15 / n;
    for (int v = 0; v < n; v++)
      for (int e = starts[v]; e < starts[v + 1]; e++) then[edges[e]] += 0.85 * now[v] / (starts[v + 1] - starts[v]);
    for (int v = 0; v < n; v++) {
      double old = now[v];
      now[v] = then[v], then[v] = old;
    }
  }
  distance<<<1, 128>>>(x, y, sum, n);
  double change = 0;
  float *r = host(x, n);
  for (int v = 0; v < n; v++) expect("rank", v, double(r[v]), now[v], 1e-5), change += std::fabs(now[v] - then[v]);
  expect("change", 0, double(host(sum, 1)[0]), change, 1e-4);
  return finish("pagerank");
}
