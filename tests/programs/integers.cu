// Integer arithmetic against the same C source on the CPU, with the ends of the ranges.
#include "check.h"
const int results = 43;
__host__ __device__ inline unsigned turn(unsigned x, int by) { return by & 31 ? x << (by & 31) | x >> (32 - (by & 31)) : x; }
__host__ __device__ void compute(unsigned a, unsigned b, unsigned s, unsigned long long *r) {
  int i = int(a), j = int(b);
  long long p = ((long long)i << 20) ^ j, q = ((long long)j << 7) - i;
  unsigned long long u = p, v = q;
  int k = 0;
  r[k++] = a + b;
  r[k++] = a * b;
  r[k++] = (unsigned long long)a * b;
  r[k++] = (long long)i * j;
  r[k++] = ((unsigned long long)a * b) >> 32;
  r[k++] = ((long long)i * j) >> 32;
  r[k++] = u + v;
  r[k++] = u - v;
  r[k++] = u * v;
  r[k++] = b ? a / b : 0;
  r[k++] = b ? a % b : 0;
  r[k++] = j && !(j == -1 && i == int(0x80000000)) ? i / j : 0;
  r[k++] = j && !(j == -1 && i == int(0x80000000)) ? i % j : 0;
  r[k++] = v ? u / v : 0;
  r[k++] = q && q != -1 ? p % q : 0;
  r[k++] = a << (s & 31);
  r[k++] = a >> (s & 31);
  r[k++] = i >> (s & 31);
  r[k++] = u << (s & 63);
  r[k++] = u >> (s & 63);
  r[k++] = p >> (s & 63);
  r[k++] = turn(a, s);
  r[k++] = (a & b) ^ (~a | s);
  r[k++] = i < j;
  r[k++] = a < b;
  r[k++] = p < q;
  r[k++] = u >= v;
  r[k++] = p == q || u != v;
  r[k++] = i < j ? i : j;
  r[k++] = a > b ? a : b;
  r[k++] = i < 0 ? -i : i;
  r[k++] = (signed char)a + (short)b;
  r[k++] = (unsigned char)a * (unsigned short)b;
  r[k++] = i / 7 + j % 10;
  r[k++] = a / 1000u + b % 3u;
  r[k++] = i / 8 - j % 16;
  r[k++] = p / 1000000007ll;
  r[k++] = a * 5 + (b << 3);
  r[k++] = u * 9 + v;
  r[k++] = (a >> 3 & 0x1f) | (b << 5 & 0x3e0);
  int low = i < j ? i : j, third = int(s);
  unsigned high = a > b ? a : b;
  r[k++] = low < third ? low : third;
  r[k++] = high > s ? high : s;
  r[k++] = low > third ? low : third;
}
__global__ void kernel(const unsigned *a, const unsigned *b, unsigned long long *r, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) compute(a[i], b[i], i * 7, r + i * results);
}
const int words = 22;
__global__ void bits(const unsigned *a, const unsigned *b, unsigned *r, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = a[i], y = b[i], *o = r + i * words;
  o[0] = __popc(x);
  o[1] = __clz(x);
  o[2] = __ffs(x);
  o[3] = __brev(x);
  o[4] = __byte_perm(x, y, 0x3715);
  o[5] = __funnelshift_l(x, y, i);
  o[6] = __funnelshift_rc(x, y, i);
  o[7] = __mulhi(int(x), int(y));
  o[8] = __dp4a(int(x), int(y), 5);
  o[9] = __sad(int(x), int(y), 3u);
  o[10] = __popcll((unsigned long long)x << 32 | y) + __clzll((unsigned long long)x << 32 | y);
  o[11] = __umulhi(x, y);
  o[12] = __dp2a_lo(int(x), int(y), 7);
  o[13] = __dp2a_hi(int(x), int(y), -9);
  o[14] = __dp2a_lo(x, y, 7u);
  o[15] = __vabsdiffu4(x, y);
  o[16] = __vabsdiffs4(x, y);
  o[17] = __vsadu4(x, y);
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(o[18]) : "r"(int(x) >> 20), "r"(int(y) >> 23), "r"(x));
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(o[19]) : "r"(int(x) >> 10), "r"(int(y) >> 14));
  int byte;
  unsigned short half_word;
  asm("cvt.sat.s8.s32 %0, %1;" : "=r"(byte) : "r"(int(x) >> 22));
  asm("cvt.sat.u16.s32 %0, %1;" : "=h"(half_word) : "r"(int(y) >> 13));
  asm volatile("pmevent 1;");
  o[20] = byte, o[21] = half_word;
}
int main() {
  const int n = 700;
  const unsigned ends[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 31, 32, 0xffff, 0x10000};
  static unsigned a[n], b[n];
  for (int i = 0; i < n; i++) {
    a[i] = i < 100 ? ends[i / 10] : draw(i);
    b[i] = i < 100 ? ends[i % 10] : draw(i + 9999) >> (i % 30);
  }
  unsigned *x = device(a, n), *y = device(b, n), *w = device<unsigned>(nullptr, n * words);
  unsigned long long *z = device<unsigned long long>(nullptr, n * results);
  kernel<<<(n + 63) / 64, 64>>>(x, y, z, n);
  bits<<<(n + 63) / 64, 64>>>(x, y, w, n);
  unsigned long long *r = host(z, n * results);
  unsigned *o = host(w, n * words);
  for (int i = 0; i < n; i++) {
    unsigned long long wanted[results];
    compute(a[i], b[i], i * 7, wanted);
    for (int k = 0; k < results; k++)
      if (r[i * results + k] != wanted[k] && failures++ < 9)
        printf("result %d of %x, %x: %llx, expected %llx\n", k, a[i], b[i], r[i * results + k], wanted[k]);
    unsigned p = a[i], q = b[i], v[words];
    unsigned long long pq = (unsigned long long)p << 32 | q, qp = (unsigned long long)q << 32 | p;
    v[0] = __builtin_popcount(p);
    v[1] = p ? __builtin_clz(p) : 32;
    v[2] = __builtin_ffs(p);
    v[3] = 0;
    for (int k = 0; k < 32; k++) v[3] |= (p >> k & 1) << (31 - k);
    v[4] = (qp >> 40 & 255) | (qp >> 8 & 255) << 8 | (qp >> 56) << 16 | (qp >> 24 & 255) << 24;
    v[5] = (qp << (i & 31)) >> 32;
    v[6] = qp >> (i < 32 ? i : 32);
    v[7] = ((long long)int(p) * int(q)) >> 32;
    v[8] = 5;
    for (int k = 0; k < 32; k += 8) v[8] += (signed char)(p >> k) * (signed char)(q >> k);
    long long far = (long long)int(p) - int(q);
    v[9] = unsigned(far < 0 ? -far : far) + 3;
    v[10] = __builtin_popcountll(pq) + (pq ? __builtin_clzll(pq) : 64);
    v[11] = ((unsigned long long)p * q) >> 32;
    v[12] = 7, v[13] = 0u - 9, v[14] = 7, v[15] = v[16] = v[17] = 0;
    for (int k = 0; k < 2; k++) {
      v[12] += short(p >> 16 * k) * (signed char)(q >> 8 * k);
      v[13] += short(p >> 16 * k) * (signed char)(q >> (16 + 8 * k));
      v[14] += (p >> 16 * k & 0xffff) * (q >> 8 * k & 255);
    }
    for (int k = 0; k < 32; k += 8) {
      int without = int(p >> k & 255) - int(q >> k & 255), with = (signed char)(p >> k) - (signed char)(q >> k);
      v[15] |= unsigned(abs(without)) << k, v[16] |= (unsigned(abs(with)) & 255) << k, v[17] += abs(without);
    }
    auto within = [](int x, int least, int most) { return unsigned(x < least ? least : x > most ? most : x); };
    v[18] = p << 16 | (within(int(p) >> 20, -128, 127) & 255) << 8 | (within(int(q) >> 23, -128, 127) & 255);
    v[19] = within(int(p) >> 10, 0, 65535) << 16 | within(int(q) >> 14, 0, 65535);
    v[20] = within(int(p) >> 22, -128, 127), v[21] = within(int(q) >> 13, 0, 65535);
    for (int k = 0; k < words; k++)
      if (o[i * words + k] != v[k] && failures++ < 9)
        printf("bits %d of %x, %x: %x, expected %x\n", k, p, q, o[i * words + k], v[k]);
  }
  return finish("integers");
}
