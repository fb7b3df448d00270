// Sums: in shared memory, with shuffles, with atomics, as doubles.
#include "check.h"
__global__ void tree(const float *x, float *out, int n) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 128; step; step >>= 1) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}
template <typename T> __global__ void shuffle(const T *x, T *out, int n) {
  T sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
int main() {
  const int n = 10001;
  static float a[n];
  static double d[n];
  static int k[n];
  double sum = 0;
  int whole = 0;
  for (int i = 0; i < n; i++) a[i] = real(i), d[i] = a[i], k[i] = draw(i), sum += a[i], whole += k[i];
  float *x = device(a, n), *out = device<float>(nullptr, 2);
  double *y = device(d, n), *out2 = device<double>(nullptr, 1);
  int *z = device(k, n), *out3 = device<int>(nullptr, 1);
  tree<<<7, 256>>>(x, out, n);
  shuffle<<<5, 128>>>(x, out + 1, n);
  shuffle<<<5, 96>>>(y, out2, n);
  shuffle<<<3, 64>>>(z, out3, n);
  expect("tree", 0, double(host(out, 2)[0]), sum, 1e-4);
  expect("shuffle", 0, double(host(out, 2)[1]), sum, 1e-4);
  expect("double", 0, host(out2, 1)[0], sum, 1e-12);
  expect("int", 0, host(out3, 1)[0], whole, 0);
  return finish("reduction");
}
