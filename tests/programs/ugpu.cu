// Kernels of UGPU's table 2 (models/workloads/ugpu-*.toml): our own programs of the published algorithms; blocks, tiles and accesses
// per thread as in the public ones (CUDA samples, Rodinia, Parboil, ISPASS, Mars). Each is checked against the CPU.
#include "check.h"
#include <algorithm>
#include <vector>

// A positive value per index, from 1 to 2.
static float some(unsigned i) { return 1.5f + 0.5f * real(i); }
template <typename F> auto make(int n, F f) {
  std::vector<decltype(f(0))> v(n); for (int i = 0; i < n; i++) v[i] = f(i);
  return v;
}
template <typename T> T *device(const std::vector<T> &v) { return device(v.data(), int(v.size())); }
template <typename T, typename W> void same(const char *what, const T *x, const std::vector<W> &wanted, double tolerance) {
  T *got = host(x, int(wanted.size()));
  for (size_t i = 0; i < wanted.size(); i++) expect(what, int(i), W(got[i]), wanted[i], tolerance);
}
// ---- ugpu-fwt: a radix-4 pass of the Walsh transform over distant quarters.
__device__ __forceinline__ float2 fold(float a, float b) { return make_float2(a + b, a - b); }
__global__ void ugpu_fwt(int quarter, const float *in, float *out) {
  const int t = threadIdx.x + blockDim.x * blockIdx.x, first = t + 3 * (t & -quarter) + 4 * int(blockDim.x * gridDim.x * blockIdx.y);
  float v[4]; in += first, out += first; for (int k = 0; k < 4; k++) v[k] = in[k * quarter];
  const float2 even = fold(v[0], v[2]), odd = fold(v[1], v[3]), near = fold(even.x, odd.x), far = fold(even.y, odd.y);
  out[0] = near.x, out[quarter] = near.y, out[2 * quarter] = far.x, out[3 * quarter] = far.y;
}
static void fwt() {
  const int blocks = sized(16, 32768), n = 1024 * blocks; std::vector<float> a = make(n, real); float *x = device(a);
  for (int launch = 0, stride = n / 4; launch < 4; launch++, stride /= 4) ugpu_fwt<<<dim3(blocks, 1), 256>>>(stride, x, x);
  if (full) return;
  std::vector<double> w(a.begin(), a.end());
  for (int half = n / 2, step = 0; step < 8; half /= 2, step++)
    for (int i = 0; i < n; i++) if (!(i & half)) { double p = w[i], q = w[i + half]; w[i] = p + q, w[i + half] = p - q; }
  same("fwt", x, w, 1e-4);
}
// ---- ugpu-srad: gradients and the coefficient of diffusion, a tile of 16 by 16 with its borders in shared memory.
// The literals are doubles as in the public program, so part of the arithmetic is.
struct Heart { float tile[16][16], above[16][16], under[16][16], left[16][16], right[16][16], spread[16][16]; };
// Differences to the neighbours in x: north, y: south, z: west, w: east; side -1: a leftmost cell of the tile, 1: a rightmost one.
template <int side> __device__ __forceinline__ float4 srad_slopes(const Heart &h, float me, int row, int column) {
  const float *cell = &h.tile[row][column]; float4 d;
  if (row == 0) d.x = h.above[row][column] - me, d.y = cell[16] - me;
  else if (row == 15) d.x = cell[-16] - me, d.y = h.under[row][column] - me;
  else d.x = cell[-16] - me, d.y = cell[16] - me;
  d.z = (side < 0 ? h.left[row][column] : cell[-1]) - me, d.w = (side > 0 ? h.right[row][column] : cell[1]) - me;
  return d;
}
__device__ __forceinline__ float srad_conductance(float4 d, float me, float q0) {
  const float bend = (d.x + d.y + d.z + d.w) / me, steep = (d.x * d.x + d.y * d.y + d.z * d.z + d.w * d.w) / (me * me), base = 1 + .25 * bend;
  const float noise = 0.5 * steep - 1.0 / 16.0 * (bend * bend), q = noise / (base * base), excess = (q - q0) / (q0 * (1 + q0)), c = 1.0 / (1.0 + excess);
  return c < 0 ? 0 : c > 1 ? 1 : c;
}
__global__ void ugpu_srad(float q0, int columns, const float *image, float *coefficient, float *north, float *south, float *west, float *east) {
  __shared__ Heart h; const int row = threadIdx.y, column = threadIdx.x;
  const float *corner = image + 16 * (columns * int(blockIdx.y) + int(blockIdx.x)), *line = corner + columns * row; float *above = &h.above[row][column], *left = &h.left[row][column]; const int past = 256, last = gridDim.x - 1, lowest = gridDim.y - 1;
  above[past] = corner[column + 16 * columns], *above = corner[column - columns];
  if (blockIdx.y == lowest) above[past] = corner[column + 15 * columns]; else if (blockIdx.y == 0) *above = corner[column];
  __syncthreads();
  left[past] = line[16], *left = line[-1];
  if (blockIdx.x == last) left[past] = line[15]; else if (blockIdx.x == 0) *left = line[0];
  __syncthreads();
  h.tile[row][column] = line[column]; __syncthreads();
  const float me = h.tile[row][column]; float4 d;
  if (column == 0) d = srad_slopes<-1>(h, me, row, column);
  else if (column == 15) d = srad_slopes<1>(h, me, row, column);
  else d = srad_slopes<0>(h, me, row, column);
  h.spread[row][column] = srad_conductance(d, me, q0); __syncthreads();
  const int at = int(line - image) + column; north[at] = d.x, south[at] = d.y, west[at] = d.z, east[at] = d.w, coefficient[at] = h.spread[row][column];
}
static void srad() {
  const int width = sized(64, 6608), height = sized(48, 1648), n = width * height; std::vector<float> a = make(n + 2 * width, some); float *x = device(a) + width, *out[5];
  for (float *&o : out) o = device<float>(nullptr, n);
  ugpu_srad<<<dim3(width / 16, height / 16), dim3(16, 16)>>>(0.05f, width, x, out[4], out[2], out[3], out[1], out[0]); float *r[5]; if (full) return;
  for (int k = 0; k < 5; k++) r[k] = host(out[k], n);
  for (int y = 0; y < height; y++)
    for (int z = 0; z < width; z++) {
      auto at = [&](int u, int v) { return double(a[width + std::min(std::max(u, 0), height - 1) * width + std::min(std::max(v, 0), width - 1)]); };
      double j = at(y, z), d[4] = {at(y, z + 1) - j, at(y, z - 1) - j, at(y - 1, z) - j, at(y + 1, z) - j}, g = 0, l = 0;
      for (int k = 0; k < 4; k++) g += d[k] * d[k], l += d[k], expect("srad gradient", y * width + z, double(r[k][y * width + z]), d[k], 1e-6);
      g /= j * j, l /= j; double q = (g / 2 - l * l / 16) / ((1 + l / 4) * (1 + l / 4)), c = 1 / (1 + (q - 0.05) / (0.05 * 1.05));
      expect("srad coefficient", y * width + z, double(r[4][y * width + z]), std::min(std::max(c, 0.0), 1.0), 1e-4);
    }
}
// ---- ugpu-cp: Coulombic potential, eight points a block's width apart per thread, atoms in constant memory.
__constant__ float4 cp_atoms[512];
__global__ void ugpu_cp(float *energy, float spacing, int count) {
  const int row = blockDim.y * blockIdx.y + threadIdx.y, column = 128 * blockIdx.x + threadIdx.x; const float left = spacing * column, top = spacing * row, gap = 16 * spacing;
  float sum[8] = {}; energy += 128 * gridDim.x * row + column;
  for (int a = 0; a < count; a++) {
    const float4 atom = cp_atoms[a]; float off = top - atom.y, rest = atom.z + off * off; off = left - atom.x;
    _Pragma("unroll") for (int k = 0; k < 8; k++, off += gap) sum[k] += atom.w * rsqrtf(off * off + rest);
  }
  _Pragma("unroll") for (int k = 0; k < 8; k++) energy[16 * k] += sum[k];
}
static void cp() {
  const int width = sized(256, 4096), height = sized(32, 512), n = width * height, count = sized(60, 310); std::vector<float4> atoms(count); std::vector<float> a = make(n, real);
  for (int i = 0; i < count; i++) atoms[i] = {13 + 12 * real(4 * i + 1), 2 + real(4 * i + 2), powf(2 + real(4 * i), 2), real(4 * i + 3)};
  cudaMemcpyToSymbol(cp_atoms, atoms.data(), count * sizeof(float4)); float *x = device(a); ugpu_cp<<<dim3(width / 128, height / 8), dim3(16, 8)>>>(x, 0.1f, count); if (full) return;
  same("cp", x, make(n, [&](int i) {
    double e = a[i], px = 0.1 * (i % width), py = 0.1 * (i / width);
    for (float4 p : atoms) e += p.w / std::sqrt((px - p.x) * (px - p.x) + (py - p.y) * (py - p.y) + p.z);
    return e;
  }), 1e-4);
}
// ---- ugpu-mriq: magnitudes of the samples, then sums of sines and cosines over 1024 samples in constant memory.
struct Sample { float x, y, z, magnitude; };
__constant__ Sample mriq_samples[1024];
__global__ void ugpu_mriq_ComputePhiMag_GPU(int count, float *magnitude, const float *phases) { // the real parts, then the imaginary ones
  const int at = threadIdx.x + blockDim.x * blockIdx.x; if (at < count) { const float2 c = make_float2(phases[at], phases[count + at]); magnitude[at] = c.x * c.x + c.y * c.y; }
}
__device__ __forceinline__ void mriq_add(float2 &sum, float3 p, int k) {
  const Sample &s = mriq_samples[k]; const float angle = 6.2831853071795864769252867665590058f * (p.x * s.x + p.y * s.y + p.z * s.z);
  sum.y += s.magnitude * __sinf(angle), sum.x += s.magnitude * __cosf(angle);
}
__global__ void ugpu_mriq_ComputeQ_GPU(float *sums, const float *places, int voxels, int done, int count) {
  const int at = threadIdx.x + blockDim.x * blockIdx.x, end = min(count - done, 1024); sums += at, places += at;
  const float3 p = make_float3(places[0], places[voxels], places[2 * voxels]); float2 sum = make_float2(sums[0], sums[voxels]); int k = count & 1;
  if (k) mriq_add(sum, p, 0); _Pragma("unroll 1") while (k < end) mriq_add(sum, p, k), mriq_add(sum, p, k + 1), k += 2;
  sums[0] = sum.x, sums[voxels] = sum.y;
}
static void mriq() {
  const int samples = 2048, n = sized(512, 163840); std::vector<float> a = make(2 * samples, real), p = make(3 * n, [](int i) { return 0.5f * real(i + 9000); });
  std::vector<Sample> s(samples); float *x = device(a), *m = device<float>(nullptr, samples), *v = device(p), *q = device<float>(nullptr, 2 * n);
  ugpu_mriq_ComputePhiMag_GPU<<<samples / 512, 512>>>(samples, m, x); float *h = host(m, samples);
  for (int i = 0; i < samples; i++) s[i] = {real(3 * i), real(3 * i + 1), real(3 * i + 2), h[i]};
  same("mriq magnitude", m, make(samples, [&](int i) { return a[i] * a[i] + a[samples + i] * a[samples + i]; }), 1e-6);
  for (int launch = 0; launch < 2; launch++) {
    cudaMemcpyToSymbol(mriq_samples, &s[1024 * launch], 1024 * sizeof(Sample)); ugpu_mriq_ComputeQ_GPU<<<n / 256, 256>>>(q, v, n, 1024 * launch, samples);
  }
  if (full) return; same("mriq", q, make(2 * n, [&](int i) {
    double sum = 0;
    for (const Sample &k : s) {
      double phase = 2 * M_PI * (double(k.x) * p[i % n] + double(k.y) * p[n + i % n] + double(k.z) * p[2 * n + i % n]);
      sum += k.magnitude * (i < n ? std::cos(phase) : std::sin(phase));
    }
    return sum;
  }), 3e-3);
}
// ---- ugpu-pf: cheapest path through a wall, a pyramid of rows per launch, the sums of a row in shared memory.
__global__ void ugpu_pf(const int *wall, int columns, int steps, int border, const int *from, int *to) { // wall: the first row of this launch
  __shared__ int sums[256], fresh[256]; const int t = threadIdx.x, x = t - border + int(blockIdx.x) * (256 - 2 * steps); const bool inside = x >= 0 && x < columns;
  if (inside) sums[t] = from[x];
  __syncthreads();
  const int a = max(t - 1, max(0, t - x)), b = min(t + 1, min(255, t - x + columns - 1)); bool mine = false; wall += x;
  for (int i = 1; i <= steps; i++, wall += columns) {
    mine = inside && t >= i && t + i < 256;
    if (mine) fresh[t] = *wall + min(sums[t], min(sums[a], sums[b]));
    __syncthreads();
    if (i < steps) {
      if (mine) sums[t] = fresh[t];
      __syncthreads();
    }
  }
  if (mine) to[x] = fresh[t];
}
static void pf() {
  const int columns = 216 * sized(6, 6000), rows = sized(41, 101), height = 20; std::vector<int> wall = make(rows * columns, [](int i) { return int(draw(i) % 10); });
  int *w = device(wall.data() + columns, (rows - 1) * columns), *x[2] = {device(wall), device<int>(nullptr, columns)};
  for (int t = 0, turn = 0; t < rows - 1; t += height, turn ^= 1)
    ugpu_pf<<<columns / 216, 256>>>(w + t * columns, columns, std::min(height, rows - 1 - t), height, x[turn], x[turn ^ 1]);
  if (full) return;
  std::vector<int> sum(wall.begin(), wall.begin() + columns), next(columns);
  for (int y = 1; y < rows; y++, sum = next)
    for (int i = 0; i < columns; i++) next[i] = std::min(sum[i], std::min(sum[std::max(i - 1, 0)], sum[std::min(i + 1, columns - 1)])) + wall[y * columns + i];
  same("pf", x[0], sum, 0);
}
// ---- ugpu-hotspot: steps of heat on a shrinking tile of 16 by 16; 2.0 is a double as in the public program.
struct Chip { float rx, ry, rz, capacity, time; };
__device__ __forceinline__ double hotspot_flow(float a, float b, float c, float conductance) { return conductance * (a + b - 2.0 * c); }
__device__ __forceinline__ bool hotspot_live(int t, int margin) { return t >= margin && t + margin < 16; }
// The nearest cells of the chip before and after cell t of a tile, where t is cell `at` of `count`.
__device__ __forceinline__ int2 hotspot_around(int t, int at, int count) { return make_int2(max(t - 1, max(0, t - at)), min(t + 1, min(15, t - at + count - 1))); }
__global__ void ugpu_hotspot(float *to, const float *from, const float *power, int rows, int columns, int steps, int border, Chip chip) {
  __shared__ float now[16][16], later[16][16], watts[16][16]; const int u = threadIdx.x, v = threadIdx.y, span = 16 - 2 * steps;
  const int x = u - border + span * int(blockIdx.x), y = v - border + span * int(blockIdx.y), at = x + columns * y; const bool inside = y >= 0 && y < rows && x >= 0 && x < columns;
  if (inside) now[v][u] = from[at], watts[v][u] = power[at];
  __syncthreads();
  const float gx = 1 / chip.rx, gy = 1 / chip.ry, gz = 1 / chip.rz, rate = chip.time / chip.capacity;
  const int2 beside = hotspot_around(u, x, columns), along = hotspot_around(v, y, rows); bool mine = false;
  for (int i = 1; i <= steps; i++) {
    mine = inside && hotspot_live(v, i) && hotspot_live(u, i);
    if (mine) {
      const float c = now[v][u]; double gain = watts[v][u]; gain += hotspot_flow(now[along.x][u], now[along.y][u], c, gy);
      gain += hotspot_flow(now[v][beside.x], now[v][beside.y], c, gx), gain += gz * (80.0f - c), later[v][u] = c + rate * gain;
    }
    __syncthreads();
    if (i < steps) {
      if (mine) now[v][u] = later[v][u];
      __syncthreads();
    }
  }
  if (mine) to[at] = later[v][u];
}
static void hotspot() {
  const int width = sized(36, 3288), height = sized(30, 1644), n = width * height, steps = 5; std::vector<float> p = make(n, some), t = make(n, [&](int i) { return 80 + 10 * real(i + n); });
  float *power = device(p), *from = device(t), *to = device<float>(nullptr, n); ugpu_hotspot<<<dim3(width / 6, height / 6), dim3(16, 16)>>>(to, from, power, height, width, steps, steps, Chip{5, 4, 20, 2, 0.5f}); if (full) return;
  std::vector<double> a(t.begin(), t.end()), b(n);
  for (int k = 0; k < steps; k++, a = b)
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) {
        auto at = [&](int u, int v) { return a[std::min(std::max(u, 0), height - 1) * width + std::min(std::max(v, 0), width - 1)]; }; double c = at(y, x);
        b[y * width + x] = c + 0.25 * (p[y * width + x] + (at(y + 1, x) + at(y - 1, x) - 2 * c) / 4 + (at(y, x + 1) + at(y, x - 1) - 2 * c) / 5 + (80 - c) / 20);
      }
  same("hotspot", to, a, 1e-5);
}
// ---- ugpu-lbm: a step of the lattice Boltzmann method with 19 fields; a row of 120 cells per block, padded to 128.
// D(field, dx, dy, dz, opposite, velocity along the direction, weight)
#define LBM_DIRECTIONS(D) \
  D(1, 0, 1, 0, 2, uy, 18) D(2, 0, -1, 0, 1, -uy, 18) D(3, 1, 0, 0, 4, ux, 18) D(4, -1, 0, 0, 3, -ux, 18) D(5, 0, 0, 1, 6, uz, 18) D(6, 0, 0, -1, 5, -uz, 18) \
  D(7, 1, 1, 0, 10, ux + uy, 36) D(8, -1, 1, 0, 9, -ux + uy, 36) D(9, 1, -1, 0, 8, ux - uy, 36) D(10, -1, -1, 0, 7, -ux - uy, 36) D(11, 0, 1, 1, 14, uy + uz, 36) D(12, 0, 1, -1, 13, uy - uz, 36) \
  D(13, 0, -1, 1, 12, -uy + uz, 36) D(14, 0, -1, -1, 11, -uy - uz, 36) D(15, 1, 0, 1, 18, ux + uz, 36) D(16, 1, 0, -1, 17, ux - uz, 36) D(17, -1, 0, 1, 16, -ux + uz, 36) D(18, -1, 0, -1, 15, -ux - uz, 36)
const int LBM_WIDTH = 120, LBM_PITCH = 128, LBM_OBSTACLE = 1, LBM_MOVING = 2;
#define LBM_SIZES const int LBM_LAYER = LBM_PITCH * LBM_ROWS, LBM_CELLS = LBM_LAYER * (LBM_DEPTH + 4), LBM_MARGIN = 2 * LBM_LAYER;
#define LBM_LOAD(i, x, y, z, o, v, w) const float f##i = from[LBM_CELLS * i - (x) - (y) * LBM_PITCH - (z) * LBM_LAYER];
#define LBM_BOUNCE(i, x, y, z, o, v, w) to[LBM_CELLS * i] = f##o;
#define LBM_RELAX(i, x, y, z, o, v, w) to[LBM_CELLS * i] = old * f##i + share * (1.0f / w) * (rest + (v) * (3.0f + 4.5f * (v)));
#define LBM_ROW(i, x, y, z, o, v, w) {x, y, z, o, w},
template <int LBM_ROWS, int LBM_DEPTH> __global__ void ugpu_lbm(float *to, const float *from) {
  LBM_SIZES const int cell = LBM_MARGIN + LBM_LAYER * blockIdx.y + LBM_PITCH * blockIdx.x + threadIdx.x; from += cell, to += cell;
  LBM_DIRECTIONS(LBM_LOAD)
  const float f0 = from[0]; const int flags = __float_as_int(from[LBM_CELLS * 19]);
  if (!(flags & LBM_OBSTACLE)) {
    const float mass = f0 + (f1 + f2 + f3 + f4 + f5 + f6) + (f7 + f8 + f9 + f10 + f11 + f12) + (f13 + f14 + f15 + f16 + f17 + f18);
    float uz = ((f5 + f11 + f13 + f15 + f17) - (f6 + f12 + f14 + f16 + f18)) / mass, uy = ((f1 + f7 + f8 + f11 + f12) - (f2 + f9 + f10 + f13 + f14)) / mass;
    float ux = ((f3 + f7 + f9 + f15 + f16) - (f4 + f8 + f10 + f17 + f18)) / mass; if (flags & LBM_MOVING) uz = 0, uy = 0.002f, ux = 0.005f;
    const float rest = 1 - 1.5f * (uz * uz + uy * uy + ux * ux), share = 1.95f * mass, old = 1 - 1.95f;
    LBM_DIRECTIONS(LBM_RELAX)
    to[0] = old * f0 + share * (1.0f / 3.0f) * rest;
  } else {
    LBM_DIRECTIONS(LBM_BOUNCE)
    to[0] = f0;
  }
}
template <int LBM_ROWS, int LBM_DEPTH> static void lbm_of() {
  LBM_SIZES const int n = LBM_CELLS * 20; static const int way[19][5] = {{0, 0, 0, 0, 3}, LBM_DIRECTIONS(LBM_ROW)}; std::vector<float> a(n);
  for (int i = 0; i < n; i++) {
    int x = i % LBM_PITCH, layer = i % LBM_CELLS / LBM_LAYER; // a channel with walls and a moving lid
    unsigned flag = x == 0 || x == LBM_WIDTH - 1 ? LBM_OBSTACLE : layer == LBM_DEPTH + 1 ? LBM_MOVING : 0; a[i] = i < LBM_CELLS * 19 ? some(i) / way[i / LBM_CELLS][4] : *(float *)&flag;
  }
  float *x[2] = {device(a), device(a)}; std::vector<double> c(a.begin(), full ? a.begin() : a.end()), next = c;
  for (int step = 0; step < 3; step++, c = next) {
    ugpu_lbm<LBM_ROWS, LBM_DEPTH><<<dim3(LBM_ROWS, LBM_DEPTH), LBM_WIDTH>>>(x[1 - step % 2], x[step % 2]); if (full) continue;
    for (int cell = 0; cell < LBM_LAYER * LBM_DEPTH; cell++) {
      if (cell % LBM_PITCH >= LBM_WIDTH) continue;
      int at = LBM_MARGIN + cell; double f[19], rho = 0, u[3] = {};
      for (int k = 0; k < 19; k++) {
        rho += f[k] = c[LBM_CELLS * k + at - way[k][0] - way[k][1] * LBM_PITCH - way[k][2] * LBM_LAYER];
        for (int d = 0; d < 3; d++) u[d] += f[k] * way[k][d];
      }
      unsigned flag = *(unsigned *)&a[LBM_CELLS * 19 + at];
      for (int d = 0; d < 3; d++) u[d] = flag & LBM_MOVING ? d == 0 ? 0.005 : d == 1 ? 0.002 : 0 : u[d] / rho;
      for (int k = 0; k < 19; k++) {
        double v = way[k][0] * u[0] + way[k][1] * u[1] + way[k][2] * u[2];
        double even = rho / way[k][4] * (1 + 3 * v + 4.5 * v * v - 1.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]));
        next[LBM_CELLS * k + at] = flag & LBM_OBSTACLE ? f[way[k][3]] : -0.95 * f[k] + 1.95 * even;
      }
    }
  }
  if (!full) c.resize(LBM_CELLS * 19), same("lbm", x[1], c, 1e-4);
}
static void lbm() { full ? lbm_of<120, 154>() : lbm_of<6, 4>(); }
// ---- ugpu-bh: Black-Scholes prices, a grid that strides over the options.
__device__ __forceinline__ float normal_below(float d) { // a polynomial of five terms for the tail
  const float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d)), term[] = {1.330274429f, -1.821255978f, 1.781477937f, -0.356563782f, 0.31938153f};
  float tail = 0; _Pragma("unroll") for (int i = 0; i < 5; i++) tail = i ? term[i] + k * tail : term[i];
  tail *= k * (0.398942280401f * __expf(d * d * -0.5f));
  return d > 0 ? 1.0f - tail : tail;
}
__device__ __forceinline__ float2 bh_prices(float s, float x, float t, float rate, float swing) { // of the call and the put
  const float sway = swing * __fdividef(1.0f, rsqrtf(t)), far = __fdividef(t * (0.5f * swing * swing + rate) + __logf(__fdividef(s, x)), sway);
  const float owed = __expf(t * -rate) * x, p = normal_below(far), q = normal_below(far - sway);
  return make_float2(s * p - owed * q, owed * (1.0f - q) - s * (1.0f - p));
}
__global__ void ugpu_bh(int count, float rate, float swing, const float *years, const float *stock, const float *strike, float *put, float *call) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  while (i < count) { const float2 price = bh_prices(stock[i], strike[i], years[i], rate, swing); call[i] = price.x, put[i] = price.y, i += gridDim.x * blockDim.x; }
}
static void bh() {
  const int blocks = sized(24, 480), n = blocks * 128 * sized(3, 39); std::vector<float> a(3 * n);
  for (int i = 0; i < n; i++) a[i] = 17 + 12 * real(i), a[n + i] = 50 + 49 * real(i + n), a[2 * n + i] = 5 + 4.7f * real(i + 2 * n);
  float *x = device(a), *y = device<float>(nullptr, 2 * n); for (int i = 0; i < sized(1, 14); i++) ugpu_bh<<<blocks, 128>>>(n, 0.02f, 0.3f, x + 2 * n, x, x + n, y + n, y); if (full) return;
  same("bh", y, make(2 * n, [&](int i) { // calls, then puts
    double s = a[i % n], k = a[n + i % n], t = a[2 * n + i % n], v = 0.3 * std::sqrt(t), d = (std::log(s / k) + 0.065 * t) / v;
    auto normal = [](double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); }; double call = s * normal(d) - k * std::exp(-0.02 * t) * normal(d - v);
    return i < n ? call : call - s + k * std::exp(-0.02 * t);
  }), 3e-4);
}
// ---- ugpu-dxtc: a block of 4 by 4 pixels to DXT1 by 64 threads that try every way to spread the sorted pixels.
__constant__ float dxtc_alpha[2][4] = {{4, 0, 2, 2}, {9, 0, 6, 3}};
__constant__ int dxtc_products[2][4] = {{0x040000, 0x000400, 0x010101, 0x010101}, {0x090000, 0x000900, 0x040102, 0x010402}};
__device__ inline float3 operator*(float a, float3 v) { return make_float3(a * v.x, a * v.y, a * v.z); } __device__ inline float3 operator*(float3 a, float3 v) { return make_float3(a.x * v.x, a.y * v.y, a.z * v.z); }
__device__ inline float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); } __device__ inline float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
__device__ inline float dxtc_dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
struct Fit { float error; unsigned way; unsigned short start, end; };
__device__ __forceinline__ float dxtc_level(float v, float top, int shift, unsigned short &word) { v = rintf(__saturatef(v) * top); word |= (unsigned short)v << shift; return v * (1.0f / top); }
__device__ __forceinline__ float3 dxtc_snap(float3 v, unsigned short &word) {
  word = 0; float3 r; r.x = dxtc_level(v.x, 31.0f, 11, word), r.y = dxtc_level(v.y, 63.0f, 5, word), r.z = dxtc_level(v.z, 31.0f, 0, word);
  return r;
}
// The best end points for a way to spread the pixels over `four` or three colours: least squares.
template <int four> __device__ Fit dxtc_fit(const float3 *colours, unsigned way, float3 sum) {
  Fit fit; fit.way = way; float3 ax = make_float3(0, 0, 0); int packed = 0;
  for (int i = 0; i < 16; i++, way >>= 2) ax = ax + dxtc_alpha[four][way & 3] * colours[i], packed += dxtc_products[four][way & 3];
  const float ab = float(packed & 255), bb = float(packed >> 8 & 255), aa = float(packed >> 16), scale = 1.0f / (aa * bb - ab * ab); const float3 bx = (four ? 9.0f : 4.0f) * sum - ax;
  const float3 b = dxtc_snap(scale * (aa * bx - ab * ax), fit.end), a = dxtc_snap(scale * (bb * ax - ab * bx), fit.start);
  const float3 e = bb * (b * b) + aa * (a * a) + 2.0f * (ab * (a * b) - b * bx - a * ax); fit.error = (four ? 0.111111111f : 0.25f) * (e.x + e.y + e.z);
  return fit;
}
__device__ __forceinline__ void dxtc_flip(Fit &f, unsigned codes) { const unsigned short s = f.start; f.start = f.end, f.end = s, f.way ^= codes; }
// Sixteen threads: colours by their place along the longest axis, and the sum of all.
__device__ __forceinline__ void dxtc_order(float3 *colours, float3 *sums, int *place, float *along, float (*spread)[6], unsigned pixel) {
  const int t = threadIdx.x, half = 0xffff; const float unit = 1.0f / 255.0f; const float3 me = unit * make_float3(pixel & 255, pixel >> 8 & 255, pixel >> 16 & 255);
  sums[t] = me, colours[t] = me; __syncwarp(half);
  for (int d = 8; d; d >>= 1) { const float3 both = sums[t] + sums[t ^ d]; __syncwarp(half); sums[t] = both; __syncwarp(half); }
  const float3 off = me - 0.0625f * sums[0]; float *c = spread[t]; c[0] = off.x * off.x, c[3] = off.y * off.y, c[5] = off.z * off.z;
  c[1] = off.x * off.y, c[2] = off.x * off.z, c[4] = off.y * off.z; __syncwarp(half);
  for (int d = 8; d; d >>= 1, __syncwarp(half)) if (t < d) for (int k = 0; k < 6; k++) c[k] += c[6 * d + k];
  float3 axis = make_float3(1, 1, 1); c = spread[0];
  for (int i = 0; i < 8; i++) {
    const float3 v = make_float3(dxtc_dot(axis, make_float3(c[0], c[1], c[2])), dxtc_dot(axis, make_float3(c[1], c[3], c[4])), dxtc_dot(axis, make_float3(c[2], c[4], c[5])));
    axis = 1.0f / fmaxf(v.x, fmaxf(v.y, v.z)) * v;
  }
  const float mine = along[t] = dxtc_dot(me, axis); int rank = 0; __syncwarp(half);
  for (int i = 0; i < 16; i++) rank += along[i] < mine || (i < t && along[i] == mine);
  place[t] = rank; __syncwarp(half);
  colours[rank] = me;
}
__global__ void ugpu_dxtc(uint2 *result, const unsigned *image, const unsigned *ways, int first) {
  __shared__ float3 colours[16], sums[16]; __shared__ float along[16], spread[16][6], errors[64]; __shared__ int place[16], index[64]; __shared__ unsigned kept[160];
  const int t = threadIdx.x; result += blockIdx.x + first, image += 16 * (blockIdx.x + first);
  if (t < 16) dxtc_order(colours, sums, place, along, spread, image[t]);
  __syncthreads();
  const float3 sum = sums[0]; Fit best = {3.402823466e+38f, 0, 0, 0};
  for (int w = t; w < 992; w += 64) {
    const unsigned way = ways[w];
    if (w < 160) kept[w] = way;
    const Fit fit = dxtc_fit<1>(colours, way, sum);
    if (fit.error < best.error) best = fit;
  }
  if (best.start < best.end) dxtc_flip(best, 0x55555555);
  __syncthreads();
  bool three = false; for (int w = t; w < 160; w += 64) { const Fit fit = dxtc_fit<0>(colours, kept[w], sum); if (fit.error < best.error) best = fit, three = true; }
  if (three && best.start > best.end) dxtc_flip(best, ~best.way >> 1 & 0x55555555);
  index[t] = t, errors[t] = best.error; __syncthreads();
  for (int d = 32; d; d >>= 1, __syncthreads()) if (t < d && errors[t] > errors[t + d]) index[t] = index[t + d], errors[t] = errors[t + d];
  if (index[0] == t) {
    unsigned codes = 0;
    if (best.start != best.end) for (int i = 0; i < 16; i++) codes |= (best.way >> 2 * place[i] & 3) << 2 * i;
    *result = make_uint2(best.start | unsigned(best.end) << 16, codes);
  }
}
static void dxtc() {
  const int blocks = sized(20, 8192); std::vector<unsigned> ways, image(16 * blocks);
  auto spread = [&](int i, int j, int k) { // zeros, then twos, then threes, then ones
    unsigned way = 0;
    for (int p = 0; p < 16; p++) way |= (p < i ? 0u : p < j ? 2u : p < k ? 3u : 1u) << 2 * p;
    ways.push_back(way);
  };
  for (int i = 0; i <= 16; i++) for (int j = i; j <= 16; j++) spread(i, j, j);
  while (ways.size() < 160) ways.push_back(0);
  for (int i = 0; i <= 16; i++) for (int j = i; j <= 16; j++) for (int k = j + 1; k <= 16; k++) spread(i, j, k);
  while (ways.size() < 1024) ways.push_back(0);
  for (int i = 0; i < 16 * blocks; i++) for (int c = 0, t = draw(i) % 150; c < 3; c++) image[i] |= (20 + t * (c + 2) / 4 + draw(7 * i + c + 1) % 40) << 8 * c;
  unsigned *w = device(ways), *x = device(image); uint2 *y = device<uint2>(nullptr, blocks);
  for (int launch = 0; launch < 2; launch++) ugpu_dxtc<<<blocks, 64>>>(y, x, w, 0);
  if (full) return;
  uint2 *r = host(y, blocks);
  for (int b = 0; b < blocks; b++) {
    double c[16][3], mean[3] = {}, spread[3][3] = {}, axis[3] = {1, 1, 1}, v[3], best = 1e9, got = 0;
    for (int i = 0; i < 16; i++) for (int k = 0; k < 3; k++) mean[k] += (c[i][k] = (image[16 * b + i] >> 8 * k & 255) / 255.0) / 16;
    for (auto &p : c) for (int k = 0; k < 9; k++) spread[k / 3][k % 3] += (p[k / 3] - mean[k / 3]) * (p[k % 3] - mean[k % 3]);
    for (int i = 0; i < 8; i++) {
      for (int k = 0; k < 3; k++) v[k] = spread[k][0] * axis[0] + spread[k][1] * axis[1] + spread[k][2] * axis[2];
      for (int k = 0; k < 3; k++) axis[k] = v[k] / std::max(std::max(v[0], v[1]), v[2]);
    }
    std::vector<std::pair<double, int>> order;
    for (int i = 0; i < 16; i++) order.push_back({c[i][0] * axis[0] + c[i][1] * axis[1] + c[i][2] * axis[2], i});
    std::sort(order.begin(), order.end()); auto end = [](unsigned word, int k) { return k == 0 ? (word >> 11) / 31.0 : k == 1 ? (word >> 5 & 63) / 63.0 : (word & 31) / 31.0; };
    static const double share[2][4] = {{1, 0, 0.5, 0.5}, {1, 0, 2 / 3.0, 1 / 3.0}};
    for (int w = 0; w < 1152; w++) { // 992 ways of four colours, then 160 of three
      double s[16], aa = 0, bb = 0, ab = 0, error = 0;
      for (int p = 0; p < 16; p++) s[p] = share[w < 992][ways[w % 992] >> 2 * p & 3], aa += s[p] * s[p], bb += (1 - s[p]) * (1 - s[p]), ab += s[p] * (1 - s[p]);
      if (aa * bb - ab * ab < 1e-9) continue;
      for (int k = 0; k < 3; k++) {
        double ax = 0, bx = 0, top = k == 1 ? 63 : 31;
        for (int p = 0; p < 16; p++) ax += s[p] * c[order[p].second][k], bx += (1 - s[p]) * c[order[p].second][k];
        auto snap = [&](double v) { return std::rint(std::min(std::max(v / (aa * bb - ab * ab), 0.0), 1.0) * top) / top; };
        double u = snap(ax * bb - bx * ab), v = snap(bx * aa - ax * ab);
        for (int p = 0; p < 16; p++) error += std::pow(v + s[p] * (u - v) - c[order[p].second][k], 2);
      }
      best = std::min(best, error);
    }
    unsigned s = r[b].x & 65535, e = r[b].x >> 16;
    for (int i = 0; i < 48; i++) got += std::pow(end(e, i % 3) + share[s > e][r[b].y >> i / 3 * 2 & 3] * (end(s, i % 3) - end(e, i % 3)) - c[i / 3][i % 3], 2);
    expect("dxtc", b, got / best, 1.0, 1e-3);
  }
}
// ---- ugpu-convs: separable convolution of radius 8, eight results per thread, tiles with halos in shared memory.
__constant__ float convs_weights[17];
// Eight results `step` cells apart and a halo of a step on either side: `cell` in the tile, `in` and `out` at the first, `gap` from one to the next.
template <int step> __device__ __forceinline__ void convs_eight(float *cell, const float *in, float *out, int gap, bool before, bool after) {
  cell[-step] = before ? in[-gap] : 0, cell[8 * step] = after ? in[8 * gap] : 0;
  _Pragma("unroll") for (int i = 0; i < 8; i++) cell[i * step] = in[i * gap];
  __syncthreads();
  _Pragma("unroll") for (int i = 0; i < 8; i++, cell += step) {
    float sum = 0; _Pragma("unroll") for (int k = 0; k < 17; k++) sum += cell[8 - k] * convs_weights[k]; out[i * gap] = sum;
  }
}
__global__ void ugpu_convs_convolutionRowsKernel(const float *in, float *out, int width) {
  __shared__ float tile[4][160]; const int first = (4 * blockIdx.y + threadIdx.y) * width + 128 * blockIdx.x + threadIdx.x;
  convs_eight<16>(&tile[threadIdx.y][16 + threadIdx.x], in + first, out + first, 16, blockIdx.x > 0, 128 * (blockIdx.x + 1) + threadIdx.x < width);
}
__global__ void ugpu_convs_convolutionColumnsKernel(const float *in, float *out, int height, int width) {
  __shared__ float tile[16][81]; const int first = (64 * blockIdx.y + threadIdx.y) * width + 16 * blockIdx.x + threadIdx.x;
  convs_eight<8>(&tile[threadIdx.x][8 + threadIdx.y], in + first, out + first, 8 * width, blockIdx.y > 0, 64 * (blockIdx.y + 1) + threadIdx.y < height);
}
static void convs() {
  const int width = sized(256, 4096), height = sized(128, 3072), n = width * height; std::vector<float> a = make(n, real), k = make(17, [&](int i) { return real(i + n); });
  std::vector<double> b(n), c(n); cudaMemcpyToSymbol(convs_weights, k.data(), 17 * sizeof(float));
  float *x = device(a), *y = device<float>(nullptr, n), *z = device<float>(nullptr, n);
  for (int round = 0; round < 2; round++) {
    ugpu_convs_convolutionRowsKernel<<<dim3(width / 128, height / 4), dim3(16, 4)>>>(x, y, width);
    ugpu_convs_convolutionColumnsKernel<<<dim3(width / 16, height / 64), dim3(16, 8)>>>(y, z, height, width);
  }
  if (full) return; for (int i = 0; i < n; i++) for (int j = -8; j <= 8; j++) if (i % width + j >= 0 && i % width + j < width) b[i] += k[8 - j] * a[i + j];
  for (int i = 0; i < n; i++) for (int j = -8; j <= 8; j++) if (i / width + j >= 0 && i / width + j < height) c[i] += k[8 - j] * b[i + j * width];
  same("convs", z, c, 1e-4);
}
// ---- ugpu-lavamd: forces between the particles of boxes that touch, doubles, sums kept in global memory.
struct LavaLink { int place[3], box; long first; };
struct LavaBox { LavaLink self; int links; LavaLink link[26]; };
struct Four { double v, x, y, z; };
__device__ __forceinline__ void lava_push(Four &sum, const Four &a, const Four &b, double charge, double sharpness) {
  const double pull = exp(sharpness * (a.x * b.x + a.y * b.y + a.z * b.z - (a.v + b.v))), twice = 2 * pull;
  sum.x += charge * (twice * (a.x - b.x)), sum.y += charge * (twice * (a.y - b.y)), sum.z += charge * (twice * (a.z - b.z)), sum.v += charge * pull;
}
__global__ void ugpu_lavamd(Four *force, const Four *position, const double *charge, const LavaBox *boxes, double alpha) {
  __shared__ double charges[100]; __shared__ Four here[100], there[100]; const int t = threadIdx.x; const bool busy = t < 100;
  const LavaBox &box = boxes[blockIdx.x]; const long first = box.self.first; force += first + t; const double sharpness = 2.0 * alpha * alpha;
  if (busy) here[t] = position[first + t];
  __syncthreads();
  for (int k = 0, other = blockIdx.x;; k++) {
    const long from = boxes[other].self.first + t;
    if (busy) there[t] = position[from], charges[t] = charge[from];
    __syncthreads();
    if (busy) for (int j = 0; j < 100; j++) lava_push(*force, here[t], there[j], charges[j], sharpness);
    __syncthreads();
    if (k >= box.links) break;
    other = box.link[k].box;
  }
}
static void lavamd() {
  const int boxes = sized(6, 5324), n = 100 * boxes; // a plate, 3 boxes wide; in full, a neighbour of each
  std::vector<LavaBox> box(boxes);
  std::vector<Four> r = make(n, [](int i) { return Four{some(4 * i), some(4 * i + 1), some(4 * i + 2), some(4 * i + 3)}; });
  std::vector<double> q = make(n, [&](int i) { return double(some(i + 4 * n)); }); auto touch = [](int a, int b) { return a != b && std::abs(a % 3 - b % 3) <= 1; };
  for (int b = 0; b < boxes; b++) {
    box[b] = {{{b % 3, b / 3, 0}, b, 100 * b}, 0, {}};
    if (full) box[b].link[box[b].links++] = {{}, (b + 1) % boxes, 100L * ((b + 1) % boxes)};
    else for (int o = 0; o < boxes; o++) if (touch(b, o)) box[b].link[box[b].links++] = {{o % 3, o / 3, 0}, o, 100 * o};
  }
  Four *f = device<Four>(nullptr, n); ugpu_lavamd<<<boxes, 128>>>(f, device(r), device(q), device(box), 0.5); if (full) return; std::vector<double> force(4 * n);
  for (int i = 0; i < n; i++) {
    double *a = &r[i].v;
    for (int j = 0; j < n; j++) {
      if (i / 100 != j / 100 && !touch(i / 100, j / 100)) continue;
      double *b = &r[j].v, v = q[j] * std::exp(-0.5 * (a[0] + b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]));
      for (int k = 0; k < 4; k++) force[4 * i + k] += k ? 2 * v * (a[k] - b[k]) : v;
    }
  }
  same("lavamd", &f->v, force, 1e-9);
}
// ---- ugpu-sc: streamcluster, what a candidate centre would save each point; its coordinates are copied by one thread.
struct Point { float weight; float *coordinates; long centre; float cost; };
__global__ void ugpu_sc(float *work, int stride, bool *change, const Point *points, const int *table, const float *coordinates, int dimensions, int count, long chosen) {
  extern __shared__ float candidate[]; const int at = threadIdx.x + blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x);
  if (threadIdx.x == 0) for (int k = 0; k < dimensions; k++) candidate[k] = coordinates[chosen + k * count];
  __syncthreads();
  if (at < count) {
    float far = 0; const float *mine = coordinates + at; const Point &p = points[at]; work += at * stride;
    for (int k = 0; k < dimensions; k++) { const float off = candidate[k] - mine[k * count]; far += off * off; }
    const float gain = p.cost - far * p.weight;
    if (gain > 0) work[stride - 1] -= gain, change[at] = true;
    else work[table[p.centre]] += gain;
  }
}
static void sc() {
  const int count = sized(4096, 262144), dimensions = 256, centres = 23, stride = centres + 1; std::vector<float> c = make(count * dimensions, real);
  std::vector<Point> p(count); std::vector<int> table(count);
  for (int i = 0; i < count; i++) p[i] = {some(i), nullptr, draw(i) % count, 250 + 30 * real(i + 1)}, table[i] = draw(i + 3) % centres;
  float *x = device(c), *w = device<float>(nullptr, count * stride); bool *b = device<bool>(nullptr, count);
  for (long launch = 0; launch < 2; launch++)
    ugpu_sc<<<count / 512, 512, dimensions * sizeof(float)>>>(w, stride, b, device(p), device(table), x, dimensions, count, 77 + 1000 * launch);
  if (full) return;
  std::vector<double> lower(count * stride); std::vector<int> changed(count);
  for (int i = 0; i < 2 * count; i++) {
    int launch = i / count, at = i % count; double distance = 0;
    for (int k = 0; k < dimensions; k++) distance += std::pow(double(c[k * count + at]) - c[k * count + 77 + 1000 * launch], 2);
    double more = distance * p[at].weight - p[at].cost; lower[at * stride + (more < 0 ? centres : table[p[at].centre])] -= std::fabs(more), changed[at] |= more < 0;
  }
  same("sc", w, lower, 1e-3), same("sc change", b, changed, 0);
}
// ---- ugpu-euler3d: finite volumes for the Euler equations on a mesh whose elements have four neighbours.
__constant__ float euler_away[3][5]; // the flow far away along each axis
struct Gas { float q[5], u[3], f[3][5], speed, sound, pressure; }; // q: density, momentum, energy; f: their flow along each axis
__device__ __forceinline__ void euler_gas(Gas &g, const float *q, int pitch) {
  _Pragma("unroll") for (int k = 0; k < 5; k++, q += pitch) g.q[k] = *q;
  float square = 0;
  _Pragma("unroll") for (int d = 0; d < 3; d++) g.u[d] = g.q[d + 1] / g.q[0], square += g.u[d] * g.u[d];
  g.speed = sqrtf(square), g.pressure = 0.4f * (g.q[4] - 0.5f * g.q[0] * square), g.sound = sqrtf(1.4f * g.pressure / g.q[0]);
}
__device__ __forceinline__ void euler_flows(Gas &g) {
  _Pragma("unroll") for (int d = 0; d < 3; d++) {
    g.f[d][0] = g.q[d + 1], g.f[d][4] = g.u[d] * (g.pressure + g.q[4]), g.f[d][d + 1] = g.u[d] * g.q[d + 1] + g.pressure;
    _Pragma("unroll") for (int e = d + 1; e < 3; e++) g.f[e][d + 1] = g.f[d][e + 1] = g.u[d] * g.q[e + 1];
  }
}
__device__ __forceinline__ void euler_cross(float *sum, const float (*a)[5], const float (*b)[5], const float *normal) {
  _Pragma("unroll") for (int d = 2; d >= 0; d--) { const float half = 0.5f * normal[d]; _Pragma("unroll") for (int k = 0; k < 5; k++) sum[k] += half * (a[d][k] + b[d][k]); }
}
__global__ void ugpu_euler3d_cuda_compute_step_factor(float *factors, const float *areas, const float *gas, int n) {
  const int at = threadIdx.x + blockIdx.x * blockDim.x; Gas g; euler_gas(g, gas + at, n); factors[at] = 0.5f / ((g.sound + g.speed) * sqrtf(areas[at]));
}
__global__ void ugpu_euler3d_cuda_compute_flux(float *flux, const float *gas, const float *normals, const int *neighbours, int n) {
  const int at = threadIdx.x + blockIdx.x * blockDim.x; Gas me, it; float sum[5] = {}; euler_gas(me, gas + at, n), euler_flows(me); neighbours += at, normals += at, flux += at;
  _Pragma("unroll") for (int side = 0; side < 4; side++, neighbours += n, normals += n) {
    const int to = *neighbours; const float normal[3] = {normals[0], normals[4 * n], normals[8 * n]};
    const float length = sqrtf(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
    if (to == -2) euler_cross(sum, me.f, euler_away, normal);
    else if (to == -1) { _Pragma("unroll") for (int d = 0; d < 3; d++) sum[d + 1] += normal[d] * me.pressure; }
    else if (to >= 0) {
      euler_gas(it, gas + to, n), euler_flows(it); const float drag = 0.2f * 0.5f * length * (me.speed + me.sound + it.speed + it.sound);
      _Pragma("unroll") for (int k = 0; k < 5; k++) sum[k] += drag * (it.q[k] - me.q[k]);
      euler_cross(sum, me.f, it.f, normal);
    }
  }
  _Pragma("unroll") for (int k = 0; k < 5; k++, flux += n) *flux = sum[k];
}
__global__ void ugpu_euler3d_cuda_time_step(float *gas, const float *before, const float *flux, const float *factors, int n, int stage) {
  int at = threadIdx.x + blockIdx.x * blockDim.x; const float share = factors[at] / float(4 - stage);
  for (int k = 5; k; k--, at += n) gas[at] = share * flux[at] + before[at];
}
static void euler3d() {
  const int n = 192 * sized(10, 5642), width = 128; std::vector<float> u = make(5 * n, [&](int i) { return i < n ? some(i) : i < 4 * n ? 0.5f * real(i) : 4 + real(i); });
  std::vector<float> normal = make(12 * n, [](int i) { return 0.1f * real(i + 77); }), area = make(n, [](int i) { return some(i + 9); });
  std::vector<int> other = make(4 * n, [&](int i) {
    int to = i % n + (i / n == 0 ? -1 : i / n == 1 ? 1 : i / n == 2 ? -width : width);
    return draw(i) % 32 ? to < 0 ? -1 : to >= n ? -2 : to : int(draw(i + 1) % n);
  });
  float far[5] = {1.4f, 1.6f, 0.1f, 0.0f, 3.5f};
  struct Flow { double f[4][5], speed, sound, p; }; // f[3]: the variables
  auto flow = [](auto v) {
    Flow r = {}; double s = 0;
    for (int k = 0; k < 5; k++) r.f[3][k] = v(k);
    for (int d = 1; d < 4; d++) s += std::pow(v(d) / v(0), 2);
    r.speed = std::sqrt(s), r.p = 0.4 * (v(4) - 0.5 * v(0) * s), r.sound = std::sqrt(1.4 * r.p / v(0));
    for (int d = 0; d < 3; d++) for (int k = 0; k < 5; k++) r.f[d][k] = k == 0 ? v(d + 1) : v(d + 1) / v(0) * (k == 4 ? v(4) + r.p : double(v(k))) + (k == d + 1) * r.p;
    return r;
  };
  Flow away = flow([&](int k) { return double(far[k]); }); float flux[3][5];
  for (int k = 0; k < 15; k++) flux[k / 5][k % 5] = float(away.f[k / 5][k % 5]);
  cudaMemcpyToSymbol(euler_away, flux, sizeof flux);
  float *x = device(u), *old = device(u), *f = device<float>(nullptr, 5 * n), *m = device(normal); float *a = device(area), *s = device<float>(nullptr, n);
  int *o = device(other); std::vector<double> c(u.begin(), u.end()), first = c, factor(n), next(5 * n); ugpu_euler3d_cuda_compute_step_factor<<<n / 192, 192>>>(s, a, x, n);
  for (int stage = 0; stage < 3; stage++) {
    ugpu_euler3d_cuda_compute_flux<<<n / 192, 192>>>(f, x, m, o, n); ugpu_euler3d_cuda_time_step<<<n / 192, 192>>>(x, old, f, s, n, stage); if (full) continue;
    for (int i = 0; i < n; i++) {
      Flow me = flow([&](int k) { return c[i + k * n]; });
      if (stage == 0) factor[i] = 0.5 / (std::sqrt(area[i]) * (me.speed + me.sound));
      double sum[5] = {};
      for (int j = 0; j < 4; j++) {
        int t = other[i + j * n]; double l = 0, v[3];
        for (int d = 0; d < 3; d++) v[d] = normal[i + (j + 4 * d) * n], l += v[d] * v[d];
        Flow it = t == -2 ? away : flow([&](int k) { return c[std::max(t, 0) + k * n]; });
        for (int k = 0; k < 5; k++) {
          if (t >= 0) sum[k] -= 0.1 * std::sqrt(l) * (me.speed + it.speed + me.sound + it.sound) * (me.f[3][k] - it.f[3][k]);
          for (int d = 0; d < 3; d++) sum[k] += t == -1 ? (k == d + 1) * me.p * v[d] : 0.5 * v[d] * (me.f[d][k] + it.f[d][k]);
        }
      }
      for (int k = 0; k < 5; k++) next[i + k * n] = first[i + k * n] + factor[i] / (4 - stage) * sum[k];
    }
    c = next;
  }
  if (!full) same("euler3d", x, c, 1e-4);
}
// ---- ugpu-dwt2d: the reversible 5/3 wavelet transform; a window of 192 by 8 slides down a strip, in shared memory.
// Even columns lie in the first half of the buffer and odd ones in the second; three rows above the window, two columns left.
const int DWT_X = 192, DWT_Y = 8, DWT_LINE = DWT_X / 2 + 2, DWT_HALF = DWT_LINE * (DWT_Y + 3) + 16;
__device__ __forceinline__ int dwt_cell(int column) { return (column & 1) * DWT_HALF + (column >> 1) + 1; }
// A column of the strip: where it lies in the window, its three newest pixels, and where the next comes from: back up below the image's last row.
template <bool turns> struct DwtStrip {
  int cell, newest[3], left, stride, next;
  __device__ __forceinline__ int take(const int *image) {
    const int pixel = image[next]; next += stride;
    if (turns && --left == 0) stride = -stride, next += 2 * stride;
    return pixel;
  }
  __device__ __forceinline__ void seek(int x, int width, int height, int row) { next = x + row * width, stride = width, left = height - row; }
  __device__ void start(const int *image, int width, int height, int column, int row) {
    int x = abs(int(blockIdx.x) * DWT_X + column); cell = dwt_cell(column);
    if (x >= width) x = 2 * (width - 1) - x;
    const bool top = blockIdx.y == 0; seek(x, width, height, top ? row : row - 2);
    if (top) { for (int i = 2; i >= 0; i--) newest[i] = take(image); seek(x, width, height, row + 1); }
    else for (int &pixel : newest) pixel = take(image);
  }
  __device__ void advance(const int *image, int *window) { // eight rows further, lifted along the column
    int v[DWT_Y + 3], *c = window + cell;
    for (int i = 0; i < DWT_Y + 3; i++) v[i] = i < 3 ? newest[i] : take(image);
    for (int i = 0; i < 3; i++) newest[i] = v[DWT_Y + i];
    for (int i = 0; i <= DWT_Y; i += 2) v[i + 1] -= (v[i] + v[i + 2]) / 2;
    for (int i = 2; i <= DWT_Y; i += 2) v[i] += (v[i - 1] + v[i + 1] + 2) / 4;
    for (int i = 0; i < DWT_Y + 3; i++) c[i * DWT_LINE] = v[i];
  }
};
// Once per pair of a window's rows, a block's width at a time.
template <typename F> __device__ __forceinline__ void dwt_pairs(F lift) {
  const int pairs = DWT_Y * DWT_LINE - 1;
  _Pragma("unroll") for (int k = 0; k <= pairs / DWT_X; k++) { const int i = threadIdx.x + k * DWT_X; if (k < pairs / DWT_X || i < pairs) lift(i); }
  __syncthreads();
}
template <bool below, bool beyond> __device__ void dwt_slide(int *window, int *out, const int *in, int height, int width, int steps) {
  const int t = threadIdx.x; int row = blockIdx.y * DWT_Y * steps; DwtStrip<below> strip, rim = {}; const bool two = t < 3; strip.start(in, width, height, t, row);
  if (two) rim.start(in, width, height, t ? t - 3 : DWT_X, row);
  const bool odd = t >= DWT_X / 2; const int column = odd ? 2 * t - DWT_X + 1 : 2 * t, band = width * height / 4, x = blockIdx.x * DWT_X + column;
  int *even = window + 2 * DWT_LINE, *high = even + DWT_HALF; const int *mine = even + dwt_cell(column); int at = (x >> 1) + row / 2 * (width / 2) + (odd ? band : 0);
  for (; steps; steps--) {
    strip.advance(in, window);
    if (two) rim.advance(in, window);
    __syncthreads();
    dwt_pairs([&](int i) { high[i] -= (even[i + 1] + even[i]) / 2; }); dwt_pairs([&](int i) { even[i + 1] += (high[i + 1] + high[i] + 2) / 4; });
    for (int r = 0; r < DWT_Y; r++, row++) {
      if (!beyond || (row < height && x < width)) out[r & 1 ? at + 2 * band : at] = mine[r * DWT_LINE];
      if (r & 1) at += width / 2;
    }
    __syncthreads();
  }
}
__global__ __launch_bounds__(DWT_X, 5) void ugpu_dwt2d(int *out, const int *in, int height, int width, int steps) {
  __shared__ int window[2 * DWT_HALF]; const bool low = (blockIdx.y + 1) * DWT_Y * steps + 1 >= height, right = (blockIdx.x + 1) * DWT_X + 1 >= width;
  if (!low && !right) dwt_slide<false, false>(window, out, in, height, width, steps);
  else if (!low) dwt_slide<false, true>(window, out, in, height, width, steps);
  else dwt_slide<true, true>(window, out, in, height, width, steps);
}
static void dwt2d() {
  const int across = sized(3, 32), width = across * 192, steps = sized(4, 51), down = sized(3, 15), height = down * 8 * steps, n = width * height; std::vector<int> a = make(n, [](int i) { return int(draw(i) % 256) - 128; });
  int *x = device(a), *y = device<int>(nullptr, n);
  for (int round = 0; round < 3; round++) ugpu_dwt2d<<<dim3(across, down), 192>>>(y, x, height, width, steps);
  if (full) return;
  auto lift = [&](int *p, int count, int step) {
    auto at = [&](int i) -> int & { return p[step * (i < 0 ? -i : i >= count ? 2 * count - 2 - i : i)]; };
    for (int i = 1; i < count; i += 2) at(i) -= (at(i - 1) + at(i + 1)) / 2;
    for (int i = 0; i < count; i += 2) at(i) += (at(i - 1) + at(i + 1) + 2) / 4;
  };
  for (int x = 0; x < width; x++) lift(&a[x], height, width);
  for (int v = 0; v < height; v++) lift(&a[v * width], width, 1);
  same("dwt2d", y, make(n, [&](int i) { // four bands: even or odd rows, even or odd columns
    int band = i / (n / 4), x = i % (width / 2) * 2 + band % 2, v = i % (n / 4) / (width / 2) * 2 + band / 2;
    return a[v * width + x];
  }), 0);
}
// ---- ugpu-pvc: the first map of page view count: a record of a log per thread, its bytes hashed, key and value emitted.
struct PageKey { const char *log; int offset, hash; };
struct PageValue { int size, phase; };
template <typename T> __device__ __forceinline__ void pvc_emit(char *to, const T *from) {
  const int *word = (const int *)from; int *out = (int *)to; for (int k = 0; k < int(sizeof(T) / 4); k++) out[k] = word[k];
}
__device__ __forceinline__ int pvc_hash(const char *text, const int &size) {
  int hash = size; for (int b = 0; b < size; b++) hash = text[b] ^ (hash >> 28) ^ (hash << 4);
  return hash;
}
__global__ void ugpu_pvc(int4 *out_places, char *out_keys, char *out_values, const int *key_at, const int *value_at, int4 *places, char *keys, const char *values, int tasks, int records) {
  int i = blockIdx.x * blockDim.x * tasks + threadIdx.x;
  for (int left = tasks; left && i < records; left--, i += blockDim.x) {
    const PageValue *value = (const PageValue *)(values + places[i].z); PageKey *key = (PageKey *)(keys + places[i].x);
    key->hash = pvc_hash(key->log + key->offset, value->size);
    const int to = value_at[i], k = key_at[i]; pvc_emit(out_values + to, value), pvc_emit(out_keys + k, key);
    out_places[i] = make_int4(k, sizeof(PageKey), to, sizeof(PageValue));
  }
}
static void pvc() {
  const int records = 256 * sized(6, 8500); std::vector<char> log = make(128 * records, [](int i) { return char(33 + draw(i) % 90); });
  char *text = device(log); std::vector<PageKey> keys = make(records, [&](int i) { return PageKey{text, 128 * i, 0}; });
  std::vector<PageValue> values = make(records, [](int i) { return PageValue{draw(i) % 4 ? 128 : 64, 0}; });
  std::vector<int4> places = make(records, [](int i) { return int4{16 * i, 16, 8 * i, 8}; });
  std::vector<int> key_at = make(records, [](int i) { return 16 * i; }), value_at = make(records, [](int i) { return 8 * i; }); PageKey *k = device<PageKey>(nullptr, records);
  PageValue *v = device<PageValue>(nullptr, records);
  ugpu_pvc<<<records / 256, 256>>>(device<int4>(nullptr, records), (char *)k, (char *)v, device(key_at), device(value_at), device(places), (char *)device(keys), (char *)device(values), 1, records); if (full) return;
  PageKey *r = host(k, records); PageValue *s = host(v, records);
  for (int i = 0; i < records; i++) {
    unsigned hash = values[i].size;
    for (int b = 0; b < values[i].size; b++) hash = (hash << 4) ^ unsigned(int(hash) >> 28) ^ unsigned(log[128 * i + b]);
    expect("pvc hash", i, r[i].hash, int(hash), 0), expect("pvc offset", i, r[i].offset, 128 * i, 0), expect("pvc size", i, s[i].size, values[i].size, 0);
  }
}

int main(int count, char **words) {
  Calls run(count, words); run("ugpu-fwt", fwt), run("ugpu-srad", srad), run("ugpu-cp", cp), run("ugpu-mriq", mriq), run("ugpu-pf", pf);
  run("ugpu-hotspot", hotspot), run("ugpu-lbm", lbm), run("ugpu-bh", bh), run("ugpu-dxtc", dxtc), run("ugpu-convs", convs);
  run("ugpu-lavamd", lavamd), run("ugpu-sc", sc), run("ugpu-euler3d", euler3d), run("ugpu-dwt2d", dwt2d), run("ugpu-pvc", pvc);
  return finish("ugpu");
}
