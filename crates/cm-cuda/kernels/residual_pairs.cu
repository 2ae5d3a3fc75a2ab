// MRN and Max by pairs: distances, and what their gradients are made of. What they share with rows
// is in `residual.cuh`.

// Calls pair(u, v, i, j, k) for four features from k on of each of a thread's pairs.
template <int PM, int PN, int CHUNK, typename F>
static __device__ __forceinline__ void each_pair(const float* us, const float* vs, F pair) {
    constexpr int LINE = CHUNK + 4;
#pragma unroll 2
    for (int k = 0; k < CHUNK; k += 4) {
        float4 u[PM], v[PN];
#pragma unroll
        for (int i = 0; i < PM; i++) u[i] = *(const float4*)(us + i * 16 * LINE + k);
#pragma unroll
        for (int j = 0; j < PN; j++) v[j] = *(const float4*)(vs + j * 16 * LINE + k);
#pragma unroll
        for (int i = 0; i < PM; i++)
#pragma unroll
            for (int j = 0; j < PN; j++) pair(u[i], v[j], i, j, k);
    }
}

// Distances of a tile of 16 PM x 16 PN pairs; norms and arguments of the maxima [components, n, m]
// if wanted. Each thread has PM x PN pairs, whose features it takes one after another; CHUNK of
// them are loaded at a time, STAGES - 1 times ahead.
template <int PM, int PN, int CHUNK, int STAGES>
static __device__ __forceinline__ void pairs(
    Mat x, Mat y, Mat distances, Mat norms, Mat args, unsigned n, unsigned m, const Split& split) {
    constexpr unsigned TM = 16 * PM, TN = 16 * PN, ROWS = TM + TN, LINE = CHUNK + 4;
    extern __shared__ __align__(16) float memory[];
    __shared__ int bad[ROWS];
    const float *a = at(x), *b = at(y);
    unsigned tiles = (m + TN - 1) / TN;
    unsigned row = blockIdx.x / tiles * TM, column = blockIdx.x % tiles * TN;
    unsigned tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    bool wide = ((split.symmetric | split.asymmetric) & 3) == 0
        && (((size_t)a | (size_t)b) & 15) == 0;
    unsigned first_chunks = (split.symmetric + CHUNK - 1) / CHUNK;
    unsigned chunks = first_chunks + (split.asymmetric + CHUNK - 1) / CHUNK;
    unsigned all = chunks * split.components;
    auto fetch = [&](unsigned chunk) {
        unsigned component = chunk / chunks, rest = chunk % chunks;
        bool second = rest >= first_chunks;
        unsigned start = component * run + (second ? split.symmetric : 0);
        unsigned end = start + (second ? split.asymmetric : split.symmetric);
        unsigned feature = start + (second ? rest - first_chunks : rest) * CHUNK;
        float* stage = memory + chunk % STAGES * ROWS * LINE;
#pragma unroll 4
        for (unsigned e = threadIdx.x; e < ROWS * (CHUNK / 4); e += 256) {
            unsigned r = e / (CHUNK / 4), k = e % (CHUNK / 4) * 4;
            bool exists = r < TM ? row + r < n : column + r - TM < m;
            const float* from = r < TM ? a + (size_t)(row + r) * width
                                       : b + (size_t)(column + r - TM) * width;
            from += feature + k;
            float* to = stage + r * LINE + k;
            if (wide) {
                copy_16(to, from, exists && feature + k < end);
            } else {
                for (unsigned q = 0; q < 4; q++) {
                    copy_4(to + q, from + q, exists && feature + k + q < end);
                }
            }
        }
    };
    if (threadIdx.x < ROWS) bad[threadIdx.x] = 0;
    for (unsigned chunk = 0; chunk < STAGES - 1; chunk++) {
        if (chunk < all) fetch(chunk);
        commit_copies();
    }
    float total[PM][PN] = {}, value[PM][PN] = {};  // the sum of squares, then the maximum
    int quad[PM][PN];  // the first four features that have the maximum; -1 if none is positive
#pragma unroll
    for (int i = 0; i < PM; i++)
#pragma unroll
        for (int j = 0; j < PN; j++) quad[i][j] = -1;
    float *norm_out = maybe(norms), *arg_out = maybe(args);
#pragma unroll 1
    for (unsigned chunk = 0; chunk < all; chunk++) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        if (chunk + STAGES - 1 < all) fetch(chunk + STAGES - 1);
        commit_copies();
        unsigned component = chunk / chunks, rest = chunk % chunks;
        const float* stage = memory + chunk % STAGES * ROWS * LINE;
        for (unsigned e = threadIdx.x; e < ROWS * (CHUNK / 4); e += 256) {
            float4 u = *(const float4*)(stage + e / (CHUNK / 4) * LINE + e % (CHUNK / 4) * 4);
            bool fine = finite(u.x) && finite(u.y) && finite(u.z) && finite(u.w);
            if (!fine) bad[e / (CHUNK / 4)] = 1;
        }
        const float *us = stage + ty * LINE, *vs = stage + (TM + tx) * LINE;
        int base = (int)(rest - first_chunks) * CHUNK;
        if (rest < first_chunks) {
            each_pair<PM, PN, CHUNK>(us, vs, [&](float4 u, float4 v, int i, int j, int) {
                float p = u.x - v.x, q = u.y - v.y, r = u.z - v.z, s = u.w - v.w;
                value[i][j] = fmaf(s, s, fmaf(r, r, fmaf(q, q, fmaf(p, p, value[i][j]))));
            });
        } else {
            each_pair<PM, PN, CHUNK>(us, vs, [&](float4 u, float4 v, int i, int j, int k) {
                float most = fmaxf(fmaxf(u.x - v.x, u.y - v.y), fmaxf(u.z - v.z, u.w - v.w));
                if (most > value[i][j]) quad[i][j] = base + k;
                value[i][j] = fmaxf(value[i][j], most);
            });
        }
        bool is_norm = rest + 1 == first_chunks;
        if (!is_norm && rest + 1 < chunks) continue;
        unsigned start = component * run + (is_norm ? 0 : split.symmetric);
#pragma unroll
        for (int i = 0; i < PM; i++)
#pragma unroll
            for (int j = 0; j < PN; j++) {
                unsigned r = row + ty + 16 * i, c = column + tx + 16 * j;
                float found = value[i][j];
                if (r < n && c < m) {
                    const float* u = a + (size_t)r * width + start;
                    const float* v = b + (size_t)c * width + start;
                    size_t place = ((size_t)component * n + r) * m + c;
                    if (is_norm) {
                        found += split.offset;
                        found = regular(found) ? sqrtf(found)
                                               : careful_norm(u, v, split.symmetric);
                        if (norm_out) norm_out[place] = found;
                    } else if (arg_out) {
                        // The first of the four that has it.
                        int arg = quad[i][j];
                        auto place_of = [&](const float* u, const float* v) {
                            float d[3];
#pragma unroll
                            for (int q = 0; q < 3; q++) {
                                bool exists = arg + q < (int)split.asymmetric;
                                d[q] = exists ? u[arg + q] - v[arg + q] : 0.0f;
                            }
                            return d[0] == found ? 0 : d[1] == found ? 1 : d[2] == found ? 2 : 3;
                        };
                        if (arg >= 0 && split.asymmetric <= CHUNK) {
                            // The whole part is still in shared memory.
                            arg += place_of(us + i * 16 * LINE, vs + j * 16 * LINE);
                        } else if (arg >= 0) {
                            arg += place_of(u, v);
                        }
                        arg_out[place] = __int_as_float(arg);
                    }
                }
                total[i][j] += found;
                value[i][j] = 0.0f;
                quad[i][j] = -1;
            }
    }
    __syncthreads();
    float* out = at(distances);
#pragma unroll
    for (int i = 0; i < PM; i++)
#pragma unroll
        for (int j = 0; j < PN; j++) {
            unsigned r = ty + 16 * i, c = tx + 16 * j;
            if (row + r >= n || column + c >= m) continue;
            bool is_bad = bad[r] || bad[TM + c];
            size_t place = (size_t)(row + r) * m + column + c;
            out[place] = is_bad ? NOT_A_NUMBER : total[i][j] * split.share;
        }
}

#define PAIRS(NAME, BOUNDS, PM, PN, CHUNK)                                                        \
    BOUNDED_KERNEL(NAME, BOUNDS, Mat x, Mat y, Mat distances, Mat norms, Mat args, unsigned n,    \
        unsigned m, Split split) {                                                                \
        after_others();                                                                           \
        pairs<PM, PN, CHUNK, 3>(x, y, distances, norms, args, n, m, split);                       \
    }

// For few pairs and for many, of components of more than 32 features and of at most as many.
PAIRS(residual_pairs_small, (256), 2, 1, 256)
PAIRS(residual_pairs_large, (256, 2), 4, 4, 64)
PAIRS(residual_pairs_small_short, (256), 2, 1, 32)
PAIRS(residual_pairs_large_short, (256, 2), 4, 4, 32)
