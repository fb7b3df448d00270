// Sparse matrix times vector, a thread per row and a warp per row.
#include "check.h"
__global__ void scalar(const int *rows, const int *columns, const float *values, const float *x, float *y, int n) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n) return;
  float sum = 0;
  for (int k = rows[r]; k < rows[r + 1]; k++) sum += values[k] * __ldg(&x[columns[k]]);
  y[r] = sum;
}
__global__ void vector(const int *rows, const int *columns, const float *values, const float *x, float *y, int n) {
  int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  if (r >= n) return;
  float sum = 0;
  for (int k = rows[r] + lane; k < rows[r + 1]; k += 32) sum += values[k] * x[columns[k]];
  for (int s = 16; s; s /= 2) sum += __shfl_down_sync(~0u, sum, s);
  if (lane == 0) y[r] = sum;
}
int main() {
  const int n = 300;
  static int rows[n + 1], columns[n * 50];
  static float values[n * 50], x[n];
  for (int r = 0; r < n; r++) {
    rows[r + 1] = rows[r] + draw(r) % 50;
    for (int k = rows[r]; k < rows[r + 1]; k++) columns[k] = draw(k + 5) % n, values[k] = real(k);
    x[r] = real(r + 31337);
  }
  int *p = device(rows, n + 1), *c = device(columns, n * 50);
  float *v = device(values, n * 50), *d = device(x, n), *y = device<float>(nullptr, n), *z = device<float>(nullptr, n);
  scalar<<<5, 64>>>(p, c, v, d, y, n);
  vector<<<75, 128>>>(p, c, v, d, z, n);
  float *a = host(y, n), *b = host(z, n);
  for (int r = 0; r < n; r++) {
    double sum = 0;
    for (int k = rows[r]; k < rows[r + 1]; k++) sum += double(values[k]) * x[columns[k]];
    expect("scalar", r, double(a[r]), sum, 1e-5);
    expect("vector", r, double(b[r]), sum, 1e-5);
  }
  return finish("spmv");
}
