// A matrix product with tensor cores: tiles in shared memory by asynchronous copies, two stages.
#include "check.h"
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
const int tile = 64, depth = 32, pad = 8;
__global__ void product(const half *a, const half *b, float *c, int n) {
  __shared__ alignas(16) half x[2][tile][depth + pad], y[2][depth][tile + pad];
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
  for (int i = 0; i < 4; i++) wmma::fill_fragment(sum[i / 2][i % 2], 0.0f);
  int warp = threadIdx.x / 32, row = blockIdx.y * tile, column = blockIdx.x * tile;
  auto fetch = [&](int stage, int k) {
    for (int i = threadIdx.x; i < tile * depth / 8; i += blockDim.x) {
      int r = i / (depth / 8), q = i % (depth / 8) * 8;
      __pipeline_memcpy_async(&x[stage][r][q], a + (row + r) * n + k + q, 16);
      r = i / (tile / 8), q = i % (tile / 8) * 8;
      __pipeline_memcpy_async(&y[stage][r][q], b + (k + r) * n + column + q, 16);
    }
    __pipeline_commit();
  };
  fetch(0, 0);
  for (int k = 0; k < n; k += depth) {
    int stage = k / depth % 2;
    if (k + depth < n) fetch(1 - stage, k + depth), __pipeline_wait_prior(1);
    else __pipeline_wait_prior(0);
    __syncthreads();
    for (int q = 0; q < depth; q += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> u[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> v[2];
      for (int i = 0; i < 2; i++) {
        wmma::load_matrix_sync(u[i], &x[stage][warp / 2 * 32 + i * 16][q], depth + pad);
        wmma::load_matrix_sync(v[i], &y[stage][q][warp % 2 * 32 + i * 16], tile + pad);
      }
      for (int i = 0; i < 4; i++) wmma::mma_sync(sum[i / 2][i % 2], u[i / 2], v[i % 2], sum[i / 2][i % 2]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    wmma::store_matrix_sync(c + (row + warp / 2 * 32 + i / 2 * 16) * n + column + warp % 2 * 32 + i % 2 * 16, sum[i / 2][i % 2], n, wmma::mem_row_major);
}
// Copies whose sources end within them: the rest is zeros. Sources come as a parameter's address.
struct Lengths {
  int of[32];
};
__device__ __noinline__ int read(const int *x, int i) { return x[i]; }
__global__ void edges(const unsigned char *from, unsigned char *to, const __grid_constant__ Lengths lengths) {
  __shared__ alignas(16) unsigned char bytes[32][16];
  int lane = threadIdx.x;
#if __CUDA_ARCH__ >= 800
  unsigned at = unsigned(__cvta_generic_to_shared(bytes[lane]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from + 16 * lane), "r"(read(lengths.of, lane)));
  asm volatile("cp.async.wait_all;");
#else
  for (int i = 0; i < 16; i++) bytes[lane][i] = i < read(lengths.of, lane) ? from[16 * lane + i] : 0;
#endif
  __syncthreads();
  for (int i = 0; i < 16; i++) to[16 * lane + i] = bytes[lane][i];
}
void check_edges() {
  unsigned char from[512];
  Lengths lengths;
  for (int i = 0; i < 512; i++) from[i] = i * 7 + 1;
  for (int i = 0; i < 32; i++) lengths.of[i] = i % 17;
  unsigned char *x = device(from, 512), *y = device<unsigned char>(nullptr, 512);
  edges<<<1, 32>>>(x, y, lengths);
  unsigned char *back = host(y, 512);
  for (int i = 0; i < 512; i++) expect("edge", i, int(back[i]), i % 16 < lengths.of[i / 16] ? int(from[i]) : 0, 0);
}
int main() {
  check_edges();
  const int n = 128;
  static half a[n * n], b[n * n];
  for (int i = 0; i < n * n; i++) a[i] = __float2half(real(i)), b[i] = __float2half(real(i + 77777));
  half *x = device(a, n * n), *y = device(b, n * n);
  float *z = device<float>(nullptr, n * n);
  product<<<dim3(n / tile, n / tile), 128>>>(x, y, z, n);
  float *c = host(z, n * n);
  for (int i = 0; i < n * n; i++) {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += double(__half2float(a[i / n * n + k])) * __half2float(b[k * n + i % n]);
    expect("product", i, double(c[i]), sum, 1e-5);
  }
  return finish("tiles");
}
