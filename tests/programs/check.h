// What every program needs: a value per index, a comparison, one line at the end.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

inline unsigned draw(unsigned index) {
  unsigned x = index * 2654435761u + 12345u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  return x;
}

inline float real(unsigned index) { return (draw(index) % 2000) / 1000.0f - 1.0f; }

static int failures = 0;

// Whether kernels run in the sizes of the workload models, without comparison: `./ugpu full ugpu-cp`.
static bool full = false;
template <typename T> T sized(T small, T large) { return full ? large : small; }
// Runs a kernel, unless the program was called with the name of another.
struct Calls {
  const char *only = nullptr;
  Calls(int count, char **words) {
    for (int i = 1; i < count; i++)
      if (!std::strcmp(words[i], "full")) full = true;
      else only = words[i];
  }
  void operator()(const char *name, void (*kernel)()) const {
    if (!only || !std::strcmp(only, name)) kernel();
  }
};

template <typename T> void expect(const char *what, int index, T got, T wanted, double tolerance) {
  double distance = std::fabs(double(got) - double(wanted));
  if (!(distance <= tolerance * (1 + std::fabs(double(wanted)))) && failures++ < 5)
    std::printf("%s[%d]: %.9g, expected %.9g\n", what, index, double(got), double(wanted));
}

template <typename T> T *device(const T *from, int count) {
  T *to;
  cudaMalloc(&to, count * sizeof(T));
  if (from) cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyHostToDevice);
  else cudaMemset(to, 0, count * sizeof(T));
  return to;
}

template <typename T> T *host(const T *from, int count) {
  T *to = (T *)std::malloc(count * sizeof(T));
  cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyDeviceToHost);
  return to;
}

inline int finish(const char *name) {
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    std::printf("%s: %s\n", name, cudaGetErrorString(error));
    failures++;
  }
  std::printf("%s: %s\n", name, failures ? "FAIL" : full ? "not compared" : "PASS");
  return failures != 0;
}
