// A matrix product with a column of C per thread: 128 rows and 16 columns per CTA, B in tiles.
#include "check.h"
const int height = 8, columns = 16, rows = 128;
__global__ void sgemm(const float *a, const float *b, float *c, int m, int n, int k, float alpha, float beta) {
  __shared__ float tile[height][columns];
  int thread = threadIdx.y * columns + threadIdx.x;
  int row = blockIdx.x * rows + thread, column = blockIdx.y * columns + threadIdx.x;
  float sum[columns] = {};
  for (int i = 0; i < k; i += height) {
    tile[threadIdx.y][threadIdx.x] = b[column + (i + threadIdx.y) * n];
    __syncthreads();
    for (int j = 0; j < height; j++) {
      float x = a[row + (i + j) * m];
#pragma unroll
      for (int q = 0; q < columns; q++) sum[q] += x * tile[j][q];
    }
    __syncthreads();
  }
#pragma unroll
  for (int q = 0; q < columns; q++) {
    int place = row + (blockIdx.y * columns + q) * m;
    c[place] = c[place] * beta + alpha * sum[q];
  }
}
// With arguments: the rows, columns and depth of a product that is not checked against the CPU.
int main(int count, char **words) {
  bool checks = count < 4;
  int m = checks ? 256 : atoi(words[1]), n = checks ? 48 : atoi(words[2]), k = checks ? 40 : atoi(words[3]);
  float *a = (float *)malloc(m * k * sizeof(float)), *b = (float *)malloc(n * k * sizeof(float));
  for (int i = 0; i < m * k; i++) a[i] = real(i);
  for (int i = 0; i < n * k; i++) b[i] = real(i + 98765);
  float *z = device<float>(nullptr, m * n);
  sgemm<<<dim3(m / rows, n / columns), dim3(columns, height)>>>(device(a, m * k), device(b, n * k), z, m, n, k, 1.5f, 0.5f);
  float *c = host(z, m * n);
  for (int i = 0; i < m * n && checks; i++) {
    double sum = 0;
    for (int j = 0; j < k; j++) sum += double(a[i % m + j * m]) * b[i / m + j * n];
    expect("product", i, double(c[i]), 1.5 * sum, 1e-4);
  }
  return finish("sgemm");
}
