// IQE with groups of any size, by rows and by pairs; others do common sizes. `iqe.cuh` says what it
// is.

// Each group of each row, times `sign`, in ascending order: values, and which feature of the group
// it was.
KERNEL(iqe_order, Mat x, Mat values, Mat index, unsigned count, unsigned size, float sign) {
    after_others();
    const float* in = at(x);
    for (unsigned e = FIRST; e < count; e += THREADS) {
        unsigned start = e / size * size, own = e - start, rank = 0;
        unsigned mine = ordered(sign * in[e]);
        for (unsigned i = 0; i < size; i++) {
            unsigned other = ordered(sign * in[start + i]);
            rank += other < mine || (other == mine && i < own) ? 1 : 0;
        }
        at(values)[start + rank] = sign * in[e];
        at(index)[start + rank] = __int_as_float((int)own);
    }
}

// The ends of a group's intervals in the order of the left ones, and whose they are. `step` is the
// distance between the right ends of neighbouring features.
struct Intervals {
    const float *left, *index, *right;
    size_t step;

    __device__ __forceinline__ float start(unsigned k) const { return left[k]; }
    __device__ __forceinline__ float end(unsigned k) const {
        return right[(size_t)feature(k) * step];
    }
    __device__ __forceinline__ int feature(unsigned k) const { return __float_as_int(index[k]); }
};

// The length of one group. `probe` becomes NaN if an end is not finite.
static __device__ __forceinline__ float union_length(
    const Intervals& group, unsigned size, float* probe) {
    float reach = -INFINITE, length = 0.0f;
    for (unsigned k = 0; k < size; k++) {
        float x = group.start(k), y = group.end(k);
        *probe += (x - x) + (y - y);
        float start = fmaxf(x, reach);
        reach = fmaxf(y, start);
        length += reach - start;
    }
    return length;
}

// Calls add_left(k, g) and add_right(feature, g) with the gradients of weight * union_length.
//
// Every connected piece of the union starts at one interval's left end and ends at one interval's
// right end. Empty and hidden intervals do not count; intervals that only touch are separate
// pieces.
template <typename Left, typename Right>
static __device__ __forceinline__ void union_gradient(
    const Intervals& group, unsigned size, float weight, Left add_left, Right add_right) {
    float reach = -INFINITE;
    int pending = -1;
    for (unsigned k = 0; k < size; k++) {
        float x = group.start(k), y = group.end(k);
        if (y > fmaxf(x, reach)) {
            if (!(reach > x)) {
                // A new piece: the one before ends where its last interval does.
                if (pending >= 0) add_right(pending, weight);
                add_left(k, -weight);
            }
            pending = group.feature(k);
        }
        reach = fmaxf(y, reach);
    }
    if (pending >= 0) add_right(pending, weight);
}

// Distances of pairs, with their totals, maxima and first largest groups if wanted; y_t is y
// transposed. One block is 128 columns of one row.
KERNEL(iqe_pairs,
    Mat values, Mat index, Mat y_t, Mat logit, Mat distances, Mat totals, Mat maxima, Mat args,
    unsigned n, unsigned m, Groups plain) {
    after_others();
    unsigned tiles = (m + blockDim.x - 1) / blockDim.x;
    unsigned i = blockIdx.x / tiles, j = blockIdx.x % tiles * blockDim.x + threadIdx.x;
    if (j >= m) return;
    Groups groups = weighted(plain, logit);
    size_t width = (size_t)groups.count * groups.size;
    const float *left = at(values) + i * width, *order = at(index) + i * width;
    const float* right = at(y_t) + j;
    float total = 0.0f, maximum = -INFINITE, probe = 0.0f;
    int arg = 0;
    for (unsigned group = 0; group < groups.count; group++) {
        size_t start = (size_t)group * groups.size;
        Intervals intervals = {left + start, order + start, right + start * m, m};
        float length = union_length(intervals, groups.size, &probe);
        total += length;
        if (length > maximum) {
            maximum = length;
            arg = (int)group;
        }
    }
    size_t place = (size_t)i * m + j;
    at(distances)[place] = reduced(groups, total, maximum) + probe;
    float *t = maybe(totals), *most = maybe(maxima), *which = maybe(args);
    if (t) t[place] = total;
    if (most) most[place] = maximum;
    if (which) which[place] = __int_as_float(arg);
}

// dx: one warp a row and group, its lanes at neighbouring columns. The sums of each lane lie in
// shared memory, or in `scratch` if they do not fit.
KERNEL(iqe_gradient_x,
    Mat values, Mat index, Mat y_t, Mat logit, Mat grad, Mat args, Mat dx, Mat scratch, unsigned n,
    unsigned m, Groups plain) {
    after_others();
    extern __shared__ float shared[];
    unsigned warp = FIRST >> 5, lane = threadIdx.x & 31;
    Groups groups = weighted(plain, logit);
    if (warp >= n * groups.count) return;
    unsigned i = warp / groups.count, group = warp % groups.count, size = groups.size;
    size_t width = (size_t)groups.count * size, start = (size_t)group * size;
    const float *left = at(values) + i * width + start, *order = at(index) + i * width + start;
    const float *g = at(grad) + (size_t)i * m, *which = maybe(args), *right = at(y_t) + start * m;
    float* out = at(dx) + i * width + start;
    float* sums = maybe(scratch);
    sums = sums ? sums + (size_t)warp * size * 32 : shared + (threadIdx.x >> 5) * size * 32;
    for (unsigned k = 0; k < size; k++) sums[k * 32 + lane] = 0.0f;
    for (unsigned j = lane; j < m; j += 32) {
        float weight = pair_weight(groups, which, (size_t)i * m + j, group, g[j]);
        Intervals intervals = {left, order, right + j, m};
        union_gradient(
            intervals, size, weight, [&](unsigned k, float d) { sums[k * 32 + lane] += d; },
            [](int, float) {});
    }
    __syncwarp();
    for (unsigned k = 0; k < size; k++) {
        float sum = warp_sum(sums[k * 32 + lane]);
        if (lane == 0) out[__float_as_int(order[k])] = sum;
    }
}

// dy: a block has 32 columns of one group; its warps share the rows among them. The sums lie in
// shared memory, or in `scratch` (then the first warp has all rows).
KERNEL(iqe_gradient_y,
    Mat values, Mat index, Mat y_t, Mat logit, Mat grad, Mat args, Mat dy, Mat scratch, unsigned n,
    unsigned m, Groups plain) {
    after_others();
    extern __shared__ float shared[];
    Groups groups = weighted(plain, logit);
    unsigned tiles = (m + 31) / 32, size = groups.size, part = threadIdx.x >> 5;
    unsigned group = blockIdx.x / tiles, j = blockIdx.x % tiles * 32 + (threadIdx.x & 31);
    bool inside = j < m;
    float* sums = maybe(scratch);
    unsigned parts = sums ? 1 : blockDim.x / 32;
    size_t apart = sums ? (size_t)m : blockDim.x;
    sums = sums ? sums + (size_t)group * size * m + j : shared + threadIdx.x;
    size_t width = (size_t)groups.count * size, start = (size_t)group * size;
    if (inside && part < parts) {
        for (unsigned k = 0; k < size; k++) sums[k * apart] = 0.0f;
        const float *left = at(values) + start, *order = at(index) + start;
        const float *right = at(y_t) + start * m + j, *g = at(grad), *which = maybe(args);
        for (unsigned i = part; i < n; i += parts) {
            size_t place = (size_t)i * m + j;
            float weight = pair_weight(groups, which, place, group, g[place]);
            Intervals intervals = {left + i * width, order + i * width, right, m};
            union_gradient(
                intervals, size, weight, [](unsigned, float) {},
                [&](int feature, float d) { sums[feature * apart] += d; });
        }
    }
    __syncthreads();
    if (!inside || part != 0) return;
    float* out = at(dy) + j * width + start;
    for (unsigned k = 0; k < size; k++) {
        float sum = sums[k * apart];
        for (unsigned p = 1; p < parts; p++) sum += sums[k * apart + 32 * p];
        out[k] = sum;
    }
}

// The gradient of the logit from the pairs' (or rows') totals and maxima.
KERNEL(iqe_logit_gradient,
    Mat grad, Mat totals, Mat maxima, Mat logit, Mat d_logit, unsigned count, unsigned groups) {
    after_others();
    double value = *at(logit);
    double slope = 1.0 / (1.0 + exp(-value)) / (1.0 + exp(value)), sum = 0.0;
    const float *g = at(grad), *total = at(totals), *most = at(maxima);
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        // Lengths that overflowed count as the largest number.
        double mean = (double)fminf(total[i], LARGEST) / (double)groups;
        sum += (double)g[i] * slope * ((double)fminf(most[i], LARGEST) - mean);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) *at(d_logit) = (float)fmin(fmax(sum, -(double)LARGEST), (double)LARGEST);
}

// The distances between rows: one warp a row, its lanes at different groups.
KERNEL(iqe_ordered_rows,
    Mat values, Mat index, Mat y, Mat logit, Mat distances, Mat totals, Mat maxima, Mat args,
    unsigned n, Groups plain) {
    after_others();
    unsigned row = FIRST >> 5, lane = threadIdx.x & 31;
    if (row >= n) return;
    Groups groups = weighted(plain, logit);
    size_t width = (size_t)groups.count * groups.size, first = row * width;
    float total = 0.0f, maximum = -INFINITE, probe = 0.0f;
    int arg = 0x7fffffff;
    for (unsigned group = lane; group < groups.count; group += 32) {
        size_t start = first + (size_t)group * groups.size;
        Intervals intervals = {at(values) + start, at(index) + start, at(y) + start, 1};
        float length = union_length(intervals, groups.size, &probe);
        total += length;
        if (length > maximum) {
            maximum = length;
            arg = (int)group;
        }
    }
    total = warp_sum(total);
    probe = warp_sum(probe);
    float most = warp_larger(maximum);
    if (maximum != most) arg = 0x7fffffff;
    for (int step = 16; step > 0; step >>= 1) {
        arg = min(arg, __shfl_xor_sync(0xffffffffu, arg, step));
    }
    if (lane != 0) return;
    at(distances)[row] = reduced(groups, total, most) + probe;
    float *t = maybe(totals), *m = maybe(maxima), *which = maybe(args);
    if (t) t[row] = total;
    if (m) m[row] = most;
    if (which) which[row] = __int_as_float(arg);
}

// Gradients to x and y of the distances between rows: one thread a row and group.
KERNEL(iqe_ordered_rows_gradient,
    Mat values, Mat index, Mat y, Mat logit, Mat grad, Mat args, Mat dx, Mat dy, unsigned n,
    Groups plain) {
    after_others();
    Groups groups = weighted(plain, logit);
    for (unsigned e = FIRST; e < n * groups.count; e += THREADS) {
        unsigned row = e / groups.count, group = e % groups.count, size = groups.size;
        size_t start = (size_t)e * size;
        float weight = pair_weight(groups, maybe(args), row, group, at(grad)[row]);
        float *to_x = at(dx) + start, *to_y = at(dy) + start;
        const float* order = at(index) + start;
        for (unsigned k = 0; k < size; k++) to_x[k] = to_y[k] = 0.0f;
        Intervals intervals = {at(values) + start, order, at(y) + start, 1};
        union_gradient(
            intervals, size, weight,
            [&](unsigned k, float d) { to_x[__float_as_int(order[k])] += d; },
            [&](int feature, float d) { to_y[feature] += d; });
    }
}
