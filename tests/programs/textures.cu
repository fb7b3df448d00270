// Textures and surfaces: fetches, filters, coordinates outside, arrays, linear and pitched memory.
#include "check.h"
const int W = 37, H = 21;
// Weights have 8 bits after the point, so that a result may differ by that of the true one.
const double filtered = 1.0 / 128;

__global__ void fetch(cudaTextureObject_t one, cudaTextureObject_t four, cudaTextureObject_t bytes, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = tex1Dfetch<float4>(four, i / 4);
  out[i] = tex1Dfetch<float>(one, n - 1 - i) + v.x + 2 * v.y + 3 * v.z + 4 * v.w + tex1Dfetch<float>(bytes, i % 256);
}
__global__ void line(cudaTextureObject_t t, float *out, float first, float step) {
  int i = threadIdx.x;
  out[i] = tex1D<float>(t, first + step * i);
}
template <typename T> __global__ void plane(cudaTextureObject_t t, T *out, int w, float2 first, float2 step) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < w) out[y * w + x] = tex2D<T>(t, first.x + step.x * x, first.y + step.y * y);
}
__global__ void level(cudaTextureObject_t t, float *out, int w) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < w) out[y * w + x] = tex2DLod<float>(t, x + 0.5f, y + 0.5f, 0);
}
__global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x >= w) return;
  float here, left;
  surf2Dread(&here, from, x * 4, y);
  surf2Dread(&left, from, (x - 1) * 4, y, cudaBoundaryModeClamp);
  surf2Dwrite(here + 10 * left, to, (w - 1 - x) * 4, h - 1 - y);
  surf2Dwrite(99.0f, to, (w + x) * 4, y, cudaBoundaryModeZero);
}

static cudaTextureObject_t make(cudaResourceDesc resource, cudaTextureAddressMode mode, cudaTextureFilterMode filter, bool unit, bool scaled, float border = 0) {
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = mode;
  how.filterMode = filter;
  how.readMode = scaled ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  how.normalizedCoords = unit;
  for (float &one : how.borderColor) one = border;
  cudaTextureObject_t t = 0;
  if (cudaCreateTextureObject(&t, &resource, &how, nullptr) != cudaSuccess) failures++;
  return t;
}
static cudaResourceDesc of_array(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}
template <typename T> cudaResourceDesc of_line(T *data, int count) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = data;
  resource.res.linear.desc = cudaCreateChannelDesc<T>();
  resource.res.linear.sizeInBytes = count * sizeof(T);
  return resource;
}
// The index that an address mode makes of one outside; -1 is the border.
static int place(int i, int n, cudaTextureAddressMode mode) {
  if (mode == cudaAddressModeBorder) return i < 0 || i >= n ? -1 : i;
  if (mode == cudaAddressModeWrap) return ((i % n) + n) % n;
  if (mode == cudaAddressModeMirror) {
    int j = ((i % (2 * n)) + 2 * n) % (2 * n);
    return j < n ? j : 2 * n - 1 - j;
  }
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}
static float texel(const float *data, int x, int y, cudaTextureAddressMode mode, float border) {
  int i = place(x, W, mode), j = place(y, H, mode);
  return i < 0 || j < 0 ? border : data[j * W + i];
}
static double read(const float *data, double x, double y, cudaTextureAddressMode mode, bool linear, float border) {
  if (!linear) return texel(data, floor(x), floor(y), mode, border);
  double u = x - 0.5, v = y - 0.5, i = floor(u), j = floor(v), a = u - i, b = v - j;
  return (1 - a) * (1 - b) * texel(data, i, j, mode, border) + a * (1 - b) * texel(data, i + 1, j, mode, border) +
         (1 - a) * b * texel(data, i, j + 1, mode, border) + a * b * texel(data, i + 1, j + 1, mode, border);
}
static void fetches() {
  const int n = 300;
  float a[n], b[n];
  unsigned char c[256];
  for (int i = 0; i < n; i++) a[i] = real(i), b[i] = real(i + 1000);
  for (int i = 0; i < 256; i++) c[i] = i;
  float *out = device<float>(nullptr, n);
  cudaTextureObject_t one = make(of_line(device(a, n), n), cudaAddressModeClamp, cudaFilterModePoint, false, false);
  cudaTextureObject_t four = make(of_line((float4 *)device(b, n), n / 4), cudaAddressModeClamp, cudaFilterModePoint, false, false);
  cudaTextureObject_t bytes = make(of_line(device(c, 256), 256), cudaAddressModeClamp, cudaFilterModePoint, false, true);
  fetch<<<3, 128>>>(one, four, bytes, out, n);
  float *got = host(out, n);
  for (int i = 0; i < n; i++) {
    const float *v = b + i / 4 * 4;
    expect("fetch", i, got[i], a[n - 1 - i] + v[0] + 2 * v[1] + 3 * v[2] + 4 * v[3] + c[i % 256] / 255.0f, 1e-5);
  }
}
static void filters(const float *data, cudaArray_t array, cudaResourceDesc pitched) {
  float *out = device<float>(nullptr, 64 * 40);
  cudaTextureAddressMode modes[] = {cudaAddressModeClamp, cudaAddressModeBorder, cudaAddressModeWrap, cudaAddressModeMirror};
  for (int test = 0; test < 12; test++) {
    cudaTextureAddressMode mode = modes[test % 4];
    bool linear = test / 4 > 0, unit = test % 4 > 1 || test > 7;
    cudaTextureObject_t t = make(test % 2 ? pitched : of_array(array), mode, linear ? cudaFilterModeLinear : cudaFilterModePoint, unit, false, 0.25f);
    // Places that no filter rounds to another texel.
    float2 first = {-9.28125f, -8.40625f}, step = {0.875f, 0.9375f};
    float2 scale = {unit ? 1.0f / W : 1, unit ? 1.0f / H : 1};
    plane<float><<<dim3(2, 40), 32>>>(t, out, 64, make_float2(first.x * scale.x, first.y * scale.y), make_float2(step.x * scale.x, step.y * scale.y));
    float *got = host(out, 64 * 40);
    for (int i = 0; i < 64 * 40; i++)
      expect<double>(linear ? "linear" : "point", i, got[i], read(data, first.x + step.x * (i % 64), first.y + step.y * (i / 64), mode, linear, 0.25f), linear ? filtered : 0);
    cudaDestroyTextureObject(t);
  }
}
static void lines() {
  const int n = 50;
  float a[n];
  for (int i = 0; i < n; i++) a[i] = real(i + 7);
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &format, n, 0, 0);
  cudaMemcpy2DToArray(array, 0, 0, a, n * 4, n * 4, 1, cudaMemcpyHostToDevice);
  float *out = device<float>(nullptr, 64);
  line<<<1, 64>>>(make(of_array(array), cudaAddressModeClamp, cudaFilterModeLinear, false, false), out, -2.3f, 0.87f);
  float *got = host(out, 64);
  for (int i = 0; i < 64; i++) {
    double u = -2.3 + 0.87 * i - 0.5, j = floor(u), w = u - j;
    expect<double>("line", i, got[i], (1 - w) * a[place(j, n, cudaAddressModeClamp)] + w * a[place(j + 1, n, cudaAddressModeClamp)], filtered);
  }
  cudaFreeArray(array);
}
static void colours() {
  uchar4 data[W * H], *out = device<uchar4>(nullptr, W * H);
  for (int i = 0; i < W * H; i++) data[i] = make_uchar4(draw(i), draw(i) >> 8, draw(i) >> 16, draw(i) >> 24);
  cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
  cudaArray_t array;
  cudaMallocArray(&array, &format, W, H, 0);
  cudaMemcpy2DToArray(array, 0, 0, data, W * 4, W * 4, H, cudaMemcpyHostToDevice);
  plane<uchar4><<<dim3(2, H), 32>>>(make(of_array(array), cudaAddressModeClamp, cudaFilterModePoint, false, false), out, W, make_float2(0.5f, 0.5f), make_float2(1, 1));
  uchar4 *got = host(out, W * H);
  float4 *scaled = device<float4>(nullptr, W * H);
  plane<float4><<<dim3(2, H), 32>>>(make(of_array(array), cudaAddressModeClamp, cudaFilterModeLinear, false, true), scaled, W, make_float2(1, 0.5f), make_float2(1, 1));
  float4 *mixed = host(scaled, W * H);
  for (int i = 0; i < W * H; i++) {
    uchar4 a = data[i], b = data[i % W < W - 1 ? i + 1 : i], c = got[i];
    expect("colour", i, c.x == a.x && c.y == a.y && c.z == a.z && c.w == a.w, true, 0);
    expect("red", i, mixed[i].x, (a.x + b.x) / 510.0f, filtered);
    expect("alpha", i, mixed[i].w, (a.w + b.w) / 510.0f, filtered);
  }
}
int main() {
  float data[W * H];
  for (int i = 0; i < W * H; i++) data[i] = real(i);
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array, other;
  cudaMallocArray(&array, &format, W, H, cudaArraySurfaceLoadStore);
  cudaMallocArray(&other, &format, W, H, cudaArraySurfaceLoadStore);
  cudaMemcpy2DToArray(array, 0, 0, data, W * 4, W * 4, H, cudaMemcpyHostToDevice);
  cudaResourceDesc pitched = {};
  pitched.resType = cudaResourceTypePitch2D;
  cudaMallocPitch(&pitched.res.pitch2D.devPtr, &pitched.res.pitch2D.pitchInBytes, W * 4, H);
  cudaMemcpy2D(pitched.res.pitch2D.devPtr, pitched.res.pitch2D.pitchInBytes, data, W * 4, W * 4, H, cudaMemcpyHostToDevice);
  pitched.res.pitch2D.desc = format;
  pitched.res.pitch2D.width = W;
  pitched.res.pitch2D.height = H;
  fetches();
  filters(data, array, pitched);
  lines();
  colours();
  float *out = device<float>(nullptr, W * H);
  level<<<dim3(2, H), 32>>>(make(pitched, cudaAddressModeClamp, cudaFilterModeLinear, false, false), out, W);
  float *got = host(out, W * H);
  for (int i = 0; i < W * H; i++) expect("level", i, got[i], data[i], 0);
  cudaSurfaceObject_t from, to;
  cudaResourceDesc one = of_array(array), two = of_array(other);
  cudaCreateSurfaceObject(&from, &one);
  cudaCreateSurfaceObject(&to, &two);
  turn<<<dim3(2, H), 32>>>(from, to, W, H);
  float turned[W * H];
  cudaMemcpy2DFromArray(turned, W * 4, other, 0, 0, W * 4, H, cudaMemcpyDeviceToHost);
  for (int i = 0; i < W * H; i++) {
    int j = W * H - 1 - i;
    expect("surface", i, turned[i], data[j] + 10 * data[j % W ? j - 1 : j], 1e-6);
  }
  cudaDestroySurfaceObject(from);
  cudaDestroySurfaceObject(to);
  return finish("textures");
}
