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
