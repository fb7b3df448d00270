// Shortest paths between all pairs, tile by tile, and a flag that ends a loop of the host.
#include "check.h"
__global__ void relax(int *d, int n, int k, int *changed) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || j >= n) return;
  int through = d[i * n + k] + d[k * n + j];
  if (through < d[i * n + j]) {
    d[i * n + j] = through;
    *changed = 1;
  }
}
__global__ void components(int *label, const int *d, int n, int far, int *changed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int least = label[i];
  for (int j = 0; j < n; j++)
    if (d[i * n + j] < far) least = min(least, label[j]);
  if (least < label[i]) label[i] = least, *changed = 1;
}
int main() {
  const int n = 50, far = 1 << 20;
  static int d[n * n], label[n];
  for (int i = 0; i < n; i++) label[i] = i;
  for (int i = 0; i < n * n; i++) d[i] = i / n == i % n ? 0 : draw(i) % 15 == 0 && i / n % 3 == i % n % 3 ? 1 + draw(i + 9) % 50 : far;
  int *x = device(d, n * n), *l = device(label, n), *c = device<int>(nullptr, 1), rounds = 0;
  for (int k = 0; k < n; k++) {
    relax<<<dim3(4, 7), dim3(16, 8)>>>(x, n, k, c);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        if (d[i * n + k] + d[k * n + j] < d[i * n + j]) d[i * n + j] = d[i * n + k] + d[k * n + j];
  }
  for (int again = 1; again && rounds < 100; rounds++) {
    cudaMemset(c, 0, sizeof(int));
    components<<<1, 64>>>(l, x, n, far, c);
    cudaMemcpy(&again, c, sizeof(int), cudaMemcpyDeviceToHost);
  }
  int *r = host(x, n * n), *labels = host(l, n);
  for (int i = 0; i < n * n; i++) expect("distance", i, r[i], d[i], 0);
  for (bool again = true; again;) {
    again = false;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        if (d[i * n + j] < far && label[j] < label[i]) label[i] = label[j], again = true;
  }
  for (int i = 0; i < n; i++) expect("label", i, labels[i], label[i], 0);
  return finish("paths");
}
