// Kernels for tests of the executor where there is no CUDA toolkit. Made with CUDA 13.4:
//   nvcc -arch=sm_80 -cubin kernels.cu -o kernels.cubin
// and kernels.sass is what `gpumodel trace` gets from nvdisasm for it.
__constant__ int weights[4];
__device__ int total;

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void sum(const int *x, int n) {
  __shared__ int part[4];
  int v = 0;
  for (int i = threadIdx.x; i < n; i += 128) v += x[i] * weights[i & 3];
  for (int step = 16; step; step /= 2) v += __shfl_down_sync(~0u, v, step);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) total = part[0] + part[1] + part[2] + part[3];
}

extern "C" __global__ void steps(int *out) {
  unsigned n = threadIdx.x + 1;
  int k = 0;
  while (n != 1) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    k++;
  }
  out[threadIdx.x] = k;
}
