// A Fourier transform of 256 points in shared memory.
#include "check.h"
__global__ void fft(const float2 *in, float2 *out) {
  __shared__ float2 s[256];
  int t = threadIdx.x;
  for (int k = 0; k < 2; k++) { int i = t + 128 * k; s[__brev(i) >> 24] = in[blockIdx.x * 256 + i]; }
  for (int half = 1; half < 256; half *= 2) {
    __syncthreads();
    int j = t & (half - 1), i = 2 * (t - j) + j;
    float sine, cosine;
    sincosf(-3.14159265358979f * j / half, &sine, &cosine);
    float2 a = s[i], b = s[i + half], c = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
    s[i] = make_float2(a.x + c.x, a.y + c.y);
    s[i + half] = make_float2(a.x - c.x, a.y - c.y);
  }
  __syncthreads();
  for (int k = 0; k < 2; k++) out[blockIdx.x * 256 + t + 128 * k] = s[t + 128 * k];
}
int main() {
  static float2 a[512];
  for (int i = 0; i < 512; i++) a[i] = make_float2(real(i), real(i + 1000));
  float2 *x = device(a, 512), *y = device<float2>(nullptr, 512);
  fft<<<2, 128>>>(x, y);
  float2 *b = host(y, 512);
  for (int i = 0; i < 512; i++) {
    double re = 0, im = 0;
    for (int k = 0; k < 256; k++) {
      float2 v = a[i / 256 * 256 + k];
      double angle = -2 * 3.14159265358979323846 * (i % 256 * k % 256) / 256;
      re += v.x * cos(angle) - v.y * sin(angle);
      im += v.x * sin(angle) + v.y * cos(angle);
    }
    expect("re", i, double(b[i].x), re, 2e-5);
    expect("im", i, double(b[i].y), im, 2e-5);
  }
  return finish("fft");
}
