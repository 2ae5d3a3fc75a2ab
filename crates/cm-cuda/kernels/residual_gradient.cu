// Gradients of MRN and Max by pairs: by products, and of the maxima. Those by differences are in
// `residual_differences.cu`, what all share with rows in `residual.cuh`.

// A number near the k-th feature of most of m points: of three of them the one in the middle.
// Gradients by products are of differences from it, so that it does not matter how far from zero
// all points are.
static __device__ __forceinline__ float middle(
    const float* points, unsigned k, unsigned m, unsigned width) {
    float a = points[k], b = points[(size_t)(m / 3) * width + k];
    float c = points[(size_t)(2 * m / 3) * width + k];
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
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

// What `residual_weights` makes, for gradients by products: - w as operands of 64 x 64 squares
// (`operand.cuh`), in both layouts, as rounded; the sums of w over 32 of m and over 32 of n, and
// whether one of these pairs must be taken apart; g = share grad and the argument of the maximum,
// in the second layout alone.
BOUNDED_KERNEL(residual_operands, (256),
    Mat grad, Mat norms, Mat args, Mat by_rows, Mat by_columns, Mat sums, Mat sums_t, Mat special,
    Mat special_t, Mat grads_t, Mat args_t, unsigned n, unsigned m, Split split) {
    after_others();
    __shared__ float tile[3][32][33], flags[32][33], far[2][32];
    const float *g = at(grad), *norm_in = at(norms), *arg_in = at(args);
    unsigned lane = threadIdx.x & 31, part = threadIdx.x >> 5;
    unsigned down = (n + 63) >> 6, across = (m + 63) >> 6;
    unsigned row = blockIdx.x / (2 * across) * 32, column = blockIdx.x % (2 * across) * 32;
    float gs[4], ns[4], as[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        unsigned r = row + part + 8 * q, c = column + lane;
        bool inside = r < n && c < m;
        size_t place = (size_t)r * m + c;
        gs[q] = inside ? g[place] * split.share : 0.0f;
        ns[q] = inside ? norm_in[place] : 1.0f;
        as[q] = inside ? arg_in[place] : 0.0f;
    }
    if (part < 2) {
        bool is_row = part == 0;
        unsigned place = min((is_row ? row : column) + lane, (is_row ? n : m) - 1);
        const float* norms = norm_in + (is_row ? (size_t)place * m : place);
        far[part][lane] = is_row ? from_middle(norms, 1, m) : from_middle(norms, m, n);
    }
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
    float centre[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        centre[q] = q < count ? middle(from, line * 64 + j + q, m, width) : 0.0f;
    }
    Patch kept, rest;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int row = block * 64 + i + q;
        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row < (int)m) {
            x = four(from + (size_t)row * width + line * 64 + j, count, wide);
            x.x -= centre[0], x.y -= centre[1], x.z -= centre[2], x.w -= centre[3];
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
    __shared__ unsigned found[4];
    unsigned width = split.symmetric + split.asymmetric;
    const float *u = at(e.a) + (size_t)row * width, *norms = at(e.norms);
    // Norms and gradients lie as the pairs do, whichever side this is.
    size_t own = e.transposed ? 1 : m, other = e.transposed ? n : 1;
    float far = from_middle(norms + row * own, other, m);
    for (unsigned start = 0; start < m; start += 128) {
        unsigned j = start + threadIdx.x;
        bool apart = false;
        if (j < m) {
            size_t place = row * own + j * other;
            float others = from_middle(norms + j * other, own, n);
            apart = is_apart(norms[place], at(e.grad)[place] * split.share, larger(far, others));
        }
        unsigned lanes = __ballot_sync(0xffffffffu, apart);
        __syncthreads();
        if ((threadIdx.x & 31) == 0) found[threadIdx.x >> 5] = lanes;
        __syncthreads();
        for (unsigned warp = 0; warp < 4; warp++) {
            for (unsigned bits = found[warp]; bits; bits &= bits - 1) {
                unsigned j = start + 32 * warp + __ffs(bits) - 1;
                const float* v = at(e.b) + (size_t)j * width;
                size_t place = row * own + j * other;
                float g = at(e.grad)[place] * split.share, norm = norms[place];
                bool plain = !is_special(norm, g);
                Scaled pair = {1.0f, false, norm};
                if (!plain) pair = scaled(u, v, split.symmetric);
                if (pair.norm == 0.0f) continue;
                for (unsigned k = threadIdx.x; k < split.symmetric; k += blockDim.x) {
                    out[k] += g / pair.norm * (difference(u[k], v[k], pair.half) / pair.scale);
                }
            }
        }
    }
}

// Pairs of a row that a thread of `residual_max_gradient` has in registers.
constexpr unsigned HELD = 8;

// The asymmetric part of da [n, width]: scale g_ij to the feature that attains the maximum. One
// block a row and component. Sums are of whole numbers (the gradients in fixed point, relative to
// the row's largest, in two halves), so their order does not matter.
//
// What is read is asked for before anything is written: the compiler keeps that order.
BOUNDED_KERNEL(residual_max_gradient, (128, 8),
    Mat grads, Mat args, Mat da, unsigned rows, unsigned m, const __grid_constant__ Split split,
    float scale, unsigned per_component, const __grid_constant__ Euclidean euclidean) {
    after_others();
    extern __shared__ int low[];
    int* high = low + min(split.asymmetric, SCATTER);
    unsigned component = blockIdx.x / rows, row = blockIdx.x % rows;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    size_t base = ((size_t)component * rows + row) * m;
    const float* g = at(grads) + (per_component ? base : (size_t)row * m);
    const float* arg = at(args) + base;
    float* out = at(da) + (size_t)row * width + component * run;
    float held[HELD];
    int held_args[HELD];
#pragma unroll
    for (unsigned q = 0; q < HELD; q++) {
        unsigned j = threadIdx.x + q * 128;
        held[q] = j < m ? g[j] * scale : 0.0f;
        held_args[q] = j < m ? __float_as_int(arg[j]) : -1;
    }
    if (euclidean.product.p) {
        const float* u = at(euclidean.a) + (size_t)row * width;
        const float* product = at(euclidean.product) + (size_t)row * split.symmetric;
        float sum = 0.0f, special = 0.0f;
        for (unsigned part = threadIdx.x & 31; part < euclidean.parts; part += 32) {
            sum += at(euclidean.sums)[(size_t)part * rows + row];
            special += at(euclidean.special)[(size_t)part * rows + row];
        }
        sum = warp_sum(sum);
        special = warp_sum(special);
        for (unsigned k = threadIdx.x; k < split.symmetric; k += blockDim.x) {
            out[k] = fmaf(sum, u[k] - middle(at(euclidean.b), k, m, width), product[k]);
        }
        if (special != 0.0f) add_special(euclidean, out, row, rows, m, split);
    }
    out += split.symmetric;
    if (split.asymmetric <= FEW) {
        // Sums of features by lanes, of four warps: 4 x 32 x 32.
        float* sums = (float*)low;
        float* mine = sums + (threadIdx.x >> 5) * FEW * 32 + (threadIdx.x & 31);
        for (unsigned f = 0; f < FEW; f++) mine[f * 32] = 0.0f;
#pragma unroll
        for (unsigned q = 0; q < HELD; q++) {
            if (held_args[q] >= 0) mine[held_args[q] * 32] += held[q];
        }
        for (unsigned j = threadIdx.x + HELD * 128; j < m; j += 128) {
            int f = __float_as_int(arg[j]);
            if (f >= 0) mine[f * 32] += g[j] * scale;
        }
        __syncthreads();
        // Four neighbours have a feature's four warps, and begin where no other thread reads.
        unsigned f = threadIdx.x >> 2;
        const float* part = sums + (threadIdx.x & 3) * FEW * 32 + f * 32;
        float sum = 0.0f;
        for (unsigned q = 0; q < 32; q++) sum += part[(q + threadIdx.x) & 31];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if ((threadIdx.x & 3) == 0 && f < split.asymmetric) out[f] = sum;
        return;
    }
    float largest = 0.0f;
#pragma unroll
    for (unsigned q = 0; q < HELD; q++) largest = larger(largest, fabsf(held[q]));
    for (unsigned j = threadIdx.x + HELD * 128; j < m; j += 128) {
        largest = larger(largest, fabsf(g[j] * scale));
    }
    largest = block_larger(largest);
    if (!finite(largest)) {
        for (unsigned f = threadIdx.x; f < split.asymmetric; f += blockDim.x) {
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
    int shift = 61 - 2 * bits - (largest > 0.0f ? ilogbf(largest) : 0);
    double up = ldexp(1.0, shift), down = ldexp(1.0, -shift);
    for (unsigned start = 0; start < split.asymmetric; start += SCATTER) {
        unsigned end = min(start + SCATTER, split.asymmetric);
        auto add = [&](float grad, int f) {
            if (f < (int)start || f >= (int)end) return;
            long long fixed = __double2ll_rn((double)grad * up);
            atomicAdd(low + f - start, (int)(fixed & ((1ll << cut) - 1)));
            atomicAdd(high + f - start, (int)(fixed >> cut));
        };
        for (unsigned from = 0; from < m; from += MOST_TERMS) {
            __syncthreads();
            for (unsigned f = threadIdx.x; f < end - start; f += blockDim.x) low[f] = high[f] = 0;
            __syncthreads();
            if (from == 0) {
#pragma unroll
                for (unsigned q = 0; q < HELD; q++) add(held[q], held_args[q]);
            }
            unsigned next = from == 0 ? HELD * 128 : from;
            for (unsigned j = next + threadIdx.x; j < min(m, from + MOST_TERMS); j += 128) {
                add(g[j] * scale, __float_as_int(arg[j]));
            }
            __syncthreads();
            for (unsigned f = start + threadIdx.x; f < end; f += blockDim.x) {
                double sum = (double)high[f - start] * (double)(1ll << cut);
                float part = (float)((sum + (double)low[f - start]) * down);
                out[f] = from == 0 ? part : out[f] + part;
            }
        }
    }
}
