// A Walsh transform: steps of radix four in shared memory, then over global memory.
#include "check.h"
__device__ void butterfly(float &a, float &b, float &c, float &d) {
  float p = a + c, q = a - c, r = b + d, s = b - d;
  a = p + r, b = p - r, c = q + s, d = q - s;
}
__global__ void local(float *out, const float *in, int log2n) {
  extern __shared__ float part[];
  const int n = 1 << log2n, base = blockIdx.x << log2n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) part[i] = in[base + i];
  int t = threadIdx.x;
  for (int stride = n >> 2; stride > 0; stride >>= 2) {
    int low = t & (stride - 1), i = ((t - low) << 2) + low;
    __syncthreads();
    float a = part[i], b = part[i + stride], c = part[i + 2 * stride], d = part[i + 3 * stride];
    butterfly(a, b, c, d);
    part[i] = a, part[i + stride] = b, part[i + 2 * stride] = c, part[i + 3 * stride] = d;
  }
  if (log2n & 1) {
    __syncthreads();
    for (int i = 2 * threadIdx.x; i < n; i += 2 * blockDim.x) {
      float a = part[i], b = part[i + 1];
      part[i] = a + b, part[i + 1] = a - b;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[base + i] = part[i];
}
__global__ void far(float *x, int stride) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, low = t & (stride - 1), i = ((t - low) << 2) + low;
  float a = x[i], b = x[i + stride], c = x[i + 2 * stride], d = x[i + 3 * stride];
  butterfly(a, b, c, d);
  x[i] = a, x[i + stride] = b, x[i + 2 * stride] = c, x[i + 3 * stride] = d;
}
// With arguments: the logarithms of all elements and of a CTA's, with no check against the CPU.
int main(int count, char **words) {
  const int small = 8;
  int log2n = count > 1 ? atoi(words[1]) : 12, parts = count > 2 ? atoi(words[2]) : small, n = 1 << log2n;
  float *a = (float *)malloc(n * sizeof(float));
  double *w = (double *)malloc(n * sizeof(double));
  for (int i = 0; i < n; i++) w[i] = a[i] = real(i);
  float *x = device(a, n), *y = device<float>(nullptr, n);
  int stride = n >> 2;
  cudaMemcpy(y, x, n * sizeof(float), cudaMemcpyDeviceToDevice);
  for (int log = log2n; log > parts; log -= 2, stride >>= 2) far<<<n / 4 / 64, 64>>>(y, stride);
  local<<<n >> parts, 1 << (parts - 2), (1 << parts) * sizeof(float)>>>(x, y, parts);
  float *r = host(x, n);
  if (count < 2)
    for (int half = n / 2; half; half /= 2)
      for (int i = 0; i < n; i++)
        if (!(i & half)) {
          double p = w[i], q = w[i + half];
          w[i] = p + q, w[i + half] = p - q;
        }
  for (int i = 0; i < n && count < 2; i++) expect("value", i, double(r[i]), w[i], 1e-4);
  return finish("walsh");
}
