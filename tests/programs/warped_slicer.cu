// Kernels of Warped-Slicer's table II: our own programs of the published algorithms; blocks, tiles and accesses per thread as in the public ones (CUDA samples: BLK, DXT, IMG; Rodinia: BFS, HOT, KNN; Parboil: LBM, MM, MVP; ISPASS 2009: NN), at small sizes.
#include "check.h"
#include <algorithm>
#include <cstring>
#include <vector>
using std::max;
using std::min;

// MM: C = beta C + alpha A B', sixteen columns of C per thread, a strip of B in shared memory.
const int mm_wide = 16, mm_strip = 8, mm_tall = mm_wide * mm_strip;
__global__ void ws_mm(float *c, int c_pitch, float keep, float scale, const float *b, int b_pitch, const float *a, int a_pitch, int depth) {
  __shared__ float strip[mm_strip][mm_wide];
  const int tx = threadIdx.x, ty = threadIdx.y, first = mm_wide * blockIdx.y;
  const int row = mm_tall * blockIdx.x + mm_wide * ty + tx;
  float sums[mm_wide] = {};
  a += row, b += first + tx + ty * b_pitch;
  for (int left = depth; left > 0; left -= mm_strip) {
    strip[ty][tx] = *b;
    b += mm_strip * b_pitch;
    __syncthreads();
#pragma unroll
    for (const auto &line : strip) {
      const float factor = *a;
      a += a_pitch;
      for (int n = 0; n < mm_wide; n++) sums[n] = fmaf(line[n], factor, sums[n]);
    }
    __syncthreads();
  }
  c += row + first * c_pitch;
  for (float sum : sums) *c = scale * sum + keep * *c, c += c_pitch;
}
void check_mm() {
  const int m = sized(256, 1024), n = sized(96, 1056), k = sized(64, 576);
  std::vector<float> a(m * k), b(n * k), c(m * n);
  for (int i = 0; i < m * k; i++) a[i] = real(i);
  for (int i = 0; i < n * k; i++) b[i] = real(i + 70000);
  for (int i = 0; i < m * n; i++) c[i] = real(i + 140000);
  float *z = device(c.data(), m * n);
  ws_mm<<<dim3(m / mm_tall, n / mm_wide), dim3(mm_wide, mm_strip)>>>(z, m, 0.75f, 1.25f, device(b.data(), n * k), n, device(a.data(), m * k), m, k); if (full) return;
  float *got = host(z, m * n);
  for (int i = 0; i < m * n; i++) {
    double sum = 0;
    for (int j = 0; j < k; j++) sum += double(a[i % m + j * m]) * b[i / m + j * n];
    expect("mm", i, double(got[i]), 0.75 * c[i] + 1.25 * sum, 1e-4);
  }
}

// HOT: a stencil's steps on a tile of 16 by 16 that shrinks by a rim per step; the 2.0 is a double, as in Rodinia's source.
const int hot_edge = 16;
struct Chip { float rx, ry, rz, capacity, step; };
__device__ __forceinline__ double hot_bend(float own, float one, float other) { return one + other - 2.0 * own; }
// The part of a tile's line, from a cell on, that lies on the chip.
__device__ __forceinline__ int2 hot_span(int from, int cells) { return make_int2(max(-from, 0), min(cells - from, hot_edge) - 1); }
__device__ __forceinline__ bool hot_within(int low, int i, int high) { return low <= i && i <= high; }
__global__ void ws_hot(float *to, const float *from, const float *power, Chip chip, int columns, int rows, int2 rim, int steps) {
  __shared__ float source[hot_edge][hot_edge], heat[hot_edge][hot_edge], next[hot_edge][hot_edge];
  const int i = threadIdx.y, j = threadIdx.x, pace = hot_edge - 2 * steps;
  const int left = pace * blockIdx.x - rim.x, top = pace * blockIdx.y - rim.y;
  const int2 across = hot_span(left, columns), down = hot_span(top, rows);
  const bool real = hot_within(across.x, j, across.y) && hot_within(down.x, i, down.y);
  const int cell = (top + i) * columns + left + j;
  if (real) {
    source[i][j] = power[cell];
    heat[i][j] = from[cell];
  }
  __syncthreads();
  const float per_x = 1 / chip.rx, per_y = 1 / chip.ry, per_z = 1 / chip.rz, gain = chip.step / chip.capacity;
  const int east = min(j + 1, across.y), west = max(j - 1, across.x), south = min(i + 1, down.y), north = max(i - 1, down.x);
  int low = 1;
  for (;; low++) {
    const int high = hot_edge - 1 - low;
    const bool live = real && hot_within(low, i, high) && hot_within(low, j, high);
    if (live) {
      const float own = heat[i][j];
      const double sides = hot_bend(own, heat[i][west], heat[i][east]) * per_x, ends = hot_bend(own, heat[north][j], heat[south][j]) * per_y;
      next[i][j] = own + gain * (source[i][j] + ends + sides + (80.0f - own) * per_z);
    }
    __syncthreads();
    if (low == steps) {
      if (live) to[cell] = next[i][j];
      return;
    }
    if (live) heat[i][j] = next[i][j];
    __syncthreads();
  }
}
void check_hot() {
  const int edge = sized(60, 1024), steps = 2, tiles = (edge + 11) / (hot_edge - 2 * steps), cells = edge * edge;
  const float capacity = 0.8f, rx = 1.5f, ry = 2.5f, rz = 20, step = 0.1f;
  std::vector<float> heat(cells), power(cells);
  for (int i = 0; i < cells; i++) heat[i] = 90 + 10 * real(i), power[i] = 5 + 5 * real(i + cells);
  float *p = device(power.data(), cells), *planes[2] = {device(heat.data(), cells), device<float>(nullptr, cells)};
  for (int pass = 0; pass < 2; pass++)
    ws_hot<<<dim3(tiles, tiles), dim3(hot_edge, hot_edge)>>>(planes[1 - pass], planes[pass], p, Chip{rx, ry, rz, capacity, step}, edge, edge, make_int2(steps, steps), steps);
  if (full) return;
  std::vector<double> now(heat.begin(), heat.end()), then(cells);
  for (int pass = 0; pass < 2 * steps; pass++, std::swap(now, then))
    for (int y = 0; y < edge; y++)
      for (int x = 0; x < edge; x++) {
        double t = now[y * edge + x], up = now[max(y - 1, 0) * edge + x], down = now[min(y + 1, edge - 1) * edge + x];
        double west = now[y * edge + max(x - 1, 0)], east = now[y * edge + min(x + 1, edge - 1)];
        then[y * edge + x] = t + step / capacity * (power[y * edge + x] + (up + down - 2 * t) / ry + (west + east - 2 * t) / rx + (80 - t) / rz);
      }
  float *got = host(planes[0], cells);
  for (int i = 0; i < cells; i++) expect("hot", i, double(got[i]), now[i], 1e-5);
}

// KNN: the distance of a record to a point.
struct Place { float latitude, longitude; };
__device__ __forceinline__ float knn_apart(const Place &a, const Place &b) {
  float north = a.latitude - b.latitude, east = a.longitude - b.longitude;
  return sqrtf(east * east + north * north);
}
__global__ void ws_knn(Place here, int count, float *distances, const Place *places) {
  const int block = blockIdx.x + blockIdx.y * gridDim.x, record = threadIdx.x + block * blockDim.x;
  if (record >= count) return;
  distances[record] = knn_apart(places[record], here);
}
void check_knn() {
  const int count = sized(24 * 256 - 57, 2673 * 256);
  std::vector<Place> places(count);
  for (int i = 0; i < count; i++) places[i] = {90 * real(2 * i), 180 * real(2 * i + 1)};
  float *d = device<float>(nullptr, count);
  Place *known = device(places.data(), count);
  for (int i = 0; i < sized(1, 27); i++) ws_knn<<<(count + 255) / 256, 256>>>(Place{30, 90}, count, d, known);
  if (full) return;
  float *got = host(d, count);
  for (int i = 0; i < count; i++) expect("knn", i, double(got[i]), std::hypot(30.0 - places[i].latitude, 90.0 - places[i].longitude), 1e-5);
}

// LBM: one step, D3Q19: gathers 19 distributions from the neighbours, collides, stores them in place.
const int lbm_width = 120, lbm_pitch = 128;
template <int rows, int depth> struct Channel {
  static const int margin = 2 * lbm_pitch * rows, cells = lbm_pitch * rows * (depth + 4), all = 20 * cells + 40 * lbm_pitch * rows;
};
enum { C, N, S, E, W, T, B, NE, NW, SE, SW, NT, NB, ST, SB, ET, EB, WT, WB, FLAGS };
enum { OBSTACLE = 1, ACCELERATED = 2 };
// The distributions of a way and of the opposite one: to gather, to turn round, to relax, to store.
template <int x, int y, int z, int forth, int back> struct Pair {
  float ahead, behind;
  template <int rows, int cells> __device__ __forceinline__ void gather(const float *cell) {
    const int way = x + lbm_pitch * (y + rows * z);
    ahead = cell[cells * forth - way], behind = cell[cells * back + way];
  }
  template <int cells> __device__ __forceinline__ void store(float *cell) const { cell[cells * forth] = ahead, cell[cells * back] = behind; }
  __device__ __forceinline__ void turn() {
    const float was = ahead;
    ahead = behind;
    behind = was;
  }
  template <int sign> __device__ __forceinline__ void flow(float &sum) const {
    if (sign > 0) sum = sum + ahead - behind;
    if (sign < 0) sum = sum - ahead + behind;
  }
  __device__ __forceinline__ void moments(float &mass, float3 &flux) const {
    mass += ahead, mass += behind;
    flow<x>(flux.x), flow<y>(flux.y), flow<z>(flux.z);
  }
  __device__ __forceinline__ void relax(float3 u, float keep, float base, float square) {
    const int axes = x * x + y * y + z * z;
    const float share = base * (axes == 1 ? 1.0f / 18 : 1.0f / 36);
    float along = x ? x * u.x : y ? y * u.y : z * u.z;
    if (x && y) along += y * u.y;
    if ((x || y) && z) along += z * u.z;
    ahead = share * (along * (3 + 4.5f * along) - square) + keep * ahead;
    behind = share * (along * (4.5f * along - 3) - square) + keep * behind;
  }
};
struct Ways {
  Pair<0, 1, 0, N, S> ns; Pair<1, 0, 0, E, W> ew; Pair<0, 0, 1, T, B> tb;
  Pair<1, 1, 0, NE, SW> rising; Pair<-1, 1, 0, NW, SE> falling; Pair<0, 1, 1, NT, SB> nt;
  Pair<0, 1, -1, NB, ST> nb; Pair<1, 0, 1, ET, WB> et; Pair<1, 0, -1, EB, WT> eb;
  template <typename F> __device__ __forceinline__ void each(F f) { f(ns), f(ew), f(tb), f(rising), f(falling), f(nt), f(nb), f(et), f(eb); }
};
template <int rows, int depth> __global__ void ws_lbm(float *to, const float *from) {
  const int lbm_cells = Channel<rows, depth>::cells, cell = threadIdx.x + lbm_pitch * (blockIdx.x + rows * blockIdx.y);
  from += cell, to += cell;
  Ways ways;
  float rest = from[lbm_cells * C];
  ways.each([&](auto &pair) { pair.template gather<rows, lbm_cells>(from); });
  const unsigned flags = __float_as_uint(from[lbm_cells * FLAGS]);
  if (!(flags & OBSTACLE)) {
    const float omega = 1.95f, keep = 1 - omega;
    float mass = rest;
    float3 u = {0, 0, 0};
    ways.each([&](auto &pair) { pair.moments(mass, u); });
    u = flags & ACCELERATED ? make_float3(0.005f, 0.002f, 0) : make_float3(u.x / mass, u.y / mass, u.z / mass);
    const float square = (u.z * u.z + u.y * u.y + u.x * u.x) * 1.5f - 1, base = mass * omega;
    ways.each([&](auto &pair) { pair.relax(u, keep, base, square); });
    rest = rest * keep - square * (base * (1.0f / 3));
  } else
    ways.each([&](auto &pair) { pair.turn(); });
  to[lbm_cells * C] = rest;
  ways.each([&](auto &pair) { pair.template store<lbm_cells>(to); });
}
template <int lbm_rows, int lbm_depth> void check_lbm_of() {
  const int lbm_cells = Channel<lbm_rows, lbm_depth>::cells, lbm_all = Channel<lbm_rows, lbm_depth>::all, lbm_margin = Channel<lbm_rows, lbm_depth>::margin;
  // Direction of each field in x (east), y (north), z (top), and its weight by the number of axes.
  const int way[19][3] = {{0, 0, 0}, {0, 1, 0}, {0, -1, 0}, {1, 0, 0}, {-1, 0, 0}, {0, 0, 1}, {0, 0, -1}, {1, 1, 0}, {-1, 1, 0}, {1, -1, 0},
                          {-1, -1, 0}, {0, 1, 1}, {0, 1, -1}, {0, -1, 1}, {0, -1, -1}, {1, 0, 1}, {1, 0, -1}, {-1, 0, 1}, {-1, 0, -1}};
  const double weight[3] = {1.0 / 3, 1.0 / 18, 1.0 / 36}, omega = 1.95f;
  std::vector<float> grid(lbm_all);
  for (int f = 0; f < 20; f++)
    for (int i = 0; i < lbm_cells; i++) {
      int axes = f < 19 ? abs(way[f][0]) + abs(way[f][1]) + abs(way[f][2]) : 0, x = i % lbm_pitch, y = i / lbm_pitch % lbm_rows, z = i / lbm_pitch / lbm_rows - 2;
      // Walls at both ends of each row, one row of walls, one that is driven: few layers of 150 are.
      unsigned flags = x == 0 || x >= lbm_width - 1 || (y == 0 && z == 0) ? OBSTACLE : y == 1 && z == 1 ? ACCELERATED : 0;
      float &cell = grid[f * lbm_cells + i];
      if (f == FLAGS) memcpy(&cell, &flags, 4);
      else cell = weight[axes] * (1 + 0.1 * real(f * lbm_cells + i));
    }
  float *from = device(grid.data(), lbm_all), *to = device(grid.data(), lbm_all);
  ws_lbm<lbm_rows, lbm_depth><<<dim3(lbm_rows, lbm_depth), lbm_width>>>(to + lbm_margin, from + lbm_margin); if (full) return;
  float *got = host(to, lbm_all);
  for (int z = 0; z < lbm_depth; z++)
    for (int y = 0; y < lbm_rows; y++)
      for (int x = 0; x < lbm_width; x++) {
        int at = lbm_margin + x + lbm_pitch * (y + lbm_rows * z);
        double in[19], density = 0, u[3] = {};
        for (int f = 0; f < 19; f++) {
          in[f] = grid[f * lbm_cells + at - way[f][0] - lbm_pitch * (way[f][1] + lbm_rows * way[f][2])];
          density += in[f];
          for (int a = 0; a < 3; a++) u[a] += way[f][a] * in[f];
        }
        unsigned flags;
        memcpy(&flags, &grid[FLAGS * lbm_cells + at], 4);
        for (double &v : u) v /= density;
        if (flags & ACCELERATED) u[0] = 0.005, u[1] = 0.002, u[2] = 0;
        for (int f = 0; f < 19; f++) {
          double along = 0, square = 0, out = 0; int axes = 0;
          for (int a = 0; a < 3; a++) along += way[f][a] * u[a], square += u[a] * u[a], axes += abs(way[f][a]);
          if (flags & OBSTACLE) {
            for (int g = 0; g < 19; g++)
              if (way[g][0] == -way[f][0] && way[g][1] == -way[f][1] && way[g][2] == -way[f][2]) out = in[g];
          } else
            out = (1 - omega) * in[f] + omega * weight[axes] * density * (1 + 3 * along + 4.5 * along * along - 1.5 * square);
          expect("lbm", f * lbm_cells + at, double(got[f * lbm_cells + at]), out, 1e-5);
        }
      }
}
void check_lbm() { full ? check_lbm_of<120, 150>() : check_lbm_of<6, 5>(); }

// BLK: prices of a call and a put per option; each thread walks in strides of the grid.
__device__ __forceinline__ float blk_below(float d) {
  const float density = __expf(d * d * -0.5f) * 0.39894228040143267794f, k = 1.0f / fmaf(fabsf(d), 0.2316419f, 1.0f);
  float series = 1.330274429f;
  for (float term : {-1.821255978f, 1.781477937f, -0.356563782f, 0.31938153f}) series = series * k + term;
  const float above = series * k * density;
  return d <= 0 ? above : 1.0f - above;
}
__device__ __forceinline__ float2 blk_price(float now, float agreed, float years, float rate, float spread) {
  const float wide = spread * sqrtf(years), drift = (spread * spread * 0.5f + rate) * years;
  const float high = (drift + __logf(now / agreed)) / wide, owed = agreed * __expf(years * -rate);
  const float above = blk_below(high), below = blk_below(high - wide);
  return make_float2(now * above - owed * below, owed * (1.0f - below) - now * (1.0f - above));
}
__global__ void ws_blk(int count, float rate, float spread, const float *years, const float *strike, const float *stock, float *put, float *call) {
  int option = threadIdx.x + blockIdx.x * blockDim.x;
  while (option < count) {
    const float2 price = blk_price(stock[option], strike[option], years[option], rate, spread);
    call[option] = price.x, put[option] = price.y;
    option += gridDim.x * blockDim.x;
  }
}
void check_blk() {
  const int blocks = sized(12, 480), count = blocks * 128 * sized(5, 65) - 77;
  std::vector<float> stock(count), strike(count), years(count);
  for (int i = 0; i < count; i++) stock[i] = 17.5f + 12.5f * real(i), strike[i] = 50.5f + 49.5f * real(i + count), years[i] = 5.2f + 4.8f * real(i + 2 * count);
  float *c = device<float>(nullptr, count), *p = device<float>(nullptr, count);
  float *t = device(years.data(), count), *x = device(strike.data(), count), *s = device(stock.data(), count);
  for (int i = 0; i < sized(1, 2); i++) ws_blk<<<blocks, 128>>>(count, 0.02f, 0.30f, t, x, s, p, c);
  if (full) return;
  float *call = host(c, count), *put = host(p, count);
  for (int i = 0; i < count; i++) {
    double s = stock[i], x = strike[i] * std::exp(-0.02 * years[i]), wide = 0.3 * std::sqrt(years[i]);
    double d1 = std::log(s / x) / wide + wide / 2, d2 = d1 - wide;
    double n1 = std::erfc(-d1 / std::sqrt(2)) / 2, n2 = std::erfc(-d2 / std::sqrt(2)) / 2;
    expect("call", i, double(call[i]), s * n1 - x * n2, 1e-4);
    expect("put", i, double(put[i]), x * (1 - n2) - s * (1 - n1), 1e-4);
  }
}

// IMG: non-local means, a window and patches of 7 by 7 texels, bytes read as fractions through a texture.
const int img_reach = 3;
const float img_area = (2 * img_reach + 1) * (2 * img_reach + 1);
__device__ __forceinline__ float img_unlike(float4 a, float4 b) {
  const float r = a.x - b.x, g = a.y - b.y, blue = a.z - b.z;
  return r * r + g * g + blue * blue;
}
__device__ __forceinline__ float img_apart(cudaTextureObject_t image, float2 a, float2 b) {
  float sum = 0;
  for (float down = -img_reach; down <= img_reach; down++)
    for (float right = -img_reach; right <= img_reach; right++)
      sum += img_unlike(tex2D<float4>(image, a.x + right, a.y + down), tex2D<float4>(image, b.x + right, b.y + down));
  return sum;
}
__device__ __forceinline__ unsigned img_byte(float own, float mean, float part, int shift) { return int((mean + part * (own - mean)) * 255.0f) << shift; }
__global__ void ws_img(cudaTextureObject_t image, unsigned *out, float blend, float noise, int height, int width) {
  const int row = threadIdx.y + blockIdx.y * blockDim.y, column = threadIdx.x + blockIdx.x * blockDim.x;
  if (row >= height || column >= width) return;
  const float2 centre = {column + 0.5f, row + 0.5f};
  const float share = 1.0f / img_area;
  float4 sum = {0, 0, 0, 0};
  float alike = 0;
  for (float v = -img_reach; v <= img_reach; v++)
    for (float u = -img_reach; u <= img_reach; u++) {
      const float2 there = {centre.x + u, centre.y + v};
      const float weight = __expf(-(share * (u * u + v * v) + noise * img_apart(image, there, centre)));
      const float4 texel = tex2D<float4>(image, there.x, there.y);
      if (weight > 0.1f) alike += share;
      sum = make_float4(sum.x + weight * texel.x, sum.y + weight * texel.y, sum.z + weight * texel.z, sum.w + weight);
    }
  const float4 own = tex2D<float4>(image, centre.x, centre.y);
  const float part = alike > 0.1f ? blend : 1.0f - blend, scale = 1.0f / sum.w;
  out[row * width + column] = img_byte(own.x, scale * sum.x, part, 0) | img_byte(own.y, scale * sum.y, part, 8) | img_byte(own.z, scale * sum.z, part, 16);
}
void check_img() {
  const int width = sized(32, 320), height = sized(24, 408), count = width * height;
  const float noise = 1 / (0.32f * 0.32f), blend = 0.2f; std::vector<uchar4> image(count);
  for (int i = 0; i < count; i++) {
    auto tone = [&](int base, int k) { return (unsigned char)(base + 4 * (i % width) + 2 * (i / width) + draw(3 * i + k) % 24); };
    image[i] = make_uchar4(tone(20, 0), tone(60, 1), tone(40, 2), 0);
  }
  cudaArray_t array; cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>();
  cudaMallocArray(&array, &bytes, width, height);
  cudaMemcpy2DToArray(array, 0, 0, image.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice);
  cudaResourceDesc resource = {}; resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.filterMode = cudaFilterModeLinear; how.readMode = cudaReadModeNormalizedFloat;
  cudaTextureObject_t texture = 0; cudaCreateTextureObject(&texture, &resource, &how, nullptr);
  unsigned *d = device<unsigned>(nullptr, count);
  ws_img<<<dim3(width / 8, height / 8), dim3(8, 8)>>>(texture, d, blend, noise, height, width); if (full) return;
  unsigned *got = host(d, count);
  auto texel = [&](int x, int y, int k) {
    uchar4 c = image[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)];
    return (k == 0 ? c.x : k == 1 ? c.y : c.z) / 255.0;
  };
  for (int p = 0; p < count; p++) {
    double sum[3] = {}, total = 0;
    int x = p % width, y = p / width, similar = 0;
    for (int i = -3; i <= 3; i++)
      for (int j = -3; j <= 3; j++) {
        double distance = 0;
        for (int q = 0; q < 49 * 3; q++) {
          int dx = q / 3 % 7 - 3, dy = q / 21 - 3;
          double d = texel(x + j + dx, y + i + dy, q % 3) - texel(x + dx, y + dy, q % 3);
          distance += d * d;
        }
        double weight = std::exp(-(distance * noise + (i * i + j * j) / 49.0));
        for (int k = 0; k < 3; k++) sum[k] += weight * texel(x + j, y + i, k);
        total += weight, similar += weight > 0.1;
      }
    double part = similar >= 5 ? blend : 1 - blend;
    for (int k = 0; k < 3; k++) {
      double value = sum[k] / total * (1 - part) + texel(x, y, k) * part;
      expect("img", 3 * p + k, double(got[p] >> 8 * k & 255) + 0.5 - 255 * value, 0.0, 0.52);
    }
    expect("img alpha", p, got[p] >> 24, 0u, 0);
  }
}

// DXT: 16 pixels to two colours of 5-6-5 bits and 2 bits each; 64 threads try 992 and 160 ways along the line of colours.
const int dxt_threads = 64, dxt_four = 992, dxt_three = 160;
// Parts of the first colour per index, and sums of squares and products packed into bytes.
__constant__ float dxt_part4[4] = {9, 0, 6, 3}, dxt_part3[4] = {4, 0, 2, 2}, dxt_metric[3] = {1, 1, 1};
__constant__ int dxt_squares4[4] = {0x090000, 0x000900, 0x040102, 0x010402}, dxt_squares3[4] = {0x040000, 0x000400, 0x010101, 0x010101};
struct Block { float tones[16][3], sums[16][3], spread[16][6], along[16]; int order[16]; };
struct Fit { float error; unsigned way; unsigned short first, last; };
// A channel of a colour in 5 or 6 bits, added to the word, and what it stands for.
__device__ __forceinline__ float dxt_level(float v, int channel, unsigned short &word) {
  const float level = rintf(__saturatef(v) * (channel == 1 ? 63 : 31));
  word |= (unsigned short)level << (channel == 0 ? 11 : channel == 1 ? 5 : 0);
  return level * (channel == 1 ? 0.01583151765563f : 0.03227752766457f);
}
// Least squares: the two colours for one way to share out the pixels, a channel at a time.
template <bool four> __device__ Fit dxt_fit(const Block &block, unsigned way, const float (&sum)[3]) {
  float ones[3] = {};
  int squares = 0;
  unsigned rest = way;
  for (const auto &tone : block.tones) {
    const int index = rest & 3;
    const float part = four ? dxt_part4[index] : dxt_part3[index];
    squares += four ? dxt_squares4[index] : dxt_squares3[index];
    for (int c = 0; c < 3; c++) ones[c] += tone[c] * part;
    rest >>= 2;
  }
  const float cross = squares & 255, second = squares >> 8 & 255, leading = squares >> 16;
  const float inverse = 1.0f / (second * leading - cross * cross);
  Fit fit = {0, way, 0, 0};
  for (int c = 0; c < 3; c++) {
    const float one = ones[c], other = sum[c] * (four ? 9.0f : 4.0f) - one;
    const float a = dxt_level(inverse * (second * one - cross * other), c, fit.first), b = dxt_level(inverse * (leading * other - cross * one), c, fit.last);
    fit.error += dxt_metric[c] * (leading * a * a + second * b * b + 2.0f * (cross * a * b - other * b - one * a));
  }
  fit.error *= four ? 1.0f / 9 : 0.25f;
  return fit;
}
__device__ __forceinline__ float dxt_dot(const float (&v)[3], float x, float y, float z) { return z * v[2] + y * v[1] + x * v[0]; }
// Sixteen lanes: colours, their sum, their line by eight steps of the power method, their order along it.
__device__ __forceinline__ void dxt_sort(Block &block, unsigned pixel, int lane) {
  const unsigned lanes = 0xffff;
  float own[3], off[3], axis[3] = {1, 1, 1};
  for (int c = 0; c < 3; c++) own[c] = (pixel >> 8 * c & 255) * (1.0f / 255), block.sums[lane][c] = own[c];
  for (int step = 8; step; step /= 2) {
    __syncwarp(lanes);
    const float *other = block.sums[lane ^ step];
    const float r = other[0], g = other[1], b = other[2];
    __syncwarp(lanes);
    block.sums[lane][0] += r, block.sums[lane][1] += g, block.sums[lane][2] += b;
  }
  __syncwarp(lanes);
  for (int c = 0; c < 3; c++) off[c] = own[c] - 1.0f / 16 * block.sums[0][c];
  float *entry = block.spread[lane];
  for (int c = 0; c < 3; c++)
    for (int d = c; d < 3; d++) *entry++ = off[c] * off[d];
  __syncwarp(lanes);
  for (int half = 8; half; half /= 2) {
    if (lane < half)
      for (int k = 0; k < 6; k++) block.spread[lane][k] += block.spread[lane + half][k];
    __syncwarp(lanes);
  }
  const float *m = block.spread[0];
  for (int step = 0; step < 8; step++) {
    const float r = dxt_dot(axis, m[0], m[1], m[2]), g = dxt_dot(axis, m[1], m[3], m[4]), b = dxt_dot(axis, m[2], m[4], m[5]);
    const float scale = 1.0f / fmaxf(r, fmaxf(g, b));
    axis[0] = scale * r, axis[1] = scale * g, axis[2] = scale * b;
  }
  const float mine = dxt_dot(own, axis[0], axis[1], axis[2]);
  block.along[lane] = mine;
  __syncwarp(lanes);
  int rank = 0;
#pragma unroll
  for (float other : block.along) rank += mine > other;
  block.order[lane] = rank;
  __syncwarp(lanes);
  for (int before = 0; before < 15; before++) {
    if (before < lane && block.order[before] == rank) block.order[lane] = ++rank;
    __syncwarp(lanes);
  }
  for (int c = 0; c < 3; c++) block.tones[rank][c] = own[c];
}
__global__ void ws_dxt(int start, uint2 *out, const unsigned *image, const unsigned *ways) {
  __shared__ Block block;
  __shared__ unsigned threes[dxt_three];
  __shared__ float errors[dxt_threads];
  __shared__ int places[dxt_threads];
  const int me = threadIdx.x, where = start + blockIdx.x;
  const unsigned odd = 0x55555555;
  if (me < 16) dxt_sort(block, image[16 * where + me], me);
  __syncthreads();
  const float sum[3] = {block.sums[0][0], block.sums[0][1], block.sums[0][2]};
  Fit best = {3.402823466e38f, 0, 0, 0};
  for (int at = me; at < dxt_four; at += dxt_threads) {
    const unsigned way = ways[at];
    if (at < dxt_three) threes[at] = way;
    const Fit fit = dxt_fit<true>(block, way, sum);
    if (fit.error < best.error) best = fit;
  }
  if (best.last > best.first) best = {best.error, best.way ^ odd, best.last, best.first};
  __syncthreads();
  for (int at = me; at < dxt_three; at += dxt_threads) {
    const Fit fit = dxt_fit<false>(block, threes[at], sum);
    if (fit.error < best.error) best = fit.first > fit.last ? Fit{fit.error, fit.way ^ (~fit.way >> 1 & odd), fit.last, fit.first} : fit;
  }
  places[me] = me, errors[me] = best.error;
  for (int half = dxt_threads / 2; half; half /= 2) {
    __syncthreads();
    const int far = me + half;
    const bool inside = far < dxt_threads;
    const int place = inside ? places[far] : 0;
    const float error = inside ? errors[far] : 3.402823466e38f;
    const bool lower = error < errors[me];
    __syncthreads();
    if (lower) places[me] = place, errors[me] = error;
  }
  __syncthreads();
  const bool chosen = places[0] == me;
  __syncthreads();
  if (!chosen) return;
  unsigned indices = 0;
  const unsigned way = best.first != best.last ? best.way : 0;
  for (int i = 15; i >= 0; i--) indices = indices << 2 | (way >> 2 * block.order[i] & 3);
  out[where] = make_uint2(best.first | unsigned(best.last) << 16, indices);
}
// Every way to cut 16 pixels in a row into clusters at index 0, 2, (3,) 1: with three clusters 151, with four 815 of them.
std::vector<unsigned> dxt_ways() {
  std::vector<unsigned> ways;
  for (int clusters = 3; clusters <= 4; clusters++)
    for (int i = 15; i >= 0; i--)
      for (int j = i ? 16 : 15; j >= i; j--)
        for (int k = clusters == 3 ? j : j ? 16 : 15; k >= j; k--) {
          unsigned way = 0;
          for (int p = 0; p < 16; p++) way |= unsigned(p < i ? 0 : p < j ? 2 : p < k ? 3 : 1) << 2 * p;
          if (clusters == 3 || k > j) ways.push_back(way);
          if (clusters == 3) break;
        }
  return ways;
}
void check_dxt() {
  const int blocks = sized(12, 1920);
  std::vector<unsigned> ways = dxt_ways(), image(16 * blocks);
  std::vector<unsigned> table(ways.begin(), ways.begin() + 151);
  if (ways.size() != 151 + 815) failures++;
  table.resize(dxt_three, 0x000aa555);
  table.insert(table.end(), ways.begin() + 151, ways.end());
  table.resize(1024, 0x00aaff55);
  for (int i = 0; i < 16 * blocks; i++) {
    unsigned block = i / 16, along = draw(i) % 64, pixel = 0;
    for (int k = 0; k < 3; k++) pixel |= (40 + draw(block * 3 + k) % 100 + along * (1 + draw(block * 5 + k) % 16) / 16 + draw(i * 7 + k) % 12) << 8 * k;
    image[i] = pixel;
  }
  uint2 *d = device<uint2>(nullptr, blocks);
  ws_dxt<<<blocks, dxt_threads>>>(0, d, device(image.data(), 16 * blocks), device(table.data(), 1024)); if (full) return;
  uint2 *got = host(d, blocks);
  for (int block = 0; block < blocks; block++) {
    double pixels[16][3], mean[3] = {}, axis[3] = {1, 1, 1};
    for (int i = 0; i < 48; i++) pixels[i / 3][i % 3] = (image[16 * block + i / 3] >> 8 * (i % 3) & 255) / 255.0, mean[i % 3] += pixels[i / 3][i % 3] / 16;
    for (int step = 0; step < 8; step++) {
      double next[3] = {}, most = 0;
      for (auto &p : pixels) {
        double dot = 0;
        for (int k = 0; k < 3; k++) dot += (p[k] - mean[k]) * axis[k];
        for (int k = 0; k < 3; k++) next[k] += (p[k] - mean[k]) * dot;
      }
      for (double v : next) most = max(most, v);
      for (int k = 0; k < 3; k++) axis[k] = next[k] / most;
    }
    int order[16];
    for (int i = 0; i < 16; i++) order[i] = i;
    auto dot = [&](int i) { return pixels[i][0] * axis[0] + pixels[i][1] * axis[1] + pixels[i][2] * axis[2]; };
    std::stable_sort(order, order + 16, [&](int a, int b) { return dot(a) < dot(b); });
    double best = 1e9;
    for (int w = 0; w < dxt_four + dxt_three; w++) {
      bool four = w < dxt_four;
      const double parts[2][4] = {{1, 0, 0.5, 0.5}, {1, 0, 2.0 / 3, 1.0 / 3}};
      double aa = 0, ab = 0, bb = 0, ax[3] = {}, bx[3] = {}, error = 0;
      for (int i = 0; i < 16; i++) {
        double a = parts[four][table[four ? w : w - dxt_four] >> 2 * i & 3], b = 1 - a;
        aa += a * a, ab += a * b, bb += b * b;
        for (int k = 0; k < 3; k++) ax[k] += a * pixels[order[i]][k], bx[k] += b * pixels[order[i]][k];
      }
      for (int k = 0; k < 3; k++) {
        double levels = k == 1 ? 63 : 31, determinant = aa * bb - ab * ab;
        double a = std::rint(min(max((ax[k] * bb - bx[k] * ab) / determinant, 0.0), 1.0) * levels) / levels;
        double b = std::rint(min(max((bx[k] * aa - ax[k] * ab) / determinant, 0.0), 1.0) * levels) / levels;
        for (int i = 0; i < 16; i++) {
          double part = parts[four][table[four ? w : w - dxt_four] >> 2 * i & 3], off = a * part + b * (1 - part) - pixels[order[i]][k];
          error += off * off;
        }
      }
      if (error < best) best = error;
    }
    // What a decoder makes of the eight bytes.
    unsigned first = got[block].x & 0xffff, last = got[block].x >> 16;
    double error = 0;
    for (int i = 0; i < 16; i++)
      for (int k = 0; k < 3; k++) {
        int shift = k == 0 ? 11 : k == 1 ? 5 : 0, levels = k == 1 ? 63 : 31, index = got[block].y >> 2 * i & 3;
        double a = double(first >> shift & levels) / levels, b = double(last >> shift & levels) / levels;
        double value = index == 0 ? a : index == 1 ? b : first > last ? (index == 2 ? 2 * a + b : a + 2 * b) / 3 : index == 2 ? (a + b) / 2 : 0;
        error += (value - pixels[i][k]) * (value - pixels[i][k]);
      }
    expect("dxt", block, error / best, 1.0, 0.01);
  }
}

// BFS: a level by two kernels, a node per thread: visit the edges of the frontier, then make the next frontier.
struct Node { int first, edges; };
const int bfs_block = 512;
__device__ __forceinline__ int bfs_me() { return threadIdx.x + bfs_block * blockIdx.x; }
__global__ void ws_bfs_Kernel(int count, const bool *seen, bool *frontier, bool *reached, int *level, const int *edges, const Node *nodes) {
  const int me = bfs_me();
  if (me >= count || !frontier[me]) return;
  frontier[me] = false;
  // The stores may change what these pointers show, so that each edge reads the node and its level again.
  const Node *node = nodes + me;
  for (int k = 0; k < node->edges; k++) {
    const int neighbour = edges[node->first + k];
    if (!seen[neighbour]) reached[neighbour] = true, level[neighbour] = 1 + level[me];
  }
}
__global__ void ws_bfs_Kernel2(int count, bool *more, bool *seen, bool *frontier, bool *reached) {
  const int me = bfs_me();
  if (me >= count) return;
  if (bool *flag = reached + me; *flag) {
    *flag = false;
    seen[me] = frontier[me] = *more = true;
  }
}
void check_bfs() {
  const int count = sized(12000, 1954 * 512), grid = (count + 511) / 512;
  std::vector<Node> nodes(count);
  std::vector<int> edges, cost(count, -1), wanted(count, -1), queue(1, 0);
  for (int i = 0; i < count; i++) {
    nodes[i] = {int(edges.size()), int(2 + draw(i) % 9)};
    for (int k = 0; k < nodes[i].edges; k++) edges.push_back(draw(16 * i + k + count) % count);
  }
  wanted[0] = cost[0] = 0;
  for (size_t i = 0; i < queue.size(); i++)
    for (int k = 0; k < nodes[queue[i]].edges; k++) {
      int other = edges[nodes[queue[i]].first + k];
      if (wanted[other] < 0) wanted[other] = wanted[queue[i]] + 1, queue.push_back(other);
    }
  Node *n = device(nodes.data(), count);
  bool *mask = device<bool>(nullptr, count), *updating = device<bool>(nullptr, count), *visited = device<bool>(nullptr, count), *more = device<bool>(nullptr, 1), yes = true, again = true;
  int *e = device(edges.data(), edges.size()), *c = device(cost.data(), count);
  cudaMemcpy(mask, &yes, 1, cudaMemcpyHostToDevice), cudaMemcpy(visited, &yes, 1, cudaMemcpyHostToDevice);
  while (again) {
    again = false; cudaMemcpy(more, &again, 1, cudaMemcpyHostToDevice);
    ws_bfs_Kernel<<<grid, 512>>>(count, visited, mask, updating, c, e, n); ws_bfs_Kernel2<<<grid, 512>>>(count, more, visited, mask, updating);
    cudaMemcpy(&again, more, 1, cudaMemcpyDeviceToHost);
  }
  if (full) return; int *got = host(c, count);
  for (int i = 0; i < count; i++) expect("bfs", i, got[i], wanted[i], 0);
}

// NN: first layer of a network for digits: six maps of 13 by 13 of windows of 5 by 5 at every second pixel of 29 by 29.
__constant__ int nn_window[25] = {0, 1, 2, 3, 4, 29, 30, 31, 32, 33, 58, 59, 60, 61, 62, 87, 88, 89, 90, 91, 116, 117, 118, 119, 120};
__global__ void ws_nn(float *neurons, const float *weights, const float *pixels) {
  const int across = threadIdx.x, down = threadIdx.y, map = blockIdx.x, image = blockIdx.y;
  const int corner = 841 * image + 58 * down + 2 * across;
  weights += 26 * map;
  float sum = *weights++;
  for (int offset : nn_window) sum = fmaf(*weights++, pixels[corner + offset], sum);
  neurons[169 * (6 * image + map) + 13 * down + across] = tanhf(sum * 0.66666667) * 1.7159;
}
void check_nn() {
  const int images = sized(6, 2400), inputs = images * 841, outputs = images * 6 * 169;
  std::vector<float> pixels(inputs), weights(6 * 26);
  for (int i = 0; i < inputs; i++) pixels[i] = real(i);
  for (int i = 0; i < 6 * 26; i++) weights[i] = 0.4f * real(i + inputs);
  float *d = device<float>(nullptr, outputs);
  ws_nn<<<dim3(6, images), dim3(13, 13)>>>(d, device(weights.data(), 6 * 26), device(pixels.data(), inputs)); if (full) return;
  float *got = host(d, outputs);
  for (int i = 0; i < outputs; i++) {
    int x = i % 13, y = i / 13 % 13, map = i / 169 % 6, image = i / 1014;
    double sum = weights[26 * map];
    for (int k = 0; k < 25; k++) sum += double(pixels[841 * image + 29 * (2 * y + k / 5) + 2 * x + k % 5]) * weights[26 * map + 1 + k];
    expect("nn", i, double(got[i]), 1.7159 * std::tanh(2 * sum / 3), 1e-5);
  }
}

// MVP: rows sorted by length and transposed, so that entry k of all rows lies in a line; what comes next is read ahead.
__constant__ int mvp_starts[5000], mvp_lengths[5000];
__global__ void ws_mvp(int rows, const float *vector, const float *values, const int *columns, const int *order, float *out) {
  const int row = threadIdx.x + blockIdx.x * blockDim.x;
  if (row >= rows) return;
  const int entries = mvp_lengths[row / 32u];
  int place, column;
  float sum = 0, value, factor;
  auto find = [&](int k) { place = row + mvp_starts[k], column = columns[place]; };
  auto read = [&] { value = values[place], factor = vector[column]; };
  auto add = [&] { sum = fmaf(factor, value, sum); };
  find(0), read();
  if (entries > 1) {
    find(1);
    for (int k = 2; k < entries; k++) add(), read(), find(k);
    add(), read();
  }
  add();
  out[order[row]] = sum;
}
void check_mvp() {
  // All rows of a warp are as long as its first; rows of zeros fill the last warp.
  const int block = 192, rows = sized(24 * block - 50, 146689), padded = (rows + 31) / 32 * 32, most = 50;
  auto length = [](int row) { return int(1 + draw(row) % 25 + draw(row + 77777) % 25); };
  std::vector<int> order(padded, 0), lengths(padded / 32), starts(most), columns;
  std::vector<float> values, vector(rows);
  std::vector<double> wanted(rows);
  for (int i = 0; i < rows; i++) order[i] = i, vector[i] = real(i + 500);
  std::stable_sort(order.begin(), order.begin() + rows, [&](int a, int b) { return length(a) > length(b); });
  for (int w = 0; w < padded / 32; w++) lengths[w] = length(order[32 * w]);
  for (int k = 0; k < most; k++) {
    starts[k] = values.size();
    for (int i = 0; i < padded && k < lengths[i / 32]; i++) {
      bool real_entry = i < rows && k < length(order[i]);
      int column = real_entry ? (order[i] + int(draw(64 * order[i] + k) % 601) - 300 + rows) % rows : 0;
      float value = real_entry ? real(64 * order[i] + k + 3) : 0;
      columns.push_back(column), values.push_back(value);
      if (real_entry) wanted[order[i]] += double(value) * vector[column];
    }
  }
  cudaMemcpyToSymbol(mvp_starts, starts.data(), most * sizeof(int));
  cudaMemcpyToSymbol(mvp_lengths, lengths.data(), padded / 32 * sizeof(int));
  float *d = device<float>(nullptr, rows);
  float *x = device(vector.data(), rows), *v = device(values.data(), values.size());
  int *places = device(columns.data(), columns.size()), *turns = device(order.data(), padded);
  for (int i = 0; i < sized(1, 3); i++) ws_mvp<<<(rows + block - 1) / block, block>>>(rows, x, v, places, turns, d);
  if (full) return;
  float *got = host(d, rows);
  for (int i = 0; i < rows; i++) expect("mvp", i, double(got[i]), wanted[i], 1e-4);
}

int main(int count, char **words) {
  Calls run(count, words); run("ws-mm", check_mm), run("ws-hot", check_hot), run("ws-knn", check_knn), run("ws-lbm", check_lbm), run("ws-blk", check_blk);
  run("ws-img", check_img), run("ws-dxt", check_dxt), run("ws-bfs", check_bfs), run("ws-nn", check_nn), run("ws-mvp", check_mvp);
  return finish("warped_slicer");
}
