// MRN and Max: distances and gradients. What they share is in `residual.cuh`.

constexpr int TILE = 32;

// Distances of a tile of pairs; norms and arguments of the maxima [components, n, m] if wanted.
extern "C" __global__ void __launch_bounds__(256) residual_pairs(
    Mat x, Mat y, Mat distances, Mat norms, Mat args, unsigned n, unsigned m, Split split) {
    after_others();
    __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
    __shared__ int bad_left[TILE], bad_right[TILE];
    const float *a = at(x), *b = at(y);
    float *norm_out = maybe(norms), *arg_out = maybe(args);
    unsigned tiles = (m + TILE - 1) / TILE;
    unsigned row = blockIdx.x / tiles * TILE, column = blockIdx.x % tiles * TILE;
    unsigned tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    if (threadIdx.x < TILE) bad_left[threadIdx.x] = bad_right[threadIdx.x] = 0;
    float total[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    auto load = [&](unsigned feature, unsigned end) {
        __syncthreads();
        for (unsigned e = threadIdx.x; e < TILE * TILE; e += 256) {
            unsigned i = e / TILE, k = e % TILE;
            bool inside = feature + k < end;
            float u = inside && row + i < n ? a[(size_t)(row + i) * width + feature + k] : 0.0f;
            float v =
                inside && column + i < m ? b[(size_t)(column + i) * width + feature + k] : 0.0f;
            if (!finite(u)) bad_left[i] = 1;
            if (!finite(v)) bad_right[i] = 1;
            left[i][k] = u;
            right[i][k] = v;
        }
        __syncthreads();
    };
    for (unsigned component = 0; component < split.components; component++) {
        unsigned start = component * run, middle = start + split.symmetric, end = start + run;
        float squares[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        float best[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        int arg[2][2] = {{-1, -1}, {-1, -1}};
        for (unsigned feature = start; feature < middle; feature += TILE) {
            load(feature, middle);
#pragma unroll
            for (int k = 0; k < TILE; k++) {
                float u[2] = {left[ty][k], left[ty + 16][k]};
                float v[2] = {right[tx][k], right[tx + 16][k]};
#pragma unroll
                for (int i = 0; i < 2; i++)
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        float d = u[i] - v[j];
                        squares[i][j] = fmaf(d, d, squares[i][j]);
                    }
            }
        }
        for (unsigned feature = middle; feature < end; feature += TILE) {
            load(feature, end);
#pragma unroll
            for (int k = 0; k < TILE; k++) {
                float u[2] = {left[ty][k], left[ty + 16][k]};
                float v[2] = {right[tx][k], right[tx + 16][k]};
#pragma unroll
                for (int i = 0; i < 2; i++)
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        float d = u[i] - v[j];
                        bool better = d > best[i][j];
                        best[i][j] = better ? d : best[i][j];
                        arg[i][j] = better ? (int)(feature - middle) + k : arg[i][j];
                    }
            }
        }
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) {
                unsigned r = row + ty + 16 * i, c = column + tx + 16 * j;
                if (r >= n || c >= m) continue;
                float norm = 0.0f;
                if (split.symmetric > 0) {
                    float square = squares[i][j] + split.offset;
                    norm = regular(square) ? sqrtf(square)
                                           : careful_norm(a + (size_t)r * width + start,
                                                 b + (size_t)c * width + start, split.symmetric);
                }
                total[i][j] += norm + best[i][j];
                size_t place = ((size_t)component * n + r) * m + c;
                if (norm_out) norm_out[place] = norm;
                if (arg_out) arg_out[place] = __int_as_float(arg[i][j]);
            }
    }
    __syncthreads();
    float* out = at(distances);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            unsigned r = ty + 16 * i, c = tx + 16 * j;
            if (row + r >= n || column + c >= m) continue;
            bool bad = bad_left[r] || bad_right[c];
            size_t place = (size_t)(row + r) * m + column + c;
            out[place] = bad ? NOT_A_NUMBER : total[i][j] * split.share;
        }
}

// What each pair weighs in the gradients, in both layouts ([components, n, m] and
// [components, m, n]): w = share g / norm, and the scale that replaces a plain difference where w
// would not be representable (negative if halves must be subtracted; 0 for all other pairs);
// g = share grad and the argument of the maximum.
extern "C" __global__ void residual_weights(
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
extern "C" __global__ void __launch_bounds__(256) residual_norm_gradient(
    Mat a, Mat b, Mat weights, Mat scales, Mat da, unsigned n, unsigned m, Split split) {
    after_others();
    __shared__ float w[TILE][TILE + 1], s[TILE][TILE + 1], other[TILE][TILE + 1];
    const float *own = at(a), *others = at(b), *weight = at(weights), *scale = at(scales);
    unsigned rows = (n + TILE - 1) / TILE, chunks = (split.symmetric + TILE - 1) / TILE;
    unsigned component = blockIdx.x / (rows * chunks), rest = blockIdx.x % (rows * chunks);
    unsigned row = rest / chunks * TILE, feature = rest % chunks * TILE;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    unsigned start = component * run;
    unsigned tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    float u[2][2], sums[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            unsigned r = row + ty + 16 * i, f = feature + tx + 16 * k;
            bool inside = r < n && f < split.symmetric;
            u[i][k] = inside ? own[(size_t)r * width + start + f] : 0.0f;
        }
    for (unsigned first = 0; first < m; first += TILE) {
        __syncthreads();
        int special = 0;
        for (unsigned e = threadIdx.x; e < TILE * TILE; e += 256) {
            unsigned i = e / TILE, j = e % TILE;
            bool inside = row + i < n && first + j < m;
            size_t place = ((size_t)component * n + row + i) * m + first + j;
            w[i][j] = inside ? weight[place] : 0.0f;
            s[i][j] = inside ? scale[place] : 0.0f;
            special |= s[i][j] != 0.0f;
            // Here i counts the other points and j the features.
            inside = first + i < m && feature + j < split.symmetric;
            other[i][j] = inside ? others[(size_t)(first + i) * width + start + feature + j] : 0.0f;
        }
        special = __syncthreads_or(special);
        if (!special) {
#pragma unroll
            for (int j = 0; j < TILE; j++)
#pragma unroll
                for (int i = 0; i < 2; i++)
#pragma unroll
                    for (int k = 0; k < 2; k++) {
                        float d = u[i][k] - other[j][tx + 16 * k], weigh = w[ty + 16 * i][j];
                        // A weight of 0 silences a difference that overflows.
                        sums[i][k] = weigh == 0.0f ? sums[i][k] : fmaf(weigh, d, sums[i][k]);
                    }
        } else {
            for (int j = 0; j < TILE; j++)
                for (int i = 0; i < 2; i++)
                    for (int k = 0; k < 2; k++) {
                        float v = other[j][tx + 16 * k], weigh = w[ty + 16 * i][j];
                        float measure = s[ty + 16 * i][j];
                        if (weigh == 0.0f) continue;
                        float d = measure < 0.0f ? u[i][k] * 0.5f - v * 0.5f : u[i][k] - v;
                        if (measure != 0.0f) d = d / fabsf(measure);
                        sums[i][k] = fmaf(weigh, d, sums[i][k]);
                    }
        }
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            unsigned r = row + ty + 16 * i, f = feature + tx + 16 * k;
            if (r < n && f < split.symmetric) at(da)[(size_t)r * width + start + f] = sums[i][k];
        }
}

constexpr unsigned SCATTER = 2048;

// The asymmetric part of da [n, width]: sign g_ij to the feature that attains the maximum. One
// block a row and component. Sums are of whole numbers (the gradients in fixed point, relative to
// the row's largest), so their order does not matter.
extern "C" __global__ void residual_max_gradient(
    Mat grads, Mat args, Mat da, unsigned m, Split split, float scale, unsigned per_component) {
    after_others();
    __shared__ unsigned long long sums[SCATTER];
    unsigned rows = gridDim.x / split.components;
    unsigned component = blockIdx.x / rows, row = blockIdx.x % rows;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    size_t base = ((size_t)component * rows + row) * m;
    const float* g = at(grads) + (per_component ? base : (size_t)row * m);
    const float* arg = at(args) + base;
    float* out = at(da) + (size_t)row * width + component * run + split.symmetric;
    float largest = 0.0f;
    for (unsigned j = threadIdx.x; j < m; j += blockDim.x) {
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
    // 2^60 is room enough for m numbers of at most 2^shift times the largest.
    int bits = 32 - __clz((int)m), exponent = largest > 0.0f ? ilogbf(largest) : 0;
    int shift = 59 - bits - exponent;
    for (unsigned start = 0; start < split.asymmetric; start += SCATTER) {
        unsigned end = min(start + SCATTER, split.asymmetric);
        __syncthreads();
        for (unsigned f = start + threadIdx.x; f < end; f += blockDim.x) sums[f - start] = 0;
        __syncthreads();
        for (unsigned j = threadIdx.x; j < m; j += blockDim.x) {
            int f = __float_as_int(arg[j]);
            if (f < (int)start || f >= (int)end) continue;
            long long fixed = llrint(ldexp((double)(g[j] * scale), shift));
            atomicAdd(&sums[f - start], (unsigned long long)fixed);
        }
        __syncthreads();
        for (unsigned f = start + threadIdx.x; f < end; f += blockDim.x) {
            out[f] = (float)ldexp((double)(long long)sums[f - start], -shift);
        }
    }
}

// The distances between rows: one warp a row.
extern "C" __global__ void residual_rows(
    Mat x, Mat y, Mat distances, unsigned n, Split split) {
    after_others();
    unsigned row = FIRST >> 5, lane = threadIdx.x & 31;
    if (row >= n) return;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    const float *u = at(x) + (size_t)row * width, *v = at(y) + (size_t)row * width;
    float total = 0.0f, bad = 0.0f;
    for (unsigned component = 0; component < split.components; component++) {
        unsigned start = component * run, middle = start + split.symmetric, end = start + run;
        float square = 0.0f, best = 0.0f;
        for (unsigned k = start + lane; k < middle; k += 32) {
            float d = u[k] - v[k];
            square = fmaf(d, d, square);
            if (!finite(u[k]) || !finite(v[k])) bad = 1.0f;
        }
        for (unsigned k = middle + lane; k < end; k += 32) {
            best = fmaxf(best, u[k] - v[k]);
            if (!finite(u[k]) || !finite(v[k])) bad = 1.0f;
        }
        if (split.symmetric > 0) {
            square = warp_sum(square) + split.offset;
            total += regular(square) ? sqrtf(square)
                                     : careful_norm(u + start, v + start, split.symmetric);
        }
        total += warp_larger(best);
    }
    bad = warp_larger(bad);
    if (lane == 0) at(distances)[row] = bad > 0.0f ? NOT_A_NUMBER : total * split.share;
}

// Gradients to x and y (each if given) of the distances between rows.
extern "C" __global__ void residual_rows_gradient(
    Mat x, Mat y, Mat grad, Mat dx, Mat dy, unsigned n, Split split) {
    after_others();
    unsigned row = FIRST >> 5, lane = threadIdx.x & 31;
    if (row >= n) return;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    const float *u = at(x) + (size_t)row * width, *v = at(y) + (size_t)row * width;
    float *to_x = maybe(dx), *to_y = maybe(dy);
    if (to_x) to_x += (size_t)row * width;
    if (to_y) to_y += (size_t)row * width;
    float g = at(grad)[row] * split.share;
    for (unsigned component = 0; component < split.components; component++) {
        unsigned start = component * run, middle = start + split.symmetric, end = start + run;
        if (split.symmetric > 0) {
            float square = 0.0f;
            for (unsigned k = start + lane; k < middle; k += 32) {
                float d = u[k] - v[k];
                square = fmaf(d, d, square);
            }
            square = warp_sum(square) + split.offset;
            float norm = regular(square) ? sqrtf(square)
                                         : careful_norm(u + start, v + start, split.symmetric);
            float weight = g / norm;
            Scaled pair = {1.0f, false, 1.0f};
            if (!regular(norm * norm) || !finite(weight)) {
                pair = scaled(u + start, v + start, split.symmetric);
                weight = pair.norm > 0.0f ? g / pair.norm : 0.0f;
                if (pair.norm == 0.0f) pair.scale = 1.0f;
            }
            for (unsigned k = start + lane; k < middle; k += 32) {
                float term = weight * (difference(u[k], v[k], pair.half) / pair.scale);
                if (weight == 0.0f) term = 0.0f;
                if (to_x) to_x[k] = term;
                if (to_y) to_y[k] = -term;
            }
        }
        float best = 0.0f;
        int arg = 0x7fffffff;
        for (unsigned k = middle + lane; k < end; k += 32) {
            float d = u[k] - v[k];
            if (d > best) {
                best = d;
                arg = (int)k;
            }
        }
        float most = warp_larger(best);
        if (best != most || most == 0.0f) arg = 0x7fffffff;
        for (int step = 16; step > 0; step >>= 1) {
            arg = min(arg, __shfl_xor_sync(0xffffffffu, arg, step));
        }
        for (unsigned k = middle + lane; k < end; k += 32) {
            float term = (int)k == arg ? g : 0.0f;
            if (to_x) to_x[k] = term;
            if (to_y) to_y[k] = -term;
        }
    }
}
