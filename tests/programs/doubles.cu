// Double precision: the functions of the mathematical library, division, roots, conversions.
#include "check.h"
const int results = 16;
__host__ __device__ void compute(double x, double y, double *r) {
  r[0] = x + y, r[1] = x * y - x, r[2] = x / (y + 3), r[3] = sqrt(fabs(x));
  r[4] = exp(x), r[5] = log(fabs(x) + 0.1), r[6] = sin(3 * x), r[7] = cos(50 * y);
  r[8] = pow(fabs(x) + 0.5, y), r[9] = fma(x, y, 0.25), r[10] = floor(5 * x) + ceil(5 * y);
  r[11] = atan2(x, y), r[12] = tanh(x), r[13] = fmod(7 * x, 0.3), r[14] = fmin(x, y) + (x < y ? 1 : 0);
  r[15] = (long long)(x * 1e12) + (double)(int)(y * 1000) + (float)x;
}
__global__ void kernel(const double *x, const double *y, double *r, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) compute(x[t], y[t], r + t * results);
}
int main() {
  const int n = 300;
  static double x[n], y[n];
  for (int i = 0; i < n; i++) x[i] = draw(i) / 2147483648.0 - 1, y[i] = draw(i + 7777) / 2147483648.0 - 1;
  double *d = device<double>(nullptr, n * results);
  kernel<<<(n + 63) / 64, 64>>>(device(x, n), device(y, n), d, n);
  double *got = host(d, n * results), wanted[results];
  for (int i = 0; i < n; i++) {
    compute(x[i], y[i], wanted);
    for (int k = 0; k < results; k++) expect("result", i * results + k, got[i * results + k], wanted[k], 1e-13);
  }
  return finish("doubles");
}
