// Operands of products as wgmma reads them: rounded to TF32 (PRECISION 1) or bf16 (2), K
// contiguous, swizzled.
//
// An operand is lines (rows of A, columns of B) by K, both filled up with zeros to squares of 64 x
// 64. Blocks of 64 lines by 128 bytes of K follow each other along K, then along the lines, so that
// any run of blocks is one copy.

constexpr int BLOCK_BYTES = 8192;
#if PRECISION == 1
constexpr int SLICE = 32, DEPTH = 8;  // of K: of a block, of one product
#else
constexpr int SLICE = 64, DEPTH = 16;
#endif
constexpr int SQUARE_BYTES = 64 / SLICE * BLOCK_BYTES;

// The square of lines 64 `line` and on, from 64 `k` on, of an operand with `squares` along K.
static __device__ __forceinline__ char* square_of(float* operand, int line, int k, int squares) {
    return (char*)operand + ((size_t)line * squares + k) * SQUARE_BYTES;
}

// Stores four neighbours along K from `k` on, a multiple of 4.
static __device__ __forceinline__ void put_neighbours(char* square, int line, int k, float4 x) {
#if PRECISION == 1
    char* place = square + (k >> 5) * BLOCK_BYTES + line * 128 + (((k >> 2 ^ line) & 7) << 4);
    *(uint4*)place = make_uint4(to_tf32(x.x), to_tf32(x.y), to_tf32(x.z), to_tf32(x.w));
#else
    char* place = square + line * 128 + (((k >> 3 ^ line) & 7) << 4) + ((k & 4) << 1);
    *(uint2*)place = make_uint2(to_bf16_pair(x.x, x.y), to_bf16_pair(x.z, x.w));
#endif
}

// Four numbers, of which the first `count` exist. What is rare stays out of the way of what is not:
// kernels this short wait for their instructions as much as for their numbers.
static __device__ __noinline__ float4 some(const float* from, int count) {
    float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
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

// The same where rows are whole quads if `wide`.
static __device__ __forceinline__ float4 four(const float* from, int count, bool wide) {
    if (!wide) return some(from, count);
    if (count == 4) return *(const float4*)from;
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

static __device__ __forceinline__ void put_four(float* to, float4 x, int count, bool wide) {
    if (!wide) put_some(to, x, count);
    else if (count == 4) *(float4*)to = x;
}

// Four rows of four numbers.
struct Patch {
    float4 row[4];
};

// What exists of four rows from `row` and `column` on of a matrix [m, n]; the rest is 0.
static __device__ __forceinline__ void load_patch(
    Patch& x, const float* from, int row, int column, int m, int n, bool wide) {
    int count = max(0, min(4, n - column));
#pragma unroll
    for (int q = 0; q < 4; q++) {
        x.row[q] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row + q < m) x.row[q] = four(from + (size_t)(row + q) * n + column, count, wide);
    }
}

static __device__ __forceinline__ void add(float4& sum, float4 x) {
    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
}

// Stores a patch from row `i` and column `j` on of a square whose lines are the columns.
static __device__ __forceinline__ void put_columns(char* square, const Patch& x, int i, int j) {
    const float4 *a = x.row, *b = a + 1, *c = a + 2, *d = a + 3;
    put_neighbours(square, j, i, make_float4(a->x, b->x, c->x, d->x));
    put_neighbours(square, j + 1, i, make_float4(a->y, b->y, c->y, d->y));
    put_neighbours(square, j + 2, i, make_float4(a->z, b->z, c->z, d->z));
    put_neighbours(square, j + 3, i, make_float4(a->w, b->w, c->w, d->w));
}

// What products make of a matrix [m, n]: operands with its rows and with its columns as lines, and
// the sums of its columns, over 32 rows each.
struct Made {
    Mat rows, columns, sums;
};

struct Forms {
    float *rows, *columns, *sums;
    int n, down, across;  // columns and squares of the matrix
    bool wide;            // its rows are whole quads

    __device__ __forceinline__ Forms(const Made& made, int m, int n, bool wide)
        : rows(maybe(made.rows)), columns(maybe(made.columns)), sums(maybe(made.sums)), n(n),
          down((m + 63) >> 6), across((n + 63) >> 6), wide(wide) {}

    __device__ __forceinline__ bool hold(int row, int column) const {
        return row >> 6 < down && column >> 6 < across;
    }

    // Stores what begins at `row` and `column` of the matrix, multiples of 4. Eight threads
    // 2^apart from each other have 32 rows of the same columns, and all of the warp are here.
    __device__ __forceinline__ void put(const Patch& x, int row, int column, int apart) const {
        int i = row & 63, j = column & 63;
        if (rows) {
            char* square = square_of(rows, row >> 6, column >> 6, across);
#pragma unroll
            for (int q = 0; q < 4; q++) put_neighbours(square, i + q, j, x.row[q]);
        }
        if (columns) {
            char* square = square_of(columns, column >> 6, row >> 6, down);
            put_columns(square, x, i, j);
        }
        if (sums) {
            float4 sum = x.row[0];
            for (int q = 1; q < 4; q++) add(sum, x.row[q]);
            for (int step = 1; step < 8; step <<= 1) {
                int other = step << apart;
                float4 y = sum;
                sum.x += __shfl_xor_sync(0xffffffffu, y.x, other);
                sum.y += __shfl_xor_sync(0xffffffffu, y.y, other);
                sum.z += __shfl_xor_sync(0xffffffffu, y.z, other);
                sum.w += __shfl_xor_sync(0xffffffffu, y.w, other);
            }
            if ((row & 31) == 0) {
                put_four(sums + (size_t)(row >> 5) * n + column, sum, min(4, n - column), wide);
            }
        }
    }
};
