// Programs for the stand-ins of UGPU's table 2 (models/workloads/ugpu-*.toml), each against the CPU.
#include "check.h"
#include <algorithm>
#include <vector>

// A positive value per index, from 1 to 2.
static float some(unsigned i) { return 1.5f + 0.5f * real(i); }
template <typename F> auto make(int n, F f) {
  std::vector<decltype(f(0))> v(n);
  for (int i = 0; i < n; i++) v[i] = f(i);
  return v;
}
template <typename T> T *device(const std::vector<T> &v) { return device(v.data(), int(v.size())); }
template <typename T, typename W> void same(const char *what, const T *x, const std::vector<W> &wanted, double tolerance) {
  T *got = host(x, int(wanted.size()));
  for (size_t i = 0; i < wanted.size(); i++) expect(what, int(i), W(got[i]), wanted[i], tolerance);
}
// ---- ugpu-fwt: a radix-4 pass of the Walsh transform over distant quarters.
__global__ void ugpu_fwt(float *out, const float *in, int stride) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, size = blockDim.x * gridDim.x * 4; const float *from = in + blockIdx.y * size;
  float *to = out + blockIdx.y * size; int low = at & (stride - 1);
  int i0 = ((at - low) << 2) + low, i1 = i0 + stride, i2 = i1 + stride, i3 = i2 + stride; float a = from[i0], b = from[i1], c = from[i2], d = from[i3];
  float e = a + c, f = a - c, g = b + d, h = b - d; to[i0] = e + g, to[i1] = e - g, to[i2] = f + h, to[i3] = f - h;
}
static void fwt() {
  const int blocks = 16, n = 1024 * blocks; std::vector<float> a = make(n, real); std::vector<double> w(a.begin(), a.end()); float *x = device(a);
  for (int launch = 0, stride = n / 4; launch < 4; launch++, stride /= 4) ugpu_fwt<<<dim3(blocks, 1), 256>>>(x, x, stride);
  for (int half = n / 2, step = 0; step < 8; half /= 2, step++)
    for (int i = 0; i < n; i++) if (!(i & half)) { double p = w[i], q = w[i + half]; w[i] = p + q, w[i + half] = p - q; }
  same("fwt", x, w, 1e-4);
}
// ---- ugpu-srad: gradients and the coefficient of diffusion, a tile of 16 by 16 with its borders in shared memory.
// The literals are doubles as in the public program, so part of the arithmetic is.
__global__ void ugpu_srad(float *east, float *west, float *north, float *south, const float *image, float *coefficient, int columns, int rows, float q0) {
  const int side = 16; int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y; int corner = columns * side * by + side * bx, here = corner + columns * ty + tx;
  __shared__ float tile[side][side], result[side][side], up[side][side], down[side][side], right[side][side], left[side][side]; up[ty][tx] = image[corner + tx - columns];
  down[ty][tx] = image[corner + columns * side + tx];
  if (by == 0) up[ty][tx] = image[side * bx + tx];
  else if (by == gridDim.y - 1) down[ty][tx] = image[columns * side * (gridDim.y - 1) + side * bx + columns * (side - 1) + tx];
  __syncthreads();
  left[ty][tx] = image[corner + columns * ty - 1]; right[ty][tx] = image[corner + columns * ty + side];
  if (bx == 0) left[ty][tx] = image[columns * side * by + columns * ty];
  else if (bx == gridDim.x - 1) right[ty][tx] = image[columns * side * by + side * (gridDim.x - 1) + columns * ty + side - 1];
  __syncthreads();
  tile[ty][tx] = image[here]; __syncthreads();
  float j = tile[ty][tx], n, s, w, e; const int last = side - 1;
  if (ty == 0 && tx == 0) n = up[ty][tx] - j, s = tile[ty + 1][tx] - j, w = left[ty][tx] - j, e = tile[ty][tx + 1] - j;
  else if (ty == 0 && tx == last) n = up[ty][tx] - j, s = tile[ty + 1][tx] - j, w = tile[ty][tx - 1] - j, e = right[ty][tx] - j;
  else if (ty == last && tx == last) n = tile[ty - 1][tx] - j, s = down[ty][tx] - j, w = tile[ty][tx - 1] - j, e = right[ty][tx] - j;
  else if (ty == last && tx == 0) n = tile[ty - 1][tx] - j, s = down[ty][tx] - j, w = left[ty][tx] - j, e = tile[ty][tx + 1] - j;
  else if (ty == 0) n = up[ty][tx] - j, s = tile[ty + 1][tx] - j, w = tile[ty][tx - 1] - j, e = tile[ty][tx + 1] - j;
  else if (tx == last) n = tile[ty - 1][tx] - j, s = tile[ty + 1][tx] - j, w = tile[ty][tx - 1] - j, e = right[ty][tx] - j;
  else if (ty == last) n = tile[ty - 1][tx] - j, s = down[ty][tx] - j, w = tile[ty][tx - 1] - j, e = tile[ty][tx + 1] - j;
  else if (tx == 0) n = tile[ty - 1][tx] - j, s = tile[ty + 1][tx] - j, w = left[ty][tx] - j, e = tile[ty][tx + 1] - j;
  else n = tile[ty - 1][tx] - j, s = tile[ty + 1][tx] - j, w = tile[ty][tx - 1] - j, e = tile[ty][tx + 1] - j;
  float g = (n * n + s * s + w * w + e * e) / (j * j), l = (n + s + w + e) / j; float above = 0.5 * g - (1.0 / 16.0) * (l * l), below = 1 + .25 * l;
  float q = above / (below * below); below = (q - q0) / (q0 * (1 + q0)); float c = 1.0 / (1.0 + below);
  if (c < 0) result[ty][tx] = 0;
  else if (c > 1) result[ty][tx] = 1;
  else result[ty][tx] = c;
  __syncthreads();
  coefficient[here] = result[ty][tx]; east[here] = e, west[here] = w, south[here] = s, north[here] = n;
}
static void srad() {
  const int width = 64, height = 48, n = width * height; std::vector<float> a = make(n + 2 * width, some); float *x = device(a) + width, *out[5];
  for (float *&o : out) o = device<float>(nullptr, n);
  ugpu_srad<<<dim3(width / 16, height / 16), dim3(16, 16)>>>(out[0], out[1], out[2], out[3], x, out[4], width, height, 0.05f); float *r[5];
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
__constant__ float4 cp_atoms[256];
__global__ void ugpu_cp(int count, float spacing, float *energy) {
  unsigned column = __umul24(blockIdx.x, blockDim.x) * 8 + threadIdx.x, row = __umul24(blockIdx.y, blockDim.y) + threadIdx.y;
  unsigned at = __umul24(gridDim.x, blockDim.x) * 8 * row + column; float y = spacing * row, x = spacing * column, step = spacing * 16;
  float e0 = 0, e1 = 0, e2 = 0, e3 = 0, e4 = 0, e5 = 0, e6 = 0, e7 = 0;
  for (int a = 0; a < count; a++) {
    float dy = y - cp_atoms[a].y, dyz = dy * dy + cp_atoms[a].z; float d0 = x - cp_atoms[a].x, d1 = d0 + step, d2 = d1 + step, d3 = d2 + step;
    float d4 = d3 + step, d5 = d4 + step, d6 = d5 + step, d7 = d6 + step; e0 += cp_atoms[a].w * rsqrtf(d0 * d0 + dyz), e1 += cp_atoms[a].w * rsqrtf(d1 * d1 + dyz);
    e2 += cp_atoms[a].w * rsqrtf(d2 * d2 + dyz), e3 += cp_atoms[a].w * rsqrtf(d3 * d3 + dyz);
    e4 += cp_atoms[a].w * rsqrtf(d4 * d4 + dyz), e5 += cp_atoms[a].w * rsqrtf(d5 * d5 + dyz);
    e6 += cp_atoms[a].w * rsqrtf(d6 * d6 + dyz), e7 += cp_atoms[a].w * rsqrtf(d7 * d7 + dyz);
  }
  energy[at] += e0, energy[at + 16] += e1, energy[at + 32] += e2, energy[at + 48] += e3;
  energy[at + 64] += e4, energy[at + 80] += e5, energy[at + 96] += e6, energy[at + 112] += e7;
}
static void cp() {
  const int width = 256, height = 32, n = width * height, count = 60; std::vector<float4> atoms(count); std::vector<float> a = make(n, real);
  for (int i = 0; i < count; i++) atoms[i] = {13 + 12 * real(4 * i + 1), 2 + real(4 * i + 2), powf(2 + real(4 * i), 2), real(4 * i + 3)};
  cudaMemcpyToSymbol(cp_atoms, atoms.data(), count * sizeof(float4)); float *x = device(a); ugpu_cp<<<dim3(width / 128, height / 8), dim3(16, 8)>>>(count, 0.1f, x);
  same("cp", x, make(n, [&](int i) {
    double e = a[i], px = 0.1 * (i % width), py = 0.1 * (i / width);
    for (float4 p : atoms) e += p.w / std::sqrt((px - p.x) * (px - p.x) + (py - p.y) * (py - p.y) + p.z);
    return e;
  }), 1e-4);
}
// ---- ugpu-mriq: magnitudes of the samples, then sums of sines and cosines over 1024 samples in constant memory.
struct Sample { float x, y, z, magnitude; };
__constant__ Sample mriq_samples[1024];
__global__ void ugpu_mriq_ComputePhiMag_GPU(const float *real, const float *imaginary, float *magnitude, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) { float r = real[i], m = imaginary[i]; magnitude[i] = r * r + m * m; }
}
__global__ void ugpu_mriq_ComputeQ_GPU(int count, int first, const float *x, const float *y, const float *z, float *qr, float *qi) {
  const float turn = 6.2831853071795864769252867665590058f; int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0; float px = x[i], py = y[i], pz = z[i], r = qr[i], m = qi[i];
  auto add = [&](int k) {
    float phase = turn * (mriq_samples[k].x * px + mriq_samples[k].y * py + mriq_samples[k].z * pz);
    r += mriq_samples[k].magnitude * __cosf(phase), m += mriq_samples[k].magnitude * __sinf(phase);
  };
  if (count % 2) add(0), k++, first++;
  for (; k < 1024 && first < count; k += 2, first += 2) add(k), add(k + 1);
  qr[i] = r, qi[i] = m;
}
static void mriq() {
  const int samples = 2048, n = 512; std::vector<float> a = make(2 * samples, real), p = make(3 * n, [](int i) { return 0.5f * real(i + 9000); });
  std::vector<Sample> s(samples); float *x = device(a), *m = device<float>(nullptr, samples), *v = device(p), *q = device<float>(nullptr, 2 * n);
  ugpu_mriq_ComputePhiMag_GPU<<<samples / 512, 512>>>(x, x + samples, m, samples); float *h = host(m, samples);
  for (int i = 0; i < samples; i++) s[i] = {real(3 * i), real(3 * i + 1), real(3 * i + 2), h[i]};
  same("mriq magnitude", m, make(samples, [&](int i) { return a[i] * a[i] + a[samples + i] * a[samples + i]; }), 1e-6);
  for (int launch = 0; launch < 2; launch++) {
    cudaMemcpyToSymbol(mriq_samples, &s[1024 * launch], 1024 * sizeof(Sample)); ugpu_mriq_ComputeQ_GPU<<<n / 256, 256>>>(samples, 1024 * launch, v, v + n, v + 2 * n, q, q + n);
  }
  same("mriq", q, make(2 * n, [&](int i) {
    double sum = 0;
    for (const Sample &k : s) {
      double phase = 2 * M_PI * (double(k.x) * p[i % n] + double(k.y) * p[n + i % n] + double(k.z) * p[2 * n + i % n]);
      sum += k.magnitude * (i < n ? std::cos(phase) : std::sin(phase));
    }
    return sum;
  }), 3e-3);
}
// ---- ugpu-pf: cheapest path through a wall, a pyramid of rows per launch, the sums of a row in shared memory.
#define WITHIN(x, low, high) ((x) >= (low) && (x) <= (high))
__global__ void ugpu_pf(int steps, const int *wall, const int *from, int *to, int columns, int rows, int start, int border) {
  __shared__ int before[256], after[256]; int bx = blockIdx.x, tx = threadIdx.x; int inner = 256 - steps * 2, left = inner * bx - border, right = left + 255, x = left + tx;
  int lowest = left < 0 ? -left : 0, highest = right > columns - 1 ? 255 - (right - columns + 1) : 255;
  int west = tx - 1 < lowest ? lowest : tx - 1, east = tx + 1 > highest ? highest : tx + 1; bool valid = WITHIN(tx, lowest, highest), computed;
  if (WITHIN(x, 0, columns - 1)) before[tx] = from[x];
  __syncthreads();
  for (int i = 0; i < steps; i++) {
    computed = false;
    if (WITHIN(tx, i + 1, 256 - i - 2) && valid) {
      computed = true; int least = min(min(before[west], before[tx]), before[east]); after[tx] = least + wall[columns * (start + i) + x];
    }
    __syncthreads();
    if (i == steps - 1) break;
    if (computed) before[tx] = after[tx];
    __syncthreads();
  }
  if (computed) to[x] = after[tx];
}
static void pf() {
  const int columns = 216 * 6, rows = 41, height = 20; std::vector<int> wall = make(rows * columns, [](int i) { return int(draw(i) % 10); });
  int *w = device(wall.data() + columns, (rows - 1) * columns), *x[2] = {device(wall), device<int>(nullptr, columns)};
  for (int t = 0, turn = 0; t < rows - 1; t += height, turn ^= 1)
    ugpu_pf<<<columns / 216, 256>>>(std::min(height, rows - 1 - t), w, x[turn], x[turn ^ 1], columns, rows, t, height);
  std::vector<int> sum(wall.begin(), wall.begin() + columns), next(columns);
  for (int y = 1; y < rows; y++, sum = next)
    for (int i = 0; i < columns; i++) next[i] = std::min(sum[i], std::min(sum[std::max(i - 1, 0)], sum[std::min(i + 1, columns - 1)])) + wall[y * columns + i];
  same("pf", x[0], sum, 0);
}
// ---- ugpu-hotspot: steps of heat on a shrinking tile of 16 by 16; 2.0 is a double as in the public program.
__global__ void ugpu_hotspot(int steps, const float *power, const float *from, float *to, int columns, int rows, int border_x, int border_y, float capacity, float rx, float ry, float rz, float step, float elapsed) {
  const int side = 16; __shared__ float heat[side][side], source[side][side], next[side][side];
  float ambient = 80.0; int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  float ratio = step / capacity, rx1 = 1 / rx, ry1 = 1 / ry, rz1 = 1 / rz; int inner_y = side - steps * 2, inner_x = side - steps * 2;
  int top = inner_y * by - border_y, left = inner_x * bx - border_x, bottom = top + side - 1, right = left + side - 1; int y = top + ty, x = left + tx, at = columns * y + x;
  if (WITHIN(y, 0, rows - 1) && WITHIN(x, 0, columns - 1)) heat[ty][tx] = from[at], source[ty][tx] = power[at];
  __syncthreads();
  int y0 = top < 0 ? -top : 0, y1 = bottom > rows - 1 ? side - 1 - (bottom - rows + 1) : side - 1;
  int x0 = left < 0 ? -left : 0, x1 = right > columns - 1 ? side - 1 - (right - columns + 1) : side - 1;
  int n = ty - 1 < y0 ? y0 : ty - 1, s = ty + 1 > y1 ? y1 : ty + 1, w = tx - 1 < x0 ? x0 : tx - 1, e = tx + 1 > x1 ? x1 : tx + 1; bool computed;
  for (int i = 0; i < steps; i++) {
    computed = false;
    if (WITHIN(tx, i + 1, side - i - 2) && WITHIN(ty, i + 1, side - i - 2) && WITHIN(tx, x0, x1) && WITHIN(ty, y0, y1)) {
      computed = true;
      next[ty][tx] = heat[ty][tx] + ratio * (source[ty][tx] + (heat[s][tx] + heat[n][tx] - 2.0 * heat[ty][tx]) * ry1 +
                                             (heat[ty][e] + heat[ty][w] - 2.0 * heat[ty][tx]) * rx1 + (ambient - heat[ty][tx]) * rz1);
    }
    __syncthreads();
    if (i == steps - 1) break;
    if (computed) heat[ty][tx] = next[ty][tx];
    __syncthreads();
  }
  if (computed) to[at] = next[ty][tx];
}
static void hotspot() {
  const int width = 36, height = 30, n = width * height, steps = 5; std::vector<float> p = make(n, some), t = make(n, [&](int i) { return 80 + 10 * real(i + n); });
  float *power = device(p), *from = device(t), *to = device<float>(nullptr, n);
  ugpu_hotspot<<<dim3(width / 6, height / 6), dim3(16, 16)>>>(steps, power, from, to, width, height, steps, steps, 2.f, 5.f, 4.f, 20.f, 0.5f, 0);
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
const int LBM_WIDTH = 120, LBM_PITCH = 128, LBM_ROWS = 6, LBM_DEPTH = 4, LBM_LAYER = LBM_PITCH * LBM_ROWS;
const int LBM_CELLS = LBM_LAYER * (LBM_DEPTH + 4), LBM_MARGIN = 2 * LBM_LAYER, LBM_OBSTACLE = 1, LBM_MOVING = 2;
#define LBM_LOAD(i, x, y, z, o, v, w) float f##i = from[LBM_CELLS * i + at - (x) - (y) * LBM_PITCH - (z) * LBM_LAYER];
#define LBM_BOUNCE(i, x, y, z, o, v, w) to[LBM_CELLS * i + at] = f##o;
#define LBM_RELAX(i, x, y, z, o, v, w) to[LBM_CELLS * i + at] = keep * f##i + 1.0f / w * base * ((v) * (4.5f * (v) + 3.0f) - u2);
#define LBM_ROW(i, x, y, z, o, v, w) {x, y, z, o, w},
__global__ void ugpu_lbm(const float *from, float *to) {
  from += LBM_MARGIN, to += LBM_MARGIN; const int at = threadIdx.x + blockIdx.x * LBM_PITCH + blockIdx.y * LBM_LAYER; float f0 = from[at];
  LBM_DIRECTIONS(LBM_LOAD)
  const unsigned flags = *(const unsigned *)(from + LBM_CELLS * 19 + at);
  if (flags & LBM_OBSTACLE) {
    to[at] = f0;
    LBM_DIRECTIONS(LBM_BOUNCE)
    return;
  }
  float ux = f3 - f4 + f7 - f8 + f9 - f10 + f15 + f16 - f17 - f18; float uy = f1 - f2 + f7 + f8 - f9 - f10 + f11 + f12 - f13 - f14;
  float uz = f5 - f6 + f11 - f12 + f13 - f14 + f15 - f16 + f17 - f18;
  float rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8 + f9 + f10 + f11 + f12 + f13 + f14 + f15 + f16 + f17 + f18; ux /= rho, uy /= rho, uz /= rho;
  if (flags & LBM_MOVING) ux = 0.005f, uy = 0.002f, uz = 0.000f;
  const float omega = 1.95f, u2 = 1.5f * (ux * ux + uy * uy + uz * uz) - 1, base = omega * rho, keep = 1 - omega; to[at] = keep * f0 + 1.0f / 3.0f * base * -u2;
  LBM_DIRECTIONS(LBM_RELAX)
}
static void lbm() {
  const int n = LBM_CELLS * 20; static const int way[19][5] = {{0, 0, 0, 0, 3}, LBM_DIRECTIONS(LBM_ROW)}; std::vector<float> a(n);
  for (int i = 0; i < n; i++) {
    int x = i % LBM_PITCH, layer = i % LBM_CELLS / LBM_LAYER; // a channel with walls and a moving lid
    unsigned flag = x == 0 || x == LBM_WIDTH - 1 ? LBM_OBSTACLE : layer == LBM_DEPTH + 1 ? LBM_MOVING : 0;
    a[i] = i < LBM_CELLS * 19 ? some(i) / way[i / LBM_CELLS][4] : *(float *)&flag;
  }
  float *x[2] = {device(a), device(a)}; std::vector<double> c(a.begin(), a.end()), next = c;
  for (int step = 0; step < 3; step++, c = next) {
    ugpu_lbm<<<dim3(LBM_ROWS, LBM_DEPTH), LBM_WIDTH>>>(x[step % 2], x[1 - step % 2]);
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
  c.resize(LBM_CELLS * 19), same("lbm", x[1], c, 1e-4);
}
// ---- ugpu-bh: Black-Scholes prices, a grid that strides over the options.
__device__ inline float below(float d) {
  float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
  float tail = 0.398942280401f * __expf(-0.5f * d * d) *
               (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}
__global__ void ugpu_bh(float *call, float *put, const float *stock, const float *strike, const float *years, float rate, float swing, int count) {
  const int first = blockDim.x * blockIdx.x + threadIdx.x, step = blockDim.x * gridDim.x;
  for (int i = first; i < count; i += step) {
    float s = stock[i], x = strike[i], t = years[i], root = __fdividef(1.0f, rsqrtf(t));
    float d1 = __fdividef(__logf(__fdividef(s, x)) + (rate + 0.5f * swing * swing) * t, swing * root), d2 = d1 - swing * root;
    float c1 = below(d1), c2 = below(d2), discount = __expf(-rate * t); call[i] = s * c1 - x * discount * c2; put[i] = x * discount * (1.0f - c2) - s * (1.0f - c1);
  }
}
static void bh() {
  const int blocks = 24, n = blocks * 128 * 3; std::vector<float> a(3 * n);
  for (int i = 0; i < n; i++) a[i] = 17 + 12 * real(i), a[n + i] = 50 + 49 * real(i + n), a[2 * n + i] = 5 + 4.7f * real(i + 2 * n);
  float *x = device(a), *y = device<float>(nullptr, 2 * n); ugpu_bh<<<blocks, 128>>>(y, y + n, x, x + n, x + 2 * n, 0.02f, 0.3f, n);
  same("bh", y, make(2 * n, [&](int i) { // calls, then puts
    double s = a[i % n], k = a[n + i % n], t = a[2 * n + i % n], v = 0.3 * std::sqrt(t), d = (std::log(s / k) + 0.065 * t) / v;
    auto normal = [](double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); }; double call = s * normal(d) - k * std::exp(-0.02 * t) * normal(d - v);
    return i < n ? call : call - s + k * std::exp(-0.02 * t);
  }), 3e-4);
}
// ---- ugpu-dxtc: a block of 4 by 4 pixels to DXT1 by 64 threads that try every way to spread the sorted pixels.
__constant__ float dxtc_alpha[2][4] = {{4, 0, 2, 2}, {9, 0, 6, 3}};
__constant__ int dxtc_products[2][4] = {{0x040000, 0x000400, 0x010101, 0x010101}, {0x090000, 0x000900, 0x040102, 0x010402}};
__device__ inline float3 operator*(float a, float3 v) { return make_float3(a * v.x, a * v.y, a * v.z); }
__device__ inline float3 operator*(float3 a, float3 v) { return make_float3(a.x * v.x, a.y * v.y, a.z * v.z); }
__device__ inline float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
__device__ inline float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
__device__ inline float3 dxtc_round(float3 v, unsigned short *word) {
  v.x = rintf(__saturatef(v.x) * 31.0f), v.y = rintf(__saturatef(v.y) * 63.0f), v.z = rintf(__saturatef(v.z) * 31.0f);
  *word = (unsigned short)v.x << 11 | (unsigned short)v.y << 5 | (unsigned short)v.z;
  return make_float3(v.x * (1.0f / 31.0f), v.y * (1.0f / 63.0f), v.z * (1.0f / 31.0f));
}
template <int four> __device__ float dxtc_error(const float3 *colours, unsigned way, unsigned short *start, unsigned short *end, float3 sum) {
  float3 ax = make_float3(0, 0, 0); int packed = 0;
  for (int i = 0; i < 16; i++) { unsigned code = way >> 2 * i & 3; ax = ax + dxtc_alpha[four][code] * colours[i]; packed += dxtc_products[four][code]; }
  float aa = float(packed >> 16), bb = float(packed >> 8 & 255), ab = float(packed & 255); float3 bx = (four ? 9.0f : 4.0f) * sum - ax;
  float factor = 1.0f / (aa * bb - ab * ab); float3 a = dxtc_round(factor * (bb * ax - ab * bx), start), b = dxtc_round(factor * (aa * bx - ab * ax), end);
  float3 e = aa * (a * a) + bb * (b * b) + 2.0f * (ab * (a * b) - a * ax - b * bx);
  return (four ? 0.111111111f : 0.25f) * (e.x + e.y + e.z);
}
__global__ void ugpu_dxtc(const unsigned *ways, const unsigned *image, uint2 *result, int first) {
  const int t = threadIdx.x, block = blockIdx.x + first; __shared__ float3 colours[16], sums[16];
  __shared__ int place[16]; __shared__ float along[16], spread[16 * 6], errors[64]; __shared__ unsigned kept[160]; __shared__ int index[64];
  if (t < 16) {
    unsigned c = image[block * 16 + t]; float3 me = make_float3((c & 255) * (1.0f / 255.0f), (c >> 8 & 255) * (1.0f / 255.0f), (c >> 16 & 255) * (1.0f / 255.0f));
    colours[t] = me, sums[t] = me; __syncwarp(0xffff);
    for (int d = 8; d; d /= 2) { float3 other = sums[t ^ d]; __syncwarp(0xffff); sums[t] = sums[t] + other; __syncwarp(0xffff); }
    float3 off = me - 0.0625f * sums[0]; spread[6 * t] = off.x * off.x, spread[6 * t + 1] = off.x * off.y, spread[6 * t + 2] = off.x * off.z;
    spread[6 * t + 3] = off.y * off.y, spread[6 * t + 4] = off.y * off.z, spread[6 * t + 5] = off.z * off.z; __syncwarp(0xffff);
    for (int d = 8; d; d /= 2, __syncwarp(0xffff)) if (t < d) for (int i = 0; i < 6; i++) spread[6 * t + i] += spread[6 * (t + d) + i];
    float3 axis = make_float3(1, 1, 1);
    for (int i = 0; i < 8; i++) {
      float x = axis.x * spread[0] + axis.y * spread[1] + axis.z * spread[2], y = axis.x * spread[1] + axis.y * spread[3] + axis.z * spread[4];
      float z = axis.x * spread[2] + axis.y * spread[4] + axis.z * spread[5], scale = 1.0f / fmaxf(fmaxf(x, y), z); axis = make_float3(x * scale, y * scale, z * scale);
    }
    along[t] = me.x * axis.x + me.y * axis.y + me.z * axis.z; __syncwarp(0xffff);
    int rank = 0;
    for (int i = 0; i < 16; i++) rank += along[i] < along[t] || (along[i] == along[t] && i < t);
    place[t] = rank; __syncwarp(0xffff);
    colours[rank] = me;
  }
  __syncthreads();
  float3 sum = sums[0]; unsigned short start, end, best_start = 0, best_end = 0; unsigned best_way = 0; float best = 3.402823466e+38f;
  for (int i = 0; i < 16; i++) {
    int w = t + 64 * i;
    if (w >= 992) break;
    unsigned way = ways[w];
    if (w < 160) kept[w] = way;
    float error = dxtc_error<1>(colours, way, &start, &end, sum);
    if (error < best) best = error, best_way = way, best_start = start, best_end = end;
  }
  if (best_start < best_end) { unsigned short s = best_start; best_start = best_end, best_end = s, best_way ^= 0x55555555; }
  __syncthreads();
  bool three = false;
  for (int i = 0; i < 3; i++) {
    int w = t + 64 * i;
    if (w >= 160) break;
    unsigned way = kept[w]; float error = dxtc_error<0>(colours, way, &start, &end, sum);
    if (error < best) best = error, best_way = way, best_start = start, best_end = end, three = true;
  }
  if (three && best_start > best_end) { unsigned short s = best_start; best_start = best_end, best_end = s, best_way ^= (~best_way >> 1) & 0x55555555; }
  errors[t] = best, index[t] = t; __syncthreads();
  for (int d = 32; d; d /= 2, __syncthreads()) if (t < d && errors[t + d] < errors[t]) errors[t] = errors[t + d], index[t] = index[t + d];
  if (t == index[0]) {
    if (best_start == best_end) best_way = 0;
    unsigned codes = 0;
    for (int i = 0; i < 16; i++) codes |= (best_way >> 2 * place[i] & 3) << 2 * i;
    result[block] = make_uint2(unsigned(best_end) << 16 | best_start, codes);
  }
}
static void dxtc() {
  const int blocks = 20; std::vector<unsigned> ways, image(16 * blocks);
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
  for (int launch = 0; launch < 2; launch++) ugpu_dxtc<<<blocks, 64>>>(w, x, y, 0);
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
// Eight steps of `step` cells and a halo step on either side, in `line`, `stride` apart in memory.
template <int step> __device__ inline void convs_line(float *line, float *out, const float *in, int stride, bool left, bool right) {
  _Pragma("unroll") for (int i = 1; i < 9; i++) line[i * step] = in[i * step * stride]; line[0] = left ? in[0] : 0;
  line[9 * step] = right ? in[9 * step * stride] : 0; __syncthreads();
  _Pragma("unroll") for (int i = 1; i < 9; i++) {
    float sum = 0; _Pragma("unroll") for (int j = -8; j <= 8; j++) sum += convs_weights[8 - j] * line[i * step + j]; out[i * step * stride] = sum;
  }
}
__global__ void ugpu_convs_convolutionRowsKernel(float *out, const float *in, int width, int height, int pitch) {
  __shared__ float part[4][(8 + 2) * 16]; const int x = (blockIdx.x * 8 - 1) * 16 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
  convs_line<16>(&part[threadIdx.y][threadIdx.x], out + y * pitch + x, in + y * pitch + x, 1, x >= 0, width - x > 9 * 16);
}
__global__ void ugpu_convs_convolutionColumnsKernel(float *out, const float *in, int width, int height, int pitch) {
  __shared__ float part[16][(8 + 2) * 8 + 1]; const int x = blockIdx.x * 16 + threadIdx.x, y = (blockIdx.y * 8 - 1) * 8 + threadIdx.y;
  convs_line<8>(&part[threadIdx.x][threadIdx.y], out + y * pitch + x, in + y * pitch + x, pitch, y >= 0, height - y > 9 * 8);
}
static void convs() {
  const int width = 256, height = 128, n = width * height; std::vector<float> a = make(n, real), k = make(17, [&](int i) { return real(i + n); });
  std::vector<double> b(n), c(n); cudaMemcpyToSymbol(convs_weights, k.data(), 17 * sizeof(float));
  float *x = device(a), *y = device<float>(nullptr, n), *z = device<float>(nullptr, n);
  for (int round = 0; round < 2; round++) {
    ugpu_convs_convolutionRowsKernel<<<dim3(width / 128, height / 4), dim3(16, 4)>>>(y, x, width, height, width);
    ugpu_convs_convolutionColumnsKernel<<<dim3(width / 16, height / 64), dim3(16, 8)>>>(z, y, width, height, width);
  }
  for (int i = 0; i < n; i++) for (int j = -8; j <= 8; j++) if (i % width + j >= 0 && i % width + j < width) b[i] += k[8 - j] * a[i + j];
  for (int i = 0; i < n; i++) for (int j = -8; j <= 8; j++) if (i / width + j >= 0 && i / width + j < height) c[i] += k[8 - j] * b[i + j * width];
  same("convs", z, c, 1e-4);
}
// ---- ugpu-lavamd: forces between the particles of boxes that touch, doubles, sums kept in global memory.
struct LavaNeighbour { int x, y, z, number; long offset; };
struct LavaBox { int x, y, z, number; long offset; int count; LavaNeighbour neighbours[26]; };
struct Four { double v, x, y, z; };
__global__ void ugpu_lavamd(double alpha, int boxes, const LavaBox *box, const Four *position, const double *charge, Four *force) {
  const int bx = blockIdx.x, tx = threadIdx.x, particles = 100; __shared__ Four mine[100], others[100]; __shared__ double charges[100];
  if (bx >= boxes) return;
  double a2 = 2.0 * alpha * alpha; long first = box[bx].offset; const Four *r = &position[first]; Four *f = &force[first];
  for (int w = tx; w < particles; w += 128) mine[w] = r[w];
  __syncthreads();
  for (int k = 0; k < 1 + box[bx].count; k++) {
    int other = k == 0 ? bx : box[bx].neighbours[k - 1].number; long start = box[other].offset;
    for (int w = tx; w < particles; w += 128) others[w] = position[start + w], charges[w] = charge[start + w];
    __syncthreads();
    for (int w = tx; w < particles; w += 128)
      for (int j = 0; j < particles; j++) {
        double r2 = mine[w].v + others[j].v - (mine[w].x * others[j].x + mine[w].y * others[j].y + mine[w].z * others[j].z); double v = exp(-(a2 * r2)), s = 2 * v;
        double dx = mine[w].x - others[j].x, dy = mine[w].y - others[j].y, dz = mine[w].z - others[j].z;
        f[w].v += charges[j] * v, f[w].x += charges[j] * (s * dx), f[w].y += charges[j] * (s * dy), f[w].z += charges[j] * (s * dz);
      }
    __syncthreads();
  }
}
static void lavamd() {
  const int boxes = 6, n = 100 * boxes; // a plate of 3 by 2 boxes
  std::vector<LavaBox> box(boxes);
  std::vector<Four> r = make(n, [](int i) { return Four{some(4 * i), some(4 * i + 1), some(4 * i + 2), some(4 * i + 3)}; });
  std::vector<double> q = make(n, [&](int i) { return double(some(i + 4 * n)); }); auto touch = [](int a, int b) { return a != b && std::abs(a % 3 - b % 3) <= 1; };
  for (int b = 0; b < boxes; b++) {
    box[b] = {b % 3, b / 3, 0, b, 100 * b, 0, {}};
    for (int o = 0; o < boxes; o++) if (touch(b, o)) box[b].neighbours[box[b].count++] = {o % 3, o / 3, 0, o, 100 * o};
  }
  Four *f = device<Four>(nullptr, n); ugpu_lavamd<<<boxes, 128>>>(0.5, boxes, device(box), device(r), device(q), f); std::vector<double> force(4 * n);
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
__global__ void ugpu_sc(int count, int dimensions, long x, const Point *p, int centres, int stride, const float *coordinates, float *work, const int *table, bool *change) {
  const int at = blockDim.x * (blockIdx.x + gridDim.x * blockIdx.y) + threadIdx.x; extern __shared__ float candidate[];
  if (threadIdx.x == 0) for (int i = 0; i < dimensions; i++) candidate[i] = coordinates[i * count + x];
  __syncthreads();
  if (at >= count) return;
  float *lower = &work[at * stride], distance = 0;
  for (int i = 0; i < dimensions; i++) distance += (coordinates[i * count + at] - candidate[i]) * (coordinates[i * count + at] - candidate[i]);
  float cost = distance * p[at].weight;
  if (cost < p[at].cost) change[at] = 1, lower[centres] += cost - p[at].cost;
  else lower[table[p[at].centre]] += p[at].cost - cost;
}
static void sc() {
  const int count = 4096, dimensions = 256, centres = 23, stride = centres + 1; std::vector<float> c = make(count * dimensions, real);
  std::vector<Point> p(count); std::vector<int> table(count);
  for (int i = 0; i < count; i++) p[i] = {some(i), nullptr, draw(i) % count, 250 + 30 * real(i + 1)}, table[i] = draw(i + 3) % centres;
  float *x = device(c), *w = device<float>(nullptr, count * stride); bool *b = device<bool>(nullptr, count);
  for (long launch = 0; launch < 2; launch++)
    ugpu_sc<<<count / 512, 512, dimensions * sizeof(float)>>>(count, dimensions, 77 + 1000 * launch, device(p), centres, stride, x, w, device(table), b);
  std::vector<double> lower(count * stride); std::vector<int> changed(count);
  for (int i = 0; i < 2 * count; i++) {
    int launch = i / count, at = i % count; double distance = 0;
    for (int k = 0; k < dimensions; k++) distance += std::pow(double(c[k * count + at]) - c[k * count + 77 + 1000 * launch], 2);
    double more = distance * p[at].weight - p[at].cost; lower[at * stride + (more < 0 ? centres : table[p[at].centre])] -= std::fabs(more), changed[at] |= more < 0;
  }
  same("sc", w, lower, 1e-3), same("sc change", b, changed, 0);
}
// ---- ugpu-euler3d: finite volumes for the Euler equations on a mesh whose elements have four neighbours.
__constant__ float euler_far[5];
__constant__ float3 euler_far_flux[4];
struct State { float density, energy, squared, pressure, sound; float3 momentum, velocity, fx, fy, fz, fe; };
__device__ inline void euler_load(State &s, const float *v, int i, int n) {
  s.density = v[i], s.momentum.x = v[i + n], s.momentum.y = v[i + 2 * n], s.momentum.z = v[i + 3 * n], s.energy = v[i + 4 * n];
  s.velocity = make_float3(s.momentum.x / s.density, s.momentum.y / s.density, s.momentum.z / s.density);
  s.squared = s.velocity.x * s.velocity.x + s.velocity.y * s.velocity.y + s.velocity.z * s.velocity.z;
  s.pressure = 0.4f * (s.energy - 0.5f * s.density * s.squared), s.sound = sqrtf(1.4f * s.pressure / s.density);
}
__device__ inline void euler_fluxes(State &s) {
  float3 u = s.velocity, m = s.momentum; s.fx = make_float3(u.x * m.x + s.pressure, u.x * m.y, u.x * m.z), s.fy = make_float3(s.fx.y, u.y * m.y + s.pressure, u.y * m.z);
  s.fz = make_float3(s.fx.z, s.fy.z, u.z * m.z + s.pressure), s.fe = (s.energy + s.pressure) * u;
}
__global__ void ugpu_euler3d_cuda_compute_step_factor(int n, const float *variables, const float *areas, float *factors) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x; State s; euler_load(s, variables, i, n); factors[i] = 0.5f / (sqrtf(areas[i]) * (sqrtf(s.squared) + s.sound));
}
#define AXIS(d, m, mx, my, mz, me) factor = 0.5f * normal.d, density += factor * (m + s.momentum.d), energy += factor * (me.d + s.fe.d), \
  momentum.x += factor * (mx.d + s.fx.d), momentum.y += factor * (my.d + s.fy.d), momentum.z += factor * (mz.d + s.fz.d);
__global__ void ugpu_euler3d_cuda_compute_flux(int n, const int *neighbours, const float *normals, const float *variables, float *fluxes) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x; State s, o; euler_load(s, variables, i, n), euler_fluxes(s); float speed = sqrtf(s.squared), density = 0, energy = 0;
  float3 momentum = make_float3(0, 0, 0);
  _Pragma("unroll") for (int j = 0; j < 4; j++) {
    int other = neighbours[i + j * n]; float3 normal = make_float3(normals[i + j * n], normals[i + (j + 4) * n], normals[i + (j + 8) * n]);
    float length = sqrtf(normal.x * normal.x + normal.y * normal.y + normal.z * normal.z);
    if (other >= 0) {
      euler_load(o, variables, other, n), euler_fluxes(o); float factor = -length * 0.2f * 0.5f * (speed + sqrtf(o.squared) + s.sound + o.sound);
      density += factor * (s.density - o.density), energy += factor * (s.energy - o.energy); momentum = momentum + factor * (s.momentum - o.momentum);
      AXIS(x, o.momentum.x, o.fx, o.fy, o.fz, o.fe) AXIS(y, o.momentum.y, o.fx, o.fy, o.fz, o.fe) AXIS(z, o.momentum.z, o.fx, o.fy, o.fz, o.fe)
    } else if (other == -1) momentum = momentum + s.pressure * normal;
    else if (other == -2) {
      float factor;
      AXIS(x, euler_far[1], euler_far_flux[0], euler_far_flux[1], euler_far_flux[2], euler_far_flux[3]) AXIS(y, euler_far[2], euler_far_flux[0], euler_far_flux[1], euler_far_flux[2], euler_far_flux[3]) AXIS(z, euler_far[3], euler_far_flux[0], euler_far_flux[1], euler_far_flux[2], euler_far_flux[3])
    }
  }
  fluxes[i] = density, fluxes[i + n] = momentum.x, fluxes[i + 2 * n] = momentum.y, fluxes[i + 3 * n] = momentum.z, fluxes[i + 4 * n] = energy;
}
__global__ void ugpu_euler3d_cuda_time_step(int stage, int n, const float *old, float *variables, const float *factors, const float *fluxes) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x; float factor = factors[i] / float(3 + 1 - stage);
  for (int v = 0; v < 5; v++) variables[i + v * n] = old[i + v * n] + factor * fluxes[i + v * n];
}
static void euler3d() {
  const int n = 192 * 10, width = 128; std::vector<float> u = make(5 * n, [](int i) { return i < n ? some(i) : i < 4 * n ? 0.5f * real(i) : 4 + real(i); });
  std::vector<float> normal = make(12 * n, [](int i) { return 0.1f * real(i + 77); }), area = make(n, [](int i) { return some(i + 9); });
  std::vector<int> other = make(4 * n, [](int i) {
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
  Flow away = flow([&](int k) { return double(far[k]); }); float3 flux[4];
  for (int k = 0; k < 4; k++) flux[k] = {float(away.f[0][k + 1]), float(away.f[1][k + 1]), float(away.f[2][k + 1])};
  cudaMemcpyToSymbol(euler_far, far, sizeof far), cudaMemcpyToSymbol(euler_far_flux, flux, sizeof flux);
  float *x = device(u), *old = device(u), *f = device<float>(nullptr, 5 * n), *m = device(normal); float *a = device(area), *s = device<float>(nullptr, n);
  int *o = device(other); std::vector<double> c(u.begin(), u.end()), first = c, factor(n), next(5 * n); ugpu_euler3d_cuda_compute_step_factor<<<n / 192, 192>>>(n, x, a, s);
  for (int stage = 0; stage < 3; stage++) {
    ugpu_euler3d_cuda_compute_flux<<<n / 192, 192>>>(n, o, m, x, f); ugpu_euler3d_cuda_time_step<<<n / 192, 192>>>(stage, n, old, x, s, f);
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
  same("euler3d", x, c, 1e-4);
}
// ---- ugpu-dwt2d: the reversible 5/3 wavelet transform; a window of 192 by 8 slides down a strip, in shared memory.
// Even columns lie in the first half of the buffer and odd ones in the second; three rows above the window, two columns left.
const int DWT_X = 192, DWT_Y = 8, DWT_LINE = DWT_X / 2 + 2, DWT_HALF = DWT_LINE * (DWT_Y + 3) + 16;
__device__ inline int dwt_at(int column) { return (column + 2) / 2 + (column & 1 ? DWT_HALF : 0); }
template <bool checked> struct DwtColumn {
  int offset, pixel[3], at, y, step, height;
  __device__ int load(const int *in) {
    int value = in[at]; at += step;
    if (checked && ++y == height) at -= 2 * step, step = -step;
    return value;
  }
  __device__ void place(int width, int tall, int x, int first) {
    x = x < 0 ? -x : x >= width ? 2 * width - 2 - x : x; at = first * width + x, y = first, step = width, height = tall;
  }
  __device__ void open(const int *in, int width, int tall, int column, int first) {
    offset = dwt_at(column); int x = blockIdx.x * DWT_X + column;
    if (blockIdx.y == 0) {
      place(width, tall, x, first); pixel[2] = load(in), pixel[1] = load(in), pixel[0] = load(in); place(width, tall, x, first + 1);
    } else {
      place(width, tall, x, first - 2); pixel[0] = load(in), pixel[1] = load(in), pixel[2] = load(in);
    }
  }
  __device__ void slide(const int *in, int *buffer) {
    int *c = buffer + offset;
    for (int i = 0; i < 3; i++) c[i * DWT_LINE] = pixel[i];
    for (int i = 3; i < 3 + DWT_Y; i++) c[i * DWT_LINE] = load(in);
    for (int i = 0; i < 3; i++) pixel[i] = c[(DWT_Y + i) * DWT_LINE];
    for (int i = 1; i < DWT_Y + 2; i += 2) c[i * DWT_LINE] -= (c[(i - 1) * DWT_LINE] + c[(i + 1) * DWT_LINE]) / 2;
    for (int i = 2; i < DWT_Y + 2; i += 2) c[i * DWT_LINE] += (c[(i - 1) * DWT_LINE] + c[(i + 1) * DWT_LINE] + 2) / 4;
  }
};
template <bool loads, bool writes> __device__ void dwt_transform(int *buffer, const int *in, int *out, int width, int height, int steps) {
  const int first = blockIdx.y * DWT_Y * steps, t = threadIdx.x; DwtColumn<loads> column, rim = {}; column.open(in, width, height, t, first);
  if (t < 3) rim.open(in, width, height, t + (t == 0 ? DWT_X : -3), first);
  const int mine = t * 2 - (DWT_X - 1) * (t / (DWT_X / 2)), from = dwt_at(mine), x = blockIdx.x * DWT_X + mine, area = width / 2 * (height / 2);
  int to = x / 2 + (x & 1 ? area : 0) + first / 2 * (width / 2), y = first;
  for (int w = 0; w < steps; w++) {
    column.slide(in, buffer);
    if (t < 3) rim.slide(in, buffer);
    __syncthreads();
    int *even = buffer + 2 * DWT_LINE, *odd = even + DWT_HALF; const int pairs = DWT_Y * DWT_LINE - 1, whole = pairs / DWT_X;
    auto predict = [&](int i) { odd[i] -= (even[i] + even[i + 1]) / 2; }; auto update = [&](int i) { even[i + 1] += (odd[i] + odd[i + 1] + 2) / 4; };
    for (int i = 0; i < whole; i++) predict(t + i * DWT_X);
    if (t < pairs - whole * DWT_X) predict(t + whole * DWT_X);
    __syncthreads();
    for (int i = 0; i < whole; i++) update(t + i * DWT_X);
    if (t < pairs - whole * DWT_X) update(t + whole * DWT_X);
    __syncthreads();
    for (int r = 2; r < 2 + DWT_Y; r += 2, to += width / 2, y += 2) {
      if (!writes || (x < width && y < height)) out[to] = buffer[from + r * DWT_LINE];
      if (!writes || (x < width && y + 1 < height)) out[to + 2 * area] = buffer[from + (r + 1) * DWT_LINE];
    }
    __syncthreads();
  }
}
__global__ __launch_bounds__(DWT_X, 5) void ugpu_dwt2d(const int *in, int *out, int width, int height, int steps) {
  __shared__ int buffer[2 * DWT_HALF];
  if ((blockIdx.y + 1) * DWT_Y * steps + 1 >= height) dwt_transform<true, true>(buffer, in, out, width, height, steps);
  else if ((blockIdx.x + 1) * DWT_X + 1 >= width) dwt_transform<false, true>(buffer, in, out, width, height, steps);
  else dwt_transform<false, false>(buffer, in, out, width, height, steps);
}
static void dwt2d() {
  const int width = 3 * 192, steps = 4, height = 3 * 8 * steps, n = width * height; std::vector<int> a = make(n, [](int i) { return int(draw(i) % 256) - 128; });
  int *y = device<int>(nullptr, n);
  for (int round = 0; round < 3; round++) ugpu_dwt2d<<<dim3(3, 3), 192>>>(device(a), y, width, height, steps);
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
__global__ void ugpu_pvc(const char *keys, const char *values, const int4 *places, const int *key_at, const int *value_at, char *out_keys, char *out_values, int4 *out_places, int records, int per_task) {
  const int first = blockIdx.x * per_task * blockDim.x, end = min(first + per_task * int(blockDim.x), records);
  for (int i = first + threadIdx.x; i < end; i += blockDim.x) {
    PageKey *key = (PageKey *)(keys + places[i].x); PageValue *value = (PageValue *)(values + places[i].z); const char *entry = key->log + key->offset; int hash = value->size;
    for (int b = 0; b < value->size; b++) hash = (hash << 4) ^ (hash >> 28) ^ entry[b];
    key->hash = hash; int k = key_at[i], v = value_at[i];
    for (int b = 0; b < int(sizeof(PageKey)); b += 4) *(int *)(out_keys + k + b) = *(int *)((char *)key + b);
    for (int b = 0; b < int(sizeof(PageValue)); b += 4) *(int *)(out_values + v + b) = *(int *)((char *)value + b);
    out_places[i] = make_int4(k, sizeof(PageKey), v, sizeof(PageValue));
  }
}
static void pvc() {
  const int records = 256 * 6; std::vector<char> log = make(128 * records, [](int i) { return char(33 + draw(i) % 90); });
  char *text = device(log); std::vector<PageKey> keys = make(records, [&](int i) { return PageKey{text, 128 * i, 0}; });
  std::vector<PageValue> values = make(records, [](int i) { return PageValue{draw(i) % 4 ? 128 : 64, 0}; });
  std::vector<int4> places = make(records, [](int i) { return int4{16 * i, 16, 8 * i, 8}; });
  std::vector<int> key_at = make(records, [](int i) { return 16 * i; }), value_at = make(records, [](int i) { return 8 * i; }); PageKey *k = device<PageKey>(nullptr, records);
  PageValue *v = device<PageValue>(nullptr, records);
  ugpu_pvc<<<records / 256, 256>>>((char *)device(keys), (char *)device(values), device(places), device(key_at), device(value_at), (char *)k, (char *)v, device<int4>(nullptr, records), records, 1);
  PageKey *r = host(k, records); PageValue *s = host(v, records);
  for (int i = 0; i < records; i++) {
    unsigned hash = values[i].size;
    for (int b = 0; b < values[i].size; b++) hash = (hash << 4) ^ unsigned(int(hash) >> 28) ^ unsigned(log[128 * i + b]);
    expect("pvc hash", i, r[i].hash, int(hash), 0), expect("pvc offset", i, r[i].offset, 128 * i, 0), expect("pvc size", i, s[i].size, values[i].size, 0);
  }
}

int main() {
  fwt(), srad(), cp(), mriq(), pf(), hotspot(), lbm(), bh(), dxtc(), convs(), lavamd(), sc(), euler3d(), dwt2d(), pvc();
  return finish("ugpu");
}
