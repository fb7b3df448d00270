// Tables in constant memory: every lane the same word, or 4, 8 and 32 different ones of a warp.
#include "check.h"
const int entries = 256;
__constant__ int table[entries];
__constant__ double pairs[entries];
__constant__ unsigned char bytes[entries];
__global__ void look_up(const int *index, int *out, double *wide, int spread) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int place = (index[i / 32] + i % spread * 7) % entries;
  out[i] = table[place] + bytes[place];
  wide[i] = pairs[place];
}
// More than half of the 64 KB: offsets whose top bit is set.
__constant__ float lower[8500], upper[2000];
__global__ void far(float *out) {
  out[0] = out[1] * upper[1500] + lower[8499];
}
int main() {
  const int n = 1024, warps = n / 32;
  static int values[entries], index[warps];
  static double reals[entries];
  static unsigned char small[entries];
  for (int i = 0; i < entries; i++) values[i] = draw(i) % 10000, reals[i] = real(i), small[i] = draw(i + 9);
  for (int i = 0; i < warps; i++) index[i] = draw(i + 77) % entries;
  cudaMemcpyToSymbol(table, values, sizeof values);
  cudaMemcpyToSymbol(pairs, reals, sizeof reals);
  cudaMemcpyToSymbol(bytes, small, sizeof small);
  int *where = device(index, warps), *out = device((int *)0, n);
  double *wide = device((double *)0, n);
  for (int spread : {1, 4, 8, 32}) {
    look_up<<<n / 128, 128>>>(where, out, wide, spread);
    int *r = host(out, n);
    double *w = host(wide, n);
    for (int i = 0; i < n; i++) {
      int place = (index[i / 32] + i % spread * 7) % entries;
      expect("word", i, r[i], values[place] + small[place], 0);
      expect("pair", i, w[i], reals[place], 0);
    }
  }
  static float low[8500], high[2000];
  for (int i = 0; i < 8500; i++) low[i] = real(i);
  for (int i = 0; i < 2000; i++) high[i] = real(i + 5);
  cudaMemcpyToSymbol(lower, low, sizeof low);
  cudaMemcpyToSymbol(upper, high, sizeof high);
  float factor[2] = {0, 3}, *one = device(factor, 2);
  far<<<1, 1>>>(one);
  expect("far", 0, *host(one, 1), 3 * high[1500] + low[8499], 1e-6);
  return finish("constants");
}
