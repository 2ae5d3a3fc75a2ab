// C = epilogue(A B) by Hopper's warpgroup products (wgmma) of packed operands, sums in fp32.
//
// If a tile of C is SPLIT, the blocks of a cluster share it: each sums up a part of K, sends every
// block the sums of that block's strip of columns, and finishes its own strip.

// Operands of several products.
struct Factors {
    Mat x[4];
};

static __device__ __forceinline__ const char* operand_of(const Mat& x, int) {
    return (const char*)at(x);
}

static __device__ __forceinline__ const char* operand_of(const Factors& factors, int product) {
    float* x = at(factors.x[0]);
#pragma unroll
    for (int q = 1; q < 4; q++) {
        if (product == q) x = at(factors.x[q]);
    }
    return (const char*)x;
}

// One tile of C [m, n], whose rows begin `pitch` apart: the sum of `count` products A B. A has
// `fold` squares along K, which are taken once or twice.
template <typename Shape, bool ACTIVATED, typename Operand>
static __device__ __forceinline__ void product(
    const Operand& a, const Operand& b, Mat c, int m, int n, int k, int count, int fold, int wide,
    int pitch, const Epilogue& epilogue, const Made& made) {
    constexpr int ROWS = Shape::ROWS, COLUMNS = Shape::COLUMNS, SLICES = Shape::SLICES;
    constexpr int STAGES = Shape::STAGES, LOT = SLICES * BLOCK_BYTES;
    constexpr int LEFT = ROWS / 64 * LOT, STAGE = LEFT + SLICES * COLUMNS * 128;
    // The driver aligns shared memory to 16 bytes only; the swizzle needs more.
    extern __shared__ __align__(16) char memory[];
    __shared__ __align__(8) unsigned long long arrivals[STAGES];
    char* shared = memory + ((1024 - ((unsigned)__cvta_generic_to_shared(memory) & 1023)) & 1023);
    unsigned base = (unsigned)__cvta_generic_to_shared(shared);
    unsigned arrival = (unsigned)__cvta_generic_to_shared(arrivals);
    unsigned blocks = 1, part = 0;
    if constexpr (Shape::SPLIT) blocks = cluster_size(), part = cluster_rank();
    Strip<Shape> strip(blocks);
    int row = (int)blockIdx.y * ROWS, column = (int)(blockIdx.x / blocks) * COLUMNS;
    // Parts are whole squares.
    int squares = (k + 63) >> 6, begin = squares * part >> strip.shift;
    int turns = ((squares * (part + 1) >> strip.shift) - begin) * (64 / SLICE / SLICES) * count;

    // Each of the first threads makes one of the copies that a lot takes: 64 lines of an operand,
    // or a slice of 32 lines.
    constexpr bool HALVED = COLUMNS == 32;
    constexpr int PANELS = ROWS / 64, OTHERS = HALVED ? SLICES : COLUMNS / 64;
    constexpr int LOTS = 64 / SLICE / SLICES;  // of a square
    bool is_left = threadIdx.x < PANELS;
    int copy = is_left ? threadIdx.x : threadIdx.x - PANELS, lines = is_left ? m : n;
    int period = is_left ? fold : squares, bytes = HALVED && !is_left ? LOT / SLICES / 2 : LOT;
    int first = ((is_left ? row : column) >> 6) + (HALVED ? 0 : copy);
    size_t offset = (size_t)min(first, (lines - 1) >> 6) * period * SQUARE_BYTES;
    if (HALVED && !is_left) offset += copy * BLOCK_BYTES + (column & 32) * 128;
    const char* source = (is_left ? operand_of(a, 0) : operand_of(b, 0)) + offset;
    auto fetch = [&](int turn) {
        int stage = turn % STAGES;
        if (threadIdx.x == 0) expect_bytes(arrival + 8 * stage, STAGE);
        __syncwarp();
        if (threadIdx.x < PANELS + OTHERS) {
            unsigned target = base + stage * STAGE + (is_left ? 0 : LEFT) + copy * bytes;
            int lot = begin * LOTS + turn;
            if (count > 1) {
                int product = lot / (squares * LOTS);
                lot -= product * squares * LOTS;
                source = (is_left ? operand_of(a, product) : operand_of(b, product)) + offset;
            }
            if (lot >= period * LOTS) lot -= period * LOTS;
            copy_bytes(target, source + (size_t)lot * LOT, bytes, arrival + 8 * stage);
        }
    };
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < STAGES; stage++) begin_barrier(arrival + 8 * stage);
            fence_barriers();
        }
        after_others();
        __syncwarp();
        for (int turn = 0; turn < min(STAGES, turns); turn++) fetch(turn);
    }
    if (threadIdx.x >= 32) after_others();
    __syncthreads();

    if (!ACTIVATED && epilogue.sums.p && row == 0) {
        finish_sums<Shape>(epilogue, column + part * strip.width, strip.width, n, 2 * squares);
    }
    // What the result is put together with is on its way meanwhile, if there is room for it.
    constexpr bool EARLY = !Shape::SPLIT && ROWS == 64;
    typedef Part<Shape, ACTIVATED> OwnPart;
    Forms forms(made, m, n, wide);
    int strip_column = column + part * strip.width;
    OwnPart early(EARLY ? threadIdx.x : Shape::ROWS * Shape::COLUMNS, strip, row, strip_column, m, n,
        wide, epilogue, forms);
    Sums<COLUMNS> sums;
    unsigned own = (threadIdx.x >> 7) * LOT;
    for (int turn = 0; turn < turns; turn++) {
        int stage = turn % STAGES;
        unsigned where = base + stage * STAGE;
        wait_barrier(arrival + 8 * stage, turn / STAGES & 1);
        begin_products();
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            unsigned long long x = descriptor(where + own + s * BLOCK_BYTES);
            unsigned long long y = descriptor(where + LEFT + s * COLUMNS * 128);
#pragma unroll
            for (int e = 0; e < SLICE / DEPTH; e++) {
                sums.multiply(x + 2 * e, y + 2 * e, turn + s + e);
            }
        }
        commit_products();
        // The products before these are done: their place is free.
        wait_products<1>();
        if (turn > 0 && turn - 1 + STAGES < turns) {
            __syncthreads();
            if (threadIdx.x < 32) fetch(turn - 1 + STAGES);
        }
    }
    wait_products<0>();
    sums.settle();

    // To the blocks that finish them.
    float* tile = (float*)shared;
    wait_for_all(blocks);
    int lane = threadIdx.x & 31, i = (threadIdx.x >> 5) * 16 + (lane >> 2), j = (lane & 3) * 2;
    float* slot = tile + (part * ROWS + i) * strip.line + j;
#pragma unroll
    for (int e = 0; e < COLUMNS / 8; e++) {
        float2 upper = make_float2(sums.sum[4 * e], sums.sum[4 * e + 1]);
        float2 lower = make_float2(sums.sum[4 * e + 2], sums.sum[4 * e + 3]);
        if constexpr (Shape::SPLIT) {
            int owner = 8 * e >> (strip.LOG - strip.shift);
            float* place = slot + 8 * e - owner * strip.width;
            put_remote(place, owner, upper);
            put_remote(place + 8 * strip.line, owner, lower);
        } else {
            *(float2*)(slot + 8 * e) = upper;
            *(float2*)(slot + 8 * e + 8 * strip.line) = lower;
        }
    }
    if (!EARLY) {
        early = OwnPart(
            threadIdx.x, strip, row, strip_column, m, n, wide, epilogue, forms);
    }
    finish<Shape, ACTIVATED>(
        early, tile, strip, c, row, strip_column, m, n, wide, pitch, epilogue, forms);
}

#define PRODUCT(NAME, SHAPE, ACTIVATED)                                                           \
    BOUNDED_KERNEL(NAME##_##SHAPE, (SHAPE::COUNT, SHAPE::BLOCKS),                                 \
        Mat a, Mat b, Mat c, int m, int n, int k, int fold, int wide, int pitch,                  \
        Epilogue epilogue, Mat rows, Mat columns, Mat sums) {                                     \
        product<SHAPE, ACTIVATED>(                                                                \
            a, b, c, m, n, k, 1, fold, wide, pitch, epilogue, {rows, columns, sums});             \
    }

#define SUM(SHAPE)                                                                                \
    BOUNDED_KERNEL(sum_##SHAPE, (SHAPE::COUNT, SHAPE::BLOCKS),                                    \
        Factors a, Factors b, Mat c, int m, int n, int k, int count, int wide, int pitch,         \
        Epilogue epilogue, Mat rows, Mat columns, Mat sums) {                                     \
        product<SHAPE, false>(                                                                    \
            a, b, c, m, n, k, count, k / 64, wide, pitch, epilogue, {rows, columns, sums});       \
    }

// For few tiles and for many, as `ops/product.rs` chooses them.
typedef Shape<64, 32, 64 / SLICE, 3 * SLICE / 32, 3, false> narrow;
typedef Shape<64, 64, 64 / SLICE, 2 * SLICE / 32, 3, false> small;
typedef Shape<64, 64, 64 / SLICE, 2 * SLICE / 32, 3, true> small_split;
typedef Shape<128, 128, 1, 3, 2, false> large;
typedef Shape<128, 128, 1, 3, 2, true> large_split;

PRODUCT(layer, narrow, true)
PRODUCT(layer, small, true)
PRODUCT(layer, small_split, true)
PRODUCT(layer, large, true)
PRODUCT(layer, large_split, true)
PRODUCT(gradient, narrow, false)
PRODUCT(gradient, small, false)
PRODUCT(gradient, small_split, false)
PRODUCT(gradient, large, false)
PRODUCT(gradient, large_split, false)

SUM(narrow)
SUM(small)
SUM(large)
