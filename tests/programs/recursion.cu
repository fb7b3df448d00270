// Calls that are not inlined, recursion, function pointers, and arrays in local memory.
#include "check.h"
__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ float twice(float x) { return 2 * x; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float less(float x) { return x - 3; }
typedef float (*Function)(float);
__device__ Function table[] = {twice, square, less};
__global__ void calls(int *a, float *f, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  a[t] = ackermann(t % 3, t % 5);
  f[t] = table[t * 7 % 3](float(t));
}
__device__ __noinline__ void quicksort(int *x, int low, int high) {
  while (low < high) {
    int pivot = x[(low + high) / 2], i = low, j = high;
    while (i <= j) {
      while (x[i] < pivot) i++;
      while (x[j] > pivot) j--;
      if (i <= j) {
        int old = x[i];
        x[i++] = x[j], x[j--] = old;
      }
    }
    quicksort(x, low, j);
    low = i;
  }
}
__global__ void medians(const int *x, int *out, int n) {
  int t = threadIdx.x, list[25];
  for (int i = 0; i < 25; i++) list[i] = x[(t * 25 + i) % n];
  quicksort(list, 0, 24);
  out[t] = list[12];
}
int host_ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? host_ackermann(m - 1, 1) : host_ackermann(m - 1, host_ackermann(m, n - 1)); }
int main() {
  const int n = 150;
  static int x[n];
  for (int i = 0; i < n; i++) x[i] = draw(i) % 1000;
  int *a = device<int>(nullptr, n), *m = device<int>(nullptr, 64);
  float *f = device<float>(nullptr, n);
  cudaDeviceSetLimit(cudaLimitStackSize, 16384);
  calls<<<3, 64>>>(a, f, n);
  medians<<<1, 64>>>(device(x, n), m, n);
  int *got = host(a, n), *median = host(m, 64);
  float *real_got = host(f, n);
  for (int t = 0; t < n; t++) {
    expect("ackermann", t, got[t], host_ackermann(t % 3, t % 5), 0);
    float v = t;
    expect("pointer", t, real_got[t], t * 7 % 3 == 0 ? 2 * v : t * 7 % 3 == 1 ? v * v : v - 3, 0);
  }
  for (int t = 0; t < 64; t++) {
    int below = 0, same = 0;
    for (int i = 0; i < 25; i++) below += x[(t * 25 + i) % n] < median[t], same += x[(t * 25 + i) % n] == median[t];
    expect("median", t, below <= 12 && below + same > 12, true, 0);
  }
  return finish("recursion");
}
