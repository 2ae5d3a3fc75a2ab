// Pairs of points in tiles: what `residual_pairs.cu` is made of. Each thread has 4 x 4 pairs.

// So many features of a tile's points are in shared memory at a time.
constexpr unsigned CHUNK = 32;

// Where four features from k on lie in a row of a tile. Rows of different threads lie in different
// banks.
static __device__ __forceinline__ unsigned place_of(unsigned row, unsigned k) {
    return row * CHUNK + (k ^ (row >> 2 & 7) << 2);
}

struct Points {
    const float *a, *b;  // [n, width] and [m, width]
    unsigned n, m, width, row, column;
    bool wide;  // rows are whole quads
};

// Asks for a chunk of `COUNT` points from `first` on, of `points` there are; `lane` is of `LANES`.
// Features from `end` on, and points that do not exist, are 0. They are rows `ROW` and on of the
// tile.
template <unsigned ROW, unsigned COUNT, unsigned LANES>
static __device__ __forceinline__ void fetch_points(float* stage, const float* points,
    unsigned first, unsigned count, unsigned width, bool wide, unsigned feature, unsigned end,
    unsigned lane) {
    constexpr unsigned QUADS = CHUNK / 4, STEP = LANES / QUADS;
    unsigned r = lane / QUADS, k = lane % QUADS * 4;
    const float* from = points + (size_t)(first + r) * width + feature + k;
    if (wide) {
        bool is_feature = feature + k < end;
#pragma unroll
        for (unsigned i = 0; i < COUNT; i += STEP) {
            copy_16(stage + place_of(ROW + r + i, k), from + (size_t)i * width,
                is_feature && first + r + i < count);
        }
        return;
    }
#pragma unroll 1
    for (unsigned i = 0; i < COUNT; i += STEP) {
        float* to = stage + place_of(ROW + r + i, k);
#pragma unroll 1
        for (unsigned q = 0; q < 4; q++) {
            copy_4(to + q, from + (size_t)i * width + q,
                first + r + i < count && feature + k + q < end);
        }
    }
}

// The same for a tile's TM rows of a, then TN of b.
template <unsigned TM, unsigned TN, unsigned LANES>
static __device__ __forceinline__ void fetch(
    float* stage, const Points& p, unsigned feature, unsigned end, unsigned lane) {
    fetch_points<0, TM, LANES>(
        stage, p.a, p.row, p.n, p.width, p.wide, feature, end, lane);
    fetch_points<TM, TN, LANES>(
        stage, p.b, p.column, p.m, p.width, p.wide, feature, end, lane);
}

// Marks the rows of a chunk that have a feature which is not finite. Maxima do not always show it;
// sums of squares do.
template <unsigned ROWS, unsigned LANES>
static __device__ __forceinline__ void mark_bad(const float* stage, int* bad, unsigned lane) {
#pragma unroll 4
    for (unsigned e = lane; e < ROWS * (CHUNK / 4); e += LANES) {
        float4 u = *(const float4*)(stage + e * 4);
        float zero = fmaf(u.x, 0.0f, fmaf(u.y, 0.0f, fmaf(u.z, 0.0f, u.w * 0.0f)));
        if (zero != 0.0f) bad[e / (CHUNK / 4)] = 1;
    }
}

// Calls pair(u, v, i, j, k) for four features from k on of each of a thread's pairs, whose rows
// and columns begin at `u_row` and `v_row` of the tile.
template <typename F>
static __device__ __forceinline__ void each_pair(
    const float* stage, unsigned u_row, unsigned v_row, F pair) {
    const float *us = stage + u_row * CHUNK, *vs = stage + v_row * CHUNK;
    unsigned u_shift = (u_row >> 2 & 7) << 2, v_shift = (v_row >> 2 & 7) << 2;
#pragma unroll 2
    for (unsigned k = 0; k < CHUNK; k += 4) {
        float4 u[4], v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) u[i] = *(const float4*)(us + i * CHUNK + (k ^ u_shift));
#pragma unroll
        for (int j = 0; j < 4; j++) v[j] = *(const float4*)(vs + j * CHUNK + (k ^ v_shift));
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) pair(u[i], v[j], i, j, k);
    }
}

static __device__ __forceinline__ void add_squares(
    const float* stage, unsigned u_row, unsigned v_row, float (*sums)[4]) {
    each_pair(stage, u_row, v_row, [&](float4 u, float4 v, int i, int j, unsigned) {
        float p = u.x - v.x, q = u.y - v.y, r = u.z - v.z, s = u.w - v.w;
        sums[i][j] = fmaf(s, s, fmaf(r, r, fmaf(q, q, fmaf(p, p, sums[i][j]))));
    });
}

// The largest differences so far, if positive, and the first four features that have them. As
// whole numbers, positive floats are in the same order, and negative ones are below 0; NaN is
// above all. Quads are whole numbers, too, -1 at first.
static __device__ __forceinline__ void take_largest(const float* stage, unsigned u_row,
    unsigned v_row, int base, float (*largest)[4], float (*quads)[4]) {
    each_pair(stage, u_row, v_row, [&](float4 u, float4 v, int i, int j, unsigned k) {
        int p = __float_as_int(u.x - v.x), q = __float_as_int(u.y - v.y);
        int r = __float_as_int(u.z - v.z), s = __float_as_int(u.w - v.w);
        int before = __float_as_int(largest[i][j]);
        int now = max(max(max(p, q), r), max(s, before));
        if (now != before) quads[i][j] = __int_as_float(base + (int)k);
        largest[i][j] = __int_as_float(now);
    });
}

// The square root of a `regular` number, rounded to the nearest, and its inverse, nearly.
static __device__ __forceinline__ float root(float square, float& inverse) {
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(square));
    float near = square * inverse;
    return fmaf(fmaf(-near, near, square), 0.5f * inverse, near);
}

// What is stored of a norm where squares overflow or vanish.
static __device__ __forceinline__ float careful_stored(float norm, unsigned inverted) {
    return inverted ? (norm == 0.0f ? 0.0f : NOT_A_NUMBER) : norm;
}

// The first of four features with the difference.
static __device__ __forceinline__ int first_of(float4 u, float4 v, float found) {
    return u.x - v.x == found ? 0 : u.y - v.y == found ? 1 : u.z - v.z == found ? 2 : 3;
}

// Which feature has the maximum. Those that are not numbers do not count.
static __device__ __noinline__ int careful_argument(const float* u, const float* v, int count) {
    float largest = 0.0f;
    int arg = -1;
    for (int k = 0; k < count; k++) {
        if (u[k] - v[k] > largest) {
            largest = u[k] - v[k];
            arg = k;
        }
    }
    return arg;
}

// What a thread has of 4 x 4 pairs from `row` and `column` on.
struct Block {
    unsigned row, column, count;  // columns that exist
    bool wide;                    // rows of the results are whole quads

    __device__ __forceinline__ Block(const Points& p, unsigned row, unsigned column, bool wide)
        : row(row), column(column), count(column < p.m ? p.m - column : 0), wide(wide) {}
};

// Stores a number of each pair.
static __device__ __forceinline__ void put_rows(
    float* out, const float (*x)[4], const Points& p, const Block& block) {
    out += (size_t)block.row * p.m + block.column;
#pragma unroll
    for (unsigned i = 0; i < 4; i++, out += p.m) {
        if (block.row + i >= p.n) break;
        if (block.wide) {
            if (block.count > 0) *(float4*)out = make_float4(x[i][0], x[i][1], x[i][2], x[i][3]);
            continue;
        }
#pragma unroll
        for (unsigned j = 0; j < 4; j++) {
            if (j < block.count) out[j] = x[i][j];
        }
    }
}

// Norms of a component's sums of squares, in their place. Of each is stored, if wanted: the norm,
// or if `inverted` what gradients multiply with: its inverse, 0 for equal points, NaN if squares
// overflow or vanish. What is rare stays out of the way of what is not.
static __device__ __forceinline__ void take_norms(float (*squares)[4], const Points& p,
    const Block& block, unsigned start, const Split& split, unsigned inverted, float* out) {
    float stored[4][4];
    unsigned odd = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float square = squares[i][j] + split.offset, inverse;
            squares[i][j] = root(square, inverse);
            stored[i][j] = inverted ? inverse : squares[i][j];
            if (!regular(square)) odd |= 1 << (4 * i + j);
        }
    if (odd) {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                unsigned r = min(block.row + i, p.n - 1), c = min(block.column + j, p.m - 1);
                if (!(odd >> (4 * i + j) & 1)) continue;
                squares[i][j] = careful_norm(p.a + (size_t)r * p.width + start,
                    p.b + (size_t)c * p.width + start, split.symmetric);
                stored[i][j] = careful_stored(squares[i][j], inverted);
            }
    }
    if (out) put_rows(out, stored, p, block);
}

// Which feature has each of a component's maxima, if wanted; `of_row` and `of_column` give four
// features of a row and of a column of the pairs.
template <typename U, typename V>
static __device__ __forceinline__ void take_arguments(float (*largest)[4], float (*quads)[4],
    const Points& p, const Block& block, unsigned start, const Split& split, float* out, U of_row,
    V of_column) {
    unsigned odd = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (isnan(largest[i][j]) || !p.wide) odd |= 1 << (4 * i + j);
        }
    if (odd) {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                unsigned r = min(block.row + i, p.n - 1), c = min(block.column + j, p.m - 1);
                const float* u = p.a + (size_t)r * p.width + start;
                const float* v = p.b + (size_t)c * p.width + start;
                if (!(odd >> (4 * i + j) & 1)) continue;
                int arg = careful_argument(u, v, (int)split.asymmetric);
                largest[i][j] = arg < 0 ? 0.0f : u[arg] - v[arg];
                quads[i][j] = __int_as_float(arg);
            }
    }
    if (!out) return;
    if (p.wide && split.asymmetric > 0) {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                int quad = __float_as_int(quads[i][j]), k = max(quad, 0);
                int place = first_of(of_row(i, k), of_column(j, k), largest[i][j]);
                bool is_quad = quad >= 0 && !(odd >> (4 * i + j) & 1);
                if (is_quad) quads[i][j] = __int_as_float(quad + place);
            }
    }
    put_rows(out, quads, p, block);
}

// What is added to a tile's columns, for InfoNCE's logits.
static __device__ __forceinline__ void load_added(
    const Sums& sums, float* added, unsigned columns, const Points& p) {
    unsigned column = p.column + threadIdx.x;
    if (threadIdx.x < columns && column < p.m) added[threadIdx.x] = at(sums.column)[column];
}

static __device__ __forceinline__ Points points_of(const Mat& x, const Mat& y, unsigned n,
    unsigned m, const Split& split, unsigned tm, unsigned tn) {
    unsigned tiles = (m + tn - 1) / tn;
    Points p = {at(x), at(y), n, m, (split.symmetric + split.asymmetric) * split.components,
        blockIdx.x / tiles * tm, blockIdx.x % tiles * tn, false};
    p.wide = ((split.symmetric | split.asymmetric) & 3) == 0
        && (((size_t)p.a | (size_t)p.b) & 15) == 0;
    return p;
}
