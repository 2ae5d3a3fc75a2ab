// What happens to a tile of a product before it is stored, and the shapes of tiles.

struct Epilogue {
    Mat bias;      // added to every row
    Mat slope;     // receives f'(z)
    Mat factor;    // multiplies the result
    Mat addend;    // is added to the result
    Mat partial;   // sums of B's lines over 32 each of K
    Mat sums;      // receives those over all of K
    int activation;
};

// A tile SIDE x SIDE of C, by SIDE / 64 warpgroups. SLICES blocks of each operand's lines are
// copied at a time; STAGES such lots are in shared memory. A multiprocessor has room for two tiles.
// SHARED: the tile's sums take the place of the operands when these have been multiplied.
template <int LENGTH, int LOADED, int LOTS, bool ALIASED>
struct Shape {
    static constexpr int SIDE = LENGTH, SLICES = LOADED, STAGES = LOTS, COUNT = 2 * LENGTH;
    static constexpr bool SHARED = ALIASED;
};

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

// Four numbers, of which the first `count` lie in C; the others become 0.
static __device__ __noinline__ float4 cut(float4 x, int count) {
    if (count < 1) x.x = 0.0f;
    if (count < 2) x.y = 0.0f;
    if (count < 3) x.z = 0.0f;
    if (count < 4) x.w = 0.0f;
    return x;
}

// A tile's sums as the blocks of a cluster leave them. Each block finishes a strip of columns: its
// shared memory holds what every block of the cluster has summed up for it, [block][SIDE][line].
template <int SIDE>
struct Strip {
    static constexpr int LOG = SIDE == 64 ? 6 : 7;
    int shift, width, line;

    __device__ __forceinline__ Strip(unsigned blocks)
        : shift(31 - __clz(blocks)), width(SIDE >> shift), line(width + 4) {}

    // Four neighbours of the product: the blocks' sums, added in their order.
    __device__ __forceinline__ float4 gather(const float* tile, int i, int j) const {
        const float* from = tile + i * line + j;
        float4 sum = *(const float4*)from;
        for (int block = 1; block < 1 << shift; block++) {
            from += SIDE * line;
            add(sum, *(const float4*)from);
        }
        return sum;
    }
};

static __device__ __forceinline__ void tile_is_written(unsigned blocks) {
    __syncwarp();
    if (blocks == 1) __syncthreads();
    else cluster_barrier();
}

// Finishes this block's strip of a tile that begins at `row` and `column` of C [m, n]. Writes
// f(z + bias) + addend and f'(z + bias) if ACTIVATED, else (z + addend) factor.
template <typename Shape, bool ACTIVATED>
static __device__ __forceinline__ void finish(
    const float* tile, Strip<Shape::SIDE> strip, Mat c, int row, int column, int m, int n,
    bool wide, const Epilogue& e, const Forms& forms) {
    // Threads of a warp have eight patches of a column, as wide as the strip lets them.
    int narrow = strip.width < 16 ? 1 : 2, abreast = max(0, strip.LOG - 4 - strip.shift);
    int patches = (Shape::SIDE / 4) * (strip.width / 4);
    float *out = maybe(c), *slope = maybe(e.slope);
    const float *bias = maybe(e.bias), *factor = maybe(e.factor), *addend = maybe(e.addend);
    bool waited = false;
#pragma unroll 1
    for (int p = threadIdx.x;; p += Shape::COUNT) {
        int rest = p >> (3 + narrow);
        int i = ((rest >> abreast) * 8 + (p >> narrow & 7)) * 4;
        int j = ((rest & ((1 << abreast) - 1)) << 4) + (p & ((1 << narrow) - 1)) * 4;
        int r = row + i, k = column + j;
        bool exists = p < patches && forms.hold(r, k);
        int count = max(0, min(4, n - k)), rows = min(4, m - r);
        // All loads before all stores: the compiler could not move them over.
        Patch plus, times;
        float4 b = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (exists) {
            if (ACTIVATED && bias) b = four(bias + k, count, wide);
            if (!ACTIVATED && factor) load_patch(times, factor, r, k, m, n, wide);
            if (addend) load_patch(plus, addend, r, k, m, n, wide);
        }
        if (!waited) tile_is_written(1u << strip.shift);
        waited = true;
        if (p >= patches) break;
        if (!exists) continue;
        Patch y;
#pragma unroll
        for (int q = 0; q < 4; q++) {
            float4 z = strip.gather(tile, i + q, j);
            size_t place = (size_t)(r + q) * n + k;
            if (ACTIVATED) {
                add(z, b);
                float4 d = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
                y.row[q] = z;
                if (e.activation == SILU) activate<SILU>(z, y.row[q], d);
                else if (e.activation == RELU) activate<RELU>(z, y.row[q], d);
                else if (e.activation != IDENTITY) activate_rarely(e.activation, z, y.row[q], d);
                if (slope && q < rows) put_four(slope + place, d, count, wide);
                if (addend) add(y.row[q], plus.row[q]);
            } else {
                if (addend) add(z, plus.row[q]);
                if (factor) {
                    float4 f = times.row[q];
                    z.x *= f.x, z.y *= f.y, z.z *= f.z, z.w *= f.w;
                }
                y.row[q] = z;
            }
            if (out && q < rows) put_four(out + place, y.row[q], count, wide);
        }
        if (rows < 4 || count < 4) {
#pragma unroll
            for (int q = 0; q < 4; q++) y.row[q] = cut(y.row[q], q < rows ? count : 0);
        }
        forms.put(y, r, k, narrow);
    }
}

// Sums up this strip's columns of `partial` [parts, n]; half of the threads do it.
template <typename Shape>
static __device__ __forceinline__ void finish_sums(
    Mat partial, Mat sums, int column, int width, int n, int parts) {
    int j = (int)threadIdx.x - Shape::COUNT / 2;
    if (j < 0 || j >= width || column + j >= n) return;
    const float* from = at(partial) + column + j;
    float sum = 0.0f;
#pragma unroll 8
    for (int part = 0; part < parts; part++) sum += from[(size_t)part * n];
    at(sums)[column + j] = sum;
}
