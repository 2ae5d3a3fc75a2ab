// Matrices stored as operands of products. Each block of threads takes a square of 64 x 64, each
// thread four rows of four numbers.

// Where a thread's patch of a square is.
struct Corner {
    int row, column;

    __device__ __forceinline__ Corner(int square, int across) {
        int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        row = square / across * 64 + (warp >> 2) * 32 + (lane >> 2) * 4;
        column = square % across * 64 + (warp & 3) * 16 + (lane & 3) * 4;
    }
};

static __device__ __forceinline__ void pack_square(
    Mat x, const Made& made, int m, int n, int square) {
    const float* from = at(x);
    bool wide = (n & 3) == 0 && ((size_t)from & 15) == 0;
    Forms forms(made, m, n, (n & 3) == 0);
    Corner corner(square, forms.across);
    Patch patch;
    load_patch(patch, from, corner.row, corner.column, m, n, wide);
    forms.put(patch, corner.row, corner.column, 2);
}

BOUNDED_KERNEL(pack, (256), Mat x, int m, int n, Mat rows, Mat columns, Mat sums) {
    after_others();
    pack_square(x, {rows, columns, sums}, m, n, blockIdx.x);
}

// Rows of a square that have at most SHORT numbers, the rest of which are 0. A thread has a row.
constexpr int SHORT = 16;

struct ShortRows {
    float row[64][SHORT + 1];

    __device__ __forceinline__ void load(const float* from, int row_of_square, int m, int n) {
        int i = threadIdx.x, place = row_of_square + i;
        for (int j = 0; j < SHORT; j++) {
            row[i][j] = place < m && j < n ? from[(size_t)place * n + j] : 0.0f;
        }
    }

    __device__ __forceinline__ void store(float* to, int row_of_square, int m, int n) const {
        int i = threadIdx.x, place = row_of_square + i;
#pragma unroll 1
        for (int j = 0; j < n && place < m; j++) to[(size_t)place * n + j] = row[i][j];
    }

    __device__ __forceinline__ void put(const Forms& forms, const Corner& corner) const {
        Patch patch;
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const float* from = row[(corner.row & 63) + q] + corner.column;
            patch.row[q] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (corner.column < SHORT) patch.row[q] = make_float4(from[0], from[1], from[2], from[3]);
        }
        forms.put(patch, corner.row, corner.column, 2);
    }
};

// `normalize` and `normalize_gradient` of `layer_norm.cu`, in the place of x and of g.
static __device__ __forceinline__ void normalize(float* x, int n, float epsilon) {
    double squares = 0.0;
#pragma unroll 1
    for (int j = 0; j < n; j++) squares += __fmul_rn(x[j], x[j]);
    float length = sqrtf((float)squares) + epsilon;
#pragma unroll 1
    for (int j = 0; j < n; j++) x[j] /= length;
}

static __device__ __forceinline__ void normalize_gradient(
    float* g, const float* x, int n, float epsilon) {
    double squares = 0.0, along = 0.0;
#pragma unroll 1
    for (int j = 0; j < n; j++) {
        squares += __fmul_rn(x[j], x[j]);
        along += (double)g[j] * (double)x[j];
    }
    float norm = sqrtf((float)squares), length = norm + epsilon;
    float share = (float)along / length / length;
    share = norm == 0.0f ? 0.0f : share / norm;
#pragma unroll 1
    for (int j = 0; j < n; j++) g[j] = g[j] / length - share * x[j];
}

// `l2_normalize` of short rows; what comes last as operands too.
BOUNDED_KERNEL(l2_normalize_packed, (256), Mat x, Mat y, Mat z, int m, int n, float epsilon,
    float next_epsilon, Mat rows, Mat columns, Mat sums) {
    after_others();
    __shared__ ShortRows own;
    Forms forms({rows, columns, sums}, m, n, (n & 3) == 0);
    int start = blockIdx.x * 64;
    if (threadIdx.x < 64) {
        float *values = own.row[threadIdx.x], *next = maybe(z);
        own.load(at(x), start, m, n);
        if (start + (int)threadIdx.x < m) normalize(values, n, epsilon);
        own.store(at(y), start, m, n);
        if (next) {
            if (start + (int)threadIdx.x < m) normalize(values, n, next_epsilon);
            own.store(next, start, m, n);
        }
    }
    __syncthreads();
    own.put(forms, Corner(blockIdx.x, 1));
}

// Its gradient, as `l2_normalize_gradient` has it.
BOUNDED_KERNEL(l2_normalize_gradient_packed, (256), Mat x, Mat dy, Mat dx, Mat before, int m, int n,
    float epsilon, float epsilon_before, Mat rows, Mat columns, Mat sums) {
    after_others();
    __shared__ ShortRows own, of, of_before;
    Forms forms({rows, columns, sums}, m, n, (n & 3) == 0);
    int start = blockIdx.x * 64;
    if (threadIdx.x < 64) {
        float* grad = own.row[threadIdx.x];
        const float* first = maybe(before);
        own.load(at(dy), start, m, n);
        of.load(at(x), start, m, n);
        if (first) of_before.load(first, start, m, n);
        if (start + (int)threadIdx.x < m) {
            normalize_gradient(grad, of.row[threadIdx.x], n, epsilon);
            if (first) normalize_gradient(grad, of_before.row[threadIdx.x], n, epsilon_before);
        }
        own.store(at(dx), start, m, n);
    }
    __syncthreads();
    own.put(forms, Corner(blockIdx.x, 1));
}

// A matrix that is part of another one: its rows, or its columns, from `start` on. Its own rows
// begin `pitch` apart.
struct Source {
    Mat x;
    int start, size, pitch, unused;
};

struct Sources {
    Source source[8];
};

// Which of a source's numbers are the result's from row `i` and column `j` on; null if none.
static __device__ __forceinline__ const float* place_in(
    const Source& source, const float* x, int i, int j, int by_rows) {
    int inside = (by_rows ? i : j) - source.start;
    if (inside < 0 || inside >= source.size) return nullptr;
    return x + (size_t)(by_rows ? inside : i) * source.pitch + (by_rows ? j : inside);
}

// y [m, n], put together of matrices below each other (`by_rows`) or side by side, which cover all
// of it; as operands too. `wide`: all of them begin, end and have their rows at whole quads. All
// addresses are found before anything is loaded, so that loads are under way together.
BOUNDED_KERNEL(concat, (256),
    Sources sources, unsigned count, Mat y, int m, int n, int by_rows, int wide, Mat rows,
    Mat columns, Mat sums) {
    after_others();
    Forms forms({rows, columns, sums}, m, n, (n & 3) == 0);
    Corner corner(blockIdx.x, forms.across);
    int row = corner.row, column = corner.column;
    float* out = maybe(y);
    Patch patch;
    if (wide) {
        const float* from[4] = {};
        for (unsigned p = 0; p < count; p++) {
            const Source& source = sources.source[p];
            const float* x = at(source.x);
#pragma unroll
            for (int q = 0; q < 4; q++) {
                if (row + q >= m || column >= n) continue;
                const float* place = place_in(source, x, row + q, column, by_rows);
                if (place) from[q] = place;
            }
        }
#pragma unroll
        for (int q = 0; q < 4; q++) {
            patch.row[q] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (from[q]) patch.row[q] = *(const float4*)from[q];
        }
        if (out) {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                size_t place = (size_t)(row + q) * n + column;
                if (from[q]) *(float4*)(out + place) = patch.row[q];
            }
        }
    } else {
        const float* from[16] = {};
        for (unsigned p = 0; p < count; p++) {
            const Source& source = sources.source[p];
            const float* x = at(source.x);
#pragma unroll
            for (int e = 0; e < 16; e++) {
                int i = row + e / 4, j = column + e % 4;
                if (i >= m || j >= n) continue;
                const float* place = place_in(source, x, i, j, by_rows);
                if (place) from[e] = place;
            }
        }
        float values[16];
#pragma unroll
        for (int e = 0; e < 16; e++) values[e] = from[e] ? *from[e] : 0.0f;
#pragma unroll
        for (int e = 0; e < 16; e++) {
            if (out && from[e]) out[(size_t)(row + e / 4) * n + column + e % 4] = values[e];
        }
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const float* four = values + 4 * q;
            patch.row[q] = make_float4(four[0], four[1], four[2], four[3]);
        }
    }
    forms.put(patch, row, column, 2);
}

// A part of a gradient: rows of the result from `start` on.
struct Part {
    Mat x;      // a matrix, or the marks of `iqe_rows`
    Mat grad;   // if marks: of the distances
    Mat args;   // the groups that were largest
    Mat logit;  // that the groups' weights depend on
    Groups groups;
    int start, rows;
    int right;  // whether it is the gradient of the right ends
};

struct Parts {
    Part part[8];
};

// Four neighbours of the gradient of row `row` of one side of `iqe_rows`.
static __device__ __forceinline__ float4 side_of(
    const Part& part, const Groups& groups, int row, int column) {
    float grad = at(part.grad)[row];
    const float* args = maybe(part.args);
    const unsigned* marks = (const unsigned*)at(part.x) + (size_t)row * 2 * groups.count;
    unsigned group = column / groups.size, feature = column - group * groups.size, bits = 0;
    float weight = 0.0f, x[4];
#pragma unroll
    for (int e = 0; e < 4; e++, feature++) {
        bool is_next = feature == groups.size;
        if (is_next) group++, feature = 0;
        if ((e == 0 || is_next) && group < groups.count) {
            weight = pair_weight(groups, args, row, group, grad);
            bits = marks[2 * group + part.right];
        }
        bool counts = group < groups.count && (bits >> feature & 1);
        x[e] = !counts ? 0.0f : part.right ? weight : -weight;
    }
    return make_float4(x[0], x[1], x[2], x[3]);
}

// y [m, n], the sum of parts in the order given, times a factor if there is one; as operands too.
BOUNDED_KERNEL(add_sides, (256),
    Parts parts, unsigned count, Mat y, int m, int n, Mat factor, Mat rows, Mat columns,
    Mat sums) {
    after_others();
    // The weights are the same for all rows, and take long.
    __shared__ Groups groups[8];
    if (threadIdx.x < count) {
        const Part& part = parts.part[threadIdx.x];
        groups[threadIdx.x] = weighted(part.groups, part.logit);
    }
    __syncthreads();
    bool wide = (n & 3) == 0;
    Forms forms({rows, columns, sums}, m, n, wide);
    Corner corner(blockIdx.x, forms.across);
    int row = corner.row, column = corner.column;
    int some = max(0, min(4, n - column));
    float *out = maybe(y), *times = maybe(factor);
    bool quads = wide && (((size_t)out | (size_t)times) & 15) == 0;
    Patch patch;
    for (int q = 0; q < 4; q++) patch.row[q] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (unsigned p = 0; p < count && some > 0; p++) {
        const Part& part = parts.part[p];
        const float* x = at(part.x);
        bool is_matrix = !part.grad.p, is_wide = wide && ((size_t)x & 15) == 0;
#pragma unroll
        for (int q = 0; q < 4; q++) {
            int i = row + q - part.start;
            if (i < 0 || i >= part.rows || row + q >= m) continue;
            if (is_matrix) {
                add(patch.row[q], four(x + (size_t)i * n + column, some, is_wide));
            } else {
                add(patch.row[q], side_of(part, groups[p], i, column));
            }
        }
    }
    if (some < 4) {
#pragma unroll
        for (int q = 0; q < 4; q++) {
            float4& x = patch.row[q];
            if (some < 1) x.x = 0.0f;
            if (some < 2) x.y = 0.0f;
            if (some < 3) x.z = 0.0f;
            x.w = 0.0f;
        }
    }
    if (times) {
        Patch factors;
        load_patch(factors, times, row, column, m, n, quads);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            float4 &x = patch.row[q], f = factors.row[q];
            x.x *= f.x, x.y *= f.y, x.z *= f.z, x.w *= f.w;
        }
    }
    if (out) {
#pragma unroll
        for (int q = 0; q < 4; q++) {
            size_t place = (size_t)(row + q) * n + column;
            if (row + q < m) put_four(out + place, patch.row[q], some, quads);
        }
    }
    forms.put(patch, row, column, 2);
}

struct PackEntry {
    Mat x;
    Made made;
    int m, n;
    unsigned first_block;
};

struct PackTable {
    PackEntry entry[24];
};

// Many matrices at once; `first_block` ascends.
extern "C" __global__ void __launch_bounds__(256) pack_all(PackTable table, unsigned entries) {
    after_others();
    unsigned found = 0;
    for (unsigned i = 1; i < entries; i++) {
        if (table.entry[i].first_block <= blockIdx.x) found = i;
    }
    const PackEntry& e = table.entry[found];
    pack_square(e.x, e.made, e.m, e.n, blockIdx.x - e.first_block);
}
