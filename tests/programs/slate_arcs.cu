// Kernels of the Slate and ARCS papers of 2018: our own programs of the published algorithms; blocks, tiles and accesses per thread as in the public ones (CUDA samples, Rodinia, Parboil, SHOC).
#include "check.h"
#include <vector>
using std::vector;

// Black-Scholes prices in closed form, two options per thread; the normal distribution by the polynomial 26.2.17 of Abramowitz and Stegun.
struct market {
  float volatility, rate;
};
struct quote {
  float put, call;
};
__device__ __forceinline__ float horner(float, float last) { return last; }
template <typename... Terms> __device__ __forceinline__ float horner(float at, float first, Terms... others) { return fmaf(horner(at, others...), at, first); }
__device__ __forceinline__ float normal_above(float distance) {
  const float at = __fdividef(1.0f, fmaf(fabsf(distance), 0.2316419f, 1.0f));
  const float series = horner(at, 0.0f, 0.31938153f, -0.356563782f, 1.781477937f, -1.821255978f, 1.330274429f), tail = series * (__expf(distance * distance * -0.5f) * 0.39894228040143267794f);
  return distance > 0 ? tail : 1.0f - tail;
}
__device__ __forceinline__ quote quoted(market m, float years, float strike, float stock) {
  const float spread = m.volatility * __fdividef(1.0f, rsqrtf(years)), owed = strike * __expf(years * -m.rate);
  const float trend = years * fmaf(m.volatility * m.volatility, 0.5f, m.rate);
  const float high = __fdividef(trend + __logf(stock / strike), spread);
  const float kept = normal_above(high) * stock, spared = normal_above(high - spread) * owed;
  return {spared - kept, (stock - kept) - (owed - spared)};
}
__global__ void __launch_bounds__(128)
    black_scholes(market m, int pairs, const float2 *__restrict__ years, const float2 *__restrict__ strikes, const float2 *__restrict__ stocks,
                  float2 *__restrict__ puts, float2 *__restrict__ calls) {
  const int pair = threadIdx.x + blockIdx.x * blockDim.x;
  if (pair < pairs) {
    const float2 t = years[pair], x = strikes[pair], s = stocks[pair];
    const quote even = quoted(m, t.x, x.x, s.x), odd = quoted(m, t.y, x.y, s.y);
    puts[pair] = {even.put, odd.put};
    calls[pair] = {even.call, odd.call};
  }
}
void check_black_scholes() {
  const int n = sized(128 * 2 * 12 - 40, 128 * 2 * 9600);
  const float rate = 0.02f, volatility = 0.30f;
  vector<float> s(n), x(n), t(n);
  for (int i = 0; i < n; i++) s[i] = 17.5f + 12.5f * real(i), x[i] = 50.5f + 49.5f * real(i + n), t[i] = 5.125f + 4.875f * real(i + 2 * n);
  float *c = device<float>(nullptr, n), *p = device<float>(nullptr, n), *ds = device(s.data(), n), *dx = device(x.data(), n), *dt = device(t.data(), n);
  for (int i = 0; i < sized(1, 2); i++) black_scholes<<<(n / 2 + 127) / 128, 128>>>({volatility, rate}, n / 2, (float2 *)dt, (float2 *)dx, (float2 *)ds, (float2 *)p, (float2 *)c);
  if (full) return;
  float *calls = host(c, n), *puts = host(p, n);
  for (int i = 0; i < n; i++) {
    double sigma = volatility * std::sqrt(double(t[i])), d1 = (std::log(double(s[i]) / x[i]) + rate * double(t[i])) / sigma + sigma / 2;
    double call = s[i] * std::erfc(-d1 / std::sqrt(2.0)) / 2 - x[i] * std::exp(-double(rate) * t[i]) * std::erfc((sigma - d1) / std::sqrt(2.0)) / 2;
    expect("call", i, calls[i], float(call), 1e-4);
    expect("put", i, puts[i], float(call - s[i] + x[i] * std::exp(-double(rate) * t[i])), 1e-4);
  }
}

// Quasirandom numbers: a row of threads per dimension, a direction number per set bit of the position.
const int dimensions = 3, resolution = 31;
__constant__ unsigned directions[dimensions][resolution];
__device__ __forceinline__ unsigned scrambled(unsigned dimension, unsigned position) {
  unsigned mixed = 0;
  for (int bit = 0; bit < resolution; bit++)
    if (position >> bit & 1) mixed ^= directions[dimension][bit];
  return mixed;
}
__global__ void quasirandom(unsigned count, unsigned skipped, float *numbers) {
  const unsigned step = __umul24(gridDim.x, blockDim.x);
  unsigned index = threadIdx.x + __umul24(blockIdx.x, blockDim.x);
  float *to = numbers + (__umul24(count, threadIdx.y) + index);
  for (; index < count; index += step, to += step) *to = (1.0f / 2147483649.0f) * float(1 + scrambled(threadIdx.y, skipped + index));
}
void check_quasirandom() {
  const int blocks = sized(16, 3000), n = 128 * blocks, seed = 77;
  static unsigned table[dimensions][resolution];
  for (int d = 0; d < dimensions; d++)
    for (int b = 0; b < resolution; b++) table[d][b] = draw(d * resolution + b) >> 1;
  cudaMemcpyToSymbol(directions, table, sizeof table);
  float *out = device<float>(nullptr, dimensions * n);
  quasirandom<<<blocks, dim3(128, dimensions)>>>(n, seed, out); if (full) return;
  float *r = host(out, dimensions * n);
  for (int d = 0; d < dimensions; d++)
    for (int i = 0; i < n; i++) {
      unsigned sum = 0;
      for (int b = resolution - 1; b >= 0; b--) sum ^= (seed + i) >> b & 1 ? table[d][b] : 0;
      expect("quasirandom", d * n + i, r[d * n + i], float((sum + 1.0) / 0x80000001u), 1e-6);
    }
}

// Gauss: the ratios of a column to its pivot, then an update of what is right of and below it, its x running down the rows, in blocks of 4 by 4.
__device__ __forceinline__ void subtract_multiple(float *from, const float *ratio, const float *of) { *from -= *ratio * *of; }
__global__ void gaussian_Fan1(int pivot, int n, const float *matrix, float *ratios) {
  const unsigned below = threadIdx.x + blockDim.x * blockIdx.x + 1;
  if (below + pivot < n) {
    const float *corner = matrix + pivot * (n + 1), *entry = corner + below * n;
    ratios[entry - matrix] = *entry / *corner;
  }
}
__global__ void gaussian_Fan2(int pivot, int n, const float *ratios, float *matrix, float *right_side) {
  const unsigned along = threadIdx.y + blockDim.y * blockIdx.y, row = threadIdx.x + blockDim.x * blockIdx.x + pivot + 1;
  if (row < n && along + pivot < n) {
    const float *ratio = ratios + (row * n + pivot);
    float *upper = matrix + (pivot * n + pivot + along), *lower = matrix + (row * n + pivot + along);
    subtract_multiple(lower, ratio, upper);
    if (!along) subtract_multiple(right_side + row, ratio, right_side + pivot);
  }
}
void check_gaussian() {
  const int n = sized(24, 1280), step = sized(1, 320), last = sized(n - 1, 641); // in full, three steps
  vector<float> a(n * n), b(n);
  for (int i = 0; i < n; i++) {
    double sum = 0;
    for (int j = 0; j < n; j++) a[i * n + j] = real(i * n + j) + (i == j ? n : 0), sum += a[i * n + j] * (j - 10.0);
    b[i] = float(sum);
  }
  float *da = device(a.data(), n * n), *db = device(b.data(), n), *dm = device<float>(nullptr, n * n);
  for (int t = 0; t < last; t += step) {
    gaussian_Fan1<<<(n + 511) / 512, 512>>>(t, n, da, dm);
    gaussian_Fan2<<<dim3(n / 4, n / 4), dim3(4, 4)>>>(t, n, dm, da, db);
  }
  if (full) return;
  float *ra = host(da, n * n), *rb = host(db, n);
  vector<double> x(n);
  for (int i = n - 1; i >= 0; i--) {
    double sum = rb[i];
    for (int j = i + 1; j < n; j++) sum -= ra[i * n + j] * x[j];
    x[i] = sum / ra[i * n + i];
    expect("gaussian", i, x[i], i - 10.0, 1e-3);
  }
}

// A product of matrices: strips of 16 by 16 of both in shared memory, an element per thread.
const int strip = 16;
__device__ __forceinline__ float add_products(float sum, const float *across, const float (*down)[strip], unsigned column) {
#pragma unroll
  for (int k = 0; k < strip; k++) sum = fmaf(across[k], down[k][column], sum);
  return sum;
}
__global__ void sgemm(int depth, int columns, const float *left, const float *right, float *product) {
  __shared__ float from_right[strip][strip], from_left[strip][strip];
  const unsigned x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * strip + y, column = blockIdx.x * strip + x;
  const float *next_left = left + (row * depth + x), *next_right = right + (y * columns + column);
  float sum = 0;
  for (int done = 0; done < depth; done += strip) {
    from_right[y][x] = *next_right;
    from_left[y][x] = *next_left;
    next_right += columns * strip;
    next_left += strip;
    __syncthreads();
    sum = add_products(sum, from_left[y], from_right, x);
    __syncthreads();
  }
  product[row * columns + column] = sum;
}
void check_sgemm() {
  const int rows = sized(48, 1200), depth = 128, columns = sized(96, 1024);
  vector<float> a(rows * depth), b(depth * columns);
  for (int i = 0; i < rows * depth; i++) a[i] = real(i);
  for (int i = 0; i < depth * columns; i++) b[i] = real(i + 99999);
  float *c = device<float>(nullptr, rows * columns);
  sgemm<<<dim3(columns / 16, rows / 16), dim3(strip, strip)>>>(depth, columns, device(a.data(), rows * depth), device(b.data(), depth * columns), c); if (full) return;
  float *r = host(c, rows * columns);
  for (int i = 0; i < rows * columns; i++) {
    double sum = 0;
    for (int k = 0; k < depth; k++) sum += double(a[i / columns * depth + k]) * b[k * columns + i % columns];
    expect("sgemm", i, r[i], float(sum), 1e-4);
  }
}

// A transposition without shared memory, an element per thread in blocks of 16 by 16.
__global__ void matrix_transpose(int height, int width, const float *rows, float *columns) {
  const int down = threadIdx.y + blockIdx.y * 16, across = threadIdx.x + blockIdx.x * 16;
  columns[across * height + down] = rows[down * width + across];
}
void check_transpose() {
  const int w = sized(128, 4096), h = sized(64, 1024);
  vector<float> a(w * h);
  for (int i = 0; i < w * h; i++) a[i] = real(i);
  float *out = device<float>(nullptr, w * h);
  float *in = device(a.data(), w * h);
  for (int i = 0; i < sized(1, 2); i++) matrix_transpose<<<dim3(w / 16, h / 16), dim3(16, 16)>>>(h, w, in, out);
  if (full) return;
  float *r = host(out, w * h);
  for (int i = 0; i < w * h; i++) expect("transpose", i, r[i % w * h + i / w], a[i], 0);
}

// Options by binomial lattices: a CTA per option, sixteen nodes of the lattice in a thread's registers, the first node of the next thread through shared memory.
const int steps = 2048, lattice_threads = 128, part = steps / lattice_threads, options_limit = 1024;
struct lattice {
  float drift, down, up, strike, stock;
};
__constant__ lattice lattices[options_limit];
__device__ float lattice_values[options_limit];
__device__ __forceinline__ float payoff(const lattice &o, int node) { return fmaxf(fmaf(o.stock, __expf(o.drift * (2.0f * node - steps)), -o.strike), 0.0f); }
__device__ __forceinline__ void step_back(const lattice &o, float (&nodes)[part + 1]) {
#pragma unroll
  for (int lower = 0, upper = 1; lower < part; lower = upper++) nodes[lower] = fmaf(o.up, nodes[upper], o.down * nodes[lower]);
}
__global__ void binomial_options() {
  __shared__ float firsts[lattice_threads + 1];
  const lattice o = lattices[blockIdx.x];
  const int mine = threadIdx.x, lowest = mine * part;
  float nodes[part + 1];
  if (mine + 1 == lattice_threads) firsts[mine + 1] = payoff(o, steps);
#pragma unroll
  for (int k = 0; k < part; k++) nodes[k] = payoff(o, lowest + k);
#pragma unroll 16
  for (int level = 0; level < steps; level++) {
    firsts[mine] = nodes[0];
    __syncthreads();
    nodes[part] = firsts[mine + 1];
    __syncthreads();
    if (lowest + level <= steps) step_back(o, nodes);
  }
  if (mine == 0) lattice_values[blockIdx.x] = nodes[0];
}
void check_binomial() {
  const int n = sized(3, options_limit);
  vector<lattice> o(n);
  for (int i = 0; i < n; i++) {
    double years = 2 + 1.5 * real(i), rate = 0.06, step = years / steps, drift = 0.10 * std::sqrt(step);
    double rise = (std::exp(rate * step) - std::exp(-drift)) / (std::exp(drift) - std::exp(-drift)), discount = std::exp(-rate * step);
    o[i] = {float(drift), float((1 - rise) * discount), float(rise * discount), 15 + 10 * real(i + 70), 17.5f + 12.5f * real(i + 50)};
  }
  cudaMemcpyToSymbol(lattices, o.data(), n * sizeof o[0]);
  binomial_options<<<n, lattice_threads>>>();
  if (full) return;
  vector<float> r(n);
  cudaMemcpyFromSymbol(r.data(), lattice_values, n * sizeof r[0]);
  for (int i = 0; i < n; i++) {
    vector<double> v(steps + 1);
    for (int j = 0; j <= steps; j++) v[j] = std::fmax(0.0, o[i].stock * std::exp(o[i].drift * (2.0 * j - steps)) - o[i].strike);
    for (int k = steps; k > 0; k--)
      for (int j = 0; j < k; j++) v[j] = double(o[i].up) * v[j + 1] + double(o[i].down) * v[j];
    expect("binomial", i, r[i], float(v[0]), 1e-3);
  }
}

// A step of finite differences in 3-D, radius 4: columns of 32 by 16 threads walk through the planes, nine values of a column in registers, a plane with halo in shared memory.
const int radius = 4, span = 2 * radius + 1, fd_x = 32, fd_y = 16;
__constant__ float stencil[radius + 1];
typedef float halo_tile[fd_y + 2 * radius][fd_x + 2 * radius];
__device__ __forceinline__ void slide(float (&column)[span]) {
#pragma unroll
  for (int k = 1; k < span; k++) column[k - 1] = column[k];
}
__device__ __forceinline__ float weighted(const float (&column)[span], const halo_tile &plane, int y, int x) {
  float sum = column[radius] * stencil[0];
#pragma unroll
  for (int far = 1; far <= radius; far++) {
    const float across = plane[y][x - far] + plane[y][x + far], along = plane[y - far][x] + plane[y + far][x];
    sum = fmaf(stencil[far], column[radius - far] + column[radius + far] + across + along, sum);
  }
  return sum;
}
__global__ void fdtd3d(int width, int height, int depth, const float *in, float *out) {
  __shared__ halo_tile plane;
  const int x = threadIdx.x + radius, y = threadIdx.y + radius, column_x = blockIdx.x * blockDim.x + x, column_y = blockIdx.y * blockDim.y + y;
  const int pitch = width + 2 * radius, area = pitch * (height + 2 * radius);
  const bool inside = column_x < width + radius && column_y < height + radius, loads = column_x < width + 2 * radius && column_y < height + 2 * radius;
  int at = column_y * pitch + column_x, next = at;
  float column[span];
#pragma unroll
  for (int k = 1; k < span; k++, next += area)
    if (loads) column[k] = in[next];
  at += (radius - 1) * area;
#pragma unroll 9
  for (int z = 0; z < depth; z++, next += area) {
    slide(column);
    if (loads) column[span - 1] = in[next];
    at += area;
    __syncthreads();
    if (threadIdx.x < radius) {
      plane[y][x - radius] = in[at - radius];
      plane[y][x + blockDim.x] = in[at + blockDim.x];
    }
    if (threadIdx.y < radius) {
      plane[y - radius][x] = in[at - pitch * radius];
      plane[y + blockDim.y][x] = in[at + pitch * int(blockDim.y)];
    }
    plane[y][x] = column[radius];
    __syncthreads();
    const float sum = weighted(column, plane, y, x);
    if (inside) out[at] = sum;
  }
}
void check_fdtd3d() {
  const int x = sized(64, 384), y = sized(32, 384), z = sized(18, 44), row = x + 2 * radius, plane = row * (y + 2 * radius), n = plane * (z + 2 * radius), pad = 32 - radius;
  vector<float> a(n + pad);
  for (int i = 0; i < n; i++) a[i + pad] = real(i);
  float c[radius + 1];
  for (int i = 0; i <= radius; i++) c[i] = 0.1f + real(i) / 50;
  cudaMemcpyToSymbol(stencil, c, sizeof c);
  float *out = device<float>(nullptr, n + pad);
  fdtd3d<<<dim3(x / fd_x, y / fd_y), dim3(fd_x, fd_y)>>>(x, y, z, device(a.data(), n + pad) + pad, out + pad); if (full) return;
  float *r = host(out, n + pad);
  for (int k = 0; k < z; k++)
    for (int j = 0; j < y; j++)
      for (int i = 0; i < x; i++) {
        const int at = pad + (k + radius) * plane + (j + radius) * row + i + radius;
        double sum = c[0] * double(a[at]);
        for (int d = 1; d <= radius; d++)
          for (int side : {1, row, plane}) sum += c[d] * (double(a[at - d * side]) + a[at + d * side]);
        expect("fdtd3d", at, r[at], float(sum), 1e-4);
      }
}

// Gravity between all pairs in double precision: a tile of bodies in shared memory per turn, a body per thread.
struct alignas(16) body {
  double x, y, z, w;
};
struct pull {
  double x, y, z;
  __device__ __forceinline__ void add(const body &by, const body &on);
};
__constant__ double softening;
__device__ __forceinline__ void pull::add(const body &by, const body &on) {
  const double dx = by.x - on.x, dy = by.y - on.y, dz = by.z - on.z, inverse = rsqrt(dx * dx + dy * dy + dz * dz + softening);
  const double strength = inverse * inverse * inverse * by.w;
  x = fma(strength, dx, x);
  y = fma(strength, dy, y);
  z = fma(strength, dz, z);
}
__device__ __forceinline__ void advance(double &place, double &speed, double acceleration, float dt, float damping) {
  speed = fma(acceleration, double(dt), speed) * damping;
  place = fma(speed, double(dt), place);
}
__global__ void nbody(int tiles, float damping, float dt, const body *__restrict__ before, body *velocities, body *__restrict__ after) {
  extern __shared__ body others[];
  const unsigned self = threadIdx.x + blockDim.x * blockIdx.x;
  const body *next = before + threadIdx.x;
  body mine = before[self];
  pull sum = {};
  for (; tiles > 0; tiles--, next += blockDim.x) {
    others[threadIdx.x] = *next;
    __syncthreads();
#pragma unroll 128
    for (unsigned k = 0; k < blockDim.x; k++) sum.add(others[k], mine);
    __syncthreads();
  }
  body speed = velocities[self];
  advance(mine.x, speed.x, sum.x, dt, damping);
  advance(mine.y, speed.y, sum.y, dt, damping);
  advance(mine.z, speed.z, sum.z, dt, damping);
  velocities[self] = speed;
  after[self] = mine;
}
void check_nbody() {
  const int block = 256, tiles = sized(2, 12), n = sized(2, 128) * block; // in full, 12 tiles of 128
  const double soft = 0.01;
  const float dt = 0.016f, damping = 0.995f;
  vector<body> p(n), v(n);
  for (int i = 0; i < n; i++) {
    p[i] = {real(8 * i), real(8 * i + 1), real(8 * i + 2), 1 + real(8 * i + 3) / 2};
    v[i] = {real(8 * i + 4), real(8 * i + 5), real(8 * i + 6), 1};
  }
  cudaMemcpyToSymbol(softening, &soft, sizeof soft);
  body *after = device<body>(nullptr, n), *dv = device(v.data(), n);
  nbody<<<n / block, block, block * sizeof(body)>>>(tiles, damping, dt, device(p.data(), n), dv, after); if (full) return;
  body *rp = host(after, n), *rv = host(dv, n);
  for (int i = 0; i < n; i++) {
    double a[3] = {};
    for (int j = 0; j < n; j++) {
      double d[3] = {p[j].x - p[i].x, p[j].y - p[i].y, p[j].z - p[i].z}, s = p[j].w * std::pow(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + soft, -1.5);
      for (int c = 0; c < 3; c++) a[c] += d[c] * s;
    }
    double w[3] = {(v[i].x + a[0] * dt) * damping, (v[i].y + a[1] * dt) * damping, (v[i].z + a[2] * dt) * damping};
    expect("velocity x", i, rv[i].x, w[0], 1e-9);
    expect("velocity z", i, rv[i].z, w[2], 1e-9);
    expect("position y", i, rp[i].y, p[i].y + w[1] * dt, 1e-9);
  }
}

// Histograms of the angles between points on a sphere: 128 copies in shared memory, a binary search in constants.
const int bins = 20, tp_block = 256, copies = 128;
__constant__ float bounds[bins + 1];
struct point {
  float x, y, z;
};
struct sky {
  const float *x, *y, *z;
  __device__ __forceinline__ point operator[](unsigned i) const { return {x[i], y[i], z[i]}; }
  __device__ __forceinline__ sky from(unsigned i) const { return {x + i, y + i, z + i}; }
};
__device__ __forceinline__ unsigned bin_of(float cosine) {
  unsigned at = 0, past = bins;
  for (unsigned middle = bins / 2; middle != at; middle = (at + past) / 2)
    if (cosine < bounds[middle]) at = middle;
    else past = middle;
  return at;
}
__device__ __forceinline__ void add_up(unsigned (*counts)[copies]) {
  const unsigned lanes = copies / 2, lane = threadIdx.x % lanes;
  for (unsigned half = lanes; half; half /= 2)
    for (unsigned bin = threadIdx.x / lanes, turn = 0; turn < bins; turn += tp_block / lanes, bin += tp_block / lanes) {
      __syncthreads();
      if (bin < bins && lane < half) counts[bin][lane] += counts[bin][lane + half];
    }
  __syncthreads();
}
__global__ void tpacf(unsigned size, unsigned sets, sky points, unsigned long *histograms) {
  __shared__ unsigned counts[bins][copies];
  __shared__ point held[tp_block];
  const unsigned me = threadIdx.x;
  for (unsigned *zero = counts[0] + me; zero < counts[bins]; zero += tp_block) *zero = 0;
  const bool alone = blockIdx.x <= sets;
  const sky second = points.from(size * (alone ? blockIdx.x : blockIdx.x - sets)), first = alone ? second : points;
  for (unsigned base = 0; base < size; base += tp_block) {
    const unsigned here = min(tp_block, size - base);
    __syncthreads();
    if (me < here) held[me] = first[base + me];
    __syncthreads();
    for (unsigned other = me + (alone ? base + 1 : 0), ahead = other - me; ahead < size; other += tp_block, ahead += tp_block) {
      const bool exists = other < size;
      point mine;
      if (exists) mine = second[other];
      for (unsigned k = 0; k < here; k++) {
        const float cosine = fmaf(held[k].z, mine.z, fmaf(held[k].y, mine.y, held[k].x * mine.x));
        const unsigned bin = bin_of(cosine);
        if (exists && (base + k < other || !alone) && bounds[bin + 1] <= cosine && bounds[bin] > cosine) atomicAdd(counts[bin] + me / 2, 1u);
      }
    }
  }
  add_up(counts);
  if (me < bins) histograms[blockIdx.x * bins + me] = counts[me][0];
}
void check_tpacf() {
  const int sets = sized(1, 100), n = 512, total = n * (sets + 1), blocks = 2 * sets + 1;
  float bound[bins + 1];
  for (int k = 0; k <= bins; k++) bound[k] = float(std::cos(std::pow(10.0, k / 5.0) / 60 * 3.14159265358979 / 180));
  vector<float> p[3];
  for (int i = 0; i < total; i++) {
    double z = real(i), angle = 3.14159265358979 * real(i + total), r = std::sqrt(1 - z * z);
    p[0].push_back(float(r * std::cos(angle))), p[1].push_back(float(r * std::sin(angle))), p[2].push_back(float(z));
  }
  cudaMemcpyToSymbol(bounds, bound, sizeof bound);
  unsigned long *out = device<unsigned long>(nullptr, bins * blocks);
  tpacf<<<blocks, tp_block>>>(n, sets, {device(p[0].data(), total), device(p[1].data(), total), device(p[2].data(), total)}, out); if (full) return;
  unsigned long *r = host(out, bins * blocks);
  for (int b = 0; b < blocks; b++) {
    const bool self = b <= sets;
    vector<int> count(bins);
    for (int i = 0; i < n; i++)
      for (int j = self ? i + 1 : 0; j < n; j++) {
        const int left = i + (self ? b * n : 0), right = j + (self ? b : b - sets) * n;
        float cosine = std::fma(p[2][left], p[2][right], std::fma(p[1][left], p[1][right], p[0][left] * p[0][right]));
        for (int k = 0; k < bins; k++) count[k] += cosine < bound[k] && cosine >= bound[k + 1];
      }
    for (int k = 0; k < bins; k++) expect("tpacf", b * bins + k, int(r[b * bins + k]), count[k], 1e-3);
  }
}

// Forces between the particles of neighbouring boxes in double precision: a box per CTA, a hundred particles for 128 threads.
const int particles = 100, lava_threads = 128;
struct particle {
  double v, x, y, z;
};
struct box {
  int first, neighbours, near[26];
};
__device__ __forceinline__ void interact(particle &sum, const particle &on, const particle &by, double charge, double decay) {
  const double closeness = on.z * by.z + on.y * by.y + on.x * by.x, kernel = exp(decay * (closeness - (on.v + by.v))), slope = kernel + kernel;
  sum.x = fma(charge, slope * (on.x - by.x), sum.x);
  sum.y = fma(charge, slope * (on.y - by.y), sum.y);
  sum.z = fma(charge, slope * (on.z - by.z), sum.z);
  sum.v = fma(charge, kernel, sum.v);
}
__global__ void lavamd(double alpha, const box *boxes, const double *charges, const particle *all, particle *forces) {
  __shared__ double their_charges[particles];
  __shared__ particle theirs[particles], ours[particles];
  const box &home = boxes[blockIdx.x];
  const int me = threadIdx.x, self = home.first + me;
  const bool active = me < particles;
  const double decay = alpha * alpha * 2.0;
  if (active) ours[me] = all[self];
  for (int turn = -1; turn < home.neighbours; turn++) {
    const int source = me + (turn < 0 ? home.first : boxes[home.near[turn]].first);
    __syncthreads();
    if (active) {
      their_charges[me] = charges[source];
      theirs[me] = all[source];
    }
    __syncthreads();
    if (active) {
      particle sum = forces[self];
      for (int k = 0; k < particles; k++) interact(sum, ours[me], theirs[k], their_charges[k], decay);
      forces[self] = sum;
    }
  }
}
void check_lavamd() {
  const int side = sized(2, 8), count = side * side * side, n = count * particles;
  vector<box> b(count);
  for (int i = 0; i < count; i++) {
    b[i].first = i * particles, b[i].neighbours = 0;
    for (int j = 0; j < count; j++)
      if (j != i && b[i].neighbours < sized(26, 2)) b[i].near[b[i].neighbours++] = j;
  }
  vector<particle> p(n);
  vector<double> q(n);
  for (int i = 0; i < n; i++) p[i] = {0.55 + real(5 * i) / 2.2, 0.55 + real(5 * i + 1) / 2.2, 0.55 + real(5 * i + 2) / 2.2, 0.55 + real(5 * i + 3) / 2.2}, q[i] = 0.55 + real(5 * i + 4) / 2.2;
  particle *force = device<particle>(nullptr, n);
  lavamd<<<count, lava_threads>>>(0.5, device(b.data(), count), device(q.data(), n), device(p.data(), n), force); if (full) return;
  particle *r = host(force, n);
  for (int i = 0; i < n; i += 7) {
    double sum[4] = {};
    for (int j = 0; j < n; j++) {
      double e = q[j] * std::exp(-0.5 * (p[i].v + p[j].v - p[i].x * p[j].x - p[i].y * p[j].y - p[i].z * p[j].z));
      sum[0] += e, sum[1] += 2 * e * (p[i].x - p[j].x), sum[2] += 2 * e * (p[i].y - p[j].y), sum[3] += 2 * e * (p[i].z - p[j].z);
    }
    expect("lavamd v", i, r[i].v, sum[0], 1e-9);
    expect("lavamd x", i, r[i].x, sum[1], 1e-9);
    expect("lavamd y", i, r[i].y, sum[2], 1e-9);
    expect("lavamd z", i, r[i].z, sum[3], 1e-9);
  }
}

// The key of an MD5 digest: every thread tries all values of the first byte of its key.
__host__ __device__ unsigned turn(unsigned x, int by) { return x << by | x >> (32 - by); }
template <int i> __device__ void md5_step(unsigned &a, unsigned b, unsigned c, unsigned d, unsigned word, unsigned constant) {
  const int by[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  unsigned f = i < 16 ? (b & c) | (~b & d) : i < 32 ? (b & d) | (c & ~d) : i < 48 ? b ^ c ^ d : c ^ (b | ~d);
  a = b + turn(a + f + constant + word, by[i / 16][i % 4]);
}
#define MD5_FOUR(i, k0, k1, k2, k3)                                                         \
  md5_step<i>(a, b, c, d, md5_word<i>(w0, w1, bits), k0);                                   \
  md5_step<i + 1>(d, a, b, c, md5_word<i + 1>(w0, w1, bits), k1);                           \
  md5_step<i + 2>(c, d, a, b, md5_word<i + 2>(w0, w1, bits), k2);                           \
  md5_step<i + 3>(b, c, d, a, md5_word<i + 3>(w0, w1, bits), k3);
template <int i> __device__ unsigned md5_word(unsigned w0, unsigned w1, unsigned bits) {
  const int at = (i < 16 ? i : i < 32 ? 5 * i + 1 : i < 48 ? 3 * i + 5 : 7 * i) % 16;
  return at == 0 ? w0 : at == 1 ? w1 : at == 14 ? bits : 0;
}
struct key64 {
  unsigned low, high;
};
struct md5_state {
  unsigned a, b, c, d;
  __device__ __forceinline__ bool operator==(const md5_state &o) const { return a == o.a && b == o.b && c == o.c && d == o.d; }
};
struct finding {
  int index;
  key64 key;
  md5_state digest;
};
__device__ __forceinline__ md5_state md5_short(key64 key, unsigned length) {
  const unsigned end = 0x80u << 8 * (length % 4), bits = 8 * length, w0 = length < 4 ? key.low | end : key.low, w1 = length < 4 ? key.high : key.high | end;
  unsigned a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;
  MD5_FOUR(0, 0xd76aa478u, 0xe8c7b756u, 0x242070dbu, 0xc1bdceeeu)
  MD5_FOUR(4, 0xf57c0fafu, 0x4787c62au, 0xa8304613u, 0xfd469501u)
  MD5_FOUR(8, 0x698098d8u, 0x8b44f7afu, 0xffff5bb1u, 0x895cd7beu)
  MD5_FOUR(12, 0x6b901122u, 0xfd987193u, 0xa679438eu, 0x49b40821u)
  MD5_FOUR(16, 0xf61e2562u, 0xc040b340u, 0x265e5a51u, 0xe9b6c7aau)
  MD5_FOUR(20, 0xd62f105du, 0x02441453u, 0xd8a1e681u, 0xe7d3fbc8u)
  MD5_FOUR(24, 0x21e1cde6u, 0xc33707d6u, 0xf4d50d87u, 0x455a14edu)
  MD5_FOUR(28, 0xa9e3e905u, 0xfcefa3f8u, 0x676f02d9u, 0x8d2a4c8au)
  MD5_FOUR(32, 0xfffa3942u, 0x8771f681u, 0x6d9d6122u, 0xfde5380cu)
  MD5_FOUR(36, 0xa4beea44u, 0x4bdecfa9u, 0xf6bb4b60u, 0xbebfbc70u)
  MD5_FOUR(40, 0x289b7ec6u, 0xeaa127fau, 0xd4ef3085u, 0x04881d05u)
  MD5_FOUR(44, 0xd9d4d039u, 0xe6db99e5u, 0x1fa27cf8u, 0xc4ac5665u)
  MD5_FOUR(48, 0xf4292244u, 0x432aff97u, 0xab9423a7u, 0xfc93a039u)
  MD5_FOUR(52, 0x655b59c3u, 0x8f0ccc92u, 0xffeff47du, 0x85845dd1u)
  MD5_FOUR(56, 0x6fa87e4fu, 0xfe2ce6e0u, 0xa3014314u, 0x4e0811a1u)
  MD5_FOUR(60, 0xf7537e82u, 0xbd3af235u, 0x2ad7d2bbu, 0xeb86d391u)
  return {a + 0x67452301, b + 0xefcdab89, c + 0x98badcfe, d + 0x10325476};
}
__device__ __forceinline__ unsigned four_digits(unsigned &rest, unsigned base) {
  unsigned word = 0;
#pragma unroll
  for (int at = 0; at < 32; at += 8, rest /= base) word |= rest % base << at;
  return word;
}
__global__ void md5hash(md5_state wanted, unsigned length, unsigned values, int keys, finding *result) {
  const int first = values * (threadIdx.x + blockDim.x * blockIdx.x), end = min(first + int(values), keys);
  unsigned rest = first;
  key64 key;
  key.low = four_digits(rest, values);
  key.high = four_digits(rest, values);
  for (int index = first; index < end; index++, key.low++) {
    const md5_state digest = md5_short(key, length);
    if (digest == wanted) *result = {index, key, digest};
  }
}
void check_md5() {
  const int blocks = sized(2, 25432), values = sized(25, 2), length = 6, keys = blocks * 384 * values - 30, wanted = 12345;
  unsigned char block[64] = {};
  for (int i = 0, rest = wanted; i < length; i++, rest /= values) block[i] = rest % values;
  block[length] = 0x80, block[56] = 8 * length;
  unsigned s[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}, start[4], digest[4];
  const char by[] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
  for (int i = 0; i < 4; i++) start[i] = s[i];
  for (int i = 0; i < 64; i++) {
    const int at = i < 16 ? i : (i < 32 ? 5 * i + 1 : i < 48 ? 3 * i + 5 : 7 * i) % 16;
    unsigned word = 0, f;
    for (int k = 3; k >= 0; k--) word = word << 8 | block[4 * at + k];
    if (i < 16) f = s[3] ^ (s[1] & (s[2] ^ s[3]));
    else if (i < 32) f = s[2] ^ (s[3] & (s[1] ^ s[2]));
    else f = i < 48 ? s[1] ^ s[2] ^ s[3] : s[2] ^ (s[1] | ~s[3]);
    unsigned next = s[1] + turn(s[0] + f + word + unsigned(4294967296.0 * std::fabs(std::sin(i + 1.0))), by[i / 16 * 4 + i % 4]);
    s[0] = s[3], s[3] = s[2], s[2] = s[1], s[1] = next;
  }
  for (int i = 0; i < 4; i++) digest[i] = s[i] + start[i];
  const finding none = {-1};
  finding *result = device(&none, 1);
  md5hash<<<blocks, 384>>>({digest[0], digest[1], digest[2], digest[3]}, length, values, keys, result); if (full) return;
  const finding *r = host(result, 1);
  const unsigned found[] = {r->digest.a, r->digest.b, r->digest.c, r->digest.d};
  expect("key's index", 0, r->index, wanted, 0);
  for (int i = 0; i < length; i++) expect("key", i, int((i < 4 ? r->key.low : r->key.high) >> i % 4 * 8 & 255), int(block[i]), 0);
  for (int i = 0; i < 4; i++) expect("digest", i, found[i], digest[i], 0);
}

// Resampling of a particle filter: each thread walks through the cumulated weights until it meets its own number.
__device__ __forceinline__ int first_reaching(double level, const double *weights, int count) {
  int at = 0;
  while (at < count && level > weights[at]) at++;
  return min(at, count - 1);
}
__global__ void particle_filter(int count, const double *levels, const double *weights, const double *x, const double *y, double *new_x, double *new_y) {
  const int mine = threadIdx.x + blockDim.x * blockIdx.x;
  if (mine < count) {
    const int from = first_reaching(levels[mine], weights, count);
    new_y[mine] = y[from];
    new_x[mine] = x[from];
  }
}
void check_particles() {
  const int n = sized(1000, 65536), weighed = sized(n, 6553); // in full, the first tenth has all weight
  vector<double> x(n), y(n), cdf(n), u(n);
  double sum = 0;
  for (int i = 0; i < n; i++) x[i] = real(i), y[i] = real(i + n), sum += i < weighed ? 1.1 + real(i + 2 * n) : 0, cdf[i] = sum, u[i] = (i + 0.3) / n;
  for (int i = 0; i < n; i++) cdf[i] /= sum;
  double *xj = device<double>(nullptr, n), *yj = device<double>(nullptr, n);
  particle_filter<<<(n + 127) / 128, 128>>>(n, device(u.data(), n), device(cdf.data(), n), device(x.data(), n), device(y.data(), n), xj, yj); if (full) return;
  double *rx = host(xj, n), *ry = host(yj, n);
  for (int i = 0, k = 0; i < n; i++) {
    while (k < n - 1 && cdf[k] < u[i]) k++;
    expect("particle x", i, rx[i], x[k], 0);
    expect("particle y", i, ry[i], y[k], 0);
  }
}

int main(int count, char **words) {
  Calls run(count, words);
  run("black-scholes", check_black_scholes), run("quasirandom", check_quasirandom), run("gaussian", check_gaussian), run("sgemm", check_sgemm);
  run("matrix-transpose", check_transpose), run("binomial-options", check_binomial), run("fdtd3d", check_fdtd3d), run("nbody", check_nbody);
  run("tpacf", check_tpacf), run("lavamd", check_lavamd), run("md5hash", check_md5), run("particle-filter", check_particles);
  return finish("slate_arcs");
}
