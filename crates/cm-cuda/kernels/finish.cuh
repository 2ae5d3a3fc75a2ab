// What happens to a tile of a product before it is stored, and the shapes of tiles.

struct Epilogue {
    Mat bias;      // added to every row
    Mat slope;     // receives f'(z)
    Mat factor;    // multiplies the result
    Mat addend;    // is added to the result
    Mat sums;      // receives the sums of B's columns over K
    int activation;
};

// A tile SIDE x SIDE of C, by SIDE / 64 warpgroups that take SLICES of K at a time, of which two
// lots are in shared memory. A multiprocessor has room for BLOCKS.
template <int LENGTH, int LOADED, int RESIDENT>
struct Shape {
    static constexpr int SIDE = LENGTH, SLICES = LOADED, COUNT = 2 * LENGTH, BLOCKS = RESIDENT;
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
