// C = epilogue(A B) by Hopper's warpgroup products (wgmma) of packed operands, sums in fp32.
//
// The blocks of a cluster share one tile of C: each sums up a part of K, sends every block the sums
// of that block's strip of columns, and finishes its own strip.

// One tile of C [m, n] a cluster. A has `fold` squares along K, which are taken again and again.
template <typename Shape, bool ACTIVATED>
static __device__ __forceinline__ void product(
    Mat a, Mat b, Mat c, int m, int n, int k, int fold, int wide, const Epilogue& epilogue,
    const Made& made) {
    constexpr int SIDE = Shape::SIDE, SLICES = Shape::SLICES, STAGES = Shape::STAGES;
    constexpr int PANELS = SIDE / 64, LOT = SLICES * BLOCK_BYTES, STAGE = 2 * PANELS * LOT;
    // The driver aligns shared memory to 16 bytes only; the swizzle needs more.
    extern __shared__ __align__(16) char memory[];
    __shared__ __align__(8) unsigned long long arrivals[STAGES];
    char* shared = memory + ((1024 - ((unsigned)__cvta_generic_to_shared(memory) & 1023)) & 1023);
    unsigned base = (unsigned)__cvta_generic_to_shared(shared);
    unsigned arrival = (unsigned)__cvta_generic_to_shared(arrivals);
    unsigned blocks = cluster_size(), part = cluster_rank();
    Strip<SIDE> strip(blocks);
    int row = (int)blockIdx.y * SIDE, column = (int)cluster_number() * SIDE;
    // Parts are whole squares.
    int squares = (k + 63) >> 6, begin = squares * part >> strip.shift;
    int turns = ((squares * (part + 1) >> strip.shift) - begin) * (64 / SLICE / SLICES);

    // Each of the first threads copies 64 lines of one operand.
    int lines = threadIdx.x < PANELS ? m : n, panel = threadIdx.x & (PANELS - 1);
    int first = min(((threadIdx.x < PANELS ? row : column) >> 6) + panel, (lines - 1) >> 6);
    int period = threadIdx.x < PANELS ? fold : squares;
    const char* source =
        (const char*)at(threadIdx.x < PANELS ? a : b) + (size_t)first * period * SQUARE_BYTES;
    constexpr int LOTS = 64 / SLICE / SLICES;  // of a square
    auto fetch = [&](int turn) {
        int stage = turn % STAGES;
        if (threadIdx.x == 0) expect_bytes(arrival + 8 * stage, STAGE);
        __syncwarp();
        if (threadIdx.x < 2 * PANELS) {
            unsigned target = base + stage * STAGE + threadIdx.x * LOT;
            int lot = (begin * LOTS + turn) % (period * LOTS);
            copy_bytes(target, source + (size_t)lot * LOT, LOT, arrival + 8 * stage);
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
    if (!Shape::SHARED && blocks > 1) cluster_arrive();
    __syncthreads();

    if (!ACTIVATED && epilogue.sums.p && row == 0) {
        finish_sums<Shape>(epilogue.partial, epilogue.sums, column + part * strip.width,
            strip.width, n, 2 * squares);
    }
    Sums<SIDE> sums;
    unsigned own = (threadIdx.x >> 7) * LOT;
    for (int turn = 0; turn < turns; turn++) {
        int stage = turn % STAGES;
        unsigned where = base + stage * STAGE;
        wait_barrier(arrival + 8 * stage, turn / STAGES & 1);
        begin_products();
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            unsigned long long x = descriptor(where + own + s * BLOCK_BYTES);
            unsigned long long y = descriptor(where + PANELS * LOT + s * BLOCK_BYTES);
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
    float* tile = (float*)(shared + (Shape::SHARED ? 0 : STAGES * STAGE));
    if (Shape::SHARED) tile_is_written(blocks);
    else if (blocks > 1) cluster_wait();
    int lane = threadIdx.x & 31, i = (threadIdx.x >> 5) * 16 + (lane >> 2), j = (lane & 3) * 2;
    float* slot = tile + (part * SIDE + i) * strip.line + j;
#pragma unroll
    for (int e = 0; e < SIDE / 8; e++) {
        int owner = 8 * e >> (strip.LOG - strip.shift);
        float* place = slot + 8 * e - owner * strip.width;
        put_remote(place, owner, make_float2(sums.sum[4 * e], sums.sum[4 * e + 1]));
        place += 8 * strip.line;
        put_remote(place, owner, make_float2(sums.sum[4 * e + 2], sums.sum[4 * e + 3]));
    }
    Forms forms(made, m, n, wide);
    finish<Shape, ACTIVATED>(
        tile, strip, c, row, column + part * strip.width, m, n, wide, epilogue, forms);
}

#define PRODUCT(NAME, SHAPE, ACTIVATED)                                                           \
    extern "C" __global__ void __launch_bounds__(SHAPE::COUNT, 2) NAME##_##SHAPE(                 \
        Mat a, Mat b, Mat c, int m, int n, int k, int fold, int wide, Epilogue epilogue,          \
        Mat rows, Mat columns, Mat sums) {                                                        \
        product<SHAPE, ACTIVATED>(                                                                \
            a, b, c, m, n, k, fold, wide, epilogue, {rows, columns, sums});                       \
    }

// For few tiles and for many, as `ops/product.rs` chooses them.
typedef Shape<64, 64 / SLICE, 65536 / (2 * SQUARE_BYTES), false> small;
typedef Shape<128, 1, 3, true> large;

PRODUCT(layer, small, true)
PRODUCT(layer, large, true)
PRODUCT(gradient, small, false)
PRODUCT(gradient, large, false)
