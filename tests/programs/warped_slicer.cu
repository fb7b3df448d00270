// The ten kernels of Warped-Slicer's table II, at small sizes: Parboil, Rodinia, CUDA SDK and ISPASS 2009 algorithms.
#include "check.h"
#include <algorithm>
#include <cstring>
#include <vector>
using std::max;
using std::min;

// MM: C = beta C + alpha A B', sixteen columns of C per thread, a strip of B in shared memory.
const int mm_wide = 16, mm_strip = 8, mm_tall = mm_wide * mm_strip;
__global__ void ws_mm(const float *a, int a_pitch, const float *b, int b_pitch, float *c, int c_pitch, int depth, float alpha, float beta) {
  __shared__ float strip[mm_strip][mm_wide];
  float sums[mm_wide];
  for (int n = 0; n < mm_wide; n++) sums[n] = 0;
  int lane = threadIdx.y * blockDim.x + threadIdx.x;
  int row = blockIdx.x * mm_tall + lane, column = blockIdx.y * mm_wide + threadIdx.x;
  for (int i = 0; i < depth; i += mm_strip) {
    strip[threadIdx.y][threadIdx.x] = b[column + (i + threadIdx.y) * b_pitch];
    __syncthreads();
    for (int j = 0; j < mm_strip; j++) {
      float x = a[row + (i + j) * a_pitch];
      for (int n = 0; n < mm_wide; n++) sums[n] += x * strip[j][n];
    }
    __syncthreads();
  }
  int at = c_pitch * blockIdx.y * mm_wide + row;
  for (int n = 0; n < mm_wide; n++) c[at + n * c_pitch] = c[at + n * c_pitch] * beta + alpha * sums[n];
}
void check_mm() {
  const int m = 256, n = 96, k = 64;
  std::vector<float> a(m * k), b(n * k), c(m * n);
  for (int i = 0; i < m * k; i++) a[i] = real(i);
  for (int i = 0; i < n * k; i++) b[i] = real(i + 70000);
  for (int i = 0; i < m * n; i++) c[i] = real(i + 140000);
  float *z = device(c.data(), m * n);
  ws_mm<<<dim3(m / mm_tall, n / mm_wide), dim3(mm_wide, mm_strip)>>>(device(a.data(), m * k), m, device(b.data(), n * k), n, z, m, k, 1.25f, 0.75f);
  float *got = host(z, m * n);
  for (int i = 0; i < m * n; i++) {
    double sum = 0;
    for (int j = 0; j < k; j++) sum += double(a[i % m + j * m]) * b[i / m + j * n];
    expect("mm", i, double(got[i]), 0.75 * c[i] + 1.25 * sum, 1e-4);
  }
}

// HOT: a stencil's steps on a tile of 16 by 16 that shrinks by a rim per step; the 2.0 is a double, as in Rodinia's source.
const int hot_edge = 16;
__global__ void ws_hot(int steps, float *power, float *from, float *to, int columns, int rows, int rim_x, int rim_y, float capacity, float rx, float ry, float rz, float step, float elapsed) {
  __shared__ float heat[hot_edge][hot_edge], source[hot_edge][hot_edge], next[hot_edge][hot_edge];
  float ambient = 80.0, scale = step / capacity, gx = 1 / rx, gy = 1 / ry, gz = 1 / rz;
  int tx = threadIdx.x, ty = threadIdx.y;
  int inner = hot_edge - 2 * steps;
  int top = inner * blockIdx.y - rim_y, left = inner * blockIdx.x - rim_x;
  int bottom = top + hot_edge - 1, right = left + hot_edge - 1;
  int y = top + ty, x = left + tx, at = rows * y + x;
  if (y >= 0 && y <= rows - 1 && x >= 0 && x <= columns - 1) {
    heat[ty][tx] = from[at];
    source[ty][tx] = power[at];
  }
  __syncthreads();
  int low_y = top < 0 ? -top : 0, high_y = bottom > rows - 1 ? hot_edge - 1 - (bottom - rows + 1) : hot_edge - 1;
  int low_x = left < 0 ? -left : 0, high_x = right > columns - 1 ? hot_edge - 1 - (right - columns + 1) : hot_edge - 1;
  int n = max(ty - 1, low_y), s = min(ty + 1, high_y), w = max(tx - 1, low_x), e = min(tx + 1, high_x);
  bool done;
  for (int i = 0; i < steps; i++) {
    done = false;
    if (tx >= i + 1 && tx <= hot_edge - i - 2 && ty >= i + 1 && ty <= hot_edge - i - 2 && tx >= low_x && tx <= high_x && ty >= low_y && ty <= high_y) {
      done = true;
      next[ty][tx] = heat[ty][tx] + scale * (source[ty][tx] + (heat[s][tx] + heat[n][tx] - 2.0 * heat[ty][tx]) * gy +
                                             (heat[ty][e] + heat[ty][w] - 2.0 * heat[ty][tx]) * gx + (ambient - heat[ty][tx]) * gz);
    }
    __syncthreads();
    if (i == steps - 1) break;
    if (done) heat[ty][tx] = next[ty][tx];
    __syncthreads();
  }
  if (done) to[at] = next[ty][tx];
}
void check_hot() {
  const int edge = 60, steps = 2, tiles = edge / (hot_edge - 2 * steps), cells = edge * edge;
  const float capacity = 0.8f, rx = 1.5f, ry = 2.5f, rz = 20, step = 0.1f;
  std::vector<float> heat(cells), power(cells);
  for (int i = 0; i < cells; i++) heat[i] = 90 + 10 * real(i), power[i] = 5 + 5 * real(i + cells);
  float *p = device(power.data(), cells), *planes[2] = {device(heat.data(), cells), device<float>(nullptr, cells)};
  for (int pass = 0; pass < 2; pass++)
    ws_hot<<<dim3(tiles, tiles), dim3(hot_edge, hot_edge)>>>(steps, p, planes[pass], planes[1 - pass], edge, edge, steps, steps, capacity, rx, ry, rz, step, 0.001f);
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
__global__ void ws_knn(Place *places, float *distances, int count, float latitude, float longitude) {
  int at = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
  Place *place = places + at;
  if (at < count) {
    float *distance = distances + at;
    *distance = (float)sqrt((latitude - place->latitude) * (latitude - place->latitude) + (longitude - place->longitude) * (longitude - place->longitude));
  }
}
void check_knn() {
  const int count = 24 * 256 - 57;
  std::vector<Place> places(count);
  for (int i = 0; i < count; i++) places[i] = {90 * real(2 * i), 180 * real(2 * i + 1)};
  float *d = device<float>(nullptr, count);
  ws_knn<<<(count + 255) / 256, 256>>>(device(places.data(), count), d, count, 30, 90);
  float *got = host(d, count);
  for (int i = 0; i < count; i++) expect("knn", i, double(got[i]), std::hypot(30.0 - places[i].latitude, 90.0 - places[i].longitude), 1e-5);
}

// LBM: one step, D3Q19: gathers 19 distributions from the neighbours, collides, stores them in place.
const int lbm_width = 120, lbm_pitch = 128, lbm_rows = 6, lbm_depth = 5, lbm_margin = 2 * lbm_pitch * lbm_rows;
const int lbm_cells = lbm_pitch * lbm_rows * (lbm_depth + 4), lbm_all = 20 * lbm_cells + 40 * lbm_pitch * lbm_rows;
enum { C, N, S, E, W, T, B, NE, NW, SE, SW, NT, NB, ST, SB, ET, EB, WT, WB, FLAGS };
enum { OBSTACLE = 1, ACCELERATED = 2 };
__device__ float &lbm_cell(float *grid, int x, int y, int z, int field) { return grid[lbm_cells * field + x + y * lbm_pitch + z * lbm_pitch * lbm_rows]; }
__device__ void lbm_swap(float &a, float &b) { float c = a; a = b, b = c; }
__global__ void ws_lbm(float *from, float *to) {
  int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  const float omega = 1.95f;
  float c = lbm_cell(from, x, y, z, C);
  float n = lbm_cell(from, x, y - 1, z, N), s = lbm_cell(from, x, y + 1, z, S);
  float e = lbm_cell(from, x - 1, y, z, E), w = lbm_cell(from, x + 1, y, z, W);
  float t = lbm_cell(from, x, y, z - 1, T), b = lbm_cell(from, x, y, z + 1, B);
  float ne = lbm_cell(from, x - 1, y - 1, z, NE), nw = lbm_cell(from, x + 1, y - 1, z, NW);
  float se = lbm_cell(from, x - 1, y + 1, z, SE), sw = lbm_cell(from, x + 1, y + 1, z, SW);
  float nt = lbm_cell(from, x, y - 1, z - 1, NT), nb = lbm_cell(from, x, y - 1, z + 1, NB);
  float st = lbm_cell(from, x, y + 1, z - 1, ST), sb = lbm_cell(from, x, y + 1, z + 1, SB);
  float et = lbm_cell(from, x - 1, y, z - 1, ET), eb = lbm_cell(from, x - 1, y, z + 1, EB);
  float wt = lbm_cell(from, x + 1, y, z - 1, WT), wb = lbm_cell(from, x + 1, y, z + 1, WB);
  if (__float_as_uint(lbm_cell(from, x, y, z, FLAGS)) & OBSTACLE) {
    lbm_swap(n, s), lbm_swap(e, w), lbm_swap(t, b), lbm_swap(ne, sw), lbm_swap(nw, se);
    lbm_swap(nt, sb), lbm_swap(nb, st), lbm_swap(et, wb), lbm_swap(eb, wt);
  } else {
    float density = c + n + s + e + w + t + b + ne + nw + se + sw + nt + nb + st + sb + et + eb + wt + wb;
    float ux = e - w + ne - nw + se - sw + et + eb - wt - wb;
    float uy = n - s + ne + nw - se - sw + nt + nb - st - sb;
    float uz = t - b + nt - nb + st - sb + et - eb + wt - wb;
    ux /= density, uy /= density, uz /= density;
    if (__float_as_uint(lbm_cell(from, x, y, z, FLAGS)) & ACCELERATED) ux = 0.005f, uy = 0.002f, uz = 0;
    float square = 1.5f * (ux * ux + uy * uy + uz * uz) - 1, base = omega * density, keep = 1 - omega;
    float part = 1.0f / 3 * base;
    c = keep * c + part * (-square);
    part = 1.0f / 18 * base;
    auto relax = [&](float old, float u) { return keep * old + part * (u * (4.5f * u + 3) - square); };
    auto back = [&](float old, float u) { return keep * old + part * (u * (4.5f * u - 3) - square); };
    n = relax(n, uy), s = back(s, uy), t = relax(t, uz), b = back(b, uz), e = relax(e, ux), w = back(w, ux);
    part = 1.0f / 36 * base;
    nt = relax(nt, uy + uz), nb = relax(nb, uy - uz), st = relax(st, -uy + uz), sb = relax(sb, -uy - uz);
    ne = relax(ne, ux + uy), se = relax(se, ux - uy), et = relax(et, ux + uz), eb = relax(eb, ux - uz);
    nw = relax(nw, -ux + uy), sw = relax(sw, -ux - uy), wt = relax(wt, -ux + uz), wb = relax(wb, -ux - uz);
  }
  lbm_cell(to, x, y, z, C) = c, lbm_cell(to, x, y, z, N) = n, lbm_cell(to, x, y, z, S) = s;
  lbm_cell(to, x, y, z, E) = e, lbm_cell(to, x, y, z, W) = w, lbm_cell(to, x, y, z, T) = t;
  lbm_cell(to, x, y, z, B) = b, lbm_cell(to, x, y, z, NE) = ne, lbm_cell(to, x, y, z, NW) = nw;
  lbm_cell(to, x, y, z, SE) = se, lbm_cell(to, x, y, z, SW) = sw, lbm_cell(to, x, y, z, NT) = nt;
  lbm_cell(to, x, y, z, NB) = nb, lbm_cell(to, x, y, z, ST) = st, lbm_cell(to, x, y, z, SB) = sb;
  lbm_cell(to, x, y, z, ET) = et, lbm_cell(to, x, y, z, EB) = eb, lbm_cell(to, x, y, z, WT) = wt;
  lbm_cell(to, x, y, z, WB) = wb;
}
void check_lbm() {
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
  ws_lbm<<<dim3(lbm_rows, lbm_depth), lbm_width>>>(from + lbm_margin, to + lbm_margin);
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
          double along = 0, square = 0, out = 0;
          int axes = 0;
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

// BLK: prices of a call and a put per option; each thread walks in strides of the grid.
__device__ inline float blk_normal(float d) {
  float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  float tail = 0.39894228040143267794f * __expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
  return d > 0 ? 1.0f - tail : tail;
}
__global__ void ws_blk(float *call, float *put, float *stock, float *strike, float *years, float rate, float spread, int count) {
  const int stride = blockDim.x * gridDim.x;
  for (int at = blockDim.x * blockIdx.x + threadIdx.x; at < count; at += stride) {
    float s = stock[at], x = strike[at], t = years[at];
    float root = sqrtf(t);
    float d1 = (__logf(s / x) + (rate + 0.5f * spread * spread) * t) / (spread * root), d2 = d1 - spread * root;
    float n1 = blk_normal(d1), n2 = blk_normal(d2), discount = __expf(-rate * t);
    call[at] = s * n1 - x * discount * n2;
    put[at] = x * discount * (1.0f - n2) - s * (1.0f - n1);
  }
}
void check_blk() {
  const int blocks = 12, count = blocks * 128 * 5 - 77;
  std::vector<float> stock(count), strike(count), years(count);
  for (int i = 0; i < count; i++) stock[i] = 17.5f + 12.5f * real(i), strike[i] = 50.5f + 49.5f * real(i + count), years[i] = 5.2f + 4.8f * real(i + 2 * count);
  float *c = device<float>(nullptr, count), *p = device<float>(nullptr, count);
  ws_blk<<<blocks, 128>>>(c, p, device(stock.data(), count), device(strike.data(), count), device(years.data(), count), 0.02f, 0.30f, count);
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
__device__ float img_distance(float4 a, float4 b) { return (b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y) + (b.z - a.z) * (b.z - a.z); }
__device__ float img_mix(float a, float b, float part) { return a + (b - a) * part; }
__device__ unsigned img_pack(float r, float g, float b, float a) {
  return (int(a * 255.0f) << 24) | (int(b * 255.0f) << 16) | (int(g * 255.0f) << 8) | (int(r * 255.0f) << 0);
}
__global__ void ws_img(unsigned *out, int width, int height, float noise, float blend, cudaTextureObject_t image) {
  int ix = blockDim.x * blockIdx.x + threadIdx.x, iy = blockDim.y * blockIdx.y + threadIdx.y;
  float x = ix + 0.5f, y = iy + 0.5f;
  if (ix < width && iy < height) {
    float similar = 0, total = 0;
    float3 sum = {0, 0, 0};
    for (float i = -img_reach; i <= img_reach; i++)
      for (float j = -img_reach; j <= img_reach; j++) {
        float weight = 0;
        for (float n = -img_reach; n <= img_reach; n++)
          for (float m = -img_reach; m <= img_reach; m++)
            weight += img_distance(tex2D<float4>(image, x + j + m, y + i + n), tex2D<float4>(image, x + m, y + n));
        weight = __expf(-(weight * noise + (i * i + j * j) * (1.0f / img_area)));
        float4 texel = tex2D<float4>(image, x + j, y + i);
        sum.x += texel.x * weight, sum.y += texel.y * weight, sum.z += texel.z * weight;
        total += weight;
        similar += weight > 0.1f ? 1.0f / img_area : 0;
      }
    total = 1.0f / total;
    sum.x *= total, sum.y *= total, sum.z *= total;
    float part = similar > 0.1f ? blend : 1.0f - blend;
    float4 own = tex2D<float4>(image, x, y);
    out[width * iy + ix] = img_pack(img_mix(sum.x, own.x, part), img_mix(sum.y, own.y, part), img_mix(sum.z, own.z, part), 0);
  }
}
void check_img() {
  const int width = 32, height = 24, count = width * height;
  const float noise = 1 / (0.32f * 0.32f), blend = 0.2f;
  std::vector<uchar4> image(count);
  for (int i = 0; i < count; i++) {
    auto tone = [&](int base, int k) { return (unsigned char)(base + 4 * (i % width) + 2 * (i / width) + draw(3 * i + k) % 24); };
    image[i] = make_uchar4(tone(20, 0), tone(60, 1), tone(40, 2), 0);
  }
  cudaArray_t array;
  cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>();
  cudaMallocArray(&array, &bytes, width, height);
  cudaMemcpy2DToArray(array, 0, 0, image.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.filterMode = cudaFilterModeLinear;
  how.readMode = cudaReadModeNormalizedFloat;
  cudaTextureObject_t texture = 0;
  cudaCreateTextureObject(&texture, &resource, &how, nullptr);
  unsigned *d = device<unsigned>(nullptr, count);
  ws_img<<<dim3(width / 8, height / 8), dim3(8, 8)>>>(d, width, height, noise, blend, texture);
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
typedef unsigned short half_word;
__device__ inline float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
__device__ inline float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
__device__ inline float3 operator*(float3 a, float3 b) { return make_float3(a.x * b.x, a.y * b.y, a.z * b.z); }
__device__ inline float3 operator*(float3 a, float b) { return make_float3(a.x * b, a.y * b, a.z * b); }
__device__ inline float3 operator*(float b, float3 a) { return a * b; }
// Parts of the first colour per index, and sums of squares and products packed into bytes.
__constant__ float dxt_part4[4] = {9, 0, 6, 3}, dxt_part3[4] = {4, 0, 2, 2}, dxt_metric[3] = {1, 1, 1};
__constant__ int dxt_squares4[4] = {0x090000, 0x000900, 0x040102, 0x010402}, dxt_squares3[4] = {0x040000, 0x000400, 0x010101, 0x010101};
__device__ inline float3 dxt_round(float3 v, half_word *word) {
  v = make_float3(rintf(__saturatef(v.x) * 31), rintf(__saturatef(v.y) * 63), rintf(__saturatef(v.z) * 31));
  *word = half_word(v.x) << 11 | half_word(v.y) << 5 | half_word(v.z);
  return v * make_float3(0.03227752766457f, 0.01583151765563f, 0.03227752766457f);
}
template <bool four> __device__ float dxt_try(const float3 *colours, unsigned way, half_word *first, half_word *last, float3 sum) {
  float3 ax = make_float3(0, 0, 0);
  int squares = 0;
  for (int i = 0; i < 16; i++) {
    unsigned bits = way >> (2 * i);
    ax = ax + (four ? dxt_part4 : dxt_part3)[bits & 3] * colours[i];
    squares += (four ? dxt_squares4 : dxt_squares3)[bits & 3];
  }
  float aa = float(squares >> 16), bb = float(squares >> 8 & 255), ab = float(squares & 255);
  float3 bx = (four ? 9.0f : 4.0f) * sum - ax;
  float factor = 1.0f / (aa * bb - ab * ab);
  float3 a = dxt_round((ax * bb - bx * ab) * factor, first), b = dxt_round((bx * aa - ax * ab) * factor, last);
  float3 e = a * a * aa + b * b * bb + 2.0f * (a * b * ab - a * ax - b * bx);
  return (four ? 1.0f / 9 : 0.25f) * (e.x * dxt_metric[0] + e.y * dxt_metric[1] + e.z * dxt_metric[2]);
}
// Sixteen lanes: colours, their sum, their line by eight steps of the power method, their order along it.
__device__ void dxt_load(const unsigned *image, float3 *colours, float3 *sums, int *order, int block) {
  __shared__ float covariance[16 * 6], along[16];
  const unsigned lanes = 0xffff;
  int me = threadIdx.x;
  if (me >= 16) return;
  unsigned pixel = image[block * 16 + me];
  colours[me] = make_float3((pixel & 255) * (1.0f / 255), (pixel >> 8 & 255) * (1.0f / 255), (pixel >> 16 & 255) * (1.0f / 255));
  __syncwarp(lanes);
  sums[me] = colours[me];
  for (int d = 8; d > 0; d >>= 1) {
    __syncwarp(lanes);
    float3 other = sums[me ^ d];
    __syncwarp(lanes);
    sums[me] = sums[me] + other;
  }
  __syncwarp(lanes);
  float3 off = colours[me] - sums[0] * (1.0f / 16);
  float *mine = covariance + 6 * me;
  mine[0] = off.x * off.x, mine[1] = off.x * off.y, mine[2] = off.x * off.z;
  mine[3] = off.y * off.y, mine[4] = off.y * off.z, mine[5] = off.z * off.z;
  __syncwarp(lanes);
  for (int d = 8; d > 0; d >>= 1) {
    if (me < d)
      for (int k = 0; k < 6; k++) mine[k] += mine[6 * d + k];
    __syncwarp(lanes);
  }
  float3 axis = make_float3(1, 1, 1);
  for (int i = 0; i < 8; i++) {
    float x = axis.x * covariance[0] + axis.y * covariance[1] + axis.z * covariance[2];
    float y = axis.x * covariance[1] + axis.y * covariance[3] + axis.z * covariance[4];
    float z = axis.x * covariance[2] + axis.y * covariance[4] + axis.z * covariance[5];
    axis = make_float3(x, y, z) * (1.0f / max(max(x, y), z));
  }
  along[me] = colours[me].x * axis.x + colours[me].y * axis.y + colours[me].z * axis.z;
  __syncwarp(lanes);
  int rank = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) rank += along[i] < along[me];
  order[me] = rank;
  __syncwarp(lanes);
  for (int i = 0; i < 15; i++) {
    if (me > i && order[me] == order[i]) order[me]++;
    __syncwarp(lanes);
  }
  float3 own = colours[me];
  __syncwarp(lanes);
  colours[order[me]] = own;
}
__global__ void ws_dxt(const unsigned *ways, const unsigned *image, uint2 *out, int start) {
  __shared__ float3 colours[16], sums[16];
  __shared__ int order[16], places[dxt_threads];
  __shared__ float errors[dxt_threads];
  __shared__ unsigned threes[dxt_three];
  int me = threadIdx.x, block = blockIdx.x + start;
  dxt_load(image, colours, sums, order, block);
  __syncthreads();
  float3 sum = sums[0];
  float best = 3.402823466e38f;
  half_word best_first = 0, best_last = 0;
  unsigned best_way = 0;
  for (int i = 0; i < 16; i++) {
    int at = me + dxt_threads * i;
    if (at >= dxt_four) break;
    half_word first, last;
    unsigned way = ways[at];
    if (at < dxt_three) threes[at] = way;
    float error = dxt_try<true>(colours, way, &first, &last, sum);
    if (error < best) best = error, best_way = way, best_first = first, best_last = last;
  }
  if (best_first < best_last) {
    half_word other = best_first;
    best_first = best_last, best_last = other, best_way ^= 0x55555555;
  }
  __syncthreads();
  for (int i = 0; i < 3; i++) {
    int at = me + dxt_threads * i;
    if (at >= dxt_three) break;
    half_word first, last;
    unsigned way = threes[at];
    float error = dxt_try<false>(colours, way, &first, &last, sum);
    if (error < best) {
      best = error, best_way = way, best_first = first, best_last = last;
      if (best_first > best_last) best_first = last, best_last = first, best_way ^= (~best_way >> 1) & 0x55555555;
    }
  }
  errors[me] = best;
  places[me] = me;
  __syncthreads();
  for (int d = dxt_threads / 2; d > 0; d >>= 1) {
    float mine = errors[me], other = me + d < dxt_threads ? errors[me + d] : 3.402823466e38f;
    int place = me + d < dxt_threads ? places[me + d] : 0;
    __syncthreads();
    if (other < mine) errors[me] = other, places[me] = place;
    __syncthreads();
  }
  int winner = places[0];
  __syncthreads();
  if (me == winner) {
    if (best_first == best_last) best_way = 0;
    unsigned indices = 0;
    for (int i = 0; i < 16; i++) indices |= (best_way >> (2 * order[i]) & 3) << (2 * i);
    out[block] = make_uint2(unsigned(best_last) << 16 | best_first, indices);
  }
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
  const int blocks = 12;
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
  ws_dxt<<<blocks, dxt_threads>>>(device(table.data(), 1024), device(image.data(), 16 * blocks), d, 0);
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
__global__ void ws_bfs_Kernel(Node *nodes, int *edges, bool *mask, bool *updating, bool *visited, int *cost, int count) {
  int at = blockIdx.x * 512 + threadIdx.x;
  if (at < count && mask[at]) {
    mask[at] = false;
    for (int i = nodes[at].first; i < nodes[at].edges + nodes[at].first; i++) {
      int other = edges[i];
      if (!visited[other]) cost[other] = cost[at] + 1, updating[other] = true;
    }
  }
}
__global__ void ws_bfs_Kernel2(bool *mask, bool *updating, bool *visited, bool *more, int count) {
  int at = blockIdx.x * 512 + threadIdx.x;
  if (at < count && updating[at]) {
    mask[at] = true;
    visited[at] = true;
    *more = true;
    updating[at] = false;
  }
}
void check_bfs() {
  const int count = 12000, grid = (count + 511) / 512;
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
  cudaMemcpy(mask, &yes, 1, cudaMemcpyHostToDevice);
  cudaMemcpy(visited, &yes, 1, cudaMemcpyHostToDevice);
  while (again) {
    again = false;
    cudaMemcpy(more, &again, 1, cudaMemcpyHostToDevice);
    ws_bfs_Kernel<<<grid, 512>>>(n, e, mask, updating, visited, c, count);
    ws_bfs_Kernel2<<<grid, 512>>>(mask, updating, visited, more, count);
    cudaMemcpy(&again, more, 1, cudaMemcpyDeviceToHost);
  }
  int *got = host(c, count);
  for (int i = 0; i < count; i++) expect("bfs", i, got[i], wanted[i], 0);
}

// NN: first layer of a network for digits: six maps of 13 by 13 of windows of 5 by 5 at every second pixel of 29 by 29.
__constant__ int nn_window[25] = {0, 1, 2, 3, 4, 29, 30, 31, 32, 33, 58, 59, 60, 61, 62, 87, 88, 89, 90, 91, 116, 117, 118, 119, 120};
__global__ void ws_nn(float *pixels, float *weights, float *neurons) {
  int map = blockIdx.x, x = threadIdx.x, y = threadIdx.y, weight = map * 26;
  float sum = 0;
  sum += weights[weight++];
  for (int i = 0; i < 25; i++) sum += pixels[(2 * y * 29 + 2 * x + nn_window[i]) + 29 * 29 * blockIdx.y] * weights[weight + i];
  sum = 1.7159 * tanhf(0.66666667 * sum);
  neurons[(13 * 13 * map + y * 13 + x) + 13 * 13 * 6 * blockIdx.y] = sum;
}
void check_nn() {
  const int images = 6, inputs = images * 841, outputs = images * 6 * 169;
  std::vector<float> pixels(inputs), weights(6 * 26);
  for (int i = 0; i < inputs; i++) pixels[i] = real(i);
  for (int i = 0; i < 6 * 26; i++) weights[i] = 0.4f * real(i + inputs);
  float *d = device<float>(nullptr, outputs);
  ws_nn<<<dim3(6, images), dim3(13, 13)>>>(device(pixels.data(), inputs), device(weights.data(), 6 * 26), d);
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
__global__ void ws_mvp(float *out, const float *values, const int *columns, const int *order, const float *vector, const int *lengths, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x, warp = row >> 5;
  if (row < rows) {
    float sum = 0;
    int length = mvp_lengths[warp], at = mvp_starts[0] + row;
    float value = values[at];
    int column = columns[at];
    float factor = vector[column];
    if (length > 1) {
      at = mvp_starts[1] + row;
      column = columns[at];
      float next_value, next_factor;
      for (int k = 2; k < length; k++) {
        next_value = values[at];
        at = mvp_starts[k] + row;
        int next_column = columns[at];
        next_factor = vector[column];
        sum += value * factor;
        column = next_column, value = next_value, factor = next_factor;
      }
      next_value = values[at];
      next_factor = vector[column];
      sum += value * factor;
      value = next_value, factor = next_factor;
    }
    sum += value * factor;
    out[order[row]] = sum;
  }
}
void check_mvp() {
  // All rows of a warp are as long as its first; rows of zeros fill the last warp.
  const int block = 192, rows = 24 * block - 50, padded = (rows + 31) / 32 * 32, most = 50;
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
  ws_mvp<<<(rows + block - 1) / block, block>>>(d, device(values.data(), values.size()), device(columns.data(), columns.size()), device(order.data(), padded), device(vector.data(), rows), device(lengths.data(), padded / 32), rows);
  float *got = host(d, rows);
  for (int i = 0; i < rows; i++) expect("mvp", i, double(got[i]), wanted[i], 1e-4);
}

int main() {
  check_mm(), check_hot(), check_knn(), check_lbm(), check_blk();
  check_img(), check_dxt(), check_bfs(), check_nn(), check_mvp();
  return finish("warped_slicer");
}
