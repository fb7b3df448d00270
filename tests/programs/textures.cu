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
  how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = mode;
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
// Planes of a texture of three dimensions, or layers.
const int D = 5;
__global__ void box(cudaTextureObject_t t, float *out, float3 first, float3 step) {
  int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  float u = first.x + step.x * x, v = first.y + step.y * y, w = first.z + step.z * z;
  float here = tex3D<float>(t, u, v, w);
  out[(z * gridDim.x + y) * blockDim.x + x] = here + (tex3DLod<float>(t, u, v, w, 0) - here);
}
__global__ void sheets(cudaTextureObject_t t, float *out, float2 first, float2 step) {
  int x = threadIdx.x, y = blockIdx.x, layer = blockIdx.y;
  out[(layer * gridDim.x + y) * blockDim.x + x] = tex2DLayered<float>(t, first.x + step.x * x, first.y + step.y * y, layer);
}
__global__ void rows(cudaTextureObject_t t, float4 *out) {
  int x = threadIdx.x, layer = blockIdx.x;
  out[layer * blockDim.x + x] = tex1DLayered<float4>(t, x + 0.5f, layer + 0 * x);
}
__global__ void shift(cudaSurfaceObject_t volume, cudaSurfaceObject_t layers) {
  int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  float v, w;
  surf3Dread(&v, volume, x * 4, y, z);
  surf2DLayeredread(&w, layers, x * 4, y, D - 1 - z);
  __syncthreads();
  surf3Dwrite(w, volume, x * 4, y, z);
  surf2DLayeredwrite(v, layers, x * 4, y, D - 1 - z);
}
static cudaArray_t array_of(const void *data, cudaChannelFormatDesc format, size_t bytes, cudaExtent extent, unsigned flags) {
  cudaArray_t array;
  if (cudaMalloc3DArray(&array, &format, extent, flags) != cudaSuccess) failures++;
  cudaMemcpy3DParms copy = {};
  size_t height = extent.height ? extent.height : 1;
  copy.srcPtr = make_cudaPitchedPtr((void *)data, extent.width * bytes, extent.width, height);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(extent.width, height, extent.depth);
  copy.kind = cudaMemcpyHostToDevice;
  if (cudaMemcpy3D(&copy) != cudaSuccess) failures++;
  return array;
}
static double inside(const float *data, double x, double y, double z, cudaTextureAddressMode mode, bool linear) {
  double k = floor(linear ? z - 0.5 : z), c = linear ? z - 0.5 - k : 0, sum = 0;
  for (int plane = 0; plane < 2; plane++) {
    int at = place(k + plane, D, mode);
    double weight = plane ? c : 1 - c;
    if (weight > 0) sum += weight * (at < 0 ? 0.25 : read(data + at * W * H, x, y, mode, linear, 0.25f));
  }
  return sum;
}
static void planes() {
  static float data[W * H * D], back[W * H * D];
  for (int i = 0; i < W * H * D; i++) data[i] = real(i + 31);
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaExtent extent = make_cudaExtent(W, H, D);
  cudaArray_t volume = array_of(data, format, 4, extent, cudaArraySurfaceLoadStore);
  cudaArray_t layers = array_of(data, format, 4, extent, cudaArrayLayered | cudaArraySurfaceLoadStore);
  float *out = device<float>(nullptr, 48 * 30 * 9);
  cudaTextureAddressMode modes[] = {cudaAddressModeClamp, cudaAddressModeBorder, cudaAddressModeWrap, cudaAddressModeMirror};
  for (int test = 0; test < 8; test++) {
    cudaTextureAddressMode mode = modes[test % 4];
    bool linear = test > 3, unit = test % 4 > 1;
    float3 first = {-4.28125f, -3.40625f, -1.59375f}, step = {0.9375f, 0.9375f, 0.875f};
    float3 scale = {unit ? 1.0f / W : 1, unit ? 1.0f / H : 1, unit ? 1.0f / D : 1};
    float3 from = {first.x * scale.x, first.y * scale.y, first.z * scale.z}, by = {step.x * scale.x, step.y * scale.y, step.z * scale.z};
    cudaTextureFilterMode filter = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    box<<<dim3(30, 9), 48>>>(make(of_array(volume), mode, filter, unit, false, 0.25f), out, from, by);
    float *got = host(out, 48 * 30 * 9);
    for (int i = 0; i < 48 * 30 * 9; i++) {
      double x = first.x + step.x * (i % 48), y = first.y + step.y * (i / 48 % 30), z = first.z + step.z * (i / 48 / 30);
      expect<double>(linear ? "linear box" : "box", i, got[i], inside(data, x, y, z, mode, linear), linear ? 2 * filtered : 0);
    }
    sheets<<<dim3(30, D), 48>>>(make(of_array(layers), mode, filter, unit, false, 0.25f), out, make_float2(from.x, from.y), make_float2(by.x, by.y));
    got = host(out, 48 * 30 * D);
    for (int i = 0; i < 48 * 30 * D; i++) {
      double x = first.x + step.x * (i % 48), y = first.y + step.y * (i / 48 % 30);
      expect<double>("layer", i, got[i], read(data + i / 48 / 30 * W * H, x, y, mode, linear, 0.25f), linear ? filtered : 0);
    }
  }
  cudaResourceDesc one = of_array(volume), two = of_array(layers);
  cudaSurfaceObject_t a, b;
  cudaCreateSurfaceObject(&a, &one);
  cudaCreateSurfaceObject(&b, &two);
  shift<<<dim3(H, D), W>>>(a, b);
  for (int test = 0; test < 2; test++) {
    cudaMemcpy3DParms copy = {};
    copy.srcArray = test ? layers : volume;
    copy.dstPtr = make_cudaPitchedPtr(back, W * 4, W, H);
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToHost;
    cudaMemcpy3D(&copy);
    for (int i = 0; i < W * H * D; i++) expect("planes", i, back[i], data[(D - 1 - i / (W * H)) * W * H + i % (W * H)], 0);
  }
  static float4 lines[D * 40];
  for (int i = 0; i < D * 40; i++) lines[i] = make_float4(real(i), real(i + 1), real(i + 2), real(i + 3));
  cudaArray_t thin = array_of(lines, cudaCreateChannelDesc<float4>(), 16, make_cudaExtent(40, 0, D), cudaArrayLayered);
  float4 *wide = device<float4>(nullptr, D * 40);
  rows<<<D, 40>>>(make(of_array(thin), cudaAddressModeClamp, cudaFilterModePoint, false, false), wide);
  float4 *got = host(wide, D * 40);
  for (int i = 0; i < D * 40; i++) expect("row", i, got[i].x + 2 * got[i].w, lines[i].x + 2 * lines[i].w, 1e-6);
}
// Gathers, gradients of a texture with one level, handles in an array.
template <int channel> __global__ void four(cudaTextureObject_t t, float4 *out, int w, float2 first, float2 step) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < w) out[y * w + x] = tex2Dgather<float4>(t, first.x + step.x * x, first.y + step.y * y, channel);
}
__global__ void slopes(cudaTextureObject_t t, float *out, int w) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < w) out[y * w + x] = tex2DGrad<float>(t, x + 0.5f, y + 0.5f, make_float2(0.5f, 0), make_float2(0, 0.25f));
}
__global__ void many(const cudaTextureObject_t *t, cudaSurfaceObject_t *s, float *out, int w) {
  int x = threadIdx.x, y = blockIdx.x;
  float v = tex2D<float>(t[x % 2], x + 0.5f, y + 0.5f) + 100 * tex2Dgather<float4>(t[x % 3 == 0], x + 1.0f, y + 1.0f).w;
  out[y * w + x] = v;
  surf2Dwrite(v, s[x % 2], x * 4, y);
}
static void further(const float *data, cudaArray_t array, cudaArray_t other) {
  float4 colours[W * H], *out = device<float4>(nullptr, 64 * 40);
  for (int i = 0; i < W * H; i++) colours[i] = make_float4(real(i), real(i + 3), real(i + 5), real(i + 9));
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
  cudaArray_t wide;
  cudaMallocArray(&wide, &format, W, H, cudaArrayTextureGather);
  cudaMemcpy2DToArray(wide, 0, 0, colours, W * 16, W * 16, H, cudaMemcpyHostToDevice);
  cudaTextureAddressMode modes[] = {cudaAddressModeClamp, cudaAddressModeBorder};
  for (int test = 0; test < 4; test++) {
    cudaTextureAddressMode mode = modes[test % 2];
    bool unit = test > 1;
    float2 first = {-9.28125f, -8.40625f}, step = {0.875f, 0.9375f}, scale = {unit ? 1.0f / W : 1, unit ? 1.0f / H : 1};
    cudaTextureObject_t t = make(of_array(wide), mode, cudaFilterModePoint, unit, false, 0.25f);
    float2 begin = make_float2(first.x * scale.x, first.y * scale.y), by = make_float2(step.x * scale.x, step.y * scale.y);
    if (test % 2) four<0><<<dim3(2, 40), 32>>>(t, out, 64, begin, by);
    else four<2><<<dim3(2, 40), 32>>>(t, out, 64, begin, by);
    float4 *got = host(out, 64 * 40);
    for (int i = 0; i < 64 * 40; i++) {
      int x = floor(first.x + step.x * (i % 64) - 0.5), y = floor(first.y + step.y * (i / 64) - 0.5);
      auto at = [&](int x, int y) {
        int i = place(x, W, mode), j = place(y, H, mode);
        return i < 0 || j < 0 ? 0.25f : test % 2 ? colours[j * W + i].x : colours[j * W + i].z;
      };
      expect("gather x", i, got[i].x, at(x, y + 1), 0);
      expect("gather y", i, got[i].y, at(x + 1, y + 1), 0);
      expect("gather z", i, got[i].z, at(x + 1, y), 0);
      expect("gather w", i, got[i].w, at(x, y), 0);
    }
  }
  float turned[W * H], *plain = device<float>(nullptr, W * H);
  for (int i = 0; i < W * H; i++) turned[i] = real(i + 77);
  cudaMemcpy2DToArray(other, 0, 0, turned, W * 4, W * 4, H, cudaMemcpyHostToDevice);
  cudaTextureObject_t t[] = {make(of_array(array), cudaAddressModeClamp, cudaFilterModePoint, false, false),
                             make(of_array(other), cudaAddressModeClamp, cudaFilterModePoint, false, false)};
  slopes<<<dim3(2, H), 32>>>(t[0], plain, W);
  float *got = host(plain, W * H);
  for (int i = 0; i < W * H; i++) expect("gradient", i, got[i], data[i], 0);
  cudaArray_t targets[2];
  cudaSurfaceObject_t s[2];
  format = cudaCreateChannelDesc<float>();
  for (int k = 0; k < 2; k++) {
    cudaMallocArray(&targets[k], &format, W, H, cudaArraySurfaceLoadStore);
    cudaResourceDesc one = of_array(targets[k]);
    cudaCreateSurfaceObject(&s[k], &one);
  }
  many<<<H, W>>>(device(t, 2), device(s, 2), plain, W);
  got = host(plain, W * H);
  float written[2][W * H];
  for (int k = 0; k < 2; k++) cudaMemcpy2DFromArray(written[k], W * 4, targets[k], 0, 0, W * 4, H, cudaMemcpyDeviceToHost);
  for (int i = 0; i < W * H; i++) {
    int x = i % W;
    expect("handles", i, got[i], (x % 2 ? turned : data)[i] + 100 * (x % 3 ? data : turned)[i], 1e-6);
    expect("surfaces", i, written[x % 2][i], got[i], 0);
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
  planes();
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
  further(data, array, other);
  return finish("textures");
}
