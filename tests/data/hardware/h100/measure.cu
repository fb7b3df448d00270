// Small kernels alone and beside each other on one GPU: what `results.csv` was measured with.
//
//   nvcc -O3 -arch=sm_90 measure.cu -o measure && ./measure > results.csv
//
// One CTA of 1024 threads per SM where nothing else is said. Cycles are of the SMs' clock,
// from the first thread's first to its last instruction of the slowest CTA; every number is
// the median of five runs after one that is not counted. In rows `apart` both kernels have 66
// SMs each, and the other one begins before and ends after: `covered` tells in how many of the
// five it did, `apart` in how many no SM ran both. In rows `within` both have a CTA on every
// SM and take about a million cycles alone; the other one begins `head_start_ns` earlier,
// `other_cycles` are its own.
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
    work.kernel<<<ctas, threads, shared, streams[who]>>>(place);
    CHECK(cudaGetLastError());
}

struct Outcome {
    double cycles, mhz, other_cycles, head_start_ns;
    size_t sms;
    bool covered, apart;
};

static Outcome outcome(int ctas, int others) {
    CHECK(cudaDeviceSynchronize());
    Outcome found = {0, 0, 0, 0, 0, false, true};
    std::set<unsigned> sms, other_sms;
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
    found.sms = sms.size();
    unsigned long long begun = 0, ended = ~0ull, earliest = ~0ull;
    for (int i = 0; i < others; i++) {
        const Record &r = records[1][i];
        begun = std::max(begun, r.begin_ns);
        earliest = std::min(earliest, r.begin_ns);
        found.other_cycles = std::max(found.other_cycles, double(r.end - r.begin));
        ended = std::min(ended, r.end_ns);
        if (sms.count(r.sm)) found.apart = false;
        other_sms.insert(r.sm);
    }
    if (others > 0) found.head_start_ns = double(first) - double(earliest);
    found.covered = begun <= first && last <= ended && other_sms.size() == size_t(others);
    return found;
}

static void tell(const char *what, const char *name, const char *beside, int ctas, int threads,
                 int rounds, unsigned mask, std::vector<Outcome> runs) {
    int covered = 0, apart = 0;
    for (auto &run : runs) covered += run.covered, apart += run.apart;
    std::sort(runs.begin(), runs.end(), [](auto &a, auto &b) { return a.cycles < b.cycles; });
    auto &middle = runs[runs.size() / 2];
    printf("%s,%s,%s,%d,%d,%d,%u,%.0f,%.0f,%.0f,%.0f,%zu,%d,%d,%.0f,%.0f\n", what, name, beside, ctas,
           threads, rounds, mask, middle.cycles, runs.front().cycles, runs.back().cycles, middle.mhz,
           middle.sms, covered, apart, middle.other_cycles, middle.head_start_ns);
    fflush(stdout);
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

// When the warps of the CTAs on one SM have ended, in cycles since the first of them began:
// rows `warp`, a row per CTA in the order in which they began and per four warps, one of each
// scheduler, in the columns `covered` and `apart`; the last of the four.
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
        for (int four = 0; four < threads / 128; four++) {
            long long last = 0;
            for (int i = 0; i < 4; i++) last = std::max(last, ends[own[place].second * 32 + four * 4 + i]);
            printf("warp,%s,,%d,%d,%d,%u,%lld,0,0,0,1,%zu,%d,0,0\n", work.name, ctas, threads, rounds,
                   work.mask, last - own[0].first, place, four);
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

int main() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    fprintf(stderr, "%s, %d SMs, L2 %d bytes, %zu bytes of shared memory per SM\n", properties.name,
            properties.multiProcessorCount, properties.l2CacheSize, properties.sharedMemPerMultiprocessor);
    const size_t BYTES = 12ull << 30;
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&data[i], BYTES));
        CHECK(cudaMemset(data[i], 0, BYTES));
        CHECK(cudaMallocHost(&records[i], CTAS * sizeof(Record)));
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    }
    CHECK(cudaMallocHost(&ends, CTAS * 32 * sizeof(long long)));
    const int sms = properties.multiProcessorCount, half = sms / 2;
    const int WHOLE = 118 << 10, SHARED = 60 << 10;
    Work stream_ = {"stream", stream, 0, 60, 180}, level2_ = {"l2", level2, (16u << 20) - 1, 200, 480};
    Work level1_ = {"l1", level1, 0, 400, 2000}, compute_ = {"compute", compute, 0, 400, 2000};
    Work special_ = {"special", special, 0, 100, 500};
    printf("what,kernel,beside,ctas,threads,rounds,mask,cycles,least,most,core_mhz,sms,covered,apart,other_cycles,head_start_ns\n");
    for (int threads : {32, 64, 128, 256, 512, 1024}) {
        alone("warps", compute_, 1, threads, WHOLE, 2000);
        alone("warps", special_, 1, threads, WHOLE, 1000);
    }
    alone("warps", level1_, 1, 1024, WHOLE, 2000);
    for (int n : {1, 2, 4, 8, 16, 33, half, 99, sms}) {
        alone("sms", stream_, n, 1024, WHOLE, 300);
        alone("sms", level2_, n, 1024, WHOLE, 1000);
    }
    for (int bits = 7; bits <= 25; bits++) {
        unsigned mask = (1u << bits) - 1;
        join_lines<<<1024, 256>>>(data[0], mask);
        CHECK(cudaDeviceSynchronize());
        Work chase_ = {"chase", chase, mask, 0, 0};
        alone("latency", chase_, 1, 1, WHOLE, 1024);
    }
    CHECK(cudaMemset(data[0], 0, BYTES));
    const Work all[] = {compute_, special_, level1_, level2_, stream_};
    for (const Work &work : all) {
        order(work, 1, 1024, WHOLE, work.more_rounds / 4);
        order(work, 2 * sms, 1024, SHARED, work.more_rounds / 4);
        order(work, 4 * sms, 512, SHARED / 2, work.more_rounds / 4);
    }
    for (const Work &work : all) {
        alone("half", work, half, 1024, WHOLE, work.rounds);
        for (const Work &other : all)
            beside("apart", work, other, half, WHOLE, work.rounds, other.rounds * 8);
    }
    for (const Work &work : all) {
        alone("all", work, sms, 1024, SHARED, work.more_rounds);
        for (const Work &other : all)
            beside("within", work, other, sms, SHARED, work.more_rounds, other.more_rounds);
    }
    return 0;
}
