// A separable filter with its factors in constant memory, and bytes of an image.
#include "check.h"
const int radius = 4;
__constant__ float factors[2 * radius + 1];
__global__ void along(const unsigned char *in, float *out, int w, int h) {
  extern __shared__ float line[];
  int y = blockIdx.y, first = blockIdx.x * blockDim.x, x = first + threadIdx.x;
  for (int i = threadIdx.x; i < blockDim.x + 2 * radius; i += blockDim.x) {
    int u = min(max(first + i - radius, 0), w - 1);
    line[i] = in[y * w + u];
  }
  __syncthreads();
  if (x >= w) return;
  float sum = 0;
  for (int k = 0; k <= 2 * radius; k++) sum += factors[k] * line[threadIdx.x + k];
  out[y * w + x] = sum;
}
__global__ void down(const float *in, unsigned char *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float sum = 0;
#pragma unroll
  for (int k = 0; k <= 2 * radius; k++) sum += factors[k] * in[min(max(y + k - radius, 0), h - 1) * w + x];
  out[y * w + x] = (unsigned char)__float2int_rn(__saturatef(sum / 255) * 255);
}
int main() {
  const int w = 130, h = 37;
  static unsigned char a[w * h];
  static float row[w * h];
  float f[2 * radius + 1], total = 0;
  for (int k = 0; k <= 2 * radius; k++) total += f[k] = 1.0f / (1 + (k - radius) * (k - radius));
  for (int k = 0; k <= 2 * radius; k++) f[k] /= total;
  for (int i = 0; i < w * h; i++) a[i] = draw(i);
  cudaMemcpyToSymbol(factors, f, sizeof f);
  unsigned char *x = device(a, w * h), *z = device<unsigned char>(nullptr, w * h);
  float *y = device<float>(nullptr, w * h);
  along<<<dim3((w + 63) / 64, h), 64, (64 + 2 * radius) * sizeof(float)>>>(x, y, w, h);
  down<<<dim3((w + 31) / 32, (h + 7) / 8), dim3(32, 8)>>>(y, z, w, h);
  auto near = [](int v, int n) { return v < 0 ? 0 : v < n ? v : n - 1; };
  for (int i = 0; i < w * h; i++) {
    row[i] = 0;
    for (int k = 0; k <= 2 * radius; k++) row[i] += f[k] * a[i / w * w + near(i % w + k - radius, w)];
  }
  unsigned char *r = host(z, w * h);
  for (int i = 0; i < w * h; i++) {
    float sum = 0;
    for (int k = 0; k <= 2 * radius; k++) sum += f[k] * row[near(i / w + k - radius, h) * w + i % w];
    expect("pixel", i, std::fabs(r[i] - sum) < 0.51f, true, 0);
  }
  return finish("convolution");
}
