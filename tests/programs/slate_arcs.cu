// The kernels of the Slate and ARCS 2018 papers, written from their algorithms: tiles, blocks and work per thread as in the public programs.
#include "check.h"
#include <vector>
using std::vector;

// Black-Scholes prices in closed form, two options per thread.
__device__ float normal_below(float d) {
  const float a1 = 0.31938153f, a2 = -0.356563782f, a3 = 1.781477937f, a4 = -1.821255978f, a5 = 1.330274429f;
  float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
  float tail = 0.39894228040143267794f * __expf(-0.5f * d * d) * (k * (a1 + k * (a2 + k * (a3 + k * (a4 + k * a5)))));
  return d > 0 ? 1.0f - tail : tail;
}
__device__ void price(float &call, float &put, float s, float x, float t, float r, float v) {
  float root = __fdividef(1.0f, rsqrtf(t));
  float d1 = __fdividef(__logf(s / x) + (r + 0.5f * v * v) * t, v * root), d2 = d1 - v * root;
  float n1 = normal_below(d1), n2 = normal_below(d2), discount = __expf(-r * t);
  call = s * n1 - x * discount * n2;
  put = x * discount * (1.0f - n2) - s * (1.0f - n1);
}
__global__ void __launch_bounds__(128)
    black_scholes(float2 *__restrict__ call, float2 *__restrict__ put, const float2 *__restrict__ stock, const float2 *__restrict__ strike,
                  const float2 *__restrict__ years, float rate, float volatility, int options) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= options / 2) return;
  float c0, c1, p0, p1;
  price(c0, p0, stock[i].x, strike[i].x, years[i].x, rate, volatility);
  price(c1, p1, stock[i].y, strike[i].y, years[i].y, rate, volatility);
  call[i] = make_float2(c0, c1);
  put[i] = make_float2(p0, p1);
}
void check_black_scholes() {
  const int n = 128 * 2 * 12 - 40;
  const float rate = 0.02f, volatility = 0.30f;
  vector<float> s(n), x(n), t(n);
  for (int i = 0; i < n; i++) s[i] = 17.5f + 12.5f * real(i), x[i] = 50.5f + 49.5f * real(i + n), t[i] = 5.125f + 4.875f * real(i + 2 * n);
  float *c = device<float>(nullptr, n), *p = device<float>(nullptr, n), *ds = device(s.data(), n), *dx = device(x.data(), n), *dt = device(t.data(), n);
  black_scholes<<<(n / 2 + 127) / 128, 128>>>((float2 *)c, (float2 *)p, (float2 *)ds, (float2 *)dx, (float2 *)dt, rate, volatility, n);
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
__global__ void quasirandom(float *out, unsigned seed, unsigned count) {
  const unsigned *mine = &directions[threadIdx.y][0];
  unsigned first = __umul24(blockDim.x, blockIdx.x) + threadIdx.x, stride = __umul24(blockDim.x, gridDim.x);
  for (unsigned position = first; position < count; position += stride) {
    unsigned sum = 0, bits = seed + position;
    for (int bit = 0; bit < resolution; bit++, bits >>= 1)
      if (bits & 1) sum ^= mine[bit];
    out[__umul24(threadIdx.y, count) + position] = (float)(sum + 1) * (1.0f / (float)0x80000001u);
  }
}
void check_quasirandom() {
  const int n = 128 * 16, seed = 77;
  static unsigned table[dimensions][resolution];
  for (int d = 0; d < dimensions; d++)
    for (int b = 0; b < resolution; b++) table[d][b] = draw(d * resolution + b) >> 1;
  cudaMemcpyToSymbol(directions, table, sizeof table);
  float *out = device<float>(nullptr, dimensions * n);
  quasirandom<<<16, dim3(128, dimensions)>>>(out, seed, n);
  float *r = host(out, dimensions * n);
  for (int d = 0; d < dimensions; d++)
    for (int i = 0; i < n; i++) {
      unsigned sum = 0;
      for (int b = resolution - 1; b >= 0; b--) sum ^= (seed + i) >> b & 1 ? table[d][b] : 0;
      expect("quasirandom", d * n + i, r[d * n + i], float((sum + 1.0) / 0x80000001u), 1e-6);
    }
}

// Gauss: multipliers of a column, then an update whose x runs down the rows, in blocks of 4 by 4.
__global__ void gaussian_Fan1(float *m, float *a, int size, int t) {
  if (threadIdx.x + blockIdx.x * blockDim.x >= size - 1 - t) return;
  int row = blockDim.x * blockIdx.x + threadIdx.x + t + 1;
  m[size * row + t] = a[size * row + t] / a[size * t + t];
}
__global__ void gaussian_Fan2(float *m, float *a, float *b, int size, int columns, int t) {
  if (threadIdx.x + blockIdx.x * blockDim.x >= size - 1 - t) return;
  if (threadIdx.y + blockIdx.y * blockDim.y >= size - t) return;
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  a[size * (x + 1 + t) + (y + t)] -= m[size * (x + 1 + t) + t] * a[size * t + (y + t)];
  if (y == 0) b[x + 1 + t] -= m[size * (x + 1 + t) + (y + t)] * b[t];
}
void check_gaussian() {
  const int n = 24;
  vector<float> a(n * n), b(n);
  for (int i = 0; i < n; i++) {
    double sum = 0;
    for (int j = 0; j < n; j++) a[i * n + j] = real(i * n + j) + (i == j ? n : 0), sum += a[i * n + j] * (j - 10.0);
    b[i] = float(sum);
  }
  float *da = device(a.data(), n * n), *db = device(b.data(), n), *dm = device<float>(nullptr, n * n);
  for (int t = 0; t < n - 1; t++) {
    gaussian_Fan1<<<1, 512>>>(dm, da, n, t);
    gaussian_Fan2<<<dim3(n / 4, n / 4), dim3(4, 4)>>>(dm, da, db, n, n - t, t);
  }
  float *ra = host(da, n * n), *rb = host(db, n);
  double x[n];
  for (int i = n - 1; i >= 0; i--) {
    double sum = rb[i];
    for (int j = i + 1; j < n; j++) sum -= ra[i * n + j] * x[j];
    x[i] = sum / ra[i * n + i];
    expect("gaussian", i, x[i], i - 10.0, 1e-3);
  }
}

// C = A B through tiles of 16 by 16 in shared memory, an element per thread.
__global__ void sgemm(float *c, float *a, float *b, int wa, int wb) {
  const int tile = 16;
  int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  int begin = wa * tile * by, end = begin + wa - 1;
  float sum = 0;
  for (int i = begin, j = tile * bx; i <= end; i += tile, j += tile * wb) {
    __shared__ float as[tile][tile], bs[tile][tile];
    as[ty][tx] = a[i + wa * ty + tx];
    bs[ty][tx] = b[j + wb * ty + tx];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile; k++) sum += as[ty][k] * bs[k][tx];
    __syncthreads();
  }
  c[wb * tile * by + tile * bx + wb * ty + tx] = sum;
}
void check_sgemm() {
  const int rows = 48, depth = 128, columns = 96;
  vector<float> a(rows * depth), b(depth * columns);
  for (int i = 0; i < rows * depth; i++) a[i] = real(i);
  for (int i = 0; i < depth * columns; i++) b[i] = real(i + 99999);
  float *c = device<float>(nullptr, rows * columns);
  sgemm<<<dim3(columns / 16, rows / 16), dim3(16, 16)>>>(c, device(a.data(), rows * depth), device(b.data(), depth * columns), depth, columns);
  float *r = host(c, rows * columns);
  for (int i = 0; i < rows * columns; i++) {
    double sum = 0;
    for (int k = 0; k < depth; k++) sum += double(a[i / columns * depth + k]) * b[k * columns + i % columns];
    expect("sgemm", i, r[i], float(sum), 1e-4);
  }
}

// out = in^T without shared memory, an element per thread in blocks of 16 by 16.
__global__ void matrix_transpose(float *out, float *in, int width, int height) {
  const int tile = 16, rows = 16;
  int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  int from = x + width * y, to = y + height * x;
  for (int i = 0; i < tile; i += rows) out[to + i] = in[from + i * width];
}
void check_transpose() {
  const int w = 128, h = 64;
  vector<float> a(w * h);
  for (int i = 0; i < w * h; i++) a[i] = real(i);
  float *out = device<float>(nullptr, w * h);
  matrix_transpose<<<dim3(w / 16, h / 16), dim3(16, 16)>>>(out, device(a.data(), w * h), w, h);
  float *r = host(out, w * h);
  for (int i = 0; i < w * h; i++) expect("transpose", i, r[i % w * h + i / w], a[i], 0);
}

// Options by binomial lattices: a CTA per option, sixteen nodes of the lattice in a thread's registers.
const int steps = 2048, lattice_threads = 128, part = steps / lattice_threads, options_limit = 1024;
struct lattice {
  float stock, strike, drift, up, down;
};
__constant__ lattice lattices[options_limit];
__device__ float lattice_values[options_limit];
__device__ float at_expiry(float stock, float strike, float drift, int i) {
  float gain = stock * __expf(drift * (2.0f * i - steps)) - strike;
  return gain > 0 ? gain : 0;
}
__global__ void binomial_options() {
  __shared__ float border[lattice_threads + 1];
  const int thread = threadIdx.x;
  const float stock = lattices[blockIdx.x].stock, strike = lattices[blockIdx.x].strike, drift = lattices[blockIdx.x].drift;
  const float up = lattices[blockIdx.x].up, down = lattices[blockIdx.x].down;
  float value[part + 1];
#pragma unroll
  for (int i = 0; i < part; i++) value[i] = at_expiry(stock, strike, drift, thread * part + i);
  if (thread == 0) border[lattice_threads] = at_expiry(stock, strike, drift, steps);
  int last = max(0, thread * part - 1);
#pragma unroll 16
  for (int i = steps; i > 0; i--) {
    border[thread] = value[0];
    __syncthreads();
    value[part] = border[thread + 1];
    __syncthreads();
    if (i > last) {
#pragma unroll
      for (int j = 0; j < part; j++) value[j] = up * value[j + 1] + down * value[j];
    }
  }
  if (thread == 0) lattice_values[blockIdx.x] = value[0];
}
void check_binomial() {
  const int n = 3;
  lattice o[n];
  for (int i = 0; i < n; i++) {
    double years = 2 + 1.5 * real(i), rate = 0.06, step = years / steps, drift = 0.10 * std::sqrt(step);
    double rise = (std::exp(rate * step) - std::exp(-drift)) / (std::exp(drift) - std::exp(-drift)), discount = std::exp(-rate * step);
    o[i] = {17.5f + 12.5f * real(i + 50), 15 + 10 * real(i + 70), float(drift), float(rise * discount), float((1 - rise) * discount)};
  }
  cudaMemcpyToSymbol(lattices, o, sizeof o);
  binomial_options<<<n, lattice_threads>>>();
  float r[n];
  cudaMemcpyFromSymbol(r, lattice_values, sizeof r);
  for (int i = 0; i < n; i++) {
    vector<double> v(steps + 1);
    for (int j = 0; j <= steps; j++) v[j] = std::fmax(0.0, o[i].stock * std::exp(o[i].drift * (2.0 * j - steps)) - o[i].strike);
    for (int k = steps; k > 0; k--)
      for (int j = 0; j < k; j++) v[j] = double(o[i].up) * v[j + 1] + double(o[i].down) * v[j];
    expect("binomial", i, r[i], float(v[0]), 1e-3);
  }
}

// A step of finite differences in 3-D, radius 4: columns of 32 by 16 threads walk through the planes, a tile with halo in shared memory.
const int radius = 4, fd_x = 32, fd_y = 16;
__constant__ float stencil[radius + 1];
__global__ void fdtd3d(float *out, const float *in, const int dimx, const int dimy, const int dimz) {
  __shared__ float tile[fd_y + 2 * radius][fd_x + 2 * radius];
  bool reads = true, writes = true;
  const int gx = blockIdx.x * blockDim.x + threadIdx.x, gy = blockIdx.y * blockDim.y + threadIdx.y;
  const int lx = threadIdx.x, ly = threadIdx.y, workx = blockDim.x, worky = blockDim.y;
  const int row = dimx + 2 * radius, plane = row * (dimy + 2 * radius), tx = lx + radius, ty = ly + radius;
  int from = radius * row + radius + gy * row + gx, to = 0;
  float ahead[radius], behind[radius], here;
  if (gx >= dimx + radius || gy >= dimy + radius) reads = false;
  if (gx >= dimx || gy >= dimy) writes = false;
  for (int i = radius - 2; i >= 0; i--) {
    if (reads) behind[i] = in[from];
    from += plane;
  }
  if (reads) here = in[from];
  to = from;
  from += plane;
  for (int i = 0; i < radius; i++) {
    if (reads) ahead[i] = in[from];
    from += plane;
  }
#pragma unroll 9
  for (int z = 0; z < dimz; z++) {
    for (int i = radius - 1; i > 0; i--) behind[i] = behind[i - 1];
    behind[0] = here;
    here = ahead[0];
#pragma unroll 4
    for (int i = 0; i < radius - 1; i++) ahead[i] = ahead[i + 1];
    if (reads) ahead[radius - 1] = in[from];
    from += plane;
    to += plane;
    __syncthreads();
    if (ly < radius) {
      tile[ly][tx] = in[to - radius * row];
      tile[ly + worky + radius][tx] = in[to + worky * row];
    }
    if (lx < radius) {
      tile[ty][lx] = in[to - radius];
      tile[ty][lx + workx + radius] = in[to + workx];
    }
    tile[ty][tx] = here;
    __syncthreads();
    float value = stencil[0] * here;
#pragma unroll 4
    for (int i = 1; i <= radius; i++)
      value += stencil[i] * (ahead[i - 1] + behind[i - 1] + tile[ty - i][tx] + tile[ty + i][tx] + tile[ty][tx - i] + tile[ty][tx + i]);
    if (writes) out[to] = value;
  }
}
void check_fdtd3d() {
  const int x = 64, y = 32, z = 18, row = x + 2 * radius, plane = row * (y + 2 * radius), n = plane * (z + 2 * radius), pad = 32 - radius;
  vector<float> a(n + pad);
  for (int i = 0; i < n; i++) a[i + pad] = real(i);
  float c[radius + 1];
  for (int i = 0; i <= radius; i++) c[i] = 0.1f + real(i) / 50;
  cudaMemcpyToSymbol(stencil, c, sizeof c);
  float *out = device<float>(nullptr, n + pad);
  fdtd3d<<<dim3(x / fd_x, y / fd_y), dim3(fd_x, fd_y)>>>(out + pad, device(a.data(), n + pad) + pad, x, y, z);
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
struct vector3 {
  double x, y, z;
};
__constant__ double softening;
__device__ vector3 attract(vector3 a, body i, body j) {
  vector3 r = {j.x - i.x, j.y - i.y, j.z - i.z};
  double square = r.x * r.x + r.y * r.y + r.z * r.z;
  square += softening;
  double inverse = rsqrt(square), cube = inverse * inverse * inverse, s = j.w * cube;
  a.x += r.x * s;
  a.y += r.y * s;
  a.z += r.z * s;
  return a;
}
__global__ void nbody(body *__restrict__ after, body *__restrict__ before, body *velocity, unsigned offset, unsigned bodies, float dt, float damping, int tiles) {
  extern __shared__ body shared[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= bodies) return;
  body mine = before[offset + i];
  vector3 a = {0, 0, 0};
  for (int tile = 0; tile < tiles; tile++) {
    shared[threadIdx.x] = before[tile * blockDim.x + threadIdx.x];
    __syncthreads();
#pragma unroll 128
    for (unsigned k = 0; k < blockDim.x; k++) a = attract(a, mine, shared[k]);
    __syncthreads();
  }
  body v = velocity[offset + i];
  v.x += a.x * dt;
  v.y += a.y * dt;
  v.z += a.z * dt;
  v.x *= damping;
  v.y *= damping;
  v.z *= damping;
  mine.x += v.x * dt;
  mine.y += v.y * dt;
  mine.z += v.z * dt;
  after[offset + i] = mine;
  velocity[offset + i] = v;
}
void check_nbody() {
  const int block = 256, n = 2 * block;
  const double soft = 0.01;
  const float dt = 0.016f, damping = 0.995f;
  vector<body> p(n), v(n);
  for (int i = 0; i < n; i++) {
    p[i] = {real(8 * i), real(8 * i + 1), real(8 * i + 2), 1 + real(8 * i + 3) / 2};
    v[i] = {real(8 * i + 4), real(8 * i + 5), real(8 * i + 6), 1};
  }
  cudaMemcpyToSymbol(softening, &soft, sizeof soft);
  body *after = device<body>(nullptr, n), *dv = device(v.data(), n);
  nbody<<<n / block, block, block * sizeof(body)>>>(after, device(p.data(), n), dv, 0, n, dt, damping, n / block);
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
__global__ void tpacf(unsigned long *out, float *all_x, float *all_y, float *all_z, int sets, int elements) {
  unsigned bx = blockIdx.x, thread = threadIdx.x;
  bool self = bx < sets + 1;
  __shared__ point data[tp_block];
  __shared__ unsigned counts[bins][copies];
  for (unsigned w = 0; w < bins * copies; w += tp_block)
    if (w + thread < bins * copies) counts[(w + thread) / copies][(w + thread) % copies] = 0;
  float *data_x, *data_y, *data_z, *random_x, *random_y, *random_z;
  if (!self) {
    data_x = all_x, data_y = all_y, data_z = all_z;
    random_x = all_x + elements * (bx - sets), random_y = all_y + elements * (bx - sets), random_z = all_z + elements * (bx - sets);
  } else {
    random_x = all_x + elements * bx, random_y = all_y + elements * bx, random_z = all_z + elements * bx;
    data_x = random_x, data_y = random_y, data_z = random_z;
  }
  for (unsigned i = 0; i < elements; i += tp_block) {
    __syncthreads();
    if (thread + i < elements) data[thread] = {data_x[thread + i], data_y[thread + i], data_z[thread + i]};
    __syncthreads();
    for (unsigned j = self ? i + 1 : 0; j < elements; j += tp_block) {
      float x, y, z;
      if (thread + j < elements) x = random_x[thread + j], y = random_y[thread + j], z = random_z[thread + j];
      for (unsigned k = 0; k < tp_block && k + i < elements; k++) {
        float cosine = data[k].x * x + data[k].y * y + data[k].z * z;
        unsigned low = 0, high = bins;
        while (high > low + 1) {
          unsigned middle = (low + high) / 2;
          if (cosine >= bounds[middle]) high = middle;
          else low = middle;
        }
        if (cosine < bounds[low] && cosine >= bounds[high] && (!self || thread + j > i + k) && thread + j < elements)
          atomicAdd(&counts[high - 1][thread / 2], 1u);
      }
    }
  }
  unsigned copy = thread & (copies / 2 - 1), bin = thread / (copies / 2);
  for (unsigned offset = copies / 2; offset > 0; offset >>= 1)
    for (unsigned base = 0; base < bins; base += tp_block / (copies / 2)) {
      __syncthreads();
      if (copy < offset && base + bin < bins) {
        unsigned long sum = counts[base + bin][copy] + counts[base + bin][copy + offset];
        counts[base + bin][copy] = sum;
      }
    }
  __syncthreads();
  if (thread < bins) out[bins * bx + thread] = counts[thread][0];
}
void check_tpacf() {
  const int sets = 1, n = 512, total = n * (sets + 1), blocks = 2 * sets + 1;
  float bound[bins + 1];
  for (int k = 0; k <= bins; k++) bound[k] = float(std::cos(std::pow(10.0, k / 5.0) / 60 * 3.14159265358979 / 180));
  vector<float> p[3];
  for (int i = 0; i < total; i++) {
    double z = real(i), angle = 3.14159265358979 * real(i + total), r = std::sqrt(1 - z * z);
    p[0].push_back(float(r * std::cos(angle))), p[1].push_back(float(r * std::sin(angle))), p[2].push_back(float(z));
  }
  cudaMemcpyToSymbol(bounds, bound, sizeof bound);
  unsigned long *out = device<unsigned long>(nullptr, bins * blocks);
  tpacf<<<blocks, tp_block>>>(out, device(p[0].data(), total), device(p[1].data(), total), device(p[2].data(), total), sets, n);
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
struct neighbour {
  int x, y, z, number;
  long offset;
};
struct box {
  int x, y, z, number;
  long offset;
  int count;
  neighbour around[26];
};
struct lava_par {
  double alpha;
};
struct lava_dim {
  long boxes;
};
__device__ double dot(const particle &a, const particle &b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__global__ void lavamd(lava_par par, lava_dim dim, box *boxes, particle *position, double *charge, particle *force) {
  int bx = blockIdx.x, tx = threadIdx.x, w = tx;
  if (bx >= dim.boxes) return;
  double a2 = 2.0 * par.alpha * par.alpha;
  __shared__ particle mine[particles], theirs[particles];
  __shared__ double charges[particles];
  int first = boxes[bx].offset;
  particle *ra = &position[first], *fa = &force[first];
  while (w < particles) {
    mine[w] = ra[w];
    w += lava_threads;
  }
  w = tx;
  __syncthreads();
  for (int k = 0; k < 1 + boxes[bx].count; k++) {
    int other = k == 0 ? bx : boxes[bx].around[k - 1].number, start = boxes[other].offset;
    particle *rb = &position[start];
    double *qb = &charge[start];
    while (w < particles) {
      theirs[w] = rb[w];
      charges[w] = qb[w];
      w += lava_threads;
    }
    w = tx;
    __syncthreads();
    while (w < particles) {
      for (int j = 0; j < particles; j++) {
        double r2 = mine[w].v + theirs[j].v - dot(mine[w], theirs[j]);
        double u2 = a2 * r2, vij = exp(-u2), fs = 2 * vij;
        double dx = mine[w].x - theirs[j].x, dy = mine[w].y - theirs[j].y, dz = mine[w].z - theirs[j].z;
        double fx = fs * dx, fy = fs * dy, fz = fs * dz;
        fa[w].v += charges[j] * vij;
        fa[w].x += charges[j] * fx;
        fa[w].y += charges[j] * fy;
        fa[w].z += charges[j] * fz;
      }
      w += lava_threads;
    }
    w = tx;
    __syncthreads();
  }
}
void check_lavamd() {
  const int side = 2, count = side * side * side, n = count * particles;
  vector<box> b(count);
  for (int i = 0; i < count; i++) {
    b[i].x = i % side, b[i].y = i / side % side, b[i].z = i / side / side, b[i].number = i, b[i].offset = i * particles, b[i].count = 0;
    for (int j = 0; j < count; j++)
      if (j != i) b[i].around[b[i].count++] = {j % side, j / side % side, j / side / side, j, j * particles};
  }
  vector<particle> p(n);
  vector<double> q(n);
  for (int i = 0; i < n; i++) p[i] = {0.55 + real(5 * i) / 2.2, 0.55 + real(5 * i + 1) / 2.2, 0.55 + real(5 * i + 2) / 2.2, 0.55 + real(5 * i + 3) / 2.2}, q[i] = 0.55 + real(5 * i + 4) / 2.2;
  particle *force = device<particle>(nullptr, n);
  lava_par par = {0.5};
  lava_dim dim = {count};
  lavamd<<<count, lava_threads>>>(par, dim, device(b.data(), count), device(p.data(), n), device(q.data(), n), force);
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
__device__ void md5_short(const unsigned *words, unsigned length, unsigned *digest) {
  unsigned a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476, bits = 8 * length, w0 = words[0], w1 = words[1];
  switch (length) {
  case 0: w0 |= 0x80; break;
  case 1: w0 |= 0x8000; break;
  case 2: w0 |= 0x800000; break;
  case 3: w0 |= 0x80000000; break;
  case 4: w1 |= 0x80; break;
  case 5: w1 |= 0x8000; break;
  case 6: w1 |= 0x800000; break;
  case 7: w1 |= 0x80000000; break;
  }
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
  digest[0] = 0x67452301 + a;
  digest[1] = 0xefcdab89 + b;
  digest[2] = 0x98badcfe + c;
  digest[3] = 0x10325476 + d;
}
__global__ void md5hash(unsigned d0, unsigned d1, unsigned d2, unsigned d3, int keys, int length, int values, int *index, unsigned char *found, unsigned *digest) {
  int start = (blockIdx.x * blockDim.x + threadIdx.x) * values;
  alignas(4) unsigned char key[8] = {};
  unsigned rest = start;
#pragma unroll
  for (int i = 0; i < 8; i++) key[i] = rest % values, rest /= values;
  for (int j = 0; j < values && start + j < keys; j++) {
    unsigned result[4];
    md5_short((unsigned *)key, length, result);
    if (result[0] == d0 && result[1] == d1 && result[2] == d2 && result[3] == d3) {
      *index = start + j;
      for (int i = 0; i < 8; i++) found[i] = key[i];
      for (int i = 0; i < 4; i++) digest[i] = result[i];
    }
    ++key[0];
  }
}
void check_md5() {
  const int blocks = 2, values = 25, length = 6, keys = blocks * 384 * values - 30, wanted = 12345;
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
  int none = -1, *index = device(&none, 1);
  unsigned char *key = device<unsigned char>(nullptr, 8);
  unsigned *result = device<unsigned>(nullptr, 4);
  md5hash<<<blocks, 384>>>(digest[0], digest[1], digest[2], digest[3], keys, length, values, index, key, result);
  expect("key's index", 0, *host(index, 1), wanted, 0);
  unsigned char *k = host(key, 8);
  for (int i = 0; i < length; i++) expect("key", i, int(k[i]), int(block[i]), 0);
  for (int i = 0; i < 4; i++) expect("digest", i, host(result, 4)[i], digest[i], 0);
}

// Resampling of a particle filter: each thread walks through the cumulated weights until it meets its own number.
__global__ void particle_filter(double *x, double *y, double *cdf, double *u, double *xj, double *yj, int count) {
  int block = blockIdx.x, i = blockDim.x * block + threadIdx.x;
  if (i < count) {
    int index = -1;
    for (int k = 0; k < count; k++)
      if (cdf[k] >= u[i]) {
        index = k;
        break;
      }
    if (index == -1) index = count - 1;
    xj[i] = x[index];
    yj[i] = y[index];
  }
}
void check_particles() {
  const int n = 1000;
  vector<double> x(n), y(n), cdf(n), u(n);
  double sum = 0;
  for (int i = 0; i < n; i++) x[i] = real(i), y[i] = real(i + n), sum += 1.1 + real(i + 2 * n), cdf[i] = sum, u[i] = (i + 0.3) / n;
  for (int i = 0; i < n; i++) cdf[i] /= sum;
  double *xj = device<double>(nullptr, n), *yj = device<double>(nullptr, n);
  particle_filter<<<(n + 127) / 128, 128>>>(device(x.data(), n), device(y.data(), n), device(cdf.data(), n), device(u.data(), n), xj, yj, n);
  double *rx = host(xj, n), *ry = host(yj, n);
  for (int i = 0, k = 0; i < n; i++) {
    while (k < n - 1 && cdf[k] < u[i]) k++;
    expect("particle x", i, rx[i], x[k], 0);
    expect("particle y", i, ry[i], y[k], 0);
  }
}

int main() {
  check_black_scholes();
  check_quasirandom();
  check_gaussian();
  check_sgemm();
  check_transpose();
  check_binomial();
  check_fdtd3d();
  check_nbody();
  check_tpacf();
  check_lavamd();
  check_md5();
  check_particles();
  return finish("slate_arcs");
}
