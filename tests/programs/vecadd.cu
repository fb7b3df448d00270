// Sum of two vectors.
#include "check.h"
__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
int main() {
  const int n = 5000;
  static float a[n], b[n];
  for (int i = 0; i < n; i++) a[i] = real(i), b[i] = real(i + n);
  float *x = device(a, n), *y = device(b, n), *z = device<float>(nullptr, n);
  add<<<(n + 127) / 128, 128>>>(x, y, z, n);
  float *c = host(z, n);
  for (int i = 0; i < n; i++) expect("c", i, c[i], a[i] + b[i], 0);
  return finish("vecadd");
}
