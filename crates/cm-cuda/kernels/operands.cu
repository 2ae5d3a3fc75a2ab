// Matrices stored as operands of products. Each block of threads takes a square of 64 x 64, each
// thread four rows of four numbers.

static __device__ __forceinline__ void pack_square(
    Mat x, const Made& made, int m, int n, int square) {
    const float* from = at(x);
    bool wide = (n & 3) == 0 && ((size_t)from & 15) == 0;
    Forms forms(made, m, n, (n & 3) == 0);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int row = square / forms.across * 64 + (warp >> 2) * 32 + (lane >> 2) * 4;
    int column = square % forms.across * 64 + (warp & 3) * 16 + (lane & 3) * 4;
    Patch patch;
    load_patch(patch, from, row, column, m, n, wide);
    forms.put(patch, row, column, 2);
}

BOUNDED_KERNEL(pack, (256), Mat x, int m, int n, Mat rows, Mat columns, Mat sums) {
    after_others();
    pack_square(x, {rows, columns, sums}, m, n, blockIdx.x);
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
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, square = blockIdx.x;
    int row = square / forms.across * 64 + (warp >> 2) * 32 + (lane >> 2) * 4;
    int column = square % forms.across * 64 + (warp & 3) * 16 + (lane & 3) * 4;
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
