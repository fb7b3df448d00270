// Gaussian elimination: two launches per column, divisions, many small launches.
#include "check.h"
__global__ void ratios(const float *a, float *m, int n, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + k + 1;
  if (i < n) m[i] = a[i * (n + 1) + k] / a[k * (n + 1) + k];
}
__global__ void rows(float *a, const float *m, int n, int k) {
  int j = blockIdx.x * blockDim.x + threadIdx.x + k, i = blockIdx.y * blockDim.y + threadIdx.y + k + 1;
  if (i < n && j <= n) a[i * (n + 1) + j] -= m[i] * a[k * (n + 1) + j];
}
int main() {
  const int n = 24, w = n + 1;
  static float a[n * w];
  for (int i = 0; i < n; i++) {
    double sum = 0;
    for (int j = 0; j < n; j++) a[i * w + j] = real(i * n + j) + (i == j ? n : 0), sum += a[i * w + j] * (j - 10.0);
    a[i * w + n] = float(sum);
  }
  float *x = device(a, n * w), *m = device<float>(nullptr, n);
  for (int k = 0; k < n - 1; k++) {
    ratios<<<1, 32>>>(x, m, n, k);
    rows<<<dim3((w - k + 15) / 16, (n - k - 1 + 7) / 8), dim3(16, 8)>>>(x, m, n, k);
  }
  float *r = host(x, n * w);
  double solution[n];
  for (int i = n - 1; i >= 0; i--) {
    double sum = r[i * w + n];
    for (int j = i + 1; j < n; j++) sum -= r[i * w + j] * solution[j];
    solution[i] = sum / r[i * w + i];
    expect("solution", i, solution[i], i - 10.0, 1e-3);
  }
  return finish("elimination");
}
