// Clusters of CTAs: shared memory of the others by load, store and atomic, and their barrier.
#include "check.h"
const int threads = 96;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
// Earlier GPUs have no clusters: the host does not launch these.
__global__ void histogram(const unsigned *, int *, int, int) {}
__global__ void exchange(int *) {}
#else
#include <cooperative_groups.h>
namespace groups = cooperative_groups;

// A histogram of which each CTA of the cluster has a part.
__global__ void __cluster_dims__(4, 1, 1) histogram(const unsigned *in, int *out, int n, int bins) {
  extern __shared__ int part[];
  groups::cluster_group cluster = groups::this_cluster();
  int each = bins / cluster.num_blocks();
  for (int i = threadIdx.x; i < each; i += blockDim.x) part[i] = 0;
  cluster.sync();
  int first = blockIdx.x / 4 * n;
  for (int i = first + cluster.thread_rank(); i < first + n; i += cluster.num_threads()) {
    int bin = in[i] % bins;
    atomicAdd(cluster.map_shared_rank(part, bin / each) + bin % each, 1);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < each; i += blockDim.x)
    atomicAdd(&out[cluster.block_rank() * each + i], part[i]);
}
// Each CTA writes into the next one's memory, in two dimensions.
__global__ void exchange(int *out) {
  __shared__ int mine[threads], theirs[threads];
  groups::cluster_group cluster = groups::this_cluster();
  unsigned rank = cluster.block_rank(), next = (rank + 1) % cluster.num_blocks();
  dim3 place = cluster.block_index(), size = cluster.dim_blocks();
  mine[threadIdx.x] = blockIdx.x + 10 * blockIdx.y + 1000 * threadIdx.x;
  auto token = cluster.barrier_arrive();
  int number = place.x + size.x * place.y;
  cluster.barrier_wait(std::move(token));
  cluster.map_shared_rank(theirs, next)[threadIdx.x] = mine[threadIdx.x] + 100000 * number;
  cluster.sync();
  unsigned owner = cluster.query_shared_rank(cluster.map_shared_rank(theirs, next));
  out[(blockIdx.y * gridDim.x + blockIdx.x) * threads + threadIdx.x] =
      theirs[threadIdx.x] + cluster.map_shared_rank(mine, 0)[threadIdx.x] + owner;
  cluster.sync();
}
#endif
int main() {
  cudaDeviceProp device_of;
  cudaGetDeviceProperties(&device_of, 0);
  if (device_of.major < 9) return finish("cluster");
  const int n = 1000, bins = 64, clusters = 3;
  static unsigned values[n * clusters];
  static int counts[bins];
  for (int i = 0; i < n * clusters; i++) counts[(values[i] = draw(i)) % bins]++;
  unsigned *in = device(values, n * clusters);
  int *out = device((int *)0, bins);
  histogram<<<4 * clusters, threads, bins / 4 * sizeof(int)>>>(in, out, n, bins);
  int *r = host(out, bins);
  for (int i = 0; i < bins; i++) expect("bin", i, r[i], counts[i], 0);
  const int wide = 6, high = 4, cx = 3, cy = 2;
  int *seen = device((int *)0, wide * high * threads);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cx, attribute.val.clusterDim.y = cy, attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(wide, high), launch.blockDim = threads;
  launch.attrs = &attribute, launch.numAttrs = 1;
  cudaLaunchKernelEx(&launch, exchange, seen);
  int *s = host(seen, wide * high * threads);
  for (int y = 0; y < high; y++)
    for (int x = 0; x < wide; x++)
      for (int t = 0; t < threads; t++) {
        int rank = x % cx + cx * (y % cy), before = (rank + cx * cy - 1) % (cx * cy);
        int bx = x / cx * cx, by = y / cy * cy;
        int from = bx + before % cx + 10 * (by + before / cx) + 1000 * t + 100000 * before;
        int first = bx + 10 * by + 1000 * t;
        expect("exchange", t, s[(y * wide + x) * threads + t], from + first + (rank + 1) % (cx * cy), 0);
      }
  return finish("cluster");
}
