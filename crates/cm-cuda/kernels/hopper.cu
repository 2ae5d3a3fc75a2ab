// C = epilogue(A B) by Hopper's warpgroup products (wgmma): PRECISION is 1 (TF32) or 2 (bf16), sums
// in fp32.
//
// Operands are fp32 in memory, in either order. Threads load them into registers, round them to
// nearest and store them as wgmma wants them: K contiguous, swizzled. While a slice is multiplied,
// the next one is on its way.
//
// The blocks of a cluster share one tile of C: each sums up a part of K, then finishes some of the
// rows from the parts' sums, which are added in their order.

constexpr int BK = 32;  // of K, a slice
#if PRECISION == 1
constexpr int LINE_BYTES = 128, CHUNK = 4, QUAD = 4, DEPTH = 8;
#else
constexpr int LINE_BYTES = 64, CHUNK = 8, QUAD = 2, DEPTH = 16;
#endif
constexpr int CHUNKS = BK / CHUNK;  // pieces of 16 bytes in a line

struct Epilogue {
    Mat bias;      // added to every row
    Mat slope;     // receives f'(z)
    Mat factor;    // multiplies the result
    Mat addend;    // is added to the result
    Mat sums;      // receives the sums of B's columns over K
    int activation;
};

// Where chunk `chunk` of line `line` lies in a tile: swizzled, in bytes.
static __device__ __forceinline__ int place_of(int line, int chunk) {
#if PRECISION == 1
    return line * 128 + ((chunk ^ (line & 7)) << 4);
#else
    return line * 64 + ((chunk ^ ((line >> 1) & 3)) << 4);
#endif
}

// A tile as wgmma addresses it: groups of eight lines, swizzled over a line.
static __device__ __forceinline__ unsigned long long descriptor(unsigned address) {
    constexpr unsigned long long KIND = PRECISION == 1 ? 1 : 2;
    return (unsigned long long)((address & 0x3ffff) >> 4) | (1ull << 16)
        | ((unsigned long long)(8 * LINE_BYTES >> 4) << 32) | (KIND << 62);
}

// 16 bytes of a line from CHUNK numbers `step` apart.
static __device__ __forceinline__ uint4 rounded(const float* x, int step) {
#if PRECISION == 1
    return make_uint4(
        to_tf32(x[0]), to_tf32(x[step]), to_tf32(x[2 * step]), to_tf32(x[3 * step]));
#else
    return make_uint4(
        to_bf16_pair(x[0], x[step]), to_bf16_pair(x[2 * step], x[3 * step]),
        to_bf16_pair(x[4 * step], x[5 * step]), to_bf16_pair(x[6 * step], x[7 * step]));
#endif
}

// A slice of an operand: LINES rows of A (columns of B) by BK, of which each of COUNT threads holds
// some. K is contiguous in memory if DEEP; lines of memory are whole quads if WIDE.
template <int LINES, bool DEEP, bool WIDE, int COUNT>
struct Slice {
    static constexpr int FLOATS = LINES * BK / COUNT, BYTES = LINES * LINE_BYTES;
    static constexpr int SIZE = DEEP ? CHUNK : CHUNK * QUAD, UNITS = FLOATS / SIZE;
    static_assert(UNITS * SIZE == FLOATS, "threads share a slice evenly");

    // First line and chunk of a unit. Neighbouring threads read whole lines of the cache and write
    // to different banks.
    static __device__ __forceinline__ void unit(int i, int& line, int& chunk) {
        int u = i * COUNT + threadIdx.x;
        if (DEEP) {
            line = u / CHUNKS;
            chunk = u % CHUNKS;
        } else if (PRECISION == 1) {
            line = 4 * ((u & 1) | ((u >> 3 & 3) << 1) | ((u >> 6) << 3));
            chunk = (u >> 1 & 3) | ((u >> 5 & 1) << 2);
        } else {
            line = 2 * ((u & 1) | ((u >> 3) << 1));
            chunk = u >> 1 & 3;
        }
    }

    // Asks for the slice from `first` (a line) and `k` on; what lies outside becomes 0.
    static __device__ __forceinline__ void load(
        float* held, const float* source, int pitch, int first, int lines, int k, int depth) {
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            int line, chunk;
            unit(i, line, chunk);
            float* to = held + i * SIZE;
            int row = first + line, at = k + chunk * CHUNK;
            if (DEEP) {
                const float* from = source + (size_t)row * pitch + at;
                if constexpr (WIDE) {
#pragma unroll
                    for (int c = 0; c < CHUNK; c += 4) {
                        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                        if (row < lines && at + c < depth) x = *(const float4*)(from + c);
                        to[c] = x.x, to[c + 1] = x.y, to[c + 2] = x.z, to[c + 3] = x.w;
                    }
                } else {
#pragma unroll
                    for (int c = 0; c < CHUNK; c++) {
                        to[c] = row < lines && at + c < depth ? from[c] : 0.0f;
                    }
                }
            } else {
#pragma unroll
                for (int c = 0; c < CHUNK; c++) {
                    const float* from = source + (size_t)(at + c) * pitch + row;
                    bool inside = at + c < depth;
                    float* four = to + c * QUAD;
                    if constexpr (WIDE) {
#if PRECISION == 1
                        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                        if (inside && row < lines) x = *(const float4*)from;
                        four[0] = x.x, four[1] = x.y, four[2] = x.z, four[3] = x.w;
#else
                        float2 x = make_float2(0.0f, 0.0f);
                        if (inside && row < lines) x = *(const float2*)from;
                        four[0] = x.x, four[1] = x.y;
#endif
                    } else {
#pragma unroll
                        for (int q = 0; q < QUAD; q++) {
                            four[q] = inside && row + q < lines ? from[q] : 0.0f;
                        }
                    }
                }
            }
        }
    }

    static __device__ __forceinline__ void store(const float* held, char* tile) {
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            int line, chunk;
            unit(i, line, chunk);
            if (DEEP) {
                *(uint4*)(tile + place_of(line, chunk)) = rounded(held + i * SIZE, 1);
            } else {
#pragma unroll
                for (int q = 0; q < QUAD; q++) {
                    uint4 x = rounded(held + i * SIZE + q, QUAD);
                    *(uint4*)(tile + place_of(line + q, chunk)) = x;
                }
            }
        }
    }

    // Adds what is held of each line over K.
    static __device__ __forceinline__ void add(const float* held, float* sums) {
#pragma unroll
        for (int i = 0; i < UNITS; i++)
#pragma unroll
            for (int q = 0; q < QUAD; q++)
#pragma unroll
                for (int c = 0; c < CHUNK; c++) sums[i * QUAD + q] += held[i * SIZE + c * QUAD + q];
    }
};

// Four neighbours from the partial sums of every block of the cluster (a power of two), added in
// their order.
static __device__ __forceinline__ float4 gathered(const float* tile, unsigned blocks) {
    if (blocks == 1) return *(const float4*)tile;
    unsigned local = (unsigned)__cvta_generic_to_shared(tile);
    float4 sum = from_cluster(local, 0), x = from_cluster(local, 1);
#pragma unroll 1
    for (unsigned block = 2; block < blocks; block += 2) {
        float4 y = from_cluster(local, block), z = from_cluster(local, block + 1);
        sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
        sum.x += y.x, sum.y += y.y, sum.z += y.z, sum.w += y.w;
        x = z;
    }
    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
    return sum;
}

// Four numbers, of which the first `count` exist. What is rare stays out of the way of what is not:
// a kernel this short waits for its instructions as much as for its numbers.
static __device__ __noinline__ float4 some(const float* from, int count, float otherwise) {
    float4 x = make_float4(otherwise, otherwise, otherwise, otherwise);
    if (count > 0) x.x = from[0];
    if (count > 1) x.y = from[1];
    if (count > 2) x.z = from[2];
    if (count > 3) x.w = from[3];
    return x;
}

static __device__ __noinline__ void put_some(float* to, float4 x, int count) {
    if (count > 0) to[0] = x.x;
    if (count > 1) to[1] = x.y;
    if (count > 2) to[2] = x.z;
    if (count > 3) to[3] = x.w;
}

static __device__ __forceinline__ float4 four(
    const float* from, int count, bool wide, float otherwise) {
    if (!wide) return some(from, count, otherwise);
    if (count == 4) return *(const float4*)from;
    return make_float4(otherwise, otherwise, otherwise, otherwise);
}

static __device__ __forceinline__ void put_four(float* to, float4 x, int count, bool wide) {
    if (!wide) put_some(to, x, count);
    else if (count == 4) *(float4*)to = x;
}

template <int F>
static __device__ __forceinline__ void activate(float4 z, float4& y, float4& slope) {
    y.x = value_of(F, z.x, 0.0f, 0.0f), slope.x = gradient_of(F, z.x, 1.0f, 0.0f, 0.0f);
    y.y = value_of(F, z.y, 0.0f, 0.0f), slope.y = gradient_of(F, z.y, 1.0f, 0.0f, 0.0f);
    y.z = value_of(F, z.z, 0.0f, 0.0f), slope.z = gradient_of(F, z.z, 1.0f, 0.0f, 0.0f);
    y.w = value_of(F, z.w, 0.0f, 0.0f), slope.w = gradient_of(F, z.w, 1.0f, 0.0f, 0.0f);
}

static __device__ __noinline__ void activate_rarely(int f, float4 z, float4& y, float4& slope) {
    if (f == GELU) activate<GELU>(z, y, slope);
    if (f == TANH) activate<TANH>(z, y, slope);
}

// This block's rows of a tile, whose partial sums are in the shared memory of the cluster's blocks.
// A thread has four columns and every STEP-th row.
template <typename Shape>
struct Rows {
    static constexpr int LINE = Shape::SIDE + 4, ACROSS = Shape::SIDE / 4;
    static constexpr int STEP = Shape::COUNT / ACROSS;
    int first, end, j, count;
    size_t place;

    // For C [m, n], of which the tile begins at `row` and `column`.
    __device__ __forceinline__ Rows(int row, int column, int m, int n) {
        int blocks = cluster_size(), rows = Shape::SIDE / blocks, start = cluster_rank() * rows;
        first = start + threadIdx.x / ACROSS;
        end = min(start + rows, m - row);
        j = threadIdx.x % ACROSS * 4;
        count = max(0, min(4, n - column - j));
        place = (size_t)row * n + column + j;
    }
};

static __device__ __forceinline__ void tile_is_written(unsigned blocks) {
    if (blocks == 1) __syncthreads();
    else cluster_barrier();
}

// Writes f(z + bias) + addend, and f'(z + bias).
template <typename Shape>
static __device__ __forceinline__ void finish_layer(
    const float* tile, Mat c, int row, int column, int m, int n, bool wide, const Epilogue& e) {
    typedef Rows<Shape> Own;
    Own own(row, column, m, n);
    unsigned blocks = cluster_size();
    const float *bias = maybe(e.bias), *addend = maybe(e.addend);
    float *out = at(c), *slope = maybe(e.slope);
    float4 b = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (bias) b = four(bias + column + own.j, own.count, wide, 0.0f);
    tile_is_written(blocks);
#pragma unroll 1
    for (int i = own.first; i < own.end; i += Own::STEP) {
        float4 z = gathered(tile + i * Own::LINE + own.j, blocks);
        z.x += b.x, z.y += b.y, z.z += b.z, z.w += b.w;
        size_t place = own.place + (size_t)i * n;
        float4 y = z, d = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        if (e.activation == SILU) activate<SILU>(z, y, d);
        else if (e.activation == RELU) activate<RELU>(z, y, d);
        else if (e.activation != IDENTITY) activate_rarely(e.activation, z, y, d);
        if (slope) put_four(slope + place, d, own.count, wide);
        if (addend) {
            float4 plus = four(addend + place, own.count, wide, 0.0f);
            y.x += plus.x, y.y += plus.y, y.z += plus.z, y.w += plus.w;
        }
        put_four(out + place, y, own.count, wide);
    }
}

// Writes (z + addend) factor.
template <typename Shape>
static __device__ __forceinline__ void finish_gradient(
    const float* tile, Mat c, int row, int column, int m, int n, bool wide, const Epilogue& e) {
    typedef Rows<Shape> Own;
    constexpr int BATCH = 4;
    Own own(row, column, m, n);
    unsigned blocks = cluster_size();
    const float *factor = maybe(e.factor), *addend = maybe(e.addend);
    float* out = at(c);
    bool waited = false;
#pragma unroll 1
    for (int first = own.first; first < own.end || !waited; first += BATCH * Own::STEP) {
        // All loads of a batch before its stores, which the compiler could not move them over.
        float4 times[BATCH], plus[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            times[b] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
            plus[b] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            int i = first + b * Own::STEP;
            size_t place = own.place + (size_t)i * n;
            if (i >= own.end) continue;
            if (factor) times[b] = four(factor + place, own.count, wide, 1.0f);
            if (addend) plus[b] = four(addend + place, own.count, wide, 0.0f);
        }
        if (!waited) tile_is_written(blocks);
        waited = true;
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            int i = first + b * Own::STEP;
            if (i >= own.end) continue;
            float4 z = gathered(tile + i * Own::LINE + own.j, blocks);
            z.x = (z.x + plus[b].x) * times[b].x, z.y = (z.y + plus[b].y) * times[b].y;
            z.z = (z.z + plus[b].z) * times[b].z, z.w = (z.w + plus[b].w) * times[b].w;
            put_four(out + own.place + (size_t)i * n, z, own.count, wide);
        }
    }
}

// Puts what this thread has added of B's columns into shared memory [CHUNKS][SIDE].
template <typename Shape, typename B>
static __device__ __forceinline__ void put_sums(float* shared, const float* own) {
#pragma unroll
    for (int i = 0; i < B::UNITS; i++) {
        int line, chunk;
        B::unit(i, line, chunk);
#pragma unroll
        for (int q = 0; q < QUAD; q++) shared[chunk * Shape::SIDE + line + q] = own[i * QUAD + q];
    }
}

// The sums of B's columns over K from what every thread of every block has put there.
template <typename Shape>
static __device__ __forceinline__ void finish_sums(
    const float* shared, Mat sums, int column, int n) {
    unsigned blocks = cluster_size();
    if (cluster_rank() != 0 || 4 * threadIdx.x >= Shape::SIDE) return;
    int j = 4 * threadIdx.x;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        float4 x = gathered(shared + chunk * Shape::SIDE + j, blocks);
        sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
    }
    put_some(at(sums) + column + j, sum, min(4, n - column - j));
}

// A tile SIDE x SIDE of C, by SIDE / 64 warpgroups that take SLICES of K at a time, of which two lots
// are in shared memory. A multiprocessor has room for BLOCKS.
template <int LENGTH, int LOADED, int RESIDENT>
struct Shape {
    static constexpr int SIDE = LENGTH, SLICES = LOADED, COUNT = 2 * LENGTH, BLOCKS = RESIDENT;
};

// One tile of C [m, n] a cluster.
template <typename Shape, bool WIDE, bool A_DEEP, bool B_DEEP, bool ACTIVATED>
static __device__ __forceinline__ void product(
    Mat a, Mat b, Mat c, int m, int n, int k, int a_pitch, int b_pitch, int wide,
    const Epilogue& epilogue) {
    constexpr int SLICES = Shape::SLICES, SIDE = Shape::SIDE;
    typedef Slice<Shape::SIDE, A_DEEP, WIDE, Shape::COUNT> A;
    typedef Slice<Shape::SIDE, B_DEEP, WIDE, Shape::COUNT> B;
    constexpr int STAGE = SLICES * (A::BYTES + B::BYTES);
    // The driver aligns shared memory to 16 bytes only; the swizzle needs more.
    extern __shared__ __align__(16) char memory[];
    char* shared = memory + ((1024 - ((unsigned)__cvta_generic_to_shared(memory) & 1023)) & 1023);
    unsigned base = (unsigned)__cvta_generic_to_shared(shared);
    const float *left = at(a), *right = at(b);
    unsigned blocks = cluster_size();
    int row = (int)blockIdx.y * SIDE, column = (int)cluster_number() * SIDE;
    int group = threadIdx.x >> 7;
    float held_a[SLICES * A::FLOATS], held_b[SLICES * B::FLOATS];
    auto load = [&](int from, int end) {
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            int at = from + s * BK;
            A::load(held_a + s * A::FLOATS, left, a_pitch, row, m, at, end);
            B::load(held_b + s * B::FLOATS, right, b_pitch, column, n, at, end);
        }
    };
    bool summed = !B_DEEP && epilogue.sums.p && row == 0;
    float own[B_DEEP ? 1 : B::UNITS * QUAD] = {0.0f};
    Sums<SIDE> sums;
    // Parts begin at multiples of 64; their number is a power of two.
    int units = (k + 63) >> 6, part = (int)cluster_rank(), shift = 31 - __clz(blocks);
    int begin = (units * part >> shift) << 6, end = min(k, (units * (part + 1) >> shift) << 6);
    load(begin, end);
    for (int from = begin, turn = 0; from < end; from += SLICES * BK, turn++) {
        char* stage = shared + (turn & 1) * STAGE;
        unsigned where = base + (turn & 1) * STAGE;
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            A::store(held_a + s * A::FLOATS, stage + s * A::BYTES);
            B::store(held_b + s * B::FLOATS, stage + SLICES * A::BYTES + s * B::BYTES);
            if constexpr (!B_DEEP) {
                if (summed) B::add(held_b + s * B::FLOATS, own);
            }
        }
        fence_stores();
        wait_products();
        __syncthreads();
        begin_products();
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            unsigned at_a = where + s * A::BYTES + group * 64 * LINE_BYTES;
            unsigned at_b = where + SLICES * A::BYTES + s * B::BYTES;
            unsigned long long x = descriptor(at_a), y = descriptor(at_b);
#pragma unroll
            for (int e = 0; e < BK / DEPTH; e++) {
                sums.multiply(x + 2 * e, y + 2 * e, turn + s + e);
            }
        }
        commit_products();
        if (from + SLICES * BK < end) load(from + SLICES * BK, end);
    }
    wait_products();
    sums.settle();
    __syncthreads();

    // Through shared memory, so that whole lines are read and written below.
    constexpr int LINE = Shape::SIDE + 4;
    float* result = (float*)shared;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3;
    int i = group * 64 + warp * 16 + (lane >> 2), j = (lane & 3) * 2;
#pragma unroll
    for (int e = 0; e < SIDE / 8; e++) {
        float2 upper = make_float2(sums.sum[4 * e], sums.sum[4 * e + 1]);
        float2 lower = make_float2(sums.sum[4 * e + 2], sums.sum[4 * e + 3]);
        *(float2*)(result + i * LINE + 8 * e + j) = upper;
        *(float2*)(result + (i + 8) * LINE + 8 * e + j) = lower;
    }
    float* beside = result + Shape::SIDE * LINE;
    if constexpr (!B_DEEP) {
        if (summed) put_sums<Shape, B>(beside, own);
    }
    bool whole = wide & 4;
    if (ACTIVATED) finish_layer<Shape>(result, c, row, column, m, n, whole, epilogue);
    else finish_gradient<Shape>(result, c, row, column, m, n, whole, epilogue);
    if constexpr (!B_DEEP) {
        if (epilogue.sums.p && row == 0) finish_sums<Shape>(beside, epilogue.sums, column, n);
    }
    if (blocks > 1) {
        // Nobody leaves before its partial sums were read.
        cluster_arrive();
        cluster_wait();
    }
}

#define PRODUCT(NAME, SHAPE, A_DEEP, B_DEEP, ACTIVATED)                                           \
    extern "C" __global__ void __launch_bounds__(SHAPE::COUNT, SHAPE::BLOCKS) NAME##_##SHAPE(     \
        Mat a, Mat b, Mat c, int m, int n, int k, int a_pitch, int b_pitch, int wide,             \
        Epilogue epilogue) {                                                                      \
        product<SHAPE, IS_WIDE, A_DEEP, B_DEEP, ACTIVATED>(                                       \
            a, b, c, m, n, k, a_pitch, b_pitch, wide, epilogue);                                  \
    }

// For few tiles and for many, as `ops/product.rs` chooses them.
typedef Shape<64, 2, 3> small;
typedef Shape<128, 1, 2> large;

// Layers x w + b, and the products x^T dz and dz w^T of their gradients.
PRODUCT(plain, small, true, false, true)
PRODUCT(plain, large, true, false, true)
PRODUCT(right, small, true, true, false)
PRODUCT(right, large, true, true, false)
PRODUCT(left, small, false, false, false)
PRODUCT(left, large, false, false, false)
