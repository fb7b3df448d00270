// Floating-point arithmetic against the CPU: exact where IEEE 754 is, near where it is not.
#include "check.h"
#include <cstring>
const int exact = 20, near = 12, whole = 10;
__host__ __device__ void compute(float a, float b, float c, float *r) {
  int k = 0;
  r[k++] = a + b;
  r[k++] = a - b;
  r[k++] = a * b;
  r[k++] = fmaf(a, b, c);
  r[k++] = a / b;
  r[k++] = sqrtf(fabsf(a));
  r[k++] = fminf(a, b);
  r[k++] = fmaxf(a, b);
  r[k++] = floorf(a);
  r[k++] = ceilf(b);
  r[k++] = truncf(c);
  r[k++] = rintf(a);
  r[k++] = a < b;
  r[k++] = a >= b;
  r[k++] = a != b;
  r[k++] = 1.0f / b;
  r[k++] = float(double(a) * double(b) + double(c));
  r[k++] = copysignf(a, b);
  r[k++] = a > b ? a : c;
  r[k++] = fabsf(a) < 1e8f ? float(int(a)) : 0;
}
__global__ void kernel(const float *x, float *r, float *s, long long *w, double *d, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i], b = x[(i + 1) % n], c = x[(i + 2) % n];
  compute(a, b, c, r + i * exact);
  float *o = s + i * near, m = fminf(fabsf(a), 50.0f);
  o[0] = sinf(m); o[1] = cosf(m); o[2] = expf(m); o[3] = logf(m + 1); o[4] = powf(m, 1.5f); o[5] = tanhf(m);
  o[6] = __sinf(m / 50); o[7] = __expf(m / 9); o[8] = __logf(m + 2); o[9] = rsqrtf(m + 1); o[10] = atanf(m); o[11] = erff(m);
  long long *q = w + i * whole;
  q[0] = int(a); q[1] = (unsigned)(fabsf(a)); q[2] = (long long)(a); q[3] = __float2int_rn(a); q[4] = __float2int_rd(a);
  q[5] = __float2int_ru(a); q[6] = __double2int_rz(double(a) * 3); q[7] = (long long)(double(a) * 1e6);
  q[8] = __float_as_int(__int2float_rz(int(i * 123456789u))); q[9] = __double_as_longlong(double((long long)i * 1234567890123456789ll));
  double y = a, z = b, *e = d + i * 8;
  e[0] = y + z; e[1] = y * z; e[2] = fma(y, z, 1e-9); e[3] = y / z; e[4] = sqrt(fabs(y)); e[5] = y < z ? floor(y) : ceil(z);
  e[6] = sin(fmin(fabs(y), 50.0)); e[7] = exp(-fmin(fabs(y), 50.0));
}
bool same(float a, float b) { return a != a ? b != b : memcmp(&a, &b, 4) == 0; }
bool same(double a, double b) { return a != a ? b != b : memcmp(&a, &b, 8) == 0; }
int main() {
  const int n = 600;
  const float ends[] = {0.0f, -0.0f, 1.0f, -1.5f, 1e-40f, 3e38f, INFINITY, -INFINITY, NAN, 2.5f, 0.5f, 16777217.0f, 1.17549435e-38f};
  static float x[n];
  for (int i = 0; i < n; i++) x[i] = i < 170 ? ends[(i * 7 + i / 13) % 13] : real(i) * (i % 3 ? 100 : 1);
  float *in = device(x, n), *r = device<float>(nullptr, n * exact), *s = device<float>(nullptr, n * near);
  long long *w = device<long long>(nullptr, n * whole);
  double *d = device<double>(nullptr, n * 8);
  kernel<<<(n + 63) / 64, 64>>>(in, r, s, w, d, n);
  float *p = host(r, n * exact), *q = host(s, n * near);
  long long *u = host(w, n * whole);
  double *e = host(d, n * 8);
  for (int i = 0; i < n; i++) {
    float a = x[i], b = x[(i + 1) % n], c = x[(i + 2) % n], wanted[exact];
    compute(a, b, c, wanted);
    for (int k = 0; k < exact; k++)
      if (!same(p[i * exact + k], wanted[k]) && !((k == 6 || k == 7) && a == 0 && b == 0) && failures++ < 9)
        printf("result %d of %g, %g, %g: %.9g, expected %.9g\n", k, a, b, c, p[i * exact + k], wanted[k]);
    if (!(std::fabs(a) < 1e9f)) continue;
    float m = fminf(fabsf(a), 50.0f);
    float f[near] = {sinf(m), cosf(m), expf(m), logf(m + 1), powf(m, 1.5f), tanhf(m), sinf(m / 50), expf(m / 9), logf(m + 2), 1 / sqrtf(m + 1), atanf(m), erff(m)};
    for (int k = 0; k < near; k++) expect("near", k, q[i * near + k], f[k], 3e-6);
    long long v[whole] = {(int)a, (unsigned)fabsf(a), (long long)a, (long long)rint(a), (long long)floor(a), (long long)ceil(a), (long long)(double(a) * 3), (long long)(double(a) * 1e6)};
    for (int k = 0; k < 8; k++) if (u[i * whole + k] != v[k] && failures++ < 9) printf("whole %d of %g: %lld, expected %lld\n", k, a, u[i * whole + k], v[k]);
    double y = a, z = b, g[8] = {y + z, y * z, fma(y, z, 1e-9), y / z, sqrt(fabs(y)), y < z ? floor(y) : ceil(z), sin(fmin(fabs(y), 50.0)), exp(-fmin(fabs(y), 50.0))};
    for (int k = 0; k < 6; k++) if (!same(e[i * 8 + k], g[k]) && failures++ < 9) printf("double %d of %g, %g: %.17g, expected %.17g\n", k, y, z, e[i * 8 + k], g[k]);
    for (int k = 6; k < 8; k++) expect("double", k, e[i * 8 + k], g[k], 1e-14);
    long long bigger = i * 1234567890123456789ull;
    double big = double(bigger);
    if (memcmp(&big, &u[i * whole + 9], 8) && failures++ < 9) printf("double of %lld\n", bigger);
  }
  return finish("floats");
}
