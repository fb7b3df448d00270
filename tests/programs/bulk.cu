// Asynchronous copies of Hopper: bulk and tensor copies with barrier objects, in all directions,
// reductions, stores to the other CTA of a cluster and arrivals there.
#include "hopper.h"
const int chunk = 256, threads = 64, side = 16;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
__global__ void pipeline(const int *, int *, unsigned *, int) {}
__global__ void pair(const int *, int *) {}
__global__ void tiles(const __grid_constant__ CUtensorMap, const __grid_constant__ CUtensorMap, int, int, int *) {}
__global__ void deep(const __grid_constant__ CUtensorMap, const CUtensorMap *, int *) {}
__global__ void objects(int *) {}
__global__ void each(int *) {}
#else
// Two buffers: thread 0 fills them, all double what is there, thread 0 stores and sums it.
__global__ void pipeline(const int *in, int *out, unsigned *sums, int chunks) {
  __shared__ __align__(128) int data[2][chunk];
  __shared__ __align__(8) uint64_t full[2];
  if (threadIdx.x == 0) make(shared(full), 1), make(shared(full + 1), 1), made();
  __syncthreads();
  for (int i = 0; i < chunks + 1; i++) {
    if (threadIdx.x == 0 && i < chunks) {
      uint32_t object = shared(full + i % 2);
      arrive_expect(object, sizeof data[0]);
      bulk_in(shared(data[i % 2]), in + i * chunk, sizeof data[0], object);
    }
    if (i > 0) {
      int b = (i - 1) % 2;
      wait(shared(full + b), (i - 1) / 2 % 2);
      for (int j = threadIdx.x; j < chunk; j += threads) data[b][j] *= 2;
      __syncthreads();
      if (threadIdx.x == 0) {
        bulk_out(out + (i - 1) * chunk, shared(data[b]), sizeof data[0]);
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;"
                     ::"l"(sums), "r"(shared(data[b])), "r"((int)sizeof data[0]) : "memory");
        bulk_done();
      }
      __syncthreads();
    }
  }
}
// What each CTA of two gets from the other: by stores, by a bulk copy, by a copy for both.
__global__ void __cluster_dims__(2, 1, 1) pair(const int *in, int *out) {
  __shared__ __align__(128) int stored[threads], both[threads], mine[threads], copied[threads];
  __shared__ int4 quad;
  __shared__ int sum;
  __shared__ __align__(8) uint64_t full, ready;
  uint32_t rank = rank_of_cluster(), other = rank ^ 1, t = threadIdx.x;
  if (t == 0) make(shared(&full), 1), make(shared(&ready), threads), made(), sum = 0;
  mine[t] = 1000 * rank + 7 * t;
  cluster_sync();
  uint32_t object = at_rank(shared(&full), other);
  if (t == 0) {
    arrive_expect(shared(&full), sizeof stored + sizeof both + sizeof copied + sizeof quad + 4 * threads);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(at_rank(shared(copied), other)), "r"(shared(mine)), "r"((int)sizeof mine), "r"(object) : "memory");
    if (rank == 1)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                   ::"r"(shared(both)), "l"(in), "r"((int)sizeof both), "r"(shared(&full)), "h"((short)3) : "memory");
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.s32 [%0], {%1, %2, %3, %4}, [%5];"
                 ::"r"(at_rank(shared(&quad), other)), "r"(1), "r"(2), "r"(3), "r"(4 + rank), "r"(object) : "memory");
  }
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
               ::"r"(at_rank(shared(stored + t), other)), "r"(5 * t + rank), "r"(object) : "memory");
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
               ::"r"(at_rank(shared(&sum), other)), "r"(t + rank), "r"(object) : "memory");
  wait(shared(&full), 0);
  int all = stored[t] + 10 * both[t] + 1000 * copied[t] + quad.x + quad.y + quad.z + quad.w + sum;
  arrive_far(at_rank(shared(&ready), other));
  wait(shared(&ready), 0);
  out[blockIdx.x * threads + t] = all;
  cluster_sync();
}
// A tile at x, y is copied, and added to another tensor at the same place.
__global__ void tiles(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap sum, int x, int y, int *out) {
  __shared__ __align__(1024) int tile[side * side];
  __shared__ __align__(8) uint64_t full;
  if (threadIdx.x == 0) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&in));
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(&in), "r"(x), "r"(y));
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], 64;" ::"l"(out));
    make(shared(&full), 1), made();
    arrive_expect(shared(&full), sizeof(int) * side * side);
    tile_in(shared(tile), &in, x, y, shared(&full));
  }
  __syncthreads();
  wait(shared(&full), 0);
  for (int i = threadIdx.x; i < side * side; i += threads) out[i] = tile[i];
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&sum), "r"(x), "r"(y), "r"(shared(tile)) : "memory");
    bulk_done();
  }
}
// A box of five dimensions, to the same place of a tensor whose map lies in global memory.
__global__ void deep(const __grid_constant__ CUtensorMap from, const CUtensorMap *to, int *out) {
  __shared__ __align__(128) int data[4 * 2 * 2 * 2 * 2];
  __shared__ __align__(8) uint64_t full;
  if (threadIdx.x == 0) make(shared(&full), 1), made();
  __syncthreads();
  if (threadIdx.x < 32) {
    uint32_t first;
    asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(first));
    if (first) {
      arrive_expect(shared(&full), sizeof data);
      asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %3, %2}], [%5];"
                   ::"r"(shared(data)), "l"(&from), "r"(0), "r"(1), "r"(-1), "r"(shared(&full)) : "memory");
      wait(shared(&full), 0);
      asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %2, %1}], [%4];"
                   ::"l"(to), "r"(0), "r"(1), "r"(-1), "r"(shared(data)) : "memory");
      bulk_done();
    }
  }
  wait(shared(&full), 0);
  if (threadIdx.x < 64) out[threadIdx.x] = data[threadIdx.x];
}
// A copy for each thread: places that differ within a warp.
__global__ void each(int *out) {
  __shared__ __align__(16) int data[4 * threads];
  int t = threadIdx.x;
  for (int i = 0; i < 4; i++) data[4 * t + i] = 10 * t + i;
  if (t % 3 != 1) bulk_out(out + 4 * (threads - 1 - t), shared(data + 4 * t), 16);
  bulk_done();
}
// Arrivals, bytes and questions at one object.
__global__ void objects(int *out) {
  __shared__ __align__(8) uint64_t object;
  uint32_t at = shared(&object), t = threadIdx.x;
  if (t == 0) make(at, 2 * threads), made();
  __syncthreads();
  uint64_t token;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1], %2;" : "=l"(token) : "r"(at), "r"(1) : "memory");
  __syncthreads();
  if (t == 0) {
    uint32_t over, left;
    asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(over) : "r"(at), "l"(token) : "memory");
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(at) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(token));
    out[0] = over, out[1] = left;
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared.b64 [%0], 32;" ::"r"(at) : "memory");
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared.b64 [%0], 32;" ::"r"(at) : "memory");
  } else {
    arrive(at);
  }
  wait(at, 0);
  // One leaves for ever; the others suffice for the next phase.
  if (t == 1) asm volatile("mbarrier.arrive_drop.shared.b64 _, [%0];" ::"r"(at) : "memory");
  else asm volatile("mbarrier.arrive.shared.b64 _, [%0], %1;" ::"r"(at), "r"(t == 0 ? 3 : 2) : "memory");
  wait(at, 1);
  // Copies of threads, each of which arrives when they are done.
  __shared__ int copy[threads];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared(copy + t)), "l"(out + threads + t) : "memory");
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at) : "memory");
  if (t != 1) asm volatile("mbarrier.arrive.shared.b64 _, [%0], 2;" ::"r"(at) : "memory");
  else arrive(at);
  wait(at, 0);
  if (t >= 2) out[t] = copy[t];
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at) : "memory");
}
#endif

// Where an element of a row of 4 * 2^swizzle 16 bytes goes.
static int swizzled(int place, int swizzle) { return place ^ ((place >> 5 & ((1 << swizzle) - 1)) << 2); }

static void check_tiles() {
  const int w = 40, h = 25;
  static int values[w * h];
  for (int i = 0; i < w * h; i++) values[i] = draw(i) % 10000;
  const CUtensorMapSwizzle modes[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B};
  int *in = device(values, w * h);
  for (int swizzle = 0; swizzle < 4; swizzle++)
    for (int corner = 0; corner < 4; corner++) {
      int *sum = device(values, w * h), *out = device((int *)0, side * side);
      int x = corner % 2 ? 30 : -4, y = corner / 2 ? 20 : -3, wide = swizzle ? 4 << swizzle : side, high = side * side / wide;
      cuuint64_t size[2] = {w, h};
      cuuint32_t box[2] = {(cuuint32_t)wide, (cuuint32_t)high};
      CUtensorMap from = map_of(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 2, in, size, box, modes[swizzle]);
      CUtensorMap to = map_of(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 2, sum, size, box, modes[swizzle]);
      tiles<<<1, threads>>>(from, to, x, y, out);
      int *r = host(out, side * side), *s = host(sum, w * h);
      for (int j = 0; j < high; j++)
        for (int i = 0; i < wide; i++) {
          bool inside = x + i >= 0 && x + i < w && y + j >= 0 && y + j < h;
          int value = inside ? values[(y + j) * w + x + i] : 0;
          expect("tile", 1000 * swizzle + i, r[swizzled(j * wide + i, swizzle)], value, 0);
          if (inside) expect("sum", i, s[(y + j) * w + x + i], 2 * value, 0);
        }
    }
}
static void check_deep() {
  const int n = 4 * 3 * 3 * 3 * 3;
  static int values[n], zeros[n];
  for (int i = 0; i < n; i++) values[i] = i + 1;
  cuuint64_t size[5] = {4, 3, 3, 3, 3};
  cuuint32_t box[5] = {4, 2, 2, 2, 2};
  int *from = device(values, n), *to = device(zeros, n), *out = device((int *)0, 64);
  CUtensorMap in = map_of(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 5, from, size, box, CU_TENSOR_MAP_SWIZZLE_NONE);
  CUtensorMap map = map_of(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 5, to, size, box, CU_TENSOR_MAP_SWIZZLE_NONE);
  CUtensorMap *place;
  cudaMalloc(&place, sizeof map);
  cudaMemcpy(place, &map, sizeof map, cudaMemcpyHostToDevice);
  deep<<<1, 64>>>(in, place, out);
  int *r = host(out, 64), *s = host(to, n);
  for (int i = 0; i < 64; i++) {
    int x = i % 4, y = 1 + i / 4 % 2, z = i / 8 % 2 - 1, u = 1 + i / 16 % 2, v = i / 32;
    int at = x + 4 * (y + 3 * (z + 3 * (u + 3 * v)));
    expect("deep", i, r[i], z < 0 ? 0 : values[at], 0);
    if (z >= 0) expect("store", i, s[at], values[at], 0);
  }
}
int main() {
  cudaDeviceProp device_of;
  cudaGetDeviceProperties(&device_of, 0);
  if (device_of.major < 9) return finish("bulk");
  const int chunks = 5, n = chunks * chunk;
  static int values[n];
  for (int i = 0; i < n; i++) values[i] = draw(i) % 100000;
  int *in = device(values, n), *out = device((int *)0, n);
  unsigned *sums = device((unsigned *)0, chunk);
  pipeline<<<1, threads>>>(in, out, sums, chunks);
  int *r = host(out, n);
  unsigned *s = host(sums, chunk);
  for (int i = 0; i < n; i++) expect("pipeline", i, r[i], 2 * values[i], 0);
  for (int i = 0; i < chunk; i++) {
    unsigned sum = 0;
    for (int c = 0; c < chunks; c++) sum += 2 * values[c * chunk + i];
    expect("sum", i, s[i], sum, 0);
  }
  int *seen = device((int *)0, 4 * threads);
  pair<<<4, threads>>>(in, seen);
  int *p = host(seen, 4 * threads);
  for (int i = 0; i < 4 * threads; i++) {
    int t = i % threads, other = i / threads % 2 ^ 1;
    int wanted = 5 * t + other + 10 * values[t] + 1000 * (1000 * other + 7 * t) + 10 + other + threads * (threads - 1) / 2 + threads * other;
    expect("pair", i, p[i], wanted, 0);
  }
  check_tiles();
  check_deep();
  int *spread = device((int *)0, 4 * threads);
  each<<<1, threads>>>(spread);
  int *e = host(spread, 4 * threads);
  for (int i = 0; i < 4 * threads; i++) {
    int t = threads - 1 - i / 4;
    expect("each", i, e[i], t % 3 == 1 ? 0 : 10 * t + i % 4, 0);
  }
  int *steps = device(values, 2 * threads);
  objects<<<1, threads>>>(steps);
  int *o = host(steps, threads);
  expect("over", 0, o[0], 0, 0);
  for (int t = 2; t < threads; t++) expect("copy", t, o[t], values[threads + t], 0);
  return finish("bulk");
}
