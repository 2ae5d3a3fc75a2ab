// Gradients of MRN by pairs, by differences of points: of its Euclidean part, and beside it of
// maxima over few features. Those of maxima over many are in `residual_gradient.cu`.
//
// Nothing is transposed on the way: both sides read what is known of the pairs as it lies, [n, m]
// for rows and columns of the pairs. `right` is the side of the columns.

// Pairs of a tile have so many others; so few features of maxima have sums of their own.
constexpr unsigned OTHERS = 32, FEW = 32;
// Differences of numbers below it are finite.
constexpr float HUGE = 1.7e38f;

// Weights of a tile, [others][ROWS], where a thread's own rows lie side by side. Those of four
// others are shifted against each other, so that they can be stored from either layout.
template <int R>
struct Tile {
    static constexpr unsigned ROWS = 16 * R, LINE = R == 4 ? ROWS : ROWS + 1;
    __align__(16) float weights[OTHERS * LINE];
    __align__(16) float other[OTHERS][32];  // features

    static __device__ __forceinline__ unsigned place(unsigned other, unsigned row) {
        return other * LINE + (R == 4 ? row ^ (other >> 2 & 7) << 2 : row);
    }
};

// Of features by threads, for every other pair.
struct Sums {
    float of[2][FEW * 128];
};

// What both parts know of their rows.
struct Rows {
    const float *own, *others, *g, *inverse, *arg;  // the last of maxima, if there are some
    float* da;
    unsigned n, m, row, feature, component, width;
};

// Four numbers, of which the first `count` exist.
static __device__ __forceinline__ float4 quad(const float* from, unsigned count, bool wide) {
    if (wide && count > 0) return *(const float4*)from;
    float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (count > 0) x.x = from[0];
    if (count > 1) x.y = from[1];
    if (count > 2) x.z = from[2];
    if (count > 3) x.w = from[3];
    return x;
}

// The Euclidean part, sum_j w_ij (a_i - b_j) with w = g / norm. The difference is formed first,
// since for close points the large weights would cancel every digit of a difference of products.
template <int R, bool right>
static __device__ __forceinline__ void add_euclidean(
    Tile<R>* tiles, const Rows& p, const Split& split) {
    constexpr unsigned ROWS = 16 * R;
    // Lines between a thread's quads of pairs.
    constexpr unsigned APART = right ? 512 / ROWS : 16;
    unsigned run = split.symmetric + split.asymmetric, left = split.symmetric - p.feature;
    unsigned start = p.component * run + p.feature, line = right ? p.n : p.m;
    unsigned tx = threadIdx.x & 7, ty = threadIdx.x >> 3;
    bool wide_pairs = (line & 3) == 0 && (((size_t)p.g | (size_t)p.inverse) & 15) == 0;
    bool wide = ((split.symmetric | run) & 3) == 0 && ((size_t)p.others & 15) == 0;

    // What a thread has of the next tile: R quads of pairs, which lie along their lines, and two of
    // features.
    float4 next_g[R], next_inverse[R], next_other[2];
    unsigned pair_j = right ? threadIdx.x / (ROWS / 4) : threadIdx.x % 8 * 4;
    unsigned pair_i = right ? threadIdx.x % (ROWS / 4) * 4 : threadIdx.x / 8;
    size_t first_pair = right ? (size_t)pair_j * p.n + p.row + pair_i
                              : (size_t)(p.row + pair_i) * p.m + pair_j;
    const float *from_g = p.g + first_pair, *from_inverse = p.inverse + first_pair;
    size_t apart = (size_t)APART * line;
    const float* next_from = p.others + (size_t)ty * p.width + start + tx * 4;
    auto load = [&](unsigned first) {
        unsigned rows = p.n - min(p.n, p.row + pair_i), columns = p.m - min(p.m, first + pair_j);
        unsigned along = right ? rows : columns, lines = right ? columns : rows;
#pragma unroll
        for (int q = 0; q < R; q++) {
            unsigned count = q * APART < lines ? along : 0;
            next_g[q] = quad(from_g + q * apart, count, wide_pairs);
            next_inverse[q] = quad(from_inverse + q * apart, count, wide_pairs);
        }
        from_g += right ? (size_t)OTHERS * p.n : OTHERS;
        from_inverse += right ? (size_t)OTHERS * p.n : OTHERS;
#pragma unroll
        for (int q = 0; q < 2; q++) {
            bool exists = first + ty + q * 16 < p.m && tx * 4 < left;
            unsigned count = exists ? left - tx * 4 : 0;
            next_other[q] = quad(next_from + (size_t)q * 16 * p.width, count, wide);
        }
        next_from += (size_t)OTHERS * p.width;
    };
    // Puts it into shared memory. Whether a pair must be looked at closely: its weight is not a
    // number then, or differences may overflow.
    auto store = [&](Tile<R>& tile) {
        bool odd = false;
#pragma unroll
        for (int q = 0; q < R; q++) {
            unsigned j = pair_j + (right ? q * APART : 0), i = pair_i + (right ? 0 : q * APART);
            const float *gs = &next_g[q].x, *is = &next_inverse[q].x;
            float w[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float weighted = gs[e] * split.share;
                w[e] = weighted == 0.0f ? 0.0f : weighted * is[e];
                if (!finite(w[e])) {
                    odd = true;
                    w[e] = NOT_A_NUMBER;
                }
            }
            if constexpr (R == 4 && right) {
                *(float4*)&tile.weights[Tile<R>::place(j, i)] =
                    make_float4(w[0], w[1], w[2], w[3]);
            } else {
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    unsigned to = right ? Tile<R>::place(j, i + e) : Tile<R>::place(j + e, i);
                    tile.weights[to] = w[e];
                }
            }
        }
#pragma unroll
        for (int q = 0; q < 2; q++) {
            float4 x = next_other[q];
            float largest = fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
            odd |= !(largest < HUGE) || isnan(x.x + x.y + x.z + x.w);
            *(float4*)&tile.other[ty + q * 16][tx * 4] = x;
        }
        return odd;
    };

    float u[R][4], sums[R][4] = {};
    bool is_huge = false;
#pragma unroll
    for (int i = 0; i < R; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned r = p.row + R * ty + i, f = 4 * tx + k;
            u[i][k] = r < p.n && f < left ? p.own[(size_t)r * p.width + start + f] : 0.0f;
            is_huge |= !(fabsf(u[i][k]) < HUGE);
        }
    load(0);
    bool odd = store(tiles[0]);
    unsigned current = 0;
#pragma unroll 1
    for (unsigned first = 0; first < p.m; first += OTHERS, current ^= 1) {
        const Tile<R>& tile = tiles[current];
        odd = __syncthreads_or(odd || is_huge);
        bool is_last = first + OTHERS >= p.m;
        if (odd) {
#pragma unroll 1
            for (unsigned j = 0; j < OTHERS; j++)
#pragma unroll
                for (int i = 0; i < R; i++) {
                    unsigned r = p.row + R * ty + i, c = first + j;
                    float w = tile.weights[Tile<R>::place(j, R * ty + i)];
                    Scaled pair = {1.0f, false, 1.0f};
                    if (isnan(w)) {
                        float grad = p.g[right ? (size_t)c * p.n + r : (size_t)r * p.m + c];
                        pair = scaled(p.own + (size_t)r * p.width + p.component * run,
                            p.others + (size_t)c * p.width + p.component * run, split.symmetric);
                        w = pair.norm > 0.0f ? grad * split.share / pair.norm : 0.0f;
                    }
                    // A weight of 0 silences a difference that overflows.
                    if (w == 0.0f) continue;
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        float d = difference(u[i][k], tile.other[j][4 * tx + k], pair.half);
                        sums[i][k] = fmaf(w, d / pair.scale, sums[i][k]);
                    }
                }
        }
        if (!is_last) load(first + OTHERS);
        if (!odd) {
#pragma unroll 8
            for (int j = 0; j < OTHERS; j++) {
                float4 v = *(const float4*)&tile.other[j][4 * tx];
                float w[R];
                if (R == 4) *(float4*)w = *(const float4*)&tile.weights[Tile<R>::place(j, R * ty)];
                else w[0] = tile.weights[Tile<R>::place(j, ty)];
#pragma unroll
                for (int i = 0; i < R; i++) {
                    sums[i][0] = fmaf(w[i], u[i][0] - v.x, sums[i][0]);
                    sums[i][1] = fmaf(w[i], u[i][1] - v.y, sums[i][1]);
                    sums[i][2] = fmaf(w[i], u[i][2] - v.z, sums[i][2]);
                    sums[i][3] = fmaf(w[i], u[i][3] - v.w, sums[i][3]);
                }
            }
        }
        if (!is_last) odd = store(tiles[current ^ 1]);
    }
#pragma unroll
    for (int i = 0; i < R; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned r = p.row + R * ty + i, f = 4 * tx + k;
            if (r < p.n && f < left) p.da[(size_t)r * p.width + start + f] = sums[i][k];
        }
}

// The maxima of 64 rows: +-g_ij to the feature that has it. Two threads a row, each with 16 of 32
// others, have sums in shared memory; those of neighbouring pairs do not wait for each other.
template <bool right>
static __device__ __forceinline__ void add_maxima(Sums& sums, const Rows& p, const Split& split) {
    constexpr unsigned AHEAD = 16;
    unsigned i = threadIdx.x & 63, part = threadIdx.x >> 6, r = p.row + i;
    float *even = sums.of[0] + threadIdx.x, *odd = sums.of[1] + threadIdx.x;
    for (unsigned f = 0; f < FEW; f++) even[f * 128] = odd[f * 128] = 0.0f;
    bool wide = (p.m & 3) == 0 && (((size_t)p.g | (size_t)p.arg) & 15) == 0;
    float share = right ? -split.share : split.share;
    float next_g[AHEAD], next_arg[AHEAD];
    // Pairs that do not exist have a gradient of 0.
    auto load = [&](unsigned first) {
#pragma unroll
        for (unsigned e = 0; e < AHEAD; e += right ? 1 : 4) {
            unsigned j = first + e, count = r < p.n ? p.m - min(p.m, j) : 0;
            if constexpr (right) {
                size_t place = (size_t)j * p.n + r;
                next_g[e] = count > 0 ? p.g[place] : 0.0f;
                next_arg[e] = count > 0 ? p.arg[place] : 0.0f;
            } else {
                size_t place = (size_t)r * p.m + j;
                float4 g = quad(p.g + place, count, wide), a = quad(p.arg + place, count, wide);
                next_g[e] = g.x, next_g[e + 1] = g.y, next_g[e + 2] = g.z, next_g[e + 3] = g.w;
                next_arg[e] = a.x, next_arg[e + 1] = a.y;
                next_arg[e + 2] = a.z, next_arg[e + 3] = a.w;
            }
        }
    };
    load(part * AHEAD);
#pragma unroll 1
    for (unsigned first = part * AHEAD; first < p.m; first += 2 * AHEAD) {
        float g[AHEAD];
        unsigned place[AHEAD];
#pragma unroll
        for (unsigned e = 0; e < AHEAD; e++) {
            int f = __float_as_int(next_arg[e]);
            g[e] = f < 0 ? 0.0f : next_g[e] * share;
            place[e] = max(f, 0) * 128;
        }
        load(first + 2 * AHEAD);
#pragma unroll
        for (unsigned e = 0; e < AHEAD; e += 2) {
            float x = even[place[e]], y = odd[place[e + 1]];
            even[place[e]] = x + g[e];
            odd[place[e + 1]] = y + g[e + 1];
        }
    }
    __syncthreads();
    if (r >= p.n) return;
    unsigned run = split.symmetric + split.asymmetric;
    float* out = p.da + (size_t)r * p.width + p.component * run + split.symmetric;
#pragma unroll 4
    for (unsigned f = part * (FEW / 2); f < (part + 1) * (FEW / 2); f++) {
        const float *x = sums.of[0] + f * 128 + i, *y = sums.of[1] + f * 128 + i;
        float sum = (x[0] + y[0]) + (x[64] + y[64]);
        if (f < split.asymmetric) out[f] = sum;
    }
}

// The gradient da [n, width]: the first `maxima` blocks have those, the others 16 R rows and 32
// features each of the Euclidean part.
template <int R>
static __device__ __forceinline__ void differences(Mat a, Mat b, Mat grad, Mat inverses, Mat args,
    Mat da, unsigned n, unsigned m, unsigned right, unsigned maxima, const Split& split) {
    __shared__ __align__(16) union {
        Tile<R> tiles[2];
        Sums sums;
    } memory;
    bool is_max = blockIdx.x < maxima;
    unsigned size = is_max ? 64 : 16 * R, rows = (n + size - 1) / size;
    unsigned chunks = is_max ? 1 : (split.symmetric + 31) / 32;
    unsigned block = is_max ? blockIdx.x : blockIdx.x - maxima;
    unsigned component = block / (rows * chunks), rest = block % (rows * chunks);
    size_t pairs = (size_t)component * n * m;
    Rows p = {at(a), at(b), at(grad), at(inverses) + pairs, is_max ? at(args) + pairs : nullptr,
        at(da), n, m, rest / chunks * size, rest % chunks * 32, component,
        (split.symmetric + split.asymmetric) * split.components};
    if (is_max) {
        if (right) add_maxima<true>(memory.sums, p, split);
        else add_maxima<false>(memory.sums, p, split);
    } else {
        if (right) add_euclidean<R, true>(memory.tiles, p, split);
        else add_euclidean<R, false>(memory.tiles, p, split);
    }
}

#define DIFFERENCES(NAME, BOUNDS, R)                                                              \
    BOUNDED_KERNEL(NAME, BOUNDS, Mat a, Mat b, Mat grad, Mat inverses, Mat args, Mat da,          \
        unsigned n, unsigned m, unsigned right, unsigned maxima, Split split) {                   \
        after_others();                                                                           \
        differences<R>(a, b, grad, inverses, args, da, n, m, right, maxima, split);               \
    }

// For few pairs and for many; both have the same results.
DIFFERENCES(residual_differences_small, (128, 4), 1)
DIFFERENCES(residual_differences_large, (128, 3), 4)

// The pairs in the other layout, for maxima over many features: g = share grad [m, n] and the
// arguments of the maxima [components, m, n].
KERNEL(residual_transposes,
    Mat grad, Mat args, Mat grads_t, Mat args_t, unsigned n, unsigned m, Split split) {
    after_others();
    __shared__ float tile[2][32][33];
    const float* g = at(grad);
    unsigned lane = threadIdx.x & 31, part = threadIdx.x >> 5;
    unsigned tiles = (m + 31) / 32, all = tiles * ((n + 31) / 32);
    unsigned component = blockIdx.x / all, place_in = blockIdx.x % all;
    unsigned row = place_in / tiles * 32, column = place_in % tiles * 32;
    const float* arg = at(args) + (size_t)component * n * m;
    float* out = at(args_t) + (size_t)component * n * m;
    for (unsigned i = part; i < 32; i += 8) {
        unsigned r = row + i, c = column + lane;
        if (r >= n || c >= m) continue;
        size_t place = (size_t)r * m + c;
        tile[0][i][lane] = arg[place];
        if (component == 0) tile[1][i][lane] = g[place] * split.share;
    }
    __syncthreads();
    for (unsigned i = part; i < 32; i += 8) {
        unsigned r = row + lane, c = column + i;
        if (r >= n || c >= m) continue;
        size_t place = (size_t)c * n + r;
        out[place] = tile[0][lane][i];
        if (component == 0) at(grads_t)[place] = tile[1][lane][i];
    }
}
