// Gradients of MRN and Max by pairs: by products, and of the maxima. Those by differences are in
// `residual_differences.cu`, what all share with rows in `residual.cuh`.

// A number near a feature of most of m points: of points 0, m / 3 and 2 m / 3 the one in the
// middle. Gradients by products are of differences from it, so that it does not matter how far from
// zero all points are.
static __device__ __forceinline__ float middle(float a, float b, float c) {
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

static __device__ __forceinline__ float4 middle(float4 a, float4 b, float4 c) {
    return make_float4(middle(a.x, b.x, c.x), middle(a.y, b.y, c.y), middle(a.z, b.z, c.z),
        middle(a.w, b.w, c.w));
}

// How far a point is from the middle of `count` others, roughly and at least half of it: the
// largest of its norms to the three, which lie `step` apart.
static __device__ __forceinline__ float from_middle(
    const float* norms, size_t step, unsigned count) {
    float a = norms[0], b = norms[count / 3 * step], c = norms[2 * count / 3 * step];
    return larger(larger(a, b), c);
}

// Whether a pair is too close, for points so far from the middle, to be a term of a product.
static __device__ __forceinline__ bool is_apart(float norm, float grad, float far) {
    return norm != 0.0f && grad != 0.0f && (is_special(norm, grad) || !(norm * 4096.0f >= far));
}

// What gradients by products are made of: - w as operands of 64 x 64 squares (`operand.cuh`), in
// both layouts, as rounded; the sums of w over 32 of m and over 32 of n, and whether one of these
// pairs must be taken apart; g = share grad and the argument of the maximum, in the second layout
// alone. If `grad` is not given, it is InfoNCE's, computed here.
BOUNDED_KERNEL(residual_operands, (256),
    Mat grad, Mat norms, Mat args, Mat by_rows, Mat by_columns, Mat sums, Mat sums_t, Mat special,
    Mat special_t, Mat grads_t, Mat args_t, unsigned n, unsigned m, Split split,
    const __grid_constant__ Gradient info_nce) {
    after_others();
    __shared__ float tile[3][32][33], flags[32][33], far[2][32], log_sums[2][32];
    const float *g = maybe(grad), *norm_in = at(norms), *arg_in = at(args);
    unsigned lane = threadIdx.x & 31, part = threadIdx.x >> 5;
    unsigned down = (n + 63) >> 6, across = (m + 63) >> 6;
    unsigned row = blockIdx.x / (2 * across) * 32, column = blockIdx.x % (2 * across) * 32;
    float gs[4], ns[4], as[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        unsigned r = row + part + 8 * q, c = column + lane;
        bool inside = r < n && c < m;
        size_t place = (size_t)r * m + c;
        gs[q] = inside && g ? g[place] * split.share : 0.0f;
        ns[q] = inside ? norm_in[place] : 1.0f;
        as[q] = inside ? arg_in[place] : 0.0f;
    }
    // Norms to the three others that show how far from the middle a row or a column is.
    float others[3] = {};
    if (part < 2) {
        bool is_row = part == 0;
        unsigned place = min((is_row ? row : column) + lane, (is_row ? n : m) - 1);
        const float* norms = norm_in + (is_row ? (size_t)place * m : place);
        size_t step = is_row ? 1 : m;
        unsigned count = is_row ? m : n;
        others[0] = norms[0], others[1] = norms[count / 3 * step];
        others[2] = norms[2 * count / 3 * step];
    }
    if (!g) {
        Slopes slopes(info_nce, n);
        unsigned c = column + lane;
        float values[4];
#pragma unroll
        for (int q = 0; q < 4; q++) {
            unsigned r = row + part + 8 * q;
            values[q] = r < n && c < m ? slopes.values.at_place(r, c) : 0.0f;
        }
        // Four threads have a row's or a column's.
        bool is_row = threadIdx.x < 128;
        unsigned own = threadIdx.x % 128 / 4, place = (is_row ? row : column) + own;
        const float* parts = is_row ? slopes.rows : slopes.columns;
        unsigned count = is_row ? info_nce.row_parts : info_nce.column_parts;
        float found = sum_of_parts(parts && place < n ? count : 0,
            [&](unsigned p) { return parts[(size_t)p * n + place]; });
        if (threadIdx.x % 4 == 0) log_sums[is_row ? 0 : 1][own] = found;
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 4; q++) {
            unsigned r = row + part + 8 * q;
            float row_sum = log_sums[0][part + 8 * q], column_sum = log_sums[1][lane];
            if (r < n && c < m) gs[q] = slopes.at_place(r, c, values[q], row_sum, column_sum);
        }
#pragma unroll
        for (int q = 0; q < 4; q++) {
            unsigned r = row + part + 8 * q;
            if (r < n && c < m) gs[q] = slopes.put(r, c, gs[q]) * split.share;
        }
    }
    if (part < 2) far[part][lane] = larger(larger(others[0], others[1]), others[2]);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 4; q++) {
        unsigned i = part + 8 * q;
        bool taken_apart = is_apart(ns[q], gs[q], larger(far[0][i], far[1][lane]));
        bool weighs = !taken_apart && ns[q] != 0.0f;
        float w = weighs ? __uint_as_float(to_tf32(gs[q] / ns[q])) : 0.0f;
        tile[0][i][lane] = w;
        tile[1][i][lane] = gs[q];
        tile[2][i][lane] = as[q];
        flags[i][lane] = taken_apart ? 1.0f : 0.0f;
    }
    __syncthreads();
    // Four neighbours a thread, both ways.
    unsigned i = threadIdx.x >> 3, k = (threadIdx.x & 7) * 4;
    float4 along = make_float4(
        -tile[0][i][k], -tile[0][i][k + 1], -tile[0][i][k + 2], -tile[0][i][k + 3]);
    float4 across_it = make_float4(
        -tile[0][k][i], -tile[0][k + 1][i], -tile[0][k + 2][i], -tile[0][k + 3][i]);
    put_neighbours(square_of(at(by_rows), row >> 6, column >> 6, across), (row & 63) + i,
        (column & 63) + k, along);
    put_neighbours(square_of(at(by_columns), column >> 6, row >> 6, down), (column & 63) + i,
        (row & 63) + k, across_it);
#pragma unroll
    for (int q = 0; q < 4; q++) {
        unsigned r = row + lane, c = column + part + 8 * q;
        if (r >= n || c >= m) continue;
        size_t place = (size_t)c * n + r;
        at(grads_t)[place] = tile[1][lane][part + 8 * q];
        at(args_t)[place] = tile[2][lane][part + 8 * q];
    }
    if (threadIdx.x < 64) {
        bool is_row = threadIdx.x < 32;
        unsigned place = is_row ? row + lane : column + lane, count = is_row ? n : m;
        float sum = 0.0f, flag = 0.0f;
        for (int e = 0; e < 32; e++) {
            sum += is_row ? tile[0][lane][e] : tile[0][e][lane];
            flag += is_row ? flags[lane][e] : flags[e][lane];
        }
        if (place < count) {
            size_t to = (size_t)((is_row ? column : row) >> 5) * count + place;
            at(is_row ? sums : sums_t)[to] = sum;
            at(is_row ? special : special_t)[to] = flag;
        }
    }
}

// The symmetric part of points [m, width] as an operand with its features as lines, relative to
// their middle: what TF32 keeps of each number along K, then what it does not.
BOUNDED_KERNEL(residual_halves, (256), Mat points, Mat operand, unsigned m, Split split) {
    after_others();
    const float* from = at(points);
    int width = split.symmetric + split.asymmetric;
    int down = ((int)m + 63) >> 6, across = ((int)split.symmetric + 63) >> 6;
    bool wide = ((split.symmetric | split.asymmetric) & 3) == 0 && ((size_t)from & 15) == 0;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int i = (warp >> 2) * 32 + (lane >> 2) * 4, j = (warp & 3) * 16 + (lane & 3) * 4;
    int block = blockIdx.x / across, line = blockIdx.x % across;
    int count = max(0, min(4, (int)split.symmetric - line * 64 - j));
    const float* start = from + line * 64 + j;
    float4 centre = middle(four(start, count, wide),
        four(start + (size_t)(m / 3) * width, count, wide),
        four(start + (size_t)(2 * m / 3) * width, count, wide));
    Patch kept, rest;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int row = block * 64 + i + q;
        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row < (int)m) {
            x = four(from + (size_t)row * width + line * 64 + j, count, wide);
            x.x -= centre.x, x.y -= centre.y, x.z -= centre.z, x.w -= centre.w;
        }
        float4 y = make_float4(cut_tf32(x.x), cut_tf32(x.y), cut_tf32(x.z), cut_tf32(x.w));
        kept.row[q] = y;
        rest.row[q] = make_float4(x.x - y.x, x.y - y.y, x.z - y.z, x.w - y.w);
    }
    put_columns(square_of(at(operand), line, block, 2 * down), kept, i, j);
    put_columns(square_of(at(operand), line, down + block, 2 * down), rest, i, j);
}

constexpr unsigned SCATTER = 2048;
// So few features have a sum for each thread.
constexpr unsigned FEW = 32;
// Sums in fixed point are of at most so many numbers.
constexpr unsigned MOST_TERMS = 1 << 15;

// What `residual_max_gradient` joins to it: the Euclidean part of a gradient by a product.
struct Euclidean {
    Mat a;        // the points [n, width]
    Mat product;  // - sum_j w_ij (b_j - c) [n, symmetric], with c the middle of b
    Mat sums;     // sum_j w_ij, over 32 each [parts, n]
    Mat special;  // whether a pair of these must be taken apart [parts, n]
    Mat b, grad, norms;  // for those
    unsigned parts, transposed;
};

// Adds to the Euclidean part of a row's gradient those pairs that must be taken apart.
static __device__ __noinline__ void add_special(
    const Euclidean& e, float* out, unsigned row, unsigned n, unsigned m, const Split& split) {
    unsigned width = split.symmetric + split.asymmetric, lane = threadIdx.x & 31;
    const float *u = at(e.a) + (size_t)row * width, *norms = at(e.norms);
    // Norms and gradients lie as the pairs do, whichever side this is.
    size_t own = e.transposed ? 1 : m, other = e.transposed ? n : 1;
    float far = from_middle(norms + row * own, other, m);
    __syncwarp();
    for (unsigned start = 0; start < m; start += 32) {
        unsigned j = start + lane;
        bool apart = false;
        if (j < m) {
            size_t place = row * own + j * other;
            float others = from_middle(norms + j * other, own, n);
            apart = is_apart(norms[place], at(e.grad)[place] * split.share, larger(far, others));
        }
        for (unsigned bits = __ballot_sync(0xffffffffu, apart); bits; bits &= bits - 1) {
            unsigned j = start + __ffs(bits) - 1;
            const float* v = at(e.b) + (size_t)j * width;
            size_t place = row * own + j * other;
            float g = at(e.grad)[place] * split.share, norm = norms[place];
            bool plain = !is_special(norm, g);
            Scaled pair = {1.0f, false, norm};
            if (!plain) pair = scaled(u, v, split.symmetric);
            if (pair.norm == 0.0f) continue;
            for (unsigned k = lane; k < split.symmetric; k += 32) {
                out[k] += g / pair.norm * (difference(u[k], v[k], pair.half) / pair.scale);
            }
        }
    }
}

// The Euclidean part of a row's gradient, by the warp. What is read is asked for before anything is
// written: the compiler keeps that order.
static __device__ __forceinline__ void add_euclidean(const Euclidean& e, float* out, unsigned row,
    unsigned n, unsigned m, const Split& split) {
    unsigned width = split.symmetric + split.asymmetric, lane = threadIdx.x & 31;
    const float *u = at(e.a) + (size_t)row * width, *b = at(e.b);
    const float* product = at(e.product) + (size_t)row * split.symmetric;
    const float *second = b + (size_t)(m / 3) * width, *third = b + (size_t)(2 * m / 3) * width;
    size_t all = (size_t)u | (size_t)out | (size_t)b | (size_t)product;
    bool wide = ((split.symmetric | split.asymmetric) & 3) == 0 && (all & 15) == 0;
    float sum = 0.0f, special = 0.0f;
    for (unsigned part = lane; part < e.parts; part += 32) {
        sum += at(e.sums)[(size_t)part * n + row];
        special += at(e.special)[(size_t)part * n + row];
    }
    constexpr int QUADS = 2;
#pragma unroll 1
    for (int start = 0; start < (int)split.symmetric; start += QUADS * 128) {
        float4 points[QUADS], products[QUADS], centres[QUADS];
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            int k = start + q * 128 + (int)lane * 4;
            int count = max(0, min(4, (int)split.symmetric - k));
            points[q] = four(u + k, count, wide);
            products[q] = four(product + k, count, wide);
            centres[q] = middle(four(b + k, count, wide), four(second + k, count, wide),
                four(third + k, count, wide));
        }
        if (start == 0) {
            sum = warp_sum(sum);
            special = warp_sum(special);
        }
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            int k = start + q * 128 + (int)lane * 4;
            float4 x = points[q], c = centres[q], y = products[q];
            x = make_float4(fmaf(sum, x.x - c.x, y.x), fmaf(sum, x.y - c.y, y.y),
                fmaf(sum, x.z - c.z, y.z), fmaf(sum, x.w - c.w, y.w));
            put_four(out + k, x, max(0, min(4, (int)split.symmetric - k)), wide);
        }
    }
    if (special != 0.0f) add_special(e, out, row, n, m, split);
}

// The asymmetric part of da [n, width]: scale g_ij to the feature that attains the maximum. One
// warp a row and component. Sums are of whole numbers (the gradients in fixed point, relative to the
// row's largest, in two halves), so their order does not matter. A thread has HELD pairs in
// registers.
template <int HELD>
static __device__ __forceinline__ void max_gradient(Mat grads, Mat args, Mat da, unsigned rows,
    unsigned m, const Split& split, float scale, const Euclidean& euclidean) {
    extern __shared__ __align__(16) int memory[];
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, item = FIRST >> 5;
    if (item >= rows * split.components) return;
    unsigned component = item / rows, row = item % rows;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    const float* g = at(grads) + (size_t)row * m;
    const float* arg = at(args) + (size_t)item * m;
    float* out = at(da) + (size_t)row * width + component * run;
    bool wide_pairs = (m & 3) == 0 && (((size_t)g | (size_t)arg) & 15) == 0;
    // Few pairs are asked for first.
    if (HELD > 8 && euclidean.product.p) add_euclidean(euclidean, out, row, rows, m, split);
    // Pairs that do not exist have a gradient of 0.
    float4 quads[HELD / 4], quad_args[HELD / 4];
#pragma unroll
    for (int q = 0; q < HELD / 4; q++) {
        int j = q * 128 + (int)lane * 4, count = max(0, min(4, (int)m - j));
        quads[q] = four(g + j, count, wide_pairs);
        quad_args[q] = four(arg + j, count, wide_pairs);
    }
    if (HELD <= 8 && euclidean.product.p) add_euclidean(euclidean, out, row, rows, m, split);
    out += split.symmetric;
    float held[HELD];
    int held_args[HELD];
#pragma unroll
    for (int q = 0; q < HELD; q++) {
        const float4 &x = quads[q / 4], &y = quad_args[q / 4];
        held[q] = (q % 4 == 0 ? x.x : q % 4 == 1 ? x.y : q % 4 == 2 ? x.z : x.w) * scale;
        held_args[q] =
            __float_as_int(q % 4 == 0 ? y.x : q % 4 == 1 ? y.y : q % 4 == 2 ? y.z : y.w);
    }
    constexpr unsigned REST = HELD * 32;
    if (split.asymmetric <= FEW) {
        // Sums of features by lanes.
        float* sums = (float*)memory + warp * FEW * 32;
        for (unsigned f = 0; f < FEW; f++) sums[f * 32 + lane] = 0.0f;
#pragma unroll
        for (int q = 0; q < HELD; q++) {
            if (held_args[q] >= 0) sums[held_args[q] * 32 + lane] += held[q];
        }
        for (unsigned j = REST + lane; j < m; j += 32) {
            int f = __float_as_int(arg[j]);
            if (f >= 0) sums[f * 32 + lane] += g[j] * scale;
        }
        __syncwarp();
        // Each lane begins where no other one reads.
        float sum = 0.0f;
        for (unsigned q = 0; q < 32; q++) sum += sums[lane * 32 + ((q + lane) & 31)];
        if (lane < split.asymmetric) out[lane] = sum;
        return;
    }
    float largest = 0.0f;
#pragma unroll
    for (int q = 0; q < HELD; q++) largest = larger(largest, fabsf(held[q]));
#pragma unroll 4
    for (unsigned j = REST + lane; j < m; j += 32) largest = larger(largest, fabsf(g[j] * scale));
    largest = warp_larger(largest);
    if (!finite(largest)) {
        for (unsigned f = lane; f < split.asymmetric; f += 32) {
            float sum = 0.0f;
            for (unsigned j = 0; j < m; j++) {
                if (__float_as_int(arg[j]) == (int)f) sum += g[j] * scale;
            }
            out[f] = sum;
        }
        return;
    }
    // Numbers below 2^(62 - 2 bits), cut after `bits` fewer than 32: sums of either half of 2^bits
    // of them have room.
    int bits = 32 - __clz((int)min(m, MOST_TERMS)), cut = 31 - bits;
    int exponent = max(1, __float_as_int(largest) >> 23) - 127;
    int shift = 61 - 2 * bits - (largest > 0.0f ? exponent : 0);
    double up = __hiloint2double((1023 + shift) << 20, 0);
    double down = __hiloint2double((1023 - shift) << 20, 0);
    unsigned size = min(split.asymmetric, SCATTER);
    int *low = memory + warp * 2 * size, *high = low + size;
    for (unsigned start = 0; start < split.asymmetric; start += SCATTER) {
        unsigned end = min(start + SCATTER, split.asymmetric);
        auto add = [&](float grad, int f) {
            if (f < (int)start || f >= (int)end) return;
            long long fixed = __double2ll_rn((double)grad * up);
            atomicAdd(low + f - start, (int)(fixed & ((1ll << cut) - 1)));
            atomicAdd(high + f - start, (int)(fixed >> cut));
        };
        for (unsigned from = 0; from < m; from += MOST_TERMS) {
            __syncwarp();
            for (unsigned f = lane; f < end - start; f += 32) low[f] = high[f] = 0;
            __syncwarp();
            if (from == 0) {
#pragma unroll
                for (int q = 0; q < HELD; q++) add(held[q], held_args[q]);
            }
            unsigned next = from == 0 ? REST : from;
#pragma unroll 4
            for (unsigned j = next + lane; j < min(m, from + MOST_TERMS); j += 32) {
                add(g[j] * scale, __float_as_int(arg[j]));
            }
            __syncwarp();
#pragma unroll 4
            for (unsigned f = start + lane; f < end; f += 32) {
                double sum = (double)high[f - start] * (double)(1ll << cut);
                float part = (float)((sum + (double)low[f - start]) * down);
                out[f] = from == 0 ? part : out[f] + part;
            }
        }
    }
}

// For rows of at most 256 pairs, and for longer ones.
BOUNDED_KERNEL(residual_max_gradient, (256, 2),
    Mat grads, Mat args, Mat da, unsigned rows, unsigned m, const __grid_constant__ Split split,
    float scale, const __grid_constant__ Euclidean euclidean) {
    after_others();
    max_gradient<8>(grads, args, da, rows, m, split, scale, euclidean);
}

BOUNDED_KERNEL(residual_max_gradient_long, (256, 2),
    Mat grads, Mat args, Mat da, unsigned rows, unsigned m, const __grid_constant__ Split split,
    float scale, const __grid_constant__ Euclidean euclidean) {
    after_others();
    max_gradient<16>(grads, args, da, rows, m, split, scale, euclidean);
}
