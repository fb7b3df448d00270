// Layer norm and softmax over rows, by the algorithms that PyTorch 2.1 publishes: a running
// mean in vectors, a row in the registers of a warp, and three passes with a sum in shared memory.
#include "check.h"
struct Moments { float mean, squares, count; };
__device__ Moments add(Moments m, float x) {
  float d = x - m.mean, count = m.count + 1, mean = m.mean + d * (1 / count);
  return {mean, m.squares + d * (x - mean), count};
}
__device__ Moments join(Moments a, Moments b) {
  float d = b.mean - a.mean, count = a.count + b.count;
  if (count <= 0) return {0, 0, count};
  float part = 1 / count, of_a = a.count * part, of_b = b.count * part;
  return {of_a * a.mean + of_b * b.mean, a.squares + b.squares + d * d * a.count * of_b, count};
}
__device__ Moments down(Moments m, int by) {
  return {__shfl_down_sync(~0u, m.mean, by), __shfl_down_sync(~0u, m.squares, by), __shfl_down_sync(~0u, m.count, by)};
}
__device__ float2 moments(const float *__restrict__ row, int width, float *shared) {
  Moments m = {0, 0, 0};
  int warps = blockDim.y, lane = threadIdx.x, warp = threadIdx.y;
  for (int i = lane + warp * blockDim.x; i < width / 4; i += blockDim.x * warps) {
    float4 v = reinterpret_cast<const float4 *>(row)[i];
    m = add(add(add(add(m, v.x), v.y), v.z), v.w);
  }
  for (int by = 16; by > 0; by /= 2) m = join(m, down(m, by));
  for (int half = warps / 2; half > 0; half /= 2) {
    if (lane == 0 && warp >= half && warp < 2 * half) {
      shared[2 * (warp - half)] = m.mean;
      shared[2 * (warp - half) + 1] = m.squares;
      shared[warps + warp - half] = m.count;
    }
    __syncthreads();
    if (lane == 0 && warp < half) m = join(m, {shared[2 * warp], shared[2 * warp + 1], shared[warps + warp]});
    __syncthreads();
  }
  if (lane == 0 && warp == 0) shared[0] = m.mean, shared[1] = m.squares / float(width);
  __syncthreads();
  return {shared[0], shared[1]};
}
__global__ void layer_norm(int width, float tiny, const float *__restrict__ x, const float *scale, const float *shift,
                           float *mean, float *factor, float *y) {
  extern __shared__ float shared[];
  const float *row = x + blockIdx.x * width;
  float2 m = moments(row, width, shared);
  const float4 *from = (const float4 *)row, *by = (const float4 *)scale, *plus = (const float4 *)shift;
  float4 *to = (float4 *)(y + blockIdx.x * width);
  int each = blockDim.x * blockDim.y, first = threadIdx.x + threadIdx.y * blockDim.x;
  float f = rsqrtf(m.y + tiny);
  for (int i = first; i < width / 4; i += each) {
    float4 v = from[i], o;
    o.x = by[i].x * (f * (v.x - m.x)) + plus[i].x;
    o.y = by[i].y * (f * (v.y - m.x)) + plus[i].y;
    o.z = by[i].z * (f * (v.z - m.x)) + plus[i].z;
    o.w = by[i].w * (f * (v.w - m.x)) + plus[i].w;
    to[i] = o;
  }
  if (first == 0) mean[blockIdx.x] = m.x, factor[blockIdx.x] = f;
}
template <int steps> __global__ void softmax_warp(float *y, const float *x, int rows, int width) {
  int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x, mine = row < rows ? width : 0;
  x += row * width + lane, y += row * width + lane;
  float v[steps], most, sum = 0;
#pragma unroll
  for (int i = 0; i < steps; i++) v[i] = lane + 32 * i < mine ? x[32 * i] : -INFINITY;
  most = v[0];
#pragma unroll
  for (int i = 1; i < steps; i++) most = most > v[i] ? most : v[i];
  for (int by = 16; by > 0; by /= 2) {
    float other = __shfl_xor_sync(~0u, most, by);
    most = most > other ? most : other;
  }
#pragma unroll
  for (int i = 0; i < steps; i++) sum += v[i] = expf(v[i] - most);
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(~0u, sum, by);
#pragma unroll
  for (int i = 0; i < steps; i++) {
    if (lane + 32 * i >= mine) break;
    y[32 * i] = v[i] / sum;
  }
}
// Each lane of the first warp takes the values of one warp, then one thread those of all.
template <typename F> __device__ float over_block(float *shared, float value, float none, F f) {
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  int warps = blockDim.x / 32;
  if (threadIdx.x < 32) {
    float of_warp = none;
    if (threadIdx.x < warps) {
#pragma unroll
      for (int i = 0; i < 32; i++) of_warp = f(of_warp, shared[threadIdx.x * 32 + i]);
      __syncwarp((1ull << warps) - 1);
      shared[threadIdx.x] = of_warp;
    }
  }
  __syncthreads();
  float all = none;
  if (threadIdx.x == 0) {
    for (int i = 0; i < warps; i++) all = f(all, shared[i]);
    shared[0] = all;
  }
  __syncthreads();
  return shared[0];
}
template <typename F> __device__ float over_row(const float *row, int width, float none, F f) {
  float all = none;
  int last = width % (4 * blockDim.x), i = threadIdx.x;
  for (; i * 4 < width - last; i += blockDim.x) {
    float4 v = reinterpret_cast<const float4 *>(row)[i];
    all = f(f(f(f(all, v.x), v.y), v.z), v.w);
  }
  for (i = width - last + threadIdx.x; i < width; i += blockDim.x) all = f(all, row[i]);
  return all;
}
__global__ void softmax_rows(float *y, const float *x, int width) {
  extern __shared__ float shared[];
  x += size_t(blockIdx.x) * width, y += size_t(blockIdx.x) * width;
  auto larger = [](float a, float b) { return max(a, b); };
  float most = over_block(shared, over_row(x, width, -3.4e38f, larger), -3.4e38f, larger);
  auto sums = [=](float a, float b) { return a + expf(b - most); };
  float sum = over_block(shared, over_row(x, width, 0, sums), 0, [](float a, float b) { return a + b; });
  int last = width % (4 * blockDim.x), i = threadIdx.x;
  for (; i * 4 < width - last; i += blockDim.x) {
    float4 v = reinterpret_cast<const float4 *>(x)[i], o;
    o.x = expf(v.x - most) / sum, o.y = expf(v.y - most) / sum;
    o.z = expf(v.z - most) / sum, o.w = expf(v.w - most) / sum;
    reinterpret_cast<float4 *>(y)[i] = o;
  }
  for (i = width - last + threadIdx.x; i < width; i += blockDim.x) y[i] = expf(x[i] - most) / sum;
}
static void softmax(const char *name, const float *x, float *y, int rows, int width) {
  float *got = host(y, rows * width);
  for (int r = 0; r < rows; r++) {
    double sum = 0;
    for (int i = 0; i < width; i++) sum += exp(double(x[r * width + i]));
    for (int i = 0; i < width; i += 7) expect(name, r * width + i, double(got[r * width + i]), exp(double(x[r * width + i])) / sum, 1e-5);
  }
}
static void norm(const float *x, const float *w, const float *y, int rows, int width) {
  for (int r = 0; r < rows; r++) {
    double sum = 0, squares = 0;
    for (int i = 0; i < width; i++) sum += x[r * width + i];
    for (int i = 0; i < width; i++) squares += pow(x[r * width + i] - sum / width, 2);
    for (int i = 0; i < width; i += 7) {
      double wanted = (x[r * width + i] - sum / width) / sqrt(squares / width + 1e-5) * w[i] + w[width + i];
      expect("norm", r * width + i, double(y[r * width + i]), wanted, 1e-4);
    }
  }
}
int main(int count, char **values) {
  const int rows = count > 1 ? atoi(values[1]) : 6, width = count > 2 ? atoi(values[2]) : 1600;
  const int threads = count > 3 ? atoi(values[3]) : 256, size = rows * width;
  float *x = (float *)malloc(4 * size), *w = (float *)malloc(8 * width);
  for (int i = 0; i < size; i++) x[i] = real(i);
  for (int i = 0; i < 2 * width; i++) w[i] = real(i + 77);
  float *in = device(x, size), *out = device<float>(nullptr, size), *weights = device(w, 2 * width);
  float *means = device<float>(nullptr, 2 * rows);
  layer_norm<<<rows, dim3(32, 4), 64>>>(width, 1e-5f, in, weights, weights + width, means, means + rows, out);
  norm(x, w, host(out, size), rows, width);
  softmax_rows<<<rows, threads, 4 * threads>>>(out, in, width);
  softmax("rows", x, out, rows, width);
  if (width >= 1024) {
    softmax_warp<32><<<(rows + 3) / 4, dim3(32, 4)>>>(out, in, rows, 1024);
    softmax("warp", x, out, rows, 1024);
  }
  return finish("norms");
}
