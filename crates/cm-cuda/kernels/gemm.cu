// C = epilogue(A B) for one precision: PRECISION is 0 (fp32 FMA), 1 (TF32) or 2 (bf16 operands,
// both with fp32 accumulators on the tensor cores by mma.sync).
//
// Copies run some stages ahead (cp.async): the smaller the tile, the more, since little else hides
// how long they take. An operand whose inner dimension K is contiguous lies in
// shared memory as [row][K] with 4 floats of padding, the other kind as [K][row] with 8: both make
// the loads of fragments free of bank conflicts.

constexpr int BK = 32;

// As `TILES` in `ops/linear.rs` has it.
template <int SIDE>
struct Stages {
    static constexpr int COUNT = SIDE == 128 ? 3 : (SIDE == 64 ? 4 : 6);
};

struct Epilogue {
    Mat bias;      // added to every row
    Mat slope;     // receives f'(z)
    Mat factor;    // multiplies the result
    Mat addend;    // is added to the result
    int activation;
};

// A tile of an operand: ROWS rows (of A) or columns (of B) by BK.
template <int ROWS, bool K_CONTIGUOUS>
struct Tile {
    static constexpr int LINE = K_CONTIGUOUS ? BK + 4 : ROWS + 8;
    static constexpr int SIZE = (K_CONTIGUOUS ? ROWS : BK) * LINE;

    static __device__ __forceinline__ float get(const float* tile, int row, int k) {
        return K_CONTIGUOUS ? tile[row * LINE + k] : tile[k * LINE + row];
    }

    // Asks for the tile from `row` and `k` on; what lies outside becomes 0.
    template <int COUNT>
    static __device__ __forceinline__ void load(
        float* tile, const float* source, int pitch, int row, int rows, int k, int depth,
        bool wide) {
        constexpr int WIDTH = K_CONTIGUOUS ? BK : ROWS;
        constexpr int LINES = K_CONTIGUOUS ? ROWS : BK;
        int line0 = K_CONTIGUOUS ? row : k, lines = K_CONTIGUOUS ? rows : depth;
        int first = K_CONTIGUOUS ? k : row, end = K_CONTIGUOUS ? depth : rows;
        if (wide) {
            for (int i = threadIdx.x; i < LINES * WIDTH / 4; i += COUNT) {
                int line = i / (WIDTH / 4), place = i % (WIDTH / 4) * 4;
                bool inside = line0 + line < lines && first + place < end;
                size_t at = (size_t)(line0 + line) * pitch + first + place;
                const float* from = source + (inside ? at : 0);
                copy_16(tile + line * LINE + place, from, inside);
            }
        } else {
            for (int i = threadIdx.x; i < LINES * WIDTH; i += COUNT) {
                int line = i / WIDTH, place = i % WIDTH;
                bool inside = line0 + line < lines && first + place < end;
                size_t at = (size_t)(line0 + line) * pitch + first + place;
                const float* from = source + (inside ? at : 0);
                copy_4(tile + line * LINE + place, from, inside);
            }
        }
    }
};

// A warp's share WM x WN of the tile, and where its accumulators belong.
template <typename A, typename B, int WM, int WN>
struct Warp {
#if PRECISION == 0
    // Lane (i, j) of 4 x 8 owns rows i + 4 r and columns j + 8 c.
    static constexpr int ROWS = WM / 4, COLUMNS = WN / 8;
    float sums[ROWS][COLUMNS];

    __device__ __forceinline__ void clear() {
        for (int r = 0; r < ROWS; r++) for (int c = 0; c < COLUMNS; c++) sums[r][c] = 0.0f;
    }

    __device__ __forceinline__ void multiply(const float* a, const float* b, int row, int column) {
        int lane = threadIdx.x & 31, i = lane >> 3, j = lane & 7;
#pragma unroll 8
        for (int k = 0; k < BK; k++) {
            float left[ROWS], right[COLUMNS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) left[r] = A::get(a, row + i + 4 * r, k);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) right[c] = B::get(b, column + j + 8 * c, k);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) sums[r][c] = fmaf(left[r], right[c], sums[r][c]);
        }
    }

    template <typename Put>
    __device__ __forceinline__ void store(Put put) {
        int lane = threadIdx.x & 31, i = lane >> 3, j = lane & 7;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) put(i + 4 * r, j + 8 * c, sums[r][c]);
    }
#else
    static constexpr int ROWS = WM / 16, COLUMNS = WN / 8;
    float sums[ROWS][COLUMNS][4];

    __device__ __forceinline__ void clear() {
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++)
                for (int e = 0; e < 4; e++) sums[r][c][e] = 0.0f;
    }

    __device__ __forceinline__ void multiply(const float* a, const float* b, int row, int column) {
        int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
        constexpr int DEPTH = PRECISION == 1 ? 8 : 16;
#pragma unroll
        for (int k = 0; k < BK; k += DEPTH) {
            unsigned left[ROWS][4], right[COLUMNS][2];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                int m = row + 16 * r + g;
#if PRECISION == 1
                left[r][0] = to_tf32(A::get(a, m, k + t));
                left[r][1] = to_tf32(A::get(a, m + 8, k + t));
                left[r][2] = to_tf32(A::get(a, m, k + t + 4));
                left[r][3] = to_tf32(A::get(a, m + 8, k + t + 4));
#else
                int k0 = k + 2 * t, k1 = k0 + 8;
                left[r][0] = to_bf16_pair(A::get(a, m, k0), A::get(a, m, k0 + 1));
                left[r][1] = to_bf16_pair(A::get(a, m + 8, k0), A::get(a, m + 8, k0 + 1));
                left[r][2] = to_bf16_pair(A::get(a, m, k1), A::get(a, m, k1 + 1));
                left[r][3] = to_bf16_pair(A::get(a, m + 8, k1), A::get(a, m + 8, k1 + 1));
#endif
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                int n = column + 8 * c + g;
#if PRECISION == 1
                right[c][0] = to_tf32(B::get(b, n, k + t));
                right[c][1] = to_tf32(B::get(b, n, k + t + 4));
#else
                int k0 = k + 2 * t, k1 = k0 + 8;
                right[c][0] = to_bf16_pair(B::get(b, n, k0), B::get(b, n, k0 + 1));
                right[c][1] = to_bf16_pair(B::get(b, n, k1), B::get(b, n, k1 + 1));
#endif
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
#if PRECISION == 1
                    multiply_tf32(sums[r][c], left[r], right[c]);
#else
                    multiply_bf16(sums[r][c], left[r], right[c]);
#endif
                }
        }
    }

    template <typename Put>
    __device__ __forceinline__ void store(Put put) {
        int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                put(16 * r + g, 8 * c + 2 * t, sums[r][c][0]);
                put(16 * r + g, 8 * c + 2 * t + 1, sums[r][c][1]);
                put(16 * r + g + 8, 8 * c + 2 * t, sums[r][c][2]);
                put(16 * r + g + 8, 8 * c + 2 * t + 1, sums[r][c][3]);
            }
    }
#endif
};

// Writes (f(z + bias) + addend) factor of a tile of products z in shared memory, and f'(z + bias).
template <int BM, int BN, int COUNT, int F>
static __device__ __forceinline__ void finish(
    const float* tile, Mat c, int row, int column, int m, int n, const Epilogue& epilogue) {
    constexpr int LINE = BN + 4, EACH = BM * BN / COUNT, BATCH = EACH < 8 ? EACH : 8;
    const float* __restrict__ bias = maybe(epilogue.bias);
    const float* __restrict__ factor = maybe(epilogue.factor);
    const float* __restrict__ addend = maybe(epilogue.addend);
    float* __restrict__ slope = maybe(epilogue.slope);
    float* __restrict__ out = at(c);
#pragma unroll 1
    for (int first = 0; first < EACH; first += BATCH) {
        // All loads of a batch before its stores, which the compiler could not move them over.
        float z[BATCH], times[BATCH], plus[BATCH];
#pragma unroll
        for (int e = 0; e < BATCH; e++) {
            int element = (first + e) * COUNT + threadIdx.x, i = element / BN, j = element % BN;
            bool inside = row + i < m && column + j < n;
            size_t place = (size_t)(row + i) * n + column + j;
            z[e] = tile[i * LINE + j] + (bias && inside ? bias[column + j] : 0.0f);
            times[e] = factor && inside ? factor[place] : 1.0f;
            plus[e] = addend && inside ? addend[place] : 0.0f;
        }
#pragma unroll
        for (int e = 0; e < BATCH; e++) {
            int element = (first + e) * COUNT + threadIdx.x, i = element / BN, j = element % BN;
            if (row + i >= m || column + j >= n) continue;
            size_t place = (size_t)(row + i) * n + column + j;
            if (F != IDENTITY && slope) slope[place] = gradient_of(F, z[e], 1.0f, 0.0f, 0.0f);
            out[place] = (value_of(F, z[e], 0.0f, 0.0f) + plus[e]) * times[e];
        }
    }
}

// One tile BM x BN of C [m, n], by WARPS_M x WARPS_N warps.
template <int BM, int BN, int WARPS_M, int WARPS_N, bool A_DEEP, bool B_DEEP, bool ACTIVATED>
static __device__ __forceinline__ void product(
    Mat a, Mat b, Mat c, int m, int n, int k, int a_pitch, int b_pitch, int wide,
    const Epilogue& epilogue) {
    typedef Tile<BM, A_DEEP> A;
    typedef Tile<BN, B_DEEP> B;
    constexpr int COUNT = 32 * WARPS_M * WARPS_N;
    constexpr int STAGE = A::SIZE + B::SIZE, STAGES = Stages<BM>::COUNT;
    extern __shared__ __align__(16) float shared[];
    const float *left = at(a), *right = at(b);
    int tiles = (n + BN - 1) / BN;
    int row = (int)(blockIdx.x / tiles) * BM, column = (int)(blockIdx.x % tiles) * BN;
    int warp = threadIdx.x >> 5;
    int warp_row = warp / WARPS_N * (BM / WARPS_M), warp_column = warp % WARPS_N * (BN / WARPS_N);

    Warp<A, B, BM / WARPS_M, BN / WARPS_N> sums;
    sums.clear();
    int steps = (k + BK - 1) / BK;
    auto ask = [&](int step) {
        if (step < steps) {
            float* stage = shared + step % STAGES * STAGE;
            A::template load<COUNT>(stage, left, a_pitch, row, m, step * BK, k, wide & 1);
            B::template load<COUNT>(
                stage + A::SIZE, right, b_pitch, column, n, step * BK, k, wide & 2);
        }
        commit_copies();
    };
    for (int step = 0; step < STAGES - 1; step++) ask(step);
    for (int step = 0; step < steps; step++) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        ask(step + STAGES - 1);
        const float* stage = shared + step % STAGES * STAGE;
        sums.multiply(stage, stage + A::SIZE, warp_row, warp_column);
    }
    wait_copies<0>();
    __syncthreads();

    // Through shared memory, so that whole lines are read and written below.
    constexpr int LINE = BN + 4;
    static_assert(BM * LINE <= STAGES * STAGE, "the result fits where the operands were");
    sums.store([&](int i, int j, float value) {
        shared[(warp_row + i) * LINE + warp_column + j] = value;
    });
    __syncthreads();
    // One copy of the loop for each activation; products of gradients have none.
    switch (ACTIVATED ? epilogue.activation : IDENTITY) {
#define FINISH(F)                                                                     \
    case F:                                                                           \
        if constexpr (ACTIVATED || F == IDENTITY)                                     \
            finish<BM, BN, COUNT, F>(shared, c, row, column, m, n, epilogue);         \
        break;
        FINISH(IDENTITY)
        FINISH(RELU)
        FINISH(SILU)
        FINISH(GELU)
        FINISH(TANH)
#undef FINISH
    }
}

#define PRODUCT(NAME, SIDE, WARPS_M, WARPS_N, A_DEEP, B_DEEP, ACTIVATED)                          \
    BOUNDED_KERNEL(NAME##_##SIDE, (32 * WARPS_M * WARPS_N),                                       \
        Mat a, Mat b, Mat c, int m, int n, int k, int a_pitch, int b_pitch, int wide,             \
        Epilogue epilogue) {                                                                      \
        after_others();                                                                           \
        product<SIDE, SIDE, WARPS_M, WARPS_N, A_DEEP, B_DEEP, ACTIVATED>(                         \
            a, b, c, m, n, k, a_pitch, b_pitch, wide, epilogue);                                  \
    }

// Layers x w + b, and the products x^T dz and dz w^T of their gradients.
PRODUCT(plain, 32, 2, 2, true, false, true)
PRODUCT(plain, 64, 2, 2, true, false, true)
PRODUCT(plain, 128, 2, 4, true, false, true)
PRODUCT(right, 32, 2, 2, true, true, false)
PRODUCT(right, 64, 2, 2, true, true, false)
PRODUCT(right, 128, 2, 4, true, true, false)
PRODUCT(left, 32, 2, 2, false, false, false)
PRODUCT(left, 64, 2, 2, false, false, false)
PRODUCT(left, 128, 2, 4, false, false, false)
