// Matrix multiplies of warp groups: every kind of element, operands in registers and in shared
// memory with each swizzle, and a product with a producer, a pipeline and clusters of two.
#include "hopper.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
const int side = 64, stages = 3;

#define WORDS32(v)                                                                                          \
  v(0), v(1), v(2), v(3), v(4), v(5), v(6), v(7), v(8), v(9), v(10), v(11), v(12), v(13), v(14), v(15),     \
      v(16), v(17), v(18), v(19), v(20), v(21), v(22), v(23), v(24), v(25), v(26), v(27), v(28), v(29),     \
      v(30), v(31)
#define LIST32                                                                                              \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "  \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define SUM(i) "+f"(d[i])

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Architectures before and after sm_90a have no such instructions.
template <int ta, int tb>
__global__ void shapes(const __grid_constant__ CUtensorMap, const __grid_constant__ CUtensorMap, int, float *) {}
#define KERNEL(name, type, sums) __global__ void name(const uint4 *, const uint4 *, type *, uint64_t, uint64_t) {}
#define FROM_REGISTERS(name, kind, tail) __global__ void name(const uint4 *, const uint4 *, float *, uint64_t, uint64_t) {}
__global__ void matrices(unsigned short *) {}
__global__ void gemm(const __grid_constant__ CUtensorMap, const __grid_constant__ CUtensorMap, float *, int, int) {}
#else
__device__ inline void group_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void group_end() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// A descriptor: where, bytes between blocks in both dimensions, 1 to 3 for a swizzle of 128, 64, 32.
__device__ inline uint64_t describe(uint32_t at, uint64_t leading, uint64_t stride, uint64_t mode) {
  return (at & 0x3ffff) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62;
}
template <int ta, int tb> __device__ inline void multiply(float (&d)[32], uint64_t a, uint64_t b, int adds) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " LIST32 ", %32, %33, p, 1, 1, %35, %36;}"
               : WORDS32(SUM) : "l"(a), "l"(b), "r"(adds), "n"(ta), "n"(tb));
}
__device__ inline void store(const float (&d)[32], float *out, int width) {
  int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  for (int i = 0; i < 32; i++)
    out[(16 * warp + lane / 4 + 8 * (i / 2 % 2)) * width + 8 * (i / 4) + lane % 4 * 2 + i % 2] = d[i];
}
// The place of 16 elements of K in a tile of 64 x 64 that was copied in boxes of `span` bytes.
template <int transposed> __device__ uint64_t step(uint32_t tile, int k, int span) {
  int mode = span == 128 ? 1 : span == 64 ? 2 : 3;
  if (transposed) return describe(tile + 16 * k * span, side * span, 8 * span, mode);
  return describe(tile + 32 * k / span * side * span + 32 * k % span, 16, 8 * span, mode);
}
template <int ta, int tb>
__global__ void shapes(const __grid_constant__ CUtensorMap ma, const __grid_constant__ CUtensorMap mb, int span, float *out) {
  __shared__ __align__(1024) __half a[side * side], b[side * side];
  __shared__ __align__(8) uint64_t full;
  if (threadIdx.x == 0) {
    make(shared(&full), 1), made();
    arrive_expect(shared(&full), sizeof a + sizeof b);
    for (int i = 0; i < side * 2 / span; i++) {
      tile_in(shared(a) + i * side * span, &ma, i * span / 2, 0, shared(&full));
      tile_in(shared(b) + i * side * span, &mb, i * span / 2, 0, shared(&full));
    }
  }
  __syncthreads();
  wait(shared(&full), 0);
  float d[32];
  group_begin();
  for (int k = 0; k < 4; k++) multiply<ta, tb>(d, step<ta>(shared(a), k, span), step<tb>(shared(b), k, span), k > 0);
  group_end();
  store(d, out, side);
}
// Rows of 32 bytes in blocks of 8 rows of 16 bytes, first all first halves.
__device__ inline void fill(uint4 *to, const uint4 *from, int rows) {
  for (int i = threadIdx.x; i < 2 * rows; i += 128) to[i % 2 * rows + i / 2] = from[i];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
}
// A product of 64 and 8 rows of 32 bytes, twice.
#define KERNEL(name, type, sums)                                                        \
  __global__ void name(const uint4 *from_a, const uint4 *from_b, type *out, uint64_t ra, uint64_t rb) {     \
    __shared__ __align__(128) uint4 a[128], b[16];                                                          \
    fill(a, from_a, 64), fill(b, from_b, 8);                                                                \
    type d[sums];                                                                                           \
    for (int i = 0; i < sums; i++) d[i] = out[i * 128 + threadIdx.x];                                       \
    group_begin();                                                                                          \
    for (int k = 0; k < 2; k++)                                                                             \
      name##_one(d, ra + (shared(a) >> 4), rb + (shared(b) >> 4));                                          \
    group_end();                                                                                            \
    for (int i = 0; i < sums; i++) out[i * 128 + threadIdx.x] = d[i];                                       \
  }
#define FOUR(name, kind, type, number, tail)                                                                \
  __device__ inline void name##_one(type *d, uint64_t a, uint64_t b) {                                      \
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned." kind                   \
                 " {%0, %1, %2, %3}, %4, %5, p" tail ";}"                                                    \
                 : "+" number(d[0]), "+" number(d[1]), "+" number(d[2]), "+" number(d[3]) : "l"(a), "l"(b)); \
  }
#define TWO(name, kind, type, number, tail)                                                                 \
  __device__ inline void name##_one(type *d, uint64_t a, uint64_t b) {                                      \
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned." kind                   \
                 " {%0, %1}, %2, %3, p" tail ";}"                                                            \
                 : "+" number(d[0]), "+" number(d[1]) : "l"(a), "l"(b));                                     \
  }
FOUR(brains, "m64n8k16.f32.bf16.bf16", float, "f", ", -1, 1, 0, 0")
FOUR(singles, "m64n8k8.f32.tf32.tf32", float, "f", ", 1, 1")
FOUR(eights, "m64n8k32.f32.e4m3.e5m2", float, "f", ", 1, -1")
FOUR(bytes, "m64n8k32.s32.s8.u8", int, "r", "")
TWO(halves, "m64n8k16.f16.f16.f16", unsigned, "r", ", 1, 1, 0, 0")
// The same with A in registers.
#define FROM_REGISTERS(name, kind, tail)                                                                    \
  __global__ void name(const uint4 *from_a, const uint4 *from_b, float *out, uint64_t, uint64_t rb) {       \
    __shared__ __align__(128) uint4 b[16];                                                                  \
    fill(b, from_b, 8);                                                                                     \
    unsigned a[4];                                                                                          \
    float d[4];                                                                                             \
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;                                                   \
    for (int i = 0; i < 4; i++) a[i] = ((const unsigned *)from_a)[(16 * warp + lane / 4 + 8 * (i % 2)) * 8 + lane % 4 + i / 2 * 4]; \
    for (int i = 0; i < 4; i++) d[i] = out[i * 128 + threadIdx.x];                                          \
    group_begin();                                                                                          \
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned." kind                   \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p" tail ";}"                                      \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rb + (shared(b) >> 4)));                  \
    group_end();                                                                                            \
    for (int i = 0; i < 4; i++) out[i * 128 + threadIdx.x] = d[i];                                          \
  }
// Four matrices of 8 x 8 as they are, then two transposed, from the registers of a warp.
__global__ void matrices(unsigned short *out) {
  __shared__ __align__(16) unsigned short to[6 * 64];
  unsigned t = threadIdx.x, at = shared(to) + 16 * t, v = (2 * t + 1) << 16 | 2 * t;
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               ::"r"(at), "r"(v), "r"(v + 0x640064), "r"(v + 0xc800c8), "r"(v + 0x12c012c) : "memory");
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
               ::"r"(at + 512), "r"(v), "r"(v + 0x640064) : "memory");
  __syncwarp();
  for (int i = t; i < 6 * 64; i += 32) out[i] = to[i];
}
// Warps 0 to 3 multiply, warp 4 copies; the two CTAs of a cluster share the columns.
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(256, 1) gemm(const __grid_constant__ CUtensorMap ma, const __grid_constant__ CUtensorMap mb, float *out, int n, int k) {
  extern __shared__ __align__(1024) uint8_t memory[];
  __shared__ __align__(8) uint64_t full[stages], empty[stages];
  const int tile = side * side * 2;
  uint32_t rank = rank_of_cluster(), first = (shared(memory) + 1023) / 1024 * 1024;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; s++) make(shared(full + s), 1), make(shared(empty + s), 2);
    made();
  }
  cluster_sync();
  if (threadIdx.x / 128 == 1) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 128)
      for (int i = 0; i < k / side; i++) {
        int s = i % stages;
        uint32_t object = shared(full + s), a = first + 2 * tile * s, b = a + tile;
        wait(shared(empty + s), (i / stages + 1) % 2);
        arrive_expect(object, 2 * tile);
        tile_in(a, &ma, i * side, blockIdx.x * side, object);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(b + rank * tile / 2), "l"(&mb), "r"(i * side), "r"((int)(blockIdx.y * side + rank * side / 2)), "r"(object), "h"((short)3) : "memory");
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
    float d[32];
    for (int i = 0; i < k / side; i++) {
      int s = i % stages;
      uint32_t a = first + 2 * tile * s, b = a + tile;
      wait(shared(full + s), i / stages % 2);
      group_begin();
      for (int j = 0; j < 4; j++) multiply<0, 0>(d, step<0>(a, j, 128), step<0>(b, j, 128), i + j > 0);
      group_end();
      if (threadIdx.x < 2) arrive_far(at_rank(shared(empty + s), threadIdx.x));
    }
    store(d, out + blockIdx.x * side * n + blockIdx.y * side, n);
  }
  cluster_sync();
}
#endif
KERNEL(brains, float, 4)
KERNEL(singles, float, 4)
KERNEL(eights, float, 4)
KERNEL(bytes, int, 4)
KERNEL(halves, unsigned, 2)
FROM_REGISTERS(brains_there, "m64n8k16.f32.bf16.bf16", ", 1, -1, 0")
FROM_REGISTERS(singles_there, "m64n8k8.f32.tf32.tf32", ", -1, 1")

static CUtensorMap map_of(void *at, int wide, int high, int box_wide, int box_high, CUtensorMapSwizzle swizzle) {
  cuuint64_t size[2] = {(cuuint64_t)wide, (cuuint64_t)high};
  cuuint32_t box[2] = {(cuuint32_t)box_wide, (cuuint32_t)box_high};
  return map_of(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, 2, at, size, box, swizzle);
}
static float number(int i) { return (int)(draw(i) % 33) / 8.0f - 2; }

template <int ta, int tb> static void check_shapes() {
  static __half a[side * side], b[side * side];
  for (int i = 0; i < side * side; i++) a[i] = __float2half(number(i)), b[i] = __float2half(number(i + 7777));
  const CUtensorMapSwizzle modes[] = {CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B};
  __half *in_a = device(a, side * side), *in_b = device(b, side * side);
  for (int mode = 0; mode < 3; mode++) {
    int span = 32 << mode;
    float *out = device((float *)0, side * side);
    CUtensorMap ma = map_of(in_a, side, side, span / 2, side, modes[mode]), mb = map_of(in_b, side, side, span / 2, side, modes[mode]);
    shapes<ta, tb><<<1, 128>>>(ma, mb, span, out);
    float *r = host(out, side * side);
    for (int i = 0; i < side; i++)
      for (int j = 0; j < side; j++) {
        double sum = 0;
        for (int k = 0; k < side; k++)
          sum += double(__half2float(ta ? a[k * side + i] : a[i * side + k])) * __half2float(tb ? b[k * side + j] : b[j * side + k]);
        expect(ta ? tb ? "both" : "a" : tb ? "b" : "none", span * 10000 + i * side + j, r[i * side + j], (float)sum, 1e-6);
      }
  }
}
// The sum of products of rows of 32 bytes, `times` times, on what `start` says.
template <typename A, typename B, typename S, typename T>
static void check_kind(const char *name, void (*kernel)(const uint4 *, const uint4 *, T *, uint64_t, uint64_t), double factor, double tolerance) {
  const int depth = 32 / sizeof(A), sums = sizeof(T) / sizeof(S);
  static A a[64 * 32];
  static B b[8 * 32];
  static S first[64 * 8];
  for (int i = 0; i < 64 * depth; i++) a[i] = A(number(i));
  for (int i = 0; i < 8 * depth; i++) b[i] = B(number(i + 999) + (float(B(-1.0f)) > 0 ? 2 : 0));
  for (int i = 0; i < 64 * 8; i++) first[i] = S(number(i + 5));
  T *out = device((T *)first, 64 * 8 / sums);
  // Descriptors without the address: from block to block 128 bytes, of A 1024 to the second halves.
  uint64_t blocks = 8ull << 32;
  kernel<<<1, 128>>>(device((uint4 *)a, 128), device((uint4 *)b, 16), out, blocks | 64 << 16, blocks | 8 << 16);
  S *r = (S *)host(out, 64 * 8 / sums);
  for (int t = 0; t < 128; t++)
    for (int i = 0; i < 4; i++) {
      int row = 16 * (t / 32) + t % 32 / 4 + 8 * (i / 2), column = t % 4 * 2 + i % 2;
      int at = (i / sums * 128 + t) * sums + i % sums;
      double sum = 0;
      for (int k = 0; k < depth; k++) sum += double(float(a[row * depth + k])) * float(b[column * depth + k]);
      expect(name, t * 4 + i, float(r[at]), float(double(float(first[at])) + factor * sum), tolerance);
    }
}
static void check_gemm() {
  const int m = 2 * side, n = 2 * side, k = 5 * side;
  static __half a[m * k], b[n * k];
  for (int i = 0; i < m * k; i++) a[i] = __float2half(number(i + 3));
  for (int i = 0; i < n * k; i++) b[i] = __float2half(number(i + 8));
  float *out = device((float *)0, m * n);
  CUtensorMap ma = map_of(device(a, m * k), k, m, side, side, CU_TENSOR_MAP_SWIZZLE_128B);
  CUtensorMap mb = map_of(device(b, n * k), k, n, side, side / 2, CU_TENSOR_MAP_SWIZZLE_128B);
  int memory = stages * 2 * side * side * 2 + 1024;
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, memory);
  gemm<<<dim3(m / side, n / side), 256, memory>>>(ma, mb, out, n, k);
  float *r = host(out, m * n);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < k; l++) sum += double(__half2float(a[i * k + l])) * __half2float(b[j * k + l]);
      expect("gemm", i * n + j, r[i * n + j], (float)sum, 1e-6);
    }
}
static void check_matrices() {
  unsigned short *out = device((unsigned short *)0, 6 * 64);
  matrices<<<1, 32>>>(out);
  unsigned short *r = host(out, 6 * 64);
  for (int i = 0; i < 6 * 64; i++) {
    int place = i / 64 < 4 ? i % 64 : i % 8 * 8 + i / 8 % 8;
    expect("matrix", i, int(r[i]), place + 100 * (i / 64 % 4), 0);
  }
}
int main() {
  cudaDeviceProp device_of;
  cudaGetDeviceProperties(&device_of, 0);
  if (device_of.major != 9) return finish("wgmma");
  check_shapes<0, 0>(), check_shapes<1, 0>(), check_shapes<0, 1>(), check_shapes<1, 1>();
  check_kind<__nv_bfloat16, __nv_bfloat16, float>("brains", brains, -2, 1e-6);
  check_kind<float, float, float>("singles", singles, 2, 1e-6);
  check_kind<__nv_fp8_e4m3, __nv_fp8_e5m2, float>("eights", eights, -2, 1e-3);
  check_kind<signed char, unsigned char, int>("bytes", bytes, 2, 0);
  check_kind<__half, __half, __half>("halves", halves, 2, 4e-3);
  check_kind<__nv_bfloat16, __nv_bfloat16, float>("brains_there", brains_there, -1, 1e-6);
  check_kind<float, float, float>("singles_there", singles_there, -1, 1e-6);
  check_matrices();
  check_gemm();
  return finish("wgmma");
}
