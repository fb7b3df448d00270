// Small kernels alone and beside each other on one GPU: what `results.csv` and `order.csv` were
// measured with.
//
//   nvcc -O3 -arch=sm_90 measure.cu -o measure && ./measure results.csv order.csv
//
// One CTA of 1024 threads per SM where nothing else is said. `cycles` are of the SMs' clock,
// from the first thread's first to its last instruction of the slowest CTA, at `core_mhz`; a
// CTA that gets no issue slots reads its clock late. `ns` do not depend on that: they are the
// GPU's own, from when it takes up the launch to when the kernel has ended. Every number is the
// median of five runs after one that is not counted, `least` and `most` are of `cycles`. In rows
// `apart` both kernels have half of the SMs each, and the other one begins before and ends
// after: `covered` tells in how many of the five it did, `apart` in how many no SM ran both. In
// rows `within` both have a CTA on every SM and take half a million to a million cycles alone.
// The other one is launched `head_start_ns` earlier, `other_cycles` and `other_ns` are its own.
//
// `order.csv`: when the warps of the CTAs on one SM have ended, in cycles since the first of
// them began: a row per CTA in the order in which they began (`place`) and per `group` of four
// warps, one of each scheduler; the last of the four.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#define CHECK(call)                                                                   \
    do {                                                                              \
        cudaError_t error = (call);                                                   \
        if (error != cudaSuccess) {                                                   \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error));    \
            exit(2);                                                                  \
        }                                                                             \
    } while (0)

struct Record {
    unsigned sm;
    long long begin, end;
    unsigned long long begin_ns, end_ns;
};

struct Place {
    char *data;
    Record *records;
    int rounds;
    unsigned mask, start;
    // When each warp has ended, 32 of each CTA, where that is asked for.
    long long *ends;
};

__device__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__device__ void begin(Record *record) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sm;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        record[blockIdx.x].sm = sm;
        record[blockIdx.x].begin_ns = nanoseconds();
        record[blockIdx.x].begin = clock64();
    }
    __syncthreads();
}

__device__ void finish(Place p) {
    if (p.ends && threadIdx.x % 32 == 0) p.ends[blockIdx.x * 32 + threadIdx.x / 32] = clock64();
    __syncthreads();
    Record *record = p.records;
    if (threadIdx.x == 0) {
        record[blockIdx.x].end = clock64();
        record[blockIdx.x].end_ns = nanoseconds();
    }
}

__device__ uint4 load(const char *at) {
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
}

__device__ uint4 load_past_l1(const char *at) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
}

// Reads new lines all the time: 64 KB per CTA and round, from another GB on in each run.
__global__ void __launch_bounds__(1024, 2) stream(Place p) {
    const char *at = p.data + ((unsigned long long)(p.start >> 29) << 30) + 16ull * (blockIdx.x * 1024 + threadIdx.x);
    const unsigned long long stride = 16384ull * gridDim.x;
    unsigned sum = 0;
    begin(p.records);
#pragma unroll 1
    for (int k = 0; k < p.rounds; k++) {
        uint4 v[4];
#pragma unroll
        for (int u = 0; u < 4; u++) v[u] = load(at + u * stride);
        at += 4 * stride;
#pragma unroll
        for (int u = 0; u < 4; u++) sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
    }
    if (sum == 0x12345678) p.records[0].sm = sum;
    finish(p);
}

// The same in a window that the L2 keeps.
__global__ void __launch_bounds__(1024, 2) level2(Place p) {
    unsigned at = 16 * (blockIdx.x * 1024 + threadIdx.x);
    const unsigned stride = 16384 * gridDim.x;
    unsigned sum = 0;
    begin(p.records);
#pragma unroll 1
    for (int k = 0; k < p.rounds; k++) {
        uint4 v[4];
#pragma unroll
        for (int u = 0; u < 4; u++) v[u] = load_past_l1(p.data + ((at + u * stride) & p.mask));
        at += 4 * stride;
#pragma unroll
        for (int u = 0; u < 4; u++) sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
    }
    if (sum == 0x12345678) p.records[0].sm = sum;
    finish(p);
}

// 32 KB per CTA, twice in every round, which the L1 keeps.
__global__ void __launch_bounds__(1024, 2) level1(Place p) {
    const char *at = p.data + 32768ull * blockIdx.x + 16 * threadIdx.x;
    unsigned sum = 0;
    begin(p.records);
#pragma unroll 1
    for (int k = 0; k < p.rounds; k++) {
        uint4 v[4];
#pragma unroll
        for (int u = 0; u < 4; u++) v[u] = load(at + 16384 * (u % 2));
        at += p.mask; // 0, which the compiler does not know
#pragma unroll
        for (int u = 0; u < 4; u++) sum ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
    }
    if (sum == 0x12345678) p.records[0].sm = sum;
    finish(p);
}

// 64 multiply-adds per round in eight chains.
__global__ void __launch_bounds__(1024, 2) compute(Place p) {
    float a[8];
    const float b = p.mask, c = p.rounds;
#pragma unroll
    for (int u = 0; u < 8; u++) a[u] = threadIdx.x + u;
    begin(p.records);
#pragma unroll 1
    for (int k = 0; k < p.rounds; k++) {
#pragma unroll
        for (int u = 0; u < 64; u++) a[u % 8] = fmaf(a[u % 8], b, c);
    }
    float sum = 0;
#pragma unroll
    for (int u = 0; u < 8; u++) sum += a[u];
    if (sum == 1.25f) p.records[0].sm = 1;
    finish(p);
}

// 32 exponentials per round in eight chains.
__global__ void __launch_bounds__(1024, 2) special(Place p) {
    float a[8];
#pragma unroll
    for (int u = 0; u < 8; u++) a[u] = threadIdx.x * 1e-6f + u;
    begin(p.records);
#pragma unroll 1
    for (int k = 0; k < p.rounds; k++) {
#pragma unroll
        for (int u = 0; u < 32; u++) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a[u % 8]));
    }
    float sum = 0;
#pragma unroll
    for (int u = 0; u < 8; u++) sum += a[u];
    if (sum == 1.25f) p.records[0].sm = 1;
    finish(p);
}

// Each load's address is what the last one gave; lines of 128 bytes in an order that jumps.
__global__ void chase(Place p) {
    unsigned long long at = (unsigned long long)(p.data + 128ull * (p.start & p.mask));
    for (int k = 0; k < 64; k++) asm volatile("ld.global.u64 %0, [%0];" : "+l"(at));
    begin(p.records);
#pragma unroll 1
    for (int k = 0; k < p.rounds; k++) {
#pragma unroll
        for (int u = 0; u < 16; u++) asm volatile("ld.global.u64 %0, [%0];" : "+l"(at));
    }
    if (at == 1) p.records[0].sm = 1;
    finish(p);
}

// The order of a chase: a generator of full period over 2^bits lines.
__global__ void join_lines(char *data, unsigned mask) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i <= mask; i += gridDim.x * blockDim.x) {
        unsigned next = (i * 0x5851f42du + 0x14057b7fu) & mask;
        *(unsigned long long *)(data + 128ull * i) = (unsigned long long)(data + 128ull * next);
    }
}

typedef void (*Kernel)(Place);
struct Work {
    const char *name;
    Kernel kernel;
    unsigned mask;
    // Some 200 thousand cycles on half of the GPU, a million on all of it.
    int rounds, more_rounds;
};

static char *data[2];
static Record *records[2];
static long long *ends;
static cudaStream_t streams[2];
static cudaEvent_t launched[2], ended[2];
static FILE *results, *orders;
static const int CTAS = 4096;

static void launch(int who, const Work &work, int ctas, int threads, int shared, int rounds,
                   long long *ends = nullptr) {
    // Each chase begins elsewhere, so that none finds what the last one brought.
    static unsigned start = 0;
    start += 2654435769u;
    // 132 of 228 KB, whoever runs: kernels with another division share no SM.
    CHECK(cudaFuncSetAttribute(work.kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 58));
    CHECK(cudaFuncSetAttribute(work.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    Place place = {data[who], records[who], rounds, work.mask, start, ends};
    CHECK(cudaEventRecord(launched[who], streams[who]));
    work.kernel<<<ctas, threads, shared, streams[who]>>>(place);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(ended[who], streams[who]));
}

struct Outcome {
    double cycles, ns, mhz, other_cycles, other_ns, head_start_ns;
    double sms;
    bool covered, apart;
};

static double between(cudaEvent_t from, cudaEvent_t to) {
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, from, to));
    return milliseconds * 1e6;
}

// What the kernel beside has done, of which `found` tells so far when this one ran and where.
static void add_other(Outcome &found, int others, const std::set<unsigned> &sms,
                      unsigned long long first, unsigned long long last) {
    std::set<unsigned> other_sms;
    unsigned long long begun = 0, done = ~0ull;
    for (int i = 0; i < others; i++) {
        const Record &r = records[1][i];
        begun = std::max(begun, r.begin_ns);
        done = std::min(done, r.end_ns);
        found.other_cycles = std::max(found.other_cycles, double(r.end - r.begin));
        if (sms.count(r.sm)) found.apart = false;
        other_sms.insert(r.sm);
    }
    found.other_ns = between(launched[1], ended[1]);
    found.head_start_ns = between(launched[1], launched[0]);
    found.covered = begun <= first && last <= done && other_sms.size() == size_t(others);
}

static Outcome outcome(int ctas, int others) {
    CHECK(cudaDeviceSynchronize());
    Outcome found = {};
    found.apart = found.covered = true;
    std::set<unsigned> sms;
    unsigned long long first = ~0ull, last = 0;
    for (int i = 0; i < ctas; i++) {
        const Record &r = records[0][i];
        double cycles = double(r.end - r.begin);
        if (cycles > found.cycles) {
            found.cycles = cycles;
            found.mhz = cycles * 1e3 / double(r.end_ns - r.begin_ns);
        }
        sms.insert(r.sm);
        first = std::min(first, r.begin_ns);
        last = std::max(last, r.end_ns);
    }
    found.sms = double(sms.size());
    found.ns = between(launched[0], ended[0]);
    if (others > 0) add_other(found, others, sms, first, last);
    return found;
}

// The values of a column, sorted.
static std::vector<double> sorted(const std::vector<Outcome> &runs, double Outcome::*column) {
    std::vector<double> values;
    for (auto &run : runs) values.push_back(run.*column);
    std::sort(values.begin(), values.end());
    return values;
}

static void tell(const char *what, const char *name, const char *beside, int ctas, int threads,
                 int rounds, unsigned mask, const std::vector<Outcome> &runs) {
    int covered = 0, apart = 0;
    for (auto &run : runs) covered += run.covered, apart += run.apart;
    auto median = [&](double Outcome::*column) { return sorted(runs, column)[runs.size() / 2]; };
    auto cycles = sorted(runs, &Outcome::cycles);
    fprintf(results, "%s,%s,%s,%d,%d,%d,%u,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%d,%d,%.0f,%.0f,%.0f\n", what,
            name, beside, ctas, threads, rounds, mask, median(&Outcome::cycles), cycles.front(),
            cycles.back(), median(&Outcome::ns), median(&Outcome::mhz), median(&Outcome::sms), covered,
            apart, median(&Outcome::other_cycles), median(&Outcome::other_ns),
            median(&Outcome::head_start_ns));
    fflush(results);
}

static void alone(const char *what, const Work &work, int ctas, int threads, int shared, int rounds) {
    std::vector<Outcome> runs;
    for (int i = 0; i < 6; i++) {
        launch(0, work, ctas, threads, shared, rounds);
        Outcome found = outcome(ctas, 0);
        if (i > 0) runs.push_back(found);
    }
    tell(what, work.name, "", ctas, threads, rounds, work.mask, runs);
}

// Rows of `order.csv`.
static void order(const Work &work, int ctas, int threads, int shared, int rounds) {
    for (int i = 0; i < 2; i++) {
        launch(0, work, ctas, threads, shared, rounds, ends);
        CHECK(cudaDeviceSynchronize());
    }
    std::vector<std::pair<long long, int>> own;
    for (int cta = 0; cta < ctas; cta++)
        if (records[0][cta].sm == records[0][0].sm) own.push_back({records[0][cta].begin, cta});
    std::sort(own.begin(), own.end());
    for (size_t place = 0; place < own.size(); place++)
        for (int group = 0; group < threads / 128; group++) {
            long long last = 0;
            for (int i = 0; i < 4; i++) last = std::max(last, ends[own[place].second * 32 + group * 4 + i]);
            fprintf(orders, "%s,%d,%d,%d,%zu,%d,%lld\n", work.name, ctas, threads, rounds, place, group,
                    last - own[0].first);
        }
}

static void beside(const char *what, const Work &work, const Work &other, int ctas, int shared,
                   int rounds, int other_rounds) {
    std::vector<Outcome> runs;
    for (int i = 0; i < 6; i++) {
        launch(1, other, ctas, 1024, shared, other_rounds);
        // Let it begin everywhere.
        for (volatile int wait = 0; wait < 30000; wait++) {}
        launch(0, work, ctas, 1024, shared, rounds);
        Outcome found = outcome(ctas, ctas);
        if (i > 0) runs.push_back(found);
    }
    tell(what, work.name, other.name, ctas, 1024, rounds, work.mask, runs);
}

static const int WHOLE = 118 << 10, SHARED = 60 << 10;
static const size_t BYTES = 12ull << 30;
static const Work COMPUTE = {"compute", compute, 0, 400, 2000}, SPECIAL = {"special", special, 0, 100, 500};
static const Work LEVEL1 = {"l1", level1, 0, 400, 2000};
static const Work LEVEL2 = {"l2", level2, (16u << 20) - 1, 200, 480}, STREAM = {"stream", stream, 0, 60, 180};
static const Work ALL[] = {COMPUTE, SPECIAL, LEVEL1, LEVEL2, STREAM};

static void set_up() {
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&data[i], BYTES));
        CHECK(cudaMemset(data[i], 0, BYTES));
        CHECK(cudaMallocHost(&records[i], CTAS * sizeof(Record)));
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&launched[i]));
        CHECK(cudaEventCreate(&ended[i]));
    }
    CHECK(cudaMallocHost(&ends, CTAS * 32 * sizeof(long long)));
    fprintf(results, "what,kernel,beside,ctas,threads,rounds,mask,cycles,least,most,ns,core_mhz,sms,covered,"
                     "apart,other_cycles,other_ns,head_start_ns\n");
    fprintf(orders, "kernel,ctas,threads,rounds,place,group,cycles\n");
}

static void throughput_rows(int sms) {
    for (int threads : {32, 64, 128, 256, 512, 1024}) {
        alone("warps", COMPUTE, 1, threads, WHOLE, 2000);
        alone("warps", SPECIAL, 1, threads, WHOLE, 1000);
    }
    alone("warps", LEVEL1, 1, 1024, WHOLE, 2000);
    for (int n : {1, 2, 4, 8, 16, 33, sms / 2, 99, sms}) {
        alone("sms", STREAM, n, 1024, WHOLE, 300);
        alone("sms", LEVEL2, n, 1024, WHOLE, 1000);
    }
}

static void latency_rows() {
    for (int bits = 7; bits <= 25; bits++) {
        unsigned mask = (1u << bits) - 1;
        join_lines<<<1024, 256>>>(data[0], mask);
        CHECK(cudaDeviceSynchronize());
        alone("latency", {"chase", chase, mask, 0, 0}, 1, 1, WHOLE, 1024);
    }
    CHECK(cudaMemset(data[0], 0, BYTES));
}

static void order_rows(int sms) {
    for (const Work &work : ALL) {
        order(work, 1, 1024, WHOLE, work.more_rounds / 4);
        order(work, 2 * sms, 1024, SHARED, work.more_rounds / 4);
        order(work, 4 * sms, 512, SHARED / 2, work.more_rounds / 4);
    }
}

static void pair_rows(int sms) {
    const int half = sms / 2;
    for (const Work &work : ALL) {
        alone("half", work, half, 1024, WHOLE, work.rounds);
        for (const Work &other : ALL)
            beside("apart", work, other, half, WHOLE, work.rounds, other.rounds * 8);
    }
    for (const Work &work : ALL) {
        alone("all", work, sms, 1024, SHARED, work.more_rounds);
        for (const Work &other : ALL)
            beside("within", work, other, sms, SHARED, work.more_rounds, other.more_rounds);
    }
}

int main(int count, char **words) {
    if (count != 3 || !(results = fopen(words[1], "w")) || !(orders = fopen(words[2], "w"))) {
        fprintf(stderr, "usage: measure RESULTS.csv ORDER.csv\n");
        return 2;
    }
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    fprintf(stderr, "%s, %d SMs, L2 %d bytes, %zu bytes of shared memory per SM\n", properties.name,
            properties.multiProcessorCount, properties.l2CacheSize, properties.sharedMemPerMultiprocessor);
    set_up();
    throughput_rows(properties.multiProcessorCount);
    latency_rows();
    order_rows(properties.multiProcessorCount);
    pair_rows(properties.multiProcessorCount);
    return 0;
}
