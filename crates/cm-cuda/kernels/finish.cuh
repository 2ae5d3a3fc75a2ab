// What happens to a tile of a product before it is stored, and the shapes of tiles.

struct Epilogue {
    Mat bias;      // added to every row
    Mat slope;     // receives f'(z)
    Mat factor;    // multiplies the result
    Mat addend;    // is added to the result
    Mat partial;   // sums of B's lines over 32 each of K
    Mat before;    // is added to them
    Mat sums;      // receives those over all of K
    int activation;
};

// A tile ROWS x COLUMNS of C, by ROWS / 64 warpgroups. SLICES blocks of each operand's lines are
// copied at a time; STAGES such lots are in shared memory, and the tile's sums when these have been
// multiplied. A multiprocessor has room for RESIDENT tiles. If it is SHARED, several blocks sum up
// parts of K.
template <int HEIGHT, int WIDTH, int LOADED, int LOTS, int RESIDENT, bool SHARED>
struct Shape {
    static constexpr bool SPLIT = SHARED;
    static constexpr int ROWS = HEIGHT, COLUMNS = WIDTH, SLICES = LOADED, STAGES = LOTS;
    static constexpr int COUNT = 2 * ROWS, BLOCKS = RESIDENT;
};

// z becomes f(z), `slope` f'(z).
template <int F>
static __device__ __forceinline__ void activate(float& z, float& slope) {
    slope = gradient_of(F, z, 1.0f, 0.0f, 0.0f);
    z = value_of(F, z, 0.0f, 0.0f);
}

template <int F>
static __device__ __forceinline__ void activate(Patch& z, Patch& slope) {
#pragma unroll
    for (int q = 0; q < 4; q++) {
        activate<F>(z.row[q].x, slope.row[q].x);
        activate<F>(z.row[q].y, slope.row[q].y);
        activate<F>(z.row[q].z, slope.row[q].z);
        activate<F>(z.row[q].w, slope.row[q].w);
    }
}

static __device__ __noinline__ float2 activate_rarely(int f, float z) {
    float slope;
    if (f == GELU) activate<GELU>(z, slope);
    else activate<TANH>(z, slope);
    return make_float2(z, slope);
}

static __device__ __forceinline__ void activate(int f, Patch& z, Patch& slope) {
    if (f == SILU) {
        activate<SILU>(z, slope);
    } else if (f == RELU) {
        activate<RELU>(z, slope);
    } else if (f == IDENTITY) {
        activate<IDENTITY>(z, slope);
    } else {
#pragma unroll
        for (int q = 0; q < 4; q++) {
            float2 a = activate_rarely(f, z.row[q].x), b = activate_rarely(f, z.row[q].y);
            float2 c = activate_rarely(f, z.row[q].z), d = activate_rarely(f, z.row[q].w);
            z.row[q] = make_float4(a.x, b.x, c.x, d.x);
            slope.row[q] = make_float4(a.y, b.y, c.y, d.y);
        }
    }
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
// shared memory holds what every block of the cluster has summed up for it, [block][ROWS][line].
template <typename Shape, bool SPLIT = Shape::SPLIT>
struct Strip {
    static constexpr int LOG = Shape::COLUMNS == 32 ? 5 : Shape::COLUMNS == 64 ? 6 : 7;
    int shift, width, line;

    __device__ __forceinline__ Strip(unsigned blocks)
        : shift(31 - __clz(blocks)), width(Shape::COLUMNS >> shift), line(width + 4) {}

    // Four neighbours of the product: the blocks' sums, added in their order.
    __device__ __forceinline__ float4 gather(const float* tile, int i, int j) const {
        const float* from = tile + i * line + j;
        float4 sum = *(const float4*)from;
        for (int block = 1; block < 1 << shift; block++) {
            from += Shape::ROWS * line;
            add(sum, *(const float4*)from);
        }
        return sum;
    }
};

// The same of one block.
template <typename Shape>
struct Strip<Shape, false> {
    static constexpr int LOG = Shape::COLUMNS == 32 ? 5 : Shape::COLUMNS == 64 ? 6 : 7;
    static constexpr int shift = 0, width = Shape::COLUMNS, line = width + 4;

    __device__ __forceinline__ Strip(unsigned) {}

    __device__ __forceinline__ float4 gather(const float* tile, int i, int j) const {
        return *(const float4*)(tile + i * line + j);
    }
};

// Waits for all threads of a tile's blocks, and what they wrote.
static __device__ __forceinline__ void wait_for_all(unsigned blocks) {
    __syncwarp();
    if (blocks == 1) __syncthreads();
    else cluster_barrier();
}

// Four rows of four numbers that a thread finishes, and what belongs to them.
template <typename Shape, bool ACTIVATED>
struct Part {
    int i, j, r, k, count, rows;  // where in the tile and in C, and how much of it is in C
    bool exists;
    Patch plus, times;
    float4 bias;

    // How far apart threads of the same columns are: of a warp, eight have a column each, as wide as
    // the strip lets them.
    static __device__ __forceinline__ int apart(const Strip<Shape>& strip) {
        return strip.width < 16 ? 1 : 2;
    }

    // The part of number `p` of this block's strip of a tile that begins at `row` and `column` of C
    // [m, n].
    __device__ __forceinline__ Part(int p, const Strip<Shape>& strip, int row, int column, int m,
        int n, bool wide, const Epilogue& e, const Forms& forms) {
        int narrow = apart(strip), abreast = max(0, strip.LOG - 4 - strip.shift);
        int rest = p >> (3 + narrow);
        i = ((rest >> abreast) * 8 + (p >> narrow & 7)) * 4;
        j = ((rest & ((1 << abreast) - 1)) << 4) + (p & ((1 << narrow) - 1)) * 4;
        r = row + i, k = column + j;
        exists = p < (Shape::ROWS / 4) * (strip.width / 4) && forms.hold(r, k);
        count = max(0, min(4, n - k)), rows = min(4, m - r);
        const float *b = maybe(e.bias), *factor = maybe(e.factor), *addend = maybe(e.addend);
        bias = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (!exists) return;
        if (ACTIVATED && b) bias = four(b + k, count, wide);
        if (!ACTIVATED && factor) load_patch(times, factor, r, k, m, n, wide);
        if (addend) load_patch(plus, addend, r, k, m, n, wide);
    }
};

// Finishes this block's strip of a tile, whose rows begin `pitch` apart in C; `part` is a thread's
// first. Writes f(z + bias) + addend and f'(z + bias) if ACTIVATED, else (z + addend) factor.
template <typename Shape, bool ACTIVATED>
static __device__ __forceinline__ void finish(
    Part<Shape, ACTIVATED> part, const float* tile, const Strip<Shape>& strip, Mat c, int row,
    int column, int m, int n, bool wide, int pitch, const Epilogue& e, const Forms& forms) {
    int patches = (Shape::ROWS / 4) * (strip.width / 4);
    float *out = maybe(c), *slope = maybe(e.slope);
    bool plus = e.addend.p, times = e.factor.p;
    wait_for_all(1u << strip.shift);
#pragma unroll 1
    for (int p = threadIdx.x; p < patches;) {
        if (part.exists) {
            Patch y, slopes;
#pragma unroll
            for (int q = 0; q < 4; q++) {
                y.row[q] = strip.gather(tile, part.i + q, part.j);
                if (ACTIVATED) add(y.row[q], part.bias);
            }
            if (ACTIVATED) activate(e.activation, y, slopes);
#pragma unroll
            for (int q = 0; q < 4; q++) {
                if (plus) add(y.row[q], part.plus.row[q]);
                if (!ACTIVATED && times) {
                    float4 &z = y.row[q], f = part.times.row[q];
                    z.x *= f.x, z.y *= f.y, z.z *= f.z, z.w *= f.w;
                }
            }
#pragma unroll
            for (int q = 0; q < 4; q++) {
                size_t r = part.r + q;
                if (ACTIVATED && slope && q < part.rows) {
                    put_four(slope + r * n + part.k, slopes.row[q], part.count, wide);
                }
                if (out && q < part.rows) {
                    put_four(out + r * pitch + part.k, y.row[q], part.count, wide);
                }
            }
            if (part.rows < 4 || part.count < 4) {
#pragma unroll
                for (int q = 0; q < 4; q++) {
                    y.row[q] = cut(y.row[q], q < part.rows ? part.count : 0);
                }
            }
            forms.put(y, part.r, part.k, part.apart(strip));
        }
        p += Shape::COUNT;
        if (p >= patches) break;
        // All loads before all stores: the compiler could not move them over.
        part = Part<Shape, ACTIVATED>(p, strip, row, column, m, n, wide, e, forms);
    }
}

// Sums up this strip's columns of `partial` [parts, n]; half of the threads do it.
template <typename Shape>
static __device__ __forceinline__ void finish_sums(
    const Epilogue& e, int column, int width, int n, int parts) {
    int j = (int)threadIdx.x - Shape::COUNT / 2;
    if (j < 0 || j >= width || column + j >= n) return;
    const float *from = at(e.partial) + column + j, *before = maybe(e.before);
    float sum = 0.0f, more = before ? before[column + j] : 0.0f;
#pragma unroll 8
    for (int part = 0; part < parts; part++) sum += from[(size_t)part * n];
    at(e.sums)[column + j] = sum + more;
}
