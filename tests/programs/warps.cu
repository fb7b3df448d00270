// Shuffles, votes, matches and reductions of parts of a warp; what memory an address is of,
// and special registers.
#include "check.h"
__global__ void kernel(int *o) {
  int t = threadIdx.x, lane = t & 31;
  o[t] = __shfl_sync(~0u, t, lane ^ 5) + __shfl_down_sync(~0u, t, 3, 8) * 1000;
  o[t + 64] = __ballot_sync(~0u, t % 3 == 0);
  o[t + 128] = __any_sync(~0u, t == 40) + 2 * __all_sync(~0u, t < 32);
  if (lane < 20) {
    unsigned m = __activemask();
    o[t + 192] = __shfl_sync(m, t, 3) + __popc(__ballot_sync(m, t & 1)) * 100 + __reduce_add_sync(m, t) * 10000;
    o[t + 256] = __match_any_sync(m, t / 4);
  } else o[t + 192] = -1;
  __syncwarp();
  o[t + 320] = __syncthreads_count(t > 3) + 100 * __syncthreads_or(t == 9) + 1000 * __syncthreads_and(t < 63);
  o[t + 384] = __reduce_max_sync(~0u, t * 7 % 32);
}
extern __shared__ int more[];
__global__ void places(int *global, int *r, int n) {
  int local[4] = {n, 1, 2, 3}, t = threadIdx.x;
  more[t] = local[n & 3];
  int *all[3] = {more + t, global + t, local + (n & 3)};
  int *one = all[(t + n) % 3];
  unsigned bytes;
  asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(bytes));
  r[t] = __isShared(one) + 2 * __isGlobal(one) + 4 * __isLocal(one) + 8 * (bytes >= 512) + *one * 0;
}
#define SPECIAL(name) \
  __device__ unsigned name() { \
    unsigned value; \
    asm volatile("mov.u32 %0, %%" #name ";" : "=r"(value)); \
    return value; \
  }
SPECIAL(nsmid)
SPECIAL(smid)
SPECIAL(dynamic_smem_size)
SPECIAL(total_smem_size)
__global__ void places_of_ctas(unsigned *r) {
  __shared__ int kept[32];
  kept[threadIdx.x] = more[threadIdx.x] = 1;
  const unsigned all[] = {nsmid(), dynamic_smem_size(), total_smem_size(), smid()};
  r[4 * blockIdx.x + threadIdx.x] = all[threadIdx.x] + kept[threadIdx.x] - more[threadIdx.x];
}
void special_registers() {
  const int ctas = 7;
  int sms;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  unsigned *r = device<unsigned>(nullptr, 4 * ctas);
  places_of_ctas<<<ctas, 4, 640>>>(r);
  unsigned *got = host(r, 4 * ctas);
  for (int i = 0; i < ctas; i++) {
    expect("SMs", i, int(got[4 * i]), sms, 0);
    expect("dynamic", i, int(got[4 * i + 1]), 640, 0);
    expect("shared", i, int(got[4 * i + 2]), 640 + 128, 0);
    expect("SM", i, int(got[4 * i + 3]) < sms, true, 0);
  }
}
int main() {
  int *o = device<int>(nullptr, 448);
  kernel<<<1, 64>>>(o);
  int *r = host(o, 448);
  for (int t = 0; t < 64; t++) {
    int lane = t & 31, base = t & 32, ballot = 0, sum = 0, odd = 0, match = 0;
    for (int l = 0; l < 32; l++) ballot |= ((base + l) % 3 == 0) << l;
    for (int l = 0; l < 20; l++) { sum += base + l; odd += (base + l) & 1; match |= ((base + l) / 4 == t / 4) << l; }
    expect("shfl", t, r[t], (base | (lane ^ 5)) + ((lane & 7) + 3 < 8 ? t + 3 : t) * 1000, 0);
    expect("ballot", t, r[t + 64], ballot, 0);
    expect("any", t, r[t + 128], int(base == 32) + 2 * (base == 0), 0);
    expect("part", t, r[t + 192], lane < 20 ? base + 3 + odd * 100 + sum * 10000 : -1, 0);
    if (lane < 20) expect("match", t, r[t + 256], match, 0);
    expect("count", t, r[t + 320], 60 + 100, 0);
    expect("max", t, r[t + 384], 31, 0);
  }
  int *w = device<int>(nullptr, 64);
  places<<<1, 64, 512>>>(device<int>(nullptr, 64), w, 1);
  int *lies = host(w, 64);
  for (int t = 0; t < 64; t++) expect("place", t, lies[t], 8 + (1 << (t + 1) % 3), 0);
  special_registers();
  return finish("warps");
}
