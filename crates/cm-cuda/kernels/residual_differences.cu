// Gradients of MRN by pairs, by differences of points: of its Euclidean part, and with that of
// maxima over few features. Those of maxima over many are in `residual_gradient.cu`.
//
// Nothing is transposed on the way: both sides read what is known of the pairs as it lies.

// Pairs of a tile have so many others; so few features of maxima have sums of their own.
constexpr unsigned OTHERS = 32, FEW = 32;

// A tile's numbers, [others][ROWS], where a thread's own rows lie side by side. Those of four
// others are shifted against each other, so that they can be stored from either layout.
template <int R>
struct Tile {
    static constexpr unsigned ROWS = 16 * R, LINE = R == 4 ? ROWS : ROWS + 1;
    float at[OTHERS * LINE];

    static __device__ __forceinline__ unsigned place(unsigned other, unsigned row) {
        return other * LINE + (R == 4 ? row ^ (other >> 2 & 7) << 2 : row);
    }
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

// da [n, width] += of the Euclidean part, sum_j w_ij (a_i - b_j) with w = g / norm. The difference
// is formed first, since for close points the large weights would cancel every digit of a
// difference of products. Pairs lie as [n, m], or as [m, n] if this is the `right` side.
//
// If there are arguments of maxima, also of these: +-g_ij to the feature that has the maximum. Two
// threads have the sums of a row, in shared memory, each over its half of every tile.
template <int R>
static __device__ __forceinline__ void differences(Mat a, Mat b, Mat grad, Mat inverses, Mat args,
    Mat da, unsigned n, unsigned m, unsigned right, const Split& split) {
    constexpr unsigned ROWS = 16 * R, SUMS = 2 * ROWS, OWN = ROWS / 4, PARTS = 128 / ROWS;
    __shared__ __align__(16) Tile<R> weights;
    __shared__ __align__(16) Tile<R> grads;
    __shared__ __align__(16) Tile<R> features;
    __shared__ __align__(16) float other[OTHERS][32];
    __shared__ float sums_of[FEW * SUMS];
    const float *own = at(a), *others = at(b), *g = at(grad);
    unsigned rows = (n + ROWS - 1) / ROWS, chunks = (split.symmetric + 31) / 32;
    unsigned component = blockIdx.x / (rows * chunks), rest = blockIdx.x % (rows * chunks);
    unsigned row = rest / chunks * ROWS, feature = rest % chunks * 32;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    unsigned start = component * run + feature, left = split.symmetric - feature;
    size_t pairs = (size_t)component * n * m;
    const float *inverse = at(inverses) + pairs, *arg = nullptr;
    if (args.p && feature == 0) arg = at(args) + pairs;
    unsigned tx = threadIdx.x & 7, ty = threadIdx.x >> 3;
    unsigned line = right ? n : m;  // of the pairs
    bool wide_pairs = (line & 3) == 0 && (((size_t)g | (size_t)inverse | (size_t)arg) & 15) == 0;
    bool wide = ((split.symmetric | run) & 3) == 0 && ((size_t)others & 15) == 0;

    // What a thread has of the next tile: R quads of pairs, which lie along their lines, and two of
    // features.
    float4 next_g[R], next_inverse[R], next_arg[R], next_other[2];
    unsigned pair_j = right ? threadIdx.x / (ROWS / 4) : threadIdx.x % 8 * 4;
    unsigned pair_i = right ? threadIdx.x % (ROWS / 4) * 4 : threadIdx.x / 8;
    unsigned apart = right ? 512 / ROWS : 16;  // lines between two quads
    size_t place = right ? (size_t)pair_j * n + row + pair_i : (size_t)(row + pair_i) * m + pair_j;
    const float* next_from = others + (size_t)(threadIdx.x / 8) * width + start + tx * 4;
    auto load = [&](unsigned first) {
        unsigned along = right ? n - min(n, row + pair_i) : m - min(m, first + pair_j);
        unsigned lines = right ? m - min(m, first + pair_j) : n - min(n, row + pair_i);
#pragma unroll
        for (int q = 0; q < R; q++) {
            unsigned count = q * apart < lines ? along : 0;
            size_t from = place + (size_t)(q * apart) * line;
            next_g[q] = quad(g + from, count, wide_pairs);
            next_inverse[q] = quad(inverse + from, count, wide_pairs);
            if (arg) next_arg[q] = quad(arg + from, count, wide_pairs);
        }
        place += right ? (size_t)OTHERS * n : OTHERS;
#pragma unroll
        for (int q = 0; q < 2; q++) {
            bool exists = first + threadIdx.x / 8 + q * 16 < m && tx * 4 < left;
            unsigned count = exists ? left - tx * 4 : 0;
            next_other[q] = quad(next_from + (size_t)q * 16 * width, count, wide);
        }
        next_from += (size_t)OTHERS * width;
    };
    // Puts it into shared memory. Whether a weight is not a number there, for which its pair must
    // be looked at closely.
    auto store = [&]() {
        bool special = false;
#pragma unroll
        for (int q = 0; q < R; q++) {
            unsigned j = pair_j + (right ? q * apart : 0), i = pair_i + (right ? 0 : q * apart);
            const float *gs = &next_g[q].x, *is = &next_inverse[q].x, *as = &next_arg[q].x;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                unsigned to = right ? Tile<R>::place(j, i + e) : Tile<R>::place(j + e, i);
                float weighted = gs[e] * split.share, w = weighted * is[e];
                if (weighted == 0.0f) w = 0.0f;
                if (!finite(w)) {
                    special = true;
                    w = NOT_A_NUMBER;
                }
                weights.at[to] = w;
                if (!arg) continue;
                int f = __float_as_int(as[e]);
                grads.at[to] = f < 0 ? 0.0f : right ? -weighted : weighted;
                features.at[to] = __int_as_float(max(f, 0) * SUMS);
            }
        }
#pragma unroll
        for (int q = 0; q < 2; q++) {
            *(float4*)&other[threadIdx.x / 8 + q * 16][tx * 4] = next_other[q];
        }
        return special;
    };

    float u[R][4], sums[R][4] = {};
#pragma unroll
    for (int i = 0; i < R; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned r = row + R * ty + i, f = 4 * tx + k;
            u[i][k] = r < n && f < left ? own[(size_t)r * width + start + f] : 0.0f;
        }
    for (unsigned e = threadIdx.x; e < FEW * SUMS; e += 128) sums_of[e] = 0.0f;
    // The maxima's sums: of which row, from which of the others on.
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned sums_row = warp * OWN + lane % OWN, sums_first = lane / OWN * (OTHERS / 2);
    float* mine = sums_of + warp * 2 * OWN + lane;
    bool has_sums = arg && lane < 2 * OWN;
    load(0);
#pragma unroll 1
    for (unsigned first = 0; first < m; first += OTHERS) {
        __syncthreads();
        int special = __syncthreads_or(store());
        if (special) {
#pragma unroll 1
            for (unsigned j = 0; j < OTHERS; j++)
#pragma unroll
                for (int i = 0; i < R; i++) {
                    if (!isnan(weights.at[Tile<R>::place(j, R * ty + i)])) continue;
                    unsigned r = row + R * ty + i, c = first + j;
                    float weighted = g[right ? (size_t)c * n + r : (size_t)r * m + c] * split.share;
                    Scaled pair = scaled(own + (size_t)r * width + component * run,
                        others + (size_t)c * width + component * run, split.symmetric);
                    if (!(pair.norm > 0.0f)) continue;
                    float w = weighted / pair.norm;
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        float d = difference(u[i][k], other[j][4 * tx + k], pair.half);
                        sums[i][k] = fmaf(w, d / pair.scale, sums[i][k]);
                    }
                }
        }
        if (first + OTHERS < m) load(first + OTHERS);
#pragma unroll 8
        for (int j = 0; j < OTHERS; j++) {
            float4 v = *(const float4*)&other[j][4 * tx];
            float w[R];
            if (R == 4) *(float4*)w = *(const float4*)&weights.at[Tile<R>::place(j, R * ty)];
            else w[0] = weights.at[Tile<R>::place(j, ty)];
#pragma unroll
            for (int i = 0; i < R; i++) {
                // A weight of 0 silences a difference that overflows.
                if (fabsf(w[i]) > 0.0f) {
                    sums[i][0] = fmaf(w[i], u[i][0] - v.x, sums[i][0]);
                    sums[i][1] = fmaf(w[i], u[i][1] - v.y, sums[i][1]);
                    sums[i][2] = fmaf(w[i], u[i][2] - v.z, sums[i][2]);
                    sums[i][3] = fmaf(w[i], u[i][3] - v.w, sums[i][3]);
                }
            }
        }
        if (has_sums) {
#pragma unroll 4
            for (int j = 0; j < OTHERS / 2; j++) {
                unsigned place = Tile<R>::place(sums_first + j, sums_row);
                mine[__float_as_int(features.at[place])] += grads.at[place];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < R; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned r = row + R * ty + i, f = 4 * tx + k;
            if (r < n && f < left) at(da)[(size_t)r * width + start + f] = sums[i][k];
        }
    if (!arg) return;
    __syncthreads();
    unsigned i = threadIdx.x % ROWS, from = threadIdx.x / ROWS * (FEW / PARTS);
    const float* both = sums_of + i / OWN * 2 * OWN + i % OWN;
    float* out = at(da) + (size_t)(row + i) * width + start + split.symmetric;
#pragma unroll
    for (unsigned f = from; f < from + FEW / PARTS; f++) {
        float sum = both[f * SUMS] + both[f * SUMS + OWN];
        if (row + i < n && f < split.asymmetric) out[f] = sum;
    }
}

#define DIFFERENCES(NAME, BOUNDS, R)                                                              \
    BOUNDED_KERNEL(NAME, BOUNDS, Mat a, Mat b, Mat grad, Mat inverses, Mat args, Mat da,          \
        unsigned n, unsigned m, unsigned right, Split split) {                                    \
        after_others();                                                                           \
        differences<R>(a, b, grad, inverses, args, da, n, m, right, split);                       \
    }

// For few pairs and for many; both have the same results.
DIFFERENCES(residual_differences_small, (128), 1)
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
