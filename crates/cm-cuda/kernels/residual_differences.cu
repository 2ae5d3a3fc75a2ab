// Gradients of MRN's Euclidean part by pairs, by differences of points.

// What each pair weighs in the gradients, in both layouts ([components, n, m] and
// [components, m, n]): w = share g / norm, and the scale that replaces a plain difference where w
// would not be representable (negative if halves must be subtracted; 0 for all other pairs);
// g = share grad and the argument of the maximum.
KERNEL(residual_weights,
    Mat x, Mat y, Mat grad, Mat norms, Mat args, Mat weights, Mat weights_t, Mat scales,
    Mat scales_t, Mat grads_t, Mat args_t, unsigned n, unsigned m, Split split) {
    after_others();
    __shared__ float tile[4][32][33];
    const float *a = at(x), *b = at(y), *g = at(grad), *norm_in = maybe(norms), *arg_in = at(args);
    unsigned lane = threadIdx.x & 31, part = threadIdx.x >> 5;
    unsigned tiles = (m + 31) / 32, all = tiles * ((n + 31) / 32);
    unsigned component = blockIdx.x / all, place_in = blockIdx.x % all;
    unsigned row = place_in / tiles * 32, column = place_in % tiles * 32;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    size_t base = (size_t)component * n * m;
    for (unsigned i = part; i < 32; i += 8) {
        unsigned r = row + i, c = column + lane;
        if (r >= n || c >= m) continue;
        size_t place = base + (size_t)r * m + c;
        float weighted = g[(size_t)r * m + c] * split.share, w = 0.0f, s = 0.0f;
        if (split.symmetric > 0) {
            float norm = norm_in[place];
            w = weighted / norm;
            if (!regular(norm * norm) || !finite(w)) {
                Scaled pair = scaled(a + (size_t)r * width + component * run,
                    b + (size_t)c * width + component * run, split.symmetric);
                bool apart = pair.norm > 0.0f;
                w = apart ? weighted / pair.norm : 0.0f;
                s = apart ? (pair.half ? -pair.scale : pair.scale) : 0.0f;
            }
            at(weights)[place] = w;
            at(scales)[place] = s;
        }
        tile[0][i][lane] = w;
        tile[1][i][lane] = s;
        tile[2][i][lane] = weighted;
        tile[3][i][lane] = arg_in[place];
    }
    __syncthreads();
    for (unsigned i = part; i < 32; i += 8) {
        unsigned r = row + lane, c = column + i;
        if (r >= n || c >= m) continue;
        size_t place = base + (size_t)c * n + r;
        if (split.symmetric > 0) {
            at(weights_t)[place] = tile[0][lane][i];
            at(scales_t)[place] = tile[1][lane][i];
        }
        at(grads_t)[place] = tile[2][lane][i];
        at(args_t)[place] = tile[3][lane][i];
    }
}

// The Euclidean part of da [n, width]: sum_j w_ij (a_i - b_j), the difference formed first, since
// for close points the large weights would cancel every digit of a difference of products.
template <int R>
static __device__ __forceinline__ void norm_gradient(
    Mat a, Mat b, Mat weights, Mat scales, Mat da, unsigned n, unsigned m, const Split& split) {
    constexpr unsigned ROWS = 16 * R, LINE = 36;
    __shared__ __align__(16) float w[2][ROWS][LINE], s[2][ROWS][LINE], other[2][32][LINE];
    const float *own = at(a), *others = at(b), *weight = at(weights), *scale = at(scales);
    unsigned rows = (n + ROWS - 1) / ROWS, chunks = (split.symmetric + 31) / 32;
    unsigned component = blockIdx.x / (rows * chunks), rest = blockIdx.x % (rows * chunks);
    unsigned row = rest / chunks * ROWS, feature = rest % chunks * 32;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    unsigned start = component * run + feature, left = split.symmetric - feature;
    unsigned tx = threadIdx.x & 7, ty = threadIdx.x >> 3;
    bool wide_pairs = (m & 3) == 0 && (((size_t)weight | (size_t)scale) & 15) == 0;
    bool wide = ((split.symmetric | run) & 3) == 0 && ((size_t)others & 15) == 0;
    auto fetch = [&](unsigned first, int stage) {
        for (unsigned e = threadIdx.x; e < ROWS * 8; e += 128) {
            unsigned i = e / 8, k = e % 8 * 4;
            size_t place = ((size_t)component * n + row + i) * m + first + k;
            unsigned count = row + i < n && first + k < m ? m - first - k : 0;
            if (wide_pairs) {
                copy_16(&w[stage][i][k], weight + place, count > 0);
                copy_16(&s[stage][i][k], scale + place, count > 0);
            } else {
                for (unsigned q = 0; q < 4; q++) {
                    copy_4(&w[stage][i][k + q], weight + place + q, q < count);
                    copy_4(&s[stage][i][k + q], scale + place + q, q < count);
                }
            }
        }
        for (unsigned e = threadIdx.x; e < 32 * 8; e += 128) {
            unsigned j = e / 8, k = e % 8 * 4;
            const float* from = others + (size_t)(first + j) * width + start + k;
            unsigned count = first + j < m && k < left ? left - k : 0;
            if (wide) {
                copy_16(&other[stage][j][k], from, count > 0);
            } else {
                for (unsigned q = 0; q < 4; q++) {
                    copy_4(&other[stage][j][k + q], from + q, q < count);
                }
            }
        }
        commit_copies();
    };
    float u[R][4], sums[R][4] = {};
#pragma unroll
    for (int i = 0; i < R; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned r = row + ty + 16 * i, f = 4 * tx + k;
            u[i][k] = r < n && f < left ? own[(size_t)r * width + start + f] : 0.0f;
        }
    fetch(0, 0);
    int stage = 0;
#pragma unroll 1
    for (unsigned first = 0; first < m; first += 32, stage ^= 1) {
        if (first + 32 < m) fetch(first + 32, stage ^ 1);
        else commit_copies();
        wait_copies<1>();
        // Each thread looks at what it has copied itself.
        int special = 0;
        for (unsigned e = threadIdx.x; e < ROWS * 8; e += 128) {
            const float* four = &s[stage][e / 8][e % 8 * 4];
            for (int q = 0; q < 4; q++) special |= four[q] != 0.0f;
        }
        special = __syncthreads_or(special);
        if (!special) {
#pragma unroll 8
            for (int j = 0; j < 32; j++) {
                float4 v = *(const float4*)&other[stage][j][4 * tx];
#pragma unroll
                for (int i = 0; i < R; i++) {
                    float weigh = w[stage][ty + 16 * i][j];
                    // A weight of 0 silences a difference that overflows.
                    if (weigh != 0.0f) {
                        sums[i][0] = fmaf(weigh, u[i][0] - v.x, sums[i][0]);
                        sums[i][1] = fmaf(weigh, u[i][1] - v.y, sums[i][1]);
                        sums[i][2] = fmaf(weigh, u[i][2] - v.z, sums[i][2]);
                        sums[i][3] = fmaf(weigh, u[i][3] - v.w, sums[i][3]);
                    }
                }
            }
        } else {
            for (int j = 0; j < 32; j++)
#pragma unroll
                for (int i = 0; i < R; i++) {
                    float weigh = w[stage][ty + 16 * i][j], measure = s[stage][ty + 16 * i][j];
                    if (weigh == 0.0f) continue;
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        float d = difference(u[i][k], other[stage][j][4 * tx + k], measure < 0.0f);
                        if (measure != 0.0f) d = d / fabsf(measure);
                        sums[i][k] = fmaf(weigh, d, sums[i][k]);
                    }
                }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < R; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned r = row + ty + 16 * i, f = 4 * tx + k;
            if (r < n && f < left) at(da)[(size_t)r * width + start + f] = sums[i][k];
        }
}

// For few pairs and for many; both have the same results.
BOUNDED_KERNEL(residual_norm_gradient_small, (128),
    Mat a, Mat b, Mat weights, Mat scales, Mat da, unsigned n, unsigned m, Split split) {
    after_others();
    norm_gradient<1>(a, b, weights, scales, da, n, m, split);
}

BOUNDED_KERNEL(residual_norm_gradient_large, (128),
    Mat a, Mat b, Mat weights, Mat scales, Mat da, unsigned n, unsigned m, Split split) {
    after_others();
    norm_gradient<4>(a, b, weights, scales, da, n, m, split);
}
