// Breadth-first search, a launch per level, a queue with atomics.
#include "check.h"
__global__ void level(const int *rows, const int *edges, int *depth, const int *queue, int count, int *next, int *next_count, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int node = queue[i];
  for (int k = rows[node]; k < rows[node + 1]; k++)
    if (atomicCAS(&depth[edges[k]], -1, d) == -1) next[atomicAdd(next_count, 1)] = edges[k];
}
int main() {
  const int n = 2000, m = 4;
  static int rows[n + 1], edges[n * m], depth[n], wanted[n], queue[n];
  for (int i = 0; i < n; i++) {
    rows[i + 1] = (i + 1) * m;
    for (int k = 0; k < m; k++) edges[i * m + k] = draw(i * m + k) % n;
    depth[i] = wanted[i] = i ? -1 : 0;
  }
  int tail = 1;
  for (int head = 0; head < tail; head++)
    for (int k = 0; k < m; k++) {
      int to = edges[queue[head] * m + k];
      if (wanted[to] < 0) wanted[to] = wanted[queue[head]] + 1, queue[tail++] = to;
    }
  int count = 1;
  int *r = device(rows, n + 1), *e = device(edges, n * m), *d = device(depth, n), *q = device<int>(nullptr, n), *next = device<int>(nullptr, n), *c = device<int>(nullptr, 1);
  for (int l = 1; count; l++) {
    cudaMemset(c, 0, 4);
    level<<<(count + 127) / 128, 128>>>(r, e, d, q, count, next, c, l);
    cudaMemcpy(&count, c, 4, cudaMemcpyDeviceToHost);
    int *t = q; q = next; next = t;
  }
  int *got = host(d, n);
  for (int i = 0; i < n; i++) expect("depth", i, got[i], wanted[i], 0);
  return finish("bfs");
}
