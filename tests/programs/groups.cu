// Cooperative groups: tiles, coalesced groups, labelled partitions, reductions of a warp.
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void tiles(const int *x, int *sums, int *scans, int *odd, int *labels) {
  cg::thread_block block = cg::this_thread_block();
  int t = block.thread_rank(), v = x[t];
  auto tile = cg::tiled_partition<8>(block);
  sums[t] = cg::reduce(tile, v, cg::plus<int>());
  scans[t] = cg::inclusive_scan(tile, v);
  odd[t] = -1;
  if (v % 2) {
    cg::coalesced_group group = cg::coalesced_threads();
    odd[t] = group.thread_rank() * 100 + group.size();
  }
  auto warp = cg::tiled_partition<32>(block);
  auto same = cg::labeled_partition(warp, v % 3);
  labels[t] = same.size() * 100 + same.thread_rank();
}
const int kinds = 10;
template <int width> __device__ void tile_of(const int *x, int *o) {
  // Each tile has results of its own, with all tiles of a warp together and with some of them.
  auto tile = cg::tiled_partition<width>(cg::this_thread_block());
  int t = threadIdx.x, v = x[t];
  unsigned mask = (width < 32 ? (1u << width % 32) - 1 : ~0u) << (t & 31 & ~(width - 1));
  o += t * kinds;
  o[0] = cg::reduce(tile, v, cg::plus<int>());
  o[1] = cg::reduce(tile, v * 3, cg::bit_xor<int>());
  o[2] = cg::reduce(tile, v, cg::greater<int>());
  o[3] = tile.ballot(v & 1);
  o[4] = tile.all(v < 40) * 2 + tile.any(v < 5);
  o[5] = tile.match_any(v % 3);
  o[6] = __ballot_sync(mask, v & 2);
  o[7] = cg::exclusive_scan(tile, v);
  o[8] = o[9] = -1;
  if (t / width % 2 == 0) {
    o[8] = cg::reduce(tile, v, cg::plus<int>());
    tile.sync();
    o[9] = tile.shfl(v, width - 1) + (__match_any_sync(mask, v % 2) ^ mask);
  }
}
__global__ void widths(const int *x, int *o) {
  int n = blockDim.x * kinds;
  tile_of<2>(x, o);
  tile_of<4>(x, o + n);
  tile_of<8>(x, o + 2 * n);
  tile_of<16>(x, o + 3 * n);
  tile_of<32>(x, o + 4 * n);
}
void expect_widths(const int *x, const int *got, int n) {
  for (int k = 0; k < 5; k++)
    for (int t = 0; t < n; t++) {
      int width = 2 << k, first = t / width * width, shift = first % 32;
      unsigned sum = 0, bits = 0, most = 0, odd = 0, all = 2, any = 0, same = 0, second = 0, before = 0, parity = 0;
      for (int i = first; i < first + width; i++) {
        unsigned v = x[i], bit = 1u << (i - first);
        sum += v, bits ^= v * 3, most = v > most ? v : most, before += i < t ? v : 0;
        odd |= v & 1 ? bit : 0, second |= v & 2 ? bit : 0;
        if (v >= 40) all = 0;
        if (v < 5) any = 1;
        if (v % 3 == unsigned(x[t]) % 3) same |= bit;
        if (v % 2 != unsigned(x[t]) % 2) parity |= bit;
      }
      bool part = t / width % 2 == 0;
      unsigned last = unsigned(x[first + width - 1]) + (parity << shift);
      unsigned wanted[kinds] = {sum, bits, most, odd, all + any, same, second << shift, before, part ? sum : ~0u, part ? last : ~0u};
      for (int i = 0; i < kinds; i++) expect("width", (k * 1000 + t) * kinds + i, got[(k * n + t) * kinds + i], int(wanted[i]), 0);
    }
}
__global__ void votes(const unsigned *x, unsigned *out) {
  unsigned t = threadIdx.x, v = x[t], *o = out + t * 8;
  o[0] = __ballot_sync(~0u, v & 1);
  o[1] = __match_any_sync(~0u, v % 5);
#if __CUDA_ARCH__ >= 800
  o[2] = __reduce_add_sync(~0u, v % 1000);
  o[3] = __reduce_max_sync(~0u, v);
  o[4] = __reduce_xor_sync(~0u, v);
#else
  for (int i = 2; i < 5; i++) o[i] = 0;
#endif
  o[5] = __any_sync(~0u, v == 7) * 2 + __all_sync(~0u, v != 7);
  o[6] = __shfl_sync(~0u, v, t * 5 % 32);
  o[7] = __shfl_down_sync(~0u, v, 3, 16);
}
int main() {
  const int n = 128;
  static int x[n];
  static unsigned y[32];
  for (int i = 0; i < n; i++) x[i] = draw(i) % 50;
  for (int i = 0; i < 32; i++) y[i] = draw(i + 400);
  int *a = device(x, n), *s = device<int>(nullptr, n), *c = device<int>(nullptr, n), *o = device<int>(nullptr, n), *l = device<int>(nullptr, n);
  unsigned *w = device<unsigned>(nullptr, 256);
  tiles<<<1, n>>>(a, s, c, o, l);
  votes<<<1, 32>>>(device(y, 32), w);
  int *width = device<int>(nullptr, 5 * n * kinds);
  widths<<<1, n>>>(a, width);
  expect_widths(x, host(width, 5 * n * kinds), n);
  int *sums = host(s, n), *scans = host(c, n), *odd = host(o, n), *labels = host(l, n);
  unsigned *v = host(w, 256), ballot = 0, sum = 0, most = 0, all = 0;
  for (int t = 0; t < n; t++) {
    int total = 0, before = 0, rank = 0, size = 0, mates = 0, earlier = 0;
    for (int i = t / 8 * 8; i < t / 8 * 8 + 8; i++) total += x[i], before += i <= t ? x[i] : 0;
    for (int i = t / 32 * 32; i < t / 32 * 32 + 32; i++) {
      size += x[i] % 2, rank += i < t && x[i] % 2;
      mates += x[i] % 3 == x[t] % 3, earlier += i < t && x[i] % 3 == x[t] % 3;
    }
    expect("sum", t, sums[t], total, 0), expect("scan", t, scans[t], before, 0);
    expect("odd", t, odd[t], x[t] % 2 ? rank * 100 + size : -1, 0);
    expect("label", t, labels[t], mates * 100 + earlier, 0);
  }
  for (int i = 0; i < 32; i++) ballot |= (y[i] & 1) << i, sum += y[i] % 1000, most = y[i] > most ? y[i] : most, all ^= y[i];
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  if (device.major < 8) sum = most = all = 0;
  for (unsigned t = 0; t < 32; t++) {
    unsigned match = 0, *g = v + t * 8;
    for (int i = 0; i < 32; i++) match |= unsigned(y[i] % 5 == y[t] % 5) << i;
    unsigned wanted[] = {ballot, match, sum, most, all, 1, y[t * 5 % 32], t % 16 + 3 < 16 ? y[t + 3] : y[t]};
    for (int k = 0; k < 8; k++) expect("vote", t * 8 + k, double(g[k]), double(wanted[k]), 0);
  }
  return finish("groups");
}
