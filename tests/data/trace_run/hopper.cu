// The same for instructions of Hopper. Made with CUDA 13.5:
//   nvcc -arch=sm_90a -cubin hopper.cu -o hopper.cubin
// and hopper.sass is what `gpumodel trace` gets from nvdisasm for it.
#include "../../programs/hopper.h"

// A product of 64 and 8 rows of 64 halves: tiles by two bulk copies, four multiplies.
extern "C" __global__ void multiply(const __grid_constant__ CUtensorMap ma, const __grid_constant__ CUtensorMap mb, float *out) {
  __shared__ __align__(1024) uint8_t a[8192], b[1024];
  __shared__ __align__(8) uint64_t full;
  if (threadIdx.x == 0) {
    make(shared(&full), 1);
    arrive_expect(shared(&full), sizeof a + sizeof b);
    tile_in(shared(a), &ma, 0, 0, shared(&full));
    tile_in(shared(b), &mb, 0, 0, shared(&full));
  }
  __syncthreads();
  wait(shared(&full), 0);
  float d[4];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int k = 0; k < 4; k++) {
    uint64_t mode = 64ull << 32 | 1ull << 62;
    asm volatile("{.reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(mode | (shared(a) + 32 * k) >> 4), "l"(mode | (shared(b) + 32 * k) >> 4), "r"(k));
  }
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; i++) out[i * 128 + threadIdx.x] = d[i];
}

// Each of two CTAs stores to the other, which counts the bytes, copies what it got back to it,
// and the first one's copy is for both.
extern "C" __global__ void __cluster_dims__(2, 1, 1) exchange(const int *in, int *out) {
  __shared__ __align__(128) int both[32], stored[32], copied[32];
  __shared__ __align__(8) uint64_t full, more;
  uint32_t t = threadIdx.x, rank = rank_of_cluster(), other = rank ^ 1;
  if (t == 0) make(shared(&full), 33), make(shared(&more), 1);
  cluster_sync();
  if (t == 0) {
    arrive_expect(shared(&full), 256), arrive_expect(shared(&more), 128);
    if (rank == 0)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;"
                   ::"r"(shared(both)), "l"(in), "r"(shared(&full)), "h"((short)3) : "memory");
  }
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
               ::"r"(at_rank(shared(stored + t), other)), "r"(100 * rank + t), "r"(at_rank(shared(&full), other)) : "memory");
  arrive_far(at_rank(shared(&full), other));
  wait(shared(&full), 0);
  if (t == 0)
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                 ::"r"(at_rank(shared(copied), other)), "r"(shared(stored)), "r"(at_rank(shared(&more), other)) : "memory");
  wait(shared(&more), 0);
  out[32 * blockIdx.x + t] = both[t] + stored[t] + 10000 * copied[t];
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 128;" ::"l"(out + 64), "r"(shared(both)) : "memory");
    bulk_done();
  }
  cluster_sync();
}
