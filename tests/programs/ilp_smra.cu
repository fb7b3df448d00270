// Kernels of the ILP-SMRA paper's set (GUPS, LPS, HS, BP, SPMV, BFS2, 3DS, LUD, SAD, FFT, NN, BLK, RAY) at a small size.
#include "check.h"
#include <algorithm>
#include <utility>
#include <vector>
using std::vector;
using u16 = unsigned short; using u64 = unsigned long long;

// GUPS: a shift register per thread, two 32-bit exclusive ors per update.
__host__ __device__ inline u64 next_random(u64 x) { return (x << 1) ^ ((long long)x < 0 ? 7ull : 0ull); }
__global__ void ilp_gups(u64 size, u64 *table, u64 *starts) {
  u64 x = starts[blockIdx.x * blockDim.x + threadIdx.x];
  for (u64 i = 0; i < 4 * size / 128 / 512; i++) {
    x = next_random(x);
    unsigned *word = (unsigned *)&table[x & (size - 1)];
    atomicXor(word, (unsigned)x); atomicXor(word + 1, (unsigned)(x >> 32));
  }
}
static void gups() {
  // The loop's count follows from the whole table, of which only some CTAs update.
  const int size = 1 << 19, threads = 128 * 8; vector<u64> starts(threads), wanted(size);
  for (int i = 0; i < size; i++) wanted[i] = i;
  for (int i = 0; i < threads; i++) starts[i] = ((u64)draw(2 * i) << 32) | draw(2 * i + 1);
  u64 *table = device(wanted.data(), size);
  ilp_gups<<<threads / 128, 128>>>(size, table, device(starts.data(), threads));
  for (u64 x : starts) for (int k = 0; k < 32; k++) x = next_random(x), wanted[x % size] ^= x;
  u64 *got = host(table, size);
  for (int i = 0; i < size; i++) expect("gups", i, (int)(got[i] == wanted[i]), 1, 0);
}

// LPS: a tile of 32 by 4 marches through the planes, three of them in shared memory.
const int LX = 32, LY = 4;
__global__ void ilp_lps(int nx, int ny, int nz, int pitch, float *from, float *to) {
  const int row = LX + 2, plane = row * (LY + 2);
  __shared__ float u[3 * plane];
  int k = threadIdx.x + threadIdx.y * LX, i, j, rim = 0, rim_at = 0; bool halo = k < 2 * (LX + LY + 2);
  if (halo) {
    if (threadIdx.y < 2) i = threadIdx.x, j = threadIdx.y * (LY + 1) - 1;
    else i = (k % 2) * (LX + 1) - 1, j = k / 2 - LX - 1;
    rim = i + 1 + __mul24(j + 1, row) + plane; i += __mul24(blockIdx.x, LX); j += __mul24(blockIdx.y, LY); rim_at = i + __mul24(j, pitch);
    halo = i >= 0 && i < nx && j >= 0 && j < ny;
  }
  i = threadIdx.x; j = threadIdx.y;
  int mine = i + 1 + __mul24(j + 1, row) + plane;
  i += __mul24(blockIdx.x, LX); j += __mul24(blockIdx.y, LY);
  int at = i + __mul24(j, pitch), before = 0; bool active = i < nx && j < ny;
  if (active) u[mine + plane] = from[at];
  if (halo) u[rim + plane] = from[rim_at];
  for (k = 0; k < nz; k++) {
    if (active) {
      before = at; at += __mul24(ny, pitch); u[mine - plane] = u[mine]; u[mine] = u[mine + plane];
      if (k < nz - 1) u[mine + plane] = from[at];
    }
    if (halo) {
      rim_at += __mul24(ny, pitch); u[rim - plane] = u[rim]; u[rim] = u[rim + plane];
      if (k < nz - 1) u[rim + plane] = from[rim_at];
    }
    __syncthreads();
    if (active) {
      float v;
      if (i == 0 || i == nx - 1 || j == 0 || j == ny - 1 || k == 0 || k == nz - 1) v = u[mine];
      else v = (u[mine - 1] + u[mine + 1] + u[mine - row] + u[mine + row] + u[mine - plane] + u[mine + plane]) * (1.0f / 6.0f);
      to[before] = v;
    }
    __syncthreads();
  }
}
static void lps() {
  const int n = 100, ny = 20, nz = 20, pitch = 128, all = pitch * ny * nz; vector<float> a(all);
  for (int i = 0; i < all; i++) a[i] = real(i);
  float *to = device<float>(nullptr, all), *got;
  ilp_lps<<<dim3((n + LX - 1) / LX, (ny + LY - 1) / LY), dim3(LX, LY)>>>(n, ny, nz, pitch, device(a.data(), all), to); got = host(to, all);
  for (int z = 0; z < nz; z++)
    for (int y = 0; y < ny; y++)
      for (int x = 0; x < n; x++) {
        int c = x + pitch * (y + ny * z), p = pitch * ny; bool edge = !x || !y || !z || x == n - 1 || y == ny - 1 || z == nz - 1;
        double w = edge ? a[c] : (0.0 + a[c - 1] + a[c + 1] + a[c - pitch] + a[c + pitch] + a[c - p] + a[c + p]) / 6;
        expect("lps", c, got[c], (float)w, 1e-5);
      }
}

// HS: some steps of a five-point stencil on a tile of 16 by 16 that loses a rim per step.
__device__ __forceinline__ bool within(int v, int low, int high) { return v >= low && v <= high; }
__global__ void ilp_hs(int steps, float *power, float *from, float *to, int columns, int rows, int border_x, int border_y, float capacity,
                       float rx, float ry, float rz, float step, float elapsed) {
  __shared__ float heat[16][16], source[16][16], result[16][16];
  float ambient = 80.0f; int tx = threadIdx.x, ty = threadIdx.y; float scale = step / capacity, rx1 = 1 / rx, ry1 = 1 / ry, rz1 = 1 / rz;
  int inner = 16 - steps * 2; int top = inner * blockIdx.y - border_y, left = inner * blockIdx.x - border_x, bottom = top + 15, right = left + 15;
  int y = top + ty, x = left + tx, index = columns * y + x;
  if (within(y, 0, rows - 1) && within(x, 0, columns - 1)) heat[ty][tx] = from[index], source[ty][tx] = power[index];
  __syncthreads();
  int first_y = top < 0 ? -top : 0, last_y = bottom > rows - 1 ? 15 - (bottom - rows + 1) : 15;
  int first_x = left < 0 ? -left : 0, last_x = right > columns - 1 ? 15 - (right - columns + 1) : 15;
  int north = ty - 1 < first_y ? first_y : ty - 1, south = ty + 1 > last_y ? last_y : ty + 1;
  int west = tx - 1 < first_x ? first_x : tx - 1, east = tx + 1 > last_x ? last_x : tx + 1; bool done;
  for (int i = 0; i < steps; i++) {
    done = false;
    if (within(tx, i + 1, 14 - i) && within(ty, i + 1, 14 - i) && within(tx, first_x, last_x) && within(ty, first_y, last_y)) {
      done = true;
      result[ty][tx] = heat[ty][tx] + scale * (source[ty][tx] + (heat[south][tx] + heat[north][tx] - 2.0 * heat[ty][tx]) * ry1 +
                                               (heat[ty][east] + heat[ty][west] - 2.0 * heat[ty][tx]) * rx1 + (ambient - heat[ty][tx]) * rz1);
    }
    __syncthreads();
    if (i == steps - 1) break;
    if (done) heat[ty][tx] = result[ty][tx];
    __syncthreads();
  }
  if (done) to[index] = result[ty][tx];
}
static void hs() {
  const int n = 64, blocks = (n + 11) / 12;
  float cap = 0.5f * 1.75e6f * 0.0005f * (0.016f / n) * (0.016f / n), rx = 1 / (2 * 100 * 0.0005f), ry = rx, rz = 0.0005f / (100 * (0.016f / n) * (0.016f / n));
  float step = 0.001f / (3.0e6f / (0.5f * 0.0005f * 1.75e6f)); vector<float> a(n * n), p(n * n);
  for (int i = 0; i < n * n; i++) a[i] = 323 + 5 * real(i), p[i] = 0.01f * (1 + real(i + 99999));
  float *x = device(a.data(), n * n), *y = device<float>(nullptr, n * n), *power = device(p.data(), n * n);
  for (int left = 3; left > 0; left -= 2, std::swap(x, y))
    ilp_hs<<<dim3(blocks, blocks), dim3(16, 16)>>>(left < 2 ? left : 2, power, x, y, n, n, 2, 2, cap, rx, ry, rz, step, 0);
  vector<double> v(a.begin(), a.end()), w(n * n);
  for (int s = 0; s < 3; s++, v.swap(w))
    for (int r = 0; r < n; r++)
      for (int c = 0; c < n; c++) {
        auto at = [&](int r, int c) { return v[n * (r < 0 ? 0 : r > n - 1 ? n - 1 : r) + (c < 0 ? 0 : c > n - 1 ? n - 1 : c)]; };
        double h = at(r, c);
        w[n * r + c] = h + double(step) / cap * (p[n * r + c] + (at(r - 1, c) + at(r + 1, c) - 2 * h) / ry + (at(r, c - 1) + at(r, c + 1) - 2 * h) / rx + (80 - h) / rz);
      }
  float *got = host(x, n * n);
  for (int i = 0; i < n * n; i++) expect("hs", i, got[i], (float)v[i], 1e-6);
}

// BP: products of inputs and weights summed in a tile, then new weights.
__global__ void ilp_bp_bpnn_layerforward_CUDA(float *input, float *output, float *weights, float *partial, int in, int hid) {
  int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y; int index = (hid + 1) * 16 * by + (hid + 1) * ty + tx + 1 + (hid + 1);
  __shared__ float node[16], tile[16][16];
  if (tx == 0) node[ty] = input[16 * by + ty + 1];
  __syncthreads();
  tile[ty][tx] = weights[index];
  __syncthreads();
  tile[ty][tx] = tile[ty][tx] * node[ty];
  __syncthreads();
  for (int i = 1; i <= __log2f(16); i++) {
    int power = __powf(2, i);
    if (ty % power == 0) tile[ty][tx] = tile[ty][tx] + tile[ty + power / 2][tx];
    __syncthreads();
  }
  weights[index] = tile[ty][tx];
  __syncthreads();
  if (tx == 0) partial[by * hid + ty] = tile[tx][ty];
}
__global__ void ilp_bp_bpnn_adjust_weights_cuda(float *delta, int hid, float *input, int in, float *weights, float *former) {
  int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  int index = (hid + 1) * 16 * by + (hid + 1) * ty + tx + 1 + (hid + 1), y = 16 * by + ty + 1, x = tx + 1;
  weights[index] += 0.3 * delta[x] * input[y] + 0.3 * former[index]; former[index] = 0.3 * delta[x] * input[y] + 0.3 * former[index];
  __syncthreads();
  if (ty == 0 && by == 0) weights[x] += 0.3 * delta[x] + 0.3 * former[x], former[x] = 0.3 * delta[x] + 0.3 * former[x];
}
static void bp() {
  const int tiles = 24, in = 16 * tiles, hid = 16, all = (in + 1) * (hid + 1); vector<float> x(in + 1), w(all), f(all), d(hid + 1);
  for (int i = 0; i <= in; i++) x[i] = real(i);
  for (int i = 0; i < all; i++) w[i] = real(i + 1000), f[i] = real(i + 100000);
  for (int i = 0; i <= hid; i++) d[i] = real(i + 7);
  float *input = device(x.data(), in + 1), *scratch = device(w.data(), all), *weights = device(w.data(), all), *former = device(f.data(), all);
  float *partial = device<float>(nullptr, tiles * hid), *delta = device(d.data(), hid + 1);
  ilp_bp_bpnn_layerforward_CUDA<<<dim3(1, tiles), dim3(16, 16)>>>(input, nullptr, scratch, partial, in, hid);
  float *sums = host(partial, tiles * hid);
  for (int b = 0; b < tiles; b++)
    for (int h = 0; h < hid; h++) {
      double sum = 0;
      for (int k = 0; k < 16; k++) sum += double(x[16 * b + k + 1]) * w[(16 * b + k + 1) * (hid + 1) + h + 1];
      expect("bp sums", b * hid + h, sums[b * hid + h], (float)sum, 1e-5);
    }
  ilp_bp_bpnn_adjust_weights_cuda<<<dim3(1, tiles), dim3(16, 16)>>>(delta, hid, input, in, weights, former);
  float *gw = host(weights, all), *gf = host(former, all);
  for (int i = 0; i <= in; i++)
    for (int h = 1; h <= hid; h++) {
      int c = i * (hid + 1) + h; double change = 0.3 * d[h] * (i ? x[i] : 1) + 0.3 * f[c];
      expect("bp weights", c, gw[c], (float)(w[c] + change), 1e-5), expect("bp former", c, gf[c], (float)change, 1e-5);
    }
}

// SPMV: a row per thread, entries along jagged diagonals.
__constant__ int diagonal_starts[5000], group_lengths[5000];
__global__ void ilp_spmv(float *result, const float *data, const int *columns, const int *permutation, const float *vec, const int *lengths, const int dim) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < dim) {
    float sum = 0.0f; int bound = group_lengths[row / 32];
    for (int k = 0; k < bound; k++) {
      int j = diagonal_starts[k] + row; int column = columns[j]; float d = data[j], t = vec[column];
      sum += d * t;
    }
    result[permutation[row]] = sum;
  }
}
static void spmv() {
  const int groups = 38, n = 32 * groups; vector<int> length(groups), start(26), columns, order(n); vector<float> data, x(n);
  vector<double> wanted(n);
  for (int g = 0; g < groups; g++) length[g] = 25 - g * 19 / groups;
  for (int i = 0; i < n; i++) order[i] = i * 577 % n, x[i] = real(i);
  for (int k = 0; k < 25; k++) {
    start[k] = data.size();
    for (int i = 0; i < n && length[i / 32] > k; i++) {
      columns.push_back((order[i] + draw(i * 32 + k) % 200) % n); data.push_back(real(i * 32 + k));
      wanted[order[i]] += double(data.back()) * x[columns.back()];
    }
  }
  cudaMemcpyToSymbol(diagonal_starts, start.data(), 25 * 4), cudaMemcpyToSymbol(group_lengths, length.data(), groups * 4);
  float *result = device<float>(nullptr, n);
  ilp_spmv<<<groups, 32>>>(result, device(data.data(), data.size()), device(columns.data(), columns.size()), device(order.data(), n), device(x.data(), n), nullptr, n);
  float *got = host(result, n);
  for (int i = 0; i < n; i++) expect("spmv", i, got[i], (float)wanted[i], 1e-5);
}

// BFS2: a node per thread, a pair of kernels per level, marks of a byte.
struct Node { int start, count; };
__global__ void ilp_bfs2_Kernel(Node *nodes, int *edges, bool *mask, bool *updating, bool *visited, int *cost, int n) {
  int t = blockIdx.x * 512 + threadIdx.x;
  if (t < n && mask[t]) {
    mask[t] = false;
    for (int i = nodes[t].start; i < nodes[t].count + nodes[t].start; i++) {
      int to = edges[i];
      if (!visited[to]) cost[to] = cost[t] + 1, updating[to] = true;
    }
  }
}
__global__ void ilp_bfs2_Kernel2(bool *mask, bool *updating, bool *visited, bool *over, int n) {
  int t = blockIdx.x * 512 + threadIdx.x;
  if (t < n && updating[t]) mask[t] = true, visited[t] = true, *over = true, updating[t] = false;
}
static void bfs2() {
  const int n = 4096, blocks = n / 512; vector<Node> nodes(n);
  vector<int> edges, wanted(n, -1), first(n, -1), queue{0};
  for (int i = 0; i < n; i++) {
    nodes[i] = {(int)edges.size(), 1 + int(draw(i) % 15) * 2};
    for (int k = 0; k < nodes[i].count; k++) edges.push_back(draw(1000000 + edges.size()) % n);
  }
  wanted[0] = first[0] = 0;
  for (int head = 0; head < (int)queue.size(); head++)
    for (int k = 0; k < nodes[queue[head]].count; k++) {
      int to = edges[nodes[queue[head]].start + k];
      if (wanted[to] < 0) wanted[to] = wanted[queue[head]] + 1, queue.push_back(to);
    }
  bool marks[1] = {true};
  bool *mask = device<bool>(nullptr, n), *updating = device<bool>(nullptr, n), *visited = device<bool>(nullptr, n), *over = device<bool>(nullptr, 1);
  cudaMemcpy(mask, marks, 1, cudaMemcpyHostToDevice), cudaMemcpy(visited, marks, 1, cudaMemcpyHostToDevice);
  int *cost = device(first.data(), n), *e = device(edges.data(), edges.size()); Node *v = device(nodes.data(), n);
  for (bool more = true; more;) {
    more = false; cudaMemcpy(over, &more, 1, cudaMemcpyHostToDevice); ilp_bfs2_Kernel<<<blocks, 512>>>(v, e, mask, updating, visited, cost, n);
    ilp_bfs2_Kernel2<<<blocks, 512>>>(mask, updating, visited, over, n); cudaMemcpy(&more, over, 1, cudaMemcpyDeviceToHost);
  }
  int *got = host(cost, n);
  for (int i = 0; i < n; i++) expect("bfs2", i, got[i], wanted[i], 0);
}

// 3DS: a stencil of order eight, the third dimension in registers, a tile with a rim of eight in shared memory.
extern "C" __global__ void ilp_3ds(float *out, float *in, float *weight, const int nx, const int ny, const int nz) {
  __shared__ float tile[24][48];
  int at = (blockIdx.y * blockDim.y + threadIdx.y) * nx + blockIdx.x * blockDim.x + threadIdx.x, stride = nx * ny;
  int tx = threadIdx.x + 8, ty = threadIdx.y + 8;
  float column[9]; // column[4] is the middle after a step
#pragma unroll
  for (int p = 1; p < 9; p++, at += stride) column[p] = in[at];
  int to = at - 5 * stride;
  for (int k = 8; k < nz - 8; k++) {
#pragma unroll
    for (int p = 0; p < 8; p++) column[p] = column[p + 1];
    column[8] = in[at]; at += stride; to += stride;
    __syncthreads();
    if (threadIdx.y < 8) tile[threadIdx.y][tx] = in[to - 8 * nx], tile[threadIdx.y + 16][tx] = in[to + 8 * nx];
    if (threadIdx.x < 8) tile[ty][threadIdx.x] = in[to - 8], tile[ty][threadIdx.x + 40] = in[to + 32];
    tile[ty][tx] = column[4];
    __syncthreads();
    float value = weight[0] * column[4];
#pragma unroll
    for (int r = 1; r <= 4; r++)
      value += weight[r] * (column[4 + r] + column[4 - r] + tile[ty - r][tx] + tile[ty + r][tx] + tile[ty][tx - r] + tile[ty][tx + r]);
    out[to] = value;
  }
}
static void stencil8() {
  const int nx = 128, ny = 32, nz = 32, all = nx * ny * nz; vector<float> a(all);
  float weight[5] = {0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f};
  for (int i = 0; i < all; i++) a[i] = real(i);
  float *out = device<float>(nullptr, all);
  ilp_3ds<<<dim3(nx / 32, ny / 8), dim3(32, 8)>>>(out, device(a.data(), all), device(weight, 5), nx, ny, nz);
  float *got = host(out, all);
  for (int c = 4 * nx * ny; c < (nz - 12) * nx * ny; c++) {
    double w = weight[0] * a[c];
    for (int r = 1; r <= 4; r++) for (int step : {1, nx, nx * ny}) w += weight[r] * (double(a[c - r * step]) + a[c + r * step]);
    expect("3ds", c, got[c], (float)w, 1e-5);
  }
}

// LUD: blocks of 16, first the one on the diagonal, then its row and column, then the rest.
__global__ void ilp_lud_diagonal(float *m, int n, int offset) {
  __shared__ float a[16][16];
  int tx = threadIdx.x, at = offset * n + offset;
  for (int i = 0; i < 16; i++, at += n) a[i][tx] = m[at + tx];
  __syncthreads();
  for (int i = 0; i < 15; i++) {
    if (tx > i) {
      for (int j = 0; j < i; j++) a[tx][i] -= a[tx][j] * a[j][i];
      a[tx][i] /= a[i][i];
    }
    __syncthreads();
    if (tx > i) for (int j = 0; j < i + 1; j++) a[i + 1][tx] -= a[i + 1][j] * a[j][tx];
    __syncthreads();
  }
  at = (offset + 1) * n + offset;
  for (int i = 1; i < 16; i++, at += n) m[at + tx] = a[i][tx];
}
__global__ void ilp_lud_perimeter(float *m, int n, int offset) {
  __shared__ float corner[16][16], right[16][16], below[16][16];
  int x, at;
  if (threadIdx.x < 16) {
    x = threadIdx.x; at = offset * n + offset;
    for (int i = 0; i < 8; i++, at += n) corner[i][x] = m[at + x];
    at = offset * n + offset;
    for (int i = 0; i < 16; i++, at += n) right[i][x] = m[at + (blockIdx.x + 1) * 16 + x];
  } else {
    x = threadIdx.x - 16; at = (offset + 8) * n + offset;
    for (int i = 8; i < 16; i++, at += n) corner[i][x] = m[at + x];
    at = (offset + (blockIdx.x + 1) * 16) * n + offset;
    for (int i = 0; i < 16; i++, at += n) below[i][x] = m[at + x];
  }
  __syncthreads();
  if (threadIdx.x < 16) {
    x = threadIdx.x;
    for (int i = 1; i < 16; i++) for (int j = 0; j < i; j++) right[i][x] -= corner[i][j] * right[j][x];
  } else {
    x = threadIdx.x - 16;
    for (int i = 0; i < 16; i++) {
      for (int j = 0; j < i; j++) below[x][i] -= below[x][j] * corner[j][i];
      below[x][i] /= corner[i][i];
    }
  }
  __syncthreads();
  if (threadIdx.x < 16) {
    x = threadIdx.x; at = (offset + 1) * n + offset;
    for (int i = 1; i < 16; i++, at += n) m[at + (blockIdx.x + 1) * 16 + x] = right[i][x];
  } else {
    x = threadIdx.x - 16; at = (offset + (blockIdx.x + 1) * 16) * n + offset;
    for (int i = 0; i < 16; i++, at += n) m[at + x] = below[i][x];
  }
}
__global__ void ilp_lud_internal(float *m, int n, int offset) {
  __shared__ float right[16][16], below[16][16];
  int row = offset + (blockIdx.y + 1) * 16, column = offset + (blockIdx.x + 1) * 16;
  right[threadIdx.y][threadIdx.x] = m[(offset + threadIdx.y) * n + column + threadIdx.x];
  below[threadIdx.y][threadIdx.x] = m[(row + threadIdx.y) * n + offset + threadIdx.x];
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 16; i++) sum += below[threadIdx.y][i] * right[i][threadIdx.x];
  m[(row + threadIdx.y) * n + column + threadIdx.x] -= sum;
}
static void lud() {
  const int n = 96; vector<float> a(n * n);
  for (int i = 0; i < n * n; i++) a[i] = real(i) + (i % (n + 1) ? 0 : 40);
  float *m = device(a.data(), n * n); int i = 0;
  for (; i < n - 16; i += 16) {
    int rest = (n - i) / 16 - 1;
    ilp_lud_diagonal<<<1, 16>>>(m, n, i); ilp_lud_perimeter<<<rest, 32>>>(m, n, i); ilp_lud_internal<<<dim3(rest, rest), dim3(16, 16)>>>(m, n, i);
  }
  ilp_lud_diagonal<<<1, 16>>>(m, n, i);
  vector<double> w(a.begin(), a.end());
  for (int k = 0; k < n; k++)
    for (int r = k + 1; r < n; r++) {
      w[r * n + k] /= w[k * n + k];
      for (int c = k + 1; c < n; c++) w[r * n + c] -= w[r * n + k] * w[k * n + c];
    }
  float *got = host(m, n * n);
  for (int k = 0; k < n * n; k++) expect("lud", k, got[k], (float)w[k], 1e-5);
}

// SAD: 1089 shifts of blocks of 4 by 4, eighteen per thread and three at a time, then sums of larger blocks.
struct __align__(8) Pair { int first, second; };
const int SHIFTS = 1089, PADDED = 1096, ACROSS = 33, PER_THREAD = 18, SEARCHERS = (SHIFTS + PER_THREAD - 1) / PER_THREAD;
__shared__ u16 block_of_frame[16];
extern __shared__ __align__(8) u16 local_sums[];
__global__ void ilp_sad_mb_sad_calc(u16 *sums, u16 *frame, int mb_width, int mb_height, cudaTextureObject_t ref) {
  int bx = blockIdx.x, by = blockIdx.y, mb_x = bx >> 2, mb_y = by >> 2, block_x = bx & 3, block_y = by & 3;
  if (threadIdx.x >> 4 < 1) {
    int lane = threadIdx.x & 15, width = mb_width * 16, x = bx << 2, y = by << 2;
    if (x >> 4 < mb_width && y >> 4 < mb_height) block_of_frame[lane] = frame[y * width + x + (lane >> 2) * width + (lane & 3)];
  }
  __syncthreads();
  if (mb_x < mb_width && mb_y < mb_height) {
    int ref_x = ((mb_x << 2) + block_x) * 4 - 16, ref_y = ((mb_y << 2) + block_y) * 4 - 16;
    int first = threadIdx.x % SEARCHERS * PER_THREAD, last = first + PER_THREAD;
    int down = first / ACROSS, right = first - down * ACROSS, y0 = ref_y + down;
    if (last > SHIFTS) last = SHIFTS;
    for (int shift = first; shift < last; shift += 3) {
      u16 one = 0, two = 0, three = 0; int x0 = ref_x + right;
      for (int y = 0; y < 4; y++) {
        int t = tex2D<u16>(ref, x0, y0 + y);
        one += abs(t - block_of_frame[4 * y]); t = tex2D<u16>(ref, x0 + 1, y0 + y); one += abs(t - block_of_frame[4 * y + 1]);
        two += abs(t - block_of_frame[4 * y]); t = tex2D<u16>(ref, x0 + 2, y0 + y); one += abs(t - block_of_frame[4 * y + 2]);
        two += abs(t - block_of_frame[4 * y + 1]); three += abs(t - block_of_frame[4 * y]); t = tex2D<u16>(ref, x0 + 3, y0 + y);
        one += abs(t - block_of_frame[4 * y + 3]); two += abs(t - block_of_frame[4 * y + 2]); three += abs(t - block_of_frame[4 * y + 1]);
        t = tex2D<u16>(ref, x0 + 4, y0 + y); two += abs(t - block_of_frame[4 * y + 3]); three += abs(t - block_of_frame[4 * y + 2]);
        t = tex2D<u16>(ref, x0 + 5, y0 + y); three += abs(t - block_of_frame[4 * y + 3]);
      }
      local_sums[shift] = one, local_sums[shift + 1] = two, local_sums[shift + 2] = three;
      if ((right += 3) >= ACROSS) right -= ACROSS, y0++;
    }
  }
  __syncthreads();
  if (threadIdx.x >> 5 < 1 && mb_x < mb_width && mb_y < mb_height) {
    sums += (__umul24(__umul24(mb_width, mb_height), 25) + (__umul24(mb_y, mb_width) + mb_x) * 16 + 4 * block_y + block_x) * PADDED;
    for (int i = threadIdx.x & 31; i < PADDED / 4; i += 32) ((Pair *)sums)[i] = ((Pair *)local_sums)[i];
  }
}
// Two sums of 16 bits are added at once: none overflows.
__device__ __forceinline__ void add_four(unsigned *a, unsigned *b, unsigned *c, unsigned *d, unsigned *left, unsigned *right, unsigned *top, unsigned *bottom, unsigned *all, int i) {
  unsigned i00 = a[i], i01 = b[i], i10 = c[i], i11 = d[i];
  left[i] = i00 + i10; right[i] = i01 + i11; top[i] = i00 + i01; bottom[i] = i10 + i11; all[i] = (i00 + i01) + (i10 + i11);
}
__global__ void ilp_sad_larger_sad_calc_8(u16 *sums, int mb_width, int mb_height) {
  int tx = threadIdx.y & 1, ty = threadIdx.y >> 1, blocks = __mul24(mb_width, mb_height), half = PADDED / 2;
  int mine = (__mul24(blockIdx.y, mb_width) + blockIdx.x) * PADDED;
  unsigned *in = (unsigned *)(sums + (__mul24(blocks, 25) + ty * 8 + tx * 2) * PADDED + mine * 16);
  unsigned *tall = (unsigned *)(sums + (blocks * 17 + ty * 4 + tx * 2) * PADDED + mine * 8);
  unsigned *wide = (unsigned *)(sums + (blocks * 9 + ty * 4 + tx) * PADDED + mine * 8);
  unsigned *whole = (unsigned *)(sums + (blocks * 5 + ty * 2 + tx) * PADDED + mine * 4);
  for (int i = threadIdx.x; i < (SHIFTS + 1) / 2; i += 32)
    add_four(in, in + half, in + 4 * half, in + 5 * half, tall, tall + half, wide, wide + 2 * half, whole, i);
}
__global__ void ilp_sad_larger_sad_calc_16(u16 *sums, int mb_width, int mb_height) {
  int blocks = __mul24(mb_width, mb_height) * PADDED, half = PADDED / 2, mine = (__mul24(blockIdx.y, mb_width) + blockIdx.x) * PADDED;
  unsigned *in = (unsigned *)(sums + ((blocks + mine) << 2) + blocks), *tall = (unsigned *)(sums + ((blocks + mine) << 1) + blocks);
  unsigned *wide = (unsigned *)(sums + blocks + mine * 2), *whole = (unsigned *)(sums + mine);
  for (int i = threadIdx.x; i < (SHIFTS + 1) / 2; i += 32)
    add_four(in, in + half, in + 2 * half, in + 3 * half, tall, tall + half, wide, wide + half, whole, i);
}
static void sad() {
  const int mw = 3, mh = 2, w = 16 * mw, h = 16 * mh, blocks = mw * mh, all = 41 * blocks * PADDED; vector<u16> now(w * h), then(w * h), zero(all);
  for (int i = 0; i < w * h; i++) now[i] = draw(i) % 256, then[i] = draw(i + 77777) % 256;
  cudaArray_t array; cudaChannelFormatDesc format = cudaCreateChannelDesc<u16>();
  cudaMallocArray(&array, &format, w, h); cudaMemcpy2DToArray(array, 0, 0, then.data(), 2 * w, 2 * w, h, cudaMemcpyHostToDevice);
  cudaResourceDesc resource = {};
  cudaTextureDesc how = {};
  cudaTextureObject_t ref = 0;
  resource.resType = cudaResourceTypeArray; resource.res.array.array = array; how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.readMode = cudaReadModeElementType; cudaCreateTextureObject(&ref, &resource, &how, nullptr);
  u16 *sums = device(zero.data(), all);
  ilp_sad_mb_sad_calc<<<dim3(4 * mw, 4 * mh), SEARCHERS, 2 * PADDED>>>(sums, device(now.data(), w * h), mw, mh, ref);
  ilp_sad_larger_sad_calc_8<<<dim3(mw, mh), dim3(32, 4)>>>(sums, mw, mh); ilp_sad_larger_sad_calc_16<<<dim3(mw, mh), 32>>>(sums, mw, mh);
  u16 *got = host(sums, all);
  // Sum of a rectangle of pixels at a shift, then every kind of block in the order of the array.
  auto expect_block = [&](int where, int x, int y, int bw, int bh) {
    for (int s = 0; s < SHIFTS; s++) {
      int sum = 0;
      for (int r = y; r < y + bh; r++)
        for (int c = x; c < x + bw; c++) {
          int rr = r - 16 + s / ACROSS, cc = c - 16 + s % ACROSS;
          sum += std::abs(now[r * w + c] - then[std::min(std::max(rr, 0), h - 1) * w + std::min(std::max(cc, 0), w - 1)]);
        }
      expect("sad", where * PADDED + s, (int)got[where * PADDED + s], sum & 65535, 0);
    }
  };
  for (int b = 0; b < blocks; b++) {
    int x = b % mw * 16, y = b / mw * 16;
    expect_block(b, x, y, 16, 16);
    for (int i = 0; i < 2; i++) expect_block(blocks + 2 * b + i, x, y + 8 * i, 16, 8), expect_block(3 * blocks + 2 * b + i, x + 8 * i, y, 8, 16);
    for (int i = 0; i < 4; i++) expect_block(5 * blocks + 4 * b + i, x + i % 2 * 8, y + i / 2 * 8, 8, 8);
    for (int i = 0; i < 8; i++) expect_block(9 * blocks + 8 * b + i, x + i % 2 * 8, y + i / 2 * 4, 8, 4);
    for (int i = 0; i < 8; i++) expect_block(17 * blocks + 8 * b + i, x + i % 4 * 4, y + i / 4 * 8, 4, 8);
    for (int i = 0; i < 16; i++) expect_block(25 * blocks + 16 * b + i, x + i % 4 * 4, y + i / 4 * 4, 4, 4);
  }
}

// FFT: a pass of radix two over 256 points per launch, angles in double precision.
__device__ __forceinline__ float2 times(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
__global__ void ilp_fft(int span, float2 *from, float2 *to, int n) {
  from += blockIdx.x * n, to += blockIdx.x * n;
  int j = threadIdx.x; float angle = -2 * M_PI * (j % span) / (span * 2); float2 v[2];
  for (int r = 0; r < 2; r++) v[r] = times(from[j + r * n / 2], make_float2(cos(r * angle), sin(r * angle)));
  int at = (j / span) * span * 2 + j % span;
  to[at] = make_float2(v[0].x + v[1].x, v[0].y + v[1].y), to[at + span] = make_float2(v[0].x - v[1].x, v[0].y - v[1].y);
}
static void fft() {
  const int n = 256, batch = 12; vector<float2> a(n * batch);
  for (int i = 0; i < n * batch; i++) a[i] = make_float2(real(2 * i), real(2 * i + 1));
  float2 *x = device(a.data(), n * batch), *y = device<float2>(nullptr, n * batch);
  for (int span = 1; span < n; span *= 2, std::swap(x, y)) ilp_fft<<<batch, n / 2>>>(span, x, y, n);
  float2 *got = host(x, n * batch);
  for (int i = 0; i < n * batch; i++) {
    double re = 0, im = 0;
    for (int k = 0; k < n; k++) {
      double t = -2 * M_PI * (i % n * k % n) / n, c = cos(t), s = sin(t); float2 v = a[i / n * n + k];
      re += v.x * c - v.y * s, im += v.x * s + v.y * c;
    }
    expect("fft re", i, got[i].x, (float)re, 1e-4), expect("fft im", i, got[i].y, (float)im, 1e-4);
  }
}

// NN: four layers of a network, a neuron per thread; the last two have a thread per CTA.
__constant__ int window29[25] = {0, 1, 2, 3, 4, 29, 30, 31, 32, 33, 58, 59, 60, 61, 62, 87, 88, 89, 90, 91, 116, 117, 118, 119, 120};
__constant__ int window13[25] = {0, 1, 2, 3, 4, 13, 14, 15, 16, 17, 26, 27, 28, 29, 30, 39, 40, 41, 42, 43, 52, 53, 54, 55, 56};
__device__ __forceinline__ float squash(float x) { return 1.7159 * tanhf(0.66666667 * x); }
__global__ void ilp_nn_executeFirstLayer(float *in, float *weight, float *out) {
  int map = blockIdx.x, x = threadIdx.x, y = threadIdx.y, w = map * 26; float sum = 0;
  sum += weight[w++];
  for (int i = 0; i < 25; ++i) sum += in[y * 2 * 29 + x * 2 + window29[i] + 29 * 29 * blockIdx.y] * weight[w + i];
  out[13 * 13 * map + y * 13 + x + 13 * 13 * 6 * blockIdx.y] = squash(sum);
}
__global__ void ilp_nn_executeSecondLayer(float *in, float *weight, float *out) {
  int map = blockIdx.x, x = threadIdx.x, y = threadIdx.y, w = map * 26 * 6; float sum = 0;
  sum += weight[w++];
  for (int i = 0; i < 25; ++i)
#pragma unroll
    for (int m = 0; m < 6; m++) sum += in[169 * m + x * 2 + 13 * (y * 2) + window13[i] + 13 * 13 * 6 * blockIdx.y] * weight[w + i * 6 + m];
  out[5 * 5 * map + y * 5 + x + 1250 * blockIdx.y] = squash(sum);
}
template <int INPUTS> __device__ __forceinline__ void dense(float *in, float *weight, float *out, int outputs) {
  int w = blockIdx.x * (INPUTS + 1); float sum = 0;
  sum += weight[w++];
  for (int i = 0; i < INPUTS; ++i) sum += in[i + INPUTS * blockIdx.y] * weight[w + i];
  out[blockIdx.x + outputs * blockIdx.y] = squash(sum);
}
__global__ void ilp_nn_executeThirdLayer(float *in, float *weight, float *out) { dense<1250>(in, weight, out, 100); }
__global__ void ilp_nn_executeFourthLayer(float *in, float *weight, float *out) { dense<100>(in, weight, out, 10); }
static void nn() {
  const int n = 2, sizes[5] = {841, 1014, 1250, 100, 10}, counts[4] = {156, 7800, 125100, 1010};
  vector<float> image(841 * n), weight[4];
  for (float &v : image) v = real(&v - image.data());
  float *layer[5] = {device(image.data(), 841 * n)}, *w[4];
  for (int l = 0; l < 4; l++) {
    for (int i = 0; i < counts[l]; i++) weight[l].push_back(0.2f * real(i + 200000 * l));
    w[l] = device(weight[l].data(), counts[l]), layer[l + 1] = device<float>(nullptr, sizes[l + 1] * n);
  }
  ilp_nn_executeFirstLayer<<<dim3(6, n), dim3(13, 13)>>>(layer[0], w[0], layer[1]);
  ilp_nn_executeSecondLayer<<<dim3(50, n), dim3(5, 5)>>>(layer[1], w[1], layer[2]);
  ilp_nn_executeThirdLayer<<<dim3(100, n), 1>>>(layer[2], w[2], layer[3]); ilp_nn_executeFourthLayer<<<dim3(10, n), 1>>>(layer[3], w[3], layer[4]);
  for (int l = 0; l < 4; l++) {
    float *in = host(layer[l], sizes[l] * n), *got = host(layer[l + 1], sizes[l + 1] * n);
    for (int o = 0; o < sizes[l + 1] * n; o++) {
      // Inputs per output and maps of inputs, each seen through a window of five by five in the first two layers.
      int p = o / sizes[l + 1], q = o % sizes[l + 1], maps = l == 0 ? 1 : l == 1 ? 6 : sizes[l], side = l ? 13 : 29, width = l ? 5 : 13;
      int per = l < 2 ? 25 * maps : maps, unit = l < 2 ? q / (width * width) : q; const float *u = &weight[l][unit * (l < 2 ? 26 * maps : per + 1)];
      double sum = u[0];
      for (int k = 0; k < per; k++) {
        int m = k % maps, s = k / maps, x = q % width * 2 + s % 5, y = q / width % width * 2 + s / 5;
        sum += double(u[k + 1]) * in[p * sizes[l] + (l < 2 ? m * side * side + y * side + x : m)];
      }
      expect("nn", 10000 * l + o, got[o], (float)(1.7159 * tanh(0.66666667 * sum)), 1e-5);
    }
  }
}

// BLK: prices of a call and a put per option, all threads stride over the options.
__device__ __forceinline__ float normal(float d) {
  float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
  float c = 0.39894228f * __expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - c : c;
}
__global__ void ilp_blk(float *call, float *put, float *stock, float *strike, float *years, float rate, float spread, int n) {
  for (int i = blockDim.x * blockIdx.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    float s = stock[i], x = strike[i], t = years[i], root = __fdividef(1.0f, rsqrtf(t));
    float d1 = __fdividef(__logf(s / x) + (rate + 0.5f * spread * spread) * t, spread * root), d2 = d1 - spread * root;
    float n1 = normal(d1), n2 = normal(d2), discount = __expf(-rate * t);
    call[i] = s * n1 - x * discount * n2; put[i] = x * discount * (1.0f - n2) - s * (1.0f - n1);
  }
}
static void blk() {
  const int blocks = 16, n = 128 * blocks * 6; vector<float> s(n), x(n), t(n);
  for (int i = 0; i < n; i++) s[i] = 17.5f + 12.5f * real(i), x[i] = 50.5f + 49.5f * real(i + n), t[i] = 5.125f + 4.875f * real(i + 2 * n);
  float *call = device<float>(nullptr, n), *put = device<float>(nullptr, n);
  ilp_blk<<<blocks, 128>>>(call, put, device(s.data(), n), device(x.data(), n), device(t.data(), n), 0.02f, 0.3f, n);
  float *c = host(call, n), *p = host(put, n);
  for (int i = 0; i < n; i++) {
    double v = 0.3 * sqrt(t[i]), d = (log(s[i] / x[i]) + (0.02 + 0.045) * t[i]) / v, e = exp(-0.02 * t[i]);
    double n1 = 0.5 * erfc(-d * M_SQRT1_2), n2 = 0.5 * erfc((v - d) * M_SQRT1_2), w = s[i] * n1 - x[i] * e * n2;
    expect("call", i, c[i], (float)w, 2e-4), expect("put", i, p[i], (float)(w - s[i] + x[i] * e), 2e-4);
  }
}

// RAY: a ray per thread through up to five reflections; colours of all of them lie in local memory.
struct Thing {
  float3 at; float radius, r, g, b, a; unsigned plane, unused;
};
struct Ray { float3 from, way; };
const int THINGS = 5;
__constant__ float4 camera[3]; __constant__ Thing things[THINGS];
__host__ __device__ inline float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
__host__ __device__ inline float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
__host__ __device__ inline float3 operator*(float3 a, float b) { return make_float3(a.x * b, a.y * b, a.z * b); }
__host__ __device__ inline float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ inline float3 unit(float3 a) { return a * rsqrtf(dot(a, a)); }
__device__ inline float hit(Ray ray, Thing o) {
  if (o.plane) {
    float3 n = unit(make_float3(0, 1, 0)); float m = dot(n, ray.way);
    if (fabsf(m) < 0.0001f) return 0;
    float t = -dot(n, ray.from - o.at) / m;
    return t > 0 ? t : 0;
  }
  float3 l = o.at - ray.from; float d = dot(l, ray.way), l2 = dot(l, l), r2 = o.radius * o.radius, m2 = l2 - d * d;
  if ((d < 0 && l2 > r2) || m2 > r2) return 0;
  float q = sqrtf(r2 - m2);
  return l2 > r2 ? d - q : d + q;
}
__device__ inline bool lit(float3 p, float3 way, float shift) {
  float t = 0; float3 l = make_float3(10, 10, 10) - p; float reach = dot(l, l);
  Ray ray = {p + way * 0.0001f, way};
  for (int j = 0; j < THINGS && !t; j++) {
    Thing o = things[j];
    o.at.x += shift; t = hit(ray, o);
    float3 end = p + way * t;
    if (t > 0 && dot(end, end) > reach) t = 0;
  }
  return t == 0;
}
__global__ void ilp_ray(unsigned *picture, Thing *unused, unsigned w, unsigned h, float shift, float focus) {
  unsigned x = __umul24(blockIdx.x, blockDim.x) + threadIdx.x, y = __umul24(blockIdx.y, blockDim.y) + threadIdx.y, id = x + y * w, nearest = 0, deepest = 5, n = 0;
  float4 pile[5];
  for (int i = 0; i < deepest; i++) pile[i] = make_float4(0, 0, 0, 1);
  if (x < w && y < h) {
    float depth = 10000, pixel = 2.0f / float(min(w, h));
    picture[id] = 0;
    float4 m0 = camera[0], m1 = camera[1], m2 = camera[2];
    Ray ray = {make_float3(m0.w, m1.w, m2.w)};
    ray.way = unit(make_float3(m0.x, m0.y, m0.z) * focus + make_float3(m2.x, m2.y, m2.z) * (float(x) - float(w) * 0.5f) * pixel + make_float3(m1.x, m1.y, m1.z) * (float(y) - float(h) * 0.5f) * pixel);
    __syncthreads();
    for (int i = 0; i < deepest && n == i; i++) {
      for (int j = 0; j < THINGS; j++) {
        Thing o = things[j];
        o.at.x += shift;
        float t = hit(ray, o);
        if (t > 0 && t < depth) depth = t, nearest = j;
      }
      float t = depth;
      if (t > 0 && t < 10000) {
        n++;
        Thing o = things[nearest];
        o.at.x += shift;
        float3 p = ray.from + ray.way * t, l = unit(make_float3(10, 10, 10) - p), v = unit(ray.from - p);
        float3 normal = o.plane ? unit(make_float3(0, 1, 0)) : unit(p - o.at), front = dot(v, normal) < 0 ? normal * -1 : normal;
        pile[i] = make_float4(0.05f * o.r, 0.05f * o.g, 0.05f * o.b, 0.05f * o.a);
        if (dot(front, l) > 0 && lit(p, l, shift)) {
          float3 middle = unit(l + v); float k = min(1.0f, dot(front, l)), shine = 0.8f * powf(max(0.0f, min(1.0f, dot(front, middle))), 50.0f);
          pile[i].x += 0.3f * o.r * k, pile[i].y += 0.3f * o.g * k, pile[i].z += 0.3f * o.b * k, pile[i].w += 0.3f * o.a * k;
          pile[i].x += shine, pile[i].y += shine, pile[i].z += shine;
        }
        ray.way = unit(normal * 2 * dot(normal, v) - v); ray.from = p + ray.way * 0.0001f;
      }
      depth = 10000;
    }
    for (int i = n - 1; i > 0; i--) {
      float4 a = pile[i - 1], b = pile[i];
      pile[i - 1] = make_float4(a.x + 0.8f * b.x, a.y + 0.8f * b.y, a.z + 0.8f * b.z, a.w + 0.8f * b.w);
    }
    float4 c = pile[0];
    picture[id] += unsigned(__saturatef(c.w) * 255) << 24 | unsigned(__saturatef(c.z) * 255) << 16 | unsigned(__saturatef(c.y) * 255) << 8 | unsigned(__saturatef(c.x) * 255);
  }
}
static void ray() {
  const int w = 64, h = 64;
  Thing scene[THINGS] = {{{0, -1.5f, 0}, 0.5f, 0, 1, 1, 1, 1}, {{-1, 0, -1}, 0.5f, 1, 0, 0, 1}, {{1, 0, -1}, 0.5f, 0, 0, 1, 1}, {{0, 0, -2}, 0.75f, 0, 1, 0, 1}, {{0.3f, -1, -0.4f}, 0.4f, 0.8f, 0.7f, 0.2f, 1}};
  float4 view[3] = {{0, 0, -1, 0}, {0, 1, 0, 0.5f}, {1, 0, 0, 2}};
  cudaMemcpyToSymbol(things, scene, sizeof scene), cudaMemcpyToSymbol(camera, view, sizeof view);
  unsigned *picture = device<unsigned>(nullptr, w * h), *got;
  ilp_ray<<<dim3(w / 16, h / 8), dim3(16, 8)>>>(picture, nullptr, w, h, 0.0f, 1.57f); got = host(picture, w * h); typedef double V[3];
  auto dots = [](const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
  auto meets = [&](const Thing &o, const double *p, const double *d) {
    if (o.plane) return std::fabs(d[1]) < 1e-4 ? 0 : std::fmax(0, (o.at.y - p[1]) / d[1]);
    V l = {o.at.x - p[0], o.at.y - p[1], o.at.z - p[2]};
    double b = dots(l, d), c = dots(l, l) - double(o.radius) * o.radius, q = b * b - c;
    return q < 0 || (b < 0 && c > 0) ? 0 : c > 0 ? b - sqrt(q) : b + sqrt(q);
  };
  int wrong = 0;
  for (int id = 0; id < w * h; id++) {
    V p = {0, 0.5, 2}, d = {(id % w - w / 2) * 2.0 / w, (id / w - h / 2) * 2.0 / h, -1.57}, light, v, n, q, sum = {};
    double part = 1;
    for (int i = 0; i < 5; i++, part *= 0.8) {
      double nearest = 1e4, size = sqrt(dots(d, d)), far = 0, t; const Thing *o = nullptr;
      for (double &e : d) e /= size;
      for (auto &s : scene) if ((t = meets(s, p, d)) > 0 && t < nearest) nearest = t, o = &s;
      if (!o) break;
      for (int k = 0; k < 3; k++) p[k] += d[k] * nearest, v[k] = -d[k], light[k] = 10 - p[k], n[k] = o->plane ? k == 1 : p[k] - (&o->at.x)[k];
      far = dots(light, light), size = sqrt(dots(n, n));
      for (int k = 0; k < 3; k++) light[k] /= sqrt(far), n[k] /= size, q[k] = p[k] + 1e-4 * light[k];
      double side = dots(n, v) < 0 ? -1 : 1, bright = side * dots(n, light), shine = 0; bool dark = bright <= 0;
      for (auto &s : scene)
        if (!dark && (t = meets(s, q, light)) > 0) dark = dots(p, p) + 2 * t * dots(p, light) + t * t <= far; // as far as the hit is from 0
      V middle = {light[0] + v[0], light[1] + v[1], light[2] + v[2]};
      if (!dark) shine = 0.8 * pow(std::fmax(0, std::fmin(1, side * dots(n, middle) / sqrt(dots(middle, middle)))), 50);
      for (int k = 0; k < 3; k++) sum[k] += part * ((0.05 + (dark ? 0 : 0.3 * std::fmin(1, bright))) * (&o->r)[k] + shine);
      double along = 2 * dots(n, v);
      for (int k = 0; k < 3; k++) d[k] = n[k] * along - v[k], p[k] += 1e-4 * d[k];
    }
    bool other = false;
    for (int k = 0; k < 3; k++) other |= std::abs(int(got[id] >> 8 * k & 255) - int(255 * std::fmin(1, sum[k]))) > 1;
    wrong += other;
  }
  // Rays along an edge may fall to either side of it.
  expect("ray's pixels", 0, (int)(wrong <= w * h / 100), 1, 0);
}
int main() {
  gups(); lps(); hs(); bp(); spmv(); bfs2(); stencil8(); lud(); sad(); fft(); nn(); blk(); ray();
  return finish("ilp_smra");
}
