// Calls that are not inlined, recursion, function pointers, arrays in local memory, and calls to
// the system: printf, malloc, free and assert.
#include "check.h"
#include <cassert>
#include <cstring>
#include <string>
#include <unistd.h>
__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ float twice(float x) { return 2 * x; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float less(float x) { return x - 3; }
typedef float (*Function)(float);
__device__ Function table[] = {twice, square, less};
__global__ void calls(int *a, float *f, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  a[t] = ackermann(t % 3, t % 5);
  f[t] = table[t * 7 % 3](float(t));
}
__device__ __noinline__ void quicksort(int *x, int low, int high) {
  while (low < high) {
    int pivot = x[(low + high) / 2], i = low, j = high;
    while (i <= j) {
      while (x[i] < pivot) i++;
      while (x[j] > pivot) j--;
      if (i <= j) {
        int old = x[i];
        x[i++] = x[j], x[j--] = old;
      }
    }
    quicksort(x, low, j);
    low = i;
  }
}
__global__ void medians(const int *x, int *out, int n) {
  int t = threadIdx.x, list[25];
  for (int i = 0; i < 25; i++) list[i] = x[(t * 25 + i) % n];
  quicksort(list, 0, 24);
  out[t] = list[12];
}
struct Link {
  Link *next;
  int value;
};
__global__ void push(Link **heads, int rounds) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i <= t % rounds; i++) {
    Link *one = (Link *)malloc(sizeof(Link));
    if (!one) return;
    *one = {heads[t], t + i};
    heads[t] = one;
  }
}
__global__ void pop(Link **heads, int *sums) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  while (Link *one = heads[t]) {
    sums[t] += one->value;
    heads[t] = one->next;
    free(one);
  }
  if (t == 0) sums[0] += malloc(size_t(1) << 30) == nullptr ? 1000 : 0;
}
__global__ void say(int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int said = printf("%3d|%-6s|%c|%8.3f|%llx|%+.*e|%%\n", i, i % 2 ? "odd" : "even", 'a' + i % 26, i * 0.25,
                    (unsigned long long)i << 33, 3, double(i));
  if (said != 6 && said != 7) printf("it took %d values\n", said);
}
__global__ void claim(const int *x, int n) { assert(int(threadIdx.x) < n && x); }
// What `work` makes the program write to a file.
template <typename Work> std::string written(int file, Work work) {
  FILE *kept = std::tmpfile();
  std::fflush(nullptr);
  int before = dup(file);
  dup2(fileno(kept), file);
  work();
  std::fflush(nullptr);
  dup2(before, file);
  std::string text(size_t(lseek(fileno(kept), 0, SEEK_END)), ' ');
  if (pread(fileno(kept), &text[0], text.size(), 0) < 0) failures++;
  std::fclose(kept);
  return text;
}
void system_calls() {
  const int n = 200;
  Link **heads = device<Link *>(nullptr, 256);
  int *sums = device<int>(nullptr, 256);
  push<<<4, 64>>>(heads, 5);
  push<<<4, 64>>>(heads, 3);
  pop<<<4, 64>>>(heads, sums);
  int *got = host(sums, 256);
  for (int t = 0; t < 256; t++) {
    int sum = t == 0 ? 1000 : 0;
    for (int rounds : {5, 3})
      for (int i = 0; i <= t % rounds; i++) sum += t + i;
    expect("list", t, got[t], sum, 0);
  }
  std::string wanted;
  for (int i = 0; i < n; i++) {
    char line[99];
    std::snprintf(line, sizeof line, "%3d|%-6s|%c|%8.3f|%llx|%+.*e|%%\n", i, i % 2 ? "odd" : "even", 'a' + i % 26,
                  i * 0.25, (unsigned long long)i << 33, 3, double(i));
    wanted += line;
  }
  std::string said = written(1, [] {
    say<<<4, 64>>>(n);
    cudaDeviceSynchronize();
  });
  // A GPU prints warps in another order.
  expect("bytes printed", 0, int(said.size()), int(wanted.size()), 0);
  for (size_t from = 0; from < wanted.size(); from = wanted.find('\n', from) + 1)
    expect("line", int(from), said.find(wanted.substr(from, wanted.find('\n', from) + 1 - from)) != said.npos, true, 0);
  std::string complaint = written(2, [heads] {
    claim<<<2, 32>>>((const int *)heads, 32);
    expect("assert that holds", 0, int(cudaDeviceSynchronize()), int(cudaSuccess), 0);
    claim<<<1, 32>>>((const int *)heads, 30);
    expect("assert that fails", 0, int(cudaDeviceSynchronize()), int(cudaErrorAssert), 0);
  });
  const char *part = "block: [0,0,0], thread: [31,0,0] Assertion `int(threadIdx.x) < n && x` failed.";
  expect("complaint", 0, complaint.find(part) != complaint.npos, true, 0);
  void *more;
  expect("call after it", 0, int(cudaMalloc(&more, 64)), int(cudaErrorAssert), 0);
  expect("last error", 0, std::strcmp(cudaGetErrorName(cudaGetLastError()), "cudaErrorAssert"), 0, 0);
  cudaDeviceReset();
}
__global__ void store(int *at) { *at = threadIdx.x; }
__global__ void load(const int *at, int *to) { *to = *at + 1; }
__global__ void add(int *at) { atomicAdd(at, 1); }
__global__ void trap(int *at) {
  if (*at == 0) __trap();
}
// A kernel that leaves all allocations fails, and so do all later calls; one lane is enough.
void faults() {
  const char *what[] = {"store", "load", "atomic", "freed", "odd address", "trap"};
  const cudaError_t wanted[] = {cudaErrorIllegalAddress, cudaErrorIllegalAddress, cudaErrorIllegalAddress,
                                cudaErrorIllegalAddress, cudaErrorMisalignedAddress, cudaErrorLaunchFailure};
  for (int kind = 0; kind < 6; kind++) {
    int *first = device<int>(nullptr, 1024), *freed = device<int>(nullptr, 1 << 20), *last = device<int>(nullptr, 1024);
    store<<<1, 32>>>(last);
    cudaFree(freed);
    expect("before a fault", kind, int(cudaDeviceSynchronize()), 0, 0);
    cudaError_t error;
    std::string complaint = written(2, [&] {
      if (kind == 0) store<<<1, 32>>>(nullptr);
      if (kind == 1) load<<<1, 32>>>(first + (1l << 34), last);
      if (kind == 2) add<<<1, 32>>>((int *)64);
      // A card may find this one in a page that it has not given back.
      if (kind == 3) store<<<1, 32>>>(freed + (1 << 19));
      if (kind == 4) store<<<1, 32>>>((int *)((char *)first + 2));
      if (kind == 5) trap<<<1, 32>>>(first);
      error = cudaDeviceSynchronize();
    });
    expect(what[kind], 0, int(error), int(wanted[kind]), 0);
    expect("said", kind, complaint.find("PC 0x") != complaint.npos, true, 0);
    int back = 0;
    expect("copy after it", kind, int(cudaMemcpy(&back, last, 4, cudaMemcpyDeviceToHost)), int(wanted[kind]), 0);
    cudaDeviceReset();
  }
}
int host_ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? host_ackermann(m - 1, 1) : host_ackermann(m - 1, host_ackermann(m, n - 1)); }
int main() {
  const int n = 150;
  static int x[n];
  for (int i = 0; i < n; i++) x[i] = draw(i) % 1000;
  int *a = device<int>(nullptr, n), *m = device<int>(nullptr, 64);
  float *f = device<float>(nullptr, n);
  cudaDeviceSetLimit(cudaLimitStackSize, 16384);
  calls<<<3, 64>>>(a, f, n);
  medians<<<1, 64>>>(device(x, n), m, n);
  int *got = host(a, n), *median = host(m, 64);
  float *real_got = host(f, n);
  for (int t = 0; t < n; t++) {
    expect("ackermann", t, got[t], host_ackermann(t % 3, t % 5), 0);
    float v = t;
    expect("pointer", t, real_got[t], t * 7 % 3 == 0 ? 2 * v : t * 7 % 3 == 1 ? v * v : v - 3, 0);
  }
  for (int t = 0; t < 64; t++) {
    int below = 0, same = 0;
    for (int i = 0; i < 25; i++) below += x[(t * 25 + i) % n] < median[t], same += x[(t * 25 + i) % n] == median[t];
    expect("median", t, below <= 12 && below + same > 12, true, 0);
  }
  system_calls();
  faults();
  return finish("recursion");
}
