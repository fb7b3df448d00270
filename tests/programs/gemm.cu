// Tiled matrix product in single and double precision.
#include "check.h"
template <typename T> __global__ void gemm(const T *a, const T *b, T *c, int n) {
  __shared__ T s[16][16], t[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  T sum = 0;
  for (int k = 0; k < n; k += 16) {
    s[y][x] = a[row * n + k + x];
    t[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += s[y][i] * t[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
template <typename T> void test(const char *name, double tolerance) {
  const int n = 64;
  static T a[n * n], b[n * n];
  for (int i = 0; i < n * n; i++) a[i] = real(i), b[i] = real(i + 77777);
  T *x = device(a, n * n), *y = device(b, n * n), *z = device<T>(nullptr, n * n);
  gemm<T><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(x, y, z, n);
  T *c = host(z, n * n);
  for (int i = 0; i < n * n; i++) {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += double(a[i / n * n + k]) * b[k * n + i % n];
    expect(name, i, double(c[i]), sum, tolerance);
  }
}
int main() {
  test<float>("float", 1e-5);
  test<double>("double", 1e-13);
  return finish("gemm");
}
