// MRN and Max by pairs: distances, and what their gradients are made of. What they share with rows
// is in `residual.cuh`, what both kernels share in `residual_pairs.cuh`.
//
// Some warps take the symmetric features of a tile of pairs, as many others the asymmetric ones:
// the former keep other units of the processor busy than the latter. Squares are summed over 64
// features each, then over these sums, in every kernel, so all have the same results.
//
// Where the distances become InfoNCE's logits, log-sum-exps of parts of them are made as well.

// For many pairs: tiles of 64 x 32, 128 threads for either part. The next chunk of each is loaded
// meanwhile. Components that are SHORT have one chunk.
template <bool SHORT>
static __device__ __forceinline__ void many(Mat x, Mat y, Mat distances, Mat norms, Mat args,
    unsigned n, unsigned m, unsigned inverted, const Split& split, const Sums& sums) {
    constexpr unsigned TM = 64, TN = 32, ROWS = TM + TN;
    extern __shared__ __align__(16) float memory[];
    __shared__ int bad[ROWS];
    __shared__ float added[TN];
    Points p = points_of(x, y, n, m, split, TM, TN);
    unsigned lane = threadIdx.x & 127, is_max = threadIdx.x >> 7;
    unsigned u_row = (lane >> 3) * 4, v_row = TM + (lane & 7) * 4;
    float* out = at(distances);
    float* stored = is_max ? maybe(args) : maybe(norms);
    Block block(p, p.row + u_row, p.column + v_row - TM,
        (m & 3) == 0 && (((size_t)out | (size_t)stored) & 15) == 0);
    unsigned run = split.symmetric + split.asymmetric;
    unsigned size = is_max ? split.asymmetric : split.symmetric;
    unsigned end = (max(split.symmetric, split.asymmetric) + CHUNK - 1) / CHUNK * CHUNK;
    unsigned all = end / CHUNK * split.components;
    float* stages = memory + is_max * 2 * ROWS * CHUNK;
    // A thread's totals over components, row by row.
    float* totals = memory + 4 * ROWS * CHUNK + is_max * TM * TN + lane * 4;
    unsigned start = is_max * split.symmetric, next_start = start, next = 0;
    auto fetch_next = [&](unsigned step) {
        if (next < size && step < all) {
            fetch<TM, TN, 128>(stages + step % 2 * ROWS * CHUNK, p, next_start + next,
                next_start + size, lane);
        }
        commit_copies();
        next += CHUNK;
        if (next >= end) next = 0, next_start += run;
    };
    if (threadIdx.x < ROWS) bad[threadIdx.x] = 0;
    if (sums.column.p) load_added(sums, added, TN, p);
    fetch_next(0);
    // Sums or maxima; sums of sums or where the maxima are.
    float found[4][4] = {}, besides[4][4];
    float none = is_max ? __int_as_float(-1) : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        *(float4*)(totals + i * 512) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int j = 0; j < 4; j++) besides[i][j] = none;
    }
    unsigned feature = 0;
#pragma unroll 1
    for (unsigned step = 0; step < all; step++) {
        wait_copies<0>();
        __syncthreads();
        fetch_next(step + 1);
        const float* stage = stages + step % 2 * ROWS * CHUNK;
        if (feature < size) {
            if (is_max) {
                mark_bad<ROWS, 128>(stage, bad, lane);
                take_largest(stage, u_row, v_row, (int)feature, found, besides);
            } else {
                add_squares(stage, u_row, v_row, found);
            }
        }
        feature += CHUNK;
        if (!SHORT && !is_max && ((feature & CHUNK) == 0 || feature == end)) {
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    besides[i][j] += found[i][j];
                    found[i][j] = feature < end ? 0.0f : besides[i][j];
                }
        }
        if (feature < end) continue;
        if (!is_max && size > 0) {
            take_norms(found, p, block, start, split, inverted, stored);
        } else if (is_max) {
            take_arguments(found, besides, p, block, start, split, stored,
                [&](int i, unsigned k) {
                    if (SHORT) return *(const float4*)(stage + place_of(u_row + i, k));
                    unsigned r = min(block.row + i, n - 1);
                    return *(const float4*)(p.a + (size_t)r * p.width + start + k);
                },
                [&](int j, unsigned k) {
                    if (SHORT) return *(const float4*)(stage + place_of(v_row + j, k));
                    unsigned c = min(block.column + j, m - 1);
                    return *(const float4*)(p.b + (size_t)c * p.width + start + k);
                });
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float4 total = *(float4*)(totals + i * 512);
            total.x += found[i][0], total.y += found[i][1];
            total.z += found[i][2], total.w += found[i][3];
            *(float4*)(totals + i * 512) = total;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                found[i][j] = 0.0f;
                besides[i][j] = none;
            }
        }
        if (stored) stored += (size_t)n * m;
        start += run;
        feature = 0;
    }
    __syncthreads();
    bool is_summed = sums.rows.p || sums.columns.p;
    if (is_max && !is_summed) return;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (is_max) break;
        float4 norm = *(const float4*)(totals + i * 512);
        float4 most = *(const float4*)(totals + i * 512 + TM * TN);
        found[i][0] = norm.x + most.x, found[i][1] = norm.y + most.y;
        found[i][2] = norm.z + most.z, found[i][3] = norm.w + most.w;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            bool is_bad = bad[u_row + i] || bad[v_row + j];
            found[i][j] = is_bad ? NOT_A_NUMBER : found[i][j] * split.share;
        }
    }
    if (!is_max) put_rows(out, found, p, block);
    if (!is_summed) return;
    // In the place of the features.
    constexpr unsigned LINE = TN + 1;
    if (!is_max) {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) memory[(u_row + i) * LINE + v_row - TM + j] = found[i][j];
    }
    __syncthreads();
    sum_tile<TM / PART_ROWS, TN / PART_COLUMNS, LINE>(
        sums, memory, sums.column.p ? added : nullptr, p.row, p.column, n);
}

// For few pairs: tiles of 32 x 16 that four warps have for either part, each another chunk, or
// another component if these are SHORT, of one chunk.
template <bool SHORT>
static __device__ __forceinline__ void few(Mat x, Mat y, Mat distances, Mat norms, Mat args,
    unsigned n, unsigned m, unsigned inverted, const Split& split, const Sums& sums) {
    constexpr unsigned TM = PART_ROWS, TN = PART_COLUMNS, ROWS = TM + TN;
    constexpr unsigned UNIT = SHORT ? CHUNK : 2 * CHUNK;
    extern __shared__ __align__(16) float memory[];
    __shared__ int bad[ROWS];
    __shared__ float added[TN];
    Points p = points_of(x, y, n, m, split, TM, TN);
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, slice = warp & 3;
    bool is_max = warp >= 4;
    unsigned u_row = (lane >> 2) * 4, v_row = TM + (lane & 3) * 4;
    unsigned run = split.symmetric + split.asymmetric;
    unsigned size = is_max ? split.asymmetric : split.symmetric;
    float *norm_out = maybe(norms), *arg_out = maybe(args), *out = at(distances);
    Block block(p, p.row + u_row, p.column + v_row - TM,
        (m & 3) == 0 && (((size_t)norm_out | (size_t)arg_out) & 15) == 0);
    // What each warp has found takes the place of its unit: norms or maxima, or sums of squares or
    // maxima and their arguments.
    float* stage = memory + warp * ROWS * UNIT;
    // The distances come there in the end.
    constexpr unsigned LINE = TN + 1;
    auto found = [&](unsigned warp, unsigned place) { return memory[warp * ROWS * UNIT + place]; };
    // Units are chunks or components; four are taken at a time.
    unsigned longest = max(split.symmetric, split.asymmetric);
    unsigned units = SHORT ? split.components : (longest + UNIT - 1) / UNIT;
    unsigned parts = SHORT ? 1 : split.components;
    if (threadIdx.x < ROWS) bad[threadIdx.x] = 0;
    if (sums.column.p) load_added(sums, added, TN, p);
    __syncthreads();
    float totals[2] = {}, maxima[2] = {};  // of two pairs: place threadIdx.x and 256 on
#pragma unroll 1
    for (unsigned part = 0; part < parts; part++) {
        float squares[2] = {};
        int largest[2] = {}, args[2] = {-1, -1};
#pragma unroll 1
        for (unsigned first = 0; first < units; first += 4) {
            unsigned unit = first + slice, component = SHORT ? unit : part;
            unsigned start = component * run + (is_max ? split.symmetric : 0);
            unsigned feature = SHORT ? 0 : unit * UNIT;
            bool has = unit < units && feature < size;
            if (has) fetch<TM, TN, 32>(stage, p, start + feature, start + size, lane);
            commit_copies();
            if (has && !SHORT) {
                fetch<TM, TN, 32>(
                    stage + ROWS * CHUNK, p, start + feature + CHUNK, start + size, lane);
            }
            commit_copies();
            wait_copies<1>();
            __syncwarp();
            float mine[4][4] = {};
            float quads[4][4];
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) quads[i][j] = __int_as_float(-1);
            if (has) {
#pragma unroll 1
                for (unsigned half = 0; half < UNIT; half += CHUNK) {
                    const float* chunk = stage + half * ROWS;
                    if (half > 0) {
                        wait_copies<0>();
                        __syncwarp();
                    }
                    if (is_max) {
                        mark_bad<ROWS, 32>(chunk, bad, lane);
                        take_largest(chunk, u_row, v_row, (int)(feature + half), mine, quads);
                    } else {
                        add_squares(chunk, u_row, v_row, mine);
                    }
                }
                if (SHORT) {
                    size_t base = (size_t)component * n * m;
                    if (is_max) {
                        take_arguments(mine, quads, p, block, start, split,
                            arg_out ? arg_out + base : nullptr,
                            [&](int i, unsigned k) {
                                return *(const float4*)(stage + place_of(u_row + i, k));
                            },
                            [&](int j, unsigned k) {
                                return *(const float4*)(stage + place_of(v_row + j, k));
                            });
                    } else {
                        take_norms(mine, p, block, start, split, inverted,
                            norm_out ? norm_out + base : nullptr);
                    }
                }
            }
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float* place = stage + (u_row + i) * TN + v_row - TM;
                *(float4*)place = make_float4(mine[i][0], mine[i][1], mine[i][2], mine[i][3]);
                if (!SHORT && is_max) {
                    *(float4*)(place + TM * TN) =
                        make_float4(quads[i][0], quads[i][1], quads[i][2], quads[i][3]);
                }
            }
            __syncthreads();
#pragma unroll
            for (int e = 0; e < 2; e++) {
                unsigned place = threadIdx.x + e * 256;
#pragma unroll
                for (int q = 0; q < 4; q++) {
                    if constexpr (SHORT) {
                        totals[e] += found(q, place);
                        maxima[e] += found(4 + q, place);
                    } else {
                        squares[e] += found(q, place);
                        int most = __float_as_int(found(4 + q, place));
                        if (most > largest[e]) {
                            largest[e] = most;
                            args[e] = __float_as_int(found(4 + q, place + TM * TN));
                        }
                    }
                }
            }
            __syncthreads();
        }
        if constexpr (!SHORT) {
            // The two pairs' norms and arguments: what is read before what is written.
            float stored[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                unsigned r = p.row + (threadIdx.x + e * 256) / TN;
                unsigned c = p.column + threadIdx.x % TN;
                if (r >= n || c >= m) continue;
                const float* u = p.a + (size_t)r * p.width + part * run;
                const float* v = p.b + (size_t)c * p.width + part * run;
                if (split.symmetric > 0) {
                    float square = squares[e] + split.offset, inverse, norm = root(square, inverse);
                    stored[e] = inverted ? inverse : norm;
                    if (!regular(square)) {
                        norm = careful_norm(u, v, split.symmetric);
                        stored[e] = careful_stored(norm, inverted);
                    }
                    totals[e] += norm;
                }
                u += split.symmetric, v += split.symmetric;
                float most = __int_as_float(largest[e]);
                if (p.wide && !isnan(most) && split.asymmetric > 0) {
                    int k = max(args[e], 0);
                    int q = first_of(*(const float4*)(u + k), *(const float4*)(v + k), most);
                    if (args[e] >= 0) args[e] += q;
                } else {
                    args[e] = careful_argument(u, v, (int)split.asymmetric);
                    most = args[e] < 0 ? 0.0f : u[args[e]] - v[args[e]];
                }
                maxima[e] += most;
            }
#pragma unroll
            for (int e = 0; e < 2; e++) {
                unsigned r = p.row + (threadIdx.x + e * 256) / TN;
                unsigned c = p.column + threadIdx.x % TN;
                if (r >= n || c >= m) continue;
                size_t place = ((size_t)part * n + r) * m + c;
                if (norm_out) norm_out[place] = stored[e];
                if (arg_out) arg_out[place] = __int_as_float(args[e]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
        unsigned i = (threadIdx.x + e * 256) / TN, j = threadIdx.x % TN;
        if (p.row + i >= n || p.column + j >= m) continue;
        bool is_bad = bad[i] || bad[TM + j];
        float distance = is_bad ? NOT_A_NUMBER : (totals[e] + maxima[e]) * split.share;
        out[(size_t)(p.row + i) * m + p.column + j] = distance;
        memory[i * LINE + j] = distance;
    }
    if (!sums.rows.p && !sums.columns.p) return;
    __syncthreads();
    sum_tile<1, 1, LINE>(sums, memory, sums.column.p ? added : nullptr, p.row, p.column, n);
}

#define PAIRS(NAME, BOUNDS, PAIRS_OF)                                                             \
    BOUNDED_KERNEL(NAME, BOUNDS, Mat x, Mat y, Mat distances, Mat norms, Mat args, unsigned n,    \
        unsigned m, unsigned inverted, Split split, const __grid_constant__ Sums sums) {          \
        after_others();                                                                           \
        PAIRS_OF(x, y, distances, norms, args, n, m, inverted, split, sums);                      \
    }

// Of components of more than 32 features and of at most as many.
PAIRS(residual_pairs_small, (256, 2), few<false>)
PAIRS(residual_pairs_large, (256, 2), many<false>)
PAIRS(residual_pairs_small_short, (256, 2), few<true>)
PAIRS(residual_pairs_large_short, (256, 2), many<true>)
