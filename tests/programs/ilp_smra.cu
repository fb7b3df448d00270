// Kernels of the ILP-SMRA paper's set: our own programs of the published algorithms; blocks, tiles and accesses per thread as in the public ones
// (GUPS; ISPASS: LPS, NN, RAY; Rodinia: HS, BP, BFS2, LUD; Parboil: SPMV, SAD, FFT; CUDA samples: 3DS, BLK), at a small size.
#include "check.h"
#include <algorithm>
#include <utility>
#include <vector>
using std::vector;
using u16 = unsigned short; using u64 = unsigned long long;

// GUPS: a generator of 64 bits per thread names a word and what to change in it, half by half.
__host__ __device__ inline u64 after(u64 x) { return 2 * x ^ (x >> 63 ? 7 : 0); }
__global__ void ilp_gups(const u64 *seeds, uint2 *table, u64 mask, u64 updates) {
  for (u64 x = seeds[threadIdx.x + blockIdx.x * blockDim.x]; updates; --updates) {
    uint2 *entry = table + ((x = after(x)) & mask);
    atomicXor(&entry->x, unsigned(x)), atomicXor(&entry->y, unsigned(x >> 32));
  }
}
static void gups() {
  // As many updates per thread as if 512 CTAs made four for each word of the table: only some of them run.
  const int size = 1 << 19, threads = 128 * sized(8, 512); vector<u64> starts(threads), wanted(size);
  for (int i = 0; i < size; i++) wanted[i] = i;
  for (int i = 0; i < threads; i++) starts[i] = ((u64)draw(2 * i) << 32) | draw(2 * i + 1);
  u64 *table = device(wanted.data(), size);
  ilp_gups<<<threads / 128, 128>>>(device(starts.data(), threads), (uint2 *)table, size - 1, 4 * size / 128 / 512); if (full) return;
  for (u64 x : starts) for (int k = 0; k < 32; k++) x = after(x), wanted[x % size] ^= x;
  u64 *got = host(table, size);
  for (int i = 0; i < size; i++) expect("gups", i, (int)(got[i] == wanted[i]), 1, 0);
}

// LPS: a tile of 32 by 4 marches through the planes, three of them in shared memory.
const int LX = 32, LY = 4, LROW = LX + 2, LPLANE = LROW * (LY + 2);
// A column of cells: `u` lies in the tile's middle plane, `next` in the newest plane read.
struct Column {
  bool used; float *u; const float *next;
  __device__ __forceinline__ void read() { if (used) u[LPLANE] = *next; }
  __device__ __forceinline__ void advance(int plane, bool more) {
    if (used) {
      next += plane, u[-LPLANE] = *u, *u = u[LPLANE];
      if (more) u[LPLANE] = *next;
    }
  }
};
__global__ void ilp_lps(float *to, const float *from, int pitch, int nx, int ny, int nz) {
  __shared__ float tile[3 * LPLANE];
  auto column = [=](int tx, int ty) {
    int x = LX * blockIdx.x + tx, y = LY * blockIdx.y + ty; bool on = x >= 0 && y >= 0 && x < nx && y < ny;
    return Column{on, tile + LPLANE + LROW * (ty + 1) + tx + 1, from + (y * pitch + x)};
  };
  // Two warps hold the rows above and below the tile, the third one's first lanes its sides from corner to corner.
  int tx = threadIdx.x, ty = threadIdx.y, side = tx + (ty - 2) * LX, plane = pitch * ny;
  Column body = column(tx, ty), rim = ty >= 2 ? column(side & 1 ? LX : -1, (side >> 1) - 1) : column(tx, ty ? LY : -1);
  rim.used &= side < 2 * (LY + 2);
  float *result = to + (body.next - from);
  int x = LX * blockIdx.x + tx, y = LY * blockIdx.y + ty; bool wall = !x || !y || x + 1 == nx || y + 1 == ny;
  body.read(), rim.read();
  for (int z = 1; z <= nz; ++z, result += plane) {
    body.advance(plane, z < nz), rim.advance(plane, z < nz);
    __syncthreads();
    if (body.used) {
      const float *u = body.u;
      *result = wall || z == 1 || z == nz ? *u : (u[-LPLANE] + u[LPLANE] + u[-LROW] + u[LROW] + u[-1] + u[1]) * (1.0f / 6.0f);
    }
    __syncthreads();
  }
}
static void lps() {
  const int n = 100, ny = sized(20, 100), nz = ny, pitch = 128, all = pitch * ny * nz; vector<float> a(all);
  for (int i = 0; i < all; i++) a[i] = real(i);
  float *to = device<float>(nullptr, all), *got;
  ilp_lps<<<dim3((n + LX - 1) / LX, (ny + LY - 1) / LY), dim3(LX, LY)>>>(to, device(a.data(), all), pitch, n, ny, nz); if (full) return; got = host(to, all);
  for (int z = 0; z < nz; z++)
    for (int y = 0; y < ny; y++)
      for (int x = 0; x < n; x++) {
        int c = x + pitch * (y + ny * z), p = pitch * ny; bool edge = !x || !y || !z || x == n - 1 || y == ny - 1 || z == nz - 1;
        double w = edge ? a[c] : (0.0 + a[c - 1] + a[c + 1] + a[c - pitch] + a[c + pitch] + a[c - p] + a[c + p]) / 6;
        expect("lps", c, got[c], (float)w, 1e-5);
      }
}

// HS: some steps of a five-point stencil on a tile of 16 by 16 that loses a rim per step.
struct Span { // of places along a side of the tile
  int low, high;
  __device__ __forceinline__ bool has(int v) const { return low <= v && v <= high; }
  __device__ __forceinline__ int nearest(int v) const { return min(max(v, low), high); }
};
__device__ __forceinline__ double bend(float middle, float a, float b) { return a + b - 2.0 * middle; }
__global__ void ilp_hs(float *to, const float *from, const float *power, int2 size, int steps, int2 rim, float3 resistance, float capacity, float step) {
  __shared__ float heat[256], source[256], fresh[256];
  const int tx = threadIdx.x, ty = threadIdx.y, cell = 16 * ty + tx, useful = 16 - 2 * steps;
  const int left = blockIdx.x * useful - rim.x, top = blockIdx.y * useful - rim.y, at = left + tx + (top + ty) * size.x;
  const Span across = {max(-left, 0), min(size.x - left, 16) - 1}, down = {max(-top, 0), min(size.y - top, 16) - 1};
  const bool on_chip = across.has(tx) && down.has(ty);
  if (on_chip) source[cell] = power[at], heat[cell] = from[at];
  const float kx = 1.0f / resistance.x, ky = 1.0f / resistance.y, kz = 1.0f / resistance.z, gain = step / capacity;
  const int west = 16 * ty + across.nearest(tx - 1), east = 16 * ty + across.nearest(tx + 1);
  const int north = 16 * down.nearest(ty - 1) + tx, south = 16 * down.nearest(ty + 1) + tx;
  __syncthreads();
  for (int lost = 1;; ++lost) {
    const Span kept = {lost, 15 - lost}; const bool mine = on_chip && kept.has(tx) && kept.has(ty);
    if (mine) {
      float now = heat[cell]; double flow = source[cell] + bend(now, heat[north], heat[south]) * ky;
      flow += bend(now, heat[west], heat[east]) * kx; flow += (80.0f - now) * kz;
      fresh[cell] = now + gain * flow;
    }
    __syncthreads();
    if (lost >= steps) {
      if (mine) to[at] = fresh[cell];
      return;
    }
    if (mine) heat[cell] = fresh[cell];
    __syncthreads();
  }
}
static void hs() {
  const int n = sized(64, 512), blocks = (n + 11) / 12;
  float cap = 0.5f * 1.75e6f * 0.0005f * (0.016f / n) * (0.016f / n), rx = 1 / (2 * 100 * 0.0005f), ry = rx, rz = 0.0005f / (100 * (0.016f / n) * (0.016f / n));
  float step = 0.001f / (3.0e6f / (0.5f * 0.0005f * 1.75e6f)); vector<float> a(n * n), p(n * n);
  for (int i = 0; i < n * n; i++) a[i] = 323 + 5 * real(i), p[i] = 0.01f * (1 + real(i + 99999));
  float *x = device(a.data(), n * n), *y = device<float>(nullptr, n * n), *power = device(p.data(), n * n);
  for (int left = 3; left > 0; left -= 2, std::swap(x, y))
    ilp_hs<<<dim3(blocks, blocks), dim3(16, 16)>>>(y, x, power, {n, n}, left < 2 ? left : 2, {2, 2}, {rx, ry, rz}, cap, step);
  if (full) return;
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

// BP: products of inputs and weights summed in a tile, then new weights. Row and column 0 of the weights are for biases.
__device__ __forceinline__ int bp_input() { return 16 * blockIdx.y + threadIdx.y + 1; }
__device__ __forceinline__ int bp_weight(int hidden) { return bp_input() * (hidden + 1) + threadIdx.x + 1; }
__global__ void ilp_bp_bpnn_layerforward_CUDA(float *sums, float *weights, const float *input, int hidden) {
  __shared__ float unit[16], product[16][16];
  const bool first = threadIdx.x == 0; float *cell = &product[threadIdx.y][threadIdx.x], *weight = weights + bp_weight(hidden);
  if (first) unit[threadIdx.y] = input[bp_input()];
  __syncthreads();
  *cell = *weight;
  __syncthreads();
  *cell *= unit[threadIdx.y];
  __syncthreads();
  for (int level = 0; level < __log2f(16);) { // rows of a group add up in its first
    const int group = __powf(2, ++level);
    if (int(threadIdx.y) % group == 0) *cell += cell[group / 2 * 16];
    __syncthreads();
  }
  *weight = *cell;
  __syncthreads();
  if (first) sums[hidden * blockIdx.y + threadIdx.y] = product[0][threadIdx.y];
}
__device__ __forceinline__ double bp_change(double push, float before) { return push + 0.3 * before; }
__global__ void ilp_bp_bpnn_adjust_weights_cuda(float *weights, float *former, const float *input, const float *delta, int hidden) {
  float *weight = weights + bp_weight(hidden), *before = former + bp_weight(hidden);
  delta += threadIdx.x + 1, input += bp_input();
  *weight += bp_change(0.3 * *delta * *input, *before); *before = bp_change(0.3 * *delta * *input, *before);
  __syncthreads();
  if ((blockIdx.y | threadIdx.y) == 0) {
    weight = weights + threadIdx.x + 1, before = former + threadIdx.x + 1;
    *weight += bp_change(0.3 * *delta, *before); *before = bp_change(0.3 * *delta, *before);
  }
}
static void bp() {
  const int tiles = sized(24, 4096), in = 16 * tiles, hid = 16, all = (in + 1) * (hid + 1); vector<float> x(in + 1), w(all), f(all), d(hid + 1);
  for (int i = 0; i <= in; i++) x[i] = real(i);
  for (int i = 0; i < all; i++) w[i] = real(i + 1000), f[i] = real(i + 100000);
  for (int i = 0; i <= hid; i++) d[i] = real(i + 7);
  float *input = device(x.data(), in + 1), *scratch = device(w.data(), all), *weights = device(w.data(), all), *former = device(f.data(), all);
  float *partial = device<float>(nullptr, tiles * hid), *delta = device(d.data(), hid + 1);
  ilp_bp_bpnn_layerforward_CUDA<<<dim3(1, tiles), dim3(16, 16)>>>(partial, scratch, input, hid);
  float *sums = host(partial, tiles * hid);
  for (int b = 0; b < tiles && !full; b++)
    for (int h = 0; h < hid; h++) {
      double sum = 0;
      for (int k = 0; k < 16; k++) sum += double(x[16 * b + k + 1]) * w[(16 * b + k + 1) * (hid + 1) + h + 1];
      expect("bp sums", b * hid + h, sums[b * hid + h], (float)sum, 1e-5);
    }
  ilp_bp_bpnn_adjust_weights_cuda<<<dim3(1, tiles), dim3(16, 16)>>>(weights, former, input, delta, hid); if (full) return;
  float *gw = host(weights, all), *gf = host(former, all);
  for (int i = 0; i <= in; i++)
    for (int h = 1; h <= hid; h++) {
      int c = i * (hid + 1) + h; double change = 0.3 * d[h] * (i ? x[i] : 1) + 0.3 * f[c];
      expect("bp weights", c, gw[c], (float)(w[c] + change), 1e-5), expect("bp former", c, gf[c], (float)change, 1e-5);
    }
}

// SPMV: a row per thread, entries along jagged diagonals.
__constant__ int diagonal_starts[5000], group_lengths[5000];
__global__ void ilp_spmv(int rows, const int *columns, const float *entries, const float *x, float *y, const int *place) {
  const int row = threadIdx.x + blockIdx.x * blockDim.x;
  if (row >= rows) return;
  float total = 0;
  for (int left = group_lengths[row / 32], diagonal = 0; diagonal < left; ++diagonal) {
    const int at = row + diagonal_starts[diagonal];
    total = fmaf(x[columns[at]], entries[at], total);
  }
  y[place[row]] = total;
}
static void spmv() {
  const int groups = sized(38, 2033), n = 32 * groups; vector<int> length(groups), start(26), columns, order(n); vector<float> data, x(n);
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
  ilp_spmv<<<groups, 32>>>(n, device(columns.data(), columns.size()), device(data.data(), data.size()), device(x.data(), n), result, device(order.data(), n));
  if (full) return;
  float *got = host(result, n);
  for (int i = 0; i < n; i++) expect("spmv", i, got[i], (float)wanted[i], 1e-5);
}

// BFS2: a node per thread, a pair of kernels per level, marks of a byte.
struct Node { int start, count; };
__global__ void ilp_bfs2_Kernel(int n, const Node *nodes, const int *edges, int *cost, const bool *visited, bool *frontier, bool *reached) {
  const int own = threadIdx.x + 512 * blockIdx.x;
  if (own >= n || !frontier[own]) return;
  const Node *node = nodes + own; frontier[own] = false;
  for (int edge = node->start; edge < node->start + node->count; ++edge) {
    const int other = edges[edge]; const bool seen = visited[other];
    if (!seen) cost[other] = cost[own] + 1;
    if (!seen) reached[other] = true;
  }
}
__global__ void ilp_bfs2_Kernel2(int n, bool *again, bool *visited, bool *frontier, bool *reached) {
  const int own = threadIdx.x + 512 * blockIdx.x;
  if (own < n && reached[own]) reached[own] = false, *again = true, visited[own] = true, frontier[own] = true;
}
static void bfs2() {
  const int n = 512 * sized(8, 63), blocks = n / 512; vector<Node> nodes(n);
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
    more = false; cudaMemcpy(over, &more, 1, cudaMemcpyHostToDevice); ilp_bfs2_Kernel<<<blocks, 512>>>(n, v, e, cost, visited, mask, updating);
    ilp_bfs2_Kernel2<<<blocks, 512>>>(n, over, visited, mask, updating); cudaMemcpy(&more, over, 1, cudaMemcpyDeviceToHost);
  }
  if (full) return;
  int *got = host(cost, n);
  for (int i = 0; i < n; i++) expect("bfs2", i, got[i], wanted[i], 0);
}

// 3DS: a stencil of order eight, the third dimension in registers, a tile with a rim of eight in shared memory.
__device__ __forceinline__ float four_at(const float *cell, int r) { return cell[-r] + cell[r] + cell[-48 * r] + cell[48 * r]; }
extern "C" __global__ void ilp_3ds(const float *in, const float *weight, float *out, int nx, int ny, int nz) {
  __shared__ float tile[24 * 48];
  const int plane = ny * nx, at = blockIdx.x * blockDim.x + threadIdx.x + nx * (blockIdx.y * blockDim.y + threadIdx.y);
  float *cell = tile + 48 * (8 + threadIdx.y) + 8 + threadIdx.x, z[9]; // z[4] is the plane in the tile
  const float *ahead = in + at, *here = ahead + 4 * plane;
#pragma unroll
  for (int p = 0; p != 8; ++p, ahead += plane) z[p] = *ahead;
  out += 4 * plane + at;
  for (int left = nz - 16; left > 0; --left, ahead += plane, here += plane, out += plane) {
    z[8] = *ahead;
    __syncthreads();
    *cell = z[4];
    if (threadIdx.x < 8) cell[-8] = here[-8], cell[32] = here[32];
    if (threadIdx.y < 8) cell[-8 * 48] = here[-8 * nx], cell[8 * 48] = here[8 * nx];
    __syncthreads();
    float sum = z[4] * weight[0];
#pragma unroll
    for (int r = 1; r < 5; ++r) sum += (four_at(cell, r) + z[4 - r] + z[4 + r]) * weight[r];
    *out = sum;
#pragma unroll
    for (int p = 1; p < 9; ++p) z[p - 1] = z[p];
  }
}
static void stencil8() {
  const int nx = sized(128, 256), ny = sized(32, 128), nz = ny, all = nx * ny * nz; vector<float> a(all);
  float weight[5] = {0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f};
  for (int i = 0; i < all; i++) a[i] = real(i);
  float *out = device<float>(nullptr, all);
  ilp_3ds<<<dim3(nx / 32, ny / 8), dim3(32, 8)>>>(device(a.data(), all), device(weight, 5), out, nx, ny, nz); if (full) return;
  float *got = host(out, all);
  for (int c = 4 * nx * ny; c < (nz - 12) * nx * ny; c++) {
    double w = weight[0] * a[c];
    for (int r = 1; r <= 4; r++) for (int step : {1, nx, nx * ny}) w += weight[r] * (double(a[c - r * step]) + a[c + r * step]);
    expect("3ds", c, got[c], (float)w, 1e-5);
  }
}

// LUD: blocks of 16, first the one on the diagonal, then its row and column, then the rest. A lane moves a column of a block.
template <int ROWS> __device__ __forceinline__ void copy(float *to, int to_pitch, const float *from, int from_pitch) {
  for (int r = 0; r < ROWS; ++r, to += to_pitch, from += from_pitch) *to = *from;
}
__device__ __forceinline__ void eliminate(float *cell, const float *lower, const float *upper, int terms) {
  for (int k = 0; k < terms; ++k) *cell -= lower[k] * upper[16 * k];
}
__global__ void ilp_lud_diagonal(int n, int offset, float *m) {
  __shared__ float a[256];
  const int lane = threadIdx.x;
  float *row = a + 16 * lane, *column = a + lane;
  m += offset * (n + 1) + lane;
  copy<16>(column, 16, m, n);
  __syncthreads();
  for (int pivot = 0; pivot < 15; ++pivot) {
    const bool beyond = pivot < lane;
    if (beyond) eliminate(row + pivot, row, a + pivot, pivot), row[pivot] /= a[17 * pivot];
    __syncthreads();
    if (beyond) eliminate(column + 16 * (pivot + 1), a + 16 * (pivot + 1), column, pivot + 1);
    __syncthreads();
  }
  copy<15>(m + n, n, column + 16, 16);
}
__global__ void ilp_lud_perimeter(int n, int offset, float *m) {
  __shared__ float corner[256], right[256], below[256];
  const bool upper = threadIdx.x < 16; // half of the warp has a block of the row, half one of the column
  const int lane = threadIdx.x % 16, away = 16 * blockIdx.x + 16;
  float *row = below + 16 * lane;
  m += offset * (n + 1) + lane;
  if (upper) copy<8>(corner + lane, 16, m, n), copy<16>(right + lane, 16, m + away, n);
  else copy<8>(corner + 128 + lane, 16, m + 8 * n, n), copy<16>(below + lane, 16, m + away * n, n);
  __syncthreads();
  if (upper) for (int r = 1; r < 16; ++r) eliminate(right + 16 * r + lane, corner + 16 * r, right + lane, r);
  else for (int c = 0; c < 16; ++c) eliminate(row + c, row, corner + c, c), row[c] /= corner[17 * c];
  __syncthreads();
  if (upper) copy<15>(m + n + away, n, right + 16 + lane, 16);
  else copy<16>(m + away * n, n, below + lane, 16);
}
__global__ void ilp_lud_internal(int n, int offset, float *m) {
  __shared__ float lower[256], upper[256];
  const int tx = threadIdx.x, first = 16 * threadIdx.y, across = 16 * blockIdx.x + 16, down = (16 * blockIdx.y + 16) * n;
  m += offset * (n + 1) + threadIdx.y * n + tx;
  lower[first + tx] = m[down], upper[first + tx] = m[across];
  __syncthreads();
  float product = 0;
  for (int k = 0; k < 16; ++k) product += upper[16 * k + tx] * lower[first + k];
  m[down + across] -= product;
}
static void lud() {
  const int n = sized(96, 256); vector<float> a(n * n);
  for (int i = 0; i < n * n; i++) a[i] = real(i) + (i % (n + 1) ? 0 : 40);
  float *m = device(a.data(), n * n); int i = 0;
  for (; i < n - 16; i += 16) {
    int rest = (n - i) / 16 - 1;
    ilp_lud_diagonal<<<1, 16>>>(n, i, m); ilp_lud_perimeter<<<rest, 32>>>(n, i, m); ilp_lud_internal<<<dim3(rest, rest), dim3(16, 16)>>>(n, i, m);
  }
  ilp_lud_diagonal<<<1, 16>>>(n, i, m); if (full) return;
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
const int SHIFTS = 1089, PADDED = 1096, HALF = PADDED / 2, ACROSS = 33, PER_THREAD = 18, SEARCHERS = (SHIFTS + PER_THREAD - 1) / PER_THREAD;
extern __shared__ __align__(8) u16 found[];
// Kinds of block follow each other in `sums`; a kind has `count` per macroblock and comes after `first` per macroblock. Words are pairs of sums.
__device__ __forceinline__ unsigned *sums_of(u16 *sums, int first, int count, int item, int mx, int my, int width, int height) {
  return (unsigned *)sums + HALF * (first * width * height + count * (my * width + mx) + item);
}
__global__ void ilp_sad_mb_sad_calc(cudaTextureObject_t ref, const u16 *frame, u16 *sums, int width, int height) {
  __shared__ u16 block[16];
  const int tid = threadIdx.x, mx = blockIdx.x / 4, my = blockIdx.y / 4, x = 4 * blockIdx.x, y = 4 * blockIdx.y;
  const bool inside = mx < width && my < height;
  if (tid < 16 && inside) block[tid] = frame[(y + tid / 4) * width * 16 + x + tid % 4];
  __syncthreads();
  if (inside) {
    int shift = PER_THREAD * (tid % SEARCHERS), end = min(SHIFTS, shift + PER_THREAD), u = x - 16 + shift % ACROSS, v = y - 16 + shift / ACROSS;
    for (; shift < end; shift += 3) {
      u16 total[3] = {};
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int c = 0; c < 6; ++c) { // a pixel serves each of the three shifts that have it under the block
          const int pixel = tex2D<u16>(ref, u + c, v + r);
#pragma unroll
          for (int s = 0; s < 3; ++s) if (c >= s && c < s + 4) total[s] += abs(pixel - block[4 * r + c - s]);
        }
#pragma unroll
      for (int s = 0; s < 3; ++s) found[shift + s] = total[s];
      u += 3;
      if (u > x + 16) ++v, u -= ACROSS;
    }
  }
  __syncthreads();
  if (tid < 32 && inside) {
    uint2 *to = (uint2 *)sums_of(sums, 25, 16, blockIdx.y % 4 * 4 + blockIdx.x % 4, mx, my, width, height);
    for (int i = tid; i < PADDED / 4; i += 32) to[i] = ((const uint2 *)found)[i];
  }
}
// Sums of four neighbours, the lower two `row` further on, make two wide blocks, two tall ones and a whole one. No sum of 16 bits overflows.
__device__ __forceinline__ void merge(const unsigned *in, int row, unsigned *wide, int wide_row, unsigned *tall, unsigned *whole) {
  for (int i = threadIdx.x; 2 * i < SHIFTS; i += 32) {
    const unsigned nw = in[i], ne = in[i + HALF], sw = in[i + row * HALF], se = in[i + (row + 1) * HALF], north = nw + ne, south = sw + se;
    wide[i] = north, wide[i + wide_row * HALF] = south, tall[i] = nw + sw, tall[i + HALF] = ne + se, whole[i] = north + south;
  }
}
__global__ void ilp_sad_larger_sad_calc_8(int width, int height, u16 *sums) {
  const int right = threadIdx.y % 2, down = threadIdx.y / 2;
  auto part = [=](int first, int count, int item) { return sums_of(sums, first, count, item, blockIdx.x, blockIdx.y, width, height); };
  merge(part(25, 16, 8 * down + 2 * right), 4, part(9, 8, 4 * down + right), 2, part(17, 8, 4 * down + 2 * right), part(5, 4, threadIdx.y));
}
__global__ void ilp_sad_larger_sad_calc_16(int width, int height, u16 *sums) {
  auto part = [=](int first, int count) { return sums_of(sums, first, count, 0, blockIdx.x, blockIdx.y, width, height); };
  merge(part(5, 4), 2, part(1, 2), 1, part(3, 2), part(0, 1));
}
static void sad() {
  const int mw = sized(3, 11), mh = sized(2, 9), w = 16 * mw, h = 16 * mh, blocks = mw * mh, all = 41 * blocks * PADDED; vector<u16> now(w * h), then(w * h), zero(all);
  for (int i = 0; i < w * h; i++) now[i] = draw(i) % 256, then[i] = draw(i + 77777) % 256;
  cudaArray_t array; cudaChannelFormatDesc format = cudaCreateChannelDesc<u16>();
  cudaMallocArray(&array, &format, w, h); cudaMemcpy2DToArray(array, 0, 0, then.data(), 2 * w, 2 * w, h, cudaMemcpyHostToDevice);
  cudaResourceDesc resource = {};
  cudaTextureDesc how = {};
  cudaTextureObject_t ref = 0;
  resource.resType = cudaResourceTypeArray; resource.res.array.array = array; how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.readMode = cudaReadModeElementType; cudaCreateTextureObject(&ref, &resource, &how, nullptr);
  u16 *sums = device(zero.data(), all);
  ilp_sad_mb_sad_calc<<<dim3(4 * mw, 4 * mh), SEARCHERS, 2 * PADDED>>>(ref, device(now.data(), w * h), sums, mw, mh);
  ilp_sad_larger_sad_calc_8<<<dim3(mw, mh), dim3(32, 4)>>>(mw, mh, sums); ilp_sad_larger_sad_calc_16<<<dim3(mw, mh), 32>>>(mw, mh, sums); if (full) return;
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
__device__ __forceinline__ float2 turned(float2 v, float angle) {
  const float c = cosf(angle), s = sinf(angle); return {c * v.x - s * v.y, s * v.x + c * v.y};
}
__global__ void ilp_fft(float2 *to, const float2 *from, int n, int span) {
  const int lane = threadIdx.x, within = lane % span, offset = n * blockIdx.x;
  const float angle = within * (-2 * M_PI) / (2 * span);
  float2 leg[2]; from += offset + lane;
  for (int r = 0; r < 2; ++r, from += n / 2) leg[r] = turned(*from, angle * r);
  to += offset + 2 * lane - within; // = 2 span (lane / span) + within
  to[span] = {leg[0].x - leg[1].x, leg[0].y - leg[1].y}, *to = {leg[1].x + leg[0].x, leg[1].y + leg[0].y};
}
static void fft() {
  const int n = 256, batch = sized(12, 1024); vector<float2> a(n * batch);
  for (int i = 0; i < n * batch; i++) a[i] = make_float2(real(2 * i), real(2 * i + 1));
  float2 *x = device(a.data(), n * batch), *y = device<float2>(nullptr, n * batch);
  for (int span = 1; span < n; span *= 2, std::swap(x, y)) ilp_fft<<<batch, n / 2>>>(y, x, n, span);
  if (full) return;
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
__device__ __forceinline__ float neuron(float sum) { return tanhf(sum * 0.66666667) * 1.7159; }
__global__ void ilp_nn_executeFirstLayer(float *out, const float *in, const float *weight) {
  const int map = blockIdx.x, image = blockIdx.y, x = threadIdx.x, y = threadIdx.y;
  const int corner = 841 * image + 58 * y + 2 * x, bias = 26 * map;
  float sum = weight[bias];
  for (int k = 0; k < 25; ++k) sum += weight[bias + 1 + k] * in[window29[k] + corner];
  out[(6 * image + map) * 169 + 13 * y + x] = neuron(sum);
}
__global__ void ilp_nn_executeSecondLayer(float *out, const float *in, const float *weight) {
  const int map = blockIdx.x, image = blockIdx.y, x = threadIdx.x, y = threadIdx.y;
  const unsigned corner = 1014 * image + 26 * y + 2 * x; const int bias = 156 * map;
  float sum = weight[bias];
  for (int k = 0, from = bias; k < 25; ++k)
#pragma unroll
    for (int m = 0; m < 6; ++m) sum += weight[++from] * in[corner + window13[k] + 169 * m];
  out[(50 * image + map) * 25 + 5 * y + x] = neuron(sum);
}
template <int INPUTS> __device__ __forceinline__ void dense(float *out, const float *in, const float *weight) {
  const unsigned from = INPUTS * blockIdx.y; const int bias = (INPUTS + 1) * blockIdx.x;
  float sum = weight[bias];
  for (int k = 0; k < INPUTS; ++k) sum += weight[bias + 1 + k] * in[from + k];
  out[gridDim.x * blockIdx.y + blockIdx.x] = neuron(sum);
}
__global__ void ilp_nn_executeThirdLayer(float *out, const float *in, const float *weight) { dense<1250>(out, in, weight); }
__global__ void ilp_nn_executeFourthLayer(float *out, const float *in, const float *weight) { dense<100>(out, in, weight); }
static void nn() {
  const int n = sized(2, 28), sizes[5] = {841, 1014, 1250, 100, 10}, counts[4] = {156, 7800, 125100, 1010};
  vector<float> image(841 * n), weight[4];
  for (float &v : image) v = real(&v - image.data());
  float *layer[5] = {device(image.data(), 841 * n)}, *w[4];
  for (int l = 0; l < 4; l++) {
    for (int i = 0; i < counts[l]; i++) weight[l].push_back(0.2f * real(i + 200000 * l));
    w[l] = device(weight[l].data(), counts[l]), layer[l + 1] = device<float>(nullptr, sizes[l + 1] * n);
  }
  ilp_nn_executeFirstLayer<<<dim3(6, n), dim3(13, 13)>>>(layer[1], layer[0], w[0]);
  ilp_nn_executeSecondLayer<<<dim3(50, n), dim3(5, 5)>>>(layer[2], layer[1], w[1]);
  ilp_nn_executeThirdLayer<<<dim3(100, n), 1>>>(layer[3], layer[2], w[2]); ilp_nn_executeFourthLayer<<<dim3(10, n), 1>>>(layer[4], layer[3], w[3]); if (full) return;
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
// The normal distribution by a polynomial of degree five (Abramowitz and Stegun, 26.2.17).
__device__ __forceinline__ float below(float d) {
  const float c[5] = {0.31938153f, -0.356563782f, 1.781477937f, -1.821255978f, 1.330274429f}, t = __fdividef(1.0f, 0.2316419f * fabsf(d) + 1.0f);
  float sum = c[4];
#pragma unroll
  for (int i = 3; i >= 0; --i) sum = sum * t + c[i];
  const float tail = sum * t * (__expf(d * d * -0.5f) * 0.39894228f);
  return d <= 0 ? tail : 1.0f - tail;
}
__device__ __forceinline__ float2 call_and_put(float s, float x, float t, float rate, float spread) {
  const float wide = spread * __fdividef(1.0f, rsqrtf(t)), drift = (0.5f * spread * spread + rate) * t;
  const float d = __fdividef(drift + __logf(s / x), wide), owed = x * __expf(t * -rate), have = below(d), owe = below(d - wide);
  return {have * s - owe * owed, (1.0f - owe) * owed - (1.0f - have) * s};
}
__global__ void ilp_blk(int n, float rate, float spread, const float *years, const float *stock, const float *strike, float *put, float *call) {
  const int all = gridDim.x * blockDim.x;
  for (int i = threadIdx.x + blockDim.x * blockIdx.x; i < n; i += all) {
    const float2 price = call_and_put(stock[i], strike[i], years[i], rate, spread);
    call[i] = price.x, put[i] = price.y;
  }
}
static void blk() {
  const int blocks = sized(16, 480), n = 128 * blocks * sized(6, 33); vector<float> s(n), x(n), t(n);
  for (int i = 0; i < n; i++) s[i] = 17.5f + 12.5f * real(i), x[i] = 50.5f + 49.5f * real(i + n), t[i] = 5.125f + 4.875f * real(i + 2 * n);
  float *call = device<float>(nullptr, n), *put = device<float>(nullptr, n);
  ilp_blk<<<blocks, 128>>>(n, 0.02f, 0.3f, device(t.data(), n), device(s.data(), n), device(x.data(), n), put, call); if (full) return;
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
// How far along a ray from `p` a thing is met; 0 if it is not.
__device__ inline float meet_plane(float3 p, float3 way, float3 at) {
  const float3 up = unit(make_float3(0, 1, 0)); const float slope = dot(way, up);
  return fabsf(slope) < 0.0001f ? 0.0f : fmaxf(0.0f, dot(up, at - p) / slope);
}
__device__ inline float meet_sphere(float3 p, float3 way, float3 at, float radius) {
  const float3 to = at - p; const float along = dot(way, to), away = dot(to, to), size = radius * radius, gap = away - along * along;
  const bool outside = away > size; float t = 0;
  if (gap <= size && !(outside && along < 0)) t = sqrtf(size - gap), t = along + (outside ? -t : t);
  return t;
}
__device__ inline float meet(const Ray &ray, const Thing &o) { return o.plane ? meet_plane(ray.from, ray.way, o.at) : meet_sphere(ray.from, ray.way, o.at, o.radius); }
__device__ inline Thing moved(int which, float shift) {
  Thing o = things[which]; o.at.x += shift; return o;
}
__device__ inline bool shaded(float3 p, float3 way, float3 lamp, float shift) {
  const float3 path = lamp - p; const float limit = dot(path, path); const Ray ray = {way * 0.0001f + p, way};
  bool dark = false;
  for (int k = 0; !dark && k < THINGS; ++k) {
    const float t = meet(ray, moved(k, shift)); const float3 end = way * t + p;
    dark = t > 0 && dot(end, end) <= limit;
  }
  return dark;
}
__device__ inline float4 plus(float4 c, float k, float4 d) { return make_float4(c.x + k * d.x, c.y + k * d.y, c.z + k * d.z, c.w + k * d.w); }
__device__ inline unsigned byte_of(float c) { return 255 * __saturatef(c); }
__global__ void ilp_ray(unsigned w, unsigned h, float focus, float shift, unsigned *picture) {
  float4 layers[5]; // one per thing on the way
  for (float4 &c : layers) c = make_float4(0, 0, 0, 1);
  const unsigned column = blockDim.x * blockIdx.x + threadIdx.x, row = blockDim.y * blockIdx.y + threadIdx.y;
  if (column >= w || row >= h) return;
  unsigned *pixel = picture + row * w + column; *pixel = 0;
  const float4 right = camera[2], up = camera[1], ahead = camera[0];
  const float size = 2.0f / min(w, h), dx = (float(column) - 0.5f * w) * size, dy = (float(row) - 0.5f * h) * size;
  auto axis = [](float4 v) { return make_float3(v.x, v.y, v.z); };
  Ray ray = {make_float3(ahead.w, up.w, right.w), unit(axis(right) * dx + axis(up) * dy + axis(ahead) * focus)};
  __syncthreads();
  int met = 0;
  while (met < 5) {
    const float3 lamp = make_float3(10, 10, 10);
    float reach = 10000; int which = -1;
    for (int k = 0; k < THINGS; ++k) {
      const float t = meet(ray, moved(k, shift));
      if (t < reach && t > 0) which = k, reach = t;
    }
    if (which < 0) break;
    const Thing o = moved(which, shift); const float4 paint = make_float4(o.r, o.g, o.b, o.a);
    const float3 p = ray.way * reach + ray.from, eye = unit(ray.from - p), light = unit(lamp - p), out = unit(o.plane ? make_float3(0, 1, 0) : p - o.at);
    const float facing = dot(out, eye), bright = dot(facing < 0 ? out * -1 : out, light);
    float4 &colour = layers[met++];
    colour = plus(make_float4(0, 0, 0, 0), 0.05f, paint);
    if (bright > 0 && !shaded(p, light, lamp, shift)) {
      const float shine = 0.8f * powf(__saturatef(dot(facing < 0 ? out * -1 : out, unit(eye + light))), 50.0f);
      colour = plus(plus(colour, 0.3f * min(bright, 1.0f), paint), shine, make_float4(1, 1, 1, 0));
    }
    ray.way = unit(out * (2 * facing) - eye), ray.from = ray.way * 0.0001f + p;
  }
  while (--met > 0) layers[met - 1] = plus(layers[met - 1], 0.8f, layers[met]);
  const float4 c = layers[0];
  *pixel += byte_of(c.x) | byte_of(c.y) << 8 | byte_of(c.z) << 16 | byte_of(c.w) << 24;
}
static void ray() {
  const int w = sized(64, 256), h = w;
  Thing scene[THINGS] = {{{0, -1.5f, 0}, 0.5f, 0, 1, 1, 1, 1}, {{-1, 0, -1}, 0.5f, 1, 0, 0, 1}, {{1, 0, -1}, 0.5f, 0, 0, 1, 1}, {{0, 0, -2}, 0.75f, 0, 1, 0, 1}, {{0.3f, -1, -0.4f}, 0.4f, 0.8f, 0.7f, 0.2f, 1}};
  float4 view[3] = {{0, 0, -1, 0}, {0, 1, 0, 0.5f}, {1, 0, 0, 2}};
  cudaMemcpyToSymbol(things, scene, sizeof scene), cudaMemcpyToSymbol(camera, view, sizeof view);
  unsigned *picture = device<unsigned>(nullptr, w * h), *got;
  ilp_ray<<<dim3(w / 16, h / 8), dim3(16, 8)>>>(w, h, 1.57f, 0.0f, picture); if (full) return; got = host(picture, w * h); typedef double V[3];
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
int main(int count, char **words) {
  Calls run(count, words); run("ilp-gups", gups), run("ilp-lps", lps), run("ilp-hs", hs), run("ilp-bp", bp), run("ilp-spmv", spmv), run("ilp-bfs2", bfs2), run("ilp-3ds", stencil8);
  run("ilp-lud", lud), run("ilp-sad", sad), run("ilp-fft", fft), run("ilp-nn", nn), run("ilp-blk", blk), run("ilp-ray", ray);
  return finish("ilp_smra");
}
