// Barrier objects, bulk copies and multiplies of warp groups, as PTX has them.
#pragma once
#include "check.h"
#include <cstdint>
#include <cuda.h>

typedef decltype(&cuTensorMapEncodeTiled) Encode;

// The driver's function that makes tensor maps.
inline Encode encoder() {
  void *found = nullptr;
  cudaDriverEntryPointQueryResult status;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
  if (status != cudaDriverEntryPointSuccess) std::printf("no cuTensorMapEncodeTiled\n"), std::exit(1);
  return (Encode)found;
}

// A map of a dense tensor of `rank` dimensions, the innermost first.
inline CUtensorMap map_of(CUtensorMapDataType type, int bytes, int rank, void *at, const cuuint64_t *size,
                          const cuuint32_t *box, CUtensorMapSwizzle swizzle) {
  CUtensorMap map;
  cuuint64_t strides[4];
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  cuuint64_t stride = bytes;
  for (int i = 0; i + 1 < rank; i++) strides[i] = stride *= size[i];
  CUresult done = encoder()(&map, type, rank, at, size, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (done != CUDA_SUCCESS) std::printf("cuTensorMapEncodeTiled: %d\n", done), failures++;
  return map;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__device__ inline uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ inline uint32_t rank_of_cluster() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline uint32_t at_rank(uint32_t address, uint32_t rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
__device__ inline void make(uint32_t object, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(object), "r"(arrivals) : "memory");
}
__device__ inline void made() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
__device__ inline void arrive(uint32_t object) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(object) : "memory");
}
__device__ inline void arrive_far(uint32_t object) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(object) : "memory");
}
__device__ inline void arrive_expect(uint32_t object, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(object), "r"(bytes) : "memory");
}
__device__ inline bool is_over(uint32_t object, int parity) {
  uint32_t over;
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(over) : "r"(object), "r"(parity) : "memory");
  return over;
}
__device__ inline void wait(uint32_t object, int parity) {
  while (!is_over(object, parity));
}
__device__ inline void bulk_in(uint32_t to, const void *from, int bytes, uint32_t object) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(to), "l"(from), "r"(bytes), "r"(object) : "memory");
}
__device__ inline void bulk_out(void *to, uint32_t from, int bytes) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
__device__ inline void bulk_done() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ inline void tile_in(uint32_t to, const CUtensorMap *map, int x, int y, uint32_t object) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(object) : "memory");
}
#endif
